//! Operators' commands on a volume in a folder, whose server dies at any change to any file, or
//! whose power goes: one seed decides all of it.
//!
//! The laws:
//! - No command reports what did not happen: what was to be erased is found on no medium but those
//!   that the purge names, what was to be rebuilt tolerates the next loss, and an erasure that was
//!   cut off is told as long as it may have begun.
//! - Clients read what was acknowledged, or flushed where the power went, or opening refuses.
//! - Opening does not refuse while the folder and the dies of the last session are there.
//! - After a scrub that found everything right or mended it, any one die may go.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use blockio::{Bytes, Rng};
use device::{Device as _, DeviceError, Durability};
use status::{Compression, ProblemKind, Status, UserCapacity};

use self::page_history::PageHistory;
use crate::format::layout::{Layout, PAGE_BYTES};
use crate::host_death;
use crate::volume::folder::{die_paths, unerased_media};
use crate::volume::hot_spares::SpareAttempts;
use crate::{
    Access, Beyond, Contents, CreateOptions, Drive, OpenError, Replacement, add_spare, hot_spares,
    purge_volume, reformat_volume, remove_spare,
};

mod page_history;

/// Pages that clients use, and most that the volume has.
const PAGES: u64 = 48;
const PAGES_MAX: u64 = 256;
const PAGE: u64 = PAGE_BYTES as u64;
/// Upper bytes of each word that a client writes.
const MARK: u64 = 0xF1_0A_7E << 40;
const NUMBER: u64 = (1 << 40) - 1;
/// Files of the folder that prove something and are not needed to open it.
const PROOFS: [&str; 2] = ["dies.witness", "damage.jsonl"];

/// Counts of what a simulation of operators tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Operators {
    /// Sessions that began.
    pub(crate) sessions: u64,
    /// Commands of operators, and those of them that a server lived to answer, if by a refusal.
    pub(crate) commands: u64,
    pub(crate) answered: u64,
    /// Servers that died, and losses of power.
    pub(crate) deaths: u64,
    pub(crate) power_losses: u64,
    /// Sessions without one of the dies.
    pub(crate) absences: u64,
    /// Files of the folder that were lost, torn or rolled back.
    pub(crate) files_spoilt: u64,
    /// Erasures that were answered, and those that were told as unfinished.
    pub(crate) erased: u64,
    pub(crate) unfinished: u64,
    /// Scrubs that were answered as clean.
    pub(crate) scrubs: u64,
}

impl std::ops::AddAssign for Operators {
    fn add_assign(&mut self, other: Self) {
        self.sessions += other.sessions;
        self.commands += other.commands;
        self.answered += other.answered;
        self.deaths += other.deaths;
        self.power_losses += other.power_losses;
        self.absences += other.absences;
        self.files_spoilt += other.files_spoilt;
        self.erased += other.erased;
        self.unfinished += other.unfinished;
        self.scrubs += other.scrubs;
    }
}

/// A volume, its clients and its operator.
struct OperatedVolume {
    folder: tempfile::TempDir,
    volume: PathBuf,
    rng: Rng,
    pages: Vec<PageHistory>,
    /// Number of the last write, and of the last one before what was erased for good.
    written: u64,
    erased_to: u64,
    /// True while an erasure may have begun that was not answered.
    is_erasure_open: bool,
    /// True while a die has damage that no scrub has mended.
    is_damaged: bool,
    /// True if no die was out of service when the last session ended.
    is_whole: bool,
    /// The die that is away: its path, and where it is.
    away: Option<(PathBuf, PathBuf)>,
    files_made: u64,
    /// Media that an earlier description, which was put back, does not know.
    forgotten: BTreeSet<PathBuf>,
    /// Files of the folder, as they were when they were last spoilt, and its former description.
    earlier: BTreeMap<String, Vec<u8>>,
    tally: Operators,
}

