//! `cargo xtask test`: everything that must hold before a change lands. `cargo xtask check`: what
//! takes minutes of it.
//!
//! ```text
//!   format ──► lints, in compiling ──┐                    ┌─► tests of all other crates
//!   what is missing on this machine ─┴─► site, packages ──┴─► Python, clients, guests
//! ```
//!
//! What waits for other programs runs in the background of what computes. Its output is shown last,
//! so that the last lines are the test runner's own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::{env, fs, thread};

use anyhow::{Context, Result, anyhow, ensure};

use crate::{dist, guest, python, rustc, site, soak, test_programs};
use xtask::program::{install, may_install, run, succeeds};
use xtask::{root, target};

/// A program that some tests need, and go without where it is missing.
struct Tool {
    /// Names that it may go by.
    programs: &'static [&'static str],
    /// Package of the system that holds it.
    package: &'static str,
    /// Tests that are skipped without it.
    skipped: &'static str,
}

const TOOLS: [Tool; 15] = [
    Tool { programs: &["fio"], package: "fio", skipped: "tests of the fio driver on a real file" },
    Tool {
        programs: &["nbdkit"],
        package: "nbdkit",
        skipped: "tests of drives behind NBD servers",
    },
    Tool {
        programs: &["chromium", "chromium-browser", "google-chrome"],
        package: "chromium",
        skipped: "tests that open a review or a dashboard in a browser",
    },
    Tool { programs: &["nbdcopy"], package: "libnbd-bin", skipped: CLIENTS },
    Tool { programs: &["nbdsh"], package: "python3-libnbd", skipped: CLIENTS },
    Tool { programs: &["qemu-img"], package: "qemu-utils", skipped: CLIENTS },
    Tool { programs: &["nvme"], package: "nvme-cli", skipped: GUEST },
    Tool { programs: &["smartctl"], package: "smartmontools", skipped: GUEST },
    Tool { programs: &["insmod"], package: "kmod", skipped: "the test of a guest over NVMe/TCP" },
    Tool {
        programs: &["nbd-client"],
        package: "nbd-client",
        skipped: "the measurement of ublk beside kernel NBD in an emulated machine",
    },
    Tool { programs: &["sqlite3"], package: "sqlite3", skipped: "the test of a recorded database" },
    Tool { programs: &["fusermount3"], package: "fuse3", skipped: CLIENTS },
    Tool {
        programs: &["busybox"],
        package: "busybox-static",
        skipped: "the installation of the package for Debian",
    },
    Tool { programs: &["openssl"], package: "openssl", skipped: "tests of clients that encrypt" },
    Tool {
        programs: &["promtool"],
        package: "prometheus",
        skipped: "tests of the metrics and alert rules in a real Prometheus",
    },
];

const GUEST: &str = "the test of an emulated machine with an NVMe drive";
const CLIENTS: &str = "tests of served drives with this client";

/// Checks that are run only where they are installed.
const OPTIONAL_CHECKS: [(&str, &[&str]); 2] =
    [("typos", &[]), ("cargo-deny", &["--all-features", "check"])];

impl Tool {
    fn is_there(&self) -> bool {
        let is_found = |program: &&str| succeeds("sh", &["-c", "command -v \"$0\"", program]);
        self.programs.iter().any(is_found)
    }
}

/// Folder of the tests of the command, most of which wait for clients, guests and browsers.
const TESTS_OF_COMMAND: &str = "crates/cli/tests";

/// Seeds of the simulation that are checked: others than those of its tests.
const SEEDS: u64 = 50;
const FIRST_SEED: u64 = 500;

/// Runs every test.
///
/// # Errors
/// Names the first step that failed.
pub(crate) fn run_all() -> Result<()> {
    if !rustc::is_linting() {
        provide_toolchain()?;
        return rustc::run_linting("test");
    }
    check_form()?;
    // What is downloaded waits for the network, and what is compiled for the processor.
    let provided = thread::spawn(provide_tools);
    // Lints, and builds the command that is packed, beside which the package of Python is tested,
    // and what the last step runs.
    run("cargo", &["test", "--quiet", "--workspace", "--no-run"], &[])?;
    provided.join().map_err(|_| anyhow!("providing what tests need failed"))?;
    site::check_quickly()?;
    dist::check_quickly()?;
    let clients = BackgroundTask::start("test-clients")?;
    let others = ["test", "--no-fail-fast", "--workspace", "--exclude", "cli"];
    let others = run("cargo", &others, &[]);
    // Both are shown, whichever fails.
    clients.show().and(others)
}

