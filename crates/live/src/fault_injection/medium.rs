//! Media that lose unsynced data, fail, flip bits and stall.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use blockio::Rng;

use super::FaultInjector;
use crate::lock::lock;
use crate::{HostSpace, Medium};

const SECTOR_BYTES: usize = 512;
/// Most sectors of a die of which it is known what they were.
const SECTORS_MAX: usize = 1 << 17;
/// Bytes among which a bit that holds something is looked for, and how often.
const LOOK_BYTES: usize = 4096;
const LOOKS_MAX: u32 = 4096;

type Sector = [u8; SECTOR_BYTES];

/// One die.
#[derive(Debug)]
pub(super) struct InjectedDie {
    medium: Box<dyn Medium>,
    state: Mutex<InjectedState>,
}

#[derive(Debug, Default)]
struct InjectedState {
    has_failed: bool,
    has_lost_power: bool,
    /// Ranges of which reads fail.
    failing: Vec<Range<u64>>,
    /// By its number, what a sector held before it was written since the last sync.
    before: BTreeMap<u64, Sector>,
    /// Numbers of these sectors, in the order in which they were written.
    seq: VecDeque<u64>,
}

impl InjectedState {
    fn check(&self) -> io::Result<()> {
        match (self.has_failed, self.has_lost_power) {
            (true, _) => Err(io::Error::other("the die has been made to fail")),
            (_, true) => Err(io::Error::other("the power has been cut")),
            _ => Ok(()),
        }
    }

    /// As [`InjectedState::check`], of a read of so many bytes.
    fn check_read(&self, offset: u64, length: usize) -> io::Result<()> {
        self.check()?;
        let end = offset + length as u64;
        if self.failing.iter().any(|range| range.start < end && offset < range.end) {
            return Err(io::Error::other("the range has been made to fail"));
        }
        Ok(())
    }

    /// Keeps what the sectors hold that are about to be written, where that is durable.
    fn remember(&mut self, medium: &dyn Medium, offset: u64, length: usize) -> io::Result<()> {
        let sector_bytes = SECTOR_BYTES as u64;
        let sectors = offset / sector_bytes..(offset + length as u64).div_ceil(sector_bytes);
        if sectors.clone().all(|sector| self.before.contains_key(&sector)) {
            return Ok(());
        }
        let count = usize::try_from(sectors.end - sectors.start).expect("a write");
        let mut held = vec![0; count * SECTOR_BYTES];
        medium.read_at(sectors.start * sector_bytes, &mut held)?;
        for (sector, held) in sectors.zip(held.as_chunks::<SECTOR_BYTES>().0) {
            if let Entry::Vacant(free) = self.before.entry(sector) {
                free.insert(*held);
                self.seq.push_back(sector);
            }
        }
        Ok(())
    }
}

/// A die whose power is gone.
#[derive(Debug)]
pub(super) struct HaltedMedium<'a> {
    medium: &'a dyn Medium,
    state: MutexGuard<'a, InjectedState>,
}

impl HaltedMedium<'_> {
    /// Of each sector that was not synced, leaves the old, the new, or part of both. One that
    /// cannot be written keeps none of the others from it.
    pub(super) fn lose(&mut self, rng: &mut Rng) -> io::Result<()> {
        // Whole writes often share their fate; not always.
        let bias = rng.below(3);
        let mut done = Ok(());
        for (sector, before) in std::mem::take(&mut self.state.before) {
            let lost = match (bias, rng.below(8)) {
                (0, 1..) | (2, 0..3) => 0,
                (1, 1..) | (2, 3..6) => SECTOR_BYTES,
                _ => usize::try_from(rng.below(SECTOR_BYTES as u64)).expect("an index"),
            };
            if lost > 0 {
                let written = self.medium.write_at(sector * SECTOR_BYTES as u64, &before[..lost]);
                done = done.and(written);
            }
        }
        self.state.seq.clear();
        done
    }
}

impl InjectedDie {
    pub(super) fn new(medium: Box<dyn Medium>) -> Self {
        Self { medium, state: Mutex::default() }
    }

    pub(super) fn fail(&self) {
        lock(&self.state).has_failed = true;
    }

    /// Fails reads of a range from now on.
    pub(super) fn fail_range(&self, range: Range<u64>) {
        lock(&self.state).failing.push(range);
    }

    /// Takes no more commands, since the power is gone.
    pub(super) fn halt(&self) -> HaltedMedium<'_> {
        let mut state = lock(&self.state);
        state.has_lost_power = true;
        HaltedMedium { medium: &*self.medium, state }
    }

    /// Flips a bit of something that is not zero, as far as that is found.
    pub(super) fn flip_bit(&self, rng: &mut Rng) -> io::Result<()> {
        // Nothing may be written over what is looked at.
        let _state = lock(&self.state);
        let blocks = self.medium.size() / LOOK_BYTES as u64;
        let mut block = vec![0; LOOK_BYTES];
        for _ in 0..LOOKS_MAX {
            let from = rng.below(blocks.max(1)) * LOOK_BYTES as u64;
            self.medium.read_at(from, &mut block)?;
            if block.iter().any(|byte| *byte != 0) {
                let at = usize::try_from(rng.below(LOOK_BYTES as u64)).expect("an index");
                let flipped = block[at] ^ 1 << rng.below(8);
                return self.medium.write_at(from + at as u64, &[flipped]);
            }
        }
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.check()?;
        if bytes.is_empty() {
            return Ok(());
        }
        state.remember(&*self.medium, offset, bytes.len())?;
        while state.before.len() > SECTORS_MAX {
            let Some(oldest) = state.seq.pop_front() else { break };
            state.before.remove(&oldest);
        }
        self.medium.write_at(offset, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.check()?;
        self.medium.sync()?;
        state.before.clear();
        state.seq.clear();
        Ok(())
    }
}

/// A die as its drive sees it.
#[derive(Debug)]
pub(super) struct InjectingMedium {
    die: Arc<InjectedDie>,
    injector: Arc<FaultInjector>,
}

impl InjectingMedium {
    pub(super) fn new(die: Arc<InjectedDie>, injector: Arc<FaultInjector>) -> Self {
        Self { die, injector }
    }
}

impl Medium for InjectingMedium {
    fn size(&self) -> u64 {
        self.die.medium.size()
    }

    fn lengthen(&self, size: u64) -> io::Result<()> {
        lock(&self.die.state).check()?;
        self.die.medium.lengthen(size)
    }

    fn host_space(&self) -> Option<HostSpace> {
        self.die.medium.host_space()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.injector.wait();
        lock(&self.die.state).check_read(offset, buffer.len())?;
        self.die.medium.read_at(offset, buffer)
    }

    fn read_vectored_at(&self, offset: u64, buffers: &mut [IoSliceMut<'_>]) -> io::Result<()> {
        self.injector.wait();
        let length = buffers.iter().map(|buffer| buffer.len()).sum();
        lock(&self.die.state).check_read(offset, length)?;
        self.die.medium.read_vectored_at(offset, buffers)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.injector.wait();
        self.die.write(offset, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.injector.wait();
        self.die.sync()
    }
}
