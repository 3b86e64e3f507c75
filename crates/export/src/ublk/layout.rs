//! Structures of the driver as bytes, and the numbers of its commands.
//!
//! They are those of `linux/ublk_cmd.h`: little-endian on the machines that Floatgate runs on.

use crate::little_endian::{u16_at, u32_at, u64_at};

/// Bytes of [`Info`].
pub(super) const INFO_BYTES: usize = 64;
/// Bytes of [`Parameters`]: those of the kinds that are set.
pub(super) const PARAMETERS_BYTES: usize = PARAMETERS_LENGTH as usize;
const PARAMETERS_LENGTH: u32 = 60;
/// Bytes of a [`Descriptor`].
pub(super) const DESCRIPTOR_BYTES: usize = 24;
/// Bytes of the command of a queue.
const QUEUE_COMMAND_BYTES: usize = QUEUE_COMMAND_LENGTH as usize;
const QUEUE_COMMAND_LENGTH: u32 = 16;
/// Place of the descriptors of each queue in the character device: those of the most requests that
/// a queue can have.
pub(super) const DESCRIPTORS_STRIDE: u64 = 4096 * DESCRIPTOR_BYTES as u64;

/// Features of a device, and of a driver.
pub(super) mod feature {
    pub(crate) const USER_RECOVERY: u64 = 1 << 3;
    pub(crate) const USER_RECOVERY_REISSUE: u64 = 1 << 4;
    pub(crate) const CMD_IOCTL_ENCODE: u64 = 1 << 6;
}

/// States of a device.
pub(super) mod state {
    pub(crate) const DEAD: u16 = 0;
}

/// Kinds of requests.
pub(super) mod kind {
    pub(crate) const READ: u8 = 0;
    pub(crate) const WRITE: u8 = 1;
    pub(crate) const FLUSH: u8 = 2;
    pub(crate) const DISCARD: u8 = 3;
    pub(crate) const WRITE_ZEROES: u8 = 5;
}

/// Flag of a request: it is answered once it is durable.
const FUA: u32 = 1 << 13;
/// Flag of Write Zeroes: the range stays allocated.
const NO_UNMAP: u32 = 1 << 15;

/// Attributes of [`Parameters`].
const READ_ONLY: u32 = 1;
const VOLATILE_CACHE: u32 = 1 << 2;
const FUA_SUPPORTED: u32 = 1 << 3;
/// Kinds of parameters that are set.
const BASIC_AND_DISCARD: u32 = 0b11;

/// Number of a command, as `ioctl` has it: its direction, the bytes of its structure, `u`, and its
/// own number.
const fn number(direction: u32, bytes: u32, own: u32) -> u32 {
    direction << 30 | bytes << 16 | (b'u' as u32) << 8 | own
}

/// Directions of commands.
const READS: u32 = 2;
const READS_AND_WRITES: u32 = 3;

/// A command to `/dev/ublk-control`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ControlCommand {
    GetInfo,
    Add,
    Delete,
    Start,
    Stop,
    SetParameters,
    GetParameters,
    StartRecovery,
    EndRecovery,
    GetFeatures,
}

impl ControlCommand {
    /// Its name in the kernel's documents.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::GetInfo => "GET_DEV_INFO",
            Self::Add => "ADD_DEV",
            Self::Delete => "DEL_DEV",
            Self::Start => "START_DEV",
            Self::Stop => "STOP_DEV",
            Self::SetParameters => "SET_PARAMS",
            Self::GetParameters => "GET_PARAMS",
            Self::StartRecovery => "START_USER_RECOVERY",
            Self::EndRecovery => "END_USER_RECOVERY",
            Self::GetFeatures => "GET_FEATURES",
        }
    }

    pub(super) const fn number(self) -> u32 {
        let (direction, own) = match self {
            Self::GetInfo => (READS, 0x02),
            Self::Add => (READS_AND_WRITES, 0x04),
            Self::Delete => (READS_AND_WRITES, 0x05),
            Self::Start => (READS_AND_WRITES, 0x06),
            Self::Stop => (READS_AND_WRITES, 0x07),
            Self::SetParameters => (READS_AND_WRITES, 0x08),
            Self::GetParameters => (READS, 0x09),
            Self::StartRecovery => (READS_AND_WRITES, 0x10),
            Self::EndRecovery => (READS_AND_WRITES, 0x11),
            Self::GetFeatures => (READS, 0x13),
        };
        number(direction, 32, own)
    }
}

/// The control command for a device: with a buffer, which is given by address and length, and a
/// number.
pub(super) fn control_command(device: u32, address: u64, length: u16, data: u64) -> [u8; 80] {
    let mut bytes = [0; 80];
    put(&mut bytes, 0, &device.to_le_bytes());
    // It is for no queue.
    put(&mut bytes, 4, &u16::MAX.to_le_bytes());
    put(&mut bytes, 6, &length.to_le_bytes());
    put(&mut bytes, 8, &address.to_le_bytes());
    put(&mut bytes, 16, &data.to_le_bytes());
    bytes
}