/// Tests the package of Python and the command, with its clients, guests and browsers: they wait
/// for other programs more than they compute.
///
/// # Errors
/// Names the first step that failed.
pub(crate) fn test_clients() -> Result<()> {
    let package = python::test();
    // Of the workspace: one package by itself may have other features, and is compiled anew.
    let programs = ["test", "--no-fail-fast", "--workspace", "--bin", "floatgate"];
    let mut cargo = programs.map(str::to_owned).to_vec();
    for program in test_programs(&root().join(TESTS_OF_COMMAND))? {
        cargo.extend(["--test".to_owned(), program]);
    }
    let cargo: Vec<&str> = cargo.iter().map(String::as_str).collect();
    // Both are tested, whichever fails.
    package.and(run("cargo", &cargo, &[]))
}

/// Names of the test programs in a folder, as Cargo finds them.
fn test_programs(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))?;
    let mut programs = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let is_program = path.extension().is_some_and(|it| it == "rs");
        if let Some(name) = path.file_stem()
            && (is_program || path.join("main.rs").exists())
        {
            programs.push(name.to_string_lossy().into_owned());
        }
    }
    programs.sort();
    Ok(programs)
}

/// A task of this program in a process of its own, with its output in a file.
struct BackgroundTask {
    task: &'static str,
    child: Child,
    output: PathBuf,
}

impl BackgroundTask {
    fn start(task: &'static str) -> Result<Self> {
        let output = target().join(task).with_extension("log");
        let file = File::create(&output);
        let file = file.with_context(|| format!("making {}", output.display()))?;
        let mut this = Command::new(env::current_exe().context("finding this program")?);
        this.arg(task).stdout(file.try_clone()?).stderr(file);
        let child = this.spawn().with_context(|| format!("starting {task}"))?;
        println!("\n{task} runs in the background, with its output in {}", output.display());
        Ok(Self { task, child, output })
    }

    /// Waits for its end, and shows its output.
    fn show(mut self) -> Result<()> {
        let status = self.child.wait()?;
        let output = fs::read(&self.output)?;
        println!("\n{}", String::from_utf8_lossy(&output));
        ensure!(status.success(), "{} failed: {status}", self.task);
        Ok(())
    }
}

/// Checks form, lints, unit tests, some seeds of the simulation and that `fuzz/` compiles.
///
/// # Errors
/// Names the first step that failed.
pub(crate) fn check() -> Result<()> {
    if !rustc::is_linting() {
        provide_toolchain()?;
        return rustc::run_linting("check");
    }
    check_form()?;
    let programs = test_programs::compile(&["--workspace", "--lib", "--bins", "--test", "tidy"])?;
    thread::scope(|scope| {
        let others = scope.spawn(|| {
            soak::simulate(0, FIRST_SEED, Some(SEEDS))?;
            let fuzz = ["build", "--quiet", "--package", "fuzz", "--features", "libfuzzer"];
            run("cargo", &fuzz, &[])
        });
        test_programs::run_side_by_side(programs)?;
        others.join().map_err(|_| anyhow!("the simulation or `fuzz/` failed"))?
    })
}

/// Runs every test of the workspace, and writes the slowest into docs/internals/build.md.
///
/// # Errors
/// Names the first step that failed.
pub(crate) fn write_slowest() -> Result<()> {
    if !rustc::is_linting() {
        return rustc::run_linting("slowest-tests");
    }
    test_programs::write_slowest()
}

fn provide_toolchain() -> Result<()> {
    for (component, subcommand) in [("rustfmt", "fmt"), ("clippy", "clippy")] {
        if !succeeds("cargo", &[subcommand, "--version"]) {
            run("rustup", &["component", "add", component], &[]).with_context(|| {
                format!("{component} is needed: install it, then run this again")
            })?;
        }
    }
    Ok(())
}

fn provide_tools() {
    let mut missing: Vec<&Tool> = TOOLS.iter().filter(|tool| !tool.is_there()).collect();
    if !missing.is_empty() && may_install() {
        let packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
        println!("installing {}", packages.join(" and "));
        install(&packages);
        missing.retain(|tool| !tool.is_there());
    }
    for Tool { package, skipped, .. } in missing {
        println!("{package} is missing and may not be installed by this user: skips {skipped}");
        println!("  to run them: apt-get install {package}");
    }
    if let Err(error) = guest::provide() {
        println!("skips tests of emulated machines: {error:#}");
    }
    if let Err(error) = guest::provide_nvme_cli() {
        println!("skips the tests of nvme-cli: {error:#}");
    }
    if let Err(error) = guest::provide_opal_hosts() {
        println!("skips the test of programs that lock drives: {error:#}");
    }
}

fn check_form() -> Result<()> {
    run("cargo", &["fmt", "--all", "--check"], &[])?;
    for (program, args) in OPTIONAL_CHECKS {
        if succeeds(program, &["--version"]) {
            run(program, args, &[])?;
        } else {
            println!("\n{program} is not installed: skips its check");
        }
    }
    Ok(())
}
