//! Looking after what is stored: a scrub, and dies that fail and are replaced, while the host goes
//! on.

use std::io;

use ftl::Lpn;

use crate::core::Core;
use crate::dies::medium_error;
use crate::drive::Drive;
use crate::journal::Scope;
use crate::layout::{PAGE_BYTES, Place, STAMP_BYTES};
use crate::store::{Store, Stored};
use crate::unit::{self, Entry, Stamp};
use crate::{DeviceError, Medium};

/// What a scrub found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// Rows that were looked at.
    pub rows: u64,
    /// Units that were not what had been programmed.
    pub units_bad: u64,
    /// How many of them were written again from the others of their row.
    pub units_restored: u64,
    /// Sectors, in steps of eight, of pages that cannot be read any more.
    pub lost_lbas: Vec<u64>,
}

impl Drive {
    /// Reads everything that is stored, parity too, and says what is not as it was written; where
    /// `repair` is set, writes it again from the rest of its row.
    ///
    /// # Errors
    /// [`DeviceError::Poisoned`], [`DeviceError::Medium`].
    pub fn scrub(&self, repair: bool) -> Result<Scrubbed, DeviceError> {
        let mut found = Scrubbed::default();
        for row in 0..self.store().layout.shape.rows_total() {
            let order = self.core()?.rows[row as usize];
            if order == 0 {
                continue;
            }
            found.rows += 1;
            let bad = self.store().bad_units(row, order);
            if bad.is_empty() {
                continue;
            }
            // Again, with nothing moving: the row may have been erased meanwhile.
            let core = self.core_mut()?;
            if core.rows[row as usize] != order {
                continue;
            }
            for position in self.store().bad_units(row, order) {
                found.units_bad += 1;
                if repair && self.store().restore_unit(row, position, order).is_ok() {
                    found.units_restored += 1;
                }
            }
            self.list_lost(&core, row, &mut found.lost_lbas);
        }
        if found.units_restored > 0 {
            self.sync_healthy()?;
        }
        Ok(found)
    }

    /// Notes pages of a row that neither their places nor their stripe give back.
    fn list_lost(&self, core: &Core, row: u32, lost: &mut Vec<u64>) {
        let store = self.store();
        let row_order = core.rows[row as usize];
        for unit in 0..store.layout.shape.data_units() {
            for slot in 0..store.layout.unit_slots {
                let ppn = store.layout.ppn(Place { row, unit, slot });
                let Some(Lpn(lpn)) = core.ftl.logical(ppn) else { continue };
                let stored = Stored { ppn, row_order };
                let found = store.read_extent(stored).or_else(|| store.reconstruct_extent(stored));
                if found.is_none() {
                    lost.push(u64::from(lpn) * (PAGE_BYTES as u64 / blockio::SECTOR_BYTES));
                }
            }
        }
    }

    /// Goes on without a die.
    ///
    /// # Errors
    /// [`DeviceError::Unreadable`] is never returned here; [`DeviceError::Medium`] where the drive
    /// cannot do without it, and then nothing was changed.
    pub fn fail_die(&self, die: usize) -> Result<(), DeviceError> {
        let dies = &self.store().dies;
        if die >= dies.count() || !dies.can_lose(die) {
            let refused = "the drive cannot do without it";
            return Err(medium_error(format!("failing die {die}"))(io::Error::other(refused)));
        }
        {
            let _still = self.core_mut()?;
            dies.lose(die);
        }
        self.keep_header()
    }

    /// Puts an empty medium in the place of a die that has failed, and restores what belongs there
    /// while the host goes on. Until that has ended, the die counts as failed after a crash.
    ///
    /// # Errors
    /// [`DeviceError::Medium`] where the die has not failed, or the medium is too small or fails.
    pub fn replace_die(&self, die: usize, medium: Box<dyn Medium>) -> Result<(), DeviceError> {
        let store = self.store();
        let refuse =
            |why: String| Err(medium_error(format!("replacing die {die}"))(io::Error::other(why)));
        if !store.dies.lost().has(die) {
            return refuse("it has not failed".to_owned());
        }
        let (size, needed) = (medium.size(), store.layout.die_bytes());
        if size < needed {
            return refuse(format!("the medium has {size} bytes, {needed} are needed"));
        }
        {
            let core = self.core_mut()?;
            store.dies.fill(die, medium);
            core.program_again(store, die).map_err(medium_error(format!(
                "writing rows that are being filled to die {die}"
            )))?;
        }
        let index = u32::try_from(die).expect("at most 64 dies");
        for row in 0..store.layout.shape.rows_total() {
            // Nothing moves while a unit is restored, or it might overwrite what is newer.
            let core = self.core_mut()?;
            let order = core.rows[row as usize];
            if order != 0 {
                let position = store.layout.position(row, index);
                store
                    .restore_unit(row, position, order)
                    .map_err(medium_error(format!("restoring row {row} of die {die}")))?;
            }
        }
        self.commit(Scope::Everything)?;
        self.sync_healthy()?;
        store.dies.settle(die);
        self.keep_header()?;
        self.checkpoint()
    }

