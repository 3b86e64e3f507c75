//! One workload: what a request looks like.

use serde::{Deserialize, Serialize};

/// What one job's requests look like; how many are outstanding is the protocol's affair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Version of this format, 1.
    pub schema: u32,
    /// Name by which protocols and figures refer to it, such as `4k-rand-write`.
    pub name: String,
    /// Heading on a report, such as `4K random write`.
    pub title: String,
    /// What it stands for, one or two sentences.
    pub description: String,
    /// Where its numbers come from.
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