/// Plays so many sessions of a seed.
///
/// # Errors
/// How a law was broken.
pub(crate) fn simulate_operators(seed: u64, sessions: u64) -> Result<Operators, String> {
    // Files in memory, where the system has such a place, need no disk to be synced.
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let folder = tempfile::tempdir_in(place).map_err(|error| error.to_string())?;
    host_death::forget();
    let mut rng = Rng::new(seed);
    let dies = 2 + rng.below(3);
    let options = CreateOptions {
        volume: folder.path().join("volume"),
        dies: (0..dies).map(|die| folder.path().join(format!("d{die}.img"))).collect(),
        size: Bytes(PAGES_MAX * PAGE),
        is_protected: true,
        over_provisioning: 1.0,
        compression: Compression::None,
        physical: None,
        unit: Some(Bytes(16 << 10)),
    };
    Drive::create(&options)
        .and_then(|drive| Ok(drive.close()?))
        .map_err(|error| error.to_string())?;
    host_death::revive();
    let mut operated = OperatedVolume {
        volume: options.volume,
        folder,
        rng,
        pages: vec![PageHistory::default(); index(PAGES)],
        written: 0,
        erased_to: 0,
        is_erasure_open: false,
        is_damaged: false,
        is_whole: true,
        away: None,
        files_made: 0,
        forgotten: BTreeSet::new(),
        earlier: BTreeMap::new(),
        tally: Operators::default(),
    };
    for session in 0..sessions {
        let played = operated.play();
        host_death::revive();
        played.map_err(|broken| format!("seed {seed}, session {session}: {broken}"))?;
    }
    host_death::forget();
    Ok(operated.tally)
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("a small volume")
}

#[expect(clippy::needless_pass_by_value, reason = "a `Result` gives its error away")]
fn told(error: impl ToString) -> String {
    error.to_string()
}

impl OperatedVolume {
    fn below(&mut self, limit: u64) -> u64 {
        self.rng.below(limit)
    }

    fn is_due(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }

    fn play(&mut self) -> Result<(), String> {
        self.meddle()?;
        let drive = self.open()?;
        self.tally.sessions += 1;
        self.is_whole = drive.lost_dies().is_empty();
        self.check(&drive)?;
        if self.below(3) > 0 {
            let changes = [8, 100, 2000][index(self.below(3))];
            host_death::order(self.below(changes));
        }
        for _ in 0..4 + self.below(12) {
            self.act(&drive)?;
            if host_death::has_come() {
                break;
            }
        }
        self.end(drive)
    }

    /// The session ends: closed, by the death of the server, or by a loss of power.
    fn end(&mut self, drive: Drive) -> Result<(), String> {
        if !host_death::has_come() {
            self.is_whole = drive.store().dies.incomplete().iter().next().is_none();
        }
        let mut is_closed = false;
        if !host_death::has_come() && self.is_due(3) {
            let closed = drive.close();
            is_closed = !host_death::has_come();
            if is_closed {
                closed.map_err(told)?;
                self.pages.iter_mut().for_each(PageHistory::settle);
            }
        } else {
            host_death::order(0);
            drop(drive);
        }
        if self.is_due(2) {
            self.tally.power_losses += 1;
            host_death::cut_power(&mut self.rng);
            self.pages.iter_mut().for_each(PageHistory::lose_power);
        } else if !is_closed {
            self.tally.deaths += 1;
            self.pages.iter_mut().for_each(PageHistory::lose_server);
            if self.is_due(6) && self.spoil("write-buffer")? {
                // Nothing but the dies has what was written since the last flush.
                self.pages.iter_mut().for_each(PageHistory::lose_power);
            }
        }
        host_death::revive();
        if let Some((path, aside)) = self.away.take()
            && !path.exists()
            && self.is_due(2)
        {
            fs::rename(aside, path).map_err(told)?;
        }
        Ok(())
    }

    /// Changes files while nothing serves them.
    fn meddle(&mut self) -> Result<(), String> {
        let is_sound = self.is_whole && !self.is_damaged;
        match self.below(6) {
            0 | 1 if is_sound => {
                let dies = die_paths(&self.volume);
                let path = dies[index(self.below(dies.len() as u64))].clone();
                let aside = path.with_extension(format!("away{}", self.tally.sessions));
                fs::rename(&path, &aside).map_err(told)?;
                self.away = Some((path, aside));
                self.tally.absences += 1;
            }
            2 => {
                let proof = PROOFS[index(self.below(2))];
                self.spoil(proof)?;
            }
            3 => self.spoil_description()?,
            _ => {}
        }
        Ok(())
    }

