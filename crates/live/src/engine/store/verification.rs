//! Row verification: every byte of every unit of a row, and the sum of the row.
//!
//! ```text
//!  a data unit  | unit header | table | zeroes | extent | zeroes | extent | … | zeroes |
//!  checked by   | crc   | crc   |        | crc    |        | crc    |   |        |
//!  parity       | unit header | sum of the data units, with a crc in the unit header            |
//! ```
//!
//! Scrub, check, repair and the filling of a replaced die share it.
//!
//! What a row should be is found in this order:
//! 1. A data unit whose table and extents are right needs nothing else: its other bytes are zero.
//! 2. What is wrong with a data unit comes from the sum of the others, extent by extent, as long as
//!    that makes another unit right.
//! 3. Once all data units are right, parity is their sum.
//!
//! Invariants:
//! - What checksums do not prove is never made out of what they do not prove: parity is written
//!   again only from data units that are right, and no unit is written that could not be made right
//!   in every byte.

use ftl::{Debt, Ftl, Lpn, Ppn};

use crate::engine::store::Store;
use crate::format::layout::{Layout, Place, UNIT_HEADER_BYTES};
use crate::format::row::{Member, RowEpoch, StoredPlace};
use crate::format::unit::{self, Codec, Entry, Extent, Identity, UnitHeader, exclusive_or};

/// Damage of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Its die is lost.
    Missing,
    /// Some of it cannot be read.
    Unreadable,
    /// A checksum fails: of its unit header, its table, an extent, or of parity.
    Damaged,
    /// Bytes that belong to no table and no extent are not zero.
    Stray,
    /// Parity is as it was programmed, and is not the sum of the row's data.
    Unequal,
}

/// A unit that was verified.
#[derive(Debug)]
pub(crate) struct VerifiedUnit {
    pub(crate) position: u32,
    pub(crate) die: usize,
    /// None: every byte is right.
    pub(crate) flaw: Option<Flaw>,
    /// The unit as it should be; none where the row does not give it back.
    pub(crate) whole: Option<Vec<u8>>,
    /// Contents read from its die, zeroes where reading failed; none where the die is lost.
    own: Option<Vec<u8>>,
    /// The sum of the others, where it was asked for.
    sum: Option<Vec<u8>>,
}

/// A row that was verified.
#[derive(Debug)]
pub(crate) struct VerifiedRow {
    row: u32,
    life: RowEpoch,
    /// Units, by position.
    pub(crate) units: Vec<VerifiedUnit>,
    /// Count of events when its last unit was programmed, as far as unit headers say.
    pub(crate) programmed_at: u64,
}

/// Pages that are stored in a row and that its damage concerns.
#[derive(Debug, Default)]
pub(crate) struct RowPages {
    /// Readable pages: of the whole row where it is protected, since parity protects all of it,
    /// else of units that the row does not restore.
    pub(crate) readable: Vec<Lpn>,
    /// Pages that cannot be read.
    pub(crate) lost: Vec<Lpn>,
}

impl RowPages {
    pub(crate) const fn is_empty(&self) -> bool {
        self.readable.is_empty() && self.lost.is_empty()
    }
}

/// Pages that a unit names, wherever that is right of it.
#[derive(Debug)]
pub(crate) struct NamedPages {
    pub(crate) position: u32,
    /// Erase count of its superblock; 0 where its table is not right.
    pub(crate) erase_count: u32,
    /// By slot.
    pub(crate) extents: Vec<(u32, Extent)>,
}

/// Tables of the data units of a row, by position.
pub(crate) type RowTables = Vec<Vec<Entry>>;

impl VerifiedUnit {
    /// True if something of it is wrong that a write may set right.
    pub(crate) fn is_bad(&self) -> bool {
        self.flaw.is_some_and(|flaw| flaw != Flaw::Missing)
    }

    /// Returns the known versions of its bytes, the best first.
    fn sources(&self) -> impl Iterator<Item = &[u8]> {
        [&self.whole, &self.own, &self.sum].into_iter().flatten().map(Vec::as_slice)
    }
}

impl VerifiedRow {
    /// The unit at a position, if the row has it.
    pub(crate) fn unit(&self, position: u32) -> Option<&VerifiedUnit> {
        self.units.iter().find(|unit| unit.position == position)
    }

