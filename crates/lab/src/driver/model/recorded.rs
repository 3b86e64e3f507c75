//! Recordings of applications, replayed on a model: each request is issued once its parent has
//! completed and its think time has passed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use blockio::{Completion, Lba, Nanos, Op, Request, SECTOR_BYTES, Status};
use results::Interval;
use serde::{Deserialize, Serialize};
use ssd::{Drive, DriveSpec, Setup};
use workload::Workload;
use workload::recording::{RecordedRequest, Recording};

use super::looped_replay::IntervalCutter;
use super::meter::{self, Meter};
use super::{failed, quick_measure};
use crate::application::{ByOp, Clock, Pending, ReplayHost, ReplayResult, RequestTree};
use crate::driver::Load;
use crate::{Error, Kind};

/// State of a model in which a recording is replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayState {
    /// Written once in order.
    Filled,
    /// Then written at random in 4 KiB until write amplification holds still.
    #[default]
    Settled,
}

/// A model on which recordings are replayed.
#[derive(Clone, Debug)]
pub struct ReplayModel {
    name: String,
    drive: Drive,
    /// True if what was written before makes a difference.
    settles: bool,
    seed: u64,
}

impl ReplayModel {
    /// A purged model of `spec`, for data of this compressibility.
    ///
    /// # Errors
    /// Names the format, host or time lapse that the drive does not have.
    pub fn new(spec: &DriveSpec, setup: &Setup, compressible_percent: f64) -> Result<Self, Error> {
        let mut drive = Drive::new(spec, setup)
            .map_err(|source| Error::new(Kind::Input, "setting up the drive").source(source))?;
        drive.set_compressible(compressible_percent);
        let (name, settles) = (spec.name.clone(), spec.settles());
        Ok(Self { name, drive, settles, seed: setup.seed })
    }

    /// Brings the purged model into `state` in no time, for recordings such as `recording`.
    ///
    /// # Errors
    /// Fails if the recorded device is larger than the drive, or the drive has too little flash for
    /// its data.
    pub fn prepare(
        &mut self,
        state: ReplayState,
        recording: &Recording,
        host: &ReplayHost,
    ) -> Result<(), Error> {
        // Checked before the writes, which may take long.
        AddressMap::new(recording, host, &self.drive, &self.name)?;
        quick_measure::fill(&mut self.drive)?;
        if state == ReplayState::Settled && self.settles {
            let writes = workload::catalogue::find_workload("4k-rand-write").expect("built in");
            quick_measure::settle(&mut self.drive, &settling(&writes, self.seed), &|| false)?;
        }
        Ok(())
    }

    /// Replays the measured part of a recording on the model.
    ///
    /// Addresses are kept if the model, after time lapse, is large enough, and scaled down
    /// otherwise.
    ///
    /// # Errors
    /// Fails if the recorded device is larger than the drive, or the model fails a request.
    pub fn replay(
        mut self,
        recording: &Recording,
        host: &ReplayHost,
    ) -> Result<ReplayResult, Error> {
        Ok(on(&mut self.drive, &self.name, recording, host, Nanos::ZERO)?.replayed)
    }
}

/// Load that settles a model.
const fn settling(writes: &Workload, seed: u64) -> Load<'_> {
    Load {
        step: "settling",
        workload: writes,
        threads: 1,
        queue_per_thread: 1,
        ramp_s: 0.0,
        duration_s: 0.0,
        interval_s: 0.0,
        rate: None,
        replay: None,
        seed,
    }
}

/// A recording after its replay on a drive.
pub(super) struct ReplayedRecording {
    pub(super) replayed: ReplayResult,
    /// Requests and counters of the drive from its start to its end.
    pub(super) interval: Interval,
    /// Time of the last completion.
    pub(super) completed_at: Nanos,
}

/// Replays the measured part of a recording on the idle `drive` called `name`, from `start` on.
///
/// # Errors
/// Fails if nothing was recorded then, the recorded device is larger than the drive, or the drive
/// fails a request.
pub(super) fn on(
    drive: &mut Drive,
    name: &str,
    recording: &Recording,
    host: &ReplayHost,
    start: Nanos,
) -> Result<ReplayedRecording, Error> {
    if recording.measured().is_empty() {
        let text = "the recording has no request from the time at which its benchmark counted";
        return Err(Error::new(Kind::Input, text));
    }
    let fit = AddressMap::new(recording, host, drive, name)?;
    let tree = host.tree(recording);
    let mut meter = Meter::new(drive, start);
    let run = Run::new(drive, (&tree, host), fit, start);
    let RunTimes { completed_at, think_times, latencies } =
        run.go(&mut meter, &mut IntervalCutter::none())?;
    let end = completed_at.iter().copied().max().unwrap_or(start);
    let since_start = completed_at.iter().map(|at| *at - start).collect();
    let clock = Clock::new(&tree, since_start, think_times);
    let replayed = ReplayResult::new(recording, &tree, &clock, &latencies);
    let interval = meter.cut(drive, end, (end - start).as_secs_f64());
    Ok(ReplayedRecording { replayed, interval, completed_at: end })
}

