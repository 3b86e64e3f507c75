//! Indirection units of more than 4 KiB: what they cost small writes, and what they do not.

use blockio::{Lba, Nanos, Op, Request, Rng};
use ssd::{Drive, DriveSpec, MappingSpec, MappingUnit, Setup, catalogue};

/// A quarter of the P5510 with another indirection unit and larger erase blocks, at 1/128.
fn drive(indirection_kib: u32, gather_kib: u32) -> Drive {
    let mut spec = catalogue::find("p5510").expect("in the catalogue");
    spec.geometry.banks = 1;
    spec.geometry.dies_per_bank = 32;
    spec.geometry.stripe_dies = 32;
    spec.geometry.erase_blocks_per_plane = 5464;
    spec.geometry.spare_erase_blocks_per_plane = 164;
    spec.geometry.pages_per_erase_block = 192;
    spec.nand.t_erase_us = 2500.0;
    spec.formats[0].user_gb /= 4.0;
    spec.relocation.watermark_low = 3;
    spec.relocation.watermark_high = 5;
    spec.mapping = Some(MappingSpec {
        unit: MappingUnit::Page,
        indirection_kib,
        gather_kib,
        unmapped_read_us: None,
        source: "estimated: for a test".into(),
    });
    at(&spec, 128)
}

fn at(spec: &DriveSpec, time_lapse: u32) -> Drive {
    let (format, host) = (spec.formats()[0].clone(), spec.hosts()[0].clone());
    Drive::new(spec, &Setup { format, host, time_lapse, seed: 1 }).expect("a drive at that scale")
}

fn request(op: Op, lba: u64, sectors: u32) -> Request {
    Request { tag: 0, thread: 0, op, handle: 0, lba: Lba(lba), sectors }
}

/// Writes `count` requests of `sectors` at `lba`s, 32 outstanding; returns NAND bytes of the host's
/// own data, and of all, for each byte that the host sent. Lets `now` pass until all are done.
fn amplifications(
    drive: &mut Drive,
    now: &mut Nanos,
    count: u64,
    sectors: u32,
    mut lba: impl FnMut(u64) -> u64,
) -> (f64, f64) {
    let before = drive.counters();
    for index in 0..count {
        drive.submit(*now, request(Op::Write, lba(index), sectors));
        if index >= 32 {
            *now = drive.next_completion(Nanos::MAX).expect("outstanding").completed_at;
        }
    }
    while let Some(done) = drive.next_completion(Nanos::MAX) {
        *now = done.completed_at;
    }
    drive.check_invariants();
    let after = drive.counters();
    let sent = (after.host_sent_bytes - before.host_sent_bytes) as f64;
    let of_host = (after.pages_host - before.pages_host) as f64 * 4096.0 / sent;
    let programmed = (after.programmed_bytes() - before.programmed_bytes()) as f64;
    (of_host, programmed / sent)
}

#[test]
fn small_writes_at_random_cost_a_whole_unit_each_and_whole_units_themselves() {
    for (kib, times) in [(16_u32, 4.0), (64, 16.0)] {
        let settled = |sectors: u32| {
            let mut drive = drive(kib, kib * 4);
            let (whole, mut rng) = (drive.user_sectors(), Rng::new(5));
            let slots = whole / u64::from(sectors);
            for lba in (0..whole).step_by(4096) {
                drive.age(Lba(lba), (whole - lba).min(4096) as u32);
            }
            let units = whole / u64::from(kib * 2);
            let mut random = |_| rng.below(slots) * u64::from(sectors);
            // Each write takes a unit: so many drive writes as the media sees them.
            let mut now = Nanos::ZERO;
            amplifications(&mut drive, &mut now, units * 2, sectors, &mut random);
            amplifications(&mut drive, &mut now, units, sectors, &mut random)
        };
        let (small, whole) = (settled(8), settled(kib * 2));
        assert!((whole.0 - 1.0).abs() < 1e-9, "{kib} KiB: {whole:?}");
        // Two parts of a unit may meet in the memory for parts, rarely.
        assert!((small.0 / times - 1.0).abs() < 0.01, "{kib} KiB: {small:?}");
        assert!(small.1 / whole.1 > times * 0.97, "{kib} KiB: {small:?} {whole:?}");
        assert!(small.1 / whole.1 < times * 1.03, "{kib} KiB: {small:?} {whole:?}");
    }
}

