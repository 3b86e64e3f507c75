//! Whole sweeps of a small drive: what spare does, what an interruption leaves, what cannot be.

use std::sync::atomic::{AtomicUsize, Ordering};

use lab::progress::{Event, Progress, SilentProgress};
use lab::results::sweep::{Point, PointOutcome, SettledDrive, Sweep};
use lab::ssd::{MODEL_VERSION, catalogue};
use lab::workload::catalogue::find_workload;
use study::sweep::{Store, SweepOrder, USER_CAPACITY, dimension};

/// A sweep of an ioDrive Duo over user capacities at a scale at which it takes moments; at 256 it
/// holds 570 GB at most.
fn order(capacities: &str, time_lapse: u32) -> SweepOrder {
    let swept = dimension::dimension(USER_CAPACITY, capacities, dimension::plain);
    SweepOrder {
        schema: SweepOrder::SCHEMA,
        model_version: MODEL_VERSION,
        id: String::new(),
        started_at: String::new(),
        drive: catalogue::text("iodrive-duo").expect("the catalogue has it").into(),
        format: "stock".into(),
        host: "linux".into(),
        time_lapse: Some(time_lapse),
        seed: 1,
        workload: find_workload("4k-rand-write").expect("the catalogue has it"),
        threads: 16,
        queue_per_thread: 16,
        repeat: 1,
        load_gb_per_day: None,
        dimensions: vec![swept.expect("capacities are numbers")],
    }
}

fn swept(order: &SweepOrder) -> Sweep {
    order.carry_out(&[], 2, &SilentProgress, &|_, _| Ok(())).expect("a model does not fail")
}

/// Stops when so many points are done.
struct StopAfter(AtomicUsize);

impl Progress for StopAfter {
    fn moved(&self, event: &Event<'_>) {
        if event.step_finished {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn stop(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

#[test]
fn with_spare_the_settled_rate_rises_and_write_amplification_falls() {
    let sweep = swept(&order("480..680/3", 128));
    let settled: Vec<&SettledDrive> = sweep.points.iter().filter_map(Point::settled).collect();
    assert_eq!(settled.len(), 3);
    assert!(settled.iter().all(|point| point.steady));
    assert!(settled.windows(2).all(|pair| pair[0].iops > pair[1].iops * 1.1));
    let amplification = |point: &SettledDrive| point.write_amplification.expect("it was written");
    assert!(settled.windows(2).all(|pair| amplification(pair[0]) * 1.1 < amplification(pair[1])));
    let lasting =
        |point: &SettledDrive| point.lifetime.expect("its cycles are known").host_writes_pb;
    assert!(settled.windows(2).all(|pair| lasting(pair[0]) > lasting(pair[1])));
}

#[test]
fn a_capacity_that_leaves_no_spare_is_a_point_that_says_so() {
    let sweep = swept(&order("500,790", 256));
    assert!(matches!(sweep.points[0].outcome, PointOutcome::Measured(_)));
    let PointOutcome::Infeasible { reason } = &sweep.points[1].outcome else { panic!() };
    assert!(reason.contains("kept for relocation"), "{reason}");
}

#[test]
fn an_interrupted_sweep_goes_on_to_the_same_result() {
    let root = tempfile::tempdir().expect("a folder");
    let store = Store::create(root.path(), order("400,440,480", 256)).expect("it can be made");
    let keep = |index: usize, point: &Point| store.keep(index, point);
    let stop = StopAfter(AtomicUsize::new(1));
    let cut = store.order().carry_out(&[], 1, &stop, &keep).expect("being stopped is no error");
    assert_eq!(cut.points.len(), 1);

    let name = store.path().file_name().expect("it has a name").to_string_lossy().into_owned();
    let again = Store::open(root.path(), &name).expect("it is there");
    let finished = again.finished().expect("the point is readable");
    assert_eq!(finished.len(), 1);
    let whole =
        again.order().carry_out(&finished, 2, &SilentProgress, &|_, _| Ok(())).expect("it goes on");
    assert_eq!(whole.points, swept(&order("400,440,480", 256)).points);

    again.finish(&whole, "<html>").expect("it can be written");
    let table = std::fs::read_to_string(again.path().join("sweep.csv")).expect("a table");
    assert_eq!(table.lines().count(), 4);
    let head = "swept user_capacity_gb,user_capacity_gb,over_provisioning_percent,steady,iops,";
    assert!(table.starts_with(head), "{table}");
}

#[test]
fn a_sweep_that_is_not_there_is_one_clear_error() {
    let root = tempfile::tempdir().expect("a folder");
    let error = Store::open(root.path(), "2026-none").expect_err("there is none");
    assert!(error.to_string().starts_with("no sweep `2026-none` in "), "{error}");
}
