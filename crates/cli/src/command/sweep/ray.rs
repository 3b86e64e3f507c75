//! Sweeps on a Ray cluster, whose driver is the Python package.
//!
//! ```text
//! command ──► folder of the sweep ──► python3 -m floatgate ──► tasks of Ray
//!                    ▲                        │ points, as they complete
//!    result, table ──┴────────────────────────┘
//! ```

use std::io;
use std::process::{Command, Stdio};

use anyhow::Result;
use lab::results::sweep::Sweep;
use lab::{Error, Kind};
use study::sweep::Store;

const PYTHON: &str = "python3";
/// The Python package, as a file.
const WHEEL: &str = "./floatgate-*.whl";
/// Exit status of the driver after Ctrl-C.
const INTERRUPTED: i32 = 130;
/// Prints the packages that are missing.
const MISSING: &str = "\
import importlib.util
names = [name for name in ('floatgate', 'ray') if importlib.util.find_spec(name) is None]
print(*names)";

/// Checks that Python and its packages are installed.
///
/// # Errors
/// Names the missing packages, and how to install them.
pub(super) fn check() -> Result<()> {
    let output = Command::new(PYTHON)
        .args(["-c", MISSING])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|source| unavailable(&source))?;
    if !output.status.success() {
        let error = Error::new(Kind::Program, format!("{PYTHON} failed: {}", output.status));
        return Err(error.hint(format!("`{PYTHON} --version` must work")).into());
    }
    let missing = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if missing.is_empty() {
        return Ok(());
    }
    let text = format!("{PYTHON} lacks packages for a sweep on a Ray cluster: {missing}");
    let packages: Vec<&str> = missing.split(' ').collect();
    Err(Error::new(Kind::Input, text).hint(installing(&packages)).into())
}

/// Says how to install these packages. The project's own is in no package index.
fn installing(packages: &[&str]) -> String {
    let is_ours = packages.contains(&"floatgate");
    let packages: Vec<&str> =
        packages.iter().map(|&it| if it == "floatgate" { WHEEL } else { it }).collect();
    let command = format!("`{PYTHON} -m pip install {}`", packages.join(" "));
    if !is_ours {
        return command;
    }
    let version = env!("CARGO_PKG_VERSION");
    format!("{command}; the file is the wheel of {version}, which `cargo xtask dist` builds")
}

fn unavailable(source: &io::Error) -> Error {
    let error = Error::new(Kind::Input, format!("running {PYTHON} for a sweep on Ray: {source}"));
    error.hint(format!("install Python, then {}", installing(&["floatgate", "ray"])))
}

/// Measures the remaining points of the sweep on the cluster at `address`. Returns the sweep with
/// all finished points: not the whole grid if it was interrupted.
///
/// # Errors
/// Fails if the driver fails, after the driver's own message.
pub(super) fn sweep(store: &Store, address: &str) -> Result<Sweep> {
    check()?;
    let status = Command::new(PYTHON)
        .args(["-m", "floatgate", "sweep", "--ray", address, "--resume"])
        .arg(store.path())
        .stdout(Stdio::null())
        .status()
        .map_err(|source| unavailable(&source))?;
    // An interrupted sweep has a result, as without a cluster.
    if !status.success() && status.code() != Some(INTERRUPTED) {
        let text = format!("sweeping on the Ray cluster {address}: the driver failed");
        return Err(Error::new(Kind::Program, text).hint("its message is above").into());
    }
    let points = store.finished()?.into_iter().map(|(_, point)| point).collect();
    Ok(store.order().sweep(points)?)
}
