//! Frames of messages: ComPacket, Packet, Data SubPacket (TCG Core 2.01, 3.2.3).
//!
//! ```text
//!   ComPacket, 20 bytes ──► Packet, 24 bytes: session ──► SubPacket, 12 bytes ──► tokens
//! ```

/// Bytes of the three headers.
pub(crate) const HEADER_BYTES: usize = 56;
const COM_BYTES: usize = 20;
const PACKET_BYTES: usize = 24;

/// Numbers of a session: the host's and the drive's; both 0 for the session manager.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionNumbers {
    /// Number that the drive gave it (TSN).
    pub tper: u32,
    /// Number that the host gave it (HSN).
    pub host: u32,
}

/// Message in its frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    /// ComID, in the upper half of the extended one.
    pub com_id: u16,
    /// Session.
    pub session: SessionNumbers,
    /// Tokens.
    pub payload: &'a [u8],
}

/// Reads a frame of one packet with one subpacket, all that the drive's properties admit; none if
/// lengths do not fit.
pub(crate) fn read(bytes: &[u8]) -> Option<Message<'_>> {
    let com_length = usize::try_from(u32_at(bytes, 16)?).ok()?;
    let packets = bytes.get(COM_BYTES..)?.get(..com_length)?;
    let packet_length = usize::try_from(u32_at(packets, 20)?).ok()?;
    let subpackets = packets.get(PACKET_BYTES..)?.get(..packet_length)?;
    let kind = u16::from_be_bytes(subpackets.get(6..8)?.try_into().ok()?);
    let length = usize::try_from(u32_at(subpackets, 8)?).ok()?;
    let payload = subpackets.get(12..)?.get(..length)?;
    let session = SessionNumbers { tper: u32_at(packets, 0)?, host: u32_at(packets, 4)? };
    let com_id = u16::from_be_bytes(bytes.get(4..6)?.try_into().ok()?);
    (kind == 0).then_some(Message { com_id, session, payload })
}

/// Frames tokens.
pub(crate) fn write(message: &Message<'_>) -> Vec<u8> {
    let Message { com_id, session, payload } = message;
    let padded = payload.len().next_multiple_of(4);
    let mut bytes = com_header(*com_id, (0, 0), PACKET_BYTES + 12 + padded);
    bytes.extend(session.tper.to_be_bytes());
    bytes.extend(session.host.to_be_bytes());
    bytes.extend([0; 12]);
    bytes.extend(be32(12 + padded));
    bytes.extend([0; 8]);
    bytes.extend(be32(payload.len()));
    bytes.extend(*payload);
    bytes.resize(HEADER_BYTES + padded, 0);
    bytes
}

/// A ComPacket without packets: nothing is there, or not yet, or more than the host has room for
/// (TCG Core 2.01, 3.3.10.2.1); `(outstanding, minimum)` bytes.
pub(crate) fn write_empty(com_id: u16, outstanding: (usize, usize)) -> Vec<u8> {
    com_header(com_id, outstanding, 0)
}

fn com_header(com_id: u16, (outstanding, minimum): (usize, usize), length: usize) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    bytes.extend(com_id.to_be_bytes());
    bytes.extend([0; 2]);
    bytes.extend(be32(outstanding));
    bytes.extend(be32(minimum));
    bytes.extend(be32(length));
    bytes
}

fn be32(length: usize) -> [u8; 4] {
    u32::try_from(length).expect("a message has less than 16 MiB").to_be_bytes()
}

/// The number at an offset; none beyond the end.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_as_it_was_written_and_not_if_it_is_cut_off() {
        let session = SessionNumbers { tper: 4096, host: 105 };
        let message = Message { com_id: 0x07FE, session, payload: &[0xFA] };
        let bytes = write(&message);
        assert_eq!((bytes.len(), bytes[19], bytes[43], bytes[55]), (60, 40, 16, 1));
        assert_eq!(read(&bytes), Some(message));
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end]), None);
        }
    }
}
