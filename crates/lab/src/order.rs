//! Orders: what is asked of the lab, as values that the command line and the package of Python make
//! of their arguments.
//!
//! ```text
//! arguments ──► RunOrder, ReviewOrder ──► Plan ──► runner
//! ```

use std::path::PathBuf;

use serde::Deserialize;
use workload::trace::{Addresses, Trace};
use workload::{Protocol, SizeShare, Workload};

use crate::library::Library;
use crate::plan::{OneLoad, Pace, Plan};
use crate::replay::{self, PlannedReplay, Source};
use crate::{Error, Gaps, Kind, Rate};

/// Largest transfer size, in bytes.
const TRANSFER_MAX: u64 = 1 << 30;

/// Order of one load on one drive.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunOrder {
    /// Name of a workload, or path of its file.
    pub workload: String,
    /// Transfer size in bytes that replaces those of the workload.
    pub transfer_bytes: Option<u64>,
    /// Jobs, 1 to 1024; absent: [`RunOrder::THREADS`].
    pub threads: Option<u16>,
    /// Requests that each job keeps outstanding, 1 to 4096.
    pub queue_per_thread: u16,
    /// Measurement in protocol seconds, above 0.
    pub duration_s: f64,
    /// Preconditioning in protocol seconds; 0 for none.
    pub precondition_s: f64,
    /// Arrival rate in requests per second; absent: a closed loop.
    pub rate: Option<f64>,
    /// Compressibility of the data in percent; absent: the workload's own.
    pub compressible_percent: Option<f64>,
    /// Path of a trace, which is replayed instead of the workload.
    pub trace: Option<PathBuf>,
    /// Factor by which the trace is replayed faster than it was recorded; absent: a closed loop.
    pub speed: Option<f64>,
    /// True if addresses of the trace are wrapped around the drive, not scaled to it.
    pub wrap: bool,
}

/// Order of a whole protocol.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewOrder {
    /// Name of a protocol, or path of its file.
    pub protocol: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// Path of a trace that replaces the protocol's own.
    pub trace: Option<PathBuf>,
    /// Compressibility of the data in percent; absent: the workloads' own.
    pub compressible_percent: Option<f64>,
    /// Length of every preconditioning in protocol seconds; absent: the protocol's own.
    pub precondition_s: Option<f64>,
}

impl RunOrder {
    /// Jobs where none were ordered.
    pub const THREADS: u16 = 16;

    /// The trace that is replayed; absent where there is none.
    ///
    /// # Errors
    /// Names file and line of what is wrong.
    pub fn trace(&self) -> Result<Option<Trace>, Error> {
        self.trace.as_deref().map(replay::read).transpose()
    }

    /// The plan of this order on `threads` jobs, whose workload is that of the `trace` if there is
    /// one.
    ///
    /// # Errors
    /// Names the number that is out of range, or the workload that is not there.
    pub fn plan(&self, threads: u16, trace: Option<&Trace>, seed: u64) -> Result<Plan, Error> {
        let pace = self.rate.map(|iops| Pace::Fixed(Rate { iops, gaps: Gaps::Exponential }));
        let addresses = if self.wrap { Addresses::Wrapped } else { Addresses::Scaled };
        let replay =
            self.trace.clone().map(|path| PlannedReplay { source: Source::File(path), addresses });
        let load = OneLoad {
            threads,
            queue_per_thread: self.queue_per_thread,
            precondition_s: self.precondition_s,
            duration_s: self.duration_s,
            pace: pace.or(self.speed.map(|speed| Pace::Trace { speed })),
            replay,
        };
        self.check(threads)?;
        let workload = trace.map_or_else(|| self.workload(), |it| Ok(replay::workload_of(it)))?;
        Ok(with_data(Plan::of_one(&workload, &load, seed), self.compressible_percent))
    }

