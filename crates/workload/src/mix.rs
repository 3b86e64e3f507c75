//! Parts of a mix of requests: the order of their addresses, and their transfer sizes.

use blockio::SECTOR_BYTES;
use serde::{Deserialize, Serialize};

use crate::error::Fault;
use crate::percent;

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
pub(crate) const SECTOR: u32 = 512;
const _: () = assert!(SECTOR as u64 == SECTOR_BYTES);
