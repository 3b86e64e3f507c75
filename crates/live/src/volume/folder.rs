//! Drives by name: a folder that says where the dies are.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf, absolute};
use std::sync::{Arc, Mutex, PoisonError};

use blockio::Bytes;
use blockio::text::in_toml_types;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::engine::creation::{Plan, format};
use crate::engine::gathering::die_of_each;
use crate::fault_injection::FaultInjector;
use crate::management::Connection;
use crate::medium::is_block_device;
use crate::volume::hot_spares::{add_spare, check_is_spare, forget_spare, reclaim_dies};
use crate::volume::new_die::{Contents, NewDie};
use crate::{
    Access, Compression, DeviceError, Drive, FileMedium, Medium, Namespace, Namespaces, OpenError,
    Preallocation,
};

pub(super) const FILE: &str = "volume.toml";
const SCHEMA: u32 = 1;
/// Most characters of a drive's name.
pub const NAME_CHARACTERS_MAX: usize = 64;

/// Parameters of a new drive, and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateOptions {
    /// Folder of the drive, which is made.
    pub volume: PathBuf,
    /// Files, which are made, or block devices, whose contents are lost: the dies, 1 to 64.
    pub dies: Vec<PathBuf>,
    /// Bytes that clients address, a multiple of 4096.
    pub size: Bytes,
    /// True if each row has a unit of parity, so that the drive survives the loss of one die.
    pub is_protected: bool,
    /// Over-provisioning as a share of the bytes that fit as they are stored, above 0.
    pub over_provisioning: f64,
    /// Compression of pages.
    pub compression: Compression,
    /// Bytes of data that fit as they are stored, at most `size`; none: as many as `size`.
    pub physical: Option<Bytes>,
    /// Bytes of pages that each die programs in one go, a power of two from 16 KiB to 4 MiB; none:
    /// 256 KiB, less on small drives.
    pub unit: Option<Bytes>,
}

impl CreateOptions {
    /// Checks that such a drive is possible, without a look at where it is to be.
    ///
    /// # Errors
    /// Fails if it is not, such as with a size above the limit.
    pub fn check(&self) -> Result<(), OpenError> {
        self.plan(self.die_count()).shape().map(drop)
    }

    fn die_count(&self) -> u32 {
        u32::try_from(self.dies.len()).unwrap_or(u32::MAX)
    }

    /// The drive apart from where it is.
    const fn plan(&self, dies: u32) -> Plan {
        let Self { size, is_protected, over_provisioning, compression, physical, unit, .. } = *self;
        Plan { size, dies, is_protected, over_provisioning, compression, physical, unit }
    }
}

/// Contents of the folder's file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Volume {
    schema: u32,
    /// Name of the drive for people; absent if it was given none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Erases that every superblock lasts; absent where nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rated_cycles: Option<u32>,
    pub(super) dies: Vec<PathBuf>,
    /// Hot spares, which replace dies that fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) spares: Vec<PathBuf>,
    /// Parts of the drive that clients see as devices of their own; none: they see the whole.
    #[serde(default, rename = "export", skip_serializing_if = "Vec::is_empty")]
    namespaces: Vec<Namespace>,
}

/// True if a folder is that of a drive.
pub fn is_volume(folder: &Path) -> bool {
    folder.join(FILE).is_file()
}

/// Checks that a folder is that of a drive, without a look at its dies.
///
/// # Errors
/// Fails if it is not, or if its description cannot be used.
pub fn check_volume(folder: &Path) -> Result<(), OpenError> {
    read(folder).map(drop)
}

/// Returns the number of dies that a folder's drive has, wherever they are.
///
/// # Errors
/// As [`check_volume`].
pub fn die_count(folder: &Path) -> Result<u32, OpenError> {
    Ok(u32::try_from(read(folder)?.dies.len()).unwrap_or(u32::MAX))
}

/// The namespaces that a folder lists, unchecked.
pub(crate) fn namespaces(volume: &Path) -> Result<Vec<Namespace>, OpenError> {
    Ok(read(volume)?.namespaces)
}

/// Lists namespaces in a folder instead of those that were.
pub(crate) fn keep_namespaces(volume: &Path, namespaces: &[Namespace]) -> Result<(), OpenError> {
    update(volume, |described| {
        described.namespaces = namespaces.to_vec();
        Ok(())
    })
}