    /// Pages that the map has in the row, and whether they can be read.
    pub(crate) fn pages(&self, store: &Store, ftl: &Ftl<Debt>) -> RowPages {
        let layout = &store.layout;
        let (mut pages, mut unnamed) = (RowPages::default(), Vec::new());
        for unit in self.units.iter().filter(|unit| !layout.is_parity(unit.position)) {
            for slot in 0..layout.unit_slots {
                let place = Place { row: self.row, unit: unit.position, slot };
                let ppn = layout.ppn(place);
                if !ftl.map().is_valid(ppn) {
                    continue;
                }
                match self.extent(store, unit, place).filter(|it| ftl.map().is_at(it.lpn, ppn)) {
                    None => unnamed.push(ppn),
                    Some(extent) if extent.codec == Codec::Lost => pages.lost.push(extent.lpn),
                    Some(extent) if layout.shape.is_protected || unit.whole.is_none() => {
                        pages.readable.push(extent.lpn);
                    }
                    Some(_) => {}
                }
            }
        }
        pages.lost.extend(named(ftl, unnamed));
        pages.lost.sort_unstable();
        pages
    }

    /// Pages that the data units name: by their tables, or where those are not right by the headers
    /// of extents whose places are known without them.
    pub(crate) fn named_pages(&self, store: &Store) -> Vec<NamedPages> {
        let (layout, identity) = (&store.layout, store.identity(self.life.seq));
        let data = self.units.iter().filter(|unit| !layout.is_parity(unit.position));
        let named = |unit: &VerifiedUnit| {
            let position = unit.position;
            let first = store.first(self.row, position);
            let told = unit.sources().find_map(|it| unit::table(layout, it, identity, first));
            if let Some((origin, table)) = told {
                let extents = (0..).zip(table).map(|(slot, entry)| (slot, entry.extent)).collect();
                return NamedPages { position, erase_count: origin.erase_count, extents };
            }
            let at = |slot: u32| {
                layout.extent_from(slot)?;
                Some((
                    slot,
                    self.extent(store, unit, Place { row: self.row, unit: position, slot })?,
                ))
            };
            let extents = (0..layout.unit_slots).filter_map(at).collect();
            NamedPages { position, erase_count: 0, extents }
        };
        data.map(named).collect()
    }

    /// The extent at a place of a unit, wherever it is right.
    fn extent(&self, store: &Store, unit: &VerifiedUnit, place: Place) -> Option<Extent> {
        Some(self.extent_and_payload(store, unit, place)?.0)
    }

    fn extent_and_payload<'a>(
        &self,
        store: &Store,
        unit: &'a VerifiedUnit,
        place: Place,
    ) -> Option<(Extent, &'a [u8])> {
        let (layout, identity) = (&store.layout, store.identity(self.life.seq));
        let ppn = layout.ppn(place);
        // The table's checksum was not verified, and what is right of it may come from another
        // version of the unit than the extent.
        let entry_from = Layout::entry_from(place.slot);
        let told = |source: &[u8]| match layout.extent_from(place.slot) {
            Some(from) => Some(from),
            None => Some(unit::entry(&source[entry_from..])?.from),
        };
        let within = |from: &usize| (UNIT_HEADER_BYTES..layout.unit_bytes).contains(from);
        unit.sources().filter_map(told).filter(within).find_map(|from| {
            unit.sources().find_map(|source| unit::extent_in(source, from, identity, ppn))
        })
    }
}

/// The pages at some places, by a look through the whole map.
fn named(ftl: &Ftl<Debt>, mut places: Vec<Ppn>) -> impl Iterator<Item = Lpn> {
    places.sort_unstable();
    let found = if places.is_empty() { Vec::new() } else { ftl.map().pages_at(&places) };
    found.into_iter().map(|(lpn, _)| lpn)
}

impl Store {
    /// The extent at a place of a row of which more than one unit is damaged, but not at the same
    /// places: what is right of each gives the others back. Sectors that cannot be read may have
    /// been zeroes, which the checksum tells.
    pub(crate) fn rescue_extent(&self, stored: StoredPlace) -> Option<(Extent, Vec<u8>)> {
        let place = self.layout.place(stored.ppn);
        let verified = self.verify(place.row, stored.life, None);
        let unit = verified.unit(place.unit)?;
        let (extent, payload) = verified.extent_and_payload(self, unit, place)?;
        Some((extent, payload.to_vec()))
    }

