//! Media in memory that keep, lose or tear what was not synced when the power goes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use blockio::Rng;

use super::content::Content;
use crate::lock::lock;
use crate::{
    BufferMemory, Drive, MachineFile, Medium, MediumRead, MediumWrite, OpenError, UnlockingKey,
};

const SECTOR_BYTES: usize = 512;

type Sector = [u8; SECTOR_BYTES];

/// Fault of a disk, besides loss of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// No fault.
    None,
    /// Some writes go elsewhere on the disk.
    Misdirected,
    /// Some writes are acknowledged and not done.
    Lost,
    /// Some reads find bits flipped that stay so.
    Rot,
    /// The next sync fails, and what was written before it never becomes durable, though reads
    /// return it while the power lasts: as Linux does.
    SyncFails,
    /// Every write and every sync fails; reads go on.
    WritesFail,
    /// Every command fails.
    Dead,
}

/// Sectors as one write left them.
#[derive(Clone, Debug)]
struct WrittenSectors {
    first: usize,
    sectors: Vec<Sector>,
}

/// One disk.
#[derive(Clone, Debug)]
struct DiskImage {
    /// Contents that reads return.
    now: Content,
    /// Contents that survive a power cut for certain.
    durable: Content,
    /// Sectors written since the last sync, whole ones, earliest first.
    pending: Vec<WrittenSectors>,
    /// Sectors that cannot be read until they are written.
    unreadable: BTreeSet<usize>,
    fault: DiskFault,
}

/// Location of the tables of units, the same on every disk; the default matches no read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TableLocation {
    /// Offset of the first unit.
    pub(super) first: u64,
    /// Bytes of a unit, of its unit header, and of unit header and table.
    pub(super) unit_bytes: u64,
    pub(super) unit_header_bytes: u64,
    pub(super) length: u64,
}

impl TableLocation {
    /// True if a read ends within a table, beyond the unit header of the unit: it is for the table.
    fn are_wanted(&self, offset: u64, bytes: usize) -> bool {
        let end = (offset + bytes as u64).checked_sub(self.first);
        let in_unit = end.and_then(|end| end.checked_rem(self.unit_bytes));
        in_unit.is_some_and(|end| end > self.unit_header_bytes && end <= self.length)
    }
}

/// Disks on one supply of power.
#[derive(Debug)]
struct Rack {
    images: Vec<DiskImage>,
    /// Tables that no disk gives out.
    hidden: TableLocation,
    /// Disks that do not respond to reads for now, a bit for each, and the number of reads that
    /// fail before they all respond again.
    silent: u64,
    silent_reads: u64,
    /// True if disks cannot become longer, as devices.
    is_fixed: bool,
    /// Room that the host beneath the disks has left.
    room: Option<HostRoom>,
    /// Commands until the power goes.
    commands_left: Option<u64>,
    is_cut: bool,
    commands: u64,
    rng: Rng,
    /// Ranges of disks where nothing but zeroes is to be written, and what was all the same.
    spared: Vec<(usize, Range<u64>)>,
    broken: Option<String>,
    buffer: BufferImage,
    /// The write that was under way when everything stopped: disk, offset, and what was there.
    under_way: Option<(usize, usize, Vec<u8>)>,
    /// Key of the drive, if it is encrypted.
    key: Option<UnlockingKey>,
}

/// The page cache's copy of a write buffer.
#[derive(Clone, Debug, Default)]
struct BufferImage {
    bytes: Vec<u8>,
    /// Times that the machine was started, and that the buffer was made.
    starts: u128,
    made: u64,
}

/// Memory of the machine, which the death of a server leaves as it is.
#[derive(Debug)]
struct Buffer {
    rack: Arc<Mutex<Rack>>,
}

/// Room of the host's file system for a range of each disk, where nothing was allocated when the
/// disks were made.
#[derive(Clone, Debug)]
struct HostRoom {
    range: Range<u64>,
    /// Writes there that still find room, and true once one found none.
    writes_left: u64,
    is_full: bool,
}

/// Disks that lose their power together.
#[derive(Clone, Debug)]
pub struct Disks {
    rack: Arc<Mutex<Rack>>,
}

/// One of them.
#[derive(Debug)]
struct Disk {
    rack: Arc<Mutex<Rack>>,
    index: usize,
}

