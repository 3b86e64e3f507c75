//! A file system on a served drive, mounted for as long as it is needed.
//!
//! ```text
//! NBD server ──► nbdfuse: a file ──► losetup: a block device ──► mount
//! ```
//!
//! A [`Keeper`] takes it down again.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use lab::{Error, Kind};

use crate::keeper::{Keeper, Kept};

/// Longest wait for the file of nbdfuse.
const PATIENCE: Duration = Duration::from_secs(10);
/// Programs that a mount needs, with the Debian packages that have them.
const PROGRAMS: [(&str, &str); 4] = [
    ("nbdfuse", "libnbd-bin"),
    ("losetup", "mount"),
    ("mount", "mount"),
    ("mkfs.ext4", "e2fsprogs"),
];

/// Making of a file system before it is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Making {
    /// The one that is there is mounted.
    Kept,
    /// A new ext4 file system, without what was there.
    Ext4,
}

/// Mounts what the server at the Unix socket `nbd.sock` in `scratch` offers on `folder`, an empty
/// folder that is made if there is none, until `keeper` takes it down. Returns the path of the
/// folder.
///
/// # Errors
/// When a program is missing, this user may not mount, or no file system is there.
pub(crate) fn mount(
    keeper: &mut Keeper,
    folder: &Path,
    scratch: &Path,
    making: Making,
) -> Result<PathBuf> {
    for (program, package) in PROGRAMS {
        check_program(program, package)?;
    }
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    // The command may look for it from elsewhere.
    let folder = fs::canonicalize(folder)?;
    if fs::read_dir(&folder)?.next().is_some() {
        let text = format!("{} is not empty: what is in it would be hidden", folder.display());
        return Err(Error::new(Kind::Refused, text).hint("name an empty folder").into());
    }
    let file = offer_file(keeper, scratch)?;
    let arguments = ["--direct-io=on", "--show", "-f"];
    let device = run(Command::new("losetup").args(arguments).arg(file))
        .context("making a block device of it")?;
    let device = device.trim();
    keeper.keep(Kept::Loop(device))?;
    if making == Making::Ext4 {
        run(Command::new("mkfs.ext4").args(["-q", "-F", device]))?;
    }
    let options = ["-o", "noatime", device];
    run(Command::new("mount").args(options).arg(&folder)).map_err(|error| {
        let error = error.context("mounting the drive");
        let hint = "--mkfs makes a new file system on it, without what is there";
        Error::new(Kind::Input, format!("{error:#}")).hint(hint)
    })?;
    keeper.keep(Kept::Mount(&folder))?;
    Ok(folder)
}

/// Has nbdfuse offer the server at the socket as a file.
fn offer_file(keeper: &mut Keeper, scratch: &Path) -> Result<PathBuf> {
    let fuse = scratch.join("nbdfuse");
    fs::create_dir(&fuse)?;
    let uri = format!("nbd+unix:///?socket={}", scratch.join("nbd.sock").display());
    let nbdfuse = Command::new("nbdfuse")
        .args(["--connections", "1"])
        .arg(&fuse)
        .arg(uri)
        .process_group(0)
        .spawn();
    let mut nbdfuse = nbdfuse.context("starting nbdfuse")?;
    keeper.keep(Kept::Fuse(&fuse))?;
    let (file, deadline) = (fuse.join("nbd"), Instant::now() + PATIENCE);
    while !file.exists() {
        if let Some(status) = nbdfuse.try_wait()? {
            bail!("nbdfuse ended with {status}: mounting needs root and /dev/fuse");
        }
        if Instant::now() > deadline {
            bail!("nbdfuse offers no file after {} s", PATIENCE.as_secs());
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(file)
}

/// Checks that a program is on the path.
///
/// # Errors
/// Names the Debian package that has it.
pub(crate) fn check_program(program: &str, package: &str) -> Result<()> {
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
        bail!("{name}: {}", said.lines().next().unwrap_or("it failed and said nothing"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
