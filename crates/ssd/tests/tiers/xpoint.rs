//! Properties of media written in place and of groups of devices, whatever the numbers.

use blockio::{Nanos, Op};

use crate::group::{Bench, Load};

const SPAN: Nanos = Nanos::from_millis(4);

fn at(op: Op, sectors: u32, threads: u16, queue: u32) -> Load {
    Load { op, sectors, threads, queue, sequential: false }
}

#[test]
fn media_bytes_are_host_bytes_and_nothing_is_erased() {
    for name in ["p5800x", "optane-pmem-200"] {
        let mut bench = Bench::of(name, None);
        for sectors in [8, 24, 256] {
            bench.run(at(Op::Write, sectors, 4, 4), SPAN);
        }
        let counters = bench.counters();
        let programmed = counters.pages_programmed();
        // Each of 16 modules counts whole pages.
        assert!(counters.host_sent_bytes / 4096 - programmed <= 16, "{name}: {counters:?}");
        assert_eq!((programmed, counters.superblocks_erased), (counters.pages_host, 0), "{name}");
    }
}

#[test]
fn a_smaller_write_reads_changes_and_writes_the_unit_whole() {
    let mut bench = Bench::of("p5800x", None);
    let small = bench.run(at(Op::Write, 1, 64, 4), SPAN);
    let counters = bench.counters();
    let units = counters.host_sent_bytes / 512;
    assert!(counters.pages_programmed().abs_diff(units) <= 1, "{counters:?}");
    let whole = bench.run(at(Op::Write, 8, 64, 4), SPAN);
    let ratio = small.iops / whole.iops;
    assert!((0.5..0.75).contains(&ratio), "each is read and written: {small:?} {whole:?}");
    let mut bench = Bench::of("optane-pmem-200", None);
    let (small, whole) =
        (bench.run(at(Op::Write, 1, 4, 4), SPAN), bench.run(at(Op::Write, 8, 4, 4), SPAN));
    assert!(small.iops > whole.iops, "its unit is a line of 256 bytes: {small:?} {whole:?}");
}

#[test]
fn cores_share_a_large_command_and_do_no_less_for_it() {
    let alone = |sectors| {
        let load = Load { sequential: false, ..at(Op::Read, sectors, 1, 1) };
        Bench::of("p5800x", None).run(load, SPAN).latency_us_avg
    };
    let (small, large) = (alone(8), alone(256));
    // 128 KiB on one core: 66 us, then media and link.
    assert!(large - small < 50.0 && large - small > 33.0, "{small} us, {large} us");
    let busy = Bench::of("p5800x", None).run(at(Op::Read, 256, 4, 16), SPAN);
    assert!((6900.0..7250.0).contains(&busy.mb_s(256)), "the link is the limit: {busy:?}");
}

#[test]
fn an_old_drive_written_in_place_is_as_fast_as_a_new_one() {
    let mut bench = Bench::of("p5800x", None);
    let load = at(Op::Write, 8, 16, 16);
    let fresh = bench.run(load, SPAN);
    let written = bench.counters().host_sent_bytes;
    while bench.counters().host_sent_bytes < written + bench.user_bytes() / 5 {
        bench.run(at(Op::Write, 256, 16, 16), SPAN * 8);
    }
    let old = bench.run(load, SPAN);
    assert!((old.iops / fresh.iops - 1.0).abs() < 0.01, "{fresh:?} {old:?}");
}

#[test]
fn media_written_in_place_is_the_same_at_every_scale() {
    for name in ["p5800x", "optane-pmem-200"] {
        let seen = [64, 1024].map(|time_lapse| {
            Bench::of(name, Some(time_lapse)).run(at(Op::Write, 8, 16, 16), SPAN)
        });
        let deviation = seen[0].iops / seen[1].iops - 1.0;
        assert!(deviation.abs() < 0.01, "{name}: {seen:?}");
    }
}

#[test]
fn two_devices_do_twice_what_one_does() {
    for load in [at(Op::Read, 8, 1, 1), at(Op::Read, 256, 4, 4), at(Op::Write, 8, 16, 16)] {
        let (one, two) = (
            Bench::of("p5800x", None).run(load, SPAN),
            Bench::of("p5800x-pair", None).run(load, SPAN),
        );
        assert!((two.iops / one.iops - 2.0).abs() < 0.02, "{load:?}: {one:?} {two:?}");
        assert!((two.latency_us_avg / one.latency_us_avg - 1.0).abs() < 0.02, "{load:?}");
    }
}

#[test]
fn where_the_processor_copies_a_queue_is_nothing_but_waiting() {
    let mut bench = Bench::of("optane-pmem-200", None);
    let (flat, deep) =
        (bench.run(at(Op::Read, 8, 4, 1), SPAN), bench.run(at(Op::Read, 8, 4, 16), SPAN));
    assert!((deep.iops / flat.iops - 1.0).abs() < 0.02, "{flat:?} {deep:?}");
    assert!((deep.latency_us_avg / flat.latency_us_avg - 16.0).abs() < 0.5, "{flat:?} {deep:?}");
}
