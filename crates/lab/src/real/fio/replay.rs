//! A trace for fio: one iolog for each job, and a job file that replays them.
//!
//! - Each job replays every T-th request, as the jobs of a model do. fio ends a job with its iolog,
//!   whatever `time_based` and `loops` say, so the trace is repeated in it.
//! - Without times the iolog is of version 2 and has no pauses; `replay_no_stall` would do the
//!   same, but fio 3.33 dies of it now and then. With times it is of version 3, which fio 3.31
//!   learnt; speeds are worked into the time stamps.
//! - Jobs are processes: the threads of fio 3.33 disturb each other while they read iologs, and it
//!   dies of that too.
//! - Directions, sizes and offsets come from the iolog; nothing else is said of them.

use std::fs;
use std::path::Path;

use blockio::{Nanos, SECTOR_BYTES};
use workload::trace::{Placement, write_iolog};
use workload::{Demand, Span};

use super::engine::{Engine, Version};
use super::job::{self, JobTarget, Jobs, Logging};
use crate::replay::Replay;
use crate::{Error, Kind, Load};

/// Oldest fio that reads version 3 of its iolog.
const TIMED: Version = Version { major: 3, minor: 31 };

/// Requests of all iologs of a step at most: 40 bytes each on disk, and a few hundred in memory.
const REQUESTS_MAX: u64 = 4_000_000;

/// Rate for which a replay without times is long enough, in requests a second.
const IOPS_MAX: f64 = 250_000.0;

/// Name of the iolog of the job numbered `job`, from 1.
fn iolog_name(job: u16) -> String {
    format!("trace.{job}.iolog")
}

/// Refuses a `replay` that fio of this `version` cannot carry out with `engine`.
pub(super) fn check(
    replay: &Replay<'_>,
    place: JobTarget<'_>,
    version: Version,
    engine: Engine,
) -> Result<(), Error> {
    if let Some(hosts) = place.hosts {
        let text = format!("fio cannot replay a trace on {hosts}: iologs stay on this machine");
        return Err(Error::new(Kind::Input, text).hint("replay it on each host by itself"));
    }
    if !place.group.is_empty() {
        let text = "fio cannot replay a trace on several devices at once: its addresses are of one";
        return Err(Error::new(Kind::Input, text).hint("replay it on each device by itself"));
    }
    if engine == Engine::NBD {
        let text = "fio cannot replay a trace on an NBD server: iologs name files";
        return Err(Error::new(Kind::Input, text).hint("take a file, a block device or a model"));
    }
    if replay.speed.is_some() && version < TIMED {
        let text = format!("fio {version} cannot replay a trace at its times");
        return Err(Error::new(Kind::Input, text)
            .hint(format!("install fio {TIMED} or later, or replay it without --speed")));
    }
    Ok(())
}

/// The text of the job file of `load`, which replays `replay`.
///
/// # Errors
/// Fails if fio cannot express it, or the place cannot take it.
pub(super) fn of_replay(
    load: &Load<'_>,
    replay: &Replay<'_>,
    place: JobTarget<'_>,
    engine: Engine,
    logging: Logging,
) -> Result<String, Error> {
    check_sectors(replay, place, engine)?;
    let what = format!(
        "step {}, trace {}: it overwrites the target where the trace writes",
        load.step,
        replay.trace.name()
    );
    let mut job = job::heading(&what, place.hosts);
    job.target(place, engine, Jobs::Processes)?;
    job.compressible(&load.workload.name, load.workload.compressible_percent)?;
    job.line("iodepth", load.queue_per_thread);
    let logs: Vec<String> = (1..=load.threads).map(iolog_name).collect();
    job.line("read_iolog", logs.join(":"));
    job.measured(load, logging, (place, engine))?;
    Ok(job.text)
}

/// Writes the iologs of `load` into `folder`; `file` is what fio calls the target.
///
/// # Errors
/// Fails if one cannot be written.
pub(super) fn write_iologs(
    folder: &Path,
    load: &Load<'_>,
    replay: &Replay<'_>,
    (place, file): (JobTarget<'_>, &str),
) -> Result<(), Error> {
    let span = Span { sectors: place.capacity_bytes / SECTOR_BYTES };
    let placement = Placement::new(replay.trace, replay.addresses, span);
    let requests = replay.trace.requests();
    let count = length(load, replay);
    for job in 0..load.threads {
        let indices = (u64::from(job)..count).step_by(usize::from(load.threads));
        let logged = indices.map(|index| {
            let within = usize::try_from(index % requests.len() as u64).expect("below a length");
            let Demand { op, lba, sectors, .. } = placement.place(&requests[within]);
            (replay.due(index), op, lba.0, sectors)
        });
        let text = write_iolog(file, replay.speed.is_some(), logged);
        let path = folder.join(iolog_name(job + 1));
        fs::write(&path, text).map_err(|source| {
            Error::new(Kind::Io, format!("writing {}", path.display())).source(source)
        })?;
    }
    Ok(())
}

/// Requests that last as long as `load`, within reason: at their times every job has one that is
/// due once the load is over, however unevenly they come.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
fn length(load: &Load<'_>, replay: &Replay<'_>) -> u64 {
    let length_s = load.ramp_s + load.duration_s + job::SLACK_MS as f64 / 1e3;
    let jobs = u64::from(load.threads);
    if replay.speed.is_none() {
        return ((length_s * IOPS_MAX) as u64).clamp(jobs, REQUESTS_MAX);
    }
    let end = Nanos::from_secs_f64(length_s);
    let (mut before, mut beyond) = (0, REQUESTS_MAX);
    while before < beyond {
        let middle = u64::midpoint(before, beyond);
        if replay.due(middle) < end {
            before = middle + 1;
        } else {
            beyond = middle;
        }
    }
    (before + jobs).min(REQUESTS_MAX)
}

/// A drive of larger sectors cannot take what was traced on one of smaller.
fn check_sectors(replay: &Replay<'_>, place: JobTarget<'_>, engine: Engine) -> Result<(), Error> {
    let sectors = place.sector_bytes / SECTOR_BYTES;
    let is_odd = |lba: u64, count: u32| {
        !lba.is_multiple_of(sectors) || !u64::from(count).is_multiple_of(sectors)
    };
    let odd = replay.trace.requests().iter().find(|it| is_odd(it.lba, it.sectors));
    match odd {
        Some(odd) if engine.direct => {
            let text = format!(
                "trace {} has a request of {} bytes at byte {}, {} takes multiples of {}",
                replay.trace.name(),
                u64::from(odd.sectors) * SECTOR_BYTES,
                odd.lba * SECTOR_BYTES,
                place.path.display(),
                place.sector_bytes
            );
            Err(Error::new(Kind::Input, text).hint("format the drive to sectors of 512 bytes"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
