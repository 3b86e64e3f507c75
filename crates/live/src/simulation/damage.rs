//! Damage that comes together with a crash, or while the drive is closed: bits, sectors and whole
//! structures change, dies are replaced by earlier images of themselves.
//!
//! Whatever happened, the law holds: a read returns a content that a crash alone may leave, never
//! an earlier one and never another page's, or it fails; and a check of the closed dies tells
//! beforehand what will fail. As long as a protected drive has damage on a single die, everything
//! is read.

use std::ops::Range;

use blockio::Rng;
use device::{Device as _, DeviceError, Durability};

use super::disk::{DiskFault, Disks, TableLocation};
use super::history::{BYTES, SectorHistory, Version};
use crate::engine::dies::gathering::gather;
use crate::format::die_set::DieSet;
use crate::format::journal::last_batch;
use crate::format::layout::{HEADER_BYTES, Layout};
use crate::volume::check::{Kind, check_media};
use crate::{Drive, OpenError, Shape};

const PAGE_SECTORS: usize = 8;
const PAGE_BYTES: usize = PAGE_SECTORS * BYTES;

/// Result of trying damage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Drives that were damaged.
    pub damaged: u64,
    /// Drives that opening refused.
    pub refused: u64,
    /// Pages that could not be read of those that opened.
    pub pages_lost: u64,
    /// Searches of the whole map, since neither an extent nor a table told what lay there.
    pub maps_searched: u64,
}

/// Extent of the damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DamageSize {
    /// Damage to one die.
    Die(usize),
    /// Much, anywhere.
    Anywhere,
}

/// State of a drive before it is damaged.
pub(super) struct Before<'a> {
    pub(super) disks: &'a Disks,
    /// Copy of the disks as they were some time ago, if there was such a time, and no die has
    /// failed.
    pub(super) earlier: Option<&'a Disks>,
    pub(super) history: &'a SectorHistory,
    pub(super) shape: &'a Shape,
    /// True if no die has failed. One that has may not know, and tells of an earlier state once it
    /// is the only one left.
    pub(super) is_complete: bool,
    /// True if all dies are there, none doing wrong: then damage to one die loses nothing.
    pub(super) is_redundant: bool,
    /// The die that does wrong by itself: its header may be an earlier one already, so that no
    /// other die may go back to one.
    pub(super) wrong_die: Option<usize>,
    /// Tables that cannot be read while relocation moves what is left.
    pub(super) hidden: TableLocation,
}

/// Damages a copy of the disks, opens what is left, and looks at all of it.
///
/// # Errors
/// How the law was broken.
pub(super) fn try_damage(before: &Before<'_>, rng: &mut Rng) -> Result<Outcome, String> {
    let disks = before.disks.fork();
    // It may have been closed a moment ago: what that left is durable.
    disks.restore();
    disks.free_host();
    // What does wrong does no more: it would lose more with each look.
    for disk in 0..before.shape.dies as usize {
        disks.set_fault(disk, DiskFault::None);
    }
    let dies = before.shape.dies as usize;
    if rng.below(3) == 0 {
        // An opening that the power cut short came before the damage: what it wrote over must not
        // be needed by those that know less.
        cut_opening(&disks, rng);
    }
    let extent =
        if rng.below(2) == 0 { DamageSize::Die(below(rng, dies)) } else { DamageSize::Anywhere };
    let must_open = before.is_redundant && matches!(extent, DamageSize::Die(_));
    // Of the last batch one copy stays: else recovery could not tell what is gone from what never
    // was.
    let kept = if must_open { None } else { last_batch_of(before.shape, &disks) };
    let what = match extent {
        DamageSize::Die(die) if must_open && rng.below(4) == 0 => {
            disks.damage(die, 0..disks.disk_bytes(), |_| 0);
            vec![format!("die {die} erased")]
        }
        _ => apply(before, &disks, extent, kept.as_ref(), rng),
    };
    look(before, &disks, must_open, rng).map_err(|broken| format!("{broken}, after {what:?}"))
}

/// Opens the disks, and cuts the power while that is under way, or after it.
fn cut_opening(disks: &Disks, rng: &mut Rng) {
    disks.cut_after(rng.below(100));
    drop(disks.open(None));
    disks.restore();
    disks.cut_after(u64::MAX);
}

fn below(rng: &mut Rng, limit: usize) -> usize {
    usize::try_from(rng.below(limit as u64)).expect("below a usize")
}

/// A copy of the last batch.
#[derive(Clone, Debug)]
struct Copy {
    die: usize,
    bytes: Range<usize>,
}

