//! Targets of loads: a file or a device of this machine, or an export of an NBD server.

use std::fs::OpenOptions;
use std::path::Path;

use blockio::{Bytes, SECTOR_BYTES};
use rustix::fs::{SeekFrom, fstat, fstatvfs, ftruncate, seek, statvfs};

use super::engine::Engine;
use super::fleet::{Fleet, Hosts};
use super::{Request, SIZE_DEFAULT, job};
use crate::environment::Site;
use crate::guard::{self, Permit};
use crate::nbd::{self, Uri};
use crate::system::Block;
use crate::{Error, Kind};

/// A target that is held, or was permitted, for as long as this lives.
#[derive(Debug)]
pub(super) enum Target {
    /// A file or a block device.
    Local(Permit),
    /// Files or devices of the same name, one on each of several hosts.
    Fleet(Fleet),
    /// An export, under the address that was given.
    Export {
        /// The address as fio takes it.
        text: String,
        /// The address as it is understood.
        uri: Uri,
    },
}

impl Target {
    /// Takes hold of what `request` names, which is there by now; `made` says that it is a file
    /// that was made for it.
    ///
    /// # Errors
    /// When the guard refuses it, it cannot be looked at, or is too small.
    pub(super) fn open(request: &Request, made: bool) -> Result<(Self, Site), Error> {
        let name = request.path.to_string_lossy();
        let (target, site) = match &request.hosts {
            Some(hosts) => open_fleet(hosts, request)?,
            None if nbd::is_uri(&name) => open_export(&name, request)?,
            None => open_local(request, made)?,
        };
        if site.capacity_bytes() < job::FILL_BYTES {
            return Err(too_small(request, &target, Bytes(site.capacity_bytes())));
        }
        Ok((target, site))
    }

    /// The first engine of fio that reads from it.
    pub(super) fn engine(&self) -> Result<Engine, Error> {
        match self {
            Self::Local(permit) => Engine::probe(permit.path()),
            Self::Fleet(fleet) => Ok(fleet.engine),
            Self::Export { text, .. } => Engine::probe_nbd(text),
        }
    }

    /// Returns the name that fio knows it by: a path, or an NBD address.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Local(permit) => permit.path(),
            Self::Fleet(fleet) => &fleet.path,
            Self::Export { text, .. } => Path::new(text),
        }
    }

    /// The machines that it is on; absent: this one.
    pub(super) fn hosts(&self) -> Option<&Hosts> {
        match self {
            Self::Fleet(fleet) => Some(&fleet.hosts),
            Self::Local(_) | Self::Export { .. } => None,
        }
    }

    /// The permit, where it is a file.
    pub(super) fn file(&self) -> Option<&Permit> {
        match self {
            Self::Local(permit) if permit.is_file() => Some(permit),
            Self::Local(_) | Self::Fleet(_) | Self::Export { .. } => None,
        }
    }

    /// True if it is a file with holes below `end_bytes`.
    pub(super) fn has_holes(&self, end_bytes: u64) -> bool {
        let first_hole = |permit: &Permit| seek(permit.target(), SeekFrom::Hole(0));
        self.file().is_some_and(|permit| first_hole(permit).is_ok_and(|at| at < end_bytes))
    }

    /// Checks that it is still there and as large as `site` says: fio takes reads beyond an end
    /// that moved for very fast ones.
    ///
    /// # Errors
    /// Says what became of it.
    pub(super) fn check_still(&self, site: &Site) -> Result<(), Error> {
        let shown = self.path().display();
        let before_bytes = site.capacity_bytes();
        let now_bytes = match self {
            Self::Local(permit) if permit.is_file() => {
                let now = fstat(permit.target()).map(|it| u64::try_from(it.st_size).unwrap_or(0));
                now.unwrap_or(0)
            }
            Self::Local(_) => site.device().map_or(0, Block::capacity_bytes),
            // fio's servers tell of errors, and of nothing else.
            Self::Fleet(_) => return Ok(()),
            Self::Export { uri, .. } => uri.export().map_or(0, |export| export.capacity_bytes),
        };
        let (before, now) = (Bytes(before_bytes), Bytes(now_bytes));
        let text = match now_bytes {
            0 => format!("{shown} is gone: nothing answers there any more"),
            _ if now_bytes < before_bytes => format!("{shown} shrank from {before} to {now}"),
            _ => return Ok(()),
        };
        Err(Error::new(Kind::Io, text)
            .hint("what was measured while it happened is lost; see dmesg, then --resume"))
    }

    /// A file of `capacity_bytes` with holes needs room for them.
    pub(super) fn check_space(&self, capacity_bytes: u64) -> Result<(), Error> {
        self.file().map_or(Ok(()), |permit| Self::check_space_of(permit, capacity_bytes))
    }

    fn check_space_of(permit: &Permit, capacity_bytes: u64) -> Result<(), Error> {
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
}

