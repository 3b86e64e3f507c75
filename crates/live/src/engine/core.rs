//! State that changes while a drive is open: the translation layer, the rows that are being filled,
//! and the count of events.
//!
//! The core is a value: it decides what becomes of pages, and neither reads nor writes a die. What
//! follows for the dies it hands out ([`Core::take_programs`]), and is told when that was done
//! ([`Core::programmed`]); what relocation moves is read before and handed in ([`VictimUnit`]).
//!
//! A row is filled unit by unit in memory. Full units are programmed at once, but the row stays in
//! memory until it is complete, parity included; only then may anything rely on what the media
//! holds of it. What must be durable earlier goes to the journal, too.
//!
//! Invariants:
//! - `seq` counts every event that changes what a page is or where it is: of all that survives a
//!   crash, the event with the highest `seq` is what holds.
//! - `rows` has the life of each row that is complete, and of no other.
//! - Rows that are begun leave out the dies of `out`, and the translation layer as many units.

pub(crate) mod bad_places;
pub(crate) mod completed_rows;
mod condemned;
mod left_out;
pub(crate) mod lost;
pub(crate) mod open_row;
pub(crate) mod program;
mod size;
pub(crate) mod write_buffer;

pub(crate) use self::condemned::condemn_all;

use std::sync::Arc;

use blockio::Bytes;
use device::DeviceError;
use ftl::{Cause, Debt, Ftl, Lpn, Media, MediaOp, Ppn, SuperblockId};

use crate::engine::core::completed_rows::CompletedRows;
use crate::engine::core::lost::LostPages;
use crate::engine::core::open_row::OpenRow;
use crate::engine::core::program::{Contents, Program, RowId};
use crate::engine::core::write_buffer::WriteBuffer;
use crate::engine::store::victim_unit::{NeededPages, VictimUnit};
use crate::format::die_set::DieSet;
use crate::format::journal::Trim;
use crate::format::layout::{Layout, Place};
use crate::format::page_set::PageSet;
use crate::format::row::{Member, RowEpoch, Rows, StoredPlace};
use crate::format::unit::{Codec, Extent, Identity, Origin, Page, UnitBuffer, UnitHeader};
use crate::mutants::{self, Mutant};

/// Erased superblocks that make open rows go to the journal; fewer wait for the completion of rows.
pub(crate) const ERASED_MAX: usize = 3;

/// Trims that are kept in memory before they are journaled.
pub(crate) const TRIMS_MAX: usize = 4096;

/// Location of a logical page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageLocation {
    /// Nowhere: it reads as zeroes.
    Nowhere,
    /// In a row that is being filled, and read from memory.
    Open(StoredPlace),
    /// On the media.
    Stored(StoredPlace),
}

impl PageLocation {
    /// The place and the life of its row, which no other contents ever have: two looks that found
    /// the same found the same contents.
    pub(crate) const fn stored(self) -> Option<StoredPlace> {
        match self {
            Self::Nowhere => None,
            Self::Open(stored) | Self::Stored(stored) => Some(stored),
        }
    }
}

/// Result of a step of relocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RelocationStep {
    /// Nothing is owed any more, or what was gained has to be committed first.
    Enough,
    /// Relocation needs these pages, which have to be read first.
    Needs(NeededPages),
    /// No superblock is worth it.
    Nothing,
}

