//! The state before the first write, as near as a target allows.
//!
//! ```text
//! device:  NVMe format ─► NVMe sanitize ─► ATA secure erase ─► discard ─► overwritten by the fill
//! file:    a hole punched over all of it
//! server:  a trim of everything
//! hosts:   a trim of everything through fio ─► overwritten by the fill
//! ```
//!
//! Invariants:
//! - A way is taken only if it touches nothing but the target: one that works on the whole
//!   controller is not, while it has other namespaces.
//! - A way that was asked for by name and does not work is an error; without a name the next one is
//!   tried, and the result says why.
//! - Success is what the drive says afterwards, not that the command returned.
//! - No way changes the drive beyond its data; one that did is an error, and no other one is tried.

use std::path::Path;

use blockio::Bytes;
use lab::target::nbd::Uri;
use lab::target::system::Block;
use lab::{Error, Kind, PurgeMethod};
use rustix::fs::{FallocateFlags, fallocate, ftruncate};

use super::engine::Engine;
use super::fleet::Fleet;
use crate::environment::Site;
use crate::guard::Permit;
use crate::sites::Sites;
use crate::target::{LocalTarget, Target};
use crate::tools::Tools;

mod ata;
mod nvme;

/// Description of a purge that could unmap nothing.
pub(super) const OVERWRITTEN: &str = "not discarded; overwritten in order before the next load";

/// Result of a purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PurgeResult {
    /// Description of the method that was used.
    pub(super) how: String,
    /// Reason why it is less than a purge; empty where it is one.
    pub(super) shortfall: String,
    /// False if nothing was unmapped: the next fill stands for the purge.
    pub(super) is_unmapped: bool,
}

impl PurgeResult {
    /// A purge that is one.
    const fn by(how: String) -> Self {
        Self { how, shortfall: String::new(), is_unmapped: true }
    }
}

/// Result of one method: its description, or the reason why it was not used.
type MethodResult = Result<String, Unfit>;

/// A device that is to be purged.
#[derive(Clone, Copy, Debug)]
struct Device<'a> {
    path: &'a Path,
    block: Option<&'a Block>,
    discards: bool,
}

/// Purges the target at `site` by `method`; what fio says of it, through `engine`, is kept below
/// `raw`. Nothing waits for the drive once `stop` says so.
///
/// # Errors
/// Fails if a file cannot be emptied, or the method that was asked for does not work.
pub(super) fn of(
    site: &Site,
    engine: Engine,
    method: PurgeMethod,
    raw: &Path,
    stop: &dyn Fn() -> bool,
) -> Result<PurgeResult, Error> {
    let target = site.target();
    match target {
        Target::Local(LocalTarget { permit, .. }) if permit.is_file() => {
            of_file(permit, site.capacity_bytes())
        }
        Target::Local(LocalTarget { device, .. }) => {
            let (path, discards) = (target.path(), target.discards());
            let device = Device { path, block: device.as_ref(), discards };
            device.purged(&Tools::default(), method, stop)
        }
        Target::Fleet { hosts, path } => {
            of_fleet(Fleet { hosts, path, engine }, site.capacity_bytes(), method, raw)
        }
        Target::Export { uri, export, .. } => of_export(uri, export.trims, method),
    }
}

/// Purges every device of `sites` as [`of`] does, one after the other.
///
/// # Errors
/// As [`of`]; with the name of the device where there are several.
pub(super) fn of_all(
    sites: &Sites,
    engine: Engine,
    method: PurgeMethod,
    raw: &Path,
    stop: &dyn Fn() -> bool,
) -> Result<PurgeResult, Error> {
    if sites.group().is_empty() {
        return of(sites.first(), engine, method, raw, stop);
    }
    let mut all = Vec::new();
    for site in sites.all() {
        let purged = of(site, engine, method, raw, stop).map_err(|error| {
            let hint = error.remedy().to_owned();
            Error::new(error.kind(), format!("purging {}", site.name())).source(error).hint(hint)
        })?;
        all.push((site.name(), purged));
        if stop() {
            break;
        }
    }
    let told = |of: fn(&PurgeResult) -> &str| {
        let first = of(&all[0].1);
        if all.iter().all(|(_, purged)| of(purged) == first) {
            return match first {
                "" => String::new(),
                text => format!("each of {} devices: {text}", all.len()),
            };
        }
        let apart = all.iter().filter(|(_, purged)| !of(purged).is_empty());
        let apart = apart.map(|(name, purged)| format!("{name}: {}", of(purged)));
        apart.collect::<Vec<_>>().join("; ")
    };
    let is_unmapped = all.iter().all(|(_, purged)| purged.is_unmapped);
    Ok(PurgeResult { how: told(|it| &it.how), shortfall: told(|it| &it.shortfall), is_unmapped })
}

/// fio's servers trim and write, and do nothing else to a drive.
fn of_fleet(
    fleet: Fleet<'_>,
    capacity_bytes: u64,
    method: PurgeMethod,
    raw: &Path,
) -> Result<PurgeResult, Error> {
    let trimmed = || {
        let size = Bytes(capacity_bytes);
        let how = format!("all {size} trimmed on each of {} through fio (rw=trim)", fleet.hosts);
        fleet.trim(capacity_bytes, raw).map(|()| how).map_err(|error| caused(&error))
    };
    trimmed_or_overwritten(trimmed, method, "fio's servers support trims only")
}

