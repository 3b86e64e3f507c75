//! Members that are absent for whole sessions, openings that are cut off, damage to copies that
//! nothing reads, and losses that are known: one seed decides all of it.
//!
//! The laws:
//! - What was flushed is read back, whichever dies are there, or opening refuses.
//! - Opening does not refuse while all dies are there that took part in the last session.
//! - After a scrub, after a read that parity answered, and once a die that was away is caught up,
//!   any one die may go with the power.
//! - Pages that were told as lost stay told.
//! - A place whose reads fail, or that rots twice, is listed, and nothing is written there again
//!   while the folder lists it, or until the die is replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;
use std::sync::{Arc, Mutex};

use blockio::Rng;
use device::{Device as _, Durability};
use status::{BadPlaceState, Compression, StaleStart};

use super::Disks;
use crate::engine::core::PageLocation;
use crate::engine::core::bad_places::BadPlace;
use crate::engine::dies::header_copies;
use crate::engine::dies::witness::{Proof, Witness};
use crate::engine::drive::creation::format;
use crate::format::die_set::DieSet;
use crate::format::header::Header;
use crate::format::layout::{HEADER_BYTES, Layout, PAGE_BYTES};
use crate::format::page_set::PageSet;
use crate::lock::lock;
use crate::{Drive, Medium, OpenError, Shape};

const PAGES: u64 = 100;
const PAGE: u64 = PAGE_BYTES as u64;

/// Counts of what a simulation of absences tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Absences {
    /// Sessions that began.
    pub sessions: u64,
    /// Openings that were refused.
    pub refused: u64,
    /// Openings that the power cut off.
    pub cut: u64,
    /// Copies of headers, checkpoint and journal that scrubs found damaged.
    pub copies_bad: u64,
    /// Reads that parity answered.
    pub reconstructed: u64,
    /// Pages that were told as lost.
    pub pages_lost: u64,
    /// Units of dies that came back and kept them.
    pub units_held: u64,
    /// Bad places that were listed, and those whose superblocks were retired in the same session.
    pub bad_places: u64,
    /// Superblocks that were retired, see `bad_places`.
    pub retired: u64,
}

impl AddAssign for Absences {
    fn add_assign(&mut self, other: Self) {
        self.sessions += other.sessions;
        self.refused += other.refused;
        self.cut += other.cut;
        self.copies_bad += other.copies_bad;
        self.reconstructed += other.reconstructed;
        self.pages_lost += other.pages_lost;
        self.units_held += other.units_held;
        self.bad_places += other.bad_places;
        self.retired += other.retired;
    }
}

/// The witness of a folder, in memory.
#[derive(Debug, Default)]
pub(crate) struct KeptProof(Mutex<Option<Proof>>);

impl KeptProof {
    fn change(&self, change: impl FnOnce(&mut Proof)) {
        lock(&self.0).iter_mut().next().map(change);
    }
}

impl Witness for KeptProof {
    fn note_header(&self, header: &Header, written_at: &[u64]) {
        lock(&self.0).get_or_insert_with(|| Proof::of(header)).note(header, written_at);
    }

    fn note_batches(&self, number: u64) {
        self.change(|proof| proof.batches = proof.batches.max(number));
    }

    fn note_older(&self, _: &PageSet) {}

    fn older(&self, _: &StaleStart) -> Option<PageSet> {
        None
    }

    fn note_renewed(&self) {
        self.change(|proof| proof.stale_start = None);
    }

    fn note_bad_places(&self, places: Vec<BadPlace>) {
        self.change(|proof| proof.bad_places = places);
    }

    fn proof(&self) -> Option<Proof> {
        lock(&self.0).clone()
    }

    fn failure(&self) -> Option<String> {
        None
    }
}

/// A drive, what its folder keeps, and what was flushed.
struct AbsenceSimulation {
    disks: Disks,
    shape: Shape,
    proof: Option<Proof>,
    flushed: BTreeMap<u64, u8>,
    /// Dies that took part in the last session to its end.
    members: DieSet,
    written: u8,
    rng: Rng,
    /// Draws places that become bad.
    worn: Rng,
    tally: Absences,
}

