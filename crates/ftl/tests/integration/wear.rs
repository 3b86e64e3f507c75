//! Wear levelling bounds the spread of erase counts, and worn-out superblocks can be retired.

use blockio::Rng;
use ftl::{
    Config, DieId, EraseBlockReplacement, Ftl, Geometry, Lpn, NoMedia, SuperblockId,
    SuperblockState, VictimPolicy, Watermarks,
};

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
    let pages = ftl.pages_logical();
    (0..pages).for_each(|lpn| _ = ftl.write(Lpn(lpn), &mut NoMedia));
    let mut rng = Rng::new(7);
    for _ in 0..pages * drive_writes {
        let lpn = u32::try_from(rng.below(u64::from(pages / 10))).expect("below a u32");
        ftl.write(Lpn(lpn), &mut NoMedia);
    }
}

fn erase_count_spread(ftl: &Ftl) -> u32 {
    let counts = || (0..ftl.superblocks()).map(|id| ftl.erase_count(SuperblockId(id)));
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

#[test]
fn retiring_stops_where_the_user_capacity_would_suffer() {
    let mut ftl = Ftl::format(&config(0)).expect("a feasible format");
    write_skewed(&mut ftl, 2);
    let mut retired = 0;
    while let Some(free) = first_free(&ftl) {
        if ftl.retire(free, &mut NoMedia).is_err() {
            break;
        }
        retired += 1;
        write_skewed(&mut ftl, 1);
    }
    let needed = ftl.pages_logical() / PAGES_PER_SUPERBLOCK + 1;
    assert_eq!(retired, SUPERBLOCKS - config(0).superblocks_reserved() - needed);
}

#[test]
fn a_spare_takes_the_place_of_a_bad_erase_block_until_the_die_has_none() {
    let config = Config { spares_per_die: 2, ..config(0) };
    let mut ftl = Ftl::format(&config).expect("a feasible format");
    let free = first_free(&ftl).expect("nothing written yet");
    let mut replace =
        |die| ftl.replace_erase_block(free, DieId(die), &mut NoMedia).expect("room for one less");
    assert_eq!(replace(0), EraseBlockReplacement::Spare { left: 1 });
    assert_eq!(replace(0), EraseBlockReplacement::Spare { left: 0 });
    assert_eq!(replace(0), EraseBlockReplacement::Retired);
    assert_eq!(ftl.superblock_state(free), SuperblockState::Bad);
}

#[test]
fn relocation_finds_room_after_everything_free_was_retired() {
    let config = Config {
        victim: VictimPolicy::Fifo,
        pages_logical: SUPERBLOCKS * PAGES_PER_SUPERBLOCK / 2,
        pages_stored_max: SUPERBLOCKS * PAGES_PER_SUPERBLOCK / 2,
        extents_per_page: 1,
        ..config(0)
    };
    for writes in 0..PAGES_PER_SUPERBLOCK {
        let mut ftl = Ftl::format(&config).expect("a feasible format");
        write_skewed(&mut ftl, 1);
        (0..writes).for_each(|lpn| _ = ftl.write(Lpn(lpn), &mut NoMedia));
        let free = ftl.superblocks_free();
        for _ in 0..free {
            let superblock = first_free(&ftl).expect("relocation keeps some free");
            ftl.retire(superblock, &mut NoMedia).expect("half of the drive is spare");
        }
        write_skewed(&mut ftl, 1);
    }
}

fn first_free(ftl: &Ftl) -> Option<SuperblockId> {
    (0..ftl.superblocks())
        .map(SuperblockId)
        .find(|id| ftl.superblock_state(*id) == SuperblockState::Free)
}