impl Disks {
    /// `count` disks of `bytes` zeroes each.
    pub fn new(count: usize, bytes: usize, rng: Rng) -> Self {
        let bytes = bytes.next_multiple_of(SECTOR_BYTES);
        let image = DiskImage {
            now: Content::zeroes(bytes),
            durable: Content::zeroes(bytes),
            pending: Vec::new(),
            unreadable: BTreeSet::new(),
            fault: DiskFault::None,
        };
        Self::of(vec![image; count], rng)
    }

    /// Notes the key that the drive on these disks is locked with; none: it is not encrypted.
    pub(crate) fn lock_with(&self, key: Option<UnlockingKey>) {
        self.rack().key = key;
    }

    /// Opens the drive that the disks hold.
    pub(crate) fn open(&self, buffer: Option<Arc<dyn BufferMemory>>) -> Result<Drive, OpenError> {
        let key = self.rack().key.clone();
        Drive::open_unlocked(self.media(), buffer, key.as_ref())
    }

    /// The dies of a new drive.
    #[cfg(test)]
    pub(crate) fn formatted(shape: &crate::Shape) -> Self {
        let disks = Self::new(shape.dies as usize, index(shape.die_bytes().0), Rng::new(0));
        crate::format(disks.media(), shape, 1).expect("the disks are large enough");
        disks
    }

    /// Disks with these contents.
    pub(super) fn holding(contents: Vec<Vec<u8>>, rng: Rng) -> Self {
        let image = |bytes: Vec<u8>| {
            let now = Content::of(&bytes);
            let (pending, unreadable, fault) = (Vec::new(), BTreeSet::new(), DiskFault::None);
            DiskImage { durable: now.clone(), now, pending, unreadable, fault }
        };
        Self::of(contents.into_iter().map(image).collect(), rng)
    }

    fn of(images: Vec<DiskImage>, rng: Rng) -> Self {
        let hidden = TableLocation::default();
        let rack = Rack {
            images,
            hidden,
            silent: 0,
            silent_reads: 0,
            is_fixed: false,
            room: None,
            commands_left: None,
            is_cut: false,
            commands: 0,
            rng,
            spared: Vec::new(),
            broken: None,
            buffer: BufferImage { starts: 1, ..BufferImage::default() },
            under_way: None,
            key: None,
        };
        Self { rack: Arc::new(Mutex::new(rack)) }
    }

    /// Memory for the write buffer of a drive over the disks. Each store into it counts as a
    /// command, as the power or the server may go there too.
    pub fn buffer(&self) -> Arc<dyn BufferMemory> {
        Arc::new(Buffer { rack: Arc::clone(&self.rack) })
    }

    /// Returns the contents that reads return, disk by disk.
    pub(crate) fn contents(&self) -> Vec<Vec<u8>> {
        let rack = self.rack();
        let contents = rack.images.iter().map(|image| image.now.range(0..image.now.len()));
        contents.map(Cow::into_owned).collect()
    }

    /// Calls `see` with what reads of a disk return.
    pub(super) fn with_content<T>(&self, disk: usize, see: impl FnOnce(&Content) -> T) -> T {
        see(&self.rack().images[disk].now)
    }

    /// The disks as media of a drive.
    pub fn media(&self) -> Vec<Box<dyn Medium>> {
        let count = self.rack().images.len();
        let disk = |index| Disk { rack: Arc::clone(&self.rack), index };
        (0..count).map(|index| Box::new(disk(index)) as Box<dyn Medium>).collect()
    }

    /// Cuts the power after so many more commands to any of the disks.
    pub fn cut_after(&self, commands: u64) {
        self.rack().commands_left = Some(commands);
    }

    /// True if the power is cut.
    pub fn is_cut(&self) -> bool {
        self.rack().is_cut
    }

    /// Commands so far.
    pub fn commands(&self) -> u64 {
        self.rack().commands
    }

    /// Sets the fault of a disk from now on.
    pub fn set_fault(&self, disk: usize, fault: DiskFault) {
        self.rack().images[disk].fault = fault;
    }

    /// From now on nothing is to be written to these ranges of disks, but zeroes.
    pub(super) fn spare(&self, ranges: Vec<(usize, Range<u64>)>) {
        self.rack().spared = ranges;
    }

    /// Ends what was to be spared of a disk.
    pub(super) fn forgive(&self, disk: usize) {
        self.rack().spared.retain(|(it, _)| *it != disk);
    }

    /// Description of a write to a range that was to be spared, if there was one.
    pub(super) fn take_broken(&self) -> Option<String> {
        self.rack().broken.take()
    }

