//! One point of a sweep: a drive and a load, brought to steady state and measured.
//!
//! ```text
//! purge ─► fill in order ─► rounds of the load until five of them are steady ─► measure
//! ```
//!
//! The rule is that of [`results::steady`], as in a run: a drive that still writes into flash that
//! was never used can look steady too, so the load must have written what it addresses, or the
//! drive must relocate steadily and its NAND writes amount to that much.

use blockio::Rng;
use lab::driver::model::Model;
use lab::{Driver, Error, Fill, Kind, Load, Watch};
use results::steady::WriteRequirement;
use results::sweep::{SettledDrive, SettledTier};
use results::{Interval, Sample, Spread, Steady, Summary, Target};
use ssd::{DriveSpec, Setup};
use workload::Workload;

use super::lifetime::lifetime;

/// Length of a round, in protocol seconds: that of the enterprise protocol.
pub(super) const ROUND_S: f64 = 1800.0;
/// Samples of a round.
const INTERVAL_S: f64 = 60.0;
/// Rounds after which a drive that is not steady is measured all the same: twelve hours.
pub(super) const ROUNDS_MAX: u32 = 24;
/// Length of the measurement, in protocol seconds.
pub(super) const MEASURE_S: f64 = 1800.0;
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

/// A settled drive, measured with so many consecutive seeds: figures of the first, and their
/// spread. Nothing when it was stopped before.
///
/// # Errors
/// Fails if the drive cannot be set up so, or a request failed.
pub(super) fn measure(
    setting: &Setting,
    repeat: u32,
    watch: &mut dyn Watch,
) -> Result<Option<SettledDrive>, Error> {
    let Some((mut first, summary)) = measure_once(setting, watch)? else { return Ok(None) };
    let mut summaries = vec![summary];
    for by in 1..u64::from(repeat) {
        let mut other = setting.clone();
        other.setup.seed = setting.setup.seed.wrapping_add(by);
        let Some((settled, summary)) = measure_once(&other, watch)? else { return Ok(None) };
        first.steady &= settled.steady;
        summaries.push(summary);
    }
    first.spread = Spread::over(&summaries.iter().collect::<Vec<_>>(), first.spread);
    Ok(Some(first))
}

