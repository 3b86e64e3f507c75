//! A unit of the media that relocation moves pages from, read before the core decides anything.
//!
//! The core names the unit and the pages that are valid in it; the drive, which owns the dies,
//! reads it, looks for what is not right in the rest of the row, and asks again. Pages that have
//! become invalid meanwhile are not moved; no page of a unit becomes valid.
//!
//! A page that cannot be read is moved as a lost one, which is final. So it must be the page that
//! is damaged: a page is lost that could not be read between two looks at which all dies responded
//! to reads ([`Dies::check_responsive`]).
//!
//! [`Dies::check_responsive`]: crate::engine::dies::Dies::check_responsive

use device::DeviceError;
use ftl::Lpn;

use crate::engine::store::Store;
use crate::format::layout::{EXTENT_HEADER_BYTES, Layout, Place, SLOT_BYTES, UNIT_HEADER_BYTES};
use crate::format::row::{Member, StoredPlace};
use crate::format::unit::{self, Codec, Entry, Extent};

/// Times that a page is looked for before it counts as lost: a read may fail once.
const ATTEMPTS: u32 = 3;

/// Pages of a unit that relocation needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NeededPages {
    pub(crate) of: Member,
    /// Slots that are valid, in order; at least one.
    pub(crate) slots: Vec<u32>,
}

/// The pages that were read of a unit. The memory is used again for the next one.
#[derive(Debug, Default)]
pub(crate) struct VictimUnit {
    of: Option<Member>,
    /// Bytes of extents, in no order.
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// By slot, each extent that was wanted and is right, and where its payload begins.
    extents: Vec<Option<(Extent, usize)>>,
    slots: Vec<u32>,
}

impl VictimUnit {
    /// True if a slot of a unit was read, whether or not it could be.
    pub(crate) fn has(&self, of: Member, slot: u32) -> bool {
        self.of == Some(of) && self.slots.binary_search(&slot).is_ok()
    }

    /// The extent in a slot that was read; none if it is lost.
    pub(crate) fn extent(&self, of: Member, slot: u32) -> Option<(Extent, &[u8])> {
        assert!(self.has(of, slot), "what is moved was read before");
        let (extent, from) = (*self.extents.get(slot as usize)?)?;
        Some((extent, &self.bytes[from..from + usize::from(extent.length)]))
    }

    /// True if a slot that was read holds a page, which is not a lost one.
    pub(crate) fn holds(&self, of: Member, slot: u32, lpn: Lpn) -> bool {
        let is_it = |extent: Extent| extent.lpn == lpn && extent.codec != Codec::Lost;
        self.extent(of, slot).is_some_and(|(extent, _)| is_it(extent))
    }

    /// The logical pages in the slots of a unit from `first` on, as far as they are known.
    pub(crate) fn pages(&self, of: Member, first: u32) -> impl Iterator<Item = Option<Lpn>> {
        let count = if self.of == Some(of) { self.extents.len() } else { 0 };
        (first as usize..count).map(|slot| {
            let told = self.entries.get(slot).map(|entry| entry.extent.lpn);
            self.extents[slot].map(|(extent, _)| extent.lpn).or(told)
        })
    }

    /// Reads what is wanted, from the rest of its row where its own unit does not give it back.
    ///
    /// # Errors
    /// [`DeviceError::Transient`] if something could not be read, and a die does not respond to
    /// reads.
    pub(crate) fn read(&mut self, store: &Store, wanted: NeededPages) -> Result<(), DeviceError> {
        let NeededPages { of, slots } = wanted;
        assert!(slots.is_sorted() && !slots.is_empty(), "slots are named in order");
        assert!(of.life.seq != 0, "only what was programmed is read");
        (self.of, self.slots) = (Some(of), slots);
        self.extents.clear();
        self.extents.resize(store.layout.unit_slots as usize, None);
        self.entries.clear();
        if store.layout.shape.extents_per_page > 1 {
            self.read_table(store, of);
        }
        self.read_extents(store, of);
        self.read_missing(store, of);
        if self.is_any_missing() {
            store.dies.check_responsive().inspect_err(|_| self.of = None)?;
            // The die may have responded again only after it was asked for these.
            self.read_missing(store, of);
        }
        if self.is_any_missing() {
            store.dies.check_responsive().inspect_err(|_| self.of = None)?;
            if self.entries.is_empty() {
                // It tells at least which page was lost.
                self.read_table(store, of);
            }
        }
        Ok(())
    }

