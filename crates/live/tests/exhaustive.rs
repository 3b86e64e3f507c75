//! Every cut of the power in short scripts, and what survives in every way.

use live::simulation::{
    PACKED, PROTECTED, SINGLE, ScriptStep, WIDE, exhaust, exhaust_kills, exhaust_stale_journals,
};
use live::{Compression, Shape};

fn check(shape: &Shape, script: &[ScriptStep]) {
    match exhaust(shape, script) {
        Ok(states) => assert!(states > 100, "{states}"),
        Err(what) => panic!("{script:?}: {what}"),
    }
}

use ScriptStep::{Checkpoint, Flush, HandOver, Kill, Trim, Write, WriteBoth};

#[test]
fn overwriting_what_was_flushed() {
    let script = [Write(0), Flush, Write(0), Write(1), Flush, Write(0)];
    check(&SINGLE, &script);
    check(&PROTECTED, &script[..3]);
}

#[test]
fn trims_and_writes_after_them() {
    let script = [Write(0), Write(1), Flush, Trim(0), Flush, Write(0), Trim(1), Checkpoint];
    check(&SINGLE, &script);
}

#[test]
fn writes_of_both_or_neither() {
    let script = [Write(0), Write(3), Flush, WriteBoth(0, 3), WriteBoth(3, 1)];
    check(&SINGLE, &script);
}

#[test]
fn extents_of_all_lengths() {
    let script = [Write(0), Write(1), Write(2), Flush, Write(3), Write(0), Flush, Write(4)];
    check(&PACKED, &script);
    let script = [Write(5), Flush, WriteBoth(0, 5), Write(1), Write(2), Write(3), Checkpoint];
    check(&Shape { compression: Compression::Zstd, ..PACKED }, &script);
}

#[test]
fn what_the_system_was_given_without_a_sync() {
    let script = [Write(0), HandOver, Write(0), Trim(1), HandOver, Flush, Write(1), HandOver];
    check(&SINGLE, &script);
    check(&PROTECTED, &script[..4]);
    // A row is completed, and the other half of the window begun.
    let script = [Write(0), HandOver, Write(1), HandOver, Write(2), HandOver, Checkpoint, Write(0)];
    check(&SINGLE, &script);
    check(&PACKED, &script);
    // The window goes from one half to the other, and back; with a flush between.
    let mut script: Vec<ScriptStep> =
        (0..24).flat_map(|page| [Write(page % 6), HandOver]).collect();
    script.extend([Trim(2), HandOver, Flush, Write(1), HandOver, Checkpoint, Write(3), HandOver]);
    let states = exhaust_kills(&WIDE, &script).unwrap();
    assert!(states > 1000, "{states}");
}

/// Superblocks that recovery finds free hold rows that its first batch lists; they are filled anew,
/// and the power goes, or the process, at every moment.
#[test]
fn what_is_handed_over_in_superblocks_that_recovery_found_free() {
    let fill = |pages: std::ops::Range<u32>| pages.flat_map(|page| [Write(page % 6), HandOver]);
    let twice: Vec<ScriptStep> = fill(0..3).chain(fill(0..3)).chain([Kill]).collect();
    let script = [&twice[..], &fill(0..4).collect::<Vec<_>>(), &[Trim(1), HandOver]].concat();
    check(&SINGLE, &script);
    // Killed while the rows are listed, and after they were.
    let mut script = [&twice[..], &fill(0..9).collect::<Vec<_>>(), &[Kill]].concat();
    script.extend(fill(3..9).chain([Flush, Kill]).chain(fill(0..6)));
    for shape in [SINGLE, PACKED, PROTECTED] {
        let states = exhaust_kills(&shape, &script);
        assert!(matches!(states, Ok(200..)), "{shape:?}: {states:?}");
    }
}

/// One die has the journal of any earlier moment, as if it had lost all writes since.
#[test]
fn what_is_handed_over_to_two_dies_of_which_one_loses_writes() {
    let fill = |pages: std::ops::Range<u32>| pages.flat_map(|page| [Write(page % 6), HandOver]);
    let mut script: Vec<ScriptStep> = fill(0..6).chain([Flush]).chain(fill(0..7)).collect();
    script.extend([Trim(2), HandOver, Kill, Write(1), HandOver, Write(0), HandOver]);
    let states = exhaust_stale_journals(&PROTECTED, &script);
    assert!(matches!(states, Ok(100..)), "{states:?}");
}

#[test]
fn checkpoints_in_between() {
    let script = [Write(0), Checkpoint, Write(0), Write(1), Checkpoint, Trim(0), Flush];
    check(&SINGLE, &script);
}