    /// Removes a file of the folder, cuts it off, flips a bit of it, or puts an earlier one in its
    /// place; says whether there was one.
    fn spoil(&mut self, name: &str) -> Result<bool, String> {
        let path = self.volume.join(name);
        let Ok(mut bytes) = fs::read(&path) else { return Ok(false) };
        let earlier = self.earlier.insert(name.to_owned(), bytes.clone());
        self.tally.files_spoilt += 1;
        let at = index(self.below(bytes.len().max(1) as u64));
        match (self.below(4), earlier) {
            (0, _) => fs::remove_file(path).map_err(told)?,
            (1, Some(earlier)) => fs::write(path, earlier).map_err(told)?,
            (2, _) if !bytes.is_empty() => {
                bytes[at] ^= 1 << self.below(8);
                fs::write(path, bytes).map_err(told)?;
            }
            _ => fs::write(path, &bytes[..at]).map_err(told)?,
        }
        Ok(true)
    }

    /// The description of the volume is gone or torn, and opening refuses; or it is an earlier one,
    /// and stays, where opening does not refuse that.
    fn spoil_description(&mut self) -> Result<(), String> {
        const NAME: &str = "volume.toml";
        let path = self.volume.join(NAME);
        let whole = fs::read(&path).map_err(told)?;
        let earlier = self.earlier.insert(NAME.to_owned(), whole.clone());
        self.tally.files_spoilt += 1;
        match (self.below(3), earlier) {
            (0, Some(earlier)) if !self.is_erasure_open => {
                fs::write(&path, earlier).map_err(told)?;
                if let Ok(drive) = self.try_open() {
                    self.forget_media();
                    self.check(&drive)?;
                    self.is_whole = drive.lost_dies().is_empty();
                    return Ok(());
                }
            }
            (1, _) => {
                // Cut off behind the dies it is what an operator may write by hand.
                let dies_end = whole.iter().position(|byte| *byte == b']').unwrap_or_default();
                fs::write(&path, &whole[..dies_end.min(whole.len() / 3)]).map_err(told)?;
            }
            _ => fs::remove_file(&path).map_err(told)?,
        }
        if self.try_open().is_ok() {
            return Err("it opened without a whole description".to_owned());
        }
        fs::write(&path, whole).map_err(told)
    }

    /// Opens the volume; now and then the server dies meanwhile, or the power goes.
    fn open(&mut self) -> Result<Drive, String> {
        while self.is_due(3) {
            let changes = self.below(60);
            host_death::order(changes);
            let opened = self.try_open();
            let has_died = host_death::has_come();
            if let (Err(error), false) = (&opened, has_died) {
                return Err(format!("it does not open: {error}"));
            }
            drop(opened);
            self.tally.deaths += 1;
            if self.is_due(2) {
                host_death::cut_power(&mut self.rng);
                self.pages.iter_mut().for_each(PageHistory::lose_power);
            }
            host_death::revive();
        }
        self.try_open().map_err(|error| format!("it does not open: {error}"))
    }

    fn try_open(&self) -> Result<Drive, OpenError> {
        // One request after the other, each of which may be the last one.
        Drive::open_as(&self.volume, Access { is_direct: false, is_ringed: false })
    }

    /// Checks what clients read, and that an erasure that was cut off is told where it shows.
    fn check(&mut self, drive: &Drive) -> Result<(), String> {
        let size = drive.size() / PAGE;
        let status = crate::describe_status(drive.status(), &self.volume);
        let is_told =
            status.health.problems.iter().any(|it| it.kind == ProblemKind::PurgeUnfinished);
        self.tally.unfinished += u64::from(is_told);
        let (mut erased, mut left) = (None, None);
        for page in 0..PAGES.min(size) {
            let found = read(drive, page)?;
            if found != 0 {
                left.get_or_insert(page);
            }
            let known = &mut self.pages[index(page)];
            let is_erased = found == 0 && self.is_erasure_open;
            if is_erased && !known.allows(0) {
                erased.get_or_insert(page);
            }
            if !is_erased && !known.allows(found) {
                return Err(format!("page {page} has {found}, {known:?} is allowed"));
            }
            known.become_known(found);
        }
        if let Some(page) = erased.filter(|_| !is_told) {
            // It ended before its answer came; then nothing is left anywhere.
            if let Some(left) = left {
                return Err(format!("page {page} was erased, {left} was not, and nothing says so"));
            }
            self.erased_to = self.written;
            self.check_erased(&status)?;
        }
        for page in size.min(PAGES)..PAGES {
            self.pages[index(page)].erase();
        }
        self.is_erasure_open = self.is_erasure_open && is_told;
        Ok(())
    }

