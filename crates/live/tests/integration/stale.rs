//! A folder proves which state its dies must hold at least: earlier ones are served only where an
//! operator allows it, and told then.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use blockio::Bytes;
use live::{
    CreateOptions, Device as _, Drive, Durability, OpenError, RecoveredVolume, allow_stale, check,
    inspect,
};
use status::{HealthState, ProblemKind};

use crate::volume_options;

const WITNESS: &str = "dies.witness";
const PAGES: u64 = 50;

fn options(folder: &Path, dies: usize, is_protected: bool) -> CreateOptions {
    CreateOptions { is_protected, ..volume_options(folder, dies, Bytes(8 << 20)) }
}

fn write(drive: &Drive, content: u8) {
    for page in 0..PAGES {
        let written = drive.write(page * 4096, &[content; 4096], Durability::Volatile);
        written.expect("there is room");
    }
    drive.flush().expect("nothing fails");
}

fn fill(volume: &Path, content: u8) {
    let drive = Drive::open(volume).expect("it opens");
    write(&drive, content);
    drive.close().expect("it closes");
}

/// The content of all pages.
fn content(drive: &Drive) -> u8 {
    let mut pages = vec![0; (PAGES * 4096).try_into().expect("small")];
    drive.read(0, &mut pages).expect("all is there");
    assert!(pages.iter().all(|byte| *byte == pages[0]), "pages of one time");
    pages[0]
}

fn aside(die: &Path) -> PathBuf {
    die.with_extension("aside")
}

/// Way in which die 0 of a mirror missed what was written last.
#[derive(Clone, Copy, Debug)]
enum Missed {
    FailedWhileServed,
    AwayAtAStart,
}

/// A mirror of which die 1 alone has the content 2, and die 0 the content 1.
fn divided(folder: &Path, missed: Missed) -> CreateOptions {
    let options = options(folder, 2, true);
    Drive::create(&options).expect("it is made").close().expect("it closes");
    let (volume, die) = (&options.volume, &options.dies[0]);
    match missed {
        Missed::FailedWhileServed => {
            let drive = Drive::open(volume).expect("it opens");
            write(&drive, 1);
            drive.fail_die(0).expect("it is a mirror");
            write(&drive, 2);
            drive.close().expect("it closes");
        }
        Missed::AwayAtAStart => {
            fill(volume, 1);
            fs::rename(die, aside(die)).expect("it is there");
            fill(volume, 2);
            fs::rename(aside(die), die).expect("it is there");
        }
    }
    options
}

