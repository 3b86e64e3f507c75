//! One bit of the files in a volume's folder flipped, one after the other, beside dies whose server
//! died: the volume opens with all that it held, says what it does without, or is refused.

#![expect(clippy::print_stdout, reason = "what comes of every bit is told to who asks for it")]

use std::fs;
use std::path::{Path, PathBuf};

use blockio::Bytes;
use live::{CreateOptions, Device as _, Drive, Durability, Preallocation, VolumeOptions, create};

use crate::volume_options;

const PAGE_BYTES: usize = 4096;
const DIES: usize = 3;
/// Pages that are written and flushed, and written once more without a flush.
const PAGES: usize = 5;
const FLUSHED: u8 = 1;
const ACKNOWLEDGED: u8 = 2;

/// Outcomes of the flips in one file.
#[derive(Debug, Default)]
struct Outcomes {
    whole: u32,
    /// Opened without what was not flushed, and said so.
    said: u32,
    refused: u32,
}

/// Flips of each file: `FLOATGATE_FLIP_STRIDE=1` takes a bit of every byte.
fn stride(bytes: usize) -> usize {
    let typed = std::env::var("FLOATGATE_FLIP_STRIDE");
    typed.map_or(bytes / 23 + 1, |text| text.parse().expect("a number of bytes"))
}

fn page(content: u8) -> [u8; PAGE_BYTES] {
    [content; PAGE_BYTES]
}

fn offset(page: usize) -> u64 {
    (page * PAGE_BYTES) as u64
}

fn dies(folder: &Path) -> [PathBuf; DIES] {
    [0, 1, 2].map(|die| folder.join(format!("d{die}.img")))
}

/// A volume whose server died with writes that were not flushed.
fn volume(folder: &Path) {
    let options = CreateOptions {
        over_provisioning: 1.0,
        unit: Some(Bytes(16 << 10)),
        ..volume_options(folder, DIES, Bytes(1 << 20))
    };
    let sparse = VolumeOptions { preallocation: Preallocation::Off, ..VolumeOptions::default() };
    create(&options, &sparse).expect("nothing fails");
    let drive = Drive::open(&folder.join("volume")).expect("nothing fails");
    for content in [FLUSHED, ACKNOWLEDGED] {
        for number in 0..PAGES {
            let written = drive.write(offset(number), &page(content), Durability::Volatile);
            written.expect("nothing fails");
        }
        if content == FLUSHED {
            drive.flush().expect("nothing fails");
        }
    }
}

/// Opens the volume, and says whether it holds all, or says what it does without.
fn open(volume: &Path, outcomes: &mut Outcomes) -> Result<(), String> {
    let Ok(drive) = Drive::open(volume) else {
        outcomes.refused += 1;
        return Ok(());
    };
    let says = drive.unused_media().next().is_some();
    let mut is_whole = true;
    for number in 0..PAGES {
        let mut found = page(0);
        let read = drive.read(offset(number), &mut found);
        if read.is_err() {
            return Err(format!("page {number} is an error: {read:?}"));
        }
        is_whole &= found == page(ACKNOWLEDGED);
        if found != page(ACKNOWLEDGED) && (found != page(FLUSHED) || !says) {
            return Err(format!("page {number} holds {}, and nothing is said", found[0]));
        }
    }
    if is_whole {
        outcomes.whole += 1;
    } else {
        outcomes.said += 1;
    }
    Ok(())
}

/// A file of the folder under a second name, since a copy of a write buffer does not count.
struct KeptFile {
    path: PathBuf,
    link: PathBuf,
    bytes: Vec<u8>,
}

fn keep(volume: &Path) -> Vec<KeptFile> {
    let files = fs::read_dir(volume).expect("nothing fails").flatten();
    let keep = |path: PathBuf| {
        let name = path.file_name().expect("a file has a name").to_owned();
        let link = volume.with_file_name("kept").with_added_extension(name);
        fs::hard_link(&path, &link).expect("nothing fails");
        let bytes = fs::read(&path).expect("nothing fails");
        KeptFile { path, link, bytes }
    };
    files.map(|file| file.path()).filter(|path| path.is_file()).map(keep).collect()
}

fn put_back(volume: &Path, kept: &[KeptFile]) {
    fs::remove_dir_all(volume).expect("nothing fails");
    fs::create_dir(volume).expect("nothing fails");
    for KeptFile { path, link, bytes } in kept {
        fs::write(link, bytes).expect("nothing fails");
        fs::hard_link(link, path).expect("nothing fails");
    }
}

/// Flips bits of the file, opens the volume each time, and puts everything back.
fn flip(folder: &Path, name: &str) -> Outcomes {
    let volume = folder.join("volume");
    let kept_dies = dies(folder).map(|die| fs::read(die).expect("nothing fails"));
    let kept = keep(&volume);
    let path = volume.join(name);
    let whole = fs::read(&path).expect("nothing fails");
    let mut outcomes = Outcomes::default();
    for byte in (0..whole.len()).step_by(stride(whole.len())) {
        let mut flipped = whole.clone();
        flipped[byte] ^= 1 << (byte % 8);
        fs::write(&path, flipped).expect("nothing fails");
        let opened = open(&volume, &mut outcomes);
        assert!(opened.is_ok(), "{name}, byte {byte}: {opened:?}");
        for (die, bytes) in dies(folder).iter().zip(&kept_dies) {
            fs::write(die, bytes).expect("nothing fails");
        }
        put_back(&volume, &kept);
    }
    for file in &kept {
        fs::remove_file(&file.link).expect("nothing fails");
    }
    println!("{name}, {} bytes: {outcomes:?}", whole.len());
    outcomes
}

#[test]
fn no_flipped_bit_of_a_file_in_the_folder_is_silent() {
    let folder = tempfile::tempdir().expect("nothing fails");
    volume(folder.path());
    let witness = flip(folder.path(), "dies.witness");
    assert_eq!(witness.refused, 0, "the dies suffice: {witness:?}");
    let buffer = flip(folder.path(), "write-buffer");
    assert!(buffer.refused == 0 && buffer.said > 0, "{buffer:?}");
    let described = flip(folder.path(), "volume.toml");
    assert!(described.whole > 0 && described.refused > 0, "{described:?}");
}
