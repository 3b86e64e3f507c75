//! Small drives, exhaustively: a cut of the power after every command to any disk, and what
//! survives of it in every way that can be told apart.

use std::collections::BTreeSet;

use blockio::Rng;
use device::{Device as _, Durability};
use status::Compression;

use super::disk::Disks;
use super::history::{BYTES, SectorHistory};
use crate::engine::dies::header_copies::end_header;
use crate::format::layout::HEADER_BYTES;
use crate::{Drive, Medium, Shape, Upgrade, format};

/// A drive of one die, as small as one can be.
pub const SINGLE: Shape = Shape {
    pages_logical: 6,
    pages_stored_max: 6,
    pages_mappable: 6,
    dies: 1,
    is_protected: false,
    unit_pages: 1,
    rows: 3,
    superblocks: 13,
    extents_per_page: 1,
    compression: Compression::None,
    journal_bytes: 32 * 4096,
};

/// A drive of two dies with data and one with parity.
pub const PROTECTED: Shape =
    Shape { dies: 3, is_protected: true, journal_bytes: 96 * 4096, ..SINGLE };

/// A drive that compresses: three pages a unit may hold up to twelve extents of seeded, unevenly
/// compressible data.
pub const PACKED: Shape = Shape {
    pages_logical: 8,
    pages_stored_max: 8,
    pages_mappable: 8,
    unit_pages: 3,
    extents_per_page: 4,
    compression: Compression::Lz4,
    journal_bytes: 80 * 4096,
    ..SINGLE
};

/// One command of a short script, on whole pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptStep {
    /// Writes a page.
    Write(u32),
    /// Writes two pages, both or neither.
    WriteBoth(u32, u32),
    /// Trims a page.
    Trim(u32),
    /// Makes everything durable.
    Flush,
    /// Saves the map.
    Checkpoint,
}

/// Up to so many sectors, all their subsets are tried; beyond, each one alone and all but each one.
const SUBSETS_MAX: usize = 5;
const PAGE_SECTORS: usize = 8;

/// Runs `script` on a new drive once for each command that it sends to the disks, cuts the power
/// there, and opens what is left in every way. Returns how many states were opened.
///
/// # Errors
/// What promise was not kept, and where.
pub fn exhaust(shape: &Shape, script: &[ScriptStep]) -> Result<u64, String> {
    for_each_cut(shape, script, |disks, history| {
        let mut states = 0;
        for subset in subsets(disks.sectors_pending()) {
            let left = disks.fork();
            left.restore_by(subset);
            check_headless(&left, history.clone())?;
            check(&left, history.clone())?;
            states += 1;
        }
        Ok(states)
    })
}

/// Runs `script` on a new drive once for each command that it sends to the disks, cuts the power
/// there, and has `open` look at what is left. Returns the sum of what it counted.
fn for_each_cut(
    shape: &Shape,
    script: &[ScriptStep],
    open: impl Fn(&Disks, &SectorHistory) -> Result<u64, String>,
) -> Result<u64, String> {
    let bytes = usize::try_from(shape.die_bytes().0).expect("a small drive");
    let fresh = Disks::new(shape.dies as usize, bytes, Rng::new(0));
    format(fresh.media(), shape, 1).map_err(|error| error.to_string())?;
    let mut states = 0;
    for cut in 0.. {
        let disks = fresh.fork();
        disks.cut_after(cut);
        let history = play(&disks, shape, script)?;
        states += open(&disks, &history).map_err(|what| format!("cut after {cut}: {what}"))?;
        if !disks.is_cut() {
            break;
        }
    }
    Ok(states)
}

/// Runs `script` on a new protected drive once for each command that it sends to the disks, cuts
/// the power there, cuts it again after each command of the opening that follows, and opens what is
/// left without one of the dies, each in turn: what was durable is read. Returns how many states
/// were opened.
///
/// # Errors
/// What promise was not kept, and where.
pub fn exhaust_openings(shape: &Shape, script: &[ScriptStep]) -> Result<u64, String> {
    for_each_cut(shape, script, |disks, history| {
        let (mut states, pending) = (0, disks.sectors_pending());
        for kept in BTreeSet::from([pending / 3, pending / 2, pending - pending / 3]) {
            // What was not synced survives on the first disks, or on the last ones.
            for is_first in [true, false] {
                let crashed = disks.fork();
                crashed.restore_by(|sector| (sector < kept) == is_first);
                states += cut_openings(&crashed, history, shape)
                    .map_err(|what| format!("{kept} of {pending} sectors kept: {what}"))?;
            }
        }
        Ok(states)
    })
}

