//! What was measured.
//!
//! A [`Run`] is one drive, in one format, behind one host, through one protocol: a folder with
//! `run.json` (this schema) and two Parquet files (interval samples and latency histograms). The
//! file outlives the code: report, Python and next year's comparison read it without the lab.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod run;
mod sample;

pub use run::{
    Environment, Figure, HostSheet, Run, SheetRow, Step, StepKind, Steady, SteadyVariable, Target,
    TargetKind, Warning, WarningKind,
};
pub use sample::{LatencySummary, NandWrites, Sample, Summary};