    /// The tables of a row in which every byte is right; none where any is not. Reads unit by unit,
    /// and keeps one.
    pub(crate) fn right_tables(&self, row: u32, life: RowEpoch) -> Option<RowTables> {
        let layout = &self.layout;
        let lost = self.dies.lost();
        let mut tables = vec![Vec::new(); layout.data_units(life.out) as usize];
        let (mut unit, mut sum) = (vec![0; layout.unit_bytes], vec![0; layout.unit_bytes]);
        let mut missing = None;
        for position in layout.positions(life.out) {
            let member = Member { row, position, life };
            let die = layout.die(row, position, life.out);
            if lost.has(die) {
                missing.replace(member).is_none().then_some(())?;
                continue;
            }
            self.dies.read(die, layout.unit_from(row), &mut unit).ok()?;
            let unit_header = self.own_stamp(member, &unit)?;
            if unit_header.is_parity {
                (crc32c::crc32c(&unit[UNIT_HEADER_BYTES..]) == unit_header.body_crc)
                    .then_some(())?;
            } else {
                tables[position as usize] = self.right_table(member, &unit)?;
            }
            exclusive_or(&mut sum[UNIT_HEADER_BYTES..], &unit[UNIT_HEADER_BYTES..]);
        }
        let is_protected = layout.shape.is_protected;
        match missing {
            None if is_protected => is_zero(&sum[UNIT_HEADER_BYTES..]).then_some(())?,
            Some(member) if !layout.is_parity(member.position) => {
                is_protected.then_some(())?;
                tables[member.position as usize] = self.right_table(member, &sum)?;
            }
            _ => {}
        }
        Some(tables)
    }

    /// True if the tables of a row have every page that the map looks for in it.
    pub(crate) fn have_pages(&self, ftl: &Ftl<Debt>, row: u32, tables: &RowTables) -> bool {
        (0..).zip(tables).all(|(unit, table)| {
            (0..self.layout.unit_slots).all(|slot| {
                let ppn = self.layout.ppn(Place { row, unit, slot });
                let there = table.get(slot as usize).map(|entry| entry.extent);
                let is_it = |it: Extent| ftl.map().is_at(it.lpn, ppn) && it.codec != Codec::Lost;
                !ftl.map().is_valid(ppn) || there.is_some_and(is_it)
            })
        })
    }

    /// Verifies a row whole, and finds what each unit of it should be. What `absent` holds is not
    /// looked at.
    pub(crate) fn verify(&self, row: u32, life: RowEpoch, absent: Option<u32>) -> VerifiedRow {
        let lost = self.dies.lost();
        let mut units = Vec::new();
        for position in self.layout.positions(life.out) {
            let die = self.layout.die(row, position, life.out);
            let is_there = !lost.has(die) && absent != Some(position);
            let read = is_there.then(|| self.read_unit(row, die));
            let flaw = match &read {
                None => Some(Flaw::Missing),
                Some((_, false)) => Some(Flaw::Unreadable),
                Some((_, true)) => None,
            };
            let own = read.map(|(unit, _)| unit);
            units.push(VerifiedUnit { position, die, flaw, whole: None, own, sum: None });
        }
        let mut verified = VerifiedRow { row, life, units, programmed_at: life.seq };
        self.find_data(&mut verified);
        self.find_parity(&mut verified);
        self.unit_header(&mut verified);
        for index in 0..verified.units.len() {
            if verified.units[index].whole.is_none() {
                verified.units[index].sum = self.sum_of_others(&verified.units, index);
            }
        }
        verified
    }

    /// A unit as its die gives it, and whether all of it was read; zeroes where it was not.
    fn read_unit(&self, row: u32, die: usize) -> (Vec<u8>, bool) {
        let mut unit = vec![0; self.layout.unit_bytes];
        let is_whole = self.read_readable(die, self.layout.unit_from(row), &mut unit);
        (unit, is_whole)
    }

