//! The kernel that the tests of whole emulated machines boot, the emulator, and the tests that
//! nvme-cli brings.
//!
//! They come from Debian's packages and are unpacked below `target/`, never installed: nothing of
//! the kernel is to start this machine, and the emulator is of a newer Debian.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::suite::{OWN_RELEASE, Suite};
use xtask::program::run;
use xtask::target;

/// Suite of the kernel: that of Debian 12 itself, 6.1, has no ublk.
const KERNELS: &str = "bookworm-backports";
/// Package that depends on the newest kernel for machines in a cloud, which has its drivers for
/// NVMe and ext4 built in.
const NEWEST: &str = "linux-image-cloud-amd64";

/// Suites of the emulator, the last of which has it: QEMU has a client of vfio-user from 10.1 on.
const EMULATORS: [&str; 2] = ["trixie", "trixie-backports"];
/// Its packages: that with libblkio has clients of vhost-user without a machine.
const EMULATOR: [&str; 3] = ["qemu-system-x86", "qemu-utils", "qemu-block-extra"];

/// Packages that lock drives: Debian 12 has no sedutil, and its cryptsetup and nvme-cli know no
/// Opal.
const OPAL_HOSTS: [&str; 3] = ["sedutil", "cryptsetup-bin", "nvme-cli"];

/// Sees to it that there is a kernel, and an emulator.
///
/// # Errors
/// Says why there is none.
pub(crate) fn provide() -> Result<()> {
    provide_kernel().context("the kernel of guests")?;
    provide_emulator().context("the emulator of guests")
}

fn provide_kernel() -> Result<()> {
    let folder = target().join("guest-kernel");
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

fn provide_emulator() -> Result<()> {
    let folder = target().join("guest-emulator");
    if folder.join("usr/bin/qemu-system-x86_64").exists() {
        return Ok(());
    }
    println!("unpacking an emulator in {}", folder.display());
    Suite::fetch(&EMULATORS, &folder)?.unpack_with_dependencies(&EMULATOR)
}

/// Sees to it that there are programs of a newer Debian that lock drives by TCG Opal.
///
/// # Errors
/// Says why there are none.
pub(crate) fn provide_opal_hosts() -> Result<()> {
    let folder = target().join("guest-opal");
    if folder.join("usr/sbin/sedutil-cli").exists() {
        return Ok(());
    }
    println!("unpacking programs for Opal in {}", folder.display());
    Suite::fetch(&EMULATORS[..1], &folder)?.unpack_with_dependencies(&OPAL_HOSTS)
}

/// Sees to it that there is the source of nvme-cli, with its tests.
///
/// # Errors
/// Says why there is none.
pub(crate) fn provide_nvme_cli() -> Result<()> {
    let folder = target().join("guest-nvme-cli");
    // A download that failed leaves the folder, too.
    let mut entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    if entries.any(|entry| entry.path().join("tests").is_dir()) {
        return Ok(());
    }
    println!("unpacking nvme-cli's source in {}", folder.display());
    Suite::fetch(&[OWN_RELEASE], &folder)?.unpack_source("nvme-cli")
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

/// Runs all tests that the source package of nvme-cli brings on a served drive.
///
/// # Errors
/// Fails if there is no kernel or no such package, or if a test ends otherwise than it is to.
pub(crate) fn nvme_cli() -> Result<()> {
    provide()?;
    provide_nvme_cli()?;
    let test = ["test", "--quiet", "--package", "cli", "--test", "field", "--"];
    let only = ["--nocapture", "guest::nvme_cli::"];
    run("cargo", &[&test[..], &only].concat(), &[("FLOATGATE_GUEST_ALL", "1")])
}

/// Kills a server so often under file systems of a guest, and updates it half as often.
///
/// # Errors
/// Fails if there is no kernel, or if the guest sees an error or reads anything wrong.
pub(crate) fn server_deaths(kills: &str) -> Result<()> {
    provide()?;
    let test = ["test", "--quiet", "--package", "cli", "--test", "field", "guest::nvme_tcp::"];
    run("cargo", &test, &[("FLOATGATE_CRASHES", kills)])
}

/// Measures what a request over ublk and over kernel NBD costs an emulated machine.
///
/// # Errors
/// Fails if there is no kernel, or the guest does.
pub(crate) fn speed() -> Result<()> {
    provide()?;
    run("cargo", &["build", "--quiet", "--release", "--package", "cli"], &[])?;
    let program = target().join("release/floatgate");
    let program = program.to_str().context("a path that is text")?;
    let test = ["test", "--quiet", "--package", "cli", "--test", "field", "--"];
    let only = ["--nocapture", "guest::ublk_speed::"];
    run("cargo", &[&test[..], &only].concat(), &[("FLOATGATE_GUEST_PROGRAM", program)])
}
