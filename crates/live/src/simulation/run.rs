//! One run: a drive, a host, cuts of the power.

mod beside;
mod outage;

use std::fmt;

use blockio::{Bytes, Rng, SECTOR_BYTES};
use device::{Device, DeviceError, Durability};
use status::Compression;

use super::damage::{self, Before};
use super::disk::{DiskFault, Disks, TableLocation};
use super::history::{BYTES, SectorHistory};
use crate::engine::dies::gathering::gather;
use crate::engine::drive::creation::{format_as, format_encrypted};
use crate::format::die_set::DieSet;
use crate::format::header::{FORMAT_VERSION, FORMAT_VERSION_MIN};
use crate::format::layout::{Layout, UNIT_HEADER_BYTES};
use crate::{Beyond, Capacity, Drive, OpenError, Shape, UnlockingKey};

/// Counters of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Commands of the host.
    pub operations: u64,
    /// Times that the power went while the host was at work.
    pub crashes: u64,
    /// Times that it went again during the recovery from one.
    pub crashes_in_recovery: u64,
    /// Pages that relocation copied.
    pub pages_relocated: u64,
    /// Dies that failed or were replaced.
    pub dies_changed: u64,
    /// Bytes by which what the host wrote was stored shorter.
    pub saved_bytes: u64,
    /// Commands for which there was no space.
    pub refused: u64,
    /// Times that the drive was closed.
    pub closed: u64,
    /// Purges, and changes of the size.
    pub reformatted: u64,
    /// Times that all rows were redundant again without a die that had failed.
    pub redundancy_restored: u64,
    /// Times that a die took no writes while the drive was opened.
    pub dies_unwritable: u64,
    /// Times that some disks did not respond to reads for a while, and commands that failed
    /// meanwhile.
    pub outages: u64,
    /// Commands that failed meanwhile, see `outages`.
    pub failed_in_outages: u64,
    /// Scrubs that went through all rows, and times that something of a die was spoilt before one.
    pub scrubbed: u64,
    /// Times that something of a die was spoilt, see `scrubbed`.
    pub spoilt: u64,
    /// Times that the file system beneath the dies was full.
    pub hosts_full: u64,
    /// Searches of the whole map, since neither an extent nor a table told what lay there.
    pub maps_searched: u64,
    /// Copies of the dies that were damaged, those of them that opening refused, and pages that
    /// could not be read of the others.
    pub damaged: u64,
    /// Copies that opening refused, see `damaged`.
    pub damaged_refused: u64,
    /// Pages that could not be read of the others, see `damaged`.
    pub damaged_pages_lost: u64,
    /// Times that the server died and the machine went on.
    pub deaths: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.operations += other.operations;
        self.crashes += other.crashes;
        self.crashes_in_recovery += other.crashes_in_recovery;
        self.pages_relocated += other.pages_relocated;
        self.dies_changed += other.dies_changed;
        self.saved_bytes += other.saved_bytes;
        self.refused += other.refused;
        self.closed += other.closed;
        self.reformatted += other.reformatted;
        self.redundancy_restored += other.redundancy_restored;
        self.dies_unwritable += other.dies_unwritable;
        self.outages += other.outages;
        self.failed_in_outages += other.failed_in_outages;
        self.scrubbed += other.scrubbed;
        self.spoilt += other.spoilt;
        self.hosts_full += other.hosts_full;
        self.maps_searched += other.maps_searched;
        self.damaged += other.damaged;
        self.damaged_refused += other.damaged_refused;
        self.damaged_pages_lost += other.damaged_pages_lost;
        self.deaths += other.deaths;
    }
}

/// A promise that was not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Seed of the run.
    pub seed: u64,
    /// Command of the host after which it was seen.
    pub operation: u64,
    /// Description of the broken promise.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}, operation {}: {}", self.seed, self.operation, self.what)
    }
}

impl std::error::Error for Failure {}

const PAGE_SECTORS: usize = 8;
const PAGE_BYTES: u64 = 4096;

