//! Erasure of media that are to be dies, or may have been.

use std::io;

use crate::Medium;
use crate::engine::dies::header_copies;
use crate::format::layout::Layout;
use crate::medium::overwrite;

/// Reason why work ended early that the operator had end.
pub(crate) const STOPPED: &str = "it was stopped";
/// Bytes of a medium that are erased before the caller is asked whether to go on.
const ERASED_AT_ONCE: usize = 64 << 20;

/// Erases a medium that is to be a die, up to its byte `end`. It may have been a die of this drive
/// before, with checkpoints, a journal and units of a history that the others do not know: their
/// numbers can be those of this one, so that no reader could tell them apart. Metadata is written
/// over, so that space that was reserved for it stays so. `go_on` is asked before each part.
///
/// # Errors
/// That of `go_on`, or what `failed` makes of the error of the medium.
pub(crate) fn erase_medium<E>(
    medium: &dyn Medium,
    layout: &Layout,
    end: u64,
    mut go_on: impl FnMut() -> Result<(), E>,
    failed: impl Fn(io::Error) -> E,
) -> Result<(), E> {
    let metadata = layout.unit_from(0).min(end);
    erase_ranges(medium, layout, [(metadata, end)], &mut go_on, failed)
}

/// As [`erase_medium`], of a medium that has units of some rows, in order, as they should be.
pub(crate) fn erase_around<E>(
    medium: &dyn Medium,
    layout: &Layout,
    kept: &[u32],
    mut go_on: impl FnMut() -> Result<(), E>,
    failed: impl Fn(io::Error) -> E,
) -> Result<(), E> {
    let metadata = layout.unit_from(0);
    let begins = kept.iter().map(|row| layout.unit_from(*row) + layout.unit_bytes as u64);
    let ends = kept.iter().map(|row| layout.unit_from(*row));
    let gaps = [metadata].into_iter().chain(begins).zip(ends.chain([layout.die_bytes()]));
    erase_ranges(medium, layout, gaps, &mut go_on, failed)
}

/// Writes zeroes over the metadata of a die, and erases ranges behind it, each from its first byte
/// up to another one.
fn erase_ranges<E>(
    medium: &dyn Medium,
    layout: &Layout,
    others: impl IntoIterator<Item = (u64, u64)>,
    go_on: &mut impl FnMut() -> Result<(), E>,
    failed: impl Fn(io::Error) -> E,
) -> Result<(), E> {
    let metadata = layout.unit_from(0).min(medium.size());
    let parts = |from: u64, until: u64| {
        let begins = (from..until).step_by(ERASED_AT_ONCE);
        begins.map(move |at| (at, (until - at).min(ERASED_AT_ONCE as u64)))
    };
    go_on()?;
    // First: alone it would count.
    header_copies::erase_end(medium, Some(layout)).map_err(&failed)?;
    for (at, length) in parts(0, metadata) {
        go_on()?;
        overwrite(medium, at, length).map_err(&failed)?;
    }
    for (at, length) in others.into_iter().flat_map(|(from, until)| parts(from, until)) {
        go_on()?;
        medium.erase(at, length).map_err(&failed)?;
    }
    medium.sync().map_err(failed)
}
