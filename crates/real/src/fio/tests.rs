//! Real fio on small files. Each test says so where it cannot run.

use std::cell::Cell;

use lab::plan::Plan;
use lab::progress::Glimpse;
use lab::replay::Replay;
use lab::subject::{Choice, Subject};
use lab::{Gaps, Rate};
use results::{Interval, TargetKind};
use tempfile::TempDir;
use workload::{Workload, catalogue};

use super::*;
use crate::drivers::drivers;
use crate::machine_fixture::LoopDisk;

mod nbd;
mod reading;

const SIZE: Bytes = Bytes(64 << 20);

/// Does something once, when the load is on its way.
pub(super) struct Meddler<F: FnMut()> {
    looks: u32,
    meddle: F,
}

impl<F: FnMut()> Meddler<F> {
    pub(super) fn new(meddle: F) -> Self {
        Self { looks: 0, meddle }
    }
}

impl<F: FnMut()> Watch for Meddler<F> {
    fn progress(&mut self, _: f64, _: &str) {
        self.looks += 1;
        if self.looks == 10 {
            (self.meddle)();
        }
    }

    fn saw(&mut self, _: Glimpse) {}

    fn stop(&self) -> bool {
        false
    }
}

/// Kills the fio that works in `folder`.
fn kill_fio_in(folder: &Path) {
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        if fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == folder) {
            let id = entry.file_name().into_string().unwrap();
            let killed = std::process::Command::new("kill").args(["-KILL", &id]).status();
            assert!(killed.is_ok_and(|status| status.success()));
        }
    }
}

/// Stops after it was asked `after` times.
pub(super) struct Waiter {
    asked: Cell<u32>,
    after: u32,
    told: Vec<f64>,
}

impl Waiter {
    pub(super) fn patient() -> Self {
        Self::until(u32::MAX)
    }

    fn until(after: u32) -> Self {
        Self { asked: Cell::new(0), after, told: Vec::new() }
    }
}

impl Watch for Waiter {
    fn progress(&mut self, done: f64, _: &str) {
        self.told.push(done);
    }

    fn saw(&mut self, _: Glimpse) {}

    fn stop(&self) -> bool {
        self.asked.set(self.asked.get() + 1);
        self.asked.get() > self.after
    }
}

#[expect(clippy::print_stderr, reason = "a skipped test says why")]
pub(super) fn fio_is_missing() -> bool {
    let missing = Version::usable().is_err();
    if missing {
        eprintln!("skipped: fio is not installed, or too old");
    }
    missing
}

/// A target, and the limits within which it may be treated.
pub(super) struct Trial {
    address: Address,
    access: Access,
}

impl Trial {
    pub(super) fn new(address: Address, raw: impl Into<PathBuf>) -> Self {
        Self { address, access: Access { raw: raw.into(), ..Access::default() } }
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Access)) -> Self {
        change(&mut self.access);
        self
    }

    pub(super) fn open(&self) -> Result<Fio, Error> {
        Fio::open(&self.address, &self.access)
    }

    fn path(&self) -> &Path {
        self.address.name()
    }
}

fn request(folder: &TempDir) -> Trial {
    let address = Address::Local(folder.path().join("disk.img"));
    Trial::new(address, folder.path().join("raw")).with(|it| it.size = Some(SIZE))
}

pub(super) fn load<'a>(workload: &'a Workload, step: &'a str) -> Load<'a> {
    Load {
        step,
        workload,
        threads: 2,
        queue_per_thread: 4,
        ramp_s: 0.2,
        duration_s: 1.5,
        interval_s: 0.5,
        rate: None,
        replay: None,
        seed: 7,
    }
}

fn total(intervals: &[Interval], of: impl Fn(&Interval) -> u64) -> f64 {
    intervals.iter().map(of).sum::<u64>() as f64
}

