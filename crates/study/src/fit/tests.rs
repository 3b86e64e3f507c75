//! Tests of fits, on a drive so small that it settles in a second.

use lab::Driver;
use lab::driver::mock::tiny_drive_text;
use lab::driver::model::Model;
use lab::progress::Event;
use lab::runner::{Assignment, carry_out};
use lab::runs::Runs;
use lab::wanted::TargetSetup;
use results::StepKind;
use results::published::{FigureRow, parse};
use tempfile::TempDir;
use workload::catalogue;

use super::figures::rows_of;
use super::*;

mod imported;

const DUO: &str = include_str!("../../../../drives/iodrive-duo.toml");
const HEAD: &str = "id,document,device,capacity_gb,mode,os,workload,threads,queue_per_thread,phase,\
                    metric,value_low,value_high,confidence,note\n";
/// Workload, load, phase and metric of figures that tell of all that the tests leave open.
const TOLD: [&str; 7] = [
    "4k-rand-write,16,16,burst,iops",
    "4k-rand-write,16,16,steady,iops",
    "4k-rand-write,16,16,steady,avg_latency_ms",
    "4k-rand-write,16,16,primary,iops",
    "4k-rand-read,16,16,primary,iops",
    "8k-70-30,16,16,steady,iops",
    "8k-70-30,2,4,primary,iops",
];

pub(super) struct Silent;

impl Progress for Silent {
    fn moved(&self, _: &Event<'_>) {}

    fn stop(&self) -> bool {
        false
    }
}

impl Watcher for Silent {
    fn searched(&self, _: usize, _: f64) {}
}

/// The enterprise protocol in seconds.
pub(super) fn plan() -> Plan {
    let protocol = catalogue::find_protocol("enterprise").unwrap();
    let mut plan = Plan::new(&protocol, &catalogue::workloads(), 1).unwrap();
    for step in &mut plan.steps {
        (step.ramp_s, step.duration_s, step.interval_s) = match step.kind {
            StepKind::Precondition => (0.0, 9.0, 0.05),
            _ => (0.1, 0.6, 0.2),
        };
        step.round_s = 0.5;
    }
    plan
}

/// Rows about the drive, given from `mode` to `value_high`.
pub(super) fn table(lines: &[String]) -> (String, Vec<FigureRow>) {
    let line = |(index, line): (usize, &String)| {
        format!("R{index},a review,Fusion-io ioDrive Duo MLC,640,{line},exact,\n")
    };
    let text = HEAD.to_owned() + &lines.iter().enumerate().map(line).collect::<String>();
    let rows = parse(&text, "figures.csv").unwrap();
    (text, rows)
}

/// Simulates the drive of `text` and returns its figures.
fn told_by(text: &str) -> Vec<FigureRow> {
    let blank: Vec<String> = TOLD.iter().map(|told| format!("stock,linux,{told},1,1")).collect();
    let (_, mut rows) = table(&blank);
    let spec = DriveSpec::parse(text, "tiny.toml").unwrap();
    let (drives, plans) = ([spec], [plan()]);
    let work_list = WorkList::new(&rows.iter().collect::<Vec<_>>(), &drives, &plans);
    let values = work_list.values(&drives, 2, &Relay(&Silent)).unwrap();
    for (row, value) in rows.iter_mut().zip(values) {
        (row.value_low, row.value_high) = (value, value);
    }
    rows
}

fn fitted(text: &str, rows: &[FigureRow], free: &[Free], swarm: usize) -> Result<Fit, Error> {
    let (rows, plans) = (rows.iter().collect::<Vec<_>>(), [plan()]);
    asked(text, Question { rows: &rows, plans: &plans, free, swarm, ..question() })
}

fn fitted_to(run: &Evidence, text: &str, free: &[Free]) -> Result<Fit, Error> {
    let (rows, published) = (run.table.iter().collect::<Vec<_>>(), run.published.as_ref());
    let assumed = run.assumed.as_deref();
    asked(text, Question { rows: &rows, plans: &run.plans, free, published, assumed, ..question() })
}

fn question() -> Question<'static> {
    Question {
        free: &[],
        rows: &[],
        evidence: "figures.csv",
        assumed: None,
        format: None,
        plans: &[],
        published: None,
        swarm: 0,
        seed: 1,
        threads: 2,
    }
}

/// The answer to `question` about a file with `text`.
fn asked(text: &str, question: Question<'_>) -> Result<Fit, Error> {
    fit(&DriveFile::parse(text, "tiny.toml")?, question, &Silent)
}

fn free(path: &str, low: f64, high: f64) -> Free {
    Free { path: path.into(), bounds: Some((low, high)) }
}

