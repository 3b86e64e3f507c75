//! The Python package: built, installed into a virtual environment, and tested there. Virtual
//! environments for other tasks.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use xtask::files::{files_in, remove_folder};
use xtask::program::{install, may_install, run, succeeds};
use xtask::target;

/// Packages that the tests need, none of which the package itself does.
const NEEDED: [&str; 12] = [
    "distributed",
    "ipykernel",
    "maturin>=1.9,<2",
    "mypy",
    "nbclient",
    "numpy",
    "optuna>=5",
    "pandas>=3",
    "polars",
    "pyarrow",
    "pytest",
    "pytest-xdist",
];
/// Imports that succeed where all of them are there.
const IMPORTS: &str = "import distributed, ipykernel, maturin, mypy, nbclient, numpy, optuna, \
                       pandas, polars, pyarrow, pytest, xdist";
/// Seconds that installing Ray may take: it has 79 MB, and its tests are skipped without it.
const RAY_S: &str = "60";
/// Folder of the tests.
const TESTS: &str = "crates/python/tests";
/// Tests of Ray, which are run by themselves: its nodes give up where processors are busy.
const TESTS_OF_RAY: &str = "crates/python/tests/test_ray.py";
/// Option that leaves them out.
const IGNORE_RAY: &str = "--ignore=crates/python/tests/test_ray.py";
/// Manifest of the crate.
const MANIFEST: &str = "crates/python/Cargo.toml";

/// Tests the package as it is installed, beside the command, which is built already.
///
/// # Errors
/// Fails if the package cannot be built, or a test fails.
pub(crate) fn test() -> Result<()> {
    let Some(environment) = Environment::provide()? else {
        println!("no registry of Python packages can be reached: skips tests of the package");
        println!("  to run them: pip install {}", NEEDED.map(|it| format!("'{it}'")).join(" "));
        return Ok(());
    };
    let has_ray = environment.add_ray();
    environment.install(&[])?;
    let python = environment.program("python");
    let command = target().join("debug").join("floatgate").display().to_string();
    // Else Python leaves its bytecode among the sources.
    let variables = [("FLOATGATE_COMMAND", &*command), ("PYTHONDONTWRITEBYTECODE", "1")];
    let pytest = ["-m", "pytest", "-c", "crates/python/pyproject.toml"];
    let two_at_a_time = ["--numprocesses=2", "--dist=loadfile", TESTS, IGNORE_RAY];
    run(&python, &[&pytest[..], &two_at_a_time].concat(), &variables)?;
    if has_ray {
        run(&python, &[&pytest[..], &[TESTS_OF_RAY]].concat(), &variables)?;
    }
    Ok(())
}

/// Installs the package, and another one beside it, into the environment, and returns the path of
/// its interpreter; nothing where no registry can be reached.
///
/// # Errors
/// Fails if the package cannot be built, or one cannot be installed.
pub(crate) fn installed(beside: &str) -> Result<Option<String>> {
    let Some(environment) = Environment::provide()? else { return Ok(None) };
    environment.install(&[])?;
    let python = environment.program("python");
    run(&python, &["-m", "pip", "install", "--quiet", beside], &[])?;
    Ok(Some(python))
}

/// Executes the notebooks of the documentation, and writes what they show into them.
///
/// # Errors
/// Fails if the package cannot be built, or a cell fails.
pub(crate) fn notebooks() -> Result<()> {
    let Some(environment) = Environment::provide()? else {
        bail!("the packages that execute notebooks are missing, and no registry can be reached");
    };
    environment.install(&["--release"])?;
    let variables = [("PYTHONDONTWRITEBYTECODE", "1")];
    run(&environment.program("python"), &["crates/python/notebooks.py"], &variables)
}