impl Copy {
    /// True if some bytes of a die are among its own.
    const fn overlaps(&self, die: usize, bytes: &Range<usize>) -> bool {
        self.die == die && bytes.start < self.bytes.end && self.bytes.start < bytes.end
    }
}

/// A copy of the last batch of the journal, if any is whole, on a die that opening finds: one that
/// does wrong may have written over its own header, and is missing then.
fn last_batch_of(shape: &Shape, disks: &Disks) -> Option<Copy> {
    let missed =
        gather(disks.media()).map_or_else(|_| DieSet::default(), |it| it.store.dies.missed());
    let layout = Layout::new(shape);
    let offset = |bytes: u64| usize::try_from(bytes).expect("a small drive");
    let regions = (0..shape.regions()).map(|region| offset(layout.journal_from(region)));
    let dies = || (0..shape.dies as usize).filter(|die| !missed.has(*die));
    let rings = regions.flat_map(|from| dies().map(move |die| (die, from)));
    let size = offset(shape.journal_bytes);
    let last = rings.filter_map(|(die, from)| {
        let (last, bytes) = disks.with_content(die, |content| {
            let read = |range: Range<usize>| content.range(from + range.start..from + range.end);
            last_batch(size, read)
        })?;
        Some((last, Copy { die, bytes: from + bytes.start..from + bytes.end }))
    });
    last.max_by_key(|(last, _)| *last).map(|(_, copy)| copy)
}

/// Damages disks, but for the copy of the last batch that is kept; returns descriptions of it.
fn apply(
    before: &Before<'_>,
    disks: &Disks,
    extent: DamageSize,
    kept: Option<&Copy>,
    rng: &mut Rng,
) -> Vec<String> {
    let dies = before.shape.dies as usize;
    let keeps = |die| kept.is_some_and(|kept| kept.die == die);
    let (count, die_hit) = match extent {
        DamageSize::Die(die) => (1 + rng.below(4), die),
        DamageSize::Anywhere => (1 + rng.below(40), below(rng, dies)),
    };
    let earlier = before.earlier.filter(|_| dies > 1 && rng.below(4) == 0);
    let copies = header_copies(before.shape, disks);
    let header_copy = copies[below(rng, copies.len())].clone();
    let (is_everywhere, is_lost) = (extent == DamageSize::Anywhere, rng.below(6) == 0);
    let may_lose = is_lost && before.is_complete && earlier.is_none();
    let is_hit = |die: &usize| (is_everywhere || *die == die_hit) && (dies == 1 || !keeps(*die));
    let mut done = lose_beginnings(disks, (0..dies).filter(|die| may_lose && is_hit(die)));
    for _ in 0..count {
        let die = match extent {
            DamageSize::Die(die) => die,
            DamageSize::Anywhere => below(rng, dies),
        };
        let may_roll_back = !keeps(die) && before.wrong_die.is_none_or(|wrong| wrong == die);
        if let Some(earlier) = earlier.filter(|_| may_roll_back && rng.below(3) == 0) {
            disks.roll_back(die, earlier);
            done.push(format!("die {die} rolled back"));
            continue;
        }
        let (part, mut range) = place(before.shape, below(rng, 2), disks, rng);
        if part == Region::Header && dies > 1 && keeps(die) {
            // Without the newer of its headers, and after a cut of the next opening, it would count
            // as an earlier image, and the copy that is kept with it.
            continue;
        }
        if part == Region::Header && die != die_hit {
            // The headers of the other dies say which dies have failed, and whether one is an
            // earlier image. Else either copy is enough.
            if !before.is_complete || earlier.is_some() {
                continue;
            }
            range = header_copy.clone();
        }
        // Every copy of what lies at the same place of each die.
        let is_of_all = is_everywhere && part.has_copies() && rng.below(4) == 0;
        let hit = if is_of_all { 0..dies } else { die..die + 1 };
        let at = range.start + below(rng, range.len());
        let length = [1, 1, 1, BYTES, PAGE_BYTES, 16 * PAGE_BYTES][below(rng, 6)];
        let at = if length == 1 { at } else { (at / BYTES * BYTES).max(range.start) };
        let bytes = at..range.end.min(at + length);
        let bit = 1 << rng.below(8);
        let is_zeroed = rng.below(3) == 0;
        let is_unreadable = rng.below(5) == 0;
        // Nothing of a sector can be read if part of it cannot.
        let bytes = if is_unreadable {
            bytes.start / BYTES * BYTES..bytes.end.next_multiple_of(BYTES)
        } else {
            bytes
        };
        for die in hit {
            if kept.is_some_and(|kept| kept.overlaps(die, &bytes)) {
                continue;
            }
            if is_unreadable {
                disks.make_unreadable(die, bytes.clone());
                done.push(format!(
                    "{part:?} of die {die}, {} bytes at {at} unreadable",
                    bytes.len()
                ));
                continue;
            }
            disks.damage(die, bytes.clone(), |byte| match length {
                1 => byte ^ bit,
                _ if is_zeroed => 0,
                _ => rng.next_u64().to_le_bytes()[0],
            });
            done.push(format!("{part:?} of die {die}, {} bytes at {at}", bytes.len()));
        }
    }
    done
}

