//! Messages of vhost-user, as they lie on the socket [vhost-user-2024].

use crate::little_endian::u32_at;

/// Bytes of the header.
pub(super) const HEADER_BYTES: usize = 12;
/// Most bytes of a message's body.
pub(super) const BODY_BYTES_MAX: usize = 4096;
/// Version, in the lowest two bits of the flags.
const VERSION: u32 = 1;
const IS_REPLY: u32 = 1 << 2;
const NEEDS_REPLY: u32 = 1 << 3;

/// Numbers of messages from a client.
pub(super) mod code {
    pub(crate) const GET_FEATURES: u32 = 1;
    pub(crate) const SET_FEATURES: u32 = 2;
    pub(crate) const SET_OWNER: u32 = 3;
    pub(crate) const RESET_OWNER: u32 = 4;
    pub(crate) const SET_MEM_TABLE: u32 = 5;
    pub(crate) const SET_VRING_NUM: u32 = 8;
    pub(crate) const SET_VRING_ADDR: u32 = 9;
    pub(crate) const SET_VRING_BASE: u32 = 10;
    pub(crate) const GET_VRING_BASE: u32 = 11;
    pub(crate) const SET_VRING_KICK: u32 = 12;
    pub(crate) const SET_VRING_CALL: u32 = 13;
    pub(crate) const SET_VRING_ERR: u32 = 14;
    pub(crate) const GET_PROTOCOL_FEATURES: u32 = 15;
    pub(crate) const SET_PROTOCOL_FEATURES: u32 = 16;
    pub(crate) const GET_QUEUE_NUM: u32 = 17;
    pub(crate) const SET_VRING_ENABLE: u32 = 18;
    pub(crate) const SET_BACKEND_REQ_FD: u32 = 21;
    pub(crate) const GET_CONFIG: u32 = 24;
    pub(crate) const SET_CONFIG: u32 = 25;
    pub(crate) const GET_INFLIGHT_FD: u32 = 31;
    pub(crate) const SET_INFLIGHT_FD: u32 = 32;
    pub(crate) const RESET_DEVICE: u32 = 34;
    pub(crate) const GET_MAX_MEM_SLOTS: u32 = 36;
    pub(crate) const ADD_MEM_REG: u32 = 37;
    pub(crate) const REM_MEM_REG: u32 = 38;
}

/// Number of the message to a client that its configuration changed.
const CONFIG_CHANGED: u32 = 2;

/// Protocol feature bits.
pub(super) mod protocol_feature {
    pub(crate) const QUEUES: u64 = 1 << 0;
    pub(crate) const REPLY_ACK: u64 = 1 << 3;
    pub(crate) const BACKEND_REQUESTS: u64 = 1 << 5;
    pub(crate) const CONFIG: u64 = 1 << 9;
    pub(crate) const INFLIGHT: u64 = 1 << 12;
    pub(crate) const RESET_DEVICE: u64 = 1 << 13;
    pub(crate) const MEMORY_SLOTS: u64 = 1 << 15;
}

/// A message from a client.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) code: u32,
    pub(super) needs_reply: bool,
    pub(super) body: Vec<u8>,
}

/// Header of a message, with the length of its body. None if it is of another version, or longer
/// than any message is.
pub(super) fn parse_header(bytes: &[u8; HEADER_BYTES]) -> Option<(Message, usize)> {
    let (code, flags, size) = (u32_at(bytes, 0)?, u32_at(bytes, 4)?, u32_at(bytes, 8)? as usize);
    if flags & 3 != VERSION || flags & IS_REPLY != 0 || size > BODY_BYTES_MAX {
        return None;
    }
    Some((Message { code, needs_reply: flags & NEEDS_REPLY != 0, body: Vec::new() }, size))
}

/// The bytes of an answer to `code`.
pub(super) fn reply(code: u32, body: &[u8]) -> Vec<u8> {
    message(code, VERSION | IS_REPLY, body)
}

/// The bytes of the message that the configuration changed.
pub(super) fn config_changed() -> Vec<u8> {
    message(CONFIG_CHANGED, VERSION, &[])
}

fn message(code: u32, flags: u32, body: &[u8]) -> Vec<u8> {
    let size = u32::try_from(body.len()).expect("bodies are small");
    let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
    for number in [code, flags, size] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(body);
    bytes
}
