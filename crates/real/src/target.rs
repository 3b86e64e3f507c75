//! Targets that are held, or were permitted: a file or a device of this machine, an export of an
//! NBD server, or one target on each of several hosts.

use std::path::{Path, PathBuf};

use blockio::{Bytes, SECTOR_BYTES};
use lab::target::hosts::Hosts;
use lab::target::nbd::{Export, Uri};
use lab::target::system::{Block, Mount};
use lab::{Error, Kind};
use results::TargetKind;
use rustix::fs::{SeekFrom, fstat, fstatvfs, seek};

use crate::guard::Permit;

/// A target, for as long as this lives.
#[derive(Debug)]
pub(crate) enum Target {
    /// A file or a block device of this machine.
    Local(LocalTarget),
    /// An export of an NBD server.
    Export {
        /// The address as it was given, and as fio takes it.
        text: String,
        /// The address as it is understood.
        uri: Uri,
        /// Reply of the server.
        export: Export,
    },
    /// Files or devices of the same name, one on each of several hosts.
    Fleet {
        /// The machines.
        hosts: Hosts,
        /// Name of the target on each of them.
        path: PathBuf,
    },
}

/// A file or a block device of this machine.
#[derive(Debug)]
pub(crate) struct LocalTarget {
    /// The right to write to it.
    pub(crate) permit: Permit,
    /// The file system that a file lies in; absent for a device.
    pub(crate) mount: Option<Mount>,
    /// The device itself, or the one below a file's file system, where it has one.
    pub(crate) device: Option<Block>,
}

impl Target {
    /// Returns the name that fio knows it by: a path, or an NBD address.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Local(local) => local.permit.path(),
            Self::Export { text, .. } => Path::new(text),
            Self::Fleet { path, .. } => path,
        }
    }

    /// Kind of the target, for the result.
    pub(crate) const fn kind(&self) -> TargetKind {
        match self {
            Self::Local(LocalTarget { mount: Some(_), .. }) => TargetKind::File,
            Self::Local(_) => TargetKind::BlockDevice,
            Self::Export { .. } => TargetKind::Nbd,
            Self::Fleet { .. } => TargetKind::Remote,
        }
    }

    /// The machines that it is on; absent: this one.
    pub(crate) const fn hosts(&self) -> Option<&Hosts> {
        match self {
            Self::Fleet { hosts, .. } => Some(hosts),
            Self::Local(_) | Self::Export { .. } => None,
        }
    }

    /// Reply of the NBD server; absent for other targets.
    pub(crate) const fn export(&self) -> Option<&Export> {
        match self {
            Self::Export { export, .. } => Some(export),
            Self::Local(_) | Self::Fleet { .. } => None,
        }
    }

    /// The file system that a file lies in; absent for other targets.
    pub(crate) const fn mount(&self) -> Option<&Mount> {
        match self {
            Self::Local(local) => local.mount.as_ref(),
            Self::Export { .. } | Self::Fleet { .. } => None,
        }
    }

    /// The device itself, or the one below the file; absent where this machine knows none.
    pub(crate) const fn device(&self) -> Option<&Block> {
        match self {
            Self::Local(local) => local.device.as_ref(),
            Self::Export { .. } | Self::Fleet { .. } => None,
        }
    }

    /// The permit, where it is a file.
    pub(crate) const fn file(&self) -> Option<&Permit> {
        match self {
            Self::Local(LocalTarget { permit, .. }) if permit.is_file() => Some(permit),
            Self::Local(_) | Self::Export { .. } | Self::Fleet { .. } => None,
        }
    }

    /// True if the machine that does the work and holds the drive is this one.
    pub(crate) const fn is_here(&self) -> bool {
        matches!(self, Self::Local(_))
    }

    /// The smallest transfer that it takes, in bytes.
    pub(crate) fn sector_bytes(&self) -> u64 {
        let told = match self {
            Self::Export { export, .. } => Some(export.sector_bytes),
            Self::Local(_) | Self::Fleet { .. } => self.number("queue/logical_block_size"),
        };
        told.unwrap_or(SECTOR_BYTES)
    }

    /// True if it takes discards.
    pub(crate) fn discards(&self) -> bool {
        match self {
            Self::Export { export, .. } => export.trims,
            Self::Local(_) | Self::Fleet { .. } => {
                self.number("queue/discard_max_bytes").is_some_and(|bytes| bytes > 0)
            }
        }
    }

    fn number(&self, attribute: &str) -> Option<u64> {
        self.device()?.disk().number(attribute)
    }

    /// True if it is a file with holes below `end_bytes`.
    pub(crate) fn has_holes(&self, end_bytes: u64) -> bool {
        let first_hole = |permit: &Permit| seek(permit.target(), SeekFrom::Hole(0));
        self.file().is_some_and(|permit| first_hole(permit).is_ok_and(|at| at < end_bytes))
    }

    /// Checks that it is still there and as large as it was, `before_bytes`: fio takes reads beyond
    /// an end that moved for very fast ones.
    ///
    /// # Errors
    /// Says what became of it.
    pub(crate) fn check_still(&self, before_bytes: u64) -> Result<(), Error> {
        let shown = self.path().display();
        let now_bytes = match self {
            Self::Local(LocalTarget { permit, .. }) if permit.is_file() => {
                let now = fstat(permit.target()).map(|it| u64::try_from(it.st_size).unwrap_or(0));
                now.unwrap_or(0)
            }
            Self::Local(local) => local.device.as_ref().map_or(0, Block::capacity_bytes),
            // fio's servers tell of errors, and of nothing else.
            Self::Fleet { .. } => return Ok(()),
            Self::Export { uri, .. } => uri.export().map_or(0, |export| export.capacity_bytes),
        };
        let (before, now) = (Bytes(before_bytes), Bytes(now_bytes));
        let text = match now_bytes {
            0 => format!("{shown} is gone: it does not answer any more"),
            _ if now_bytes < before_bytes => format!("{shown} shrank from {before} to {now}"),
            _ => return Ok(()),
        };
        Err(Error::new(Kind::Io, text)
            .hint("the step in progress is lost; see dmesg, then continue with --resume"))
    }

    /// A file of `capacity_bytes` with holes needs room for them.
    ///
    /// # Errors
    /// Fails if its file system has less.
    pub(crate) fn check_space(&self, capacity_bytes: u64) -> Result<(), Error> {
        self.file().map_or(Ok(()), |permit| check_space_of(permit, capacity_bytes))
    }
}

