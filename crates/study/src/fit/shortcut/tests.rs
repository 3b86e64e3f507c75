//! Short looks: what is done before them, how long they are, and what is kept for the next.

use lab::driver::mock::tiny_drive_text;
use results::published::FigureRow;

use super::super::Relay;
use super::super::tests::{Silent, plan, table};
use super::*;

fn tiny_spec() -> DriveSpec {
    DriveSpec::parse(&tiny_drive_text(), "tiny.toml").unwrap()
}

/// The tiny drive with `from` in its file replaced.
fn changed(from: &str, to: &str) -> DriveSpec {
    let text = tiny_drive_text().replacen(from, to, 1);
    assert_ne!(text, tiny_drive_text(), "{from} is not there");
    DriveSpec::parse(&text, "tiny.toml").unwrap()
}

/// Simulations that rows of the tiny drive need, given from the workload to the metric.
fn work_list(rows: &[&str]) -> WorkList {
    let lines: Vec<String> = rows.iter().map(|row| format!("stock,linux,{row},1,1")).collect();
    let (_, rows) = table(&lines);
    WorkList::new(&rows.iter().collect::<Vec<_>>(), &[tiny_spec()], &[plan()])
}

const BURST: &str = "4k-rand-write,16,16,burst,iops";
const READS: &str = "4k-rand-read,16,16,primary,iops";

/// Number of states that are kept.
fn kept(shortcut: &Shortcut<'_>) -> usize {
    shortcut.states.lock().unwrap().len()
}

fn step<'a>(plan: &'a Plan, id: &str) -> &'a PlannedStep {
    plan.steps.iter().find(|step| step.id == id).unwrap()
}

#[test]
fn a_burst_comes_before_the_preconditioning_and_all_else_after_it() {
    let plan = plan();
    let precondition = step(&plan, "4k/precondition");
    assert_eq!(before(&plan, precondition, Part::Burst), Before::Nothing);
    let settled = before(&plan, precondition, Part::Settled);
    let Before::Settled { fills, step: by } = &settled else { panic!("{settled:?}") };
    assert!(fills.is_empty(), "{fills:?}");
    assert_eq!(by.workload_name(), "4k-rand-write");
    let measured = step(&plan, "4k/4k-rand-read/T16Q16");
    assert_eq!(before(&plan, measured, Part::Whole), settled, "reads find what writes left");
}

#[test]
fn a_suite_that_fills_the_drive_is_looked_at_when_it_is_full() {
    let mut plan = plan();
    let at = plan.steps.iter().position(|step| step.id == "4k/precondition").unwrap();
    let fill = PlannedStep { id: "4k/fill".into(), kind: StepKind::Fill, ..plan.steps[at].clone() };
    plan.steps.insert(at, fill);
    let measured = step(&plan, "4k/4k-rand-read/T16Q16").clone();
    let both = before(&plan, &measured, Part::Whole);
    let Before::Settled { fills, .. } = both else { panic!("{both:?}") };
    assert_eq!(fills.len(), 1);
    assert_eq!(before(&plan, &measured, Part::Burst), Before::Filled(fills.clone()));
    plan.steps.remove(at + 1);
    let only = before(&plan, &measured, Part::Whole);
    assert_eq!(only, Before::Filled(fills), "nothing preconditions");
    let other = step(&plan, "8k-70-30/precondition").clone();
    assert_eq!(before(&plan, &other, Part::Burst), Before::Nothing, "that was another suite");
}

#[test]
fn a_short_step_on_a_drive_that_is_not_settled_is_seen_whole() {
    let spec = tiny_spec();
    let mut plan = plan();
    plan.steps.retain(|step| step.kind == StepKind::Measure);
    let plan = plan.filled_before_each_load();
    // What fits into the spare area is over long before the step is.
    let lines = ["iops", "avg_latency_ms"]
        .map(|metric| format!("stock,linux,4k-rand-write,16,16,primary,{metric},80000,80000"));
    let (_, rows) = table(&lines);
    let rows: Vec<&FigureRow> = rows.iter().collect();
    let list = WorkList::new(&rows, std::slice::from_ref(&spec), &[plan]);
    let exact = list.values(std::slice::from_ref(&spec), 1, &Relay(&Silent)).unwrap();
    let seen = Shortcut::new(&list, &spec, 1).values(&[Some(spec)]).unwrap().remove(0).unwrap();
    for (seen, exact) in seen.into_iter().zip(exact) {
        let (seen, exact) = (seen.unwrap(), exact.unwrap());
        assert!((seen / exact - 1.0).abs() < 0.02, "{seen}, by the protocol {exact}");
    }
}

#[test]
fn a_fill_at_random_writes_as_much_as_all_of_the_drive() {
    let spec = tiny_spec();
    let list = work_list(&[READS]);
    let job = &list.jobs()[0];
    let setup = job.setup.clone().with_seed(1);
    let random = step(&job.plan, "4k/precondition").clone();
    // As protocols plan it, without threads.
    let fill = PlannedStep {
        kind: StepKind::Fill,
        fill_passes: 1,
        threads: 0,
        queue_per_thread: 0,
        ..random
    };
    let filled = settled((&spec, &setup), &Before::Filled(vec![fill]), 1, &|| false).unwrap();
    let written = filled.counters().pages_host * 8;
    let all = filled.user_sectors();
    assert!((all..=all + 8).contains(&written), "{written} of {all} sectors");
}

