//! Bytes of NVMe structures: little-endian numbers at named offsets.

use crate::little_endian;

/// A structure under construction, all zeroes at first.
#[derive(Clone, Debug)]
pub(super) struct Structure {
    bytes: Vec<u8>,
}

impl Structure {
    /// A structure of `length` bytes.
    pub(super) fn new(length: usize) -> Self {
        Self { bytes: vec![0; length] }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Writes bytes at an offset.
    pub(super) fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    pub(super) fn put_u8(&mut self, at: usize, value: u8) {
        self.put(at, &[value]);
    }

    /// Sets the bits of `value` in a byte.
    pub(super) fn or_u8(&mut self, at: usize, value: u8) {
        self.bytes[at] |= value;
    }

    pub(super) fn put_u16(&mut self, at: usize, value: u16) {
        self.put(at, &value.to_le_bytes());
    }

    pub(super) fn put_u32(&mut self, at: usize, value: u32) {
        self.put(at, &value.to_le_bytes());
    }

    pub(super) fn put_u64(&mut self, at: usize, value: u64) {
        self.put(at, &value.to_le_bytes());
    }

    pub(super) fn put_u128(&mut self, at: usize, value: u128) {
        self.put(at, &value.to_le_bytes());
    }

    /// Writes printable ASCII characters, padded with spaces or cut to `length` bytes; other
    /// characters become `?`.
    pub(super) fn put_padded(&mut self, at: usize, length: usize, text: &str) {
        let mut padded = vec![b' '; length];
        let shown = text.chars().map(|c| {
            u8::try_from(c).ok().filter(|it| it.is_ascii_graphic() || *it == b' ').unwrap_or(b'?')
        });
        for (place, byte) in padded.iter_mut().zip(shown) {
            *place = byte;
        }
        self.put(at, &padded);
    }

    /// Writes a zero-terminated text, within `length` bytes.
    pub(super) fn put_terminated(&mut self, at: usize, length: usize, text: &str) {
        let bytes = &text.as_bytes()[..text.len().min(length - 1)];
        self.put(at, bytes);
    }
}

/// The text in `bytes` up to the first zero; none if it is empty, unterminated, or not UTF-8.
pub(super) fn terminated(bytes: &[u8]) -> Option<&str> {
    let end = bytes.iter().position(|byte| *byte == 0).filter(|end| *end > 0)?;
    std::str::from_utf8(&bytes[..end]).ok()
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    little_endian::u16_at(bytes, at).expect("within the structure")
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    little_endian::u32_at(bytes, at).expect("within the structure")
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    little_endian::u64_at(bytes, at).expect("within the structure")
}

/// The low 16 bits of a number.
pub(super) fn low16(value: u32) -> u16 {
    u16::try_from(value & 0xFFFF).expect("masked")
}

/// The low 8 bits of a number.
pub(super) fn low8(value: u32) -> u8 {
    u8::try_from(value & 0xFF).expect("masked")
}

/// Organization of identifiers that are administered locally: none is registered.
const ORGANIZATION: [u8; 3] = [0x02, 0x46, 0x47];

/// FNV-1a: an identifier needs no cryptographic hash.
fn hash(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
    })
}

/// The organization, and 40 bits of a hash.
fn extended(hash: u64) -> [u8; 8] {
    let [_, _, _, rest @ ..] = (hash ^ hash >> 40).to_be_bytes();
    let mut bytes = [0; 8];
    bytes[..3].copy_from_slice(&ORGANIZATION);
    bytes[3..].copy_from_slice(&rest);
    bytes
}

/// IEEE Extended Unique Identifier for a part of the drive with this number, as [`uuid`].
pub(super) fn eui64(number: u64, part: &str) -> [u8; 8] {
    extended(hash(number.to_be_bytes().into_iter().chain(part.bytes())))
}

/// Namespace Globally Unique Identifier for such a part: the drive's number is its extension.
pub(super) fn nguid(number: u64, part: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes[8..].copy_from_slice(&extended(hash(part.bytes())));
    bytes
}

/// UUID of version 8 (RFC 9562) for a part of the drive with this number. It is the same each time
/// the drive is served, and different for every drive and part.
pub(super) fn uuid(number: u64, part: &str) -> [u8; 16] {
    let hash = hash(part.bytes());
    let high = (number >> 16) << 16 | 0x8000 | (number >> 4) & 0x0FFF;
    let low = 1 << 63 | (number & 0xF) << 58 | hash >> 6;
    (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
}

/// A UUID as text.
pub(super) fn uuid_text(uuid: [u8; 16]) -> String {
    let mut text = format!("{:032x}", u128::from_be_bytes(uuid));
    // From the end, so that the earlier positions stay valid.
    for at in [20, 16, 12, 8] {
        text.insert(at, '-');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_of_version_8_and_tells_drives_and_parts_apart() {
        let text = uuid_text(uuid(0x0123_4567_89AB_CDEF, "a"));
        assert!(
            text.starts_with("01234567-89ab-8cde-bc") || text.starts_with("01234567-89ab-8cde-b"),
            "{text}"
        );
        assert_eq!(text.len(), 36);
        assert_ne!(uuid(1, "a"), uuid(1, "b"));
        assert_ne!(uuid(1, "a"), uuid(2, "a"));
        // Drive numbers that differ in a single bit, at every position.
        for bit in 0..64 {
            assert_ne!(uuid(0, "a"), uuid(1 << bit, "a"), "bit {bit}");
        }
    }

    #[test]
    fn identifiers_are_of_the_local_organization_and_tell_drives_and_parts_apart() {
        let (nguid_1a, eui64_1a) = (nguid(1, "a"), eui64(1, "a"));
        assert_eq!(nguid_1a[..11], [0, 0, 0, 0, 0, 0, 0, 1, 0x02, 0x46, 0x47]);
        assert_eq!(eui64_1a[..3], [0x02, 0x46, 0x47], "local, of one");
        assert!(nguid_1a != nguid(1, "b") && nguid_1a != nguid(2, "a"));
        assert!(eui64_1a != eui64(1, "b") && eui64_1a != eui64(2, "a"));
    }

    #[test]
    fn texts_are_padded_or_end_with_a_zero_and_what_is_not_ascii_is_replaced() {
        let mut structure = Structure::new(12);
        structure.put_padded(0, 6, "aé");
        structure.put_terminated(6, 6, "longer than that");
        assert_eq!(structure.into_bytes(), b"a?    longe\0");
        assert_eq!(terminated(b"nqn\0\0"), Some("nqn"));
        assert_eq!(terminated(b"nqn"), None);
        assert_eq!(terminated(b"\0nqn"), None);
    }
}
