//! Faults that come together: clients that write and flush at the same time on a drive that is
//! nearly full, a die that fails, a cut of the power and one flipped bit, in every combination.
//!
//! Each client has pages of its own, so whatever the order between clients, each page holds what
//! its client flushed last or wrote since. No combination may return anything else.

use std::sync::{Barrier, PoisonError, RwLock};

use blockio::Rng;
use live::simulation::Disks;
use live::{Compression, Device as _, DeviceError, Drive, Durability, Shape, format};

const PAGE_BYTES: usize = 4096;
const CLIENTS: u32 = 3;
/// Pages of a client.
const OWN: u32 = 20;
/// The page that is written alone, to have a batch on the dies that are left.
const SHARED: u32 = CLIENTS * OWN;

const SHAPE: Shape = Shape {
    pages_logical: SHARED + 1,
    pages_stored_max: SHARED + 1,
    pages_mappable: SHARED + 1,
    dies: 4,
    is_protected: true,
    unit_pages: 2,
    rows: 2,
    superblocks: 20,
    extents_per_page: 1,
    compression: Compression::None,
    journal_bytes: 4 * 64 * 9216,
};

/// Faults of a case.
#[derive(Clone, Copy, Debug)]
struct Faults {
    /// A thin drive, on which only so many pages find space.
    is_nearly_full: bool,
    die_fails: bool,
    bit_flips: bool,
    power_goes: bool,
}

impl Faults {
    fn all() -> impl Iterator<Item = Self> {
        (0..16_u32).map(|bits| Self {
            is_nearly_full: bits & 1 != 0,
            die_fails: bits & 2 != 0,
            bit_flips: bits & 4 != 0,
            power_goes: bits & 8 != 0,
        })
    }
}

/// The page as a version of it has it; version 0 is trimmed.
fn content(page: u32, version: u32) -> Vec<u8> {
    if version == 0 {
        return vec![0; PAGE_BYTES];
    }
    let mut rng = Rng::new(u64::from(page) << 32 | u64::from(version));
    let mut bytes = vec![0; PAGE_BYTES];
    // Half of it is compressible.
    bytes[..PAGE_BYTES / 2].fill_with(|| rng.next_u64().to_le_bytes()[0]);
    bytes[PAGE_BYTES / 2..PAGE_BYTES / 2 + 8].copy_from_slice(&rng.next_u64().to_le_bytes());
    bytes
}

/// Versions that a page may have, the newest last.
type Allowed = Vec<u32>;

/// One client's commands until its last or the cut; `allowed` are the versions of its pages.
fn client(drive: &Drive, first: u32, allowed: &mut [Allowed], rng: &mut Rng, next: &mut u32) {
    for _ in 0..60 {
        let index = usize::try_from(rng.below(OWN.into())).expect("a page");
        let page = first + u32::try_from(index).expect("a page");
        let offset = u64::from(page) * PAGE_BYTES as u64;
        let version = if rng.below(8) == 0 { 0 } else { *next };
        *next += 1;
        let versions = &mut allowed[index];
        versions.push(version);
        let done = if version == 0 {
            drive.trim(offset, PAGE_BYTES as u64, Durability::Volatile)
        } else {
            drive.write(offset, &content(page, version), Durability::Volatile)
        };
        match done {
            Ok(()) => {}
            Err(DeviceError::NoSpace { .. }) => {
                versions.pop();
            }
            Err(_) => return,
        }
        if rng.below(6) == 0 {
            if drive.flush().is_err() {
                return;
            }
            for versions in allowed.iter_mut() {
                versions.drain(..versions.len() - 1);
            }
        }
    }
}

