//! What the loads go to: a file or a device of this machine, or an export of an NBD server.

use std::fs::OpenOptions;
use std::path::Path;

use blockio::{Bytes, SECTOR_BYTES};
use rustix::fs::{SeekFrom, fstat, fstatvfs, ftruncate, seek};

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
    /// One of the same name on each of several hosts.
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
            let size = Bytes(site.capacity_bytes());
            let text = format!("{} holds {size}, too little to measure", request.path.display());
            return Err(Error::new(Kind::Input, text).hint("give it a size: --size 1GiB"));
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

    /// What fio is to call it.
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

    /// Whether it is a file with holes below `end_bytes`.
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
        let Some(permit) = self.file() else { return Ok(()) };
        let path = permit.path().display();
        let io = |errno| Error::new(Kind::Io, format!("space for {path}")).source(errno);
        let system = fstatvfs(permit.target()).map_err(io)?;
        let free_bytes = system.f_bavail.saturating_mul(system.f_frsize);
        let blocks = fstat(permit.target()).map_err(io)?.st_blocks;
        let taken_bytes = u64::try_from(blocks).unwrap_or(0) * SECTOR_BYTES;
        let missing_bytes = capacity_bytes.saturating_sub(taken_bytes);
        if missing_bytes > free_bytes {
            let (missing, free) = (Bytes(missing_bytes), Bytes(free_bytes));
            let text = format!("{path} needs {missing} more, its file system has {free} free");
            return Err(Error::new(Kind::Io, text).hint("make room, or take a smaller --size"));
        }
        Ok(())
    }
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

/// Makes the file where there is none; whether it did.
pub(super) fn make_if_absent(path: &Path) -> Result<bool, Error> {
    if path.exists() || nbd::is_uri(&path.to_string_lossy()) {
        return Ok(false);
    }
    OpenOptions::new().write(true).create_new(true).open(path).map_err(|source| {
        Error::new(Kind::Io, format!("making the file {}", path.display()))
            .hint("name a file in a folder that exists and can be written to")
            .source(source)
    })?;
    Ok(true)
}

/// Gives a file the size that was asked for, or a new one the default.
fn resize(request: &Request, permit: &Permit, made: bool) -> Result<(), Error> {
    if !permit.is_file() {
        return refuse_size(request, "a block device has");
    }
    let path = request.path.display();
    match request.size.or(made.then_some(SIZE_DEFAULT)) {
        Some(Bytes(size)) => ftruncate(permit.target(), size).map_err(|errno| {
            Error::new(Kind::Io, format!("giving {path} the size {}", Bytes(size))).source(errno)
        }),
        None => Ok(()),
    }
}

fn refuse_size(request: &Request, who: &str) -> Result<(), Error> {
    let text = format!("{}: {who} its own size", request.path.display());
    let refused = Err(Error::new(Kind::Input, text).hint("leave out --size"));
    if request.size.is_some() { refused } else { Ok(()) }
}
