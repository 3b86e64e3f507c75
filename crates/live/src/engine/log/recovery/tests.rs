//! Damage that recovery must notice, and sessions that follow each other.

use device::{Device as _, Durability};

use super::*;
use crate::engine::drive::SMALL_SHAPE;
use crate::format::header::SESSION_EVENTS;
use crate::format::journal::last_batch;
use crate::format::layout::Shape;
use crate::simulation::Disks;

/// Damages all copies of the last batch of the journal.
fn damage_last_batch(disks: &Disks, shape: &Shape) {
    let layout = Layout::new(shape);
    let size = usize::try_from(shape.journal_bytes).unwrap();
    let rings = (0..shape.regions()).flat_map(|region| {
        let from = usize::try_from(layout.journal_from(region)).unwrap();
        (0..shape.dies as usize).map(move |die| (die, from))
    });
    let batches: Vec<_> = rings
        .filter_map(|(die, from)| {
            let content = &disks.contents()[die][from..from + size];
            let (last, bytes) = last_batch(size, |range| content[range].into())?;
            Some((last, die, from + bytes.start))
        })
        .collect();
    let newest = batches.iter().map(|(last, ..)| *last).max().unwrap();
    for (_, die, from) in batches.iter().filter(|(last, ..)| *last == newest) {
        disks.damage(*die, from + HEAD_BYTES..from + HEAD_BYTES + 1, |byte| byte ^ 1);
    }
}

/// A unit that was programmed after the last batch is proof of it, wherever in a superblock it
/// lies: opening refuses, and never has the page as it was before that batch.
#[test]
fn a_last_batch_that_is_damaged_is_missed_wherever_the_next_unit_was_programmed() {
    let protected = Shape {
        dies: 4,
        is_protected: true,
        superblocks: 12,
        journal_bytes: 2 << 20,
        ..SMALL_SHAPE
    };
    for shape in [SMALL_SHAPE, protected] {
        let superblock_pages = shape.rows * shape.data_units() * shape.unit_pages;
        let mut refused = 0;
        for fillers in (0..shape.superblocks * superblock_pages + 2 * superblock_pages).step_by(7) {
            let disks = Disks::formatted(&shape);
            let drive = Drive::open_media(disks.media()).unwrap();
            let write = |page: u32, content: u8, durability| {
                drive.write(u64::from(page) * 4096, &[content; PAGE_BYTES], durability).unwrap();
            };
            for filler in 0..fillers {
                write(20 + filler % 60, 9, Durability::Volatile);
            }
            write(0, 1, Durability::Durable);
            write(0, 2, Durability::Durable);
            for page in 1..=shape.unit_pages {
                write(page, 3, Durability::Volatile);
            }
            drop(drive);
            disks.media().iter().for_each(|medium| medium.sync().unwrap());
            damage_last_batch(&disks, &shape);
            let Ok(drive) = Drive::open_media(disks.media()) else {
                refused += 1;
                continue;
            };
            let mut page = [0; PAGE_BYTES];
            drive.read(0, &mut page).unwrap();
            assert_eq!(page[0], 2, "after {fillers} pages");
        }
        assert!(refused > 0, "no unit was programmed after the last batch");
    }
}

/// A session of more events than sessions are apart, and a crash in the next one.
#[test]
fn no_event_of_a_later_session_counts_as_earlier() {
    let disks = Disks::formatted(&SMALL_SHAPE);
    for (events, crashes) in [(0, false), (1, true), (1, false), (5, true)] {
        let drive = Drive::open_media(disks.media()).unwrap();
        let seq = drive.core().unwrap().seq + events * SESSION_EVENTS;
        drive.core_mut().unwrap().seq = seq;
        for content in [1, 2] {
            drive.write(0, &[content; PAGE_BYTES], Durability::Durable).unwrap();
        }
        if crashes {
            drop(drive);
        } else {
            drive.close().unwrap();
        }
        let drive = Drive::open_media(disks.media()).unwrap();
        assert!(drive.core().unwrap().seq > seq, "events are counted up");
        drive.write(0, &[3; PAGE_BYTES], Durability::Durable).unwrap();
        drop(drive);
        let drive = Drive::open_media(disks.media()).unwrap();
        let mut page = [0; PAGE_BYTES];
        drive.read(0, &mut page).unwrap();
        assert_eq!(page, [3; PAGE_BYTES], "the page that was flushed last");
    }
}

