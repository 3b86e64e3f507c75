//! Workload: the mix, sizes and addresses of requests.

use blockio::SECTOR_BYTES;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::error::{Fault, parse};
use crate::mix::{SECTOR, check_sizes};
use crate::prose::prose;
use crate::trace::TraceShape;
use crate::{Access, SizeShare, SpecError, WorkloadStream, percent, stream};

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
    /// Share of the drive that is addressed, above 0 to 100.
    #[serde(default = "whole")]
    pub footprint_percent: f64,
    /// Share of the drive before the one that is addressed, from 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub offset_percent: f64,
    /// Part of the drive that is addressed instead, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<ByteRange>,
    /// Share by which a good compressor shortens each 4 KiB of the data, 0 to 100: 50 is 2:1. As
    /// fio's `buffer_compress_percentage`.
    #[serde(default)]
    pub compressible_percent: f64,
    /// True if random requests address each place once before any a second time, as those of fio
    /// without `norandommap`. Absent: false, every address is drawn independently.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub random_map: bool,
    /// True if all jobs of a sequential load begin at the start of the footprint, as those of fio
    /// without `offset_increment`. Absent: false, each job has a slice of its own.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub shared_start: bool,
    /// Streams, each in a region of its own; empty unless `access` is of kind `streams`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<WorkloadStream>,
    /// Length, address space and timing of a trace that is synthesised from this workload; absent:
    /// it cannot be made into one.
    #[serde(default)]
    pub trace: Option<TraceShape>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(number: &f64) -> bool {
    *number <= 0.0
}

const fn whole() -> f64 {
    100.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
const fn is_unset(flag: &bool) -> bool {
    !*flag
}

/// Part of a drive in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByteRange {
    /// Bytes before it, a multiple of the alignment.
    #[serde(default)]
    pub offset_bytes: u64,
    /// Its size in bytes, above 0; absent: up to the end of the drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
}

/// Range of a workload that a drive does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "workload `{workload}` addresses {} from {offset_bytes} on, the drive has {capacity_bytes} \
     bytes",
    size_bytes.map_or_else(|| "what follows".into(), |size| format!("{size} bytes"))
)]
pub struct RangeError {
    /// Name of the workload.
    pub workload: String,
    /// Start of the range.
    pub offset_bytes: u64,
    /// Its size; absent: up to the end of the drive.
    pub size_bytes: Option<u64>,
    /// Size of the drive.
    pub capacity_bytes: u64,
}

/// Largest sum of the roundings of two shares, in percent.
const NUDGE_PERCENT_MAX: f64 = 1e-4;

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
        self.check_place()?;
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
        self.check_order()?;
        self.access.check().map_err(|fault| fault.within("access"))
    }

    fn check_place(&self) -> Result<(), Fault> {
        percent::up_to_whole("offset_percent", self.offset_percent)?;
        Fault::unless(
            self.offset_percent + self.footprint_percent <= 100.0 + NUDGE_PERCENT_MAX,
            "footprint_percent",
            format!(
                "footprint_percent is {} after an offset_percent of {}: more than the drive",
                self.footprint_percent, self.offset_percent
            ),
        )?;
        let is_placed = self.offset_percent > 0.0 || self.range.is_some();
        Fault::unless(
            !is_placed || (self.streams.is_empty() && self.trace.is_none()),
            "range",
            "a workload with streams or a trace begins at the start of the drive",
        )?;
        let Some(ByteRange { offset_bytes, size_bytes }) = self.range else { return Ok(()) };
        Fault::unless(
            self.footprint_percent >= 100.0 && self.offset_percent <= 0.0,
            "range",
            "range stands beside footprint_percent or offset_percent: give bytes or shares",
        )?;
        Fault::unless(
            offset_bytes.is_multiple_of(u64::from(self.alignment_bytes())),
            "range",
            format!("range begins at {offset_bytes}, between aligned addresses"),
        )?;
        Fault::unless(size_bytes != Some(0), "range", "range has a size_bytes of 0")
    }

    /// The workload on a drive of that many bytes: its range becomes shares of the drive.
    ///
    /// # Errors
    /// Says that the range is beyond the end of the drive.
    pub fn placed(&self, capacity_bytes: u64) -> Result<Self, RangeError> {
        let Some(ByteRange { offset_bytes, size_bytes }) = self.range else {
            return Ok(self.clone());
        };
        let rest = capacity_bytes.saturating_sub(offset_bytes);
        let size = size_bytes.unwrap_or(rest);
        if size == 0 || size > rest {
            let workload = self.name.clone();
            return Err(RangeError { workload, offset_bytes, size_bytes, capacity_bytes });
        }
        // Where shares become whole bytes again, they are rounded down.
        let percent = |bytes: u64| (bytes as f64 + 0.25) / capacity_bytes as f64 * 100.0;
        Ok(Self {
            range: None,
            offset_percent: if offset_bytes == 0 { 0.0 } else { percent(offset_bytes) },
            footprint_percent: if size == capacity_bytes { 100.0 } else { percent(size) },
            ..self.clone()
        })
    }

    fn check_order(&self) -> Result<(), Fault> {
        Fault::unless(
            !self.random_map || (self.access == Access::Random && self.sizes.len() == 1),
            "random_map",
            "random_map is true, which only random access of one transfer size can have",
        )?;
        Fault::unless(
            !self.shared_start || self.access == Access::Sequential,
            "shared_start",
            "shared_start is true, which only sequential access can have",
        )
    }

    /// Slices of the footprint that `jobs` address, one each: one for all of them unless access is
    /// sequential and every job has its own.
    pub const fn slices(&self, jobs: u16) -> u16 {
        if matches!(self.access, Access::Sequential) && !self.shared_start { jobs } else { 1 }
    }
}

#[cfg(test)]
mod tests;
