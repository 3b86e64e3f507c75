//! Results of measurements, and what follows from them.
//!
//! A [`Run`] is one drive, in one format, behind one host, through one protocol: a folder with
//! `run.json` (this schema) and Parquet files beside it. The files outlive the code: report, Python
//! and next year's comparison read them without the lab.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod application;
pub mod baseline;
pub mod compare;
pub mod conditions;
pub mod confidence;
pub mod deviation;
mod die_failure;
mod error;
#[cfg(test)]
mod example;
pub mod findings;
pub mod headlines;
pub mod heat;
mod histogram;
pub mod host_difference;
mod lateness;
pub mod mark;
pub mod order;
mod placement;
pub mod points;
pub mod price;
pub mod published;
pub mod repeats;
mod run;
mod sample;
mod sampling;
mod spread;
pub mod steady;
pub mod sweep;
pub mod table;
mod tier;

pub use application::{
    ApplicationFigures, ApplicationInterval, PREDICTION_ERROR, RecordedApplication, TransactionMix,
};
pub use confidence::{ConfidenceInterval, IntervalKind};
pub use die_failure::{DieFailures, FailedDie, FailurePhase, FailureState};
pub use error::Error;
pub use histogram::{Bin, Latencies, LatencySummary, is_percentile_known};
pub use lateness::{Lateness, SLOWDOWN_MAX};
pub use placement::HandleWrites;
pub use published::Figure;
pub use run::doubt::{Doubt, HostLimit};
pub use run::{
    AskedRate, Cell, DeviceFigures, Environment, HostLimits, Limits, PlatformRow, RateLimit, Run,
    SheetRow, Step, StepKind, Target, TargetKind, TrackedMetric, Warning, WarningKind,
};
pub use sample::{Climate, Interval, NandWrites, PagesRead, Sample, Summary};
pub use sampling::Sampling;
pub use spread::{LatencySpread, Spread};
pub use steady::{Steady, SteadyEvidence, SteadyVariable, WrittenAmount, rounds};
pub use tier::{ClassWrites, TierWork};