/// Reason why a run ended early.
enum Stop {
    /// The power is gone.
    Cut,
    /// The host is done for now.
    Done,
    /// A promise was not kept.
    Broken(String),
}

/// Events beside the restoring of dies.
#[derive(Default)]
struct Beside {
    /// True if a disk may not respond to reads for a while, and true once one was so.
    may_silence: bool,
    was_silent: bool,
    stop: Option<Stop>,
}

struct Run {
    rng: Rng,
    /// Draws damage, so that the rest goes on as without it.
    damage: Rng,
    /// Draws outages.
    outages: Rng,
    /// Draws scrubs, damage while the drive is open, and hosts without room.
    beside: Rng,
    damaged: Damage,
    shape: Shape,
    /// The disks at some crash before.
    earlier: Option<Disks>,
    disks: Disks,
    history: SectorHistory,
    tally: Tally,
    /// Pages that the drive may be made to have.
    pages_mappable: u32,
    /// True if a die may be failed: rows are protected, and no disk has another fault.
    may_lose_die: bool,
    /// True if rows are protected and no die does wrong.
    is_honest: bool,
    /// The die that does wrong by itself.
    wrong_die: Option<usize>,
    /// True if units of that die are spoilt now and then while the drive is open, and that is all
    /// that is wrong with it.
    is_spoilt: bool,
    /// Tables that cannot be read while the drive is open.
    hidden: TableLocation,
    /// Draws deaths of the server; none where the power goes each time.
    deaths: Option<Rng>,
    /// True if the power went since the drive was open last.
    is_power_lost: bool,
}

/// Simulates `operations` commands of a host from one seed.
///
/// # Errors
/// The first promise that was not kept.
pub fn simulate(seed: u64, operations: u64) -> Result<Tally, Failure> {
    simulate_with(seed, operations, (Damage::Seldom, None))
}

/// As [`simulate`] or, for odd seeds, as [`simulate_deaths`], of a drive that is encrypted.
///
/// # Errors
/// The first promise that was not kept.
pub fn simulate_encrypted(seed: u64, operations: u64) -> Result<Tally, Failure> {
    let damaged = if seed.is_multiple_of(2) { Damage::Seldom } else { Damage::None };
    simulate_with(seed, operations, (damaged, Some(drawn_key(&mut Rng::new(seed).split("key")))))
}

/// A key of 32 bytes.
fn drawn_key(rng: &mut Rng) -> UnlockingKey {
    let mut bytes = [0; 32];
    bytes.as_chunks_mut::<8>().0.iter_mut().for_each(|it| *it = rng.next_u64().to_le_bytes());
    // No text in UTF-8 has such a byte.
    bytes[0] = 0xff;
    UnlockingKey::of_bytes(&bytes).expect("a key of 32 bytes")
}

/// As [`simulate`], and each time that the power is off so many copies of the dies are damaged.
///
/// # Errors
/// The first promise that was not kept.
pub fn simulate_damage(seed: u64, operations: u64, copies: u32) -> Result<Tally, Failure> {
    simulate_with(seed, operations, (Damage::Often(copies), None))
}

/// As [`simulate`], and of most crashes the machine goes on, and the death of the server alone is
/// seen: then all that was acknowledged is there. Nothing is damaged.
///
/// # Errors
/// The first promise that was not kept.
pub fn simulate_deaths(seed: u64, operations: u64) -> Result<Tally, Failure> {
    simulate_with(seed, operations, (Damage::None, None))
}

/// Frequency at which copies of the dies are damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    /// At a third of all times that the power is off.
    Seldom,
    /// So many copies each time.
    Often(u32),
    /// Never; but servers die.
    None,
}

