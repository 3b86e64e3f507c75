//! What a review measured on three tiers, each in a fifth of its capacity.

use blockio::{Nanos, Op};

use crate::group::{Bench, Load, Seen};

const SPAN: Nanos = Nanos::from_millis(20);

fn seen(name: &str, op: Op, (threads, queue): (u16, u32)) -> Seen {
    let load = Load { op, sectors: 8, threads, queue, sequential: false };
    Bench::of(name, None).run(load, SPAN)
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
    let pair = "p5800x-pair";
    near("T1Q1 read, us", seen(pair, Op::Read, (1, 1)).latency_us_avg, 24.0, 0.1);
    near("T1Q1 write, us", seen(pair, Op::Write, (1, 1)).latency_us_avg, 23.0, 0.1);
    near("T16Q16 read", seen(pair, Op::Read, (16, 16)).iops, 1.7e6, 0.1);
    near("T16Q16 write", seen(pair, Op::Write, (16, 16)).iops, 1.91e6, 0.1);
    near("8K sequential read", sequential(pair, Op::Read, 16).iops, 1.71e6, 0.1);
    near("128K sequential write, MB/s", sequential(pair, Op::Write, 256).mb_s(256), 11_100.0, 0.12);
}

#[test]
fn persistent_memory_is_where_the_review_has_it() {
    let memory = "optane-pmem-200";
    near("T1Q1 read, us", seen(memory, Op::Read, (1, 1)).latency_us_avg, 10.0, 0.2);
    near("T1Q1 write, us", seen(memory, Op::Write, (1, 1)).latency_us_avg, 11.0, 0.1);
    near("T16Q16 read", seen(memory, Op::Read, (16, 16)).iops, 3.2e6, 0.15);
    near("T16Q16 write", seen(memory, Op::Write, (16, 16)).iops, 1.35e6, 0.1);
    near("8K sequential read", sequential(memory, Op::Read, 16).iops, 1.92e6, 0.15);
    near("128K sequential read, MB/s", sequential(memory, Op::Read, 256).mb_s(256), 44e3, 0.16);
}