    /// A client or the operator does something.
    fn act(&mut self, drive: &Drive) -> Result<(), String> {
        let pages = PAGES.min(drive.size() / PAGE);
        let page = self.below(pages);
        match self.below(10) {
            0..4 => self.write(drive, page, pages),
            4 => {
                let done = drive.trim(page * PAGE, PAGE, Durability::Volatile);
                self.settle_write(page, 0, done)
            }
            5 => {
                let done = drive.flush();
                self.outcome(done, |it| it.pages.iter_mut().for_each(PageHistory::settle))
            }
            6 => {
                let found = read(drive, page)?;
                let known = &self.pages[index(page)];
                if host_death::has_come() || known.is_latest(found) {
                    return Ok(());
                }
                Err(format!("page {page} reads {found}, and {known:?} was written"))
            }
            _ => self.command(drive),
        }
    }

    fn write(&mut self, drive: &Drive, first: u64, pages: u64) -> Result<(), String> {
        for page in first..pages.min(first + 1 + self.below(6)) {
            self.written += 1;
            let words = [(MARK | self.written).to_le_bytes(); PAGE_BYTES / 8];
            let done = drive.write(page * PAGE, words.as_flattened(), Durability::Volatile);
            self.settle_write(page, self.written, done)?;
        }
        Ok(())
    }

    fn settle_write(
        &mut self,
        page: u64,
        number: u64,
        done: Result<(), DeviceError>,
    ) -> Result<(), String> {
        self.pages[index(page)].attempt(number);
        if matches!(done, Err(DeviceError::NoSpace { .. })) {
            return Ok(());
        }
        self.outcome(done, |it| it.pages[index(page)].acknowledge())
    }

    /// Takes note of what was answered, if anything was.
    fn outcome<E: ToString>(
        &mut self,
        done: Result<(), E>,
        note: impl FnOnce(&mut Self),
    ) -> Result<(), String> {
        if host_death::has_come() {
            return Ok(());
        }
        done.map_err(told)?;
        note(self);
        Ok(())
    }

    /// A command of an operator, who asks until it has ended.
    fn command(&mut self, drive: &Drive) -> Result<(), String> {
        self.tally.commands += 1;
        let lost = drive.lost_dies();
        let what = self.below(12);
        match what {
            0 | 1 => self.erase(drive)?,
            2 => self.resize(drive)?,
            3 if lost.is_empty() && drive.is_redundant() && !self.is_damaged => {
                let die = index(self.below(drive.store().dies.count() as u64));
                self.is_whole = false;
                let done = drive.fail_die(die);
                self.outcome(done, |_| ())?;
            }
            3..7 if !lost.is_empty() => self.replace(drive, lost[0])?,
            7 => self.add_spare(drive)?,
            8 => self.remove_spare()?,
            9 if !lost.is_empty() && !hot_spares(&self.volume).is_empty() => {
                // Now and then it is stopped, and the spare holds some of it.
                let rows = self.below(2000);
                let asked = std::cell::Cell::new(0);
                let goes_on = || {
                    asked.set(asked.get() + 1);
                    asked.get() < rows
                };
                SpareAttempts::default().fill_spare(&self.volume, drive, &goes_on);
            }
            10 if lost.is_empty() && !self.is_damaged => self.damage(drive)?,
            _ => self.scrub(drive)?,
        }
        self.tally.answered += u64::from(!host_death::has_come());
        Ok(())
    }

    /// Purges or formats; what was stored is nowhere then, but where that is told.
    fn erase(&mut self, drive: &Drive) -> Result<(), String> {
        let done = if self.is_due(2) {
            let bytes = PAGE * (1 + self.below(PAGES_MAX));
            let capacity = UserCapacity::Bytes(bytes);
            reformat_volume(&self.volume, drive, capacity, |_, _| true)
        } else {
            purge_volume(&self.volume, drive, |_, _| true).map_err(OpenError::from)
        };
        if host_death::has_come() {
            self.is_erasure_open = true;
            return Ok(());
        }
        match done {
            // It has no room for such a capacity.
            Err(OpenError::Refused { .. } | OpenError::Format(_)) => return Ok(()),
            done => done.map_err(told)?,
        }
        let status = crate::describe_status(drive.status(), &self.volume);
        if let Some(failure) = status.maintenance.purge.as_ref().and_then(|it| it.failure.clone()) {
            return Err(format!("an erasure ended by itself: {failure}"));
        }
        self.is_erasure_open = false;
        self.erased_to = self.written;
        self.tally.erased += 1;
        self.pages.iter_mut().for_each(PageHistory::erase);
        self.check_erased(&status)
    }

