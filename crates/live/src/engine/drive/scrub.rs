//! Looking after what is stored: a scrub, and dies that fail and are replaced, while the host goes
//! on.

mod bad_places;
mod catching_up;
mod copies;
mod suspects;

use std::io;
use std::thread;
use std::time::Duration;

use device::DeviceError;
use ftl::Lpn;
use status::{Damage, DamageOutcome, FoundBy, Rebuild, Scrub};

use self::bad_places::{find_fault, is_spared, note_fault};
pub(crate) use self::catching_up::{HeldUnits, MediumAndUnits};
use crate::Medium;
use crate::engine::core::Core;
use crate::engine::dies::erasure::{STOPPED, erase_around};
use crate::engine::dies::{die_number, medium_error, now_unix_s, sync_failed};
use crate::engine::drive::Drive;
use crate::engine::log::journal::Scope;
use crate::engine::store::Store;
use crate::format::die_set::DieSet;
use crate::format::layout::{self, PAGE_BYTES};
use crate::format::row::{Member, RowEpoch};
use crate::format::unit::UnitBuffer;

/// Most lost sectors that the status of a scrub names.
const LBAS_TOLD_MAX: usize = 1000;
/// Looks whether requests to a medium that was given up have ended, and the pause before each.
const LEAVING_TRIES: u32 = 100;
const LEAVING_PAUSE: Duration = Duration::from_millis(10);

/// Result of a scrub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubResult {
    /// Rows that were looked at.
    pub rows: u64,
    /// Units that were not what had been programmed.
    pub units_bad: u64,
    /// Bad units that were rewritten from the others of their row.
    pub units_restored: u64,
    /// Bad units that their row does not restore, and that hold no page that can be read any more.
    pub units_vacated: u64,
    /// Pages that were moved from rows with such units, so that they are protected again.
    pub pages_moved: u64,
    /// Sectors, in steps of eight, of pages that cannot be read any more.
    pub lost_lbas: Vec<u64>,
    /// Copies of headers, of the checkpoint and of batches of the journal that were not whole.
    pub copies_bad: u64,
    /// Bad copies that were written again.
    pub copies_restored: u64,
    /// Damage that was found, the first of it, and what became of it.
    pub damage: Vec<Damage>,
}

/// Fate of a row's unit on a die that is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filling {
    /// There before, and left.
    Held,
    /// There now, as far as the row has one.
    Restored,
    /// Given back by no other units of the row.
    Lost,
}

/// Places of damage that are kept of a scrub, or until the server takes them.
const DAMAGE_MAX: usize = 1000;

impl ScrubResult {
    fn note(&mut self, damage: Damage) {
        if self.damage.len() < DAMAGE_MAX {
            self.damage.push(damage);
        }
    }
}

impl Drive {
    /// Verifies every byte of every row that is stored, parity too, and every copy of the headers,
    /// of the checkpoint and of what is needed of the journal. Where `repair` is set, writes again
    /// what is not right, from the rest of its row or the other copy, and moves what can be read
    /// away from units that the rest does not give back. What cannot be read stays where it is.
    ///
    /// # Errors
    /// [`DeviceError::Poisoned`], [`DeviceError::Medium`].
    pub fn scrub(&self, repair: bool) -> Result<ScrubResult, DeviceError> {
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
    ) -> Result<ScrubResult, DeviceError> {
        self.scrub_for(None, repair, go_on)
    }

    /// As [`Drive::scrub_while`], begun since reads found too much damage on a die.
    pub(crate) fn scrub_for(
        &self,
        for_die: Option<usize>,
        repair: bool,
        go_on: impl FnMut(u64, u64) -> bool,
    ) -> Result<ScrubResult, DeviceError> {
        let rows = u64::from(self.store().layout.shape.rows_total());
        let for_die = for_die.map(die_number);
        let scrub = Scrub { is_running: true, rows, for_die, ..Scrub::default() };
        let mut maintenance = self.maintenance();
        maintenance.scrubs.for_damage += u64::from(for_die.is_some());
        maintenance.scrub = Some(scrub);
        drop(maintenance);
        let scrubbed = self.scrub_rows(repair, go_on);
        let dies = &self.store().dies;
        let away = scrubbed.as_ref().err().map(|_| DieSet(dies.lost().0 | dies.unresponsive().0));
        let mut maintenance = self.maintenance();
        let is_whole = maintenance.scrub.as_ref().is_some_and(|scrub| scrub.rows_done == rows);
        match &scrubbed {
            Ok(_) if is_whole => {
                maintenance.end_scrub(None, false);
            }
            Ok(_) => maintenance.end_scrub(Some(STOPPED.to_owned()), true),
            Err(error) => maintenance.end_scrub(Some(error.to_string()), false),
        }
        if let Some(away) = away {
            maintenance.scrubs.away = away.iter().collect();
        }
        drop(maintenance);
        scrubbed
    }