#[test]
fn a_file_is_made_filled_and_loaded_with_the_mix_that_was_asked_for() {
    if fio_is_missing() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let mut fio = request(&folder).open().unwrap();
    assert_eq!(fio.target().kind, TargetKind::File);
    assert_eq!(fio.target().user_capacity_bytes, SIZE.0);
    fio.purge().unwrap();
    let workload = catalogue::find_workload("file-server").unwrap();
    let mut watch = Waiter::patient();
    let loaded = fio.load(&load(&workload, "file-server/T2Q4"), &mut watch).unwrap();

    assert_eq!(loaded.intervals.len(), 3);
    assert!(loaded.how.starts_with("all 64 MiB written once in order before; fio "), "{loaded:?}");
    assert!(loaded.warnings.iter().any(|warning| warning.kind == WarningKind::Purge));
    assert!(!fio.needs_fill(&workload), "a read meets written space only");
    assert!(watch.told.is_sorted() && watch.told.iter().any(|done| *done > 0.5));

    let reads = total(&loaded.intervals, |interval| interval.read.count());
    let writes = total(&loaded.intervals, |interval| interval.write.count());
    let share = reads / (reads + writes);
    assert!((share - 0.8).abs() < 0.01, "{share} of {} requests read", reads + writes);
    let bytes = total(&loaded.intervals, |interval| interval.read_bytes + interval.write_bytes);
    let mean_bytes = bytes / (reads + writes);
    // Four standard errors of the mean of this mix are 3 % at 5000 requests; far more are made.
    let ratio = mean_bytes / workload.mean_bytes();
    assert!(
        (ratio - 1.0).abs() < 0.03,
        "{mean_bytes} bytes a request of {}",
        workload.mean_bytes()
    );
}

#[test]
fn shares_of_sizes_and_directions_are_those_of_the_workload() {
    if fio_is_missing() {
        return;
    }
    // fio's null engine completes at once: enough requests for shares within a percent.
    let engine = Engine { name: "null", direct: true };
    let folder = TempDir::new().unwrap();
    let (path, capacity_bytes) = (Path::new("/null"), SIZE.0);
    let place = JobTarget { hosts: None, group: &[], path, capacity_bytes, sector_bytes: 512 };
    let workload = catalogue::find_workload("file-server").unwrap();
    let load = Load { duration_s: 0.5, ..load(&workload, "conformance") };
    let text = job::of_load(&load, place, engine, Logging::of(&load, 1).unwrap()).unwrap();
    // With data in each write there would be too few of them.
    write_job(folder.path(), &text.replace("refill_buffers=1", "zero_buffers=1")).unwrap();
    process::run(folder.path(), None, &mut Waiter::patient(), |_, _| true).unwrap();
    let output = FioOutput::read(&folder.path().join(OUTPUT_FILE)).unwrap();
    let sum = |of: fn(&output::JobTotals) -> u64| output.jobs.iter().map(of).sum::<u64>() as f64;
    let (reads, writes) = (sum(|job| job.read.total_ios), sum(|job| job.write.total_ios));
    assert!(reads + writes > 50_000.0, "{reads} reads, {writes} writes");
    assert!((reads / (reads + writes) - 0.8).abs() < 0.01);
    for (bytes, requests) in
        [(sum(|job| job.read.io_bytes), reads), (sum(|job| job.write.io_bytes), writes)]
    {
        // Four standard errors of the mean of `requests` sizes, whose deviation is 18 KiB.
        let error_max = 4.0 * 18.0 * 1024.0 / requests.sqrt();
        let mean_bytes = bytes / requests;
        assert!((mean_bytes - workload.mean_bytes()).abs() < error_max, "{mean_bytes}");
    }
}

#[test]
fn the_second_pass_of_a_random_fill_goes_to_other_addresses_than_the_first() {
    if fio_is_missing() {
        return;
    }
    let engine = Engine { name: "null", direct: true };
    let folder = TempDir::new().unwrap();
    let (path, capacity_bytes) = (Path::new("/null"), 4 << 20);
    let place = JobTarget { hosts: None, group: &[], path, capacity_bytes, sector_bytes: 512 };
    let bytes = job::FILL_BYTES;
    let wanted = FillJob { is_random: true, passes: 2, bytes, compressible_percent: 0.0 };
    let text = job::of_fill(place, engine, wanted).unwrap();
    let logged = text.replace("[global]\n", "[global]\nwrite_lat_log=at\nlog_offset=1\n");
    write_job(folder.path(), &logged).unwrap();
    process::run(folder.path(), None, &mut Waiter::patient(), |_, _| true).unwrap();
    let log = fs::read_to_string(folder.path().join("at_lat.1.log")).unwrap();
    let offset = |line: &str| line.split(',').nth(4).map(|it| it.trim().to_owned()).unwrap();
    let offsets: Vec<String> = log.lines().map(offset).collect();
    assert_eq!(offsets.len(), 2048, "two passes of 1024 blocks");
    let sorted = |pass: &[String]| {
        let mut all = pass.to_vec();
        all.sort();
        all
    };
    assert_ne!(sorted(&offsets[..1024]), sorted(&offsets[1024..]));
}

