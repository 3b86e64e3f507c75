//! Volumes that are encrypted: what their files give away, and which key opens them.

use std::fs;
use std::path::{Path, PathBuf};

use blockio::{Bytes, Rng};
use live::{
    Compression, CreateOptions, Device as _, Drive, Durability, OpenError, Opening, Preallocation,
    RecoveredVolume, UnlockingKey, VolumeOptions, check, create, key_of_command, key_of_file,
};

use crate::volume_options;

const PAGE: u64 = 4096;
const SIZE: u64 = 8 << 20;
/// Bytes that each page begins with.
const MARK_BYTES: usize = 64;

fn raw_key(first: u8) -> UnlockingKey {
    let mut bytes = [0xff; 32];
    bytes[1] = first;
    UnlockingKey::of_bytes(&bytes).expect("nothing fails")
}

fn created(folder: &Path, compression: Compression, key: Option<UnlockingKey>) -> CreateOptions {
    let options = CreateOptions {
        over_provisioning: 0.5,
        compression,
        ..volume_options(folder, 3, Bytes(SIZE))
    };
    let preallocation = Preallocation::Off;
    create(&options, &VolumeOptions { key, preallocation, ..VolumeOptions::default() })
        .expect("nothing fails");
    options
}

fn open(volume: &Path, key: Option<UnlockingKey>) -> Result<Drive, OpenError> {
    Drive::open_as(volume, Opening { key, ..Opening::default() })
}

/// Random bytes that every page begins with, and a page of which half is random besides.
fn marked(rng: &mut Rng) -> ([u8; MARK_BYTES], Vec<u8>) {
    let mut mark = [0; MARK_BYTES];
    let mut fixed = Rng::new(7);
    mark.fill_with(|| fixed.next_u64().to_le_bytes()[0]);
    let mut page = vec![0; 4096];
    page[..MARK_BYTES].copy_from_slice(&mark);
    page[MARK_BYTES..2048].fill_with(|| rng.next_u64().to_le_bytes()[0]);
    (mark, page)
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .expect("nothing fails")
        .map(|entry| entry.expect("nothing fails").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Files that have some sixteen bytes of the mark.
fn giving_away(folder: &Path, mark: &[u8; MARK_BYTES]) -> Vec<PathBuf> {
    let is_marked = |path: &PathBuf| {
        let bytes = fs::read(path).expect("nothing fails");
        let pieces: Vec<&[u8]> = mark.chunks(16).collect();
        bytes.windows(16).any(|window| window[0] != 0 && pieces.contains(&window))
    };
    files(folder).into_iter().filter(is_marked).collect()
}

/// Writes marked pages in all ways, and says after each stage which files give the mark away.
fn stages(compression: Compression, key: Option<&UnlockingKey>) -> Vec<Vec<PathBuf>> {
    let folder = tempfile::tempdir().expect("nothing fails");
    let options = created(folder.path(), compression, key.cloned());
    let mut rng = Rng::new(1);
    let (mark, _) = marked(&mut rng);
    let mut found = Vec::new();
    let mut look = || found.push(giving_away(folder.path(), &mark));
    let drive = open(&options.volume, key.cloned()).expect("nothing fails");
    // In the write buffer alone.
    drive.write(0, &marked(&mut rng).1, Durability::Volatile).expect("nothing fails");
    look();
    // In the journal.
    drive.flush().expect("nothing fails");
    look();
    // In rows, over and over: pages are relocated, and checkpoints are taken.
    for _ in 0..16_000 {
        let at = rng.below(SIZE / PAGE) * PAGE;
        drive.write(at, &marked(&mut rng).1, Durability::Volatile).expect("nothing fails");
    }
    assert!(drive.counters().expect("nothing fails").pages_relocation > 0);
    drive
        .atomic_write(&[(0, &marked(&mut rng).1), (3 * PAGE + 512, &mark)])
        .expect("nothing fails");
    drive.write(5 * PAGE, &marked(&mut rng).1, Durability::Volatile).expect("nothing fails");
    look();
    // The server dies, and recovery brings everything back, without one of the dies.
    drop(drive);
    fs::rename(&options.dies[1], folder.path().join("away")).expect("nothing fails");
    look();
    let drive = open(&options.volume, key.cloned()).expect("nothing fails");
    let mut page = [0; MARK_BYTES];
    for at in [0, 3 * PAGE + 512, 5 * PAGE] {
        drive.read(at, &mut page).expect("nothing fails");
        assert_eq!(page, mark);
    }
    drive.close().expect("nothing fails");
    look();
    let recovered = RecoveredVolume::open(&options.volume, None, key).expect("nothing fails");
    let mut page = [0; 4096];
    recovered.read(5, &mut page);
    assert_eq!(page[..MARK_BYTES], mark);
    found
}

#[test]
fn no_file_of_a_volume_has_a_run_of_bytes_that_a_client_wrote() {
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let plain = stages(compression, None);
        assert!(plain.iter().all(|files| !files.is_empty()), "{compression:?}: {plain:?}");
        let encrypted = stages(compression, Some(&raw_key(1)));
        assert!(encrypted.iter().all(Vec::is_empty), "{compression:?}: {encrypted:?}");
    }
}

#[test]
fn pages_of_any_contents_come_back_however_little_is_stored_of_them() {
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let folder = tempfile::tempdir().expect("nothing fails");
        let options = created(folder.path(), compression, Some(raw_key(1)));
        let drive = open(&options.volume, Some(raw_key(1))).expect("nothing fails");
        let page = |at: u64| vec![u8::try_from(at % 256).expect("nothing fails"); 4096];
        for at in 0..300 {
            drive.write(at * PAGE, &page(at), Durability::Volatile).expect("nothing fails");
        }
        drive.close().expect("nothing fails");
        let drive = open(&options.volume, Some(raw_key(1))).expect("nothing fails");
        for at in 0..300 {
            let mut found = vec![1; 4096];
            drive.read(at * PAGE, &mut found).expect("nothing fails");
            assert!(found == page(at), "{compression:?}, page {at}");
        }
    }
}

fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all: Vec<_> = files(folder)
        .into_iter()
        .map(|path| (path.clone(), fs::read(path).expect("nothing fails")))
        .collect();
    all.sort();
    all
}

#[test]
fn without_its_key_a_volume_can_be_checked_and_nothing_else_and_nothing_changes() {
    let folder = tempfile::tempdir().expect("nothing fails");
    let options = created(folder.path(), Compression::None, Some(raw_key(1)));
    let drive = open(&options.volume, Some(raw_key(1))).expect("nothing fails");
    drive.write(0, &[7; 4096], Durability::Durable).expect("nothing fails");
    // A crash, so that there is something to recover.
    drop(drive);
    let before = contents(folder.path());
    for key in [None, Some(raw_key(2))] {
        let error = open(&options.volume, key.clone()).unwrap_err();
        assert!(matches!(error, OpenError::Locked(_)), "{error}");
        assert!(error.remedy(&options.volume).contains("--key-file"), "{error}");
        let recovered = RecoveredVolume::open(&options.volume, None, key.as_ref());
        assert!(matches!(recovered, Err(OpenError::Locked(_))));
        assert!(check::repair(&options.volume, key, |_, _| ()).is_err());
    }
    let report = check::check(&options.volume, |_, _| ()).expect("nothing fails");
    assert!(report.is_clean() && report.pages > 0, "{report:?}");
    assert!(live::inspect(&options.volume).expect("nothing fails").format.is_encrypted);
    assert!(contents(folder.path()) == before);
}

#[test]
fn a_passphrase_opens_a_volume_until_another_one_takes_its_place() {
    let folder = tempfile::tempdir().expect("nothing fails");
    let keep = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("nothing fails");
        path
    };
    let first = key_of_file(&keep("first", "correct horse\n")).expect("nothing fails");
    let printed = key_of_command("printf 'correct horse'").expect("nothing fails");
    assert_eq!(first, printed, "a line feed at the end is no part of it");
    let failed = key_of_command("echo text; exit 3").unwrap_err().to_string();
    assert!(failed.contains("exit status: 3") && !failed.contains("text"), "{failed}");
    assert!(key_of_file(&keep("empty", "\n")).is_err());
    let options = created(folder.path(), Compression::None, Some(first.clone()));
    let drive = open(&options.volume, Some(printed)).expect("nothing fails");
    drive.write(0, &[7; 4096], Durability::Volatile).expect("nothing fails");
    drive.rekey(&raw_key(3)).expect("nothing fails");
    drive.close().expect("nothing fails");
    assert!(open(&options.volume, Some(first)).is_err());
    let drive = open(&options.volume, Some(raw_key(3))).expect("nothing fails");
    let mut page = [0; 4096];
    drive.read(0, &mut page).expect("nothing fails");
    assert_eq!(page, [7; 4096]);
}

#[test]
fn the_dies_alone_and_the_key_restore_a_volume() {
    let folder = tempfile::tempdir().expect("nothing fails");
    let options = created(folder.path(), Compression::Lz4, Some(raw_key(1)));
    let drive = open(&options.volume, Some(raw_key(1))).expect("nothing fails");
    drive.write(0, &[7; 4096], Durability::Volatile).expect("nothing fails");
    drive.close().expect("nothing fails");
    fs::remove_dir_all(&options.volume).expect("nothing fails");
    fs::create_dir(&options.volume).expect("nothing fails");
    let dies: Vec<String> = options.dies.iter().map(|die| format!("{die:?}")).collect();
    let text = format!("schema = 1\ndies = [{}]\n", dies.join(", "));
    fs::write(options.volume.join("volume.toml"), text).expect("nothing fails");
    let drive = open(&options.volume, Some(raw_key(1))).expect("nothing fails");
    let mut page = [0; 4096];
    drive.read(0, &mut page).expect("nothing fails");
    assert_eq!(page, [7; 4096]);
}
