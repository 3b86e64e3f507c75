//! Administration: identity and health of a drive, beside the data that a [`crate::Device`] holds.
//!
//! Fields are those of the NVMe SMART / Health Information log ([nvme-base-2021]), in
//! bytes and seconds; a front end brings them to the units of its protocol.

use std::fmt;

/// Identity of a drive, as tools show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Number that no other drive has; serial number and UUIDs derive from it.
    pub number: u64,
    /// Model of the drive, at most 40 printable ASCII characters are shown.
    pub model: String,
    /// Version of what drives it, at most 8 printable ASCII characters are shown.
    pub firmware: String,
}

/// Health of a drive, over its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriveHealth {
    /// Bit 0: spare below the threshold; 1: too warm; 2: redundancy or data is lost; 3: takes no
    /// writes.
    pub critical_warning: u8,
    /// Temperature in kelvin; none where nothing measures or models it.
    pub composite_temperature_k: Option<u16>,
    /// Spare space that is left, in percent.
    pub available_spare_percent: u8,
    /// Percent of spare space below which bit 0 of the warning is set.
    pub available_spare_threshold_percent: u8,
    /// Percent of its rated life that is used, 255 at most; 0 where it is not rated.
    pub percentage_used: u8,
    /// Bytes that clients read.
    pub host_read_bytes: u64,
    /// Bytes that they wrote.
    pub host_written_bytes: u64,
    /// Reads of clients.
    pub host_read_commands: u64,
    /// Writes of clients.
    pub host_write_commands: u64,
    /// Times that it was opened.
    pub power_cycles: u64,
    /// Seconds that it was served.
    pub power_on_s: u64,
    /// Openings that found it not closed.
    pub unsafe_shutdowns: u64,
    /// Pages found lost.
    pub media_errors: u64,
    /// Reads that parity answered.
    pub xor_recoveries: u64,
    /// Places of its dies that proved bad.
    pub bad_places: u64,
    /// Temperature in kelvin from which on a model slows down; none where there is no such point.
    pub warning_temperature_k: Option<u16>,
    /// Temperature in kelvin at which a model would switch itself off; none likewise.
    pub critical_temperature_k: Option<u16>,
    /// True if whatever changes data is durable before it is acknowledged.
    pub is_write_through: bool,
    /// True if it slows itself down for its temperature or power now.
    pub is_throttled: bool,
    /// Erases of the superblock erased most, and of that erased least; none where nothing counts.
    pub erase_count_max: Option<u32>,
    /// Erases of the superblock erased least, see `erase_count_max`.
    pub erase_count_min: Option<u32>,
    /// Percent of superblocks that are free; none likewise.
    pub free_superblocks_percent: Option<u8>,
    /// Bytes written to the media for whatever cause; none where there are no media.
    pub media_written_bytes: Option<u64>,
    /// Bytes read from the media; none likewise.
    pub media_read_bytes: Option<u64>,
}

/// A drive as it is administered. Many threads may ask at once.
pub trait Administration: fmt::Debug + Send + Sync {
    /// Returns its identity, which does not change while it is served.
    fn identity(&self) -> Identity;

    /// Returns its health now.
    fn health(&self) -> DriveHealth;
}