/// Plays so many sessions of a seed.
///
/// # Errors
/// How a law was broken.
pub fn simulate_absences(seed: u64, sessions: u64) -> Result<Absences, String> {
    let mut rng = Rng::new(seed);
    let dies = [1, 2, 3, 4][below(&mut rng, 4)];
    let shape = Shape {
        pages_logical: 100,
        pages_stored_max: 100,
        pages_mappable: 100,
        dies,
        is_protected: dies > 1,
        unit_pages: 4,
        rows: 4,
        superblocks: 40,
        extents_per_page: 1,
        compression: Compression::None,
        journal_bytes: 2 << 20,
    };
    let bytes = usize::try_from(shape.die_bytes().0).expect("a small drive");
    let disks = Disks::new(dies as usize, bytes, Rng::new(seed ^ 1));
    format(disks.media(), &shape, 1).map_err(|error| error.to_string())?;
    let (flushed, members) = (BTreeMap::new(), shape.all_dies());
    let tally = Absences::default();
    let (proof, written, worn) = (None, 0, Rng::new(seed).split("worn"));
    let mut absent =
        AbsenceSimulation { disks, shape, proof, flushed, members, written, rng, worn, tally };
    for session in 0..sessions {
        let played = absent.play();
        played.map_err(|broken| format!("seed {seed}, session {session}: {broken}"))?;
    }
    Ok(absent.tally)
}

fn below(rng: &mut Rng, limit: usize) -> usize {
    usize::try_from(rng.below(limit as u64)).expect("below a usize")
}

impl AbsenceSimulation {
    fn dies(&self) -> usize {
        self.shape.dies as usize
    }

    fn any_die(&mut self) -> usize {
        let dies = self.dies();
        below(&mut self.rng, dies)
    }

    /// Opens the drive with some of its dies; what the folder keeps is kept.
    fn open(&mut self, present: DieSet) -> Result<Drive, OpenError> {
        let kept = Arc::new(KeptProof(Mutex::new(self.proof.clone())));
        let drive =
            Drive::open_proven(some(&self.disks, present), Some(Arc::<KeptProof>::clone(&kept)));
        self.proof = kept.proof();
        drive
    }

    /// Takes over what the folder keeps now.
    fn keep(&mut self, drive: &Drive) {
        self.proof = drive.store().dies.witness().and_then(Witness::proof);
    }

    fn play(&mut self) -> Result<(), String> {
        let present = self.present();
        let has_all = present.has_all(self.members);
        if has_all && self.rng.below(8) == 0 {
            // The folder is gone, and the dies suffice.
            self.proof = None;
            self.disks.spare(Vec::new());
        }
        if has_all && self.rng.below(2) == 0 {
            self.disks.cut_after(self.rng.below(24));
            drop(self.open(present));
            self.disks.restore();
            self.tally.cut += 1;
        }
        let drive = match self.open(present) {
            Ok(drive) => drive,
            Err(error) => {
                self.tally.refused += 1;
                return if has_all {
                    Err(format!("refused with all members: {error}"))
                } else {
                    Ok(())
                };
            }
        };
        self.tally.sessions += 1;
        self.check_flushed(&drive, &format!("with dies {:b}", present.0))?;
        let drive = self.use_it(drive)?;
        if self.worn.below(2) == 0 && self.dies() > 1 && drive.lost_dies().is_empty() {
            self.wear_out(&drive)?;
            self.write(&drive)?;
        }
        self.see_bad_places(&drive)?;
        let incomplete = drive.store().dies.incomplete();
        self.members = DieSet(self.shape.all_dies().0 & !incomplete.0);
        if self.rng.below(2) == 0 {
            self.keep(&drive);
            drop(drive);
            self.disks.restore();
        } else {
            // Closing changes headers, too.
            let kept = drive.store().dies.witness_shared();
            drive.close().map_err(|error| error.to_string())?;
            self.proof = kept.and_then(|it| it.proof());
        }
        Ok(())
    }

    /// The dies that are there: all, all but one, or any.
    fn present(&mut self) -> DieSet {
        let all = self.shape.all_dies();
        let away = self.any_die();
        match self.rng.below(8) {
            0..3 if self.dies() > 1 => DieSet(all.0 & !(1 << away)),
            3 if self.dies() > 1 => DieSet(1 << away),
            _ => all,
        }
    }