#[test]
fn numbers_are_found_again_from_what_the_drive_itself_did() {
    let rows = told_by(&tiny_drive_text());
    let changes = [
        ("relocate_us = 21.9", "relocate_us = 30"),
        ("\nread_us = 9.6", "\nread_us = 7"),
        ("\nwrite_us = 6.9", "\nwrite_us = 9"),
    ];
    let away =
        changes.iter().fold(tiny_drive_text(), |text, (from, to)| text.replacen(from, to, 1));
    let open = [
        free("controller.relocate_us", 10.0, 50.0),
        free("controller.read_us", 4.0, 20.0),
        free("controller.write_us", 3.0, 14.0),
        free("link.read_mb_s", 2000.0, 5000.0),
    ];
    let fit = fitted(&away, &rows, &open, 0).unwrap();
    for (found, truth) in fit.parameters.iter().zip([21.9, 9.6, 6.9]) {
        assert!((found.value / truth - 1.0).abs() < 0.05, "{truth}: {found:?}");
        assert!(!found.undetermined, "{found:?}");
    }
    let link = &fit.parameters[3];
    assert!(link.undetermined && (link.value - 3200.0).abs() < 30.0, "{link:?}");
    assert!(fit.verified && fit.figures.iter().all(|it| it.within == Some(true)), "{fit:?}");
    assert!(fit.left_out_rate_error_median.unwrap() < 0.12, "{fit:?}");
    let spec = DriveSpec::parse(&fit.drive, "twin.toml").unwrap();
    let source = &spec.controller.source;
    assert!(source.starts_with("derived: relocate_us, read_us, write_us fitted to 7"), "{source}");
    assert!(spec.link.source.starts_with("derived: PCIe"), "{}", spec.link.source);
}

/// Figures of a run of the drive of `text`, written to a folder and read back.
fn measured_by(text: &str) -> Evidence {
    let root = TempDir::new().unwrap();
    let spec = DriveSpec::parse(text, "tiny.toml").unwrap();
    let (format, host) = ("stock".to_owned(), "linux".to_owned());
    let surroundings = ssd::Surroundings::default();
    let drive = spec.name.clone();
    let setup =
        TargetSetup { target: drive, format, host, time_lapse: 1, surroundings, precision: None };
    let mut plan = plan();
    let suites: Vec<String> = plan
        .steps
        .iter()
        .filter_map(|step| {
            let name = &step.workload.as_ref()?.name;
            ["4k-rand-read", "8k-70-30"].contains(&name.as_str()).then(|| step.suite.clone())
        })
        .collect();
    plan.steps.retain(|step| suites.contains(&step.suite));
    let runs = Runs::new(root.path());
    let folder = runs.create(plan, setup.clone()).unwrap();
    let drivers = || Ok(Box::new(Model::new(spec.clone(), setup.with_seed(1))?) as Box<dyn Driver>);
    let (plan, finished) = (&folder.order().plan, Vec::new());
    let assignment =
        Assignment { label: "run", plan, drivers: &drivers, step_store: &folder, finished };
    let outcome = carry_out(&[assignment], 2, &Relay(&Silent)).unwrap().remove(0);
    let id = folder.finish(outcome).unwrap().id;
    Evidence::of_run(&spec, &runs.load(&id).unwrap(), runs.plan(&id).unwrap())
}

#[test]
fn numbers_are_found_again_from_a_run_of_the_drive() {
    let run = measured_by(&tiny_drive_text());
    let away = tiny_drive_text().replacen("relocate_us = 21.9", "relocate_us = 30", 1);
    let away = away.replacen("\nread_us = 9.6", "\nread_us = 7", 1);
    let open = [free("controller.relocate_us", 10.0, 50.0), free("controller.read_us", 4.0, 20.0)];
    let fit = fitted_to(&run, &away, &open).unwrap();
    for (found, truth) in fit.parameters.iter().zip([21.9, 9.6]) {
        // Ageing leaves more pages unwritten than hours of a preconditioning, and their reads cost
        // the link alone: that moves what is found by up to 7.4 %.
        assert!((found.value / truth - 1.0).abs() < 0.08, "{truth}: {found:?}");
        assert!(!found.undetermined, "{found:?}");
    }
    let rates: Vec<&JudgedFigure> = fit.figures.iter().filter(|it| it.is_rate()).collect();
    assert!(rates.len() == 20 && rates.iter().all(|it| it.within == Some(true)), "{rates:?}");
}

#[test]
fn an_imported_run_is_fitted_on_a_drive_that_was_written() {
    let report = concat!(env!("CARGO_MANIFEST_DIR"), "/../lab/src/fio_report/tests/json-plus.json");
    let imported = lab::fio_report::import(std::path::Path::new(report), None).unwrap();
    let run = imported.outcome.into_run(&imported.plan, "id".into(), String::new());
    let spec = DriveSpec::parse(&tiny_drive_text(), "tiny.toml").unwrap();
    let evidence = Evidence::of_run(&spec, &run, imported.plan);
    let assumed = evidence.assumed.as_deref().unwrap_or_default();
    assert!(assumed.contains("all of it was written once, in order"), "{assumed}");
    let kinds = |plan: &Plan| plan.steps.iter().map(|step| step.kind).collect::<Vec<_>>();
    let plan = &evidence.plans[0];
    assert_eq!(kinds(plan), [StepKind::Fill, StepKind::Measure]);
    assert_eq!(kinds(&plan.clone().for_drive(&spec)), kinds(plan), "it is filled once");
    let (_, rows) = evidence.about(spec, None).unwrap();
    assert_eq!(rows.len(), 4, "a workload that is not built in is known by the plan");
}

