//! The kernel that the tests of whole emulated machines boot.
//!
//! It comes from Debian's packages and is unpacked below `target/`, never installed: nothing of it
//! is to start this machine.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::program::run;
use crate::suite::Suite;
use crate::target;

/// Suite of the kernel: that of Debian 12 itself, 6.1, has no ublk.
const KERNELS: &str = "bookworm-backports";
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
    let suite = Suite::fetch(&[KERNELS], &folder)?;
    let depends = suite.dependencies(NEWEST)?;
    let package = depends.first().with_context(|| format!("{NEWEST} depends on no kernel"))?;
    suite.unpack(&[package])
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

/// Returns the folder in which the tests look for the kernel: `guest-kernel` in the target folder.
fn folder() -> PathBuf {
    target().join("guest-kernel")
}
