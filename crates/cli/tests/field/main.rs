//! Real devices as far as a machine without spare drives has them: a part of a disk image, and a
//! whole emulated machine with an NVMe drive. Each test says so where it cannot run.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself")]

mod disk;
mod guest;

use std::process::Command;

/// Measurement of a protocol after its preconditioning.
struct Measured {
    workload: &'static str,
    threads: &'static [u16],
    queues: &'static [u16],
    seconds: u16,
}

/// A protocol of one suite that takes seconds, preconditioned by so many threads.
fn brief(threads: u16, measured: &[Measured]) -> String {
    let head = format!(
        r#"
schema = 1
name = "brief"
title = "Brief"
description = "Seconds of everything, for a test."
source = "this test"

[[suites]]
name = "4k"
title = "4K random"

[suites.precondition]
workload = "4k-rand-write"
threads = {threads}
queue_per_thread = 4
duration_s = 5
interval_s = 1
round_s = 1
"#
    );
    let of = |it: &Measured| {
        format!(
            r#"
[[suites.measure]]
workload = "{}"
threads = {:?}
queue_per_thread = {:?}
duration_s = {}
ramp_s = 0
interval_s = 1
"#,
            it.workload, it.threads, it.queues, it.seconds
        )
    };
    head + &measured.iter().map(of).collect::<String>()
}

#[expect(clippy::print_stderr, reason = "a skipped test says why")]
fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

fn fio_is_missing() -> bool {
    let found = Command::new("fio").arg("--version").output();
    let missing = !found.is_ok_and(|output| output.status.success());
    if missing {
        skip("fio is not installed");
    }
    missing
}