/// Measures one seed; returns what was measured as well.
fn measure_once(
    setting: &Setting,
    watch: &mut dyn Watch,
) -> Result<Option<(SettledDrive, Summary)>, Error> {
    let mut model = Model::new(setting.drive.clone(), setting.setup.clone())?;
    let place = setting.workload.placed(model.target().user_capacity_bytes);
    let workload = place.map_err(|source| {
        Error::new(Kind::Input, "placing a load").source(source).hint("sweep larger drives")
    })?;
    let setting = &Setting { workload, ..setting.clone() };
    model.purge()?;
    let fill = workload::catalogue::find_workload(FILL).expect("a test reads the catalogue");
    let fill = Workload { compressible_percent: setting.workload.compressible_percent, ..fill };
    model.fill(&Fill { step: "fill", workload: &fill, passes: 1 }, watch)?;
    let required = setting.write_requirement(&model.target());
    let mut history = History::default();
    while !history.is_settled(&required) && history.rounds() < ROUNDS_MAX {
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
    let summary = Summary::of(&intervals);
    let mut settled = setting.settled(&model, (&history, &required), &summary);
    settled.spread = Spread::of_intervals(&intervals);
    Ok(Some((settled, summary)))
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

    /// Amount that the load has to write after the fill before it can have settled `target`.
    fn write_requirement(&self, target: &Target) -> WriteRequirement {
        let user_bytes = target.user_capacity_bytes as f64;
        WriteRequirement {
            before_bytes: user_bytes,
            addressed_bytes: user_bytes * self.workload.footprint_percent / 100.0,
            user_bytes,
            raw_bytes: target.raw_capacity_bytes.map(|bytes| bytes as f64),
            time_lapse: f64::from(target.time_lapse),
        }
    }

    fn settled(
        &self,
        model: &Model,
        (history, required): (&History, &WriteRequirement),
        summary: &Summary,
    ) -> SettledDrive {
        let target = model.target();
        let shares = self.drive.over_provisioning(&self.setup.format);
        let settled = SettledDrive {
            user_capacity_gb: target.user_capacity_bytes as f64 / 1e9,
            raw_capacity_gb: self.drive.raw_capacity().as_gb_f64(),
            over_provisioning_percent: shares.map(|shares| shares.of_user * 100.0),
            steady: history.is_settled(required),
            host_limited: target.host_limit(self.threads, summary).is_some(),
            precondition_s: f64::from(history.rounds()) * ROUND_S,
            iops: summary.iops,
            throughput_mb_s: summary.throughput_mb_s(),
            latency: summary.latency,
            spread: None,
            write_amplification: summary.nand.and_then(|nand| nand.write_amplification()),
            tier: SettledTier::of(summary),
            lifetime: None,
            unit_prices: None,
        };
        let lifetime = lifetime(&self.drive, &settled, self.load_gb_per_day);
        SettledDrive { lifetime, ..settled }
    }
}

/// Figures of the rounds so far.
#[derive(Debug, Default)]
struct History {
    samples: Vec<Sample>,
    rounds: u32,
}

impl History {
    fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Takes up one round.
    fn extend(&mut self, intervals: &[Interval]) {
        let before_s = f64::from(self.rounds) * ROUND_S;
        self.rounds += 1;
        let samples = intervals.iter().map(Sample::of);
        self.samples.extend(samples.map(|it| Sample { at_s: it.at_s + before_s, ..it }));
    }

    fn is_settled(&self, required: &WriteRequirement) -> bool {
        Steady::judge_written(&self.samples, ROUND_S, required).achieved
    }
}

#[cfg(test)]
mod tests {
    use results::NandWrites;

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

    /// Writes required of a drive of 1 TB with 1.25 TB of flash, full once, in time lapse 32.
    fn write_requirement() -> WriteRequirement {
        WriteRequirement {
            before_bytes: 1e12,
            addressed_bytes: 1e12,
            user_bytes: 1e12,
            raw_bytes: Some(1.25e12),
            time_lapse: 32.0,
        }
    }

    /// A round of `requests` a sample that wrote `written_gb` at full scale, each byte of which
    /// relocated `relocated` bytes.
    fn round(requests: u64, written_gb: f64, relocated: u64) -> Vec<Interval> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
        let bytes = (written_gb * 1e9 / 32.0 / f64::from(SAMPLES)) as u64;
        let nand = NandWrites {
            host_sent_bytes: bytes,
            host_bytes: bytes,
            relocation_bytes: bytes * relocated,
            erase_count: 1,
            ..NandWrites::default()
        };
        let sample = |index: u32| {
            let at_s = f64::from(index) * INTERVAL_S;
            let mut interval = Interval {
                at_s,
                span_s: INTERVAL_S / 32.0,
                nand: Some(nand),
                superblocks_free_share: Some(0.1),
                ..Interval::default()
            };
            interval.write.record_many(100_000, requests);
            interval.write_bytes = bytes;
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
        assert!(!empty.is_settled(&write_requirement()));
    }

    #[test]
    fn samples_of_a_round_follow_those_of_the_last_one() {
        let history = history(&[round(10, 0.0, 0), round(10, 0.0, 0)]);
        let ends: Vec<f64> = history.samples.iter().map(|sample| sample.at_s).collect();
        let expected = (1..=2 * SAMPLES).map(|index| f64::from(index) * INTERVAL_S);
        assert!(ends.into_iter().eq(expected));
    }

    #[test]
    fn five_level_rounds_settle_a_load_that_only_reads_and_four_do_not() {
        let level = |rounds| history(&vec![round(1000, 0.0, 0); rounds]);
        assert!(!level(4).is_settled(&write_requirement()));
        assert!(level(5).is_settled(&write_requirement()));
    }

    #[test]
    fn level_writes_that_erased_something_but_wrote_a_tenth_settle_nothing() {
        let little = vec![round(1000, 20.0, 0); 5];
        assert!(!history(&little).is_settled(&write_requirement()), "a burst, as in a run");
        let all = vec![round(1000, 250.0, 0); 5];
        assert!(history(&all).is_settled(&write_requirement()), "all that it addresses");
    }

    #[test]
    fn steady_relocation_settles_a_drive_that_programmed_what_is_addressed() {
        let level = vec![round(1000, 60.0, 3); 5];
        assert!(history(&level).is_settled(&write_requirement()));
        let little = vec![round(1000, 40.0, 3); 5];
        assert!(!history(&little).is_settled(&write_requirement()), "0.8 TB of 1 TB");
        let rising: Vec<_> = [1, 2, 3, 5, 8].map(|it| round(1000, 20.0, it)).into();
        assert!(
            !history(&rising).is_settled(&write_requirement()),
            "its write amplification rises"
        );
    }

    #[test]
    fn rounds_that_still_fall_are_not_settled_whatever_was_written() {
        let rounds: Vec<Vec<Interval>> =
            [1000, 800, 640, 512, 410].map(|requests| round(requests, 500.0, 3)).into();
        assert!(!history(&rounds).is_settled(&write_requirement()));
        let flat = vec![round(410, 500.0, 3); 5];
        assert!(history(&[rounds, flat].concat()).is_settled(&write_requirement()));
    }

    #[test]
    fn the_demand_of_a_point_is_that_of_its_drive_after_a_fill() {
        let mut setting = setting("4k-rand-write");
        setting.workload.footprint_percent = 25.0;
        let model = Model::new(setting.drive.clone(), setting.setup.clone()).unwrap();
        let required = setting.write_requirement(&model.target());
        assert!((required.before_bytes / required.user_bytes - 1.0).abs() < 1e-9);
        assert!((required.addressed_bytes / required.user_bytes - 0.25).abs() < 1e-9);
        assert!(required.raw_bytes.is_some_and(|raw| raw > required.user_bytes));
        assert!((required.time_lapse - 32.0).abs() < 1e-9);
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
