//! Results of a sweep: one drive under one kind of load, at every point of a grid.
//!
//! The file `sweep.json`. Points are in the order of the grid: the last dimension changes fastest.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::mark::{UNVALIDATED_REASON, is_unset, marked};
use crate::price::Price;
use crate::{LatencySummary, Spread, Summary};

/// Key of the user capacity of the format, in decimal GB.
pub const USER_CAPACITY: &str = "user_capacity_gb";
/// Key of the jobs.
pub const THREADS: &str = "threads";
/// Key of the requests that each job keeps outstanding.
pub const QUEUE: &str = "queue_per_thread";
/// Key of the share of requests that read.
pub const READ_PERCENT: &str = "read_percent";
/// Key of how far the data can be compressed.
pub const COMPRESSIBLE: &str = "compressible_percent";

/// Keys of dimensions that change the load; any other changes the drive.
const LOAD_KEYS: [&str; 4] = [THREADS, QUEUE, READ_PERCENT, COMPRESSIBLE];

/// A whole sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// Version of this schema, 1.
    pub schema: u32,
    /// Name of the folder.
    pub id: String,
    /// Start of the sweep, RFC 3339 in UTC.
    pub started_at: String,
    /// Version of the drive models.
    pub model_version: u32,
    /// Seed of every random stream.
    pub seed: u64,
    /// Name of the drive.
    pub drive: String,
    /// Heading on a report.
    pub title: String,
    /// True of a model whose rates have not been compared with published ones. Absent: false.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub unvalidated: bool,
    /// Format that the drive begins with.
    pub format: String,
    /// Host driver.
    pub host: String,
    /// The drive ran at 1/k of its capacity for 1/k of the time; 1 is full scale.
    pub time_lapse: u32,
    /// Name of the workload.
    pub workload: String,
    /// Jobs, where they are not swept.
    pub threads: u16,
    /// Requests that each job keeps outstanding, where they are not swept.
    pub queue_per_thread: u16,
    /// Measurements of each point, with consecutive seeds; the figures are those of the first.
    /// Absent: 1.
    #[serde(default = "single", skip_serializing_if = "is_single")]
    pub repeat: u32,
    /// Load that the lifetime in years is for, in decimal GB a day; absent where none was given.
    pub load_gb_per_day: Option<f64>,
    /// Price of the drive at every point; absent where none was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Dimensions of the grid.
    pub dimensions: Vec<Dimension>,
    /// Every point, in the order of the grid; fewer when it was interrupted.
    pub points: Vec<Point>,
}

/// Dimension of the grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dimension {
    /// Key with its unit: `user_capacity_gb`, `threads`, or a key of the drive's file.
    pub key: String,
    /// Its values, in order.
    pub values: Vec<Value>,
}

/// One value of a dimension.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A number, in the unit of the key.
    Number(f64),
    /// A word.
    Word(String),
}

/// One point of the grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Values of the dimensions, in their order.
    pub at: Vec<Value>,
    /// Outcome.
    #[serde(flatten)]
    pub outcome: PointOutcome,
}

/// Outcome of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum PointOutcome {
    /// Measured.
    Measured(Box<SettledDrive>),
    /// Infeasible: there is no such drive.
    Infeasible {
        /// Reason why it is infeasible.
        reason: String,
    },
}

/// A settled drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SettledDrive {
    /// Capacity that the host sees at full scale, in decimal GB.
    pub user_capacity_gb: f64,
    /// All of the media at full scale, in decimal GB.
    pub raw_capacity_gb: f64,
    /// Over-provisioning at full scale, (raw − user) ÷ user, in percent; of a drive that compresses
    /// user is the physical capacity. Absent in earlier sweeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_provisioning_percent: Option<f64>,
    /// True if the steady-state rule was met before the measurement.
    pub steady: bool,
    /// True if the processors of the host were the limit, not the drive. Absent: false.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub host_limited: bool,
    /// Protocol time of the preconditioning, in seconds.
    pub precondition_s: f64,
    /// Requests completed in each second.
    pub iops: f64,
    /// Decimal MB/s read and written together.
    pub throughput_mb_s: f64,
    /// Latency over reads and writes together.
    pub latency: LatencySummary,
    /// Intervals of rate and latency: over the repeats, else from the parts of the measurement.
    /// Absent in earlier sweeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// NAND writes ÷ host writes; absent where the host wrote nothing.
    pub write_amplification: Option<f64>,
    /// Figures of the classes; absent where the drive is not made of two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<SettledTier>,
    /// Lifetime; absent where its endurance is not known, the host wrote nothing, or the drive was
    /// not in steady state.
    pub lifetime: Option<Lifetime>,
    /// Price of what it gives; absent without a price of the sweep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit_prices: Option<UnitPrices>,
}

