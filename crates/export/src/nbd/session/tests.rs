//! Tests of a session: requests whole, in pieces, malformed and hostile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;

use super::super::client::{self, answers, extended, kind, request, terms, write};
use super::*;
use crate::conversation::REPLIES_BYTES_MAX;
use device::MemoryDevice;

const SIZE: u64 = 1 << 20;

/// A device that counts flushes, and whose faults are chosen.
#[derive(Debug)]
struct Faulty {
    inner: MemoryDevice,
    flushes: AtomicU32,
    fails_flush: bool,
    /// The sector that cannot be read.
    lost_lba: Option<u64>,
}

impl Faulty {
    fn new() -> Self {
        let inner = MemoryDevice::new(SIZE);
        Self { inner, flushes: AtomicU32::new(0), fails_flush: false, lost_lba: None }
    }
}

impl Device for Faulty {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        self.inner.read(offset, buffer)?;
        let range = offset..offset + buffer.len() as u64;
        match self.lost_lba {
            Some(lba) if range.contains(&(lba * 512)) => {
                Err(DeviceError::Unreadable { lba, reason: "worn".into() })
            }
            _ => Ok(()),
        }
    }

    fn write(&self, offset: u64, bytes: &[u8], how: Durability) -> Result<(), DeviceError> {
        self.inner.write(offset, bytes, how)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        if self.fails_flush {
            return Err(DeviceError::Poisoned { reason: "the medium is gone".into() });
        }
        Ok(())
    }

    fn trim(&self, offset: u64, length: u64, how: Durability) -> Result<(), DeviceError> {
        self.inner.trim(offset, length, how)
    }

    fn allocations(&self, offset: u64, length: u64) -> Result<Vec<Allocation>, DeviceError> {
        self.inner.allocations(offset, length)
    }
}

fn session(device: Arc<dyn Device>, dialect: Dialect) -> Session {
    Session::new(terms(device, dialect))
}

fn memory() -> Arc<dyn Device> {
    Arc::new(MemoryDevice::new(SIZE))
}

/// The error that each request is answered with, in each dialect that has its header.
fn errnos(input: &[u8]) -> Vec<u32> {
    let [simple, structured] = [Dialect::Simple, Dialect::Structured].map(|dialect| {
        let answers = answers(&mut session(memory(), dialect), dialect, input);
        answers.iter().map(|answer| answer.errno).collect::<Vec<_>>()
    });
    assert_eq!(simple, structured);
    simple
}

#[test]
fn what_was_written_is_read_in_every_dialect() {
    for dialect in [Dialect::Simple, Dialect::Structured] {
        let mut session = session(memory(), dialect);
        let mut replies = Replies::new();
        let input = [write(0, 5000, b"abc"), request(kind::READ, 0, (5001, 2))].concat();
        let taken = session.take(&input, &mut replies).unwrap();
        assert_eq!(taken.used_bytes, input.len());
        assert!(replies.as_bytes().ends_with(b"bc"), "{dialect:?}");
    }
    // As the protocol has it, and as QEMU does.
    for flags in [flag::PAYLOAD, 0] {
        let mut session = session(memory(), Dialect::Extended);
        let written = [extended(kind::WRITE, flags, (9, 3)), b"xyz".to_vec()].concat();
        let input = [written, extended(kind::READ, 0, (9, 3))].concat();
        let answers = answers(&mut session, Dialect::Extended, &input);
        assert_eq!(answers[1].payload, [&9_u64.to_be_bytes()[..], b"xyz"].concat());
    }
}

#[test]
fn a_request_beyond_the_end_is_refused_by_its_kind() {
    let place = (SIZE - 10, 11);
    let bytes = [
        request(kind::READ, 0, place),
        write(0, SIZE - 10, &[0; 11]),
        request(kind::TRIM, 0, place),
        request(kind::WRITE_ZEROES, 0, place),
        request(kind::CACHE, 0, (u64::MAX, 2)),
        request(kind::CACHE, 0, (0, 1)),
    ];
    assert_eq!(errnos(&bytes.concat()), [22, 28, 22, 28, 22, 0]);
}

#[test]
fn unknown_requests_and_flags_are_refused_and_the_client_stays() {
    let bytes = [
        request(99, 0, (0, 8)),
        request(kind::READ, flag::NO_HOLE, (0, 8)),
        write(flag::REQUEST_ONE, 0, &[1; 8]),
        request(kind::TRIM, 1 << 15, (0, 8)),
        request(kind::FLUSH, 0, (0, 0)),
    ];
    assert_eq!(errnos(&bytes.concat()), [22, 22, 22, 22, 0]);
}

