//! Simulations that rows need: each once, in the setup that the row is about.

use lab::driver::mock::{CommandLog, Mock};
use lab::progress::{Event, SilentProgress};

use super::super::plans;
use super::super::tests::rows;
use super::*;

fn work_list(lines: &[&str]) -> WorkList {
    let (rows, drives) = (rows(lines), ssd::catalogue::drives());
    WorkList::new(&rows.iter().collect::<Vec<_>>(), &drives, &plans().unwrap())
}

fn setups(list: &WorkList) -> Vec<String> {
    list.jobs().iter().map(|job| job.setup.to_string()).collect()
}

fn loads(plan: &Plan) -> Vec<&str> {
    let measured = plan.steps.iter().filter(|step| step.threads > 0);
    measured.map(|step| step.id.as_str()).collect()
}

const PRIMARY: &str = "640,stock,linux,4k-rand-write,16,16,primary,iops,1,1";

#[test]
fn no_rows_need_no_simulation() {
    let list = work_list(&[]);
    assert!(list.jobs().is_empty() && list.entries().is_empty());
    assert_eq!(list.values(&[], 1, &SilentProgress).unwrap(), []);
}

#[test]
fn rows_of_one_step_share_its_simulation_and_other_steps_are_left_out() {
    let list = work_list(&[
        PRIMARY,
        "640,stock,linux,4k-rand-write,16,16,primary,avg_latency_ms,1,1",
        "640,stock,linux,4k-rand-write,16,16,burst,iops,1,1",
    ]);
    let [job] = list.jobs() else { panic!("{:?}", setups(&list)) };
    assert_eq!(loads(&job.plan), ["4k/precondition", "4k/4k-rand-write/T16Q16"]);
    let needs: Vec<(&str, Part)> =
        list.needs(0).into_iter().map(|(step, part)| (step.id.as_str(), part)).collect();
    let expected = [("4k/4k-rand-write/T16Q16", Part::Whole), ("4k/precondition", Part::Burst)];
    assert_eq!(needs, expected, "each need once");
}

#[test]
fn another_format_or_another_host_is_another_simulation() {
    let list = work_list(&[
        PRIMARY,
        "640,high-performance,linux,4k-rand-write,16,16,primary,iops,1,1",
        "640,stock,windows,4k-rand-write,16,16,primary,iops,1,1",
        "640,any,any,4k-rand-write,16,16,primary,iops,1,1",
    ]);
    let mut found = setups(&list);
    found.sort();
    let expected = [
        "iodrive-duo high-performance linux",
        "iodrive-duo stock linux",
        "iodrive-duo stock windows",
    ];
    assert_eq!(found, expected, "for any format or host the first stands");
    let entries: Vec<String> =
        list.entries().iter().map(|it| it.as_ref().unwrap().setup.to_string()).collect();
    assert_eq!(entries[3], entries[0]);
}

#[test]
fn the_protocol_names_the_host_of_rows_that_state_none() {
    let list = work_list(&["640,stock,any,iometer-4k-rand-read,4,8,burst,iops,1,1"]);
    assert_eq!(setups(&list), ["iodrive-duo stock windows"]);
}

#[test]
fn a_row_that_cannot_be_compared_leaves_the_places_of_the_others() {
    let list = work_list(&["640,turbo,linux,4k-rand-write,16,16,primary,iops,1,1", PRIMARY]);
    let [refused, found] = list.entries() else { panic!("one for each row") };
    assert_eq!(refused.as_ref().unwrap_err(), "the model has no format `turbo`");
    assert_eq!((found.as_ref().unwrap().protocol.as_str(), list.jobs().len()), ("enterprise", 1));
    let blank = list.read(&[unmeasured(&list)]);
    assert_eq!(blank, [None, None], "nothing was measured yet");
}

/// The run of the only job of `list` in which nothing was measured.
fn unmeasured(list: &WorkList) -> Run {
    let outcome = lab::runner::Outcome {
        target: Mock::new(results::TargetKind::Model, &CommandLog::default()).target(),
        environment: results::Environment::default(),
        records: Vec::new(),
        interrupted: false,
        spared: 0,
    };
    outcome.into_run(&list.jobs()[0].plan, String::new(), String::new())
}