/// Fate of a die, by its name.
type Harm = (&'static str, fn(&Path));

/// Fates of die 1, which has what was written last.
fn harms() -> [Harm; 4] {
    [
        ("away", |die| fs::rename(die, aside(die)).expect("it is there")),
        ("short", |die| {
            let file = OpenOptions::new().write(true).open(die).expect("it is there");
            let length = file.metadata().expect("it has a size").len();
            file.set_len(length - 8192).expect("it becomes shorter");
        }),
        ("without its headers", |die| {
            let file = OpenOptions::new().write(true).open(die).expect("it is there");
            let length = file.metadata().expect("it has a size").len();
            for at in [0, 4096, length - 4096] {
                file.write_all_at(&[0; 4096], at).expect("nothing fails");
            }
        }),
        ("another file", |die| fs::write(die, vec![7; 1 << 20]).expect("it is written")),
    ]
}

#[test]
fn the_stale_half_of_a_mirror_is_not_served_as_if_it_were_current() {
    for missed in [Missed::FailedWhileServed, Missed::AwayAtAStart] {
        for (harm, spoil) in harms() {
            let folder = tempfile::tempdir().unwrap();
            let options = divided(folder.path(), missed);
            spoil(&options.dies[1]);
            let error = Drive::open(&options.volume).unwrap_err();
            let told = error.to_string();
            if harm == "short" {
                // Its header says by itself that die 0 went out of service.
                assert!(matches!(error, OpenError::DiesMissing { .. }), "{missed:?}: {told}");
            } else {
                assert!(matches!(error, OpenError::Stale { .. }), "{missed:?}, {harm}: {told}");
                assert!(told.contains("was on die 1"), "{told}");
                assert!(error.remedy(&options.volume).contains("--force-stale"), "the way on");
            }
            let same = |error: OpenError| assert_eq!(error.to_string(), told, "{harm}");
            same(check::check(&options.volume, |_, _| ()).unwrap_err());
            same(inspect(&options.volume).unwrap_err());
            let recovered = RecoveredVolume::open(&options.volume, None, None).unwrap();
            assert!(!recovered.doubts().is_empty(), "a copy may be older than what was flushed");
        }
    }
}

#[test]
fn a_mirror_whose_stale_half_comes_back_beside_the_other_goes_on_with_the_newest() {
    for missed in [Missed::FailedWhileServed, Missed::AwayAtAStart] {
        let folder = tempfile::tempdir().unwrap();
        let options = divided(folder.path(), missed);
        let drive = Drive::open(&options.volume).unwrap();
        assert_eq!((content(&drive), drive.lost_dies()), (2, vec![0]));
        let [stale, current] = &drive.status().dies[..] else { panic!("two dies") };
        let (stale, current) = (stale.member.unwrap(), current.member.unwrap());
        assert!(!stale.is_current && current.is_current);
        assert!(stale.session <= current.session && stale.events < current.events);
        assert!(current.last_written_unix_s >= stale.last_written_unix_s);
        assert!(stale.last_written_unix_s.is_some());
    }
}

/// Pages that a health tells as perhaps older than what was flushed; none where it tells none.
fn pages_older(drive: &Drive) -> Option<u64> {
    let status = drive.status();
    let is_told = status.health.problems.iter().any(|it| it.kind == ProblemKind::StaleStart);
    let start = status.maintenance.stale_start;
    assert_eq!(is_told, start.is_some(), "health tells it for as long as it is so");
    start.map(|start| start.pages_older.expect("known while it is served"))
}

#[test]
fn a_stale_start_that_an_operator_allows_is_told_until_all_was_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let options = divided(folder.path(), Missed::AwayAtAStart);
    let (volume, newest) = (&options.volume, &options.dies[1]);
    fs::rename(newest, aside(newest)).unwrap();
    assert!(allow_stale(volume).unwrap());
    let pages = (8 << 20) / 4096;
    for _ in 0..2 {
        let drive = Drive::open(volume).unwrap();
        assert_eq!(content(&drive), 1);
        let problem = &live::describe_status(drive.status(), volume).health.problems[0];
        assert_eq!(
            (problem.kind, problem.severity),
            (ProblemKind::StaleStart, HealthState::Critical)
        );
        assert_eq!(pages_older(&drive), Some(pages));
        drive.close().unwrap();
        assert_eq!(inspect(volume).unwrap().health.problems[0].kind, ProblemKind::StaleStart);
        assert!(!allow_stale(volume).unwrap(), "nothing is to be allowed any more");
    }
    let drive = Drive::open(volume).unwrap();
    write(&drive, 3);
    // It reads what is there, and cannot tell how old it is.
    drive.scrub(true).unwrap();
    assert_eq!(pages_older(&drive), Some(pages - PAGES));
    drive.close().unwrap();
    let drive = Drive::open(volume).unwrap();
    assert_eq!(pages_older(&drive), Some(pages - PAGES));
    drive.trim(PAGES * 4096, (pages - PAGES) * 4096, Durability::Volatile).unwrap();
    assert_eq!(pages_older(&drive), Some(0), "a crash may still undo it");
    drive.flush().unwrap();
    assert_eq!(pages_older(&drive), None);
    // A crash.
    drop(drive);
    let drive = Drive::open(volume).unwrap();
    assert!(pages_older(&drive).is_none() && content(&drive) == 3);
    drive.close().unwrap();
    // What was given up comes back: only its owner knows which is wanted.
    fs::rename(aside(newest), newest).unwrap();
    let refused = Drive::open(volume).unwrap_err().to_string();
    assert!(refused.contains("were each written without the other"), "{refused}");
}