/// Classes of a settled drive that is made of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SettledTier {
    /// Share of the bytes read that the fast class held, 0 to 1; absent where nothing was read.
    pub hit_rate: Option<f64>,
    /// Media writes ÷ writes to the slow class; absent where nothing was written to it.
    pub slow_write_amplification: Option<f64>,
    /// Writes of all of the fast class in a day, at this rate.
    pub fast_drive_writes_per_day: f64,
    /// Writes of all of the slow class in a day, at this rate.
    pub slow_drive_writes_per_day: f64,
}

impl SettledTier {
    /// Figures of a measurement; absent where the drive is not made of two.
    pub fn of(summary: &Summary) -> Option<Self> {
        let work = summary.tier.as_ref()?;
        Some(Self {
            hit_rate: work.hit_rate(),
            slow_write_amplification: work.slow.write_amplification(),
            fast_drive_writes_per_day: work.fast.drive_writes_per_day(summary.span_s),
            slow_drive_writes_per_day: work.slow.drive_writes_per_day(summary.span_s),
        })
    }
}

/// Prices of what a settled drive gives, in the currency of its sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UnitPrices {
    /// Price of each decimal gigabyte of the user capacity.
    pub per_gb: Option<f64>,
    /// Price of each thousand requests a second; absent where it was not in steady state.
    pub per_thousand_iops: Option<f64>,
    /// Price of each terabyte of the lifetime; absent where the lifetime is.
    pub per_tb_written: Option<f64>,
}

/// Host writes that a drive endures under a load, and the time that they last.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lifetime {
    /// Basis of the calculation.
    pub basis: LifetimeBasis,
    /// Host writes in all, in decimal PB.
    pub host_writes_pb: f64,
    /// Writes of the whole user capacity each day of the warranty, of at most what the maker rates
    /// the drive for; absent where the years of the warranty are not known.
    pub drive_writes_per_day: Option<f64>,
    /// Years at the given load; absent where none was given.
    pub years: Option<f64>,
    /// Mean read retries per read once the cycles are used up, of data stored for the longest
    /// retention time in the drive's file; absent where the file has no retries. It is
    /// `further_reads_at_end` in earlier sweeps.
    #[serde(default, alias = "further_reads_at_end", skip_serializing_if = "Option::is_none")]
    pub read_retries_at_end_of_life: Option<f64>,
}

/// Basis of a lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LifetimeBasis {
    /// Program/erase cycles × raw capacity ÷ write amplification.
    Cycles,
    /// Rating of the maker, whatever the write amplification.
    Rating,
}

const fn single() -> u32 {
    1
}

/// True of sweeps that measured each point once; zero where nothing was recorded of it.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
const fn is_single(repeat: &u32) -> bool {
    *repeat < 2
}

impl Sweep {
    /// The sweep with `price` for the drive of every point.
    #[must_use]
    pub fn with_price(mut self, price: Price) -> Self {
        for point in &mut self.points {
            let PointOutcome::Measured(settled) = &mut point.outcome else { continue };
            let settled_iops = settled.steady.then_some(settled.iops);
            settled.unit_prices = Some(UnitPrices {
                per_gb: price.per_gb(settled.user_capacity_gb),
                per_thousand_iops: settled_iops.and_then(|iops| price.per_thousand_iops(iops)),
                per_tb_written: settled
                    .lifetime
                    .and_then(|lifetime| price.per_tb_written(lifetime.host_writes_pb)),
            });
        }
        self.price = Some(price);
        self
    }

    /// Heading on a report, with the mark of an unvalidated model.
    pub fn heading(&self) -> String {
        marked(&self.title, self.unvalidated)
    }

    /// The sentence on what published figures do not confirm of the points: the rates of an
    /// unvalidated model, and those of a validated one with keys of its file changed. Absent where
    /// only the load of a validated model is swept.
    pub fn validation_note(&self) -> Option<String> {
        if self.unvalidated {
            return Some(UNVALIDATED_REASON.to_owned());
        }
        let keys = self.dimensions.iter().map(|dimension| dimension.key.as_str());
        let changed: Vec<&str> = keys.filter(|key| !LOAD_KEYS.contains(key)).collect();
        let told = || {
            format!(
                "Predictions: published figures were compared with the model as its file \
                 describes the drive, not with a changed {}.",
                changed.join(", ")
            )
        };
        (!changed.is_empty()).then(told)
    }