    /// Writes, has dies fail and be replaced, damages copies and units; returns the drive.
    fn use_it(&mut self, drive: Drive) -> Result<Drive, String> {
        self.write(&drive)?;
        let lost = drive.lost_dies();
        match self.rng.below(6) {
            0 if drive.is_redundant() => {
                let die = self.any_die();
                // One that cannot be spared stays.
                let _ = drive.fail_die(die);
                self.write(&drive)?;
            }
            1 | 2 if !lost.is_empty() => {
                if self.rng.below(2) == 0 {
                    self.catch_up(&drive, lost[0])?;
                } else {
                    let medium = self.disks.replace(lost[0]);
                    self.disks.forgive(lost[0]);
                    drive.replace_die(lost[0], medium).map_err(|error| error.to_string())?;
                }
            }
            3 if lost.is_empty() && self.dies() > 1 => self.damage_copies(&drive)?,
            4 if lost.is_empty() && self.dies() > 1 => self.damage_units(&drive)?,
            4 | 5 if self.dies() == 1 => return self.lose_pages(drive),
            _ => {}
        }
        self.write(&drive)?;
        Ok(drive)
    }

    fn write(&mut self, drive: &Drive) -> Result<(), String> {
        let failed = |error: device::DeviceError| format!("writing: {error}");
        for _ in 0..self.rng.below(30) {
            let page = self.rng.below(PAGES);
            self.written = self.written % 250 + 1;
            let content = [self.written; PAGE_BYTES];
            drive.write(page * PAGE, &content, Durability::Volatile).map_err(failed)?;
            self.flushed.insert(page, self.written);
        }
        drive.flush().map_err(failed)
    }

    /// Checks that every page is what was flushed.
    fn check_flushed(&self, drive: &Drive, when: &str) -> Result<(), String> {
        for (page, content) in &self.flushed {
            let mut found = [0; PAGE_BYTES];
            let read = drive.read(page * PAGE, &mut found);
            read.map_err(|error| format!("page {page}, {when}: {error}"))?;
            if found != [*content; PAGE_BYTES] {
                return Err(format!("page {page} has {}, {content} was flushed, {when}", found[0]));
            }
        }
        Ok(())
    }

    /// Checks that the power may go now and take any one die along.
    fn check_without_each(&mut self, drive: &Drive, when: &str) -> Result<(), String> {
        self.keep(drive);
        for away in 0..self.dies() {
            let disks = self.disks.fork();
            disks.restore();
            let present = DieSet(self.shape.all_dies().0 & !(1 << away));
            let kept = Arc::new(KeptProof(Mutex::new(self.proof.clone())));
            let drive = Drive::open_proven(some(&disks, present), Some(kept))
                .map_err(|error| format!("without die {away} {when}: {error}"))?;
            self.check_flushed(&drive, &format!("without die {away} {when}"))?;
        }
        Ok(())
    }

    /// Has a die that was away, or failed, come back as it was; sometimes that is stopped.
    fn catch_up(&mut self, drive: &Drive, die: usize) -> Result<(), String> {
        let medium = self.disks.media().remove(die);
        let held = drive.held_units(die, &*medium);
        header_copies::erase(&*medium).map_err(|error| error.to_string())?;
        if held.is_none() {
            self.disks.forgive(die);
        }
        let stopped_at = if self.rng.below(4) == 0 { self.rng.below(160) } else { u64::MAX };
        let filled = drive.catch_up_die_while(die, (medium, held), |row, _| row < stopped_at);
        if filled.is_err() && stopped_at < u64::MAX {
            return Ok(());
        }
        filled.map_err(|error| error.to_string())?;
        let rebuild = drive.status().maintenance.rebuild;
        self.tally.units_held += rebuild.map_or(0, |it| it.units_held);
        self.check_without_each(drive, "after a die came back")
    }

    /// Damages headers, journal and checkpoints of one die while the drive is open, and scrubs.
    fn damage_copies(&mut self, drive: &Drive) -> Result<(), String> {
        let die = self.any_die();
        let end = usize::try_from(Layout::new(&self.shape).unit_from(0)).expect("a small drive");
        let header = usize::try_from(HEADER_BYTES).expect("a page");
        let limit = [2 * header, end][below(&mut self.rng, 2)];
        let last = self.disks.disk_bytes() - header;
        for _ in 0..=self.rng.below(200) {
            let bit = 1 << self.rng.below(8);
            let at = below(&mut self.rng, limit + header);
            // Beyond comes the header at the end.
            let at = if at < limit { at } else { last + at - limit };
            self.disks.flip(die, at, bit);
        }
        let scrubbed = drive.scrub(true).map_err(|error| error.to_string())?;
        self.tally.copies_bad += scrubbed.copies_bad;
        if scrubbed.copies_restored < scrubbed.copies_bad {
            return Err(format!("not all copies are restored: {scrubbed:?}"));
        }
        self.check_without_each(drive, "after a scrub")
    }

