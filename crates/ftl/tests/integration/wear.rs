//! Wear levelling bounds the spread of erase counts.

use blockio::Rng;
use ftl::{Config, Ftl, Geometry, Lpn, NoMedia, SuperblockId, Watermarks};

use crate::SMALL;

const SUPERBLOCKS: u32 = 64;
const PAGES_PER_SUPERBLOCK: u32 = 64;

fn config(wear_spread_max: u32) -> Config {
    Config {
        geometry: Geometry {
            erase_blocks_per_plane: SUPERBLOCKS,
            pages_per_erase_block: PAGES_PER_SUPERBLOCK,
            page_kib: 4,
            ..SMALL.geometry
        },
        pages_logical: SUPERBLOCKS * PAGES_PER_SUPERBLOCK * 3 / 4,
        pages_stored_max: SUPERBLOCKS * PAGES_PER_SUPERBLOCK * 3 / 4,
        watermarks: Watermarks { low: 4, high: 6, burst: 1.0, price_max: 4.0, batch_pages: 1 },
        wear_spread_max,
        ..SMALL
    }
}

/// Writes everything once, then only the first tenth, `drive_writes` times the capacity in all.
fn write_skewed(ftl: &mut Ftl, drive_writes: u32) {
    let pages = ftl.config().pages_logical;
    (0..pages).for_each(|lpn| _ = ftl.write(0, Lpn(lpn), &mut NoMedia));
    let mut rng = Rng::new(7);
    for _ in 0..pages * drive_writes {
        let lpn = u32::try_from(rng.below(u64::from(pages / 10))).expect("below a u32");
        ftl.write(0, Lpn(lpn), &mut NoMedia);
    }
}

fn erase_count_spread(ftl: &Ftl) -> u32 {
    let superblocks = || (0..SUPERBLOCKS).map(SuperblockId);
    let counts = || superblocks().map(|id| ftl.superblock(id).erase_count);
    counts().max().unwrap_or(0) - counts().min().unwrap_or(0)
}

fn spread_after(wear_spread_max: u32, drive_writes: u32) -> u32 {
    let mut ftl = Ftl::format(&config(wear_spread_max)).expect("a feasible format");
    write_skewed(&mut ftl, drive_writes);
    erase_count_spread(&ftl)
}

#[test]
fn static_levelling_bounds_the_spread_for_ever() {
    // One erase may happen between the moment of excess and the choice of the next victim, for
    // each superblock that is free, open or being reclaimed.
    for wear_spread_max in [4, 16] {
        for drive_writes in [20, 80] {
            let spread = spread_after(wear_spread_max, drive_writes);
            assert!(spread <= wear_spread_max + 6, "{wear_spread_max}: {spread}");
        }
    }
}

#[test]
fn without_static_levelling_the_spread_grows() {
    let (early, late) = (spread_after(0, 20), spread_after(0, 80));
    assert!(late > 3 * early, "{early} then {late}");
}

#[test]
fn the_cost_of_static_levelling_is_counted_apart() {
    let mut ftl = Ftl::format(&config(16)).expect("a feasible format");
    write_skewed(&mut ftl, 80);
    let counters = ftl.counters();
    // Nine tenths of the data are cold; levelling moves each of them now and then, not all the
    // time.
    assert!(counters.pages_wear > 0);
    assert!(counters.pages_wear < counters.pages_host / 10, "{counters:?}");
}
