//! Looking after what is stored: a scrub, and dies that fail and are replaced, while the host goes
//! on.

use std::io;

use ftl::{Ftl, Lpn, Ppn};

use crate::core::Core;
use crate::dies::medium_error;
use crate::drive::Drive;
use crate::journal::Scope;
use crate::layout::{PAGE_BYTES, Place, STAMP_BYTES};
use crate::row::Life;
use crate::status::{Rebuild, Scrub};
use crate::store::{Member, Store, Stored};
use crate::unit::{self, Codec, Entry, Extent, Stamp};
use crate::{DeviceError, Medium};

/// Most lost sectors that the status of a scrub names.
const LBAS_TOLD_MAX: usize = 1000;
/// Why work ended that somebody stopped.
const STOPPED: &str = "it was stopped";

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
        self.scrub_while(repair, |_, _| true)
    }

    /// As [`Drive::scrub`], for as long as `go_on` says so, which is told before each row how many
    /// rows of how many have been gone through. [`Drive::status`] tells how far it is.
    ///
    /// # Errors
    /// As [`Drive::scrub`].
    pub fn scrub_while(
        &self,
        repair: bool,
        go_on: impl FnMut(u64, u64) -> bool,
    ) -> Result<Scrubbed, DeviceError> {
        let rows = u64::from(self.store().layout.shape.rows_total());
        self.upkeep().scrub = Some(Scrub { is_running: true, rows, ..Scrub::default() });
        let scrubbed = self.scrub_rows(repair, go_on);
        if let Some(scrub) = &mut self.upkeep().scrub {
            scrub.is_running = false;
            scrub.failure = match &scrubbed {
                Ok(_) if scrub.rows_done < rows => Some(STOPPED.to_owned()),
                Ok(_) => None,
                Err(error) => Some(error.to_string()),
            };
        }
        scrubbed
    }

    fn scrub_rows(
        &self,
        repair: bool,
        mut go_on: impl FnMut(u64, u64) -> bool,
    ) -> Result<Scrubbed, DeviceError> {
        let mut found = Scrubbed::default();
        let rows = self.store().layout.shape.rows_total();
        for row in 0..rows {
            if !go_on(row.into(), rows.into()) {
                break;
            }
            self.scrub_row(row, repair, &mut found)?;
            if let Some(scrub) = &mut self.upkeep().scrub {
                scrub.rows_done = u64::from(row) + 1;
                (scrub.units_bad, scrub.units_restored) = (found.units_bad, found.units_restored);
                let told = scrub.lost_lbas.len();
                let untold = found.lost_lbas.iter().skip(told).take(LBAS_TOLD_MAX - told);
                scrub.lost_lbas.extend(untold);
            }
        }
        if found.units_restored > 0 {
            self.sync_healthy()?;
        }
        Ok(found)
    }

    fn scrub_row(&self, row: u32, repair: bool, found: &mut Scrubbed) -> Result<(), DeviceError> {
        let life = self.core()?.rows.life(row);
        if life.order == 0 {
            return Ok(());
        }
        found.rows += 1;
        if self.store().bad_units(row, life).is_empty() {
            return Ok(());
        }
        // Again, with nothing moving: the row may have been erased meanwhile.
        let core = self.core_mut()?;
        if core.rows.life(row) != life {
            return Ok(());
        }
        for position in self.store().bad_units(row, life) {
            found.units_bad += 1;
            let member = Member { row, position, life };
            if repair && self.store().restore_unit(member).is_ok() {
                found.units_restored += 1;
            }
        }
        let lost = self.store().lost_pages(&core.ftl, row, life);
        found.lost_lbas.extend(lost.into_iter().map(lba));
        Ok(())
    }

    /// Goes on without a die.
    ///
    /// # Errors
    /// [`DeviceError::Unreadable`] is never returned here; [`DeviceError::Medium`] where the drive
    /// cannot do without it, and then nothing was changed.
    pub fn fail_die(&self, die: usize) -> Result<(), DeviceError> {
        let dies = &self.store().dies;
        let is_lost = {
            let _still = self.core_mut()?;
            die < dies.count() && dies.lose(die)
        };
        if !is_lost {
            let refused = "the drive cannot do without it";
            return Err(medium_error(format!("failing die {die}"))(io::Error::other(refused)));
        }
        self.keep_header()
    }

    /// Puts an empty medium in the place of a die that has failed, and restores what belongs there
    /// while the host goes on. Until that has ended, the die counts as failed after a crash.
    ///
    /// # Errors
    /// [`DeviceError::Medium`] where the die has not failed, or the medium is too small or fails.
    pub fn replace_die(&self, die: usize, medium: Box<dyn Medium>) -> Result<(), DeviceError> {
        self.replace_die_while(die, medium, |_, _| true)
    }

    /// As [`Drive::replace_die`], for as long as `go_on` says so, which is told before each row how
    /// many rows of how many have been gone through. [`Drive::status`] tells how far it is.
    ///
    /// # Errors
    /// As [`Drive::replace_die`], and when it was stopped; then the die counts as failed.
    pub fn replace_die_while(
        &self,
        die: usize,
        medium: Box<dyn Medium>,
        go_on: impl FnMut(u64, u64) -> bool,
    ) -> Result<(), DeviceError> {
        let store = self.store();
        let refuse = |why: String| Err(replacing(die)(io::Error::other(why)));
        if die >= store.dies.count() || !store.dies.lost().has(die) {
            return refuse("it has not failed".to_owned());
        }
        let (size, needed) = (medium.size(), store.layout.die_bytes());
        if size < needed {
            return refuse(format!("the medium has {size} bytes, {needed} are needed"));
        }
        let (rows, index) = (u64::from(store.layout.shape.rows_total()), die_number(die));
        let begun = Rebuild { die: index, is_running: true, rows, ..Rebuild::default() };
        self.upkeep().rebuild = Some(begun);
        let filled = self.fill_die(die, medium, go_on);
        if filled.is_err() && store.dies.incomplete().has(die) {
            let _still = self.core_mut()?;
            store.dies.lose(die);
        }
        if let Some(rebuild) = &mut self.upkeep().rebuild {
            rebuild.is_running = false;
            rebuild.failure = filled.as_ref().err().map(ToString::to_string);
        }
        filled
    }

    fn fill_die(
        &self,
        die: usize,
        medium: Box<dyn Medium>,
        mut go_on: impl FnMut(u64, u64) -> bool,
    ) -> Result<(), DeviceError> {
        let store = self.store();
        {
            let core = self.core_mut()?;
            store.dies.fill(die, medium);
            core.program_again(store, die).map_err(medium_error(format!(
                "writing rows that are being filled to die {die}"
            )))?;
        }
        let rows = store.layout.shape.rows_total();
        let mut units_lost = 0;
        for row in 0..rows {
            if !go_on(row.into(), rows.into()) {
                return Err(replacing(die)(io::Error::other(STOPPED)));
            }
            // Nothing moves while a unit is restored, or it might overwrite what is newer.
            let core = self.core_mut()?;
            let life = core.rows.life(row);
            let position = store.layout.position(row, die, life.out);
            if let Some(position) = position.filter(|_| life.order != 0) {
                match store.restored_unit(Member { row, position, life }) {
                    Ok(unit) => store
                        .dies
                        .write(die, store.layout.unit_from(row), &unit)
                        .map_err(medium_error(format!("restoring row {row} of die {die}")))?,
                    // What the others do not give back is lost with or without this die.
                    Err(_) => units_lost += 1,
                }
            }
            drop(core);
            if let Some(rebuild) = &mut self.upkeep().rebuild {
                (rebuild.rows_done, rebuild.units_lost) = (u64::from(row) + 1, units_lost);
            }
        }
        self.commit(Scope::Everything)?;
        self.sync_healthy()?;
        store.dies.settle(die);
        self.keep_header()?;
        self.checkpoint()
    }

    /// Makes durable what was written to any die.
    pub(crate) fn sync_healthy(&self) -> Result<(), DeviceError> {
        let dies = &self.store().dies;
        for die in dies.healthy() {
            dies.sync(die).map_err(medium_error(format!("syncing die {die}")))?;
        }
        Ok(())
    }
}

