//! The dies as a store of extents: reading one, verified, and again from its stripe.

use std::io::{self, IoSliceMut};

use ftl::Ppn;

use crate::dies::Dies;
use crate::layout::{
    ENTRY_BYTES, EXTENT_HEADER_BYTES, Layout, PAGE_BYTES, Place, SLOT_BYTES, STAMP_BYTES,
};
use crate::row::Life;
use crate::unit::{self, Entry, Extent, Identity, exclusive_or};

/// Most pages that are read in one go.
pub(crate) const RUN_PAGES: usize = 32;

/// A place on the media and the life of its row: enough to tell what is read from what is not
/// there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) ppn: Ppn,
    pub(crate) life: Life,
}

/// A unit of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) row: u32,
    pub(crate) position: u32,
    pub(crate) life: Life,
}

/// Extents as they lie one after the other in a unit.
#[derive(Debug)]
pub(crate) struct Packed {
    bytes: Vec<u8>,
    /// Each of them that is what it should be, and where its payload begins.
    extents: Vec<Option<(Extent, usize)>>,
}

impl Packed {
    /// One of them.
    pub(crate) fn get(&self, index: u32) -> Option<(Extent, &[u8])> {
        let (extent, from) = (*self.extents.get(index as usize)?)?;
        Some((extent, &self.bytes[from..from + usize::from(extent.length)]))
    }

    /// The extents and their payloads, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Option<(Extent, &[u8])>> {
        (0..).zip(&self.extents).map(|(index, _)| self.get(index))
    }
}

/// What never changes while a drive is open.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) layout: Layout,
    pub(crate) dies: Dies,
    /// Drawn when the drive was created.
    pub(crate) drive: u64,
}

impl Store {
    pub(crate) const fn identity(&self, row_order: u64) -> Identity {
        Identity { drive: self.drive, row_order }
    }

    /// Dies that hold the journal and the checkpoints.
    pub(crate) fn copies(&self) -> Vec<usize> {
        let copies = if self.layout.shape.is_protected { 2 } else { 1 };
        let incomplete = self.dies.incomplete();
        (0..self.dies.count()).filter(|die| !incomplete.has(*die)).take(copies).collect()
    }

    /// The first place of a unit.
    pub(crate) const fn first(&self, row: u32, position: u32) -> Ppn {
        self.layout.ppn(Place { row, unit: position, slot: 0 })
    }

    /// Reads pages that are stored whole, one after the other from `first` on, each into its part
    /// of `pages`. Says which of them are what they should be: bit by bit, the first one lowest.
    pub(crate) fn read_run(&self, first: Stored, pages: &mut [u8]) -> (u32, [Option<Extent>; 32]) {
        let place = self.layout.place(first.ppn);
        let from = self.layout.extent_from(place.slot).expect("stored whole");
        let mut headers = [[0; EXTENT_HEADER_BYTES]; RUN_PAGES];
        let mut buffers = Vec::with_capacity(2 * RUN_PAGES);
        for (header, page) in headers.iter_mut().zip(pages.as_chunks_mut::<PAGE_BYTES>().0) {
            buffers.push(IoSliceMut::new(header));
            buffers.push(IoSliceMut::new(page));
        }
        let die = self.layout.die(place.row, place.unit, first.life.out);
        let offset = self.layout.unit_from(place.row) + from as u64;
        let (mut good, mut extents) = (0, [None; RUN_PAGES]);
        if self.dies.read_vectored(die, offset, &mut buffers).is_err() {
            return (good, extents);
        }
        let identity = self.identity(first.life.order);
        let pages = pages.as_chunks::<PAGE_BYTES>().0;
        for ((index, header), page) in (0..).zip(&headers).zip(pages) {
            let extent = Extent::parse(header, identity, Ppn(first.ppn.0 + index));
            extents[index as usize] = extent.filter(|extent| extent.holds(page));
            good |= u32::from(extents[index as usize].is_some()) << index;
        }
        (good, extents)
    }

    /// Reads up to `count` extents that lie one after the other in a unit, from `first` on, in one
    /// go; none where one is not what it should be. `table` is that of the unit, if it is at hand.
    pub(crate) fn read_extents(
        &self,
        first: Stored,
        count: u32,
        table: Option<&[Entry]>,
    ) -> Option<Packed> {
        let place = self.layout.place(first.ppn);
        let die = self.layout.die(place.row, place.unit, first.life.out);
        let unit_from = self.layout.unit_from(place.row);
        let read =
            |from: usize, bytes: &mut [u8]| self.dies.read(die, unit_from + from as u64, bytes);
        let slots = place.slot as usize..(place.slot + count) as usize;
        let starts = match table {
            Some(table) => starts(table.get(slots.start..slots.end.min(table.len()))?)?,
            None => self.read_starts(place.slot, count, read)?,
        };
        let (from, until) = (*starts.first()?, *starts.last()?);
        // Nobody has looked at the table's checksum.
        (from >= STAMP_BYTES && from <= until && until <= self.layout.unit_bytes).then_some(())?;
        let mut bytes = vec![0; until - from];
        read(from, &mut bytes).ok()?;
        let identity = self.identity(first.life.order);
        let found = |(slot, start): (u32, &usize)| {
            let ppn = self.layout.ppn(Place { slot, ..place });
            let at = start.checked_sub(from)?;
            let (extent, _) = unit::extent_in(&bytes, at, identity, ppn)?;
            Some((extent, at + EXTENT_HEADER_BYTES))
        };
        let extents = (place.slot..).zip(&starts[..starts.len() - 1]).map(found).collect();
        Some(Packed { bytes, extents })
    }

