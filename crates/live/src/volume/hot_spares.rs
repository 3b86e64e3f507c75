//! Hot spares: media that take the place of dies that fail, by themselves.
//!
//! They are named in the drive's file and made at once, so that what is in the way shows early.
//! One that takes a place is named as that die too, and is a spare until it is whole: a filling
//! that a crash cut off is known by it, and goes on.
//!
//! Invariant: nothing is erased by its path alone, which may be that of another device after the
//! system was started again. What holds the header of a die is no spare.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf, absolute};
use std::time::{Duration, Instant};

use blockio::Bytes;
use device::DeviceError;
use status::{SpareFailure, drive_id};

use super::folder::{Replacement, UnfinishedFolder, is_same, read, update};
use super::new_die::{Contents, NewDie};
use crate::engine::dies::die_number;
use crate::engine::dies::gathering::displaced;
use crate::engine::dies::header_copies::newest_header;
use crate::format::header::Header;
use crate::medium::is_block_device;
use crate::{Access, Drive, FileMedium, Medium, OpenError};

/// Hot spares of a folder's drive that are left; none where there is no drive.
pub fn hot_spares(volume: &Path) -> Vec<PathBuf> {
    read(volume).map(|volume| volume.spares_left().cloned().collect()).unwrap_or_default()
}

