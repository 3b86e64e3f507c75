//! Folders and tables of sweeps.

use results::LatencySummary;
use results::sweep::{Dimension, Lifetime, LifetimeBasis, PointOutcome, SettledDrive, Value};

use super::super::{SweepOrder, THREADS, table};
use super::*;

fn order() -> SweepOrder {
    let values = [1.0, 2.0, 4.0].map(Value::Number).to_vec();
    SweepOrder {
        schema: SweepOrder::SCHEMA,
        model_version: ssd::MODEL_VERSION,
        id: String::new(),
        started_at: String::new(),
        drive: ssd::catalogue::text("iodrive-duo").unwrap().into(),
        format: "stock".into(),
        host: "linux".into(),
        time_lapse: Some(64),
        seed: 1,
        workload: workload::catalogue::find_workload("4k-rand-write").unwrap(),
        threads: 16,
        queue_per_thread: 16,
        repeat: 1,
        load_gb_per_day: None,
        dimensions: vec![Dimension { key: THREADS.into(), values }],
    }
}

fn settled() -> SettledDrive {
    SettledDrive {
        user_capacity_gb: 640.0,
        raw_capacity_gb: 800.0,
        over_provisioning_percent: Some(25.0),
        steady: true,
        host_limited: false,
        precondition_s: 9000.0,
        iops: 1234.5678,
        throughput_mb_s: 5.0,
        latency: LatencySummary { count: 1, latency_ns_p99: Some(42), ..LatencySummary::default() },
        spread: None,
        write_amplification: None,
        tier: None,
        lifetime: None,
        unit_prices: None,
    }
}

fn point(threads: f64, settled: SettledDrive) -> Point {
    let outcome = PointOutcome::Measured(Box::new(settled));
    Point { at: vec![Value::Number(threads)], outcome }
}

#[test]
fn points_that_were_kept_are_found_again_by_their_place_in_the_grid() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path(), order()).unwrap();
    assert!(store.finished().unwrap().is_empty());
    let point = point(4.0, settled());
    store.keep(2, &point).unwrap();
    let name = store.path().file_name().unwrap().to_string_lossy().into_owned();
    for asked in [name, store.path().to_string_lossy().into_owned()] {
        let again = Store::open(dir.path(), &asked).unwrap();
        assert_eq!(again.finished().unwrap(), [(2, point.clone())], "{asked}");
        assert_eq!(again.order(), store.order());
    }
}

#[test]
fn a_sweep_is_named_after_its_drive_and_knows_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path(), order()).unwrap();
    assert!(store.order().id.ends_with("-iodrive-duo-sweep"), "{}", store.order().id);
    assert!(!store.order().started_at.is_empty());
    let odd = SweepOrder { drive: "no drive".into(), ..order() };
    let store = Store::create(dir.path(), odd).unwrap();
    assert!(store.order().id.ends_with("-drive-sweep"), "a name at least");
}

#[test]
fn a_sweep_that_is_not_there_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let error = Store::open(dir.path(), "gone").unwrap_err();
    assert!(error.to_string().starts_with("no sweep `gone` in "), "{error}");
    assert_eq!(error.remedy(), "name the folder of the sweep");
}

#[test]
fn a_sweep_of_another_model_version_is_not_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let older = SweepOrder { model_version: 0, ..order() };
    let store = Store::create(dir.path(), older).unwrap();
    let error = Store::open(dir.path(), &store.path().to_string_lossy()).unwrap_err();
    assert!(error.to_string().contains("begun with schema 1 and model version 0"), "{error}");
    assert_eq!(error.remedy(), "begin a new sweep");
}

#[test]
fn a_torn_point_is_one_clear_error_and_a_stray_file_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path(), order()).unwrap();
    store.keep(0, &point(1.0, settled())).unwrap();
    fs::write(store.path().join("points/0099.json"), "beyond the grid").unwrap();
    assert_eq!(store.finished().unwrap().len(), 1);
    fs::write(store.path().join("points/0001.json"), "{").unwrap();
    let error = store.finished().unwrap_err();
    assert!(error.to_string().starts_with("understanding "), "{error}");
    assert!(error.to_string().ends_with("0001.json"), "{error}");
}