    /// Version of this schema.
    pub const SCHEMA: u32 = 1;

    /// Load of every point and the phase that its figures are of, with what is swept named so:
    /// `4k-rand-write at T16Q16, modelled after preconditioning to steady state`.
    pub fn load(&self) -> String {
        let is_swept = |key: &str| self.dimensions.iter().any(|it| it.key == key);
        let load = match (is_swept(THREADS), is_swept(QUEUE)) {
            (false, false) => format!("T{}Q{}", self.threads, self.queue_per_thread),
            (true, false) => format!("swept threads and queue depth {}", self.queue_per_thread),
            (false, true) => format!("{} threads and swept queue depth", self.threads),
            (true, true) => "swept threads and queue depth".to_owned(),
        };
        let reads = if is_swept(READ_PERCENT) { " with a swept share of reads" } else { "" };
        let workload = &self.workload;
        format!("{workload}{reads} at {load}, modelled after {}", self.preconditioning())
    }

    /// The preconditioning of the points, with those that did not reach steady state.
    fn preconditioning(&self) -> String {
        match self.unsteady() {
            None => "preconditioning to steady state".to_owned(),
            Some(unsteady) => format!("preconditioning: {unsteady}"),
        }
    }

    /// Number of the measured points that were not in steady state, in words; absent without any.
    pub fn unsteady(&self) -> Option<String> {
        let measured: Vec<&SettledDrive> = self.points.iter().filter_map(Point::settled).collect();
        let unsteady = measured.iter().filter(|settled| !settled.steady).count();
        let told =
            || format!("{unsteady} of {} points had not reached steady state", measured.len());
        (unsteady > 0).then(told)
    }
}

impl Value {
    /// The number; absent for a word.
    pub const fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Word(_) => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Word(word) => f.write_str(word),
        }
    }
}

impl Point {
    /// Returns the measurements; absent where the point is infeasible.
    pub const fn settled(&self) -> Option<&SettledDrive> {
        match &self.outcome {
            PointOutcome::Measured(settled) => Some(settled),
            PointOutcome::Infeasible { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_names_its_load_and_what_of_it_is_swept() {
        let sweep = |keys: &[&str]| Sweep {
            workload: "8k-70-30".into(),
            threads: 16,
            queue_per_thread: 4,
            dimensions: keys
                .iter()
                .map(|key| Dimension { key: (*key).to_owned(), values: Vec::new() })
                .collect(),
            ..Sweep::default()
        };
        let phase = "modelled after preconditioning to steady state";
        assert_eq!(sweep(&["user_capacity_gb"]).load(), format!("8k-70-30 at T16Q4, {phase}"));
        let reads = sweep(&["threads", "read_percent"]).load();
        let expected = "8k-70-30 with a swept share of reads at swept threads and queue depth 4";
        assert_eq!(reads, format!("{expected}, {phase}"));
        let point = |steady| Point {
            at: Vec::new(),
            outcome: PointOutcome::Measured(Box::new(SettledDrive {
                steady,
                ..SettledDrive::default()
            })),
        };
        let two = Sweep { points: vec![point(true), point(false)], ..sweep(&[]) };
        let told = "modelled after preconditioning: 1 of 2 points had not reached steady state";
        assert_eq!(two.load(), format!("8k-70-30 at T16Q4, {told}"));
    }

    #[test]
    fn a_sweep_says_what_no_published_figure_confirms() {
        let note = |unvalidated, keys: &[&str]| {
            let dimension = |key: &&str| Dimension { key: (*key).to_owned(), values: Vec::new() };
            let dimensions = keys.iter().map(dimension).collect();
            Sweep { unvalidated, dimensions, ..Sweep::default() }.validation_note()
        };
        assert_eq!(note(false, &LOAD_KEYS), None);
        let changed = note(false, &["threads", "user_capacity_gb", "nand.t_prog_us"]).unwrap();
        assert!(changed.ends_with("not with a changed user_capacity_gb, nand.t_prog_us."));
        assert_eq!(note(true, &["threads"]).as_deref(), Some(UNVALIDATED_REASON));
    }
}