    /// Bytes of the dies that the scrub which is under way has gone through, or the last one, and
    /// the corrupt units that it found.
    pub(crate) fn scrub_progress(&self) -> (u64, u64) {
        let maintenance = self.maintenance();
        maintenance.scrub.as_ref().map_or((0, 0), |scrub| (scrub.bytes_read, scrub.units_bad))
    }

    /// True if all rows have all of their units, and nothing but a scrub goes through them.
    pub(crate) fn is_settled(&self) -> bool {
        let maintenance = self.maintenance();
        let is_busy = maintenance.rebuild.as_ref().is_some_and(|it| it.is_running)
            || maintenance.redundancy.as_ref().is_some_and(|it| it.is_running)
            || maintenance.purge.as_ref().is_some_and(|it| it.is_running);
        !is_busy && self.is_redundant()
    }

    /// True if all dies that have not failed respond to reads.
    pub(crate) fn all_dies_respond(&self) -> bool {
        self.store().dies.unresponsive() == DieSet::default()
    }

    fn scrub_rows(
        &self,
        repair: bool,
        mut go_on: impl FnMut(u64, u64) -> bool,
    ) -> Result<ScrubResult, DeviceError> {
        let mut found = ScrubResult::default();
        let rows = self.store().layout.shape.rows_total();
        if repair {
            // What lies on the media of a row that is begun cannot be compared with its parity. It
            // is read from memory until the row is complete, and no scrub would look at it then.
            self.act(Core::finish_rows)?;
        }
        // First, since what protects all others is shortest.
        self.scrub_copies(repair, &mut found)?;
        // A row that cannot be read ends the scrub, and these have been written again.
        self.store().suspects.tell(&found.damage);
        let told = found.damage.len();
        for row in 0..rows {
            if !go_on(row.into(), rows.into()) {
                break;
            }
            self.scrub_row(row, repair, &mut found)?;
            if repair {
                self.store().suspects.forget(row);
            }
            self.tell_lost()?;
            if let Some(scrub) = &mut self.maintenance().scrub {
                scrub.rows_done = u64::from(row) + 1;
                scrub.bytes_read = found.rows * self.store().layout.row_bytes();
                (scrub.units_bad, scrub.units_restored) = (found.units_bad, found.units_restored);
                (scrub.units_vacated, scrub.pages_moved) = (found.units_vacated, found.pages_moved);
                (scrub.copies_bad, scrub.copies_restored) =
                    (found.copies_bad, found.copies_restored);
                scrub.pages_lost = found.lost_lbas.len() as u64;
                let told = scrub.lost_lbas.len();
                let untold = found.lost_lbas.iter().skip(told).take(LBAS_TOLD_MAX - told);
                scrub.lost_lbas.extend(untold);
            }
        }
        self.store().suspects.tell(&found.damage[told..]);
        if found.units_restored > 0 {
            self.sync_healthy()?;
        }
        if found.units_vacated > 0 {
            // What opening after a crash would have to read of those rows, it need not any more.
            self.checkpoint()?;
        }
        self.look_for_lost()?;
        self.tell_bad_places();
        Ok(found)
    }

    fn scrub_row(
        &self,
        row: u32,
        repair: bool,
        found: &mut ScrubResult,
    ) -> Result<(), DeviceError> {
        let life = self.core()?.rows.life(row);
        if life.seq == 0 {
            return Ok(());
        }
        found.rows += 1;
        if let Some(tables) = self.store().right_tables(row, life) {
            let core = self.core()?;
            // It may have been erased meanwhile.
            let is_current = core.rows.life(row) == life;
            if !is_current || self.store().have_pages(&core.ftl, row, &tables) {
                return Ok(());
            }
        }
        // Again, with nothing moving.
        let mut core = self.core_mut()?;
        if core.rows.life(row) != life {
            return Ok(());
        }
        let (units, pages) = self.scrub_bad_row(&mut core, (row, life), repair, found)?;
        drop(core);
        if units > 0
            && repair
            && let Some(moved) = self.vacate_if_possible(row, life, &pages)?
        {
            found.pages_moved += moved;
            found.units_vacated += units;
        }
        Ok(())
    }

