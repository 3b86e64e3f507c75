//! Taking hold of the target of a run, before fio loads it.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use blockio::Bytes;
use lab::target::access::{Access, SIZE_DEFAULT};
use lab::target::address::Address;
use lab::target::hosts::Hosts;
use lab::target::nbd::{self, Uri};
use lab::{Error, Kind};
use rustix::fs::{ftruncate, statvfs};

use super::engine::Engine;
use super::fleet::Fleet;
use super::job::FILL_BYTES;
use crate::environment::Site;
use crate::guard::{self, Permit};
use crate::sites::Sites;
use crate::target::{LocalTarget, Target, check_room, check_space_of};

/// Takes hold of the target at `address`, which is there by now, and finds the engine of fio that
/// reads from it; `made` says that it is a file that was made for it.
///
/// # Errors
/// Fails if the guard refuses it, it cannot be looked at, is too small, or fio cannot read from it.
pub(super) fn open(
    address: &Address,
    access: &Access,
    made: bool,
) -> Result<(Sites, Engine), Error> {
    let (sites, engine) = match address {
        Address::Local(path) => (open_local(path, access, made)?.into(), None),
        Address::Group { name, paths } => (open_group(name, paths, access)?, None),
        Address::Export(text) => (open_export(text, access)?.into(), None),
        Address::Fleet { hosts, path } => {
            let (site, engine) = open_fleet(hosts, path, access)?;
            (site.into(), Some(engine))
        }
    };
    if sites.capacity_bytes() < FILL_BYTES {
        return Err(too_small(address, sites.first()));
    }
    let engine = engine.map_or_else(|| probe_all(&sites), Ok)?;
    Ok((sites, engine))
}

/// The first engine of fio that reads from each of `sites`, with direct I/O where all take it.
fn probe_all(sites: &Sites) -> Result<Engine, Error> {
    let probed = sites.all().iter().map(|site| Ok((site, probe(site.target())?)));
    let probed = probed.collect::<Result<Vec<(&Site, Engine)>, Error>>()?;
    let (first, engine) = probed[0];
    match probed.iter().find(|(_, other)| *other != engine) {
        None => Ok(engine),
        Some((other, differs)) => {
            let (a, b) = (first.name(), other.name());
            let text = format!(
                "fio needs the engine {engine} for {a} and {differs} for {b}, and one job has one \
                 engine"
            );
            Err(Error::new(Kind::Input, text).hint("test each device by itself"))
        }
    }
}

/// Takes hold of every device of a group, once it is known that they go together.
fn open_group(name: &str, paths: &[PathBuf], access: &Access) -> Result<Sites, Error> {
    refuse_size(Path::new(name), access, "a group of devices has")?;
    guard::check_group(paths)?;
    let permits = paths.iter().map(|path| permit(path, access));
    // All of them, before the first is looked at any further.
    let permits = permits.collect::<Result<Vec<Permit>, Error>>()?;
    let sites = paths.iter().zip(permits).map(|(path, permit)| Site::of_local(path, permit));
    Ok(Sites::of_group(name, sites.collect::<Result<_, _>>()?))
}

/// The first engine of fio that reads from `target`.
fn probe(target: &Target) -> Result<Engine, Error> {
    match target {
        Target::Export { text, .. } => Engine::probe_nbd(text),
        Target::Local(_) | Target::Fleet { .. } => Engine::probe(target.path()),
    }
}

/// Error for a target that is too small to measure; its hint says what to do.
fn too_small(address: &Address, site: &Site) -> Error {
    let size = Bytes(site.capacity_bytes());
    let text = format!("{} holds {size}, too little to measure", address.name().display());
    let hint = match site.target() {
        Target::Local(LocalTarget { permit, .. }) if permit.is_file() => {
            "give it a size: --size 1GiB"
        }
        Target::Local(_) => "`lsblk` shows the size of each device: choose one that is not empty",
        Target::Fleet { .. } => "check on each host that the device is not empty",
        Target::Export { .. } => "`nbdinfo --list` shows the size of each export",
    };
    Error::new(Kind::Input, text).hint(hint)
}

