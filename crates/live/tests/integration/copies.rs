//! Copies of headers, checkpoint and journal that nothing reads while the other one is whole: a
//! scrub finds and writes again those that are damaged, and then any one die may go.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use blockio::Bytes;
use live::{Contents, CreateOptions, Device as _, Drive, Durability, Replacement, check};
use status::DamageOutcome;

use crate::volume_options;

const PAGES: u64 = 300;
const CHECKPOINT: &[u8] = b"FLGTckpt";
const BATCH: &[u8] = b"FLGTjrnl";

fn options(folder: &Path) -> CreateOptions {
    volume_options(folder, 4, Bytes(8 << 20))
}

fn content(page: u64) -> [u8; 4096] {
    [(page % 250).to_le_bytes()[0] + 1; 4096]
}

fn check_pages(drive: &Drive, case: &str) {
    for page in 0..PAGES {
        let mut found = [0; 4096];
        drive.read(page * 4096, &mut found).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert!(found == content(page), "{case}: page {page}");
    }
}

/// Puts bytes into a copy of the newest structure that begins with `magic` and has its number at
/// `number_at`, so many bytes behind its beginning.
fn spoil_newest(dies: &[PathBuf], magic: &[u8], number_at: usize, ahead: usize) {
    let mut newest = (0, &dies[0], 0);
    for die in dies {
        let bytes = fs::read(die).expect("it is there");
        let sectors = bytes.chunks(512).enumerate();
        for (sector, part) in sectors.filter(|(_, part)| part.starts_with(magic)) {
            let number = part[number_at..number_at + 8].iter().rev();
            let number = number.fold(0, |all, byte| all << 8 | u64::from(*byte));
            if number > newest.0 {
                newest = (number, die, sector * 512);
            }
        }
    }
    let (number, die, at) = newest;
    assert!(number > 0, "there is one");
    let file = OpenOptions::new().write(true).open(die).expect("it is there");
    file.write_all_at(&[0xA7; 8], (at + ahead) as u64).expect("nothing fails");
}

/// Damage of one copy, or of copies that others stand beside.
fn damage(kind: &str, dies: &[PathBuf]) {
    let zero = |die: &Path| {
        let file = OpenOptions::new().write(true).open(die).expect("it is there");
        file.write_all_at(&[0; 8192], 0).expect("nothing fails");
    };
    match kind {
        "headers" => dies[1..3].iter().for_each(|die| zero(die)),
        "checkpoint" => spoil_newest(dies, CHECKPOINT, 16, 4096 + 8),
        "checkpoint header" => spoil_newest(dies, CHECKPOINT, 16, 8),
        _ => spoil_newest(dies, BATCH, 24, 200),
    }
}

#[test]
fn a_damaged_copy_does_not_survive_a_scrub_and_any_die_may_go_then() {
    for kind in ["headers", "checkpoint", "checkpoint header", "journal"] {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path());
        let drive = Drive::create(&options).unwrap();
        for page in 0..PAGES {
            drive.write(page * 4096, &content(page), Durability::Durable).unwrap();
        }
        // Those of a new drive have a copy on each die.
        drive.checkpoint().unwrap();
        drive.write(0, &content(0), Durability::Durable).unwrap();
        damage(kind, &options.dies);
        let scrubbed = drive.scrub(true).unwrap();
        assert!(scrubbed.copies_bad > 0, "{kind}: {scrubbed:?}");
        assert_eq!(scrubbed.copies_restored, scrubbed.copies_bad, "{kind}: {scrubbed:?}");
        let scrub = drive.status().maintenance.scrub.unwrap();
        assert_eq!(
            (scrub.copies_bad, scrub.copies_restored),
            (scrubbed.copies_bad, scrubbed.copies_bad)
        );
        let told = scrubbed.damage.iter().filter(|it| it.copy_of.is_some());
        assert!(told.clone().all(|it| it.outcome == DamageOutcome::Rewritten), "{scrubbed:?}");
        assert_eq!(told.count() as u64, scrubbed.copies_bad, "{kind}: {scrubbed:?}");
        assert_eq!(drive.scrub(true).unwrap().copies_bad, 0, "{kind}");
        for page in 0..20 {
            drive.write(page * 4096, &content(page), Durability::Durable).unwrap();
        }
        // A crash.
        drop(drive);
        for away in &options.dies {
            let folder = tempfile::tempdir().unwrap();
            let others = options.dies.iter().filter(|die| *die != away);
            fs::create_dir(folder.path().join("volume")).unwrap();
            for die in others.clone() {
                fs::copy(die, folder.path().join(die.file_name().unwrap())).unwrap();
            }
            let listed: Vec<String> = options
                .dies
                .iter()
                .map(|die| {
                    format!("\"{}\"", folder.path().join(die.file_name().unwrap()).display())
                })
                .collect();
            let text = format!("schema = 1\ndies = [{}]\n", listed.join(", "));
            fs::write(folder.path().join("volume/volume.toml"), text).unwrap();
            let case = format!("{kind}, without {}", away.display());
            let drive = Drive::open(&folder.path().join("volume"));
            check_pages(&drive.unwrap_or_else(|error| panic!("{case}: {error}")), &case);
        }
        let drive = Drive::open(&options.volume).unwrap();
        drive.close().unwrap();
        let report = check::check(&options.volume, |_, _| ()).unwrap();
        assert!(report.findings.is_empty(), "{kind}: {:?}", report.findings);
    }
}

