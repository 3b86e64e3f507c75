//! Changes of the keys of an encrypted drive: a purge has another media key, a rekey another
//! wrapping key.
//!
//! ```text
//!   rekey:  media keys, wrapped anew ─► every header ─► no copy has the former ones
//!   purge:  another key ─► every header ─► everything is forgotten ─► both checkpoints
//!           ─► the former keys leave every header ─► no copy has them
//! ```
//!
//! A crash leaves the newest header, whichever that is: it opens with the key that it was written
//! with, and has the media key of whatever the map refers to.

use std::io;
use std::sync::atomic::Ordering;

use device::DeviceError;

use super::Drive;
use crate::OpenError;
use crate::engine::dies::{header_copies, medium_error};
use crate::format::key_area::{Cost, KeyArea, WrappedKey};
use crate::format::layout::HEADER_BYTES;
use crate::format::media_keys::{LockedCause, MediaKeys, UnlockingKey};
use crate::lock::lock;
use crate::mutants::{self, Mutant};

/// Times that headers are written before a die that keeps a former key has failed.
const TRIES_MAX: u32 = 4;

impl Drive {
    /// True if what is stored is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.store.keys().is_some()
    }

    /// Has another key unlock the drive from its next opening on, and the former one no more. What
    /// is stored stays as it is, encrypted with the same media key.
    ///
    /// Dies that the drive does without keep their headers, which the former key unlocks.
    ///
    /// # Errors
    /// Fails if the drive is not encrypted, during a purge, or if a header cannot be written.
    pub fn rekey(&self, unlocking: &UnlockingKey) -> Result<(), OpenError> {
        self.rekey_at(unlocking, Cost::USUAL)
    }

    fn rekey_at(&self, unlocking: &UnlockingKey, cost: Cost) -> Result<(), OpenError> {
        let keys = self.store.keys().ok_or(OpenError::Locked(LockedCause::NotEncrypted))?;
        self.check_sound()?;
        // A purge changes the keys, too.
        if self.is_purging.swap(true, Ordering::AcqRel) {
            let reason = "a purge is under way".to_owned();
            return Err(DeviceError::Transient { reason }.into());
        }
        let keys = keys.rekeyed(unlocking, cost);
        let former = lock(&self.header).keys;
        let written = self.replace_keys(|_| keys.wrapped());
        if written.is_ok() {
            self.store.change_keys(keys);
        } else {
            // Closing the drive writes headers that the former key opens.
            lock(&self.header).keys = former;
        }
        self.is_purging.store(false, Ordering::Release);
        Ok(self.noting(written)?)
    }

    /// Adds a media key to every header; none where the drive is not encrypted. It is for what is
    /// written once everything was forgotten.
    pub(super) fn add_key(&self) -> Result<Option<MediaKeys>, DeviceError> {
        let Some(keys) = self.store.keys() else { return Ok(None) };
        if mutants::is(Mutant::EpochReused) {
            return Ok(None);
        }
        // One that failed to add a key would add another of the same epoch.
        self.check_sound()?;
        let next = keys.with_another();
        let mut header = lock(&self.header);
        let former = header.keys;
        header.keys = header.keys.with(next.wrapped_newest());
        let written = header_copies::write_to_all(&mut header, &self.store.dies);
        if written.is_err() {
            // Nothing is encrypted with the new key, and what closes the drive must not keep it.
            header.keys = former;
        }
        written?;
        Ok(Some(next))
    }

    /// Drops all media keys but the newest one from every header, once nothing is stored that they
    /// encrypted.
    pub(super) fn drop_former_keys(&self) -> Result<(), DeviceError> {
        let Some(keys) = self.store.keys() else { return Ok(()) };
        self.replace_keys(KeyArea::newest_alone)?;
        self.store.change_keys(keys.newest_alone());
        Ok(())
    }

    /// Writes other wrapped keys into every header, and verifies that no copy has those that are
    /// gone. A die that keeps one, however often it is written, has failed.
    fn replace_keys(&self, change: impl Fn(&KeyArea) -> KeyArea) -> Result<(), DeviceError> {
        let mut header = lock(&self.header);
        let former = header.keys;
        header.keys = change(&former);
        let is_gone = |key: &&WrappedKey| header.keys.keys().all(|it| it != *key);
        let gone: Vec<WrappedKey> = former.keys().filter(is_gone).copied().collect();
        let mut tries = 0;
        loop {
            header_copies::write_to_all(&mut header, &self.store.dies)?;
            let Err((die, error)) = self.check_erased(&gone) else { return Ok(()) };
            // Headers that cannot be read for now say nothing of the die.
            self.store.dies.check_responsive()?;
            tries += 1;
            if tries >= TRIES_MAX && !self.store.dies.lose_for(die, &error) {
                let attempted = format!("overwriting a key in the headers of die {die}");
                return Err(medium_error(attempted)(error));
            }
        }
    }

    /// Checks that no copy of a header has one of these keys.
    ///
    /// # Errors
    /// The first die of which that cannot be said.
    fn check_erased(&self, gone: &[WrappedKey]) -> Result<(), (usize, io::Error)> {
        let dies = &self.store.dies;
        for die in dies.healthy() {
            let end = self.store.has_end(die).then(|| self.store.layout.end_header_from());
            for at in [0, HEADER_BYTES].into_iter().chain(end) {
                let mut page = vec![0; usize::try_from(HEADER_BYTES).expect("a page")];
                dies.peek(die, at, &mut page).map_err(|error| (die, error))?;
                if gone.iter().any(|key| key.is_in(&page)) {
                    let kept =
                        format!("a key is still there at byte {at} after it was overwritten");
                    return Err((die, io::Error::other(kept)));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use blockio::Rng;

    use super::*;
    use crate::engine::dies::header_copies::newest_header;
    use crate::engine::drive::SMALL_SHAPE;
    use crate::format::key_area::KEYS_MAX;
    use crate::simulation::Disks;
    use crate::{Shape, format_encrypted};
    use device::{Device as _, Durability};

    const SHAPE: Shape = Shape { dies: 3, is_protected: true, ..SMALL_SHAPE };
    const PAGE: [u8; 4096] = [7; 4096];

    fn key(first: u8) -> UnlockingKey {
        let mut bytes = [0; 32];
        bytes[1] = first;
        UnlockingKey::of_bytes(&bytes).unwrap()
    }

    /// An encrypted drive with a page, closed.
    fn encrypted() -> Disks {
        let bytes = usize::try_from(SHAPE.die_bytes().0).unwrap();
        let disks = Disks::new(3, bytes, Rng::new(0));
        format_encrypted(disks.media(), &SHAPE, 1, &key(1)).unwrap();
        disks.lock_with(Some(key(1)));
        let drive = disks.open(None).unwrap();
        drive.write(0, &PAGE, Durability::Durable).unwrap();
        drive.close().unwrap();
        disks
    }

    fn page(drive: &Drive) -> [u8; 4096] {
        let mut page = [1; 4096];
        drive.read(0, &mut page).unwrap();
        page
    }

    fn wrapped(disks: &Disks) -> Vec<WrappedKey> {
        let header = newest_header(&*disks.media()[0]).unwrap().unwrap();
        header.keys.keys().copied().collect()
    }

    fn is_anywhere(disks: &Disks, keys: &[WrappedKey]) -> bool {
        disks.contents().iter().any(|die| keys.iter().any(|key| key.is_in(die)))
    }

    #[test]
    fn a_rekey_that_is_cut_off_anywhere_opens_with_the_former_key_or_the_new_one() {
        let before = encrypted();
        let mut opened = [0; 2];
        for commands in 0.. {
            let disks = before.fork();
            let drive = disks.open(None).unwrap();
            disks.cut_after(commands);
            let rekeyed = drive.rekey(&key(2));
            drop(drive);
            let is_cut = disks.is_cut();
            assert_eq!(rekeyed.is_err(), is_cut);
            disks.restore();
            let opening = [1, 2].map(|first| {
                disks.lock_with(Some(key(first)));
                disks.open(None)
            });
            let fits = [opening[0].is_ok(), opening[1].is_ok()];
            assert_eq!(fits.iter().filter(|it| **it).count(), 1, "{commands} commands: {fits:?}");
            for (count, drive) in opened.iter_mut().zip(opening) {
                let Ok(drive) = drive else { continue };
                assert_eq!(page(&drive), PAGE);
                *count += 1;
            }
            if !is_cut {
                assert!(fits[1] && !is_anywhere(&disks, &wrapped(&before)));
                break;
            }
        }
        assert!(opened.iter().all(|count| *count > 2), "{opened:?}");
    }

    #[test]
    fn a_purge_that_is_cut_off_anywhere_leaves_a_key_for_all_that_is_there() {
        let before = encrypted();
        let mut seen = std::collections::BTreeSet::new();
        for commands in 0.. {
            let disks = before.fork();
            let drive = disks.open(None).unwrap();
            disks.cut_after(commands);
            let _ = drive.purge();
            // Pages that are written meanwhile have the key of the moment.
            let _ = drive.write(4096, &PAGE, Durability::Durable);
            drop(drive);
            let is_cut = disks.is_cut();
            disks.restore();
            let drive = disks.open(None).unwrap();
            let found = page(&drive);
            assert!(found == PAGE || found == [0; 4096], "{commands} commands");
            seen.insert((found == PAGE, wrapped(&disks).len()));
            drive.purge().unwrap();
            assert_eq!(page(&drive), [0; 4096]);
            drive.close().unwrap();
            assert!(!is_anywhere(&disks, &wrapped(&before)), "{commands} commands");
            assert_eq!(wrapped(&disks).len(), 1);
            if !is_cut {
                break;
            }
        }
        let expected = [(false, 1), (false, 2), (true, 1), (true, 2)];
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn purges_that_are_cut_off_again_and_again_find_room_for_a_key() {
        let (disks, mut most) = (encrypted(), 0);
        for _ in 0..8 {
            let drive = disks.open(None).unwrap();
            drive.write(0, &PAGE, Durability::Durable).unwrap();
            disks.cut_after(40);
            assert!(drive.purge().is_err());
            drop(drive);
            disks.restore();
            most = most.max(wrapped(&disks).len());
        }
        assert_eq!(most, KEYS_MAX);
        let drive = disks.open(None).unwrap();
        drive.purge().unwrap();
        drive.close().unwrap();
        assert_eq!(wrapped(&disks).len(), 1);
    }

    #[test]
    fn no_key_and_another_key_are_refused_and_change_nothing() {
        let disks = encrypted();
        let before = disks.contents();
        let refused = |key: Option<UnlockingKey>| {
            disks.lock_with(key);
            disks.open(None).unwrap_err().to_string()
        };
        assert!(refused(None).contains("no key was given"));
        assert!(refused(Some(key(2))).contains("is not the one"));
        let passphrase = UnlockingKey::of_bytes(b"text").unwrap();
        assert!(refused(Some(passphrase)).contains("is not the one"));
        assert!(disks.contents() == before);
        let plain = Disks::formatted(&SHAPE);
        plain.lock_with(Some(key(1)));
        assert!(plain.open(None).unwrap_err().to_string().contains("is not encrypted"));
    }

    #[test]
    fn no_debug_output_has_a_byte_of_a_key() {
        let secret = b"a passphrase that nothing shows.";
        let unlocking = UnlockingKey::of_bytes(secret).unwrap();
        let cost = Cost { memory_kib: 64, passes: 1, lanes: 1 };
        let keys = MediaKeys::generate(&unlocking, cost, 1);
        let shown = format!("{unlocking:?} {keys:?} {:?}", keys.wrapped());
        assert!(!shown.contains("passphrase that") && !shown.contains("97, 32"), "{shown}");
        let drive = encrypted().open(None).unwrap();
        assert!(format!("{drive:?}").contains("MediaKeys { epochs: [1], .. }"));
    }
}
