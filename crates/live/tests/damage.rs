//! One bit of every byte of small drives flipped, each on a copy of its own, closed and crashed: no
//! read ever returns what a crash alone could not have left.

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

fn flip(shape: &Shape) -> [Flipped; 2] {
    [false, true].map(|is_closed| match flip_each(shape, &SCRIPT, is_closed, STRIDE) {
        Ok(flipped) => flipped,
        Err(what) => panic!("{shape:?}, closed: {is_closed}: {what}"),
    })
}

#[test]
fn no_flipped_bit_of_a_single_die_is_silent() {
    for shape in [SINGLE, PACKED] {
        for Flipped { bytes, refused, lossy } in flip(&shape) {
            assert!(bytes > 200 && lossy > 0, "{bytes} bytes, {refused} refused, {lossy} lossy");
            // Headers, journal and checkpoints are there twice.
            assert!(refused < bytes / 20, "{bytes} bytes, {refused} refused, {lossy} lossy");
        }
    }
}

#[test]
fn no_flipped_bit_of_a_protected_drive_loses_anything() {
    for flipped in flip(&PROTECTED) {
        let Flipped { bytes, refused, lossy } = flipped;
        assert!(bytes > 500 && refused == 0 && lossy == 0, "{flipped:?}");
    }
}
