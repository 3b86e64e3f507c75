//! One point of a sweep: a drive and a load, brought to steady state and measured.
//!
//! ```text
//! purge ─► fill in order ─► rounds of the load until five of them are steady ─► measure
//! ```
//!
//! The rule is that of [`results::steady`]. A drive that still writes into flash that was never
//! used can look steady too; so before its first verdict the drive must have erased something in
//! the window, or have been written one and a half times over, if the load writes at all.

use blockio::Rng;
use results::steady::WINDOW_ROUNDS;
use results::sweep::Settled;
use results::{Interval, NandWrites, Sample, Steady, Summary};
use ssd::{DriveSpec, Setup};
use workload::Workload;

use super::lifetime::lifetime;
use crate::driver::model::Model;
use crate::{Driver, Error, Fill, Load, Watch};

/// Length of a round, in protocol seconds: that of the enterprise protocol.
const ROUND_S: f64 = 1800.0;
/// Samples of a round.
const INTERVAL_S: f64 = 60.0;
/// Rounds after which a drive that is not steady is measured all the same: twelve hours.
pub(super) const ROUNDS_MAX: u32 = 24;
/// Length of the measurement, in protocol seconds.
const MEASURE_S: f64 = 1800.0;
/// Multiple of the raw capacity after which nothing that was never used is left.
const OVERWRITTEN: f64 = 1.5;
/// Workload that writes everything once.
const FILL: &str = "128k-seq-write";

/// A drive under a load.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) drive: DriveSpec,
    pub(super) setup: Setup,
    pub(super) workload: Workload,
    pub(super) threads: u16,
    pub(super) queue_per_thread: u16,
    pub(super) load_gb_per_day: Option<f64>,
}

/// A settled drive, or nothing when it was stopped before.
///
/// # Errors
/// Fails if the drive cannot be set up so, or a request failed.
pub(super) fn measure(setting: &Setting, watch: &mut dyn Watch) -> Result<Option<Settled>, Error> {
    let mut model = Model::new(setting.drive.clone(), setting.setup.clone())?;
    model.purge()?;
    let fill = workload::catalogue::find_workload(FILL).expect("a test reads the catalogue");
    let fill = Workload { compressible_percent: setting.workload.compressible_percent, ..fill };
    model.fill(&Fill { step: "fill", workload: &fill, passes: 1 }, watch)?;
    let mut history = History::default();
    while !history.is_settled(setting) && history.rounds() < ROUNDS_MAX {
        let round = setting.load(history.rounds(), ROUND_S);
        history.extend(&model.load(&round, watch)?.intervals);
        if watch.stop() {
            return Ok(None);
        }
    }
    let intervals = model.load(&setting.load(ROUNDS_MAX, MEASURE_S), watch)?.intervals;
    if watch.stop() {
        return Ok(None);
    }
    Ok(Some(setting.settled(&model, &history, &Summary::of(&intervals))))
}

impl Setting {
    /// The load for `duration_s`, with addresses of its own for each `index`.
    fn load(&self, index: u32, duration_s: f64) -> Load<'_> {
        Load {
            step: "sweep",
            workload: &self.workload,
            threads: self.threads,
            queue_per_thread: self.queue_per_thread,
            ramp_s: 0.0,
            duration_s,
            interval_s: INTERVAL_S,
            rate: None,
            replay: None,
            seed: Rng::new(self.setup.seed).split("sweep").split_index(index.into()).next_u64(),
        }
    }

    fn settled(&self, model: &Model, history: &History, summary: &Summary) -> Settled {
        let target = model.target();
        let settled = Settled {
            user_capacity_gb: target.user_capacity_bytes as f64 / 1e9,
            raw_capacity_gb: self.drive.raw_capacity().as_gb_f64(),
            steady: history.is_settled(self),
            precondition_s: f64::from(history.rounds()) * ROUND_S,
            iops: summary.iops,
            throughput_mb_s: summary.throughput_mb_s(),
            latency: summary.latency,
            write_amplification: summary.nand.and_then(|nand| nand.write_amplification()),
            lifetime: None,
        };
        let lifetime = lifetime(&self.drive, &settled, self.load_gb_per_day);
        Settled { lifetime, ..settled }
    }
}

/// Figures of the rounds so far.
#[derive(Debug, Default)]
struct History {
    samples: Vec<Sample>,
    nand: Vec<NandWrites>,
}

impl History {
    fn rounds(&self) -> u32 {
        u32::try_from(self.nand.len()).unwrap_or(u32::MAX)
    }

    /// Takes up one round.
    fn extend(&mut self, intervals: &[Interval]) {
        let before_s = f64::from(self.rounds()) * ROUND_S;
        self.nand.push(Summary::of(intervals).nand.unwrap_or_default());
        let samples = intervals.iter().map(Sample::of);
        self.samples.extend(samples.map(|it| Sample { at_s: it.at_s + before_s, ..it }));
    }

    fn is_settled(&self, setting: &Setting) -> bool {
        let window = self.nand.iter().rev().take(WINDOW_ROUNDS);
        let erased = window.map(|nand| nand.erase_count).sum::<u64>() > 0;
        let written: u64 = self.nand.iter().map(NandWrites::total_bytes).sum();
        let scaled = setting.drive.raw_capacity().0 as f64 / f64::from(setting.setup.time_lapse);
        let used = erased || written as f64 > OVERWRITTEN * scaled;
        let last = self.samples.len().saturating_sub(self.samples_a_window());
        (used || setting.workload.only_reads())
            && Steady::judge(&self.since(last), ROUND_S).achieved
    }

    /// Samples of five rounds.
    fn samples_a_window(&self) -> usize {
        self.samples.len() / self.nand.len().max(1) * WINDOW_ROUNDS
    }

    /// The samples from the one numbered `first`, with the time since it.
    fn since(&self, first: usize) -> Vec<Sample> {
        let before_s = first.checked_sub(1).map_or(0.0, |last| self.samples[last].at_s);
        let samples = self.samples[first..].iter().cloned();
        samples.map(|it| Sample { at_s: it.at_s - before_s, ..it }).collect()
    }
}