/// Cuts the power after each command of an opening, and opens what is left without a die.
fn cut_openings(crashed: &Disks, history: &SectorHistory, shape: &Shape) -> Result<u64, String> {
    let (mut states, mut before) = (0, Vec::new());
    for cut in 0.. {
        let disks = crashed.fork();
        disks.cut_after(cut);
        let opened = Drive::open_media(disks.media());
        let is_over = !disks.is_cut();
        if let (true, Err(error)) = (is_over, &opened) {
            return Err(format!("it does not open: {error}"));
        }
        drop(opened);
        disks.restore_by(|_| true);
        // Reads leave what was there.
        let contents = disks.contents();
        if contents != before {
            for missing in 0..shape.dies as usize {
                let left = disks.fork();
                left.damage(missing, 0..left.disk_bytes(), |_| 0);
                check(&left, history.clone()).map_err(|what| {
                    format!("opening cut after {cut}, without die {missing}: {what}")
                })?;
                states += 1;
            }
            before = contents;
        }
        if is_over {
            break;
        }
    }
    Ok(states)
}

/// Result of flipping bits one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlipResult {
    /// Bytes of which a bit was flipped, each on a drive of its own.
    pub bytes: u64,
    /// Drives that opening refused then.
    pub refused: u64,
    /// Drives with a page that could not be read.
    pub lossy: u64,
    /// Pages that could not be read, of all those drives.
    pub pages_unreadable: u64,
}

/// State of a drive of which bits are flipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestingState {
    /// As a crash leaves it.
    Crashed,
    /// Closed.
    Closed,
    /// Closed, and no die has a header but the one at its end.
    Headless,
}

/// Carries out `script` on a new drive, leaves it in a state, and flips one bit of every
/// `stride`-th byte that the dies hold, each on a copy of its own: no read may return what a crash
/// alone could not have left.
///
/// # Errors
/// Which byte, and what was read.
pub fn flip_each(
    shape: &Shape,
    script: &[ScriptStep],
    left: RestingState,
    stride: usize,
) -> Result<FlipResult, String> {
    let bytes = usize::try_from(shape.die_bytes().0).expect("a small drive");
    let disks = Disks::new(shape.dies as usize, bytes, Rng::new(0));
    format(disks.media(), shape, 1).map_err(|error| error.to_string())?;
    let mut history = play(&disks, shape, script)?;
    if left != RestingState::Crashed {
        let drive = Drive::open_media(disks.media()).map_err(|error| error.to_string())?;
        // What was not flushed may be gone.
        let mut bytes = vec![0; history.sectors() * BYTES];
        drive.read(0, &mut bytes).map_err(|error| error.to_string())?;
        history.check_recovered(0, &bytes)?;
        drive.close().map_err(|error| error.to_string())?;
    }
    disks.restore_by(|_| true);
    if left == RestingState::Headless {
        lose_fronts(&disks);
    }
    let held = disks.contents();
    let mut flipped = FlipResult::default();
    for (die, held) in held.iter().enumerate() {
        // Zeroes hold nothing, but for those within a structure.
        let is_held = |at: &usize| held[at / BYTES * BYTES..][..BYTES].iter().any(|it| *it != 0);
        for at in (0..held.len() / BYTES * BYTES).filter(is_held).step_by(stride) {
            let damaged = disks.fork();
            damaged.damage(die, at..at + 1, |byte| byte ^ 1 << (at % 8));
            flipped.bytes += 1;
            let Ok(drive) = Drive::open_media(damaged.media()) else {
                flipped.refused += 1;
                continue;
            };
            let unreadable = check_pages(&drive, &history)
                .map_err(|what| format!("byte {at} of die {die} flipped: {what}"))?;
            flipped.lossy += u64::from(unreadable > 0);
            flipped.pages_unreadable += unreadable;
        }
    }
    Ok(flipped)
}

/// Pages that cannot be read; an error where one is read that cannot be.
fn check_pages(drive: &Drive, history: &SectorHistory) -> Result<u64, String> {
    let mut known = vec![None; history.sectors()];
    let mut page = [0; PAGE_SECTORS * BYTES];
    let mut unreadable = 0;
    for first in (0..history.sectors()).step_by(PAGE_SECTORS) {
        match drive.read((first * BYTES) as u64, &mut page) {
            Ok(()) => history.check_damaged(first, &page, &mut known)?,
            Err(_) => unreadable += 1,
        }
    }
    Ok(unreadable)
}

/// Carries out a script until its end or the cut; says what may be found afterwards.
pub(super) fn play(
    disks: &Disks,
    shape: &Shape,
    script: &[ScriptStep],
) -> Result<SectorHistory, String> {
    play_as(disks, shape, script, Upgrade::Now)
}