/// Returns the name of a folder's drive: the one that it was given, or else that of the folder.
pub fn name_of(volume: &Path) -> String {
    let given = read(volume).ok().and_then(|described| described.name);
    given.unwrap_or_else(|| {
        let folder = fs::canonicalize(volume).unwrap_or_else(|_| volume.to_owned());
        folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned()
    })
}

/// Gives the drive of a folder a name.
///
/// # Errors
/// Fails if the name is none, there is no drive, or the system refuses.
pub fn name_drive(volume: &Path, name: &str) -> Result<(), OpenError> {
    check_name(name).map_err(OpenError::refused)?;
    update(volume, |described| {
        described.name = Some(name.to_owned());
        Ok(())
    })
}

/// Checks that a text may be the name of a drive.
///
/// # Errors
/// Fails if it may not; says what a name is.
pub fn check_name(name: &str) -> Result<(), String> {
    let characters = name.chars().count();
    let is_fit = (1..=NAME_CHARACTERS_MAX).contains(&characters)
        && name.trim() == name
        && !name.chars().any(char::is_control);
    if is_fit {
        return Ok(());
    }
    Err(format!(
        "{name:?} has {characters} characters, must be 1 to {NAME_CHARACTERS_MAX}, none of them a \
         control character, and no space at either end"
    ))
}

/// Returns the paths of the dies of a folder's drive, in their order; empty if there is no drive.
pub(crate) fn die_paths(volume: &Path) -> Vec<PathBuf> {
    read(volume).map(|described| described.dies).unwrap_or_default()
}

/// Erases that every superblock of a folder's drive is rated for, if that was said.
pub fn rated_cycles(volume: &Path) -> Option<u32> {
    read(volume).ok()?.rated_cycles
}

/// Says how many erases every superblock of a folder's drive is rated for.
///
/// # Errors
/// Fails if there is no drive, or the system refuses.
pub fn rate_cycles(volume: &Path, cycles: u32) -> Result<(), OpenError> {
    update(volume, |described| {
        described.rated_cycles = Some(cycles);
        Ok(())
    })
}

/// Options of a new drive besides its dies.
#[derive(Clone, Debug, Default)]
pub struct VolumeOptions {
    /// Name for people; none: that of its folder.
    pub name: Option<String>,
    /// Allocation of its files' space, at once or as they are written.
    pub preallocation: Preallocation,
    /// Files, which are made, or block devices: dies that take the place of others.
    pub hot_spares: Vec<PathBuf>,
    /// Erases that every superblock is rated for; none: nobody says.
    pub rated_cycles: Option<u32>,
    /// Parts of it that clients see as devices of their own; none: they see the whole.
    pub namespaces: Namespaces,
    /// What becomes of what block devices hold.
    pub contents: Contents,
}

/// Creates an empty drive, which is closed then.
///
/// # Errors
/// Fails if something is in the way, too small, or cannot be; then nothing is left behind.
pub fn create(options: &CreateOptions, volume_options: &VolumeOptions) -> Result<(), OpenError> {
    let VolumeOptions { name, hot_spares, rated_cycles, namespaces, contents, .. } = volume_options;
    name.as_deref().map_or(Ok(()), check_name).map_err(OpenError::refused)?;
    let volume = &options.volume;
    let mut unfinished = Unfinished::default();
    unfinished.make(options, volume_options)?;
    let drive = Drive::open(volume)?;
    for spare in hot_spares {
        let is_new = !spare.exists();
        add_spare(volume, &drive, spare, *contents)?;
        unfinished.files.extend(is_new.then(|| spare.clone()));
    }
    drive.close()?;
    if let Some(name) = name {
        name_drive(volume, name)?;
    }
    if let Some(cycles) = rated_cycles {
        rate_cycles(volume, *cycles)?;
    }
    if !namespaces.is_empty() {
        namespaces.keep(volume)?;
    }
    unfinished.keep();
    Ok(())
}

