//! The head of a page: facts, warnings, the first figure.

use results::baseline::{Headline, place};
use results::{Figure, Run, Step, TargetKind, Warning, WarningKind, WrittenAmount};

use super::TITLE;
use super::markup::{bare, part, rows, section};
use crate::example::{FAST, STOCK, Shape, review_of_two, run};
use crate::explain;
use crate::review;

fn facts(runs: &[Run]) -> Vec<String> {
    let page = review(runs, TITLE);
    let list = part(&page, "<ul class=\"facts\">", "</ul>");
    list.split("<li").skip(1).map(|item| bare(item.split_once('>').unwrap().1)).collect()
}

#[test]
fn facts_that_all_runs_share_are_listed_once() {
    let facts = facts(&review_of_two());
    assert_eq!(facts.len(), 1, "the runs differ in their format alone: {facts:?}");
    let shared = "Modelled drive · Enterprise steady state · simulated at 1/32 of its capacity · \
                  host linux · seed 1 · Floatgate 0.1.0, model version 1 · 2026-11-21T10:15:03Z";
    assert_eq!(facts[0], shared);
}

#[test]
fn facts_in_which_runs_differ_stand_beside_their_names() {
    let mut runs = review_of_two();
    runs[1].seed = 7;
    runs[1].started_at = "2026-11-22T00:00:00Z".into();
    let facts = facts(&runs);
    assert_eq!(facts.len(), 3);
    assert!(
        !facts[0].contains("seed") && facts[0].contains("simulated at 1/32 of its capacity"),
        "{facts:?}"
    );
    assert!(facts[1].contains("seed 1 · 2026-11-21"), "{facts:?}");
    assert!(facts[2].contains("seed 7 · 2026-11-22"), "{facts:?}");
}

#[test]
fn each_kind_of_target_is_named() {
    let of = |kind| {
        let mut run = run(STOCK);
        run.target.kind = kind;
        run.target.time_lapse = 1;
        facts(&[run]).remove(0)
    };
    let named = [
        (TargetKind::Model, "Modelled drive · Enterprise steady state · full scale · "),
        (TargetKind::BlockDevice, "Real block device · Enterprise steady state · host "),
        (TargetKind::File, "Real file · "),
        (TargetKind::Nbd, "NBD server · "),
        (TargetKind::Remote, "Real, on other hosts · "),
    ];
    for (kind, expected) in named {
        let fact = of(kind);
        assert!(fact.starts_with(expected), "{kind:?}: {fact}");
    }
}

#[test]
fn a_real_drive_has_no_model_version_and_an_unnamed_host_is_left_out() {
    let mut real = run(STOCK);
    real.target.kind = TargetKind::BlockDevice;
    real.target.host.clear();
    real.model_version = None;
    let fact = facts(&[real]).remove(0);
    assert!(fact.contains("Floatgate 0.1.0 · "), "{fact}");
    assert!(!fact.contains("model version") && !fact.contains("host"), "{fact}");
}

fn warning(step: &str, text: &str, remedy: &str) -> Warning {
    Warning {
        kind: WarningKind::LittlesLaw,
        step: step.into(),
        text: text.into(),
        remedy: remedy.into(),
    }
}

fn warned(warnings: Vec<Warning>) -> String {
    let mut run = run(STOCK);
    run.warnings = warnings;
    review(&[run], TITLE)
}

#[test]
fn a_run_without_warnings_has_no_list_of_them() {
    assert!(!warned(Vec::new()).contains("id=\"warnings\""));
}

#[test]
fn a_warning_about_the_whole_run_says_so() {
    let page = warned(vec![warning("", "the disk was busy", "stop other programs")]);
    let list = bare(part(&page, "id=\"warnings\"", "</aside>"));
    assert!(list.contains("stock, whole run: the disk was busy."), "{list}");
    assert!(list.contains("stop other programs."), "{list}");
}

