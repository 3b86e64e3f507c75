//! A trace for fio: a job file that replays iologs, and the iologs of its jobs, which it is sent
//! while it runs.
//!
//! - Each job replays every T-th request, as the jobs of a model do.
//! - fio ends a job with its iolog, whatever `time_based` and `loops` say. So an iolog has no end:
//!   fio reads it from a socket (since 3.12) in pieces (`read_iolog_chunked`), and a thread here
//!   writes the next requests until the job is over.
//! - Without times the iolog is of version 2 and has no pauses; `replay_no_stall` would do the
//!   same, but fio 3.33 dies of it now and then. With times, those of the trace or those of a rate,
//!   it is of version 3, which fio 3.31 learnt; they are the due times of [`Schedule`], as a model
//!   keeps them.
//! - While a job waits for the due time of its next request it takes no completion, so that with
//!   several outstanding the latencies would contain that wait (fio 3.33: 1.6 ms instead of 1 us).
//!   With times there is one job for each request that may be outstanding ([`one_at_a_time`]).
//! - Jobs are processes: the threads of fio 3.33 disturb each other while they read iologs, and it
//!   dies of that too.
//! - Directions, sizes and offsets come from the iolog; nothing else is said of them.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;

use blockio::{Nanos, SECTOR_BYTES};
use lab::replay::Replay;
use lab::schedule::Schedule;
use lab::{Error, Kind, Load};
use results::{Warning, WarningKind};
use workload::trace::{Iolog, IologRequest, Placement};
use workload::{GeneratedRequest, Span};

use super::engine::{Engine, Version};
use super::job::{self, JobTarget, Jobs, Logging};

/// Oldest fio that reads version 3 of its iolog.
const TIMED: Version = Version { major: 3, minor: 31 };

/// Most jobs of a replay with times, each of them a process.
const JOBS_MAX: u32 = 1024;

/// Name of the iolog of the job numbered `job`, from 1.
fn iolog_name(job: u16) -> String {
    format!("trace.{job}.iolog")
}

/// True if the requests of `load` are due at times of their own.
fn is_timed(load: &Load<'_>) -> bool {
    load.rate.is_some() || load.replay.is_some_and(|replay| replay.speed.is_some())
}

/// `load` as fio of this `version` carries it out with `engine`, and a warning where that is not
/// as it was asked for: a made-up trace that cannot be replayed there, and has no times to be kept,
/// is left out, and the requests of its workload are generated independently.
///
/// # Errors
/// Fails if any other trace cannot be replayed there, or would need too many jobs.
pub(super) fn feasible<'a>(
    load: &Load<'a>,
    place: JobTarget<'_>,
    at: (Version, Engine),
) -> Result<(Load<'a>, Option<Warning>), Error> {
    let Some(replay) = &load.replay else { return Ok((*load, None)) };
    match check(load, place, at.0, at.1) {
        Ok(()) => Ok((one_at_a_time(load)?, None)),
        Err(refusal) if replay.trace.is_synthetic() && replay.speed.is_none() => {
            let drawn = Load { replay: None, ..*load };
            Ok((drawn, Some(drawn_instead(load, &refusal))))
        }
        Err(refusal) => Err(refusal),
    }
}

fn drawn_instead(load: &Load<'_>, refusal: &Error) -> Warning {
    let name = &load.workload.name;
    Warning {
        kind: WarningKind::Environment,
        step: load.step.into(),
        text: format!(
            "{refusal}: the requests of {name} were generated independently from its mix instead, \
             without the phases and sequential runs of its synthetic trace"
        ),
        remedy: format!(
            "compare only with other runs of {name} made without a trace; {}",
            refusal.remedy()
        ),
    }
}

/// `load` as one job for each request that may be outstanding, if it replays a trace with times;
/// else as it is.
fn one_at_a_time<'a>(load: &Load<'a>) -> Result<Load<'a>, Error> {
    if !is_timed(load) {
        return Ok(*load);
    }
    let jobs = u32::from(load.threads) * u32::from(load.queue_per_thread);
    let threads = u16::try_from(jobs).ok().filter(|_| jobs <= JOBS_MAX).ok_or_else(|| {
        let step = load.step;
        let text = format!(
            "step {step}: fio replays a trace at its times with a job for each of {jobs} \
             outstanding requests, at most {JOBS_MAX}"
        );
        Error::new(Kind::Input, text).hint("lower the number of threads, or their queue")
    })?;
    Ok(Load { threads, queue_per_thread: 1, ..*load })
}