/// Files and folders of a drive that is not complete yet: removed on drop unless it is kept.
#[derive(Debug, Default)]
pub(super) struct Unfinished {
    pub(super) files: Vec<PathBuf>,
    /// Folders, the outermost first.
    folders: Vec<PathBuf>,
}

impl Unfinished {
    /// Makes the folder and the dies of a drive, and formats them.
    fn make(
        &mut self,
        options: &CreateOptions,
        VolumeOptions { preallocation, contents, .. }: &VolumeOptions,
    ) -> Result<(), OpenError> {
        let shape = options.plan(options.die_count()).shape()?;
        let path = options.volume.join(FILE);
        if path.exists() {
            let what = format!("{} exists: remove it, or name another folder", path.display());
            return Err(OpenError::refused(what));
        }
        self.make_folder(&options.volume)?;
        let mut media: Vec<Box<dyn Medium>> = Vec::new();
        let (access, preallocation, contents) = (Access::default(), *preallocation, *contents);
        let new = |path| NewDie { path, access, preallocation, contents };
        for die in &options.dies {
            media.push(new(die).make(&shape)?);
            self.files.extend((!is_block_device(die)).then(|| die.clone()));
        }
        for (die, medium) in options.dies.iter().zip(&media) {
            new(die).clear(&**medium)?;
        }
        let drive = generate_id()
            .map_err(|source| OpenError::medium("generating the volume ID", source))?;
        format(media, &shape, drive)?;
        let paths: io::Result<Vec<PathBuf>> = options.dies.iter().map(absolute).collect();
        let dies = paths.map_err(|source| OpenError::medium("finding the dies", source))?;
        let (spares, namespaces) = (Vec::new(), Vec::new());
        self.files.push(path.clone());
        let (name, rated_cycles) = (None, None);
        write(&path, &Volume { schema: SCHEMA, name, rated_cycles, dies, spares, namespaces })
    }

    /// Makes a folder and those that it lies in.
    fn make_folder(&mut self, folder: &Path) -> Result<(), OpenError> {
        let missing =
            folder.ancestors().take_while(|it| !it.as_os_str().is_empty() && !it.exists());
        self.folders = missing.map(Path::to_owned).collect();
        self.folders.reverse();
        let shown = folder.display();
        fs::create_dir_all(folder)
            .map_err(|source| OpenError::medium(&format!("creating the folder {shown}"), source))
    }