    /// Finds what data units should be, each by itself at first, then from the others.
    fn find_data(&self, verified: &mut VerifiedRow) {
        let VerifiedRow { row, life, ref mut units, .. } = *verified;
        let is_data = |unit: &VerifiedUnit| !self.layout.is_parity(unit.position);
        for unit in units.iter_mut().filter(|unit| is_data(unit)) {
            let Some(own) = &unit.own else { continue };
            let member = Member { row, position: unit.position, life };
            unit.whole = self.assembled(member, [Some(own), None]);
        }
        let mut is_progress = true;
        while std::mem::take(&mut is_progress) {
            for index in 0..units.len() {
                let unit = &units[index];
                if unit.whole.is_some() || !is_data(unit) {
                    continue;
                }
                let Some(sum) = self.sum_of_others(units, index) else { continue };
                let member = Member { row, position: unit.position, life };
                let whole = self.assembled(member, [unit.own.as_deref(), Some(&sum)]);
                is_progress |= whole.is_some();
                units[index].whole = whole;
            }
        }
    }

    /// Finds what parity should be: the sum of data units that are all known, or else what was
    /// programmed.
    fn find_parity(&self, verified: &mut VerifiedRow) {
        let VerifiedRow { row, life, ref mut units, .. } = *verified;
        let Some(index) = units.iter().position(|unit| self.layout.is_parity(unit.position)) else {
            return;
        };
        let data = units.iter().filter(|unit| !self.layout.is_parity(unit.position));
        let mut sum = vec![0; self.layout.unit_bytes];
        let mut is_known = true;
        for unit in data {
            match &unit.whole {
                Some(whole) => {
                    exclusive_or(&mut sum[UNIT_HEADER_BYTES..], &whole[UNIT_HEADER_BYTES..]);
                }
                None => is_known = false,
            }
        }
        let member = Member { row, position: units[index].position, life };
        let parity = &mut units[index];
        parity.whole = if is_known {
            Some(sum)
        } else {
            parity.own.clone().filter(|own| self.is_programmed_parity(member, own))
        };
    }

    /// Stamps the units that are known, and says what is wrong with each.
    fn unit_header(&self, verified: &mut VerifiedRow) {
        let VerifiedRow { row, life, ref mut units, ref mut programmed_at } = *verified;
        let member = |unit: &VerifiedUnit| Member { row, position: unit.position, life };
        let own_stamp = |unit: &VerifiedUnit| self.own_stamp(member(unit), unit.own.as_deref()?);
        let newest =
            units.iter().filter_map(own_stamp).max_by_key(|unit_header| unit_header.programmed_at);
        if let Some(newest) = newest {
            *programmed_at = newest.programmed_at;
        }
        for unit in units {
            let member = member(unit);
            if let Some(unit_header) = self.right_stamp(unit, member, newest) {
                unit_header.write(unit.whole.as_mut().expect("only what is known has one"));
            }
            if unit.flaw.is_none() && unit.own != unit.whole {
                unit.flaw = Some(self.flaw(unit, member));
            }
        }
    }

    /// The header that a unit should have which is known: its own, or one after that of another
    /// unit of the row.
    fn right_stamp(
        &self,
        unit: &VerifiedUnit,
        member: Member,
        sibling: Option<UnitHeader>,
    ) -> Option<UnitHeader> {
        let whole = unit.whole.as_ref()?;
        let Member { row, position, life } = member;
        let is_parity = self.layout.is_parity(position);
        let body_crc = if is_parity { crc32c::crc32c(&whole[UNIT_HEADER_BYTES..]) } else { 0 };
        let own = unit.own.as_ref().and_then(|own| self.own_stamp(member, own));
        let like = own.or(sibling).unwrap_or(UnitHeader {
            is_parity,
            row,
            position,
            identity: self.identity(life.seq),
            programmed_at: life.seq,
            body_crc,
            out: life.out,
            batches: 0,
        });
        Some(UnitHeader { is_parity, position, body_crc, ..like })
    }

    /// Classifies the damage of a unit that was read and is not what it should be.
    fn flaw(&self, unit: &VerifiedUnit, member: Member) -> Flaw {
        let own = unit.own.as_ref().filter(|own| self.own_stamp(member, own).is_some());
        match own {
            Some(own) if self.is_programmed_parity(member, own) => Flaw::Unequal,
            Some(own) if self.assembled(member, [Some(own), None]).is_some() => Flaw::Stray,
            _ => Flaw::Damaged,
        }
    }

    /// The header of a unit, if it is the one of its place and of its row's life.
    fn own_stamp(&self, member: Member, unit: &[u8]) -> Option<UnitHeader> {
        let Member { row, position, life } = member;
        let unit_header = UnitHeader::parse(unit)?;
        let is_own = (unit_header.row, unit_header.position, unit_header.out)
            == (row, position, life.out)
            && unit_header.identity == self.identity(life.seq)
            && unit_header.is_parity == self.layout.is_parity(position);
        is_own.then_some(unit_header)
    }

