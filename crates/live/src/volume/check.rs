//! Checking a drive that no process has open: everything that lies on its dies, against everything
//! else that does.
//!
//! ```text
//!  headers ─► checkpoint ─► journal ─► map, as opening would have it ─► every row: each unit, the
//!  sum of all, and what the map looks for in it
//! ```
//!
//! Dies are opened for reading only. What a crash left behind is looked at as recovery would, in
//! memory.

use std::path::Path;

use serde::{Deserialize, Serialize};
use status::{AbsenceCause, LeftBuffer, State, drive_id};

use crate::engine::dies::die_number;
use crate::engine::dies::gathering::{GatheredDies, UnusedMedium, gather, gather_proven};
use crate::engine::dies::header_copies::header_copy;
use crate::engine::log::recovery::{AccountedDrive, look, take_up, whole_copies};
use crate::engine::log::replay::ThinBatch;
use crate::engine::store::Store;
use crate::engine::store::verification::{Flaw, RowPages, VerifiedRow, VerifiedUnit};
use crate::format::header::Header;
use crate::format::layout::lba;
use crate::format::layout::{HEADER_BYTES, REPLICAS};
use crate::format::row::RowEpoch;
use crate::volume::folder::is_purge_unfinished;
use crate::volume::folder_witness::FolderWitness;
use crate::volume::listed_dies::open_dies;
use crate::volume::opening::{Opening, view_buffer};
use crate::{Drive, FileMedium, Medium, OpenError, UnlockingKey, Upgrade};

/// Version of [`Report`] as JSON; a field that goes or changes its meaning raises it.
pub const SCHEMA: u32 = 1;

/// Result of a check: what was read, and every finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Number of the drive, 16 hexadecimal digits.
    pub drive: String,
    /// State of the drive when it was checked: closed, or left open by a crash.
    pub state: State,
    /// Rows that hold something.
    pub rows: u64,
    /// Units of them that were read.
    pub units: u64,
    /// Pages that are stored, and were looked for where the map has them.
    pub pages: u64,
    /// Contents of the write buffer that the death of a server left, if it has one; what opening
    /// replays of it is among the pages.
    #[serde(default)]
    pub write_buffer: Option<LeftBuffer>,
    /// Dies that have no room behind their erase blocks for a copy of their header.
    #[serde(default)]
    pub dies_without_end_header: Vec<u32>,
    /// Deviations from what should be on the dies, sorted.
    pub findings: Vec<Finding>,
}

/// Deviation from what should be on the dies. Sorted by kind, then by place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Finding {
    /// Kind of object that is affected.
    pub kind: Kind,
    /// First sector of the page that cannot be read any more.
    pub lba: Option<u64>,
    /// Row of the drive.
    pub row: Option<u32>,
    /// Index of the die.
    pub die: Option<u32>,
    /// Action that removes the finding, if any does.
    pub remedy: Remedy,
    /// Description of the damage, one sentence.
    pub text: String,
}

/// Kind of object that a finding affects, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A page that cannot be read any more.
    LostPage,
    /// A die that is missing, or has failed.
    Die,
    /// A copy of a die's header.
    Header,
    /// A copy of the checkpoint.
    Checkpoint,
    /// A copy of the journal.
    Journal,
    /// A unit with data.
    Unit,
    /// A unit with parity.
    Parity,
    /// A purge or a format that has not ended.
    Purge,
}

/// Action that removes a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Remedy {
    /// None: the data is lost.
    None,
    /// Another die has to take the place of this one.
    Replace,
    /// Repairing writes it again from what is whole, or moves what can be read away from it.
    Repair,
    /// Repeating the purge erases what is left.
    Purge,
    /// A crash left it so; opening the drive sets it right.
    Open,
}

impl Report {
    /// True if every finding is one that opening the drive repairs.
    pub fn is_clean(&self) -> bool {
        self.findings.iter().all(|finding| finding.remedy == Remedy::Open)
    }

    /// Returns the number of findings that a repair would remove.
    pub fn repairable(&self) -> usize {
        self.findings.iter().filter(|finding| finding.remedy == Remedy::Repair).count()
    }
}