#[test]
fn the_suites_of_one_run_share_a_file_that_was_made_for_it() {
    if fio_is_missing() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let Trial { address, access } = request(&folder);
    let subject = Subject::find(address.name().to_str().unwrap()).unwrap();
    let wanted = subject.setups(&Choice::default()).unwrap().remove(0);
    let drivers = drivers(&subject, &wanted, 1, &access).unwrap();
    let workload = catalogue::find_workload("4k-rand-write").unwrap();
    let load = Load { duration_s: 0.25, interval_s: 0.25, ramp_s: 0.0, ..load(&workload, "s") };
    for _ in 0..2 {
        let mut driver = drivers().unwrap();
        driver.purge().unwrap();
        let loaded = driver.load(&load, &mut Waiter::patient()).unwrap();
        assert!(loaded.how.starts_with("all 64 MiB written once"), "{}", loaded.how);
    }
}

#[test]
fn a_loop_device_is_discarded_loaded_in_slices_and_written_twice_before_it_is_read() {
    if fio_is_missing() {
        return;
    }
    let Some(disk) = LoopDisk::new() else { return };
    let raw = TempDir::new().unwrap();
    let request =
        Trial::new(Address::Local(disk.node().into()), raw.path()).with(|it| it.destroy = true);
    let mut fio = request.open().unwrap();
    assert_eq!(fio.target().kind, TargetKind::BlockDevice);
    assert_eq!(fio.purge().unwrap(), "every block discarded (blkdiscard)");
    let workload = catalogue::find_workload("128k-seq-write").unwrap();
    let load = Load { duration_s: 0.5, ..load(&workload, "slices") };
    let loaded = fio.load(&load, &mut Waiter::patient()).unwrap();
    assert!(loaded.how.starts_with("fio "), "a write needs no fill: {}", loaded.how);
    let interval = &loaded.intervals[0];
    assert_eq!(interval.write_bytes, interval.write.count() * (128 << 10));
    let workload = catalogue::find_workload("4k-70-30").unwrap();
    let load = Load { step: "reads", workload: &workload, ..load };
    let loaded = fio.load(&load, &mut Waiter::patient()).unwrap();
    assert!(loaded.how.starts_with("all 16 MiB written twice in order before"), "{}", loaded.how);
    assert!(
        fio.held.sites.warnings(true).iter().any(|warning| warning.kind == WarningKind::PageCache)
    );
}

#[test]
fn a_device_of_large_sectors_refuses_small_transfers_before_anything_is_written() {
    if fio_is_missing() {
        return;
    }
    let Some(disk) = LoopDisk::with_sectors(4096) else { return };
    let raw = TempDir::new().unwrap();
    let request =
        Trial::new(Address::Local(disk.node().into()), raw.path()).with(|it| it.destroy = true);
    let fio = request.open().unwrap();
    let plan = |name: &str| {
        let protocol = catalogue::find_protocol(name).unwrap();
        Plan::new(&protocol, &catalogue::workloads(), 1).unwrap()
    };
    let check = |plan: &Plan| {
        let loads = plan.steps.iter().filter(|step| step.threads > 0);
        let mut loads = loads.map(|step| load(step.workload.as_ref().unwrap(), &step.id));
        loads.try_for_each(|load| fio.check(&load))
    };
    check(&plan("quick")).unwrap();
    let error = check(&plan("snia-pts")).unwrap_err();
    assert!(error.to_string().ends_with("takes multiples of 4096"), "{error}");
    assert!(
        error.remedy().contains("leave the suite or the size out in a copy of the protocol"),
        "{error:?}"
    );
}

#[test]
fn a_device_that_cannot_be_purged_is_filled_before_any_load() {
    if fio_is_missing() {
        return;
    }
    let Some(disk) = LoopDisk::new() else { return };
    let raw = TempDir::new().unwrap();
    let request = Trial::new(Address::Local(disk.node().into()), raw.path()).with(|it| {
        it.destroy = true;
        it.purge = PurgeMethod::Overwrite;
    });
    let mut fio = request.open().unwrap();
    fio.purge().unwrap();
    let workload = catalogue::find_workload("4k-rand-write").unwrap();
    let load = Load { duration_s: 0.5, ..load(&workload, "writes") };
    let loaded = fio.load(&load, &mut Waiter::patient()).unwrap();
    assert!(loaded.how.starts_with("all 16 MiB written twice in order before"), "{}", loaded.how);
}

