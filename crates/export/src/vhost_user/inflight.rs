//! Chains in flight: those that a server took from its rings and has not marked as used, in memory
//! that its client keeps. The next server after one that was killed finds them there, and carries
//! them out again.
//!
//! ```text
//!   take a chain ──► record it, with descriptors ──► work ──► "marking" ──► used ──► forget
//!                                                                     │ killed here
//!                    a new server: was it used? ◄─────────────────────┘
//! ```
//!
//! The client keeps the memory and does not look into it, so its form is our own: a packed ring
//! overwrites the descriptors of what is in flight, so they are kept here.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use vm_memory::{Bytes as _, VolatileMemory as _};

use super::ring::{Chain, Descriptor, Ring, RingError};
use crate::guest_memory::{GuestMemory, Place, check_length};
use crate::shared_mapping::{SharedMapping, TruncatedMemory};

/// Form of the memory, in its first eight bytes: another one begins anew.
const FORM: u64 = 0x3130_6c66_6e69_6766;
const FORM_AT: usize = 0;
/// 1 while a server has the ring.
const IN_USE_AT: usize = 8;
/// Order of the latest chain that was taken, with the position after it.
const TAKEN_AT: usize = 16;
/// Position after the chains that were marked as used.
const USED_AT: usize = 24;
/// Chain that is being marked as used, with the position at which; 0: none.
const MARKING_AT: usize = 32;
const HEAD_BYTES: usize = 64;
/// Of a record: order of its chain, 0 if it is not in flight; position after it was taken, slots
/// and descriptors; then those.
const ORDER_AT: usize = 0;
const SHAPE_AT: usize = 8;
const RECORD_HEAD_BYTES: usize = 16;
const DESCRIPTOR_BYTES: usize = 16;
/// Flag of a number that is not empty.
const IS_THERE: u64 = 1 << 63;

/// The chains of one ring that are in flight.
#[derive(Debug)]
pub(super) struct Inflight {
    mapping: Arc<SharedMapping>,
    start: usize,
    size: u16,
    /// Order of the latest chain that was taken.
    order: u64,
}

/// Chain that an earlier server took and did not mark as used.
#[derive(Debug)]
struct InflightChain {
    order: u64,
    id: u16,
    slots: u16,
    own: Vec<Descriptor>,
}

/// Bytes of the memory for one ring of `size` entries.
pub(super) fn bytes_of_ring(size: u16) -> u64 {
    let size = u64::from(size);
    let record = RECORD_HEAD_BYTES as u64 + DESCRIPTOR_BYTES as u64 * size;
    HEAD_BYTES as u64 + record * size
}

/// Maps the memory of all rings.
///
/// # Errors
/// Fails if the file is shorter, or the system refuses.
pub(super) fn map(file: OwnedFd, offset: u64, bytes: u64) -> io::Result<Arc<SharedMapping>> {
    check_length(&file, Place { address: 0, size: bytes, offset })?;
    let bytes = usize::try_from(bytes).map_err(io::Error::other)?;
    SharedMapping::new(file, (offset, bytes), Arc::default()).map(Arc::new)
}

impl Inflight {
    /// The part of the memory for ring `index`, of at most `size` entries as all of them; none if
    /// it ends before.
    pub(super) fn of(mapping: &Arc<SharedMapping>, index: usize, size: u16) -> Option<Self> {
        let bytes = usize::try_from(bytes_of_ring(size)).ok()?;
        let start = bytes.checked_mul(index)?;
        let end = start.checked_add(bytes)?;
        let mapping = Arc::clone(mapping);
        (end <= mapping.size()).then_some(Self { mapping, start, size, order: 0 })
    }

    /// Checks that the client has not truncated the memory.
    pub(super) fn check(&self) -> Result<(), RingError> {
        let error = || RingError::Broken(format!("requests in flight: {TruncatedMemory}"));
        if self.mapping.is_truncated() { Err(error()) } else { Ok(()) }
    }

    /// Continues where an earlier server left the ring, if one did. Returns the chains that are to
    /// be carried out again, the earliest first.
    pub(super) fn begin(
        &mut self,
        ring: &mut Ring,
        memory: &GuestMemory,
    ) -> Result<Vec<Chain>, RingError> {
        let was_left = self.load(FORM_AT) == FORM && self.load(IN_USE_AT) != 0;
        if !was_left {
            (0..self.size).for_each(|id| self.store(self.record(id) + ORDER_AT, 0));
            self.store(MARKING_AT, 0);
            self.note_position(ring.base());
            self.store(FORM_AT, FORM);
            self.store(IN_USE_AT, 1);
            return Ok(Vec::new());
        }
        let marking = self.load(MARKING_AT);
        let mut used = low_u32(self.load(USED_AT));
        if marking & IS_THERE != 0 {
            used = self.finish_marking(ring, memory, marking)?;
        }
        let mut left: Vec<InflightChain> =
            (0..self.size).filter_map(|id| self.left(id, ring.size())).collect();
        check_slots(&left, ring.size())?;
        left.sort_by_key(|left| left.order);
        let taken = self.load(TAKEN_AT);
        self.order = taken >> 16;
        let mut available = low_u16(taken);
        if let Some(last) = left.last().filter(|last| last.order > self.order) {
            self.order = last.order;
            available = low_u16(self.load(self.record(last.id) + SHAPE_AT));
        }
        ring.set_base(u32::from(available) | used << 16);
        self.store(TAKEN_AT, self.order << 16 | u64::from(available));
        self.store(USED_AT, used.into());
        self.store(MARKING_AT, 0);
        left.iter().map(|it| ring.again(memory, (it.id, it.slots), &it.own)).collect()
    }