fn simulate_with(
    seed: u64,
    operations: u64,
    (damaged, key): (Damage, Option<UnlockingKey>),
) -> Result<Tally, Failure> {
    let mut rng = Rng::new(seed).split("run");
    let shape = draw_shape(&mut rng);
    let bytes = usize::try_from(shape.die_bytes().0).expect("a small drive");
    let disks = Disks::new(shape.dies as usize, bytes, Rng::new(seed).split("disks"));
    let sectors = shape.pages_logical as usize * PAGE_SECTORS;
    let mut ends = Rng::new(seed).split("ends");
    if ends.below(4) == 0 {
        disks.fix_length();
    }
    let version = if ends.below(4) == 0 { FORMAT_VERSION_MIN } else { FORMAT_VERSION };
    let mut run = Run {
        rng,
        damage: Rng::new(seed).split("damage"),
        outages: Rng::new(seed).split("outages"),
        beside: Rng::new(seed).split("beside"),
        damaged,
        shape,
        earlier: None,
        disks,
        history: SectorHistory::new(sectors),
        tally: Tally::default(),
        pages_mappable: shape.pages_mappable,
        may_lose_die: false,
        is_honest: false,
        wrong_die: None,
        is_spoilt: false,
        hidden: draw_hidden(&shape, seed),
        deaths: (damaged == Damage::None).then(|| Rng::new(seed).split("deaths")),
        is_power_lost: false,
    };
    let formatted = match &key {
        None => format_as(version, run.disks.media(), &shape, seed),
        Some(key) => format_encrypted(run.disks.media(), &shape, seed, key),
    };
    run.disks.lock_with(key);
    let result = formatted
        .map_err(|error| error.to_string())
        .and_then(|()| run.go(operations, shape.is_protected));
    let failed = |what| Failure { seed, operation: run.tally.operations, what };
    result.map_err(failed)?;
    Ok(run.tally)
}

fn draw_shape(rng: &mut Rng) -> Shape {
    let mut below = |limit: u32| u32::try_from(rng.below(limit.into())).expect("below a u32");
    let is_protected = below(4) != 0;
    let dies = if is_protected { 2 + below(4) } else { 1 + below(3) };
    let compression = [Compression::None, Compression::Lz4, Compression::Zstd][below(3) as usize];
    let is_compressed = compression != Compression::None;
    let mut shape = Shape {
        pages_logical: 1,
        pages_stored_max: 1,
        pages_mappable: 1,
        dies,
        is_protected,
        // An extent lies in one unit, so a unit of one page would hold one extent.
        unit_pages: 1 + u32::from(is_compressed) + below(4),
        rows: 1 + below(4),
        superblocks: 13 + below(12),
        extents_per_page: if is_compressed { 2 + below(3) } else { 1 },
        compression,
        journal_bytes: 0,
    };
    let units = (shape.superblocks - 8) * shape.superblock_pages() / shape.unit_pages;
    let usable = units * (shape.unit_pages * 64 - if is_compressed { 63 } else { 0 }) / 64;
    shape.pages_stored_max = (usable * (50 + below(45)) / 100).max(1);
    let is_thin = below(3) == 0;
    let percent = if is_thin { 110 + below(200) } else { 100 };
    shape.pages_logical = shape.pages_stored_max * percent / 100;
    shape.pages_mappable = shape.pages_logical + below(shape.pages_logical);
    // About twenty batches of the largest size.
    let unit = u64::from(shape.unit_pages) * (4160 + 24 * u64::from(shape.extents_per_page)) + 1024;
    shape.journal_bytes = (unit * u64::from(dies) * 64).next_multiple_of(4096);
    shape
}

/// Draws whether tables of units become unreadable once the drive is open, where nothing else needs
/// them.
fn draw_hidden(shape: &Shape, seed: u64) -> TableLocation {
    let layout = Layout::new(shape);
    let is_hidden = Rng::new(seed).split("tables").below(3) == 0;
    if shape.extents_per_page > 1 || !is_hidden {
        return TableLocation::default();
    }
    TableLocation {
        first: layout.unit_from(0),
        unit_bytes: layout.unit_bytes as u64,
        unit_header_bytes: UNIT_HEADER_BYTES as u64,
        length: layout.extents_from as u64,
    }
}

