//! PCI configuration space of the drive: one memory region, and the capabilities that NVMe asks for
//! ([nvme-pcie-2021], "PCI Express Registers"): power management, PCI Express with function-level
//! reset, interrupts by message (MSI-X).

use crate::nvme::{VECTORS, VENDOR};

/// Bytes of the space.
pub(super) const BYTES: usize = 4096;
/// Bytes of the region of registers: a page of them, then doorbells, vectors, pending vectors.
pub(super) const REGION_BYTES: u64 = 0x4000;
/// Offsets in that region.
const VECTOR_TABLE_AT: u32 = 0x2000;
const PENDING_AT: u32 = 0x3000;
const DEVICE: u16 = 0x4E56;
/// Places of capabilities, each of which names the next.
const POWER_AT: usize = 0x40;
const EXPRESS_AT: usize = 0x50;
const MSIX_AT: usize = 0xA0;
/// Device Control of PCI Express, and its bit that resets the function.
const DEVICE_CONTROL_AT: usize = EXPRESS_AT + 0x08;
const INITIATE_RESET: u8 = 1 << 7;
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
        // Version 1.2; D0 and D3hot, without a reset between them.
        put(POWER_AT, &[0x01, 0x50, 0x03, 0, 0x08, 0]);
        put_express(&mut put);
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
        allow(POWER_AT + 4, &[0x03]);
        // Device Control, Link Control, Device Control 2, Link Control 2.
        allow(DEVICE_CONTROL_AT, &[0xFF, 0x78]);
        allow(EXPRESS_AT + 0x10, &[0xCB]);
        allow(EXPRESS_AT + 0x28, &[0x10]);
        allow(EXPRESS_AT + 0x30, &[0x0F]);
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

    /// Changes those bits of it that a driver may change. Returns whether that resets the function.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) -> bool {
        let from = usize::try_from(offset).unwrap_or(BYTES).min(BYTES);
        let places = self.bytes[from..].iter_mut().zip(&self.writable[from..]);
        for ((byte, writable), new) in places.zip(bytes) {
            *byte = *byte & !writable | new & writable;
        }
        let control = (DEVICE_CONTROL_AT + 1).checked_sub(from).and_then(|at| bytes.get(at));
        control.is_some_and(|byte| byte & INITIATE_RESET != 0)
    }
}

/// Puts the capability of PCI Express: an endpoint of version 2, with four lanes of 16 GT/s.
fn put_express(put: &mut impl FnMut(usize, &[u8])) {
    const NEXT: u8 = 0xA0;
    put(EXPRESS_AT, &[0x10, NEXT, 0x02, 0]);
    // Device Capabilities: error reporting by role, function-level reset.
    put(EXPRESS_AT + 0x04, &(1_u32 << 28 | 1 << 15).to_le_bytes());
    // Device Control: relaxed ordering, no snooping, reads of 512 bytes.
    put(DEVICE_CONTROL_AT, &[0x10, 0x28]);
    // Link Capabilities, with optional power states, and Link Status: speed and width.
    put(EXPRESS_AT + 0x0C, &(1_u32 << 22 | 4 << 4 | 4).to_le_bytes());
    put(EXPRESS_AT + 0x12, &[0x44, 0]);
    // Device Capabilities 2: timeouts of completions can be disabled.
    put(EXPRESS_AT + 0x24, &[0x10]);
    // Link Capabilities 2 and Link Control 2: speeds up to the fourth.
    put(EXPRESS_AT + 0x2C, &[0x1E]);
    put(EXPRESS_AT + 0x30, &[0x04]);
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
    fn capabilities_are_chained_and_the_bit_of_a_reset_reads_as_zero() {
        let mut it = Configuration::new();
        let (mut at, mut identifiers) = (it.bytes[0x34], Vec::new());
        while at != 0 {
            let [identifier, next] = [0, 1].map(|byte| it.bytes[usize::from(at) + byte]);
            identifiers.push(identifier);
            at = next;
        }
        assert_eq!(identifiers, [0x01, 0x10, 0x11]);
        assert_eq!(it.bytes[EXPRESS_AT + 7] & 0x10, 0x10, "function-level reset");
        assert!(!it.write(DEVICE_CONTROL_AT as u64, &[0x20, 0x20]));
        for (offset, bytes) in [(0, &[0x20, 0xA0][..]), (1, &[0xA0])] {
            assert!(it.write((DEVICE_CONTROL_AT + offset) as u64, bytes));
            assert_eq!(it.bytes[DEVICE_CONTROL_AT..][..2], [0x20, 0x20]);
        }
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