#[test]
fn writes_in_order_and_aligned_ones_pay_nothing() {
    for (sectors, threads) in [(8_u32, 1), (8, 8), (3, 1), (64, 1)] {
        let mut drive = drive(16, 1024);
        let region = drive.user_sectors() / threads / 32 * 32;
        let lba = |index: u64| index % threads * region + index / threads * u64::from(sectors);
        let count = 32 * 4096 / u64::from(sectors) * 32;
        let mut now = Nanos::ZERO;
        let (of_host, _) = amplifications(&mut drive, &mut now, count, sectors, lba);
        // What is still gathered has not been programmed.
        assert!(of_host <= 1.0 && of_host > 0.99, "{sectors} sectors: {of_host}");
    }
}

#[test]
fn without_memory_for_parts_even_writes_in_order_take_a_unit_each() {
    let mut drive = drive(16, 0);
    let mut now = Nanos::ZERO;
    let (of_host, _) = amplifications(&mut drive, &mut now, 4096, 8, |index| index * 8);
    assert!((of_host - 4.0).abs() < 1e-9, "{of_host}");
}

#[test]
fn a_part_is_read_from_where_it_is() {
    let mut drive = drive(16, 64);
    let mut now = Nanos::ZERO;
    let mut latency = |op, lba, sectors| {
        now += Nanos::from_millis(100);
        drive.submit(now, request(op, lba, sectors));
        drive.next_completion(Nanos::MAX).expect("submitted").latency()
    };
    latency(Op::Write, 0, 4096);
    let of_media = latency(Op::Read, 64, 8);
    latency(Op::Write, 64, 8);
    let of_memory = latency(Op::Read, 64, 8);
    assert!(of_memory + Nanos::from_micros(40) < of_media, "{of_memory} {of_media}");
    assert!(latency(Op::Read, 72, 8) >= of_memory + Nanos::from_micros(40), "the rest of the unit");
    latency(Op::Trim, 64, 32);
    latency(Op::Trim, 128, 8);
    assert!(latency(Op::Read, 64, 8) <= of_memory, "a unit that is trimmed whole is gone");
    assert!(latency(Op::Read, 128, 8) > of_memory, "one that is trimmed in part is not");
    let pages = drive.pages_read().expect("NAND");
    assert_eq!((pages.all, pages.unmapped), (5, 2));
    drive.check_invariants();
}

#[test]
fn drives_beyond_the_reach_of_32_bit_pages_of_4_kib_work_whole() {
    for (name, tb) in [("solidigm-d5-p5336-61440", 61.44), ("solidigm-d5-p5336-122880", 122.88)] {
        let mut drive = at(&catalogue::find(name).expect("in the catalogue"), 1);
        let sectors = drive.user_sectors();
        assert!((sectors as f64 * 512.0 / 1e12 / tb - 1.0).abs() < 0.001, "{name}");
        let mut now = Nanos::ZERO;
        for step in 0..16 {
            let lba = (sectors / 16 * step + sectors / 32) / 128 * 128;
            for op in [Op::Write, Op::Read] {
                drive.submit(now, request(op, lba, 128));
                let done = drive.next_completion(Nanos::MAX).expect("submitted");
                assert_eq!(done.status, blockio::Status::Ok);
                now = done.completed_at;
            }
        }
        assert_eq!(drive.counters().pages_host, 16 * 16);
        assert_eq!(drive.pages_read().expect("NAND").unmapped, 0);
    }
}