/// As [`play`], on a drive that may be of an earlier format.
pub(super) fn play_as(
    disks: &Disks,
    shape: &Shape,
    script: &[ScriptStep],
    upgrade: Upgrade,
) -> Result<SectorHistory, String> {
    let mut history = SectorHistory::new(shape.pages_logical as usize * PAGE_SECTORS);
    let sectors = history.sectors();
    let Ok(drive) = Drive::replay_buffer(disks.media(), None, None, upgrade, None) else {
        return if disks.is_cut() { Ok(history) } else { Err("it does not open".to_owned()) };
    };
    let from = |page: u32| u64::from(page) * (PAGE_SECTORS * BYTES) as u64;
    for step in script {
        let done = match *step {
            ScriptStep::Write(page) => {
                let bytes = history.write(page as usize * PAGE_SECTORS, PAGE_SECTORS);
                drive.write(from(page), &bytes, Durability::Volatile)
            }
            ScriptStep::WriteBoth(one, other) => {
                history.begin_group();
                let [first, second] = [one, other]
                    .map(|page| history.write(page as usize * PAGE_SECTORS, PAGE_SECTORS));
                let done = drive.atomic_write(&[(from(one), &first), (from(other), &second)]);
                done.inspect(|()| history.end_group())
            }
            ScriptStep::Trim(page) => {
                history.trim(page as usize * PAGE_SECTORS, PAGE_SECTORS);
                let length = (PAGE_SECTORS * BYTES) as u64;
                drive.trim(from(page), length, Durability::Volatile)
            }
            ScriptStep::Flush => drive.flush().inspect(|()| history.settle(0, sectors)),
            ScriptStep::Checkpoint => drive.checkpoint(),
        };
        match done {
            Ok(()) => {}
            Err(_) if disks.is_cut() => return Ok(history),
            Err(error) => return Err(format!("{step:?}: {error}")),
        }
    }
    Ok(history)
}

pub(super) fn check(disks: &Disks, mut history: SectorHistory) -> Result<(), String> {
    let drive = Drive::open_media(disks.media()).map_err(|error| error.to_string())?;
    let mut bytes = vec![0; history.sectors() * BYTES];
    drive.read(0, &mut bytes).map_err(|error| error.to_string())?;
    history.check_recovered(0, &bytes)
}

/// Checks what is left where no die has a header but the one at its end: what a cut alone may have
/// left, or nothing, if the cut came while those were written.
pub(super) fn check_headless(disks: &Disks, mut history: SectorHistory) -> Result<(), String> {
    let disks = disks.fork();
    lose_fronts(&disks);
    let Ok(drive) = Drive::open_media(disks.media()) else {
        let version = |it: &dyn Medium| end_header(it, &[]).ok().flatten().map(|it| it.version);
        let versions: BTreeSet<Option<u64>> =
            disks.media().iter().map(|it| version(&**it)).collect();
        let is_opened = versions.len() == 1 && !versions.contains(&None);
        return if is_opened { Err("the ends of the dies do not open".to_owned()) } else { Ok(()) };
    };
    let mut bytes = vec![0; history.sectors() * BYTES];
    drive.read(0, &mut bytes).map_err(|error| error.to_string())?;
    history.check_recovered(0, &bytes).map_err(|what| format!("from the ends of the dies: {what}"))
}

/// Erases the headers at the beginning of all disks.
pub(super) fn lose_fronts(disks: &Disks) {
    let headers = 2 * usize::try_from(HEADER_BYTES).expect("a page");
    for disk in 0..disks.media().len() {
        disks.damage(disk, 0..headers, |_| 0);
    }
}

/// Returns the subsets of sectors that survive: every one, or if those are too many each sector
/// alone, all but each, every second one, none and all.
pub(super) fn subsets(count: usize) -> Vec<Box<dyn Fn(usize) -> bool>> {
    if count <= SUBSETS_MAX {
        let all = 0..1_usize << count;
        return all.map(|bits| subset(move |sector| bits >> sector & 1 != 0)).collect();
    }
    // Two that are written at once may both be torn.
    let mut ways = vec![
        subset(|_| true),
        subset(|_| false),
        subset(|sector| sector % 2 == 0),
        subset(|sector| sector % 2 == 1),
    ];
    for one in 0..count {
        ways.push(subset(move |sector| sector == one));
        ways.push(subset(move |sector| sector != one));
    }
    ways
}

fn subset(survives: impl Fn(usize) -> bool + 'static) -> Box<dyn Fn(usize) -> bool> {
    Box::new(survives)
}