fn die_number(die: usize) -> u32 {
    u32::try_from(die).expect("at most 64 dies")
}

fn replacing(die: usize) -> impl FnOnce(io::Error) -> DeviceError {
    medium_error(format!("replacing die {die}"))
}

impl Core {
    /// Writes the units of unfinished rows that belong on a die and were programmed without it.
    fn program_again(&self, store: &Store, die: usize) -> io::Result<()> {
        for open in &self.open {
            let position = store.layout.position(open.row, die, open.out);
            let unit = position.and_then(|position| open.units.get(position as usize));
            let Some(unit) = unit else { continue };
            if Stamp::parse(&unit.bytes).is_some() {
                store.dies.write(die, store.layout.unit_from(open.row), &unit.bytes)?;
            }
        }
        Ok(())
    }
}

/// The first sector of a page.
pub(crate) fn lba(page: Lpn) -> u64 {
    u64::from(page.0) * (PAGE_BYTES as u64 / blockio::SECTOR_BYTES)
}

impl Store {
    /// Pages of a row that neither their places nor their stripe give back.
    pub(crate) fn lost_pages(&self, ftl: &Ftl, row: u32, life: Life) -> Vec<Lpn> {
        let slots = 0..self.layout.unit_slots;
        let all = (0..self.layout.data_units(life.out))
            .flat_map(|unit| slots.clone().map(move |slot| Place { row, unit, slot }))
            .map(|place| self.layout.ppn(place));
        let is_lost = |ppn: &Ppn| {
            let stored = Stored { ppn: *ppn, life };
            let is_it = |(extent, _): &(Extent, Vec<u8>)| {
                ftl.is_at(extent.lpn, *ppn) && extent.codec != Codec::Lost
            };
            let found = self.read_extent(stored).filter(is_it);
            found.or_else(|| self.reconstruct_extent(stored).filter(is_it)).is_none()
        };
        let mut lost: Vec<Ppn> = all.filter(|ppn| ftl.is_valid(*ppn)).filter(is_lost).collect();
        lost.sort_unstable();
        ftl.pages_at(&lost).into_iter().map(|(lpn, _)| lpn).collect()
    }

