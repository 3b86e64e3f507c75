//! Placement by reclaim unit handles: isolation, write amplification of two streams that are told
//! apart, and the two effects that WARP [song-2026] found on drives and named.

#![expect(clippy::print_stdout, reason = "the figures are worth seeing, with --nocapture")]

use blockio::Rng;
use ftl::{
    Config, Ftl, Geometry, HandleCounters, Isolation, Lpn, NoMedia, ReclaimUnitHandles,
    VictimPolicy, Watermarks,
};

use crate::SMALL;

const PAGES_PER_SUPERBLOCK: u32 = 256;

/// A drive of so many superblocks, 7 % larger than what the host sees of it.
///
/// Relocation works only when it must: at `low` superblocks of room.
fn config(
    (superblocks, low): (u32, u32),
    handles: ReclaimUnitHandles,
    victim: VictimPolicy,
) -> Config {
    let pages_logical = superblocks * PAGES_PER_SUPERBLOCK / 107 * 100;
    Config {
        geometry: Geometry {
            erase_blocks_per_plane: superblocks,
            pages_per_erase_block: PAGES_PER_SUPERBLOCK,
            page_kib: 4,
            ..SMALL.geometry
        },
        pages_logical,
        pages_stored_max: pages_logical,
        victim,
        watermarks: Watermarks { low, high: low + 1, burst: 0.1, price_max: 0.0, batch_pages: 1 },
        handles,
        ..SMALL
    }
}

const fn handles(count: u8, isolation: Isolation) -> ReclaimUnitHandles {
    ReclaimUnitHandles { count, isolation }
}

/// Order in which a stream writes the pages of its region.
enum Order {
    Random,
    /// In runs of so many pages.
    Sequential(u32),
}

/// Region of a drive that is written through one handle.
struct Stream {
    /// First page and pages of its region.
    first: u32,
    pages: u32,
    order: Order,
    /// Share of all pages that the host writes.
    share: f64,
    handle: u8,
    next: u32,
}

impl Stream {
    fn new(region: std::ops::Range<u32>, order: Order, share: f64, handle: u8) -> Self {
        let pages = region.end - region.start;
        Self { first: region.start, pages, order, share, handle, next: 0 }
    }

    /// Pages of one turn.
    fn run(&self) -> u32 {
        match self.order {
            Order::Random => 1,
            Order::Sequential(run) => run,
        }
    }

    fn next(&mut self, rng: &mut Rng) -> Lpn {
        let page = match self.order {
            Order::Random => u32::try_from(rng.below(self.pages.into())).expect("below a u32"),
            Order::Sequential(_) => {
                self.next = (self.next + 1) % self.pages;
                self.next
            }
        };
        Lpn(self.first + page)
    }
}

/// Writes of all handles over the second half of `drive_writes`, by handle.
fn measure(config: &Config, streams: &mut [Stream], drive_writes: u32) -> Vec<HandleCounters> {
    let mut ftl = Ftl::format(config).expect("a feasible format");
    let mut rng = Rng::new(1);
    let turns: Vec<f64> =
        streams.iter().map(|stream| stream.share / f64::from(stream.run())).collect();
    let total: f64 = turns.iter().sum();
    let half = u64::from(config.pages_logical) * u64::from(drive_writes) / 2;
    let mut before = Vec::new();
    while ftl.counters().pages_host < 2 * half {
        if before.is_empty() && ftl.counters().pages_host >= half {
            before = counted(&ftl);
        }
        let mut draw = rng.unit_f64() * total;
        let turn = turns.iter().position(|turn| {
            draw -= turn;
            draw < 0.0
        });
        let stream = &mut streams[turn.unwrap_or(0)];
        for _ in 0..stream.run() {
            let lpn = stream.next(&mut rng);
            ftl.write(stream.handle, lpn, &mut NoMedia);
        }
    }
    ftl.check_invariants();
    let after = counted(&ftl);
    let since = |(after, before): (&HandleCounters, &HandleCounters)| HandleCounters {
        pages_host: after.pages_host - before.pages_host,
        pages_relocation: after.pages_relocation - before.pages_relocation,
        pages_wear: 0,
    };
    after.iter().zip(&before).map(since).collect()
}

