//! Numbers of pages.

/// Bytes of the pages in which counters count, and of a logical page unless
/// [`crate::Geometry::indirection_kib`] makes it larger.
pub const PAGE_BYTES: u64 = 4096;

/// Logical page number: the unit of mapping, 4 KiB or a coarser indirection unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lpn(pub u32);

/// Physical page number: superblock x places of a superblock + place within it.
///
/// A place is a page of the superblock, or where the drive compresses one of the extents that may
/// lie there; then places are numbered layer by layer, each layer with a place in every page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ppn(pub u32);