    /// From now on these tables, and no others, cannot be read from any disk.
    pub(super) fn hide(&self, tables: TableLocation) {
        self.rack().hidden = tables;
    }

    /// From now on every read of these disks fails, a bit for each disk; of the others none does.
    pub fn fail_reads(&self, disks: u64) {
        self.fail_some_reads(disks, u64::MAX);
    }

    /// As [`Disks::fail_reads`], until so many reads have failed.
    pub fn fail_some_reads(&self, disks: u64, reads: u64) {
        let mut rack = self.rack();
        (rack.silent, rack.silent_reads) = (disks, reads);
    }

    /// From now on no disk becomes longer.
    pub(crate) fn fix_length(&self) {
        self.rack().is_fixed = true;
    }

    /// From now on the host has room for so many more writes within a range of the disks.
    pub(crate) fn fill_host(&self, range: Range<u64>, writes_left: u64) {
        self.rack().room = Some(HostRoom { range, writes_left, is_full: false });
    }

    /// The host has room for everything again; says whether a write found none.
    pub(crate) fn free_host(&self) -> bool {
        self.rack().room.take().is_some_and(|room| room.is_full)
    }

    /// True if a write found no room on the host.
    pub(super) fn is_host_full(&self) -> bool {
        self.rack().room.as_ref().is_some_and(|room| room.is_full)
    }

    /// Bytes of each disk.
    pub fn disk_bytes(&self) -> usize {
        self.rack().images.first().map_or(0, |image| image.now.len())
    }

    /// Changes what a disk holds, durably: each byte of a range becomes what `change` says.
    pub fn damage(&self, disk: usize, range: Range<usize>, mut change: impl FnMut(u8) -> u8) {
        let image = &mut self.rack().images[disk];
        assert!(image.pending.is_empty(), "damage comes while the power is off");
        let end = range.end.min(image.now.len());
        let from = range.start.min(end);
        let mut bytes = image.now.range(from..end).into_owned();
        for byte in &mut bytes {
            *byte = change(*byte);
        }
        image.leave(from, &bytes);
    }

    /// Flips a bit of what a disk holds while the power is on.
    pub(super) fn flip(&self, disk: usize, byte: usize, bit: u8) {
        self.rack().images[disk].flip(byte, bit);
    }