    /// As [`Drive::vacate_row`]; none where pages cannot be moved, and stay as far as they can be
    /// read.
    fn vacate_if_possible(
        &self,
        row: u32,
        life: RowEpoch,
        pages: &[Lpn],
    ) -> Result<Option<u64>, DeviceError> {
        match self.vacate_row(row, life, pages) {
            Ok(moved) => Ok(Some(moved)),
            // A die that does not respond now may do so later, and then there is more to be moved.
            Err(error @ (DeviceError::Medium { .. } | DeviceError::Transient { .. })) => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// Forgets of pages that are known to be lost those that can be read again.
    fn look_for_lost(&self) -> Result<(), DeviceError> {
        let lost: Vec<Lpn> = self.core()?.lost.iter().collect();
        let mut is_any_found = false;
        for lpn in lost {
            let mut page = [0; PAGE_BYTES];
            if let Ok(found) = self.read_page(lpn, &mut page) {
                let mut core = self.core_mut()?;
                if core.locate(lpn).stored() == found {
                    core.lost.clear(lpn, 1);
                    is_any_found = true;
                }
            }
        }
        // The journal tells what is lost, not what was found; a checkpoint tells all that is.
        if is_any_found { self.checkpoint() } else { Ok(()) }
    }

    /// Restores what it can of a row in which something is not right; says how many of its units
    /// that leaves, and which pages that can be read should not stay beside them.
    fn scrub_bad_row(
        &self,
        core: &mut Core,
        (row, life): (u32, RowEpoch),
        repair: bool,
        found: &mut ScrubResult,
    ) -> Result<(u64, Vec<Lpn>), DeviceError> {
        let store = self.store();
        let mut verified = store.verify(row, life, None);
        let mut pages = verified.pages(store, &core.ftl);
        if !pages.lost.is_empty() {
            // The die may have responded again only after it was asked for these.
            store.dies.check_responsive()?;
            verified = store.verify(row, life, None);
            pages = verified.pages(store, &core.ftl);
        }
        if !pages.lost.is_empty() {
            store.dies.check_responsive()?;
        }
        core.note_lost(pages.lost.iter().copied());
        found.lost_lbas.extend(pages.lost.iter().copied().map(layout::lba));
        let at_unix_s = now_unix_s();
        let (found_by, outcome) = (FoundBy::Scrub, DamageOutcome::Lost);
        let seen =
            Damage { at_unix_s, die: None, row: None, lba: None, copy_of: None, found_by, outcome };
        let lost = pages.lost.iter().map(|lpn| Some(layout::lba(*lpn)));
        lost.for_each(|lba| found.note(Damage { lba, ..seen }));
        let mut left = 0;
        for unit in verified.units.iter().filter(|unit| unit.is_bad()) {
            let fault = find_fault(store, row, unit);
            // What holds nothing that counts, and cannot be restored, waits for its next life.
            if unit.whole.is_none() && pages.is_empty() {
                note_fault(store, row, unit.die, fault, false);
                continue;
            }
            found.units_bad += 1;
            let write = |whole| {
                let (dies, from) = (&store.dies, store.layout.unit_from(row));
                dies.restore(unit.die, from, whole)
                    // As any other write that fails, it takes the die out of service.
                    .inspect_err(|error| {
                        dies.lose_for(unit.die, error);
                    })
            };
            // What lies there is moved.
            let is_bad_place = is_spared(store, core, row, unit.die);
            let may_write = repair && !is_bad_place;
            let outcome = match &unit.whole {
                Some(whole) if may_write && write(whole).is_ok() => DamageOutcome::Rewritten,
                _ => DamageOutcome::Left,
            };
            let is_rewritten = outcome == DamageOutcome::Rewritten;
            note_fault(store, row, unit.die, fault, is_rewritten);
            found.units_restored += u64::from(is_rewritten);
            left += u64::from(unit.whole.is_none() || is_bad_place);
            let die = Some(die_number(unit.die));
            found.note(Damage { die, row: Some(row), outcome, ..seen });
        }
        Ok((left, pages.readable))
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
            let why = if self.store().layout.shape.is_protected {
                "no redundancy is left, so this would lose data: `floatgate volume replace-die` \
                 replaces the die that failed before it"
            } else {
                "the volume has no parity, so this would lose data: create one with parity, and \
                 copy the data to it"
            };
            return Err(medium_error(format!("failing die {die}"))(io::Error::other(why)));
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
        self.catch_up_die_while(die, (medium, None), go_on)
    }

    /// As [`Drive::replace_die_while`], of a medium that may have units which stay.
    ///
    /// # Errors
    /// As [`Drive::replace_die`], and when it was stopped; then the die counts as failed.
    pub(crate) fn catch_up_die_while(
        &self,
        die: usize,
        (medium, held): MediumAndUnits,
        go_on: impl FnMut(u64, u64) -> bool,
    ) -> Result<(), DeviceError> {
        let store = self.store();
        let refuse = |why: String| Err(replacing(die)(io::Error::other(why)));
        if die >= store.dies.count() || !store.dies.lost().has(die) {
            return refuse("it has not failed".to_owned());
        }
        if !self.has_left(die) {
            let reason = format!("requests to the former medium of die {die} have not ended");
            return Err(DeviceError::Transient { reason });
        }
        let (size, needed) = (medium.size(), store.layout.die_bytes());
        if size < needed {
            return refuse(format!("the medium has {size} bytes, {needed} are needed"));
        }
        let (rows, index) = (u64::from(store.layout.shape.rows_total()), die_number(die));
        let begun = Rebuild { die: index, is_running: true, rows, ..Rebuild::default() };
        self.maintenance().rebuild = Some(begun);
        let filled = self.fill_die(die, (medium, held), go_on);
        if filled.is_err() && store.dies.incomplete().has(die) {
            let _still = self.core_mut()?;
            store.dies.lose(die);
        }
        let mut maintenance = self.maintenance();
        if filled.is_ok() {
            maintenance.scrubs.forgive(die);
        }
        if let Some(rebuild) = &mut maintenance.rebuild {
            rebuild.is_running = false;
            rebuild.failure = filled.as_ref().err().map(ToString::to_string);
        }
        drop(maintenance);
        filled
    }

    /// Waits a moment for requests to the former medium of a die; says whether all have ended.
    fn has_left(&self, die: usize) -> bool {
        let is_in_use = || self.store().dies.is_in_use(die);
        (0..LEAVING_TRIES).any(|_| {
            if is_in_use() {
                thread::sleep(LEAVING_PAUSE);
            }
            !is_in_use()
        })
    }

    fn fill_die(
        &self,
        die: usize,
        (medium, held): MediumAndUnits,
        mut go_on: impl FnMut(u64, u64) -> bool,
    ) -> Result<(), DeviceError> {
        let store = self.store();
        let rows = store.layout.shape.rows_total();
        let mut go_on = |row: u32| {
            if go_on(row.into(), rows.into()) {
                return Ok(());
            }
            Err(replacing(die)(io::Error::other(STOPPED)))
        };
        store.dies.forget_failures(die);
        store.suspects.forget_die(die);
        if held.is_none() {
            self.forget_bad_places(die)?;
        }
        let failed = |error: io::Error| {
            store.dies.count_failure(die, &error);
            replacing(die)(error)
        };
        let kept = held.map_or_else(|| Ok(Vec::new()), |held| self.rows_held(die, held))?;
        erase_around(&*medium, &store.layout, &kept, || go_on(0), failed)?;
        {
            let core = self.still()?;
            store.dies.fill(die, medium);
            // It may lie on another file system than the others.
            self.headroom.ask_again();
            program_again(&core, store, die).map_err(medium_error(format!(
                "writing rows that are being filled to die {die}"
            )))?;
        }
        for row in 0..rows {
            go_on(row)?;
            let filled = self.fill_row(row, die, held)?;
            let is_lost = u64::from(filled == Filling::Lost);
            self.tell_lost()?;
            let mut maintenance = self.maintenance();
            maintenance.units_lost += is_lost;
            if let Some(rebuild) = &mut maintenance.rebuild {
                rebuild.rows_done = u64::from(row) + 1;
                rebuild.units_lost += is_lost;
                rebuild.units_held += u64::from(filled == Filling::Held);
            }
        }
        self.commit(Scope::Everything)?;
        // The new die has most to write: flushes that need the others need not wait for it.
        self.noting(store.dies.sync_all([die].into_iter().collect()).map_err(sync_failed))?;
        self.sync_healthy()?;
        // Copies of the journal and of checkpoints lie on other dies until now. The headers must
        // not say that the drive is redundant before this die has what another may take along.
        store.dies.join(die);
        self.checkpoint()?;
        if !store.dies.settle(die) {
            return Err(replacing(die)(io::Error::other("the new die failed")));
        }
        self.keep_header()
    }

    /// Restores the unit of a row on a die that was replaced, unless it is held there. What the
    /// rest of the row does not give back is lost with or without this die.
    fn fill_row(
        &self,
        row: u32,
        die: usize,
        held: Option<HeldUnits>,
    ) -> Result<Filling, DeviceError> {
        let store = self.store();
        let life = self.core()?.rows.life(row);
        let position = store.layout.position(row, die, life.out);
        // Rows that are completed from now on have their units on the new medium.
        let Some(position) = position.filter(|_| life.seq != 0) else {
            return Ok(Filling::Restored);
        };
        let member = Member { row, position, life };
        if held.is_some_and(|held| held.have(store, member, die)) {
            return Ok(Filling::Held);
        }
        let mut verified = store.verify(row, life, Some(position));
        if verified.unit(position).is_none_or(|unit| unit.whole.is_none()) {
            // What a die does not give back because it does not respond is not lost.
            store.dies.check_responsive()?;
            verified = store.verify(row, life, Some(position));
        }
        let whole = verified.unit(position).and_then(|unit| unit.whole.as_ref());
        if whole.is_none() {
            store.dies.check_responsive()?;
        }
        // A row that begins another life meanwhile must not be written over.
        let mut core = self.core_mut()?;
        if core.rows.life(row) != life {
            return Ok(Filling::Restored);
        }
        let Some(unit) = whole else {
            // Pages of the row that can be read would not survive another die.
            let pages = verified.pages(store, &core.ftl);
            core.note_lost(pages.lost);
            drop(core);
            self.vacate_if_possible(row, life, &pages.readable)?;
            return Ok(Filling::Lost);
        };
        if is_spared(store, &core, row, die) {
            let pages = verified.pages(store, &core.ftl).readable;
            drop(core);
            self.vacate_if_possible(row, life, &pages)?;
            return Ok(Filling::Restored);
        }
        let written = store.dies.restore(die, store.layout.unit_from(row), unit);
        written.map_err(medium_error(format!("restoring row {row} of die {die}")))?;
        Ok(Filling::Restored)
    }

    /// Makes durable what was written to any die, as a commit does: the system tells an error only
    /// once, and the thread that is told has to act on it.
    pub(crate) fn sync_healthy(&self) -> Result<(), DeviceError> {
        let dies = &self.store().dies;
        self.noting(dies.sync_all(dies.healthy().collect()).map_err(sync_failed))?;
        self.keep_header()
    }
}

fn replacing(die: usize) -> impl FnOnce(io::Error) -> DeviceError {
    medium_error(format!("replacing die {die}"))
}

/// Writes the units of unfinished rows that belong on a die and were programmed without it.
fn program_again(core: &Core, store: &Store, die: usize) -> io::Result<()> {
    for open in &core.open {
        let position = store.layout.position(open.row, die, open.out);
        let unit = position.and_then(|position| open.units.get(position as usize));
        if let Some(bytes) = unit.and_then(UnitBuffer::finished) {
            store.dies.restore(die, store.layout.unit_from(open.row), bytes)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::sync::{Arc, mpsc};
    use std::time::Duration;
    use std::{io, thread};

    use ftl::Lpn;

    use crate::engine::drive::SMALL_SHAPE;
    use crate::format::layout::PAGE_BYTES;
    use crate::simulation::Disks;
    use crate::{Drive, Medium, Shape};
    use device::{Device as _, Durability};
    use status::HealthState;

    /// A medium of which reads hang.
    #[derive(Debug)]
    struct Hanging {
        disk: Box<dyn Medium>,
        gate: Arc<Gate>,
    }

    #[derive(Debug, Default)]
    struct Gate {
        is_closed: AtomicBool,
        waiting: AtomicU32,
    }

    impl Medium for Hanging {
        fn size(&self) -> u64 {
            self.disk.size()
        }
        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
            while self.gate.is_closed.load(Ordering::Acquire) {
                self.gate.waiting.store(1, Ordering::Release);
                thread::yield_now();
            }
            self.disk.read_at(offset, buffer)
        }
        fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
            self.disk.write_at(offset, bytes)
        }
        fn sync(&self) -> io::Result<()> {
            self.disk.sync()
        }
    }

    /// A client waits for a die that does not answer; the drive goes on without it.
    #[test]
    fn a_die_whose_reads_hang_can_be_failed_and_everything_is_read_without_it() {
        let shape = Shape { dies: 3, is_protected: true, ..SMALL_SHAPE };
        let disks = Disks::formatted(&shape);
        let gate = Arc::new(Gate::default());
        let mut media = disks.media();
        let disk = media.remove(1);
        media.insert(1, Box::new(Hanging { disk, gate: Arc::clone(&gate) }));
        let drive = Drive::open_media(media).unwrap();
        let row = vec![7; (shape.data_units() * shape.unit_pages) as usize * PAGE_BYTES];
        drive.write(0, &row, Durability::Durable).unwrap();
        let read = || {
            let mut found = vec![0; row.len()];
            drive.read(0, &mut found).unwrap();
            assert!(found == row);
        };
        gate.is_closed.store(true, Ordering::Release);
        thread::scope(|scope| {
            let hanging = scope.spawn(read);
            while gate.waiting.load(Ordering::Acquire) == 0 {
                thread::yield_now();
            }
            let (told, tells) = mpsc::channel();
            let (drive, row, read) = (&drive, &row, &read);
            scope.spawn(move || {
                drive.fail_die(1).unwrap();
                read();
                drive.write(0, row, Durability::Durable).unwrap();
                let _ = told.send(());
            });
            let is_done = tells.recv_timeout(Duration::from_secs(20)).is_ok();
            let refused = is_done.then(|| drive.replace_die(1, disks.media().remove(1)));
            gate.is_closed.store(false, Ordering::Release);
            assert!(is_done, "no thread waits for the die any more");
            let refused = refused.unwrap().unwrap_err().to_string();
            assert!(refused.contains("have not ended"), "{refused}");
            hanging.join().unwrap();
        });
        drive.replace_die(1, disks.replace(1)).unwrap();
        drive.fail_die(0).unwrap();
        read();
    }

    /// A bit of a page has flipped on a die that was not read since, and another die fails.
    #[test]
    fn a_page_that_a_rebuild_cannot_give_back_is_known_to_be_lost() {
        let shape = Shape { dies: 3, is_protected: true, ..SMALL_SHAPE };
        let disks = Disks::formatted(&shape);
        let drive = Drive::open_media(disks.media()).unwrap();
        let pages = shape.data_units() * shape.unit_pages;
        let row = vec![7; pages as usize * PAGE_BYTES];
        drive.write(0, &row, Durability::Durable).unwrap();
        let at = (0..pages).find_map(|lpn| {
            let (core, layout) = (drive.core().unwrap(), &drive.store().layout);
            let place = layout.place(core.place_of(Lpn(lpn)).unwrap());
            let die = layout.die(place.row, place.unit, core.rows.life(place.row).out);
            let from = usize::try_from(layout.unit_from(place.row)).unwrap();
            (die == 0).then(|| from + layout.extent_from(place.slot).unwrap() + 132)
        });
        let at = at.unwrap();
        drive.close().unwrap();
        disks.damage(0, at..at + 1, |byte| byte ^ 1);
        let drive = Drive::open_media(disks.media()).unwrap();
        drive.fail_die(1).unwrap();
        drive.replace_die(1, disks.replace(1)).unwrap();
        assert!(drive.lost_pages().unwrap() > 0);
        let status = drive.status();
        assert_eq!(status.health.state, HealthState::Critical);
        assert!(status.maintenance.units_lost > 0);
        drive.write(0, &row, Durability::Durable).unwrap();
        assert_eq!(drive.status().health.state, HealthState::Degraded, "no scrub has looked again");
        drive.scrub(true).unwrap();
        assert_eq!(drive.status().health.state, HealthState::Ok);
    }
}
