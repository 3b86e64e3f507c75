//! Messages of vfio-user, as they lie on the socket [vfio-user-2023].

use crate::little_endian::{u16_at, u32_at};

/// Bytes of the header.
pub(super) const HEADER_BYTES: usize = 16;
/// Most bytes of a message's body.
pub(super) const BODY_BYTES_MAX: usize = (1 << 16) - HEADER_BYTES;
const IS_REPLY: u32 = 1;
const NO_REPLY: u32 = 1 << 4;
const IS_ERROR: u32 = 1 << 5;

/// Numbers of commands.
pub(super) mod code {
    pub(crate) const VERSION: u16 = 1;
    pub(crate) const DMA_MAP: u16 = 2;
    pub(crate) const DMA_UNMAP: u16 = 3;
    pub(crate) const DEVICE_GET_INFO: u16 = 4;
    pub(crate) const DEVICE_GET_REGION_INFO: u16 = 5;
    pub(crate) const DEVICE_GET_REGION_IO_FDS: u16 = 6;
    pub(crate) const DEVICE_GET_IRQ_INFO: u16 = 7;
    pub(crate) const DEVICE_SET_IRQS: u16 = 8;
    pub(crate) const REGION_READ: u16 = 9;
    pub(crate) const REGION_WRITE: u16 = 10;
    pub(crate) const DEVICE_RESET: u16 = 13;
    pub(crate) const REGION_WRITE_MULTI: u16 = 15;
}

/// A command of a client.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// Number that its reply repeats.
    pub(super) id: u16,
    pub(super) code: u16,
    pub(super) wants_reply: bool,
    pub(super) body: Vec<u8>,
}

/// Header of a message, with the length of its body. None if it is no command, or longer than any
/// command is.
pub(super) fn parse_header(bytes: &[u8; HEADER_BYTES]) -> Option<(Message, usize)> {
    let (size, flags) = (u32_at(bytes, 4)? as usize, u32_at(bytes, 8)?);
    let size = size.checked_sub(HEADER_BYTES).filter(|size| *size <= BODY_BYTES_MAX)?;
    if flags & 0xF != 0 {
        return None;
    }
    let (id, code) = (u16_at(bytes, 0)?, u16_at(bytes, 2)?);
    Some((Message { id, code, wants_reply: flags & NO_REPLY == 0, body: Vec::new() }, size))
}

/// The bytes of a reply: its body, or the number of an error.
pub(super) fn reply(message: &Message, body: Result<&[u8], u32>) -> Vec<u8> {
    let (flags, error) = match body {
        Ok(_) => (IS_REPLY, 0),
        Err(error) => (IS_REPLY | IS_ERROR, error),
    };
    let body = body.unwrap_or_default();
    let size = u32::try_from(HEADER_BYTES + body.len()).expect("bodies are small");
    let mut bytes = message.id.to_le_bytes().to_vec();
    bytes.extend(message.code.to_le_bytes());
    for number in [size, flags, error] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(body);
    bytes
}
