//! A drive's state behind another timing.

use blockio::{Completion, Lba, Nanos, Op, Request, Rng};
use ssd::{Drive, DriveSpec, Placement, Setup};

const DUO: &str = include_str!("../../../../drives/iodrive-duo.toml");

fn setup() -> Setup {
    Setup { format: "stock".into(), host: "linux".into(), time_lapse: 128, seed: 1 }
}

fn duo(from: &str, to: &str) -> DriveSpec {
    DriveSpec::parse(&DUO.replacen(from, to, 1), "duo.toml")
        .expect("the Duo with one number changed")
}

fn aged(spec: &DriveSpec) -> Drive {
    let mut drive = Drive::new(spec, &setup()).expect("a setup of the Duo");
    let (mut rng, pages) = (Rng::new(5), drive.user_sectors() / 8);
    for _ in 0..3 * pages {
        drive.age(Lba(rng.below(pages) * 8), 8);
    }
    drive
}

/// Completions of random writes, sixteen at a time.
fn written(drive: &mut Drive) -> Vec<Completion> {
    let (mut rng, pages) = (Rng::new(7), drive.user_sectors() / 8);
    let mut request = |tag| {
        let lba = Lba(rng.below(pages) * 8);
        Request { tag, thread: 0, op: Op::Write, handle: 0, lba, sectors: 8 }
    };
    (0..16).for_each(|tag| drive.submit(Nanos::ZERO, request(tag)));
    let answered = (0..30_000).map(|_| {
        let done = drive.next_completion(Nanos::MAX).expect("sixteen are outstanding");
        drive.submit(done.completed_at, request(done.tag));
        done
    });
    let answered = answered.collect();
    drive.check_invariants();
    answered
}

#[test]
fn ageing_maps_what_writing_maps() {
    let drive = aged(&duo("", ""));
    let counters = drive.counters();
    assert_eq!(counters.pages_host, 3 * drive.user_sectors() / 8);
    assert!(counters.pages_relocation > counters.pages_host / 5, "{counters:?}");
    drive.check_invariants();
}

#[test]
fn a_state_behind_its_own_timing_answers_as_the_drive_itself() {
    let spec = duo("", "");
    let drive = aged(&spec);
    let mut retimed = drive.retimed(&spec, &setup()).unwrap();
    assert_eq!(written(&mut retimed), written(&mut drive.clone()));
}

#[test]
fn a_state_behind_a_faster_controller_answers_faster() {
    let drive = aged(&duo("", ""));
    let end = |spec: &DriveSpec| {
        written(&mut drive.retimed(spec, &setup()).unwrap()).last().unwrap().completed_at
    };
    assert!(end(&duo("relocate_us = 21.9", "relocate_us = 5")) < end(&duo("", "")));
}

#[test]
fn a_state_is_not_taken_over_by_a_drive_that_places_otherwise() {
    let (spec, other) = (
        duo("", ""),
        duo("spare_erase_blocks_per_plane = 84", "spare_erase_blocks_per_plane = 20"),
    );
    assert_ne!(Placement::new(&spec, &setup()), Placement::new(&other, &setup()));
    let error = Drive::new(&spec, &setup()).unwrap().retimed(&other, &setup()).unwrap_err();
    assert!(error.to_string().contains("places data otherwise"), "{error}");
    let later = duo("price_max = 1.0", "price_max = 3.0");
    assert_eq!(Placement::new(&spec, &setup()), Placement::new(&later, &setup()));
}
