//! A split ring: a table of descriptors, a ring of heads that are available, and one of those that
//! were used.

use std::sync::atomic::{Ordering, fence};

use super::{
    Chain, DESCRIPTOR_BYTES, Descriptor, INDIRECT, Layout, NEXT, RingError, chain, passed,
};
use crate::guest_memory::GuestMemory;

/// Flag of the available ring: the driver wants no notification; of the used ring: the device wants
/// none.
const SILENT: u16 = 1;

/// A split ring, from the side of the device.
#[derive(Debug)]
pub(crate) struct SplitRing {
    layout: Layout,
    /// True if both sides name the entry from which on they want a notification.
    has_event_index: bool,
    /// Counters of entries, which wrap around.
    next_available: u16,
    /// Count of available entries when it was read last: reading it takes a line of the cache from
    /// the driver, so once for a batch.
    seen_available: u16,
    next_used: u16,
    /// Count of used entries when the driver was notified last.
    notified: u16,
}

impl SplitRing {
    pub(crate) const fn new(layout: Layout, has_event_index: bool) -> Self {
        let (next_available, seen_available, next_used, notified) = (0, 0, 0, 0);
        Self { layout, has_event_index, next_available, seen_available, next_used, notified }
    }

    pub(super) fn pop(
        &mut self,
        memory: &GuestMemory,
        own: &mut Vec<Descriptor>,
    ) -> Result<Option<Chain>, RingError> {
        let Layout { size, driver, .. } = self.layout;
        if self.seen_available == self.next_available && !self.look(memory)? {
            return Ok(None);
        }
        let slot = u64::from(self.next_available % size);
        let head = memory.load_u16(driver.wrapping_add(4 + 2 * slot))?;
        self.follow(memory, head, own)?;
        self.next_available = self.next_available.wrapping_add(1);
        chain(memory, (head, 1), own, true).map(Some)
    }

    /// Reads how many chains the driver made available. Returns whether there is one to be taken.
    fn look(&mut self, memory: &GuestMemory) -> Result<bool, RingError> {
        let Layout { size, driver, .. } = self.layout;
        self.seen_available = memory.load_u16(driver.wrapping_add(2))?;
        let available = self.seen_available.wrapping_sub(self.next_available);
        if available > size {
            let text = format!("{available} chains are available in a ring of {size}");
            return Err(RingError::Broken(text));
        }
        Ok(available > 0)
    }

    /// Copies the descriptors of a chain.
    fn follow(
        &self,
        memory: &GuestMemory,
        head: u16,
        own: &mut Vec<Descriptor>,
    ) -> Result<(), RingError> {
        let Layout { size, descriptors, .. } = self.layout;
        let mut index = head;
        for _ in 0..size {
            if index >= size {
                return Err(RingError::Broken(format!("descriptor {index} of {size}")));
            }
            let offset = u64::from(index) * DESCRIPTOR_BYTES as u64;
            let descriptor = Descriptor::read(memory, descriptors.wrapping_add(offset))?;
            own.push(descriptor);
            let has_next = descriptor.flags & NEXT != 0;
            if has_next && descriptor.flags & INDIRECT != 0 {
                return Err(RingError::Broken("a table that is not the last of a chain".into()));
            }
            if !has_next {
                return Ok(());
            }
            index = descriptor.tag;
        }
        Err(RingError::Broken("a chain that loops".to_owned()))
    }

    pub(super) fn push(
        &mut self,
        memory: &GuestMemory,
        id: u16,
        written_bytes: u32,
    ) -> Result<(), RingError> {
        let Layout { size, device, .. } = self.layout;
        let slot = u64::from(self.next_used % size);
        let mut element = [0; 8];
        element[..2].copy_from_slice(&id.to_le_bytes());
        element[4..].copy_from_slice(&written_bytes.to_le_bytes());
        memory.write(device.wrapping_add(4 + 8 * slot), &element)?;
        self.next_used = self.next_used.wrapping_add(1);
        Ok(())
    }

    /// Has the driver see the used entries.
    pub(super) fn publish(&self, memory: &GuestMemory) -> Result<(), RingError> {
        Ok(memory.store_u16(self.layout.device.wrapping_add(2), self.next_used)?)
    }

    pub(super) fn wants_call(&mut self, memory: &GuestMemory) -> Result<bool, RingError> {
        // The driver sees the used entries before its flags are read.
        fence(Ordering::SeqCst);
        let Layout { size, driver, .. } = self.layout;
        let before = std::mem::replace(&mut self.notified, self.next_used);
        if before == self.next_used {
            return Ok(false);
        }
        if self.has_event_index {
            let asked = memory.load_u16(driver.wrapping_add(4 + 2 * u64::from(size)))?;
            return Ok(passed(asked, self.next_used, before));
        }
        Ok(memory.load_u16(driver)? & SILENT == 0)
    }

    pub(super) fn ask_for_kicks(
        &mut self,
        memory: &GuestMemory,
        is_wanted: bool,
    ) -> Result<bool, RingError> {
        let Layout { size, device, .. } = self.layout;
        if !self.has_event_index {
            memory.store_u16(device, if is_wanted { 0 } else { SILENT })?;
        } else if is_wanted {
            let place = device.wrapping_add(4 + 8 * u64::from(size));
            memory.store_u16(place, self.next_available)?;
        }
        if !is_wanted {
            return Ok(false);
        }
        // The driver sees it before the ring is read once more: it may have come too late.
        fence(Ordering::SeqCst);
        self.look(memory)
    }

    pub(super) const fn size(&self) -> u16 {
        self.layout.size
    }

    /// The count of available entries in the lower half, that of used ones in the upper.
    pub(super) const fn base(&self) -> u32 {
        self.next_available as u32 | (self.next_used as u32) << 16
    }

    pub(super) const fn used_after(&self) -> u32 {
        self.next_available as u32 | (self.next_used.wrapping_add(1) as u32) << 16
    }

    #[expect(clippy::cast_possible_truncation, reason = "the halves of a number")]
    pub(super) const fn set_base(&mut self, base: u32) {
        (self.next_available, self.next_used) = (base as u16, (base >> 16) as u16);
        (self.seen_available, self.notified) = (self.next_available, self.next_used);
    }

    pub(super) fn was_pushed(&self, memory: &GuestMemory, base: u32) -> Result<bool, RingError> {
        let used = memory.load_u16(self.layout.device.wrapping_add(2))?;
        Ok(used != (base >> 16) as u16)
    }
}
