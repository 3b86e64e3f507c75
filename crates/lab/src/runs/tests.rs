//! Tests of run folders.

use std::sync::Mutex;

use results::{StepKind, TargetKind, WarningKind};
use workload::catalogue;

use super::*;
use crate::Driver;
use crate::driver::mock::{CommandLog, Mock};
use crate::driver::model::drivers;
use crate::progress::{Event, Progress, SilentProgress};
use crate::runner::{Assignment, carry_out};
use crate::subject::find_drive;
use crate::target::system::fixture::LoopDisk;

pub(super) fn plan() -> Plan {
    let protocol = catalogue::find_protocol("quick").unwrap();
    Plan::new(&protocol, &catalogue::workloads(), 1).unwrap()
}

pub(super) fn wanted(target: &str) -> TargetSetup {
    lapsed(target, 4096)
}

fn lapsed(drive: &str, time_lapse: u32) -> TargetSetup {
    TargetSetup {
        target: drive.into(),
        format: "stock".into(),
        host: "linux".into(),
        time_lapse,
        surroundings: ssd::Surroundings::default(),
        precision: None,
    }
}

pub(super) fn carry_on(folder: &Folder, progress: &dyn Progress) -> Outcome {
    let told = CommandLog::default();
    let drivers =
        || -> Result<Box<dyn Driver>, Error> { Ok(Box::new(Mock::new(TargetKind::File, &told))) };
    let assignment = Assignment {
        label: "",
        plan: &folder.order().plan,
        drivers: &drivers,
        step_store: folder,
        finished: folder.finished().unwrap(),
    };
    carry_out(&[assignment], 1, progress).unwrap().remove(0)
}

/// Stops when the first measured step is done.
#[derive(Default)]
struct StopAtMeasure(Mutex<bool>);

impl Progress for StopAtMeasure {
    fn moved(&self, event: &Event<'_>) {
        *self.0.lock().unwrap() |= event.step.kind == StepKind::Measure && event.step_finished;
    }

    fn stop(&self) -> bool {
        *self.0.lock().unwrap()
    }
}

#[test]
fn a_finished_run_is_found_by_path_name_and_beginning() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::new(dir.path());
    let folder = runs.create(plan(), wanted("mock")).unwrap();
    let run = folder.finish(carry_on(&folder, &SilentProgress)).unwrap();
    let path = folder.path().to_string_lossy().into_owned();
    for asked in [path.clone(), format!("{path}/run.json"), run.id.clone(), run.id[..12].into()] {
        assert!(runs.load(&asked).unwrap() == run, "{asked}");
    }
    assert!(run.id.ends_with("Z-mock-stock"));
    assert!(!folder.path().join(STEPS).exists());
}

#[test]
fn an_unreadable_result_is_one_clear_error() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::new(dir.path());
    let folder = runs.create(plan(), wanted("mock")).unwrap();
    folder.finish(carry_on(&folder, &SilentProgress)).unwrap();
    for text in ["{}", "{\"schema\": 99}", "\u{0}"] {
        fs::write(folder.path().join(RUN), text).unwrap();
        let refused = runs.load(&folder.order().id).unwrap_err();
        assert!(refused.to_string().starts_with("reading the run in "), "{refused}");
    }
}

#[test]
fn two_runs_of_one_second_get_folders_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::new(dir.path().join("runs"));
    let ids: Vec<String> =
        (0..3).map(|_| runs.create(plan(), wanted("mock")).unwrap().order().id.clone()).collect();
    assert_eq!(runs.names().len(), 3);
    assert!(ids[0] != ids[1] && ids[1] != ids[2]);
}

#[test]
fn an_interrupted_run_is_written_and_goes_on_with_the_next_step() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::new(dir.path());
    let folder = runs.create(plan(), wanted("mock")).unwrap();
    let cut = folder.finish(carry_on(&folder, &StopAtMeasure::default())).unwrap();
    assert!(cut.steps.len() < usize::try_from(cut.steps_planned).unwrap());
    assert!(cut.warnings.iter().any(|warning| warning.kind == WarningKind::Interrupted));

    let folder = runs.open(&cut.id).unwrap();
    let kept = folder.finished().unwrap();
    assert_eq!(kept.len(), cut.steps.len());
    let whole = folder.finish(carry_on(&folder, &SilentProgress)).unwrap();
    assert_eq!(whole.steps.len(), usize::try_from(whole.steps_planned).unwrap());
    assert_eq!(whole.id, cut.id);
    let measured = |run: &Run| {
        let mut steps = run.steps.iter();
        steps.find(|step| step.kind == StepKind::Measure).cloned().unwrap()
    };
    assert_eq!(measured(&whole), measured(&cut), "what was measured is kept");
    assert!(runs.open(&cut.id).unwrap_err().to_string().ends_with("it is finished"));
}