impl Run {
    fn go(&mut self, operations: u64, is_protected: bool) -> Result<(), String> {
        let mut drive = self.open()?;
        let culprit = usize::try_from(self.rng.below(8)).expect("below 8");
        let fault = match self.rng.below(6) {
            0 => DiskFault::Misdirected,
            1 => DiskFault::Lost,
            2 => DiskFault::Rot,
            _ => DiskFault::None,
        };
        if is_protected && culprit < self.disks.media().len() {
            self.disks.set_fault(culprit, fault);
            self.is_spoilt = fault == DiskFault::None && self.beside.below(3) == 0;
            let is_right = fault == DiskFault::None && !self.is_spoilt;
            (self.may_lose_die, self.is_honest) = (is_right, is_right);
            self.wrong_die = (!is_right).then_some(culprit);
        } else {
            self.is_honest = is_protected;
        }
        while self.tally.operations < operations {
            // Some stretches are short, so that cuts come soon after recovery too.
            let longest = if self.rng.below(3) == 0 { 30 } else { 1500 };
            self.disks.cut_after(self.rng.below(longest));
            self.disks.hide(self.hidden);
            let stop = loop {
                if self.tally.operations >= operations {
                    break None;
                }
                self.tally.operations += 1;
                match self.step(&drive) {
                    Ok(()) => {}
                    Err(stop) => break Some(stop),
                }
            };
            let counters = drive.counters().unwrap_or_default();
            self.tally.pages_relocated += counters.pages_relocation;
            self.tally.saved_bytes += counters.host_saved_bytes;
            self.disks.hide(TableLocation::default());
            let is_complete = drive.lost_dies().is_empty();
            match stop {
                Some(Stop::Broken(what)) => return Err(what),
                Some(Stop::Done) => self.close(drive)?,
                Some(Stop::Cut) | None => {
                    self.check_full_host(&drive)?;
                    self.crash(drive);
                }
            }
            self.damage(is_complete)?;
            drive = self.open()?;
            // It went while the size was changed, or not.
            self.see_size(&drive);
            if self.deaths.is_some() && !std::mem::take(&mut self.is_power_lost) {
                self.history.lose_server();
            }
            self.verify(&drive)?;
        }
        Ok(())
    }

    /// Now and then copies of the disks are damaged while the power is off, and opened.
    fn damage(&mut self, is_complete: bool) -> Result<(), String> {
        let copies = match self.damaged {
            Damage::Seldom => u32::from(self.damage.below(3) == 0),
            Damage::Often(copies) => copies,
            Damage::None => return Ok(()),
        };
        for _ in 0..copies {
            let before = Before {
                disks: &self.disks,
                earlier: self.earlier.as_ref().filter(|_| is_complete),
                history: &self.history,
                shape: &self.shape,
                is_complete,
                is_redundant: self.is_honest && is_complete,
                wrong_die: self.wrong_die,
                hidden: self.hidden,
            };
            let outcome = damage::try_damage(&before, &mut self.damage)?;
            self.tally.damaged += outcome.damaged;
            self.tally.damaged_refused += outcome.refused;
            self.tally.damaged_pages_lost += outcome.pages_lost;
            self.tally.maps_searched += outcome.maps_searched;
        }
        if self.damage.below(4) == 0 {
            self.earlier = Some(self.disks.fork());
        }
        Ok(())
    }

    fn crash(&mut self, drive: Drive) {
        drop(drive);
        self.tally.crashes += 1;
        self.lose();
        self.free_host();
    }

    /// The power goes, or the server alone dies.
    fn lose(&mut self) {
        if self.deaths.as_mut().is_some_and(|deaths| deaths.below(4) != 0) {
            self.tally.deaths += 1;
            self.disks.restore_server();
        } else {
            self.is_power_lost = true;
            self.disks.restore();
        }
    }

    /// Closes the drive, after which everything is durable, unless the power goes.
    fn close(&mut self, drive: Drive) -> Result<(), String> {
        let all = self.history.sectors();
        let closed = drive.close();
        match self.settled(closed, 0, all, Durability::Durable) {
            Ok(()) => {
                self.tally.closed += 1;
                Ok(())
            }
            Err(Stop::Broken(what)) => Err(what),
            Err(Stop::Cut | Stop::Done) => {
                self.tally.crashes += 1;
                self.lose();
                self.free_host();
                Ok(())
            }
        }
    }

