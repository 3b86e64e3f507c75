//! The dies that a folder lists, opened: which of them are there, which are dies of its volume, and
//! why another one is not used.
//!
//! ```text
//!   volume.toml: volume ID, paths ─► media ─► headers ─► dies of this volume, in their order
//!                                        └──► absent: nothing there, another volume, no answer
//! ```
//!
//! **Invariant**: no die of another volume is opened as one of this, as far as the folder says
//! which volume it is.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;
use status::management::Connection;
use status::{AbsenceCause, AbsentDie, drive_id};

use super::folder::{FILE, Volume, read, update};
use super::folder_witness::FolderWitness;
use super::hot_spares::reclaim_dies;
use crate::engine::dies::die_number;
use crate::engine::dies::gathering::{UnusedMedium, die_of_each};
use crate::engine::dies::header_copies::newest_header;
use crate::fault_injection::FaultInjector;
use crate::format::die_set::DieSet;
use crate::format::header::Header;
use crate::volume::opening::{self, Opening};
use crate::{BufferMemory, Drive, FileMedium, Medium, OpenError};

/// Media by their place in a list; none where a die cannot be had.
pub(super) type Bays = Vec<Option<Box<dyn Medium>>>;

/// The dies that a folder lists, opened.
pub(super) struct ListedDies {
    /// In the order of the list.
    media: Bays,
    /// The entry of the list for each die.
    order: Vec<usize>,
    /// By die, true if it is known that its entry is that die; another copy of a die may be in the
    /// place of one that is gone.
    is_chosen: Vec<bool>,
    listing: Listing,
}

/// List of a folder, with the reasons why some of it is not used.
pub(crate) struct Listing {
    volume: PathBuf,
    described: Volume,
    /// Paths by die.
    paths: Vec<PathBuf>,
    /// Headers by die, of media that are there and of this volume.
    headers: Vec<Option<Header>>,
    /// The dies that cannot be had.
    absent: Vec<AbsentDie>,
    /// The error of the first one that is there and was not opened, if there is such a one.
    refused: Option<OpenError>,
}

impl Drive {
    /// Opens the drive of a folder.
    ///
    /// # Errors
    /// Fails if there is none, it is in use, or it is damaged.
    pub fn open(volume: &Path) -> Result<Self, OpenError> {
        Self::open_as(volume, Opening::default())
    }

    /// As [`Drive::open`], with its dies accessed as wanted, and those that take their place.
    ///
    /// # Errors
    /// As [`Drive::open`], and when they cannot be accessed so.
    pub fn open_as(volume: &Path, opening: impl Into<Opening>) -> Result<Self, OpenError> {
        let opening = opening.into();
        reclaim_dies(volume)?;
        let listed = ListedDies::open(volume, |path| FileMedium::open(path, opening.access))?;
        listed.into_drive(&opening, |media| media, |_| ())
    }

    /// As [`Drive::open_as`], over media into which faults may be injected; none into dies that
    /// take the place of others later.
    ///
    /// # Errors
    /// As [`Drive::open_as`].
    pub fn open_with_faults(
        volume: &Path,
        opening: impl Into<Opening>,
        injector: &Arc<FaultInjector>,
    ) -> Result<Self, OpenError> {
        let opening = opening.into();
        reclaim_dies(volume)?;
        let listed = ListedDies::open(volume, |path| FileMedium::open(path, opening.access))?;
        let see = |memory: &Arc<dyn BufferMemory>| injector.lose_with_power(Arc::clone(memory));
        listed.into_drive(&opening, |media| injector.media(media), see)
    }
}

/// The dies of a folder that are there, each opened by `open`, and what the folder lists.
pub(crate) fn open_dies(
    volume: &Path,
    open: impl Fn(&Path) -> io::Result<FileMedium>,
) -> Result<(Vec<Box<dyn Medium>>, Listing), OpenError> {
    let ListedDies { media, listing, .. } = ListedDies::open(volume, open)?;
    Ok((media.into_iter().flatten().collect(), listing))
}

