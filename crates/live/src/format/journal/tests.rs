//! Batches of the journal: what is read back, and what of a damaged one is believed.

use super::*;
use crate::format::layout::tests::SHAPE;

const DRIVE: u64 = 7;

fn layout() -> Layout {
    Layout::new(&SHAPE)
}

fn extent(lpn: u32, payload: &[u8]) -> Extent {
    Extent {
        lpn: Lpn(lpn),
        codec: Codec::Lz4,
        key: 0,
        length: u16::try_from(payload.len()).unwrap(),
        seq: 50,
        payload_crc: crc32c::crc32c(payload),
    }
}

/// A batch with these records, numbered and placed.
fn batch(number: u64, at: u64, records: &[u8]) -> Vec<u8> {
    let head = HeadBytes {
        magic: MAGIC.into(),
        drive: DRIVE.into(),
        session: 3.into(),
        number: number.into(),
        at: at.into(),
        length: u32::try_from(records.len()).unwrap().into(),
        records: 1.into(),
        link: 0x77.into(),
        copies: 2.into(),
        body_crc: U32::ZERO,
        crc: U32::ZERO,
    };
    let mut batch = head.as_bytes().to_vec();
    batch.extend_from_slice(records);
    seal_batch(&mut batch);
    batch
}

fn range(kind: u8, first: u32, pages: u32) -> Vec<u8> {
    let record = RangeRecord {
        kind,
        zeroes: [0; 3],
        first: first.into(),
        seq: 60.into(),
        pages: pages.into(),
        rest: [0; 12],
    };
    record.as_bytes().to_vec()
}

/// A row with `entries` extents in each of its three data units.
fn row(row: u32, out: u64, units: u16, entries: u32) -> Vec<u8> {
    let mut list = Vec::new();
    for _ in 0..units {
        list.extend_from_slice(&entries.to_le_bytes());
        for lpn in 0..entries {
            list.extend_from_slice(extent(lpn, b"page").id().as_bytes());
        }
    }
    let record = RowRecord {
        kind: ROW,
        is_relocation: 1,
        units: units.into(),
        row: row.into(),
        seq: 70.into(),
        out: out.into(),
        erase_count: 5.into(),
        length: u32::try_from(list.len()).unwrap().into(),
    };
    [record.as_bytes(), &list].concat()
}

fn records(body: &[u8]) -> Option<Vec<Record>> {
    let mut records = Vec::new();
    parse(body, 0, &layout(), &mut records).map(|()| records)
}

#[test]
fn the_head_of_a_batch_is_read_by_its_own_drive_alone() {
    let bytes = batch(9, 1024, &range(TRIM, 1, 2));
    let head = Head::parse(&bytes[..HEAD_BYTES], DRIVE).unwrap();
    assert_eq!(head.position, Position { at: 1024, number: 9, link: 0x77 });
    assert_eq!((head.session, head.copies), (3, 2));
    assert_eq!(head.crc, link_to(&bytes), "the next one links to it");
    assert_eq!(head.body_crc, crc32c::crc32c(&bytes[HEAD_BYTES..]));
    assert!(Head::parse(&bytes[..HEAD_BYTES], DRIVE + 1).is_none());
    for at in 0..HEAD_BYTES {
        let mut torn = bytes[..HEAD_BYTES].to_vec();
        torn[at] ^= 0x40;
        assert!(Head::parse(&torn, DRIVE).is_none(), "byte {at}");
    }
    assert!(Head::parse(&bytes[..HEAD_BYTES - 1], DRIVE).is_none());
}

#[test]
fn records_are_read_in_the_order_in_which_they_were_added() {
    let mut body = range(TRIM, 8, 3);
    add_extent(&mut body, extent(5, b"payload"), b"payload", 33, Ppn(12));
    body.extend(range(RELEASE, 4, 0));
    body.extend(range(LOST, 9, 1));
    body.extend(row(2, 0, 3, 2));
    let records = records(&body).expect("each is possible");
    let [
        Record::Trim(trim),
        Record::Extent { journaled, ppn, row_seq },
        Record::Release { superblock, seq },
        Record::Lost(lost),
        Record::Row(row),
    ] = records.as_slice()
    else {
        panic!("{records:?}")
    };
    assert_eq!(*trim, Trim { first: Lpn(8), pages: 3, seq: 60 });
    assert_eq!((*ppn, *row_seq, journaled.extent.lpn), (Ppn(12), 33, Lpn(5)));
    let payload = &body[journaled.from..journaled.from + usize::from(journaled.extent.length)];
    assert_eq!(payload, b"payload");
    assert_eq!((*superblock, *seq), (4, 60));
    assert_eq!(*lost, Trim { first: Lpn(9), pages: 1, seq: 60 });
    assert_eq!((row.row, row.units, row.life.seq), (2, 3, 70));
    assert!(row.origin.is_relocation && row.origin.erase_count == 5);
}

#[test]
fn a_batch_without_records_says_nothing() {
    assert_eq!(records(&[]).map(|it| it.len()), Some(0));
}

#[test]
fn a_batch_that_is_cut_within_a_record_is_believed_in_nothing() {
    let mut body = range(TRIM, 8, 3);
    add_extent(&mut body, extent(5, b"payload"), b"payload", 33, Ppn(12));
    body.extend(row(2, 0, 3, 2));
    let whole: Vec<usize> = vec![0, 32, 32 + 32 + 7, body.len()];
    for end in 0..=body.len() {
        assert_eq!(records(&body[..end]).is_some(), whole.contains(&end), "cut at {end}");
    }
}

