//! Reports as fio writes them, and what spoils one.

use results::{Bin, Run, Step, Summary};
use serde_json::{Value, json};

use super::*;

/// Of one job of reads and writes, with histograms: `json+`.
const WHOLE: &str = include_str!("tests/json-plus.json");
/// Of two jobs of one name, with histograms of total latency.
const RECORDED: &str = include_str!("../../../real/src/fio/tests/file-server/output.json");

fn import_bytes(bytes: &[u8]) -> Result<ImportedRun, Error> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("output.json");
    fs::write(&path, bytes).unwrap();
    import(&path, Some("Lab drive 7"))
}

fn import_text(text: &str) -> Result<ImportedRun, Error> {
    import_bytes(text.as_bytes())
}

/// The run that `text` is imported as.
fn run_of(text: &str) -> Run {
    let ImportedRun { plan, outcome, .. } = import_text(text).unwrap();
    outcome.into_run(&plan, "id".into(), "2026-11-21T10:15:03Z".into())
}

fn only(run: &Run) -> (&Step, &Summary) {
    let [step] = run.steps.as_slice() else { panic!("one step: {run:?}") };
    (step, step.summary.as_ref().unwrap())
}

fn report(text: &str) -> Report {
    document::read(text.as_bytes()).unwrap().report
}

fn warns(run: &Run, of: &str) -> bool {
    run.warnings.iter().any(|it| it.text.contains(of))
}

/// Error of a file that is not imported, with its remedy.
fn refusal(text: &str) -> String {
    let error = import_text(text).unwrap_err();
    assert_eq!(error.kind(), Kind::Input, "{error}");
    format!("{error}; {}", error.remedy())
}

