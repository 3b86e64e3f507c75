//! Tests of recordings: the file that is read is the one that was written, and parents.

use proptest::prelude::*;

use super::*;

const SIZE: u64 = 1 << 30;

fn head() -> Head {
    Head {
        schema: Head::SCHEMA,
        device: "a volume".into(),
        size_bytes: SIZE,
        model: None,
        machine: "Linux".into(),
        began_unix_ns: 7,
        front_end_ns: None,
        emulation_slowdown: None,
    }
}

fn request(issued: u64, completed: u64) -> RecordedRequest {
    RecordedRequest {
        issued_at: Nanos(issued),
        completed_at: Nanos(completed),
        op: Op::Read,
        fua: false,
        lba: 8 * issued,
        sectors: 8,
        client: 0,
    }
}

fn written(requests: &[RecordedRequest], tail: &Tail) -> Vec<u8> {
    let mut writer = RecordingWriter::new(Vec::new(), &head()).unwrap();
    for part in requests.chunks(3) {
        writer.put(part).unwrap();
    }
    writer.finish(tail).unwrap()
}

fn any_request() -> impl Strategy<Value = RecordedRequest> {
    let op = prop_oneof![Just(Op::Read), Just(Op::Write), Just(Op::Trim), Just(Op::Flush)];
    let fields = (any::<u32>(), any::<u32>(), op, any::<bool>(), 0..1_000_000_u64, 1..1000_u32);
    (fields, any::<u16>()).prop_map(|((issued, latency, op, fua, lba, sectors), client)| {
        let is_flush = op == Op::Flush;
        let (lba, sectors) = if is_flush { (0, 0) } else { (lba, sectors) };
        let issued_at = Nanos(u64::from(issued) << 10);
        let completed_at = issued_at + Nanos(u64::from(latency) << 5);
        RecordedRequest { issued_at, completed_at, op, fua, lba, sectors, client }
    })
}