/// Checks the drive of a folder, which is not changed. `moved` is told before each row how many
/// rows of how many have been gone through.
///
/// # Errors
/// Fails if there is no drive, it is in use, or so damaged that it could not be opened.
pub fn check(volume: &Path, moved: impl FnMut(u64, u64)) -> Result<Report, OpenError> {
    let (media, listing) = open_dies(volume, FileMedium::view)?;
    let (mut gathered, listing) =
        listing.explained(gather_proven(media, Some(FolderWitness::attached(volume))))?;
    let texts: Vec<String> = gathered.unused.iter().map(|it| it.text.clone()).collect();
    let absent = listing.absences(gathered.store.dies.lost(), &texts).into_iter();
    gathered.unused.extend(absent.map(|it| {
        let advice = match it.cause {
            AbsenceCause::NotFound => {
                ": correct it in volume.toml or mount its file system before serving"
            }
            _ => "",
        };
        UnusedMedium { die: Some(it.die), text: format!("die {} {}{advice}", it.die, it.reason) }
    }));
    let ignored = take_up(&mut gathered.store, &gathered.header, &*view_buffer(volume)?);
    let mut report = check_gathered(gathered, moved)?;
    report.write_buffer = report.write_buffer.or_else(|| ignored.map(LeftBuffer::ignored));
    if is_purge_unfinished(volume) {
        let text =
            "a purge or a format has not ended: data that it was to erase may be left".to_owned();
        let (kind, remedy) = (Kind::Purge, Remedy::Purge);
        let finding = Finding { kind, lba: None, row: None, die: None, remedy, text };
        report.findings.push(finding);
    }
    Ok(report)
}

/// As [`check`], of a drive over media.
pub(crate) fn check_media(
    media: Vec<Box<dyn Medium>>,
    moved: impl FnMut(u64, u64),
) -> Result<Report, OpenError> {
    check_gathered(gather(media)?, moved)
}

fn check_gathered(
    GatheredDies { store, header, mut unused }: GatheredDies,
    moved: impl FnMut(u64, u64),
) -> Result<Report, OpenError> {
    let mut viewed = look(&store, &header)?;
    unused.extend(viewed.outdated.take());
    let state = if header.is_open { State::Unclosed } else { State::Closed };
    let mut checking = Checking { store: &store, viewed: &viewed, state, findings: Vec::new() };
    checking.headers(&header, &unused);
    checking.known_losses();
    checking.copies()?;
    let (rows, units) = checking.rows(moved);
    let dies_without_end_header = checking.endless(&header);
    let mut findings = checking.findings;
    findings.sort();
    let pages = viewed.ftl.map().entries().iter().filter(|entry| **entry != 0).count() as u64;
    Ok(Report {
        schema: SCHEMA,
        drive: drive_id(store.drive),
        state,
        rows,
        units,
        pages: pages + viewed.pending.len() as u64,
        write_buffer: store.buffered.as_ref().map(|buffered| viewed.brought.of(buffered)),
        dies_without_end_header,
        findings,
    })
}

/// Opens the drive of a folder, writes again what can be restored, and closes it. Its media format
/// stays as it is. `key` is that of an encrypted volume.
///
/// # Errors
/// As [`Drive::open`], [`Drive::scrub`] and [`Drive::close`].
pub fn repair(
    volume: &Path,
    key: Option<UnlockingKey>,
    mut moved: impl FnMut(u64, u64),
) -> Result<(), OpenError> {
    let opening = Opening { upgrade: Upgrade::Later, key, ..Opening::default() };
    let drive = Drive::open_as(volume, opening)?;
    let going_on = |done, all| {
        moved(done, all);
        true
    };
    drive.scrub_while(true, going_on)?;
    // Checkpoint and journal anew, on all dies that hold them.
    drive.checkpoint()?;
    Ok(drive.close()?)
}

/// A check that is under way.
struct Checking<'a> {
    store: &'a Store,
    viewed: &'a AccountedDrive,
    state: State,
    findings: Vec<Finding>,
}

