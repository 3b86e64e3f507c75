//! Purge of a volume: its hot spares, then its dies.
//!
//! A spare may have been a die of the volume, or have been filled in part, and then holds data.

use std::io;
use std::path::Path;

use crate::engine::erasure::erase_medium;
use crate::status::NotErased;
use crate::volume::hot_spares::{check_is_spare, hot_spares};
use crate::{DeviceError, Drive, FileMedium, Medium as _, OpenError, UserCapacity};

/// Erases everything that the volume in a folder stores, for as long as `go_on` says so, as
/// [`Drive::purge_while`] does. Hot spares that cannot be erased are told by the status of the
/// purge.
///
/// # Errors
/// As [`Drive::purge`].
pub fn purge_volume(
    volume: &Path,
    drive: &Drive,
    mut go_on: impl FnMut(u64, u64) -> bool,
) -> Result<(), DeviceError> {
    erase_spares(volume, drive, &mut go_on);
    drive.purge_while(go_on)
}

/// Purges the volume in a folder and gives it another capacity, as [`Drive::reformat_while`] does.
///
/// # Errors
/// As [`Drive::reformat_while`].
pub fn reformat_volume(
    volume: &Path,
    drive: &Drive,
    capacity: UserCapacity,
    mut go_on: impl FnMut(u64, u64) -> bool,
) -> Result<(), OpenError> {
    drive.check_capacity(capacity)?;
    erase_spares(volume, drive, &mut go_on);
    drive.reformat_while(capacity, go_on)
}

fn erase_spares(volume: &Path, drive: &Drive, go_on: &mut dyn FnMut(u64, u64) -> bool) {
    let superblocks = u64::from(drive.store().layout.shape.superblocks);
    let mut erase = |spare: &Path| -> io::Result<()> {
        let medium = FileMedium::open(spare, drive.store().dies.access())?;
        check_is_spare(&medium, drive.store().drive)?;
        let go_on = || {
            let is_stopped = !go_on(0, superblocks);
            if is_stopped { Err(io::Error::other("it was stopped")) } else { Ok(()) }
        };
        erase_medium(&medium, (&drive.store().layout, medium.size()), go_on, |error| error)
    };
    let not_erased = hot_spares(volume).into_iter().filter_map(|spare| {
        let reason = erase(&spare).err()?.to_string();
        let path = spare.display().to_string();
        Some(NotErased { die: None, path, reason: Some(reason) })
    });
    let not_erased = not_erased.collect();
    drive.store().dies.note_unerased_spares(not_erased);
}
