//! Purge of a volume: its hot spares, then its dies.
//!
//! A spare may have been a die of the volume, or have been filled in part, and then holds data.

use std::io;
use std::path::{Path, PathBuf};

use device::DeviceError;
use status::NotErased;
use status::UserCapacity;

use crate::engine::dies::erasure::{STOPPED, erase_medium};
use crate::mutants::{self, Mutant};
use crate::volume::folder::{UnerasedMedium, update};
use crate::volume::hot_spares::{check_is_spare, hot_spares};
use crate::{Drive, FileMedium, Medium as _, Namespaces, OpenError};

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
    let turn = drive.begin_purge()?;
    if let Err(error) = mark(volume, drive) {
        turn.refuse(&error);
        let attempted = "noting that a purge begins".to_owned();
        return Err(DeviceError::Medium { attempted, source: io::Error::other(error.to_string()) });
    }
    let purged = if erase_spares(volume, drive, &mut go_on) { turn.purge(go_on) } else { Ok(()) };
    end(volume, drive);
    purged
}

/// Notes that a purge has begun, durably, or that none is unfinished any more: what is left by one
/// that was interrupted looks like any other data. Dies that have failed are noted with it, since
/// the server may end before it has answered. Returns what the folder said before.
fn mark(volume: &Path, drive: &Drive) -> Result<PurgeMark, OpenError> {
    if mutants::is(Mutant::PurgeUnmarked) {
        return Ok(PurgeMark::default());
    }
    let lost = drive.lost_dies();
    update(volume, |described| {
        let unerased = described.unerased.clone();
        described.note_failed(&lost);
        let is_unfinished = std::mem::replace(&mut described.purge_unfinished, true);
        Ok(PurgeMark { is_unfinished, unerased })
    })
}

/// State of a folder before a purge was noted in it.
#[derive(Debug, Default)]
struct PurgeMark {
    is_unfinished: bool,
    unerased: Vec<UnerasedMedium>,
}

impl PurgeMark {
    /// Has the folder say that again, since nothing was erased.
    fn put_back(self, volume: &Path) -> Result<(), OpenError> {
        update(volume, |described| {
            (described.purge_unfinished, described.unerased) = (self.is_unfinished, self.unerased);
            Ok(())
        })
    }
}

/// Notes that the last purge of a drive was completed, if it was. Another one that begins meanwhile
/// says that it runs before it is noted.
fn end(volume: &Path, drive: &Drive) {
    let is_complete = || {
        let last = drive.maintenance().purge.clone();
        last.is_some_and(|it| !it.is_running && it.failure.is_none())
    };
    // Nothing is left that could be older than what was written.
    if is_complete() {
        drive.note_renewed();
    }
    let last = drive.maintenance().purge.clone().unwrap_or_default();
    let missed: Vec<PathBuf> = last.not_erased.iter().map(|it| it.path.clone().into()).collect();
    let lost = drive.lost_dies();
    // Where the folder takes no change the purge counts as unfinished, and can be repeated.
    let _ = update(volume, |described| {
        described.purge_unfinished &= !is_complete();
        if is_complete() {
            described.note_purged(&lost, &missed);
            for spare in last.not_erased.iter().filter(|it| it.die.is_none()) {
                described.note_unerased(None, Path::new(&spare.path));
            }
        } else {
            // Such as a die in use whose headers keep a key.
            let dies = last.not_erased.iter().filter_map(|it| it.die);
            described.note_failed(&dies.map(|die| die as usize).collect::<Vec<_>>());
        }
        Ok(())
    });
}

/// Purges the volume in a folder and gives it another capacity, as [`Drive::reformat_while`] does,
/// unless its namespaces have no room then.
///
/// # Errors
/// As [`Namespaces::allow`] and [`Drive::reformat_while`].
pub fn reformat_volume(
    volume: &Path,
    drive: &Drive,
    capacity: UserCapacity,
    mut go_on: impl FnMut(u64, u64) -> bool,
) -> Result<(), OpenError> {
    drive.check_capacity(capacity)?;
    let turn = drive.begin_purge()?;
    let before = match mark(volume, drive) {
        Ok(before) => before,
        Err(error) => {
            turn.refuse(&error);
            return Err(error);
        }
    };
    if !erase_spares(volume, drive, &mut go_on) {
        return Ok(());
    }
    // Another client may have divided the volume since the format was asked for.
    if let Err(error) = Namespaces::allow(volume, drive, capacity) {
        // As long as it is its turn: another purge notes that it is unfinished.
        let marked = before.put_back(volume);
        turn.refuse(&error);
        marked?;
        return Err(error);
    }
    let formatted = turn.reformat(capacity, go_on);
    end(volume, drive);
    formatted
}