impl ListedDies {
    pub(super) fn open(
        volume: &Path,
        open: impl Fn(&Path) -> io::Result<FileMedium>,
    ) -> Result<Self, OpenError> {
        let described = read(volume)?;
        let (mut media, mut headers) = (Bays::new(), Vec::new());
        let (mut absent, mut refused) = (Vec::new(), None);
        for (entry, path) in described.dies.iter().enumerate() {
            let found = match open(path) {
                Ok(medium) => of_volume(path, Box::new(medium), described.id()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(OpenError::InUse {
                        path: volume.to_owned(),
                        by: server_of(volume),
                    });
                }
                Err(error) => Err(not_opened(path, error, &mut refused)?),
            };
            let (medium, header) = match found {
                Ok((medium, header)) => (Some(medium), header),
                Err((cause, reason)) => {
                    absent.push(AbsentDie { die: die_number(entry), cause, reason });
                    (None, None)
                }
            };
            media.push(medium);
            headers.push(header);
        }
        if media.iter().all(Option::is_none) && !media.is_empty() {
            return Err(none_usable(volume, &described, &absent, refused));
        }
        check_count(volume, &described.dies, &headers)?;
        let dies = die_of_each(&headers);
        let order = order_of(&dies);
        let is_chosen = (0..).zip(&order).map(|(die, entry)| dies[*entry] == Some(die)).collect();
        for absent in &mut absent {
            let die = order.iter().position(|entry| die_number(*entry) == absent.die);
            absent.die = die_number(die.expect("each entry is that of a die"));
        }
        let paths = order.iter().map(|entry| described.dies[*entry].clone()).collect();
        let headers = order.iter().map(|entry| headers[*entry]).collect();
        let volume = volume.to_owned();
        let listing = Listing { volume, described, paths, headers, absent, refused };
        Ok(Self { media, order, is_chosen, listing })
    }

    /// Opens the drive, over its media as `wrap` returns them; `see` is shown its write buffer. The
    /// list is put in the order of the
    /// dies first, which it need not have: files and devices change places, and everything else
    /// names dies by it, above all what replaces one.
    pub(super) fn into_drive(
        self,
        opening: &Opening,
        wrap: impl FnOnce(Bays) -> Bays,
        see: impl FnOnce(&Arc<dyn BufferMemory>),
    ) -> Result<Drive, OpenError> {
        let Self { mut media, order, is_chosen, listing } = self;
        if order.iter().enumerate().any(|(die, entry)| die != *entry) {
            update(&listing.volume, |described| {
                if described.dies.len() != order.len() {
                    let what = "the dies that it lists changed meanwhile: open it again";
                    return Err(OpenError::refused(format!("{FILE}: {what}")));
                }
                described.dies = order.iter().map(|entry| described.dies[*entry].clone()).collect();
                Ok(())
            })?;
            media = order.iter().map(|entry| media[*entry].take()).collect();
        }
        let media = chosen_first(wrap(media), &is_chosen);
        let promise =
            opening.promise.or(listing.described.acknowledged_survives).unwrap_or_default();
        let witness = Some(FolderWitness::attached(&listing.volume));
        let opened = opening::open_media(&listing.volume, (media, witness), promise, opening, see);
        let (mut drive, listing) = listing.explained(opened)?;
        let mut unused: Vec<String> = drive.unused_media().map(str::to_owned).collect();
        let absent = listing.absences(drive.store().dies.lost(), &unused);
        unused.extend(listing.absent.iter().map(AbsentDie::told));
        let unused = unused.into_iter().map(|text| UnusedMedium { die: None, text });
        drive.set_unused_media(unused.collect());
        drive.maintenance().absent_dies = absent;
        if listing.described.id().is_none() {
            let id = drive.store().drive;
            // Where the folder takes no change now, a later opening adds it.
            let _ = update(&listing.volume, |described| {
                described.set_id(id);
                Ok(())
            });
        }
        Ok(drive)
    }
}

impl Listing {
    /// Reasons why each of the dies that are `lost` is not used, as far as that is known; `unused`
    /// are the sentences about media that are not used as dies.
    pub(crate) fn absences(&self, lost: DieSet, unused: &[String]) -> Vec<AbsentDie> {
        let known = |die: usize| {
            let absent = self.absent.iter().find(|it| it.die == die_number(die));
            absent.cloned().or_else(|| {
                let (cause, reason) = self.absence(self.paths.get(die)?, die, unused)?;
                Some(AbsentDie { die: die_number(die), cause, reason })
            })
        };
        lost.iter().filter_map(known).collect()
    }

    fn absence(
        &self,
        path: &Path,
        die: usize,
        unused: &[String],
    ) -> Option<(AbsenceCause, String)> {
        let shown = path.display().to_string();
        if self.described.is_rebuilding(path) {
            let reason = format!("is not complete: the rebuild onto {shown} was interrupted");
            return Some((AbsenceCause::RebuildInterrupted, reason));
        }
        let is_about = |text: &&String| {
            text.strip_prefix(&shown).is_some_and(|rest| rest.starts_with([',', ' ']))
        };
        if let Some(text) = unused.iter().find(is_about) {
            return Some((AbsenceCause::Outdated, format!("is missing: {text}")));
        }
        self.headers.get(die)?.as_ref()?;
        let reason = "has failed: its medium holds an earlier state, since the volume went on \
                      without it";
        Some((AbsenceCause::Outdated, reason.to_owned()))
    }

