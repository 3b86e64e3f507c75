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

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLES: u32 = 30;

    fn setting(workload: &str) -> Setting {
        let drive = ssd::catalogue::find("iodrive-duo").unwrap();
        let (format, host) = ("stock".into(), "linux".into());
        Setting {
            drive,
            setup: Setup { format, host, time_lapse: 32, seed: 1 },
            workload: workload::catalogue::find_workload(workload).unwrap(),
            threads: 4,
            queue_per_thread: 4,
            load_gb_per_day: None,
        }
    }

    /// A round of `requests` a sample, in which the flash took `host_bytes` and erased so often.
    fn round(requests: u64, host_bytes: u64, erase_count: u64) -> Vec<Interval> {
        let each = u64::from(SAMPLES);
        let nand = NandWrites {
            host_bytes: host_bytes / each,
            erase_count: erase_count / each,
            ..NandWrites::default()
        };
        let sample = |index: u32| {
            let at_s = f64::from(index) * INTERVAL_S;
            let mut interval = Interval {
                at_s,
                span_s: INTERVAL_S / 32.0,
                nand: Some(nand),
                ..Interval::default()
            };
            interval.write.record_many(100_000, requests);
            interval.write_bytes = requests * 4096;
            interval
        };
        (1..=SAMPLES).map(sample).collect()
    }

    fn history(rounds: &[Vec<Interval>]) -> History {
        let mut history = History::default();
        for round in rounds {
            history.extend(round);
        }
        history
    }

    #[test]
    fn a_drive_that_was_not_loaded_yet_is_not_settled() {
        let empty = History::default();
        assert_eq!(empty.rounds(), 0);
        assert!(!empty.is_settled(&setting("4k-rand-read")));
    }

    #[test]
    fn samples_of_a_round_follow_those_of_the_last_one() {
        let history = history(&[round(10, 0, 0), round(10, 0, 0)]);
        let ends: Vec<f64> = history.samples.iter().map(|sample| sample.at_s).collect();
        let expected = (1..=2 * SAMPLES).map(|index| f64::from(index) * INTERVAL_S);
        assert!(ends.into_iter().eq(expected));
        let last = history.since(30);
        assert_eq!((last.len(), last[0].at_s, last[29].at_s), (30, 60.0, 1800.0));
    }

    #[test]
    fn five_level_rounds_settle_a_load_that_only_reads_and_four_do_not() {
        let reads = setting("4k-rand-read");
        let level = |rounds| history(&vec![round(1000, 0, 0); rounds]);
        assert!(!level(4).is_settled(&reads));
        assert!(level(5).is_settled(&reads));
    }

    #[test]
    fn level_writes_into_flash_that_was_never_used_settle_nothing() {
        let writes = setting("4k-rand-write");
        let fresh = vec![round(1000, 1 << 20, 0); 5];
        assert!(!history(&fresh).is_settled(&writes));
        let mut erasing = fresh.clone();
        erasing[2] = round(1000, 1 << 20, 30);
        assert!(history(&erasing).is_settled(&writes), "something was erased in the window");
        let early = [vec![round(1000, 1 << 20, 30)], fresh].concat();
        assert!(!history(&early).is_settled(&writes), "it was erased before the window");
    }

    #[test]
    fn writing_one_and_a_half_times_over_is_enough_without_any_erasure() {
        let writes = setting("4k-rand-write");
        let scaled = writes.drive.raw_capacity().0 / 32;
        let over = |tenths: u64| {
            let rounds = vec![round(1000, scaled * tenths / 10 / 5, 0); 5];
            history(&rounds).is_settled(&writes)
        };
        assert!(!over(14));
        assert!(over(16));
    }

    #[test]
    fn rounds_that_still_fall_are_not_settled_whatever_was_written() {
        let rounds: Vec<Vec<Interval>> =
            [1000, 800, 640, 512, 410].map(|requests| round(requests, 1 << 40, 3000)).into();
        assert!(!history(&rounds).is_settled(&setting("4k-rand-write")));
        let flat = vec![round(410, 1 << 40, 3000); 5];
        assert!(history(&[rounds, flat].concat()).is_settled(&setting("4k-rand-write")));
    }

    #[test]
    fn every_round_has_addresses_of_its_own_and_the_same_in_every_sweep() {
        let setting = setting("4k-rand-write");
        let seed = |index| setting.load(index, ROUND_S).seed;
        assert_eq!(seed(3), seed(3));
        let seeds: Vec<u64> = (0..=ROUNDS_MAX).map(seed).collect();
        let mut distinct = seeds.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), seeds.len());
    }
}
