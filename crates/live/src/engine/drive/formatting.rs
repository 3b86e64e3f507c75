//! Changes of what clients see of a drive: resizing, formatting and purging.
//!
//! A drive keeps the arrangement of its dies for good; what changes is how much of it clients may
//! use. Headers say so, and a checkpoint how many pages its own map has, so that neither depends on
//! the other after a crash.

use std::io;
use std::sync::atomic::Ordering;

use blockio::Bytes;
use device::{DeviceError, is_host_full};
use status::{NotErased, Purge, UserCapacity, drive_id};

use ftl::{ConfigError, SuperblockId};

use super::Drive;
use super::execution::Still;
use crate::engine::dies::erasure::STOPPED;
use crate::engine::dies::header_copies;
use crate::engine::dies::{die_number, medium_error};
use crate::engine::drive::creation::Capacity;
use crate::engine::log::journal::Scope;
use crate::format::die_set::DieSet;
use crate::format::layout::{HEADER_BYTES, PAGE_BYTES, lba};
use crate::format::media_keys::MediaKeys;
use crate::lock::lock;
use crate::{OpenError, Shape};

/// Spare space of the stock capacity, as a share of it.
const STOCK_SPARE: f64 = 0.15;

/// Treatment of stored pages beyond the new end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// The change is refused where any is stored.
    Kept,
    /// Stored pages there are trimmed.
    Lost,
}

impl Drive {
    /// The capacity for a resize: a thin drive keeps the physical space that it has, unless that is
    /// more than the new size.
    pub fn capacity_of(&self, wanted: UserCapacity) -> Capacity {
        let size = self.size_of(wanted);
        let Shape { pages_logical, pages_stored_max, .. } = lock(&self.header).shape;
        let physical = Bytes(u64::from(pages_stored_max) * PAGE_BYTES as u64);
        let is_thin = pages_stored_max < pages_logical;
        Capacity { size, physical: is_thin.then(|| physical.min(size)) }
    }

    /// The capacity for a format, after which the drive is not thin.
    fn capacity_formatted(&self, wanted: UserCapacity) -> Capacity {
        Capacity { size: self.size_of(wanted), physical: None }
    }

    fn size_of(&self, wanted: UserCapacity) -> Bytes {
        let stock = self.size_with_spare(STOCK_SPARE);
        let page_bytes = PAGE_BYTES as u64;
        match wanted {
            UserCapacity::Stock => stock,
            UserCapacity::HighPerformance => Bytes(stock.0 / page_bytes * 4 / 5 * page_bytes),
            UserCapacity::Bytes(bytes) => Bytes(bytes),
        }
    }

    /// Changes how much clients may address and store; what they stored stays, but for pages beyond
    /// the new end. Clients that are connected learn of it when they come again.
    ///
    /// # Errors
    /// Fails if the dies have no room for that, or something would be lost that is to be kept; then
    /// nothing has changed.
    pub fn resize(&self, capacity: &Capacity, beyond: Beyond) -> Result<(), OpenError> {
        self.check_sound()?;
        let (pages, stored_max) = self.checked(capacity)?;
        // No checkpoint may be under way, since its map has one length.
        let checkpoints = lock(&self.checkpoints);
        let mut core = self.core_mut()?;
        if let (Beyond::Kept, Some(lpn)) = (beyond, core.stored_from(pages).next()) {
            let bytes = Bytes(core.stored_from(pages).count() as u64 * PAGE_BYTES as u64);
            let (lba, id) = (lba(lpn), drive_id(self.store.drive));
            return Err(OpenError::refused(format!(
                "{bytes} of data is stored beyond the new end, from sector {lba} on; trim it while \
                 the volume is served, or allow it to be lost with --destroy {id}"
            )));
        }
        core.resize(pages, stored_max)?;
        self.pages.store(pages, Ordering::Release);
        let mut header = lock(&self.header);
        (header.shape.pages_logical, header.shape.pages_stored_max) = (pages, stored_max);
        self.noting(header_copies::write_to_all(&mut header, &self.store.dies))?;
        drop(header);
        drop(core);
        drop(checkpoints);
        Ok(self.checkpoint()?)
    }