#[test]
fn a_second_load_writes_nothing_first() {
    if fio_is_missing() {
        return;
    }
    let folder = TempDir::new().unwrap();
    // Not a whole number of fill transfers: the rest at the end stays a hole, and unread.
    let size = Some(Bytes(SIZE.0 + 4096));
    let mut fio = request(&folder).with(|it| it.size = size).open().unwrap();
    let workload = catalogue::find_workload("4k-rand-read").unwrap();
    let short = |step| Load { duration_s: 0.5, interval_s: 0.25, ..load(&workload, step) };
    let first = fio.load(&short("1"), &mut Waiter::patient()).unwrap();
    let second = fio.load(&short("2"), &mut Waiter::patient()).unwrap();
    assert!(first.how.contains("written once"), "the new file was all holes: {}", first.how);
    assert!(second.how.starts_with("fio "), "{}", second.how);
    assert_eq!(second.intervals[0].write.count(), 0);
    assert!(fio.raw.join("2/job.fio").is_file() && !fio.raw.join("2/fill").exists());
}

#[test]
fn a_rate_with_mixed_sizes_is_reached() {
    if fio_is_missing() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let mut fio = request(&folder).open().unwrap();
    let workload = catalogue::find_workload("file-server").unwrap();
    let rate = Some(Rate { iops: 1000.0, gaps: Gaps::Exponential });
    let load = Load { rate, ..load(&workload, "rate") };
    let loaded = fio.load(&load, &mut Waiter::patient()).unwrap();
    let requests = total(&loaded.intervals, |at| at.read.count() + at.write.count());
    let iops = requests / 1.5;
    // Four standard deviations of a Poisson count of 1500 are 10 %.
    assert!((900.0..1100.0).contains(&iops), "{iops} of 1000: 32 were the known defect");
}

#[test]
fn a_stop_keeps_the_intervals_that_were_measured() {
    if fio_is_missing() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let mut fio = request(&folder).open().unwrap();
    let workload = catalogue::find_workload("4k-rand-write").unwrap();
    let warm = Load { duration_s: 0.25, interval_s: 0.25, ..load(&workload, "warm") };
    fio.load(&warm, &mut Waiter::patient()).unwrap();
    let long = Load { duration_s: 600.0, interval_s: 0.25, ..load(&workload, "long") };
    // Trial every 100 ms: about three seconds, of which start and ramp take one.
    let loaded = fio.load(&long, &mut Waiter::until(30)).unwrap();
    let count = loaded.intervals.len();
    assert!((2..=12).contains(&count), "{count} intervals");
    assert!(loaded.intervals.iter().all(|interval| interval.write.count() > 0));
}

#[test]
fn a_stop_during_the_fill_measures_nothing_and_fills_again() {
    if fio_is_missing() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let mut fio = request(&folder).open().unwrap();
    let workload = catalogue::find_workload("4k-rand-read").unwrap();
    fio.unwritten = true;
    let loaded = fio.load(&load(&workload, "s"), &mut Waiter::until(0)).unwrap();
    assert!(loaded.intervals.is_empty());
    assert!(fio.needs_fill(&workload));
}

#[test]
fn a_run_holds_its_file_and_its_clones_share_it() {
    if fio_is_missing() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let first = request(&folder).open().unwrap();
    let other = first.clone();
    drop(first);
    let again = request(&folder).with(|it| it.destroy = true);
    assert_eq!(again.open().unwrap_err().kind(), Kind::Refused);
    drop(other);
    again.open().unwrap();
}

#[test]
fn an_existing_file_keeps_its_size_and_needs_leave_to_be_destroyed() {
    if fio_is_missing() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let request = request(&folder).with(|it| it.size = None);
    fs::write(request.path(), vec![1; 3 << 20]).unwrap();
    assert_eq!(request.open().unwrap_err().kind(), Kind::Refused);
    let fio = request.with(|it| it.destroy = true).open().unwrap();
    assert_eq!(fio.target().user_capacity_bytes, 3 << 20);
}