    /// True if a slot that is wanted was not found.
    fn is_any_missing(&self) -> bool {
        self.slots.iter().any(|slot| self.extents[*slot as usize].is_none())
    }

    /// Looks for each slot that was not found, wherever its extent can be had from.
    fn read_missing(&mut self, store: &Store, of: Member) {
        for index in 0..self.slots.len() {
            let slot = self.slots[index];
            if self.extents[slot as usize].is_none() {
                let place = Place { row: of.row, unit: of.position, slot };
                let stored = StoredPlace { ppn: store.layout.ppn(place), life: of.life };
                let found = (0..ATTEMPTS).find_map(|_| store.wanted_extent(stored, |_| true));
                if let Some((Some(fault), ..)) = &found {
                    store.note_reconstructed(stored, *fault);
                }
                self.keep(slot, found.map(|(_, extent, payload)| (extent, payload)));
            }
        }
    }

    /// Reads the table of the unit, or has the rest of the row tell it.
    fn read_table(&mut self, store: &Store, of: Member) {
        let layout = &store.layout;
        let (identity, first) = (store.identity(of.life.seq), store.first(of.row, of.position));
        let mut bytes = vec![0; layout.extents_from];
        let is_read = store.read_member(of, 0, &mut bytes).is_ok();
        if is_read && unit::read_table(layout, &bytes, identity, first, &mut self.entries).is_some()
        {
            return;
        }
        if layout.shape.is_protected {
            let body = &mut bytes[UNIT_HEADER_BYTES..];
            let is_made = store.reconstruct(of, UNIT_HEADER_BYTES, body).is_ok();
            if is_made
                && unit::read_table(layout, &bytes, identity, first, &mut self.entries).is_some()
            {
                return;
            }
        }
        self.entries.clear();
    }

    /// The bytes of a slot within its unit, as far as it is known where they lie.
    fn range(&self, layout: &Layout, slot: u32) -> Option<(usize, usize)> {
        if let Some(from) = layout.extent_from(slot) {
            return Some((from, from + SLOT_BYTES));
        }
        let entry = self.entries.get(slot as usize)?;
        Some((entry.from, entry.from + entry.extent.stored_bytes()))
    }

    /// Reads from the first to the last of the extents in one go.
    fn read_extents(&mut self, store: &Store, of: Member) {
        let ends = [self.slots.first(), self.slots.last()];
        let [Some((from, _)), Some((_, until))] =
            ends.map(|slot| self.range(&store.layout, *slot.expect("at least one is wanted")))
        else {
            return;
        };
        self.bytes.resize(until - from, 0);
        if store.read_member(of, from, &mut self.bytes).is_err() {
            return;
        }
        let identity = store.identity(of.life.seq);
        for slot in &self.slots {
            let Some((begin, _)) = self.range(&store.layout, *slot) else { continue };
            let place = Place { row: of.row, unit: of.position, slot: *slot };
            let ppn = store.layout.ppn(place);
            if let Some((extent, _)) = unit::extent_in(&self.bytes, begin - from, identity, ppn) {
                let payload = begin - from + EXTENT_HEADER_BYTES;
                self.extents[*slot as usize] = Some((extent, payload));
            }
        }
    }

    /// Keeps an extent that was found elsewhere.
    fn keep(&mut self, slot: u32, found: Option<(Extent, Vec<u8>)>) {
        self.extents[slot as usize] = found.map(|(extent, payload)| {
            let from = self.bytes.len();
            self.bytes.extend_from_slice(&payload);
            (extent, from)
        });
    }
}