/// Carries out a case: returns the disks after it, and what each page may hold.
fn play(shape: &Shape, faults: Faults, seed: u64) -> (Disks, Vec<Allowed>) {
    let bytes = usize::try_from(shape.die_bytes().0).expect("a small drive");
    let mut rng = Rng::new(seed);
    let disks = Disks::new(shape.dies as usize, bytes, rng.split("disks"));
    format(disks.media(), shape, seed).expect("a shape that can be");
    let mut allowed = vec![vec![0]; SHARED as usize + 1];
    let drive = RwLock::new(Drive::open_media(disks.media()).expect("it is new"));
    let started = Barrier::new(CLIENTS as usize + 1);
    let cut_at = 1 + rng.below(1200);
    let culprit = usize::try_from(rng.below(shape.dies.into())).expect("a die");
    std::thread::scope(|scope| {
        let (own, shared) = allowed.split_at_mut(SHARED as usize);
        for (number, own) in (0..).zip(own.chunks_mut(OWN as usize)) {
            let (drive, started) = (&drive, &started);
            let mut rng = Rng::new(seed).split(&format!("client {number}"));
            scope.spawn(move || {
                let mut next = 1;
                let drive = drive.read().unwrap_or_else(PoisonError::into_inner);
                client(&drive, number * OWN, own, &mut rng, &mut next);
                started.wait();
                client(&drive, number * OWN, own, &mut rng, &mut next);
            });
        }
        let drive = drive.read().unwrap_or_else(PoisonError::into_inner);
        if faults.die_fails {
            drive.fail_die(culprit).expect("the first one to fail");
        }
        let offset = u64::from(SHARED) * PAGE_BYTES as u64;
        let written = drive.write(offset, &content(SHARED, 1), Durability::Durable);
        match written {
            Ok(()) => shared[0] = vec![1],
            Err(DeviceError::NoSpace { .. }) => drive.flush().expect("no fault yet"),
            Err(error) => panic!("no fault yet: {error}"),
        }
        if faults.power_goes {
            disks.cut_after(cut_at);
        }
        started.wait();
    });
    let drive = drive.into_inner().unwrap_or_else(PoisonError::into_inner);
    if faults.power_goes || seed.is_multiple_of(2) {
        drop(drive);
    } else if drive.close().is_ok() {
        for versions in &mut allowed {
            versions.drain(..versions.len() - 1);
        }
    }
    disks.restore();
    if faults.bit_flips {
        flip(&disks, shape, faults.die_fails.then_some(culprit), &mut rng);
    }
    (disks, allowed)
}

/// Flips a bit of a die that has not failed, where it holds something.
fn flip(disks: &Disks, shape: &Shape, failed: Option<usize>, rng: &mut Rng) {
    let dies: Vec<usize> = (0..shape.dies as usize).filter(|die| Some(*die) != failed).collect();
    let die = dies[usize::try_from(rng.below(dies.len() as u64)).expect("a die")];
    for _ in 0..1000 {
        let at = usize::try_from(rng.below(disks.disk_bytes() as u64)).expect("a byte");
        let mut held = 0;
        disks.damage(die, at..at + 1, |byte| {
            held = byte;
            if byte == 0 { 0 } else { byte ^ 1 << (at % 8) }
        });
        if held != 0 {
            return;
        }
    }
}

/// Looks at every page, and settles on what is found; returns how many cannot be read.
fn check(drive: &Drive, allowed: &mut [Allowed], what: &str) -> usize {
    let mut unreadable = 0;
    for (page, allowed) in (0..).zip(allowed) {
        let mut found = vec![0; PAGE_BYTES];
        match drive.read(u64::from(page) * PAGE_BYTES as u64, &mut found) {
            Ok(()) => {
                allowed.retain(|version| found == content(page, *version));
                assert!(!allowed.is_empty(), "page {page} is what it cannot be: {what}");
            }
            Err(DeviceError::Unreadable { .. }) => unreadable += 1,
            Err(error) => panic!("page {page}: {error}: {what}"),
        }
    }
    unreadable
}

/// Cases of each combination.
fn cases(shape: &Shape, seeds: std::ops::Range<u64>) {
    for (faults, seed) in Faults::all().flat_map(|it| seeds.clone().map(move |seed| (it, seed))) {
        let what = format!("{:?}, {faults:?}, seed {seed}", shape.compression);
        let stored = if faults.is_nearly_full { SHARED * 2 / 3 } else { SHARED + 1 };
        let shape = Shape { pages_stored_max: stored, ..*shape };
        let (disks, mut allowed) = play(&shape, faults, seed);
        // A bit beside a die that failed is one fault more than parity makes good.
        let is_too_much = faults.die_fails && faults.bit_flips;
        let drive = match Drive::open_media(disks.media()) {
            Ok(drive) => drive,
            Err(_) if is_too_much => continue,
            Err(error) => panic!("{error}: {what}"),
        };
        let unreadable = check(&drive, &mut allowed, &what);
        assert!(unreadable == 0 || is_too_much, "{unreadable} pages: {what}");
        // The drive goes on, and keeps what it says from now on.
        let mut rng = Rng::new(seed).split("afterwards");
        client(&drive, 0, &mut allowed[..OWN as usize], &mut rng, &mut 10_000);
        drive.close().unwrap_or_else(|error| panic!("{error}: {what}"));
        for versions in &mut allowed {
            versions.drain(..versions.len() - 1);
        }
        let drive = Drive::open_media(disks.media()).expect("it was closed");
        let left = check(&drive, &mut allowed, &what);
        assert!(left <= unreadable, "{left} pages after {unreadable}: {what}");
    }
}

#[test]
fn faults_that_come_together_return_no_wrong_page() {
    cases(&SHAPE, 0..12);
}

#[test]
fn faults_that_come_together_return_no_wrong_page_of_a_drive_that_compresses() {
    let packed = Shape { extents_per_page: 4, compression: Compression::Lz4, ..SHAPE };
    cases(&packed, 100..112);
}
