//! Every cut of the power in short scripts, and what survives in every way.

use live::simulation::{Step, exhaust};
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

/// Three pages a unit may hold up to twelve extents of seeded, unevenly compressible data.
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

fn check(shape: &Shape, script: &[Step]) {
    match exhaust(shape, script) {
        Ok(states) => assert!(states > 100, "{states}"),
        Err(what) => panic!("{script:?}: {what}"),
    }
}

use Step::{Checkpoint, Flush, Trim, Write, WriteBoth};

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
