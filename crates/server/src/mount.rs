//! A file system on a served drive, mounted for as long as it is needed.
//!
//! ```text
//! FUSE: a file ──► losetup: a block device ──► mount
//! ```
//!
//! A [`CleanupShell`] takes it down again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use export::{Exports, fuse};
use lab::{Error, Kind};

use crate::cleanup::{CleanupItem, CleanupShell};

/// Programs that a mount needs, with the Debian packages that have them.
const PROGRAMS: [(&str, &str); 3] =
    [("losetup", "mount"), ("mount", "mount"), ("mkfs.ext4", "e2fsprogs")];

/// Making of a file system before it is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Making {
    /// The one that is there is mounted.
    Kept,
    /// A new ext4 file system, without what was there.
    Ext4,
}

/// Mounts the file system of the first of `exports` on `folder`, an empty folder that is made if
/// there is none, until `shell` takes it down. Files that serve it go to `scratch`. Returns those,
/// and the whole path of the folder.
///
/// # Errors
/// Fails if a program is missing, this user may not mount, or no file system is there.
pub fn drive(
    shell: &mut CleanupShell,
    exports: &Exports,
    scratch: &Path,
    folder: &Path,
    making: Making,
) -> Result<(fuse::Mount, PathBuf)> {
    for (program, package) in PROGRAMS {
        check_program(program, package)?;
    }
    let folder = empty_folder(folder)?;
    let served = scratch.join("files");
    fs::create_dir(&served)?;
    let files = files(shell, exports, &served)?;
    let first = exports.iter().next().context("nothing to serve")?;
    file_system(shell, &served.join(fuse::file_name(&first.name)), &folder, making)?;
    Ok((files, folder))
}

/// Mounts the file system in `file` on `folder`.
fn file_system(shell: &mut CleanupShell, file: &Path, folder: &Path, making: Making) -> Result<()> {
    let arguments = ["--direct-io=on", "--show", "-f"];
    let device = run(Command::new("losetup").args(arguments).arg(file))
        .context("attaching a loop device")?;
    let device = device.trim();
    shell.register(CleanupItem::Loop(device))?;
    if making == Making::Ext4 {
        run(Command::new("mkfs.ext4").args(["-q", "-F", device]))?;
    }
    let options = ["-o", "noatime", device];
    run(Command::new("mount").args(options).arg(folder)).map_err(|error| {
        let error = error.context("mounting the volume");
        let hint = "--mkfs creates a new file system, which erases the volume";
        Error::new(Kind::Input, format!("{error:#}")).hint(hint)
    })?;
    shell.register(CleanupItem::Mount(folder))
}

/// Serves exports as files in `folder`, until `shell` takes it down.
///
/// # Errors
/// Fails if there is no `/dev/fuse`, or this user may not mount.
pub fn files(shell: &mut CleanupShell, exports: &Exports, folder: &Path) -> Result<fuse::Mount> {
    let mount = fuse::Mount::new(exports, folder).map_err(|error| {
        let text = format!("mounting files on {}: {error}", folder.display());
        Error::new(Kind::Input, text)
            .hint("this needs /dev/fuse, and root or the package fuse3, which has fusermount3")
    })?;
    shell.register(CleanupItem::Fuse(folder))?;
    Ok(mount)
}

/// Makes a folder where there is none. Returns its whole path, since others may look for it from
/// elsewhere.
///
/// # Errors
/// Fails if something is in it.
pub fn empty_folder(folder: &Path) -> Result<PathBuf> {
    let shown = folder.display();
    fs::create_dir_all(folder).with_context(|| format!("creating {shown}"))?;
    let folder = fs::canonicalize(folder)?;
    if fs::read_dir(&folder)?.next().is_some() {
        let text = format!("{shown} is not empty: a mount would hide its contents");
        return Err(Error::new(Kind::Refused, text).hint("name an empty folder").into());
    }
    Ok(folder)
}

/// Checks that a program is on the path.
///
/// # Errors
/// Names the Debian package that has it.
pub fn check_program(program: &str, package: &str) -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join(program).is_file()) {
        return Ok(());
    }
    let text = format!("{program} is not on the path");
    let hint = format!("install it: the package {package} of Debian and Ubuntu has it");
    Err(Error::new(Kind::Input, text).hint(hint).into())
}

/// Output of a program that succeeds.
fn run(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("running {name}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{name}: {}", said.lines().next().unwrap_or("it failed without a message"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
