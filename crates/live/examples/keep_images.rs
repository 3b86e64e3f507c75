//! Makes the images of small volumes that `tests/integration/images.rs` opens for ever:
//! `keep_images FOLDER`, which is `crates/live/tests/images`. Run once for each media format, by
//! the program that has it; images of earlier formats are never made anew.
//!
//! ```text
//!   format-N-closed    2+1 dies, two exported parts, closed twice
//!   format-N-crashed   1+1 dies, Zstandard, whose last session was not closed
//!   format-N-encrypted as the one before, with a key of 32 bytes of 7
//!     volume.toml, dies.witness     files of the folder; `FOLDER` stands for the folder of dies
//!     d0.img.zst, …                 the dies
//!     contents.zst                  all that clients read
//! ```

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use blockio::Bytes;
use live::{
    Compression, CreateOptions, Device as _, Drive, Durability, Namespaces, Opening, UnlockingKey,
    VolumeOptions, create,
};

const PAGE: u64 = 4096;
const SIZE: Bytes = Bytes(1 << 20);
const LEVEL: i32 = 19;

type Failure = Box<dyn Error>;

/// Contents of a page after a round of writes: 64 bytes that no other has, again and again, so that
/// an image is small.
fn page(index: u64, round: u64) -> Vec<u8> {
    let mut word = index << 8 | round;
    let line: Vec<u8> = (0..8)
        .flat_map(|_| {
            word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31) ^ 0x55;
            word.to_le_bytes()
        })
        .collect();
    line.repeat(64)
}

/// Writes every `step`th page of a range, which relocation mixes with what is there.
fn write(drive: &Drive, from: u64, until: u64, step: usize, round: u64) -> Result<(), Failure> {
    for index in (from..until).step_by(step) {
        drive.write(index * PAGE, &page(index, round), Durability::Volatile)?;
    }
    Ok(())
}

/// A session with writes, trims and checkpoints, all of which is flushed at its end.
fn use_volume(volume: &Path, session: u64, key: Option<&UnlockingKey>) -> Result<Drive, Failure> {
    let opening = Opening { key: key.cloned(), ..Opening::default() };
    let drive = Drive::open_as(volume, opening)?;
    for round in 0..3 {
        write(&drive, session * 10, 200, 3 + usize::try_from(round)?, session * 10 + round)?;
        drive.flush()?;
        drive.trim((60 + session * 20 + round) * PAGE, 5 * PAGE, Durability::Durable)?;
    }
    drive.checkpoint()?;
    write(&drive, 0, 40, 7, session * 10 + 4)?;
    drive.flush()?;
    let (first, second) = (page(201, session), page(230, session));
    drive.atomic_write(&[(201 * PAGE, &first), (230 * PAGE, &second)])?;
    drive.write(250 * PAGE + 512, &page(250, session)[..1024], Durability::Durable)?;
    drive.trim(3 * PAGE + 512, 2 * PAGE, Durability::Durable)?;
    Ok(drive)
}

fn options(folder: &Path, dies: usize, compression: Compression) -> CreateOptions {
    CreateOptions {
        volume: folder.join("volume"),
        dies: (0..dies).map(|die| folder.join(format!("d{die}.img"))).collect(),
        size: SIZE,
        is_protected: true,
        over_provisioning: 0.2,
        compression,
        physical: None,
        unit: None,
    }
}

/// Keeps the files of a volume, and what clients read of it, in a folder of their own.
fn keep(
    options: &CreateOptions,
    contents: &[u8],
    images: &Path,
    name: &str,
) -> Result<(), Failure> {
    let dies: Result<Vec<Vec<u8>>, _> = options.dies.iter().map(fs::read).collect();
    let dies = dies?;
    let version = u32::from_le_bytes(dies[0][16..20].try_into()?);
    let kept = images.join(format!("format-{version}-{name}"));
    fs::create_dir_all(&kept)?;
    for (index, die) in dies.iter().enumerate() {
        fs::write(kept.join(format!("d{index}.img.zst")), zstd::encode_all(&die[..], LEVEL)?)?;
    }
    let above = options.volume.parent().ok_or("a volume lies in a folder")?;
    let described = fs::read_to_string(options.volume.join("volume.toml"))?;
    let above = above.to_str().ok_or("the folder is not in UTF-8")?;
    fs::write(kept.join("volume.toml"), described.replace(above, "FOLDER"))?;
    fs::copy(options.volume.join("dies.witness"), kept.join("dies.witness"))?;
    fs::write(kept.join("contents.zst"), zstd::encode_all(contents, LEVEL)?)?;
    Ok(())
}

fn contents(drive: &Drive) -> Result<Vec<u8>, Failure> {
    let mut contents = vec![0; usize::try_from(SIZE.0)?];
    drive.read(0, &mut contents)?;
    Ok(contents)
}

fn main() -> Result<(), Failure> {
    let images = std::env::args().nth(1).map(PathBuf::from).ok_or("keep_images FOLDER")?;
    let folder = tempfile::tempdir()?;
    let closed = options(&folder.path().join("closed"), 3, Compression::None);
    fs::create_dir_all(folder.path().join("closed"))?;
    Drive::create(&closed)?.close()?;
    let sizes = [("first".to_owned(), Bytes(3 << 18)), ("second".to_owned(), Bytes(1 << 18))];
    Namespaces::laid_out(&sizes, SIZE)?.keep(&closed.volume)?;
    use_volume(&closed.volume, 1, None)?.close()?;
    let drive = use_volume(&closed.volume, 2, None)?;
    let read = contents(&drive)?;
    drive.close()?;
    keep(&closed, &read, &images, "closed")?;

    let key = UnlockingKey::of_bytes(&[7; 32])?;
    for (name, key) in [("crashed", None), ("encrypted", Some(&key))] {
        let crashed = options(&folder.path().join(name), 2, Compression::Zstd);
        fs::create_dir_all(folder.path().join(name))?;
        create(&crashed, &VolumeOptions { key: key.cloned(), ..VolumeOptions::default() })?;
        use_volume(&crashed.volume, 1, key)?.close()?;
        let drive = use_volume(&crashed.volume, 2, key)?;
        let read = contents(&drive)?;
        // What was flushed is on the dies, and no write buffer belongs to a copy of them.
        drop(drive);
        keep(&crashed, &read, &images, name)?;
    }
    Ok(())
}
