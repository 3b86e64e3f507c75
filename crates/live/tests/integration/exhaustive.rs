//! Every cut of the power in short scripts, and what survives in every way.

use live::simulation::{
    HeadersLeft, PACKED, PROTECTED, SINGLE, ScriptStep, exhaust, exhaust_headers, exhaust_openings,
};
use live::{Compression, Shape};

fn check(shape: &Shape, script: &[ScriptStep]) {
    match exhaust(shape, script) {
        Ok(states) => assert!(states > 100, "{states}"),
        Err(what) => panic!("{script:?}: {what}"),
    }
}

use ScriptStep::{Checkpoint, Flush, Trim, Write, WriteBoth};

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
fn checkpoints_in_between() {
    let script = [Write(0), Checkpoint, Write(0), Write(1), Checkpoint, Trim(0), Flush];
    check(&SINGLE, &script);
}

/// The last batch of the journal may be on a single die after a crash. An opening goes on from it:
/// then the power goes again, and takes that die along.
#[test]
fn openings_that_are_cut_and_a_die_that_is_missing() {
    let script = [Write(0), Flush, Write(1), Write(0), Flush, Trim(1), Write(2), Flush];
    match exhaust_openings(&PROTECTED, &script) {
        Ok(states) => assert!(states > 1000, "{states}"),
        Err(what) => panic!("{script:?}: {what}"),
    }
}

/// A volume of the format before is upgraded by the opening that is cut; or it has lost every
/// header but those at the ends of its dies.
#[test]
fn openings_that_write_headers_anew_and_are_cut() {
    let script = [Write(0), Flush, Write(1), Write(0), Flush, Trim(1), Write(2), Flush];
    let old = [false, true].map(|is_fixed| HeadersLeft::Old { is_fixed });
    for left in old.into_iter().chain([HeadersLeft::Ends]) {
        for shape in [&SINGLE, &PROTECTED] {
            match exhaust_headers(shape, &script, left) {
                Ok(states) => assert!(states > 100, "{states}"),
                Err(what) => panic!("{} dies: {what}", shape.dies),
            }
        }
    }
}
