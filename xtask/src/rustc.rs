//! The compiler with everything that is asked of code: Clippy's lints, and rustdoc's.
//!
//! ```text
//!   cargo test ──► this program, as RUSTC_WORKSPACE_WRAPPER ─┬► clippy-driver: lints and compiles
//!                                                            └► rustdoc: lints the comments
//! ```
//!
//! `cargo clippy` and `cargo doc` would each go over the workspace, and all that it depends on,
//! once more, to no other end. Here each crate is compiled once, for the tests, and both look at it
//! as it is.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use xtask::files::copy;
use xtask::program::said;
use xtask::target;

/// Variable that has this program act as the compiler: the folder for rustdoc's pages.
const PAGES: &str = "FLOATGATE_CHECKED_PAGES";
/// Variable with the program that Cargo starts in place of rustc for crates of the workspace.
const WRAPPER: &str = "RUSTC_WORKSPACE_WRAPPER";
/// Arguments of Clippy, as `cargo clippy` passes them on.
const CLIPPY: (&str, &str) = ("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");

/// Runs this program again, in a process in which every Cargo lints what it compiles.
///
/// # Errors
/// Fails if it cannot be started, or fails.
pub(crate) fn run_linting(task: &str) -> Result<()> {
    let this = env::current_exe().context("finding this program")?;
    // Cargo replaces it while it compiles the workspace.
    let kept = target().join("checked-rustc");
    copy(&this, &kept)?;
    let mut again = Command::new(&kept);
    again.arg(task).env(WRAPPER, &kept).env(PAGES, target().join("checked-pages"));
    let status = again.env(CLIPPY.0, CLIPPY.1).status();
    let status = status.with_context(|| format!("starting {}", kept.display()))?;
    ensure!(status.success(), "{task} failed: {status}");
    Ok(())
}

/// True in a process in which every Cargo lints what it compiles.
pub(crate) fn is_linting() -> bool {
    env::var_os(PAGES).is_some()
}

/// Acts as the compiler, if Cargo has started this program as one. Absent otherwise.
pub(crate) fn run() -> Option<ExitCode> {
    let pages = PathBuf::from(env::var_os(PAGES)?);
    let mut arguments = env::args_os().skip(1);
    let rustc = arguments.next().filter(|program| Path::new(program).ends_with("rustc"))?;
    let arguments: Vec<OsString> = arguments.collect();
    Some(match compile(&rustc, &arguments, &pages) {
        Ok(code) => code,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    })
}

fn compile(rustc: &OsStr, arguments: &[OsString], pages: &Path) -> Result<ExitCode> {
    let programs = programs(rustc)?;
    let clippy = Command::new(programs.join("clippy-driver")).arg(rustc).args(arguments).status();
    let compiled = clippy.context("starting clippy-driver: rustup component add clippy")?;
    if !compiled.success() {
        return Ok(ExitCode::FAILURE);
    }
    let Some(documented) = documented(arguments, pages) else { return Ok(ExitCode::SUCCESS) };
    let rustdoc = Command::new(programs.join("rustdoc")).args(documented).status();
    let is_right = rustdoc.context("starting rustdoc")?.success();
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The folder of the programs of this toolchain.
fn programs(rustc: &OsStr) -> Result<PathBuf> {
    let sysroot = said(Command::new(rustc).args(["--print", "sysroot"]).stdin(Stdio::null()))?;
    Ok(Path::new(sysroot.trim()).join("bin"))
}

/// Arguments of rustdoc for a crate that is compiled with `arguments`. Absent if it has no pages:
/// tests, examples, build scripts, and questions of Cargo.
fn documented(arguments: &[OsString], pages: &Path) -> Option<Vec<OsString>> {
    let text: Vec<&str> = arguments.iter().map(|it| it.to_str()).collect::<Option<_>>()?;
    let after = |option: &str| text.windows(2).find(|pair| pair[0] == option).map(|pair| pair[1]);
    let name =
        after("--crate-name").filter(|name| !["___", "build_script_build"].contains(name))?;
    let source = text.iter().find(|it| Path::new(it).extension() == Some(OsStr::new("rs")))?;
    if text.contains(&"--test") || source.contains("/examples/") || source.contains("/tests/") {
        return None;
    }
    let mut kept = Vec::new();
    let mut rest = text.iter();
    while let Some(argument) = rest.next() {
        match *argument {
            "--out-dir" => _ = rest.next(),
            "-C" => {
                let choice = rest.next()?;
                if !is_of_output(choice) {
                    kept.extend(["-C", choice].map(OsString::from));
                }
            }
            _ if argument.starts_with("--emit=") => {}
            _ => kept.push(OsString::from(argument)),
        }
    }
    let own = ["--document-private-items", "-D", "warnings", "--out-dir"];
    kept.extend(own.map(OsString::from));
    // Each in a folder of its own: two at a time would write the same files.
    kept.push(pages.join(name).into_os_string());
    Some(kept)
}

/// True for a choice of the compiler that rustdoc does not know, or that would write.
fn is_of_output(choice: &str) -> bool {
    ["incremental=", "extra-filename="].iter().any(|start| choice.starts_with(start))
}

#[expect(clippy::print_stderr, reason = "Cargo shows what its compiler says")]
fn complain(error: &anyhow::Error) {
    eprintln!("error: {error:#}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documented_of(line: &str) -> Option<String> {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let kept = documented(&arguments, Path::new("pages"))?;
        let text: Vec<&str> = kept.iter().map(|it| it.to_str().expect("text")).collect();
        Some(text.join(" "))
    }

    #[test]
    fn pages_are_asked_for_with_what_a_crate_is_compiled_with() {
        let line = "--crate-name ftl --edition=2024 crates/ftl/src/lib.rs --crate-type lib \
                    --emit=dep-info,metadata,link -C opt-level=3 -C incremental=target/x \
                    --out-dir target/debug/deps -L dependency=target/debug/deps \
                    --extern blockio=target/debug/deps/libblockio.rmeta -C extra-filename=-1";
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            documented_of(&line).as_deref(),
            Some(
                "--crate-name ftl --edition=2024 crates/ftl/src/lib.rs --crate-type lib \
                 -C opt-level=3 -L dependency=target/debug/deps \
                 --extern blockio=target/debug/deps/libblockio.rmeta \
                 --document-private-items -D warnings --out-dir pages/ftl"
            )
        );
    }

    #[test]
    fn tests_examples_and_questions_have_no_pages() {
        for line in [
            "--crate-name ftl crates/ftl/src/lib.rs --test",
            "--crate-name churn crates/live/examples/churn.rs --crate-type bin",
            "--crate-name ___ --print=file-names",
            "-vV",
        ] {
            assert_eq!(documented_of(line), None, "{line}");
        }
    }
}