/// Fetches the first request of a tag.
pub(super) const FETCH: u32 = number(READS_AND_WRITES, QUEUE_COMMAND_LENGTH, 0x20);
/// Answers the request of a tag, and fetches its next one.
pub(super) const COMMIT_AND_FETCH: u32 = number(READS_AND_WRITES, QUEUE_COMMAND_LENGTH, 0x21);

/// The command of a queue for one of its tags: bytes that were moved, or a negative error number,
/// and the address of the memory of that tag.
pub(super) fn queue_command(
    (queue, tag): (u16, u16),
    result: i32,
    address: u64,
) -> [u8; QUEUE_COMMAND_BYTES] {
    let mut bytes = [0; QUEUE_COMMAND_BYTES];
    put(&mut bytes, 0, &queue.to_le_bytes());
    put(&mut bytes, 2, &tag.to_le_bytes());
    put(&mut bytes, 4, &result.to_le_bytes());
    put(&mut bytes, 8, &address.to_le_bytes());
    bytes
}

/// A device as the driver keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Info {
    pub(super) queues: u16,
    /// Requests of each queue.
    pub(super) depth: u16,
    pub(super) state: u16,
    /// Most bytes of a request.
    pub(super) request_bytes_max: u32,
    pub(super) number: u32,
    /// Process of the server.
    pub(super) process: i32,
    pub(super) features: u64,
    /// Number that only the server knows the meaning of.
    pub(super) key: u64,
}

impl Info {
    pub(super) fn of(bytes: &[u8; INFO_BYTES]) -> Self {
        let long = |at| u64_at(bytes, at).expect("within the structure");
        let word = |at| u32_at(bytes, at).expect("within the structure");
        let half = |at| u16_at(bytes, at).expect("within the structure");
        Self {
            queues: half(0),
            depth: half(2),
            state: half(4),
            request_bytes_max: word(8),
            number: word(12),
            process: word(16).cast_signed(),
            features: long(24),
            key: long(32),
        }
    }

    pub(super) fn bytes(&self) -> [u8; INFO_BYTES] {
        let mut bytes = [0; INFO_BYTES];
        put(&mut bytes, 0, &self.queues.to_le_bytes());
        put(&mut bytes, 2, &self.depth.to_le_bytes());
        put(&mut bytes, 4, &self.state.to_le_bytes());
        put(&mut bytes, 8, &self.request_bytes_max.to_le_bytes());
        put(&mut bytes, 12, &self.number.to_le_bytes());
        put(&mut bytes, 16, &self.process.to_le_bytes());
        put(&mut bytes, 24, &self.features.to_le_bytes());
        put(&mut bytes, 32, &self.key.to_le_bytes());
        bytes
    }
}

/// Size and limits of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parameters {
    pub(super) sectors: u64,
    pub(super) is_read_only: bool,
    /// True if a flush makes durable what is not.
    pub(super) has_write_cache: bool,
    /// Most sectors of a read or a write.
    pub(super) sectors_max: u32,
    /// Most sectors of a discard, or of zeroes.
    pub(super) discard_sectors_max: u32,
}

/// Logical blocks of 512 bytes, and physical ones of 4096, as exponents.
const LOGICAL_SHIFT: u8 = 9;
const PHYSICAL_SHIFT: u8 = 12;

impl Parameters {
    pub(super) fn bytes(&self) -> [u8; PARAMETERS_BYTES] {
        let protection = if self.is_read_only { READ_ONLY } else { 0 };
        let mut bytes = [0; PARAMETERS_BYTES];
        put(&mut bytes, 0, &PARAMETERS_LENGTH.to_le_bytes());
        put(&mut bytes, 4, &BASIC_AND_DISCARD.to_le_bytes());
        let cache = if self.has_write_cache { VOLATILE_CACHE | FUA_SUPPORTED } else { 0 };
        put(&mut bytes, 8, &(protection | cache).to_le_bytes());
        let shifts = [LOGICAL_SHIFT, PHYSICAL_SHIFT, PHYSICAL_SHIFT, PHYSICAL_SHIFT];
        put(&mut bytes, 12, &shifts);
        put(&mut bytes, 16, &self.sectors_max.to_le_bytes());
        put(&mut bytes, 24, &self.sectors.to_le_bytes());
        put(&mut bytes, 44, &(1_u32 << PHYSICAL_SHIFT).to_le_bytes());
        put(&mut bytes, 48, &self.discard_sectors_max.to_le_bytes());
        put(&mut bytes, 52, &self.discard_sectors_max.to_le_bytes());
        // The driver takes one range for each request.
        put(&mut bytes, 56, &1_u16.to_le_bytes());
        bytes
    }