#[test]
fn a_finished_sweep_is_a_result_a_table_and_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path(), order()).unwrap();
    let sweep = store.order().sweep(vec![point(1.0, settled())]).unwrap();
    let page = store.finish(&sweep, "<html>").unwrap();
    assert_eq!(fs::read_to_string(page).unwrap(), "<html>");
    let json = fs::read_to_string(store.path().join("sweep.json")).unwrap();
    assert_eq!(serde_json::from_str::<Sweep>(&json).unwrap(), sweep);
    assert!(store.path().join("sweep.csv").is_file());
}

/// Cells of the table of these points by their heads.
fn cells(points: Vec<Point>) -> Vec<Vec<(String, String)>> {
    let sweep = order().sweep(points).unwrap();
    let text = table::csv(&sweep).unwrap();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let heads: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let rows = reader.records().map(|row| {
        let row = row.unwrap();
        heads.iter().cloned().zip(row.iter().map(str::to_owned)).collect()
    });
    rows.collect()
}

fn cell<'a>(row: &'a [(String, String)], head: &str) -> &'a str {
    let found = row.iter().find(|(name, _)| name == head);
    &found.unwrap_or_else(|| panic!("no {head}")).1
}

#[test]
fn the_table_has_what_was_swept_and_numbers_that_are_not_rounded() {
    let rows = cells(vec![point(4.0, settled())]);
    assert_eq!(cell(&rows[0], "swept threads"), "4");
    assert_eq!(cell(&rows[0], "iops"), "1234.5678");
    assert_eq!(cell(&rows[0], "latency_ns_p99"), "42");
    assert_eq!(cell(&rows[0], "steady"), "true");
    for unknown in ["write_amplification", "host_writes_pb", "lifetime_basis", "years"] {
        assert_eq!(cell(&rows[0], unknown), "", "{unknown}");
    }
}

#[test]
fn a_lifetime_is_told_with_its_basis() {
    let lifetime = |basis| Lifetime {
        basis,
        host_writes_pb: 1.5,
        drive_writes_per_day: None,
        years: Some(3.0),
        read_retries_at_end_of_life: Some(0.25),
    };
    let of = |basis| SettledDrive { lifetime: Some(lifetime(basis)), ..settled() };
    let points = vec![point(1.0, of(LifetimeBasis::Cycles)), point(2.0, of(LifetimeBasis::Rating))];
    let rows = cells(points);
    assert_eq!(cell(&rows[0], "lifetime_basis"), "cycles");
    assert_eq!(cell(&rows[1], "lifetime_basis"), "rating");
    assert_eq!(cell(&rows[0], "host_writes_pb"), "1.5");
    assert_eq!(cell(&rows[0], "drive_writes_per_day"), "");
    assert_eq!(cell(&rows[0], "years"), "3");
    assert_eq!(cell(&rows[0], "read_retries_at_end_of_life"), "0.25");
}

#[test]
fn an_infeasible_point_has_its_reason_and_nothing_else() {
    let reason = "spare, \"too\" small".to_owned();
    let outcome = PointOutcome::Infeasible { reason: reason.clone() };
    let rows = cells(vec![Point { at: vec![Value::Number(1.0)], outcome }]);
    assert_eq!(cell(&rows[0], "infeasible"), reason, "commas and quotes survive");
    assert!(rows[0][1..rows[0].len() - 1].iter().all(|(_, cell)| cell.is_empty()));
}

#[test]
fn a_point_beyond_the_grid_is_refused() {
    let error = order().measure(3, &lab::progress::SilentProgress).unwrap_err();
    assert_eq!(error.to_string(), "point 3 of a grid of 3");
    assert_eq!(error.remedy(), "points are counted from 0");
    let older = SweepOrder { model_version: 0, ..order() };
    let error = older.measure(0, &lab::progress::SilentProgress).unwrap_err();
    assert!(error.to_string().contains("model version 0"), "{error}");
}
