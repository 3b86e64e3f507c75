//! A hard disk keeps to the usual formulas, whatever the numbers.

use blockio::{Lba, Nanos, Op, Request, Rng};
use ssd::{Drive, DriveSpec, Setup, catalogue};

use crate::closed_loop::{Load, Loop};

const SPAN: Nanos = Nanos::from_secs(60);

fn disk(name: &str, time_lapse: u32, change: impl FnOnce(&mut DriveSpec)) -> Drive {
    let mut spec = catalogue::find(name).expect("in the catalogue");
    change(&mut spec);
    let host = spec.hosts()[0].clone();
    let setup = Setup { format: "stock".into(), host, time_lapse, seed: 1 };
    Drive::new(&spec, &setup).expect("a drive at that scale")
}

fn iops(drive: &mut Drive, read_share: f64, outstanding: u32) -> f64 {
    let load = Load { read_share, sectors: 8, outstanding, seed: 3 };
    let mut closed = Loop::start(drive, load, Nanos::ZERO);
    let seen = closed.run(SPAN, true);
    closed.drain();
    seen.iops()
}

/// Decimal megabytes a second of 128 KiB in order from some percent of the disk on, one at a time.
fn mb_s(drive: &mut Drive, op: Op, percent: u64) -> f64 {
    let first = drive.user_sectors() * percent / 100 / 256 * 256;
    let (mut now, count) = (Nanos::ZERO, 400);
    for index in 0..count {
        let lba = Lba(first + index * 256);
        drive.submit(now, Request { tag: 0, thread: 0, op, handle: 0, lba, sectors: 256 });
        now = drive.next_completion(Nanos::MAX).expect("submitted").completed_at;
        drive.check_invariants();
    }
    count as f64 * 131_072.0 / now.as_secs_f64() / 1e6
}

#[test]
fn one_random_read_at_a_time_takes_a_seek_and_half_a_turn() {
    // Average seek, half a turn, controller, transfer of 4 KiB, link and host.
    for (name, expected_ms) in [
        ("savvio-15k1-73", 2.6 + 2.0 + 0.1 + 0.06 + 0.04),
        ("ultrastar-7k4000-4000", 8.2 + 4.17 + 0.16),
    ] {
        let ms = 1e3 / iops(&mut disk(name, 64, |_| {}), 1.0, 1);
        // Outer tracks are longer, so that addresses lie a little closer than cylinders.
        assert!((0.95..1.01).contains(&(ms / expected_ms)), "{name}: {ms} ms, {expected_ms}");
    }
}

#[test]
fn a_queue_gains_what_the_shortest_positioning_time_saves() {
    let of = |outstanding| iops(&mut disk("savvio-15k1-73", 64, |_| {}), 1.0, outstanding);
    let (one, four, many) = (of(1), of(4), of(32));
    assert!(four > one * 1.25 && many > four * 1.3, "{one} {four} {many}");
    assert!(many < one * 4.0, "{one} {many}");
    let in_order = |spec: &mut DriveSpec| spec.disk.as_mut().expect("a disk").queue_depth = 1;
    let first_come = iops(&mut disk("savvio-15k1-73", 64, in_order), 1.0, 32);
    assert!((first_come / one - 1.0).abs() < 0.05, "{first_come} {one}");
}

#[test]
fn no_command_waits_much_longer_than_the_disk_lets_it() {
    let mut drive = disk("savvio-15k1-73", 64, |_| {});
    let load = Load { read_share: 1.0, sectors: 8, outstanding: 64, seed: 3 };
    let mut closed = Loop::start(&mut drive, load, Nanos::ZERO);
    let seen = closed.run(SPAN, true);
    closed.drain();
    let longest = *seen.latencies_ns.last().expect("some");
    assert!(longest > 300_000_000 && longest < 1_000_000_000, "{longest}");
}

#[test]
fn reads_in_order_reach_the_rate_of_their_zone() {
    let at = |percent| mb_s(&mut disk("savvio-15k1-73", 1, |_| {}), Op::Read, percent);
    let (outer, inner) = (at(0), at(99));
    assert!((outer / 89.0 - 1.0).abs() < 0.03, "{outer}");
    assert!((inner / 57.0 - 1.0).abs() < 0.03, "{inner}");
}

#[test]
fn without_a_write_cache_each_write_in_order_misses_its_turn() {
    let through = mb_s(&mut disk("savvio-15k1-73", 1, |_| {}), Op::Write, 0);
    // 1.5 ms of transfer, and the turn of 4 ms after which the next one comes under the head again.
    let expected = 0.131_072 / (4e-3 + 0.131_072 / 89.0);
    assert!((through / expected - 1.0).abs() < 0.02, "{through}");
    let cached = mb_s(&mut disk("ultrastar-7k4000-4000", 1, |_| {}), Op::Write, 0);
    assert!(cached > 120.0, "{cached}");
}

#[test]
fn a_write_cache_answers_at_once_until_it_is_full_and_sorts_what_it_holds() {
    let mut cached = disk("ultrastar-7k4000-4000", 64, |_| {});
    let through = |spec: &mut DriveSpec| spec.disk.as_mut().expect("a disk").write_cache_kib = 0;
    let through = iops(&mut disk("ultrastar-7k4000-4000", 64, through), 0.0, 1);
    let load = Load { read_share: 0.0, sectors: 8, outstanding: 1, seed: 3 };
    let mut closed = Loop::start(&mut cached, load, Nanos::ZERO);
    let burst = closed.run(Nanos::from_millis(50), true).iops();
    closed.run(SPAN, false);
    let settled = closed.run(SPAN, true).iops();
    let drained_at = closed.drain();
    let idle = cached.next_completion(drained_at + SPAN);
    assert!(idle.is_none(), "what is in the cache is written in idle time");
    assert!(burst > 5_000.0, "{burst}");
    assert!(settled > through * 2.0 && settled < through * 8.0, "{settled} {through}");
    let counters = cached.counters();
    // Some were written anew before they were there.
    let media = counters.pages_host as f64 * 4096.0 / counters.host_sent_bytes as f64;
    assert!(media > 0.999 && media <= 1.0, "all is on the media: {media}");
}

