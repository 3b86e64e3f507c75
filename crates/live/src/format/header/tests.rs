//! Headers of dies: what is whole, what is believed, and which die is behind the others.

use super::*;
use crate::format::layout::tests;

/// A journal of the least size that three batches fit into is larger than that of other tests.
const SHAPE: Shape = Shape { journal_bytes: 1 << 22, ..tests::SHAPE };

fn header() -> Header {
    Header {
        format: FORMAT_VERSION,
        drive: 7,
        die: 1,
        shape: SHAPE,
        version: 10,
        version_everywhere: 9,
        session: 3,
        is_open: false,
        lost: DieSet::default(),
        lost_since: [0; 64],
        removed: DieSet::default(),
        left_out: DieSet::default(),
        unsafe_shutdowns: 1,
        closing: Closing { checkpoint: 4, journal: Position { at: 4096, number: 8, link: 0x55 } },
        keys: KeyArea::default(),
    }
}

/// Outcome of parsing a header with this change, its checksum right.
fn parsed(change: impl Fn(&mut DieHeaderBytes)) -> Result<Option<Header>, Unfit> {
    let mut bytes = header().encode();
    let mut found = *prefix::<DieHeaderBytes>(&bytes).unwrap();
    change(&mut found);
    bytes.copy_from_slice(found.as_bytes());
    seal(&mut bytes);
    Header::parse(&bytes)
}

