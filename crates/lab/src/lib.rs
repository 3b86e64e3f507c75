//! Measurement of drives: plans, drivers, runs, and the studies built on them.
//!
//! A protocol becomes a plan, step by step; a [`Driver`] carries it out on a modelled or a real
//! drive; the run lands in a folder of its own, written atomically.

pub mod doctor;
mod drive_file;
pub mod driver;
mod environment;
mod error;
pub mod expression;
pub mod fio_report;
pub mod fit;
pub mod guard;
pub mod library;
mod nbd;
pub mod plan;
mod pool;
pub mod progress;
mod purge_method;
pub mod replay;
pub mod runner;
pub mod runs;
pub mod subject;
pub mod sweep;
mod system;
mod tools;
pub mod tuning;
pub mod validate;

pub use driver::{Driver, Fill, Gaps, Load, Loaded, Rate, Watch};
pub use error::{Error, Kind};
pub use purge_method::PurgeMethod;

pub use blockio::Bytes;
pub use results;
pub use ssd;
pub use workload;