/// The changing part of a drive.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) ftl: Ftl<Debt>,
    pub(crate) rows: Rows,
    /// Dies that rows leave out which are begun from now on.
    pub(crate) out: DieSet,
    /// Number of changes of `out`.
    pub(crate) choices: u64,
    pub(crate) open: Vec<OpenRow>,
    pub(crate) seq: u64,
    /// Trims that are not in the journal.
    pub(crate) trims: Vec<Trim>,
    /// Rows that were completed and that no batch of the journal lists yet.
    pub(crate) completed: CompletedRows,
    /// Dies written since they were last made durable.
    pub(crate) dirty: DieSet,
    /// True if full units wait in memory, because a crash may yet undo what is in them.
    pub(crate) holds_programs: bool,
    /// Number below which batches of the journal are known to be durable.
    pub(crate) batches: u64,
    /// Slot of the key that pages which are placed must be encrypted with; 0: none.
    pub(crate) key: u8,
    layout: Layout,
    /// Drawn when the drive was created.
    drive: u64,
    held: Vec<MediaOp>,
    ops: Vec<MediaOp>,
    /// Programs that were decided, for the thread that carries them out.
    programs: Vec<Program>,
    /// Buffers of units to be used again.
    spare: Vec<Vec<u8>>,
    /// Pages known to be lost.
    pub(crate) lost: LostPages,
    /// After a start from an earlier state, the pages that were not written since; else none.
    pub(crate) older: Option<PageSet>,
    /// Memory that survives the process; none where nothing has to, or every command is committed.
    pub(crate) buffer: Option<WriteBuffer>,
    /// Bytes of flash given up by trims and by shorter pages since the last commit: a crash may
    /// bring back what took them.
    pub(crate) freed: u64,
    /// Of each erased superblock that is not released, in the translation layer's order, a count of
    /// events: what superseded its pages lies in rows that were begun before.
    erased_at: Vec<u64>,
}

/// Reason why pages cannot be placed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Relocation has to come first.
    NeedsGc,
    /// More would be stored than may be.
    NoCapacity,
}

impl Core {
    /// True if pages are to be relocated, or what relocation has gained is to be committed.
    pub(crate) fn is_relocation_due(&self) -> bool {
        self.ftl.needs_room()
            || self.ftl.owes_batches(1)
            || self.releasable() > 0
            || self.ftl.held_erased().len() >= ERASED_MAX
    }

    /// The core of a drive, whose number is `drive`.
    pub(crate) fn new(layout: Layout, drive: u64, ftl: Ftl<Debt>, rows: Rows, seq: u64) -> Self {
        assert_eq!(rows.count(), layout.shape.rows_total(), "every row has a life");
        Self {
            ftl,
            rows,
            out: DieSet::default(),
            choices: 0,
            open: Vec::new(),
            seq,
            trims: Vec::new(),
            completed: CompletedRows::default(),
            dirty: DieSet::default(),
            holds_programs: false,
            batches: 0,
            key: 0,
            layout,
            drive,
            held: Vec::new(),
            ops: Vec::new(),
            programs: Vec::new(),
            spare: Vec::new(),
            lost: LostPages::default(),
            older: None,
            buffer: None,
            freed: 0,
            erased_at: Vec::new(),
        }
    }