    /// Damages what one die has of pages, and reads all of them.
    fn damage_units(&mut self, drive: &Drive) -> Result<(), String> {
        let die = self.any_die();
        self.rot(die, 300);
        let in_memory = self.pages_in_memory(drive);
        self.check_flushed(drive, "from parity")?;
        // A place that has proved bad is not written again, but emptied.
        let is_mended = || {
            let status = drive.status();
            let is_draining = |it: &status::BadPlace| it.state == Some(BadPlaceState::Draining);
            status.dies.iter().all(|it| it.rows_suspect == 0)
                && !status.maintenance.bad_places.iter().any(is_draining)
        };
        let mut looks = 0;
        while !is_mended() {
            drive.attend().map_err(|error| error.to_string())?;
            looks += 1;
            if looks > 200 {
                return Err("what a read found damaged is never mended".into());
            }
        }
        let read: u64 = drive.status().dies.iter().map(|it| it.reconstructed_reads).sum();
        self.tally.reconstructed += read;
        // What nothing reads, such as parity and headers of units, is for a scrub to find.
        let kept = self.disks.fork();
        kept.restore();
        for away in (0..self.dies()).filter(|it| *it != die) {
            let disks = kept.fork();
            let present = DieSet(self.shape.all_dies().0 & !(1 << away));
            self.keep(drive);
            let proof = Arc::new(KeptProof(Mutex::new(self.proof.clone())));
            let Ok(drive) = Drive::open_proven(some(&disks, present), Some(proof)) else {
                continue;
            };
            if let Some(page) = self.lost_on(&drive, die, &in_memory) {
                return Err(format!(
                    "page {page} of die {die} is gone without die {away}, and was read before"
                ));
            }
        }
        drive.scrub(true).map_err(|error| error.to_string())?;
        Ok(())
    }

    /// Has a place of a die become bad, and the drive attend to it, if not always to the end.
    fn wear_out(&mut self, drive: &Drive) -> Result<(), String> {
        let failed = |error: crate::DeviceError| format!("with a bad place: {error}");
        let (layout, dies) = (Layout::new(&self.shape), self.dies());
        let die = below(&mut self.worn, dies);
        let rows: Vec<u32> = drive.core().map_err(failed)?.rows.held().map(|it| it.0).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let row = rows[below(&mut self.worn, rows.len())];
        let unit = usize::try_from(layout.unit_from(row)).expect("a small drive");
        let at = unit + below(&mut self.worn, layout.unit_bytes);
        // Rot that was written again is found once more.
        let is_rot = self.worn.below(2) == 0;
        for _ in 0..=u32::from(is_rot) {
            if is_rot {
                self.disks.flip(die, at, 1);
            } else {
                self.disks.make_unreadable(die, at..at + 1);
            }
            drive.scrub(true).map_err(failed)?;
        }
        // Attending may move all that the row holds. Where it left out the die is no unit.
        let held = drive.core().map_err(failed)?.rows.life(row);
        drive.attend().map_err(failed)?;
        let superblock = layout.superblock_of(row).0;
        if held.seq == 0 || layout.position(row, die, held.out).is_none() {
            return Ok(());
        }
        let state = || {
            let places = drive.status().maintenance.bad_places;
            let is_it =
                |it: &&status::BadPlace| (it.die as usize, it.superblock) == (die, superblock);
            places.iter().find(is_it).and_then(|it| it.state)
        };
        let listed = state().ok_or_else(|| format!("superblock {superblock} is not listed"))?;
        self.tally.bad_places += 1;
        self.see_bad_places(drive)?;
        for _ in 0..self.worn.below(8) {
            drive.attend().map_err(failed)?;
        }
        if self.worn.below(2) == 0 && listed != BadPlaceState::InUse {
            let mut looks = 0;
            while state() != Some(BadPlaceState::Retired) {
                drive.attend().map_err(failed)?;
                looks += 1;
                if looks > 100 {
                    return Err(format!("superblock {superblock} is never retired"));
                }
            }
            self.tally.retired += 1;
        }
        self.check_flushed(drive, "with bad places")
    }

