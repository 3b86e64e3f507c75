//! A die that fails under load: degraded reads and a rebuild, then less spare space; without parity
//! reads that fail.

use blockio::{Lba, Nanos, Op, Request, Rng, Status};
use ssd::{DieFailure, Drive, DriveSpec, Setup, catalogue};

/// Seconds of one look at the rate.
const LOOK_S: u64 = 1;

/// The Duo at 1/32, written once over, with die 3 failing `after_s` of the drive's own time into
/// the load; `change` is made to it before.
fn failing(after_s: u64, change: impl FnOnce(&mut DriveSpec)) -> Drive {
    let mut spec = catalogue::find("iodrive-duo").expect("in the catalogue");
    spec.hosts[0].stalls.clear();
    spec.die_failure = Some(DieFailure { die: 3, after_s: after_s * 32 });
    change(&mut spec);
    let setup = Setup { format: "stock".into(), host: "linux".into(), time_lapse: 32, seed: 1 };
    let mut drive = Drive::new(&spec, &setup).expect("a drive at that scale");
    let mut rng = Rng::new(5);
    let pages = drive.user_sectors() / 8;
    assert!((0..pages).all(|page| drive.age(Lba(page * 8), 8)));
    assert!((0..2 * pages).all(|_| drive.age(Lba(rng.below(pages) * 8), 8)));
    drive.begin_loads(Nanos::ZERO);
    drive
}

/// Requests and media errors of each look at a load of 64 requests outstanding, from second `from`
/// on for `looks`.
fn loaded(drive: &mut Drive, read_share: f64, from: u64, looks: u64) -> Vec<(u32, u32)> {
    let mut rng = Rng::new(7);
    let pages = drive.user_sectors() / 8;
    let mut request = |tag: u32| {
        let op = if rng.unit_f64() < read_share { Op::Read } else { Op::Write };
        let thread = u16::try_from(tag % 16).expect("below 16");
        Request { tag, thread, op, handle: 0, lba: Lba(rng.below(pages) * 8), sectors: 8 }
    };
    for tag in 0..64 {
        let first = request(tag);
        drive.submit(Nanos::from_millis(from * LOOK_S * 1000), first);
    }
    let mut seen = Vec::new();
    for look in from + 1..=from + looks {
        let mut counts = (0, 0);
        while let Some(done) = drive.next_completion(Nanos::from_millis(look * LOOK_S * 1000)) {
            match done.status {
                Status::Ok => counts.0 += 1,
                Status::MediaError => counts.1 += 1,
                other => panic!("{other:?}"),
            }
            let next = request(done.tag);
            drive.submit(done.completed_at, next);
        }
        seen.push(counts);
    }
    while drive.next_completion(Nanos::MAX).is_some() {}
    drive.check_invariants();
    seen
}

fn rate(looks: &[(u32, u32)]) -> f64 {
    looks.iter().map(|(done, _)| f64::from(*done)).sum::<f64>() / looks.len() as f64
}

/// Pages relocated for each page that the host wrote since `before`.
fn relocated(drive: &Drive, before: &ftl::Counters) -> f64 {
    let after = drive.counters();
    let relocated = after.pages_relocation - before.pages_relocation;
    relocated as f64 / (after.pages_host - before.pages_host) as f64
}

#[test]
fn rates_drop_while_a_die_is_rebuilt_and_come_back_to_what_less_spare_space_allows() {
    let (mut drive, mut twin) = (failing(8, |_| {}), failing(1_000, |_| {}));
    let (seen, of_twin) = (loaded(&mut drive, 0.7, 0, 40), loaded(&mut twin, 0.7, 0, 40));
    let failed = drive.failed_die().expect("it has failed");
    let rebuilt_at = failed.rebuilt_at.expect("it was rebuilt");
    assert_eq!((failed.die, failed.pages_lost), (3, 0));
    assert_eq!(seen[..8], of_twin[..8], "nothing is known of it before");
    assert!(rate(&seen[8..9]) < 0.6 * rate(&of_twin[8..9]), "{seen:?}, {of_twin:?}");
    let looks = usize::try_from(rebuilt_at.0 / 1_000_000_000).expect("some seconds") + 1;
    assert!((10..20).contains(&looks), "{rebuilt_at}");
    let back = rate(&seen[looks..]) / rate(&of_twin[looks..]);
    assert!((0.9..1.0).contains(&back), "{back} of the rate without the failure");
    assert!(seen.iter().all(|(_, errors)| *errors == 0), "parity has it all");
    let (before, before_of_twin) = (drive.counters(), twin.counters());
    let (writes, of_twin) = (loaded(&mut drive, 0.0, 60, 40), loaded(&mut twin, 0.0, 60, 40));
    let (relocated, of_twin_relocated) =
        (relocated(&drive, &before), relocated(&twin, &before_of_twin));
    assert!(relocated > of_twin_relocated * 1.02, "{relocated}, {of_twin_relocated}");
    assert!(rate(&writes[20..]) < rate(&of_twin[20..]), "{writes:?}, {of_twin:?}");
}

#[test]
fn without_parity_reads_of_what_a_die_held_are_media_errors() {
    let mut drive = failing(2, |spec| spec.geometry.stripe_dies = 0);
    let seen = loaded(&mut drive, 1.0, 0, 6);
    let failed = drive.failed_die().expect("it has failed");
    assert!(failed.pages_lost > 0 && failed.rebuilt_at.is_none(), "{failed:?}");
    assert_eq!(seen[..2].iter().map(|(_, errors)| errors).sum::<u32>(), 0);
    let (done, errors) = seen[4];
    let share = f64::from(errors) / f64::from(done + errors);
    // One of the 25 dies of a bank, in one of the banks of one of two modules.
    let pages = drive.user_sectors() as f64 / 8.0;
    let expected = failed.pages_lost as f64 / pages;
    assert!((share / expected - 1.0).abs() < 0.2, "{share} of the reads, {expected} of the pages");
    let unwritten = drive.pages_read().expect("it has a map").unmapped;
    assert_eq!(unwritten, 0, "what is lost had been written");
}

#[test]
fn a_die_that_a_drive_lacks_or_cannot_do_without_is_refused_at_once() {
    let refusal = |die: Option<u32>, user_gb: u32| {
        let mut spec = catalogue::find("iodrive-duo").expect("in the catalogue");
        spec.die_failure = die.map(|die| DieFailure { die, after_s: 0 });
        spec.formats[0].user_gb = user_gb.into();
        let setup = Setup { format: "stock".into(), host: "linux".into(), time_lapse: 1, seed: 1 };
        Drive::new(&spec, &setup).err().map(|error| error.to_string())
    };
    let text = refusal(Some(10_000), 640).expect("refused");
    assert!(text.contains("there is no die 10000 to fail: the drive has dies 0 to"), "{text}");
    let largest = (640..859).rev().find(|user_gb| refusal(None, *user_gb).is_none());
    let text = refusal(Some(3), largest.expect("one fits")).expect("refused");
    assert!(text.contains("without die 3 it becomes read-only"), "{text}");
}