/// Refuses a file that needs `missing` more than the `free` of its file system.
fn check_room(path: &Path, missing: Bytes, free: Bytes) -> Result<(), Error> {
    if missing <= free {
        return Ok(());
    }
    let path = path.display();
    let text = format!("{path} needs {missing} more, its file system has {free} free");
    // Nine tenths of what is free, so that the run's own results find room beside it.
    let fits_mib = (free.0 / 10 * 9) >> 20;
    let hint = match fits_mib {
        0 => "name a file on a file system with more room".to_owned(),
        _ => format!("name a file where there is more room, or give it less: --size {fits_mib}MiB"),
    };
    Err(Error::new(Kind::Io, text).hint(hint))
}

/// Error for a target of `size`, which is too small to measure; its hint says what to do.
fn too_small(request: &Request, target: &Target, size: Bytes) -> Error {
    let text = format!("{} holds {size}, too little to measure", request.path.display());
    let hint = match target {
        Target::Local(permit) if permit.is_file() => "give it a size: --size 1GiB",
        Target::Local(_) => "`lsblk` shows what each device holds: name one that holds something",
        Target::Fleet(_) => "look on each host whether the device holds something",
        Target::Export { .. } => "`nbdinfo --list` shows what each export holds",
    };
    Error::new(Kind::Input, text).hint(hint)
}

fn open_fleet(hosts: &Hosts, request: &Request) -> Result<(Target, Site), Error> {
    refuse_size(request, "a target on other hosts has")?;
    let name = request.path.to_string_lossy();
    if nbd::is_uri(&name) {
        let text = format!("{name} is reached from here, not from {hosts}");
        return Err(Error::new(Kind::Input, text).hint("leave out --host"));
    }
    guard::permit_elsewhere(&request.path, hosts, request.destroy)?;
    let fleet = Fleet::look(hosts, &request.path, &request.raw)?;
    let site = Site::of_fleet(&name, hosts, fleet.capacity_bytes);
    Ok((Target::Fleet(fleet), site))
}

fn open_export(name: &str, request: &Request) -> Result<(Target, Site), Error> {
    refuse_size(request, "an NBD server has")?;
    let uri = Uri::parse(name)?;
    let export = uri.export()?;
    guard::permit_export(&uri, export, request.destroy)?;
    let site = Site::of_export(name, export);
    Ok((Target::Export { text: name.to_owned(), uri }, site))
}

fn open_local(request: &Request, made: bool) -> Result<(Target, Site), Error> {
    let permit = guard::permit(&request.path, request.destroy)?;
    resize(request, &permit, made)?;
    let site = Site::of(&request.path, permit.path())?;
    Ok((Target::Local(permit), site))
}

/// Makes the file where there is none and it fits; whether it did.
pub(super) fn make_if_absent(request: &Request) -> Result<bool, Error> {
    let path = &request.path;
    if path.exists() || nbd::is_uri(&path.to_string_lossy()) {
        return Ok(false);
    }
    check_room_for_new(request)?;
    OpenOptions::new().write(true).create_new(true).open(path).map_err(|source| {
        Error::new(Kind::Io, format!("making the file {}", path.display()))
            .hint("name a file in a folder that exists and can be written to")
            .source(source)
    })?;
    Ok(true)
}

/// Refuses a file that does not fit before it is made; where it cannot be known, making it tells.
fn check_room_for_new(request: &Request) -> Result<(), Error> {
    let folder = match request.path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let Ok(system) = statvfs(folder) else { return Ok(()) };
    let free_bytes = system.f_bavail.saturating_mul(system.f_frsize);
    check_room(&request.path, request.size.unwrap_or(SIZE_DEFAULT), Bytes(free_bytes))
}

/// Gives a file the size that was asked for, or a new one the default.
fn resize(request: &Request, permit: &Permit, made: bool) -> Result<(), Error> {
    if !permit.is_file() {
        return refuse_size(request, "a block device has");
    }
    let path = request.path.display();
    let Some(Bytes(size)) = request.size.or(made.then_some(SIZE_DEFAULT)) else { return Ok(()) };
    Target::check_space_of(permit, size)?;
    ftruncate(permit.target(), size).map_err(|errno| {
        Error::new(Kind::Io, format!("giving {path} the size {}", Bytes(size))).source(errno)
    })
}

fn refuse_size(request: &Request, who: &str) -> Result<(), Error> {
    let text = format!("{}: {who} its own size", request.path.display());
    let refused = Err(Error::new(Kind::Input, text).hint("leave out --size"));
    if request.size.is_some() { refused } else { Ok(()) }
}