    /// Forgets everything that is stored and erases it from the dies: from what rows hold no more,
    /// and from the journal.
    ///
    /// # Errors
    /// As [`device::Device::trim`].
    pub fn purge(&self) -> Result<(), DeviceError> {
        self.purge_while(|_, _| true)
    }

    /// As [`Drive::purge`], for as long as `go_on` says so, which is told before each superblock
    /// how many of how many have been erased: everything is forgotten before the first one.
    ///
    /// # Errors
    /// As [`Drive::purge`].
    pub fn purge_while(&self, go_on: impl FnMut(u64, u64) -> bool) -> Result<(), DeviceError> {
        self.begin_purge()?.purge(go_on)
    }

    /// Begins a purge, of which there is one at a time.
    ///
    /// # Errors
    /// [`DeviceError::Transient`] where one is under way.
    pub(crate) fn begin_purge(&self) -> Result<PurgeTurn<'_>, DeviceError> {
        if self.is_purging.swap(true, Ordering::AcqRel) {
            let reason = "a purge is under way".to_owned();
            return Err(DeviceError::Transient { reason });
        }
        let superblocks = u64::from(self.store.layout.shape.superblocks);
        let begun = Purge { is_running: true, superblocks, ..Purge::default() };
        self.maintenance().purge = Some(begun);
        self.store.dies.note_unreached();
        Ok(PurgeTurn { drive: self, failure: Some(STOPPED.to_owned()) })
    }

    /// Purges the drive and gives it another capacity, at once when everything is forgotten.
    ///
    /// # Errors
    /// Fails if the dies have no room for that, before anything has changed; and as
    /// [`Drive::purge`].
    pub fn reformat_while(
        &self,
        capacity: UserCapacity,
        go_on: impl FnMut(u64, u64) -> bool,
    ) -> Result<(), OpenError> {
        self.check_capacity(capacity)?;
        self.begin_purge()?.reformat(capacity, go_on)
    }

    /// Checks that the drive can have a capacity.
    ///
    /// # Errors
    /// Fails if it cannot.
    pub fn check_capacity(&self, capacity: UserCapacity) -> Result<(), OpenError> {
        self.checked(&self.capacity_formatted(capacity)).map(|_| ())
    }

    /// The most that clients may address while so much spare space is left, as a share of it.
    pub fn size_with_spare(&self, spare: f64) -> Bytes {
        let shape = &self.store.layout.shape;
        let config = shape.config();
        let usable = shape.superblocks.saturating_sub(config.superblocks_reserved() + 1);
        let pages = f64::from(usable) * f64::from(shape.superblock_pages());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pages")]
        let pages = (pages * config.reliable_share() / (1.0 + spare)) as u64;
        Bytes(pages.max(1) * PAGE_BYTES as u64)
    }

    /// A capacity in pages, if the drive can have it.
    fn checked(&self, capacity: &Capacity) -> Result<(u32, u32), OpenError> {
        let (pages, stored_max) = capacity.pages()?;
        let shape = &self.store.layout.shape;
        // Exact, so that it can be typed.
        let bytes = |pages: u64| pages * PAGE_BYTES as u64;
        let core = self.core()?;
        let is_good = |id: &u32| !core.ftl.superblock(SuperblockId(*id)).is_condemned;
        let superblocks = (0..shape.superblocks).filter(is_good).fold(0, |count, _| count + 1);
        drop(core);
        let pages_stored_max = stored_max;
        let wanted = Shape { pages_logical: pages, pages_stored_max, superblocks, ..*shape };
        let mappable = u64::from(shape.pages_mappable);
        match (wanted.config().check(), capacity.physical) {
            (Err(ConfigError::NoSpare { limit, .. }), Some(physical)) => {
                let most = bytes(limit.saturating_sub(1));
                Err(OpenError::refused(format!(
                    "physical space of {physical} is too large: the dies have room for at most \
                     {most} bytes"
                )))
            }
            (Err(ConfigError::NoSpare { limit, .. }), None) => {
                let most = bytes(limit.saturating_sub(1).min(mappable));
                let (asked, thin) = (capacity.size, self.thin_remark());
                Err(OpenError::refused(format!(
                    "a capacity of {asked} is too large{thin}: the dies have room for at most \
                     {most} bytes"
                )))
            }
            _ if u64::from(pages) > mappable => {
                let (asked, most) = (capacity.size, bytes(mappable));
                Err(OpenError::refused(format!(
                    "a capacity of {asked} is too large: the map, whose room was fixed when the \
                     volume was created, addresses at most {most} bytes"
                )))
            }
            (checked, _) => Ok(checked.map(|()| (pages, stored_max))?),
        }
    }

    /// Says of a capacity that a format would give a thin drive, what it would be.
    fn thin_remark(&self) -> &'static str {
        let Shape { pages_logical, pages_stored_max, .. } = lock(&self.header).shape;
        if pages_stored_max < pages_logical { " for a volume that is no longer thin" } else { "" }
    }

    /// Forgets what is stored, durably, in both checkpoints too, and with it the keys that it was
    /// encrypted with. Returns apart whether those have left every header: where one did not, what
    /// is stored can be erased all the same.
    fn forget_all(&self) -> Result<Result<(), DeviceError>, DeviceError> {
        if self.store.keys().is_some_and(|keys| !keys.has_room()) {
            // Purges were cut off before they dropped a key, again and again.
            self.forget_stored(None)?;
            self.drop_former_keys()?;
        }
        let next = self.add_key()?;
        self.forget_stored(next)?;
        Ok(self.drop_former_keys())
    }

    /// Forgets what is stored, durably; pages are encrypted with `next` from then on.
    fn forget_stored(&self, next: Option<MediaKeys>) -> Result<(), DeviceError> {
        {
            // What is written together waits for its batch of the journal.
            let _journal = self.journal()?;
            let mut core = self.still()?;
            core.forget_all();
            if let Some(next) = next {
                core.key = next.current();
                self.store.change_keys(next);
            }
        }
        self.commit(Scope::Everything)?;
        self.checkpoint()?;
        self.checkpoint()
    }

    /// The core with nothing under way, once a crash does not go back to a superblock that
    /// relocation has erased.
    fn still_released(&self, superblock: SuperblockId) -> Result<Still<'_>, DeviceError> {
        loop {
            let core = self.still()?;
            if !core.ftl.held_erased().contains(&superblock) {
                return Ok(core);
            }
            drop(core);
            self.commit(Scope::Relocation)?;
        }
    }

    /// Erases from the dies whatever counts no more.
    fn erase_unused(&self, mut go_on: impl FnMut(u64, u64) -> bool) -> Result<(), DeviceError> {
        let layout = &self.store.layout;
        let superblocks = layout.shape.superblocks;
        for superblock in 0..superblocks {
            if !go_on(superblock.into(), superblocks.into()) {
                return Ok(());
            }
            let rows = layout.rows_of(superblock);
            // Nothing is begun or programmed there meanwhile.
            let core = self.still_released(SuperblockId(superblock))?;
            let open = |row: u32| core.open.iter().find(|open| open.row == row);
            let is_unused = |row: u32| core.rows.life(row).seq == 0 && open(row).is_none();
            if rows.clone().all(is_unused) {
                self.erase(layout.unit_from(rows.start), layout.unit_from(rows.end))?;
            } else {
                for row in rows.filter(|row| core.rows.life(*row).seq == 0) {
                    let programmed =
                        open(row).map_or_else(DieSet::default, |open| open.programmed(layout));
                    let (from, until) = (layout.unit_from(row), layout.unit_from(row + 1));
                    self.erase_but(programmed, from, until)?;
                }
            }
            drop(core);
            if let Some(purge) = &mut self.maintenance().purge {
                purge.superblocks_done = u64::from(superblock) + 1;
            }
        }
        self.erase_buffer()?;
        // The journal will not reach back to the checkpoint before the last one any more.
        let checkpoints = lock(&self.checkpoints);
        let older = *checkpoints % 2;
        for region in 0..layout.shape.regions() {
            let slot = layout.checkpoint_from(region, older);
            self.erase(slot, slot + HEADER_BYTES)?;
        }
        self.sync_healthy()?;
        let used = {
            let journal = self.journal()?;
            self.erase_journal(&journal.unused())?;
            self.sync_healthy()?;
            journal.in_use()
        };
        drop(checkpoints);
        // What is used lies on the dies whose turn it was. Others have there what the ring held a
        // round ago, until it goes on.
        self.checkpoint()?;
        let journal = self.journal()?;
        let freed = journal.unused().into_iter().flat_map(|(from, until)| {
            used.iter().map(move |(first, end)| (from.max(*first), until.min(*end)))
        });
        let freed: Vec<(u64, u64)> = freed.filter(|(from, until)| from < until).collect();
        self.erase_journal(&freed)?;
        self.sync_healthy()
    }

    /// Erases what the write buffer has given up.
    fn erase_buffer(&self) -> Result<(), DeviceError> {
        let Some(state) = self.store.buffer() else { return Ok(()) };
        if let Some(buffer) = &mut self.core_mut()?.buffer {
            buffer.erase_unused();
        }
        state.sync().map_err(medium_error("syncing the write buffer".to_owned()))
    }

    /// Erases parts of the journal's ring on every die.
    fn erase_journal(&self, parts: &[(u64, u64)]) -> Result<(), DeviceError> {
        let layout = &self.store.layout;
        for region in 0..layout.shape.regions() {
            let journal_from = layout.journal_from(region);
            for (from, until) in parts {
                self.erase(journal_from + from, journal_from + until)?;
            }
        }
        Ok(())
    }

    /// Erases what lies there on every die.
    fn erase(&self, from: u64, until: u64) -> Result<(), DeviceError> {
        self.erase_but(DieSet::default(), from, until)
    }

    /// True if a die refused to erase a bad place of it, which it may: not for want of space.
    fn is_bad_place(&self, die: usize, from: u64, error: &io::Error) -> bool {
        let layout = &self.store.layout;
        let row = (from - layout.unit_from(0)) / layout.unit_bytes as u64;
        let row = u32::try_from(row).expect("a row of the drive");
        let superblock = layout.superblock_of(row).0;
        !is_host_full(error) && self.store.bad_places.is_bad(die_number(die), superblock)
    }

    /// Erases what lies there on every die but these. Metadata is written over, so that space that
    /// was reserved for it stays so.
    fn erase_but(&self, kept: DieSet, from: u64, until: u64) -> Result<(), DeviceError> {
        let dies = &self.store.dies;
        let is_metadata = from < self.store.layout.unit_from(0);
        self.headroom.ask_again();
        for die in dies.healthy().filter(|die| !kept.has(*die)) {
            let length = until - from;
            let erased = if is_metadata {
                dies.overwrite(die, from, length)
            } else {
                dies.erase(die, from, length)
            };
            match erased {
                Err(error) if !is_metadata && self.is_bad_place(die, from, &error) => {
                    dies.note_unerased(unerased(dies.name(die), die, (from, length), &error));
                }
                Err(error) if dies.lose_for(die, &error) => {}
                erased => erased.map_err(medium_error(format!("erasing die {die}")))?,
            }
        }
        Ok(())
    }
}

