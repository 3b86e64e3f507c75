//! Random damage on small drives: what a scrub leaves is whole, and says what is not.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use blockio::Rng;
use device::{Device as _, Durability};
use ftl::Lpn;
use proptest::prelude::*;
use status::Compression;

use crate::engine::core::PageLocation;
use crate::format::layout::{ENTRY_BYTES, EXTENT_HEADER_BYTES, Layout, PAGE_BYTES};
use crate::format::unit;
use crate::volume::check::{Kind, Remedy, Report, check_media};
use crate::{Drive, Medium, Shape, format};

const PAGES: u32 = 160;

/// A die in memory.
#[derive(Clone, Debug)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().expect("no test panics with it")
    }
}

fn range(offset: u64, length: usize) -> std::ops::Range<usize> {
    let from = usize::try_from(offset).expect("a small die");
    from..from + length
}

impl Medium for Memory {
    fn size(&self) -> u64 {
        self.bytes().len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        buffer.copy_from_slice(&self.bytes()[range(offset, buffer.len())]);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.bytes()[range(offset, bytes.len())].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A drive that was written and closed, and what it holds.
#[derive(Debug)]
struct Filled {
    shape: Shape,
    dies: Vec<Memory>,
    pages: Vec<Vec<u8>>,
}

fn shape(dies: u32, is_protected: bool, is_compressed: bool) -> Shape {
    Shape {
        pages_logical: PAGES,
        pages_stored_max: PAGES,
        pages_mappable: PAGES,
        dies,
        is_protected,
        unit_pages: 4,
        rows: 2,
        superblocks: 64,
        extents_per_page: if is_compressed { 4 } else { 1 },
        compression: if is_compressed { Compression::Lz4 } else { Compression::None },
        journal_bytes: 2 << 20,
    }
}

/// A page that becomes smaller or not, or is half of each.
fn content(rng: &mut Rng) -> Vec<u8> {
    let noise = usize::try_from(rng.below(3)).expect("small") * PAGE_BYTES / 2;
    let mut page = vec![b'.'; PAGE_BYTES];
    page[..noise].fill_with(|| rng.below(256).to_le_bytes()[0]);
    page[PAGE_BYTES - 8..].copy_from_slice(&rng.below(u64::MAX).to_le_bytes());
    page
}

impl Filled {
    fn new(shape: Shape, seed: u64) -> Self {
        let bytes = usize::try_from(shape.die_bytes().0).expect("a small drive");
        let new = |_| Memory(Arc::new(Mutex::new(vec![0; bytes])));
        let dies: Vec<Memory> = (0..shape.dies).map(new).collect();
        let mut filled = Self { shape, dies, pages: vec![vec![0; PAGE_BYTES]; PAGES as usize] };
        format(filled.media(None), &shape, 7).expect("a drive can be so");
        let drive = filled.open(None);
        let mut rng = Rng::new(seed);
        for _ in 0..4 * PAGES {
            let page = rng.below(PAGES.into());
            let offset = page * PAGE_BYTES as u64;
            let is_trim = rng.below(16) == 0;
            let new = if is_trim { vec![0; PAGE_BYTES] } else { content(&mut rng) };
            if is_trim {
                drive.trim(offset, PAGE_BYTES as u64, Durability::Volatile).expect("it trims");
            } else {
                drive.write(offset, &new, Durability::Volatile).expect("it writes");
            }
            filled.pages[usize::try_from(page).expect("small")] = new;
        }
        drive.close().expect("nothing fails");
        filled
    }

    /// The dies but one.
    fn media(&self, without: Option<usize>) -> Vec<Box<dyn Medium>> {
        let kept = self.dies.iter().enumerate().filter(|(die, _)| Some(*die) != without);
        kept.map(|(_, die)| Box::new(die.clone()) as Box<dyn Medium>).collect()
    }

    fn open(&self, without: Option<usize>) -> Drive {
        Drive::open_media(self.media(without)).expect("enough of it is there")
    }

    /// A copy that goes its own way.
    fn fork(&self) -> Self {
        let copy = |die: &Memory| Memory(Arc::new(Mutex::new(die.bytes().clone())));
        let dies = self.dies.iter().map(copy).collect();
        Self { shape: self.shape, dies, pages: self.pages.clone() }
    }

    /// Spoils some of what rows hold on a die.
    fn spoil(&self, die: usize, times: u64, rng: &mut Rng) {
        let mut bytes = self.dies[die].bytes();
        let from = Layout::new(&self.shape).unit_from(0);
        for _ in 0..times {
            let length = [1, 1, 512, 4096][usize::try_from(rng.below(4)).expect("small")];
            let at = from + rng.below(bytes.len() as u64 - from - length);
            for byte in &mut bytes[range(at, usize::try_from(length).expect("small"))] {
                *byte ^= rng.below(256).to_le_bytes()[0];
            }
        }
    }

    /// Pages that cannot be read; none reads as anything but what was written.
    fn lost(&self, drive: &Drive) -> BTreeSet<usize> {
        let is_lost = |page: &usize| {
            let mut found = vec![0; PAGE_BYTES];
            let read = drive.read((*page * PAGE_BYTES) as u64, &mut found);
            assert!(read.is_err() || found == self.pages[*page], "page {page} is another one");
            read.is_err()
        };
        (0..self.pages.len()).filter(is_lost).collect()
    }

    /// Pages that cannot be read without a die, which the original keeps.
    fn lost_without(&self, die: usize) -> BTreeSet<usize> {
        let fork = self.fork();
        let drive = fork.open(Some(die));
        fork.lost(&drive)
    }

    fn check(&self) -> Report {
        check_media(self.media(None), |_, _| ()).expect("it can be opened")
    }
}

fn lost_by(report: &Report) -> BTreeSet<usize> {
    let lbas = report.findings.iter().filter_map(|finding| finding.lba);
    lbas.map(|lba| usize::try_from(lba / 8).expect("small")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn what_one_die_held_is_whole_after_a_scrub_and_any_other_may_be_lost(
        (dies, is_compressed, seed) in (2..6_u32, any::<bool>(), any::<u64>()),
        times in 1..120_u64,
    ) {
        let drive = Filled::new(shape(dies, true, is_compressed), seed);
        let mut rng = Rng::new(seed ^ 1);
        let damaged = usize::try_from(rng.below(dies.into())).expect("small");
        drive.spoil(damaged, times, &mut rng);
        let open = drive.open(None);
        let found = open.scrub(true).expect("nothing fails");
        prop_assert_eq!(found.units_bad, found.units_restored);
        prop_assert_eq!((found.lost_lbas.len(), found.pages_moved), (0, 0));
        prop_assert_eq!(drive.lost(&open), BTreeSet::new());
        open.close().expect("nothing fails");
        prop_assert_eq!(drive.check().findings, []);
        for die in 0..dies as usize {
            prop_assert_eq!(drive.lost_without(die), BTreeSet::new(), "die {}", die);
        }
    }

    #[test]
    fn of_what_two_dies_held_a_scrub_loses_nothing_and_protects_the_rest(
        (dies, is_compressed, seed) in (2..6_u32, any::<bool>(), any::<u64>()),
        times in 1..60_u64,
    ) {
        let drive = Filled::new(shape(dies, true, is_compressed), seed);
        let mut rng = Rng::new(seed ^ 2);
        let damaged = usize::try_from(rng.below(dies.into())).expect("small");
        drive.spoil(damaged, times, &mut rng);
        drive.spoil((damaged + 1) % dies as usize, times, &mut rng);
        let open = drive.open(None);
        let before = drive.lost(&open);
        let found = open.scrub(true).expect("nothing fails");
        let after = drive.lost(&open);
        prop_assert!(after.is_subset(&before), "before {before:?} after {after:?}");
        prop_assert_eq!(found.units_bad, found.units_restored + found.units_vacated);
        let told: BTreeSet<usize> =
            found.lost_lbas.iter().map(|lba| usize::try_from(lba / 8).expect("small")).collect();
        prop_assert_eq!(&told, &after);
        open.close().expect("nothing fails");
        let report = drive.check();
        prop_assert_eq!(&lost_by(&report), &after);
        for finding in &report.findings {
            let is_known = [Kind::LostPage, Kind::Unit, Kind::Parity].contains(&finding.kind);
            prop_assert!(is_known && finding.remedy == Remedy::None, "{finding:?}");
        }
        for die in 0..dies as usize {
            let lost = drive.lost_without(die);
            prop_assert!(lost.is_subset(&after), "die {die}: {lost:?}, before {after:?}");
        }
        // What is lost is made whole by writing it, and then nothing is wrong any more.
        let open = drive.open(None);
        for page in &after {
            let offset = (*page * PAGE_BYTES) as u64;
            open.write(offset, &drive.pages[*page], Durability::Volatile).expect("it writes");
        }
        prop_assert_eq!(drive.lost(&open), BTreeSet::new());
        open.close().expect("nothing fails");
        prop_assert_eq!(drive.check().findings, []);
    }

    #[test]
    fn without_parity_a_scrub_keeps_what_can_be_read_and_names_the_rest(
        (dies, is_compressed, seed) in (1..4_u32, any::<bool>(), any::<u64>()),
        times in 1..60_u64,
    ) {
        let drive = Filled::new(shape(dies, false, is_compressed), seed);
        drive.spoil(0, times, &mut Rng::new(seed ^ 3));
        let open = drive.open(None);
        let before = drive.lost(&open);
        let found = open.scrub(true).expect("nothing fails");
        prop_assert_eq!(&drive.lost(&open), &before);
        prop_assert_eq!(found.lost_lbas.len(), before.len());
        open.close().expect("nothing fails");
        let report = drive.check();
        prop_assert_eq!(&lost_by(&report), &before);
        prop_assert_eq!(report.repairable(), 0);
    }
}

#[test]
fn bytes_beside_pages_are_put_right_where_nothing_else_is_wrong() {
    for is_protected in [false, true] {
        let drive = Filled::new(shape(3, is_protected, true), 11);
        let whole: Vec<Vec<u8>> = drive.dies.iter().map(|die| die.bytes().clone()).collect();
        let layout = Layout::new(&drive.shape);
        // The last bytes of units, which extents of packed pages hardly ever reach.
        for row in 0..drive.shape.rows_total() {
            let end = usize::try_from(layout.unit_from(row + 1)).expect("small");
            let mut die = drive.dies[1].bytes();
            if die[end - 64..end].iter().all(|byte| *byte == 0) {
                die[end - 1] = 1;
            }
        }
        let found = drive.check().findings;
        assert!(!found.is_empty() && found.iter().all(|it| it.remedy == Remedy::Repair));
        let open = drive.open(None);
        let scrubbed = open.scrub(true).unwrap();
        assert_eq!(scrubbed.units_restored, found.len() as u64);
        drop(open);
        let from = usize::try_from(layout.unit_from(0)).expect("small");
        let rows = |die: &[u8]| die[from..].to_vec();
        let now: Vec<Vec<u8>> = drive.dies.iter().map(|die| die.bytes().clone()).collect();
        assert!(drive.check().is_clean());
        // Rows that hold nothing that counts keep what was put there.
        let differing = |(now, whole): (&Vec<u8>, &Vec<u8>)| {
            let pairs = rows(now).into_iter().zip(rows(whole));
            pairs.filter(|(now, whole)| now != whole).count()
        };
        let left: usize = now.iter().zip(&whole).map(differing).sum();
        assert!(left < drive.shape.rows_total() as usize, "{left}");
    }
}

/// Relocation takes the table from the rest of the row, and the page from its own die; a read of
/// the page, and a verification of its row, find it too.
#[test]
fn pages_whose_entry_and_data_are_damaged_on_different_dies_are_not_lost() {
    let drive = Filled::new(shape(3, true, true), 5);
    let layout = Layout::new(&drive.shape);
    let open = drive.open(None);
    let flip = |die: usize, bytes: std::ops::Range<usize>| {
        drive.dies[die].bytes()[bytes].iter_mut().for_each(|byte| *byte = !*byte);
    };
    let mut tried = 0;
    for page in 0..PAGES {
        let located = open.core().expect("no thread panicked").locate(Lpn(page));
        let PageLocation::Stored(stored) = located else { continue };
        let place = layout.place(stored.ppn);
        let die = layout.die(place.row, place.unit, stored.life.out);
        let from = usize::try_from(layout.unit_from(place.row)).expect("small");
        let entry_from = from + Layout::entry_from(place.slot);
        let entry = unit::entry(&drive.dies[die].bytes()[entry_from..]).expect("it was written");
        let payload_from = from + entry.from + EXTENT_HEADER_BYTES;
        let damage = [
            (die, entry_from..entry_from + ENTRY_BYTES),
            ((die + 1) % 3, payload_from..payload_from + 16),
        ];
        for (die, bytes) in &damage {
            flip(*die, bytes.clone());
        }
        assert_eq!(drive.lost(&open), BTreeSet::new(), "page {page}");
        assert!(drive.check().findings.iter().all(|it| it.kind != Kind::LostPage), "page {page}");
        for (die, bytes) in &damage {
            flip(*die, bytes.clone());
        }
        tried += 1;
    }
    assert!(tried > 50, "{tried} pages lay on the media");
}