/// Exchanges entries of the dies and the hot spares that a folder lists where the path of a spare
/// leads to one of the dies: names of devices change places when the system is started again.
pub(super) fn reclaim_dies(volume: &Path) -> Result<(), OpenError> {
    let described = read(volume)?;
    let spares: Vec<PathBuf> = described.spares_left().cloned().collect();
    if spares.is_empty() {
        return Ok(());
    }
    let header = |path: &PathBuf| -> io::Result<Option<Header>> {
        match FileMedium::view(path) {
            Ok(medium) => Ok(newest_header(&medium).ok().flatten()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
            Err(_) => Ok(None),
        }
    };
    let listed: io::Result<Vec<_>> = described.dies.iter().map(header).collect();
    // Another process has the volume open, which opening is going to say.
    let Ok(listed) = listed else { return Ok(()) };
    let others: Vec<_> = spares.iter().map(|spare| header(spare).ok().flatten()).collect();
    let displaced = displaced(&listed, &others);
    if displaced.is_empty() {
        return Ok(());
    }
    update(volume, |now| {
        if now.dies != described.dies || now.spares != described.spares {
            let what = "the dies and hot spares that are listed changed meanwhile: open it again";
            return Err(OpenError::refused(what.to_owned()));
        }
        for (die, spare) in displaced {
            let spare = now.spares.iter_mut().find(|it| **it == spares[spare]).expect("listed");
            std::mem::swap(&mut now.dies[die], spare);
        }
        Ok(())
    })
}

/// Checks that a medium which is to be erased since a spare is listed by its path is none of the
/// dies of a volume: a die names itself in its header, one whose filling was cut off as lost.
pub(super) fn check_is_spare(medium: &dyn Medium, drive: u64) -> io::Result<()> {
    let held = match newest_header(medium) {
        Ok(None) => return Ok(()),
        Ok(Some(it)) if it.drive == drive && it.lost.has(it.die as usize) => return Ok(()),
        Ok(Some(it)) => format!("the header of die {} of volume {}", it.die, drive_id(it.drive)),
        Err(error) => format!("the header of a die ({error})"),
    };
    let name = medium.name();
    Err(io::Error::other(format!(
        "{name} is listed as a hot spare and holds {held}, so it is not erased: if its data is \
         not needed, give it to `floatgate volume replace-die` with --destroy"
    )))
}

/// Gives a folder's drive, which is open, a hot spare: a file, which is made, or a block device,
/// which is a die of no volume any more then, and whose contents are lost when it takes a place.
///
/// # Errors
/// Fails if the drive can do without no die, the spare one is the drive's already, too small or
/// holds what is to be kept, and when the system refuses.
pub fn add_spare(
    volume: &Path,
    drive: &Drive,
    new: &Path,
    contents: Contents,
) -> Result<(), OpenError> {
    if !drive.status().format.is_protected {
        let what = "a hot spare needs parity, and this volume has none";
        return Err(OpenError::refused(what.to_owned()));
    }
    let needed = drive.die_bytes();
    let shown = new.display();
    let path =
        absolute(new).map_err(|source| OpenError::medium(&format!("finding {shown}"), source))?;
    let mut unfinished = UnfinishedFolder::default();
    update(volume, |described| {
        let is_it = |listed: &PathBuf| is_same(listed, &path);
        if described.dies.iter().any(is_it) || described.spares.iter().any(is_it) {
            let what = format!("{shown} is already a die or a hot spare of the volume");
            return Err(OpenError::refused(what));
        }
        let (access, preallocation) = (Access::default(), drive.store().dies.preallocation());
        let made = NewDie { path: &path, access, preallocation, contents };
        let medium = made.make(&drive.store().layout.shape)?;
        unfinished.files.extend((!is_block_device(&path)).then(|| path.clone()));
        let found = Bytes(medium.size());
        if found < needed {
            let what = format!("{shown} has {found} bytes, and {needed} are needed");
            return Err(OpenError::refused(what));
        }
        // Whatever a spare holds when it takes a place was then put there by another program.
        made.clear(&*medium)?;
        described.spares.push(path.clone());
        Ok(())
    })?;
    unfinished.keep();
    Ok(())
}

/// Takes a hot spare from a folder's drive, open or closed, which counts on it no more; the file or
/// the device stays as it is. Returns its path as it was listed.
///
/// # Errors
/// Fails if it is no hot spare of the drive, or has taken the place of a die, and when the system
/// refuses.
pub fn remove_spare(volume: &Path, spare: &Path) -> Result<PathBuf, OpenError> {
    let named = shown(spare);
    let path =
        absolute(spare).map_err(|source| OpenError::medium(&format!("finding {named}"), source))?;
    update(volume, |described| {
        let is_it = |listed: &PathBuf| is_same(listed, &path);
        if described.dies.iter().any(is_it) {
            let what = format!("{named} is a die of the volume, and no hot spare");
            return Err(OpenError::refused(what));
        }
        let Some(index) = described.spares.iter().position(is_it) else {
            let spares: Vec<_> = described.spares_left().map(|it| shown(it)).collect();
            let has = match spares.as_slice() {
                [] => "the volume has none".to_owned(),
                spares => format!("its hot spares are {}", spares.join(", ")),
            };
            return Err(OpenError::refused(format!("{named} is no hot spare: {has}")));
        };
        let removed = described.spares.remove(index);
        described.note_unerased(None, &removed);
        Ok(removed)
    })
}

/// True if a folder's drive lists a hot spare by this path.
fn is_listed(volume: &Path, spare: &PathBuf) -> bool {
    read(volume).is_ok_and(|described| described.spares.contains(spare))
}

/// Hot spares that could not be used, with the times of the last attempts.
#[derive(Debug, Default)]
pub(crate) struct SpareAttempts(BTreeMap<PathBuf, Instant>);

impl SpareAttempts {
    /// Has spares that were tried so long ago be tried again.
    pub(crate) fn forget(&mut self, age: Duration) {
        self.0.retain(|_, tried| tried.elapsed() < age);
    }

    /// The die, of those that are lost, whose place a spare takes next, and which one does; those
    /// that were tried take none.
    pub(crate) fn next_spare(&self, volume: &Path, lost: &[usize]) -> Option<(usize, PathBuf)> {
        let described = read(volume).ok()?;
        let is_tried = |spare: &PathBuf| self.0.contains_key(spare);
        let begun = |die: usize| {
            let path = described.dies.get(die)?;
            (described.spares.contains(path) && !is_tried(path)).then(|| (die, path.clone()))
        };
        if let Some(begun) = lost.iter().find_map(|die| begun(*die)) {
            return Some(begun);
        }
        let spare = described.spares_left().find(|spare| !is_tried(spare))?.clone();
        Some((*lost.first()?, spare))
    }

    /// Fills a hot spare with what belongs on a die that has failed, as long as `goes_on` says so.
    /// Says whether another look is due at once, since one was filled or given up; otherwise no
    /// spare can be used now.
    ///
    /// A spare that cannot be made ready stays listed: its folder may be mounted again, or its
    /// device come back. One whose filling fails by itself is given up.
    pub(crate) fn fill_spare(
        &mut self,
        volume: &Path,
        drive: &Drive,
        goes_on: &dyn Fn() -> bool,
    ) -> bool {
        while let Some((die, spare)) = self.next_spare(volume, &drive.lost_dies()) {
            let filled = match Replacement::prepare_spare(volume, drive, die, &spare) {
                Ok(replacement) => replacement.carry_out(drive, |_, _| goes_on()),
                // The operator replaced the die meanwhile, or removed the spare.
                Err(_) if !drive.lost_dies().contains(&die) || !is_listed(volume, &spare) => {
                    return true;
                }
                Err(error) => {
                    note(drive, die, &spare, error.to_string(), true);
                    self.0.insert(spare, Instant::now());
                    continue;
                }
            };
            let Err(error) = filled else {
                let is_other = |it: &SpareFailure| it.path != shown(&spare);
                drive.maintenance().spare_failures.retain(is_other);
                return true;
            };
            if !goes_on() {
                return true;
            }
            // After a failure of the drive it would take no spare. Where another die failed, or
            // does not respond, the spare is not to blame.
            let is_of_others =
                matches!(error, DeviceError::Poisoned { .. } | DeviceError::Transient { .. });
            let is_blameless = is_of_others || !drive.store().dies.has_failures(die);
            let is_kept = is_blameless || forget_spare(volume, &spare).is_err();
            note(drive, die, &spare, error.to_string(), is_kept);
            if !is_kept {
                return true;
            }
            self.0.insert(spare, Instant::now());
        }
        false
    }
}

/// Takes note of why a spare did not take the place of a die, for the status.
fn note(drive: &Drive, die: usize, spare: &Path, reason: String, is_kept: bool) {
    let (path, die) = (shown(spare), die_number(die));
    let failures = &mut drive.maintenance().spare_failures;
    failures.retain(|it| it.path != path);
    failures.push(SpareFailure { path, die, reason, is_kept });
}

fn shown(spare: &Path) -> String {
    spare.display().to_string()
}

/// Counts on a hot spare no more.
pub(crate) fn forget_spare(volume: &Path, spare: &Path) -> Result<(), OpenError> {
    update(volume, |described| {
        described.spares.retain(|it| it != spare);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::example::three_dies;
    use device::{Device as _, Durability};

    /// A drive of three dies in a folder, with hot spares that are then where the drive does not
    /// find them.
    fn with_spares_away(folder: &Path, names: &[&str]) -> (PathBuf, Drive) {
        let options = three_dies(folder);
        let drive = Drive::create(&options).unwrap();
        std::fs::create_dir(folder.join("mounted")).unwrap();
        for name in names {
            let path = folder.join("mounted").join(name);
            add_spare(&options.volume, &drive, &path, Contents::Kept).unwrap();
        }
        drive.write(0, &vec![7; 1 << 20], Durability::Durable).unwrap();
        std::fs::rename(folder.join("mounted"), folder.join("away")).unwrap();
        (options.volume, drive)
    }

    #[test]
    fn a_spare_that_cannot_be_used_stays_one_and_is_filled_once_it_can_be() {
        let folder = tempfile::tempdir().unwrap();
        let (volume, drive) = with_spares_away(folder.path(), &["s0.img"]);
        let spares = hot_spares(&volume);
        drive.fail_die(1).unwrap();
        let mut tried = SpareAttempts::default();
        assert!(!tried.fill_spare(&volume, &drive, &|| true), "there is none to fill");
        assert_eq!(hot_spares(&volume), spares);
        let failures = drive.status().maintenance.spare_failures;
        let [failure] = failures.as_slice() else { panic!("{failures:?}") };
        assert_eq!((failure.path.as_str(), failure.die), (&*shown(&spares[0]), 1));
        assert!(failure.is_kept && failure.reason.contains("No such file"), "{failure:?}");
        std::fs::rename(folder.path().join("away"), folder.path().join("mounted")).unwrap();
        assert!(!tried.fill_spare(&volume, &drive, &|| true), "it was tried just now");
        tried.forget(Duration::ZERO);
        assert!(tried.fill_spare(&volume, &drive, &|| true));
        assert!(drive.lost_dies().is_empty() && hot_spares(&volume).is_empty());
        assert!(drive.status().maintenance.spare_failures.is_empty());
    }

    fn contents(path: &Path) -> Vec<u8> {
        std::fs::read(path).unwrap()
    }

    /// A die is missing when the drive is opened, and comes back by the name of the spare.
    #[test]
    fn a_die_at_the_path_of_a_spare_is_erased_neither_for_a_failed_die_nor_by_a_purge() {
        let folder = tempfile::tempdir().unwrap();
        let (volume, drive) = with_spares_away(folder.path(), &["s0.img"]);
        drop(drive);
        let (die, spare) = (folder.path().join("d2.img"), folder.path().join("mounted/s0.img"));
        std::fs::rename(&die, folder.path().join("d2.away")).unwrap();
        let drive = Drive::open(&volume).unwrap();
        assert_eq!(drive.lost_dies(), [2]);
        std::fs::create_dir(folder.path().join("mounted")).unwrap();
        std::fs::rename(folder.path().join("d2.away"), &spare).unwrap();
        let before = contents(&spare);
        assert!(!SpareAttempts::default().fill_spare(&volume, &drive, &|| true));
        let failures = drive.status().maintenance.spare_failures;
        let [failure] = failures.as_slice() else { panic!("{failures:?}") };
        assert!(failure.is_kept && failure.reason.contains("header of die 2 of"), "{failure:?}");
        assert_eq!(hot_spares(&volume), std::slice::from_ref(&spare));
        crate::purge_volume(&volume, &drive, |_, _| true).unwrap();
        let told = drive.status().not_erased().unwrap();
        assert!(told.contains("header of die 2 of"), "{told}");
        assert!(contents(&spare) == before, "not a byte of the die was changed");
    }

    #[test]
    fn a_spare_whose_filling_is_stopped_stays_one_without_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let (volume, drive) = with_spares_away(folder.path(), &["s0.img"]);
        std::fs::rename(folder.path().join("away"), folder.path().join("mounted")).unwrap();
        drive.fail_die(0).unwrap();
        assert!(SpareAttempts::default().fill_spare(&volume, &drive, &|| false));
        assert!(drive.status().maintenance.spare_failures.is_empty());
        assert!(SpareAttempts::default().next_spare(&volume, &[0]).is_some(), "it goes on later");
    }
}