#[test]
fn no_crash_has_a_page_count_as_written_since_a_stale_start_that_was_not() {
    let folder = tempfile::tempdir().unwrap();
    let options = divided(folder.path(), Missed::AwayAtAStart);
    let (volume, newest) = (&options.volume, &options.dies[1]);
    fs::rename(newest, aside(newest)).unwrap();
    assert!(allow_stale(volume).unwrap());
    let pages: u64 = (8 << 20) / 4096;
    let mut rng = blockio::Rng::new(7);
    for session in 0..16 {
        let drive = Drive::open(volume).unwrap();
        let mut all = vec![0; 8 << 20];
        drive.read(0, &mut all).unwrap();
        let older =
            all.chunks(4096).filter(|page| page.iter().any(|byte| *byte != 9)).count() as u64;
        let told = pages_older(&drive).unwrap_or(0);
        assert!(told >= older, "session {session}: {told} told, {older} have what they had");
        for page in (0..rng.below(400)).map(|_| rng.below(pages)).chain(
            // Whatever is left, towards the end.
            (0..pages).filter(|_| session > 10),
        ) {
            // A page of which only a part is written keeps the rest.
            let (from, length) = if session < 8 && page % 3 == 0 { (512, 512) } else { (0, 4096) };
            let written =
                drive.write(page * 4096 + from, &[9; 4096][..length], Durability::Volatile);
            written.unwrap();
            match page % 512 {
                0 => drive.checkpoint().unwrap(),
                1 => drive.flush().unwrap(),
                _ => {}
            }
        }
        if session % 3 == 0 {
            drive.close().unwrap();
        }
    }
    let drive = Drive::open(volume).unwrap();
    assert_eq!(pages_older(&drive), None);
    assert!(!volume.join("older.pages").exists(), "nothing is left of it");
}

#[test]
fn dies_that_all_go_back_to_an_earlier_image_are_refused() {
    for (dies, is_protected) in [(1, false), (3, false), (3, true)] {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path(), dies, is_protected);
        Drive::create(&options).unwrap().close().unwrap();
        fill(&options.volume, 1);
        for die in &options.dies {
            fs::copy(die, aside(die)).unwrap();
        }
        fill(&options.volume, 2);
        for die in &options.dies {
            fs::rename(aside(die), die).unwrap();
        }
        let error = Drive::open(&options.volume).unwrap_err();
        assert!(matches!(error, OpenError::Stale { .. }), "{dies} dies: {error}");
        assert!(allow_stale(&options.volume).unwrap());
        assert_eq!(content(&Drive::open(&options.volume).unwrap()), 1);
    }
}

/// The witness of the folder is gone, torn or older than the dies: they prove what they can.
#[test]
fn dies_suffice_where_the_folder_proves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 3, true);
    Drive::create(&options).unwrap().close().unwrap();
    let witness = options.volume.join(WITNESS);
    let old = fs::read(&witness).unwrap();
    fill(&options.volume, 1);
    let kept = fs::read(&witness).unwrap();
    assert!(kept != old, "it was replaced");
    let mut flipped = kept.clone();
    flipped[kept.len() / 3] ^= 1;
    for (content_now, file) in (2..).zip([&old[..], &kept[..kept.len() / 2], &flipped, b""]) {
        fs::write(&witness, file).unwrap();
        check::check(&options.volume, |_, _| ()).unwrap();
        fill(&options.volume, content_now);
    }
    fs::remove_file(&witness).unwrap();
    let drive = Drive::open(&options.volume).unwrap();
    assert_eq!((content(&drive), drive.lost_dies()), (5, vec![]));
    assert!(witness.exists(), "it is there from now on");
}

#[test]
fn one_die_missing_of_a_redundant_session_opens_degraded() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 3, true);
    Drive::create(&options).unwrap().close().unwrap();
    fill(&options.volume, 1);
    for die in &options.dies {
        fs::rename(die, aside(die)).unwrap();
        let drive = Drive::open(&options.volume);
        if die == &options.dies[0] {
            assert_eq!(content(&drive.unwrap()), 1);
        } else {
            // The first start without die 0 went on without it.
            drive.unwrap_err();
        }
        fs::rename(aside(die), die).unwrap();
    }
}

#[test]
fn a_folder_that_takes_no_file_is_told_and_stops_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 1, false);
    Drive::create(&options).unwrap().close().unwrap();
    fs::create_dir(options.volume.join(format!("{WITNESS}.new"))).unwrap();
    let drive = Drive::open(&options.volume).unwrap();
    write(&drive, 1);
    let health = live::describe_status(drive.status(), &options.volume).health;
    assert_eq!(health.problems[0].kind, ProblemKind::Folder, "{health:?}");
    assert_eq!(content(&drive), 1);
}