/// A bad place of a die that refused to be erased.
fn unerased(path: String, die: usize, (from, length): (u64, u64), error: &io::Error) -> NotErased {
    let reason = Some(format!("{length} bytes from byte {from} on ({error})"));
    NotErased { reason, ..NotErased::die(die_number(die), path) }
}

/// A purge that was begun; dropping it before it is carried out ends it.
#[derive(Debug)]
pub(crate) struct PurgeTurn<'a> {
    drive: &'a Drive,
    /// Reason why it ended early; none if it did not.
    failure: Option<String>,
}

impl PurgeTurn<'_> {
    /// Forgets everything, has the drive resized as `resize` does, and erases for as long as
    /// `go_on` says so.
    fn carry_out<E: From<DeviceError> + ToString>(
        mut self,
        resize: impl FnOnce() -> Result<(), E>,
        go_on: impl FnMut(u64, u64) -> bool,
    ) -> Result<(), E> {
        let drive = self.drive;
        let purged = drive.noting(drive.forget_all()).map_err(E::from).and_then(|keys_dropped| {
            resize()?;
            drive.noting(drive.erase_unused(go_on))?;
            Ok(drive.noting(keys_dropped)?)
        });
        let is_whole = drive
            .maintenance()
            .purge
            .as_ref()
            .is_some_and(|it| it.superblocks_done == it.superblocks);
        self.failure = match &purged {
            Ok(()) if is_whole => None,
            Ok(()) => self.failure.take(),
            Err(error) => Some(error.to_string()),
        };
        purged
    }

    /// As [`Drive::purge_while`].
    pub(crate) fn purge(self, go_on: impl FnMut(u64, u64) -> bool) -> Result<(), DeviceError> {
        self.carry_out(|| Ok(()), go_on)
    }

    /// As [`Drive::reformat_while`].
    pub(crate) fn reformat(
        self,
        capacity: UserCapacity,
        go_on: impl FnMut(u64, u64) -> bool,
    ) -> Result<(), OpenError> {
        let drive = self.drive;
        let resize = || drive.resize(&drive.capacity_formatted(capacity), Beyond::Lost);
        self.carry_out(resize, go_on)
    }

    /// Ends it before anything was forgotten.
    pub(crate) fn refuse(mut self, why: &OpenError) {
        self.failure = Some(why.to_string());
    }
}

