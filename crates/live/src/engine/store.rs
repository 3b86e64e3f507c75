//! The dies as a store of extents: reading one, verified, and again from its stripe.

pub(crate) mod verification;
pub(crate) mod victim_unit;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IoSliceMut};
use std::iter;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use ftl::Ppn;
use status::{Damage, Die};

use crate::OpenError;
use crate::engine::core::bad_places::BadPlaces;
use crate::engine::core::write_buffer::{BufferContents, BufferState};
use crate::engine::dies::{DieRead, Dies};
use crate::format::compress::Packing;
use crate::format::header::Header;
use crate::format::layout::{
    ENTRY_BYTES, EXTENT_HEADER_BYTES, Layout, PAGE_BYTES, Place, REPLICAS, SLOT_BYTES,
    UNIT_HEADER_BYTES,
};
use crate::format::media_keys::{LockedCause, MediaKeys, UnlockingKey};
use crate::format::position::SECTOR_LENGTH;
use crate::format::row::{Member, StoredPlace};
use crate::format::unit::{self, Entry, Extent, Identity, exclusive_or};
use crate::lock::lock;
use crate::mutants::{self, Mutant};

/// Places that follow each other in one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlaceRun {
    pub(crate) first: StoredPlace,
    pub(crate) count: usize,
}

/// A piece of a die.
#[derive(Clone, Copy, Debug)]
struct Piece {
    die: usize,
    offset: u64,
    length: usize,
}

/// Offsets within a unit of extents that follow each other, and the end of the last one.
type Starts = Vec<usize>;

/// Extents as they lie one after the other in a unit.
#[derive(Debug)]
pub(crate) struct PackedExtents {
    bytes: Vec<u8>,
    /// Each of them that is what it should be, and where its payload begins.
    extents: Vec<Option<(Extent, usize)>>,
}

impl PackedExtents {
    /// One of them.
    fn get(&self, index: u32) -> Option<(Extent, &[u8])> {
        let (extent, from) = (*self.extents.get(index as usize)?)?;
        Some((extent, &self.bytes[from..from + usize::from(extent.length)]))
    }

    /// The extents and their payloads, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Option<(Extent, &[u8])>> {
        (0..).zip(&self.extents).map(|(index, _)| self.get(index))
    }
}

/// Bytes that are read at a time of what cannot be read in one go.
const PIECE_BYTES: usize = 4096;

/// A place for one copy of the journal and the checkpoints: a metadata region of a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replica {
    pub(crate) die: usize,
    pub(crate) region: u32,
}

/// Rows that are remembered until they are written again; what is beyond waits for a scrub.
const SUSPECTS_MAX: usize = 4096;

/// Rows in which reads found damage, until they are written again.
#[derive(Debug)]
pub(crate) struct Suspects {
    rows: Mutex<BTreeMap<u32, Suspect>>,
    /// Damage that was found and that the server has not taken.
    told: Mutex<Vec<Damage>>,
}

/// Places of a row that its units did not give out: the die of the first that is damaged, or else
/// could not be read, and all that are damaged.
#[derive(Debug)]
struct Suspect {
    die: usize,
    places: BTreeSet<u32>,
}

/// Reason why the unit of a place did not give out an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnitFault {
    /// Other bytes were read than had been written.
    Damaged,
    /// A read failed, which says nothing of what lies there.
    Unread,
}

impl Suspects {
    const fn new() -> Self {
        Self { rows: Mutex::new(BTreeMap::new()), told: Mutex::new(Vec::new()) }
    }

    /// Adds a place of a row that lies on a die; says whether it is damaged and was not known.
    fn add(&self, row: u32, die: usize, place: Ppn, fault: UnitFault) -> bool {
        let mut rows = lock(&self.rows);
        if rows.len() >= SUSPECTS_MAX && !rows.contains_key(&row) {
            return false;
        }
        let suspect = rows.entry(row).or_insert_with(|| Suspect { die, places: BTreeSet::new() });
        if suspect.places.is_empty() {
            suspect.die = die;
        }
        fault == UnitFault::Damaged && suspect.places.insert(place.0)
    }

    /// The rows, in order, `most` at most.
    pub(crate) fn rows(&self, most: usize) -> Vec<u32> {
        lock(&self.rows).keys().take(most).copied().collect()
    }

    /// Rows in which a die has damage.
    pub(crate) fn count_of(&self, die: usize) -> u64 {
        let is_of_it = |it: &&Suspect| it.die == die && !it.places.is_empty();
        lock(&self.rows).values().filter(is_of_it).count() as u64
    }

