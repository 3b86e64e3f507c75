//! Locks of a drive with TCG Opal, before a namespace.
//!
//! ```text
//!   clients of all front ends ──► LockedDevice ──► namespace
//!                                      ▲
//!   methods of Opal ──► stored ──► LockTable
//! ```
//!
//! **Invariants**
//! - Commands that passed the locks have ended before these change.
//! - What is locked is not read, written, trimmed or told of.
//! - While the MBR shadow stands before the first blocks, it is read in their place.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use opal::{ByteTable, OpalState, Place};

use crate::{Allocation, Device, DeviceError, Durability, ReadPart};

/// Store of what a drive with Opal has beside its data. Many threads may call at once.
pub trait OpalStore: fmt::Debug + Send + Sync {
    /// Stores the state: all of it or nothing.
    ///
    /// # Errors
    /// The reason, as text; the state that was stored before is still there.
    fn keep(&self, state: &[u8]) -> Result<(), String>;

    /// Reads a table of bytes; what was never written is zeroes.
    ///
    /// # Errors
    /// The reason, as text.
    fn read(&self, place: Place, buffer: &mut [u8]) -> Result<(), String>;

    /// Writes a table of bytes, durably.
    ///
    /// # Errors
    /// The reason, as text.
    fn write(&self, place: Place, bytes: &[u8]) -> Result<(), String>;

    /// Fills a table of bytes with zeroes, durably.
    ///
    /// # Errors
    /// The reason, as text.
    fn clear(&self, table: ByteTable) -> Result<(), String>;

    /// Fills a buffer with random bytes for secrets.
    ///
    /// # Errors
    /// The reason, as text.
    fn random(&self, buffer: &mut [u8]) -> Result<(), String>;
}

/// Opal of a drive: its stored state, and where that is stored.
#[derive(Debug)]
pub struct OpalDrive {
    /// State as it was stored last.
    pub state: OpalState,
    /// Store of it.
    pub store: Arc<dyn OpalStore>,
}

/// Locks of a range of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LockedRange {
    from: u64,
    until: u64,
    refuses_reads: bool,
    refuses_writes: bool,
}

/// Locks that are in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Locks {
    /// In ascending order; they do not overlap.
    ranges: Vec<LockedRange>,
    /// Locks of what lies in no range.
    global: LockedRange,
    is_shadowed: bool,
}

impl Locks {
    /// The locks of a state.
    pub(crate) fn of(state: &OpalState) -> Self {
        let Some(locking) = &state.locking else { return Self::default() };
        let bytes = |blocks: u64| blocks.saturating_mul(locking.block_bytes.into());
        let locked = |it: &opal::Range| LockedRange {
            from: bytes(it.start),
            until: bytes(it.start.saturating_add(it.length)),
            refuses_reads: it.refuses_reads(),
            refuses_writes: it.refuses_writes(),
        };
        let mut ranges: Vec<LockedRange> =
            locking.ranges.iter().skip(1).filter(|it| it.length > 0).map(locked).collect();
        ranges.sort_unstable_by_key(|it| it.from);
        let global = locking.ranges.first().map(locked).unwrap_or_default();
        Self { ranges, global, is_shadowed: locking.is_shadowed() }
    }

    /// True if a lock refuses a part of these bytes.
    fn refuses(&self, offset: u64, length: u64, is_refused: fn(&LockedRange) -> bool) -> bool {
        let (mut at, end) = (offset, offset.saturating_add(length));
        for range in &self.ranges {
            if at >= end || range.from >= end {
                break;
            }
            if range.until <= at {
                continue;
            }
            if is_refused(range) || at < range.from && is_refused(&self.global) {
                return true;
            }
            at = range.until;
        }
        at < end && is_refused(&self.global)
    }
}

/// Locks of a drive, which change while it is served.
#[derive(Debug, Default)]
pub(crate) struct LockTable(RwLock<Locks>);

impl LockTable {
    /// Has other locks in force, once the commands that passed those before have ended.
    pub(crate) fn set(&self, locks: Locks) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = locks;
    }

    fn look(&self) -> RwLockReadGuard<'_, Locks> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A namespace behind the locks of its drive.
#[derive(Debug)]
pub(crate) struct LockedDevice {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) locks: Arc<LockTable>,
    pub(crate) store: Arc<dyn OpalStore>,
}

/// Answer to a read before it reaches the device.
enum Passage {
    /// The device answers.
    Device,
    /// The MBR shadow answers.
    Shadow,
}

impl LockedDevice {
    fn passage(&self, locks: &Locks, offset: u64, length: u64) -> Result<Passage, DeviceError> {
        self.device.check_range(offset, length)?;
        if locks.is_shadowed && offset < ByteTable::Mbr.size() {
            let is_within = length <= ByteTable::Mbr.size() - offset;
            return if is_within { Ok(Passage::Shadow) } else { Err(DeviceError::Locked) };
        }
        if locks.refuses(offset, length, |it| it.refuses_reads) {
            return Err(DeviceError::Locked);
        }
        Ok(Passage::Device)
    }

