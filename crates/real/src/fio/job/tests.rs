//! The text of job files.

use std::fmt::Write as _;

use lab::Rate;
use workload::{ByteRange, SizeShare, catalogue};

use super::*;

const DIRECT: Engine = Engine { name: "io_uring", direct: true };
const FILL: FillJob =
    FillJob { is_random: false, passes: 2, bytes: FILL_BYTES, compressible_percent: 0.0 };

fn place(path: &str) -> JobTarget<'_> {
    JobTarget {
        hosts: None,
        group: &[],
        path: Path::new(path),
        capacity_bytes: 1 << 30,
        sector_bytes: 512,
    }
}

fn load(workload: &Workload) -> Load<'_> {
    Load {
        step: "suite/measure",
        workload,
        threads: 4,
        queue_per_thread: 8,
        ramp_s: 1.5,
        duration_s: 60.0,
        interval_s: 1.0,
        rate: None,
        replay: None,
        seed: 42,
    }
}

fn text(workload: &Workload) -> Result<String, Error> {
    let load = load(workload);
    of_load(&load, place("/srv/disk.img"), DIRECT, Logging::of(&load, 1)?)
}

fn named(name: &str) -> Workload {
    catalogue::find_workload(name).unwrap()
}

#[test]
fn every_workload_of_the_catalogue_has_its_job_file() {
    let mut all = String::new();
    // Streams are for models alone.
    let has_job = |workload: &Workload| workload.access != Access::Streams;
    for workload in catalogue::workloads().into_iter().filter(has_job) {
        writeln!(all, "{}", text(&workload).unwrap()).unwrap();
    }
    for is_random in [false, true] {
        let wanted = FillJob { is_random, ..FILL };
        all.push_str(&of_fill(place("/srv/disk.img"), DIRECT, wanted).unwrap());
    }
    insta::assert_snapshot!(all);
}

#[test]
fn streams_are_refused() {
    let error = text(&named("flash-cache")).unwrap_err();
    assert!(error.to_string().contains("flash-cache: its streams are for models"), "{error}");
}

#[test]
fn hot_addresses_become_two_zones() {
    let access = Access::HotCold { hot_request_percent: 80.0, hot_space_percent: 20.0 };
    let workload = Workload { access, ..named("4k-rand-write") };
    assert!(text(&workload).unwrap().contains("\nrandom_distribution=zoned:80/20:20/80\n"));
    let workload = Workload { access: Access::Zipf { theta: 1.2 }, ..workload };
    assert!(text(&workload).unwrap().contains("\nrandom_distribution=zipf:1.2\n"));
}

#[test]
fn a_share_of_the_drive_is_addressed_from_its_start() {
    let workload = Workload { footprint_percent: 20.0, ..named("4k-rand-write") };
    assert!(text(&workload).unwrap().contains(&format!("\nsize={}\n", 204 << 20)));
}

#[test]
fn compressible_data_is_asked_of_fio_in_whole_percents() {
    let workload = Workload { compressible_percent: 50.0, ..named("4k-rand-write") };
    assert!(text(&workload).unwrap().contains("\nbuffer_compress_percentage=50\n"));
    assert!(!text(&named("4k-rand-write")).unwrap().contains("compress"));
    let workload = Workload { compressible_percent: 33.3, ..workload };
    assert!(text(&workload).unwrap_err().to_string().contains("compressible_percent is 33.3"));
}

#[test]
fn sequential_jobs_get_disjoint_slices_that_fit() {
    let workload = named("128k-seq-write");
    let load = Load { threads: 3, ..load(&workload) };
    let text = of_load(&load, place("/d"), DIRECT, Logging::of(&load, 1).unwrap()).unwrap();
    let value = |key: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        line.parse().unwrap()
    };
    let slice_bytes = value("offset_increment=");
    assert_eq!(slice_bytes, value("size="));
    assert!(slice_bytes * 3 <= 1 << 30 && slice_bytes.is_multiple_of(128 << 10));
}

#[test]
fn a_range_is_an_offset_and_a_size_of_fio() {
    let range = Some(ByteRange { offset_bytes: 256 << 20, size_bytes: Some(640 << 20) });
    let ranged = Workload { range, ..named("4k-rand-read") }.placed(1 << 30).unwrap();
    let text = text(&ranged).unwrap();
    for line in ["offset=268435456", "size=671088640"] {
        assert!(text.contains(&format!("\n{line}\n")), "{text}");
    }
}

#[test]
fn what_fio_cannot_express_is_refused() {
    let error = |workload: &Workload| text(workload).unwrap_err().to_string();
    let workload = Workload { read_percent: 66.6, ..named("4k-70-30") };
    assert!(error(&workload).ends_with("read_percent is 66.6, fio takes whole percents only"));
    let sizes =
        vec![SizeShare { bytes: 512, percent: 0.5 }, SizeShare { bytes: 4096, percent: 99.5 }];
    let workload = Workload { sizes, read_percent: 70.0, ..workload };
    assert!(error(&workload).ends_with("percent is 0.5, fio takes whole percents only"));
}