    /// Adds damage for the server, as much as there is room for.
    pub(crate) fn tell(&self, damage: &[Damage]) {
        let mut told = lock(&self.told);
        let room = SUSPECTS_MAX.saturating_sub(told.len());
        told.extend(damage.iter().take(room));
    }

    /// Takes the damage that was told.
    pub(crate) fn take_told(&self) -> Vec<Damage> {
        std::mem::take(&mut *lock(&self.told))
    }

    /// Forgets the rows in which a die had damage, in whose place another medium is put: the
    /// rebuild writes them.
    pub(crate) fn forget_die(&self, die: usize) {
        lock(&self.rows).retain(|_, it| it.die != die);
    }

    /// Forgets a row, which was written again or holds nothing any more.
    pub(crate) fn forget(&self, row: u32) {
        lock(&self.rows).remove(&row);
    }
}

/// Parts of a drive that are fixed while it is open.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) layout: Layout,
    pub(crate) dies: Dies,
    /// Drawn when the drive was created.
    pub(crate) drive: u64,
    /// Batches of the journal with a lower number are durable.
    batches: AtomicU64,
    /// Value of `batches` when it was last looked whether there is rest.
    batches_seen: AtomicU64,
    /// Damage that reads found and that has not been written again.
    pub(crate) suspects: Suspects,
    /// Places of dies that are not used again.
    pub(crate) bad_places: BadPlaces,
    /// Contents of the write buffer that an opening before this one left, if they count.
    pub(crate) buffered: Option<BufferContents>,
    /// The write buffer, once the drive is open.
    buffer: OnceLock<Arc<BufferState>>,
    /// Keys of an encrypted drive; a purge changes them.
    keys: Option<RwLock<Arc<MediaKeys>>>,
}

impl Store {
    pub(crate) const fn identity(&self, row_seq: u64) -> Identity {
        Identity { drive: self.drive, row_seq }
    }

    /// The dies of a drive.
    pub(crate) fn new(layout: Layout, dies: Dies, drive: u64) -> Self {
        let (batches, batches_seen) = (AtomicU64::new(0), AtomicU64::new(0));
        let (suspects, bad_places) = (Suspects::new(), BadPlaces::default());
        let (buffered, buffer, keys) = (None, OnceLock::new(), None);
        Self {
            layout,
            dies,
            drive,
            batches,
            batches_seen,
            suspects,
            bad_places,
            buffered,
            buffer,
            keys,
        }
    }

