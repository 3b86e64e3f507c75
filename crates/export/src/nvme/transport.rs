//! Transports: their limits, and what Identify and logs report of them.

/// Largest transfer of a command, in pages of 4 KiB as a power of two (MDTS).
pub(super) const TRANSFER_PAGES_LOG2: u8 = 7;
/// Largest transfer of a command in bytes.
pub(super) const TRANSFER_BYTES_MAX: usize = 4096 << TRANSFER_PAGES_LOG2;
/// A PCI vendor that is not registered: the drive does not pretend to be of a vendor.
pub(crate) const VENDOR: u16 = 0x1234;

/// Transport by which a host reaches its controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    /// NVMe/TCP, which is fabrics.
    Tcp,
    /// Registers and queues in memory.
    Pcie,
}

impl Transport {
    /// Transport Type of error log and discovery ([nvme-base-2021], "TRTYPE"); 0 for none of
    /// fabrics.
    pub(super) const fn kind(self) -> u8 {
        match self {
            Self::Tcp => 3,
            Self::Pcie => 0,
        }
    }

    /// True if commands come in capsules.
    pub(super) const fn is_fabrics(self) -> bool {
        matches!(self, Self::Tcp)
    }
}