/// Mapping of recorded addresses to those of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AddressMap {
    /// Sectors of the device that was recorded.
    from: u64,
    /// Sectors of the model that they map to: fewer in time lapse.
    to: u64,
}

impl AddressMap {
    pub(super) fn new(
        recording: &Recording,
        host: &ReplayHost,
        drive: &Drive,
        name: &str,
    ) -> Result<Self, Error> {
        let copies = host.copies.get();
        let from = recording.space_sectors().saturating_mul(copies.into());
        let whole = drive.user_sectors_full_scale();
        if from > whole {
            let bytes = |sectors: u64| sectors.saturating_mul(SECTOR_BYTES);
            return Err(host.too_large(bytes(from), name, bytes(whole)));
        }
        Ok(Self { from, to: from.min(drive.user_sectors()) })
    }

    /// Maps a request to the drive, within its capacity.
    fn place(self, request: &RecordedRequest) -> (Lba, u32) {
        if self.from == self.to {
            return (Lba(request.lba), request.sectors);
        }
        let sectors = u64::from(request.sectors).min(self.to);
        let scaled = u128::from(request.lba) * u128::from(self.to) / u128::from(self.from);
        let lba = u64::try_from(scaled).expect("below an address") / 8 * 8;
        let sectors_u32 = u32::try_from(sectors).expect("no more than the request has");
        (Lba(lba.min(self.to - sectors)), sectors_u32)
    }
}

/// Times of a replay that is over, for each request, and the drive's latencies.
pub(super) struct RunTimes {
    pub(super) completed_at: Vec<Nanos>,
    think_times: Vec<Nanos>,
    latencies: ByOp,
}

/// A replay in progress.
pub(super) struct Run<'a> {
    drive: &'a mut Drive,
    requests: &'a [RecordedRequest],
    pending: Pending<'a>,
    fit: AddressMap,
    /// Host threads without a request.
    idle: BinaryHeap<Reverse<u16>>,
    threads: u16,
    issued_at: Vec<Nanos>,
    completed_at: Vec<Nanos>,
    latencies: ByOp,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        drive: &'a mut Drive,
        (tree, host): (&'a RequestTree<'_>, &'a ReplayHost),
        fit: AddressMap,
        start: Nanos,
    ) -> Self {
        let count = tree.requests.len();
        Self {
            drive,
            requests: &tree.requests,
            pending: Pending::new(tree, host, start),
            fit,
            idle: BinaryHeap::new(),
            threads: 0,
            issued_at: vec![start; count],
            completed_at: vec![start; count],
            latencies: ByOp::default(),
        }
    }

    /// Replays everything.
    ///
    /// Skips the rest once `cutter` has cut its last interval.
    pub(super) fn go(
        mut self,
        meter: &mut Meter,
        cutter: &mut IntervalCutter,
    ) -> Result<RunTimes, Error> {
        while !self.pending.is_over() {
            let due_at = self.pending.next_at().unwrap_or(Nanos::MAX);
            let until = due_at.min(cutter.next_at);
            if let Some(done) = self.drive.next_completion(until) {
                if done.status != Status::Ok {
                    return Err(failed(&done, self.drive.time_lapse()));
                }
                meter.count(&done);
                cutter.answered += 1;
                self.complete(&done);
                continue;
            }
            if cutter.next_at <= due_at && cutter.next_at < Nanos::MAX {
                if cutter.cut(self.drive, meter) {
                    break;
                }
                continue;
            }
            let (at, index, is_buffered) = self.pending.take().expect("one is due");
            if is_buffered {
                cutter.answered += 1;
                self.answer(index, at);
            } else {
                self.issue(at, index);
            }
        }
        let Self { completed_at, latencies, pending, .. } = self;
        Ok(RunTimes { completed_at, think_times: pending.into_think_times(), latencies })
    }

    fn issue(&mut self, at: Nanos, index: u32) {
        let request = &self.requests[index as usize];
        // Databases wait for most of their requests with a thread each.
        let thread = self.idle.pop().map_or_else(
            || {
                self.threads = self.threads.saturating_add(1);
                self.threads - 1
            },
            |Reverse(thread)| thread,
        );
        let (lba, sectors) = match request.op {
            Op::Flush => (Lba(0), 0),
            Op::Read | Op::Write | Op::Trim => self.fit.place(request),
        };
        self.issued_at[index as usize] = at;
        self.drive
            .submit(at, Request { tag: index, thread, op: request.op, handle: 0, lba, sectors });
    }

    fn complete(&mut self, done: &Completion) {
        self.idle.push(Reverse(done.thread));
        let (index, at) = (done.tag as usize, done.completed_at);
        let latencies = match self.requests[index].op {
            Op::Read => Some(&mut self.latencies.read),
            Op::Write => Some(&mut self.latencies.write),
            Op::Flush => Some(&mut self.latencies.flush),
            Op::Trim => None,
        };
        if let Some(latencies) = latencies {
            let latency = at - self.issued_at[index];
            meter::record(latencies, latency, done.stalled, self.drive.time_lapse());
        }
        self.answer(done.tag, at);
    }

    fn answer(&mut self, index: u32, at: Nanos) {
        self.completed_at[index as usize] = at;
        self.pending.answer(index, at);
    }
}

#[cfg(test)]
mod tests;