#[test]
fn a_scrub_of_whole_copies_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    let drive = Drive::create(&options).unwrap();
    for page in 0..PAGES {
        drive.write(page * 4096, &content(page), Durability::Durable).unwrap();
    }
    drive.scrub(true).unwrap();
    let written =
        |drive: &Drive| -> u64 { drive.status().dies.iter().map(|die| die.written_bytes).sum() };
    let before = written(&drive);
    assert_eq!(drive.scrub(true).unwrap().copies_bad, 0);
    assert_eq!(written(&drive), before);
}

/// A batch is the last one, and nothing was programmed after it: only the folder can prove that it
/// was there, once there was rest, or the write buffer where the machine went on.
#[test]
fn a_last_batch_that_rots_is_told_from_a_torn_one_once_there_was_rest_or_no_cut() {
    for (is_at_rest, is_cut) in [(false, true), (true, true), (false, false)] {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path());
        let drive = Drive::create(&options).unwrap();
        for page in [1, 2] {
            drive.write(0, &content(page), Durability::Durable).unwrap();
            if is_at_rest {
                drive.attend().unwrap();
                drive.attend().unwrap();
            }
        }
        drop(drive);
        if is_cut {
            fs::remove_file(options.volume.join("write-buffer")).unwrap();
        }
        (0..2).for_each(|_| spoil_newest(&options.dies, BATCH, 24, 0));
        match Drive::open(&options.volume) {
            Ok(drive) => {
                let mut found = [0; 4096];
                drive.read(0, &mut found).unwrap();
                assert!(!is_at_rest && is_cut && found == content(1), "at rest: {is_at_rest}");
            }
            Err(error) => {
                assert!(is_at_rest || !is_cut, "{error}");
                assert!(error.to_string().contains("of the journal is lost"), "{error}");
            }
        }
    }
}

/// While one die of a mirror is lost the other one has both copies of everything: these are no
/// second one beside what the replacement has.
#[test]
fn two_copies_on_one_die_do_not_stand_for_a_damaged_one_on_the_other() {
    for magic in [CHECKPOINT, BATCH] {
        let folder = tempfile::tempdir().unwrap();
        let options = volume_options(folder.path(), 2, Bytes(8 << 20));
        let drive = Drive::create(&options).unwrap();
        drive.fail_die(1).unwrap();
        drive.checkpoint().unwrap();
        let new = folder.path().join("new.img");
        let replacement =
            Replacement::prepare(&options.volume, &drive, 1, &new, Contents::Lost).unwrap();
        let mut is_scrubbed = false;
        let filled = replacement.carry_out(&drive, |_, _| {
            if !std::mem::replace(&mut is_scrubbed, true) {
                let scrubbed = drive.scrub(true).unwrap();
                assert_eq!(scrubbed.copies_bad, 0, "the other die is not there yet");
            }
            true
        });
        filled.unwrap();
        assert!(is_scrubbed);
        drive.write(0, &content(0), Durability::Durable).unwrap();
        let bytes = fs::read(&new).unwrap();
        let file = OpenOptions::new().write(true).open(&new).unwrap();
        let sectors = bytes.chunks(512).zip(0..).filter(|(part, _)| part.starts_with(magic));
        sectors.for_each(|(_, at)| file.write_all_at(&[0xA7; 8], at * 512 + 8).unwrap());
        let scrubbed = drive.scrub(true).unwrap();
        assert!(scrubbed.copies_bad > 0, "{scrubbed:?}");
        assert_eq!(scrubbed.copies_restored, scrubbed.copies_bad);
        // A crash, and the die that had everything twice is gone.
        drop(drive);
        fs::remove_file(&options.dies[0]).unwrap();
        let drive = Drive::open(&options.volume).unwrap();
        let mut found = [0; 4096];
        drive.read(0, &mut found).unwrap();
        assert_eq!(found, content(0));
    }
}
