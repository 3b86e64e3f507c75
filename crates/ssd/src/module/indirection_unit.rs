//! Indirection units of more than 4 KiB, such as the 16 to 64 KiB of QLC drives: one entry of the
//! map places each.
//!
//! A unit is written as a whole. A part of a unit waits in the buffer, which has memory for some
//! parts, until the host has written the rest; then the unit is written as if by one request. When
//! that memory is full, the part that has waited longest is completed by a read of its unit
//! (read-modify-write).
//!
//! ```text
//!  whole unit ──────────────────────────────► page of the translation layer
//!  part ─► gathered ─► the rest has come ───► page
//!              └─────► memory is full: read ► page
//! ```
//!
//! Invariants:
//! - A unit is gathered once at most, and never whole.

use std::collections::VecDeque;

use blockio::{Bytes, Nanos};
use ftl::{Lpn, NoMedia};

use super::{Extent, Module, UNIT_SECTORS, bytes, lpn, units};

/// Sectors of the largest indirection unit, one bit each.
type SectorSet = u128;

/// Parts of indirection units that wait for the rest of their units.
#[derive(Clone, Debug)]
pub(super) struct IndirectionUnits {
    unit_sectors: u64,
    /// Units whose parts wait for the rest, longest first.
    gathered: VecDeque<Part>,
    gathered_max: usize,
}

/// Part of an indirection unit.
#[derive(Clone, Copy, Debug)]
struct Part {
    unit: u64,
    sectors: SectorSet,
    handle: u8,
}

impl IndirectionUnits {
    /// Units of `indirection_kib`, and `gather_kib` of memory for their parts; none if units have
    /// 4 KiB.
    pub(super) fn new(indirection_kib: u32, gather_kib: u32) -> Option<Box<Self>> {
        if indirection_kib <= 4 {
            return None;
        }
        Some(Box::new(Self {
            unit_sectors: u64::from(indirection_kib) * 2,
            gathered: VecDeque::new(),
            gathered_max: (gather_kib / indirection_kib) as usize,
        }))
    }

    /// Forgets what was gathered.
    pub(super) fn purge(&mut self) {
        self.gathered.clear();
    }

    /// True if memory holds all of a page of 4 KiB.
    pub(super) fn holds(&self, page: u64) -> bool {
        let (unit, first) =
            (page * UNIT_SECTORS / self.unit_sectors, page * UNIT_SECTORS % self.unit_sectors);
        let wanted = 0xff << first;
        self.gathered.iter().any(|part| part.unit == unit && part.sectors & wanted == wanted)
    }

    /// The units that an extent touches, with its sectors in each.
    fn parts(&self, extent: Extent) -> impl Iterator<Item = Part> + use<> {
        let (size, end) = (self.unit_sectors, extent.first + u64::from(extent.sectors));
        let touched = extent.first / size..=(end - 1) / size;
        touched.map(move |unit| {
            let from = extent.first.max(unit * size) - unit * size;
            let to = end.min((unit + 1) * size) - unit * size;
            let sectors = bits(to) & !bits(from);
            Part { unit, sectors, handle: extent.handle }
        })
    }

    fn is_whole(&self, part: Part) -> bool {
        part.sectors == bits(self.unit_sectors)
    }

    /// Adds a part to those that are gathered. Returns a unit that is to be written now, which may
    /// be a part still.
    fn gather(&mut self, part: Part) -> Option<Part> {
        let found = self.gathered.iter().position(|held| held.unit == part.unit);
        let sum = found.map_or(part, |index| {
            let sectors = self.gathered[index].sectors | part.sectors;
            Part { sectors, ..part }
        });
        if self.is_whole(sum) {
            found.map(|index| self.gathered.remove(index));
            return Some(sum);
        }
        match found {
            Some(index) => self.gathered[index] = sum,
            None => self.gathered.push_back(sum),
        }
        let is_full = self.gathered.len() > self.gathered_max;
        if is_full { self.gathered.pop_front() } else { None }
    }

    /// Asserts that no unit is gathered twice, or whole.
    pub(super) fn check_invariants(&self) {
        assert!(self.gathered.len() <= self.gathered_max, "parts have the memory that there is");
        for (index, part) in self.gathered.iter().enumerate() {
            let mut earlier = self.gathered.iter().take(index);
            assert!(earlier.all(|other| other.unit != part.unit), "a unit is gathered once");
            assert!(!self.is_whole(*part) && part.sectors != 0, "what is gathered is a part");
        }
    }
}

/// The lowest `count` bits.
const fn bits(count: u64) -> SectorSet {
    if count >= 128 { SectorSet::MAX } else { (1 << count) - 1 }
}