#[test]
fn a_short_look_comes_close_to_the_protocol() {
    let (text, rows) = (tiny_drive_text(), told_by(&tiny_drive_text()));
    let spec = DriveSpec::parse(&text, "tiny.toml").unwrap();
    let (drives, plans) = ([spec.clone()], [plan()]);
    let work_list = WorkList::new(&rows.iter().collect::<Vec<_>>(), &drives, &plans);
    let seen = Shortcut::new(&work_list, &spec, 2).values(&[Some(spec)]).unwrap();
    for (row, seen) in rows.iter().zip(seen[0].as_ref().unwrap()) {
        let ratio = seen.unwrap() / row.value_low.unwrap();
        assert!((ratio - 1.0).abs() < 0.06, "{} {}: {ratio}", row.workload, row.metric);
    }
}

#[test]
fn the_same_question_finds_the_same_drive() {
    let (_, rows) = table(&["stock,linux,4k-rand-read,16,16,primary,iops,100000,100000".into()]);
    let open = [free("controller.read_us", 4.0, 20.0)];
    let once = fitted(&tiny_drive_text(), &rows, &open, 14).unwrap();
    assert_eq!(once, fitted(&tiny_drive_text(), &rows, &open, 14).unwrap());
}

#[test]
fn contradictions_are_named_and_not_gone_by() {
    let (_, rows) = table(&[
        "stock,linux,4k-rand-read,16,16,primary,iops,140000,140000".into(),
        "stock,any,4k-rand-read,16,16,primary,avg_latency_ms,1.82,1.82".into(),
        "stock,linux,4k-rand-write,16,16,primary,iops,42000,42000".into(),
        "stock,linux,4k-rand-write,16,16,primary,avg_latency_ms,9,9".into(),
        "stock,linux,8k-70-30,16,16,steady,iops,50000,52000".into(),
        "stock,any,8k-70-30,16,16,steady,iops,60000,60000".into(),
    ]);
    let found = contradictions(&rows.iter().collect::<Vec<_>>(), 1);
    let named: Vec<&[String]> = found.iter().map(|it| it.rows.as_slice()).collect();
    assert_eq!(named, [["R2", "R3"], ["R4", "R5"]]);
    assert!(found[0].text.contains("378 requests outstanding, not 256"), "{found:?}");
}

#[test]
fn threads_are_those_of_each_device_of_a_group() {
    let (_, rows) = table(&[
        "stock,linux,4k-rand-write,16,16,primary,iops,1350000,1350000".into(),
        "stock,linux,4k-rand-write,16,16,primary,avg_latency_ms,0.377,0.377".into(),
    ]);
    let rows: Vec<&FigureRow> = rows.iter().collect();
    assert_eq!(contradictions(&rows, 2), []);
    assert_eq!(contradictions(&rows, 1).len(), 1);
}

#[test]
fn figures_of_another_drive_are_refused_with_the_devices_there_are() {
    let (text, rows) = table(&["stock,linux,4k-rand-read,16,16,primary,iops,1,1".into()]);
    let other = DUO.replacen("capacity_gb = 640", "capacity_gb = 320", 1);
    let spec = DriveSpec::parse(&other, "duo.toml").unwrap();
    let error = rows_of(&spec, &rows, (&text, "figures.csv"), &[]).unwrap_err();
    assert!(error.to_string().contains("figures.csv: no figure of Fusion-io ioDrive Duo MLC 320"));
    assert!(error.remedy().ends_with("which has: Fusion-io ioDrive Duo MLC 640"), "{error:?}");
}

#[test]
fn an_unknown_metric_or_workload_is_refused_with_file_and_line() {
    let spec = DriveSpec::parse(DUO, "duo.toml").unwrap();
    let refused = |line: &str| {
        let sound = "stock,linux,4k-rand-read,16,16,primary,iops,1,1".to_owned();
        let (text, rows) = table(&[sound, line.to_owned()]);
        rows_of(&spec, &rows, (&text, "figures.csv"), &[]).unwrap_err()
    };
    let unit = refused("stock,linux,4k-rand-read,16,16,primary,avg_latency_us,1820,1820");
    let text = "figures.csv:3: row R1: no metric with its unit is called `avg_latency_us`";
    assert_eq!(unit.to_string(), text);
    assert_eq!(unit.remedy(), "did you mean `avg_latency_ms`?");
    let workload = refused("stock,linux,4k-rand-raed,16,16,primary,iops,1,1");
    assert_eq!(workload.remedy(), "did you mean `4k-rand-read`?");
}

#[test]
fn figures_that_no_protocol_expresses_are_refused_with_the_reasons() {
    let (_, rows) = table(&["stock,linux,4k-rand-read,3,3,primary,iops,1,1".into()]);
    let error =
        fitted(&tiny_drive_text(), &rows, &[free("controller.read_us", 4.0, 20.0)], 0).unwrap_err();
    let text =
        "none of 1 figures can be fitted: no protocol has this workload and load in this phase";
    assert_eq!(error.to_string(), text);
}