    /// Media at listed paths that are dies of another volume, a sentence each.
    pub(crate) fn foreign(&self) -> impl Iterator<Item = String> {
        let is_foreign = |it: &&AbsentDie| it.cause == AbsenceCause::OtherVolume;
        self.absent.iter().filter(is_foreign).map(AbsentDie::told)
    }

    /// Adds the reasons of this list to the error of opening too few dies.
    pub(crate) fn explained<T>(self, opened: Result<T, OpenError>) -> Result<(T, Self), OpenError> {
        match opened {
            Ok(opened) => Ok((opened, self)),
            Err(error) => Err(self.explain(error)),
        }
    }

    /// The reason why too few dies could be opened: one that is there was refused, or some were not
    /// found, or are of another volume.
    fn explain(self, error: OpenError) -> OpenError {
        match (error, self.refused) {
            (OpenError::DiesMissing { .. }, Some(refused)) => refused,
            (OpenError::DiesMissing { missing, dies, spare, why }, None) => {
                let told = |it: &AbsentDie| format!("; {}", it.told());
                let why = why + &self.absent.iter().map(told).collect::<String>();
                OpenError::DiesMissing { missing, dies, spare, why }
            }
            (OpenError::Stale { what }, _) => {
                let told = |it: &AbsentDie| format!("; {}", it.told());
                let what = what + &self.absent.iter().map(told).collect::<String>();
                OpenError::Stale { what }
            }
            (error, _) => error,
        }
    }
}

type Absence = (AbsenceCause, String);

/// A medium and its header, unless it is a die of another volume than `own`.
fn of_volume(
    path: &Path,
    medium: Box<dyn Medium>,
    own: Option<u64>,
) -> Result<(Box<dyn Medium>, Option<Header>), Absence> {
    let header = newest_header(&*medium).ok().flatten();
    match (header, own) {
        (Some(Header { die, drive, .. }), Some(own)) if drive != own => {
            let (path, drive, own) = (path.display(), drive_id(drive), drive_id(own));
            let what = format!("is missing: {path} is die {die} of volume {drive}, not of {own}");
            Err((AbsenceCause::OtherVolume, what))
        }
        _ => Ok((medium, header)),
    }
}

/// Returns the reason why a die could not be opened, if the volume can be opened without it.
///
/// # Errors
/// Fails with the error of opening it otherwise.
fn not_opened(
    path: &Path,
    source: io::Error,
    refused: &mut Option<OpenError>,
) -> Result<Absence, OpenError> {
    let shown = path.display();
    let attempted = format!("opening the die {shown}");
    if source.kind() == io::ErrorKind::NotFound {
        return Ok((AbsenceCause::NotFound, format!("is missing: nothing is at {shown}")));
    }
    let reason = format!("is missing: {shown} cannot be opened: {source}");
    let (is_refused, is_silent) = (is_refused(&source), is_silent(&source));
    let error = OpenError::System { attempted, source };
    if is_refused {
        refused.get_or_insert(error);
    } else if !is_silent {
        return Err(error);
    }
    Ok((AbsenceCause::NotOpened, reason))
}

/// The error of a folder none of whose dies can be used.
fn none_usable(
    volume: &Path,
    described: &Volume,
    absent: &[AbsentDie],
    refused: Option<OpenError>,
) -> OpenError {
    let path = volume.to_owned();
    let is_foreign = |it: &&AbsentDie| it.cause == AbsenceCause::OtherVolume;
    let foreign: Vec<String> = absent.iter().filter(is_foreign).map(AbsentDie::told).collect();
    if !foreign.is_empty() {
        return OpenError::OtherVolume { path, what: foreign.join("; ") };
    }
    let first = described.dies.first().cloned().unwrap_or_default();
    refused.unwrap_or(OpenError::NoDies { path, first })
}

/// Checks that a folder lists no more dies than its volume has.
fn check_count(
    volume: &Path,
    paths: &[PathBuf],
    headers: &[Option<Header>],
) -> Result<(), OpenError> {
    let Some(newest) = headers.iter().flatten().max_by_key(|header| header.version) else {
        return Ok(());
    };
    let (listed, dies) = (paths.len(), newest.shape.dies as usize);
    if listed <= dies {
        return Ok(());
    }
    let mut there = DieSet::default();
    let mut is_surplus = |header: &Option<Header>| match header {
        Some(it) if it.drive == newest.drive && !there.has(it.die as usize) => {
            there.add(it.die as usize);
            false
        }
        _ => true,
    };
    let surplus = paths.iter().zip(headers).filter(|(_, header)| is_surplus(header));
    let surplus: Vec<String> = surplus.map(|(path, _)| path.display().to_string()).collect();
    let reason = format!(
        "it lists {listed} dies, and the volume has {dies}: {} is none of them, or not the only \
         copy",
        surplus.join(" or ")
    );
    Err(OpenError::Description { path: volume.to_owned(), reason })
}

