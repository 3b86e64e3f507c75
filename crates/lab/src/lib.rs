//! Measurement of drives: plans, drivers, runs, and the studies built on them.
//!
//! A protocol becomes a plan, step by step; a [`Driver`] carries it out on a modelled or a real
//! drive; the run lands in a folder of its own, written atomically.

pub mod application;
pub mod driver;
mod error;
pub mod expression;
pub mod fio_report;
pub mod import;
pub mod library;
pub mod order;
pub mod plan;
pub mod pool;
pub mod progress;
mod rate;
pub mod repeats;
pub mod replay;
pub mod runner;
pub mod runs;
pub mod schedule;
pub mod subject;
pub mod target;
pub mod vdbench_report;
pub mod wanted;

pub use driver::{Driver, Fill, LatenessCounts, Load, LoadResult, Watch};
pub use error::{Error, Kind};
pub use rate::{Gaps, Rate};
pub use target::purge_method::PurgeMethod;

pub use blockio::Bytes;
pub use results;
pub use ssd;
pub use workload;
