//! Threads that write, flush and take checkpoints beside each other until the power goes, again and
//! again: what was flushed is there, and every page is as some thread wrote it.
//!
//! Which thread comes first is up to the system, so that no seed decides everything, as one does in
//! the simulation. That in turn plays commands on one thread, and has no checkpoint between two of
//! them.

use std::thread;
use std::time::Duration;

use blockio::{Bytes, Rng};
use live::simulation::Disks;
use live::{Compression, Device as _, DeviceError, Drive, Durability, Plan, Shape, format};

const PAGE_BYTES: usize = 4096;
const PAGE: u64 = PAGE_BYTES as u64;
const WRITERS: usize = 3;
const SEEDS: u64 = 120;
/// Cuts of the power in the life of a drive.
const CUTS: usize = 4;
/// Most commands of the dies until the power goes.
const COMMANDS_MAX: u64 = 2500;

/// Contents that a page had, one after the other, from zeroes on.
#[derive(Clone, Debug, Default)]
struct Page {
    /// A number for what was written, which no other contents of the page have; none where it was
    /// trimmed.
    versions: Vec<Option<u64>>,
    /// Numbers that were given out.
    numbers: u64,
    /// Numbers of versions that are known to be durable, and that were acknowledged.
    durable: usize,
    acknowledged: usize,
}

impl Page {
    /// The number of what is written next.
    fn write(&mut self) -> u64 {
        self.numbers += 1;
        self.versions.push(Some(self.numbers));
        self.numbers
    }

    /// Contents after so many versions; none are zeroes.
    fn after(&self, versions: usize) -> Option<u64> {
        versions.checked_sub(1).and_then(|last| self.versions[last])
    }

    /// True if a crash may leave these contents.
    fn allows(&self, found: Option<u64>) -> bool {
        (self.durable..=self.versions.len()).any(|versions| self.after(versions) == found)
    }

    /// Goes on from what was found: that is durable, and what came after it never will be.
    fn go_on_from(&mut self, found: Option<u64>) {
        self.versions = found.map(Some).into_iter().collect();
        (self.durable, self.acknowledged) = (self.versions.len(), self.versions.len());
    }
}

/// Contents of a page by their number; every third compresses.
fn content(page: usize, number: u64) -> Vec<u8> {
    let words = [page as u64 + 1, number];
    let mut rng = Rng::new(words[0] << 32 | number);
    let is_noise = !number.is_multiple_of(3);
    let rest = (2..PAGE_BYTES / 8).map(|_| if is_noise { rng.below(u64::MAX) } else { 7 });
    words.into_iter().chain(rest).flat_map(u64::to_le_bytes).collect()
}

/// The number of these contents of a page; none for zeroes.
fn number_of(page: usize, bytes: &[u8]) -> Option<u64> {
    if bytes.iter().all(|byte| *byte == 0) {
        return None;
    }
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    assert!(bytes == content(page, word(8)), "page {page} has what was never written to it");
    Some(word(8))
}

/// The number of what a page holds; none for zeroes.
fn read(drive: &Drive, page: usize) -> Result<Option<u64>, DeviceError> {
    let mut bytes = vec![0; PAGE_BYTES];
    drive.read(page as u64 * PAGE, &mut bytes)?;
    Ok(number_of(page, &bytes))
}

/// Writes, trims, reads and flushes pages of its own until a command fails; `is_urgent`: it only
/// writes, durably.
fn write_on(
    drive: &Drive,
    pages: &mut [(usize, Page)],
    rng: &mut Rng,
    is_urgent: bool,
) -> DeviceError {
    loop {
        let most = if rng.below(3) > 0 { pages.len() / 4 } else { pages.len() } as u64;
        let (index, page) = &mut pages[usize::try_from(rng.below(most)).expect("a place")];
        let (index, offset) = (*index, *index as u64 * PAGE);
        let done = match if is_urgent { 0 } else { rng.below(20) } {
            0..12 => {
                let written = content(index, page.write());
                let is_durable = is_urgent || rng.below(8) == 0;
                let durability =
                    if is_durable { Durability::Durable } else { Durability::Volatile };
                drive.write(offset, &written, durability).map(|()| {
                    page.acknowledged = page.versions.len();
                    page.durable = if is_durable { page.acknowledged } else { page.durable };
                })
            }
            12 => {
                page.versions.push(None);
                let trimmed = drive.trim(offset, PAGE, Durability::Volatile);
                trimmed.map(|()| page.acknowledged = page.versions.len())
            }
            13..16 => drive.flush().map(|()| {
                for (_, page) in pages.iter_mut() {
                    page.durable = page.acknowledged;
                }
            }),
            _ => read(drive, index).map(|found| {
                assert_eq!(found, page.after(page.versions.len()), "page {index}");
            }),
        };
        if let Err(error) = done {
            return error;
        }
    }
}