#[test]
fn a_payload_above_the_limit_is_skipped_and_refused() {
    let length = REQUEST_BYTES_MAX + 1;
    let mut session = session(memory(), Dialect::Structured);
    let mut replies = Replies::new();
    let header = request(kind::WRITE, 0, (0, length));
    let piece = vec![0xEE; 1 << 20];
    assert_eq!(session.take(&header, &mut replies).unwrap().used_bytes, 28);
    let mut left = length as usize;
    while left > 0 {
        let here = left.min(piece.len());
        assert_eq!(session.take(&piece[..here], &mut replies).unwrap().used_bytes, here);
        left -= here;
    }
    session.take(&request(kind::READ, 0, (0, 4)), &mut replies).unwrap();
    let answers = client::parse(Dialect::Structured, replies.as_bytes());
    assert_eq!(answers.iter().map(|answer| answer.errno).collect::<Vec<_>>(), [22, 0]);
    assert!(answers[1].payload.ends_with(&[0; 4]), "nothing of it was written");
}

#[test]
fn a_read_above_the_limit_is_refused() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new(1 << 40));
    let mut session = session(device, Dialect::Structured);
    let input = request(kind::READ, 0, (0, REQUEST_BYTES_MAX + 1));
    assert_eq!(answers(&mut session, Dialect::Structured, &input)[0].errno, 22);
}

#[test]
fn one_flush_answers_all_that_wait_for_durability() {
    let device = Arc::new(Faulty::new());
    let served: Arc<dyn Device> = Arc::<Faulty>::clone(&device);
    let mut session = session(served, Dialect::Structured);
    let mut replies = Replies::new();
    let input = [
        write(flag::FUA, 0, &[1; 512]),
        request(kind::FLUSH, 0, (0, 0)),
        request(kind::READ, 0, (0, 1)),
        request(kind::WRITE_ZEROES, flag::FUA, (4096, 512)),
    ];
    session.take(&input.concat(), &mut replies).unwrap();
    assert_eq!(client::parse(Dialect::Structured, replies.as_bytes()).len(), 1, "the read");
    assert_eq!(device.flushes.load(Ordering::Relaxed), 0);
    session.settle(&mut replies);
    session.settle(&mut replies);
    assert_eq!(client::parse(Dialect::Structured, replies.as_bytes()).len(), 4);
    assert_eq!(device.flushes.load(Ordering::Relaxed), 1);
}

#[test]
fn a_flush_that_failed_is_told_to_all_that_waited_for_it() {
    let device = Arc::new(Faulty { fails_flush: true, ..Faulty::new() });
    let mut session = session(device, Dialect::Structured);
    let input = [write(flag::FUA, 0, &[1; 512]), request(kind::FLUSH, 0, (0, 0))].concat();
    let answers = answers(&mut session, Dialect::Structured, &input);
    assert_eq!(answers.iter().map(|answer| answer.errno).collect::<Vec<_>>(), [5, 5]);
}

#[test]
fn a_lost_sector_is_named_and_none_of_its_data_sent() {
    let device = Arc::new(Faulty { lost_lba: Some(9), ..Faulty::new() });
    device.write(0, &[0xAB; 8192], Durability::Volatile).unwrap();
    let mut session = session(device, Dialect::Structured);
    let input = request(kind::READ, 0, (0, 8192));
    let [answer] = &answers(&mut session, Dialect::Structured, &input)[..] else { panic!() };
    assert_eq!((answer.kind, answer.errno), (chunk::ERROR_OFFSET, 5));
    assert!(answer.payload.ends_with(&(9_u64 * 512).to_be_bytes()));
    assert!(!answer.payload.contains(&0xAB));
}

