//! Several machines at once: `fio --server` on each of them, one client here.
//!
//! ```text
//! this machine: fio --client=a job.fio --client=b job.fio
//!                 │         ├──────► a: fio --server ──► the target there
//!                 │         └──────► b: fio --server ──► the target there
//!                 └─◄ output.json (client_stats), latency_clat.1.log.a, latency_clat.1.log.b, …
//! ```
//!
//! Every host does the whole load on a target of the same name, and results are added, as with the
//! devices of a group. Nothing but fio is asked there: who uses the target, what it is and how it
//! fares cannot be seen from here, so that nothing is done without leave to destroy. Its size is
//! found by where fio begins when it is told to begin at 99 % of it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use blockio::SECTOR_BYTES;
use lab::progress::Glimpse;
use lab::target::hosts::Hosts;
use lab::{Error, Kind, Watch};

use super::engine::Engine;
use super::job::{self, FILL_BYTES, JobTarget, OUTPUT_FILE, fresh_folder, write_job};
use super::log;
use super::output::FioOutput;
use super::process::{self, Ending};

/// Time that the hosts may take to answer a probe of their targets.
const PATIENCE: Duration = Duration::from_mins(1);
/// Time that the hosts may take to trim their targets.
const TRIM_PATIENCE: Duration = Duration::from_hours(1);
/// Transfer size of a probe, in bytes: a whole number of sectors on any drive.
const LOOK_BYTES: u64 = 4096;
/// Offset of a probe, in percent of the target.
const LOOK_PERCENT: u64 = 99;
/// Folder of the files of a probe.
const LOOK_FOLDER: &str = "look";
/// Folder of the files of a trim.
const TRIM_FOLDER: &str = "trim";

/// A target of the same name on several hosts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fleet<'a> {
    /// The machines.
    pub(super) hosts: &'a Hosts,
    /// Name of the target on each of them.
    pub(super) path: &'a Path,
    /// Engine that works on all of them.
    pub(super) engine: Engine,
}

impl<'a> Fleet<'a> {
    /// Has every one of `hosts` read from `path`, and finds the size of the smallest, in bytes and
    /// whole transfers of a fill; what was said is kept below `raw`.
    ///
    /// # Errors
    /// Fails with the output of fio if a host does not answer, or cannot read.
    pub(super) fn look(hosts: &'a Hosts, path: &'a Path, raw: &Path) -> Result<(Self, u64), Error> {
        let mut failed = None;
        for engine in Engine::ALL {
            let fleet = Self { hosts, path, engine };
            match fleet.measured(raw) {
                Ok(capacity_bytes) => return Ok((fleet, capacity_bytes)),
                Err(error) => failed = Some(error),
            }
        }
        let text = format!("fio cannot read from {} on every one of {hosts}", path.display());
        let error = Error::new(Kind::Program, text).hint(
            "start `fio --server` on each host; the target must exist there under the same name",
        );
        Err(match failed {
            Some(cause) => error.source(cause),
            None => error,
        })
    }

    /// The greatest size that every host was seen to have.
    fn measured(&self, raw: &Path) -> Result<u64, Error> {
        let begin = format!("{LOOK_PERCENT}%");
        let folder = self.read_at(&begin, raw)?;
        let mut range = (u64::MAX, u64::MAX);
        for host in self.hosts.names() {
            let sizes = log::first_offset(&folder, host)?.map_or((0, 0), sizes_from);
            range = (range.0.min(sizes.0), range.1.min(sizes.1));
        }
        let [least, most] = [range.0, range.1].map(|bytes| bytes / FILL_BYTES * FILL_BYTES);
        let is_there = |bytes: u64| self.read_at(&(bytes - LOOK_BYTES).to_string(), raw).is_ok();
        Ok(if most > least && is_there(most) { most } else { least })
    }

    /// Reads a little from `offset` on every host. Returns the folder of the logs.
    fn read_at(&self, offset: &str, raw: &Path) -> Result<PathBuf, Error> {
        let text = job::of_look(self.hosts, self.path, self.engine, offset, LOOK_BYTES)?;
        self.carried_out(&text, &raw.join(LOOK_FOLDER), PATIENCE)
    }

    /// Has every host trim `capacity_bytes` of its target, all of it; what was said is kept below
    /// `raw`.
    ///
    /// # Errors
    /// Fails with the output of fio if a target does not support trims.
    pub(super) fn trim(&self, capacity_bytes: u64, raw: &Path) -> Result<(), Error> {
        let place = JobTarget {
            hosts: Some(self.hosts),
            path: self.path,
            group: &[],
            capacity_bytes,
            sector_bytes: SECTOR_BYTES,
        };
        let text = job::of_trim(place, self.engine)?;
        let folder = self.carried_out(&text, &raw.join(TRIM_FOLDER), TRIM_PATIENCE)?;
        FioOutput::read(&folder.join(OUTPUT_FILE)).map(drop)
    }

    /// Runs the job file `text` on every host, in a new `folder`, which is returned.
    fn carried_out(&self, text: &str, folder: &Path, patience: Duration) -> Result<PathBuf, Error> {
        let folder = fresh_folder(folder)?;
        write_job(&folder, text)?;
        let mut watch = Patience { since: Instant::now(), patience };
        match process::run(&folder, Some(self.hosts), &mut watch, |_, _| true)? {
            Ending::Done => Ok(folder),
            Ending::Stopped => {
                let text = format!("no answer from {} in {} s", self.hosts, patience.as_secs());
                Err(Error::new(Kind::Program, text).hint("start `fio --server` on each of them"))
            }
        }
    }
}

/// The least and the greatest size of a target in which [`LOOK_PERCENT`] lie at `offset`, which fio
/// rounds to whole transfers.
fn sizes_from(offset: u64) -> (u64, u64) {
    let whole = |bytes: u64| u64::try_from(u128::from(bytes) * 100 / u128::from(LOOK_PERCENT));
    let size = |bytes| whole(bytes).unwrap_or(u64::MAX);
    (size(offset.saturating_sub(LOOK_BYTES)), size(offset + LOOK_BYTES))
}

/// Observer that stops a load after `patience`.
struct Patience {
    since: Instant,
    patience: Duration,
}

impl Watch for Patience {
    fn progress(&mut self, _: f64, _: &str) {}

    fn saw(&mut self, _: Glimpse) {}

    fn stop(&self) -> bool {
        self.since.elapsed() > self.patience
    }
}

#[cfg(test)]
mod tests;
