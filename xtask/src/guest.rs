//! `cargo xtask guest`: the test of a whole emulated machine, and the kernel that it boots.
//!
//! It is not among the others since it takes minutes, and since an emulated machine may stand still
//! for seconds in the middle of a measurement.
//!
//! The kernel comes from the system's packages and is unpacked below `target/`, never installed:
//! nothing of it is to start this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::program::{install, may_install, run, succeeds};
use crate::root;

/// Package that depends on the newest kernel for machines in a cloud, which has its drivers for
/// NVMe and ext4 built in.
const NEWEST: &str = "linux-image-cloud-amd64";

/// Programs that the test needs, and the packages that hold them.
const PROGRAMS: [(&str, &str); 3] =
    [("qemu-system-x86_64", "qemu-system-x86"), ("nvme", "nvme-cli"), ("fio", "fio")];

/// Runs the task.
///
/// # Errors
/// Names what is missing, or says that the test failed.
pub(crate) fn test() -> Result<()> {
    let is_missing = |program: &str| !succeeds(program, &["--version"]);
    let missing = PROGRAMS.iter().filter(|(program, _)| is_missing(program));
    let packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
    if !packages.is_empty() {
        if !may_install() {
            bail!("the guest needs {}: apt-get install them", packages.join(" and "));
        }
        install(&packages);
    }
    provide().context("providing a kernel for the guest")?;
    let only = ["--test", "field", "guest", "--", "--ignored", "--nocapture"];
    run("cargo", &[&["test", "--workspace"], &only[..]].concat(), &[])
}

/// Sees to it that there is a kernel.
///
/// # Errors
/// Says why there is none.
fn provide() -> Result<()> {
    let folder = folder();
    if fs::read_dir(folder.join("boot")).is_ok_and(|mut entries| entries.next().is_some()) {
        return Ok(());
    }
    if !cfg!(target_arch = "x86_64") {
        bail!("the guest is a machine with x86-64 processors");
    }
    println!("unpacking a kernel in {}", folder.display());
    fs::create_dir_all(&folder)?;
    // Without lists of packages there is none; old ones are as good as new ones.
    if may_install() && !succeeds("apt-cache", &["show", NEWEST]) {
        succeeds("apt-get", &["update"]);
    }
    let depends = said(Command::new("apt-cache").args(["depends", NEWEST]))?;
    let package = depends.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    let package = package.with_context(|| format!("no package {NEWEST}"))?;
    said(Command::new("apt-get").args(["download", package]).current_dir(&folder))?;
    let is_archive = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "deb");
    let archive = fs::read_dir(&folder)?.flatten().map(|entry| entry.path()).find(is_archive);
    let archive = archive.context("apt-get downloaded nothing")?;
    said(Command::new("dpkg-deb").arg("--extract").args([&archive, &folder]))?;
    fs::remove_file(&archive)?;
    Ok(())
}

/// Where the test looks for it: beside the folder for temporary files of tests.
fn folder() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    root().join(target.unwrap_or_else(|| Path::new("target").to_owned())).join("guest")
}

fn said(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("starting {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
