//! Drives by name: a folder that says where the dies are.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf, absolute};
use std::sync::{Mutex, PoisonError};

use blockio::Bytes;
use blockio::text::{in_toml_types, is_unshown};
use device::DeviceError;
use serde::{Deserialize, Serialize};
use status::{Compression, Namespace};
use status::{NotErased, Promise, drive_id};

use crate::engine::dies::erasure::erase_medium;
use crate::engine::drive::creation::{Plan, format, format_encrypted};
use crate::engine::drive::scrub::{HeldUnits, MediumAndUnits};
use crate::format::layout::Layout;
use crate::host_death::{self, FileChange};
use crate::medium::is_block_device;
use crate::mutants::{self, Mutant};
use crate::volume::hot_spares::{add_spare, check_is_spare};
use crate::volume::new_die::{Contents, NewDie};
use crate::volume::opal::make_opal;
use crate::volume::opening::buffer_path;
use crate::volume::space_taken::SpaceTaken;
use crate::{
    Access, Drive, FileMedium, Medium, Namespaces, OpenError, Opening, Preallocation, Shape,
    UnlockingKey,
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
        self.shape().map(drop)
    }

    /// The arrangement of the dies that follows.
    ///
    /// # Errors
    /// As [`CreateOptions::check`].
    pub fn shape(&self) -> Result<Shape, OpenError> {
        self.plan(self.die_count()).shape()
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
    /// Volume ID, as its dies have it; absent in folders of earlier versions until they are opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<VolumeId>,
    /// Name of the drive for people; absent if it was given none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Erases that every superblock lasts; absent where it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rated_cycles: Option<u32>,
    /// Promise about acknowledged writes; absent: they survive the death of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) acknowledged_survives: Option<Promise>,
    pub(super) dies: Vec<PathBuf>,
    /// Hot spares, which replace dies that fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) spares: Vec<PathBuf>,
    /// Paths of dies that are being filled with what belongs there, or were when that was cut off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rebuilding: Vec<PathBuf>,
    /// True from the beginning of a purge or a format to its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) purge_unfinished: bool,
    /// Media that may hold data which no purge has reached: of dies that were replaced or had
    /// failed when the last one began, and of hot spares that were removed.
    #[serde(default, rename = "unerased", skip_serializing_if = "Vec::is_empty")]
    pub(super) unerased: Vec<UnerasedMedium>,
    /// True if it has Opal: every server has its locks in force.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) opal: bool,
    /// Parts of the drive that clients see as devices of their own; none: they see the whole.
    #[serde(default, rename = "export", skip_serializing_if = "Vec::is_empty")]
    namespaces: Vec<Namespace>,
}

/// Medium that may hold data which no purge has reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UnerasedMedium {
    path: PathBuf,
    /// Number of the die that it was; absent of a hot spare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    die: Option<u32>,
}

/// Media that a folder lists as unerased at most: beyond that the first are dropped.
const UNERASED_MAX: usize = 256;

impl Volume {
    /// Hot spares that took no place yet.
    pub(crate) fn spares_left(&self) -> impl Iterator<Item = &PathBuf> {
        self.spares.iter().filter(|spare| !self.dies.contains(spare))
    }
}

/// The ID of a volume, as text of 16 hexadecimal digits.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct VolumeId(u64);

impl TryFrom<String> for VolumeId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_id = text.len() == 16 && text.chars().all(|it| it.is_ascii_hexdigit());
        let id = u64::from_str_radix(&text, 16).ok().filter(|_| is_id);
        id.map(Self)
            .ok_or_else(|| format!("{text:?} is no volume ID, which has 16 hexadecimal digits"))
    }
}

impl From<VolumeId> for String {
    fn from(VolumeId(id): VolumeId) -> Self {
        drive_id(id)
    }
}

impl Volume {
    /// The ID of the volume; none where its folder does not say it yet.
    pub(super) fn id(&self) -> Option<u64> {
        self.id.as_ref().map(|VolumeId(id)| *id)
    }

    pub(super) fn set_id(&mut self, id: u64) {
        self.id = Some(VolumeId(id));
    }

    /// True if the medium at a path was being filled as a die when it was last heard of.
    pub(super) fn is_rebuilding(&self, path: &Path) -> bool {
        self.rebuilding.iter().any(|it| it == path)
    }

    /// A medium leaves the volume, or cannot be erased, and may hold its data.
    pub(super) fn note_unerased(&mut self, die: Option<usize>, path: &Path) {
        if mutants::is(Mutant::UnerasedForgotten) {
            return;
        }
        let die = die.and_then(|die| u32::try_from(die).ok());
        self.unerased.retain(|it| it.path != path);
        self.unerased.push(UnerasedMedium { path: path.to_owned(), die });
        let excess = self.unerased.len().saturating_sub(UNERASED_MAX);
        self.unerased.drain(..excess);
    }

