//! The drive itself. (Constant-latency stand-in.)

use std::collections::VecDeque;

use blockio::{Bytes, Completion, Nanos, Request, Status};
use ftl::Counters;

use crate::{DriveSpec, SpecError};

/// How a drive is set up for a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Name of one of its formats.
    pub format: String,
    /// Name of one of its host drivers.
    pub host: String,
    /// 1/k of the capacity, for 1/k of the time; 1 is full scale.
    pub time_lapse: u32,
    /// Seed of its random streams.
    pub seed: u64,
}

/// A drive: a value.
#[derive(Debug)]
pub struct Drive {
    setup: Setup,
    queue: VecDeque<(Nanos, Request)>,
}

impl Drive {
    /// A purged drive.
    ///
    /// # Errors
    /// Names the format, host or time lapse that the drive does not have.
    pub fn new(_spec: &DriveSpec, setup: &Setup) -> Result<Self, SpecError> {
        Ok(Self { setup: setup.clone(), queue: VecDeque::new() })
    }

    /// Sectors that the host sees, after time lapse.
    pub fn user_sectors(&self) -> u64 {
        Bytes::from_gb(640 / u64::from(self.setup.time_lapse)).sectors()
    }

    /// Sectors that the host sees at full scale.
    pub fn user_sectors_full_scale(&self) -> u64 {
        Bytes::from_gb(640).sectors()
    }

    /// Raw media at full scale.
    pub fn raw_capacity_full_scale(&self) -> Bytes {
        Bytes::from_gb(800)
    }

    /// Takes a request that the host submits at `at`, not before anything seen so far.
    pub fn submit(&mut self, at: Nanos, request: Request) {
        self.queue.push_back((at, request));
    }

    /// When something will happen.
    pub fn next_event(&self) -> Option<Nanos> {
        self.queue.front().map(|(at, _)| *at + Nanos::from_micros(100))
    }

    /// Lets time pass to the next completion, which is returned, but at most to `until`.
    pub fn next_completion(&mut self, until: Nanos) -> Option<Completion> {
        if self.next_event()? > until {
            return None;
        }
        let (submitted_at, request) = self.queue.pop_front()?;
        Some(Completion {
            tag: request.tag,
            thread: request.thread,
            op: request.op,
            status: Status::Ok,
            sectors: request.sectors,
            submitted_at,
            completed_at: submitted_at + Nanos::from_micros(100),
        })
    }

    /// Returns to the state before the first write. Nothing may be outstanding.
    pub fn purge(&mut self) {
        self.queue.clear();
    }

    /// NAND writes since the drive was made, by cause.
    pub fn counters(&self) -> Counters {
        Counters::default()
    }

    /// Share of superblocks that are free, 0 to 1.
    pub fn superblocks_free_share(&self) -> f64 {
        1.0
    }
}