/// Latencies that fio did not measure.
fn unmeasured() -> Value {
    json!({ "min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0 })
}

/// Latencies without percentiles or histograms.
fn plain(mean: f64, max: u64) -> Value {
    json!({ "min": 1000, "max": max, "mean": mean, "stddev": 10.0, "N": 100 })
}

/// One direction of 1000 requests of 4 KiB in a second.
fn direction(lat: &Value, clat: &Value) -> Value {
    json!({
        "io_bytes": 4_096_000, "total_ios": 1000, "iops": 1000.0, "runtime": 1000,
        "lat_ns": lat, "clat_ns": clat
    })
}

fn idle() -> Value {
    json!({
        "io_bytes": 0, "total_ios": 0, "iops": 0.0, "runtime": 0,
        "lat_ns": unmeasured(), "clat_ns": unmeasured()
    })
}

/// A job that read, with these options.
fn reading(options: &Value, read: &Value) -> Value {
    json!({
        "jobname": "reads", "groupid": 0, "error": 0, "elapsed": 3, "job options": options,
        "read": read, "write": idle(), "trim": idle()
    })
}

fn report_of(jobs: &[Value]) -> String {
    let written_ms = 1_795_863_864_057_u64;
    json!({ "fio version": "fio-3.33", "timestamp_ms": written_ms, "jobs": jobs }).to_string()
}

fn queued(depth: &str) -> Value {
    json!({ "rw": "randread", "bs": "4k", "direct": "1", "ioengine": "libaio", "iodepth": depth })
}

#[test]
fn a_recorded_report_becomes_a_run_with_its_totals() {
    let run = run_of(RECORDED);
    assert_eq!(run.target.title, "Lab drive 7");
    assert_eq!(run.imported_from(), Some("fio-3.33"));
    let (_, summary) = only(&run);
    let jobs = report(RECORDED).jobs;
    let all = |of: fn(&document::ReportedDirection) -> f64| -> f64 {
        jobs.iter().flat_map(|job| [&job.read, &job.write]).flatten().map(of).sum()
    };
    assert!((summary.latency.count as f64 - all(|it| it.total_ios as f64)).abs() < 0.5);
    assert!((summary.iops - all(|it| it.iops)).abs() < 1e-6, "{}", summary.iops);
    assert!(!warns(&run, "no histograms") && !warns(&run, "clat"), "{:?}", run.warnings);
    let latency = summary.latency;
    assert!(Some(latency.latency_ns_min) < latency.latency_ns_p50, "{latency:?}");
    assert!(latency.latency_ns_p50 < latency.latency_ns_p999, "{latency:?}");
    assert!(latency.latency_ns_p9999 <= latency.max_ns(), "{latency:?}");
}

#[test]
fn histograms_of_a_report_are_those_of_the_run() {
    let run = run_of(WHOLE);
    let (step, summary) = only(&run);
    let job = &report(WHOLE).jobs[0];
    let counted = |bins: &[Bin]| bins.iter().map(|bin| bin.count).sum::<u64>();
    let [read, write] = [&job.read, &job.write].map(|it| it.as_ref().unwrap());
    assert_eq!(counted(&step.read_bins), read.total_ios);
    assert_eq!(counted(&step.write_bins), write.total_ios);
    assert_eq!((step.threads, step.queue_per_thread), (1, 4));
    let fio = read.clat_ns.percentile["99.000000"] as f64;
    let ours = summary.read.latency_ns_p99.unwrap() as f64;
    assert!((ours / fio - 1.0).abs() < 0.02, "{ours} {fio}");
    assert!(!warns(&run, "no histograms"));
}

#[test]
fn a_report_without_histograms_has_the_higher_percentiles_and_says_so() {
    let mut value: Value = serde_json::from_str(WHOLE).unwrap();
    for direction in ["read", "write"] {
        let spread = value["jobs"][0][direction]["clat_ns"].as_object_mut().unwrap();
        assert!(spread.remove("bins").is_some(), "{direction}");
    }
    let run = run_of(&value.to_string());
    assert!(warns(&run, "the report has no histograms"), "{:?}", run.warnings);
    let latency = only(&run).1.latency;
    let job = &report(WHOLE).jobs[0];
    let fio =
        [&job.read, &job.write].map(|it| it.as_ref().unwrap().clat_ns.percentile["99.990000"]);
    assert!(fio[0] != fio[1], "{fio:?}");
    assert_eq!(latency.latency_ns_p9999, Some(fio[0].max(fio[1])));
}

#[test]
fn what_was_outstanding_is_what_the_report_counted() {
    let depth = |options: &Value, level: &str, mean: f64| {
        let mut job =
            reading(options, &direction(&plain(mean, 9_000_000), &plain(mean, 9_000_000)));
        job["iodepth_level"] = json!({ level: 99.9, "1": 0.1, "64": 0.0 });
        let run = run_of(&report_of(&[job]));
        let step = only(&run).0;
        (step.queue_per_thread, warns(&run, "the depth is taken from its figures"))
    };
    let psync = json!({ "rw": "randread", "bs": "4k", "direct": "1", "iodepth": "32" });
    assert_eq!(depth(&psync, "1", 980_000.0), (1, false), "fio's default engine is synchronous");
    assert_eq!(depth(&queued("32"), "32", 32e6), (32, false));
    assert_eq!(depth(&queued("32"), "1", 980_000.0), (1, true));
    assert_eq!(depth(&queued("32"), "4", 6e6), (6, true), "IOPS times latency, from 4 to 7");
}

#[test]
fn the_last_of_several_reports_counts() {
    let of = |iops: f64| {
        let mut read = direction(&plain(1e6, 2_000_000), &plain(1e6, 2_000_000));
        read["iops"] = json!(iops);
        report_of(&[reading(&queued("1"), &read)])
    };
    let text = format!("fio: a message\n{}\n{}\n{}", of(100.0), of(200.0), of(300.0));
    let run = run_of(&text);
    assert!((only(&run).1.iops - 300.0).abs() < 1e-9);
    assert!(warns(&run, "the file has 3 reports"), "{:?}", run.warnings);
    let cut = format!("{}\n{}", of(100.0), &of(200.0)[..150]);
    let run = run_of(&cut);
    assert!((only(&run).1.iops - 100.0).abs() < 1e-9);
    assert!(warns(&run, "the file ends within a report"), "{:?}", run.warnings);
}

#[test]
fn total_latency_stands_where_completion_latency_was_not_measured() {
    let read = direction(&plain(235_175.5, 48_721_966), &unmeasured());
    let run = run_of(&report_of(&[reading(&queued("1"), &read)]));
    let latency = only(&run).1.latency;
    assert_eq!((latency.mean_ns(), latency.max_ns()), (Some(235_175.5), Some(48_721_966)));
    assert_eq!((latency.p50_ns(), latency.p999_ns()), (None, None));
    let stored = serde_json::to_value(latency).unwrap();
    assert!(stored.get("latency_ns_p50").is_none(), "{stored}");
}

#[test]
fn latency_that_was_not_measured_is_no_zero() {
    let read = direction(&unmeasured(), &unmeasured());
    let run = run_of(&report_of(&[reading(&queued("1"), &read)]));
    let summary = only(&run).1;
    assert!((summary.iops - 1000.0).abs() < 1e-9);
    assert_eq!((summary.latency.mean_ns(), summary.latency.max_ns()), (None, None));
    assert!(warns(&run, "fio did not measure latency"), "{:?}", run.warnings);
    let stored = serde_json::to_value(summary.latency).unwrap();
    assert_eq!(stored, json!({ "count": 0 }));
    let again: results::LatencySummary = serde_json::from_value(stored).unwrap();
    assert_eq!(again, summary.latency);
}

#[test]
fn a_load_that_the_report_does_not_tell_is_unknown() {
    let mut job = reading(&Value::Null, &idle());
    job.as_object_mut().unwrap().remove("job options");
    job["write"] = direction(&plain(3_970_000.0, 9_000_000), &plain(3e6, 9_000_000));
    job["iodepth_level"] = json!({ "1": 0.1, "4": 99.9 });
    let imported = import_text(&report_of(&[job])).unwrap();
    assert_eq!(imported.plan.steps[0].workload, None);
    let run = imported.outcome.into_run(&imported.plan, "id".into(), String::new());
    let (step, summary) = only(&run);
    assert_eq!((step.id.as_str(), step.workload.as_str()), ("reads/unknown-load/T1Q4", ""));
    assert!((summary.iops_write - 1000.0).abs() < 1e-9 && summary.iops_read <= 0.0);
    assert!((summary.throughput_write_mb_s - 4.096).abs() < 1e-9);
    assert!(warns(&run, "its addresses, jobs and data are unknown"), "{:?}", run.warnings);
    let synced = json!({ "rw": "randwrite", "fsync": "1", "direct": "1", "ioengine": "libaio" });
    let read = direction(&plain(1e6, 2_000_000), &plain(1e6, 2_000_000));
    let imported = import_text(&report_of(&[reading(&synced, &read)])).unwrap();
    assert_eq!(imported.plan.steps[0].workload, None, "flushes are no part of a workload");
}

#[test]
fn jobs_of_several_clients_are_one_step_with_their_sum() {
    let job = |name: &str, group: u32, port: u32, iops: f64| {
        let mut read = direction(&plain(1e6, 2_000_000), &plain(1e6, 2_000_000));
        read["iops"] = json!(iops);
        let mut job = reading(&queued("8"), &read);
        job["jobname"] = json!(name);
        job["groupid"] = json!(group);
        job["hostname"] = json!("127.0.0.1");
        job["port"] = json!(port);
        job
    };
    let jobs = [
        job("one", 0, 8798, 13_573.7),
        job("one", 0, 8798, 12_849.6),
        job("two", 1, 8798, 5917.1),
        job("one", 0, 8799, 12_916.0),
        job("one", 0, 8799, 13_056.0),
        job("two", 1, 8799, 5846.8),
        job("All clients", 1, 8799, 52_395.3),
    ];
    let run = run_of(&report_of(&jobs));
    let rates: Vec<(u16, f64)> =
        run.steps.iter().map(|it| (it.threads, it.summary.as_ref().unwrap().iops)).collect();
    assert_eq!(run.target.devices, 2);
    assert_eq!((rates[0].0, rates[1].0, rates.len()), (2, 1, 2), "jobs of each host");
    assert!((rates[0].1 - 52_395.3).abs() < 1e-6 && (rates[1].1 - 11_763.9).abs() < 1e-6);
    assert!(!warns(&run, "a part of the drive's load"), "{:?}", run.warnings);
}

#[test]
fn trims_are_refused_alone_and_named_beside_others() {
    let mut trims = reading(&json!({ "rw": "randtrim" }), &idle());
    trims["trim"] = direction(&plain(471.0, 16_000_000), &plain(255.0, 16_000_000));
    let said = refusal(&report_of(&[trims.clone()]));
    assert!(said.contains("job reads: it made 1000 trims, and no reads or writes"), "{said}");
    trims["read"] = direction(&plain(1e6, 2_000_000), &plain(1e6, 2_000_000));
    let run = run_of(&report_of(&[trims]));
    assert!(warns(&run, "1000 trims, 1000 a second, ran beside"), "{:?}", run.warnings);
}

#[test]
fn a_run_begins_when_its_jobs_began_and_does_not_know_how_the_drive_was_prepared() {
    let read = direction(&plain(1e6, 2_000_000), &plain(1e6, 2_000_000));
    let text = report_of(&[reading(&queued("1"), &read)]);
    let begun = import_text(&text).unwrap().begun;
    assert_eq!(begun.as_deref(), Some("2026-11-28T11:04:21Z"), "three seconds before its end");
    assert!(warns(&run_of(&text), "does not say how the drive was prepared"));
}

#[test]
fn a_runtime_of_0_has_no_rates() {
    let mut read = direction(&plain(1e6, 2_000_000), &plain(1e6, 2_000_000));
    (read["runtime"], read["iops"]) = (json!(0), json!(0.0));
    let run = run_of(&report_of(&[reading(&queued("1"), &read)]));
    assert_eq!(run.steps[0].summary, None);
    assert!(warns(&run, "runtime of 0: no rate was measured"), "{:?}", run.warnings);
}

#[test]
fn byte_order_marks_and_utf_16_are_read() {
    let read = direction(&plain(1e6, 2_000_000), &plain(1e6, 2_000_000));
    let text = report_of(&[reading(&queued("1"), &read)]);
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for bytes in [
        [&[0xef, 0xbb, 0xbf], text.as_bytes()].concat(),
        [&[0xff, 0xfe], little.as_slice()].concat(),
        [&[0xfe, 0xff], big.as_slice()].concat(),
        little,
    ] {
        import_bytes(&bytes).unwrap();
    }
    let error = import_bytes(&[0xff, 0xfe, 0x00, 0xd8]).unwrap_err();
    assert!(error.to_string().ends_with("is no text in UTF-8 or UTF-16"), "{error}");
}

#[test]
fn what_is_no_report_is_refused_with_how_to_make_one() {
    for text in ["", "{}", "[1]", "jobs", &RECORDED[..RECORDED.len() / 2]] {
        let error = import_text(text).unwrap_err();
        assert_eq!(error.kind(), Kind::Input, "{error}");
        assert!(error.remedy().contains("json+"), "{}", error.remedy());
    }
}

#[test]
fn other_outputs_of_fio_are_refused_by_name() {
    let old = json!({ "fio version": "fio-2.15", "jobs": [] }).to_string();
    let mut mixed = reading(&queued("1"), &idle());
    mixed.as_object_mut().unwrap().remove("read");
    mixed.as_object_mut().unwrap().remove("write");
    mixed["mixed"] = idle();
    let mixed = report_of(&[mixed]);
    let normal = "x: (g=0): rw=read, bs=(R) 4096B-4096B, ioengine=psync, iodepth=1\nfio-3.33\n";
    for (text, named) in [
        (old.as_str(), "is a report of fio 2.15: 3.0 and later are read; measure again with fio 3"),
        (&mixed, "counts reads and writes as one (unified_rw_reporting)"),
        ("3;fio-3.33;a;0;0;1024;60235;15058;17;41\n", "is fio's terse output"),
        (normal, "is fio's normal output"),
        ("0, 151021, 0, 4096, 0\n0, 28723, 0, 4096, 0\n", "is a log of fio, such as of latency"),
        ("fio version 2 iolog\n/dev/sda add\n", "is an iolog of fio, not a report"),
        ("fio: server listening on 0.0.0.0,8765\n", "is what fio's server or client logs"),
        ("hostname=a, be=0, 64-bit, OS: Linux, arch: x86-64, fio=fio-3.33\n", "or client logs"),
    ] {
        let said = refusal(text);
        assert!(said.contains(named), "{said}");
    }
}

#[test]
fn a_report_of_a_job_that_failed_is_refused() {
    let text = RECORDED.replacen("\"error\": 0", "\"error\": 5", 1);
    assert_ne!(text, RECORDED);
    let error = import_text(&text).unwrap_err();
    assert!(error.to_string().ends_with(" failed"), "{error}");
}
