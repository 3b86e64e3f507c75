//! Workload: the mix, sizes and addresses of requests.

use blockio::SECTOR_BYTES;
use serde::{Deserialize, Serialize};

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
    /// Share of the drive that is addressed, from its start, above 0 to 100.
    #[serde(default = "whole")]
    pub footprint_percent: f64,
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

const fn whole() -> f64 {
    100.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
const fn is_unset(flag: &bool) -> bool {
    !*flag
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
        self.check_order()?;
        self.access.check().map_err(|fault| fault.within("access"))
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
