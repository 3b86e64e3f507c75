//! Portion: a namespace as a device, behind a gate.
//!
//! **Invariants**
//! - Commands that passed the gate have ended before the gate is closed: no write comes after an
//!   erasure.
//! - A sector that is marked unreadable stays so until it is written or trimmed, and after a crash
//!   until that was durable.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::sectors::Sectors;
use crate::{Allocation, Device, DeviceError, Durability, Protection, ReadPart, Work};

/// Size of a portion that is the whole device.
const WHOLE: u64 = u64::MAX;
/// Bytes of which the device is asked at a time which of them are stored.
const ASKED_BYTES: u64 = 1 << 30;
/// Bytes of a sector.
const SECTOR_BYTES: u64 = 512;

/// A namespace as a device.
#[derive(Debug)]
pub(super) struct Portion {
    base: Arc<dyn Device>,
    from: u64,
    /// Bytes; [`WHOLE`] for the whole device, whatever its size.
    size: AtomicU64,
    gate: RwLock<Gate>,
    /// Set when anything is written, to any portion of the drive.
    is_written: Arc<AtomicBool>,
    /// Times that marks were removed, and how many of these were stored.
    marks_changed: AtomicU64,
    marks_stored: AtomicU64,
}

/// Conditions that commands have to pass.
#[derive(Debug, Default)]
pub(super) struct Gate {
    pub(super) work: Option<Work>,
    pub(super) is_gone: bool,
    pub(super) protection: Protection,
    pub(super) unreadable: Sectors,
}

/// Stores the marks as they are now.
pub(super) type KeepMarks = dyn Fn() -> Result<(), DeviceError> + Send + Sync;

/// A portion as clients use it: removed marks are stored before a flush ends.
pub(super) struct PortionDevice {
    pub(super) portion: Arc<Portion>,
    pub(super) keep_marks: Arc<KeepMarks>,
}

impl std::fmt::Debug for PortionDevice {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.portion.fmt(out)
    }
}

impl Portion {
    pub(super) fn new(
        base: Arc<dyn Device>,
        (from, size): (u64, Option<u64>),
        (unreadable, protection): (Sectors, Protection),
        is_written: Arc<AtomicBool>,
    ) -> Self {
        let gate = RwLock::new(Gate { protection, unreadable, ..Gate::default() });
        let size = AtomicU64::new(size.unwrap_or(WHOLE));
        let (marks_changed, marks_stored) = Default::default();
        Self { base, from, size, gate, is_written, marks_changed, marks_stored }
    }

    pub(super) const fn from(&self) -> u64 {
        self.from
    }

    /// Its own size in bytes; none if it is the whole device.
    pub(super) fn own_size(&self) -> Option<u64> {
        Some(self.size.load(Ordering::Acquire)).filter(|size| *size != WHOLE)
    }

    /// Changes its size.
    pub(super) fn resize(&self, size: u64) {
        self.size.store(size, Ordering::Release);
    }