/// A drive of four dies, of which one comes back with an image of a moment when the others had
/// less: its header is the newest, and only the journal tells.
#[test]
fn a_die_that_lost_what_was_synced_is_not_relied_upon_when_another_one_fails() {
    let shape = Shape { dies: 4, is_protected: true, journal_bytes: 4 << 20, ..SMALL_SHAPE };
    for (rolled_back, more) in (0..4).flat_map(|die| [90, 150].map(|more| (die, more))) {
        let disks = Disks::formatted(&shape);
        let drive = Drive::open_media(disks.media()).unwrap();
        let write = |number: u64| {
            let page = [number.to_le_bytes()[0]; PAGE_BYTES];
            drive.write(number % 100 * PAGE_BYTES as u64, &page, Durability::Durable).unwrap();
        };
        (0..30).for_each(write);
        let early = disks.fork();
        (30..30 + more).for_each(write);
        drop(drive);
        disks.restore_by(|_| true);
        disks.roll_back(rolled_back, &early);
        let report = crate::volume::check::check_media(disks.fork().media(), |_, _| ()).unwrap();
        let told = |text: &str| text.contains(&format!("die {rolled_back}, holds an earlier"));
        assert!(report.findings.iter().any(|it| told(&it.text)), "{:?}", report.findings);
        let drive = Drive::open_media(disks.media()).unwrap();
        assert_eq!(drive.lost_dies(), [rolled_back]);
        assert!(drive.unused_media().any(told) && !drive.is_redundant());
        for number in (30 + more).saturating_sub(100)..30 + more {
            let mut page = [0; PAGE_BYTES];
            drive.read(number % 100 * PAGE_BYTES as u64, &mut page).unwrap();
            assert_eq!(page, [number.to_le_bytes()[0]; PAGE_BYTES], "page {number}");
        }
        drop(drive);
        assert_eq!(Drive::open_media(disks.media()).unwrap().lost_dies(), [rolled_back]);
    }
}

/// One copy of a batch in the middle is damaged: that is told, and no die is given up for it.
#[test]
fn a_batch_that_a_die_lacks_among_others_is_a_problem_and_no_failure_of_the_die() {
    let shape = Shape { dies: 3, is_protected: true, ..SMALL_SHAPE };
    let disks = Disks::formatted(&shape);
    let drive = Drive::open_media(disks.media()).unwrap();
    for number in 0..6 {
        drive.write(number * 4096, &[7; PAGE_BYTES], Durability::Durable).unwrap();
    }
    drop(drive);
    disks.restore_by(|_| true);
    let layout = Layout::new(&shape);
    let places = |die: usize| {
        let from = usize::try_from(layout.journal_from(0)).unwrap();
        let held = disks.contents()[die][from..from + (1 << 16)].to_vec();
        let is_head = move |place: &usize| held[*place..].starts_with(b"FLGTjrnl");
        (0..1 << 15).step_by(512).filter(is_head).collect::<Vec<_>>()
    };
    let (die, second) = (0..3).find_map(|die| Some((die, *places(die).get(1)?))).unwrap();
    let from = usize::try_from(layout.journal_from(0)).unwrap() + second;
    disks.damage(die, from..from + 512, |_| 0);
    let drive = Drive::open_media(disks.media()).unwrap();
    assert!(drive.lost_dies().is_empty());
    let status = drive.status();
    assert_eq!(status.maintenance.batches_lacking, 1);
    assert_eq!(status.health.state, status::HealthState::Degraded);
    drive.scrub(true).unwrap();
    assert_eq!(drive.status().health.state, status::HealthState::Ok);
}

/// The host has no space for the unit that a row lacks. Were the drive opened all the same, no
/// later opening would look for that unit again.
#[test]
fn a_unit_that_the_host_has_no_space_for_is_written_before_the_drive_is_opened() {
    let shape = Shape { dies: 4, is_protected: true, journal_bytes: 2 << 20, ..SMALL_SHAPE };
    let row = vec![7; (shape.data_units() * shape.unit_pages) as usize * PAGE_BYTES];
    for lacking in 0..4 {
        let disks = Disks::formatted(&shape);
        let drive = Drive::open_media(disks.media()).unwrap();
        drive.write(0, &row, Durability::Volatile).unwrap();
        drop(drive);
        disks.media().iter().for_each(|medium| medium.sync().unwrap());
        let layout = Layout::new(&shape);
        let rows = layout.unit_from(0)..layout.die_bytes();
        let from = usize::try_from(rows.start).unwrap();
        let until = usize::try_from(rows.end).unwrap();
        disks.damage(lacking, from..until, |_| 0);
        disks.fill_host(rows, 0);
        assert!(Drive::open_media(disks.media()).is_err(), "it lacks the unit on die {lacking}");
        assert!(disks.free_host());
        let drive = Drive::open_media(disks.media()).unwrap();
        assert!(drive.is_redundant());
        drive.fail_die((lacking + 1) % 4).unwrap();
        let mut found = vec![0; row.len()];
        drive.read(0, &mut found).unwrap();
        assert!(found == row, "with the unit on die {lacking}");
    }
}