/// Erases both headers at the beginning of dies: those at their ends have to do.
fn lose_beginnings(disks: &Disks, dies: impl Iterator<Item = usize>) -> Vec<String> {
    let headers = 2 * usize::try_from(HEADER_BYTES).expect("a page");
    let lose = |die| {
        disks.damage(die, 0..headers, |_| 0);
        format!("both headers at the beginning of die {die}")
    };
    dies.map(lose).collect()
}

/// A part of a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Region {
    Header,
    Journal,
    Checkpoint,
    Unit,
}

impl Region {
    /// True if other dies may hold the same.
    const fn has_copies(self) -> bool {
        matches!(self, Self::Journal | Self::Checkpoint)
    }
}

/// A part of a die that is to be damaged, each often enough.
fn place(shape: &Shape, region: usize, disks: &Disks, rng: &mut Rng) -> (Region, Range<usize>) {
    let layout = Layout::new(shape);
    let at = |offset: u64| usize::try_from(offset).expect("a small drive");
    let region = u32::try_from(region).expect("0 or 1").min(shape.regions() - 1);
    match rng.below(8) {
        0 => {
            let copies = header_copies(shape, disks);
            let is_at_end = copies.len() > 2 && rng.below(3) == 0;
            let range = if is_at_end { copies[2].clone() } else { 0..copies[1].end };
            (Region::Header, range)
        }
        1 | 2 => {
            let from = at(layout.journal_from(region));
            (Region::Journal, from..from + at(shape.journal_bytes))
        }
        3 => {
            let slot = at(layout.checkpoint_from(region, rng.below(2)));
            (Region::Checkpoint, slot..slot + at(layout.slot_bytes))
        }
        4 => {
            // UnitHeader and table of a unit.
            let row = u32::try_from(rng.below(shape.rows_total().into())).expect("a row");
            let from = at(layout.unit_from(row));
            (Region::Unit, from..from + layout.extents_from + 64)
        }
        _ => (Region::Unit, at(layout.unit_from(0))..at(layout.die_bytes())),
    }
}

/// The copies of a header on each die: two at its beginning, one at its end if that is there.
fn header_copies(shape: &Shape, disks: &Disks) -> Vec<Range<usize>> {
    let layout = Layout::new(shape);
    let places = [0, HEADER_BYTES, layout.end_header_from()];
    let length = usize::try_from(HEADER_BYTES).expect("a header");
    let copies = places.map(|from| usize::try_from(from).expect("a small drive"));
    let copies = copies.into_iter().map(|from| from..from + length);
    copies.filter(|copy| copy.end <= disks.disk_bytes()).collect()
}

/// Opens damaged disks, and looks at all of what is left, more than once.
fn look(
    before: &Before<'_>,
    disks: &Disks,
    must_open: bool,
    rng: &mut Rng,
) -> Result<Outcome, String> {
    let mut outcome = Outcome { damaged: 1, ..Outcome::default() };
    let told = if rng.below(4) == 0 { Some(check_media(disks.media(), |_, _| ())) } else { None };
    if told.is_none() && rng.below(4) == 0 {
        cut_opening(disks, rng);
    }
    let drive = match disks.open(None) {
        Ok(drive) => drive,
        Err(error) if must_open => return Err(format!("it does not open: {error}")),
        Err(OpenError::Device(error)) => return Err(format!("it opens half-way: {error}")),
        Err(error) => {
            if let Some(Ok(report)) = told {
                return Err(format!("{error}, though a check found {report:?}"));
            }
            outcome.refused = 1;
            return Ok(outcome);
        }
    };
    let sectors = usize::try_from(drive.size() / BYTES as u64).expect("a small drive");
    let mut history = before.history.clone();
    history.resize(sectors);
    let mut known = vec![None; sectors];
    let lost = read_all(&drive, &history, &mut known)?;
    if must_open && !lost.is_empty() {
        return Err(format!("pages {lost:?} are lost"));
    }
    if let Some(told) = told {
        check_told(told, &lost)?;
    }
    outcome.pages_lost = lost.len() as u64;
    match rng.below(4) {
        0 => look_again(drive, disks, &history, &mut known, lost.len())?,
        1 => {
            disks.hide(before.hidden);
            outcome.maps_searched = write_over(&drive, &mut history, &mut known, &lost, rng)?;
        }
        _ => {}
    }
    Ok(outcome)
}

