//! Writing everything once: how much of it is written, and what ends it.

use blockio::{Lba, Op, Request};

use super::*;

/// Bytes that the host has sent to `drive`.
fn sent(drive: &Drive) -> u64 {
    drive.counters().host_sent_bytes
}

fn large() -> Workload {
    workload("128k-seq-write")
}

fn filled(model: &mut Model, passes: u32) -> (String, u64) {
    let workload = large();
    let fill = Fill { step: "test/fill", workload: &workload, passes };
    let before = sent(&model.drive);
    let how = model.fill(&fill, &mut StopAfter(usize::MAX)).unwrap();
    (how, sent(&model.drive) - before)
}

fn small_model() -> Model {
    let (spec, setup) = small_setup();
    Model::new(spec, setup).unwrap()
}

#[test]
fn each_pass_writes_every_whole_request_that_fits() {
    let mut model = small_model();
    let whole = model.drive.user_sectors() * blockio::SECTOR_BYTES / 131_072 * 131_072;
    let (once, bytes) = filled(&mut model, 1);
    assert_eq!((once.as_str(), bytes), ("wrote everything once with 128k-seq-write", whole));
    let (twice, bytes) = filled(&mut model, 2);
    let expected = ("wrote everything 2 times with 128k-seq-write", 2 * whole);
    assert_eq!((twice.as_str(), bytes), expected);
}

#[test]
fn a_fill_takes_time_and_what_follows_begins_after_it() {
    let mut model = small_model();
    filled(&mut model, 1);
    let first = model.now;
    assert!(first > Nanos::ZERO);
    filled(&mut model, 1);
    assert!(model.now > first);
}

#[test]
fn reads_after_a_fill_wait_for_nothing_that_a_drive_does_in_idle_time() {
    let mut spec = ssd::catalogue::find("intel-660p-1024").unwrap();
    let blocks = &mut spec.geometry;
    (blocks.erase_blocks_per_plane, blocks.spare_erase_blocks_per_plane) = (512, 0);
    blocks.pages_per_erase_block = 64;
    spec.formats[0].user_gb = 13.0;
    let cache = spec.slc_cache.as_mut().unwrap();
    (cache.static_gb, cache.dynamic_gb, cache.idle_ms) = (0.2, 1.0, 1.0);
    let setup = Setup { format: "stock".into(), host: "linux".into(), time_lapse: 1, seed: 1 };
    let mut model = Model::new(spec, setup).unwrap();
    filled(&mut model, 1);
    assert!(model.drive.next_event().is_some(), "its cache is left to be folded");
    let read = Request { tag: 0, thread: 0, op: Op::Read, handle: 0, lba: Lba(0), sectors: 8 };
    model.drive.submit(model.now, read);
    let done = model.drive.next_completion(Nanos::MAX).unwrap();
    let latency = done.completed_at - done.submitted_at;
    assert!(latency < Nanos::from_millis(100), "{latency}");
}

#[test]
fn a_fill_that_is_told_to_stop_awaits_what_it_sent_and_sends_no_more() {
    let mut model = model(64);
    let workload = large();
    let fill = Fill { step: "test/fill", workload: &workload, passes: 1 };
    model.fill(&fill, &mut StopAfter(1)).unwrap();
    // It looks every 4096 requests, of which 32 are outstanding.
    assert_eq!(sent(&model.drive), (4096 + 31) * 131_072);
    assert_eq!(model.drive.next_completion(Nanos::MAX), None, "nothing is left outstanding");
}

#[test]
fn a_drive_that_is_smaller_than_one_request_cannot_be_filled() {
    let mut model = small_model();
    let sizes = vec![workload::SizeShare { bytes: 1 << 30, percent: 100.0 }];
    let workload = Workload { sizes, ..large() };
    let fill = Fill { step: "test/fill", workload: &workload, passes: 1 };
    let refused = model.fill(&fill, &mut StopAfter(usize::MAX)).unwrap_err();
    assert_eq!((refused.kind(), refused.to_string().as_str()), (Kind::Input, "test/fill"));
    let cause = std::error::Error::source(&refused).unwrap();
    assert_eq!(cause.to_string(), "generating the load");
}
