//! A packed ring: one ring of descriptors, in which the device overwrites those that it used.

use std::sync::atomic::{Ordering, fence};

use super::{Chain, DESCRIPTOR_BYTES, Descriptor, Layout, NEXT, RingError, WRITE, chain};
use crate::guest_memory::GuestMemory;

/// Flags of a descriptor that is available, and that was used: they change with each round.
const AVAILABLE: u16 = 1 << 7;
const USED: u16 = 1 << 15;
/// Bit of the round in a position.
const ROUND: u16 = 1 << 15;
/// Flags of event suppression: enabled, disabled, at a position.
const ALWAYS: u16 = 0;
const NEVER: u16 = 1;
const AT_POSITION: u16 = 2;

/// A position in the ring, with the round that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    slot: u16,
    /// False in every second round.
    is_odd: bool,
}

/// A packed ring, from the side of the device.
#[derive(Debug)]
pub(crate) struct PackedRing {
    layout: Layout,
    has_event_index: bool,
    available: Position,
    used: Position,
    /// Slots marked as used since the driver was notified last; no more are counted than fit.
    unnotified: u16,
}

impl Position {
    const START: Self = Self { slot: 0, is_odd: true };

    /// The position so many slots later, at most as many as the ring has.
    const fn after(self, slots: u16, size: u16) -> Self {
        let slot = self.slot + slots;
        if slot >= size {
            Self { slot: slot - size, is_odd: !self.is_odd }
        } else {
            Self { slot, ..self }
        }
    }

    const fn packed(self) -> u16 {
        self.slot | if self.is_odd { ROUND } else { 0 }
    }

    const fn of(packed: u16) -> Self {
        Self { slot: packed & !ROUND, is_odd: packed & ROUND != 0 }
    }
}

impl PackedRing {
    pub(crate) const fn new(layout: Layout, has_event_index: bool) -> Self {
        let (available, used) = (Position::START, Position::START);
        Self { layout, has_event_index, available, used, unnotified: 0 }
    }

    pub(super) fn pop(
        &mut self,
        memory: &GuestMemory,
        own: &mut Vec<Descriptor>,
    ) -> Result<Option<Chain>, RingError> {
        if !self.is_available(memory)? {
            return Ok(None);
        }
        let mut position = self.available;
        loop {
            let descriptor = Descriptor::read(memory, self.place(position))?.of_packed();
            own.push(descriptor);
            position = position.after(1, self.layout.size);
            if descriptor.flags & NEXT == 0 {
                let slots = u16::try_from(own.len()).expect("no more than the ring has");
                self.available = position;
                return chain(memory, (descriptor.tag, slots), own, false).map(Some);
            }
            if own.len() >= self.layout.size.into() {
                return Err(RingError::Broken("a chain that is longer than its ring".to_owned()));
            }
        }
    }

    /// Address of the descriptor at a position.
    fn place(&self, position: Position) -> u64 {
        let offset = u64::from(position.slot) * DESCRIPTOR_BYTES as u64;
        self.layout.descriptors.wrapping_add(offset)
    }

    fn flags(&self, memory: &GuestMemory, position: Position) -> Result<u16, RingError> {
        Ok(memory.load_u16(self.place(position).wrapping_add(14))?)
    }

    fn is_available(&self, memory: &GuestMemory) -> Result<bool, RingError> {
        let flags = self.flags(memory, self.available)?;
        let is_odd = self.available.is_odd;
        Ok((flags & AVAILABLE != 0) == is_odd && (flags & USED != 0) != is_odd)
    }

    pub(super) fn push(
        &mut self,
        memory: &GuestMemory,
        (id, slots): (u16, u16),
        written_bytes: u32,
    ) -> Result<(), RingError> {
        let place = self.place(self.used);
        memory.store_u32(place.wrapping_add(8), written_bytes)?;
        memory.store_u16(place.wrapping_add(12), id)?;
        let round = if self.used.is_odd { AVAILABLE | USED } else { 0 };
        let writes = if written_bytes > 0 { WRITE } else { 0 };
        memory.store_u16(place.wrapping_add(14), round | writes)?;
        self.used = self.used.after(slots, self.layout.size);
        self.unnotified = self.unnotified.saturating_add(slots);
        Ok(())
    }

    pub(super) fn wants_call(&mut self, memory: &GuestMemory) -> Result<bool, RingError> {
        fence(Ordering::SeqCst);
        let unnotified = std::mem::take(&mut self.unnotified);
        if unnotified == 0 {
            return Ok(false);
        }
        let Layout { size, driver, .. } = self.layout;
        match memory.load_u16(driver.wrapping_add(2))? {
            NEVER => Ok(false),
            AT_POSITION if self.has_event_index => {
                let asked = Position::of(memory.load_u16(driver)?);
                if asked.slot >= size {
                    return Ok(true);
                }
                // Slots from the one that was asked for to the next, counted backwards.
                let behind = (self.used.slot + size - asked.slot) % size;
                let behind = if behind == 0 { size } else { behind };
                Ok(behind <= unnotified)
            }
            _ => Ok(true),
        }
    }

    pub(super) fn ask_for_kicks(
        &self,
        memory: &GuestMemory,
        is_wanted: bool,
    ) -> Result<bool, RingError> {
        let flags = if is_wanted { ALWAYS } else { NEVER };
        memory.store_u16(self.layout.device.wrapping_add(2), flags)?;
        if !is_wanted {
            return Ok(false);
        }
        fence(Ordering::SeqCst);
        self.is_available(memory)
    }

    pub(super) const fn size(&self) -> u16 {
        self.layout.size
    }

    /// The position in the available descriptors in the lower half, that in the used ones in the
    /// upper.
    pub(super) const fn base(&self) -> u32 {
        self.available.packed() as u32 | (self.used.packed() as u32) << 16
    }

    pub(super) const fn used_after(&self, slots: u16) -> u32 {
        let used = self.used.after(slots, self.layout.size);
        self.available.packed() as u32 | (used.packed() as u32) << 16
    }

    #[expect(clippy::cast_possible_truncation, reason = "the halves of a number")]
    pub(super) const fn set_base(&mut self, base: u32) {
        self.available = self.within(base as u16);
        self.used = self.within((base >> 16) as u16);
        self.unnotified = 0;
    }

    /// A position from a client, wrapped into the ring.
    const fn within(&self, packed: u16) -> Position {
        let position = Position::of(packed);
        Position { slot: position.slot % self.layout.size, ..position }
    }

    pub(super) fn was_pushed(&self, memory: &GuestMemory, base: u32) -> Result<bool, RingError> {
        let at = self.within((base >> 16) as u16);
        let flags = self.flags(memory, at)?;
        Ok((flags & AVAILABLE != 0) == at.is_odd && (flags & USED != 0) == at.is_odd)
    }
}
