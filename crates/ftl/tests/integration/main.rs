//! The translation layer beside oracles and closed forms, through what the crate offers.
//!
//! One program: it is linked once, and its tests share the processors to the end.

mod analytic;
mod capacity;
mod compression;
mod condemned;
mod degraded_rows;
mod lost_dies;
mod oracle;
mod owing;
mod p2l;
mod placement;
mod wear;

use blockio::Bytes;
use ftl::{
    Config, Debt, Ftl, Geometry, Lpn, Media, Ppn, ReclaimUnitHandles, RecoveredSuperblock,
    Recovery, VictimPolicy, Watermarks,
};

/// A drive of one die. Tests name what is different in theirs.
const SMALL: Config = Config {
    geometry: Geometry {
        banks: 1,
        dies_per_bank: 1,
        planes_per_die: 1,
        erase_blocks_per_plane: 24,
        pages_per_erase_block: 8,
        page_kib: 16,
        indirection_kib: 4,
        stripe_dies: 0,
    },
    pages_logical: 440,
    pages_stored_max: 440,
    extents_per_page: 1,
    victim: VictimPolicy::Greedy,
    watermarks: Watermarks { low: 4, high: 7, burst: 0.1, price_max: f64::MAX, batch_pages: 1 },
    wear_spread_max: 0,
    handles: ReclaimUnitHandles::ONE,
    slc_cache: None,
    seed: 1,
};

/// Page of the small drive in a load that comes back to all of them.
fn page(round: u32) -> Lpn {
    Lpn((round.wrapping_mul(2_654_435_761) >> 8) % SMALL.pages_logical)
}

/// Bytes of a page that is stored whole.
const PAGE: Bytes = Bytes(4096);

/// A drive whose owner relocates, with nothing written.
fn indebted(config: &Config) -> Ftl<Debt> {
    let superblocks = vec![RecoveredSuperblock::default(); config.geometry.superblocks() as usize];
    let recovery = Recovery::new(config).expect("a feasible format");
    recovery.finish(&superblocks, &[]).expect("nothing is mapped")
}

/// Moves a page of the victim; what was erased may be opened.
fn relocate_next(ftl: &mut Ftl<Debt>, media: &mut impl Media) {
    ftl.relocate_next(media);
    ftl.release_erased(ftl.held_erased().len());
}

/// Writes a page that takes `extent`, and pays at once what it owes.
fn write_paid(ftl: &mut Ftl<Debt>, lpn: Lpn, extent: Bytes, media: &mut impl Media) -> Ppn {
    while ftl.needs_room() {
        relocate_next(ftl, media);
    }
    let ppn = ftl.write_owing(lpn, extent, media);
    while ftl.owes_batches(1) {
        relocate_next(ftl, media);
    }
    ppn
}