impl Checking<'_> {
    fn find(&mut self, kind: Kind, die: usize, remedy: Remedy, text: String) {
        let die = u32::try_from(die).ok();
        self.findings.push(Finding { kind, lba: None, row: None, die, remedy, text });
    }

    /// Returns the remedy for a state that only a crash may leave: opening the drive if it was not
    /// closed, otherwise a repair.
    fn remedy(&self) -> Remedy {
        if self.state == State::Unclosed { Remedy::Open } else { Remedy::Repair }
    }

    fn headers(&mut self, newest: &Header, unused: &[UnusedMedium]) {
        for UnusedMedium { text, .. } in unused.iter().filter(|unused| unused.die.is_none()) {
            let (kind, remedy, text) = (Kind::Die, Remedy::Replace, text.clone());
            self.findings.push(Finding { kind, lba: None, row: None, die: None, remedy, text });
        }
        let lost = self.store.dies.lost();
        for die in 0..self.store.dies.count() {
            if lost.has(die) {
                let why = match (newest.removed.has(die), newest.lost.has(die)) {
                    (true, _) => "has failed; its rows were rebuilt on the other dies",
                    (false, true) => "has failed",
                    (false, false) => "is missing",
                };
                let given = unused.iter().find(|unused| unused.die == u32::try_from(die).ok());
                let text = given.map_or_else(|| format!("die {die} {why}"), |it| it.text.clone());
                self.find(Kind::Die, die, Remedy::Replace, text);
                continue;
            }
            let fronts = [(0, "copy 0"), (HEADER_BYTES, "copy 1")];
            let end = (self.store.layout.end_header_from(), "the copy at the end");
            let has_end = newest.has_end_copy() && self.store.has_end(die);
            for (at, copy) in fronts.into_iter().chain(has_end.then_some(end)) {
                let Some((what, remedy)) = self.header_flaw(newest, die, at) else { continue };
                let text = format!("{copy} of the header of die {die} is {what}");
                self.find(Kind::Header, die, remedy, text);
            }
        }
    }

    /// Flaw of a copy of the header of a die, if it has one, and its remedy.
    fn header_flaw(&self, newest: &Header, die: usize, at: u64) -> Option<(&'static str, Remedy)> {
        let read = |bytes: &mut [u8]| self.store.dies.read(die, at, bytes);
        let is_own =
            |header: &Header| header.drive == self.store.drive && header.die as usize == die;
        match header_copy(read).ok().flatten().filter(is_own) {
            None => Some(("corrupt", self.remedy())),
            // A crash leaves one while headers are written.
            Some(header) if newest.is_stale(&header) => Some(("outdated", Remedy::Open)),
            Some(_) => None,
        }
    }

    /// Dies that have no room for a copy of their header at their end, where others have one.
    fn endless(&self, newest: &Header) -> Vec<u32> {
        let dies = self.store.dies.healthy().filter(|_| newest.has_end_copy());
        dies.filter(|die| !self.store.has_end(*die)).map(die_number).collect()
    }

    /// Pages that are known to be lost.
    fn known_losses(&mut self) {
        for page in self.viewed.lost.iter() {
            let lba = lba(page);
            self.findings.push(Finding {
                kind: Kind::LostPage,
                lba: Some(lba),
                row: None,
                die: None,
                remedy: Remedy::None,
                text: format!("sectors {lba} to {} are lost", lba + 7),
            });
        }
    }

    /// The copies of the checkpoint and of the journal.
    fn copies(&mut self) -> Result<(), OpenError> {
        let number = self.viewed.summary.number;
        for damaged in &self.viewed.checkpoints_damaged {
            let text =
                format!("checkpoint {damaged} cannot be read; opening uses checkpoint {number}");
            let (kind, remedy) = (Kind::Checkpoint, Remedy::Open);
            self.findings.push(Finding { kind, lba: None, row: None, die: None, remedy, text });
        }
        let whole = whole_copies(self.store, number)?;
        let missing = self.store.dies.lost().count() as usize;
        for replica in self.store.checkpoint_replicas(number) {
            if !whole.contains(&replica) && whole.len() + missing < REPLICAS {
                let die = replica.die;
                let text = format!("die {die} has no intact copy of checkpoint {number}");
                self.find(Kind::Checkpoint, die, self.remedy(), text);
            }
        }
        if self.viewed.batches_lost > 0 {
            let text = format!(
                "{} batches of the journal cannot be read; checkpoint {number} contains all of \
                 their changes",
                self.viewed.batches_lost
            );
            let (kind, remedy) = (Kind::Journal, Remedy::Repair);
            self.findings.push(Finding { kind, lba: None, row: None, die: None, remedy, text });
        }
        let lost = self.store.dies.lost();
        for ThinBatch { number, die, .. } in self.viewed.thin.iter().filter(|it| !lost.has(it.die))
        {
            let text = format!("die {die} has no intact copy of batch {number} of the journal");
            self.find(Kind::Journal, *die, self.remedy(), text);
        }
        Ok(())
    }

    /// Every row that holds something; says how many those were, and their units.
    fn rows(&mut self, mut moved: impl FnMut(u64, u64)) -> (u64, u64) {
        let (mut rows, mut units) = (0, 0);
        let total = u64::from(self.store.layout.shape.rows_total());
        for (row, life) in self.viewed.rows.held() {
            moved(row.into(), total);
            rows += 1;
            units += self.row(row, life);
        }
        moved(total, total);
        (rows, units)
    }

    /// One row; says how many of its units were read.
    fn row(&mut self, row: u32, life: RowEpoch) -> u64 {
        let (store, ftl) = (self.store, &self.viewed.ftl);
        let lost = store.dies.lost();
        let is_there = |position: &u32| !lost.has(store.layout.die(row, *position, life.out));
        let units = store.layout.positions(life.out).filter(is_there).count() as u64;
        let tables = store.right_tables(row, life);
        if !tables.is_some_and(|tables| store.have_pages(ftl, row, &tables)) {
            let verified = store.verify(row, life, None);
            let pages = verified.pages(store, ftl);
            self.bad_units(row, &verified, &pages);
            self.lost_pages(row, &pages);
        }
        units
    }

    fn bad_units(&mut self, row: u32, verified: &VerifiedRow, pages: &RowPages) {
        let is_unsettled = self.viewed.unlisted.contains(&row);
        for VerifiedUnit { position, die, flaw, whole, .. } in &verified.units {
            let what = match flaw {
                None | Some(Flaw::Missing) => continue,
                // It holds nothing that counts, and waits for its next life.
                Some(_) if whole.is_none() && pages.is_empty() => continue,
                Some(Flaw::Unreadable) => "cannot be read",
                Some(Flaw::Damaged) => "is corrupt",
                Some(Flaw::Stray) => "has nonzero bytes outside its pages",
                Some(Flaw::Unequal) => "does not match the data of the row",
            };
            let is_parity = self.store.layout.is_parity(*position);
            let (kind, name) =
                if is_parity { (Kind::Parity, "parity") } else { (Kind::Unit, "unit") };
            let (remedy, then) = match whole {
                Some(_) if is_unsettled => (Remedy::Open, ""),
                Some(_) => (Remedy::Repair, ""),
                None if pages.readable.is_empty() => (Remedy::None, ""),
                None => (Remedy::Repair, "; readable pages of the row are moved to another row"),
            };
            let text = format!("{name} of row {row} on die {die} {what}{then}");
            let die = u32::try_from(*die).ok();
            self.findings.push(Finding { kind, lba: None, row: Some(row), die, remedy, text });
        }
    }

    fn lost_pages(&mut self, row: u32, pages: &RowPages) {
        for page in pages.lost.iter().filter(|page| !self.viewed.lost.has(**page)) {
            let lba = lba(*page);
            self.findings.push(Finding {
                kind: Kind::LostPage,
                lba: Some(lba),
                row: Some(row),
                die: None,
                remedy: Remedy::None,
                text: format!("sectors {lba} to {} are lost", lba + 7),
            });
        }
    }
}
