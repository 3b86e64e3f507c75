//! One bit of every byte of small drives flipped, each on a copy of its own, closed and crashed: no
//! read ever returns what a crash alone could not have left.

#![expect(clippy::print_stdout, reason = "what comes of every byte is told to who asks for it")]

use live::Shape;
use live::simulation::{
    FlipResult, PACKED, PROTECTED, RestingState, SINGLE, ScriptStep, flip_each,
};

use ScriptStep::{Checkpoint, Flush, Trim, Write};

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

/// Bytes from one flipped bit to the next: `FLOATGATE_FLIP_STRIDE`, or a number that no
/// structure's length shares a factor with, so that each kind of field has its turn.
fn stride() -> usize {
    let typed = std::env::var("FLOATGATE_FLIP_STRIDE");
    typed.map_or(97, |text| text.parse().expect("FLOATGATE_FLIP_STRIDE is a number of bytes"))
}

/// Flips bits of a drive in a state, and prints what came of it.
fn flip(shape: &Shape, left: RestingState) -> FlipResult {
    match flip_each(shape, &SCRIPT, left, stride()) {
        Ok(flipped) => {
            let Shape { dies, compression, .. } = shape;
            println!("dies: {dies}, {compression:?}, {left:?}: {flipped:?}");
            flipped
        }
        Err(what) => panic!("{shape:?}, {left:?}: {what}"),
    }
}

#[test]
fn no_flipped_bit_of_a_single_die_is_silent() {
    for shape in [SINGLE, PACKED] {
        for left in [RestingState::Crashed, RestingState::Closed, RestingState::Headless] {
            let flipped = flip(&shape, left);
            let FlipResult { bytes, refused, lossy, .. } = flipped;
            assert!(bytes > 20_000 / stride() as u64 && lossy > 0, "{flipped:?}");
            // Headers, journal and checkpoints are there twice; but one header has no other left.
            // Two of its sectors are not all zeroes.
            let header = 1024 / stride() as u64;
            let expected = if left == RestingState::Headless { header..header + 2 } else { 0..1 };
            assert!(expected.contains(&refused), "{left:?}: {flipped:?}");
        }
    }
}

#[test]
fn no_flipped_bit_of_a_protected_drive_loses_anything() {
    for left in [RestingState::Crashed, RestingState::Closed, RestingState::Headless] {
        let flipped = flip(&PROTECTED, left);
        let FlipResult { bytes, refused, lossy, .. } = flipped;
        assert!(bytes > 50_000 / stride() as u64 && refused == 0 && lossy == 0, "{flipped:?}");
    }
}
