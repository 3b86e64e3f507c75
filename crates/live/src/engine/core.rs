//! State that changes while a drive is open: the translation layer, the rows that are being filled,
//! and the count of events.
//!
//! A row is filled unit by unit in memory. Full units are programmed at once, but the row stays in
//! memory until it is complete, parity included; only then may anything rely on what the media
//! holds of it. What must be durable earlier goes to the journal too ([`crate::engine::journal`]).
//!
//! Invariants:
//! - `seq` counts every event that changes what a page is or where it is: of all that survives a
//!   crash, the event with the highest `seq` is what holds.
//! - `rows` has the life of each row that is complete, and of no other.
//! - Rows that are begun leave out the dies of `out`, and the translation layer as many units.

use blockio::Bytes;
use ftl::{Cause, Ftl, Lpn, MediaOp, Ppn};

use crate::DeviceError;
use crate::engine::completed_rows::Completed;
use crate::engine::dies::medium_error;
use crate::engine::lost::LostPages;
use crate::engine::open_row::OpenRow;
use crate::engine::store::{Member, Packed, Store, Stored};
use crate::engine::unit_tables::{MediaAdapter, Table};
use crate::format::compress;
use crate::format::die_set::DieSet;
use crate::format::journal::Trim;
use crate::format::layout::{Layout, PAGE_BYTES, Place, UNIT_HEADER_BYTES};
use crate::format::row::{RowEpoch, Rows};
use crate::format::unit::{Codec, Extent, Origin, Page, UnitBuffer, UnitHeader, exclusive_or};

/// Trims that are kept in memory before they are journaled.
pub(crate) const TRIMS_MAX: usize = 4096;

/// Location of a logical page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Located {
    /// Nowhere: it reads as zeroes.
    Nowhere,
    /// In a row that is being filled.
    Open(Ppn),
    /// On the media.
    Stored(Stored),
}

/// The changing part of a drive.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) ftl: Ftl,
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
    pub(crate) completed: Completed,
    /// Dies written since they were last made durable.
    pub(crate) dirty: DieSet,
    /// True if full units wait in memory, because a crash may yet undo what is in them.
    pub(crate) holds_programs: bool,
    held: Vec<MediaOp>,
    ops: Vec<MediaOp>,
    /// Buffers of units to be used again.
    spare: Vec<Vec<u8>>,
    /// Pages known to be lost.
    pub(crate) lost: LostPages,
    /// Extents, and the table of a unit, that relocation read last.
    ahead: Option<Ahead>,
    table: Option<Table>,
    /// Bytes of flash given up by trims and by shorter pages since the last commit: a crash may
    /// bring back what took them.
    pub(crate) freed: u64,
}

/// Extents that relocation reads in one go: a medium that is slow to find one of them is not much
/// slower to read all.
#[derive(Debug)]
struct Ahead {
    /// Place of the first of them.
    first: Place,
    life: RowEpoch,
    extents: Packed,
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
    pub(crate) fn new(ftl: Ftl, rows: Rows, seq: u64) -> Self {
        Self {
            ftl,
            rows,
            out: DieSet::default(),
            choices: 0,
            open: Vec::new(),
            seq,
            trims: Vec::new(),
            completed: Completed::default(),
            dirty: DieSet::default(),
            holds_programs: false,
            held: Vec::new(),
            ops: Vec::new(),
            spare: Vec::new(),
            lost: LostPages::default(),
            ahead: None,
            table: None,
            freed: 0,
        }
    }