    /// Opens the drive; now and then the power goes while that is under way, or a die takes no
    /// writes, without which a redundant drive opens.
    fn open(&mut self) -> Result<Drive, String> {
        let failing = self.fail_writes();
        let drive = self.open_despite_cuts()?;
        if let Some(die) = failing {
            if drive.lost_dies() != [die] {
                return Err(format!("die {die} takes no writes and has not failed"));
            }
            self.disks.set_fault(die, DiskFault::None);
            self.tally.dies_unwritable += 1;
        }
        Ok(drive)
    }

    /// Chooses a die that takes no writes from now on, if all dies are there.
    fn fail_writes(&mut self) -> Option<usize> {
        if !self.may_lose_die || self.outages.below(3) > 0 {
            return None;
        }
        let gathered = gather(self.disks.media()).ok()?;
        let dies = gathered.store.dies.count();
        let is_complete = gathered.store.dies.incomplete() == DieSet::default();
        let die = usize::try_from(self.outages.below(dies as u64)).expect("an index");
        (is_complete && dies > 1).then(|| {
            self.disks.set_fault(die, DiskFault::WritesFail);
            die
        })
    }

    fn open_despite_cuts(&mut self) -> Result<Drive, String> {
        loop {
            if self.rng.below(3) == 0 {
                self.disks.cut_after(self.rng.below(120));
            }
            let buffer = self.deaths.as_ref().map(|_| self.disks.buffer());
            match self.disks.open(buffer) {
                Ok(drive) if !self.disks.is_cut() => {
                    if self.rng.below(2) == 0 {
                        // As if several threads were at work.
                        drive.defer_programs(Rng::new(self.rng.next_u64()));
                    }
                    return Ok(drive);
                }
                Ok(_) | Err(_) if self.disks.is_cut() => {
                    self.tally.crashes_in_recovery += 1;
                    self.lose();
                }
                Err(_) if self.disks.is_host_full() => {
                    self.lose();
                    self.free_host();
                }
                Ok(_) => unreachable!("the power is on, or it is not"),
                Err(error) => return Err(format!("it does not open: {error}")),
            }
        }
    }

