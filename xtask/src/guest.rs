//! The kernel that the test of a whole emulated machine boots.
//!
//! It comes from the system's packages and is unpacked below `target/`, never installed: nothing of
//! it is to start this machine.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::program::{may_install, run, said, succeeds};
use crate::target;

/// Package that depends on the newest kernel for machines in a cloud, which has its drivers for
/// NVMe and ext4 built in.
const NEWEST: &str = "linux-image-cloud-amd64";

/// Sees to it that there is a kernel.
///
/// # Errors
/// Says why there is none.
pub(crate) fn provide() -> Result<()> {
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

/// Has a guest review a served model, and prints its figures beside those of the model.
///
/// # Errors
/// Fails if there is no kernel, or the figures contradict what the server says of its lateness.
pub(crate) fn review() -> Result<()> {
    provide()?;
    let test = ["test", "--quiet", "--package", "cli", "--test", "field", "--"];
    let only = ["--nocapture", "guest::review::"];
    run("cargo", &[&test[..], &only].concat(), &[("FLOATGATE_GUEST_PROTOCOL", "quick")])
}

/// Returns the folder in which the test looks for the kernel: `guest` in the target folder.
fn folder() -> PathBuf {
    target().join("guest")
}
