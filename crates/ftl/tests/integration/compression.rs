//! Effects of compression: all of them follow from extents being smaller.

use blockio::{Bytes, Rng};
use ftl::{Config, Counters, Ftl, Geometry, Lpn, NoMedia, VictimPolicy, Watermarks};

use crate::SMALL;

const PAGE_BYTES: u32 = 4096;
/// Over-provisioning of the format, in percent of the user capacity.
const OVER_PROVISIONING_PERCENT: u32 = 15;

/// A drive of which a quarter of a percent is a superblock, so that cleaning has a choice.
fn config() -> Config {
    let geometry = Geometry {
        banks: 1,
        dies_per_bank: 4,
        planes_per_die: 2,
        erase_blocks_per_plane: 400,
        pages_per_erase_block: 4,
        page_kib: 48,
        indirection_kib: 4,
        stripe_dies: 4,
    };
    let pages = u32::try_from(geometry.pages()).expect("a small geometry");
    let pages_logical = pages / (100 + OVER_PROVISIONING_PERCENT) * 100;
    Config {
        geometry,
        pages_logical,
        pages_stored_max: pages_logical,
        extents_per_page: 8,
        victim: VictimPolicy::Fifo,
        // Relocation only when it must, one superblock at a time.
        watermarks: Watermarks { low: 3, high: 5, burst: 0.1, price_max: 0.0, batch_pages: 1 },
        ..SMALL
    }
}

/// Measurements of a settled drive with pages that took `extent_bytes` each.
struct Measured {
    counters: Counters,
    /// Flash in use for each byte stored, by data alone.
    alpha: f64,
}

impl Measured {
    fn of(extent_bytes: u32) -> Self {
        let config = config();
        let mut ftl = Ftl::format(&config).expect("a feasible format");
        ftl.expect_extents_of(Bytes(extent_bytes.into()));
        let mut rng = Rng::new(7);
        let pages = ftl.config().pages_logical;
        let mut write = |ftl: &mut Ftl, count: u32| {
            let mut room_pages = 0.0;
            for _ in 0..count {
                let lpn = u32::try_from(rng.below(pages.into())).expect("below a u32");
                ftl.write(0, Lpn(lpn), &mut NoMedia);
                room_pages += ftl.occupancy().room.0 as f64 / 4096.0;
            }
            room_pages / f64::from(count)
        };
        (0..pages).for_each(|lpn| _ = ftl.write(0, Lpn(lpn), &mut NoMedia));
        // Smaller extents take more drive writes to fill what they leave.
        let drive_write = pages / extent_bytes * PAGE_BYTES;
        write(&mut ftl, drive_write * 4);
        let before = ftl.counters();
        let room_pages = write(&mut ftl, drive_write * 2);
        let in_use = config.geometry.pages() as f64 - room_pages;
        let stored_pages = ftl.occupancy().stored.0 as f64 / f64::from(PAGE_BYTES);
        let counters = difference(&ftl.counters(), &before);
        let padded = counters.padding_bytes as f64 / data_bytes(&counters);
        Self { counters, alpha: in_use / (1.0 + padded) / stored_pages }
    }

    /// Extents written and relocated, for each byte of extents written.
    fn write_amplification(&self) -> f64 {
        data_bytes(&self.counters) / host_bytes(&self.counters)
    }

    /// Everything programmed for each byte that the host sent.
    fn programmed_for_sent(&self) -> f64 {
        let sent_bytes = self.counters.pages_host * u64::from(PAGE_BYTES);
        self.counters.programmed_bytes() as f64 / sent_bytes as f64
    }
}

fn difference(after: &Counters, before: &Counters) -> Counters {
    Counters {
        pages_host: after.pages_host - before.pages_host,
        pages_relocation: after.pages_relocation - before.pages_relocation,
        pages_parity: after.pages_parity - before.pages_parity,
        host_saved_bytes: after.host_saved_bytes - before.host_saved_bytes,
        relocation_saved_bytes: after.relocation_saved_bytes - before.relocation_saved_bytes,
        padding_bytes: after.padding_bytes - before.padding_bytes,
        ..Counters::default()
    }
}