impl Drop for PurgeTurn<'_> {
    fn drop(&mut self) {
        if let Some(purge) = &mut self.drive.maintenance().purge {
            purge.is_running = false;
            purge.not_erased = self.drive.store.dies.unreached_media();
            purge.failure = self.failure.take();
        }
        self.drive.is_purging.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use blockio::{Bytes, Rng};

    use super::*;
    use crate::engine::drive::SMALL_SHAPE;
    use crate::format;
    use crate::format::layout::Layout;
    use crate::simulation::{DiskFault, Disks};
    use device::{Device as _, Durability};

    // Small units and many superblocks, so that a resize takes few commands.
    const SHAPE: Shape =
        Shape { unit_pages: 1, rows: 2, superblocks: 80, journal_bytes: 1 << 19, ..SMALL_SHAPE };
    const PAGE: u64 = PAGE_BYTES as u64;

    /// Resizes a drive, the power going after so many commands; true if it went.
    fn resize(disks: &Disks, drive: Drive, pages: u64, commands: u64) -> bool {
        disks.cut_after(commands);
        let size = Bytes(pages * PAGE);
        let resized = drive.resize(&Capacity { size, physical: None }, Beyond::Lost);
        drop(drive);
        assert_eq!(resized.is_err(), disks.is_cut(), "nothing but the cut fails");
        let was_cut = disks.is_cut();
        disks.restore();
        was_cut
    }

    /// A drive whose page 90 was written, which was made smaller and larger again, each time until
    /// the power went, and whose newest checkpoint between was then damaged; none where the power
    /// did not go, or the size is not the one that was asked for.
    fn resized_twice(cuts: (u64, u64)) -> Option<Disks> {
        let bytes = usize::try_from(SHAPE.die_bytes().0).unwrap();
        let disks = Disks::new(1, bytes, Rng::new(cuts.0 * 1000 + cuts.1));
        format(disks.media(), &SHAPE, 1).unwrap();
        let drive = Drive::open_media(disks.media()).unwrap();
        drive.write(90 * PAGE, &[7; PAGE_BYTES], Durability::Durable).unwrap();
        resize(&disks, drive, 50, cuts.0).then_some(())?;
        let drive = Drive::open_media(disks.media()).unwrap();
        (drive.size() == 50 * PAGE).then_some(())?;
        let newest = *lock(&drive.checkpoints) - 1;
        resize(&disks, drive, 100, cuts.1).then_some(())?;
        let layout = Layout::new(&SHAPE);
        for region in 0..SHAPE.regions() {
            let slot = usize::try_from(layout.checkpoint_from(region, newest % 2)).unwrap();
            disks.damage(0, slot..slot + PAGE_BYTES, |_| 0);
        }
        Some(disks)
    }

    /// A die fails while the drive is purged, and a spare one takes its place before the end.
    #[test]
    fn a_medium_that_a_purge_did_not_reach_is_told_of_though_it_was_replaced() {
        let shape = Shape { dies: 3, is_protected: true, ..SMALL_SHAPE };
        let disks = Disks::formatted(&shape);
        let drive = Drive::open_media(disks.media()).unwrap();
        drive.write(0, &[7; PAGE_BYTES], Durability::Durable).unwrap();
        let mut is_replaced = false;
        let purged = drive.purge_while(|done, _| {
            match done {
                1 => disks.set_fault(1, DiskFault::WritesFail),
                4 => {
                    assert_eq!(drive.lost_dies(), [1]);
                    drive.replace_die(1, disks.replace(1)).unwrap();
                    is_replaced = true;
                }
                _ => {}
            }
            true
        });
        purged.unwrap();
        assert!(is_replaced && drive.lost_dies().is_empty());
        let said = drive.status().not_erased().unwrap();
        assert!(said.starts_with("The former medium of die 1, which was replaced"), "{said}");
        drive.purge().unwrap();
        assert_eq!(drive.status().not_erased(), None, "the next one reached all");
    }

    /// A drive that grew before the trim of all that it had took its turn.
    #[test]
    fn a_trim_of_the_whole_drive_leaves_what_was_written_beyond_it_meanwhile() {
        let disks = Disks::formatted(&SHAPE);
        let drive = Drive::open_media(disks.media()).unwrap();
        let size = |pages: u64| Capacity { size: Bytes(pages * PAGE), physical: None };
        drive.resize(&size(50), Beyond::Lost).unwrap();
        drive.write(0, &[7; PAGE_BYTES], Durability::Durable).unwrap();
        drive.resize(&size(60), Beyond::Lost).unwrap();
        drive.write(50 * PAGE, &[7; PAGE_BYTES], Durability::Durable).unwrap();
        assert!(!drive.trim_all(50).unwrap());
        let mut page = [0; PAGE_BYTES];
        drive.read(50 * PAGE, &mut page).unwrap();
        assert_eq!(page, [7; PAGE_BYTES]);
        assert!(drive.trim_all(60).unwrap());
    }

    /// The trim of what lies beyond a smaller size may be missing where the power went before it
    /// was in the journal; whatever checkpoint the drive begins with later, none of it comes back.
    #[test]
    fn pages_beyond_a_smaller_size_stay_trimmed_after_crashes_and_damage() {
        let mut opened = 0;
        for cuts in (0..30).flat_map(|first| (0..30).map(move |second| (first, second))) {
            let Some(disks) = resized_twice(cuts) else { continue };
            let Ok(drive) = Drive::open_media(disks.media()) else { continue };
            if drive.size() == 100 * PAGE {
                let mut page = [1; PAGE_BYTES];
                drive.read(90 * PAGE, &mut page).unwrap();
                assert_eq!(page, [0; PAGE_BYTES], "cuts after {cuts:?} commands");
                opened += 1;
            }
        }
        assert!(opened > 10, "{opened} drives were opened");
    }

    /// A format, and a change to a larger size before it has taken a checkpoint: what a crash goes
    /// back to has the pages beyond the end that the drive had when all was forgotten.
    #[test]
    fn pages_beyond_a_smaller_size_stay_trimmed_when_all_is_forgotten() {
        let disks = Disks::formatted(&SHAPE);
        let drive = Drive::open_media(disks.media()).unwrap();
        drive.write(90 * PAGE, &[7; PAGE_BYTES], Durability::Durable).unwrap();
        drive.core_mut().unwrap().resize(50, 50).unwrap();
        drive.still().unwrap().forget_all();
        drive.commit(Scope::Everything).unwrap();
        drive.core_mut().unwrap().resize(100, 100).unwrap();
        drop(drive);
        disks.restore();
        let drive = Drive::open_media(disks.media()).unwrap();
        assert_eq!(drive.size(), 100 * PAGE, "the headers were not changed");
        let mut page = [1; PAGE_BYTES];
        drive.read(90 * PAGE, &mut page).unwrap();
        assert_eq!(page, [0; PAGE_BYTES]);
    }

    /// A write beside the purge begins a row, of which not all units are programmed yet.
    #[test]
    fn a_purge_beside_a_write_leaves_nothing_of_what_the_open_row_held_before() {
        for (dies, is_protected) in [(1, false), (2, true), (5, true), (4, false)] {
            let shape = Shape { dies, is_protected, journal_bytes: 4 << 20, ..SMALL_SHAPE };
            let disks = Disks::formatted(&shape);
            let drive = Drive::open_media(disks.media()).unwrap();
            for page in 0..1500 {
                let written = [0xAB; PAGE_BYTES];
                drive.write(page % 100 * PAGE, &written, Durability::Volatile).unwrap();
            }
            let purged = drive.purge_while(|done, _| {
                // As many as a unit takes, and one.
                for page in (0..=u64::from(shape.unit_pages)).filter(|_| done == 0) {
                    drive.write(page * PAGE, &[1; PAGE_BYTES], Durability::Volatile).unwrap();
                }
                true
            });
            purged.unwrap();
            drop(drive);
            for (die, contents) in disks.contents().iter().enumerate() {
                let is_left = |part: &[u8]| part.chunks(64).any(|run| run == [0xAB; 64]);
                let left = contents.chunks(512).filter(|part| is_left(part)).count();
                assert_eq!(left, 0, "sectors of die {die} of {dies} with what was written");
            }
            disks.restore_by(|_| true);
            let drive = Drive::open_media(disks.media()).unwrap();
            assert_eq!(drive.scrub(false).unwrap().units_bad, 0);
        }
    }

    /// The journal goes round the dies by turns: those whose turn it is not hold what the ring had
    /// there a round ago.
    #[test]
    fn a_purge_leaves_nothing_of_what_was_written_on_any_die() {
        for (dies, is_protected) in [(1, false), (2, true), (5, true), (4, false)] {
            let shape = Shape { dies, is_protected, journal_bytes: 4 << 20, ..SMALL_SHAPE };
            let disks = Disks::formatted(&shape);
            let drive = Drive::open_media(disks.media()).unwrap();
            let written = [0xAB; PAGE_BYTES];
            for page in 0..1500 {
                drive.write(page % 100 * PAGE, &written, Durability::Durable).unwrap();
            }
            drive.purge().unwrap();
            for (die, contents) in disks.contents().iter().enumerate() {
                let is_left = |part: &[u8]| part.chunks(64).any(|run| run == [0xAB; 64]);
                let left = contents.chunks(512).filter(|part| is_left(part)).count();
                assert_eq!(left, 0, "sectors of die {die} of {dies} with what was written");
            }
        }
    }
}
