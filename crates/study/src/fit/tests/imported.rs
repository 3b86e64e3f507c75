//! The path of the guide with a drive of the catalogue: what fio would report of it, a run imported
//! from that, a twin fitted to the run.

use blockio::Nanos;
use lab::driver::SilentWatch;
use lab::{Fill, Load};
use results::{LatencySummary, Summary};
use serde_json::{Value, json};

use super::*;

/// A load: its workload, threads and queue depth.
type LoadCase = (&'static str, u16, u16);

/// Loads whose reports are imported, with fio's direction and size.
const IMPORTED: [(LoadCase, &str, &str); 5] = [
    (("4k-rand-read", 1, 1), "randread", "4k"),
    (("4k-rand-read", 16, 16), "randread", "4k"),
    (("4k-rand-write", 1, 1), "randwrite", "4k"),
    (("4k-rand-write", 16, 16), "randwrite", "4k"),
    (("8k-70-30", 4, 4), "randrw", "8k"),
];
/// Loads that are not.
const PREDICTED: [LoadCase; 6] = [
    ("4k-rand-read", 2, 4),
    ("4k-rand-read", 8, 4),
    ("4k-rand-write", 2, 2),
    ("4k-rand-write", 8, 8),
    ("8k-70-30", 1, 2),
    ("8k-70-30", 16, 8),
];

/// Length of a load, in protocol seconds: with few requests outstanding a rare stall of the host is
/// a large part of a short one.
fn length_s((_, threads, queue_per_thread): LoadCase) -> f64 {
    if threads * queue_per_thread <= 8 { 60.0 } else { 10.0 }
}

/// Figures of the drive of `text`, all of which was written once in order before.
fn measured(text: &str, asked: LoadCase, seed: u64) -> Summary {
    let (name, threads, queue_per_thread) = asked;
    let spec = DriveSpec::parse(text, "duo.toml").unwrap();
    let (format, host) = ("stock".to_owned(), "linux".to_owned());
    let time_lapse = spec.time_lapse_default();
    let mut model = Model::new(spec, ssd::Setup { format, host, time_lapse, seed }).unwrap();
    let fill = catalogue::find_workload("128k-seq-write").unwrap();
    let workload = catalogue::find_workload(name).unwrap();
    model.purge().unwrap();
    model.fill(&Fill { step: "fill", workload: &fill, passes: 1 }, &mut SilentWatch).unwrap();
    let load = Load {
        step: "load",
        workload: &workload,
        threads,
        queue_per_thread,
        ramp_s: 0.0,
        duration_s: length_s(asked),
        interval_s: length_s(asked),
        rate: None,
        replay: None,
        seed,
    };
    Summary::of(&model.load(&load, &mut SilentWatch).unwrap().intervals)
}

/// One direction of a report of fio.
fn direction(latency: &LatencySummary, bytes: u64, (iops, span_s): (f64, f64)) -> Value {
    let told = json!({
        "min": latency.latency_ns_min, "max": latency.latency_ns_max,
        "mean": latency.latency_ns_avg, "stddev": latency.latency_ns_stdev, "N": latency.count
    });
    json!({
        "io_bytes": latency.count * bytes, "total_ios": latency.count, "iops": iops,
        "runtime": Nanos::from_secs_f64(span_s).0 / 1_000_000, "lat_ns": told, "clat_ns": told
    })
}

/// The report that fio writes of the loads on the drive of `text`.
fn report(text: &str) -> String {
    let job = |(asked, rw, size): &(LoadCase, &str, &str)| {
        let it = measured(text, *asked, 7);
        let bytes = if *size == "8k" { 8192 } else { 4096 };
        let span_s = length_s(*asked);
        let nothing = direction(&LatencySummary::default(), bytes, (0.0, span_s));
        json!({
            "jobname": format!("{}-{}", asked.0, asked.1), "groupid": 0, "error": 0, "elapsed": 1,
            "job options": {
                "rw": rw, "bs": size, "direct": "1", "ioengine": "io_uring", "rwmixread": "70",
                "numjobs": asked.1.to_string(), "iodepth": asked.2.to_string(),
                "norandommap": "1", "group_reporting": "1"
            },
            "read": direction(&it.read, bytes, (it.iops_read, span_s)),
            "write": direction(&it.write, bytes, (it.iops_write, span_s)),
            "trim": nothing
        })
    };
    let jobs: Vec<Value> = IMPORTED.iter().map(job).collect();
    json!({ "fio version": "fio-3.42", "timestamp_ms": 1, "jobs": jobs }).to_string()
}

#[test]
fn a_twin_of_an_imported_report_reproduces_loads_that_were_not_imported() {
    let (root, truth) = (TempDir::new().unwrap(), DUO.to_owned());
    let path = root.path().join("output.json");
    std::fs::write(&path, report(&truth)).unwrap();
    let imported = lab::fio_report::import(&path, Some("Lab drive")).unwrap();
    let run = imported.outcome.into_run(&imported.plan, "id".into(), String::new());

    let changes = [
        ("\nread_us = 9.6", "\nread_us = 14"),
        ("\nwrite_us = 6.9", "\nwrite_us = 11"),
        ("\nt_read_us = 50", "\nt_read_us = 80"),
    ];
    let away = changes.iter().fold(truth.clone(), |text, (from, to)| {
        assert!(text.contains(from), "{from} is not there");
        text.replacen(from, to, 1)
    });
    let spec = DriveSpec::parse(&away, "duo.toml").unwrap();
    let evidence = Evidence::of_run(&spec, &run, imported.plan);
    let open = [
        free("controller.read_us", 4.0, 20.0),
        free("controller.write_us", 3.0, 14.0),
        free("nand.t_read_us", 25.0, 120.0),
    ];
    let fit = fitted_to(&evidence, &away, &open).unwrap();
    let assumed = fit.assumed.as_deref().unwrap_or_default();
    assert!(assumed.contains("all of it was written once, in order"), "{assumed}");
    let fixed_by = |axis: usize| fit.parameters[axis].fixed_by[0].as_str();
    assert_eq!(fixed_by(2), "4k-rand-read T1Q1", "one read at a time waits for the media");
    let errors = |asked: &LoadCase, texts: &[&str]| -> Vec<f64> {
        let it = measured(&truth, *asked, 11);
        let mean = |it: &Summary| it.latency.latency_ns_avg;
        let of = |text: &&str| {
            let twin = measured(text, *asked, 12);
            [twin.iops / it.iops - 1.0, mean(&twin) / mean(&it) - 1.0]
        };
        texts.iter().flat_map(of).collect()
    };
    let [first, others @ ..] = &PREDICTED;
    let both = errors(first, &[&fit.drive, &away]);
    assert!(both[2..].iter().any(|error| error.abs() > 0.1), "it had to be fitted: {both:?}");
    let others = others.iter().flat_map(|asked| errors(asked, &[&fit.drive]));
    let found: Vec<f64> = both[..2].iter().copied().chain(others).collect();
    assert!(found.iter().all(|error| error.abs() < 0.05), "{found:?} {:?}", fit.parameters);
    assert_eq!(found.len(), 12);
}
