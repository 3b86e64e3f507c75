//! A protocol on a drive made of two, from its file to the result.

use std::fs;

use lab::plan::Plan;
use lab::results::Run;
use lab::workload::{Protocol, catalogue};

use super::carried_out_on;

const PROTOCOL: &str = r#"
schema = 1
name = "mixed"
title = "Mixed"
description = "A mix of reads and writes after a fill."
source = "made up"

[[suites]]
name = "mixed"
title = "Mixed"
fill = "128k-seq-write"

[[suites.measure]]
workload = "4k-70-30"
threads = [4]
queue_per_thread = [8]
duration_s = 256
ramp_s = 64
interval_s = 64
"#;

const DRIVE: &str = r#"
schema = 1
name = "both"
title = "P5800X before P5510"

[tier]
fast = "p5800x"
fast_gb = 400
slow = "p5510"
write = "back"
read_cache = "s3-fifo"
source = "estimated: for a test"
"#;

#[test]
fn the_result_of_a_tier_has_its_hits_and_the_writes_of_each_class() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("both.toml");
    fs::write(&path, DRIVE).expect("it takes files");
    let protocol = Protocol::parse(PROTOCOL, "mixed.toml").expect("it is well formed");
    let plan = Plan::new(&protocol, &catalogue::workloads(), 1).expect("its workloads are there");
    let path = path.to_string_lossy();
    let run = carried_out_on(&path, &plan, 1024).expect("no model fails");
    let run = Run::from_json(&run.to_json().expect("it is JSON")).expect("as it was written");
    let step = run.steps.last().expect("it was measured");
    let summary = step.summary.as_ref().expect("it was measured");
    let work = summary.tier.expect("a drive made of two");
    let (hit_rate, written) = (work.hit_rate().expect("it read"), summary.written_bytes());
    // A twentieth of the drive is on the fast class, and few reads meet it.
    assert!((0.001..0.2).contains(&hit_rate), "{hit_rate}");
    // Requests that were outstanding at the ends count for one and not for the other.
    assert!((work.written_bytes as f64 / written - 1.0).abs() < 0.02, "{work:?}");
    assert!(work.fast.sent_bytes >= work.written_bytes && work.destaged_bytes > 0, "{work:?}");
    assert_eq!(work.fast.capacity_bytes / 1_000_000_000, 799, "of the whole drive");
    let sent = summary.nand.expect("a model").host_sent_bytes;
    assert!((sent as f64 / written - 1.0).abs() < 0.02, "what the host sent is not counted twice");
    assert!(step.samples.iter().all(|sample| sample.summary.tier.is_some()));
}