    /// Everything that survived is allowed, and stays so.
    fn verify(&mut self, drive: &Drive) -> Result<(), String> {
        // The power stays on meanwhile.
        self.disks.cut_after(u64::MAX);
        drive.core().map_err(|error| error.to_string())?.ftl.check_invariants();
        let mut bytes = vec![0; PAGE_SECTORS * 64 * BYTES];
        for first in (0..self.history.sectors()).step_by(PAGE_SECTORS * 64) {
            let count = (self.history.sectors() - first).min(PAGE_SECTORS * 64);
            let bytes = &mut bytes[..count * BYTES];
            drive
                .read(first as u64 * SECTOR_BYTES, bytes)
                .map_err(|error| format!("after a crash: {error}"))?;
            self.history.check_recovered(first, bytes)?;
        }
        Ok(())
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.rng.below(limit as u64)).expect("below a usize")
    }

    /// One command, or something that happens to the dies.
    fn step(&mut self, drive: &Drive) -> Result<(), Stop> {
        if self.may_lose_die && self.below(64) == 0 {
            return self.change_dies(drive);
        }
        if self.wrong_die.is_none() && self.outages.below(400) == 0 {
            return self.outage(drive);
        }
        if self.below(500) == 0 {
            return Err(Stop::Done);
        }
        if let Some(done) = self.happen_beside(drive) {
            return done;
        }
        if self.below(200) == 0 {
            return if self.below(4) == 0 { self.purge(drive) } else { self.resize(drive) };
        }
        self.command(drive)
    }

    /// The drive becomes larger or smaller, if it can.
    fn resize(&mut self, drive: &Drive) -> Result<(), Stop> {
        let pages = 1 + self.rng.below(u64::from(self.pages_mappable));
        let is_thin = self.below(3) == 0;
        let physical = is_thin.then(|| Bytes(PAGE_BYTES * (1 + self.rng.below(pages))));
        let capacity = Capacity { size: Bytes(pages * PAGE_BYTES), physical };
        let beyond = if self.below(4) == 0 { Beyond::Kept } else { Beyond::Lost };
        match drive.resize(&capacity, beyond) {
            Ok(()) => {
                self.tally.reformatted += 1;
                self.see_size(drive);
                Ok(())
            }
            Err(OpenError::Device(error)) => self.outcome(Err(error)),
            // It has no room for that, or something would be lost.
            Err(_) => Ok(()),
        }
    }

    fn see_size(&mut self, drive: &Drive) {
        let sectors = usize::try_from(drive.size() / SECTOR_BYTES).expect("a small drive");
        self.history.resize(sectors);
    }

    /// One command.
    fn command(&mut self, drive: &Drive) -> Result<(), Stop> {
        let (first, count) = self.range();
        let offset = first as u64 * SECTOR_BYTES;
        let length = count as u64 * SECTOR_BYTES;
        let durability =
            if self.below(8) == 0 { Durability::Durable } else { Durability::Volatile };
        let what = self.below(100);
        match what {
            0..55 => {
                let bytes = self.history.write(first, count);
                let done = drive.write(offset, &bytes, durability);
                if let Err(DeviceError::NoSpace { offset, .. }) = done {
                    return self.cut_short(first, count, offset);
                }
                self.settled(done, first, count, durability)
            }
            55..80 => {
                let mut bytes = vec![0; count * BYTES];
                let read = drive.read(offset, &mut bytes);
                self.outcome(read)?;
                self.history.check_read(first, &bytes).map_err(Stop::Broken)
            }
            80..89 => {
                self.history.trim(first, count);
                let done = drive.trim(offset, length, durability);
                if let Err(DeviceError::NoSpace { .. }) = done {
                    self.tally.refused += 1;
                    let mut bytes = vec![0; count * BYTES];
                    let read = drive.read(offset, &mut bytes);
                    self.outcome(read)?;
                    return self.history.check_refused(first, &bytes).map_err(Stop::Broken);
                }
                self.settled(done, first, count, durability)
            }
            89..90 if self.below(8) == 0 => {
                let all = self.history.sectors();
                self.history.trim(0, all);
                let done = drive.trim(0, drive.size(), durability);
                self.settled(done, 0, all, durability)
            }
            90 => self.write_group(drive),
            91 => {
                let done = drive.checkpoint();
                self.outcome(done)
            }
            92 => {
                let done = drive.list_completed(0);
                self.outcome(done)
            }
            _ => {
                let flushed = drive.flush();
                let all = self.history.sectors();
                self.settled(flushed, 0, all, Durability::Durable)
            }
        }
    }

    /// Two or three writes, all or none of which survive.
    fn write_group(&mut self, drive: &Drive) -> Result<(), Stop> {
        // Each range may touch three pages.
        let page_bytes = (PAGE_SECTORS * BYTES) as u64;
        let count = 3.min(drive.atomic_bytes_max() / (3 * page_bytes));
        if count == 0 {
            return Ok(());
        }
        self.history.begin_group();
        let ranges: Vec<(u64, Vec<u8>)> = (0..count)
            .map(|_| {
                let (first, count) = self.range();
                let count = count.min(2 * PAGE_SECTORS);
                (first as u64 * SECTOR_BYTES, self.history.write(first, count))
            })
            .collect();
        let ranges: Vec<(u64, &[u8])> =
            ranges.iter().map(|(offset, bytes)| (*offset, bytes.as_slice())).collect();
        let done = drive.atomic_write(&ranges);
        let is_refused = match &done {
            Err(DeviceError::NoSpace { .. }) => true,
            // A die failed just now, and superblocks hold less.
            Err(DeviceError::OutOfRange { length, .. }) => drive.atomic_bytes_max() < *length,
            _ => false,
        };
        if is_refused {
            self.tally.refused += 1;
            self.history.take_group_back();
            return Ok(());
        }
        self.outcome(done)?;
        self.history.end_group();
        Ok(())
    }

    /// A write found no space for the page at `offset`: what lies before it is there, no more.
    fn cut_short(&mut self, first: usize, count: usize, offset: u64) -> Result<(), Stop> {
        self.tally.refused += 1;
        let page = usize::try_from(offset / SECTOR_BYTES).expect("within the drive");
        let written = page.max(first);
        if written >= first + count {
            return Err(Stop::Broken(format!("no space at {offset}, which was not asked for")));
        }
        self.history.take_back(written, first + count - written);
        Ok(())
    }

    /// A die fails, or is replaced, or is removed, after which a further one may fail.
    fn change_dies(&mut self, drive: &Drive) -> Result<(), Stop> {
        let lost = drive.lost_dies();
        let is_redundant = drive.is_redundant();
        let what = self.below(4);
        if is_redundant && (lost.is_empty() || what < 2) {
            let left = (0..self.disks.media().len()).filter(|die| !lost.contains(die));
            let left: Vec<usize> = left.collect();
            self.tally.dies_changed += 1;
            let chosen = left[self.below(left.len())];
            return self.outcome(drive.fail_die(chosen));
        }
        let mut beside = Beside { may_silence: self.outages.below(3) == 0, ..Beside::default() };
        let done = if !is_redundant && what < 3 {
            let restored =
                drive.restore_redundancy_while(|_, _| self.goes_on_beside(drive, &mut beside));
            self.tally.redundancy_restored += u64::from(matches!(restored, Ok(true)));
            restored.map(|_| ())
        } else if let Some(die) = lost.first().copied() {
            let medium = self.disks.replace(die);
            let replaced = drive
                .replace_die_while(die, medium, |_, _| self.goes_on_beside(drive, &mut beside));
            self.tally.dies_changed += 1;
            replaced
        } else {
            Ok(())
        };
        self.disks.fail_reads(0);
        match (beside.stop, done) {
            (Some(stop), _) => Err(stop),
            // It may be repeated, and what was not restored counts as missing until then.
            (None, Err(DeviceError::Transient { .. })) if beside.was_silent => {
                self.tally.failed_in_outages += 1;
                Ok(())
            }
            (None, done) => self.outcome(done),
        }
    }

    /// The host goes on while dies are seen to: now and then a command comes in between.
    fn goes_on_beside(&mut self, drive: &Drive, beside: &mut Beside) -> bool {
        self.disks.fail_reads(0);
        if self.below(4) == 0 {
            self.tally.operations += 1;
            beside.stop = self.command(drive).err();
        }
        beside.was_silent |= beside.may_silence && self.silence_one();
        beside.stop.is_none()
    }

    fn settled(
        &mut self,
        done: Result<(), DeviceError>,
        first: usize,
        count: usize,
        durability: Durability,
    ) -> Result<(), Stop> {
        self.outcome(done)?;
        self.history.acknowledge(first, count);
        if durability == Durability::Durable {
            self.history.settle(first, count);
        }
        Ok(())
    }

    fn outcome(&self, done: Result<(), DeviceError>) -> Result<(), Stop> {
        match done {
            // It died before it could answer.
            Ok(()) if self.deaths.is_some() && self.disks.is_cut() => Err(Stop::Cut),
            Ok(()) => Ok(()),
            Err(_) if self.disks.is_cut() || self.disks.is_host_full() => Err(Stop::Cut),
            Err(error) => Err(Stop::Broken(error.to_string())),
        }
    }

    /// Sectors that a command is about: often whole pages, mostly few.
    fn range(&mut self) -> (usize, usize) {
        let sectors = self.history.sectors();
        let pages = sectors / PAGE_SECTORS;
        if self.below(4) == 0 {
            let first = self.below(sectors);
            return (first, 1 + self.below(20.min(sectors - first)));
        }
        let first = self.below(pages);
        let longest = if self.below(16) == 0 { 40 } else { 3 };
        (first * PAGE_SECTORS, (1 + self.below(longest.min(pages - first))) * PAGE_SECTORS)
    }
}
