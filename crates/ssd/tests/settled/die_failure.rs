//! Dies that fail under load: degraded reads and a rebuild, redundancy that is restored, then less
//! spare space; without parity reads that fail, without spare space writes.

use blockio::{Lba, Nanos, Op, Request, Rng, Status};
use ssd::{DieFailure, Drive, DriveSpec, Setup, catalogue};

/// Seconds of one look at the rate.
const LOOK_S: u64 = 1;

/// The Duo at 1/32, written once over, with die 3 failing `after_s` of the drive's own time into
/// the load; `change` is made to it before.
fn failing(after_s: u64, change: impl FnOnce(&mut DriveSpec)) -> Drive {
    let mut spec = catalogue::find("iodrive-duo").expect("in the catalogue");
    spec.hosts[0].stalls.clear();
    spec.die_failures = vec![DieFailure { die: 3, after_s: after_s * 32 }];
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

/// Requests and errors of each look at a load of 64 requests outstanding, from second `from`
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
                Status::MediaError | Status::ReadOnly => counts.1 += 1,
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
    let [failed] = *drive.failed_dies() else { panic!("{:?}", drive.failed_dies()) };
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
    let [failed] = *drive.failed_dies() else { panic!("{:?}", drive.failed_dies()) };
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
fn dies_that_fail_one_after_another_are_made_good_from_the_spare_space() {
    // Spare space of 28 %: some of the dies can be done without.
    let after_s = [4, 40, 80, 120, 160];
    let mut drive = failing(4, |spec| {
        let dies = (0_u32..).zip(after_s);
        let failure = |(index, after_s): (u32, u64)| DieFailure {
            die: 3 + 10 * index,
            after_s: after_s * 32,
        };
        spec.die_failures = dies.map(failure).collect();
    });
    for after_s in after_s {
        loaded(&mut drive, 0.7, after_s - 2, 12);
        // A drive that is busy takes hours; idle, it makes the loss good at once.
        assert_eq!(drive.next_completion(Nanos::from_millis((after_s + 36) * 1000)), None);
    }
    let failed = drive.failed_dies();
    assert_eq!(failed.len(), 5, "{failed:?}");
    assert!(failed.iter().all(|it| it.pages_lost == 0), "{failed:?}");
    for (earlier, later) in failed.iter().zip(&failed[1..]) {
        assert!(earlier.rebuilt_at < earlier.redundant_at, "{earlier:?}");
        assert!(earlier.redundant_at.is_some_and(|at| at < later.failed_at), "{earlier:?}");
        assert!(later.spare_share < earlier.spare_share, "{earlier:?}, {later:?}");
    }
}

#[test]
fn a_second_die_of_a_stripe_takes_data_with_it_while_redundancy_is_not_back() {
    let mut drive = failing(4, |spec| {
        spec.die_failures.push(DieFailure { die: 4, after_s: 4 * 32 + 8 });
    });
    let seen = loaded(&mut drive, 1.0, 0, 10);
    let [first, second] = *drive.failed_dies() else { panic!("{:?}", drive.failed_dies()) };
    assert_eq!(first.pages_lost, 0);
    assert!(second.pages_lost > 0, "{second:?}");
    assert!(seen[8].1 > 0, "reads of it fail: {seen:?}");
}

#[test]
fn a_drive_without_the_spare_space_for_a_die_takes_no_more_writes_and_goes_on_reading() {
    let mut spec = catalogue::find("iodrive-duo").expect("in the catalogue");
    let setup = Setup { format: "stock".into(), host: "linux".into(), time_lapse: 32, seed: 1 };
    let fits = |spec: &DriveSpec, user_gb: u32| {
        let mut spec = spec.clone();
        spec.formats[0].user_gb = user_gb.into();
        Drive::new(&spec, &setup).is_ok()
    };
    let largest = (640..859).rev().find(|user_gb| fits(&spec, *user_gb)).expect("one fits");
    spec.formats[0].user_gb = largest.into();
    let user_gb = largest.into();
    let mut drive = failing(2, |spec| spec.formats[0].user_gb = user_gb);
    let seen = loaded(&mut drive, 0.5, 0, 6);
    let [failed] = *drive.failed_dies() else { panic!("{:?}", drive.failed_dies()) };
    assert!(failed.is_read_only && failed.pages_lost == 0, "{failed:?}");
    assert_eq!((failed.rebuilt_at, failed.redundant_at), (None, None));
    assert!(seen[..2].iter().all(|(_, refused)| *refused == 0), "{seen:?}");
    let (done, refused) = seen[5];
    assert!(done > 1000 && refused > 1000, "reads go on, writes are refused: {seen:?}");
}

#[test]
fn dies_that_a_drive_lacks_or_that_are_named_twice_are_refused_at_once() {
    let refusal = |dies: &[u32]| {
        let mut spec = catalogue::find("iodrive-duo").expect("in the catalogue");
        spec.die_failures = dies.iter().map(|die| DieFailure { die: *die, after_s: 0 }).collect();
        let setup = Setup { format: "stock".into(), host: "linux".into(), time_lapse: 1, seed: 1 };
        Drive::new(&spec, &setup).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let text = refusal(&[10_000]);
    assert!(text.contains("there is no die 10000 to fail: the drive has dies 0 to"), "{text}");
    assert!(refusal(&[3, 4, 3]).contains("die 3 is to fail twice"));
    assert_eq!(refusal(&[3, 4]), "");
}
