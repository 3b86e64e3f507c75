//! Applications on drives that are not in the machine: a recording of one replayed on a model, each
//! request once its parent has completed and the application has thought for as long as it did.
//!
//! ```text
//! recording ──► parents and think times ──► model, in virtual time ──► span of the replay
//!                                                                        │
//!  transactions per second = recorded ones x recorded span / span of the replay
//! ```
//!
//! Think times hold the work of the host. Where they make up nearly all of the time that the last
//! request waited for, the drive no longer decides: more of the application would run at once on a
//! host whose processors are not modelled, so that nothing is predicted ([`HOST_SHARE_MAX`]).

mod replayed;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use blockio::{Bytes, Lba, Nanos, Op, Request, SECTOR_BYTES, Status};
use ssd::{Drive, DriveSpec, Setup};
use workload::recording::{self, Parent, Recorded, Recording, parents};

use self::replayed::{ByOp, Clock};
pub use self::replayed::{HOST_SHARE_MAX, Prediction, Replayed};
use crate::driver::model::{failed, quick_measure};
use crate::{Error, Kind};

/// Reads the recording at `path`.
///
/// # Errors
/// Names the file and what is wrong with it.
pub fn read(path: &Path) -> Result<Recording, Error> {
    let shown = path.display();
    let file = std::fs::File::open(path)
        .map_err(|source| Error::new(Kind::Input, format!("opening {shown}")).source(source))?;
    recording::read(std::io::BufReader::new(file)).map_err(|source| {
        Error::new(Kind::Input, format!("reading {shown}"))
            .source(source)
            .hint("`floatgate record` and `floatgate serve --record` make recordings")
    })
}

/// The recording of an application with so many clients that is built in; none where there is none.
pub fn built_in(application: &str, threads: u32) -> Option<Recording> {
    let bytes = workload::catalogue::recording(application, threads)?;
    Some(recording::read(bytes).expect("a test reads every recording that is built in"))
}

/// Share of think times in what the last request of a recording waited for, from 0 to 1, as it was
/// recorded; none where nothing was asked for while the benchmark counted.
pub fn host_share(recording: &Recording) -> Option<f64> {
    let requests = recording.measured();
    let share = || Clock::of_recording(requests).host_share(&parents(requests));
    (!requests.is_empty()).then(share)
}

/// Replays what a benchmark did while it counted on a model that was filled once.
///
/// Addresses stay as they are where the model, after time lapse, holds all of them; else they are
/// shrunk with it. `compressible_percent` is that of the data.
///
/// # Errors
/// Fails if the recorded device is larger than the drive, or the model fails a request.
pub fn replay(
    recording: &Recording,
    spec: &DriveSpec,
    setup: &Setup,
    compressible_percent: f64,
) -> Result<Replayed, Error> {
    let requests = recording.measured();
    if requests.is_empty() {
        let text = "the recording has no request from the time at which its benchmark counted";
        return Err(Error::new(Kind::Input, text));
    }
    let mut drive = Drive::new(spec, setup)
        .map_err(|source| Error::new(Kind::Input, "setting up the drive").source(source))?;
    let fit = Fit::new(recording, &drive, &spec.name)?;
    drive.set_compressible(compressible_percent);
    quick_measure::fill(&mut drive);
    let parents = parents(requests);
    let mut run = Run::new(&mut drive, requests, &parents, fit);
    run.go()?;
    let clock = Clock::new(requests, &run.completed_at);
    Ok(Replayed::new(recording, &parents, &clock, &run.latencies))
}

/// Mapping of recorded addresses to those of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fit {
    /// Sectors of the device that was recorded.
    from: u64,
    /// Sectors that stand for them: fewer in time lapse.
    to: u64,
}

impl Fit {
    fn new(recording: &Recording, drive: &Drive, name: &str) -> Result<Self, Error> {
        let from = recording.space_sectors();
        let whole = drive.user_sectors_full_scale();
        if from > whole {
            let bytes = |sectors: u64| Bytes(sectors * SECTOR_BYTES);
            let text = format!(
                "the recording is of a device of {}, and {name} holds {}",
                bytes(from),
                bytes(whole)
            );
            let hint = "record on a device that is no larger than the drives to compare";
            return Err(Error::new(Kind::Input, text).hint(hint));
        }
        Ok(Self { from, to: from.min(drive.user_sectors()) })
    }

    /// Place of a request on the drive, within which it stays.
    fn place(self, request: &Recorded) -> (Lba, u32) {
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

/// A replay under way.
struct Run<'a> {
    drive: &'a mut Drive,
    requests: &'a [Recorded],
    parents: &'a [Parent],
    fit: Fit,
    /// Children of request `index` are `children[first_child[index]..first_child[index + 1]]`.
    first_child: Vec<u32>,
    children: Vec<u32>,
    /// Requests whose parents have completed, by the time at which they are issued.
    due: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Host threads without a request.
    idle: BinaryHeap<Reverse<u16>>,
    threads: u16,
    issued_at: Vec<Nanos>,
    completed_at: Vec<Nanos>,
    latencies: ByOp,
}

impl<'a> Run<'a> {
    fn new(
        drive: &'a mut Drive,
        requests: &'a [Recorded],
        parents: &'a [Parent],
        fit: Fit,
    ) -> Self {
        let count = requests.len();
        let mut first_child = vec![0_u32; count + 1];
        for parent in parents.iter().filter_map(|it| it.index) {
            first_child[parent as usize + 1] += 1;
        }
        for index in 0..count {
            first_child[index + 1] += first_child[index];
        }
        let mut next = first_child.clone();
        let mut children = vec![0; first_child[count] as usize];
        let mut due = BinaryHeap::new();
        for (child, parent) in (0..).zip(parents) {
            match parent.index {
                Some(index) => {
                    let slot = &mut next[index as usize];
                    children[*slot as usize] = child;
                    *slot += 1;
                }
                None => due.push(Reverse((parent.think_time, child))),
            }
        }
        Self {
            drive,
            requests,
            parents,
            fit,
            first_child,
            children,
            due,
            idle: BinaryHeap::new(),
            threads: 0,
            issued_at: vec![Nanos::ZERO; count],
            completed_at: vec![Nanos::ZERO; count],
            latencies: ByOp::default(),
        }
    }

    fn go(&mut self) -> Result<(), Error> {
        let mut completed = 0;
        loop {
            let until = self.due.peek().map_or(Nanos::MAX, |Reverse((at, _))| *at);
            if let Some(done) = self.drive.next_completion(until) {
                if done.status != Status::Ok {
                    return Err(failed(&done));
                }
                self.complete(done.tag, done.thread, done.completed_at);
                completed += 1;
            } else if let Some(Reverse((at, index))) = self.due.pop() {
                self.issue(at, index);
            } else {
                break;
            }
        }
        assert_eq!(completed, self.requests.len(), "every request was issued and completed");
        Ok(())
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

    fn complete(&mut self, index: u32, thread: u16, at: Nanos) {
        self.idle.push(Reverse(thread));
        let index = index as usize;
        self.completed_at[index] = at;
        let latency_ns = (at - self.issued_at[index]).0;
        match self.requests[index].op {
            Op::Read => self.latencies.read.record(latency_ns),
            Op::Write => self.latencies.write.record(latency_ns),
            Op::Flush => self.latencies.flush.record(latency_ns),
            Op::Trim => {}
        }
        let range = self.first_child[index] as usize..self.first_child[index + 1] as usize;
        for child in &self.children[range] {
            self.due.push(Reverse((at + self.parents[*child as usize].think_time, *child)));
        }
    }
}

#[cfg(test)]
mod tests;
