//! The Python package: built, installed into an environment of its own, and tested there.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::program::{install, may_install, run, succeeds};
use crate::target;

/// Packages that the tests need, none of which the package itself does.
const NEEDED: [&str; 5] = ["distributed", "maturin>=1.9,<2", "numpy", "pyarrow", "pytest"];
/// Manifest of the crate.
const MANIFEST: &str = "crates/python/Cargo.toml";

/// Builds the wheel of a release into `target/wheels`.
///
/// # Errors
/// Fails if there is no Python, or a step of the build fails.
pub(crate) fn wheel() -> Result<()> {
    let Some(environment) = Environment::provide()? else {
        bail!("maturin is missing, and no registry of Python packages can be reached");
    };
    let folder = target().join("wheels");
    environment.build(&folder, &["--release"])?;
    let wheel = wheel_in(&folder)?;
    let bytes = wheel.metadata().context("reading the size of the wheel")?.len();
    println!("{}: {:.1} MB", wheel.display(), bytes as f64 / 1e6);
    Ok(())
}

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
    let folder = environment.folder.join("wheels");
    environment.build(&folder, &[])?;
    let wheel = wheel_in(&folder)?.display().to_string();
    let python = environment.program("python");
    let pip = ["-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", &wheel];
    run(&python, &pip, &[])?;
    let command = target().join("debug").join("floatgate").display().to_string();
    let pytest = ["-m", "pytest", "-c", "crates/python/pyproject.toml", "crates/python/tests"];
    // Else Python leaves its bytecode among the sources.
    let variables = [("FLOATGATE_COMMAND", &*command), ("PYTHONDONTWRITEBYTECODE", "1")];
    run(&python, &pytest, &variables)
}

/// A virtual environment of Python below the target folder.
struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// Makes the environment where there is none; nothing where no registry can be reached, except
    /// in continuous integration, where that is a failure.
    fn provide() -> Result<Option<Self>> {
        let environment = Self { folder: target().join("python") };
        let folder = environment.folder.display().to_string();
        let make = || succeeds("python3", &["-m", "venv", &folder]);
        if !succeeds(&environment.program("pip"), &["--version"]) && !make() {
            // Debian has it in a package of its own.
            if !(may_install() && install(&["python3", "python3-venv"]) && make()) {
                bail!("python3 makes no virtual environment: apt-get install python3-venv");
            }
        }
        let imports = ["-c", "import distributed, maturin, numpy, pyarrow, pytest"];
        let is_there = succeeds(&environment.program("python"), &imports);
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

    /// Builds a wheel into `folder`, which then holds no other.
    fn build(&self, folder: &Path, options: &[&str]) -> Result<()> {
        if folder.exists() {
            std::fs::remove_dir_all(folder)
                .with_context(|| format!("removing {}", folder.display()))?;
        }
        let (out, python) = (folder.display().to_string(), self.program("python"));
        let build = ["build", "--quiet", "--manifest-path", MANIFEST, "--out", &out];
        let for_python = ["--interpreter", &python];
        run(&self.program("maturin"), &[&build[..], &for_python, options].concat(), &[])
    }
}

/// The one wheel in `folder`.
fn wheel_in(folder: &Path) -> Result<PathBuf> {
    let entries = folder.read_dir().with_context(|| format!("reading {}", folder.display()))?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    let is_wheel = |path: &PathBuf| path.extension().is_some_and(|it| it == "whl");
    paths.find(is_wheel).with_context(|| format!("no wheel is in {}", folder.display()))
}