/// Makes a virtual environment in `folder` with these packages of `PyPI`, unless it has them, and
/// returns the folder of its programs.
///
/// # Errors
/// Fails if there is no Python, or a package cannot be installed.
pub(crate) fn environment_of(folder: &Path, packages: &[&str]) -> Result<PathBuf> {
    let programs = folder.join("bin");
    // The list is written last, so that an interrupted installation is repeated.
    let (list, wanted) = (folder.join("packages.txt"), packages.join("\n"));
    if fs::read_to_string(&list).is_ok_and(|installed| installed == wanted) {
        return Ok(programs);
    }
    make_environment(folder)?;
    let pip = programs.join("pip").display().to_string();
    run(&pip, &[&["install", "--quiet"], packages].concat(), &[])
        .context("installing packages of PyPI")?;
    fs::write(&list, wanted).with_context(|| format!("writing {}", list.display()))?;
    Ok(programs)
}

/// Makes an empty virtual environment.
fn make_environment(folder: &Path) -> Result<()> {
    let folder = folder.display().to_string();
    let make = || succeeds("python3", &["-m", "venv", "--clear", &folder]);
    // Debian has the module in a package of its own.
    let makes_with_package = || may_install() && install(&["python3", "python3-venv"]) && make();
    if !(make() || makes_with_package()) {
        bail!("python3 makes no virtual environment: apt-get install python3-venv");
    }
    Ok(())
}

/// The virtual environment of the package's tests, below the target folder.
struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// Makes the environment where there is none; nothing where no registry can be reached, except
    /// in continuous integration, where that is a failure.
    fn provide() -> Result<Option<Self>> {
        let environment = Self { folder: target().join("python") };
        if !succeeds(&environment.program("pip"), &["--version"]) {
            make_environment(&environment.folder)?;
        }
        let is_there = succeeds(&environment.program("python"), &["-c", IMPORTS]);
        let pip = [&["install", "--quiet"][..], &NEEDED].concat();
        if is_there || succeeds(&environment.program("pip"), &pip) {
            return Ok(Some(environment));
        }
        if std::env::var_os("CI").is_some() {
            bail!("`pip {}` failed", pip.join(" "));
        }
        Ok(None)
    }

    /// Path of a program of the environment.
    fn program(&self, name: &str) -> String {
        self.folder.join("bin").join(name).display().to_string()
    }

    /// Installs Ray where that takes little time, and says so where it does not; true if it is
    /// there.
    fn add_ray(&self) -> bool {
        let install = [RAY_S, &*self.program("pip"), "install", "--quiet", "ray"];
        let is_there = succeeds(&self.program("python"), &["-c", "import ray"])
            || succeeds("timeout", &install);
        if !is_there {
            println!("Ray is not installed within {RAY_S} s: skips tests of its clusters");
        }
        is_there
    }

    /// Builds the package and installs it.
    fn install(&self, options: &[&str]) -> Result<()> {
        let folder = self.folder.join("wheels");
        self.build(&folder, options)?;
        let wheel = wheel_in(&folder)?.display().to_string();
        let pip = ["-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", &wheel];
        run(&self.program("python"), &pip, &[])
    }

    /// Builds a wheel into `folder`, which then holds no other.
    fn build(&self, folder: &Path, options: &[&str]) -> Result<()> {
        remove_folder(folder)?;
        let (out, python) = (folder.display().to_string(), self.program("python"));
        let build = ["build", "--quiet", "--manifest-path", MANIFEST, "--out", &out];
        let for_python = ["--interpreter", &python];
        run(&self.program("maturin"), &[&build[..], &for_python, options].concat(), &[])
    }
}

/// The one wheel in `folder`.
///
/// # Errors
/// Fails if there is none.
pub(crate) fn wheel_in(folder: &Path) -> Result<PathBuf> {
    let is_wheel = |path: &PathBuf| path.extension().is_some_and(|it| it == "whl");
    let wheel = files_in(folder)?.into_iter().find(is_wheel);
    wheel.with_context(|| format!("no wheel is in {}", folder.display()))
}
