//! Workloads and protocols: the requests that a drive is measured with.
//!
//! A [`Workload`] says what each request looks like (mix, sizes, addresses); a [`Protocol`] says
//! which workloads run in which order, how loaded and for how long. Both are TOML files, checked on
//! reading. A [`Generator`] turns a workload into requests, the same ones for every driver.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod application;
pub mod catalogue;
mod error;
pub mod fio;
mod generator;
mod mix;
mod percent;
mod prose;
mod protocol;
pub mod recording;
mod spec;
mod stream;
pub mod trace;
pub mod vdbench;
mod zipf;

pub use application::{Application, Steps};
pub use error::SpecError;
pub use generator::{GeneratedRequest, Generator, Job, Span, SpanError};
pub use mix::{Access, SizeShare};
pub use protocol::{
    Curve, Gaps, Matrix, Measure, Nodes, Precondition, Protocol, PublishedMapping, PublishedPhase,
    RealLength, ReplayedTrace, Rounds, Suite, TrackedMetric, TrackedNumber,
};
pub use spec::{ByteRange, RangeError, Workload};
pub use stream::WorkloadStream;
pub use trace::{TracePhase, TraceShape};
