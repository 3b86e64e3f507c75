//! Whole drives: any fields overwritten with arbitrary values, all checksums correct.

use std::sync::LazyLock;

use live::simulation::hostile::{Edit, Image};

/// Bytes that an edit is made of.
const EDIT_BYTES: usize = 13;
/// Edits of one drive.
const EDITS_MAX: usize = 8;

/// Drives of all kinds, made once.
static IMAGES: LazyLock<Vec<Image>> = LazyLock::new(|| (0..8).map(Image::new).collect());

/// Opens the drive that the first byte chooses, after the edits that the others are.
pub(crate) fn run(input: &[u8]) {
    let Some((number, edits)) = input.split_first() else { return };
    let mut image = IMAGES[usize::from(number % 8)].clone();
    for edit in edits.as_chunks::<EDIT_BYTES>().0.iter().take(EDITS_MAX) {
        let [structure_low, structure_high, at_low, at_high, bytes, value @ ..] = *edit;
        image.edit(&Edit {
            structure: u16::from_le_bytes([structure_low, structure_high]),
            at: u16::from_le_bytes([at_low, at_high]),
            bytes,
            value: u64::from_le_bytes(value),
        });
    }
    image.seal();
    image.open();
}