/// Trims all of an export.
fn of_export(uri: &Uri, trims: bool, method: PurgeMethod) -> Result<PurgeResult, Error> {
    let trimmed = || {
        if !trims {
            return Err("the server does not support trims".to_owned());
        }
        let how = |bytes| format!("all {} trimmed through NBD", Bytes(bytes));
        uri.trim().map(how).map_err(|error| caused(&error))
    };
    trimmed_or_overwritten(trimmed, method, "an NBD server supports trims only")
}

/// A purge by `method` of what takes trims and nothing else; `no_more` says so.
fn trimmed_or_overwritten(
    trimmed: impl FnOnce() -> Result<String, String>,
    method: PurgeMethod,
    no_more: &str,
) -> Result<PurgeResult, Error> {
    match method {
        PurgeMethod::Overwrite => Ok(overwritten(&["an overwrite was requested".into()])),
        PurgeMethod::Auto | PurgeMethod::Discard => match (trimmed(), method) {
            (Ok(how), _) => Ok(PurgeResult::by(how)),
            (Err(why), PurgeMethod::Auto) => Ok(overwritten(&[why])),
            (Err(why), _) => Err(refused(method, &why)),
        },
        _ => Err(refused(method, no_more)),
    }
}

/// `error` with its cause, in a line.
fn caused(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Gives the space of a file back to its file system, which discards it or not as it is mounted.
fn of_file(permit: &Permit, capacity_bytes: u64) -> Result<PurgeResult, Error> {
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
    Ok(PurgeResult { shortfall: shortfall.into(), ..PurgeResult::by(how) })
}

impl Device<'_> {
    fn purged(
        self,
        tools: &Tools,
        method: PurgeMethod,
        stop: &dyn Fn() -> bool,
    ) -> Result<PurgeResult, Error> {
        let ways: &[PurgeMethod] = match &method {
            PurgeMethod::Auto => &[
                PurgeMethod::Format,
                PurgeMethod::Sanitize,
                PurgeMethod::SecureErase,
                PurgeMethod::Discard,
            ],
            PurgeMethod::Overwrite => &[],
            one => std::slice::from_ref(one),
        };
        let mut failed = Vec::new();
        for way in ways {
            match self.tried(tools, *way, stop) {
                Ok(mut how) => {
                    if !failed.is_empty() {
                        how = format!("{how}; before that: {}", failed.join("; "));
                    }
                    return Ok(PurgeResult::by(how));
                }
                Err(Unfit::Refused(why)) if method != PurgeMethod::Auto => {
                    return Err(refused(method, &why));
                }
                Err(Unfit::Harmed(why)) => return Err(harmed(*way, &why)),
                Err(Unfit::Other(why)) if method != PurgeMethod::Auto => {
                    return Err(refused(method, why));
                }
                Err(Unfit::Refused(why)) => failed.push(why),
                // A way of other drives is not worth a word.
                Err(Unfit::Other(_)) => {}
            }
        }
        if method == PurgeMethod::Overwrite {
            failed.push("an overwrite was requested".into());
        }
        Ok(overwritten(&failed))
    }

    fn tried(self, tools: &Tools, way: PurgeMethod, stop: &dyn Fn() -> bool) -> MethodResult {
        let is_nvme = self.block.is_some_and(Block::is_nvme);
        let is_ata = self.block.is_some_and(Block::is_ata);
        match (way, self.block) {
            (PurgeMethod::Format, Some(block)) if is_nvme => nvme::format(tools, block),
            (PurgeMethod::Sanitize, Some(block)) if is_nvme => nvme::sanitize(tools, block, stop),
            (PurgeMethod::Format | PurgeMethod::Sanitize, _) => {
                Err(Unfit::Other("it is not an NVMe namespace"))
            }
            (PurgeMethod::SecureErase, Some(block)) if is_ata => ata::erase(tools, block),
            (PurgeMethod::SecureErase, _) => Err(Unfit::Other("it is not an ATA drive")),
            _ => self.discarded(tools),
        }
    }

    fn discarded(self, tools: &Tools) -> MethodResult {
        if !self.discards {
            return Err("the device does not support discard".to_owned().into());
        }
        // Forced: the guard already holds the device exclusively, which blkdiscard would take for
        // use.
        tools.ask("blkdiscard", &["--force".as_ref(), self.path.as_os_str()])?;
        Ok("every block discarded (blkdiscard)".into())
    }
}

/// Reason why a method was not used.
enum Unfit {
    /// The method is one of other kinds of drive.
    Other(&'static str),
    /// The method failed, or was not safe.
    Refused(String),
    /// The method left the drive in a state that a person must look at: no other one is tried.
    Harmed(String),
}

impl From<String> for Unfit {
    fn from(why: String) -> Self {
        Self::Refused(why)
    }
}

fn overwritten(failed: &[String]) -> PurgeResult {
    let why = failed.join("; ");
    PurgeResult {
        how: OVERWRITTEN.into(),
        shortfall: format!("{why}: old data was overwritten, not unmapped"),
        is_unmapped: false,
    }
}

fn harmed(method: PurgeMethod, why: &str) -> Error {
    Error::new(Kind::Program, format!("purging by {method}: {why}")).hint(
        "look at the drive before it is used again; --purge discard changes no settings of it",
    )
}

fn refused(method: PurgeMethod, why: &str) -> Error {
    Error::new(Kind::Program, format!("purging by {method}: {why}"))
        .hint("--purge auto uses the best method that the drive supports")
}

#[cfg(test)]
mod tests;