    /// From now on the sectors of a range cannot be read, until they are written.
    pub fn make_unreadable(&self, disk: usize, range: Range<usize>) {
        let image = &mut self.rack().images[disk];
        let end = range.end.min(image.now.len());
        image.unreadable.extend(range.start / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES));
    }

    /// Puts an earlier image of a disk in its place.
    pub fn roll_back(&self, disk: usize, earlier: &Self) {
        let from = earlier.rack().images[disk].now.clone();
        let image = &mut self.rack().images[disk];
        (image.durable, image.now) = (from.clone(), from);
        image.unreadable.clear();
    }

    /// An empty disk in the place of one.
    pub fn replace(&self, disk: usize) -> Box<dyn Medium> {
        let mut rack = self.rack();
        let image = &mut rack.images[disk];
        image.now = Content::zeroes(image.now.len());
        image.durable = image.now.clone();
        image.pending.clear();
        image.unreadable.clear();
        image.fault = DiskFault::None;
        Box::new(Disk { rack: Arc::clone(&self.rack), index: disk })
    }

    /// Sectors that were written and not synced, over all disks.
    pub fn sectors_pending(&self) -> usize {
        self.rack().images.iter().map(|image| image.versions().len()).sum()
    }

    /// A copy that goes its own way.
    #[must_use]
    pub fn fork(&self) -> Self {
        let rack = self.rack();
        let rack = Rack {
            images: rack.images.clone(),
            hidden: rack.hidden,
            silent: rack.silent,
            silent_reads: rack.silent_reads,
            is_fixed: rack.is_fixed,
            room: rack.room.clone(),
            commands_left: rack.commands_left,
            is_cut: rack.is_cut,
            commands: rack.commands,
            rng: rack.rng.clone(),
            spared: rack.spared.clone(),
            broken: None,
            buffer: rack.buffer.clone(),
            under_way: rack.under_way.clone(),
            key: rack.key.clone(),
        };
        Self { rack: Arc::new(Mutex::new(rack)) }
    }

    /// The power comes back: each sector that was not synced is what it was, or something that was
    /// written to it since, or part of one and part of another.
    pub fn restore(&self) {
        let rack = &mut *self.rack();
        // Whole disks or writes often share their fate; not always.
        let bias = rack.rng.below(4);
        for image in &mut rack.images {
            let is_longer = image.now.len() > image.durable.len();
            if is_longer && rack.rng.below(2) == 0 {
                image.shorten();
            }
            image.durable.resize(image.now.len());
            image.now = image.durable.clone();
            for (sector, versions) in image.versions() {
                let at = sector * SECTOR_BYTES;
                let durable = image.durable.range(at..at + SECTOR_BYTES);
                let kept = survivor(&mut rack.rng, bias, &durable, &versions);
                image.leave(at, &kept);
            }
            image.pending.clear();
        }
        rack.buffer.starts += 1;
        rack.under_way = None;
        rack.is_cut = false;
        rack.commands_left = None;
    }

    /// The server died, and the machine goes on: what was written is there, synced or not; of the
    /// write that was under way a part may be.
    pub fn restore_server(&self) {
        let rack = &mut *self.rack();
        if let Some((disk, at, before)) = rack.under_way.take() {
            let sectors = (before.len() / SECTOR_BYTES) as u64;
            let written = index(rack.rng.below(sectors + 1)) * SECTOR_BYTES;
            rack.images[disk].write(at + written, &before[written..]);
        }
        rack.is_cut = false;
        rack.commands_left = None;
    }

    /// As [`Disks::restore`], each sector that was not synced surviving whole exactly if
    /// `survives` says so of it, counted over all disks. A disk is longer if what it became longer
    /// for survives.
    pub fn restore_by(&self, mut survives: impl FnMut(usize) -> bool) {
        let rack = &mut *self.rack();
        let mut index = 0;
        for image in &mut rack.images {
            let (had, longer) = (image.durable.len(), image.now.len());
            image.durable.resize(longer);
            image.now = image.durable.clone();
            let mut is_longer = false;
            for (sector, versions) in image.versions() {
                let at = sector * SECTOR_BYTES;
                let mut kept = [0; SECTOR_BYTES];
                image.durable.read(at, &mut kept);
                if survives(index) {
                    kept = *versions.last().expect("written at least once");
                    is_longer = is_longer || at >= had;
                }
                image.leave(at, &kept);
                index += 1;
            }
            if !is_longer {
                image.durable.resize(had);
                image.now.resize(had);
            }
            image.pending.clear();
        }
        rack.is_cut = false;
        rack.commands_left = None;
    }

    fn rack(&self) -> MutexGuard<'_, Rack> {
        self.rack.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Draws the contents of a sector after a power cut: its durable ones, an unsynced version, or part
/// of both.
fn survivor(rng: &mut Rng, bias: u64, durable: &[u8], versions: &[Sector]) -> Sector {
    let mut old = [0; SECTOR_BYTES];
    old.copy_from_slice(&durable[..SECTOR_BYTES]);
    let chosen = versions[usize::try_from(rng.below(versions.len() as u64)).expect("an index")];
    let fate = rng.below(8);
    match bias {
        0 if fate != 0 => chosen,
        1 if fate != 0 => old,
        _ => match fate {
            0..3 => old,
            3..6 => chosen,
            _ => {
                let until = usize::try_from(rng.below(SECTOR_BYTES as u64)).expect("an index");
                old[..until].copy_from_slice(&chosen[..until]);
                old
            }
        },
    }
}

impl Rack {
    /// Counts a command; fails it if the power is gone, or the disk.
    fn take(&mut self, index: usize) -> io::Result<()> {
        if self.is_cut {
            return Err(io::Error::other("the power is gone"));
        }
        if let Some(left) = &mut self.commands_left {
            if *left == 0 {
                self.is_cut = true;
                // Of a write that is under way, anything may have happened: see `write_at`.
                return Err(io::Error::other("the power goes"));
            }
            *left -= 1;
        }
        self.commands += 1;
        match self.images[index].fault {
            DiskFault::Dead => Err(io::Error::other("the disk is dead")),
            _ => Ok(()),
        }
    }
}

impl Rack {
    /// Stores into the buffer, unless everything stops.
    fn store(&mut self, offset: u64, bytes: &[u8]) {
        if self.is_cut {
            return;
        }
        let mut stored = bytes.len();
        if self.commands_left == Some(0) {
            self.is_cut = true;
            // Eight bytes are stored at once.
            stored = if stored > 8 { index(self.rng.below(stored as u64)) } else { 0 };
        }
        self.commands_left = self.commands_left.map(|left| left.saturating_sub(1));
        let from = index(offset);
        self.buffer.bytes[from..from + stored].copy_from_slice(&bytes[..stored]);
    }