fn open_fleet(hosts: &Hosts, path: &Path, access: &Access) -> Result<(Site, Engine), Error> {
    refuse_size(path, access, "a target on other hosts has")?;
    let name = path.to_string_lossy();
    if nbd::is_uri(&name) {
        let text = format!("{name} is measured from this machine, not from {hosts}");
        return Err(Error::new(Kind::Input, text).hint("leave out --client"));
    }
    if !access.read_only {
        guard::permit_elsewhere(path, hosts, access.destroy)?;
    }
    let (fleet, capacity_bytes) = Fleet::look(hosts, path, &access.raw)?;
    Ok((Site::of_fleet(path, hosts, capacity_bytes), fleet.engine))
}

fn open_export(text: &str, access: &Access) -> Result<Site, Error> {
    refuse_size(Path::new(text), access, "an NBD server has")?;
    let uri = Uri::parse(text)?;
    let export = uri.export()?;
    if !access.read_only {
        guard::permit_export(&uri, export, access.destroy)?;
    }
    Ok(Site::of_export(text, uri, export))
}

/// The right to what is asked for: to write, or to read only.
fn permit(path: &Path, access: &Access) -> Result<Permit, Error> {
    if access.read_only { guard::permit_reading(path) } else { guard::permit(path, access.destroy) }
}

fn open_local(path: &Path, access: &Access, made: bool) -> Result<Site, Error> {
    let permit = permit(path, access)?;
    resize(path, access, &permit, made)?;
    Site::of_local(path, permit)
}

/// Makes the file at `address` where there is none and it fits; its path, where it did.
pub(super) fn make_if_absent(address: &Address, access: &Access) -> Result<Option<PathBuf>, Error> {
    let Address::Local(path) = address else { return Ok(None) };
    if path.exists() {
        return Ok(None);
    }
    if access.read_only {
        let text = format!("there is no {} to read", path.display());
        return Err(Error::new(Kind::Input, text).hint("name a file or a device with data"));
    }
    check_room_for_new(path, access)?;
    OpenOptions::new().write(true).create_new(true).open(path).map_err(|source| {
        Error::new(Kind::Io, format!("making the file {}", path.display()))
            .hint("name a file in a folder that exists and can be written to")
            .source(source)
    })?;
    Ok(Some(path.clone()))
}

/// Refuses a file that does not fit before it is made; where it cannot be known, making it tells.
fn check_room_for_new(path: &Path, access: &Access) -> Result<(), Error> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let Ok(system) = statvfs(folder) else { return Ok(()) };
    let free_bytes = system.f_bavail.saturating_mul(system.f_frsize);
    check_room(path, access.size.unwrap_or(SIZE_DEFAULT), Bytes(free_bytes))
}

/// Gives a file the size that was asked for, or a new one the default.
fn resize(path: &Path, access: &Access, permit: &Permit, made: bool) -> Result<(), Error> {
    if !permit.is_file() {
        return refuse_size(path, access, "a block device has");
    }
    let Some(Bytes(size)) = access.size.or(made.then_some(SIZE_DEFAULT)) else { return Ok(()) };
    check_space_of(permit, size)?;
    ftruncate(permit.target(), size).map_err(|errno| {
        let text = format!("giving {} the size {}", path.display(), Bytes(size));
        Error::new(Kind::Io, text).source(errno)
    })
}

fn refuse_size(path: &Path, access: &Access, who: &str) -> Result<(), Error> {
    let text = format!("{}: {who} its own size", path.display());
    let refused = Err(Error::new(Kind::Input, text).hint("leave out --size"));
    if access.size.is_some() { refused } else { Ok(()) }
}

#[cfg(test)]
mod tests;
