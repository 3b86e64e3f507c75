//! SLC cache of a drive of TLC or QLC.

use ftl::{Geometry, SlcCache};
use serde::Deserialize;

use crate::spec::DriveSpec;

/// Part of the NAND that host writes fill with one bit per cell.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlcCacheSpec {
    /// Data that the cache holds however full the drive is, in decimal GB of the drive.
    pub static_gb: f64,
    /// Data that it holds beyond that while the drive is empty, in decimal GB.
    pub dynamic_gb: f64,
    /// Stored share of the user capacity from which on `dynamic_gb` counts no more, in percent.
    pub full_at_percent: f64,
    /// tR of a page in SLC mode, in microseconds.
    pub t_read_us: f64,
    /// tPROG of a page in SLC mode, on every plane of a die, in microseconds.
    pub t_program_us: f64,
    /// Time without a write after which the cache is folded, in milliseconds.
    pub idle_ms: f64,
    /// Source.
    pub source: String,
}

impl DriveSpec {
    /// The SLC cache of each module of `geometry`, at 1/`time_lapse` of its capacity.
    pub(super) fn slc_cache_of_module(
        &self,
        geometry: &Geometry,
        time_lapse: u32,
    ) -> Option<SlcCache> {
        let cache = self.slc_cache.as_ref()?;
        let bits_per_cell = self.geometry.pages_per_program;
        let superblock = u64::from(geometry.pages_per_superblock()) * geometry.page_bytes();
        let of_each = superblock as f64 / f64::from(bits_per_cell.max(1));
        let parts = f64::from(self.modules.count) * f64::from(time_lapse);
        // A cache of any size has a superblock, however small the scale.
        let superblocks = |gb: f64| match gb * 1e9 / parts / of_each {
            none if none <= 0.0 => 0,
            some => super::round(some).max(1),
        };
        Some(SlcCache {
            bits_per_cell,
            superblocks_static: superblocks(cache.static_gb),
            superblocks_dynamic: superblocks(cache.dynamic_gb),
            full_at: cache.full_at_percent / 100.0,
        })
    }
}
