//! Effects of each mechanism of a drive on requests, seen from outside.

use blockio::{Lba, Nanos, Op, Request};
use ssd::{Drive, DriveSpec, MappingUnit, Setup, StallDuring, StallHolds, StallSpec, catalogue};

/// The Duo with `change` made to it, at 1/128.
fn duo(change: impl FnOnce(&mut DriveSpec)) -> Drive {
    let mut spec = catalogue::find("iodrive-duo").expect("in the catalogue");
    spec.hosts[0].stalls.clear();
    change(&mut spec);
    let setup = Setup { format: "stock".into(), host: "linux".into(), time_lapse: 128, seed: 1 };
    Drive::new(&spec, &setup).expect("a drive at that scale")
}

fn with_unit(unit: MappingUnit) -> Drive {
    duo(|spec| spec.mapping.as_mut().expect("the Duo has one").unit = unit)
}

fn request(tag: u32, op: Op, lba: u64, sectors: u32) -> Request {
    Request { tag, thread: 0, op, handle: 0, lba: Lba(lba), sectors }
}

/// Latency of one request by itself, submitted at `at_ms`.
fn latency(drive: &mut Drive, at_ms: u64, op: Op, lba: u64, sectors: u32) -> Nanos {
    drive.submit(Nanos::from_millis(at_ms), request(0, op, lba, sectors));
    drive.next_completion(Nanos::MAX).expect("submitted").latency()
}

/// Latency of a write of one sector whose page is on the media, no longer in the buffer.
fn latency_of_part(drive: &mut Drive) -> Nanos {
    for step in 0..20 {
        latency(drive, step * 100, Op::Write, 0, 8);
    }
    latency(drive, 2_000, Op::Write, 0, 128);
    latency(drive, 3_000, Op::Write, 0, 1)
}

#[test]
fn a_map_of_pages_reads_before_it_writes_a_part_and_one_of_sectors_does_not() {
    let whole = latency(&mut with_unit(MappingUnit::Page), 0, Op::Write, 0, 8);
    let page = latency_of_part(&mut with_unit(MappingUnit::Page));
    let sector = latency_of_part(&mut with_unit(MappingUnit::Sector));
    assert!(page > whole + Nanos::from_micros(50), "{page} against {whole}");
    assert!(sector <= whole, "{sector} against {whole}");
}

#[test]
fn pages_that_were_programmed_in_one_go_are_read_one_after_the_other() {
    let of = |pages_per_program, sectors| {
        let mut drive = duo(|spec| {
            spec.geometry.pages_per_program = pages_per_program;
            spec.controller.read_us_per_kib = 0.0;
            spec.channels.mb_s = 1e5;
            spec.link.read_mb_s = 1e5;
            spec.nand.t_read_us = 500.0;
        });
        // More than the buffer holds, so that all of it is on the media.
        for step in 0..64 {
            latency(&mut drive, step * 100, Op::Write, step * 256, 256);
        }
        latency(&mut drive, 10_000, Op::Read, 0, sectors).as_micros_f64() / 500.0
    };
    // A NAND page on both planes is 8 KiB; a unit of three of them is 24 KiB.
    for (pages_per_program, sectors, reads) in
        [(1, 16, 1.0), (3, 8, 1.0), (3, 16, 1.0), (3, 48, 3.0)]
    {
        let took = of(pages_per_program, sectors);
        assert!((took - reads).abs() < 0.3, "{pages_per_program} {sectors}: {took} tR");
    }
}

#[test]
fn a_map_of_sectors_takes_pages_by_the_sector() {
    for (unit, pages) in [(MappingUnit::Page, 800), (MappingUnit::Sector, 300)] {
        let mut drive = with_unit(unit);
        for step in 0..800 {
            latency(&mut drive, step, Op::Write, step * 64 + 2, 3);
        }
        assert_eq!(drive.counters().pages_host, pages, "{unit:?}");
        drive.check_invariants();
    }
}

#[test]
fn a_read_of_nothing_costs_what_the_map_needs_for_it() {
    let unmapped = |micros| {
        let mut drive = duo(|spec| {
            spec.mapping.as_mut().expect("the Duo has one").unmapped_read_us = Some(micros);
        });
        latency(&mut drive, 0, Op::Read, 0, 128)
    };
    assert_eq!(unmapped(100.0), unmapped(0.0) + Nanos::from_micros(100));
}

