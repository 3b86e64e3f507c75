//! Read retries: further reads of worn or old data with other reference voltages.

use blockio::{Nanos, Rng};
use ftl::{Ftl, SuperblockId};

use crate::spec::ReadRetrySpec;

const SECONDS_A_DAY: f64 = 86_400.0;

/// Retries of one module.
#[derive(Clone, Debug)]
pub(crate) struct ReadRetry {
    spec: ReadRetrySpec,
    step: Nanos,
    /// Protocol seconds in a nanosecond of the drive's clock.
    seconds_per_nano: f64,
    /// Each superblock.
    superblocks: Vec<Age>,
    /// Start of the first load; data programmed before it has rested.
    rested_at: Option<Nanos>,
    rng: Rng,
}

/// Wear and age of a superblock.
#[derive(Clone, Copy, Debug, Default)]
struct Age {
    /// Erases so far.
    erases: u32,
    /// Time at which its filling began, if after the start of the first load.
    begun_at: Option<Nanos>,
    /// True if it has one bit a cell, whose margins need no retry that was published.
    is_slc: bool,
}

impl ReadRetry {
    pub(crate) fn new(spec: &ReadRetrySpec, superblocks: u32, of: (u32, u64)) -> Self {
        let (time_lapse, seed) = of;
        Self {
            spec: spec.clone(),
            step: Nanos::from_micros_f64(spec.step_us),
            seconds_per_nano: f64::from(time_lapse) / 1e9,
            superblocks: vec![Age::default(); superblocks as usize],
            rested_at: None,
            rng: Rng::new(seed).split("read retry"),
        }
    }

    /// Takes up the wear so far at the start of a load, until the first of which stored data has
    /// rested.
    pub(crate) fn rest(&mut self, at: Nanos, ftl: &Ftl) {
        for (superblock, id) in self.superblocks.iter_mut().zip((0..).map(SuperblockId)) {
            let status = ftl.superblock(id);
            (superblock.erases, superblock.is_slc) = (status.erase_count, status.is_slc);
        }
        if self.rested_at.is_none() {
            self.rested_at = Some(at);
            self.superblocks.iter_mut().for_each(|superblock| superblock.begun_at = None);
        }
    }

    /// Records that the filling of a superblock begins at `now`.
    pub(crate) fn begin(&mut self, superblock: SuperblockId, now: Nanos, is_slc: bool) {
        let age = &mut self.superblocks[superblock.0 as usize];
        (age.begun_at, age.is_slc) = (Some(now), is_slc);
    }

    /// Records that a superblock is erased.
    pub(crate) fn erase(&mut self, superblock: SuperblockId) {
        self.superblocks[superblock.0 as usize].erases += 1;
    }

    /// Discards all ages: nothing is stored any more.
    pub(crate) fn purge(&mut self) {
        self.rested_at = None;
        self.superblocks.iter_mut().for_each(|superblock| superblock.begun_at = None);
    }

    /// Time of the retries of a page in `superblock` that is read at `now`.
    ///
    /// Pages of one age take about as many retries: the mean, rounded up or down at random so that
    /// the mean is kept.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 1000")]
    pub(crate) fn time(&mut self, superblock: SuperblockId, now: Nanos) -> Nanos {
        let age = self.superblocks[superblock.0 as usize];
        if age.is_slc {
            return Nanos::ZERO;
        }
        let cycles = self.spec.worn_cycles + f64::from(age.erases);
        let steps = self.spec.steps_at(cycles, self.days(age, now));
        let further = u64::from(self.rng.unit_f64() < steps.fract());
        self.step * (steps.floor() as u64 + further)
    }

    /// Days that the data of a superblock has lain there.
    fn days(&self, age: Age, now: Nanos) -> f64 {
        let (since, rested_days) = match (age.begun_at, self.rested_at) {
            (Some(begun_at), _) => (begun_at, 0.0),
            (None, Some(rested_at)) => (rested_at, self.spec.rested_days),
            (None, None) => (now, 0.0),
        };
        let span = now.saturating_sub(since);
        rested_days + span.0 as f64 * self.seconds_per_nano / SECONDS_A_DAY
    }
}