#[test]
fn transfers_below_the_sector_are_refused_only_where_the_cache_is_passed_by() {
    let workload = named("file-server");
    let load = load(&workload);
    let logging = Logging::of(&load, 1).unwrap();
    let place = JobTarget { sector_bytes: 4096, ..place("/dev/nvme0n1") };
    let error = of_load(&load, place, DIRECT, logging).unwrap_err();
    assert!(error.to_string().ends_with("/dev/nvme0n1 takes multiples of 4096"), "{error}");
    of_load(&load, place, Engine { direct: false, ..DIRECT }, logging).unwrap();
}

#[test]
fn a_path_with_a_colon_is_one_file_and_one_with_a_comment_sign_is_refused() {
    let by_path = Path::new("/dev/disk/by-path/pci-0000:01:00.0");
    let file_name = |path| target_name(path, DIRECT);
    assert_eq!(file_name(by_path).unwrap(), "/dev/disk/by-path/pci-0000\\:01\\:00.0");
    for path in ["/srv/a;b", "/srv/a#b", "/srv/$HOME", "/srv/a ", "/srv/a\nb"] {
        assert_eq!(file_name(Path::new(path)).unwrap_err().kind(), Kind::Input, "{path:?}");
    }
    assert_eq!(file_name(Path::new("/srv/my disk.img")).unwrap(), "/srv/my disk.img");
}

#[test]
fn an_nbd_server_is_named_by_its_address_as_it_is() {
    let workload = named("4k-rand-read");
    let load = load(&workload);
    let uri = "nbd+unix:///?socket=/run/it.sock";
    let text = of_load(&load, place(uri), Engine::NBD, Logging::of(&load, 1).unwrap()).unwrap();
    assert!(text.contains(&format!("\nuri={uri}\n")) && text.contains("\nioengine=nbd\n"));
    assert!(!text.contains("filename="), "{text}");
}

#[test]
fn a_seed_of_zero_still_gives_each_job_its_own_addresses() {
    let workload = named("4k-rand-read");
    let load = Load { seed: 0, ..load(&workload) };
    let text = of_load(&load, place("/d"), DIRECT, Logging::of(&load, 1).unwrap()).unwrap();
    assert!(text.contains("\nrandseed=1\n"));
}

#[test]
fn a_seed_of_64_bits_fits_the_63_that_fio_reads() {
    let workload = named("4k-rand-read");
    let load = Load { seed: u64::MAX, ..load(&workload) };
    let text = of_load(&load, place("/d"), DIRECT, Logging::of(&load, 1).unwrap()).unwrap();
    assert!(text.contains(&format!("\nrandseed={}\n", i64::MAX)));
}

#[test]
fn a_rate_is_split_over_jobs_and_directions() {
    let asked = |gaps, name| {
        let workload = named(name);
        let load = Load { rate: Some(Rate { iops: 10_000.0, gaps }), ..load(&workload) };
        of_load(&load, place("/d"), DIRECT, Logging::of(&load, 1).unwrap()).unwrap()
    };
    let poisson = asked(Gaps::Exponential, "file-server");
    assert!(poisson.contains("\nrate_iops=2000,500\nrate_process=poisson\n"), "{poisson}");
    let even = asked(Gaps::Constant, "4k-rand-read");
    assert!(even.contains("\nrate_iops=2500\niodepth"), "{even}");
}

#[test]
fn even_gaps_between_mixed_sizes_are_refused_where_fio_gets_them_wrong() {
    let check = |gaps, name, version| {
        let workload = named(name);
        let load = Load { rate: Some(Rate { iops: 1000.0, gaps }), ..load(&workload) };
        check_rate(&load, version)
    };
    let (old, new) = (Version::OLDEST, Version::RECOMMENDED);
    let error = check(Gaps::Constant, "file-server", old).unwrap_err();
    assert!(error.remedy().contains("exponential"));
    check(Gaps::Constant, "file-server", new).unwrap();
    check(Gaps::Constant, "4k-rand-read", old).unwrap();
    check(Gaps::Exponential, "file-server", old).unwrap();
}

#[test]
fn short_steps_are_logged_as_finely_as_asked() {
    let workload = named("4k-rand-write");
    let logging = Logging::of(&load(&workload), 1).unwrap();
    assert_eq!(logging, Logging { interval_ms: 1000, rows: 60, coarseness: 0 });
}

#[test]
fn long_steps_with_many_jobs_get_longer_intervals_and_merged_bins() {
    let workload = named("8k-70-30");
    let six_hours = Load { threads: 16, duration_s: 21_600.0, ..load(&workload) };
    let logging = Logging::of(&six_hours, 1).unwrap();
    assert_eq!((logging.interval_ms, logging.coarseness), (10_000, 1));
    assert!(logging.rows * 32 * ROW_BYTES <= LOG_BYTES_MAX);
}

