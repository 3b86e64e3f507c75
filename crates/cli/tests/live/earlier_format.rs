//! A volume of the media format before: only a server that may write to it upgrades it.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::served::{Served, assert_done, floatgate};

const FORMAT: u32 = 4;
const NEWEST: u32 = 5;
const DIES: usize = 2;

/// A volume that was kept in the format before, as the power going left it.
fn kept_volume() -> TempDir {
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../live/tests/images");
    let kept = images.join(format!("format-{FORMAT}-crashed"));
    let folder = tempfile::tempdir().expect("a folder is made");
    let volume = folder.path().join("volume");
    fs::create_dir(&volume).expect("the folder takes files");
    let described = fs::read_to_string(kept.join("volume.toml")).expect("it is kept");
    let here = folder.path().to_str().expect("a folder of a test");
    fs::write(volume.join("volume.toml"), described.replace("FOLDER", here)).expect("as above");
    fs::copy(kept.join("dies.witness"), volume.join("dies.witness")).expect("as above");
    for die in 0..DIES {
        let packed = fs::read(kept.join(format!("d{die}.img.zst"))).expect("it is kept");
        let die = folder.path().join(format!("d{die}.img"));
        fs::write(die, zstd::decode_all(&packed[..]).expect("it was packed")).expect("as above");
    }
    folder
}

/// The formats of both headers at the beginning of each die.
fn formats(folder: &Path) -> Vec<u32> {
    let dies = (0..DIES).map(|die| fs::read(folder.join(format!("d{die}.img"))).expect("a die"));
    dies.flat_map(|bytes| {
        let word = |at: usize| *bytes[at..].first_chunk().expect("a header");
        let format = |at: usize| u32::from_le_bytes(word(at + 16));
        [0, 4096].map(format)
    })
    .collect()
}

#[test]
fn only_a_server_that_may_write_upgrades_a_volume_of_the_format_before() {
    let folder = kept_volume();
    let volume = folder.path().join("volume").display().to_string();
    let before = formats(folder.path());
    assert_eq!(before, [FORMAT; 2 * DIES]);
    let keeps = |folder: &TempDir, what: &str| {
        assert_eq!(formats(folder.path()), before, "{what} leaves the format as it is");
    };
    // It is degraded until it is opened.
    floatgate(folder.path(), &["status", "volume"]);
    keeps(&folder, "status");
    assert_done(&floatgate(folder.path(), &["check", "volume"]));
    keeps(&folder, "check");
    let mut served = Served::start_in(folder, &[&volume, "--read-only"]);
    assert!(served.stop().success());
    let folder = served.kill();
    keeps(&folder, "serve --read-only");
    assert_done(&floatgate(folder.path(), &["check", "volume", "--repair"]));
    keeps(&folder, "check --repair");
    let mut served = Served::start_in(folder, &[&volume]);
    assert!(served.stop().success());
    assert_eq!(formats(served.kill().path()), [NEWEST; 2 * DIES]);
}