#[test]
fn an_extent_is_held_to_its_payload_and_to_the_places_of_the_drive() {
    let of = |change: fn(&mut Vec<u8>)| {
        let mut body = Vec::new();
        add_extent(&mut body, extent(5, b"payload"), b"payload", 33, Ppn(12));
        change(&mut body);
        records(&body).is_some()
    };
    assert!(of(|_| ()));
    assert!(!of(|body| body[RECORD_BYTES] ^= 1), "a payload that was damaged");
    assert!(!of(|body| body[1] = 77), "a codec that there is not");
    assert!(!of(|body| body[1] = Codec::Raw as u8), "a page stored whole has 4096 bytes");
    let beyond = layout().places();
    let mut body = Vec::new();
    add_extent(&mut body, extent(5, b"x"), b"x", 33, Ppn(beyond));
    assert!(records(&body).is_none(), "a place beyond the drive");
}

#[test]
fn a_kind_of_record_that_there_is_not_is_not_passed_over() {
    for kind in [0, 6, 255] {
        assert!(records(&range(kind, 1, 1)).is_none(), "{kind}");
    }
}

#[test]
fn pages_that_are_trimmed_do_not_wrap_around() {
    assert!(records(&range(TRIM, u32::MAX - 1, 1)).is_some());
    assert!(records(&range(TRIM, u32::MAX - 1, 2)).is_none());
    assert!(records(&range(LOST, u32::MAX, 1)).is_none());
}

#[test]
fn a_superblock_that_is_released_is_one_of_the_drive() {
    assert!(records(&range(RELEASE, SHAPE.superblocks - 1, 0)).is_some());
    assert!(records(&range(RELEASE, SHAPE.superblocks, 0)).is_none());
}

#[test]
fn a_row_is_one_that_the_drive_can_have() {
    assert!(records(&row(0, 0, 3, 1)).is_some());
    assert!(records(&row(0, 0, 3, 0)).is_some(), "a unit may be empty");
    assert!(records(&row(SHAPE.rows_total(), 0, 3, 1)).is_none(), "beyond the last row");
    assert!(records(&row(0, 0, 2, 1)).is_none(), "a unit is missing");
    assert!(records(&row(0, 0b1, 2, 1)).is_some(), "one die is left out");
    assert!(records(&row(0, 0b1, 3, 1)).is_none(), "a unit too many for it");
    assert!(records(&row(0, 0b111, 0, 1)).is_none(), "nothing would be left");
    assert!(records(&row(0, 1 << 9, 2, 1)).is_none(), "a die that there is not");
    let slots = layout().unit_slots;
    assert!(records(&row(0, 0, 3, slots)).is_some());
    assert!(records(&row(0, 0, 3, slots + 1)).is_none(), "more than a unit holds");
}

#[test]
fn a_row_of_no_life_is_not_believed() {
    let mut body = row(0, 0, 3, 1);
    body[8..16].fill(0);
    assert!(records(&body).is_none());
}

#[test]
fn a_list_is_parted_unit_by_unit() {
    let body = row(0, 0, 3, 2);
    let list = &body[RECORD_BYTES..];
    let (entries, rest) = listed_unit(list).unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(rest.len(), list.len() - 4 - 2 * LISTED_BYTES);
    let lpns: Vec<u32> = entries.iter().map(|it| listed_extent(it).unwrap().lpn.0).collect();
    assert_eq!(lpns, [0, 1]);
    assert!(listed_unit(&list[..3]).is_none(), "a count that is cut");
    assert!(listed_unit(&u32::MAX.to_le_bytes()).is_none(), "a count of more than there is");
}

/// The last batch of a ring that holds these batches at these offsets.
fn last(size: usize, batches: &[(usize, Vec<u8>)]) -> Option<((u64, u64), Range<usize>)> {
    let mut ring = vec![0; size];
    for (at, batch) in batches {
        ring[*at..*at + batch.len()].copy_from_slice(batch);
    }
    last_batch(size, |range| Cow::Borrowed(&ring[range]))
}

#[test]
fn the_last_batch_of_a_ring_is_the_one_with_the_highest_number_in_its_place() {
    let record = range(TRIM, 1, 1);
    let of = |number, at| batch(number, at, &record);
    let whole = [(0, of(5, 4096)), (512, of(6, 4608)), (1024, of(3, 1024))];
    let (number, found) = last(4096, &whole).unwrap();
    assert_eq!((number, found.start), ((6, 3), 512));
    assert_eq!(found.len(), HEAD_BYTES + RECORD_BYTES);
    let misplaced = [(0, of(5, 4096)), (512, of(9, 0))];
    assert_eq!(last(4096, &misplaced).unwrap().0, (5, 3), "one that lies elsewhere does not count");
}

#[test]
fn a_batch_whose_records_are_torn_is_not_the_last_one() {
    let record = range(TRIM, 1, 1);
    let mut torn = batch(6, 512, &record);
    *torn.last_mut().unwrap() ^= 1;
    let found = last(4096, &[(0, batch(5, 0, &record)), (512, torn)]).unwrap();
    assert_eq!(found.0, (5, 3));
    assert_eq!(last(4096, &[]), None, "a ring that was never written");
    let long = batch(6, 512, &record.repeat(200));
    assert!(long.len() > 4096);
}