    /// Finds out whether a chain was marked as used. Returns the position after it.
    fn finish_marking(
        &self,
        ring: &mut Ring,
        memory: &GuestMemory,
        marking: u64,
    ) -> Result<u32, RingError> {
        let (id, before) = (low_u16(marking >> 32), low_u32(marking) & 0xFFFF);
        let base = before << 16;
        if id >= self.size || !ring.was_pushed(memory, base)? {
            return Ok(before);
        }
        let record = self.record(id);
        self.store(record + ORDER_AT, 0);
        let slots = low_u16(self.load(record + SHAPE_AT) >> 16).min(ring.size());
        ring.set_base(base);
        // The ring itself is not changed: the driver may have taken the chain already.
        Ok(ring.used_after(slots) >> 16)
    }

    /// Records a chain that was taken; the ring is at `base` then.
    ///
    /// # Errors
    /// Fails if the driver gave two chains the same identifier.
    pub(super) fn note_taken(
        &mut self,
        chain: &Chain,
        own: &[Descriptor],
        base: u32,
    ) -> Result<(), RingError> {
        if chain.id >= self.size {
            return Err(RingError::Broken(format!("chain {} of {}", chain.id, self.size)));
        }
        let record = self.record(chain.id);
        if self.load(record + ORDER_AT) != 0 {
            return Err(RingError::Broken(format!("chain {} is in flight already", chain.id)));
        }
        for (index, descriptor) in own.iter().take(self.size.into()).enumerate() {
            let at = record + RECORD_HEAD_BYTES + index * DESCRIPTOR_BYTES;
            let Descriptor { address, length, flags, tag } = *descriptor;
            self.store(at, address);
            self.store(at + 8, u64::from(length) | u64::from(flags) << 32 | u64::from(tag) << 48);
        }
        let available = u64::from(low_u16(base.into()));
        let shape = available | u64::from(chain.slots) << 16 | (own.len() as u64) << 32;
        self.store(record + SHAPE_AT, shape);
        self.order = self.order.wrapping_add(1);
        self.store(record + ORDER_AT, self.order);
        self.store(TAKEN_AT, self.order << 16 | available);
        Ok(())
    }

    /// Records that a chain is about to be marked as used at `base`.
    pub(super) fn note_marking(&self, id: u16, base: u32) {
        self.store(MARKING_AT, IS_THERE | u64::from(id) << 32 | u64::from(base >> 16));
    }

    /// Records that it was, and that the ring is at `base`.
    pub(super) fn note_used(&self, id: u16, base: u32) {
        self.store(self.record(id) + ORDER_AT, 0);
        self.store(USED_AT, u64::from(base >> 16));
        self.store(MARKING_AT, 0);
    }

    /// Leaves the ring, none of whose chains is in flight.
    pub(super) fn end(&self) {
        self.store(IN_USE_AT, 0);
    }

    fn note_position(&self, base: u32) {
        self.store(TAKEN_AT, u64::from(low_u16(base.into())));
        self.store(USED_AT, u64::from(base >> 16));
    }

    /// The chain of this identifier in a ring of so many entries, if it was left in flight.
    fn left(&self, id: u16, ring_size: u16) -> Option<InflightChain> {
        let record = self.record(id);
        let order = self.load(record + ORDER_AT);
        if order == 0 {
            return None;
        }
        let shape = self.load(record + SHAPE_AT);
        let count = usize::from(low_u16(shape >> 32).min(self.size));
        // The client may have changed it.
        let slots = low_u16(shape >> 16).min(ring_size);
        let own = (0..count).map(|index| {
            let at = record + RECORD_HEAD_BYTES + index * DESCRIPTOR_BYTES;
            let rest = self.load(at + 8);
            Descriptor {
                address: self.load(at),
                length: low_u32(rest),
                flags: low_u16(rest >> 32),
                tag: low_u16(rest >> 48),
            }
        });
        Some(InflightChain { order, id, slots, own: own.collect() })
    }

    /// Offset of the record of a chain.
    fn record(&self, id: u16) -> usize {
        let bytes = RECORD_HEAD_BYTES + DESCRIPTOR_BYTES * usize::from(self.size);
        HEAD_BYTES + bytes * usize::from(id)
    }

    /// A number; 0 once the client has truncated the memory, which [`Inflight::check`] tells.
    fn load(&self, at: usize) -> u64 {
        let loaded = self.mapping.access(|mapping| {
            let slice = mapping.as_volatile_slice();
            slice.load(self.start + at, Ordering::Acquire).expect("its bounds were checked")
        });
        loaded.unwrap_or(0)
    }

    fn store(&self, at: usize, value: u64) {
        // What a client truncates is lost, which `check` tells.
        let _ = self.mapping.access(|mapping| {
            let slice = mapping.as_volatile_slice();
            slice
                .store(value, self.start + at, Ordering::Release)
                .expect("its bounds were checked");
        });
    }
}

/// Checks that chains have room in a ring of so many entries: the client may have changed them.
fn check_slots(left: &[InflightChain], ring_size: u16) -> Result<(), RingError> {
    let slots: u64 = left.iter().map(|it| u64::from(it.slots)).sum();
    if slots > ring_size.into() {
        let text = format!("{slots} slots in flight, the ring has {ring_size}");
        return Err(RingError::Broken(text));
    }
    Ok(())
}

#[expect(clippy::cast_possible_truncation, reason = "a part of a number")]
const fn low_u16(number: u64) -> u16 {
    number as u16
}

#[expect(clippy::cast_possible_truncation, reason = "a part of a number")]
const fn low_u32(number: u64) -> u32 {
    number as u32
}