#[test]
fn suites_that_precondition_alike_share_a_state() {
    let mut plan = plan();
    let measured = step(&plan, "4k/4k-rand-read/T16Q16").clone();
    let one = before(&plan, &measured, Part::Whole);
    for step in &mut plan.steps {
        (step.id, step.suite) = (step.id.replace("4k/", "mine/"), step.suite.replace("4k", "mine"));
    }
    let elsewhere = step(&plan, "mine/4k-rand-read/T16Q16").clone();
    assert_eq!(before(&plan, &elsewhere, Part::Whole), one);
}

#[test]
fn a_look_writes_one_and_a_half_superblocks_of_every_module() {
    let spec = tiny_spec();
    let geometry = &spec.geometry;
    let span = span(&spec);
    // Five dies of a stripe, 32 pages of each plane.
    let superblock = u64::from(geometry.planes_per_die) * u64::from(geometry.page_kib) * 5 * 32;
    let written = superblock * 1024 * u64::from(spec.modules.count) * 3 / 2;
    assert_eq!(span.written_min, written);
    assert_eq!((span.requests_min, span.requests_max), (8000, 60_000));
}

#[test]
fn a_large_drive_is_looked_at_in_a_time_lapse_with_room_to_spare() {
    for spec in ssd::catalogue::drives() {
        let setup = TargetSetup {
            target: spec.name.clone(),
            format: spec.formats()[0].clone(),
            host: spec.hosts()[0].clone(),
            time_lapse: 1,
            surroundings: ssd::Surroundings::default(),
            precision: None,
        };
        let (k, default) = (time_lapse(&spec, &setup), spec.time_lapse_default());
        assert!(k.is_multiple_of(default) && (k / default).is_power_of_two(), "{}: {k}", spec.name);
        let pages = |k| {
            let setup = TargetSetup { time_lapse: k, ..setup.clone() }.with_seed(0);
            Placement::new(&spec, &setup).ok().and_then(|placement| placement.pages())
        };
        match pages(k) {
            None => assert_eq!(k, default, "{} is written in place", spec.name),
            Some(found) if k > default => {
                assert!(pages(k * 2).is_some(), "{}: no room at {k}", spec.name);
                assert!(pages(k / 2).unwrap() > PAGES_MAX && found > 0, "{}: {k}", spec.name);
            }
            Some(found) => assert!(found <= PAGES_MAX || pages(4 * k).is_none(), "{}", spec.name),
        }
    }
}

#[test]
fn drives_that_cannot_be_built_have_no_values_and_spoil_no_others() {
    let list = work_list(&[BURST, READS]);
    let shortcut = Shortcut::new(&list, &tiny_spec(), 2);
    let alone = shortcut.values(&[Some(tiny_spec())]).unwrap();
    let all = shortcut.values(&[None, Some(tiny_spec()), None]).unwrap();
    assert_eq!(all, [None, alone[0].clone(), None]);
    let values = alone[0].as_ref().unwrap();
    assert!(values.iter().all(|value| value.is_some_and(|iops| iops > 0.0)), "{values:?}");
    assert_eq!(shortcut.values(&[]).unwrap(), []);
}

#[test]
fn what_is_seen_depends_neither_on_threads_nor_on_what_was_looked_at_before() {
    let list = work_list(&[BURST, READS]);
    let seen = |threads: usize| {
        let shortcut = Shortcut::new(&list, &tiny_spec(), threads);
        let fast = changed("\nread_us = 9.6", "\nread_us = 4.8");
        let first = shortcut.values(&[Some(tiny_spec())]).unwrap();
        shortcut.values(&[Some(fast)]).unwrap();
        assert_eq!(shortcut.values(&[Some(tiny_spec())]).unwrap(), first, "{threads} threads");
        first
    };
    assert_eq!(seen(1), seen(3));
}

#[test]
fn a_state_is_kept_for_every_drive_that_places_data_alike() {
    let list = work_list(&[BURST, READS]);
    let shortcut = Shortcut::new(&list, &tiny_spec(), 1);
    let slow = shortcut.values(&[Some(tiny_spec())]).unwrap();
    assert_eq!(kept(&shortcut), 2, "purged, and settled");
    let quick = changed("\nread_us = 9.6", "\nread_us = 1.2");
    let fast = shortcut.values(&[Some(quick)]).unwrap();
    assert_eq!(kept(&shortcut), 2, "timing moves no data");
    let reads = |values: &[Option<Vec<Option<f64>>>]| values[0].as_ref().unwrap()[1].unwrap();
    assert!(reads(&fast) > 1.5 * reads(&slow), "{} over {}", reads(&fast), reads(&slow));
    shortcut.values(&[Some(changed("user_gb = 0.33", "user_gb = 0.30"))]).unwrap();
    assert_eq!(kept(&shortcut), 4, "more to spare leaves another state");
}

#[test]
fn states_that_are_not_needed_make_room_for_new_ones() {
    let list = work_list(&[BURST]);
    let shortcut = Shortcut::new(&list, &tiny_spec(), 2);
    let size = |nth: usize| {
        let to = format!("user_gb = 0.{}", 330 - nth);
        if nth == 0 { tiny_spec() } else { changed("user_gb = 0.33", &to) }
    };
    let many: Vec<Option<DriveSpec>> = (0..STATES_MAX + 2).map(|nth| Some(size(nth))).collect();
    let before = shortcut.values(&many).unwrap();
    assert_eq!(kept(&shortcut), STATES_MAX + 2, "all were needed at once");
    // The oldest go first, unless they are needed.
    let after = shortcut.values(&[many[0].clone(), Some(size(STATES_MAX + 2))]).unwrap();
    assert_eq!(kept(&shortcut), STATES_MAX);
    assert_eq!(after[0], before[0]);
}
