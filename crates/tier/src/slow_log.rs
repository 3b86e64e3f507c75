//! A log on the slow class: the map and the garbage collection of the flash translation layer, with
//! bands of the class in place of superblocks.
//!
//! The slow class is written in whole units, band by band. Blocks that do not fill a unit yet stay
//! in memory of the host, less than one unit for the host and one for garbage collection.

use ftl::{Config, Counters, Ftl, Geometry, Lpn, MediaOp, ReclaimUnitHandles, VictimPolicy};
use ftl::{SuperblockId, Watermarks};

use crate::policy::{Class, Policy, TierError};
use crate::queues::Block;
use crate::transfer::{Direction, Transfer, push};

/// Thresholds of garbage collection: bands of the host and of relocation are open.
const WATERMARKS: Watermarks =
    Watermarks { low: 3, high: 5, burst: 0.5, price_max: 1000.0, batch_pages: 64 };

/// A log on the slow class.
#[derive(Clone, Debug)]
pub(crate) struct SlowLog {
    ftl: Ftl,
    unit_blocks: u32,
    units_per_band: u32,
    ops: Vec<MediaOp>,
}

impl SlowLog {
    /// An empty log on a class of `blocks` blocks, which is 1/`time_lapse` of it.
    pub(crate) fn new(policy: &Policy, blocks: u32, time_lapse: u32) -> Result<Self, TierError> {
        let unit_blocks = policy.destage_kib / 4;
        let band_blocks = policy.band_mib.saturating_mul(256);
        let (bands, units_per_band) = (blocks / band_blocks, band_blocks / unit_blocks);
        let logical = logical_bands(policy, f64::from(bands), time_lapse) * f64::from(band_blocks);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
        let logical = logical as u32;
        let config = Config {
            geometry: Geometry {
                banks: 1,
                dies_per_bank: 1,
                planes_per_die: 1,
                erase_blocks_per_plane: bands,
                pages_per_erase_block: units_per_band,
                page_kib: policy.destage_kib,
                indirection_kib: 4,
                stripe_dies: 0,
            },
            pages_logical: logical,
            pages_stored_max: logical,
            extents_per_page: 1,
            victim: VictimPolicy::Greedy,
            watermarks: WATERMARKS,
            wear_spread_max: 0,
            handles: ReclaimUnitHandles::ONE,
            slc_cache: None,
            seed: 0,
        };
        let ftl = Ftl::format(&config).map_err(|error| {
            let value = format!("{} MiB of {blocks} blocks of 4 KiB", policy.band_mib);
            let limit = format!(
                "a band that fits often enough: {error}; a smaller band_mib, more \
                                 spare_percent or a smaller time lapse leaves more bands"
            );
            TierError::new("band_mib", &value, limit)
        })?;
        Ok(Self { ftl, unit_blocks, units_per_band, ops: Vec::new() })
    }

    /// Blocks that the host sees.
    pub(crate) const fn blocks(&self) -> u32 {
        self.ftl.config().pages_logical
    }

    /// Place of a block on the class; none if it was never written.
    pub(crate) fn place(&self, block: Block) -> Option<u32> {
        self.ftl.lookup(Lpn(block)).map(|ppn| ppn.0)
    }

    /// Appends a block; adds what garbage collection reads and what is written to `reads` and
    /// `writes`.
    pub(crate) fn append(
        &mut self,
        block: Block,
        reads: &mut Vec<Transfer>,
        writes: &mut Vec<Transfer>,
    ) {
        self.ftl.write(0, Lpn(block), &mut self.ops);
        for op in self.ops.drain(..) {
            match op {
                MediaOp::Relocate { from, .. } => {
                    push(reads, Class::Slow, Direction::Read, from.0);
                }
                MediaOp::Program { superblock: SuperblockId(band), row, .. } => {
                    let unit = u64::from(band) * u64::from(self.units_per_band) + u64::from(row);
                    let first = unit * u64::from(self.unit_blocks);
                    let first = u32::try_from(first).expect("checked: blocks are counted by a u32");
                    let (class, direction) = (Class::Slow, Direction::Write);
                    writes.push(Transfer { class, direction, first, blocks: self.unit_blocks });
                }
                // A band is written anew as a whole: nothing is to be erased before.
                MediaOp::Erase { .. } => {}
            }
        }
    }

    /// Forgets a block.
    pub(crate) fn trim(&mut self, block: Block) {
        self.ftl.trim(Lpn(block));
    }

    /// Blocks appended by the host and by garbage collection.
    pub(crate) fn counters(&self) -> Counters {
        self.ftl.counters()
    }
}

/// User capacity of a log of `bands` bands, in bands.
///
/// Bands keep their size in time lapse, and as many as ever are open or free. So the data of the
/// host has the share of all other bands that it has at full scale: garbage collection is as dear.
fn logical_bands(policy: &Policy, bands: f64, time_lapse: u32) -> f64 {
    let held = f64::from(WATERMARKS.low + WATERMARKS.high) / 2.0;
    let whole = bands * f64::from(time_lapse);
    let share = whole * (1.0 - policy.spare_percent / 100.0) / (whole - held);
    ((bands - held) * share).max(0.0)
}