#[test]
fn a_file_too_small_is_refused_and_not_left_behind() {
    if fio_is_missing() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let request = request(&folder).with(|it| it.size = Some(Bytes(4096)));
    let error = request.open().unwrap_err();
    assert!(error.to_string().ends_with("holds 4 KiB, too little to measure"), "{error}");
    assert!(!request.path().exists());
}

#[test]
fn a_file_larger_than_the_free_space_is_refused_before_it_is_made() {
    if fio_is_missing() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let request = request(&folder).with(|it| it.size = Some(Bytes(1 << 43)));
    let error = request.open().unwrap_err();
    assert!(error.to_string().contains("its file system has"), "{error}");
    assert!(error.remedy().contains("--size "), "{}", error.remedy());
    assert!(!request.path().exists());
}

#[test]
fn a_file_in_which_nothing_was_measured_is_gone_and_one_of_use_stays() {
    if fio_is_missing() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let request = request(&folder).with(|it| it.size = Some(Bytes(2 << 20)));
    let fio = request.open().unwrap();
    assert!(request.path().exists());
    drop(fio);
    assert!(!request.path().exists());
    let mut fio = request.open().unwrap();
    let workload = catalogue::find_workload("4k-rand-write").unwrap();
    fio.load(&load(&workload, "s"), &mut Waiter::patient()).unwrap();
    drop(fio);
    assert!(request.path().exists());
}

#[test]
fn a_report_of_a_failed_job_is_an_error_with_its_cause() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(OUTPUT_FILE);
    let recorded = include_str!("tests/file-server/output.json");
    fs::write(&path, recorded.replacen("\"error\": 0", "\"error\": 5", 1)).unwrap();
    let error = FioOutput::read(&path).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(
        (error.to_string().as_str(), error.kind()),
        ("fio ended a job early", Kind::Program)
    );
    assert!(cause.starts_with("Input/output error"), "{cause}");
}

#[test]
fn a_trace_is_replayed_without_times_and_at_them() {
    if fio_is_missing() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let mut fio = request(&folder).open().unwrap();
    let workload = catalogue::find_workload("mail-server").unwrap();
    let shape = workload::TraceShape { requests: 3000, ..workload.trace.clone().unwrap() };
    let trace = workload::trace::synthesise(&workload, &shape, 1).unwrap();
    let addresses = workload::trace::Addresses::Scaled;
    let replay = Replay { trace: &trace, addresses, speed: None };
    let load = Load { replay: Some(replay), ..load(&workload, "free") };
    let free = fio.load(&load, &mut Waiter::patient()).unwrap();
    let said = "synthetic trace mail-server (3000 requests over 50.00 GB in ";
    assert!(free.how.contains(said), "{}", free.how);
    assert!(free.how.contains("addresses scaled by 0.001 from 50.00 GB to 64 MiB"), "{}", free.how);
    let requests = total(&free.intervals, |at| at.read.count() + at.write.count());
    let reads = total(&free.intervals, |at| at.read.count());
    assert!((reads / requests - 0.95).abs() < 0.02, "{reads} of {requests}");

    let replay = Replay { speed: Some(2.0), ..replay };
    let load = Load { step: "timed", replay: Some(replay), ramp_s: 0.0, ..load };
    let timed = fio.load(&load, &mut Waiter::patient()).unwrap();
    let iops = total(&timed.intervals, |at| at.read.count() + at.write.count()) / 1.5;
    let until = blockio::Nanos::from_secs(3);
    let due = trace.requests().iter().filter(|it| it.at < until).count() as f64 / 1.5;
    // fio falls behind on a busy machine and does not catch up; ahead it never is.
    assert!(iops > 0.0 && iops < due * 1.05, "{iops} a second of {due}");

    let replay = Replay { speed: None, ..replay };
    let rate = Some(Rate { iops: 400.0, gaps: Gaps::Exponential });
    let load = Load { step: "rated", replay: Some(replay), rate, ..load };
    let rated = fio.load(&load, &mut Waiter::patient()).unwrap();
    assert!(rated.how.contains("in its order at the rate of the load"), "{}", rated.how);
    let iops = total(&rated.intervals, |at| at.read.count() + at.write.count()) / 1.5;
    assert!(iops > 0.0 && iops < 400.0 * 1.2, "{iops} a second of 400");
}

