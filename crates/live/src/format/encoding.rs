//! Structures of fixed layout on the media: numbers are little-endian, without gaps between them.
//!
//! A structure is a `#[repr(C)]` type of [`U16`], [`U32`], [`U64`] and bytes, so that writing and
//! reading it go by one layout; what its fields may say is judged by whoever reads it.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub(crate) use zerocopy::little_endian::{U16, U32, U64};

/// The structure that `bytes` begin with; none if they are too short.
#[inline]
pub(crate) fn prefix<T>(bytes: &[u8]) -> Option<&T>
where
    T: FromBytes + KnownLayout + Immutable + Unaligned,
{
    T::ref_from_prefix(bytes).ok().map(|(structure, _)| structure)
}

/// Puts a structure at the beginning of `bytes`.
#[inline]
pub(crate) fn put_prefix<T: IntoBytes + Immutable>(bytes: &mut [u8], structure: &T) {
    bytes[..size_of::<T>()].copy_from_slice(structure.as_bytes());
}

/// Ends a structure of fixed length with the checksum of what comes before.
pub(crate) fn seal(bytes: &mut [u8]) {
    let (before, crc) = bytes.split_last_chunk_mut().expect("a structure has a checksum");
    *crc = crc32c::crc32c(before).to_le_bytes();
}

/// True if bytes end with the checksum of those before it.
pub(crate) fn is_sealed(bytes: &[u8]) -> bool {
    bytes
        .split_last_chunk()
        .is_some_and(|(before, crc)| u32::from_le_bytes(*crc) == crc32c::crc32c(before))
}