#[test]
fn a_load_without_a_whole_interval_is_refused() {
    let workload = named("4k-rand-write");
    let short = Load { duration_s: 0.5, ..load(&workload) };
    let error = Logging::of(&short, 1).unwrap_err();
    assert!(error.to_string().ends_with("0.5 s of load hold no interval of 1 s"), "{error}");
}

#[test]
fn a_trim_covers_every_byte_once() {
    let place = JobTarget { capacity_bytes: (192 << 20) + (5 << 20), ..place("/dev/nvme0n1") };
    let text = of_trim(place, DIRECT).unwrap();
    let sections: Vec<&str> = text.split("\n[").skip(2).collect();
    assert_eq!(
        sections,
        [
            "trim]\noffset=0\nsize=201326592\nbs=67108864",
            "rest]\noffset=201326592\nsize=5242880\nbs=1048576\n"
        ]
    );
}

#[test]
fn a_fill_has_the_transfers_of_its_workload_where_they_are_of_one_size() {
    let fill = FillJob { bytes: fill_bytes(&named("128k-seq-write")), ..FILL };
    assert!(of_fill(place("/d"), DIRECT, fill).unwrap().contains("\nbs=131072\n"));
    let mixed = Workload { sizes: named("file-server").sizes, ..named("128k-seq-write") };
    assert_eq!(fill_bytes(&mixed), FILL_BYTES);
    let sizes = vec![SizeShare { bytes: 96 << 10, percent: 100.0 }];
    assert_eq!(fill_bytes(&Workload { sizes, ..mixed }), FILL_BYTES, "no whole MiB");
}

#[test]
fn every_pass_of_a_random_fill_draws_addresses_of_its_own() {
    let fill = FillJob { is_random: true, passes: 3, ..FILL };
    let text = of_fill(place("/d"), DIRECT, fill).unwrap();
    assert!(text.contains(&format!("\nio_size={}\n", 3_u64 << 30)), "{text}");
    assert!(!text.contains("loops="), "{text}");
    assert!(of_fill(place("/d"), DIRECT, FILL).unwrap().contains("\nloops=2\n"));
}

#[test]
fn each_device_of_a_group_has_a_section_of_its_own_and_a_share_of_the_rate() {
    let group = ["/dev/nvme1n1", "/dev/nvme2n1"].map(PathBuf::from);
    let place = JobTarget { group: &group, ..place("/dev/nvme1n1") };
    let workload = named("4k-rand-write");
    let rate = Some(Rate { iops: 8000.0, gaps: Gaps::Exponential });
    let load = Load { rate, ..load(&workload) };
    let text = of_load(&load, place, DIRECT, Logging::of(&load, 2).unwrap()).unwrap();
    let (global, sections) = text.split_once("[T4Q8-1]").unwrap();
    assert!(!global.contains("filename="), "{global}");
    assert!(global.contains("\nrate_iops=1000\n"), "8000 over two devices of four jobs: {global}");
    assert_eq!(
        sections,
        "\nfilename=/dev/nvme1n1\nnumjobs=4\n[T4Q8-2]\nfilename=/dev/nvme2n1\nnumjobs=4\n"
    );
    let fill = of_fill(place, DIRECT, FILL).unwrap();
    assert!(fill.ends_with("[fill-1]\nfilename=/dev/nvme1n1\n[fill-2]\nfilename=/dev/nvme2n1\n"));
}

#[test]
fn the_protocol_of_2021_stays_within_a_fifth_of_each_device() {
    let protocol = catalogue::find_protocol("enterprise-2021").unwrap();
    let plan = lab::plan::Plan::new(&protocol, &catalogue::workloads(), 1).unwrap().for_real(false);
    let group = ["/dev/nvme1n1", "/dev/nvme2n1"].map(PathBuf::from);
    let place = JobTarget { group: &group, capacity_bytes: 800 << 30, ..place("/dev/nvme1n1") };
    let is_load = |step: &&lab::plan::PlannedStep| step.threads > 0;
    for step in plan.steps.iter().filter(is_load) {
        let workload = step.workload.as_ref().unwrap();
        let load = Load { threads: step.threads, ..load(workload) };
        let text = of_load(&load, place, DIRECT, Logging::of(&load, 2).unwrap()).unwrap();
        let number = |key: &str| -> u64 {
            let mut lines = text.lines();
            let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
            value.map_or(0, |value| value.parse().unwrap())
        };
        let jobs = if number("offset_increment") > 0 { u64::from(step.threads) } else { 1 };
        let share = (number("size") * jobs) as f64 / (800_u64 << 30) as f64;
        assert!((0.1999..=0.2).contains(&share), "{}: {share}", step.id);
    }
}