    /// Where extents of a unit begin, and where the last of them ends, as far as it says so.
    fn read_starts(
        &self,
        slot: u32,
        count: u32,
        read: impl Fn(usize, &mut [u8]) -> io::Result<()>,
    ) -> Option<Vec<usize>> {
        if let Some(from) = self.layout.extent_from(slot) {
            return Some((0..=count as usize).map(|index| from + index * SLOT_BYTES).collect());
        }
        let mut table = vec![0; count as usize * ENTRY_BYTES];
        read(Layout::entry_from(slot), &mut table).ok()?;
        let entries = table.as_chunks::<ENTRY_BYTES>().0.iter().map_while(|it| unit::entry(it));
        // What follows the last entry is zeroes.
        let entries: Vec<Entry> = entries.take_while(|entry| entry.from > 0).collect();
        starts(&entries)
    }

    /// Reads the extent at a place; none if it is not what it should be.
    pub(crate) fn read_extent(&self, stored: Stored) -> Option<(Extent, Vec<u8>)> {
        let place = self.layout.place(stored.ppn);
        let die = self.layout.die(place.row, place.unit, stored.life.out);
        let unit_from = self.layout.unit_from(place.row);
        let read =
            |from: usize, buffer: &mut [u8]| self.dies.read(die, unit_from + from as u64, buffer);
        self.extent_by(stored, place, read)
    }

    /// The extent at a place, from the other units of its stripe.
    pub(crate) fn reconstruct_extent(&self, stored: Stored) -> Option<(Extent, Vec<u8>)> {
        if !self.layout.shape.is_protected {
            return None;
        }
        let place = self.layout.place(stored.ppn);
        let member = Member { row: place.row, position: place.unit, life: stored.life };
        let read = |from: usize, buffer: &mut [u8]| self.reconstruct(member, from, buffer);
        self.extent_by(stored, place, read)
    }

    fn extent_by(
        &self,
        stored: Stored,
        place: Place,
        read: impl Fn(usize, &mut [u8]) -> io::Result<()>,
    ) -> Option<(Extent, Vec<u8>)> {
        let (from, bytes) = if let Some(from) = self.layout.extent_from(place.slot) {
            (from, SLOT_BYTES)
        } else {
            let mut entry = [0; ENTRY_BYTES];
            read(Layout::entry_from(place.slot), &mut entry).ok()?;
            let entry = unit::entry(&entry)?;
            (entry.from, entry.extent.stored_bytes())
        };
        (from >= STAMP_BYTES && from + bytes <= self.layout.unit_bytes).then_some(())?;
        let mut buffer = vec![0; bytes];
        read(from, &mut buffer).ok()?;
        let identity = self.identity(stored.life.order);
        let (extent, _) = unit::extent_in(&buffer, 0, identity, stored.ppn)?;
        buffer.truncate(extent.stored_bytes());
        buffer.drain(..EXTENT_HEADER_BYTES);
        Some((extent, buffer))
    }

    /// Part of a unit, not of its stamp, from all other units of the row.
    ///
    /// # Errors
    /// When one of them cannot be read. What comes out is only as good as what they hold.
    pub(crate) fn reconstruct(&self, of: Member, from: usize, sum: &mut [u8]) -> io::Result<()> {
        let Member { row, position, life } = of;
        sum.fill(0);
        let mut member = vec![0; sum.len()];
        let offset = self.layout.unit_from(row) + from as u64;
        for other in self.layout.positions(life.out).filter(|other| *other != position) {
            self.dies.read(self.layout.die(row, other, life.out), offset, &mut member)?;
            exclusive_or(sum, &member);
        }
        Ok(())
    }
}

/// Where extents begin that follow each other, and where the last of them ends.
fn starts(entries: &[Entry]) -> Option<Vec<usize>> {
    let last = entries.last()?;
    let until = last.from.checked_add(last.extent.stored_bytes())?;
    Some(entries.iter().map(|entry| entry.from).chain([until]).collect())
}