    /// The keys of an encrypted drive, as they are now.
    pub(crate) fn keys(&self) -> Option<Arc<MediaKeys>> {
        let keys = self.keys.as_ref()?.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&keys))
    }

    /// Has other keys from now on.
    pub(crate) fn change_keys(&self, keys: MediaKeys) {
        let own = self.keys.as_ref().expect("an encrypted drive stays one");
        *own.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
    }

    /// Unlocks the drive of a header, if it is encrypted.
    ///
    /// # Errors
    /// Fails without its key.
    pub(crate) fn unlock(
        &mut self,
        header: &Header,
        unlocking: Option<&UnlockingKey>,
    ) -> Result<(), OpenError> {
        self.keys = match (header.is_encrypted(), unlocking) {
            (false, None) => None,
            (false, Some(_)) => return Err(OpenError::Locked(LockedCause::NotEncrypted)),
            (true, None) if header.keys.source.is_none() => {
                return Err(OpenError::Locked(LockedCause::KeysErased));
            }
            (true, None) => return Err(OpenError::Locked(LockedCause::NoKey)),
            (true, Some(unlocking)) => {
                let keys = MediaKeys::unlock(&header.keys, unlocking, self.drive);
                Some(RwLock::new(Arc::new(keys.map_err(OpenError::Locked)?)))
            }
        };
        Ok(())
    }

    /// The way in which pages become payloads.
    pub(crate) fn packing(&self) -> Packing {
        Packing { compression: self.layout.shape.compression, keys: self.keys() }
    }

    /// The write buffer, if there is one.
    pub(crate) fn buffer(&self) -> Option<&Arc<BufferState>> {
        self.buffer.get()
    }

    /// Has a write buffer from now on.
    pub(crate) fn set_buffer(&self, buffer: Arc<BufferState>) {
        let is_first = self.buffer.set(buffer).is_ok();
        assert!(is_first, "a drive has one write buffer");
    }

    /// The number below which batches of the journal are durable.
    pub(crate) fn batches_durable(&self) -> u64 {
        self.batches.load(Ordering::Acquire)
    }

    /// Takes note that batches with a lower number are durable.
    pub(crate) fn note_batches(&self, number: u64) {
        self.batches.fetch_max(number, Ordering::AcqRel);
    }

    /// Notes outside of the dies which batches are durable, once there were no more since the last
    /// call: so a last one that rots is not taken for one that the power tore.
    pub(crate) fn witness_batches_at_rest(&self) {
        let durable = self.batches_durable();
        let seen = self.batches_seen.swap(durable, Ordering::AcqRel);
        if seen == durable
            && let Some(witness) = self.dies.witness()
        {
            witness.note_batches(durable);
        }
    }

    /// The dies as members of the drive of this header, and how they fare.
    pub(crate) fn members(&self, header: &Header) -> Vec<Die> {
        let mut dies = self.dies.members(header);
        for (index, die) in dies.iter_mut().enumerate() {
            die.rows_suspect = self.suspects.count_of(index);
        }
        dies
    }

    /// Returns the places for the copies of a batch that begins at a position of the journal.
    pub(crate) fn journal_replicas(&self, at: u64) -> Vec<Replica> {
        self.replicas(at / self.layout.journal_turn_bytes())
    }

    /// Fills `part` from an offset on; sectors that cannot be read are zeroes. Returns whether all
    /// were read.
    pub(crate) fn read_readable(&self, die: usize, from: u64, part: &mut [u8]) -> bool {
        if self.dies.read(die, from, part).is_ok() {
            return true;
        }
        let mut is_whole = true;
        for (piece, at) in part.chunks_mut(PIECE_BYTES).zip((from..).step_by(PIECE_BYTES)) {
            if self.dies.peek(die, at, piece).is_ok() {
                continue;
            }
            // Extents are smaller, and some of them may lie beside the sectors that cannot be read.
            for (sector, at) in piece.chunks_mut(SECTOR_LENGTH).zip((at..).step_by(SECTOR_LENGTH)) {
                if self.dies.peek(die, at, sector).is_err() {
                    sector.fill(0);
                    is_whole = false;
                }
            }
        }
        is_whole
    }

    /// Returns the places for the copies of a checkpoint.
    pub(crate) fn checkpoint_replicas(&self, number: u64) -> Vec<Replica> {
        self.replicas(number)
    }

    /// The places for copies whose turn it is: on the dies that hold all that they should, in turn,
    /// each die once before any holds both copies; and one more on each die that is joining them.
    fn replicas(&self, turn: u64) -> Vec<Replica> {
        assert_eq!(self.dies.count(), self.layout.shape.dies as usize, "a row has a unit a die");
        let incomplete = self.dies.incomplete();
        let whole: Vec<usize> = (0..self.dies.count()).filter(|it| !incomplete.has(*it)).collect();
        let first = usize::try_from(turn % (whole.len() as u64).max(1)).expect("an index");
        let in_turn = whole[first..].iter().chain(&whole[..first]);
        let joining = self.dies.joining();
        (0..self.layout.shape.regions())
            .flat_map(|region| in_turn.clone().map(move |die| Replica { die: *die, region }))
            .take(REPLICAS)
            .chain(joining.iter().map(|die| Replica { die, region: 0 }))
            .collect()
    }

    /// All places where copies may lie, on dies that have not failed.
    pub(crate) fn replicas_all(&self) -> impl Iterator<Item = Replica> + use<> {
        let regions = self.layout.shape.regions();
        self.dies
            .healthy()
            .flat_map(move |die| (0..regions).map(move |region| Replica { die, region }))
    }

    /// The first place of a unit.
    pub(crate) const fn first(&self, row: u32, position: u32) -> Ppn {
        self.layout.ppn(Place { row, unit: position, slot: 0 })
    }

    /// Reads pages that are stored whole: all of the runs, into `pages` one after the other. Says
    /// of each of them what it is, if it is what it should be.
    pub(crate) fn read_runs(
        &self,
        runs: &[PlaceRun],
        pages: &mut [&mut [u8; PAGE_BYTES]],
    ) -> Vec<Option<Extent>> {
        let asked: usize = runs.iter().map(|run| run.count).sum();
        assert_eq!(asked, pages.len(), "each page that is read has a buffer");
        let mut headers = vec![[0; EXTENT_HEADER_BYTES]; pages.len()];
        let mut buffers = Vec::with_capacity(2 * pages.len());
        for (header, page) in headers.iter_mut().zip(pages.iter_mut()) {
            buffers.push(IoSliceMut::new(header));
            buffers.push(IoSliceMut::new(&mut **page));
        }
        let mut rest = &mut buffers[..];
        let mut reads = Vec::with_capacity(runs.len());
        for PlaceRun { first, count } in runs {
            let place = self.layout.place(first.ppn);
            let from = self.layout.extent_from(place.slot).expect("stored whole");
            let (die, unit_from) = self.unit_of(*first);
            let offset = unit_from + from as u64;
            let (buffers, after) = std::mem::take(&mut rest).split_at_mut(2 * count);
            rest = after;
            reads.push(DieRead { die, offset, buffers });
        }
        let answers = self.dies.read_all(&mut reads);
        drop(buffers);
        let mut extents = Vec::with_capacity(pages.len());
        let mut found = headers.iter().zip(pages.iter());
        for (PlaceRun { first, count }, answer) in runs.iter().zip(answers) {
            let identity = self.identity(first.life.seq);
            for (ppn, (header, page)) in (first.ppn.0..).map(Ppn).zip(found.by_ref().take(*count)) {
                let extent = Extent::parse(header, identity, ppn).filter(|_| answer.is_ok());
                extents.push(extent.filter(|extent| extent.holds(&page[..])));
            }
        }
        assert_eq!(extents.len(), pages.len(), "each page that was read is answered");
        extents
    }

    /// The die that the unit of a place is on, and where that begins there.
    fn unit_of(&self, of: StoredPlace) -> (usize, u64) {
        let place = self.layout.place(of.ppn);
        let die = self.layout.die(place.row, place.unit, of.life.out);
        (die, self.layout.unit_from(place.row))
    }

    /// Part of the unit that a place is in.
    fn piece(&self, of: StoredPlace, part: Range<usize>) -> Piece {
        let (die, unit_from) = self.unit_of(of);
        assert!(part.end <= self.layout.unit_bytes, "a piece lies in its unit");
        Piece { die, offset: unit_from + part.start as u64, length: part.len() }
    }

    /// Reads the extents of runs, or as many of each as its unit has.
    pub(crate) fn read_packs(&self, runs: &[PlaceRun]) -> Vec<Option<PackedExtents>> {
        let starts = self.read_starts(runs);
        self.read_between(runs.iter().map(|run| run.first).zip(starts).collect())
    }

    /// Reads what lies between the first and the last start of each run.
    fn read_between(&self, runs: Vec<(StoredPlace, Option<Starts>)>) -> Vec<Option<PackedExtents>> {
        let piece = |(first, starts): &(StoredPlace, Option<Starts>)| {
            let (from, until) = (*starts.as_ref()?.first()?, *starts.as_ref()?.last()?);
            // The table's checksum was not verified, so what it says may be wrong.
            let is_within = from >= UNIT_HEADER_BYTES && until <= self.layout.unit_bytes;
            (is_within && from <= until).then(|| self.piece(*first, from..until))
        };
        let read = self.read_pieces(&runs.iter().map(piece).collect::<Vec<_>>());
        let pack = |((first, starts), bytes): ((StoredPlace, Option<Starts>), Option<Vec<u8>>)| {
            Some(self.pack(first, &starts?, bytes?))
        };
        runs.into_iter().zip(read).map(pack).collect()
    }

    fn pack(&self, first: StoredPlace, starts: &[usize], bytes: Vec<u8>) -> PackedExtents {
        let place = self.layout.place(first.ppn);
        assert!(!starts.is_empty(), "extents have an end");
        let identity = self.identity(first.life.seq);
        let found = |(slot, start): (u32, &usize)| {
            let ppn = self.layout.ppn(Place { slot, ..place });
            let at = start.checked_sub(starts[0])?;
            let (extent, _) = unit::extent_in(&bytes, at, identity, ppn)?;
            Some((extent, at + EXTENT_HEADER_BYTES))
        };
        let extents = (place.slot..).zip(&starts[..starts.len() - 1]).map(found).collect();
        PackedExtents { bytes, extents }
    }

    /// Reads pieces; none for a piece that is absent or cannot be read.
    fn read_pieces(&self, pieces: &[Option<Piece>]) -> Vec<Option<Vec<u8>>> {
        let room = |piece: &Option<Piece>| piece.map(|piece| vec![0; piece.length]);
        let mut bytes: Vec<Option<Vec<u8>>> = pieces.iter().map(room).collect();
        let buffer = |bytes| [IoSliceMut::new(bytes)];
        let mut buffers: Vec<_> = bytes.iter_mut().flatten().map(|it| buffer(it)).collect();
        let read = |(piece, buffers): (&Piece, _)| DieRead {
            die: piece.die,
            offset: piece.offset,
            buffers,
        };
        let buffers_of = buffers.iter_mut().map(|buffer| &mut buffer[..]);
        let mut reads: Vec<_> = pieces.iter().flatten().zip(buffers_of).map(read).collect();
        let mut answers = self.dies.read_all(&mut reads).into_iter();
        drop(buffers);
        for bytes in bytes.iter_mut().filter(|bytes| bytes.is_some()) {
            if answers.next().is_none_or(|answer| answer.is_err()) {
                *bytes = None;
            }
        }
        bytes
    }

    /// Returns, of each run, the offsets of its extents and the end of the last one, as its unit's
    /// table has them; none if that cannot be read.
    fn read_starts(&self, runs: &[PlaceRun]) -> Vec<Option<Starts>> {
        if self.layout.shape.extents_per_page == 1 {
            let starts = |run: &PlaceRun| {
                let from = self.layout.extent_from(self.layout.place(run.first.ppn).slot)?;
                Some((0..=run.count).map(|index| from + index * SLOT_BYTES).collect())
            };
            return runs.iter().map(starts).collect();
        }
        let entries = |run: &PlaceRun| {
            let from = Layout::entry_from(self.layout.place(run.first.ppn).slot);
            Some(self.piece(run.first, from..from + run.count * ENTRY_BYTES))
        };
        let tables = self.read_pieces(&runs.iter().map(entries).collect::<Vec<_>>());
        let parse = |table: Option<Vec<u8>>| {
            let table = table?;
            let entries = table.as_chunks::<ENTRY_BYTES>().0.iter();
            let entries = entries.map_while(|it| unit::entry(it));
            // What follows the last entry is zeroes.
            let entries: Vec<Entry> = entries.take_while(|entry| entry.from > 0).collect();
            starts(&entries)
        };
        tables.into_iter().map(parse).collect()
    }

    /// True if a die has room for a copy of its header at its end.
    pub(crate) fn has_end(&self, die: usize) -> bool {
        self.dies.has_bytes(die, self.layout.die_bytes_with_end())
    }

    /// The extent at a place, from wherever in its row it can be had: its unit, the other units of
    /// the stripe, or what is right of each of them.
    pub(crate) fn extents(&self, stored: StoredPlace) -> impl Iterator<Item = (Extent, Vec<u8>)> {
        let own = self.own_extent(stored).ok().flatten();
        own.into_iter().chain(self.extents_of_row(stored))
    }

    /// The extent at a place as its unit has it; none if that holds something else.
    ///
    /// # Errors
    /// Fails if it cannot be read.
    fn own_extent(&self, stored: StoredPlace) -> io::Result<Option<(Extent, Vec<u8>)>> {
        self.extent_by(stored, |from, buffer| self.read_member(self.member(stored), from, buffer))
    }

    /// The extent at a place, from the sum of the other units of its stripe, and from what is right
    /// of each of them.
    fn extents_of_row(&self, stored: StoredPlace) -> impl Iterator<Item = (Extent, Vec<u8>)> {
        let made = move |from: usize, buffer: &mut [u8]| {
            self.reconstruct(self.member(stored), from, buffer)
        };
        let is_protected = self.layout.shape.is_protected;
        let sum = move || is_protected.then(|| self.extent_by(stored, made).ok().flatten())?;
        iter::once_with(sum).chain(iter::once_with(move || self.rescue_extent(stored))).flatten()
    }

    /// Finds the extent at a place by its entry in the table of its unit. It names its place, and
    /// has a checksum.
    fn extent_by(
        &self,
        stored: StoredPlace,
        read: impl Fn(usize, &mut [u8]) -> io::Result<()>,
    ) -> io::Result<Option<(Extent, Vec<u8>)>> {
        let place = self.layout.place(stored.ppn);
        let from = if let Some(from) = self.layout.extent_from(place.slot) {
            from
        } else {
            let mut entry = [0; ENTRY_BYTES];
            read(Layout::entry_from(place.slot), &mut entry)?;
            // The table's checksum was not verified: the extent's own header says how long it is,
            // as it does where the row is verified.
            let Some(entry) = unit::entry(&entry) else { return Ok(None) };
            entry.from
        };
        let is_within = |end: usize| end <= self.layout.unit_bytes;
        let payload_from = from.checked_add(EXTENT_HEADER_BYTES).filter(|end| is_within(*end));
        let Some(payload_from) = payload_from.filter(|_| from >= UNIT_HEADER_BYTES) else {
            return Ok(None);
        };
        let mut header = [0; EXTENT_HEADER_BYTES];
        read(from, &mut header)?;
        let extent = Extent::parse(&header, self.identity(stored.life.seq), stored.ppn);
        let is_whole = |it: &Extent| is_within(payload_from + usize::from(it.length));
        let Some(extent) = extent.filter(is_whole) else { return Ok(None) };
        // Not a byte more: what lies behind it need not be readable.
        let mut payload = vec![0; usize::from(extent.length)];
        read(payload_from, &mut payload)?;
        Ok(extent.holds(&payload).then_some((extent, payload)))
    }

    /// As [`Store::extents`], the first that is wanted; where it had to be reconstructed since the
    /// unit of the place did not give it out, on a die that should hold it, why.
    pub(crate) fn wanted_extent(
        &self,
        stored: StoredPlace,
        is_wanted: impl Fn(&Extent) -> bool,
    ) -> Option<(Option<UnitFault>, Extent, Vec<u8>)> {
        let is_wanted = |(extent, _): &(Extent, Vec<u8>)| is_wanted(extent);
        // A die may be given up, and its successor filled, while this is read.
        let asked = self.dies.complete(self.unit_of(stored).0);
        let fault = match self.own_extent(stored) {
            Ok(Some(found)) if is_wanted(&found) => return Some((None, found.0, found.1)),
            Ok(_) => UnitFault::Damaged,
            Err(_) => UnitFault::Unread,
        };
        let (extent, payload) = self.extents_of_row(stored).find(is_wanted)?;
        Some((asked.is_in_place(&self.dies).then_some(fault), extent, payload))
    }

    /// Notes that an extent had to be reconstructed: that counts against the die of its place, as
    /// damage where there is some, and the row is to be written again soon.
    pub(crate) fn note_reconstructed(&self, stored: StoredPlace, fault: UnitFault) {
        let die = self.unit_of(stored).0;
        if !mutants::is(Mutant::ReconstructionsUncounted) {
            let row = self.layout.place(stored.ppn).row;
            let is_new = self.suspects.add(row, die, stored.ppn, fault);
            self.dies.count_reconstructed(die, is_new.then_some(stored.ppn));
        }
    }

    /// Returns the extent at a place of a row on the media, from wherever in the row it can be had;
    /// none if it is lost.
    pub(crate) fn find_extent(&self, stored: StoredPlace) -> Option<(Extent, Vec<u8>)> {
        self.extents(stored).next()
    }

    /// The unit that a place is in.
    fn member(&self, stored: StoredPlace) -> Member {
        let place = self.layout.place(stored.ppn);
        Member { row: place.row, position: place.unit, life: stored.life }
    }

    /// Reads part of a unit as it lies on its die, unverified.
    pub(crate) fn read_member(&self, of: Member, from: usize, buffer: &mut [u8]) -> io::Result<()> {
        assert!(from + buffer.len() <= self.layout.unit_bytes, "a part lies in its unit");
        let die = self.layout.die(of.row, of.position, of.life.out);
        self.dies.read(die, self.layout.unit_from(of.row) + from as u64, buffer)
    }

    /// Part of a unit, not of its unit header, from all other units of the row.
    ///
    /// # Errors
    /// Fails if one of them cannot be read. What comes out is only as good as what they hold.
    pub(crate) fn reconstruct(&self, of: Member, from: usize, sum: &mut [u8]) -> io::Result<()> {
        let Member { row, position, life } = of;
        assert!(self.layout.shape.is_protected, "rows with parity are made again");
        assert!(from >= UNIT_HEADER_BYTES, "parity does not cover the headers of units");
        assert!(from + sum.len() <= self.layout.unit_bytes, "a part lies in its unit");
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

/// Returns the offsets of extents that follow each other, and the end of the last one; none if
/// there is none.
fn starts(entries: &[Entry]) -> Option<Starts> {
    let last = entries.last()?;
    let until = last.from.checked_add(last.extent.stored_bytes())?;
    Some(entries.iter().map(|entry| entry.from).chain([until]).collect())
}