/// Writes pages of a damaged drive, so that relocation moves the rest, damaged pages too, and
/// checks that nothing else changes by it; returns how often relocation searched the whole map.
fn write_over(
    drive: &Drive,
    history: &mut SectorHistory,
    known: &mut [Option<Version>],
    lost: &[usize],
    rng: &mut Rng,
) -> Result<u64, String> {
    let pages = known.len() / PAGE_SECTORS;
    let mut is_lost = vec![false; pages];
    for page in lost {
        is_lost[*page] = true;
    }
    // Part of the drive stays as it is, lost pages first of all.
    let may_write = |page: usize| !page.is_multiple_of(3) && !is_lost[page];
    for page in (0..2 * pages).map(|_| below(rng, pages)).filter(|page| may_write(*page)) {
        let first = page * PAGE_SECTORS;
        let bytes = history.write(first, PAGE_SECTORS);
        match drive.write((first * BYTES) as u64, &bytes, Durability::Volatile) {
            Ok(()) => {
                history.settle(first, PAGE_SECTORS);
                known[first..first + PAGE_SECTORS].fill(None);
            }
            Err(DeviceError::NoSpace { .. }) => history.take_back(first, PAGE_SECTORS),
            Err(error) => return Err(format!("writing page {page} after damage: {error}")),
        }
    }
    let now = read_all(drive, history, known)?;
    if now != lost {
        return Err(format!("pages {lost:?} were lost, and {now:?} after writes of others"));
    }
    let core = drive.core().map_err(|error| error.to_string())?;
    core.ftl.check_invariants();
    Ok(core.ftl.map().searches())
}

/// Checks that every page that was readable is so after a scrub, and after closing and opening.
fn look_again(
    drive: Drive,
    disks: &Disks,
    history: &SectorHistory,
    known: &mut [Option<Version>],
    lost: usize,
) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("after a scrub: {error}");
    drive.scrub(true).map_err(|error| failed(&error))?;
    let after = read_all(&drive, history, known)?;
    let noted = drive.lost_pages().map_err(|error| failed(&error))?;
    drive.close().map_err(|error| failed(&error))?;
    let drive = disks.open(None).map_err(|error| failed(&error))?;
    let remembered = drive.lost_pages().map_err(|error| failed(&error))?;
    let again = read_all(&drive, history, known)?;
    let (after, again) = (after.len(), again.len());
    if after > lost || again != after {
        return Err(format!("{lost} pages were lost, {after} after a scrub, then {again}"));
    }
    if [noted, remembered] != [after as u64; 2] {
        return Err(format!("{after} pages are lost, {noted} are known, then {remembered}"));
    }
    Ok(())
}

/// Reads every page; returns those that cannot be read.
fn read_all(
    drive: &Drive,
    history: &SectorHistory,
    known: &mut [Option<Version>],
) -> Result<Vec<usize>, String> {
    let mut lost = Vec::new();
    let mut page = [0; PAGE_BYTES];
    for first in (0..known.len()).step_by(PAGE_SECTORS) {
        match drive.read((first * BYTES) as u64, &mut page) {
            Ok(()) => history.check_damaged(first, &page, known)?,
            Err(_) => lost.push(first / PAGE_SECTORS),
        }
    }
    Ok(lost)
}

/// A check before opening names every page that cannot be read.
fn check_told(
    told: Result<crate::volume::check::Report, OpenError>,
    lost: &[usize],
) -> Result<(), String> {
    let report = told.map_err(|error| format!("it opens, though a check says {error}"))?;
    let named = |page: &&usize| {
        let lba = (**page * PAGE_SECTORS) as u64;
        report.findings.iter().any(|it| it.kind == Kind::LostPage && it.lba == Some(lba))
    };
    match lost.iter().find(|page| !named(page)) {
        Some(page) => Err(format!("page {page} is lost, and a check does not say so")),
        None => Ok(()),
    }
}