    /// True if a die has its unit of a row: by the unit header alone, or in every byte.
    pub(crate) fn has_unit(&self, member: Member, die: usize, is_thorough: bool) -> bool {
        let length = if is_thorough { self.layout.unit_bytes } else { UNIT_HEADER_BYTES };
        let mut unit = vec![0; length];
        let read = self.dies.peek(die, self.layout.unit_from(member.row), &mut unit);
        match self.own_stamp(member, &unit).filter(|_| read.is_ok()) {
            None => false,
            Some(_) if !is_thorough => true,
            Some(it) if it.is_parity => self.is_programmed_parity(member, &unit),
            Some(_) => self.right_table(member, &unit).is_some(),
        }
    }

    /// True if bytes are a parity unit as it was programmed.
    fn is_programmed_parity(&self, member: Member, unit: &[u8]) -> bool {
        let crc = || crc32c::crc32c(&unit[UNIT_HEADER_BYTES..]);
        let unit_header = self.own_stamp(member, unit).filter(|unit_header| unit_header.is_parity);
        unit_header.is_some_and(|unit_header| unit_header.body_crc == crc())
    }

    /// The table of a data unit, if every byte behind its unit header is right.
    fn right_table(&self, member: Member, unit: &[u8]) -> Option<Vec<Entry>> {
        let (identity, first) = self.checked_by(member);
        let (_, table) = unit::table(&self.layout, unit, identity, first)?;
        let mut end = Layout::entry_from(table.len().try_into().ok()?);
        for (slot, entry) in (0..).zip(&table) {
            let ppn = self.layout.ppn_within(first, slot);
            let (extent, _) = unit::extent_in(unit, entry.from, identity, ppn)?;
            (extent == entry.extent && is_zero(&unit[end..entry.from])).then_some(())?;
            end = entry.from + extent.stored_bytes();
        }
        is_zero(&unit[end..]).then_some(table)
    }

    /// A data unit without its header, its table and each of its extents from the first of
    /// `sources` in which it is right; none where one is right in neither.
    fn assembled(&self, member: Member, sources: [Option<&[u8]>; 2]) -> Option<Vec<u8>> {
        (!self.layout.is_parity(member.position)).then_some(())?;
        let (identity, first) = self.checked_by(member);
        let sources = || sources.iter().copied().flatten();
        let (from, table) = sources().find_map(|source| {
            let (_, table) = unit::table(&self.layout, source, identity, first)?;
            Some((source, table))
        })?;
        let mut unit = vec![0; self.layout.unit_bytes];
        let end = Layout::entry_from(table.len().try_into().ok()?);
        unit[UNIT_HEADER_BYTES..end].copy_from_slice(&from[UNIT_HEADER_BYTES..end]);
        for (slot, entry) in (0..).zip(&table) {
            let ppn = self.layout.ppn_within(first, slot);
            let is_right = |source: &&[u8]| {
                let found = unit::extent_in(source, entry.from, identity, ppn);
                found.is_some_and(|(extent, _)| extent == entry.extent)
            };
            let range = entry.from..entry.from + entry.extent.stored_bytes();
            unit[range.clone()].copy_from_slice(&sources().find(is_right)?[range]);
        }
        Some(unit)
    }

    /// Returns the identity and the place that checksums of a unit cover besides its bytes.
    const fn checked_by(&self, member: Member) -> (Identity, Ppn) {
        (self.identity(member.life.seq), self.first(member.row, member.position))
    }

    /// The sum of all units but one, each as it should be where that is known; none where one of
    /// them is not there.
    fn sum_of_others(&self, units: &[VerifiedUnit], index: usize) -> Option<Vec<u8>> {
        self.layout.shape.is_protected.then_some(())?;
        let mut sum = vec![0; self.layout.unit_bytes];
        for (_, other) in units.iter().enumerate().filter(|(other, _)| *other != index) {
            let known = other.whole.as_ref().or(other.own.as_ref())?;
            exclusive_or(&mut sum[UNIT_HEADER_BYTES..], &known[UNIT_HEADER_BYTES..]);
        }
        Some(sum)
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests;
