//! Every version of the result files that was ever written must keep opening.

use std::fs;
use std::path::Path;

use results::{Run, StepKind};

fn opened(version: &str) -> Run {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(version);
    let read = |name: &str| fs::read(folder.join(name)).expect("the fixture is complete");
    let json = String::from_utf8(read("run.json")).expect("JSON is UTF-8");
    let mut run = Run::from_json(&json).expect("run.json opens");
    run.samples_from_parquet(read("samples.parquet")).expect("samples.parquet opens");
    run.latencies_from_parquet(read("latencies.parquet")).expect("latencies.parquet opens");
    run
}

#[test]
fn version_1_keeps_opening() {
    let run = opened("v1");
    assert_eq!(run.target.name, "iodrive-duo");
    let settling = run.step("4k/precondition").unwrap();
    assert_eq!(settling.kind, StepKind::Precondition);
    assert!(settling.steady.as_ref().unwrap().achieved);
    assert!((settling.settled.as_ref().unwrap().iops - 42_000.0).abs() < 1e-6);
    assert_eq!(settling.samples.len(), 40);
    let burst = &settling.samples[0];
    assert!((burst.at_s - 60.0).abs() < 1e-9);
    assert!((burst.summary.iops_write - 257_000.0).abs() < 1e-6);
    assert_eq!(burst.summary.write.latency_ns_max, 1_494_162);
    assert_eq!(burst.summary.nand.unwrap().relocation_bytes, 257_000 * 60 * 4096 * 2);
    assert_eq!(burst.superblocks_free_share, Some(0.07));
    let mixed = run.step("8k-70-30/measure/T16Q16").unwrap();
    assert_eq!(mixed.read_bins.iter().map(|bin| bin.count).sum::<u64>(), 52_000 * 300 * 7 / 10);
    assert_eq!(mixed.write_bins.iter().map(|bin| bin.count).sum::<u64>(), 52_000 * 300 * 3 / 10);
}