impl Module {
    /// Writes an extent to a drive of coarse indirection units; returns when it is acknowledged.
    #[inline(never)]
    pub(super) fn write_coarse(&mut self, at: Nanos, extent: Extent) -> Nanos {
        let (first, last) = units(extent);
        let sectors = self.sectors_carried(extent, last - first + 1);
        let arrived_at = self.backend.command_write(at, sectors);
        let mut done = arrived_at;
        let Some(coarse) = &self.coarse else { return done };
        for part in coarse.parts(extent) {
            self.backend.arrived_at = arrived_at;
            let Some(ready) = self.coarse.as_mut().and_then(|coarse| coarse.gather(part)) else {
                continue;
            };
            if !self.is_whole(ready) {
                self.backend.arrived_at = self.fetch(arrived_at, lpn(ready.unit));
            }
            let safe_at = self.place(ready.unit, ready.handle);
            if self.write_through {
                done = done.max(safe_at);
            }
        }
        self.ftl.count_host_bytes(bytes(extent), Bytes::ZERO);
        done.max(self.backend.buffer_admits_at()) + self.acknowledge
    }

    fn is_whole(&self, part: Part) -> bool {
        self.coarse.as_ref().is_none_or(|coarse| coarse.is_whole(part))
    }

    /// Trims the indirection units that an extent covers completely.
    pub(super) fn trim_coarse(&mut self, extent: Extent) {
        let Some(coarse) = &mut self.coarse else { return };
        let whole: Vec<u64> = {
            let parts = coarse.parts(extent).filter(|part| coarse.is_whole(*part));
            parts.map(|part| part.unit).collect()
        };
        coarse.gathered.retain(|part| !whole.contains(&part.unit));
        for unit in whole {
            self.ftl.trim(lpn(unit));
        }
    }

    /// Writes an extent in no time, whole indirection units at a time.
    pub(super) fn age_coarse(&mut self, extent: Extent) {
        let Some(coarse) = &self.coarse else { return };
        for part in coarse.parts(extent) {
            self.ftl.write(part.handle, lpn(part.unit), &mut NoMedia);
        }
    }

    /// Writes an extent to the map alone, parts of units gathered as in
    /// [`Module::write_coarse`].
    #[inline(never)]
    pub(super) fn warm_coarse(&mut self, extent: Extent) {
        let Some(coarse) = &mut self.coarse else { return };
        for part in coarse.parts(extent) {
            if let Some(ready) = coarse.gather(part) {
                self.ftl.write_at_once(ready.handle, lpn(ready.unit), &mut NoMedia);
            }
        }
    }

    /// The logical page that holds a page of 4 KiB.
    #[inline]
    pub(super) fn lpn_of_page(&self, page: u64) -> Lpn {
        lpn(page >> self.pages_shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(first: u64, sectors: u32) -> Extent {
        Extent { first, sectors, handle: 0 }
    }

    fn gather(coarse: &mut IndirectionUnits, first: u64, sectors: u32) -> Vec<(u64, bool)> {
        let parts: Vec<Part> = coarse.parts(extent(first, sectors)).collect();
        let ready: Vec<Part> = parts.into_iter().filter_map(|part| coarse.gather(part)).collect();
        coarse.check_invariants();
        ready.into_iter().map(|part| (part.unit, coarse.is_whole(part))).collect()
    }

    #[test]
    fn what_is_written_in_order_becomes_whole_and_what_is_not_makes_room() {
        let mut coarse = IndirectionUnits::new(16, 32).expect("coarser than 4 KiB");
        for first in [0, 8, 16] {
            assert_eq!(gather(&mut coarse, first, 8), []);
        }
        assert!(coarse.holds(2) && !coarse.holds(3));
        assert_eq!(gather(&mut coarse, 24, 8), [(0, true)]);
        assert!(!coarse.holds(2));
        assert_eq!(gather(&mut coarse, 32, 40), [(1, true)], "a unit, and a part of the next");
        assert_eq!(gather(&mut coarse, 320, 1), []);
        assert_eq!(gather(&mut coarse, 3_200, 1), [(2, false)], "memory for two");
    }

    #[test]
    fn without_memory_every_part_is_made_whole_at_once() {
        let mut coarse = IndirectionUnits::new(64, 0).expect("coarser than 4 KiB");
        assert_eq!(gather(&mut coarse, 0, 8), [(0, false)]);
        assert_eq!(gather(&mut coarse, 0, 128), [(0, true)]);
        assert!(IndirectionUnits::new(4, 1024).is_none());
    }
}