    /// Bytes of a write that are carried out before the host is found full; none if it has room.
    fn lacking(&mut self, offset: u64, bytes: usize) -> Option<usize> {
        let room = self.room.as_mut().filter(|room| room.range.contains(&offset))?;
        if room.writes_left > 0 {
            room.writes_left -= 1;
            return None;
        }
        room.is_full = true;
        let sectors = bytes / SECTOR_BYTES;
        Some(index(self.rng.below(sectors as u64 + 1)) * SECTOR_BYTES)
    }
}

impl DiskImage {
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.now.write(offset, bytes);
        let (first, end) = (offset / SECTOR_BYTES, (offset + bytes.len()).div_ceil(SECTOR_BYTES));
        let written = self.now.range(first * SECTOR_BYTES..end * SECTOR_BYTES);
        let sectors = written.as_chunks().0.to_vec();
        self.pending.push(WrittenSectors { first, sectors });
    }

    /// Takes back that it became longer.
    fn shorten(&mut self) {
        let bytes = self.durable.len();
        self.now.resize(bytes);
        self.pending.retain(|written| written.first * SECTOR_BYTES < bytes);
    }

    /// By sector what was written to it and not synced, earliest first.
    fn versions(&self) -> BTreeMap<usize, Vec<Sector>> {
        let mut versions: BTreeMap<usize, Vec<Sector>> = BTreeMap::new();
        for WrittenSectors { first, sectors } in &self.pending {
            for (sector, content) in (*first..).zip(sectors) {
                versions.entry(sector).or_default().push(*content);
            }
        }
        versions
    }

    /// Bytes from an offset on are these, for certain.
    fn leave(&mut self, at: usize, bytes: &[u8]) {
        self.now.write(at, bytes);
        self.durable.write(at, bytes);
    }

    /// Flips a bit of a byte, for certain.
    fn flip(&mut self, byte: usize, bit: u8) {
        let flipped = self.now.range(byte..byte + 1)[0] ^ bit;
        self.leave(byte, &[flipped]);
    }

    fn check_writable(&self) -> io::Result<()> {
        match self.fault {
            DiskFault::WritesFail => Err(io::Error::other("the disk takes no writes")),
            _ => Ok(()),
        }
    }

    /// Makes durable whatever was written.
    fn sync(&mut self) {
        self.durable.resize(self.now.len());
        for WrittenSectors { first, sectors } in self.pending.drain(..) {
            let at = first * SECTOR_BYTES;
            self.durable.write(at, &self.now.range(at..at + sectors.len() * SECTOR_BYTES));
        }
    }
}

impl Disk {
    fn rack(&self) -> MutexGuard<'_, Rack> {
        self.rack.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn index(offset: u64) -> usize {
    usize::try_from(offset).expect("within the disk")
}

impl BufferMemory for Buffer {
    fn size(&self) -> u64 {
        lock(&self.rack).buffer.bytes.len() as u64
    }

    fn place(&self) -> MachineFile {
        let buffer = &lock(&self.rack).buffer;
        MachineFile { start: buffer.starts, device: 1, file: buffer.made }
    }

    fn load(&self, offset: u64, bytes: &mut [u8]) {
        let from = index(offset);
        bytes.copy_from_slice(&lock(&self.rack).buffer.bytes[from..from + bytes.len()]);
    }

    fn store(&self, pieces: &[(u64, &[u8])]) {
        let rack = &mut *lock(&self.rack);
        for (offset, bytes) in pieces {
            rack.store(*offset, bytes);
        }
    }

    fn reserve(&self, size: u64) -> io::Result<()> {
        let rack = &mut *lock(&self.rack);
        if rack.is_cut {
            return Err(io::Error::other("the power is gone"));
        }
        rack.buffer.bytes = vec![0; index(size)];
        rack.buffer.made += 1;
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn discard(&self) {
        let rack = &mut *lock(&self.rack);
        if !rack.is_cut {
            rack.buffer.bytes.clear();
        }
    }
}

impl Medium for Disk {
    fn size(&self) -> u64 {
        self.rack().images[self.index].now.len() as u64
    }

