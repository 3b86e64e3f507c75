//! Names of runs beside each other: no more than tells them apart, and never twice the same.

use super::*;
use crate::example::{FAST, STOCK, Shape, run};

fn labels(runs: &[Run]) -> Vec<String> {
    subjects(runs).into_iter().map(|subject| subject.label).collect()
}

#[test]
fn runs_are_named_by_what_tells_them_apart() {
    assert_eq!(labels(&[run(STOCK)]), ["stock"]);
    assert_eq!(labels(&[run(STOCK), run(FAST)]), ["stock", "high-performance"]);
    let mut drives = [run(STOCK), run(STOCK)];
    drives[1].target.title = "Another".into();
    assert_eq!(labels(&drives), [drives[0].target.title.as_str(), "Another"]);
}

#[test]
fn a_further_trait_is_named_only_where_the_first_does_not_tell() {
    let mut runs = [run(STOCK), run(FAST), run(FAST)];
    runs[2].target.host = "windows".into();
    let host = runs[0].target.host.clone();
    let expected = [
        format!("stock, {host}"),
        format!("high-performance, {host}"),
        "high-performance, windows".into(),
    ];
    assert_eq!(labels(&runs), expected);
}

#[test]
fn repeats_are_told_apart_by_their_seed_and_else_by_their_folder() {
    let seeds = [run(STOCK), run(Shape { seed: 2, ..STOCK })];
    assert_eq!(labels(&seeds), ["seed 1", "seed 2"]);
    let mut folders = [run(STOCK), run(STOCK)];
    folders[1].id = "2026-11-22T000000Z-again".into();
    assert_eq!(labels(&folders), [folders[0].id.as_str(), "2026-11-22T000000Z-again"]);
}

#[test]
fn a_run_without_any_name_has_a_number() {
    let mut runs = [run(STOCK), run(STOCK)];
    for run in &mut runs {
        run.target.format.clear();
        run.target.title.clear();
    }
    assert_eq!(labels(&runs), ["run 1", "run 2"]);
}

#[test]
fn a_model_that_nothing_was_compared_with_is_marked_wherever_it_is_named() {
    let mut runs = [run(STOCK), run(FAST)];
    runs[1].target.unvalidated = true;
    let subjects = subjects(&runs);
    assert_ne!(subjects[1].label, "high-performance");
    assert_eq!(subjects[0].label, "stock");
    let line = unvalidated(&subjects);
    assert!(line.contains(&subjects[1].label) && !line.contains("stock"), "{line}");
    assert_eq!(unvalidated(&subjects[..1]), "");
}

#[test]
fn what_runs_share_is_told_once_with_all_their_names() {
    let runs = [run(STOCK), run(FAST), run(Shape { format: "third", ..STOCK })];
    let subjects = subjects(&runs);
    let formats = shared(&subjects, |subject| &subject.run.target.name);
    assert_eq!(formats.len(), 1);
    assert_eq!(formats[0].0, "stock, high-performance, third");
    assert_eq!(shared(&subjects, |subject| &subject.run.target.format).len(), 3);
}

#[test]
fn a_suite_has_a_part_for_each_run_that_has_it() {
    let mut runs = [run(STOCK), run(FAST)];
    runs[1].steps.retain(|step| step.suite != "web-server");
    let subjects = subjects(&runs);
    let suites = suites(&subjects);
    let parts: Vec<(&str, usize)> =
        suites.iter().map(|suite| (suite.name, suite.parts.len())).collect();
    assert_eq!(parts, [("4k", 2), ("8k-70-30", 2), ("file-server", 2), ("web-server", 1)]);
    assert!(suites[0].parts.iter().all(|part| part.precondition.is_some()));
    assert_eq!(suites[1].parts[0].measures.len(), 16);
}

#[test]
fn suites_of_one_title_are_told_apart_by_their_workloads() {
    let mut run = run(STOCK);
    run.steps.retain(Step::is_primary);
    run.steps.iter_mut().for_each(|step| step.suite_title = "job".into());
    let runs = [run];
    let subjects = subjects(&runs);
    let titles: Vec<String> = suites(&subjects).into_iter().map(|suite| suite.title).collect();
    let expected = ["job, 4k-rand-write", "job, 8k-70-30", "job, file-server", "job, web-server"];
    assert_eq!(titles, expected);
}

#[test]
fn intervals_of_several_lengths_are_each_named() {
    let run = run(STOCK);
    let runs = [run];
    let subjects = subjects(&runs);
    let mut steps = [runs[0].steps[1].clone(), runs[0].steps[2].clone()];
    let said = |steps: &[Step; 2]| subjects[0].provenance(&[&steps[0], &steps[1]]);
    assert!(said(&steps).ends_with("seed 1, interval 60 s."));
    steps[0].interval_s = 540.0;
    assert!(said(&steps).ends_with("seed 1, intervals of 9 min and of 60 s."), "{}", said(&steps));
}