#[test]
fn of_many_reads_at_once_those_that_fail_are_told_and_the_others_get_their_data() {
    let device = Arc::new(Faulty { lost_lba: Some(9), ..Faulty::new() });
    for page in 0..4_u8 {
        let bytes = [page + 1; 4096];
        device.write(4096 * u64::from(page), &bytes, Durability::Volatile).unwrap();
    }
    let mut session = session(device, Dialect::Structured);
    // The second and the fourth cannot be read, the fifth is beyond the end, and the sixth is to
    // find what the first one did, not what is written behind it.
    let places = [(0, 4096), (4096, 4096), (8192, 4096), (4608, 512), (SIZE, 1), (0, 10)];
    let mut input = places.map(|place| request(kind::READ, 0, place)).concat();
    input.extend([write(0, 0, &[9; 4096]), request(kind::READ, 0, (0, 10))].concat());
    let answers = answers(&mut session, Dialect::Structured, &input);
    let errnos: Vec<u32> = answers.iter().map(|answer| answer.errno).collect();
    assert_eq!(errnos, [0, 5, 0, 5, 22, 0, 0, 0]);
    let data = |answer: usize| &answers[answer].payload[8..];
    assert_eq!((data(0), data(2)), (&[1; 4096][..], &[3; 4096][..]));
    assert_eq!((data(5), data(7)), (&[1; 10][..], &[9; 10][..]));
}

#[test]
fn what_is_answered_at_once_is_answered_behind_a_read_that_fails() {
    let device = Arc::new(Faulty { lost_lba: Some(9), ..Faulty::new() });
    let reads = [(4608, 512), (0, 0), (8192, 512)];
    let input = reads.map(|place| request(kind::READ, 0, place)).concat();
    let answers = answers(&mut session(device, Dialect::Structured), Dialect::Structured, &input);
    assert_eq!(answers.iter().map(|answer| answer.errno).collect::<Vec<_>>(), [5, 0, 0]);
}

#[test]
fn a_read_that_is_too_long_is_refused_behind_a_read_that_fails() {
    let inner = MemoryDevice::new(1 << 30);
    let device = Arc::new(Faulty { inner, lost_lba: Some(9), ..Faulty::new() });
    let mut session = session(device, Dialect::Structured);
    let reads = [(4608, 512), (0, REQUEST_BYTES_MAX + 1), (8192, 512)];
    let input = reads.map(|place| request(kind::READ, 0, place)).concat();
    let answers = answers(&mut session, Dialect::Structured, &input);
    assert_eq!(answers.iter().map(|answer| answer.errno).collect::<Vec<_>>(), [5, 22, 0]);
}

#[test]
fn a_read_only_export_refuses_what_changes_it() {
    let mut terms = terms(memory(), Dialect::Structured);
    let export = Arc::get_mut(&mut terms.export).unwrap();
    export.is_read_only = true;
    let input = [
        write(0, 0, &[1; 8]),
        request(kind::TRIM, 0, (0, 8)),
        request(kind::WRITE_ZEROES, 0, (0, 8)),
        request(kind::FLUSH, 0, (0, 0)),
        request(kind::READ, 0, (0, 8)),
    ];
    let answers = answers(&mut Session::new(terms), Dialect::Structured, &input.concat());
    assert_eq!(answers.iter().map(|answer| answer.errno).collect::<Vec<_>>(), [1, 1, 1, 0, 0]);
}

#[test]
fn zeroes_take_space_only_where_that_is_asked_for() {
    let device = memory();
    let mut session = session(Arc::clone(&device), Dialect::Structured);
    let input = [
        write(0, 0, &vec![7; 65536]),
        request(kind::WRITE_ZEROES, 0, (0, 8192)),
        request(kind::WRITE_ZEROES, flag::NO_HOLE, (8192, 8192)),
        request(kind::WRITE_ZEROES, flag::FAST_ZERO, (16_384, 8192)),
        request(kind::WRITE_ZEROES, flag::FAST_ZERO | flag::NO_HOLE, (24_576, 8192)),
        request(kind::BLOCK_STATUS, 0, (0, 131_072)),
        request(kind::BLOCK_STATUS, flag::REQUEST_ONE, (4096, 131_072)),
    ];
    let answers = answers(&mut session, Dialect::Structured, &input.concat());
    assert_eq!(answers[4].errno, 95);
    let runs = |payload: &[u8]| -> Vec<(u32, u32)> {
        payload[4..].chunks(8).map(|run| (wire::u32_at(run, 0), wire::u32_at(run, 4))).collect()
    };
    let expected = [(8192, 3), (8192, 0), (8192, 3), (40_960, 0), (65_536, 3)];
    assert_eq!(runs(&answers[5].payload), expected);
    assert_eq!(runs(&answers[6].payload), [(4096, 3)]);
    let mut back = vec![1; 32_768];
    device.read(0, &mut back).unwrap();
    assert_eq!((back[..24_576].iter().max(), back[24_576]), (Some(&0), 7));
}

