//! Test programs that are compiled together and run side by side, and the time of each test.
//!
//! Cargo runs one program after another, and most of them have a test that outlasts the others or
//! waits: a processor rests meanwhile.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::{fs, thread};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use xtask::files::replace_between;
use xtask::root;

/// Programs at a time.
const SIDE_BY_SIDE: usize = 3;
/// Tests at a time of each: more than a small machine has processors, since many wait.
const TESTS_AT_A_TIME: &str = "4";
/// Tests that the table has.
const SLOWEST: usize = 20;
const PAGE: &str = "docs/internals/build.md";
const BEGIN: &str = "<!-- written by cargo xtask slowest-tests -->\n";
const END: &str = "<!-- end of the slowest tests -->\n";

/// A line of what Cargo says when it is asked for JSON.
#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    profile: Option<Profile>,
    target: Option<Target>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

/// A compiled program of tests.
#[derive(Debug)]
pub(crate) struct TestProgram {
    executable: PathBuf,
    /// Folder of its package, in which Cargo would run it.
    folder: PathBuf,
    /// Name of what it tests.
    target: String,
    bytes: u64,
}

/// A test that was run.
#[derive(Debug)]
pub(crate) struct TestTime {
    name: String,
    seconds: f64,
}

/// Compiles the tests that `selection`, arguments of `cargo test`, stands for.
///
/// # Errors
/// Fails if something does not compile.
pub(crate) fn compile(selection: &[&str]) -> Result<Vec<TestProgram>> {
    let form = ["test", "--quiet", "--no-run", "--message-format=json-render-diagnostics"];
    println!("\n$ cargo test --no-run {}", selection.join(" "));
    let mut cargo = Command::new("cargo");
    cargo.args(form).args(selection).current_dir(root()).stderr(Stdio::inherit());
    let output = cargo.output().context("starting cargo")?;
    ensure!(output.status.success(), "the tests do not compile: {}", output.status);
    let mut programs = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let message: Message = serde_json::from_str(line).context("reading Cargo's messages")?;
        if let (Some(executable), Some(manifest), Some(Profile { test: true }), Some(target)) =
            (message.executable, message.manifest_path, message.profile, message.target)
        {
            let folder = manifest.parent().context("a manifest lies in a folder")?.to_owned();
            let bytes = fs::metadata(&executable)?.len();
            programs.push(TestProgram { executable, folder, target: target.name, bytes });
        }
    }
    ensure!(!programs.is_empty(), "Cargo names no test program");
    // A large program tends to take long, and what is begun last would run alone at the end.
    programs.sort_by_key(|program| program.bytes);
    Ok(programs)
}

/// Runs all programs, shows what failed, and returns the time of each test, longest first.
///
/// # Errors
/// Fails after all have run, if a test of one failed.
pub(crate) fn run_side_by_side(programs: Vec<TestProgram>) -> Result<Vec<TestTime>> {
    let waiting = Mutex::new(programs);
    let ended = Mutex::new((Vec::new(), Vec::new()));
    thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                while let Some(program) = next(&waiting) {
                    let result = program.run();
                    let mut ended = ended.lock().expect("no thread panics with it");
                    match result {
                        Ok(times) => ended.0.extend(times),
                        Err(error) => ended.1.push(error),
                    }
                }
            });
        }
    });
    let (mut times, errors) = ended.into_inner().expect("no thread panicked with it");
    for error in &errors {
        println!("{error:#}\n");
    }
    ensure!(errors.is_empty(), "{} test programs failed", errors.len());
    times.sort_by(|a: &TestTime, b| b.seconds.total_cmp(&a.seconds));
    Ok(times)
}

fn next(waiting: &Mutex<Vec<TestProgram>>) -> Option<TestProgram> {
    waiting.lock().expect("no thread panics with it").pop()
}

impl TestProgram {
    fn run(&self) -> Result<Vec<TestTime>> {
        let mut program = Command::new(&self.executable);
        program.args(["-Z", "unstable-options", "--report-time"]).current_dir(&self.folder);
        // The times are told only where the harness may do what is not stable.
        program.env("RUSTC_BOOTSTRAP", "1").env("RUST_TEST_THREADS", TESTS_AT_A_TIME);
        let output = program.stdin(Stdio::null()).output();
        let output = output.with_context(|| format!("starting {}", self.executable.display()))?;
        let printed = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let complaints = String::from_utf8_lossy(&output.stderr);
            bail!("{} of {}:\n{printed}{complaints}", self.target, self.folder.display());
        }
        let summary = printed.lines().rfind(|line| line.starts_with("test result: "));
        let summary = summary.with_context(|| format!("{} has no summary", self.target))?;
        println!("{}: {summary}", self.target);
        Ok(times(&printed, &self.target))
    }
}

/// The times in lines such as `test a::b ... ok <0.012s>`.
fn times(printed: &str, target: &str) -> Vec<TestTime> {
    let time = |line: &str| {
        let (name, rest) = line.strip_prefix("test ")?.split_once(" ... ")?;
        let (_, seconds) = rest.strip_suffix("s>")?.rsplit_once('<')?;
        Some(TestTime { name: format!("{target} {name}"), seconds: seconds.parse().ok()? })
    };
    printed.lines().filter_map(time).collect()
}

/// Runs every test of the workspace, and writes the slowest into docs/internals/build.md.
///
/// # Errors
/// Names what failed.
pub(crate) fn write_slowest() -> Result<()> {
    let times = run_side_by_side(compile(&["--workspace"])?)?;
    let mut table = "| test | took s |\n|---|---|\n".to_owned();
    for TestTime { name, seconds } in times.iter().take(SLOWEST) {
        writeln!(table, "| `{name}` | {seconds:.1} |")?;
    }
    print!("{table}");
    replace_between(&root().join(PAGE), BEGIN, END, &format!("\n{table}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_tests_are_read() {
        let printed = "running 3 tests\ntest a::b ... ok <1.250s>\ntest c ... ignored\n\
                       test d - should panic ... ok <0.001s>\n\ntest result: ok. 2 passed";
        let read: Vec<(String, f64)> =
            times(printed, "live").into_iter().map(|it| (it.name, it.seconds)).collect();
        let wanted = [("live a::b".to_owned(), 1.25), ("live d - should panic".to_owned(), 0.001)];
        assert_eq!(read, wanted);
    }
}
