//! The state before the first write, as near as a file or a device allows.

use std::path::Path;
use std::process::Command;

use blockio::Bytes;
use rustix::fs::{FallocateFlags, fallocate, ftruncate};

use super::process;
use crate::guard::Permit;
use crate::{Error, Kind};

/// What a purge came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Purged {
    /// What was done.
    pub(super) how: String,
    /// Why it is less than a purge; empty where it is one.
    pub(super) shortfall: String,
}

/// Gives the space of a file back to its file system, which discards it or not as it is mounted.
pub(super) fn of_file(permit: &Permit, capacity_bytes: u64) -> Result<Purged, Error> {
    let file = permit.target();
    let size = Bytes(capacity_bytes);
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let mut how = format!("a hole punched over all {size} of the file");
    if fallocate(file, punch, 0, capacity_bytes).is_err() {
        how = format!("the file cut to nothing and grown to {size} again");
        ftruncate(file, 0).and_then(|()| ftruncate(file, capacity_bytes)).map_err(|errno| {
            Error::new(Kind::Io, format!("emptying {}", permit.path().display())).source(errno)
        })?;
    }
    let shortfall = "a file cannot be purged: its file system decides where the data goes and \
                     whether the drive hears of the freed space";
    Ok(Purged { how, shortfall: shortfall.into() })
}

/// Discards all of a device where it can be; otherwise the fill that follows stands for it.
pub(super) fn of_device(path: &Path, discards: bool) -> Purged {
    let lacks = |shortfall: String| Purged {
        how: "not discarded; overwritten in order before the next load".into(),
        shortfall,
    };
    if !discards {
        return lacks("the device takes no discard: old data was overwritten, not unmapped".into());
    }
    // Forced: the guard already holds the device exclusively, which blkdiscard would take for use.
    let output = Command::new("blkdiscard").arg("--force").arg(path).env("LC_ALL", "C").output();
    match output {
        Ok(output) if output.status.success() => {
            Purged { how: "every block discarded (blkdiscard)".into(), shortfall: String::new() }
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            lacks(format!("blkdiscard failed: {}", process::reason(&said).unwrap_or_default()))
        }
        Err(_) => lacks("blkdiscard is not installed: old data was overwritten".into()),
    }
}
