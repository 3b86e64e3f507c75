//! Power and heat: what a drive draws, how warm it gets, and what it does about it.

use blockio::{ClimateReading, Lba, Nanos, Op, Request, Status};
use ssd::{Drive, DriveSpec, POWER_WINDOW_S, Setup, SlotPower, Surroundings, catalogue};

/// Sectors of each request.
const SECTORS: u32 = 128;
/// Requests outstanding.
const OUTSTANDING: u32 = 32;

fn spec(surroundings: &Surroundings) -> DriveSpec {
    let duo = catalogue::find("iodrive-duo").expect("in the catalogue");
    duo.surrounded_by(surroundings).expect("it has a thermal table")
}

fn drive_of(spec: &DriveSpec, time_lapse: u32) -> Drive {
    let setup = Setup { format: "stock".into(), host: "linux".into(), time_lapse, seed: 1 };
    Drive::new(spec, &setup).expect("a drive at that scale")
}

/// A drive under large writes in order, on the clock of the protocol.
struct Written {
    drive: Drive,
    time_lapse: u32,
    next: u64,
    /// Completions, and how they ended.
    done: Vec<(Nanos, Status)>,
}

impl Written {
    fn new(spec: &DriveSpec, time_lapse: u32) -> Self {
        let drive = drive_of(spec, time_lapse);
        let mut written = Self { drive, time_lapse, next: 0, done: Vec::new() };
        for tag in 0..OUTSTANDING {
            written.write(Nanos::ZERO, tag);
        }
        written
    }

    fn write(&mut self, at: Nanos, tag: u32) {
        let requests = self.drive.user_sectors() / u64::from(SECTORS);
        let lba = Lba(self.next % requests * u64::from(SECTORS));
        self.next += 1;
        self.drive.submit(
            at,
            Request { tag, thread: 0, op: Op::Write, handle: 0, lba, sectors: SECTORS },
        );
    }

    fn at(&self, protocol_s: f64) -> Nanos {
        Nanos::from_secs_f64(protocol_s) / u64::from(self.time_lapse)
    }

    /// Goes on until so many protocol seconds have passed; returns the reading then.
    fn until(&mut self, protocol_s: f64) -> ClimateReading {
        let until = self.at(protocol_s);
        while let Some(done) = self.drive.next_completion(until) {
            self.done.push((done.completed_at, done.status));
            self.write(done.completed_at, done.tag);
        }
        self.drive.climate(until).expect("it has a thermal table")
    }

    /// Megabytes a second, and watts, from one time to another.
    fn between(&mut self, from_s: f64, to_s: f64) -> (f64, f64) {
        let (before, from) = (self.until(from_s).energy_j, self.done.len());
        let after = self.until(to_s).energy_j;
        let span_s = (self.at(to_s) - self.at(from_s)).as_secs_f64();
        let bytes = (self.done.len() - from) as f64 * f64::from(SECTORS) * 512.0;
        (bytes / 1e6 / span_s, (after - before) / span_s)
    }
}

#[test]
fn in_the_reviewers_room_heat_and_power_change_nothing() {
    let known = spec(&Surroundings::default());
    let mut unknown = known.clone();
    (unknown.energy, unknown.thermal) = (None, None);
    let mut with = Written::new(&known, 128);
    let reading = with.until(400.0);
    assert_eq!((reading.thermal_throttled, reading.power_throttled), (Nanos::ZERO, Nanos::ZERO));
    assert!(reading.temperature_c > 40.0, "{reading:?}");
    let mut without = Written::new(&unknown, 128);
    let until = without.at(400.0);
    while let Some(done) = without.drive.next_completion(until) {
        without.done.push((done.completed_at, done.status));
        without.write(done.completed_at, done.tag);
    }
    assert!(without.drive.climate(until).is_none());
    assert!(with.done == without.done, "completions differ");
}

#[test]
fn a_drive_warms_as_one_lump_does_at_any_time_lapse() {
    let spec = spec(&Surroundings::default());
    let thermal = spec.thermal.clone().expect("it has one");
    let time_constant_s = thermal.resistance_k_w * thermal.capacity_j_k;
    for time_lapse in [64, 128] {
        let mut written = Written::new(&spec, time_lapse);
        let idle_c = written.drive.climate(Nanos::ZERO).expect("it has one").temperature_c;
        let mut last_w = 0.0;
        for minute in [1.0, 2.0, 4.0] {
            let reading = written.until(minute * 60.0);
            let elapsed_s = written.at(minute * 60.0).as_secs_f64();
            last_w = reading.energy_j / elapsed_s;
            let settled_c = thermal.ambient_c + last_w * thermal.resistance_k_w;
            let left = (-minute * 60.0 / time_constant_s).exp();
            let expected_c = settled_c - (settled_c - idle_c) * left;
            let found_c = reading.temperature_c;
            assert!((found_c - expected_c).abs() < 0.3, "{found_c} against {expected_c} °C");
        }
        assert!((26.0..30.0).contains(&last_w), "{last_w} W");
    }
}