    /// The drive is complete.
    pub(super) fn keep(mut self) {
        (self.files, self.folders) = Default::default();
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Whoever made it is told why it is not complete; what cannot be removed stays.
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
        for folder in self.folders.iter().rev() {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

impl Drive {
    /// Creates an empty drive, whose files have all the space that they need, and opens it.
    ///
    /// # Errors
    /// Fails if something is in the way, too small, or cannot be; then nothing is left behind.
    pub fn create(options: &CreateOptions) -> Result<Self, OpenError> {
        let mut unfinished = Unfinished::default();
        unfinished.make(options, &VolumeOptions::default())?;
        let drive = Self::open(&options.volume)?;
        unfinished.keep();
        Ok(drive)
    }

    /// Opens the drive of a folder.
    ///
    /// # Errors
    /// Fails if there is none, it is in use, or it is damaged.
    pub fn open(volume: &Path) -> Result<Self, OpenError> {
        Self::open_as(volume, Access::default())
    }

    /// As [`Drive::open`], with its dies accessed as wanted, and those that take their place.
    ///
    /// # Errors
    /// As [`Drive::open`], and when they cannot be accessed so.
    pub fn open_as(volume: &Path, access: Access) -> Result<Self, OpenError> {
        reclaim_dies(volume)?;
        let listed = ListedDies::open(volume, |path| FileMedium::open(path, access))?;
        let (ListedDies { media, absent }, is_chosen) = listed.in_order(volume)?;
        Self::open_media(chosen_first(media, &is_chosen)).map_err(|error| absent.explain(error))
    }

    /// As [`Drive::open_as`], over media into which faults may be injected; none into dies that
    /// take the place of others later.
    ///
    /// # Errors
    /// As [`Drive::open_as`].
    pub fn open_with_faults(
        volume: &Path,
        access: Access,
        injector: &Arc<FaultInjector>,
    ) -> Result<Self, OpenError> {
        reclaim_dies(volume)?;
        let listed = ListedDies::open(volume, |path| FileMedium::open(path, access))?;
        let (ListedDies { media, absent }, is_chosen) = listed.in_order(volume)?;
        let media = injector.media(media);
        Self::open_media(chosen_first(media, &is_chosen)).map_err(|error| absent.explain(error))
    }
}

/// A die that is to take the place of one that has failed.
#[derive(Debug)]
pub struct Replacement {
    volume: PathBuf,
    die: usize,
    path: PathBuf,
    medium: Box<dyn Medium>,
}

impl Replacement {
    /// Makes a new file, or takes a block device, for a die that has failed, and names it in the
    /// drive's folder. What the drive had there before may be given again, and so may a hot spare.
    ///
    /// # Errors
    /// Fails if the die has not failed, or the new one cannot take its place, such as one whose
    /// contents are to be kept.
    pub fn prepare(
        volume: &Path,
        drive: &Drive,
        die: usize,
        new: &Path,
        contents: Contents,
    ) -> Result<Self, OpenError> {
        Self::prepare_if(volume, drive, die, (new, contents), |_| Ok(()))
    }

    /// As [`Replacement::prepare`] with a hot spare, unless its path leads to a die.
    pub(super) fn prepare_spare(
        volume: &Path,
        drive: &Drive,
        die: usize,
        spare: &Path,
    ) -> Result<Self, OpenError> {
        let check = |medium: &dyn Medium| check_is_spare(medium, drive.store().drive);
        Self::prepare_if(volume, drive, die, (spare, Contents::Kept), check)
    }

    fn prepare_if(
        volume: &Path,
        drive: &Drive,
        die: usize,
        (new, contents): (&Path, Contents),
        check: impl Fn(&dyn Medium) -> io::Result<()>,
    ) -> Result<Self, OpenError> {
        update(volume, |described| {
            let (path, medium) = Self::place(described, drive, die, (new, contents), check)?;
            Ok(Self { volume: volume.to_owned(), die, path, medium })
        })
    }

    /// Makes or takes the medium, and names it in the description of the drive. That is kept before
    /// anything counts on it: until the medium is whole, headers say that the die has failed.
    /// `check` may refuse it before it is erased.
    fn place(
        described: &mut Volume,
        drive: &Drive,
        die: usize,
        (new, contents): (&Path, Contents),
        check: impl Fn(&dyn Medium) -> io::Result<()>,
    ) -> Result<(PathBuf, Box<dyn Medium>), OpenError> {
        let count = described.dies.len();
        if die >= count {
            return Err(OpenError::refused(format!(
                "die {die} does not exist: the volume has {count} dies, numbered from 0"
            )));
        }
        if !drive.lost_dies().contains(&die) {
            return Err(OpenError::refused(format!("die {die} has not failed; fail it first")));
        }
        let absolute = absolute(new)
            .map_err(|source| OpenError::medium(&format!("finding {}", new.display()), source))?;
        let is_other =
            |(other, path): &(usize, &PathBuf)| *other != die && is_same(path, &absolute);
        if let Some((other, _)) = described.dies.iter().enumerate().find(is_other) {
            let remedy = if drive.lost_dies().contains(&other) {
                format!("replace die {other} with it, or give another path")
            } else {
                "give another path".to_owned()
            };
            return Err(OpenError::refused(format!(
                "{} is listed as die {other} of this volume: {remedy}",
                new.display()
            )));
        }
        let path = &mut described.dies[die];
        let (dies, own) = (&drive.store().dies, drive.store().drive);
        let (access, preallocation) = (dies.access(), dies.preallocation());
        let made = NewDie { path: new, access, preallocation, contents };
        let is_ours = *path == absolute || described.spares.contains(&absolute);
        let medium = if is_ours && absolute.exists() {
            made.open(Some(own))?
        } else {
            made.make(&drive.store().layout.shape)?
        };
        let (found, needed) = (Bytes(medium.size()), drive.die_bytes());
        if found < needed {
            let new = new.display();
            return Err(OpenError::refused(format!("{new} has {found}, {needed} are needed")));
        }
        check(&*medium)
            .map_err(|source| OpenError::medium(&format!("erasing {}", new.display()), source))?;
        // It may have been a die of another volume, which it must not be for an opening after a
        // crash in the middle of the rebuild.
        made.clear(&*medium)?;
        path.clone_from(&absolute);
        Ok((absolute, medium))
    }

    /// Restores what belongs there, for as long as `go_on` says so, which is told before each row
    /// how many rows of how many have been gone through.
    ///
    /// # Errors
    /// As [`Drive::replace_die_while`].
    pub fn carry_out(
        self,
        drive: &Drive,
        go_on: impl FnMut(u64, u64) -> bool,
    ) -> Result<(), DeviceError> {
        drive.replace_die_while(self.die, self.medium, go_on)?;
        // One that stays a spare would be filled again when it fails as a die; that is all.
        let _ = forget_spare(&self.volume, &self.path);
        Ok(())
    }
}

/// The dies of a folder that are there, each opened by `open`.
pub(crate) fn open_dies(
    volume: &Path,
    open: impl Fn(&Path) -> io::Result<FileMedium>,
) -> Result<Vec<Box<dyn Medium>>, OpenError> {
    let ListedDies { media, .. } = ListedDies::open(volume, open)?;
    Ok(media.into_iter().flatten().collect())
}

/// The dies that a folder lists, opened.
struct ListedDies {
    /// In the order of the list; none where a die cannot be had.
    media: Vec<Option<Box<dyn Medium>>>,
    absent: AbsentDies,
}

/// The listed dies that cannot be had.
#[derive(Default)]
struct AbsentDies {
    /// Paths of those that nothing was found at.
    not_found: Vec<PathBuf>,
    /// The error of the first one that is there and was not opened, if there is such a one.
    refused: Option<OpenError>,
}

impl AbsentDies {
    /// The reason why too few dies could be opened: one that is there was refused, or some were not
    /// found.
    fn explain(self, error: OpenError) -> OpenError {
        match (error, self.refused) {
            (OpenError::DiesMissing { .. }, Some(refused)) => refused,
            (OpenError::DiesMissing { missing, dies, spare, why }, None) => {
                let not_found = |path: &PathBuf| format!("; {} was not found", path.display());
                let why = why + &self.not_found.iter().map(not_found).collect::<String>();
                OpenError::DiesMissing { missing, dies, spare, why }
            }
            (error, _) => error,
        }
    }
}

impl ListedDies {
    fn open(
        volume: &Path,
        open: impl Fn(&Path) -> io::Result<FileMedium>,
    ) -> Result<Self, OpenError> {
        let dies = read(volume)?.dies;
        let mut media = Vec::<Option<Box<dyn Medium>>>::new();
        let mut absent = AbsentDies::default();
        for die in &dies {
            let source = match open(die) {
                Ok(medium) => {
                    media.push(Some(Box::new(medium)));
                    continue;
                }
                Err(error) => error,
            };
            if source.kind() == io::ErrorKind::WouldBlock {
                return Err(OpenError::InUse { path: volume.to_owned(), by: server_of(volume) });
            }
            let is_of_die = is_missing(&source) || is_refused(&source);
            let is_there = !is_missing(&source);
            let attempted = format!("opening the die {}", die.display());
            let error = OpenError::System { attempted, source };
            if !is_of_die {
                return Err(error);
            }
            media.push(None);
            if is_there {
                absent.refused.get_or_insert(error);
            } else {
                absent.not_found.push(die.clone());
            }
        }
        if media.iter().all(Option::is_none) {
            let missing = |first: PathBuf| OpenError::NoDies { path: volume.to_owned(), first };
            let error = absent.refused.take().or_else(|| dies.into_iter().next().map(missing));
            return error.map_or_else(|| Ok(Self { media, absent }), Err);
        }
        Ok(Self { media, absent })
    }

    /// The same in the order of the dies, which that of the list need not be: files and devices
    /// change places. The list is put into that order, since everything else names dies by it,
    /// above all what replaces one. And whether each entry is then known to be the die of its
    /// place; another copy of a die may be in the place of one that is gone.
    fn in_order(mut self, volume: &Path) -> Result<(Self, Vec<bool>), OpenError> {
        let dies = die_of_each(&self.media);
        let order = order_of(&dies);
        let is_chosen = (0..).zip(&order).map(|(die, entry)| dies[*entry] == Some(die)).collect();
        if order.iter().enumerate().all(|(die, entry)| die == *entry) {
            return Ok((self, is_chosen));
        }
        update(volume, |described| {
            if described.dies.len() != order.len() {
                let what = format!("the dies that {FILE} lists changed meanwhile: open it again");
                return Err(OpenError::refused(what));
            }
            described.dies = order.iter().map(|entry| described.dies[*entry].clone()).collect();
            Ok(())
        })?;
        self.media = order.iter().map(|entry| self.media[*entry].take()).collect();
        Ok((self, is_chosen))
    }
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

/// True if two paths are those of one file or device, by whatever links.
pub(super) fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).ok();
    one == other || real(one).is_some_and(|one| real(other) == Some(one))
}

/// True if a die cannot be had: nothing is there, or a device that does not respond.
fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || is_one_of(error, &[Errno::IO, Errno::NXIO, Errno::NODEV])
}

/// True if what is there is nothing that a die can be, or may not be written: a volume that can do
/// without that die opens so.
fn is_refused(error: &io::Error) -> bool {
    let refused = [
        Errno::ROFS,
        Errno::ACCESS,
        Errno::PERM,
        Errno::NOTDIR,
        Errno::LOOP,
        Errno::NAMETOOLONG,
        Errno::STALE,
        Errno::TIMEDOUT,
    ];
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

pub(super) fn read(volume: &Path) -> Result<Volume, OpenError> {
    let path = volume.join(FILE);
    let wrong = |reason: String| OpenError::Description { path: volume.to_owned(), reason };
    let none = |reason: &str| OpenError::NoDrive { path: volume.to_owned(), reason: reason.into() };
    let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => wrong(error.to_string()),
        io::ErrorKind::NotADirectory => none("it is not a folder"),
        io::ErrorKind::NotFound if volume.exists() => none("it has no volume.toml"),
        io::ErrorKind::NotFound => none("there is no such folder"),
        _ => OpenError::medium(&format!("reading {}", path.display()), error),
    })?;
    let read: Volume = toml::from_str(&text)
        .map_err(|error| wrong(in_toml_types(error.to_string().trim_end())))?;
    if read.schema != SCHEMA {
        return Err(wrong(format!("schema is {}, must be {SCHEMA}", read.schema)));
    }
    let mut once = BTreeSet::new();
    if let Some(twice) = read.dies.iter().find(|die| !once.insert(*die)) {
        return Err(wrong(format!("the die {} is listed twice", twice.display())));
    }
    Ok(read)
}