/// The media that are there, first those that are the dies of their places. Of two copies of a die
/// that know as much the first one is opened; were that the other one, the list would name the one
/// in use as another die, and lose it when that is replaced.
fn chosen_first(media: Vec<Option<Box<dyn Medium>>>, is_chosen: &[bool]) -> Vec<Box<dyn Medium>> {
    let (chosen, others): (Vec<_>, Vec<_>) =
        media.into_iter().zip(is_chosen).partition(|(_, is_chosen)| **is_chosen);
    chosen.into_iter().chain(others).filter_map(|(medium, _)| medium).collect()
}

/// The entry of a list for each die, from the die that each entry is, if that is known. Entries
/// that are not known stay where they are as far as possible.
fn order_of(dies: &[Option<usize>]) -> Vec<usize> {
    let mut order: Vec<Option<usize>> = vec![None; dies.len()];
    let mut place = |die: usize, entry: usize| match order.get_mut(die) {
        Some(it @ None) => {
            *it = Some(entry);
            true
        }
        _ => false,
    };
    let known = (0..).zip(dies).filter_map(|(entry, die)| die.map(|die| (entry, die)));
    let mut is_placed = vec![false; dies.len()];
    for (entry, die) in known {
        is_placed[entry] = place(die, entry);
    }
    for (entry, is_placed) in is_placed.iter_mut().enumerate() {
        *is_placed = *is_placed || place(entry, entry);
    }
    let mut left = (0..dies.len()).filter(|entry| !is_placed[*entry]);
    order.into_iter().map(|entry| entry.or_else(|| left.next()).expect("as many")).collect()
}

/// True if a device is there and does not respond.
fn is_silent(error: &io::Error) -> bool {
    is_one_of(error, &[Errno::IO, Errno::NXIO, Errno::NODEV])
}

/// True if what is there is nothing that a die can be: a volume that can do without that die opens
/// so. What this user or this mount may not write is not among it: the die would count as failed
/// from then on, and it has not.
fn is_refused(error: &io::Error) -> bool {
    let refused = [Errno::NOTDIR, Errno::LOOP, Errno::NAMETOOLONG, Errno::STALE, Errno::TIMEDOUT];
    error.kind() == io::ErrorKind::Unsupported || is_one_of(error, &refused)
}

fn is_one_of(error: &io::Error, errors: &[Errno]) -> bool {
    let code = error.raw_os_error();
    code.is_some_and(|code| errors.iter().any(|it| it.raw_os_error() == code))
}

/// Returns the process that serves the drive of a folder, by its id if that is known.
fn server_of(volume: &Path) -> String {
    let connection = Connection::open(volume).ok().flatten();
    connection.map_or_else(|| "another process".to_owned(), |it| format!("process {}", it.pid()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::example::three_dies;
    use crate::{Access, CreateOptions};

    /// A closed volume of three dies.
    fn closed(folder: &Path) -> CreateOptions {
        let options = three_dies(folder);
        Drive::create(&options).unwrap().close().unwrap();
        options
    }

    #[test]
    fn a_die_that_this_user_or_mount_may_not_write_does_not_count_as_failed() {
        let folder = tempfile::tempdir().unwrap();
        let options = closed(folder.path());
        for errno in [Errno::ACCESS, Errno::PERM, Errno::ROFS] {
            let opened = ListedDies::open(&options.volume, |path| {
                if *path == options.dies[1] {
                    return Err(errno.into());
                }
                FileMedium::open(path, Access::default())
            });
            let error = opened.err().expect("it is refused");
            assert!(error.to_string().contains("opening the die"), "{error}");
            assert!(error.to_string().contains("d1.img"), "{error}");
            let remedy = error.remedy(&options.volume);
            assert!(remedy.contains("writ") && !remedy.contains("floatgate"), "{remedy}");
        }
        let drive = Drive::open(&options.volume).unwrap();
        assert!(drive.lost_dies().is_empty());
    }

    #[test]
    fn a_device_that_does_not_respond_is_absent_with_the_error() {
        let folder = tempfile::tempdir().unwrap();
        let options = closed(folder.path());
        let listed = ListedDies::open(&options.volume, |path| {
            if *path == options.dies[2] {
                return Err(Errno::IO.into());
            }
            FileMedium::open(path, Access::default())
        });
        let drive = listed.unwrap().into_drive(&Opening::default(), |media| media, |_| ()).unwrap();
        let health = crate::describe_status(drive.status(), &options.volume).health;
        let [problem] = health.problems.as_slice() else { panic!("{health:?}") };
        let expected = format!(
            "Die 2 is missing: {} cannot be opened: Input/output error",
            options.dies[2].display()
        );
        assert!(problem.text.starts_with(&expected), "{}", problem.text);
    }
}
