//! Replays on files, whose file system may refuse direct I/O.

use workload::recording::{Head, Tail};

use super::*;

const SIZE: u64 = 4 << 20;

fn recording(requests: Vec<RecordedRequest>) -> Recording {
    let end = requests.iter().map(|it| it.completed_at).max().unwrap_or_default();
    let tail = Tail { measured_to: end, ..Tail::default() };
    let head = Head {
        schema: Head::SCHEMA,
        device: "a volume".into(),
        size_bytes: SIZE,
        model: None,
        machine: "Linux".into(),
        began_unix_ns: 0,
        front_end_ns: None,
        emulation_slowdown: None,
    };
    Recording { head, tail: Some(tail), requests, lost: 0, transactions: Vec::new() }
}

/// Requests of every kind, one after another, each 200 us after the one before.
fn chain(count: u64) -> Vec<RecordedRequest> {
    let each = Nanos::from_micros(1200);
    let ops = [Op::Read, Op::Write, Op::Flush, Op::Trim, Op::Read];
    let request = |(index, op): (u64, &Op)| {
        let is_flush = *op == Op::Flush;
        RecordedRequest {
            issued_at: each * index,
            completed_at: each * index + Nanos::from_micros(1000),
            op: *op,
            fua: index % 10 == 1,
            lba: if is_flush { 0 } else { index * 7 * 8 % (SIZE / SECTOR_BYTES - 8) },
            sectors: if is_flush { 0 } else { 8 },
            client: 0,
        }
    };
    (0..count).zip(ops.iter().cycle()).map(request).collect()
}

fn target(bytes: u64) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(bytes).unwrap();
    file
}

/// The replay; none where the file system has no direct I/O, or takes no holes.
fn replayed(recording: &Recording, path: &Path) -> Option<RealReplay> {
    match replay_recording(recording, path, true, &ReplayHost::default()) {
        Ok(replay) => Some(replay),
        Err(error) if error.remedy() == HINT => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn each_request_waits_for_its_parent_and_its_think_time() {
    let file = target(SIZE);
    let Some(replay) = replayed(&recording(chain(50)), file.path()) else { return };
    let RealReplay { replayed, lateness } = replay;
    assert_eq!(replayed.requests, 50);
    let read = replayed.read.unwrap();
    let [write, flush] = [replayed.write, replayed.flush].map(Option::unwrap);
    assert_eq!((read.count, write.count, flush.count), (20, 10, 10));
    // 49 think times of 200 us, and each latency after the one before.
    let of_requests_s = [&read, &write, &flush]
        .map(|it| it.latency_ns_avg * it.count as f64 / 1e9)
        .iter()
        .sum::<f64>();
    let least_s = 49.0 * 200e-6 + of_requests_s;
    assert!(replayed.replayed_s >= least_s, "{} and {least_s}", replayed.replayed_s);
    assert_eq!(lateness.unwrap().count, 50);
}

#[test]
fn everything_that_was_recorded_is_written_first() {
    let file = target(SIZE + 4096);
    if replayed(&recording(chain(1)), file.path()).is_some() {
        let bytes = std::fs::read(file.path()).unwrap();
        let (filled, rest) = bytes.split_at(usize::try_from(SIZE).unwrap());
        assert!(filled.chunks(4096).all(|page| page.iter().any(|byte| *byte != 0)));
        assert!(rest.iter().all(|byte| *byte == 0), "and nothing behind it");
    }
}

#[test]
fn requests_that_memory_answers_are_not_asked_of_the_drive() {
    let file = target(SIZE);
    let host = ReplayHost { buffered_percent: 100.0, ..ReplayHost::default() };
    if let Ok(replay) = replay_recording(&recording(chain(50)), file.path(), true, &host) {
        assert!(replay.replayed.read.is_none());
        // Of ten writes of a page five are durable, which no memory holds back.
        assert_eq!(replay.replayed.write.unwrap().count, 5);
    }
}

#[test]
fn a_target_that_is_too_small_or_holds_data_is_refused() {
    let small = target(SIZE - 4096);
    let refused = |path: &Path, destroy| {
        replay_recording(&recording(chain(1)), path, destroy, &ReplayHost::default()).unwrap_err()
    };
    let error = refused(small.path(), true);
    assert!(error.remedy() == HINT || error.to_string().contains("4194304 bytes; "), "{error}");
    let precious = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(precious.path(), vec![7; 5 << 20]).unwrap();
    let error = refused(precious.path(), false);
    assert_eq!(error.kind(), Kind::Refused, "{error}");
    let kept = std::fs::read(precious.path()).unwrap();
    assert!(kept.iter().all(|byte| *byte == 7), "nothing was written");
}

#[test]
fn as_many_workers_as_were_outstanding_and_as_many_again() {
    let mut requests = chain(4);
    assert_eq!(outstanding_max(&requests, 1), 2);
    assert_eq!(outstanding_max(&requests, 3), 6, "of three copies");
    for request in &mut requests {
        request.issued_at = Nanos::ZERO;
    }
    assert_eq!(outstanding_max(&requests, 1), 8);
    assert_eq!(outstanding_max(&requests.repeat(1000), 1), WORKERS_MAX);
}
