//! An SLC cache: the write cliff, and how idle time takes it back.

use blockio::{Lba, Nanos, Op, Request, Rng};
use ssd::{Drive, DriveSpec, Setup, catalogue};

const NAME: &str = "intel-660p-1024";

fn drive(change: impl FnOnce(&mut DriveSpec)) -> Drive {
    let mut spec = catalogue::find(NAME).expect("in the catalogue");
    change(&mut spec);
    let setup = Setup { format: "stock".into(), host: "linux".into(), time_lapse: 8, seed: 1 };
    Drive::new(&spec, &setup).expect("a drive at that scale")
}

/// A drive that is written in order, and its clock.
struct Writer {
    drive: Drive,
    now: Nanos,
    next: u64,
}

impl Writer {
    fn new(drive: Drive) -> Self {
        Self { drive, now: Nanos::ZERO, next: 0 }
    }

    /// Writes some thousandths of the user capacity; returns megabytes a second.
    fn write(&mut self, thousandths: u64) -> f64 {
        let sectors = self.drive.user_sectors();
        let count = sectors * thousandths / 1000 / 256;
        let (begun, mut outstanding) = (self.now, 0);
        for _ in 0..count {
            let lba = Lba(self.next % (sectors / 256) * 256);
            self.next += 1;
            let request =
                Request { tag: 0, thread: 0, op: Op::Write, handle: 0, lba, sectors: 256 };
            self.drive.submit(self.now, request);
            outstanding += 1;
            if outstanding == 32 {
                let done = self.drive.next_completion(Nanos::MAX).expect("outstanding");
                (self.now, outstanding) = (done.completed_at, outstanding - 1);
            }
        }
        // What is outstanding is taken as it comes, without letting idle time pass.
        for _ in 0..outstanding {
            self.now = self.drive.next_completion(Nanos::MAX).expect("outstanding").completed_at;
        }
        count as f64 * 131_072.0 / (self.now - begun).as_secs_f64() / 1e6
    }

    fn rest(&mut self, span: Nanos) {
        self.now += span;
        assert!(self.drive.next_completion(self.now).is_none(), "nothing is outstanding");
        self.drive.check_invariants();
    }
}

#[test]
fn writes_fall_from_the_rate_of_slc_to_that_of_qlc_once_the_cache_is_used_up() {
    let mut writer = Writer::new(drive(|_| {}));
    // 140 GB of an empty drive, less what the fill itself takes from the dynamic part.
    let within = writer.write(90);
    assert!((within / 1800.0 - 1.0).abs() < 0.1, "{within}");
    writer.write(60);
    let beyond = writer.write(50);
    assert!((beyond / 100.0 - 1.0).abs() < 0.15, "{beyond}");
    let without = Writer::new(drive(|spec| spec.slc_cache = None)).write(50);
    assert!((without / beyond - 1.0).abs() < 0.15, "{without} {beyond}");
}

#[test]
fn idle_time_folds_the_cache_and_a_full_drive_has_its_static_part() {
    let mut writer = Writer::new(drive(|_| {}));
    writer.write(200);
    let used_up = writer.write(10);
    let before = writer.drive.counters();
    // The clock of the drive runs at an eighth: two seconds of idle time, then minutes of folding.
    writer.rest(Nanos::from_millis(200));
    assert_eq!(writer.drive.counters(), before, "nothing is folded at once");
    writer.rest(Nanos::from_secs(600));
    let folded = writer.drive.counters().pages_relocation - before.pages_relocation;
    let cache_pages = 110e9 / 8.0 / 4096.0;
    assert!(folded as f64 > cache_pages * 0.8, "{folded} of {cache_pages}");
    let again = writer.write(10);
    assert!(again > used_up * 8.0, "{again} {used_up}");
    writer.write(780);
    writer.rest(Nanos::from_secs(600));
    // 12 GB of 1024 while the drive is full.
    let of_full = writer.write(8);
    let after = writer.write(10);
    assert!(of_full > 900.0 && after < 200.0, "{of_full} {after}");
}

#[test]
fn a_full_drive_under_random_writes_goes_on_and_keeps_its_promises() {
    let mut drive = drive(|spec| {
        spec.geometry.erase_blocks_per_plane = 512;
        spec.geometry.pages_per_erase_block = 64;
        spec.geometry.spare_erase_blocks_per_plane = 0;
        spec.formats[0].user_gb = 13.0;
        let cache = spec.slc_cache.as_mut().expect("a cache");
        (cache.static_gb, cache.dynamic_gb, cache.idle_ms) = (0.2, 1.0, 1.0);
    });
    let sectors = drive.user_sectors();
    assert!((0..sectors / 256).all(|slot| drive.age(Lba(slot * 256), 256)));
    let (mut rng, mut now) = (Rng::new(3), Nanos::ZERO);
    for step in 0..60_000_u32 {
        let lba = Lba(rng.below(sectors / 8) * 8);
        let op = if rng.below(4) == 0 { Op::Read } else { Op::Write };
        drive.submit(now, Request { tag: step, thread: 0, op, handle: 0, lba, sectors: 8 });
        now = drive.next_completion(Nanos::MAX).expect("outstanding").completed_at;
        if step % 5_000 == 0 {
            now += Nanos::from_millis(500);
            assert!(drive.next_completion(now).is_none());
            drive.check_invariants();
        }
    }
    while drive.next_completion(Nanos::MAX).is_some() {}
    drive.check_invariants();
    assert!(drive.counters().superblocks_erased > 0, "garbage collection worked");
}