#[test]
fn a_burst_at_one_time_is_a_queue_and_no_heat() {
    let spec = spec(&Surroundings::default());
    let mut burst = drive_of(&spec, 128);
    // Twice the drive, as fast as it can, and all of it at once.
    let requests = u32::try_from(burst.user_sectors() / u64::from(SECTORS) * 2).expect("few");
    let mut steady = Written::new(&spec, 128);
    for tag in 0..requests {
        let request =
            Request { tag, thread: 0, op: Op::Write, handle: 0, lba: Lba(0), sectors: SECTORS };
        let lba = Lba(u64::from(tag % (requests / 2)) * u64::from(SECTORS));
        burst.submit(Nanos::ZERO, Request { lba, ..request });
    }
    let (mut ended, mut completed) = (Nanos::ZERO, 0);
    while let Some(done) = burst.next_completion(Nanos::MAX) {
        assert_eq!(done.status, Status::Ok);
        ended = ended.max(done.completed_at);
        completed += 1;
    }
    assert_eq!(completed, requests);
    let reading = burst.climate(ended).expect("it has one");
    let expected = steady.until(ended.as_secs_f64() * 128.0);
    let apart_c = reading.temperature_c - expected.temperature_c;
    // All dies at once are a little faster than the path to them: the rest of the time it cools.
    assert!((-3.0..1.0).contains(&apart_c), "{reading:?} against {expected:?}");
    let apart_j = reading.energy_j / expected.energy_j - 1.0;
    assert!(apart_j.abs() < 0.001, "{reading:?} against {expected:?}");
}

#[test]
fn a_slot_of_25_watts_slows_writes_and_another_supply_lifts_that() {
    let with = |slot| Surroundings { slot: Some(slot), ..Surroundings::default() };
    let mut throttled = Written::new(&spec(&with(SlotPower::Watts(25))), 64);
    let (throttled_mb_s, throttled_w) = throttled.between(60.0, 240.0);
    let mut free = Written::new(&spec(&with(SlotPower::External)), 64);
    let (free_mb_s, free_w) = free.between(60.0, 240.0);
    assert!((24.5..25.1).contains(&throttled_w), "{throttled_w} W of the slot");
    assert!(free_w > 26.5, "{free_w} W");
    assert!(
        (0.75..0.95).contains(&(throttled_mb_s / free_mb_s)),
        "{throttled_mb_s} of {free_mb_s} MB/s"
    );
    assert!(throttled.until(240.0).power_throttled > throttled.at(180.0));
}

#[test]
fn a_hot_drive_slows_its_writes_and_stays_near_its_limit() {
    let still =
        Surroundings { ambient_c: Some(45), airflow_lfm: Some(60), ..Surroundings::default() };
    let mut hot = Written::new(&spec(&still), 64);
    let (first_mb_s, _) = hot.between(1.0, 20.0);
    let (mut last_mb_s, mut hottest_c) = (0.0, 0.0_f64);
    for minute in 1..=20 {
        let from_s = f64::from(minute) * 60.0;
        (last_mb_s, _) = hot.between(from_s, from_s + 60.0);
        hottest_c = hottest_c.max(hot.until(from_s + 60.0).temperature_c);
    }
    assert!(last_mb_s < first_mb_s * 0.8, "{last_mb_s} of {first_mb_s} MB/s");
    assert!((78.0..80.0).contains(&hottest_c), "{hottest_c} °C");
    assert!(hot.done.iter().all(|(_, status)| *status == Status::Ok));
    assert!(hot.until(1260.0).thermal_throttled > Nanos::ZERO);
    hot.drive.check_invariants();
}

#[test]
fn a_drive_that_idling_alone_overheats_switches_itself_off_and_says_so() {
    let oven =
        Surroundings { ambient_c: Some(60), airflow_lfm: Some(0), ..Surroundings::default() };
    let mut hot = drive_of(&spec(&oven), 128);
    let request =
        |tag| Request { tag, thread: 0, op: Op::Read, handle: 0, lba: Lba(0), sectors: 8 };
    let hour = Nanos::from_secs(3600) / 128;
    let mut statuses = Vec::new();
    for (tag, at) in [(0, Nanos::ZERO), (1, hour), (2, hour * 2)] {
        hot.submit(at, request(tag));
        statuses.push(hot.next_completion(Nanos::MAX).expect("it is answered").status);
    }
    assert_eq!(statuses, [Status::Ok, Status::PoweredOff, Status::PoweredOff]);
    hot.check_invariants();
    let before = hot.climate(hour * 2).expect("it has one");
    let after = hot.climate(hour * 4).expect("it has one");
    assert!((after.temperature_c - 60.0).abs() < 1.0, "{after:?}");
    assert!((after.energy_j - before.energy_j).abs() < 1.0, "it draws nothing: {after:?}");
}

#[test]
fn what_takes_no_time_takes_no_power() {
    let spec = spec(&Surroundings::default());
    let setup = Setup { format: "stock".into(), host: "linux".into(), time_lapse: 128, seed: 1 };
    let mut drive = drive_of(&spec, 128);
    assert!((0..drive.user_sectors() / 8).all(|page| drive.age(Lba(page * 8), 8)));
    let aged = drive.retimed(&spec, &setup).expect("it is the same drive");
    for mut drive in [drive, aged] {
        let at = Nanos::from_secs(1);
        drive.submit(
            at,
            Request { tag: 0, thread: 0, op: Op::Read, handle: 0, lba: Lba(0), sectors: 8 },
        );
        assert!(drive.next_completion(Nanos::MAX).is_some());
        drive.purge();
        drive.check_invariants();
        let energy_j = drive.climate(at * 2).expect("it has one").energy_j;
        assert!((energy_j - 22.0).abs() < 0.01, "{energy_j} J, where idling takes 22");
    }
}

#[test]
fn idling_takes_the_power_of_idling_over_any_time() {
    let spec = spec(&Surroundings::default());
    let idle_w = spec.energy.as_ref().expect("it has one").idle_w;
    let drive = drive_of(&spec, 32);
    for days in [1_u64, 400] {
        let at = Nanos::from_secs(days * 86_400);
        let reading = drive.climate(at).expect("it has one");
        let expected = idle_w * at.as_secs_f64();
        assert!((reading.energy_j / expected - 1.0).abs() < 1e-6, "{days} days: {reading:?}");
    }
    assert!((POWER_WINDOW_S - 1.0).abs() < f64::EPSILON);
}
