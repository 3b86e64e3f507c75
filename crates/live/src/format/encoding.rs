//! Structures of fixed layout on the media: numbers are little-endian, without gaps between them.
//!
//! A structure is a `#[repr(C)]` type of [`U16`], [`U32`], [`U64`] and bytes, so that writing and
//! reading it go by one layout; what its fields may say is judged by its reader.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_structure_shows_each_changed_byte() {
        let mut bytes: Vec<u8> = (0..32).collect();
        seal(&mut bytes);
        assert!(is_sealed(&bytes));
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            assert!(!is_sealed(&changed), "byte {at}");
        }
    }

    #[test]
    fn bytes_too_short_for_a_checksum_are_not_sealed() {
        assert!(!is_sealed(&[]) && !is_sealed(&[1, 2, 3]));
        // The checksum of nothing is zero: a structure of zeroes has a magic number to be told by.
        assert!(is_sealed(&[0; 4]));
    }

    #[test]
    fn a_structure_is_read_from_the_beginning_of_longer_bytes_alone() {
        let bytes = 0x0102_0304_u32.to_le_bytes();
        assert_eq!(prefix::<U32>(&bytes).map(|it| it.get()), Some(0x0102_0304));
        assert_eq!(prefix::<U16>(&bytes).map(|it| it.get()), Some(0x0304));
        assert!(prefix::<U64>(&bytes).is_none());
    }

    #[test]
    fn a_structure_is_put_before_what_is_there() {
        let mut bytes = [9_u8; 6];
        put_prefix(&mut bytes, &U32::new(1));
        assert_eq!(bytes, [1, 0, 0, 0, 9, 9]);
    }
}
