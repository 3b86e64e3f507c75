//! PCI configuration space of the drive: one memory region, and interrupts by message (MSI-X).

use crate::nvme::{VECTORS, VENDOR};

/// Bytes of the space.
pub(super) const BYTES: usize = 4096;
/// Bytes of the region of registers: a page of them, then doorbells, vectors, pending vectors.
pub(super) const REGION_BYTES: u64 = 0x4000;
/// Offsets in that region.
const VECTOR_TABLE_AT: u32 = 0x2000;
const PENDING_AT: u32 = 0x3000;
const DEVICE: u16 = 0x4E56;
/// Place of the capability of MSI-X.
const MSIX_AT: usize = 0x40;
const REGION_AT: usize = 0x10;

/// The space, with the bits that a driver may change.
#[derive(Debug)]
pub(super) struct Configuration {
    bytes: [u8; BYTES],
    writable: [u8; BYTES],
}

impl Configuration {
    pub(super) fn new() -> Self {
        let (mut bytes, mut writable) = ([0; BYTES], [0; BYTES]);
        let mut put =
            |at: usize, number: &[u8]| bytes[at..][..number.len()].copy_from_slice(number);
        put(0x00, &VENDOR.to_le_bytes());
        put(0x02, &DEVICE.to_le_bytes());
        // It has capabilities.
        put(0x06, &[0x10, 0]);
        // Class: storage, non-volatile memory, NVM Express.
        put(0x09, &[0x02, 0x08, 0x01]);
        // A region of memory with addresses of 64 bits.
        put(REGION_AT, &[0x04]);
        put(0x34, &[0x40]);
        put(MSIX_AT, &[0x11, 0]);
        put(MSIX_AT + 2, &(VECTORS - 1).to_le_bytes());
        put(MSIX_AT + 4, &VECTOR_TABLE_AT.to_le_bytes());
        put(MSIX_AT + 8, &PENDING_AT.to_le_bytes());
        let mut allow = |at: usize, bits: &[u8]| writable[at..][..bits.len()].copy_from_slice(bits);
        // Memory, master of the bus, no interrupt by pin.
        allow(0x04, &[0x06, 0x04]);
        let size = u32::try_from(REGION_BYTES).expect("some KiB");
        allow(REGION_AT, &(!(size - 1)).to_le_bytes());
        allow(REGION_AT + 4, &[0xFF; 4]);
        allow(0x3C, &[0xFF]);
        allow(MSIX_AT + 3, &[0xC0]);
        Self { bytes, writable }
    }

    /// Fills `bytes` from an offset; bytes beyond the end read as zeroes.
    pub(super) fn read(&self, offset: u64, bytes: &mut [u8]) {
        let from = usize::try_from(offset).unwrap_or(BYTES).min(BYTES);
        for (byte, is) in bytes.iter_mut().zip(self.bytes[from..].iter().chain([0].iter().cycle()))
        {
            *byte = *is;
        }
    }

    /// Changes those bits of it that a driver may change.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let from = usize::try_from(offset).unwrap_or(BYTES).min(BYTES);
        let places = self.bytes[from..].iter_mut().zip(&self.writable[from..]);
        for ((byte, writable), new) in places.zip(bytes) {
            *byte = *byte & !writable | new & writable;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_region_shows_its_size_in_the_bits_that_stay_zero() {
        let mut it = Configuration::new();
        it.write(0x10, &[0xFF; 8]);
        let mut bytes = [0; 8];
        it.read(0x10, &mut bytes);
        assert_eq!(u64::from_le_bytes(bytes), !(REGION_BYTES - 1) | 4);
    }

    #[test]
    fn what_a_driver_may_not_change_stays() {
        let mut it = Configuration::new();
        it.write(0, &[0xFF; BYTES + 8]);
        let mut bytes = [0; 4];
        it.read(0, &mut bytes);
        assert_eq!(bytes, [0x34, 0x12, 0x56, 0x4E]);
        it.read(0x08, &mut bytes);
        assert_eq!(bytes, [0, 0x02, 0x08, 0x01]);
        it.read(BYTES as u64 - 2, &mut bytes);
        assert_eq!(bytes, [0; 4]);
        it.read(u64::MAX, &mut bytes);
        assert_eq!(bytes, [0; 4]);
    }
}