#[test]
fn a_killed_fio_is_an_error_that_says_so() {
    if fio_is_missing() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let mut fio = request(&folder).open().unwrap();
    let workload = catalogue::find_workload("4k-rand-read").unwrap();
    let load = Load { duration_s: 60.0, ..load(&workload, "killed") };
    let warm = Load { duration_s: 0.5, ..load };
    fio.load(&warm, &mut Waiter::patient()).unwrap();
    let at = fs::canonicalize(folder.path()).unwrap().join("raw/killed");
    let mut watch = Meddler::new(|| kill_fio_in(&at));
    let error = fio.load(&load, &mut watch).unwrap_err();
    assert_eq!(error.to_string(), "fio was killed by signal 9");
}

#[test]
fn a_target_that_shrinks_under_a_load_is_an_error_though_fio_sees_none() {
    if fio_is_missing() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let request = request(&folder);
    let mut fio = request.open().unwrap();
    let workload = catalogue::find_workload("4k-rand-read").unwrap();
    let whole = Load { duration_s: 0.5, ..load(&workload, "whole") };
    fio.load(&whole, &mut Waiter::patient()).unwrap();
    let meddle = || {
        let file = fs::File::options().write(true).open(request.path()).unwrap();
        file.set_len(1 << 20).unwrap();
    };
    let load = Load { duration_s: 2.0, ..load(&workload, "shrinks") };
    let error = fio.load(&load, &mut Meddler::new(meddle)).unwrap_err();
    assert!(error.to_string().ends_with("disk.img shrank from 64 MiB to 1 MiB"), "{error}");
}

/// Latency is fio's `lat`, from before the submission to the completion; `clat` and `slat` are kept
/// beside it.
#[test]
fn latency_is_total_latency_and_its_parts_are_kept() {
    let recorded = FioOutput::parse(include_str!("tests/file-server/output.json")).unwrap();
    let counted = output::counted(&recorded.jobs).unwrap();
    let parts = output::parts(&recorded.jobs).unwrap();
    let mean = |of: fn(&output::DirectionTotals) -> (f64, &output::Latency)| {
        let totals = || recorded.jobs.iter().flat_map(|job| [&job.read, &job.write]).map(of);
        let count = |latency: &output::Latency| latency.bins.values().sum::<u64>() as f64;
        let all: f64 = totals().map(|(mean, latency)| mean * count(latency)).sum();
        all / totals().map(|(_, latency)| count(latency)).sum::<f64>()
    };
    let of_whole = mean(|it| (it.lat_ns.mean, &it.lat_ns));
    let of_clat = mean(|it| (it.clat_ns.mean, &it.clat_ns));
    let of_slat = mean(|it| (it.slat_ns.mean, &it.slat_ns));
    let close = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-3;
    let told = Summary::of(&[counted]).latency;
    assert!(close(told.latency_ns_avg, of_whole), "{} {of_whole}", told.latency_ns_avg);
    assert!(!close(told.latency_ns_avg, of_clat), "clat is lower by the submission");
    assert!(close(parts.completion.summary().latency_ns_avg, of_clat));
    assert!(close(parts.submission.summary().latency_ns_avg, of_slat));
}

#[test]
fn jobs_that_fill_the_processors_of_the_machine_are_warned_of() {
    let mut report = FioOutput::parse(include_str!("tests/file-server/output.json")).unwrap();
    let workload = catalogue::find_workload("file-server").unwrap();
    let load = load(&workload, "file-server/T2Q4");
    for (percent, processors, expected) in [
        (80.0, 2, None),
        (80.0, 1, Some("fio's jobs used 1.6 of 1 processor: ")),
        (95.0, 4, None),
        // Told of already, as of a job that takes a core.
        (95.0, 2, None),
    ] {
        for job in &mut report.jobs {
            (job.usr_cpu, job.sys_cpu) = (percent / 4.0, percent * 3.0 / 4.0);
        }
        let text = processors_busy(&load, &report, processors).map(|it| it.text);
        let is_as_expected = match (&text, expected) {
            (Some(text), Some(begins)) => text.starts_with(begins),
            (text, expected) => text.is_none() && expected.is_none(),
        };
        assert!(is_as_expected, "{percent} % of each on {processors}: {text:?}");
    }
}

