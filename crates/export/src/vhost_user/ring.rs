//! Virtqueues: rings in the memory of a virtual machine, through which its driver makes buffers
//! available and the device returns them.
//!
//! ```text
//!   driver: makes a chain available ──► pop ──► work ──► push: used ──► driver
//! ```
//!
//! **Invariants**
//! - Whatever the driver writes into a ring, nothing outside of its memory is touched, and no loop
//!   in it is followed for ever: an invalid ring is an error.
//! - The descriptors of a chain are copied once, and then checked.
//!
//! The layouts are those of [virtio-2022], sections 2.7 (split) and 2.8 (packed).

mod packed;
mod split;

use smallvec::SmallVec;

use crate::guest_memory::{GuestMemory, GuestMemoryError};
use crate::little_endian::{u16_at, u32_at, u64_at};

pub(super) use self::packed::PackedRing;
pub(super) use self::split::SplitRing;

/// Flags of a descriptor: another follows; the device writes it; it is a table of others.
const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
/// Bytes of a descriptor.
const DESCRIPTOR_BYTES: usize = 16;
/// Most descriptors of a chain, those of its tables included.
const CHAIN_MAX: usize = 1024;
/// Most entries of a ring.
pub(super) const SIZE_MAX: u16 = 1024;

/// Error of an invalid ring.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RingError {
    /// The ring, or a buffer that it names, lies outside of the memory.
    #[error(transparent)]
    GuestMemoryError(#[from] GuestMemoryError),
    /// The driver broke a rule of the layout.
    #[error("the virtqueue is invalid: {0}")]
    Broken(String),
}

/// A buffer of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) address: u64,
    pub(super) length: u32,
}

/// Buffers of a chain: of most, few enough to need no memory of their own.
type Buffers = SmallVec<[Part; 4]>;

/// Buffers that belong together: what the device reads, then what it writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Chain {
    /// Identifier by which it is marked as used.
    pub(super) id: u16,
    /// Entries of the ring that it takes.
    pub(super) slots: u16,
    pub(super) readable: Buffers,
    pub(super) writable: Buffers,
}

/// Place of a ring in the memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// Entries, from 1 to [`SIZE_MAX`].
    pub(super) size: u16,
    pub(super) descriptors: u64,
    /// Driver area: the available ring, or the driver event suppression.
    pub(super) driver: u64,
    /// Device area: the used ring, or the device event suppression.
    pub(super) device: u64,
}

/// A descriptor as it lies in the memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub(super) address: u64,
    pub(super) length: u32,
    pub(super) flags: u16,
    /// Index of the next one in a split ring, identifier in a packed one.
    pub(super) tag: u16,
}

/// A ring of either layout.
#[derive(Debug)]
pub(super) enum Ring {
    Split(SplitRing),
    Packed(PackedRing),
}

impl Ring {
    /// Takes the next chain, with its own descriptors; none if there is none.
    pub(super) fn pop(
        &mut self,
        memory: &GuestMemory,
        own: &mut Vec<Descriptor>,
    ) -> Result<Option<Chain>, RingError> {
        own.clear();
        match self {
            Self::Split(ring) => ring.pop(memory, own),
            Self::Packed(ring) => ring.pop(memory, own),
        }
    }

    /// The chain of these descriptors, which was taken before.
    pub(super) fn again(
        &self,
        memory: &GuestMemory,
        (id, slots): (u16, u16),
        own: &[Descriptor],
    ) -> Result<Chain, RingError> {
        chain(memory, (id, slots), own, matches!(self, Self::Split(_)))
    }

    /// Marks a chain as used, into which `written_bytes` were written. The driver sees it after
    /// [`Self::publish`] at the latest.
    pub(super) fn push(
        &mut self,
        memory: &GuestMemory,
        (id, slots): (u16, u16),
        written_bytes: u32,
    ) -> Result<(), RingError> {
        match self {
            Self::Split(ring) => ring.push(memory, id, written_bytes),
            Self::Packed(ring) => ring.push(memory, (id, slots), written_bytes),
        }
    }

    /// Has the driver see what was marked as used: once for several chains, since the driver looks
    /// at that place all the time, and each change of it is a transfer between two processors.
    pub(super) fn publish(&self, memory: &GuestMemory) -> Result<(), RingError> {
        match self {
            Self::Split(ring) => ring.publish(memory),
            // The flags of each descriptor say that it was used.
            Self::Packed(_) => Ok(()),
        }
    }

    /// True if the driver wants a notification of what was marked as used since the last call.
    pub(super) fn wants_call(&mut self, memory: &GuestMemory) -> Result<bool, RingError> {
        match self {
            Self::Split(ring) => ring.wants_call(memory),
            Self::Packed(ring) => ring.wants_call(memory),
        }
    }

    /// Asks the driver for notifications of available chains, or for none. Returns whether a chain
    /// is available that it may have sent no notification of.
    pub(super) fn ask_for_kicks(
        &mut self,
        memory: &GuestMemory,
        is_wanted: bool,
    ) -> Result<bool, RingError> {
        match self {
            Self::Split(ring) => ring.ask_for_kicks(memory, is_wanted),
            Self::Packed(ring) => ring.ask_for_kicks(memory, is_wanted),
        }
    }