    fn read_as(&self, locks: &Locks, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        match self.passage(locks, offset, buffer.len() as u64)? {
            Passage::Device => self.device.read(offset, buffer),
            Passage::Shadow => {
                let place = Place { table: ByteTable::Mbr, offset };
                self.store.read(place, buffer).map_err(|reason| DeviceError::Medium {
                    attempted: "reading the MBR shadow".to_owned(),
                    source: std::io::Error::other(reason),
                })
            }
        }
    }

    /// Passes the locks with a command that changes what is stored.
    fn pass_to_change(
        &self,
        offset: u64,
        length: u64,
    ) -> Result<RwLockReadGuard<'_, Locks>, DeviceError> {
        self.device.check_range(offset, length)?;
        let locks = self.locks.look();
        let is_shadow = locks.is_shadowed && offset < ByteTable::Mbr.size() && length > 0;
        if is_shadow || locks.refuses(offset, length, |it| it.refuses_writes) {
            return Err(DeviceError::Locked);
        }
        Ok(locks)
    }
}

impl Device for LockedDevice {
    fn size(&self) -> u64 {
        self.device.size()
    }

    fn origin(&self) -> u64 {
        self.device.origin()
    }

    fn atomic_bytes(&self) -> u64 {
        self.device.atomic_bytes()
    }

    fn is_write_through(&self) -> bool {
        self.device.is_write_through()
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        let locks = self.locks.look();
        self.read_as(&locks, offset, buffer)
    }

    fn read_many(&self, reads: &mut [ReadPart<'_>]) -> Vec<Result<(), DeviceError>> {
        let locks = self.locks.look();
        let passes = |read: &ReadPart<'_>| {
            let passage = self.passage(&locks, read.offset, read.buffer.len() as u64);
            matches!(passage, Ok(Passage::Device))
        };
        if reads.iter().all(passes) {
            return self.device.read_many(reads);
        }
        reads.iter_mut().map(|read| self.read_as(&locks, read.offset, read.buffer)).collect()
    }

    fn write(&self, offset: u64, bytes: &[u8], durability: Durability) -> Result<(), DeviceError> {
        let _passed = self.pass_to_change(offset, bytes.len() as u64)?;
        self.device.write(offset, bytes, durability)
    }

    fn write_zeroes(
        &self,
        offset: u64,
        length: u64,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<bool, DeviceError> {
        let _passed = self.pass_to_change(offset, length)?;
        self.device.write_zeroes(offset, length, goes_on)
    }

    fn is_write_protected(&self) -> bool {
        self.device.is_write_protected()
    }

    /// Passes in any case: it changes nothing, and what was acknowledged before is to be durable.
    fn flush(&self) -> Result<(), DeviceError> {
        self.device.flush()
    }

    fn trim(&self, offset: u64, length: u64, durability: Durability) -> Result<(), DeviceError> {
        let _passed = self.pass_to_change(offset, length)?;
        self.device.trim(offset, length, durability)
    }

    /// Tells of what is locked, or lies behind the shadow, as if it were stored.
    fn allocations(&self, offset: u64, length: u64) -> Result<Vec<Allocation>, DeviceError> {
        let locks = self.locks.look();
        self.device.check_range(offset, length)?;
        match self.passage(&locks, offset, length) {
            Ok(Passage::Device) => self.device.allocations(offset, length),
            Ok(Passage::Shadow) | Err(_) if length > 0 => {
                Ok(vec![Allocation { length, is_stored: true }])
            }
            _ => Ok(Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(from: u64, until: u64, refuses_reads: bool) -> LockedRange {
        LockedRange { from, until, refuses_reads, refuses_writes: false }
    }

    #[test]
    fn a_command_is_refused_if_a_lock_has_a_part_of_it() {
        let mut locks = Locks {
            ranges: vec![range(100, 200, true), range(200, 300, false), range(400, 500, true)],
            ..Locks::default()
        };
        let found = |locks: &Locks, from: u64, until: u64| {
            locks.refuses(from, until - from, |it| it.refuses_reads)
        };
        for (from, until, expected) in [
            (0, 100, false),
            (0, 101, true),
            (199, 200, true),
            (200, 400, false),
            (250, 401, true),
            (499, 600, true),
            (500, 600, false),
            (150, 150, false),
        ] {
            assert_eq!(found(&locks, from, until), expected, "{from} to {until}");
        }
        locks.global.refuses_reads = true;
        for (from, until, expected) in
            [(0, 1, true), (200, 300, false), (200, 301, true), (99, 200, true), (600, 601, true)]
        {
            assert_eq!(found(&locks, from, until), expected, "{from} to {until}");
        }
    }
}
