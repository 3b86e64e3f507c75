//! One bit of every byte of small drives flipped, each on a copy of its own, closed and crashed: no
//! read ever returns what a crash alone could not have left.

#![expect(clippy::print_stdout, reason = "what comes of every byte is told to who asks for it")]

use live::simulation::{Flipped, Step, flip_each};
use live::{Compression, Shape};

const SINGLE: Shape = Shape {
    pages_logical: 6,
    pages_stored_max: 6,
    pages_mappable: 6,
    dies: 1,
    is_protected: false,
    unit_pages: 1,
    rows: 3,
    superblocks: 13,
    extents_per_page: 1,
    compression: Compression::None,
    journal_bytes: 32 * 4096,
};

const PROTECTED: Shape = Shape { dies: 3, is_protected: true, journal_bytes: 96 * 4096, ..SINGLE };

const PACKED: Shape = Shape {
    pages_logical: 8,
    pages_stored_max: 8,
    pages_mappable: 8,
    unit_pages: 3,
    extents_per_page: 4,
    compression: Compression::Lz4,
    journal_bytes: 80 * 4096,
    ..SINGLE
};

use Step::{Checkpoint, Flush, Trim, Write};

/// Writes over what was flushed, with checkpoints in between, so that every structure is there in
/// an earlier and a later state.
const SCRIPT: [Step; 20] = [
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

/// Of the payloads some bytes are as good as all; a stride that no structure's length shares a
/// factor with comes by each kind of field.
const STRIDE: usize = 97;

/// Flips a bit of each `stride`-th byte of a drive after a crash, and of one that was closed, and
/// prints what came of it.
fn flip(shape: &Shape, stride: usize) -> [Flipped; 2] {
    [false, true].map(|is_closed| match flip_each(shape, &SCRIPT, is_closed, stride) {
        Ok(flipped) => {
            let Shape { dies, compression, .. } = shape;
            println!("dies: {dies}, {compression:?}, closed: {is_closed}: {flipped:?}");
            flipped
        }
        Err(what) => panic!("{shape:?}, closed: {is_closed}: {what}"),
    })
}

/// Checks what came of flips of a drive of one die.
fn check_single(shape: &Shape, stride: usize) {
    for flipped in flip(shape, stride) {
        let Flipped { bytes, refused, lossy, .. } = flipped;
        assert!(bytes > 20_000 / stride as u64 && lossy > 0, "{flipped:?}");
        // Headers, journal and checkpoints are there twice.
        assert!(refused < bytes / 20, "{flipped:?}");
    }
}

/// Checks that flips of a protected drive did no harm.
fn check_protected(stride: usize) {
    for flipped in flip(&PROTECTED, stride) {
        let Flipped { bytes, refused, lossy, .. } = flipped;
        assert!(bytes > 50_000 / stride as u64 && refused == 0 && lossy == 0, "{flipped:?}");
    }
}

#[test]
fn no_flipped_bit_of_a_single_die_is_silent() {
    for shape in [SINGLE, PACKED] {
        check_single(&shape, STRIDE);
    }
}

#[test]
fn no_flipped_bit_of_a_protected_drive_loses_anything() {
    check_protected(STRIDE);
}

// Every byte: `cargo test -p live --test damage -- --ignored --nocapture`.

#[test]
#[ignore = "takes minutes"]
fn no_flipped_byte_of_a_single_die_is_silent() {
    check_single(&SINGLE, 1);
}

#[test]
#[ignore = "takes minutes"]
fn no_flipped_byte_of_a_die_that_compresses_is_silent() {
    check_single(&PACKED, 1);
}

#[test]
#[ignore = "takes minutes"]
fn no_flipped_byte_of_a_protected_drive_loses_anything() {
    check_protected(1);
}