#[test]
fn a_drive_that_writes_through_acknowledges_when_the_nand_has_it() {
    let mut buffered = duo(|_| {});
    let mut through = duo(|spec| spec.buffer.write_through = true);
    let at_once = latency(&mut buffered, 0, Op::Write, 0, 8);
    for at_ms in [0, 100, 200] {
        let programmed = latency(&mut through, at_ms, Op::Write, at_ms, 8);
        assert!(programmed >= at_once + Nanos::from_micros(500), "{programmed}");
    }
}

#[test]
fn an_acknowledgement_on_its_way_delays_every_write_and_no_read() {
    let latencies = |micros| {
        let mut drive = duo(|spec| spec.buffer.acknowledge_us = micros);
        let written = latency(&mut drive, 0, Op::Write, 0, 8);
        (written, latency(&mut drive, 100, Op::Read, 0, 8))
    };
    let (at_once, later) = (latencies(0.0), latencies(30.0));
    assert_eq!(later, (at_once.0 + Nanos::from_micros(30), at_once.1));
}

#[test]
fn a_driver_that_hands_over_one_at_a_time_serves_them_one_by_one_in_order() {
    let mut drive = duo(|spec| spec.hosts[0].outstanding_max = 1);
    latency(&mut drive, 0, Op::Write, 0, 1024);
    let alone = latency(&mut drive, 100, Op::Read, 0, 8);
    for tag in 0..4 {
        drive.submit(Nanos::from_millis(200), request(tag, Op::Read, u64::from(tag) * 128, 8));
    }
    drive.check_invariants();
    for tag in 0..4 {
        let done = drive.next_completion(Nanos::MAX).expect("submitted");
        assert_eq!(done.tag, tag);
        assert!(done.latency() * 10 > alone * u64::from(tag + 1) * 9, "{}", done.latency());
    }
}

#[test]
fn a_processor_wakes_once_for_all_that_is_done_by_then() {
    let reads_of_media = |wake_us| {
        let mut drive = duo(|spec| spec.hosts[0].wake_us = wake_us);
        latency(&mut drive, 0, Op::Write, 0, 8192);
        // The second read goes to the other module.
        for (tag, lba) in [(0, 0), (1, 128)] {
            drive.submit(Nanos::from_millis(100), request(tag, Op::Read, lba, 8));
        }
        [(); 2].map(|()| drive.next_completion(Nanos::MAX).expect("submitted").latency())
    };
    let (awake, asleep) = (reads_of_media(0.0), reads_of_media(50.0));
    assert_eq!(asleep[0], awake[0] + Nanos::from_micros(50));
    assert!(asleep[1] < asleep[0] + Nanos::from_micros(10), "{asleep:?} against {awake:?}");
}

#[test]
fn a_stall_delays_what_is_done_and_nothing_else() {
    let stall = StallSpec {
        every_s: 1.0,
        span_ms: 20.0,
        holds: StallHolds::Thread,
        during: StallDuring::Always,
        source: "estimated: for a test".into(),
    };
    let mut drive = duo(|spec| spec.hosts[0].stalls = vec![stall]);
    let mut latencies = Vec::new();
    for at in (0..1_000).map(Nanos::from_millis) {
        latencies.extend(std::iter::from_fn(|| drive.next_completion(at)).map(|it| it.latency()));
        drive.submit(at, request(0, Op::Read, 0, 8));
    }
    let rest = std::iter::from_fn(|| drive.next_completion(Nanos::MAX));
    latencies.extend(rest.map(|it| it.latency()));
    assert_eq!(latencies.len(), 1_000, "every request completes");
    let longest = latencies.iter().max().expect("a thousand");
    let held = latencies.iter().filter(|latency| **latency > Nanos::from_millis(1)).count();
    assert!(*longest > Nanos::from_millis(19) && *longest < Nanos::from_millis(21), "{longest}");
    assert!((18..=20).contains(&held), "{held} held");
    drive.check_invariants();
}

#[test]
fn the_host_pays_for_its_driver_and_for_flash_that_it_manages() {
    let cost = |on_host: bool, (op, sectors): (Op, u32)| {
        let mut drive = duo(|spec| spec.controller.on_host = on_host);
        latency(&mut drive, 0, Op::Write, 0, 8);
        let before = drive.host_busy();
        latency(&mut drive, 100, op, 0, sectors);
        (drive.host_busy() - before, drive.host_map())
    };
    // 4 us to submit, 3 to complete, 0.3 in the section that is serialised.
    let driver = Nanos(7_300);
    assert_eq!(cost(false, (Op::Read, 8)), (driver, None));
    let (read, map) = cost(true, (Op::Read, 8));
    assert_eq!(read, driver + Nanos(9_600 + 4 * 1_143));
    assert_eq!(cost(true, (Op::Write, 8)).0, driver + Nanos(6_900 + 4 * 200));
    // 156 million pages of 4 KiB for the host and more on the media, at full scale.
    let map_gb = map.expect("kept by the driver").0 as f64 / 1e9;
    assert!((1.25..1.60).contains(&map_gb), "{map_gb} GB");
}

