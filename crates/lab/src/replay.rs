//! Traces as loads: which one a step replays, where it comes from, and what is said of it.
//!
//! Each job replays every T-th request of the trace, T jobs in all, in its order; so both drivers
//! issue the same. Without times each completion is answered by the job's next request, and at most
//! its queue is outstanding; with times requests are due when the trace made them, faster or slower
//! by a factor, or at a rate that the load states, and wait at the host where too many are
//! outstanding. A trace that ends before the step does begins again. Its space is placed on the
//! part of the drive that the load's workload addresses.

use std::fmt::Write as _;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use blockio::{Bytes, Nanos};
use serde::{Deserialize, Serialize};
use workload::trace::{self, Addresses, Beneath, Placement, Trace};
use workload::{Access, SizeShare, Span, Workload};

use crate::{Error, Kind, Rate};

/// Trace that a step to come replays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedReplay {
    /// Origin of the trace.
    pub source: Source,
    /// Mapping of its addresses onto the drive.
    pub addresses: Addresses,
}

/// Origin of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Made up from the shape of the step's workload.
    Shape,
    /// Read from a file.
    File(PathBuf),
}

/// A trace as a driver replays it.
#[derive(Clone, Copy, Debug)]
pub struct Replay<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// Mapping of its addresses onto the drive.
    pub addresses: Addresses,
    /// Times as fast as the trace was made, above 0; absent: as fast as requests are answered.
    pub speed: Option<f64>,
}

impl PlannedReplay {
    /// The trace of the step named `step`, which replays it with the shape of `workload`; `seed` is
    /// that of the plan, so that all steps of a workload replay the same one.
    ///
    /// # Errors
    /// Fails if its file is no trace, or its space is too small for its requests.
    pub(crate) fn trace(
        &self,
        step: &str,
        workload: Option<&Workload>,
        seed: u64,
    ) -> Result<Trace, Error> {
        match (&self.source, workload.and_then(|it| Some((it, it.trace.as_ref()?)))) {
            (Source::File(path), _) => read(path),
            (Source::Shape, Some((workload, shape))) => trace::synthesise(workload, shape, seed)
                .map_err(|source| {
                    Error::new(Kind::Input, format!("step {step}: making its trace"))
                        .source(source)
                        .hint("increase its space_gb")
                }),
            (Source::Shape, None) => {
                let text = format!("step {step}: its workload has no shape of a trace");
                Err(Error::new(Kind::Input, text).hint("give it a [trace], or replay a file"))
            }
        }
    }
}

/// Reads the trace in the file at `path`.
///
/// # Errors
/// Names file and line of what is wrong.
pub fn read(path: &Path) -> Result<Trace, Error> {
    let shown = path.display();
    let file = File::open(path)
        .map_err(|source| Error::new(Kind::Input, format!("opening {shown}")).source(source))?;
    trace::read(BufReader::new(file), &shown.to_string())
        .map_err(|source| Error::new(Kind::Input, "reading a trace").source(source))
}

/// Describes the requests of `trace` as a workload that is named after its file.
pub fn workload_of(trace: &Trace) -> Workload {
    let statistics = trace.statistics();
    let path = Path::new(trace.name());
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let sizes = statistics.sizes.iter().map(|size| SizeShare {
        bytes: u32::try_from(size.bytes).unwrap_or(u32::MAX),
        percent: size.percent,
    });
    Workload {
        schema: Workload::SCHEMA,
        title: format!("Trace {name}"),
        description: format!("{} requests of a trace.", statistics.requests),
        source: format!("{}, {}", trace.name(), trace.format()),
        name,
        read_percent: statistics.read_percent,
        access: Access::Random,
        sizes: sizes.collect(),
        align_bytes: 0,
        footprint_percent: 100.0,
        offset_percent: 0.0,
        range: None,
        compressible_percent: 0.0,
        random_map: false,
        shared_start: false,
        streams: Vec::new(),
        trace: None,
    }
}

impl Replay<'_> {
    /// Checks that the trace has what its replay needs.
    ///
    /// # Errors
    /// Fails if it is to be replayed at its own times and has none.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.speed.is_some() && self.trace.span() == Nanos::ZERO {
            let text = format!("trace {} has no times to replay it at", self.trace.name());
            return Err(Error::new(Kind::Input, text).hint("replay it without a speed"));
        }
        Ok(())
    }

    /// Requests a second of the trace at the speed of the replay; absent without times.
    pub(crate) fn rate(&self) -> Option<f64> {
        let count = self.trace.requests().len() as f64;
        Some(self.speed? * count / self.trace.span().as_secs_f64())
    }

    /// Description of a replay on a drive, or a part of one, of `span`, for the report; it came at
    /// `rate`, and `requests` of it were measured.
    pub fn how(&self, span: Span, rate: Option<Rate>, requests: u64) -> String {
        let Self { trace, addresses, speed } = *self;
        let made_up = if trace.is_synthetic() { "synthetic " } else { "" };
        let length = match trace.span() {
            Nanos::ZERO => "without times".to_owned(),
            span => format!("in {span}"),
        };
        let pace = match speed {
            None if rate.is_some() => "in its order at the rate of the load".to_owned(),
            None => "closed loop: each completion triggers the next request".to_owned(),
            Some(speed) => format!("at {speed} times its speed"),
        };
        let times = requests as f64 / trace.requests().len() as f64;
        format!(
            "{made_up}trace {} ({} requests over {} {length}), addresses {}, {pace}, {times:.2} \
             times over while measuring{}",
            trace.name(),
            trace.requests().len(),
            Bytes(trace.space_sectors() * blockio::SECTOR_BYTES),
            Placement::new(trace, addresses, span),
            self.skipped(),
        )
    }

    /// Lines of the trace's file that were left out, in words; empty where there are none.
    fn skipped(&self) -> String {
        let skipped = self.trace.skipped();
        let mut text = String::new();
        if let Some(first) = &skipped.first_broken {
            let (broken, line) = (skipped.broken, first.line);
            text = format!(", {broken} broken lines left out (first: line {line})");
        }
        if skipped.other > 0 {
            let _ =
                write!(text, ", {} requests that neither read nor write left out", skipped.other);
        }
        if skipped.widened > 0 {
            let _ = write!(text, ", {} requests widened to whole sectors", skipped.widened);
        }
        for Beneath { upper, lower } in &skipped.beneath {
            let _ = write!(text, ", requests of {lower} are those of {upper} again");
        }
        text
    }

    /// Due time of the request numbered `index`, over all repetitions, since the first one.
    ///
    /// Between the last request of a repetition and the first of the next lies the mean span.
    pub(crate) fn due(&self, index: u64) -> Nanos {
        let requests = self.trace.requests();
        let (count, span) = (requests.len() as u64, self.trace.span());
        let lap = span + span / (count - 1).max(1);
        let within = usize::try_from(index % count).expect("an index below a length");
        let at = lap * (index / count) + requests[within].at;
        Nanos::from_secs_f64(at.as_secs_f64() / self.speed.unwrap_or(1.0))
    }
}

#[cfg(test)]
mod tests;