    fn lengthen(&self, size: u64) -> io::Result<()> {
        let rack = &mut *self.rack();
        if rack.is_fixed {
            return Err(io::ErrorKind::Unsupported.into());
        }
        rack.take(self.index)?;
        let image = &mut rack.images[self.index];
        image.check_writable()?;
        image.now.resize(index(size).max(image.now.len()));
        Ok(())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let rack = &mut *self.rack();
        rack.take(self.index)?;
        if rack.silent >> self.index & 1 == 1 && rack.silent_reads > 0 {
            rack.silent_reads -= 1;
            return Err(io::Error::other("the disk does not respond"));
        }
        if rack.hidden.are_wanted(offset, buffer.len()) {
            return Err(io::Error::other("the table cannot be read"));
        }
        let image = &mut rack.images[self.index];
        let at = index(offset);
        let sectors = at / SECTOR_BYTES..(at + buffer.len()).div_ceil(SECTOR_BYTES);
        if image.unreadable.range(sectors).next().is_some() {
            return Err(io::Error::other("a sector cannot be read"));
        }
        if image.fault == DiskFault::Rot && rack.rng.below(16) == 0 && !buffer.is_empty() {
            let byte = at + index(rack.rng.below(buffer.len() as u64));
            image.flip(byte, 1 << rack.rng.below(8));
        }
        image.now.read(at, buffer);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let rack = &mut *self.rack();
        let was_cut = rack.is_cut;
        let taken = rack.take(self.index);
        if taken.is_err() && (was_cut || !rack.is_cut) {
            return taken;
        }
        if let Some(whole) = rack.lacking(offset, bytes.len()) {
            rack.images[self.index].write(index(offset), &bytes[..whole]);
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        let is_hit = |(disk, range): &(usize, Range<u64>)| {
            let end = offset + bytes.len() as u64;
            *disk == self.index && range.start < end && offset < range.end
        };
        if rack.spared.iter().any(is_hit) && bytes.iter().any(|byte| *byte != 0) {
            let disk = self.index;
            rack.broken = Some(format!("byte {offset} of disk {disk} is written again"));
        }
        let image = &mut rack.images[self.index];
        image.check_writable()?;
        let fault = if rack.rng.below(16) == 0 { image.fault } else { DiskFault::None };
        let at = match fault {
            DiskFault::Lost => return taken,
            DiskFault::Misdirected => {
                let room = (image.now.len() - bytes.len()) / SECTOR_BYTES + 1;
                index(rack.rng.below(room as u64)) * SECTOR_BYTES
            }
            _ => index(offset),
        };
        if taken.is_err() {
            let before = image.now.range(at..at + bytes.len()).into_owned();
            rack.under_way = Some((self.index, at, before));
        }
        image.write(at, bytes);
        let sectors = at / SECTOR_BYTES..(at + bytes.len()).div_ceil(SECTOR_BYTES);
        image.unreadable.retain(|sector| !sectors.contains(sector));
        taken
    }

    fn sync(&self) -> io::Result<()> {
        let rack = &mut *self.rack();
        rack.take(self.index)?;
        let image = &mut rack.images[self.index];
        image.check_writable()?;
        if image.fault == DiskFault::SyncFails {
            image.fault = DiskFault::None;
            image.pending.clear();
            return Err(io::Error::other("the disk did not write what its cache had"));
        }
        image.sync();
        Ok(())
    }

    fn submit_writes(&self, batch: &[MediumWrite<'_>]) -> Vec<io::Result<()>> {
        // Of each, the sync comes after the write; besides, they go in any order.
        let mut left: Vec<(usize, bool)> = (0..batch.len()).map(|index| (index, false)).collect();
        let mut answers: Vec<io::Result<()>> = batch.iter().map(|_| Ok(())).collect();
        while !left.is_empty() {
            let chosen = index(self.rack().rng.below(left.len() as u64));
            let (at, is_written) = left[chosen];
            let MediumWrite { medium, .. } = batch[at];
            answers[at] = if is_written { medium.sync() } else { batch[at].carry_out() };
            if is_written || answers[at].is_err() {
                left.swap_remove(chosen);
            } else {
                left[chosen].1 = true;
            }
        }
        answers
    }

    fn submit_reads(&self, batch: &mut [MediumRead<'_, '_>]) -> Vec<io::Result<()>> {
        let mut left: Vec<usize> = (0..batch.len()).collect();
        let mut answers: Vec<io::Result<()>> = batch.iter().map(|_| Ok(())).collect();
        while !left.is_empty() {
            let chosen = index(self.rack().rng.below(left.len() as u64));
            let at = left.swap_remove(chosen);
            let MediumRead { medium, offset, buffers } = &mut batch[at];
            answers[at] = medium.read_vectored_at(*offset, buffers);
        }
        answers
    }
}
