//! Images of volumes that earlier versions of this program wrote, one folder each in
//! `tests/images`: every later version opens them, with all that they held.
//!
//! `cargo run -p live --example keep_images -- crates/live/tests/images` makes those of the media
//! format that the program has.

use std::fs;
use std::path::{Path, PathBuf};

use live::{
    Device as _, Drive, Durability, Namespaces, Opening, RecoveredVolume, UnlockingKey, Upgrade,
    check, inspect,
};
use tempfile::TempDir;

/// A kept image, unpacked.
struct Image {
    folder: TempDir,
    volume: PathBuf,
    dies: Vec<PathBuf>,
    /// All that clients read of it.
    contents: Vec<u8>,
    /// Format that it has once it was opened for writing.
    format: u32,
    /// Key of an encrypted one.
    key: Option<UnlockingKey>,
}

impl Image {
    fn unpack(kept: &Path) -> Self {
        let folder = tempfile::tempdir().expect("nothing fails");
        let unpacked = |name: &str| {
            let packed = fs::read(kept.join(name)).expect("it is kept");
            zstd::decode_all(&packed[..]).expect("it was packed")
        };
        let volume = folder.path().join("volume");
        fs::create_dir(&volume).expect("nothing fails");
        let described = fs::read_to_string(kept.join("volume.toml")).expect("nothing fails");
        let described = described.replace("FOLDER", folder.path().to_str().expect("UTF-8"));
        fs::write(volume.join("volume.toml"), described).expect("nothing fails");
        fs::copy(kept.join("dies.witness"), volume.join("dies.witness")).expect("nothing fails");
        let mut dies = Vec::new();
        while kept.join(format!("d{}.img.zst", dies.len())).exists() {
            let name = format!("d{}.img", dies.len());
            let die = folder.path().join(&name);
            fs::write(&die, unpacked(&format!("{name}.zst"))).expect("nothing fails");
            dies.push(die);
        }
        let contents = unpacked("contents.zst");
        let is_encrypted = kept.to_string_lossy().ends_with("-encrypted");
        let format = if is_encrypted { 6 } else { 5 };
        let key = is_encrypted.then(|| UnlockingKey::of_bytes(&[7; 32]).expect("no text"));
        Self { folder, volume, dies, contents, format, key }
    }

    fn open(&self, upgrade: Upgrade) -> Drive {
        let opening = Opening { upgrade, key: self.key.clone(), ..Opening::default() };
        Drive::open_as(&self.volume, opening).expect("nothing fails")
    }

    /// The bytes of every file but the write buffer.
    fn files(&self) -> Vec<Vec<u8>> {
        let folder = ["volume.toml", "dies.witness"].map(|name| self.volume.join(name));
        self.dies.iter().chain(&folder).map(|file| fs::read(file).expect("nothing fails")).collect()
    }

    /// Of each die the formats of its headers, at the beginning and at the end; none where there is
    /// none.
    fn formats(&self) -> Vec<[Option<u32>; 3]> {
        let format = |bytes: &[u8]| {
            let is_header = bytes.starts_with(b"floatgate die");
            is_header.then(|| u32::from_le_bytes(*bytes[16..].first_chunk().expect("a header")))
        };
        let of_die = |die: &PathBuf| {
            let bytes = fs::read(die).expect("it is there");
            let last = bytes.len() / 4096 * 4096 - 4096;
            [0, 4096, last].map(|at| format(&bytes[at..]))
        };
        self.dies.iter().map(of_die).collect()
    }

    fn read(&self, device: &dyn live::Device) -> Vec<u8> {
        let mut found = vec![1; self.contents.len()];
        assert_eq!(device.size(), self.contents.len() as u64);
        device.read(0, &mut found).expect("nothing fails");
        found
    }

    /// Opens it as a server does; it has all that it held, and takes writes.
    fn serve(&mut self) {
        for round in 0..3 {
            let drive = self.open(Upgrade::Now);
            assert_eq!((drive.lost_dies(), drive.status().pages_lost), (vec![], Some(0)));
            assert!(self.read(&drive) == self.contents, "in round {round}");
            let written = [round; 4096];
            self.contents[20 * 4096..21 * 4096].copy_from_slice(&written);
            drive.write(20 * 4096, &written, Durability::Durable).expect("nothing fails");
            // A crash, then two times closed.
            if round > 0 {
                drive.close().expect("nothing fails");
            }
        }
    }
}

/// The images, by name.
fn images() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/images");
    let found = fs::read_dir(&folder)
        .expect("nothing fails")
        .map(|entry| entry.expect("it is there").path());
    let mut found: Vec<PathBuf> = found.filter(|it| it.is_dir()).collect();
    found.sort();
    found
}

#[test]
fn every_kept_image_is_there_and_small() {
    let names: Vec<String> = images()
        .iter()
        .map(|image| image.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    let all = [
        "format-4-closed",
        "format-4-crashed",
        "format-5-closed",
        "format-5-crashed",
        "format-6-encrypted",
    ];
    assert_eq!(names, all);
    for image in images() {
        let files = fs::read_dir(&image).unwrap();
        let bytes: u64 = files.map(|file| file.unwrap().metadata().unwrap().len()).sum();
        assert!(bytes < 120_000, "{image:?} has {bytes} bytes");
    }
}

#[test]
fn every_kept_image_opens_with_all_that_it_held_without_any_one_die_too() {
    for kept in images() {
        let mut image = Image::unpack(&kept);
        let parts = Namespaces::of(&image.volume).unwrap().iter().count();
        assert_eq!(
            parts,
            if kept.to_string_lossy().ends_with("-closed") { 2 } else { 0 },
            "{kept:?}"
        );
        image.serve();
        let new = vec![[Some(image.format); 3]; image.dies.len()];
        assert_eq!(image.formats(), new, "{kept:?} is upgraded, with a header at each end");
        for die in 0..image.dies.len() {
            let image = Image::unpack(&kept);
            fs::remove_file(&image.dies[die]).unwrap();
            let drive = image.open(Upgrade::Now);
            assert_eq!(drive.lost_dies(), [die]);
            assert!(image.read(&drive) == image.contents, "{kept:?} without die {die}");
        }
    }
}

#[test]
fn whatever_only_looks_at_a_kept_image_finds_all_and_changes_no_byte() {
    for kept in images() {
        let image = Image::unpack(&kept);
        let before = image.files();
        let report = check::check(&image.volume, |_, _| ()).unwrap();
        assert!(report.is_clean(), "{:?}", report.findings);
        assert_eq!(inspect(&image.volume).unwrap().pages_lost.unwrap_or(0), 0);
        let recovered = RecoveredVolume::open(&image.volume, None, image.key.as_ref()).unwrap();
        assert_eq!(recovered.doubts(), [] as [&str; 0]);
        assert!(image.read(&recovered) == image.contents, "{kept:?}");
        assert!(image.files() == before, "{kept:?} was changed");
        let left = fs::read_dir(image.folder.path()).unwrap().count();
        assert_eq!(left, image.dies.len() + 1, "nothing is beside it");
    }
}

#[test]
fn a_volume_that_is_opened_without_an_upgrade_keeps_its_format() {
    for kept in images() {
        let image = Image::unpack(&kept);
        let before = image.formats();
        for _ in 0..2 {
            let drive = image.open(Upgrade::Later);
            assert!(image.read(&drive) == image.contents, "{kept:?}");
            drive.scrub(true).unwrap();
            drive.close().unwrap();
            assert_eq!(image.formats(), before, "{kept:?}");
        }
    }
}