    /// The units of a row that are not what was programmed.
    fn bad_units(&self, row: u32, life: Life) -> Vec<u32> {
        let lost = self.dies.lost();
        self.layout
            .positions(life.out)
            .filter(|position| !lost.has(self.layout.die(row, *position, life.out)))
            .filter(|position| self.whole_unit(Member { row, position: *position, life }).is_none())
            .collect()
    }

    /// A unit with its stamp, if all of it is what was programmed.
    pub(crate) fn whole_unit(&self, member: Member) -> Option<(Stamp, Vec<u8>)> {
        let Member { row, position, life } = member;
        let mut unit = vec![0; self.layout.unit_bytes];
        let die = self.layout.die(row, position, life.out);
        self.dies.read(die, self.layout.unit_from(row), &mut unit).ok()?;
        let stamp = Stamp::parse(&unit)?;
        let is_own = (stamp.row, stamp.position, stamp.out) == (row, position, life.out)
            && stamp.identity == self.identity(life.order)
            && stamp.is_parity == self.layout.is_parity(position);
        (is_own && self.is_right(&unit, &stamp)).then_some((stamp, unit))
    }

    /// Whether what follows a stamp is what was programmed with it.
    fn is_right(&self, unit: &[u8], stamp: &Stamp) -> bool {
        if stamp.is_parity {
            return crc32c::crc32c(&unit[STAMP_BYTES..]) == stamp.body_crc;
        }
        let (row, position) = (stamp.row, stamp.position);
        let first = self.first(row, position);
        let Some((_, table)) = unit::table(&self.layout, unit, stamp.identity, first) else {
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
    fn restore_unit(&self, member: Member) -> io::Result<()> {
        let unit = self.restored_unit(member)?;
        let Member { row, position, life } = member;
        let die = self.layout.die(row, position, life.out);
        self.dies.write(die, self.layout.unit_from(row), &unit)
    }

    /// A unit as the others of its row give it back.
    ///
    /// # Errors
    /// When they do not.
    pub(crate) fn restored_unit(&self, member: Member) -> io::Result<Vec<u8>> {
        if !self.layout.shape.is_protected {
            return Err(io::Error::other("the drive has no parity"));
        }
        let Member { row, position, life } = member;
        let mut unit = vec![0; self.layout.unit_bytes];
        self.reconstruct(member, STAMP_BYTES, &mut unit[STAMP_BYTES..])?;
        let others = self.layout.positions(life.out).filter(|other| *other != position);
        let stamps = others.clone().filter_map(|other| {
            let mut stamp = [0; STAMP_BYTES];
            let die = self.layout.die(row, other, life.out);
            self.dies.read(die, self.layout.unit_from(row), &mut stamp).ok()?;
            Stamp::parse(&stamp).filter(|stamp| stamp.identity == self.identity(life.order))
        });
        let programmed_at = stamps.map(|stamp| stamp.programmed_at).max().unwrap_or(life.order);
        let is_parity = self.layout.is_parity(position);
        let body_crc = if is_parity { crc32c::crc32c(&unit[STAMP_BYTES..]) } else { 0 };
        let (identity, out) = (self.identity(life.order), life.out);
        let stamp = Stamp { is_parity, row, position, identity, programmed_at, body_crc, out };
        stamp.write(&mut unit);
        let mut others = others;
        let mut others_are_right =
            || others.all(|position| self.whole_unit(Member { position, ..member }).is_some());
        // Parity has no checksum but what it is made of.
        if is_parity && !others_are_right() || !self.is_right(&unit, &stamp) {
            return Err(io::Error::other("more than one unit of the row is bad"));
        }
        Ok(unit)
    }
}