/// Refuses the replay of `load` that fio of this `version` cannot carry out with `engine`.
fn check(
    load: &Load<'_>,
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
    if is_timed(load) && version < TIMED {
        let text = format!("fio {version} cannot replay a trace at its times");
        let hint = format!("install fio {TIMED} or later, or replay it without a speed or a rate");
        return Err(Error::new(Kind::Input, text).hint(hint));
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
        "step {}, trace {}: it overwrites the target where the trace writes; its iologs were sent \
         over sockets while it ran",
        load.step,
        replay.trace.name()
    );
    let mut job = job::heading(&what, place.hosts);
    job.target(place, engine, Jobs::Processes)?;
    job.compressible(&load.workload.name, load.workload.compressible_percent)?;
    job.line("iodepth", load.queue_per_thread);
    let logs: Vec<String> = (1..=load.threads).map(iolog_name).collect();
    job.line("read_iolog", logs.join(":"));
    job.line("read_iolog_chunked", 1);
    job.measured(load, logging, (place, engine))?;
    Ok(job.text)
}

/// The requests of the job numbered `job`, from 0, of `load`, which replays `replay`, without end.
pub(super) fn requests<'a>(
    load: &Load<'a>,
    replay: &Replay<'a>,
    place: JobTarget<'_>,
    job: u16,
) -> impl Iterator<Item = IologRequest> + use<'a> {
    let span = Span { sectors: place.capacity_bytes / SECTOR_BYTES }.footprint(load.workload);
    let placement = Placement::new(replay.trace, replay.addresses, span);
    let traced = replay.trace.requests();
    let mut schedule = Schedule::of(load, Nanos::ZERO);
    let all = traced.iter().cycle().map(move |request| {
        let due = schedule.as_mut().map_or(Nanos::ZERO, Schedule::take);
        (due, request)
    });
    let of_job = all.skip(job.into()).step_by(load.threads.into());
    of_job.map(move |(due, request)| {
        let GeneratedRequest { op, lba, sectors, .. } = placement.place(request);
        (due, op, lba.0, sectors)
    })
}

/// Sends every job of a load its iolog, until it is dropped or the job is over.
#[derive(Debug)]
pub(super) struct Iologs<'a> {
    sockets: Vec<PathBuf>,
    over: &'a AtomicBool,
    /// The folder of the sockets. Its handle is in their paths: those may be longer than the 108
    /// bytes that a socket's may have.
    _folder: File,
}

impl<'a> Iologs<'a> {
    /// Listens in `folder` for the jobs of `load`, which replays `replay`, and sends them their
    /// iologs from threads of `scope`; `file` is what fio calls the target.
    ///
    /// # Errors
    /// Fails if there can be no sockets in the folder.
    pub(super) fn begin<'s>(
        folder: &Path,
        (load, replay): (&Load<'s>, &Replay<'s>),
        (place, file): (JobTarget<'_>, &'s str),
        (scope, over): (&'s Scope<'s, '_>, &'a AtomicBool),
    ) -> Result<Self, Error>
    where
        'a: 's,
    {
        let failed = |source| {
            let text = format!("listening for fio in {}", folder.display());
            Error::new(Kind::Io, text).source(source).hint("name a folder of a local file system")
        };
        let opened = File::open(folder).map_err(failed)?;
        let at = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
        let mut iologs = Self { sockets: Vec::new(), over, _folder: opened };
        let is_timed = is_timed(load);
        for job in 0..load.threads {
            let socket = at.join(iolog_name(job + 1));
            let listener = UnixListener::bind(&socket).map_err(failed)?;
            iologs.sockets.push(socket);
            let requests = requests(load, replay, place, job);
            scope.spawn(move || {
                let Ok((stream, _)) = listener.accept() else { return };
                if !over.load(Ordering::Relaxed) {
                    // It ends when fio hangs up, which is no error.
                    let _ = send(stream, Iolog { file, is_timed }, requests);
                }
            });
        }
        Ok(iologs)
    }
}

impl Drop for Iologs<'_> {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for socket in &self.sockets {
            // A thread that still waits for a job, which will not come, is woken by this.
            let _ = UnixStream::connect(socket);
            let _ = fs::remove_file(socket);
        }
    }
}

/// Writes an iolog without end to `stream`, until its reader has hung up.
fn send(
    stream: UnixStream,
    iolog: Iolog<'_>,
    requests: impl Iterator<Item = IologRequest>,
) -> std::io::Result<()> {
    let mut out = BufWriter::new(stream);
    out.write_all(iolog.head().as_bytes())?;
    let mut line = String::new();
    for request in requests {
        line.clear();
        iolog.add(&mut line, request);
        out.write_all(line.as_bytes())?;
    }
    Ok(())
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
