//! Laws that hold for every drive, whatever its numbers.

use crate::closed_loop::{Load, Loop, Seen};
use std::sync::LazyLock;

use blockio::{Lba, Nanos, Op, Request, Status};
use ssd::{Drive, Setup, catalogue};

const WRITES: Load = Load { read_share: 0.0, sectors: 8, outstanding: 256, seed: 1 };

/// The Duo without its stalls, which last longer than what is counted here.
fn duo(time_lapse: u32) -> Drive {
    let setup = Setup { format: "stock".into(), host: "linux".into(), time_lapse, seed: 1 };
    let mut spec = catalogue::find("iodrive-duo").expect("in the catalogue");
    spec.hosts[0].stalls.clear();
    Drive::new(&spec, &setup).expect("a drive at that scale")
}

/// A small drive that relocates, and when it was last busy.
static FILLED: LazyLock<(Drive, Nanos)> = LazyLock::new(|| {
    let mut drive = duo(128);
    let mut filling = Loop::start(&mut drive, WRITES, Nanos::ZERO);
    filling.run(Nanos::from_secs(20), false);
    let at = filling.drain();
    (drive, at)
});

fn settled(load: Load) -> Seen {
    let (mut drive, at) = FILLED.clone();
    let mut measured = Loop::start(&mut drive, load, at);
    measured.run(Nanos::from_secs(1), false);
    let seen = measured.run(Nanos::from_secs(20), true);
    drive.check_invariants();
    seen
}

#[test]
fn iops_times_latency_is_what_was_outstanding() {
    for load in [
        WRITES,
        Load { read_share: 1.0, ..WRITES },
        Load { read_share: 0.7, sectors: 16, ..WRITES },
        Load { read_share: 0.7, sectors: 16, outstanding: 4, ..WRITES },
        Load { read_share: 0.5, sectors: 3, ..WRITES },
        Load { read_share: 0.5, sectors: 512, outstanding: 16, ..WRITES },
    ] {
        let seen = settled(load);
        let outstanding = seen.iops() * seen.latency_ns_avg() / 1e9;
        let deviation = outstanding / f64::from(load.outstanding) - 1.0;
        assert!(deviation.abs() < 0.01, "{load:?}: {outstanding:.2} outstanding");
    }
}

#[test]
fn the_same_seed_gives_the_same_completions() {
    let load = Load { read_share: 0.5, ..WRITES };
    assert_eq!(settled(load).latencies_ns, settled(load).latencies_ns);
    assert_ne!(settled(load).latencies_ns, settled(Load { seed: 2, ..load }).latencies_ns);
}

#[test]
fn everything_programmed_has_a_cause() {
    let seen = settled(WRITES);
    let (before, after) = &seen.counters;
    let difference = |count: fn(&ftl::Counters) -> u64| count(after) - count(before);
    let relocated = difference(|counters| counters.pages_relocation);
    assert!(relocated > 0, "nothing relocated");
    let placed = difference(|counters| counters.pages_host) + relocated;
    // One unit of 24 carries parity; open stripes may be short of theirs.
    let parity = difference(|counters| counters.pages_parity);
    assert!((placed / 24).abs_diff(parity) <= 64, "{placed} placed, {parity} parity");
}

#[test]
fn a_request_beyond_the_end_is_refused_and_changes_nothing() {
    let mut drive = duo(128);
    let before = drive.counters();
    let mut now = Nanos::ZERO;
    for (lba, sectors) in [(drive.user_sectors(), 8), (drive.user_sectors() - 7, 8), (u64::MAX, 8)]
    {
        let request =
            Request { tag: 7, thread: 0, op: Op::Write, handle: 0, lba: Lba(lba), sectors };
        drive.submit(now, request);
        let done = drive.next_completion(Nanos::MAX).unwrap();
        now = done.completed_at;
        assert_eq!((done.tag, done.status), (7, Status::OutOfRange));
    }
    assert_eq!(drive.counters(), before);
    drive.check_invariants();
}

#[test]
fn trimmed_and_unwritten_sectors_are_read_without_the_nand() {
    let mut drive = duo(128);
    let mut latency = |op, lba, at: u64| {
        let request = Request { tag: 0, thread: 0, op, handle: 0, lba: Lba(lba), sectors: 128 };
        drive.submit(Nanos::from_millis(at), request);
        drive.next_completion(Nanos::MAX).unwrap().latency()
    };
    let unwritten = latency(Op::Read, 0, 0);
    latency(Op::Write, 0, 100);
    let written = latency(Op::Read, 0, 200);
    latency(Op::Trim, 0, 300);
    let trimmed = latency(Op::Read, 0, 400);
    assert!(written > unwritten + Nanos::from_micros(50), "{written} against {unwritten}");
    let pages = drive.pages_read().expect("the Duo has a map");
    assert_eq!((pages.all, pages.unmapped), (48, 32));
    assert_eq!(trimmed, unwritten);
    drive.check_invariants();
}

/// No request completes faster than the link carries its data, however little it asks of the media.
#[test]
fn no_span_between_completions_moves_more_than_the_link_carries() {
    let spec = catalogue::find("flashmax-ii").expect("in the catalogue");
    let mut spec = spec;
    spec.hosts.iter_mut().for_each(|host| host.stalls.clear());
    let setup = Setup { format: "stock".into(), host: "linux".into(), time_lapse: 64, seed: 1 };
    let purged = Drive::new(&spec, &setup).expect("a drive at that scale");
    for (read_share, sectors) in [(1.0, 8), (1.0, 256), (0.7, 16), (0.0, 8)] {
        let load = Load { read_share, sectors, outstanding: 256, seed: 1 };
        let mut drive = purged.clone();
        let seen = Loop::start(&mut drive, load, Nanos::ZERO).run(Nanos::from_millis(20), true);
        let moved_mb = seen.latencies_ns.len() as f64 * f64::from(sectors) * 512e-6;
        let link_mb_s = spec.link.read_mb_s.max(spec.link.write_mb_s)
            + if read_share < 1.0 { spec.link.read_mb_s } else { 0.0 };
        let limit_mb = link_mb_s * seen.span_s;
        assert!(moved_mb <= limit_mb * 1.001, "{load:?}: {moved_mb} MB in place of {limit_mb}");
    }
}