    /// Dies have failed, and keep what they hold.
    pub(super) fn note_failed(&mut self, lost: &[usize]) {
        for die in lost {
            if let Some(path) = self.dies.get(*die).cloned() {
                self.note_unerased(Some(*die), &path);
            }
        }
    }

    /// A purge was completed that did not reach the dies `lost`, nor the media at `missed`.
    pub(super) fn note_purged(&mut self, lost: &[usize], missed: &[PathBuf]) {
        let dies = self.dies.iter().enumerate().filter(|(die, _)| !lost.contains(die));
        let erased = dies.map(|(_, path)| path).chain(&self.spares);
        let erased: Vec<&PathBuf> = erased.filter(|path| !missed.contains(path)).collect();
        self.unerased.retain(|it| !erased.contains(&&it.path));
    }

    /// The medium at a path is a die as a whole, or none any more.
    pub(super) fn end_rebuild(&mut self, path: &Path) {
        self.rebuilding.retain(|it| it != path);
    }
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

/// True if a purge or a format of a folder's drive was begun and has not ended.
pub(crate) fn is_purge_unfinished(volume: &Path) -> bool {
    read(volume).is_ok_and(|described| described.purge_unfinished)
}

/// Media of a folder's drive that may hold data which no purge has reached.
pub(crate) fn unerased_media(volume: &Path) -> Vec<NotErased> {
    let listed = read(volume).map(|described| described.unerased).unwrap_or_default();
    let of = |UnerasedMedium { path, die }: UnerasedMedium| NotErased {
        die,
        path: path.display().to_string(),
        reason: None,
    };
    listed.into_iter().map(of).collect()
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
        && !name.chars().any(is_unshown);
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

/// Says what acknowledged writes of a folder's drive survive from its next opening on.
///
/// # Errors
/// Fails if there is no drive, or the system refuses.
pub fn keep_promise(volume: &Path, promise: Promise) -> Result<(), OpenError> {
    update(volume, |described| {
        described.acknowledged_survives = Some(promise);
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
    /// Erases that every superblock is rated for; none: unknown.
    pub rated_cycles: Option<u32>,
    /// Parts of it that clients see as devices of their own; none: they see the whole.
    pub namespaces: Namespaces,
    /// Fate of what block devices hold.
    pub contents: Contents,
    /// Key of a volume that is to be encrypted; none: it is not.
    pub key: Option<UnlockingKey>,
    /// True if hosts may lock it by TCG Opal.
    pub opal: bool,
}

/// Creates an empty drive, which is closed then.
///
/// # Errors
/// Fails if something is in the way, too small, or cannot be; then nothing is left behind.
pub fn create(options: &CreateOptions, volume_options: &VolumeOptions) -> Result<(), OpenError> {
    create_while(options, volume_options, &|| true)
}

/// As [`create`], for as long as `go_on` says so, which is asked before each die, and before each
/// part of one that is erased as a whole: dies and hot spares of an encrypted drive whose former
/// contents may be lost, since those are not encrypted with its key.
///
/// # Errors
/// As [`create`], and when it was stopped.
pub fn create_while(
    options: &CreateOptions,
    volume_options: &VolumeOptions,
    go_on: &dyn Fn() -> bool,
) -> Result<(), OpenError> {
    let VolumeOptions { name, hot_spares, rated_cycles, namespaces, contents, .. } = volume_options;
    name.as_deref().map_or(Ok(()), check_name).map_err(OpenError::refused)?;
    let key = volume_options.key.as_ref();
    key.map_or(Ok(()), UnlockingKey::check_new).map_err(OpenError::refused)?;
    let volume = &options.volume;
    let files = options.dies.iter().chain(hot_spares);
    SpaceTaken::check(&options.shape()?, files, volume_options.preallocation)?;
    let mut unfinished = UnfinishedFolder::default();
    unfinished.make(options, volume_options, go_on)?;
    let key = volume_options.key.clone();
    let drive = Drive::open_as(volume, Opening { key, ..Opening::default() })?;
    for spare in hot_spares {
        check_goes_on(go_on)?;
        let is_new = !spare.exists();
        add_spare(volume, &drive, spare, *contents)?;
        unfinished.files.extend(is_new.then(|| spare.clone()));
        if is_erased_whole(volume_options) {
            let opened = FileMedium::open(spare, Access::default());
            let failed =
                |source| OpenError::medium(&format!("erasing {}", spare.display()), source);
            erase_whole(spare, &opened.map_err(failed)?, &options.shape()?, go_on)?;
        }
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
    if volume_options.opal {
        unfinished.files.extend(make_opal(volume)?);
    }
    check_goes_on(go_on)?;
    unfinished.keep();
    Ok(())
}

/// True if all of a medium is erased before it becomes a die.
fn is_erased_whole(VolumeOptions { contents, key, .. }: &VolumeOptions) -> bool {
    *contents == Contents::Lost && key.is_some()
}

/// Has all that a medium held read as zeroes.
fn erase_whole(
    path: &Path,
    medium: &dyn Medium,
    shape: &Shape,
    go_on: &dyn Fn() -> bool,
) -> Result<(), OpenError> {
    let failed = |source| OpenError::medium(&format!("erasing {}", path.display()), source);
    let (layout, go_on) = (Layout::new(shape), || check_goes_on(go_on));
    erase_medium(medium, &layout, medium.size(), go_on, failed)
}

fn check_goes_on(go_on: &dyn Fn() -> bool) -> Result<(), OpenError> {
    let stopped = || OpenError::refused("it was interrupted, and nothing is left of it".to_owned());
    if go_on() { Ok(()) } else { Err(stopped()) }
}

/// Files and folders of a drive that is not complete yet: removed on drop unless it is kept.
#[derive(Debug, Default)]
pub(super) struct UnfinishedFolder {
    pub(super) files: Vec<PathBuf>,
    /// Folders, the outermost first.
    folders: Vec<PathBuf>,
}

impl UnfinishedFolder {
    /// Makes the folder and the dies of a drive, and formats them.
    fn make(
        &mut self,
        options: &CreateOptions,
        volume_options: &VolumeOptions,
        go_on: &dyn Fn() -> bool,
    ) -> Result<(), OpenError> {
        let VolumeOptions { preallocation, contents, key, .. } = volume_options;
        let shape = options.shape()?;
        let path = options.volume.join(FILE);
        if path.exists() {
            let what = format!("{} exists: remove it, or name another folder", path.display());
            return Err(OpenError::refused(what));
        }
        self.make_folder(&options.volume)?;
        let mut media: Vec<Box<dyn Medium>> = Vec::new();
        let (access, preallocation, contents) = (Access::default(), *preallocation, *contents);
        let new = |path| NewDie { path, access, preallocation, contents };
        for (index, die) in options.dies.iter().enumerate() {
            check_goes_on(go_on)?;
            // What was made is there by now, by whatever path.
            if let Some(same) = options.dies[..index].iter().find(|other| is_same(other, die)) {
                let (same, die) = (same.display(), die.display());
                let what = format!("{same} and {die} are one: give a path of its own for each die");
                return Err(OpenError::refused(what));
            }
            media.push(new(die).make(&shape)?);
            self.files.extend((!is_block_device(die)).then(|| die.clone()));
        }
        check_goes_on(go_on)?;
        for (die, medium) in options.dies.iter().zip(&media) {
            new(die).clear(&**medium)?;
            if is_erased_whole(volume_options) {
                erase_whole(die, &**medium, &shape, go_on)?;
            }
        }
        let drive = generate_id()
            .map_err(|source| OpenError::medium("generating the volume ID", source))?;
        match key {
            None => format(media, &shape, drive)?,
            Some(key) => format_encrypted(media, &shape, drive, key)?,
        }
        let paths: io::Result<Vec<PathBuf>> = options.dies.iter().map(absolute).collect();
        let dies = paths.map_err(|source| OpenError::medium("finding the dies", source))?;
        self.files.extend([path.clone(), buffer_path(&options.volume)]);
        let described = Volume {
            schema: SCHEMA,
            id: Some(VolumeId(drive)),
            name: None,
            rated_cycles: None,
            acknowledged_survives: None,
            dies,
            spares: Vec::new(),
            rebuilding: Vec::new(),
            purge_unfinished: false,
            unerased: Vec::new(),
            opal: false,
            namespaces: Vec::new(),
        };
        write(&path, &described)
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

impl Drop for UnfinishedFolder {
    fn drop(&mut self) {
        if host_death::has_come() {
            return;
        }
        // The caller is told why the drive is not complete; what cannot be removed stays.
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
        let mut unfinished = UnfinishedFolder::default();
        unfinished.make(options, &VolumeOptions::default(), &|| true)?;
        let drive = Self::open(&options.volume)?;
        unfinished.keep();
        Ok(drive)
    }
}

/// A die that is to take the place of one that has failed.
#[derive(Debug)]
pub struct Replacement {
    volume: PathBuf,
    die: usize,
    path: PathBuf,
    medium: Box<dyn Medium>,
    /// Units that it has since it was that die before.
    held: Option<HeldUnits>,
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
        Self::prepare_as(volume, drive, die, (new, contents), false)
    }

    /// As [`Replacement::prepare`] with a hot spare, unless its path leads to a die, or it was
    /// removed meanwhile.
    pub(super) fn prepare_spare(
        volume: &Path,
        drive: &Drive,
        die: usize,
        spare: &Path,
    ) -> Result<Self, OpenError> {
        Self::prepare_as(volume, drive, die, (spare, Contents::Kept), true)
    }

    fn prepare_as(
        volume: &Path,
        drive: &Drive,
        die: usize,
        (new, contents): (&Path, Contents),
        is_spare: bool,
    ) -> Result<Self, OpenError> {
        let check = |medium: &dyn Medium| {
            if is_spare { check_is_spare(medium, drive.store().drive) } else { Ok(()) }
        };
        let mut unfinished = UnfinishedFolder::default();
        let prepared = update(volume, |described| {
            if is_spare && !described.spares.iter().any(|it| it == new) {
                let what = format!("{} is no hot spare any more", new.display());
                return Err(OpenError::refused(what));
            }
            let made = &mut unfinished.files;
            let (path, (medium, held)) =
                Self::place(described, drive, die, (new, contents, made), check)?;
            Ok(Self { volume: volume.to_owned(), die, path, medium, held })
        })?;
        unfinished.keep();
        Ok(prepared)
    }

    /// Makes or takes the medium, and names it in the description of the drive. That is kept before
    /// anything counts on it: until the medium is whole, headers say that the die has failed.
    /// A file that it makes is added to `files`. `check` may refuse the medium before it is erased.
    fn place(
        described: &mut Volume,
        drive: &Drive,
        die: usize,
        (new, contents, files): (&Path, Contents, &mut Vec<PathBuf>),
        check: impl Fn(&dyn Medium) -> io::Result<()>,
    ) -> Result<(PathBuf, MediumAndUnits), OpenError> {
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
            let medium = made.make(&drive.store().layout.shape)?;
            files.extend((!is_block_device(new)).then(|| new.to_owned()));
            medium
        };
        let (found, needed) = (medium.size(), drive.die_bytes().0);
        if found < needed {
            let new = new.display();
            return Err(OpenError::refused(format!(
                "{new} has {found} bytes, {needed} are needed"
            )));
        }
        check(&*medium)
            .map_err(|source| OpenError::medium(&format!("erasing {}", new.display()), source))?;
        let held = drive.held_units(die, &*medium);
        // It may have been a die of another volume, which it must not be for an opening after a
        // crash in the middle of the rebuild.
        made.clear(&*medium)?;
        let former = std::mem::replace(path, absolute.clone());
        if former != absolute {
            described.note_unerased(Some(die), &former);
        }
        described.end_rebuild(&former);
        described.end_rebuild(&absolute);
        described.rebuilding.push(absolute.clone());
        Ok((absolute, (medium, held)))
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
        drive.maintenance().absent_dies.retain(|it| it.die as usize != self.die);
        drive.catch_up_die_while(self.die, (self.medium, self.held), go_on)?;
        // One that stays a spare would be filled again when it fails as a die; that is all.
        let _ = update(&self.volume, |described| {
            described.end_rebuild(&self.path);
            described.spares.retain(|it| *it != self.path);
            Ok(())
        });
        Ok(())
    }
}

/// True if two paths are those of one file or device, by whatever links.
pub(super) fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).ok();
    one == other || real(one).is_some_and(|one| real(other) == Some(one))
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

/// True if the volume in a folder has Opal.
pub(super) fn has_opal(volume: &Path) -> Result<bool, OpenError> {
    read(volume).map(|described| described.opal)
}

/// Replaces a file of a folder, whole or not at all.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_file_as(path, bytes, 0o666)
}

/// As [`replace_file`], for its owner alone.
pub(super) fn replace_private_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_file_as(path, bytes, 0o600)
}

fn replace_file_as(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut next = path.as_os_str().to_owned();
    next.push(".new");
    host_death::begin(FileChange::Other)?;
    let mut options = fs::OpenOptions::new();
    let created = options.write(true).create(true).truncate(true).mode(mode).open(&next);
    let replaced = created
        .and_then(|mut file| io::Write::write_all(&mut file, bytes).and_then(|()| file.sync_all()))
        .and_then(|()| host_death::begin(FileChange::Replaced(path)))
        .and_then(|()| fs::rename(&next, path));
    if replaced.is_err() && !host_death::has_come() {
        // The file that was there stays, and nothing beside it.
        let _ = fs::remove_file(&next);
    }
    replaced?;
    let folder = path.parent().expect("it lies in a folder");
    host_death::begin(FileChange::Synced(folder))?;
    fs::File::open(folder)?.sync_all()
}

/// A random volume ID.
fn generate_id() -> io::Result<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_le_bytes(bytes))
}