    pub(crate) const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The next event.
    pub(crate) const fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        self.seq - 1
    }

    /// The place of a page; none beyond the end of a drive that became smaller meanwhile.
    pub(crate) fn place_of(&self, lpn: Lpn) -> Option<Ppn> {
        (lpn.0 < self.ftl.config().pages_logical).then(|| self.ftl.lookup(lpn))?
    }

    /// Remembers that pages were found lost, until they are written or trimmed. Those that are
    /// stored nowhere any more are not.
    pub(crate) fn note_lost(&mut self, pages: impl IntoIterator<Item = Lpn>) {
        for lpn in pages {
            if self.place_of(lpn).is_some() && !self.lost.has(lpn) {
                let seq = self.next_seq();
                self.lost.find(lpn, seq);
            }
        }
    }

    /// Takes note that pages are given up: nothing that is known of what they held counts.
    pub(crate) fn supersede(&mut self, first: Lpn, pages: u32) {
        self.lost.clear(first, pages);
        self.renew(first, pages);
    }

    /// Takes note that nothing of pages is as it was at a start from an earlier state. A page of
    /// which a part was written keeps the rest.
    pub(crate) fn renew(&mut self, first: Lpn, pages: u32) {
        if let Some(older) = &mut self.older {
            older.clear(first.0, first.0.saturating_add(pages));
        }
    }

    /// Returns the location of a page.
    pub(crate) fn locate(&self, lpn: Lpn) -> PageLocation {
        let Some(ppn) = self.place_of(lpn) else { return PageLocation::Nowhere };
        let row = self.layout.place(ppn).row;
        if let Some(open) = self.open.iter().find(|open| open.row == row) {
            let life = RowEpoch { seq: open.seq, out: open.out };
            return PageLocation::Open(StoredPlace { ppn, life });
        }
        PageLocation::Stored(StoredPlace { ppn, life: self.rows.life(row) })
    }

    /// Returns the extent, and its payload, at a place of a row that is being filled.
    pub(crate) fn open_extent(&self, ppn: Ppn) -> (Extent, &[u8]) {
        let place = self.layout.place(ppn);
        let open = self.open.iter().find(|open| open.row == place.row).expect("located there");
        assert!(place.unit < self.layout.data_units(open.out), "extents lie in data units");
        open.units[place.unit as usize].extent(place.slot)
    }

    /// Voids the contents of all rows.
    pub(crate) fn forget_rows(&mut self) {
        self.rows = Rows::new(self.rows.count());
        self.completed.clear();
        if let Some(buffer) = &mut self.buffer {
            buffer.forget_rows();
        }
        for open in std::mem::take(&mut self.open) {
            self.keep_memory(open);
        }
    }

    /// Keeps the memory of a row that is no longer filled.
    fn keep_memory(&mut self, open: OpenRow) {
        self.spare.extend(open.units.into_iter().filter_map(UnitBuffer::into_memory));
    }

    /// The programs that were decided since they were taken last; of each
    /// [`Core::programmed`] is to be told.
    pub(crate) fn take_programs(&mut self) -> Vec<Program> {
        std::mem::take(&mut self.programs)
    }

    /// Gives pages their places; says how many got one, and what the next one waits for.
    pub(crate) fn place_pages(&mut self, pages: &[Page<'_>]) -> (usize, Option<Wait>) {
        for (index, page) in pages.iter().enumerate() {
            if let Some(wait) = self.wait(std::slice::from_ref(page)) {
                return (index, Some(wait));
            }
            self.place(page);
            self.renew(page.lpn, 1);
        }
        (pages.len(), None)
    }

    /// Returns the reason why pages that belong together cannot be placed yet; none if they can.
    ///
    /// Whatever a crash may bring back counts as stored, so that it can never be more than fits.
    pub(crate) fn wait(&self, pages: &[Page<'_>]) -> Option<Wait> {
        if self.ftl.needs_room() {
            return Some(Wait::NeedsGc);
        }
        if pages.iter().any(|page| page.lpn.0 >= self.ftl.config().pages_logical) {
            // The drive has become smaller meanwhile.
            return Some(Wait::NoCapacity);
        }
        let charged = |page: &Page<'_>| Bytes(Layout::charged(page.extent_bytes()));
        let extents = pages.iter().map(|page| (page.lpn, charged(page)));
        let fits = self.ftl.has_space_for_extents(extents, Bytes(self.freed));
        (!fits).then_some(Wait::NoCapacity)
    }

    /// Has the translation layer do something, and follows it; `unit` has what was read of the
    /// victim.
    fn decide<T>(
        &mut self,
        unit: Option<&VictimUnit>,
        act: impl FnOnce(&mut Ftl<Debt>, &mut MediaAdapter<'_>) -> T,
    ) -> T {
        let Self { ftl, rows, open, ops, layout, .. } = self;
        let done = act(ftl, &mut MediaAdapter { layout, rows, open, ops, unit });
        self.follow(unit);
        done
    }

    /// Changes the map; what is given up is not free before it is durable.
    pub(crate) fn giving_up<T>(&mut self, change: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.ftl.occupancy().stored.0;
        let done = change(self);
        self.freed += before.saturating_sub(self.ftl.occupancy().stored.0);
        done
    }

    /// Gives a page its place, whatever room there is.
    pub(crate) fn place(&mut self, page: &Page<'_>) {
        let extent = Extent {
            lpn: page.lpn,
            codec: page.codec,
            key: page.key,
            length: u16::try_from(page.payload.len()).expect("at most a page"),
            seq: self.next_seq(),
            payload_crc: page.payload_crc,
        };
        if page.codec == Codec::Lost {
            self.lost.find(page.lpn, extent.seq);
        } else {
            self.lost.clear(page.lpn, 1);
        }
        let mut ops = std::mem::take(&mut self.ops);
        assert!(ops.is_empty(), "what was decided before was followed");
        let charged = Bytes(Layout::charged(page.extent_bytes()));
        let ppn = self.giving_up(|core| core.ftl.write_owing(page.lpn, charged, &mut ops));
        self.ops = ops;
        assert_eq!(self.ftl.lookup(page.lpn), Some(ppn), "the map has what was placed");
        self.append(ppn, extent, page.payload, false);
        self.follow(None);
    }

    /// Relocates while host pages owe it, or until they may go on, as far as `unit` has what is to
    /// be moved.
    pub(crate) fn relocate(&mut self, unit: &VictimUnit) -> RelocationStep {
        loop {
            let (needs_room, owes) = (self.ftl.needs_room(), self.ftl.owes_batches(1));
            let is_gained = !self.ftl.held_erased().is_empty();
            if if needs_room { is_gained } else { !owes } {
                return RelocationStep::Enough;
            }
            if let Some(wanted) = self.ftl.next_to_relocate().and_then(|ppn| self.lacks(unit, ppn))
            {
                return RelocationStep::Needs(wanted);
            }
            let before = self.seq;
            let erased = self.ftl.counters().superblocks_erased;
            self.decide(Some(unit), |ftl, media| ftl.relocate_next(media));
            if (self.seq, self.ftl.counters().superblocks_erased) == (before, erased) {
                return RelocationStep::Nothing;
            }
        }
    }

    /// The pages to be read before the one at a place can be moved; none if it is at hand.
    fn lacks(&self, unit: &VictimUnit, ppn: Ppn) -> Option<NeededPages> {
        let place = self.layout.place(ppn);
        if self.open.iter().any(|open| open.row == place.row) {
            return None;
        }
        let of = Member { row: place.row, position: place.unit, life: self.rows.life(place.row) };
        assert!(of.life.seq != 0, "a valid page lies in a row that is filled or complete");
        (!unit.has(of, place.slot)).then_some(())?;
        let place_of = |slot| self.layout.ppn(Place { slot, ..place });
        let map = self.ftl.map();
        let slots = (0..self.layout.unit_slots).filter(|slot| map.is_valid(place_of(*slot)));
        Some(NeededPages { of, slots: slots.collect() })
    }

    /// Moves a page to the relocation stream; `unit` has it, unless it is in memory.
    pub(crate) fn relocate_page(&mut self, unit: &VictimUnit, lpn: Lpn) {
        self.decide(Some(unit), |ftl, media| ftl.relocate(lpn, media));
    }

    /// Fills up the rows that are begun with nothing.
    pub(crate) fn finish_rows(&mut self) {
        self.decide(None, |ftl, media| ftl.finish_rows(media));
        let are_full = self.holds_programs || self.open.iter().all(OpenRow::is_full);
        assert!(are_full, "a row that is finished takes no more");
    }

    /// Hands out what was held back.
    pub(crate) fn release_programs(&mut self) {
        assert!(self.ops.is_empty(), "what was decided was followed or held back");
        self.holds_programs = false;
        self.ops = std::mem::take(&mut self.held);
        self.follow(None);
    }

    /// Does in memory what the translation layer wants of the media, and hands out the rest.
    fn follow(&mut self, unit: Option<&VictimUnit>) {
        let mut ops = std::mem::take(&mut self.ops);
        let rows = self.layout.shape.rows;
        for op in ops.drain(..) {
            match op {
                MediaOp::Relocate { from, to, lpn, .. } => self.move_extent(unit, lpn, (from, to)),
                MediaOp::Program { .. } | MediaOp::Erase { .. } if self.holds_programs => {
                    self.held.push(op);
                }
                MediaOp::Program { superblock, die, row, cause, .. } => {
                    assert!(row < rows, "a superblock has so many rows");
                    self.program(superblock.0 * rows + row, die.0, cause == Cause::Parity);
                }
                MediaOp::Erase { superblock, .. } => self.erase(superblock),
            }
        }
        self.ops = ops;
        self.note_erased();
    }

    /// Takes note of the count of events for superblocks that were erased just now.
    fn note_erased(&mut self) {
        let held = self.ftl.held_erased().len();
        assert!(self.erased_at.len() <= held, "what was erased is held until it is released");
        self.erased_at.resize(held, self.seq);
        assert!(self.erased_at.is_sorted(), "what was erased longest ago is released first");
    }

    /// Number of superblocks, of those erased longest ago, whose release needs no contents of open
    /// rows in the journal: all rows that were open when they were erased have been completed.
    pub(crate) fn releasable(&self) -> usize {
        if mutants::is(Mutant::ReleasedUnfinished) {
            return self.erased_at.len();
        }
        let oldest = self.open.iter().map(|open| open.seq).min().unwrap_or(u64::MAX);
        self.erased_at.iter().take_while(|at| **at <= oldest).count()
    }

    /// Lets the `count` superblocks that were erased longest ago be written again.
    pub(crate) fn release_erased(&mut self, count: usize) {
        assert!(count <= self.ftl.held_erased().len(), "what is released was erased");
        self.ftl.release_erased(count);
        self.erased_at.drain(..count.min(self.erased_at.len()));
    }

    /// Copies an extent to a new place. What could not be read is remembered as lost, so that
    /// reading it goes on to fail; what can be read is lost no longer.
    fn move_extent(&mut self, unit: Option<&VictimUnit>, lpn: Lpn, (from, to): (Ppn, Ppn)) {
        assert_ne!(from, to, "a page is moved to another place");
        let seq = self.next_seq();
        let place = self.layout.place(from);
        let memory: Vec<u8>;
        let found = if self.open.iter().any(|open| open.row == place.row) {
            let (extent, payload) = self.open_extent(from);
            memory = payload.to_vec();
            Some((extent, &memory[..]))
        } else {
            let life = self.rows.life(place.row);
            let of = Member { row: place.row, position: place.unit, life };
            unit.expect("what is moved was read before").extent(of, place.slot)
        };
        let none = Extent { lpn, codec: Codec::Lost, key: 0, length: 0, seq, payload_crc: 0 };
        let (extent, payload) = found.unwrap_or((none, &[]));
        if extent.codec == Codec::Lost {
            self.lost.find(lpn, seq);
        } else {
            // It may have been out of reach when it was found lost.
            self.lost.clear(lpn, 1);
        }
        self.append(to, Extent { seq, ..extent }, payload, true);
    }

    /// Forgets the rows of a superblock. The last programs of some may be under way: those rows are
    /// completed and listed all the same, since a crash before the superblock is released goes back
    /// to them. Nothing is written there again before that commit, which waits for them.
    fn erase(&mut self, superblock: SuperblockId) {
        let rows = self.layout.rows_of(superblock.0);
        for open in self.open.iter_mut().filter(|open| rows.contains(&open.row)) {
            assert!(open.is_full(), "no row is filled that is erased");
            open.is_erased = true;
        }
        self.rows.forget(rows);
    }

    const fn identity(&self, row_seq: u64) -> Identity {
        Identity { drive: self.drive, row_seq }
    }

    fn append(&mut self, ppn: Ppn, extent: Extent, payload: &[u8], is_relocation: bool) {
        let place = self.layout.place(ppn);
        let index = self.open.iter().position(|open| open.row == place.row);
        let index = index.unwrap_or_else(|| self.begin_row(place.row, is_relocation));
        if self.open[index].units.len() == place.unit as usize {
            self.begin_unit(index);
        }
        let identity = self.identity(self.open[index].seq);
        let open = &mut self.open[index];
        assert_eq!(open.origin.is_relocation, is_relocation, "a row is of one stream");
        assert!(place.unit < self.layout.data_units(open.out), "extents lie in data units");
        assert_eq!(open.units.len(), place.unit as usize + 1, "units are filled one by one");
        let unit = &mut open.units[place.unit as usize];
        assert_eq!(unit.count, place.slot, "extents follow each other");
        unit.append(&extent, payload, identity, ppn);
        if let Some(buffer) = self.buffer.as_mut().filter(|_| !is_relocation) {
            buffer.add_extent(extent, payload, identity.row_seq, ppn);
        }
    }

    /// Has the write buffer take no pages, or go on to: one batch of the journal takes all of them.
    pub(crate) const fn pause_buffer(&mut self, is_paused: bool) {
        if let Some(buffer) = &mut self.buffer {
            buffer.pause(is_paused);
        }
    }

    /// Remembers pages that were trimmed until a batch of the journal has them.
    pub(crate) fn add_trim(&mut self, trim: Trim) {
        if let Some(buffer) = &mut self.buffer {
            buffer.add_trim(trim);
        }
        if !mutants::is(Mutant::TrimForgotten) {
            self.trims.push(trim);
        }
    }

    fn begin_row(&mut self, row: u32, is_relocation: bool) -> usize {
        assert_eq!(self.rows.life(row).seq, 0, "a row is begun after it was erased");
        let superblock = SuperblockId(row / self.layout.shape.rows);
        let erase_count = self.ftl.superblock(superblock).erase_count;
        let origin = Origin { is_relocation, erase_count };
        let (seq, out) = (self.next_seq(), self.out);
        let parity = u32::from(self.layout.shape.is_protected);
        let undecided = self.layout.data_units(out) + parity;
        let units = Vec::with_capacity(undecided as usize);
        self.open.push(OpenRow {
            row,
            seq,
            origin,
            out,
            units,
            undecided,
            under_way: 0,
            is_erased: false,
        });
        self.open.len() - 1
    }

    fn begin_unit(&mut self, index: usize) {
        let memory = self.spare.pop().unwrap_or_default();
        self.open[index].units.push(UnitBuffer::new(&self.layout, memory));
    }

    /// Hands out the program of the unit of a row that lies on `die` where nothing is left out.
    fn program(&mut self, row: u32, die: u32, is_parity: bool) {
        let programmed_at = self.next_seq();
        let index = self.open.iter().position(|open| open.row == row).expect("it holds extents");
        let whole = DieSet::default();
        let position = self.layout.position(row, die as usize, whole).expect("it has every die");
        let out = self.open[index].out;
        if !is_parity && position >= self.layout.data_units(out) {
            return;
        }
        assert_eq!(is_parity, self.layout.is_parity(position), "parity lies in its position");
        if !is_parity && self.open[index].units.len() == position as usize {
            self.begin_unit(index);
        }
        let of = self.open[index].id();
        assert!(of.seq < programmed_at, "a unit is programmed after its row was begun");
        let header = UnitHeader {
            is_parity,
            row,
            position,
            identity: self.identity(of.seq),
            programmed_at,
            body_crc: 0,
            out,
            batches: self.batches,
        };
        let open = &mut self.open[index];
        assert!(open.undecided > 0, "each unit of a row is programmed once");
        let contents = if is_parity {
            Contents::Parity { header, units: open.finished_units() }
        } else {
            let first = self.layout.ppn(Place { row, unit: position, slot: 0 });
            let unit = &mut open.units[position as usize];
            unit.finish(&self.layout, &header, open.origin, first);
            Contents::Data(Arc::clone(unit.finished().expect("finished just now")))
        };
        open.undecided -= 1;
        open.under_way += 1;
        let (die, offset) = (self.layout.die(row, position, out), self.layout.unit_from(row));
        self.programs.push(Program { of, die, offset, contents });
    }

    /// True if a program was decided that is not completed.
    pub(crate) fn is_programming(&self) -> bool {
        !self.programs.is_empty() || self.open.iter().any(|open| open.under_way > 0)
    }

    /// Takes note that a program was carried out, and on which die something was written: none if
    /// the die has failed.
    pub(crate) fn programmed(&mut self, of: RowId, written: Option<usize>) {
        if let Some(die) = written {
            self.dirty.add(die);
        }
        // A purge may have voided it meanwhile.
        let Some(index) = self.open.iter().position(|open| open.id() == of) else { return };
        let open = &mut self.open[index];
        assert!(open.under_way > 0, "what is completed was under way");
        open.under_way -= 1;
        if open.is_programmed() {
            self.complete(index);
        }
    }

    /// A row is whole on the media.
    fn complete(&mut self, index: usize) {
        let open = self.open.swap_remove(index);
        assert_eq!(self.rows.life(open.row).seq, 0, "a row is completed once in its life");
        assert!(open.units.iter().all(|unit| unit.journaled <= unit.count), "all was appended");
        self.completed.add(&open);
        if let Some(buffer) = self.buffer.as_mut().filter(|_| !open.origin.is_relocation) {
            buffer.complete_row(open.seq);
        }
        if !open.is_erased {
            self.rows.set(open.row, RowEpoch { seq: open.seq, out: open.out });
        }
        self.keep_memory(open);
    }

    /// True if anything was placed or trimmed that only memory and unsynced media hold.
    pub(crate) fn is_dirty(&self) -> bool {
        let unjournaled =
            |open: &OpenRow| open.units.iter().any(|unit| unit.journaled < unit.count);
        !self.completed.is_empty()
            || self.lost.is_unsaved()
            || !self.trims.is_empty()
            || self.open.iter().any(unjournaled)
    }
}

/// The media beside the translation layer while it decides: what it wants done waits, what it asks
/// is answered from memory, and from what was read of the victim.
#[derive(Debug)]
struct MediaAdapter<'a> {
    layout: &'a Layout,
    rows: &'a Rows,
    open: &'a [OpenRow],
    ops: &'a mut Vec<MediaOp>,
    unit: Option<&'a VictimUnit>,
}

impl Media for MediaAdapter<'_> {
    fn submit(&mut self, op: MediaOp) {
        self.ops.push(op);
    }

    fn contents(&mut self, first: Ppn, pages: &mut [Option<Lpn>]) {
        let place = self.layout.place(first);
        if let Some(open) = self.open.iter().find(|open| open.row == place.row) {
            let Some(unit) = open.units.get(place.unit as usize) else { return };
            for (slot, page) in (place.slot..unit.count).zip(pages) {
                *page = Some(unit.extent(slot).0.lpn);
            }
            return;
        }
        let life = self.rows.life(place.row);
        let of = Member { row: place.row, position: place.unit, life };
        let told = self.unit.into_iter().flat_map(|unit| unit.pages(of, place.slot));
        for (page, told) in pages.iter_mut().zip(told) {
            *page = told;
        }
    }
}

/// A page that neither its place nor its stripe gives back.
pub(crate) fn unreadable(lpn: Lpn) -> DeviceError {
    DeviceError::Unreadable {
        lba: u64::from(lpn.0) * 8,
        reason: format!("page {} fails its checksum, and parity cannot restore it", lpn.0),
    }
}
