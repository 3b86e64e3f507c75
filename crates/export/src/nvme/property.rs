//! Properties of a controller ([nvme-base-2021], "Controller Properties"), which are its registers
//! over PCI Express: their offsets, their bits, and the values that never change.

/// Entries of the largest submission queue.
pub(super) const QUEUE_ENTRIES_MAX: u32 = 1024;
/// I/O queues of a controller.
pub(super) const QUEUES_MAX: u16 = 128;
/// Interrupt vectors over PCI Express: one for each queue.
pub(crate) const VECTORS: u16 = QUEUES_MAX + 1;
/// VS: version 2.0 of the base specification.
pub(super) const VERSION: u32 = 0x0002_0000;

/// CRTO: ready, with or without media, within half a second.
pub(super) const READY_TIMEOUTS: u32 = 1 << 16 | 1;
/// CC.EN: the controller is enabled.
pub(super) const ENABLE: u32 = 1;
/// Bits of CSTS.
pub(super) const READY: u32 = 1;
pub(super) const FATAL: u32 = 2;
pub(super) const SHUTDOWN_COMPLETE: u32 = 2 << 2;

/// CAP: the largest queue, contiguous queues, half a second to be ready, the NVM command set, and
/// the way of readiness of 2.0 (CRWMS).
pub(super) const fn capabilities() -> u64 {
    (QUEUE_ENTRIES_MAX as u64 - 1) | 1 << 16 | 1 << 24 | 1 << 37 | 1 << 59
}

/// Offsets in bytes. Fabrics do not have the properties of the admin queue.
pub(super) mod offset {
    pub(crate) const CAPABILITIES: u32 = 0x00;
    pub(crate) const VERSION: u32 = 0x08;
    pub(crate) const CONFIGURATION: u32 = 0x14;
    pub(crate) const STATUS: u32 = 0x1C;
    pub(crate) const SUBSYSTEM_RESET: u32 = 0x20;
    pub(crate) const ADMIN_SIZES: u32 = 0x24;
    pub(crate) const ADMIN_SUBMISSION: u32 = 0x28;
    pub(crate) const ADMIN_COMPLETION: u32 = 0x30;
    pub(crate) const READY_TIMEOUTS: u32 = 0x68;
}
