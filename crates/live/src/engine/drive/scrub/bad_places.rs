//! Bad places of dies: superblocks with one are drained, some rows at a time, and retired.

use device::DeviceError;
use ftl::{Lpn, SuperblockState};

use crate::engine::core::bad_places::Finding;
use crate::engine::core::{Core, condemn_all};
use crate::engine::dies::{die_number, now_unix_s};
use crate::engine::drive::Drive;
use crate::engine::log::journal::Scope;
use crate::engine::store::Store;
use crate::engine::store::verification::{Flaw, VerifiedUnit};
use crate::format::layout::Place;
use crate::format::row::RowEpoch;

/// Rows that are drained at a time.
const ROWS_AT_ONCE: usize = 16;

impl Drive {
    /// Has superblocks with bad places not be written again: condemns those that are known, as far
    /// as there are enough others, moves a few rows of what they hold, and retires those that hold
    /// nothing any more. The folder is told of what was found.
    ///
    /// # Errors
    /// As [`device::Device::write`]; what is left is tried again then.
    pub(crate) fn spare_bad_places(&self) -> Result<(), DeviceError> {
        if self.store().bad_places.is_empty() {
            return Ok(());
        }
        self.condemn_bad_places()?;
        self.drain_condemned()
    }

    /// Condemns superblocks that are known to have bad places, and tells the folder.
    fn condemn_bad_places(&self) -> Result<(), DeviceError> {
        let places = &self.store().bad_places;
        let (is_any, is_open) = {
            let core = self.core()?;
            let mut listed = places.superblocks();
            listed.retain(|id| !core.ftl.superblock(*id).is_condemned);
            let state = |id| core.ftl.superblock(id).state;
            let is_open = listed.iter().any(|id| state(*id) == SuperblockState::Open);
            (!listed.is_empty() && core.ftl.may_condemn(), is_open)
        };
        if is_any {
            if is_open {
                self.act(Core::finish_rows)?;
            }
            // What is written together waits for its batch of the journal. No program is under way,
            // so that none comes to such a place later.
            let _journal = self.journal()?;
            condemn_all(&mut self.still()?.ftl, places);
        }
        self.tell_bad_places();
        Ok(())
    }

    /// Tells the folder of bad places that it does not list yet.
    pub(super) fn tell_bad_places(&self) {
        let store = self.store();
        if let Some(witness) = store.dies.witness()
            && let Some(places) = store.bad_places.take_untold()
        {
            witness.note_bad_places(places);
        }
    }

    /// Moves pages of condemned superblocks, and retires what holds none.
    fn drain_condemned(&self) -> Result<(), DeviceError> {
        let store = self.store();
        let rows = self.core()?.rows_to_drain(&store.bad_places, ROWS_AT_ONCE);
        for (row, life) in rows {
            let pages = self.pages_named(row, life)?;
            let moved = self.vacate_if_possible(row, life, &pages)?;
            let core = self.core()?;
            let is_left = core.rows.life(row) == life && core.holds_pages(row);
            drop(core);
            match moved {
                // There is no space for it.
                None => break,
                Some(_) if is_left => store.bad_places.note_stuck(row, life),
                Some(_) => {}
            }
        }
        if self.act(Core::erase_emptied)? {
            self.commit(Scope::Relocation)?;
        }
        Ok(())
    }

    /// Pages that are stored in a row, as far as its units or their sums name them.
    fn pages_named(&self, row: u32, life: RowEpoch) -> Result<Vec<Lpn>, DeviceError> {
        let named = self.store().verify(row, life, None).named_pages(self.store());
        let core = self.core()?;
        let mut pages = Vec::new();
        for unit in named {
            let place = |slot| Place { row, unit: unit.position, slot };
            let stored = unit.extents.iter().filter(|it| core.is_there(it.1.lpn, place(it.0)));
            pages.extend(stored.map(|(_, extent)| extent.lpn));
        }
        Ok(pages)
    }

    /// Forgets the bad places of a die that gets another medium. Superblocks that have none any
    /// more are used again.
    pub(super) fn forget_bad_places(&self, die: usize) -> Result<(), DeviceError> {
        let mut core = self.core_mut()?;
        for id in self.store().bad_places.forget_die(die_number(die)) {
            core.ftl.reinstate(id);
        }
        drop(core);
        self.tell_bad_places();
        Ok(())
    }
}