/// Counters by handle; those of all pages where there is one handle only.
fn counted(ftl: &Ftl) -> Vec<HandleCounters> {
    let all = ftl.counters();
    match &ftl.counters_by_handle()[..] {
        [] => vec![HandleCounters {
            pages_host: all.pages_host,
            pages_relocation: all.pages_relocation,
            pages_wear: all.pages_wear,
        }],
        by_handle => by_handle.to_vec(),
    }
}

fn write_amplification(counters: &[HandleCounters]) -> f64 {
    let host: u64 = counters.iter().map(|it| it.pages_host).sum();
    let relocation: u64 = counters.iter().map(|it| it.pages_relocation).sum();
    (host + relocation) as f64 / host as f64
}

/// A cache on flash [allison-2025]: small objects at random into 4 % of `used` pages, a fifth
/// of all writes; large ones in regions of 1 MiB, in order.
fn cache(used: u32, small_handle: u8) -> [Stream; 2] {
    let small = used / 25;
    [
        Stream::new(0..small, Order::Random, 0.2, small_handle),
        Stream::new(small..used, Order::Sequential(256), 0.8, 0),
    ]
}

fn cache_amplification(used_share: f64, count: u8) -> f64 {
    let handles = handles(count, Isolation::Initial);
    // The least room that two handles and relocation can do with.
    let config = config((2048, 4), handles, VictimPolicy::Greedy);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share")]
    let used = (f64::from(config.pages_logical) * used_share) as u32;
    write_amplification(&measure(&config, &mut cache(used, count - 1), 10))
}

/// The calculation is greedy, with 7 % of over-provisioning, and yields 3.216 and 1.020; measured
/// on a drive were 3.22 and 1.03 [allison-2025].
#[test]
fn a_full_cache_in_two_handles_instead_of_one_takes_write_amplification_from_3_22_to_1_02() {
    let (one, two) = (cache_amplification(1.0, 1), cache_amplification(1.0, 2));
    println!("one handle {one:.3}, two handles {two:.3}");
    assert!((one - 3.216).abs() < 0.05, "{one}");
    assert!((two - 1.020).abs() < 0.005, "{two}");
}

/// Measured there were 1.22 without placement and 1.03 with it [allison-2025]; what causes that is
/// not in this model, and is not made up.
#[test]
fn a_half_full_cache_has_no_write_amplification_either_way() {
    for count in [1, 2] {
        let amplification = cache_amplification(0.5, count);
        assert!((1.0..1.001).contains(&amplification), "{count}: {amplification}");
    }
}

/// Pages relocated for each page that the host wrote, by handle.
fn relocated(counters: &[HandleCounters]) -> Vec<f64> {
    counters.iter().map(|it| it.pages_relocation as f64 / it.pages_host as f64).collect()
}

/// A log, and two quarters of a drive that are written at random: one by a twentieth of all writes,
/// the other by a share of `noisy`.
fn neighbours(isolation: Isolation, noisy: f64) -> Vec<f64> {
    let config = config((1024, 7), handles(3, isolation), VictimPolicy::Greedy);
    let (all, quarter) = (config.pages_logical, config.pages_logical / 4);
    let quiet = 0.05;
    let mut streams = [
        Stream::new(0..all - 2 * quarter, Order::Sequential(256), 1.0 - quiet - noisy, 0),
        Stream::new(all - 2 * quarter..all - quarter, Order::Random, quiet, 1),
        Stream::new(all - quarter..all, Order::Random, noisy, 2),
    ];
    relocated(&measure(&config, &mut streams, 12))
}