    pub(super) fn of(bytes: &[u8; PARAMETERS_BYTES]) -> Self {
        let word = |at| u32_at(bytes, at).expect("within the structure");
        Self {
            sectors: u64_at(bytes, 24).expect("within the structure"),
            is_read_only: word(8) & READ_ONLY != 0,
            has_write_cache: word(8) & VOLATILE_CACHE != 0,
            sectors_max: word(16),
            discard_sectors_max: word(48),
        }
    }
}

/// A request, as the driver describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub(super) kind: u8,
    pub(super) is_fua: bool,
    pub(super) may_unmap: bool,
    pub(super) sectors: u32,
    pub(super) first_sector: u64,
}

impl Descriptor {
    pub(super) fn of(bytes: &[u8; DESCRIPTOR_BYTES]) -> Self {
        let flags = u32_at(bytes, 0).expect("within the structure");
        Self {
            kind: flags.to_le_bytes()[0],
            is_fua: flags & FUA != 0,
            may_unmap: flags & NO_UNMAP == 0,
            sectors: u32_at(bytes, 4).expect("within the structure"),
            first_sector: u64_at(bytes, 8).expect("within the structure"),
        }
    }
}

fn put(bytes: &mut [u8], at: usize, part: &[u8]) {
    bytes[at..][..part.len()].copy_from_slice(part);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn commands_have_the_numbers_of_the_kernel() {
        // What a C program prints of `UBLK_U_CMD_ADD_DEV` and others.
        assert_eq!(ControlCommand::GetInfo.number(), 0x8020_7502);
        assert_eq!(ControlCommand::Add.number(), 0xC020_7504);
        assert_eq!(ControlCommand::EndRecovery.number(), 0xC020_7511);
        assert_eq!(ControlCommand::GetFeatures.number(), 0x8020_7513);
        assert_eq!((FETCH, COMMIT_AND_FETCH), (0xC010_7520, 0xC010_7521));
    }

    #[test]
    fn a_command_has_its_device_buffer_and_number() {
        let bytes = control_command(3, 0x1122_3344_5566_7788, 64, 4242);
        assert_eq!(bytes[..8], [3, 0, 0, 0, 0xff, 0xff, 64, 0]);
        assert_eq!(u64_at(&bytes, 8), Some(0x1122_3344_5566_7788));
        assert_eq!(u64_at(&bytes, 16), Some(4242));
        assert_eq!(
            queue_command((2, 7), -5, 0x1122_3344),
            [2, 0, 7, 0, 0xfb, 0xff, 0xff, 0xff, 0x44, 0x33, 0x22, 0x11, 0, 0, 0, 0]
        );
    }

    #[test]
    fn the_descriptors_of_a_queue_have_room_for_the_most_tags() {
        assert_eq!(DESCRIPTORS_STRIDE, 98_304);
    }

    #[test]
    fn a_descriptor_says_what_is_requested() {
        let bytes = |flags: u32, sectors: u32, first: u64| {
            let mut bytes = [0; DESCRIPTOR_BYTES];
            put(&mut bytes, 0, &flags.to_le_bytes());
            put(&mut bytes, 4, &sectors.to_le_bytes());
            put(&mut bytes, 8, &first.to_le_bytes());
            Descriptor::of(&bytes)
        };
        let durable_write = bytes(1 | 1 << 13, 8, 1 << 40);
        let expected = Descriptor {
            kind: kind::WRITE,
            is_fua: true,
            may_unmap: true,
            sectors: 8,
            first_sector: 1 << 40,
        };
        assert_eq!(durable_write, expected);
        let zeroes = bytes(5 | 1 << 15, 1, 0);
        assert!(zeroes.kind == kind::WRITE_ZEROES && !zeroes.may_unmap && !zeroes.is_fua);
    }

    #[test]
    fn parameters_lie_where_the_driver_reads_them() {
        let parameters = Parameters {
            sectors: 0x0102_0304_0506,
            is_read_only: true,
            has_write_cache: true,
            sectors_max: 2048,
            discard_sectors_max: 1 << 22,
        };
        let bytes = parameters.bytes();
        assert_eq!(u32_at(&bytes, 0), Some(60), "length");
        assert_eq!(u32_at(&bytes, 8), Some(0b1101), "read-only, with a cache, and FUA");
        assert_eq!(bytes[12..16], [9, 12, 12, 12]);
        assert_eq!(u32_at(&bytes, 44), Some(4096), "discard granularity");
        assert_eq!(u16_at(&bytes, 56), Some(1), "segments of a discard");
        assert_eq!(Parameters::of(&bytes), parameters);
    }

    proptest! {
        #[test]
        fn what_is_told_of_a_device_is_read_back(
            (queues, depth, state) in any::<(u16, u16, u16)>(),
            (request_bytes_max, number, process) in any::<(u32, u32, i32)>(),
            (features, key) in any::<(u64, u64)>(),
        ) {
            let info = Info {
                queues, depth, state, request_bytes_max, number, process, features, key,
            };
            prop_assert_eq!(Info::of(&info.bytes()), info);
        }
    }
}