    /// Has the disks notice writes to bad places, and says if there was one.
    fn see_bad_places(&self, drive: &Drive) -> Result<(), String> {
        drive.core().map_err(|error| error.to_string())?.ftl.check_invariants();
        let places = drive.status().maintenance.bad_places;
        let spared = places.iter().filter(|it| it.state != Some(BadPlaceState::InUse));
        let range = |it: &status::BadPlace| it.offset_bytes..it.offset_bytes + it.length_bytes;
        self.disks.spare(spared.map(|it| (it.die as usize, range(it))).collect());
        self.disks.take_broken().map_or(Ok(()), Err)
    }

    /// Pages of rows that are begun, which reads find in memory, and not on the media.
    fn pages_in_memory(&self, drive: &Drive) -> BTreeSet<u64> {
        let is_in_memory = |page: &u64| {
            let lpn = ftl::Lpn(u32::try_from(*page).expect("a small drive"));
            let located = drive.core().map(|core| core.locate(lpn));
            located.is_ok_and(|it| matches!(it, PageLocation::Open(_)))
        };
        self.flushed.keys().copied().filter(is_in_memory).collect()
    }

    /// A page that lies on a die and cannot be read, other than those `in_memory` before.
    fn lost_on(&self, drive: &Drive, die: usize, in_memory: &BTreeSet<u64>) -> Option<u64> {
        let layout = &drive.store().layout;
        let is_on = |page: u64| {
            let lpn = ftl::Lpn(u32::try_from(page).expect("a small drive"));
            let stored = drive.core().ok().and_then(|core| core.locate(lpn).stored());
            stored.is_some_and(|stored| {
                let place = layout.place(stored.ppn);
                layout.die(place.row, place.unit, stored.life.out) == die
            })
        };
        let on_media = self.flushed.keys().copied().filter(|page| !in_memory.contains(page));
        let pages = on_media.filter(|page| is_on(*page));
        let mut lost = pages.filter(|page| drive.read(page * PAGE, &mut [0; PAGE_BYTES]).is_err());
        lost.next()
    }

    /// Damages pages of a drive without parity, and has the power go after they were told as lost.
    fn lose_pages(&mut self, drive: Drive) -> Result<Drive, String> {
        self.rot(0, 20);
        let read = |page: u64| drive.read(page * PAGE, &mut [0; PAGE_BYTES]);
        let failed: Vec<u64> = (0..PAGES).filter(|page| read(*page).is_err()).collect();
        let told = drive.lost_lbas(1000).map_err(|error| error.to_string())?;
        self.tally.pages_lost += told.len() as u64;
        drive.attend().map_err(|error| error.to_string())?;
        self.keep(&drive);
        drop(drive);
        self.disks.restore();
        let drive = self.open(self.shape.all_dies()).map_err(|error| error.to_string())?;
        let known = drive.lost_lbas(1000).map_err(|error| error.to_string())?;
        if let Some(forgotten) = told.iter().find(|lba| !known.contains(lba)) {
            return Err(format!("sector {forgotten} was told as lost, and is forgotten"));
        }
        for page in failed {
            self.written = self.written % 250 + 1;
            let content = [self.written; PAGE_BYTES];
            let written = drive.write(page * PAGE, &content, Durability::Durable);
            written.map_err(|error| error.to_string())?;
            self.flushed.insert(page, self.written);
        }
        Ok(drive)
    }

    /// Flips bits of what a die has behind its metadata, where anything is.
    fn rot(&mut self, die: usize, bits: u64) {
        let from = usize::try_from(Layout::new(&self.shape).unit_from(0)).expect("a small drive");
        let until = usize::try_from(self.shape.die_bytes().0).expect("a small drive");
        let length = until - from;
        for _ in 0..bits {
            let bit = 1 << self.rng.below(8);
            self.disks.flip(die, from + below(&mut self.rng, length), bit);
        }
    }
}

/// Some of the disks as media.
fn some(disks: &Disks, present: DieSet) -> Vec<Box<dyn Medium>> {
    let media = disks.media().into_iter().enumerate();
    media.filter(|(die, _)| present.has(*die)).map(|(_, medium)| medium).collect()
}
