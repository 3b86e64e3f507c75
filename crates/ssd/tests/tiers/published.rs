//! Published measurements of a review on three tiers, each in a fifth of its capacity.

use blockio::{Nanos, Op};

use crate::group::{Bench, Load, Seen};

/// The drives of the review.
const MEMORY: &str = "optane-pmem-200";
const XPOINT: &str = "p5800x-pair";
const NAND: &str = "p5510-eight";

const SPAN: Nanos = Nanos::from_millis(20);

const fn random(op: Op, (threads, queue): (u16, u32)) -> Load {
    Load { op, sectors: 8, threads, queue, sequential: false }
}

fn seen(name: &str, op: Op, at: (u16, u32)) -> Seen {
    Bench::of(name, None).run(random(op, at), SPAN)
}

/// Eight drives of NAND of which a fifth has been written, so that reads meet data.
fn written() -> Bench {
    let mut bench = Bench::of(NAND, None);
    let load = Load { op: Op::Write, sectors: 1024, threads: 1, queue: 8, sequential: true };
    bench.run(load, Nanos::from_millis(1_600));
    assert!(bench.counters().host_sent_bytes > bench.user_bytes() / 5);
    bench
}

fn sequential(name: &str, op: Op, sectors: u32) -> Seen {
    let load = Load { op, sectors, threads: 16, queue: 16, sequential: true };
    Bench::of(name, None).run(load, SPAN)
}

fn near(what: &str, found: f64, published: f64, tolerance: f64) {
    let ratio = found / published;
    assert!((ratio - 1.0).abs() <= tolerance, "{what}: {found:.4}, published {published}");
}

#[test]
fn the_pair_of_p5800x_is_where_the_review_has_it() {
    near("T1Q1 read, us", seen(XPOINT, Op::Read, (1, 1)).latency_us_avg, 24.0, 0.1);
    near("T1Q1 write, us", seen(XPOINT, Op::Write, (1, 1)).latency_us_avg, 23.0, 0.1);
    near("T16Q16 read", seen(XPOINT, Op::Read, (16, 16)).iops, 1.7e6, 0.1);
    near("T16Q16 write", seen(XPOINT, Op::Write, (16, 16)).iops, 1.91e6, 0.1);
    near("8K sequential read", sequential(XPOINT, Op::Read, 16).iops, 1.71e6, 0.1);
    near(
        "128K sequential write, MB/s",
        sequential(XPOINT, Op::Write, 256).mb_s(256),
        11_100.0,
        0.12,
    );
}

#[test]
fn persistent_memory_is_where_the_review_has_it() {
    near("T1Q1 read, us", seen(MEMORY, Op::Read, (1, 1)).latency_us_avg, 10.0, 0.2);
    near("T1Q1 write, us", seen(MEMORY, Op::Write, (1, 1)).latency_us_avg, 11.0, 0.1);
    near("T16Q16 read", seen(MEMORY, Op::Read, (16, 16)).iops, 3.2e6, 0.15);
    // A prediction: the rate of a module's writes is that of another laboratory.
    near("T16Q16 write", seen(MEMORY, Op::Write, (16, 16)).iops, 1.35e6, 0.25);
    near("8K sequential read", sequential(MEMORY, Op::Read, 16).iops, 1.92e6, 0.15);
    near("128K sequential read, MB/s", sequential(MEMORY, Op::Read, 256).mb_s(256), 44e3, 0.16);
}

#[test]
fn eight_p5510_are_where_the_review_has_them() {
    let mut bench = written();
    let read = bench.run(random(Op::Read, (1, 1)), SPAN);
    near("T1Q1 read, us", read.latency_us_avg, 81.0, 0.1);
    let write = bench.run(random(Op::Write, (1, 1)), SPAN);
    near("T1Q1 write, us", write.latency_us_avg, 27.0, 0.1);
    near("T16Q16 read", bench.run(random(Op::Read, (16, 16)), SPAN).iops, 4.8e6, 0.1);
    let load = Load { op: Op::Read, sectors: 256, threads: 16, queue: 16, sequential: true };
    near("128K sequential read, MB/s", bench.run(load, SPAN).mb_s(256), 54e3, 0.1);
}

#[test]
fn memory_leads_at_the_lowest_load_and_eight_drives_of_nand_at_the_highest() {
    let mut nand = written();
    let mut reads = |at| {
        let nand = nand.run(random(Op::Read, at), SPAN);
        (seen(MEMORY, Op::Read, at), seen(XPOINT, Op::Read, at), nand)
    };
    let (memory, xpoint, nand) = reads((1, 1));
    assert!(memory.latency_us_avg < xpoint.latency_us_avg);
    assert!(xpoint.latency_us_avg < nand.latency_us_avg);
    // "Almost twice" what either of the others does.
    for other in [xpoint, nand] {
        assert!((1.6..2.2).contains(&(memory.iops / other.iops)), "{memory:?} {other:?}");
    }
    let (memory, xpoint, nand) = reads((16, 16));
    assert!(nand.iops > memory.iops && memory.iops > xpoint.iops);
}