#[test]
fn a_port_bounds_what_it_carries_whether_the_media_or_the_map_answers() {
    let rate = |port_mb_s, is_written: bool| {
        let mut drive = duo(|spec| {
            spec.modules.port_mb_s = port_mb_s;
            spec.controller.read_us_per_kib = 0.0;
        });
        if is_written {
            latency(&mut drive, 0, Op::Write, 0, 8192);
        }
        // All of one module: 64 requests of a stripe unit of 64 KiB.
        for tag in 0..64 {
            drive.submit(
                Nanos::from_secs(1),
                request(tag, Op::Read, u64::from(tag % 32) * 256, 128),
            );
        }
        let done = std::iter::from_fn(|| drive.next_completion(Nanos::MAX));
        let end = done.map(|it| it.completed_at).max().expect("submitted");
        64.0 * 65_536.0 / ((end - Nanos::from_secs(1)).as_secs_f64() * 1e6)
    };
    for is_written in [false, true] {
        let (free, bound) = (rate(None, is_written), rate(Some(250.0), is_written));
        assert!(free > 500.0, "{free} MB/s without a port");
        assert!((240.0..=250.0).contains(&bound), "{bound} MB/s through a port of 250 MB/s");
    }
}

#[test]
fn a_controller_that_compresses_first_takes_the_time_of_what_it_stores() {
    let write = |percent, compresses_first| {
        let mut spec = catalogue::find("warpdrive-slp-300").expect("in the catalogue");
        spec.modules.port_mb_s = None;
        spec.controller.compresses_first = compresses_first;
        let setup =
            Setup { format: "stock".into(), host: "linux".into(), time_lapse: 128, seed: 1 };
        let mut drive = Drive::new(&spec, &setup).expect("a drive at that scale");
        drive.set_compressible(percent);
        latency(&mut drive, 0, Op::Write, 0, 64).as_micros_f64()
    };
    let whole = write(0.0, true);
    assert!((whole - write(0.0, false)).abs() < 0.01, "what does not compress costs the same");
    // 32 KiB at 4 us/KiB, less a tenth of it.
    let saved = whole - write(90.0, true);
    assert!((saved - 128.0 * 0.9).abs() < 2.0, "{saved} us saved");
    assert!((whole - write(90.0, false)).abs() < 0.01, "work on the host's data is the same");
}

#[test]
fn a_stall_of_a_state_comes_after_the_cliff_of_the_stock_format_alone() {
    let longest = |format: &str, during| {
        let mut spec = catalogue::find("iodrive-duo").expect("in the catalogue");
        let source = "estimated: for a test".to_owned();
        let holds = StallHolds::Request;
        let stall = StallSpec { every_s: 10.0, span_ms: 9_000.0, holds, during, source };
        spec.hosts[0].stalls = vec![stall];
        let setup = Setup { format: format.into(), host: "linux".into(), time_lapse: 128, seed: 1 };
        let mut drive = Drive::new(&spec, &setup).expect("a drive at that scale");
        let pages = drive.user_sectors() / 8;
        let (mut longest, mut at, mut draw) = ([Nanos::ZERO; 2], Nanos::ZERO, 1_u64);
        for step in 0..pages * 3 {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let mut write = request(0, Op::Write, (draw >> 20) % pages * 8, 8);
            write.thread = u16::try_from(step % 64).expect("below 64");
            drive.submit(at, write);
            if step >= 64 {
                let done = drive.next_completion(Nanos::MAX).expect("outstanding");
                at = at.max(done.completed_at);
                let after = usize::from(step > pages * 2);
                if step < pages / 2 || after == 1 {
                    longest[after] = longest[after].max(done.stalled);
                }
            }
        }
        longest
    };
    let during = StallDuring::DearRelocation;
    assert_eq!(longest("high-performance", during), [Nanos::ZERO; 2]);
    let [burst, settled] = longest("stock", during);
    assert_eq!(burst, Nanos::ZERO);
    assert!(settled > Nanos::from_millis(50), "{settled}");
    assert!(longest("stock", StallDuring::Always)[0] > burst, "a stall without a state");
}