    /// Every medium that ever was the volume's.
    fn media(&self) -> Vec<PathBuf> {
        let first = (0..4).map(|die| self.folder.path().join(format!("d{die}.img")));
        first.chain((1..=self.files_made).map(|number| self.file(number))).collect()
    }

    /// Nothing but an earlier description says which media were the volume's.
    fn forget_media(&mut self) {
        let unerased = unerased_media(&self.volume).into_iter().map(|it| PathBuf::from(it.path));
        let known: BTreeSet<PathBuf> = die_paths(&self.volume)
            .into_iter()
            .chain(hot_spares(&self.volume))
            .chain(unerased)
            .collect();
        self.forgotten.extend(self.media().into_iter().filter(|path| !known.contains(path)));
    }

    /// Checks that no medium that is or was the volume's has anything of what was erased, but those
    /// that its status names.
    fn check_erased(&self, status: &Status) -> Result<(), String> {
        let named = [status.not_erased(), status.unerased_media()].map(Option::unwrap_or_default);
        let dies = die_paths(&self.volume);
        let made = self.media().into_iter().filter(|path| !self.forgotten.contains(path));
        for (index, path) in dies.iter().cloned().chain(made).enumerate() {
            let is_named = named.iter().any(|it| it.contains(&format!("{}", path.display())))
                || index < dies.len() && named[0].contains(&format!("ie {index}"));
            // One that is away or gone cannot be looked at.
            let Ok(bytes) = fs::read(&path) else { continue };
            if let Some(number) = (!is_named).then(|| self.found_erased(&bytes)).flatten() {
                let path = path.display();
                return Err(format!("write {number} was erased and is on {path}; told: {named:?}"));
            }
        }
        Ok(())
    }

    /// The number of a write that was erased and is left in some bytes.
    fn found_erased(&self, bytes: &[u8]) -> Option<u64> {
        bytes.chunks_exact(512).find_map(|sector| {
            let word = u64::from_le_bytes(sector[..8].try_into().expect("eight bytes"));
            let turned = (0..8).map(|byte| word.rotate_left(8 * byte));
            let mut numbers = turned.filter(|it| it & !NUMBER == MARK).map(|it| it & NUMBER);
            numbers.find(|it| *it <= self.erased_to)
        })
    }

    fn resize(&mut self, drive: &Drive) -> Result<(), String> {
        let pages = 1 + self.below(PAGES_MAX);
        let capacity = drive.capacity_of(UserCapacity::Bytes(pages * PAGE));
        let done = drive.resize(&capacity, Beyond::Lost);
        let kept = index(PAGES.min(pages));
        if host_death::has_come() {
            self.pages[kept..].iter_mut().for_each(|page| page.attempt(0));
            return Ok(());
        }
        match done {
            Ok(()) => self.pages[kept..].iter_mut().for_each(PageHistory::erase),
            // There is no room for that many.
            Err(OpenError::Refused { .. } | OpenError::Format(_)) => {}
            Err(error) => return Err(told(error)),
        }
        Ok(())
    }

    fn new_file(&mut self) -> PathBuf {
        self.files_made += 1;
        self.file(self.files_made)
    }

    fn file(&self, number: u64) -> PathBuf {
        self.folder.path().join(format!("n{number}.img"))
    }

    fn replace(&mut self, drive: &Drive, die: usize) -> Result<(), String> {
        let own = die_paths(&self.volume)[die].clone();
        let new = if self.is_due(2) && own.exists() { own } else { self.new_file() };
        let replaced = Replacement::prepare(&self.volume, drive, die, &new, Contents::Lost)
            .and_then(|it| Ok(it.carry_out(drive, |_, _| true)?));
        self.outcome(replaced, |_| ())?;
        if !host_death::has_come() && drive.lost_dies().contains(&die) {
            return Err(format!("die {die} was replaced and is lost"));
        }
        Ok(())
    }

