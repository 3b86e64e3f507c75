//! Rekey of a volume, and the media that the former key unlocks after it.

use std::path::Path;

use status::NotErased;

use crate::volume::folder::{unerased_media, update};
use crate::{Drive, OpenError, UnlockingKey};

/// Has another key unlock the volume in a folder, as [`Drive::rekey`] does. Returns the media whose
/// headers the former key may unlock still: dies that have failed, and what was a die or a hot
/// spare and no purge has reached since. The folder lists them.
///
/// # Errors
/// As [`Drive::rekey`].
pub fn rekey_volume(
    volume: &Path,
    drive: &Drive,
    key: &UnlockingKey,
) -> Result<Vec<NotErased>, OpenError> {
    let rekeyed = drive.rekey(key);
    let lost = drive.lost_dies();
    update(volume, |described| {
        described.note_failed(&lost);
        Ok(())
    })?;
    rekeyed?;
    let mut kept = drive.not_rekeyed();
    let is_new = |it: &NotErased| kept.iter().all(|known| known.path != it.path);
    let listed: Vec<NotErased> = unerased_media(volume).into_iter().filter(is_new).collect();
    kept.retain(|it| !it.path.is_empty());
    kept.extend(listed);
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::example::three_dies;
    use crate::{Opening, VolumeOptions};

    fn key(last: u8) -> UnlockingKey {
        let mut bytes = [0xff; 32];
        bytes[31] = last;
        UnlockingKey::of_bytes(&bytes).unwrap()
    }

    #[test]
    fn media_that_the_former_key_unlocks_are_told_and_listed() {
        let folder = tempfile::tempdir().unwrap();
        let options = three_dies(folder.path());
        let more = VolumeOptions { key: Some(key(1)), ..VolumeOptions::default() };
        crate::create(&options, &more).unwrap();
        let open = |last: u8| {
            let opening = Opening { key: Some(key(last)), ..Opening::default() };
            Drive::open_as(&options.volume, opening).unwrap()
        };
        let drive = open(1);
        assert_eq!(rekey_volume(&options.volume, &drive, &key(2)).unwrap(), []);
        // Another die takes the place of one, which keeps what it holds.
        drive.fail_die(0).unwrap();
        let new = folder.path().join("new.img");
        crate::Replacement::prepare(&options.volume, &drive, 0, &new, crate::Contents::Kept)
            .unwrap()
            .carry_out(&drive, |_, _| true)
            .unwrap();
        drive.fail_die(1).unwrap();
        let expected = |die: usize| {
            let path = options.dies[die].display().to_string();
            NotErased::die(u32::try_from(die).unwrap(), path)
        };
        let mut kept = rekey_volume(&options.volume, &drive, &key(3)).unwrap();
        kept.sort_by_key(|it| it.die);
        assert_eq!(kept, [expected(0), expected(1)]);
        drive.close().unwrap();
        let mut listed = unerased_media(&options.volume);
        listed.sort_by_key(|it| it.die);
        assert_eq!(listed, kept);
        drop(open(3));
    }
}
