//! Logs of wear: Endurance Group Information ([nvme-base-2021]) and SMART / Health Information
//! Extended of the OCP datacenter specification ([ocp-nvme-2021]).

use device::DriveHealth;

use super::super::context::Context;
use super::super::wire::Structure;

/// The only endurance group.
pub(super) const GROUP: u16 = 1;
/// Data unit of the log of an endurance group, in bytes.
const BILLION: u64 = 1_000_000_000;
/// Identifier of the OCP log, as bytes in memory.
const OCP_GUID: [u8; 16] = [
    0xC5, 0xAF, 0x10, 0x28, 0xEA, 0xBF, 0xF2, 0xA4, 0x9C, 0x4F, 0x6F, 0x7C, 0xC9, 0x14, 0xD5, 0xAF,
];

/// Endurance Group Information: the drive is one group.
pub(super) fn group(context: &Context<'_>, warning: u8) -> Vec<u8> {
    let operations = context.drive.operations();
    let (health, space) = (operations.health(), operations.space());
    let units = |bytes: u64| u128::from(bytes.div_ceil(BILLION));
    let mut it = Structure::new(512);
    // Spare space, reliability and read-only, of the warnings of SMART.
    it.put_u8(0, warning & 0b1101);
    it.put_u8(3, health.available_spare_percent);
    it.put_u8(4, health.available_spare_threshold_percent);
    it.put_u8(5, health.percentage_used);
    it.put_u128(48, units(health.host_read_bytes));
    it.put_u128(64, units(health.host_written_bytes));
    it.put_u128(80, units(health.media_written_bytes.unwrap_or(0)));
    it.put_u128(96, health.host_read_commands.into());
    it.put_u128(112, health.host_write_commands.into());
    it.put_u128(128, health.media_errors.into());
    it.put_u128(144, context.drive.errors().into());
    it.put_u128(160, space.total_bytes.into());
    it.put_u128(176, space.unallocated_bytes.into());
    it.into_bytes()
}

/// SMART / Health Information Extended: what the drive counts. Bad user NAND blocks are bad places;
/// their normalized count is the spare that is left. No system block is bad, which is 100 in its
/// normalized count, and there is no capacitor, which is all ones; the rest is zero.
pub(super) fn ocp(health: &DriveHealth) -> Vec<u8> {
    let mut it = Structure::new(512);
    it.put_u128(0, health.media_written_bytes.unwrap_or(0).into());
    it.put_u128(16, health.media_read_bytes.unwrap_or(0).into());
    it.put(32, &health.bad_places.to_le_bytes()[..6]);
    it.put_u16(38, health.available_spare_percent.into());
    it.put_u16(46, 100);
    it.put_u64(48, health.xor_recoveries);
    it.put_u64(56, health.media_errors);
    it.put_u32(88, health.erase_count_max.unwrap_or(0));
    it.put_u32(92, health.erase_count_min.unwrap_or(0));
    it.put_u8(97, u8::from(health.is_throttled));
    it.put_u32(112, u32::try_from(health.unsafe_shutdowns).unwrap_or(u32::MAX));
    it.put_u8(120, health.free_superblocks_percent.unwrap_or(0));
    it.put_u16(128, u16::MAX);
    it.put_u16(494, 3);
    it.put(496, &OCP_GUID);
    it.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extended_log_has_bad_places_and_what_parity_answered() {
        let health = DriveHealth {
            bad_places: 3,
            available_spare_percent: 98,
            xor_recoveries: 0x0102_0304,
            media_errors: 7,
            ..DriveHealth::default()
        };
        let log = ocp(&health);
        assert_eq!(log[32..38], [3, 0, 0, 0, 0, 0]);
        assert_eq!((log[38], log[46]), (98, 100));
        assert_eq!(log[48..52], [4, 3, 2, 1]);
        assert_eq!(log[56], 7);
    }
}