/// Checkpoints, until the power goes; unless `is_urgent` also scrubs, and dies that fail and are
/// replaced.
fn maintain(drive: &Drive, disks: &Disks, is_protected: bool, mut rng: Rng, is_urgent: bool) {
    let kinds = match (is_urgent, is_protected) {
        (true, _) => 1,
        (false, true) => 8,
        (false, false) => 6,
    };
    while !disks.is_cut() {
        let done = match rng.below(kinds) {
            0..5 => drive.checkpoint(),
            5 => {
                drive.scrub(true).map(|found| assert!(disks.is_cut() || found.lost_lbas.is_empty()))
            }
            _ => match drive.lost_dies().first() {
                None => drive.fail_die(usize::from(rng.below(2) == 0)),
                Some(die) => drive.replace_die(*die, disks.replace(*die)),
            },
        };
        assert!(done.is_ok() || disks.is_cut(), "{done:?}");
        thread::sleep(Duration::from_micros(rng.below(if is_urgent { 50 } else { 1000 })));
    }
}

fn shape(rng: &mut Rng) -> Shape {
    let (dies, is_protected) = match rng.below(6) {
        0 => (1, false),
        1 => (2, true),
        2 => (3, true),
        3 => (5, true),
        4 => (8, true),
        _ => (4, false),
    };
    let compression = if rng.below(2) == 0 { Compression::None } else { Compression::Lz4 };
    let (size, physical, unit) = (Bytes(1 << 20), None, None);
    let over_provisioning = 0.3;
    Plan { size, dies, is_protected, over_provisioning, compression, physical, unit }
        .shape()
        .expect("the arrangement is possible")
}

/// The life of a drive.
fn live(seed: u64) {
    let (mut rng, is_urgent) = (Rng::new(seed), seed.is_multiple_of(2));
    let shape = shape(&mut rng);
    let bytes = usize::try_from(shape.die_bytes().0).expect("some MiB");
    let disks = Disks::new(shape.dies as usize, bytes, Rng::new(seed + 1));
    format(disks.media(), &shape, seed + 1).expect("the disks are large enough");
    let mut pages = vec![Page::default(); shape.pages_logical as usize];
    for cut in 0..=CUTS {
        let drive = Drive::open_media(disks.media())
            .unwrap_or_else(|error| panic!("seed {seed}, cut {cut}, {shape:?}: {error}"));
        for (number, page) in pages.iter_mut().enumerate() {
            let found = read(&drive, number)
                .unwrap_or_else(|error| panic!("seed {seed}, cut {cut}, {number}: {error}"));
            let at = format!("seed {seed}, cut {cut}, {shape:?}, page {number}");
            assert!(page.allows(found), "{at} has {found:?}, {} is durable", page.durable);
            page.go_on_from(found);
        }
        if cut == CUTS {
            drive.close().expect("it is sound");
            return;
        }
        disks.cut_after(rng.below(COMMANDS_MAX));
        let mut parts: Vec<Vec<(usize, Page)>> = vec![Vec::new(); WRITERS];
        for (number, page) in pages.drain(..).enumerate() {
            parts[number % WRITERS].push((number, page));
        }
        thread::scope(|scope| {
            // One writer alone fills rows in the order in which it flushes them.
            let writers = if is_urgent { 1 } else { WRITERS };
            for part in &mut parts[..writers] {
                let (drive, disks, mut rng) = (&drive, &disks, Rng::new(rng.below(u64::MAX)));
                scope.spawn(move || {
                    let error = write_on(drive, part, &mut rng, is_urgent);
                    assert!(disks.is_cut(), "seed {seed}, cut {cut}: {error}");
                });
            }
            let (drive, disks, rng) = (&drive, &disks, Rng::new(rng.below(u64::MAX)));
            scope.spawn(move || maintain(drive, disks, shape.is_protected, rng, is_urgent));
        });
        drop(drive);
        let mut all: Vec<(usize, Page)> = parts.into_iter().flatten().collect();
        all.sort_by_key(|(number, _)| *number);
        pages = all.into_iter().map(|(_, page)| page).collect();
        // Where nothing survives that was not synced, whatever was to be synced is missed.
        if is_urgent { disks.restore_by(|_| false) } else { disks.restore() }
    }
}

#[test]
fn what_threads_flushed_is_there_after_a_cut_of_the_power() {
    (0..SEEDS).for_each(live);
}
