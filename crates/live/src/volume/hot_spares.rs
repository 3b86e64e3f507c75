//! Hot spares: media that take the place of dies that fail, by themselves.
//!
//! They are named in the drive's file and made at once, so that what is in the way shows early.
//! One that takes a place is named as that die too, and is a spare until it is whole: a filling
//! that a crash cut off is known by it, and goes on.

use std::path::{Path, PathBuf, absolute};

use blockio::Bytes;

use super::folder::{Unfinished, Volume, new_die, read, update};
use crate::medium::is_block_device;
use crate::{Access, Drive, OpenError};

impl Volume {
    /// Hot spares that took no place yet.
    fn spares_left(&self) -> impl Iterator<Item = &PathBuf> {
        self.spares.iter().filter(|spare| !self.dies.contains(spare))
    }
}

/// Hot spares of a folder's drive that are left; none where there is no drive.
pub fn hot_spares(volume: &Path) -> Vec<PathBuf> {
    read(volume).map(|volume| volume.spares_left().cloned().collect()).unwrap_or_default()
}

/// Gives a folder's drive, which is open, a hot spare: a file, which is made, or a block device,
/// whose contents are lost when it takes a place.
///
/// # Errors
/// Fails if the drive can do without no die, the spare one is the drive's already or too small, and
/// when the system refuses.
pub fn add_spare(volume: &Path, drive: &Drive, new: &Path) -> Result<(), OpenError> {
    if !drive.status().format.is_protected {
        let what = "a hot spare needs parity, and this volume has none";
        return Err(OpenError::refused(what.to_owned()));
    }
    let needed = drive.die_bytes();
    let shown = new.display();
    let failed = |source| OpenError::medium(&format!("adding {shown} as a hot spare"), source);
    let path = absolute(new).map_err(failed)?;
    let mut unfinished = Unfinished::default();
    update(volume, |described| {
        if described.dies.contains(&path) || described.spares.contains(&path) {
            let what = format!("{shown} is already a die or a hot spare of the volume");
            return Err(OpenError::refused(what));
        }
        let preallocation = drive.store().dies.preallocation();
        let made = new_die(&path, &drive.store().layout.shape, (Access::default(), preallocation))
            .map_err(failed)?;
        unfinished.files.extend((!is_block_device(&path)).then(|| path.clone()));
        let found = Bytes(made.size());
        if found < needed {
            let what = format!("{shown} has {found}, and {needed} are needed");
            return Err(OpenError::refused(what));
        }
        described.spares.push(path.clone());
        Ok(())
    })?;
    unfinished.keep();
    Ok(())
}

/// The die, of those that are lost, whose place a spare takes next, and which one does.
pub(crate) fn next_spare(volume: &Path, lost: &[usize]) -> Option<(usize, PathBuf)> {
    let described = read(volume).ok()?;
    let is_begun = |die: &&usize| described.spares.contains(&described.dies[**die]);
    if let Some(die) = lost.iter().find(is_begun) {
        return Some((*die, described.dies[*die].clone()));
    }
    let spare = described.spares_left().next()?.clone();
    Some((*lost.first()?, spare))
}

/// Counts on a hot spare no more.
pub(crate) fn forget_spare(volume: &Path, spare: &Path) -> Result<(), OpenError> {
    update(volume, |described| {
        described.spares.retain(|it| it != spare);
        Ok(())
    })
}