    /// The gate, for changes: commands under way have ended.
    pub(super) fn gate(&self) -> RwLockWriteGuard<'_, Gate> {
        self.gate.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn look(&self) -> RwLockReadGuard<'_, Gate> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.own_size().unwrap_or_else(|| self.base.size().saturating_sub(self.from))
    }

    /// Trims everything from `offset` on, durably, whatever the gate says.
    pub(super) fn forget_from(&self, offset: u64) -> Result<(), DeviceError> {
        let length = self.bytes().saturating_sub(offset);
        self.base.trim(self.from + offset, length, Durability::Durable)
    }

    /// Ranges that hold data, whatever the gate says.
    ///
    /// The device is asked for a part at a time: it may look at every page meanwhile, and hold back
    /// writes.
    pub(super) fn stored(&self) -> Result<Vec<(u64, u64)>, DeviceError> {
        let (size, mut stored) = (self.bytes(), Vec::new());
        for asked in (0..size).step_by(usize::try_from(ASKED_BYTES).expect("a GiB")) {
            let mut at = asked;
            for run in self.base.allocations(self.from + at, ASKED_BYTES.min(size - at))? {
                stored.extend(run.is_stored.then_some((at, run.length)));
                at += run.length;
            }
        }
        Ok(stored)
    }

    /// Reads for a self-test, whatever the gate says.
    pub(super) fn test(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        self.base.read(self.from + offset, buffer).map_err(|error| self.own(error))
    }

    /// Passes the gate with a command that reads.
    fn pass(&self, offset: u64, length: u64) -> Result<RwLockReadGuard<'_, Gate>, DeviceError> {
        let gate = self.look();
        if gate.is_gone {
            return Err(DeviceError::Gone);
        }
        if let Some(work) = gate.work {
            return Err(DeviceError::InProgress(work));
        }
        self.check_own(offset, length)?;
        Ok(gate)
    }

    /// Passes the gate with a command that changes what is stored.
    fn pass_to_change(
        &self,
        offset: u64,
        length: u64,
    ) -> Result<RwLockReadGuard<'_, Gate>, DeviceError> {
        let gate = self.pass(offset, length)?;
        if gate.protection != Protection::Open {
            return Err(DeviceError::ReadOnly);
        }
        // Read first: it is mostly set, and a store would take the cache line from other threads.
        if !self.is_written.load(Ordering::Relaxed) {
            self.is_written.store(true, Ordering::Release);
        }
        Ok(gate)
    }

    fn check_own(&self, offset: u64, length: u64) -> Result<(), DeviceError> {
        let size = self.bytes();
        match offset.checked_add(length) {
            Some(end) if end <= size => Ok(()),
            _ => Err(DeviceError::OutOfRange { offset, length, size }),
        }
    }

    /// Refuses a read of marked sectors.
    fn check_marks(gate: &Gate, offset: u64, length: u64) -> Result<(), DeviceError> {
        let sectors = (offset / SECTOR_BYTES, (offset + length).div_ceil(SECTOR_BYTES));
        match gate.unreadable.first(sectors.0, sectors.1) {
            Some(lba) => Err(DeviceError::Unreadable {
                lba,
                reason: "a host marked it (Write Uncorrectable)".to_owned(),
            }),
            None => Ok(()),
        }
    }

    /// Removes the marks of sectors that were written or trimmed as a whole.
    fn remove_marks(&self, offset: u64, length: u64) {
        let sectors = (offset.div_ceil(SECTOR_BYTES), (offset + length) / SECTOR_BYTES);
        let mut gate = self.gate();
        if gate.unreadable.remove(sectors.0, sectors.1) {
            self.marks_changed.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Marks and protection as they are to be stored now, and how often marks were removed by then.
    pub(super) fn state_to_keep(&self) -> (Sectors, Protection, u64) {
        let gate = self.look();
        (gate.unreadable.clone(), gate.protection, self.marks_changed.load(Ordering::Acquire))
    }

    /// True if not all removals of marks were stored of this number.
    pub(super) fn has_unstored(&self, changes: u64) -> bool {
        self.marks_stored.load(Ordering::Acquire) < changes
    }

    /// So many removals of marks are stored.
    pub(super) fn note_stored(&self, changes: u64) {
        self.marks_stored.fetch_max(changes, Ordering::AcqRel);
    }

    /// An error of the device below, in addresses of the portion.
    fn own(&self, error: DeviceError) -> DeviceError {
        match error {
            DeviceError::OutOfRange { offset, length, size } => DeviceError::OutOfRange {
                offset: offset.saturating_sub(self.from),
                length,
                size: size.saturating_sub(self.from).min(self.bytes()),
            },
            DeviceError::NoSpace { offset, length } => {
                DeviceError::NoSpace { offset: offset.saturating_sub(self.from), length }
            }
            DeviceError::Unreadable { lba, reason } => DeviceError::Unreadable {
                lba: lba.saturating_sub(self.from / SECTOR_BYTES),
                reason,
            },
            error => error,
        }
    }
}

impl Device for PortionDevice {
    fn size(&self) -> u64 {
        if self.portion.look().is_gone { 0 } else { self.portion.bytes() }
    }

    fn origin(&self) -> u64 {
        self.portion.from + self.portion.base.origin()
    }

    /// Blocks of the drive, as far as they lie on blocks of the portion.
    fn atomic_bytes(&self) -> u64 {
        let aligned = 1 << self.portion.from.trailing_zeros().min(63);
        self.portion.base.atomic_bytes().min(aligned).max(SECTOR_BYTES)
    }

    fn is_write_through(&self) -> bool {
        self.portion.base.is_write_through()
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        let portion = &*self.portion;
        let gate = portion.pass(offset, buffer.len() as u64)?;
        Portion::check_marks(&gate, offset, buffer.len() as u64)?;
        portion.base.read(portion.from + offset, buffer).map_err(|error| portion.own(error))
    }

    fn read_many(&self, reads: &mut [ReadPart<'_>]) -> Vec<Result<(), DeviceError>> {
        let portion = &*self.portion;
        let gate = portion.pass(0, 0);
        let is_plain = gate.as_ref().is_ok_and(|gate| gate.unreadable.is_empty())
            && reads.iter().all(|it| portion.check_own(it.offset, it.buffer.len() as u64).is_ok());
        if !is_plain {
            drop(gate);
            // Each has its own answer.
            return reads.iter_mut().map(|it| self.read(it.offset, it.buffer)).collect();
        }
        let mut moved = Vec::with_capacity(reads.len());
        for ReadPart { offset, buffer } in reads.iter_mut() {
            moved.push(ReadPart { offset: portion.from + *offset, buffer });
        }
        let done = portion.base.read_many(&mut moved);
        done.into_iter().map(|done| done.map_err(|error| portion.own(error))).collect()
    }

    fn write(&self, offset: u64, bytes: &[u8], durability: Durability) -> Result<(), DeviceError> {
        let portion = &*self.portion;
        let length = bytes.len() as u64;
        let gate = portion.pass_to_change(offset, length)?;
        let has_marks = !gate.unreadable.is_empty();
        let written = portion.base.write(portion.from + offset, bytes, durability);
        drop(gate);
        written.map_err(|error| portion.own(error))?;
        if has_marks {
            portion.remove_marks(offset, length);
            self.keep_marks_for(durability)?;
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        {
            let _gate = self.portion.pass(0, 0)?;
            self.portion.base.flush()?;
        }
        self.keep_marks_for(Durability::Durable)
    }

    fn trim(&self, offset: u64, length: u64, durability: Durability) -> Result<(), DeviceError> {
        let portion = &*self.portion;
        let gate = portion.pass_to_change(offset, length)?;
        let has_marks = !gate.unreadable.is_empty();
        let trimmed = portion.base.trim(portion.from + offset, length, durability);
        drop(gate);
        trimmed.map_err(|error| portion.own(error))?;
        if has_marks {
            portion.remove_marks(offset, length);
            self.keep_marks_for(durability)?;
        }
        Ok(())
    }

    fn is_write_protected(&self) -> bool {
        self.portion.look().protection != Protection::Open
    }

    fn allocations(&self, offset: u64, length: u64) -> Result<Vec<Allocation>, DeviceError> {
        let portion = &*self.portion;
        let _gate = portion.pass(offset, length)?;
        let runs = portion.base.allocations(portion.from + offset, length);
        runs.map_err(|error| portion.own(error))
    }
}

impl PortionDevice {
    /// Stores the removal of marks before the data that replaced them counts as durable: after a
    /// crash data that was flushed would otherwise be unreadable.
    fn keep_marks_for(&self, durability: Durability) -> Result<(), DeviceError> {
        // Another thread that is storing them has not noted that yet: then this waits for it.
        let changes = self.portion.marks_changed.load(Ordering::Acquire);
        if durability == Durability::Volatile || !self.portion.has_unstored(changes) {
            return Ok(());
        }
        (self.keep_marks)()
    }
}
