//! A recorded report, and what spoils one.

use super::*;

/// Of one job of reads and writes, with histograms: `json+`.
const WHOLE: &str = include_str!("tests/json-plus.json");
/// Of two jobs of one name, with histograms of total latency.
const RECORDED: &str = include_str!("../real/fio/tests/file-server/output.json");

fn import_text(text: &str) -> Result<Imported, Error> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("output.json");
    fs::write(&path, text).unwrap();
    import(&path, Some("Lab drive 7"))
}

#[test]
fn a_recorded_report_becomes_a_run_with_its_totals() {
    let Imported { plan, outcome, .. } = import_text(RECORDED).unwrap();
    let run = outcome.into_run(&plan, "id".into(), "2026-11-21T10:15:03Z".into());
    assert_eq!(run.target.title, "Lab drive 7");
    let [step] = run.steps.as_slice() else { panic!("two jobs of one name are one: {run:?}") };
    let summary = step.summary.as_ref().unwrap();
    let report = parsed(RECORDED).unwrap();
    let ios: u64 = report.jobs.iter().map(|job| job.read.total_ios + job.write.total_ios).sum();
    assert_eq!(summary.latency.count, ios);
    let iops: f64 = report.jobs.iter().map(|job| job.read.iops + job.write.iops).sum();
    assert!((summary.iops - iops).abs() < 1e-6, "{} {iops}", summary.iops);
    let lacks = |text: &str| text.contains("no histograms") || text.contains("clat");
    assert!(!run.warnings.iter().any(|it| lacks(&it.text)), "{:?}", run.warnings);
    let latency = summary.latency;
    assert!(latency.latency_ns_min < latency.latency_ns_p50, "{latency:?}");
    assert!(latency.latency_ns_p50 < latency.latency_ns_p999, "{latency:?}");
    assert!(latency.latency_ns_p9999 <= latency.latency_ns_max, "{latency:?}");
}

#[test]
fn histograms_of_a_report_are_those_of_the_run() {
    let Imported { plan, outcome, .. } = import_text(WHOLE).unwrap();
    let run = outcome.into_run(&plan, "id".into(), "2026-11-21T10:15:03Z".into());
    let [step] = run.steps.as_slice() else { panic!("one job: {run:?}") };
    let job = &parsed(WHOLE).unwrap().jobs[0];
    let counted = |bins: &[Bin]| bins.iter().map(|bin| bin.count).sum::<u64>();
    assert_eq!(counted(&step.read_bins), job.read.total_ios);
    assert_eq!(counted(&step.write_bins), job.write.total_ios);
    assert_eq!((step.threads, step.queue_per_thread), (1, 4));
    let summary = step.summary.as_ref().unwrap();
    let fio = job.read.clat_ns.percentile["99.000000"] as f64;
    let ours = summary.read.latency_ns_p99 as f64;
    assert!((ours / fio - 1.0).abs() < 0.02, "{ours} {fio}");
    assert!(!run.warnings.iter().any(|it| it.text.contains("no histograms")));
}

#[test]
fn a_report_without_histograms_has_the_higher_percentiles_and_says_so() {
    let mut report: serde_json::Value = serde_json::from_str(WHOLE).unwrap();
    for direction in ["read", "write"] {
        let spread = report["jobs"][0][direction]["clat_ns"].as_object_mut().unwrap();
        assert!(spread.remove("bins").is_some(), "{direction}");
    }
    let Imported { plan, outcome, .. } = import_text(&report.to_string()).unwrap();
    let run = outcome.into_run(&plan, "id".into(), "2026-11-21T10:15:03Z".into());
    let without = "the report has no histograms";
    assert!(run.warnings.iter().any(|it| it.text.starts_with(without)), "{:?}", run.warnings);
    let latency = run.steps[0].summary.as_ref().unwrap().latency;
    let job = &parsed(WHOLE).unwrap().jobs[0];
    let fio = [&job.read, &job.write].map(|it| it.clat_ns.percentile["99.990000"]);
    assert!(fio[0] != fio[1], "{fio:?}");
    assert_eq!(latency.latency_ns_p9999, fio[0].max(fio[1]));
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
fn a_report_of_a_job_that_failed_is_refused() {
    let text = RECORDED.replacen("\"error\": 0", "\"error\": 5", 1);
    assert_ne!(text, RECORDED);
    let error = import_text(&text).unwrap_err();
    assert!(error.to_string().ends_with(" failed"), "{error}");
}