/// "Noisy RUH": invalidations concentrated in one handle inflate the write amplification of others.
/// Relocated pages of both share superblocks, which the noisy ones empty: the quiet ones among them
/// are moved again and again.
#[test]
fn a_noisy_handle_makes_a_quiet_one_dear_unless_they_are_persistently_isolated() {
    let alone = neighbours(Isolation::Initial, 0.0001);
    let initial = neighbours(Isolation::Initial, 0.45);
    let persistent = neighbours(Isolation::Persistent, 0.45);
    println!("alone {alone:.3?}, initial {initial:.3?}, persistent {persistent:.3?}");
    assert!(alone[1] < 0.05, "{alone:?}");
    assert!(initial[1] > 5.0, "{initial:?}");
    // What they still share is the spare space, and the noisy one takes its part of it.
    assert!((1.0..2.0).contains(&persistent[1]), "{persistent:?}");
    assert!((initial[2] / persistent[2] - 1.0).abs() < 0.2, "{initial:?} {persistent:?}");
}

/// Pages that are relocated of a log that has 96 % of a drive and writes half of all pages, and of
/// random writes to the rest, each for a page that the host wrote there.
fn log_beside_random_writes(victim: VictimPolicy) -> Vec<f64> {
    let config = config((1024, 4), handles(2, Isolation::Initial), victim);
    let all = config.pages_logical;
    let mut streams = [
        Stream::new(all / 25..all, Order::Sequential(256), 0.5, 0),
        Stream::new(0..all / 25, Order::Random, 0.5, 1),
    ];
    relocated(&measure(&config, &mut streams, 12))
}

/// "Save Sequential": garbage collection that does not look for the emptiest superblock reclaims a
/// long sequential stream before the host has written it anew, so that it becomes what most
/// relocation comes from.
#[test]
fn victims_by_age_or_by_lot_have_a_sequential_stream_relocated_that_greedy_leaves_alone() {
    let greedy = log_beside_random_writes(VictimPolicy::Greedy);
    let drawn = log_beside_random_writes(VictimPolicy::DChoices { choices: 10 });
    let oldest = log_beside_random_writes(VictimPolicy::Fifo);
    println!("greedy {greedy:.3?}, d-choices {drawn:.3?}, fifo {oldest:.3?}");
    assert!(greedy[0] < 0.01, "{greedy:?}");
    assert!(drawn[0] > drawn[1], "{drawn:?}");
    assert!(oldest[0] > 10.0 * oldest[1], "{oldest:?}");
}

/// Random writes, trims and purges through all handles, of drives in which every mechanism works.
#[test]
fn data_of_persistently_isolated_handles_never_meets() {
    for (isolation, wear_spread_max) in
        [(Isolation::Initial, 0), (Isolation::Persistent, 0), (Isolation::Persistent, 2)]
    {
        let mut config = config((160, 13), handles(4, isolation), VictimPolicy::Greedy);
        config.wear_spread_max = wear_spread_max;
        config.pages_logical = config.pages_logical / 5 * 4;
        config.pages_stored_max = config.pages_logical;
        let mut ftl = Ftl::format(&config).expect("a feasible format");
        let mut rng = Rng::new(2);
        for round in 0..12 {
            // Once everything is written a tenth is hot, so that wear levelling has to work.
            let pages = config.pages_logical / if round < 3 { 1 } else { 10 };
            for _ in 0..config.pages_logical / 2 {
                let page = u32::try_from(rng.below(pages.into())).expect("a u32");
                // One handle too many: it stands for handle 0.
                let handle = u8::try_from(rng.below(5)).expect("a u8");
                ftl.write(handle, Lpn(page), &mut NoMedia);
                if page.is_multiple_of(64) {
                    ftl.trim(Lpn(page));
                }
            }
            ftl.check_invariants();
            if round == 9 {
                ftl.purge();
                ftl.check_invariants();
            }
        }
        assert!(ftl.counters().pages_relocation > 0, "garbage collection worked");
        assert_eq!(ftl.counters().pages_wear > 0, wear_spread_max > 0);
    }
}