fn host_bytes(counters: &Counters) -> f64 {
    (counters.pages_host * u64::from(PAGE_BYTES) - counters.host_saved_bytes) as f64
}

fn data_bytes(counters: &Counters) -> f64 {
    let relocation_bytes = counters.pages_relocation * u64::from(PAGE_BYTES);
    host_bytes(counters) + (relocation_bytes - counters.relocation_saved_bytes) as f64
}

/// FIFO cleaning of uniform writes: what is reclaimed is valid by `u = exp(-alpha (1 - u))`
/// [menon-1995] [desnoyers-2012].
fn fifo(alpha: f64) -> f64 {
    let mut valid = 0.0_f64;
    for _ in 0..1000 {
        valid = (-alpha * (1.0 - valid)).exp();
    }
    1.0 / (1.0 - valid)
}

#[test]
fn write_amplification_is_that_of_the_over_provisioning_in_effect() {
    for extent_bytes in [4096, 3072, 2048, 2064, 1024] {
        let measured = Measured::of(extent_bytes);
        let (found, theory) = (measured.write_amplification(), fifo(measured.alpha));
        let deviation = found / theory - 1.0;
        assert!(deviation.abs() < 0.02, "{extent_bytes} bytes: {found:.4}, theory {theory:.4}");
    }
}

#[test]
fn the_better_data_compresses_the_less_is_programmed() {
    let sizes = [4096, 3712, 3328, 2944, 2560, 2176, 1792, 1408, 1024, 640];
    let programmed: Vec<f64> =
        sizes.iter().map(|bytes| Measured::of(*bytes).programmed_for_sent()).collect();
    assert!(programmed.windows(2).all(|pair| pair[1] < pair[0]), "{programmed:.3?}");
    assert!(programmed[0] > 3.0 && programmed[9] < 0.25, "{programmed:.3?}");
}

#[test]
fn what_was_written_keeps_its_size_when_it_is_relocated() {
    let mut ftl = Ftl::format(&config()).unwrap();
    let pages = ftl.config().pages_logical;
    ftl.expect_extents_of(Bytes(1000));
    (0..pages).for_each(|lpn| _ = ftl.write(0, Lpn(lpn), &mut NoMedia));
    ftl.expect_extents_of(Bytes(9000));
    let mut rng = Rng::new(3);
    for _ in 0..pages * 12 {
        let lpn = u32::try_from(rng.below(u64::from(pages / 2))).unwrap();
        ftl.write(0, Lpn(lpn), &mut NoMedia);
    }
    assert!(ftl.counters().pages_relocation > u64::from(pages));
    assert!((pages / 2..pages).all(|lpn| ftl.extent(Lpn(lpn)) == Bytes(1024)));
    assert!((0..pages / 2).filter(|lpn| ftl.extent(Lpn(*lpn)) == Bytes(4096)).count() > 1000);
}

#[test]
fn a_drive_out_of_space_still_reads_trims_and_shrinks() {
    let pages_stored_max = config().pages_stored_max;
    let config = Config { pages_logical: pages_stored_max * 2, ..config() };
    let mut ftl = Ftl::format(&config).unwrap();
    let fits = |ftl: &Ftl, lpn: u32| ftl.has_space_for(std::iter::once(Lpn(lpn)), 0);
    for lpn in 0..pages_stored_max {
        assert!(fits(&ftl, lpn));
        ftl.write(0, Lpn(lpn), &mut NoMedia);
    }
    assert_eq!(ftl.occupancy().stored, ftl.occupancy().stored_max);
    assert!(!fits(&ftl, pages_stored_max));
    assert!(fits(&ftl, 0), "as large as what it replaces");
    assert!((0..pages_stored_max).all(|lpn| ftl.lookup(Lpn(lpn)).is_some()));
    ftl.expect_extents_of(Bytes(2048));
    assert!(!fits(&ftl, pages_stored_max));
    ftl.write(0, Lpn(0), &mut NoMedia);
    ftl.trim(Lpn(1));
    for lpn in pages_stored_max..pages_stored_max + 3 {
        assert!(fits(&ftl, lpn));
        ftl.write(0, Lpn(lpn), &mut NoMedia);
    }
    assert!(!fits(&ftl, pages_stored_max + 3));
}