/// Refuses to give the file of `permit` all of `capacity_bytes` where its file system has less.
///
/// # Errors
/// Fails with the number of missing bytes.
pub(super) fn check_space_of(permit: &Permit, capacity_bytes: u64) -> Result<(), Error> {
    let taken = fstat(permit.target()).map(|it| u64::try_from(it.st_blocks).unwrap_or(0));
    let free = fstatvfs(permit.target()).map(|it| it.f_bavail.saturating_mul(it.f_frsize));
    let io = |errno| {
        let path = permit.path().display();
        Error::new(Kind::Io, format!("space for {path}")).source(errno)
    };
    let taken_bytes = taken.map_err(io)? * SECTOR_BYTES;
    let missing_bytes = capacity_bytes.saturating_sub(taken_bytes);
    check_room(permit.path(), Bytes(missing_bytes), Bytes(free.map_err(io)?))
}

/// Refuses a file that needs `missing` more than the `free` of its file system.
///
/// # Errors
/// Says both.
pub(super) fn check_room(path: &Path, missing: Bytes, free: Bytes) -> Result<(), Error> {
    if missing <= free {
        return Ok(());
    }
    let path = path.display();
    let text = format!("{path} needs {missing} more, its file system has {free} free");
    // Nine tenths of what is free, so that the run's own results find room beside it.
    let fits_mib = (free.0 / 10 * 9) >> 20;
    let hint = match fits_mib {
        0 => "name a file on a file system with more space".to_owned(),
        _ => format!(
            "name a file on a file system with more space, or a smaller size: --size {fits_mib}MiB"
        ),
    };
    Err(Error::new(Kind::Io, text).hint(hint))
}

#[cfg(test)]
mod tests;