/// Changes the description of a folder's drive, unless `change` fails. Other threads and processes
/// that change it wait meanwhile.
pub(super) fn update<T>(
    volume: &Path,
    change: impl FnOnce(&mut Volume) -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    static CHANGING: Mutex<()> = Mutex::new(());
    let _changing = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = fs::File::open(volume);
    // Some network file systems lock no folders; then threads of one process wait for each other.
    let _ = folder.as_ref().map(fs::File::lock);
    let mut described = read(volume)?;
    let done = change(&mut described)?;
    write(&volume.join(FILE), &described)?;
    Ok(done)
}

fn write(path: &Path, volume: &Volume) -> Result<(), OpenError> {
    let text = toml::to_string(volume).map_err(|error| {
        OpenError::refused(format!("writing {}: {error}; give paths in UTF-8", path.display()))
    })?;
    let written = replace_file(path, text.as_bytes());
    written.map_err(|source| OpenError::medium(&format!("writing {}", path.display()), source))
}

/// Replaces a file of a folder, whole or not at all.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut next = path.as_os_str().to_owned();
    next.push(".new");
    let replaced = fs::File::create(&next)
        .and_then(|mut file| io::Write::write_all(&mut file, bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&next, path));
    if replaced.is_err() {
        // The file that was there stays, and nothing beside it.
        let _ = fs::remove_file(&next);
    }
    replaced?;
    let folder = path.parent().expect("it lies in a folder");
    fs::File::open(folder)?.sync_all()
}

/// A random volume ID.
fn generate_id() -> io::Result<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_le_bytes(bytes))
}
