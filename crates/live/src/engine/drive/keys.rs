//! Changes of the keys of an encrypted drive: a purge has another media key, a rekey another
//! wrapping key.
//!
//! ```text
//!   rekey:  media keys, wrapped anew ─► unwrapped again ─► every header ─► verified
//!   purge:  another key ─► every header ─► everything is forgotten ─► both checkpoints
//!           ─► the former keys leave every header ─► verified
//! ```
//!
//! Verified means: each copy of each die that is there, read back from the medium, holds the
//! present keys and nothing else. So a copy that kept a key of years ago is found as well.
//!
//! A crash leaves the newest header, whichever that is: it opens with the key that it was written
//! with, and has the media key of whatever the map refers to.

use std::sync::atomic::Ordering;

use device::DeviceError;
use status::NotErased;

use super::Drive;
use crate::OpenError;
use crate::engine::dies::{header_copies, medium_error};
use crate::format::header::Header;
use crate::format::key_area::Cost;
use crate::format::media_keys::{LockedCause, MediaKeys, Secret, UnlockingKey};
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

    /// True if the key that the drive was opened with is one as earlier versions took its bytes.
    pub fn is_key_read_as_before(&self) -> bool {
        self.store.keys().is_some_and(|keys| keys.is_read_as_before())
    }

    /// Media that keep headers which the former key unlocks, after a rekey: those that had failed,
    /// or failed meanwhile.
    pub(crate) fn not_rekeyed(&self) -> Vec<NotErased> {
        self.store.dies.unreached_media()
    }

    fn rekey_at(&self, unlocking: &UnlockingKey, cost: Cost) -> Result<(), OpenError> {
        let keys = self.store.keys().ok_or(OpenError::Locked(LockedCause::NotEncrypted))?;
        let secret = unlocking.new_secret().map_err(OpenError::refused)?;
        self.check_sound()?;
        // A purge changes the keys, too.
        if self.is_purging.swap(true, Ordering::AcqRel) {
            let reason = "a purge is under way".to_owned();
            return Err(DeviceError::Transient { reason }.into());
        }
        self.store.dies.note_unreached();
        let rekeyed = self.rekey_with(keys.rekeyed(secret, cost), secret);
        self.is_purging.store(false, Ordering::Release);
        rekeyed
    }

    fn rekey_with(&self, keys: MediaKeys, secret: &Secret) -> Result<(), OpenError> {
        let wrapped = keys.wrapped();
        if !keys.are_in(&wrapped, Some(secret)) {
            let what = "the new key does not unlock what was locked with it: nothing was changed; \
                        test the memory of this machine";
            return Err(OpenError::refused(what.to_owned()));
        }
        let mut header = lock(&self.header);
        let former = std::mem::replace(&mut header.keys, wrapped);
        let written = self.write_keys(&mut header);
        if written.is_ok() {
            self.store.change_keys(keys);
        } else {
            // What failed takes no effect, as far as headers can be written; closing the drive
            // writes them once more.
            header.keys = former;
            let _ = header_copies::write(&mut header, &self.store.dies);
        }
        drop(header);
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
        header.keys = former.with(next.wrapped_newest());
        assert!(next.are_in(&header.keys, None), "what is wrapped is unwrapped again");
        let written = header_copies::write_keys_to_all(&mut header, &self.store.dies);
        if written.is_err() {
            // Nothing is encrypted with the new key, and what closes the drive must not keep it.
            header.keys = former;
        }
        written?;
        Ok(Some(next))
    }

    /// Drops all media keys but the newest one from every header, once nothing is stored that they
    /// encrypted; copies that kept one after an earlier purge are found, too.
    pub(super) fn drop_former_keys(&self) -> Result<(), DeviceError> {
        let Some(keys) = self.store.keys() else { return Ok(()) };
        let mut header = lock(&self.header);
        header.keys = header.keys.newest_alone();
        let written = self.write_keys(&mut header);
        // Nothing is stored that the others encrypted, wherever a header keeps one.
        self.store.change_keys(keys.newest_alone());
        written
    }

    /// Writes the wrapped keys of a header into every copy, and verifies that each copy of each die
    /// holds them and nothing else. A die of which one does not, however often it is written, has
    /// failed.
    fn write_keys(&self, header: &mut Header) -> Result<(), DeviceError> {
        let (dies, layout) = (&self.store.dies, &self.store.layout);
        let check = |header: &Header| {
            let check = |die| header_copies::check_keys(dies, die, layout, &header.keys);
            dies.healthy().find_map(|die| Some((die, check(die).err()?)))
        };
        let mut tries = 0;
        loop {
            header_copies::write_keys_to_all(header, dies)?;
            let Some((die, error)) = check(header) else { return Ok(()) };
            // Headers that cannot be read for now say nothing of the die.
            dies.check_responsive()?;
            tries += 1;
            if tries < TRIES_MAX {
                continue;
            }
            let is_lost = dies.lose_for(die, &error);
            dies.note_key_kept(die, &error);
            if !is_lost {
                let attempted = format!("erasing a key from the headers of die {die}");
                return Err(medium_error(attempted)(error));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io;
    use std::sync::atomic::AtomicU32;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{Arc, Mutex};
    use std::thread;

    use blockio::Rng;
    use status::Compression;

    use super::*;
    use crate::engine::dies::header_copies::newest_header;
    use crate::engine::drive::SMALL_SHAPE;
    use crate::format::key_area::{KEYS_MAX, WrappedKey};
    use crate::format::layout::{HEADER_BYTES, Layout};
    use crate::simulation::Disks;
    use crate::{Medium, Shape, format_encrypted};
    use device::{Device as _, Durability};

    const SHAPE: Shape = Shape { dies: 3, is_protected: true, ..SMALL_SHAPE };
    const SINGLE: Shape = Shape { dies: 1, is_protected: false, ..SHAPE };
    const PAGE: [u8; 4096] = [7; 4096];

    fn key(first: u8) -> UnlockingKey {
        let mut bytes = [0xff; 32];
        bytes[1] = first;
        UnlockingKey::of_bytes(&bytes).unwrap()
    }

    /// An encrypted drive with a page, closed.
    fn encrypted() -> Disks {
        encrypted_as(&SHAPE)
    }

    fn encrypted_as(shape: &Shape) -> Disks {
        let bytes = usize::try_from(shape.die_bytes().0).unwrap();
        let disks = Disks::new(shape.dies as usize, bytes, Rng::new(0));
        format_encrypted(disks.media(), shape, 1, &key(1)).unwrap();
        disks.lock_with(Some(key(1)));
        let drive = disks.open(None).unwrap();
        drive.write(0, &PAGE, Durability::Durable).unwrap();
        drive.close().unwrap();
        disks
    }

    /// A way to read the page.
    type ReadPage = fn(&Drive) -> [u8; 4096];

    /// Fate of what is written to the headers of a medium.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Fate {
        Done,
        /// The copy at the end is acknowledged and not written.
        EndDropped,
        /// As before, and the system's cache gives it back.
        EndDroppedBehindCache,
        /// All copies are written with a bit changed.
        Changed,
        /// No copy is written, which is said.
        Refused,
        /// Headers cannot be read once the copy at the end was written twice.
        SilentLater,
    }

    /// Means to have a medium fail while a drive has it.
    #[derive(Debug)]
    struct Control {
        fate: Mutex<Fate>,
        end_writes: AtomicU32,
        /// Reads of units that go on, before the one that tells of itself and waits.
        reads_before: AtomicU32,
        reads: Mutex<Option<(Sender<()>, Receiver<()>)>>,
    }

    /// Disk whose headers fail without a word.
    #[derive(Debug)]
    struct Faulty {
        inner: Box<dyn Medium>,
        end_header: u64,
        unit_from: u64,
        cache: Mutex<BTreeMap<u64, Vec<u8>>>,
        control: Arc<Control>,
    }

    impl Medium for Faulty {
        fn size(&self) -> u64 {
            self.inner.size()
        }

        fn lengthen(&self, size: u64) -> io::Result<()> {
            self.inner.lengthen(size)
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
            let is_late = self.control.end_writes.load(Ordering::Relaxed) >= 2;
            let is_header = offset <= HEADER_BYTES || offset == self.end_header;
            if is_header && is_late && *lock(&self.control.fate) == Fate::SilentLater {
                return Err(io::Error::other("the medium does not respond"));
            }
            if let Some(cached) = lock(&self.cache).get(&offset) {
                buffer.copy_from_slice(cached);
                return Ok(());
            }
            self.inner.read_at(offset, buffer)?;
            let is_it = |_: &mut _| {
                let before = &self.control.reads_before;
                offset >= self.unit_from && before.fetch_sub(1, Ordering::Relaxed) == 0
            };
            let reads = lock(&self.control.reads).take_if(is_it);
            if let Some((tell, wait)) = reads {
                tell.send(()).unwrap();
                wait.recv().unwrap();
            }
            Ok(())
        }

        fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
            let is_end = offset == self.end_header;
            self.control.end_writes.fetch_add(u32::from(is_end), Ordering::Relaxed);
            let fate = *lock(&self.control.fate);
            match fate {
                Fate::EndDropped if is_end => Ok(()),
                Fate::EndDroppedBehindCache if is_end => {
                    lock(&self.cache).insert(offset, bytes.to_vec());
                    Ok(())
                }
                Fate::Changed if is_end || offset <= HEADER_BYTES => {
                    let mut bytes = bytes.to_vec();
                    bytes[100] ^= 1;
                    self.inner.write_at(offset, &bytes)
                }
                Fate::Refused if is_end || offset <= HEADER_BYTES => {
                    Err(io::Error::other("the medium refuses"))
                }
                _ => self.inner.write_at(offset, bytes),
            }
        }

        fn sync(&self) -> io::Result<()> {
            self.inner.sync()
        }

        fn begin_sync(&self, offset: u64, length: u64) {
            lock(&self.cache).retain(|at, _| !(offset..offset + length).contains(at));
        }
    }

    /// The drive, whose first die is such a medium.
    fn open_with(disks: &Disks, shape: &Shape, fate: Fate) -> (Drive, Arc<Control>) {
        let control = Arc::new(Control {
            fate: Mutex::new(fate),
            end_writes: AtomicU32::new(0),
            reads_before: AtomicU32::new(0),
            reads: Mutex::default(),
        });
        let layout = Layout::new(shape);
        let mut media = disks.media();
        media[0] = Box::new(Faulty {
            inner: disks.media().remove(0),
            end_header: layout.end_header_from(),
            unit_from: layout.unit_from(0),
            cache: Mutex::default(),
            control: Arc::clone(&control),
        });
        (Drive::open_unlocked(media, None, Some(&key(1))).unwrap(), control)
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
    fn a_copy_that_keeps_a_key_fails_every_purge_and_rekey_until_it_is_written() {
        for fate in [Fate::EndDropped, Fate::EndDroppedBehindCache] {
            let disks = encrypted_as(&SINGLE);
            let first = wrapped(&disks);
            for _ in 0..3 {
                let drive = open_with(&disks, &SINGLE, fate).0;
                let told = drive.purge().unwrap_err().to_string();
                assert!(told.contains("die 0: the copy at the end of its header"), "{told}");
                let purge = drive.status().maintenance.purge.unwrap();
                assert_eq!((purge.not_erased[0].die, purge.not_erased.len()), (Some(0), 1));
                assert!(purge.not_erased[0].reason.as_ref().unwrap().contains("at the end"));
                assert_eq!(purge.superblocks_done, purge.superblocks, "the rest is erased");
                drop(drive);
                assert!(is_anywhere(&disks, &first));
            }
            let drive = open_with(&disks, &SINGLE, fate).0;
            assert!(drive.rekey(&key(2)).unwrap_err().to_string().contains("at the end"));
            drop(drive);
            let drive = disks.open(None).unwrap();
            drive.purge().unwrap();
            assert_eq!(page(&drive), [0; 4096]);
            drive.close().unwrap();
            assert!(!is_anywhere(&disks, &first));
        }
    }

    #[test]
    fn a_purge_whose_headers_cannot_be_read_back_may_be_repeated_at_once() {
        let disks = encrypted_as(&SINGLE);
        let first = wrapped(&disks);
        let (drive, control) = open_with(&disks, &SINGLE, Fate::Done);
        control.end_writes.store(0, Ordering::Relaxed);
        *lock(&control.fate) = Fate::SilentLater;
        let told = drive.purge().unwrap_err();
        assert!(matches!(told, DeviceError::Transient { .. }), "{told}");
        *lock(&control.fate) = Fate::Done;
        drive.write(0, &PAGE, Durability::Durable).unwrap();
        assert_eq!(page(&drive), PAGE);
        drive.purge().unwrap();
        assert_eq!(page(&drive), [0; 4096]);
        drive.close().unwrap();
        assert!(!is_anywhere(&disks, &first) && wrapped(&disks).len() == 1);
    }

    #[test]
    fn a_die_that_keeps_a_key_is_done_without_and_named() {
        let disks = encrypted();
        let (drive, _) = open_with(&disks, &SHAPE, Fate::EndDropped);
        drive.purge().unwrap();
        let purge = drive.status().maintenance.purge.unwrap();
        assert_eq!((drive.lost_dies(), purge.not_erased.len()), (vec![0], 1));
        let [kept] = &purge.not_erased[..] else { panic!("one die") };
        assert!(kept.die == Some(0) && kept.reason.as_ref().unwrap().contains("at the end"));
    }

    #[test]
    fn headers_that_do_not_take_the_new_keys_keep_the_former_ones() {
        let disks = encrypted_as(&SINGLE);
        let former = wrapped(&disks);
        for is_rekey in [true, false] {
            // One that opened before its headers failed.
            let disks = disks.fork();
            let (drive, control) = open_with(&disks, &SINGLE, Fate::Done);
            *lock(&control.fate) = Fate::Changed;
            let changed = if is_rekey {
                drive.rekey(&key(2)).map_err(|error| error.to_string())
            } else {
                drive.purge().map_err(|error| error.to_string())
            };
            let told = changed.unwrap_err();
            assert!(told.contains("is not read back"), "{told}");
            drop(drive);
            assert!(is_anywhere(&disks, &former));
            assert_eq!(page(&disks.open(None).unwrap()), PAGE);
        }
    }

    #[test]
    fn a_purge_that_failed_to_add_a_key_adds_none_of_the_same_epoch() {
        let disks = encrypted_as(&SINGLE);
        let (drive, control) = open_with(&disks, &SINGLE, Fate::Done);
        *lock(&control.fate) = Fate::Refused;
        assert!(drive.purge().is_err());
        *lock(&control.fate) = Fate::Done;
        let (before, held) = (disks.contents(), lock(&drive.header).keys);
        assert_eq!(held.keys().count(), 1, "nothing is encrypted with the other one");
        assert!(drive.purge().is_err());
        assert!(disks.contents() == before, "and no other one is added");
        drop(drive);
        let drive = disks.open(None).unwrap();
        assert_eq!(page(&drive), PAGE);
        drive.purge().unwrap();
        assert_eq!(wrapped(&disks).len(), 1);
    }

    #[test]
    fn a_rekey_that_failed_takes_no_effect_when_the_drive_is_closed() {
        let disks = encrypted_as(&SINGLE);
        let (drive, control) = open_with(&disks, &SINGLE, Fate::Done);
        *lock(&control.fate) = Fate::Refused;
        assert!(drive.rekey(&key(2)).is_err());
        *lock(&control.fate) = Fate::Done;
        drive.close().unwrap();
        disks.lock_with(Some(key(2)));
        assert!(disks.open(None).unwrap_err().to_string().contains("is not the one"));
        disks.lock_with(Some(key(1)));
        assert_eq!(page(&disks.open(None).unwrap()), PAGE);
    }

    #[test]
    fn a_read_whose_key_a_purge_drops_meanwhile_finds_nothing_and_does_not_fail() {
        let packed = Shape { extents_per_page: 4, compression: Compression::Lz4, ..SINGLE };
        let alone = |drive: &Drive| {
            let mut page = [1; 4096];
            drive.read_page(ftl::Lpn(0), &mut page).unwrap();
            page
        };
        let ways: [(Shape, ReadPage); 4] =
            [(SINGLE, page), (packed, page), (SINGLE, alone), (packed, alone)];
        for ((shape, read_page), at) in ways.into_iter().flat_map(|it| [(it, 0), (it, 1), (it, 2)])
        {
            let disks = encrypted_as(&shape);
            let ((read, reads), (purge, purged)) = (channel(), channel());
            let (drive, control) = open_with(&disks, &shape, Fate::Done);
            control.reads_before.store(at, Ordering::Relaxed);
            *lock(&control.reads) = Some((read, purged));
            let found = thread::scope(|scope| {
                let drive = &drive;
                scope.spawn(move || {
                    // It is not told where there are fewer reads.
                    if reads.recv().is_ok() {
                        drive.purge().unwrap();
                        purge.send(()).unwrap();
                    }
                });
                let found = read_page(drive);
                let is_purged = lock(&control.reads).take().is_none();
                (found == [0; 4096], is_purged)
            });
            assert_eq!(found.0, found.1, "{at} reads before the purge");
            assert!(found.1 || at > 0, "the page was read from the die");
            assert_eq!(drive.lost_lbas(1).unwrap(), Vec::<u64>::new());
        }
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
        let keys = MediaKeys::generate(unlocking.new_secret().unwrap(), cost, 1);
        let shown = format!("{unlocking:?} {keys:?} {:?}", keys.wrapped());
        assert!(!shown.contains("passphrase that") && !shown.contains("97, 32"), "{shown}");
        let drive = encrypted().open(None).unwrap();
        assert!(format!("{drive:?}").contains("MediaKeys { epochs: [1], .. }"));
    }
}