#[test]
fn a_flush_waits_for_what_was_written_before_it() {
    let mut drive = disk("ultrastar-7k4000-4000", 64, |_| {});
    let request = |tag, op, lba| {
        let sectors = if op == Op::Flush { 0 } else { 8 };
        Request { tag, thread: 0, op, handle: 0, lba: Lba(lba), sectors }
    };
    for tag in 0..8 {
        drive.submit(Nanos::ZERO, request(tag, Op::Write, u64::from(tag) * 1_000_000));
    }
    drive.submit(Nanos::ZERO, request(8, Op::Flush, 0));
    drive.check_invariants();
    let done: Vec<_> = std::iter::from_fn(|| drive.next_completion(Nanos::MAX)).collect();
    let flushed = done.iter().find(|done| done.tag == 8).expect("flushed");
    assert!(flushed.latency() > Nanos::from_millis(20), "{}", flushed.latency());
    assert!(done.iter().filter(|done| done.tag < 8).all(|done| done.latency() < Nanos(2_000_000)));
    assert_eq!(drive.counters().pages_host, 8);
    drive.submit(flushed.completed_at, request(9, Op::Flush, 0));
    let again = drive.next_completion(Nanos::MAX).expect("submitted");
    assert!(again.latency() < Nanos::from_millis(1), "nothing is left to flush");
}

#[test]
fn requests_that_keep_coming_do_not_put_off_a_flush() {
    let mut drive = disk("ultrastar-7k4000-4000", 64, |spec| {
        spec.disk.as_mut().expect("a disk").wait_max_ms = 200.0;
    });
    let inner = drive.user_sectors() - 8;
    let request =
        |tag, op, lba, sectors| Request { tag, thread: 0, op, handle: 0, lba: Lba(lba), sectors };
    // Reads of the outer tracks leave no reason to write what lies at the inner ones; writes that
    // come after the flush lie nearer to them.
    let mut rng = Rng::new(5);
    for tag in 2..34 {
        drive.submit(Nanos::ZERO, request(tag, Op::Read, rng.below(2_000) * 8, 8));
    }
    drive.submit(Nanos::ZERO, request(0, Op::Write, inner, 8));
    drive.submit(Nanos::ZERO, request(1, Op::Flush, 0, 0));
    let flushed = loop {
        let done = drive.next_completion(Nanos::MAX).expect("outstanding");
        match done.tag {
            0 => {}
            1 => break done,
            tag => {
                let op = if tag % 2 == 0 { Op::Read } else { Op::Write };
                drive.submit(done.completed_at, request(tag, op, rng.below(2_000) * 8, 8));
            }
        }
    };
    let waited = flushed.latency();
    assert!(waited > Nanos::from_millis(200) && waited < Nanos::from_millis(300), "{waited}");
}

#[test]
fn a_disk_is_the_same_at_every_scale() {
    for (read_share, outstanding) in [(1.0, 1), (0.7, 16)] {
        let of = |time_lapse| {
            iops(&mut disk("ultrastar-7k4000-4000", time_lapse, |_| {}), read_share, outstanding)
        };
        let (whole, part) = (of(1), of(512));
        assert!((part / whole - 1.0).abs() < 0.03, "{whole} {part}");
    }
}

#[test]
fn dram_takes_its_controller_and_its_ports() {
    let mut drive = disk("ramsan-440", 512, |_| {});
    let load = Load { read_share: 0.5, sectors: 8, outstanding: 256, seed: 1 };
    let mut closed = Loop::start(&mut drive, load, Nanos::ZERO);
    let seen = closed.run(Nanos::from_millis(20), true);
    closed.drain();
    assert!((seen.iops() / 600e3 - 1.0).abs() < 0.05, "{}", seen.iops());
}

#[test]
fn any_mix_of_requests_completes_once() {
    let mut rng = Rng::new(11);
    let mut drive = disk("ultrastar-7k4000-4000", 512, |spec| {
        let disk = spec.disk.as_mut().expect("a disk");
        (disk.write_cache_kib, disk.write_cache_entries) = (256, 16);
    });
    let sectors = drive.user_sectors();
    let (mut now, mut outstanding) = (Nanos::ZERO, 0);
    for step in 0..4_000 {
        let op = match rng.below(5) {
            0 => Op::Read,
            1 => Op::Flush,
            2 => Op::Trim,
            _ => Op::Write,
        };
        let length = if op == Op::Flush { 0 } else { 1 + rng.below(700) };
        let near = rng.below(3) == 0;
        let lba = if near { rng.below(2_000) } else { rng.below(sectors - 700) };
        let request = Request {
            tag: step,
            thread: 0,
            op,
            handle: 0,
            lba: Lba(lba),
            sectors: u32::try_from(length).expect("few"),
        };
        drive.submit(now, request);
        outstanding += 1;
        while outstanding > 24 {
            now = drive.next_completion(Nanos::MAX).expect("outstanding").completed_at;
            outstanding -= 1;
        }
        if step % 64 == 0 {
            drive.check_invariants();
        }
    }
    let rest = std::iter::from_fn(|| drive.next_completion(Nanos::MAX)).count();
    assert_eq!(rest, outstanding, "each completes once");
    drive.check_invariants();
}