proptest! {
    #[test]
    fn a_recording_is_read_as_it_was_written(
        mut requests in proptest::collection::vec(any_request(), 1..50),
    ) {
        let read = read(written(&requests, &Tail::default()).as_slice()).unwrap();
        requests.sort_by_key(|it| (it.issued_at, it.completed_at));
        let start = requests[0].issued_at;
        for request in &mut requests {
            request.issued_at = request.issued_at - start;
            request.completed_at = request.completed_at - start;
        }
        prop_assert_eq!(read.requests, requests);
        prop_assert_eq!(read.head, head());
        prop_assert_eq!((read.tail, read.lost), (Some(Tail::default()), 0));
    }

    #[test]
    fn one_that_was_cut_short_has_its_whole_chunks_and_no_tail(
        requests in proptest::collection::vec(any_request(), 1..50),
        share in 0.0..1.0,
    ) {
        let whole = written(&requests, &Tail::default());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a length")]
        let cut = (whole.len() as f64 * share) as usize;
        match read(&whole[..cut]) {
            Ok(read) => {
                prop_assert!(read.tail.is_none());
                prop_assert!(read.requests.len() <= requests.len());
            }
            Err(RecordingError::Magic) => prop_assert!(cut < MAGIC.len()),
            Err(RecordingError::Empty | RecordingError::Damaged { .. }) => {}
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn a_flipped_bit_is_found(
        requests in proptest::collection::vec(any_request(), 1..20),
        place in any::<prop::sample::Index>(),
        bit in 0..8_u32,
    ) {
        let whole = written(&requests, &Tail::default());
        let at = place.index(whole.len());
        let mut damaged = whole.clone();
        damaged[at] ^= 1_u8 << bit;
        // A length that grew looks like a file that was cut short, and tells of no tail.
        let is_told = read(damaged.as_slice()).map_or(true, |read| read.tail.is_none());
        prop_assert!(is_told, "byte {at}");
    }

    #[test]
    fn no_bytes_make_reading_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(bytes.as_slice());
        bytes.splice(0..0, *MAGIC);
        let _ = read(bytes.as_slice());
    }
}

#[test]
fn a_recording_of_a_later_version_says_so() {
    let later = Head { schema: 2, ..head() };
    let writer = RecordingWriter::new(Vec::new(), &later).unwrap();
    let error = read(writer.finish(&Tail::default()).unwrap().as_slice()).unwrap_err();
    assert_eq!(error.to_string(), "it has format 2, and formats up to 1 are known");
    let error = read(&b"fio version 2 iolog"[..]).unwrap_err();
    assert!(matches!(error, RecordingError::Magic), "{error}");
}

#[test]
fn requests_that_were_not_kept_are_counted() {
    let mut writer = RecordingWriter::new(Vec::new(), &head()).unwrap();
    writer.put_lost(5).unwrap();
    writer.put(&[request(0, 1)]).unwrap();
    writer.put_lost(2).unwrap();
    let read = read(writer.finish(&Tail::default()).unwrap().as_slice()).unwrap();
    assert_eq!((read.lost, read.requests.len()), (7, 1));
}

#[test]
fn transactions_are_read_as_they_were_written_from_the_first_request_on() {
    let transaction = |from, to| Transaction { from: Nanos(from), to: Nanos(to) };
    let mut writer = RecordingWriter::new(Vec::new(), &head()).unwrap();
    writer.put(&[request(100, 110)]).unwrap();
    writer.put_transactions(&[transaction(150, 190), transaction(90, 120)]).unwrap();
    writer.put_transactions(&[transaction(100, 180)]).unwrap();
    let file = writer.finish(&Tail::default()).unwrap();
    let found = read(file.as_slice()).unwrap();
    assert_eq!(found.transactions, [transaction(0, 80), transaction(50, 90)]);

    let mut writer = RecordingWriter::new(Vec::new(), &head()).unwrap();
    writer.put(&[request(0, 1)]).unwrap();
    let before = writer.finish(&Tail::default()).unwrap().len();
    assert!(file.len() < before + 3 * 9 + 20, "some four bytes each, and two chunks");
}

#[test]
fn a_request_beyond_the_device_is_no_request_of_it() {
    let beyond = RecordedRequest { lba: SIZE / 512 - 7, ..request(0, 1) };
    let error = read(written(&[beyond], &Tail::default()).as_slice()).unwrap_err();
    assert!(error.to_string().contains("beyond the end of the device"), "{error}");
}

#[test]
fn the_parent_is_the_last_completion_before_the_issue() {
    // Two at once, a third after the first, a fourth after both, and one that waited for neither.
    let requests =
        [request(0, 100), request(5, 60), request(70, 200), request(130, 140), request(130, 150)];
    let found: Vec<(Option<u32>, u64)> =
        parents(&requests).iter().map(|it| (it.index, it.think_time.0)).collect();
    assert_eq!(found, [(None, 0), (None, 5), (Some(1), 10), (Some(0), 30), (Some(0), 30)]);
}

#[test]
fn a_request_that_took_no_time_is_not_its_own_parent() {
    let requests = [request(3, 3), request(3, 3), request(9, 9)];
    let found: Vec<Option<u32>> = parents(&requests).iter().map(|it| it.index).collect();
    assert_eq!(found, [None, Some(0), Some(1)]);
}

#[test]
fn only_what_was_issued_while_the_benchmark_counted_is_measured() {
    let requests: Vec<RecordedRequest> = (0..10).map(|at| request(10 * at, 10 * at + 5)).collect();
    let tail = Tail { measured_from: Nanos(20), measured_to: Nanos(55), ..Tail::default() };
    let transaction = |from, to| Transaction { from: Nanos(from), to: Nanos(to) };
    let transactions = vec![transaction(10, 25), transaction(20, 30), transaction(50, 56)];
    let recording = Recording { head: head(), tail: Some(tail), requests, lost: 0, transactions };
    let within: Vec<&Transaction> = recording.measured_transactions().collect();
    assert_eq!(within, [&transaction(20, 30)]);
    let measured: Vec<u64> = recording.measured().iter().map(|it| it.issued_at.0).collect();
    assert_eq!(measured, [20, 30, 40, 50]);
    let whole = Recording { tail: None, ..recording };
    assert_eq!(whole.measured().len(), 10);
    assert_eq!((whole.end(), whole.space_sectors()), (Nanos(95), SIZE / 512));
}

#[test]
fn a_machine_tells_its_processors_first() {
    let of = |machine: &str| Head { machine: machine.into(), ..head() }.processors();
    assert_eq!(of("2 x AMD EPYC, Linux 6.1"), Some(2));
    assert_eq!(of("Linux 6.1"), None);
    assert_eq!(of("0 x AMD EPYC"), None);
    assert_eq!(of("many x AMD EPYC"), None);
}