    /// The workload, with the one transfer size that was ordered.
    fn workload(&self) -> Result<Workload, Error> {
        let workload = Library::of_user().find::<Workload>(&self.workload)?.value;
        let Some(size) = self.transfer_bytes else { return Ok(workload) };
        let whole = size > 0 && size % blockio::SECTOR_BYTES == 0 && size <= TRANSFER_MAX;
        let bytes = u32::try_from(size).ok().filter(|_| whole).ok_or_else(|| {
            let text = format!("transfers of {size} bytes: not a multiple of 512 up to 1 GiB");
            Error::new(Kind::Input, text).hint("use a size such as 4k, of whole sectors")
        })?;
        Ok(Workload {
            title: format!("{} at {}", workload.title, blockio::Bytes(size)),
            sizes: vec![SizeShare { bytes, percent: 100.0 }],
            align_bytes: 0,
            ..workload
        })
    }

    /// Refuses numbers outside the range of a load.
    fn check(&self, threads: u16) -> Result<(), Error> {
        let refused = |name: &str, value: f64, range: &str| {
            Err(Error::new(Kind::Input, format!("{name} is {value}, must be {range}")))
        };
        if self.trace.is_some() && (self.rate.is_some() || self.transfer_bytes.is_some()) {
            let text = "a rate or a transfer size beside a trace";
            return Err(Error::new(Kind::Input, text).hint("leave them out: the trace has its own"));
        }
        if self.trace.is_none() && (self.speed.is_some() || self.wrap) {
            let text = "speed or wrap without a trace";
            return Err(Error::new(Kind::Input, text).hint("give a trace, or leave them out"));
        }
        let is_positive = |value: &f64| *value > 0.0 && value.is_finite();
        if !(1..=1024).contains(&threads) {
            return refused("threads", threads.into(), "from 1 to 1024");
        }
        if !(1..=4096).contains(&self.queue_per_thread) {
            return refused("queue", self.queue_per_thread.into(), "from 1 to 4096");
        }
        if !is_positive(&self.duration_s) {
            return refused("runtime", self.duration_s, "above 0 seconds");
        }
        if !(self.precondition_s >= 0.0 && self.precondition_s.is_finite()) {
            return refused("precondition", self.precondition_s, "0 seconds or more");
        }
        if let Some(rate) = self.rate.filter(|it| !is_positive(it)) {
            return refused("rate", rate, "above 0 requests a second");
        }
        if let Some(speed) = self.speed.filter(|it| !is_positive(it)) {
            return refused("speed", speed, "above 0");
        }
        check_percent(self.compressible_percent)
    }
}

impl ReviewOrder {
    /// The plan of the protocol with the trace, data and preconditionings that were ordered. It is
    /// made for a drive by [`crate::subject::Subject::plan`].
    ///
    /// # Errors
    /// Names what is not there or out of range, before anything is written.
    pub fn plan(&self) -> Result<Plan, Error> {
        check_percent(self.compressible_percent)?;
        let library = Library::of_user();
        let mut plan = library.plan(&library.find::<Protocol>(&self.protocol)?.value, self.seed)?;
        if let Some(path) = &self.trace {
            // Read here once, so that a broken one is told before anything is purged.
            let workload = replay::workload_of(&replay::read(path)?);
            let path = path.canonicalize().unwrap_or_else(|_| path.clone());
            plan = plan.with_trace(&path, &workload)?;
        }
        let plan = with_data(plan, self.compressible_percent);
        match self.precondition_s {
            Some(span_s) => plan.with_precondition(span_s),
            None => Ok(plan),
        }
    }
}

fn with_data(plan: Plan, compressible_percent: Option<f64>) -> Plan {
    match compressible_percent {
        Some(percent) => plan.with_compressible(percent),
        None => plan,
    }
}

fn check_percent(percent: Option<f64>) -> Result<(), Error> {
    match percent.filter(|it| !(0.0..=100.0).contains(it)) {
        Some(percent) => {
            let text = format!("compressible is {percent}, must be from 0 to 100 percent");
            Err(Error::new(Kind::Input, text))
        }
        None => Ok(()),
    }
}