#[test]
fn a_terabyte_is_trimmed_by_one_request() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new(1 << 40));
    device.write(1 << 39, &[1; 4096], Durability::Volatile).unwrap();
    let mut session = session(Arc::clone(&device), Dialect::Extended);
    let input = [
        extended(kind::TRIM, 0, (0, 1 << 40)),
        extended(kind::BLOCK_STATUS, 0, (1 << 39, 1 << 39)),
    ];
    let answers = answers(&mut session, Dialect::Extended, &input.concat());
    assert_eq!((answers[0].errno, answers[1].kind), (0, chunk::BLOCK_STATUS_EXTENDED));
    let mut back = [1; 4096];
    device.read(1 << 39, &mut back).unwrap();
    assert_eq!(back, [0; 4096]);
}

/// Requests of all kinds, most of them well-formed, within the device and beyond.
fn any_requests() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let one = (0..9_u16, any::<u16>(), 0..SIZE + 9000, 0..20_000_u32, any::<u8>()).prop_map(
        |(number, flags, offset, length, fill)| {
            let flags = flags & 0x1F & (flags >> 8);
            match number {
                kind::WRITE => write(flags, offset, &vec![fill; length as usize]),
                kind::DISCONNECT => request(kind::FLUSH, flags, (0, 0)),
                other => request(other, flags, (offset, length)),
            }
        },
    );
    prop::collection::vec(one, 1..30)
}

proptest! {
    /// Splitting a stream of requests anywhere changes no answer and no byte of the device.
    #[test]
    fn pieces_of_any_length_are_as_good_as_the_whole(
        requests in any_requests(),
        pieces in prop::collection::vec(1..5000_usize, 1..8),
    ) {
        let input = requests.concat();
        let (whole, cut) = (memory(), memory());
        let dialect = Dialect::Structured;
        let expected = answers(&mut session(Arc::clone(&whole), dialect), dialect, &input);

        let mut session = session(Arc::clone(&cut), dialect);
        let (mut replies, mut found) = (Replies::new(), Vec::new());
        let (mut start, mut end) = (0, 0);
        let mut pieces = pieces.iter().cycle();
        while start < input.len() {
            end = input.len().min(end + pieces.next().unwrap());
            loop {
                let taken = session.take(&input[start..end], &mut replies).unwrap();
                start += taken.used_bytes;
                found.extend(client::parse(dialect, replies.as_bytes()));
                replies.clear();
                if taken.wanted_bytes > 0 {
                    prop_assert!(taken.wanted_bytes > end - start, "enough, and not taken");
                    break;
                }
            }
            session.settle(&mut replies);
            found.extend(client::parse(dialect, replies.as_bytes()));
            replies.clear();
        }
        let sorted = |mut answers: Vec<client::Answer>| {
            answers.sort_by_key(|answer| (answer.cookie, answer.kind, answer.payload.clone()));
            answers
        };
        prop_assert_eq!(found.len(), requests.len());
        prop_assert_eq!(sorted(found), sorted(expected));
        let size = usize::try_from(SIZE).unwrap();
        let (mut left, mut right) = (vec![0; size], vec![1; size]);
        whole.read(0, &mut left).unwrap();
        cut.read(0, &mut right).unwrap();
        prop_assert!(left == right);
    }

    /// Bytes that were hurt on the way, or made up, are answered or end the session, and no more.
    #[test]
    fn hostile_bytes_do_no_harm(
        requests in any_requests(),
        hurt in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        which in 0..3_usize,
    ) {
        let mut input = requests.concat();
        for (place, byte) in hurt {
            let at = place.index(input.len());
            input[at] = byte;
        }
        let dialect = [Dialect::Simple, Dialect::Structured, Dialect::Extended][which];
        if dialect == Dialect::Extended {
            input.splice(..4, wire::EXTENDED_REQUEST.to_be_bytes());
        }
        let mut session = session(memory(), dialect);
        let mut replies = Replies::new();
        let mut rest = &input[..];
        while let Ok(taken) = session.take(rest, &mut replies) {
            prop_assert!(replies.len() <= REPLIES_BYTES_MAX + REQUEST_BYTES_MAX as usize);
            rest = &rest[taken.used_bytes..];
            replies.clear();
            session.settle(&mut replies);
            if taken.wanted_bytes > 0 || session.is_over() {
                break;
            }
        }
    }
}