/// True if nothing is to be written again where a die has its unit of a row.
pub(super) fn is_spared(store: &Store, core: &Core, row: u32, die: usize) -> bool {
    let superblock = store.layout.superblock_of(row);
    core.ftl.superblock(superblock).is_condemned
        && store.bad_places.is_bad(die_number(die), superblock.0)
}

/// Fault of a unit, as far as it tells something of the place where it lies, and there is a folder
/// to keep a list. A read that fails does if it fails again, and the die responds.
pub(super) fn find_fault(store: &Store, row: u32, unit: &VerifiedUnit) -> Option<Finding> {
    store.dies.witness()?;
    let mut bytes = vec![0; store.layout.unit_bytes];
    let mut fails = || store.dies.peek(unit.die, store.layout.unit_from(row), &mut bytes).is_err();
    match unit.flaw? {
        Flaw::Missing => None,
        Flaw::Unreadable => {
            let is_bad = fails() && store.dies.responds(unit.die);
            is_bad.then_some(Finding::ReadError)
        }
        Flaw::Damaged | Flaw::Stray | Flaw::Unequal => Some(Finding::Rot { is_rewritten: false }),
    }
}

/// Notes a fault of a unit that was found, and whether it was written again.
pub(super) fn note_fault(
    store: &Store,
    row: u32,
    die: usize,
    fault: Option<Finding>,
    is_rewritten: bool,
) {
    let found = match fault {
        None => return,
        Some(Finding::Rot { .. }) => Finding::Rot { is_rewritten },
        Some(Finding::ReadError) => Finding::ReadError,
    };
    let superblock = store.layout.superblock_of(row).0;
    store.bad_places.note(die_number(die), (superblock, row), found, now_unix_s());
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::ops::Range;
    use std::sync::Arc;

    use device::{Device as _, Durability};
    use status::{BadPlaceState, HealthState, ProblemKind};

    use crate::engine::drive::SMALL_SHAPE;
    use crate::format::layout::{Layout, PAGE_BYTES};
    use crate::simulation::{Disks, KeptProof};
    use crate::{Drive, Medium, Shape};

    const PAGES: u64 = 100;

    /// Opens a drive that has a folder.
    fn open(media: Vec<Box<dyn Medium>>) -> Drive {
        Drive::open_proven(media, Some(Arc::new(KeptProof::default()))).unwrap()
    }

    fn write(drive: &Drive, pages: Range<u64>) {
        for page in pages {
            let content = [page.to_le_bytes()[0]; PAGE_BYTES];
            drive.write(page * PAGE_BYTES as u64, &content, Durability::Durable).unwrap();
        }
    }

    fn read(drive: &Drive, page: u64) -> Option<u8> {
        let mut found = [0; PAGE_BYTES];
        drive.read(page * PAGE_BYTES as u64, &mut found).ok().map(|()| found[0])
    }

    fn are_right(drive: &Drive) -> bool {
        (0..PAGES).all(|page| read(drive, page) == Some(page.to_le_bytes()[0]))
    }

    /// Has a sector of the unit of a row be unreadable.
    fn spoil(disks: &Disks, layout: &Layout, die: usize, row: u32) {
        let from = usize::try_from(layout.unit_from(row)).unwrap() + layout.unit_bytes / 2;
        disks.make_unreadable(die, from..from + 1);
    }

    /// Attends to a drive until nothing is to be moved any more; returns the states of bad places.
    fn settled(drive: &Drive) -> Vec<Option<BadPlaceState>> {
        (0..50).for_each(|_| drive.attend().unwrap());
        drive.core().unwrap().ftl.check_invariants();
        drive.status().maintenance.bad_places.iter().map(|it| it.state).collect()
    }

    #[test]
    fn bad_places_beyond_the_spare_stay_in_use_until_their_die_is_replaced() {
        let shape = Shape { dies: 3, is_protected: true, ..SMALL_SHAPE };
        let (disks, layout) = (Disks::formatted(&shape), Layout::new(&shape));
        let drive = open(disks.media());
        (0..8).for_each(|_| write(&drive, 0..PAGES));
        let rows: Vec<u32> = drive.core().unwrap().rows.held().map(|it| it.0).collect();
        for row in rows {
            spoil(&disks, &layout, 1, row);
        }
        drive.scrub(true).unwrap();
        let states = settled(&drive);
        let count = |state| states.iter().filter(|it| **it == Some(state)).count();
        let (retired, in_use) = (count(BadPlaceState::Retired), count(BadPlaceState::InUse));
        assert!(retired > 3 && in_use > 0 && retired + in_use == states.len(), "{states:?}");
        assert!(!drive.core().unwrap().ftl.may_condemn(), "no more can be done without");
        let status = drive.status();
        assert!(status.smart.available_spare.is_some_and(|it| (40..100).contains(&it)));
        let health = status.health;
        let problem = &health.problems[0];
        assert_eq!((problem.kind, problem.die), (ProblemKind::DieErrors, Some(1)), "{health:?}");
        assert!(problem.text.contains("are still used"), "{}", problem.text);
        assert!(problem.remedy.contains("replace-die"), "{}", problem.remedy);

        (0..8).for_each(|_| write(&drive, 0..PAGES));
        assert!(are_right(&drive));
        drive.fail_die(1).unwrap();
        drive.replace_die(1, disks.replace(1)).unwrap();
        assert_eq!(settled(&drive), []);
        let status = drive.status();
        let free = status.space.unwrap().superblocks;
        assert!(!free.contains('b'), "they are used again: {free}");
        assert_eq!(status.health.state, HealthState::Ok, "{:?}", status.health);
        (0..8).for_each(|_| write(&drive, 0..PAGES));
        assert!(are_right(&drive));
    }

    #[test]
    fn without_parity_what_can_be_read_is_moved_away_from_a_bad_place() {
        let (disks, layout) = (Disks::formatted(&SMALL_SHAPE), Layout::new(&SMALL_SHAPE));
        let drive = open(disks.media());
        write(&drive, 0..PAGES);
        let row = drive.core().unwrap().rows.held().next().unwrap().0;
        spoil(&disks, &layout, 0, row);
        drive.scrub(true).unwrap();
        assert_eq!(settled(&drive), [Some(BadPlaceState::Draining)]);
        let lost: Vec<u64> = (0..PAGES).filter(|page| read(&drive, *page).is_none()).collect();
        assert!((1..=2).contains(&lost.len()), "no more than lay in the sector: {lost:?}");
        for page in lost {
            write(&drive, page..page + 1);
        }
        assert_eq!(settled(&drive), [Some(BadPlaceState::Retired)]);
        assert!(are_right(&drive));
    }

    /// A medium that refuses to be erased where it cannot be read.
    #[derive(Debug)]
    struct Worn {
        disk: Box<dyn Medium>,
        range: Range<u64>,
    }

    impl Medium for Worn {
        fn size(&self) -> u64 {
            self.disk.size()
        }
        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
            self.disk.read_at(offset, buffer)
        }
        fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
            self.disk.write_at(offset, bytes)
        }
        fn erase(&self, offset: u64, length: u64) -> io::Result<()> {
            if self.range.start < offset + length && offset < self.range.end {
                return Err(io::Error::other("worn out"));
            }
            self.disk.erase(offset, length)
        }
        fn sync(&self) -> io::Result<()> {
            self.disk.sync()
        }
    }

    #[test]
    fn a_purge_names_a_bad_place_that_refuses_it_and_goes_on_with_the_die() {
        let shape = Shape { dies: 3, is_protected: true, ..SMALL_SHAPE };
        let (disks, layout) = (Disks::formatted(&shape), Layout::new(&shape));
        let mut media = disks.media();
        let disk = media.remove(1);
        let range = layout.unit_from(0)..layout.unit_from(1);
        media.insert(1, Box::new(Worn { disk, range }));
        let drive = open(media);
        write(&drive, 0..PAGES);
        spoil(&disks, &layout, 1, 0);
        drive.scrub(true).unwrap();
        assert_eq!(settled(&drive), [Some(BadPlaceState::Retired)]);
        drive.purge().unwrap();
        assert!(drive.lost_dies().is_empty());
        let said = drive.status().not_erased().unwrap();
        assert!(said.starts_with("A part of die 1 was not erased: "), "{said}");
        write(&drive, 0..PAGES);
        assert_eq!(settled(&drive), [Some(BadPlaceState::Retired)]);
        assert!(are_right(&drive));
    }
}