#[test]
fn the_same_warning_about_several_steps_names_all_of_them_once() {
    let page = warned(vec![
        warning("4k/a", "it is off by 9 %", "repeat it"),
        warning("4k/b", "it is off by 9 %", "repeat it"),
    ]);
    let list = bare(part(&page, "id=\"warnings\"", "</aside>"));
    assert!(list.contains("stock, 4k/a; stock, 4k/b: it is off by 9 %."), "{list}");
    assert!(!list.contains("more of this kind"), "one text is one warning: {list}");
}

#[test]
fn different_remedies_of_one_kind_are_all_told() {
    let page = warned(vec![
        warning("4k/a", "off by 9 %", "repeat it"),
        warning("4k/b", "off by 12 %", "use another host"),
    ]);
    let list = part(&page, "id=\"warnings\"", "</aside>");
    let told = rows(list, "<table>");
    let expected = [
        ["stock, 4k/a", "off by 9 %", "repeat it"],
        ["stock, 4k/b", "off by 12 %", "use another host"],
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_warning_about_a_step_is_repeated_beside_its_charts() {
    let mut run = run(STOCK);
    let id = run.steps.iter().find(|step| step.steady.is_some()).unwrap().id.clone();
    run.warnings = vec![warning(&id, "it is off by 9 %", "repeat it")];
    let page = review(&[run], TITLE);
    let suite = section(&page, "suite-4k");
    assert!(suite.contains("stock: it is off by 9 %. Remedy: repeat it."), "beside the charts");
    let other = section(&page, "suite-8k-70-30");
    assert!(!other.contains("off by 9 %"), "another suite is not concerned");
}

#[test]
fn every_kind_of_warning_has_a_heading_of_its_own() {
    use WarningKind::{
        DieFailure, Environment, Interrupted, Lateness, LittlesLaw, NotPreconditioned, NotSteady,
        PageCache, Purge, QueueNotFilled, Scale, Space, Submission, Throttled, UnwrittenReads,
    };
    let kinds = [
        Interrupted,
        NotSteady,
        NotPreconditioned,
        UnwrittenReads,
        Submission,
        QueueNotFilled,
        LittlesLaw,
        Lateness,
        PageCache,
        Environment,
        Purge,
        Scale,
        Space,
        Throttled,
        DieFailure,
    ];
    let mut headings: Vec<&str> = kinds.map(explain::warning).to_vec();
    assert!(headings.iter().all(|it| !it.is_empty() && !it.ends_with('.')));
    headings.sort_unstable();
    headings.dedup();
    assert_eq!(headings.len(), kinds.len());
}

#[test]
fn a_preconditioning_that_wrote_too_little_is_told_from_none() {
    let mut run = run(STOCK);
    let id = run.steps.iter().find(|step| step.steady.is_some()).unwrap().id.clone();
    run.warnings = vec![warning(&id, "a burst", "go on"), warning("4k/a", "none", "have one")];
    for warning in &mut run.warnings {
        warning.kind = WarningKind::NotPreconditioned;
    }
    let page = review(&[run], TITLE);
    let list = part(&page, "id=\"warnings\"", "</aside>");
    let item = |heading: &str| part(list, &format!("<b>{heading}.</b>"), "</li>").to_owned();
    assert!(item("Preconditioning wrote too little").contains("a burst."), "{list}");
    assert!(item("Not preconditioned").contains("stock, 4k/a: none."), "{list}");
}

#[test]
fn an_interrupted_run_says_how_many_steps_are_missing_and_how_to_go_on() {
    let mut stopped = run(STOCK);
    stopped.steps.truncate(3);
    let page = review(&[stopped.clone(), run(FAST)], TITLE);
    let list = bare(part(&page, "id=\"warnings\"", "</aside>"));
    let planned = stopped.steps_planned;
    assert!(list.contains(&format!("stock: 3 of {planned} steps were done")), "{list}");
    assert!(list.contains("Continue with --resume."), "{list}");
    assert!(!list.contains("high-performance: "), "the finished run is not named");
}

fn glance(runs: &[Run]) -> String {
    let page = review(runs, TITLE);
    section(&page, "glance").to_owned()
}

/// Cells of the row with this heading, without markup.
fn cells(glance: &str, name: &str) -> Vec<String> {
    let row = part(glance, &format!("</i>{name}</th>"), "</tr>");
    row.split("<td").skip(1).map(|it| bare(it.split_once('>').unwrap().1)).collect()
}

#[test]
fn the_longest_bar_of_a_column_fills_it_and_the_others_are_shares_of_it() {
    let glance = glance(&review_of_two());
    let widths: Vec<f64> = glance
        .split("class=\"fill\" width=\"")
        .skip(1)
        .map(|it| it.split('"').next().unwrap().parse().unwrap())
        .collect();
    assert!(widths.iter().all(|width| (0.5..=100.0).contains(width)), "{widths:?}");
    let columns = 4;
    let full = widths.iter().filter(|width| (**width - 100.0).abs() < 1e-9).count();
    assert_eq!(full, columns, "one bar in each column");
}

#[test]
fn published_rates_stand_below_the_measured_ones() {
    let glance = glance(&[run(STOCK)]);
    let published = cells(&glance, "published");
    assert_eq!(published, ["42.6K", "140K", "–", "–"]);
}

#[test]
fn of_several_phases_the_settled_one_is_published_beside_it() {
    let figure = |run: &Run, phase: &str, (low, high): (f64, f64)| Figure {
        phase: phase.into(),
        value_low: low,
        value_high: high,
        ..run.published.iter().find(|it| it.workload == "4k-rand-write").unwrap().clone()
    };
    let mut of = run(STOCK);
    let write = |it: &mut Run, figures: Vec<Figure>| {
        it.published = figures;
        cells(&glance(std::slice::from_ref(it)), "published").remove(0)
    };
    let burst = figure(&of, "burst", (257_000.0, 257_000.0));
    let end = figure(&of, "precondition-end", (40_000.0, 42_000.0));
    let steady = figure(&of, "steady", (50_000.0, 50_000.0));
    assert_eq!(write(&mut of, vec![burst.clone(), end.clone(), steady]), "50K");
    assert_eq!(write(&mut of, vec![burst.clone(), end]), "41K", "the middle of a range");
    of.published = vec![burst];
    assert!(!glance(&[of]).contains("</i>published</th>"), "a burst is not a settled rate");
}

#[test]
fn published_rates_of_another_load_are_not_set_beside_it() {
    let mut of = run(STOCK);
    of.published.retain(|it| it.workload == "4k-rand-write" && it.phase == "primary");
    of.published[0].threads = "1".into();
    assert!(!glance(&[of.clone()]).contains("</i>published</th>"));
    (of.published[0].threads, of.published[0].queue_per_thread) = (String::new(), String::new());
    assert!(glance(&[of]).contains("</i>published</th>"), "a figure without a load is of any");
}

#[test]
fn a_workload_that_was_not_measured_has_no_column() {
    let mut of = run(STOCK);
    of.steps.retain(|step| step.suite == "4k");
    let glance = glance(&[of]);
    assert!(glance.contains("4K random writes") && glance.contains("4K random reads"));
    assert!(!glance.contains("8K, 70 % reads"));
}

#[test]
fn drives_of_the_catalogue_are_named_with_the_version_of_their_model() {
    let said = bare(&glance(&[run(STOCK)]));
    assert!(said.contains("In grey the drives of the baseline table"), "{said}");
    assert!(
        said.contains("This run has model version 1; models change between versions."),
        "{said}"
    );
}

#[test]
fn five_runs_are_compared_with_each_other_and_not_with_the_catalogue() {
    let runs: Vec<Run> = (1..=5).map(|seed| run(Shape { seed, ..STOCK })).collect();
    assert!(glance(&runs[..4]).contains("class=\"other\""));
    assert!(!glance(&runs).contains("class=\"other\""));
}

#[test]
fn a_drive_of_the_catalogue_is_not_set_beside_itself() {
    let own = glance(&[run(STOCK)]);
    let (rank, of) = place(Headline::Write, STOCK.settled_iops, "iodrive-duo");
    assert!(rank >= 1 && rank <= of);
    let others = own.matches("<tr class=\"other\">").count();
    assert_eq!(others, 5);
    let title = run(STOCK).target.title;
    let rows = own.split("<tr class=\"other\">").skip(1);
    assert!(rows.into_iter().all(|row| !row.split("</th>").next().unwrap().contains(&title)));
}

#[test]
fn a_load_that_the_catalogue_lacks_is_not_set_beside_it() {
    let mut of = run(STOCK);
    for step in of.steps.iter_mut().filter(|step| step.workload.starts_with("4k-rand")) {
        step.threads = 8;
    }
    of.published.clear();
    let glance = glance(&[of]);
    assert!(!glance.contains("class=\"other\""));
    assert!(bare(&glance).contains("Modelled at T8Q16"));
}

#[test]
fn a_run_without_measurements_has_no_first_figure() {
    let mut of = run(STOCK);
    of.steps.truncate(1);
    assert!(!review(&[of], TITLE).contains("id=\"glance\""));
}

/// The precondition of the 4K suite, of which `share` of the capacity was written.
fn written(of: &mut Run, share: f64) -> &mut Step {
    let step = of.steps.iter_mut().find(|step| step.steady.is_some()).unwrap();
    step.written = Some(WrittenAmount {
        since_purge_bytes: 1_000_000,
        since_purge_share: share,
        addressed_share: share,
    });
    step
}

#[test]
fn of_two_runs_those_not_in_steady_state_are_told_apart() {
    let mut runs = review_of_two();
    written(&mut runs[1], 1.0).steady.as_mut().unwrap().achieved = false;
    let page = review(&runs, TITLE);
    let verdict = bare(part(&page, "<p class=\"verdict\">", "</p>"));
    let load = "under 4K random writes at T16Q16.";
    // The load and the rate of the bars below.
    let iops = |run: &Run| {
        let step = Headline::Write.step(run).unwrap();
        crate::number::short(Headline::Write.of_step(run, step).unwrap())
    };
    let (stock, fast) = (iops(&runs[0]), iops(&runs[1]));
    let told = format!(
        "Modelled, steady state: stock {stock} IOPS; steady state not reached: high-performance \
         {fast} IOPS"
    );
    assert!(verdict.starts_with(&told) && verdict.contains(load), "{verdict}");
    let conclusion = bare(section(&page, "conclusion"));
    assert!(!verdict.split_inclusive(". ").any(|it| conclusion.contains(it)), "{conclusion}");
}

#[test]
fn a_headline_that_a_published_figure_contradicts_is_marked_wherever_it_stands() {
    let mut of = run(STOCK);
    let step = Headline::Write.step(&of).unwrap().clone();
    let published = of.published.iter().find(|it| it.metric == "iops").unwrap().clone();
    of.published = vec![Figure {
        workload: step.workload.clone(),
        threads: step.threads.to_string(),
        queue_per_thread: step.queue_per_thread.to_string(),
        phase: "primary".into(),
        metric: "max_latency_ms".into(),
        value_low: 0.001,
        value_high: 0.001,
        ..published
    }];
    let page = review(&[of], TITLE);
    let text = "above the published maximum of 0.001 ms";
    assert!(part(&page, "<p class=\"verdict\">", "</p>").contains(text));
    let glance = section(&page, "glance");
    assert!(glance.contains("<i>contradicted</i>"), "{glance}");
    assert!(glance.contains(&format!("Contradicted: 4K write p99.9, {text}.")));
    assert!(section(&page, "summary").contains(&format!("p99.9 {text}")));
}

#[test]
fn an_import_is_not_called_unsteady_where_that_is_unknown() {
    let mut of = run(STOCK);
    of.target.kind = TargetKind::BlockDevice;
    of.environment.imported_from = Some("fio-3.33".into());
    of.steps.iter_mut().for_each(|step| step.steady = None);
    let own = part(&glance(&[of]), "<tr class=\"own", "</tr>").to_owned();
    let cells: Vec<bool> =
        own.split("<td").skip(1).map(|it| it.contains("<i>not judged</i>")).collect();
    assert_eq!(cells, [true, false, true, true], "reads need none");
    assert!(!own.contains("not steady"), "{own}");
}