#[test]
fn a_folder_in_which_nothing_was_finished_can_be_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::new(dir.path());
    let empty = runs.create(plan(), wanted("empty")).unwrap();
    let begun = runs.create(plan(), wanted("begun")).unwrap();
    carry_on(&begun, &StopAtMeasure::default());
    assert!(!empty.give_up());
    assert!(begun.give_up(), "there is something to go on with");
    assert_eq!(runs.names(), [begun.order().id.clone()]);
}

#[test]
fn an_unknown_run_gets_the_nearest_name() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::new(dir.path());
    let none = runs.find("2026").unwrap_err();
    assert_eq!(none.remedy(), "`floatgate review iodrive-duo` makes one");
    let id = runs.create(plan(), wanted("mock")).unwrap().order().id.clone();
    let near = runs.find(&id.replace("mock", "mokc")).unwrap_err();
    assert_eq!(near.remedy(), format!("did you mean {id}?"));
}

#[test]
fn a_beginning_that_fits_several_runs_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::new(dir.path());
    for target in ["first", "second"] {
        runs.create(plan(), wanted(target)).unwrap();
    }
    assert!(runs.find("2").unwrap_err().to_string().contains("2 runs begin with that"));
}

#[test]
fn a_folder_that_cannot_be_made_is_one_clear_error() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let refused = Runs::new(&file).create(plan(), wanted("mock")).unwrap_err();
    assert_eq!(refused.kind(), Kind::Io);
    assert!(refused.to_string().starts_with("writing "), "{refused}");
}

#[test]
fn a_run_begun_by_another_model_version_is_not_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::new(dir.path());
    let folder = runs.create(plan(), wanted("mock")).unwrap();
    let older = Order { model_version: 0, ..folder.order().clone() };
    write_json(&folder.path().join(ORDER), &older).unwrap();
    let refused = runs.open(&older.id).unwrap_err();
    assert!(refused.to_string().contains("begun with model version 0"), "{refused}");
}

#[test]
fn the_bytes_of_a_result_do_not_depend_on_the_number_of_threads() {
    let spec = find_drive("iodrive-duo").unwrap();
    let wanted = lapsed("iodrive-duo", 64);
    let protocol = catalogue::find_protocol("enterprise").unwrap();
    let mut plan = Plan::new(&protocol, &catalogue::workloads(), 1).unwrap();
    for step in plan.steps.iter_mut().filter(|step| step.kind != StepKind::Purge) {
        (step.ramp_s, step.duration_s, step.interval_s, step.round_s) = (0.1, 0.4, 0.2, 0.2);
    }
    let bytes = |threads| {
        let drivers = drivers(&spec, &wanted, plan.seed).unwrap();
        let assignment = Assignment {
            label: "",
            plan: &plan,
            drivers: drivers.as_ref(),
            step_store: &crate::runner::NoStepStore,
            finished: Vec::new(),
        };
        let outcome = carry_out(&[assignment], threads, &SilentProgress).unwrap().remove(0);
        let records = outcome.records.clone();
        let run = outcome.into_run(&plan, "id".into(), "1970-01-01T00:00:00Z".into());
        (run.to_json().unwrap(), records)
    };
    assert!(bytes(1) == bytes(2));
}

#[test]
fn a_run_that_is_resumed_on_a_device_without_an_identifier_says_so() {
    let Some(disk) = LoopDisk::new() else { return };
    let root = tempfile::TempDir::new().unwrap();
    let runs = Runs::new(root.path());
    let target = disk.node().display().to_string();
    let wanted = TargetSetup::of_real(target, String::new());
    let folder = runs.create(plan(), wanted).unwrap();
    let id = folder.order().id.clone();
    drop(folder);
    let folder = runs.open(&id).unwrap();
    let outcome = carry_on(&folder, &SilentProgress);
    let run = folder.finish(outcome).unwrap();
    let told = run.warnings.iter().find(|it| it.text.starts_with("the run was resumed")).unwrap();
    assert!(told.text.contains(&format!("identifies {}:", disk.node().display())), "{told:?}");
}
