//! One bit of every byte of small drives flipped, each on a copy of its own, closed and crashed: no
//! read ever returns what a crash alone could not have left.

#![expect(clippy::print_stdout, reason = "what comes of every byte is told to who asks for it")]

use live::Shape;
use live::simulation::{Flipped, PACKED, PROTECTED, SINGLE, ScriptStep, flip_each};

use ScriptStep::{Checkpoint, Flush, HandOver, Kill, Trim, Write};

/// Writes over what was flushed, with checkpoints in between, so that every structure is there in
/// an earlier and a later state.
const SCRIPT: [ScriptStep; 20] = [
    Write(0),
    Write(1),
    Write(2),
    Flush,
    Checkpoint,
    Write(0),
    Write(3),
    Write(4),
    Flush,
    Trim(1),
    Flush,
    Checkpoint,
    Write(0),
    Write(2),
    Flush,
    Write(5),
    Write(0),
    Write(3),
    Flush,
    Write(4),
];

/// Hands over what was written, before a flush and after it.
const HANDED_OVER: [ScriptStep; 14] = [
    Write(0),
    HandOver,
    Write(3),
    Trim(1),
    HandOver,
    Flush,
    Write(0),
    HandOver,
    Write(5),
    Flush,
    Write(4),
    HandOver,
    Write(2),
    HandOver,
];

/// Bytes from one flipped bit to the next: `FLOATGATE_FLIP_STRIDE`, or a number that no
/// structure's length shares a factor with, so that each kind of field has its turn.
fn stride() -> usize {
    let typed = std::env::var("FLOATGATE_FLIP_STRIDE");
    typed.map_or(97, |text| text.parse().expect("FLOATGATE_FLIP_STRIDE is a number of bytes"))
}

/// Flips bits of a drive after a crash, and of one that was closed, and prints what came of it.
fn flip(shape: &Shape) -> [Flipped; 2] {
    [false, true].map(|is_closed| match flip_each(shape, &SCRIPT, is_closed, stride()) {
        Ok(flipped) => {
            let Shape { dies, compression, .. } = shape;
            println!("dies: {dies}, {compression:?}, closed: {is_closed}: {flipped:?}");
            flipped
        }
        Err(what) => panic!("{shape:?}, closed: {is_closed}: {what}"),
    })
}

#[test]
fn no_flipped_bit_of_a_single_die_is_silent() {
    for shape in [SINGLE, PACKED] {
        for flipped in flip(&shape) {
            let Flipped { bytes, refused, lossy, .. } = flipped;
            assert!(bytes > 20_000 / stride() as u64 && lossy > 0, "{flipped:?}");
            // Headers, journal and checkpoints are there twice.
            assert!(refused < bytes / 20, "{flipped:?}");
        }
    }
}

#[test]
fn no_flipped_bit_brings_back_what_a_flush_replaced_beside_hand_overs() {
    let script = [&SCRIPT[..], &HANDED_OVER].concat();
    for shape in [SINGLE, PACKED, PROTECTED] {
        let flipped = flip_each(&shape, &script, false, stride());
        let flipped = flipped.unwrap_or_else(|what| panic!("{shape:?}: {what}"));
        assert!(flipped.refused < flipped.bytes / 20, "{flipped:?}");
        assert!(!shape.is_protected || flipped.lossy == 0, "{flipped:?}");
    }
}

/// The process is killed, what it handed over is brought back, and a part of it goes on unsynced:
/// then the power goes, and a bit is flipped.
#[test]
fn no_flipped_bit_brings_back_what_a_recovery_from_a_kill_replaced() {
    let fill = |pages: std::ops::Range<u32>| pages.flat_map(|page| [Write(page % 6), HandOver]);
    let mut script: Vec<ScriptStep> = fill(0..3).chain(fill(0..3)).chain([Kill]).collect();
    script.extend(fill(0..5).chain([Trim(5), HandOver, Kill]).chain(fill(1..4)));
    for shape in [SINGLE, PACKED, PROTECTED] {
        let flipped = flip_each(&shape, &script, false, stride());
        let flipped = flipped.unwrap_or_else(|what| panic!("{shape:?}: {what}"));
        assert!(flipped.refused < flipped.bytes / 20, "{flipped:?}");
        assert!(!shape.is_protected || flipped.lossy == 0, "{flipped:?}");
    }
}

#[test]
fn no_flipped_bit_of_a_protected_drive_loses_anything() {
    for flipped in flip(&PROTECTED) {
        let Flipped { bytes, refused, lossy, .. } = flipped;
        assert!(bytes > 50_000 / stride() as u64 && refused == 0 && lossy == 0, "{flipped:?}");
    }
}