    fn add_spare(&mut self, drive: &Drive) -> Result<(), String> {
        let path = self.new_file();
        let done = add_spare(&self.volume, drive, &path, Contents::Kept);
        self.outcome(done, |_| ())?;
        if !host_death::has_come() && !hot_spares(&self.volume).contains(&path) {
            return Err(format!("{} was added and is not there", path.display()));
        }
        Ok(())
    }

    fn remove_spare(&mut self) -> Result<(), String> {
        let Some(spare) = hot_spares(&self.volume).into_iter().next() else { return Ok(()) };
        let done = remove_spare(&self.volume, &spare).map(drop);
        self.outcome(done, |_| ())?;
        if !host_death::has_come() && hot_spares(&self.volume).contains(&spare) {
            return Err(format!("{} was removed and is there", spare.display()));
        }
        Ok(())
    }

    /// One die has damage, in what nothing reads, or anywhere.
    fn damage(&mut self, drive: &Drive) -> Result<(), String> {
        let dies = die_paths(&self.volume);
        let path = &dies[index(self.below(dies.len() as u64))];
        let metadata = Layout::new(&drive.store().layout.shape).unit_from(0);
        let file = fs::OpenOptions::new().read(true).write(true).open(path).map_err(told)?;
        let all = file.metadata().map_err(told)?.len();
        let limit = if self.is_due(2) { metadata } else { all };
        for _ in 0..=self.below(200) {
            let (at, mut byte) = (self.below(limit), [0]);
            file.read_exact_at(&mut byte, at).map_err(told)?;
            byte[0] ^= 1 << self.below(8);
            file.write_all_at(&byte, at).map_err(told)?;
        }
        self.is_damaged = true;
        self.scrub(drive)
    }

    fn scrub(&mut self, drive: &Drive) -> Result<(), String> {
        let scrubbed = drive.scrub(true);
        if host_death::has_come() {
            return Ok(());
        }
        let scrubbed = scrubbed.map_err(told)?;
        // What is in a place that has proved bad is moved, and not written there again.
        let is_clean = scrubbed.units_bad == scrubbed.units_restored + scrubbed.units_vacated
            && scrubbed.copies_bad == scrubbed.copies_restored
            && scrubbed.lost_lbas.is_empty();
        if drive.lost_dies().is_empty() {
            if !is_clean {
                return Err(format!("damage of one die is left: {scrubbed:?}"));
            }
            self.tally.scrubs += 1;
            self.is_damaged = false;
        }
        Ok(())
    }
}

/// The number of the write that a page holds; 0: none.
fn read(drive: &Drive, page: u64) -> Result<u64, String> {
    let mut bytes = [0; PAGE_BYTES];
    match drive.read(page * PAGE, &mut bytes) {
        Err(_) if host_death::has_come() => return Ok(0),
        read => read.map_err(|error| format!("page {page}: {error}"))?,
    }
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let first = word(&bytes[..8]);
    if bytes.chunks_exact(8).any(|it| word(it) != first) || first != 0 && first & !NUMBER != MARK {
        return Err(format!("page {page} holds what no client wrote: {first:#x}"));
    }
    Ok(first & NUMBER)
}

#[test]
#[expect(clippy::print_stdout, reason = "a long run is told seed by seed")]
fn no_command_of_an_operator_reports_what_did_not_happen() {
    let seeds = std::env::var("FLOATGATE_OPERATORS_SEEDS").ok().and_then(|it| it.parse().ok());
    let first = std::env::var("FLOATGATE_OPERATORS_FIRST").ok().and_then(|it| it.parse().ok());
    let (first, seeds) = (first.unwrap_or(0_u64), seeds.unwrap_or(12_u64));
    let (mut all, mut failed) = (Operators::default(), 0);
    for seed in first..first + seeds {
        match simulate_operators(seed, 12) {
            Ok(played) => all += played,
            Err(broken) => {
                failed += 1;
                println!("{broken}");
            }
        }
    }
    println!("seeds {first} to {}: {failed} failed, {all:?}", first + seeds - 1);
    assert_eq!(failed, 0, "no law is broken");
    assert!(all.answered > 3 * seeds && all.deaths > seeds && all.erased > seeds, "{all:?}");
}