    /// Entries.
    pub(super) const fn size(&self) -> u16 {
        match self {
            Self::Split(ring) => ring.size(),
            Self::Packed(ring) => ring.size(),
        }
    }

    /// Its position, in the form of the protocol.
    pub(super) const fn base(&self) -> u32 {
        match self {
            Self::Split(ring) => ring.base(),
            Self::Packed(ring) => ring.base(),
        }
    }

    /// Goes to a position.
    pub(super) const fn set_base(&mut self, base: u32) {
        match self {
            Self::Split(ring) => ring.set_base(base),
            Self::Packed(ring) => ring.set_base(base),
        }
    }

    /// Its position once this number of slots more is marked as used.
    pub(super) const fn used_after(&self, slots: u16) -> u32 {
        match self {
            Self::Split(ring) => ring.used_after(),
            Self::Packed(ring) => ring.used_after(slots),
        }
    }

    /// True if the chain that was to be marked as used at `base` was.
    pub(super) fn was_pushed(&self, memory: &GuestMemory, base: u32) -> Result<bool, RingError> {
        match self {
            Self::Split(ring) => ring.was_pushed(memory, base),
            Self::Packed(ring) => ring.was_pushed(memory, base),
        }
    }
}

impl Descriptor {
    fn read(memory: &GuestMemory, address: u64) -> Result<Self, RingError> {
        let mut bytes = [0; DESCRIPTOR_BYTES];
        memory.read(address, &mut bytes)?;
        Ok(Self::of(&bytes))
    }

    pub(super) fn of(bytes: &[u8; DESCRIPTOR_BYTES]) -> Self {
        let part = |at| u16_at(bytes, at).expect("within the descriptor");
        Self {
            address: u64_at(bytes, 0).expect("within the descriptor"),
            length: u32_at(bytes, 8).expect("within the descriptor"),
            // Of a split ring; a packed one has them the other way round.
            flags: part(12),
            tag: part(14),
        }
    }

    const fn of_packed(self) -> Self {
        Self { flags: self.tag, tag: self.flags, ..self }
    }
}

/// The chain of these descriptors, with those of their tables.
fn chain(
    memory: &GuestMemory,
    (id, slots): (u16, u16),
    own: &[Descriptor],
    is_split: bool,
) -> Result<Chain, RingError> {
    let mut chain = Chain { id, slots, ..Chain::default() };
    for descriptor in own {
        if descriptor.flags & INDIRECT == 0 {
            chain.add(descriptor)?;
            continue;
        }
        let length = descriptor.length as usize;
        let count = length / DESCRIPTOR_BYTES;
        if count == 0 || count > CHAIN_MAX || !length.is_multiple_of(DESCRIPTOR_BYTES) {
            return Err(RingError::Broken(format!("an indirect table of {length} bytes")));
        }
        let mut bytes = SmallVec::<[u8; 8 * DESCRIPTOR_BYTES]>::from_elem(0, length);
        memory.read(descriptor.address, &mut bytes)?;
        let (entries, _) = bytes.as_chunks();
        if is_split {
            linked(entries, |entry| chain.add(entry))?;
        } else {
            entries.iter().try_for_each(|it| chain.add(&Descriptor::of(it).of_packed()))?;
        }
    }
    Ok(chain)
}

/// Follows a table from its first entry on.
fn linked(
    entries: &[[u8; DESCRIPTOR_BYTES]],
    mut add: impl FnMut(&Descriptor) -> Result<(), RingError>,
) -> Result<(), RingError> {
    let mut index = 0;
    for _ in 0..entries.len() {
        let entry = entries.get(index).map(Descriptor::of);
        let entry =
            entry.ok_or_else(|| RingError::Broken(format!("no entry {index} in the table")))?;
        add(&entry)?;
        if entry.flags & NEXT == 0 {
            return Ok(());
        }
        index = entry.tag.into();
    }
    Err(RingError::Broken("an indirect table with a loop".to_owned()))
}

impl Chain {
    fn add(&mut self, descriptor: &Descriptor) -> Result<(), RingError> {
        let Descriptor { address, length, flags, .. } = *descriptor;
        if flags & INDIRECT != 0 {
            return Err(RingError::Broken("an indirect table within another".to_owned()));
        }
        if self.readable.len() + self.writable.len() == CHAIN_MAX {
            return Err(RingError::Broken(format!("a chain of more than {CHAIN_MAX} buffers")));
        }
        let part = Part { address, length };
        if flags & WRITE != 0 {
            self.writable.push(part);
        } else if self.writable.is_empty() {
            self.readable.push(part);
        } else {
            let text = "a readable buffer after a writable one";
            return Err(RingError::Broken(text.to_owned()));
        }
        Ok(())
    }
}

/// True if a counter that went from `before` to `now` passed the event index `asked`.
const fn passed(asked: u16, now: u16, before: u16) -> bool {
    now.wrapping_sub(asked).wrapping_sub(1) < now.wrapping_sub(before)
}
