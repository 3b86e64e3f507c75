//! A drive made of two drives: a fast class before a slow one.

use blockio::SECTOR_BYTES;
use serde::Deserialize;
use tier::{BLOCK_BYTES, Policy};

/// Two drives as one, each named as one of the catalogue or described in place.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierSpec {
    /// Name of the drive that is the fast class.
    pub fast: String,
    /// Name of the drive that is the slow class.
    pub slow: String,
    /// File of the fast class, where it is no drive of the catalogue.
    #[serde(default)]
    pub fast_file: Option<String>,
    /// File of the slow class, where it is no drive of the catalogue.
    #[serde(default)]
    pub slow_file: Option<String>,
    /// Part of the fast class that is used, in decimal GB; all of it if absent.
    pub fast_gb: Option<f64>,
    /// Policy: what goes to which class.
    pub policy: Policy,
    /// Source.
    pub source: String,
}

impl TierSpec {
    /// Blocks of the fast class that are used, of those that it has, at 1/`time_lapse`.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a capacity")]
    pub(crate) fn fast_blocks(&self, sectors: u64, time_lapse: u32) -> u64 {
        let all = sectors * SECTOR_BYTES / BLOCK_BYTES;
        let used = self
            .fast_gb
            .map_or(all, |gb| (gb * 1e9 / BLOCK_BYTES as f64 / f64::from(time_lapse)) as u64);
        used.min(all)
    }
}