    fn sync_healthy(&self) -> Result<(), DeviceError> {
        let dies = &self.store().dies;
        for die in dies.healthy() {
            dies.sync(die).map_err(medium_error(format!("syncing die {die}")))?;
        }
        Ok(())
    }
}

impl Core {
    /// Writes the units of unfinished rows that belong on a die and were programmed without it.
    fn program_again(&self, store: &Store, die: usize) -> io::Result<()> {
        let index = u32::try_from(die).expect("at most 64 dies");
        for open in &self.open {
            let position = store.layout.position(open.row, index) as usize;
            let Some(unit) = open.units.get(position) else { continue };
            if Stamp::parse(&unit.bytes).is_some() {
                store.dies.write(die, store.layout.unit_from(open.row), &unit.bytes)?;
            }
        }
        Ok(())
    }
}

impl Store {
    /// The units of a row that are not what was programmed.
    fn bad_units(&self, row: u32, order: u64) -> Vec<u32> {
        let lost = self.dies.lost();
        (0..self.layout.shape.dies)
            .filter(|position| !lost.has(self.layout.die(row, *position)))
            .filter(|position| !self.is_whole(row, *position, order))
            .collect()
    }

    fn is_parity(&self, position: u32) -> bool {
        self.layout.shape.is_protected && position + 1 == self.layout.shape.dies
    }

    fn is_whole(&self, row: u32, position: u32, order: u64) -> bool {
        let mut unit = vec![0; self.layout.unit_bytes];
        let die = self.layout.die(row, position);
        if self.dies.read(die, self.layout.unit_from(row), &mut unit).is_err() {
            return false;
        }
        let Some(stamp) = Stamp::parse(&unit) else { return false };
        let is_own = (stamp.row, stamp.position) == (row, position)
            && stamp.identity == self.identity(order)
            && stamp.is_parity == self.is_parity(position);
        is_own && self.is_right(&unit, &stamp)
    }

    /// Whether what follows a stamp is what was programmed with it.
    fn is_right(&self, unit: &[u8], stamp: &Stamp) -> bool {
        if stamp.is_parity {
            return crc32c::crc32c(&unit[STAMP_BYTES..]) == stamp.body_crc;
        }
        let (row, position) = (stamp.row, stamp.position);
        let Some((_, table)) = unit::table(unit, stamp.identity, self.first(row, position)) else {
            return false;
        };
        let is_there = |(slot, entry): (u32, &Entry)| {
            let ppn = self.layout.ppn(Place { row, unit: position, slot });
            unit::extent_in(unit, entry.from, stamp.identity, ppn).is_some()
        };
        (0..).zip(&table).all(is_there)
    }

    /// Writes a unit again, from the others of its row; it is durable once its die is synced.
    ///
    /// # Errors
    /// When they do not give it back, or it cannot be written.
    fn restore_unit(&self, row: u32, position: u32, order: u64) -> io::Result<()> {
        let mut unit = vec![0; self.layout.unit_bytes];
        self.reconstruct(row, position, STAMP_BYTES, &mut unit[STAMP_BYTES..])?;
        let others = (0..self.layout.shape.dies).filter(|other| *other != position);
        let stamps = others.filter_map(|other| {
            let mut stamp = [0; STAMP_BYTES];
            let die = self.layout.die(row, other);
            self.dies.read(die, self.layout.unit_from(row), &mut stamp).ok()?;
            Stamp::parse(&stamp).filter(|stamp| stamp.identity == self.identity(order))
        });
        let programmed_at = stamps.map(|stamp| stamp.programmed_at).max().unwrap_or(order);
        let is_parity = self.is_parity(position);
        let body_crc = if is_parity { crc32c::crc32c(&unit[STAMP_BYTES..]) } else { 0 };
        let identity = self.identity(order);
        let stamp = Stamp { is_parity, row, position, identity, programmed_at, body_crc };
        stamp.write(&mut unit);
        let others_are_right = || {
            let mut data = (0..self.layout.shape.data_units()).filter(|other| *other != position);
            data.all(|other| self.is_whole(row, other, order))
        };
        // Parity has no checksum but what it is made of.
        if is_parity && !others_are_right() || !self.is_right(&unit, &stamp) {
            return Err(io::Error::other("more than one unit of the row is bad"));
        }
        self.dies.write(self.layout.die(row, position), self.layout.unit_from(row), &unit)
    }
}