/// Erases the hot spares; says whether it came to all of them, since the caller did not have it
/// end.
fn erase_spares(volume: &Path, drive: &Drive, go_on: &mut dyn FnMut(u64, u64) -> bool) -> bool {
    let superblocks = u64::from(drive.store().layout.shape.superblocks);
    let mut is_stopped = false;
    let mut erase = |spare: &Path| -> io::Result<()> {
        let medium = FileMedium::open(spare, drive.store().dies.access())?;
        check_is_spare(&medium, drive.store().drive)?;
        let go_on = || {
            is_stopped = is_stopped || !go_on(0, superblocks);
            if is_stopped { Err(io::Error::other(STOPPED)) } else { Ok(()) }
        };
        erase_medium(&medium, &drive.store().layout, medium.size(), go_on, |error| error)
    };
    for spare in hot_spares(volume) {
        if let Err(error) = erase(&spare) {
            let path = spare.display().to_string();
            let reason = Some(error.to_string());
            drive.store().dies.note_unerased(NotErased { die: None, path, reason });
        }
    }
    !is_stopped
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;
    use crate::volume::example::three_dies;
    use crate::volume::folder::keep_namespaces;
    use crate::{CreateOptions, Preallocation, VolumeOptions};
    use device::{Device as _, Durability};
    use status::Namespace;
    use status::Purge;

    /// A volume of three dies, with a hot spare and something stored.
    fn volume(folder: &Path, preallocation: Preallocation) -> (CreateOptions, Drive) {
        let options = three_dies(folder);
        let hot_spares = vec![folder.join("s0.img")];
        let more = VolumeOptions { preallocation, hot_spares, ..VolumeOptions::default() };
        crate::create(&options, &more).unwrap();
        let drive = Drive::open(&options.volume).unwrap();
        drive.write(0, &vec![7; 1 << 20], Durability::Durable).unwrap();
        (options, drive)
    }

    fn purge(drive: &Drive) -> Purge {
        drive.status().maintenance.purge.unwrap()
    }

    #[test]
    fn a_second_purge_is_refused_from_the_first_spare_on_until_the_first_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let (options, drive) = volume(folder.path(), Preallocation::Full);
        let mut asked = 0;
        let purged = purge_volume(&options.volume, &drive, |_, _| {
            asked += 1;
            assert!(purge(&drive).is_running);
            let refused = purge_volume(&options.volume, &drive, |_, _| true).unwrap_err();
            assert!(refused.to_string().contains("a purge is under way"), "{refused}");
            assert!(drive.purge().is_err() && purge(&drive).is_running);
            true
        });
        purged.unwrap();
        assert!(asked > 2);
        assert_eq!((purge(&drive).is_running, purge(&drive).failure), (false, None));
        drive.purge().unwrap();
    }

    #[test]
    fn a_purge_that_is_stopped_at_a_spare_forgets_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (options, drive) = volume(folder.path(), Preallocation::Full);
        let size = drive.size();
        let half = UserCapacity::Bytes(2 << 20);
        reformat_volume(&options.volume, &drive, half, |_, _| false).unwrap();
        assert_eq!(purge(&drive).failure.as_deref(), Some("it was stopped"));
        assert_eq!((purge(&drive).not_erased.len(), drive.size()), (1, size));
        let mut page = [0; 4096];
        drive.read(0, &mut page).unwrap();
        assert_eq!(page, [7; 4096]);
    }

    #[test]
    fn a_format_is_refused_for_a_namespace_that_came_meanwhile_and_resizes_before_it_erases() {
        let folder = tempfile::tempdir().unwrap();
        let (options, drive) = volume(folder.path(), Preallocation::Full);
        let half = UserCapacity::Bytes(2 << 20);
        let size_bytes = drive.size();
        let all = Namespace { name: "all".into(), offset_bytes: 0, size_bytes };
        let refused = reformat_volume(&options.volume, &drive, half, |_, _| {
            keep_namespaces(&options.volume, std::slice::from_ref(&all)).unwrap();
            true
        });
        assert!(refused.is_err());
        assert!(purge(&drive).failure.is_some() && drive.size() == size_bytes);
        let mut page = [0; 4096];
        drive.read(0, &mut page).unwrap();
        assert_eq!(page, [7; 4096], "nothing was forgotten");
        keep_namespaces(&options.volume, &[]).unwrap();
        std::fs::remove_file(folder.path().join("s0.img")).unwrap();
        reformat_volume(&options.volume, &drive, half, |done, _| {
            assert_eq!(drive.size(), 2 << 20, "of no namespace that comes now anything is cut off");
            done == 0
        })
        .unwrap();
        assert_eq!(purge(&drive).failure.as_deref(), Some("it was stopped"));
        assert_eq!(drive.size(), 2 << 20);
    }

    #[test]
    fn media_that_no_purge_reaches_are_told_until_one_does() {
        let folder = tempfile::tempdir().unwrap();
        let (options, drive) = volume(folder.path(), Preallocation::Full);
        let told = |drive: &Drive| {
            crate::describe_status(drive.status(), &options.volume).maintenance.unerased_media
        };
        let replaced = |drive: &Drive, path: &Path| {
            let contents = crate::Contents::Lost;
            crate::Replacement::prepare(&options.volume, drive, 1, path, contents)
                .unwrap()
                .carry_out(drive, |_, _| true)
                .unwrap();
        };
        assert_eq!(told(&drive), []);
        drive.fail_die(1).unwrap();
        let former = options.dies[1].display().to_string();
        let former = NotErased::die(1, former);
        // The server ends before the purge has answered.
        mark(&options.volume, &drive).unwrap();
        drop(drive);
        let drive = Drive::open(&options.volume).unwrap();
        assert_eq!(told(&drive), std::slice::from_ref(&former));
        let new = folder.path().join("new.img");
        replaced(&drive, &new);
        purge_volume(&options.volume, &drive, |_, _| true).unwrap();
        assert_eq!(told(&drive), [former], "it holds what it held");
        // A die at that path is erased with the others.
        drive.fail_die(1).unwrap();
        std::fs::remove_file(&options.dies[1]).unwrap();
        replaced(&drive, &options.dies[1]);
        assert_eq!(told(&drive).len(), 2);
        purge_volume(&options.volume, &drive, |_, _| true).unwrap();
        assert_eq!(told(&drive), [NotErased::die(1, new.display().to_string())]);
    }

    #[test]
    fn a_die_in_use_that_a_failed_purge_did_not_erase_is_told_until_one_does() {
        let folder = tempfile::tempdir().unwrap();
        let (options, drive) = volume(folder.path(), Preallocation::Off);
        let told = || crate::volume::folder::unerased_media(&options.volume);
        purge_volume(&options.volume, &drive, |done, _| {
            if done == 1 {
                drive.store().dies.note_key_kept(1, &io::Error::other("it keeps a key"));
            }
            done < 1
        })
        .unwrap();
        assert_eq!(told(), [NotErased::die(1, options.dies[1].display().to_string())]);
        drop(drive);
        let drive = Drive::open(&options.volume).unwrap();
        purge_volume(&options.volume, &drive, |_, _| true).unwrap();
        assert_eq!(told(), []);
    }

    #[test]
    fn a_purge_leaves_the_metadata_of_sparse_dies_its_space() {
        let folder = tempfile::tempdir().unwrap();
        let (options, drive) = volume(folder.path(), Preallocation::Off);
        let metadata = drive.store().layout.unit_from(0);
        let taken = |die: &PathBuf| std::fs::metadata(die).unwrap().blocks() * 512;
        if options.dies.iter().any(|die| taken(die) < metadata) {
            // The file system beneath reserves no space.
            return;
        }
        drive.purge().unwrap();
        for die in &options.dies {
            let bytes = taken(die);
            assert!(bytes >= metadata, "{bytes} bytes of {metadata} that were reserved");
        }
    }
}