#[test]
fn submissions_that_take_more_than_a_twentieth_of_the_latency_are_warned_of() {
    let mut report = FioOutput::parse(include_str!("tests/file-server/output.json")).unwrap();
    let workload = catalogue::find_workload("file-server").unwrap();
    let load = load(&workload, "file-server/T2Q4");
    let warned = |report: &FioOutput| submission(&load, &output::parts(&report.jobs).unwrap());
    assert_eq!(warned(&report), None, "2.1 % is nothing to warn of");
    for totals in report.jobs.iter_mut().flat_map(|job| [&mut job.read, &mut job.write]) {
        totals.slat_ns.mean = totals.clat_ns.mean * 0.06;
    }
    let warning = warned(&report).unwrap();
    assert_eq!(warning.kind, WarningKind::Submission);
    assert!(warning.text.ends_with("total latency is 6 % above fio's clat"), "{}", warning.text);
}

/// A request for these files of `folder` as one target, each of so many bytes.
fn group(folder: &TempDir, sizes: &[u64]) -> Trial {
    let path = |index: usize| folder.path().join(format!("disk-{index}.img"));
    for (index, size) in sizes.iter().enumerate() {
        fs::File::create(path(index)).unwrap().set_len(*size).unwrap();
    }
    let paths: Vec<String> =
        (0..sizes.len()).map(|index| path(index).display().to_string()).collect();
    let address = Address::parse(&paths.join(","), "").unwrap();
    Trial::new(address, folder.path().join("raw"))
}

#[test]
fn two_targets_take_the_load_together_and_each_has_its_own_figures() {
    if fio_is_missing() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let mut fio = group(&folder, &[SIZE.0; 2]).open().unwrap();
    let target = fio.target();
    assert_eq!((target.devices, target.user_capacity_bytes), (2, SIZE.0));
    assert!(target.title.contains("disk-0.img on") || target.title.starts_with("2 x "));
    let how = fio.purge().unwrap();
    assert!(how.starts_with("each of 2 devices: a hole punched"), "{how}");
    let workload = catalogue::find_workload("file-server").unwrap();
    let rate = Some(Rate { iops: 2000.0, gaps: Gaps::Exponential });
    let load = Load { rate, ..load(&workload, "file-server/T2Q4") };
    let loaded = fio.load(&load, &mut Waiter::patient()).unwrap();
    assert!(
        loaded.how.starts_with("all 64 MiB written once in order on each of 2 devices before"),
        "{}",
        loaded.how
    );

    let names: Vec<&str> = loaded.devices.iter().map(|device| device.name.as_str()).collect();
    assert!(names[0].ends_with("disk-0.img") && names[1].ends_with("disk-1.img"), "{names:?}");
    let whole = Summary::of(&loaded.counted);
    let sum = |of: fn(&Summary) -> f64| -> f64 {
        loaded.devices.iter().map(|device| of(&Summary::of(&device.counted))).sum()
    };
    let counts = sum(|summary| summary.latency.count as f64);
    assert!((counts - whole.latency.count as f64).abs() < 0.5, "every request is of one device");
    assert!((sum(Summary::throughput_mb_s) / whole.throughput_mb_s() - 1.0).abs() < 0.02);
    // Four standard deviations of a Poisson count of 2000 and more are 9 %.
    for device in &loaded.devices {
        let iops = Summary::of(&device.counted).iops;
        assert!((850.0..1150.0).contains(&iops), "{iops} of the 1000 that are its share");
    }
    let slowest = |it: &DeviceIntervals| Summary::of(&it.counted).latency.latency_ns_max;
    let slowest = loaded.devices.iter().map(slowest).max();
    assert_eq!(slowest, Some(whole.latency.latency_ns_max), "distributions are merged");
}

#[test]
fn a_group_that_cannot_be_one_target_is_refused_before_anything_is_touched() {
    if fio_is_missing() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let unlike = group(&folder, &[SIZE.0, SIZE.0 / 2]);
    let error = unlike.open().unwrap_err();
    assert!(error.to_string().contains("their sizes are 64 MiB and 32 MiB"), "{error}");
    let sized = group(&folder, &[SIZE.0; 2]).with(|it| it.size = Some(SIZE));
    assert!(sized.open().unwrap_err().to_string().ends_with("a group of devices has its own size"));
    let full = group(&folder, &[SIZE.0; 2]);
    fs::write(folder.path().join("disk-1.img"), vec![1; 64 << 20]).unwrap();
    let error = full.open().unwrap_err();
    assert_eq!(error.kind(), Kind::Refused);
    assert!(error.to_string().contains("disk-1.img: its content (64 MiB) would be lost"));
    // The first is let go again, and both with leave are taken.
    full.with(|it| it.destroy = true).open().unwrap();
}