#[test]
fn a_range_of_loads_is_one_row_of_many_loads() {
    let list = work_list(&["640,stock,linux,8k-70-30,2-16,2-16,primary,iops,1,1", PRIMARY]);
    let loads: Vec<usize> = list.entries().iter().map(|it| it.as_ref().unwrap().loads()).collect();
    assert_eq!(loads, [16, 1]);
}

#[test]
fn data_that_a_mode_describes_is_that_of_the_first_format() {
    let spec = ssd::catalogue::find("iodrive-duo").unwrap();
    let of = |mode: &str| {
        let line = PRIMARY.replace("stock", mode);
        format(&rows(&[&line])[0], &spec)
    };
    assert_eq!(of("any"), Ok("stock".to_owned()));
    assert_eq!(of("high-performance"), Ok("high-performance".to_owned()));
    assert_eq!(of("maximum"), Err("the model has no format `maximum`".to_owned()));
}

#[test]
fn a_drive_that_is_not_among_those_to_simulate_is_named() {
    let error = work_list(&[PRIMARY]).values(&[], 1, &SilentProgress).unwrap_err();
    assert_eq!(error.kind(), Kind::Program);
    let source = std::error::Error::source(&error).map(ToString::to_string);
    let said = source.unwrap_or_else(|| error.to_string());
    assert!(said.ends_with("no drive named iodrive-duo to simulate"), "{said}");
}

/// Wants everything to end at once.
struct Impatient;

impl Progress for Impatient {
    fn moved(&self, _: &Event<'_>) {}

    fn stop(&self) -> bool {
        true
    }
}

#[test]
fn a_comparison_that_was_stopped_is_no_comparison() {
    let drives = ssd::catalogue::drives();
    let error = work_list(&[PRIMARY]).values(&drives, 1, &Impatient).unwrap_err();
    assert_eq!(error.to_string(), "stopped before all rows were compared");
}

#[test]
fn a_maker_measures_on_a_host_that_never_sleeps() {
    let list = work_list(&[PRIMARY, "640,stock,linux,64k-read,,,datasheet,mb_s,1500,1500"]);
    let mut spec = ssd::catalogue::find("iodrive-duo").unwrap();
    let said_us = 40.0;
    spec.hosts.iter_mut().for_each(|host| host.wake_us = said_us);
    for job in list.jobs() {
        let is_sheet = job.plan.protocol == "datasheet";
        let mut driver = model(std::slice::from_ref(&spec), job).unwrap();
        let workload = workload::catalogue::find_workload("4k-rand-read").unwrap();
        let load = lab::Load {
            step: "wake",
            workload: &workload,
            threads: 1,
            queue_per_thread: 1,
            ramp_s: 0.0,
            duration_s: 3.2,
            interval_s: 3.2,
            rate: None,
            replay: None,
            seed: 1,
        };
        let loaded = driver.load(&load, &mut lab::driver::SilentWatch).unwrap();
        let latency_us = results::Summary::of(&loaded.intervals).latency.latency_ns_avg / 1e3;
        // Nothing was written: a read takes the host and the link alone.
        assert_eq!(latency_us < said_us, is_sheet, "{}: {latency_us}", job.plan.protocol);
    }
}

#[test]
fn a_maker_rates_a_drive_on_a_host_that_bounds_nothing_but_what_runs_on_it() {
    let host = |name: &str| as_rated(&ssd::catalogue::find(name).unwrap()).hosts[0].clone();
    let with_controller = host("csd-3000-7680");
    assert!(with_controller.wake_us.abs() < 1e-9 && with_controller.serial_us.abs() < 1e-9);
    let managed_by_driver = host("px600-2600");
    assert!(managed_by_driver.wake_us.abs() < 1e-9 && managed_by_driver.serial_us > 0.1);
}