fn claim(change: impl Fn(&mut DieHeaderBytes)) -> (&'static str, u64) {
    match parsed(change) {
        Err(Unfit::Claim { name, value }) => (name, value),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_header_is_read_as_it_was_written() {
    assert_eq!(Header::parse(&header().encode()), Ok(Some(header())));
    let mut open = Header { is_open: true, left_out: DieSet(0b100), ..header() };
    open.note_lost(DieSet(0b100));
    open.version += 1;
    assert_eq!(open.lost_since[2], 10, "the last version that it took part in");
    assert_eq!(Header::parse(&open.encode()), Ok(Some(open)));
}

#[test]
fn a_torn_header_is_none_rather_than_a_wrong_one() {
    let bytes = header().encode();
    for at in (0..bytes.len()).step_by(11).chain(0..192) {
        let mut torn = bytes.clone();
        torn[at] = !torn[at];
        assert_eq!(Header::parse(&torn), Ok(None), "byte {at}");
    }
    assert_eq!(Header::parse(&bytes[..4095]), Ok(None));
    assert_eq!(Header::parse(&[0; 4096]), Ok(None), "a die that was never written");
}

#[test]
fn another_format_is_told_by_its_version_and_nothing_else_of_it_is_looked_at() {
    let later = parsed(|it| {
        it.format = 7.into();
        it.dies = u32::MAX.into();
    });
    assert_eq!(later, Err(Unfit::Version(7)));
    let foreign = parsed(|it| it.magic[0] = b'F');
    assert_eq!(foreign, Ok(None), "another program's");
}

#[test]
fn numbers_that_cannot_be_are_named_with_their_values() {
    assert_eq!(claim(|it| it.die = 4.into()), ("die", 4));
    assert_eq!(claim(|it| it.session = 0.into()), ("session", 0));
    assert_eq!(claim(|it| it.session = (1 << 24).into()), ("session", 1 << 24));
    assert_eq!(claim(|it| it.version = u64::MAX.into()), ("version", u64::MAX));
    assert_eq!(claim(|it| it.version_everywhere = 10.into()), ("version_everywhere", 10));
    assert_eq!(claim(|it| it.lost_since[63] = 10.into()), ("lost_since", 10));
    assert_eq!(claim(|it| it.unsafe_shutdowns = 3.into()), ("unsafe_shutdowns", 3));
    assert_eq!(claim(|it| it.compression = 9.into()), ("compression", 9));
    assert_eq!(claim(|it| it.pages_mappable = (1 << 32).into()), ("pages_mappable", 1 << 32));
    assert_eq!(claim(|it| it.closing_at = 100.into()), ("closing.journal", 100));
    let far = NUMBER_MAX + 1;
    assert_eq!(claim(|it| it.closing_checkpoint = far.into()), ("closing.checkpoint", far));
}

#[test]
fn sets_of_dies_are_those_of_the_drive() {
    assert_eq!(claim(|it| it.lost = 0b1_0000.into()), ("lost", 0b1_0000));
    assert_eq!(claim(|it| it.left_out = 0b1_0000.into()), ("left_out", 0b1_0000));
    assert_eq!(
        claim(|it| it.removed = 0b0001.into()),
        ("removed", 1),
        "only a lost die is removed"
    );
    let all_but_one = |it: &mut DieHeaderBytes| {
        it.lost = 0b1111.into();
        it.removed = 0b0111.into();
    };
    assert_eq!(claim(all_but_one), ("removed", 0b0111), "a row needs data and parity");
}

#[test]
fn a_shape_that_cannot_be_is_refused_with_the_name_of_the_count() {
    let refused = |change: fn(&mut DieHeaderBytes)| match parsed(change) {
        Err(Unfit::Shape(error)) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(refused(|it| it.dies = 0.into()).contains("dies"));
    assert!(refused(|it| it.unit_pages = 0.into()).contains("unit_pages"));
    assert!(refused(|it| it.superblocks = u32::MAX.into()).contains("superblocks"));
    assert!(refused(|it| it.journal_bytes = 4096.into()).contains("journal_bytes"));
}

#[test]
fn the_words_of_a_refusal_name_what_is_wrong() {
    assert_eq!(Unfit::Version(3).to_string(), "it has format 3");
    let claim = Unfit::Claim { name: "session", value: 0 };
    assert_eq!(claim.to_string(), "session is 0, which is invalid");
}

#[test]
fn a_die_is_stale_that_missed_a_change_which_all_the_others_have() {
    let newest = Header { version: 20, version_everywhere: 18, ..header() };
    let of = |version| Header { version, version_everywhere: 0, ..header() };
    assert!(newest.is_stale(&of(17)), "change 18 had reached every die");
    assert!(!newest.is_stale(&of(18)));
    assert!(!newest.is_stale(&of(19)), "change 19 had not reached all of them");
    assert!(!newest.is_stale(&newest));
}

#[test]
fn a_die_that_was_written_after_the_others_had_lost_it_holds_different_data() {
    let mut newest = Header { version: 30, ..header() };
    newest.note_lost(DieSet(0b100));
    let of = |version, version_everywhere, lost| Header {
        die: 2,
        version,
        version_everywhere,
        lost: DieSet(lost),
        ..header()
    };
    assert_ne!(newest.die, 2);
    let newest_die = 1 << newest.die;
    assert!(!newest.diverged_from(&of(30, 29, 0)), "it has failed since");
    assert!(newest.diverged_from(&of(32, 31, 0)), "all had a header when they lost it");
    assert!(newest.diverged_from(&of(31, 29, newest_die)), "it went on without the newest");
    assert!(!newest.diverged_from(&of(31, 29, 0)), "an opening was cut off after this header");
    assert!(!newest.diverged_from(&of(32, 31, 0b100)), "it is being filled");
    newest.note_lost(DieSet(0b110));
    assert_eq!((newest.lost_since[2], newest.lost_since[1]), (30, 30));
    newest.note_lost(DieSet::default());
    assert_eq!(newest.lost_since, [0; 64]);
    // Headers of earlier versions of this program do not say when.
    let alone = Header { lost: DieSet(0b1110), ..Header { die: 0, ..header() } };
    assert!(alone.diverged_from(&of(9, 8, 0b1011)) && !alone.diverged_from(&of(9, 8, 0b0011)));
}

#[test]
fn a_closed_drive_goes_on_from_the_checkpoint_that_it_names() {
    let at = |at, number| Position { at, number, link: 0 };
    let closing = Closing { checkpoint: 4, journal: at(8192, 9) };
    let checkpoint =
        |number, journal| CheckpointHeader { number, journal, ..CheckpointHeader::default() };
    let follows = |it: CheckpointHeader| closing.follows(&it, 1 << 20);
    assert!(follows(checkpoint(4, at(8192, 9))) && follows(checkpoint(4, at(0, 1))));
    assert!(!follows(checkpoint(5, at(8192, 9))), "another checkpoint");
    assert!(!follows(checkpoint(4, at(8704, 9))), "a journal does not go back");
    assert!(!follows(checkpoint(4, at(0, 10))), "nor do its numbers");
    assert!(!closing.follows(&checkpoint(4, at(0, 1)), 4096), "more than the ring holds");
}