    /// The next event.
    pub(crate) const fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        self.seq - 1
    }

    /// The place of a page; none beyond the end of a drive that became smaller meanwhile.
    pub(crate) fn place_of(&self, lpn: Lpn) -> Option<Ppn> {
        (lpn.0 < self.ftl.pages_logical()).then(|| self.ftl.lookup(lpn))?
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

    /// Returns the location of a page.
    pub(crate) fn locate(&self, layout: &Layout, lpn: Lpn) -> Located {
        match self.place_of(lpn) {
            None => Located::Nowhere,
            Some(ppn) => {
                let row = layout.place(ppn).row;
                if self.open.iter().any(|open| open.row == row) {
                    return Located::Open(ppn);
                }
                Located::Stored(Stored { ppn, life: self.rows.life(row) })
            }
        }
    }

    /// Returns the extent, and its payload, at a place of a row that is being filled.
    pub(crate) fn open_extent(&self, layout: &Layout, ppn: Ppn) -> (Extent, &[u8]) {
        let place = layout.place(ppn);
        let open = self.open.iter().find(|open| open.row == place.row).expect("located there");
        assert!(place.unit < layout.data_units(open.out), "extents lie in data units");
        open.units[place.unit as usize].extent(place.slot)
    }

    /// Voids the contents of all rows.
    pub(crate) fn forget_rows(&mut self) {
        self.rows = Rows::new(self.rows.count());
        (self.ahead, self.table) = (None, None);
        self.completed.clear();
        for open in std::mem::take(&mut self.open) {
            self.spare.extend(open.units.into_iter().map(|unit| unit.bytes));
        }
    }

    /// Gives pages their places; says how many got one, and what the next one waits for.
    pub(crate) fn place_pages(
        &mut self,
        store: &Store,
        pages: &[Page<'_>],
    ) -> Result<(usize, Option<Wait>), DeviceError> {
        for (index, page) in pages.iter().enumerate() {
            if let Some(wait) = self.wait(std::slice::from_ref(page)) {
                return Ok((index, Some(wait)));
            }
            self.place(store, page)?;
        }
        Ok((pages.len(), None))
    }

    /// Returns the reason why pages that belong together cannot be placed yet; none if they can.
    ///
    /// Whatever a crash may bring back counts as stored, so that it can never be more than fits.
    pub(crate) fn wait(&self, pages: &[Page<'_>]) -> Option<Wait> {
        if self.ftl.needs_room() {
            return Some(Wait::NeedsGc);
        }
        if pages.iter().any(|page| page.lpn.0 >= self.ftl.pages_logical()) {
            // The drive has become smaller meanwhile.
            return Some(Wait::NoCapacity);
        }
        let charged = |page: &Page<'_>| Bytes(Layout::charged(page.extent_bytes()));
        let extents = pages.iter().map(|page| (page.lpn, charged(page)));
        let fits = self.ftl.has_space_for_extents(extents, Bytes(self.freed));
        (!fits).then_some(Wait::NoCapacity)
    }

    /// Has the translation layer do something; what follows for the media waits in `ops`.
    fn decide<T>(
        &mut self,
        store: &Store,
        act: impl FnOnce(&mut Ftl, &mut MediaAdapter<'_>) -> T,
    ) -> T {
        let Self { ftl, rows, open, ops, table, .. } = self;
        act(ftl, &mut MediaAdapter { store, rows, open, ops, table })
    }

    /// Changes the map; what is given up is not free before it is durable.
    pub(crate) fn giving_up<T>(&mut self, change: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.ftl.stored().0;
        let done = change(self);
        self.freed += before.saturating_sub(self.ftl.stored().0);
        done
    }

    /// Gives a page its place, whatever room there is.
    pub(crate) fn place(&mut self, store: &Store, page: &Page<'_>) -> Result<(), DeviceError> {
        let extent = Extent {
            lpn: page.lpn,
            codec: page.codec,
            length: u16::try_from(page.payload.len()).expect("at most a page"),
            seq: self.next_seq(),
            payload_crc: page.payload_crc,
        };
        self.ftl.expect_extents_of(Bytes(Layout::charged(page.extent_bytes())));
        self.lost.clear(page.lpn, 1);
        // Pages that belong together leave no time for relocation.
        let is_paced = !self.holds_programs;
        let ppn = self.giving_up(|core| {
            core.decide(store, |ftl, media| {
                if is_paced {
                    ftl.write_at_once(page.lpn, media)
                } else {
                    ftl.write_unpaced(page.lpn, media)
                }
            })
        });
        // Relocation may have moved it on already.
        assert!(self.ftl.lookup(page.lpn).is_some(), "the map has what was placed");
        self.append(store, ppn, (extent, page.payload), false);
        self.execute(store)
    }

    /// Relocates about a unit's worth; says whether there was anything to relocate.
    pub(crate) fn relocate_unit(&mut self, store: &Store) -> Result<bool, DeviceError> {
        self.decide(store, |ftl, media| ftl.relocate_unit(media));
        let any = !self.ops.is_empty();
        self.execute(store)?;
        Ok(any)
    }

    /// Moves a page to the relocation stream.
    pub(crate) fn relocate_page(&mut self, store: &Store, lpn: Lpn) -> Result<(), DeviceError> {
        self.decide(store, |ftl, media| ftl.relocate(lpn, media));
        self.execute(store)
    }

    /// Fills up the rows that are begun with nothing.
    pub(crate) fn finish_rows(&mut self, store: &Store) -> Result<(), DeviceError> {
        self.decide(store, |ftl, media| ftl.finish_rows(media));
        self.execute(store)
    }

    /// Carries out what was held back.
    pub(crate) fn release_programs(&mut self, store: &Store) -> Result<(), DeviceError> {
        assert!(self.ops.is_empty(), "what was decided was carried out or held back");
        self.holds_programs = false;
        self.ops = std::mem::take(&mut self.held);
        self.execute(store)
    }

    fn execute(&mut self, store: &Store) -> Result<(), DeviceError> {
        let mut ops = std::mem::take(&mut self.ops);
        for op in ops.drain(..) {
            match op {
                MediaOp::Relocate { from, to, lpn, .. } => self.relocate(store, lpn, (from, to)),
                MediaOp::Program { .. } | MediaOp::Erase { .. } if self.holds_programs => {
                    self.held.push(op);
                }
                MediaOp::Program { superblock, die, row, cause } => {
                    assert!(row < store.layout.shape.rows, "a superblock has so many rows");
                    let row = superblock.0 * store.layout.shape.rows + row;
                    self.program(store, row, (die.0, cause == Cause::Parity))?;
                }
                MediaOp::Erase { superblock, .. } => {
                    let rows = store.layout.shape.rows;
                    let first = superblock.0 * rows;
                    let is_open = |open: &OpenRow| open.row / rows == superblock.0;
                    assert!(!self.open.iter().any(is_open), "no row is filled that is erased");
                    self.rows.forget(first..first + rows);
                }
            }
        }
        self.ops = ops;
        Ok(())
    }

    /// Copies an extent to a new place. What cannot be read is remembered as lost, so that reading
    /// it goes on to fail.
    fn relocate(&mut self, store: &Store, lpn: Lpn, (from, to): (Ppn, Ppn)) {
        assert_ne!(from, to, "a page is moved to another place");
        let seq = self.next_seq();
        let found = self.fetch_ahead(store, from).or_else(|| self.fetch(store, from));
        let (extent, payload) = found.unwrap_or_else(|| {
            let none = Extent { lpn, codec: Codec::Lost, length: 0, seq, payload_crc: 0 };
            (none, Vec::new())
        });
        if extent.codec == Codec::Lost {
            self.lost.find(lpn, seq);
        }
        self.append(store, to, (Extent { seq, ..extent }, &payload), true);
    }

    /// Reads the extent at a place on the media, together with its neighbours; none if it cannot be
    /// read.
    fn fetch_ahead(&mut self, store: &Store, ppn: Ppn) -> Option<(Extent, Vec<u8>)> {
        let place = store.layout.place(ppn);
        let count = store.layout.shape.unit_pages;
        let first = Place { slot: place.slot / count * count, ..place };
        let life = self.rows.life(place.row);
        // Rows that are being filled hold nothing yet.
        (life.seq != 0).then_some(())?;
        let is_it = |ahead: &Ahead| (ahead.first, ahead.life) == (first, life);
        if !self.ahead.as_ref().is_some_and(is_it) {
            let stored = Stored { ppn: store.layout.ppn(first), life };
            let of = Member { row: place.row, position: place.unit, life };
            let table = self.table.as_ref().filter(|table| table.of == of);
            let entries = table.map(|table| &table.entries[..]);
            let extents = store.read_extents(stored, count, entries)?;
            self.ahead = Some(Ahead { first, life, extents });
        }
        let (extent, payload) = self.ahead.as_ref()?.extents.get(place.slot - first.slot)?;
        Some((extent, payload.to_vec()))
    }

    /// Returns the extent at a place, in memory or on the media; none if it is lost.
    pub(crate) fn fetch(&self, store: &Store, ppn: Ppn) -> Option<(Extent, Vec<u8>)> {
        let row = store.layout.place(ppn).row;
        if self.open.iter().any(|open| open.row == row) {
            let (extent, payload) = self.open_extent(&store.layout, ppn);
            return Some((extent, payload.to_vec()));
        }
        let stored = Stored { ppn, life: self.rows.life(row) };
        store
            .read_extent(stored)
            .or_else(|| store.reconstruct_extent(stored))
            .or_else(|| store.rescue_extent(stored))
    }

    /// The contents of a page, for changing part of it.
    pub(crate) fn read_page(
        &self,
        store: &Store,
        lpn: Lpn,
        page: &mut [u8; PAGE_BYTES],
    ) -> Result<(), DeviceError> {
        let Some(ppn) = self.place_of(lpn) else {
            page.fill(0);
            return Ok(());
        };
        let found = self.fetch(store, ppn).filter(|(extent, _)| extent.lpn == lpn);
        found
            .and_then(|(extent, payload)| compress::expand(extent.codec, &payload, page))
            .ok_or_else(|| unreadable(lpn))
    }

    fn append(
        &mut self,
        store: &Store,
        ppn: Ppn,
        (extent, payload): (Extent, &[u8]),
        is_relocation: bool,
    ) {
        let place = store.layout.place(ppn);
        let index = self.open.iter().position(|open| open.row == place.row);
        let index = index.unwrap_or_else(|| self.begin_row(store, place.row, is_relocation));
        if self.open[index].units.len() == place.unit as usize {
            let bytes = self.spare.pop().unwrap_or_default();
            self.open[index].units.push(UnitBuffer::new(&store.layout, bytes));
        }
        let open = &mut self.open[index];
        assert_eq!(open.origin.is_relocation, is_relocation, "a row is of one stream");
        assert!(place.unit < store.layout.data_units(open.out), "extents lie in data units");
        assert_eq!(open.units.len(), place.unit as usize + 1, "units are filled one by one");
        let unit = &mut open.units[place.unit as usize];
        assert_eq!(unit.count, place.slot, "extents follow each other");
        unit.append(&extent, payload, store.identity(open.seq), ppn);
    }

    fn begin_row(&mut self, store: &Store, row: u32, is_relocation: bool) -> usize {
        assert_eq!(self.rows.life(row).seq, 0, "a row is begun after it was erased");
        let superblock = ftl::SuperblockId(row / store.layout.shape.rows);
        let erase_count = self.ftl.erase_count(superblock);
        let parity = if store.layout.shape.is_protected {
            let mut bytes = self.spare.pop().unwrap_or_default();
            bytes.clear();
            bytes.resize(store.layout.unit_bytes, 0);
            bytes
        } else {
            Vec::new()
        };
        let origin = Origin { is_relocation, erase_count };
        let seq = self.next_seq();
        let out = self.out;
        self.open.push(OpenRow { row, seq, origin, out, units: Vec::new(), parity });
        self.open.len() - 1
    }

    /// Programs the unit of a row that lies on `die` where nothing is left out.
    fn program(
        &mut self,
        store: &Store,
        row: u32,
        (die, is_parity): (u32, bool),
    ) -> Result<(), DeviceError> {
        let programmed_at = self.next_seq();
        let index = self.open.iter().position(|open| open.row == row).expect("it holds extents");
        let open = &mut self.open[index];
        assert!(open.seq < programmed_at, "a unit is programmed after its row was begun");
        let whole = DieSet::default();
        let position = store.layout.position(row, die as usize, whole).expect("it has every die");
        if !is_parity && position >= store.layout.data_units(open.out) {
            return Ok(());
        }
        assert_eq!(is_parity, store.layout.is_parity(position), "parity lies in its position");
        let identity = store.identity(open.seq);
        let out = open.out;
        let batches = store.batches_durable();
        let mut unit_header = UnitHeader {
            is_parity,
            row,
            position,
            identity,
            programmed_at,
            body_crc: 0,
            out,
            batches,
        };
        let bytes = if is_parity {
            unit_header.body_crc = crc32c::crc32c(&open.parity[UNIT_HEADER_BYTES..]);
            unit_header.write(&mut open.parity);
            &open.parity
        } else {
            if open.units.len() == position as usize {
                let bytes = self.spare.pop().unwrap_or_default();
                open.units.push(UnitBuffer::new(&store.layout, bytes));
            }
            let unit = &mut open.units[position as usize];
            unit.finish(&unit_header, open.origin, store.first(row, position));
            if store.layout.shape.is_protected {
                exclusive_or(
                    &mut open.parity[UNIT_HEADER_BYTES..],
                    &unit.bytes[UNIT_HEADER_BYTES..],
                );
            }
            &unit.bytes
        };
        let (die, offset) = (store.layout.die(row, position, out), store.layout.unit_from(row));
        assert_eq!(bytes.len(), store.layout.unit_bytes, "a whole unit is programmed");
        if !store.dies.lost().has(die) {
            match store.dies.write(die, offset, bytes) {
                Ok(()) => self.dirty.add(die),
                Err(error) if store.dies.lose_for(die, &error) => {}
                Err(error) => {
                    return Err(medium_error(format!("programming row {row} on die {die}"))(error));
                }
            }
        }
        if position + 1 == store.layout.shape.dies {
            self.complete(index);
        }
        Ok(())
    }

    /// A row is whole on the media.
    fn complete(&mut self, index: usize) {
        let open = self.open.swap_remove(index);
        assert_eq!(self.rows.life(open.row).seq, 0, "a row is completed once in its life");
        assert!(open.units.iter().all(|unit| unit.journaled <= unit.count), "all was appended");
        self.completed.add(&open);
        self.rows.set(open.row, RowEpoch { seq: open.seq, out: open.out });
        self.spare.extend(open.units.into_iter().map(|unit| unit.bytes));
        if !open.parity.is_empty() {
            self.spare.push(open.parity);
        }
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

/// A page that neither its place nor its stripe gives back.
pub(crate) fn unreadable(lpn: Lpn) -> DeviceError {
    DeviceError::Unreadable {
        lba: u64::from(lpn.0) * 8,
        reason: format!("page {} fails its checksum, and its stripe cannot restore it", lpn.0),
    }
}
