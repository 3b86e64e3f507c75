//! Numbers at fixed places of a structure on the media, little-endian.

/// Puts the bytes of a number at `at`.
#[inline]
pub(crate) fn put<const N: usize>(bytes: &mut [u8], at: usize, number: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&number);
}

#[inline]
fn get<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut number = [0; N];
    number.copy_from_slice(&bytes[at..at + N]);
    number
}

/// The number at `at`.
#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(get(bytes, at))
}

/// The number at `at`.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(get(bytes, at))
}

/// The number at `at`.
#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(get(bytes, at))
}

/// Ends a structure of fixed length with the checksum of what comes before.
pub(crate) fn seal(bytes: &mut [u8]) {
    let at = bytes.len() - 4;
    let crc = crc32c::crc32c(&bytes[..at]);
    put(bytes, at, crc.to_le_bytes());
}

/// True if bytes end with the checksum of those before it.
pub(crate) fn is_sealed(bytes: &[u8]) -> bool {
    bytes
        .split_last_chunk()
        .is_some_and(|(before, crc)| u32::from_le_bytes(*crc) == crc32c::crc32c(before))
}
