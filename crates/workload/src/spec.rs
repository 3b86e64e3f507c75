//! Workload: the mix, sizes and addresses of requests.

use blockio::SECTOR_BYTES;
use serde::{Deserialize, Serialize};

use crate::error::{Fault, parse};
use crate::prose::prose;
use crate::trace::TraceShape;
use crate::{SpecError, WorkloadStream, percent, stream};

/// Requests of one job; the number outstanding is set by the protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Version of this format, 1.
    pub schema: u32,
    /// Name by which protocols and figures refer to it, such as `4k-rand-write`.
    pub name: String,
    /// Heading on a report, such as `4K random write`.
    pub title: String,
    /// Description of the load that it stands for, one or two sentences.
    #[serde(deserialize_with = "prose")]
    pub description: String,
    /// Source of its numbers.
    #[serde(deserialize_with = "prose")]
    pub source: String,
    /// Share of requests that read, 0 to 100; the rest write.
    pub read_percent: f64,
    /// Order of addresses.
    pub access: Access,
    /// Transfer sizes and their shares of the requests; the shares sum to 100.
    pub sizes: Vec<SizeShare>,
    /// Every address is a multiple of this, in bytes. Zero: the smallest transfer size, as fio's
    /// `blockalign` has it.
    #[serde(default)]
    pub align_bytes: u32,
    /// Share of the drive that is addressed, from its start, above 0 to 100.
    #[serde(default = "whole")]
    pub footprint_percent: f64,
    /// Share by which a good compressor shortens each 4 KiB of the data, 0 to 100: 50 is 2:1. As
    /// fio's `buffer_compress_percentage`.
    #[serde(default)]
    pub compressible_percent: f64,
    /// Streams, each in a region of its own; empty unless `access` is of kind `streams`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<WorkloadStream>,
    /// Length, address space and timing of a trace that is synthesised from this workload; absent:
    /// it cannot be made into one.
    #[serde(default)]
    pub trace: Option<TraceShape>,
}

/// Order of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum Access {
    /// Uniform over the footprint.
    Random,
    /// Ascending; each job in a slice of its own, wrapping at its end.
    Sequential,
    /// Zipf-distributed ranks of a scrambled address space.
    Zipf {
        /// Skew, above 0 and below 10; 1.1 is strong. As fio's `random_distribution=zipf:theta`.
        theta: f64,
    },
    /// Two uniform regions: the first part of the footprint takes most of the requests.
    HotCold {
        /// Share of the requests that go to the hot region, 0 to 100.
        hot_request_percent: f64,
        /// Share of the footprint that is hot, above 0 and below 100.
        hot_space_percent: f64,
    },
    /// As each of the workload's `streams` says.
    Streams,
}

/// One transfer size of a mix.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeShare {
    /// Transfer size in bytes, a multiple of 512.
    pub bytes: u32,
    /// Share of the requests, above 0 to 100.
    pub percent: f64,
}

const fn whole() -> f64 {
    100.0
}

impl Workload {
    /// Version of this format.
    pub const SCHEMA: u32 = 1;

    /// Reads a workload from the text of a TOML file; `file` names it in errors.
    ///
    /// # Errors
    /// Says file, line, what is wrong and what would be right.
    pub fn parse(text: &str, file: &str) -> Result<Self, SpecError> {
        parse(text, file, Self::check)
    }

    /// Every address is a multiple of this, in bytes; never zero.
    pub fn alignment_bytes(&self) -> u32 {
        let smallest = self.sizes.iter().map(|size| size.bytes).min().unwrap_or(1);
        if self.align_bytes == 0 { smallest } else { self.align_bytes }
    }

    /// Mean transfer size, in bytes.
    pub fn mean_bytes(&self) -> f64 {
        self.sizes.iter().map(|size| f64::from(size.bytes) * size.percent / 100.0).sum()
    }

    /// True if every request writes.
    pub fn only_writes(&self) -> bool {
        self.read_percent <= 0.0
    }

    /// True if every request reads.
    pub fn only_reads(&self) -> bool {
        self.read_percent >= 100.0
    }

    /// Returns the workload that preconditions a drive for this one: for a load that only reads,
    /// the same requests as writes, else the load itself.
    #[must_use]
    pub fn preconditioning(&self) -> Self {
        if !self.only_reads() {
            return self.clone();
        }
        Self {
            name: format!("{}-precondition-100w", self.name),
            title: format!("{}, preconditioning by writes", self.title),
            read_percent: 0.0,
            trace: None,
            ..self.clone()
        }
    }

    pub(crate) fn check(&self) -> Result<(), Fault> {
        Fault::unless(
            self.schema == Self::SCHEMA,
            "schema",
            format!("schema is {}, this program reads {}", self.schema, Self::SCHEMA),
        )?;
        Fault::unless(!self.name.is_empty(), "name", "name is empty")?;
        percent::up_to_whole("read_percent", self.read_percent)?;
        percent::some("footprint_percent", self.footprint_percent)?;
        percent::up_to_whole("compressible_percent", self.compressible_percent)?;
        Fault::unless(
            self.align_bytes.is_multiple_of(SECTOR),
            "align_bytes",
            format!(
                "align_bytes is {}, not a multiple of {SECTOR_BYTES} (a whole sector)",
                self.align_bytes
            ),
        )?;
        check_sizes(&self.sizes)?;
        if let Some(trace) = &self.trace {
            trace.check().map_err(|fault| fault.within("trace"))?;
        }
        stream::check(self)?;
        self.access.check().map_err(|fault| fault.within("access"))
    }
}

/// Checks the transfer sizes of a mix, which are each given once and whose shares sum to 100.
pub(crate) fn check_sizes(sizes: &[SizeShare]) -> Result<(), Fault> {
    Fault::unless(!sizes.is_empty(), "sizes", "sizes are empty: give at least one")?;
    for (index, size) in sizes.iter().enumerate() {
        let place = format!("sizes.{index}");
        size.check().map_err(|fault| fault.within(&place))?;
        Fault::unless(
            sizes[..index].iter().all(|earlier| earlier.bytes != size.bytes),
            place,
            format!("size of {} bytes is given twice; add its shares up", size.bytes),
        )?;
    }
    percent::whole_sum("sizes", "sizes", sizes.iter().map(|size| size.percent))
}

impl SizeShare {
    pub(crate) fn check(&self) -> Result<(), Fault> {
        Fault::unless(
            self.bytes > 0 && self.bytes.is_multiple_of(SECTOR),
            "bytes",
            format!(
                "bytes is {}, not a multiple of {SECTOR_BYTES} (a whole sector) above 0",
                self.bytes
            ),
        )?;
        percent::some("percent", self.percent)
    }
}

impl Access {
    /// Skews from here on are refused: all requests would go to one address.
    const THETA_LIMIT: f64 = 10.0;

    pub(crate) fn check(&self) -> Result<(), Fault> {
        match *self {
            Self::Random | Self::Sequential | Self::Streams => Ok(()),
            Self::Zipf { theta } => Fault::unless(
                theta > 0.0 && theta < Self::THETA_LIMIT,
                "theta",
                format!("theta is {theta}, not above 0 and below {}", Self::THETA_LIMIT),
            ),
            Self::HotCold { hot_request_percent, hot_space_percent } => {
                percent::up_to_whole("hot_request_percent", hot_request_percent)?;
                percent::inner("hot_space_percent", hot_space_percent)
            }
        }
    }
}

/// The unit of sizes and alignments, in bytes.
const SECTOR: u32 = 512;
const _: () = assert!(SECTOR as u64 == SECTOR_BYTES);

#[cfg(test)]
mod tests;
