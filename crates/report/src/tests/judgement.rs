//! Conclusions, published figures and provenance: each rule that a sentence follows.

use results::findings::{FindingKind, Verdict, of_run, withheld};
use results::{
    DeviceFigures, Figure, PlatformRow, Run, SteadyEvidence, Step, StepKind, TargetKind, Warning,
    WarningKind, WrittenAmount,
};

use super::TITLE;
use super::markup::{bare, part, rows, section};
use crate::example::{FAST, STOCK, Shape, as_drives, review_of_two, run};
use crate::{explain, review};

fn conclusion(runs: &[Run]) -> String {
    section(&review(runs, TITLE), "conclusion").to_owned()
}

fn items(conclusion: &str, class: &str) -> Vec<String> {
    let list = part(conclusion, &format!("<div class=\"{class}\">"), "</div>");
    list.split("<li").skip(1).map(|it| bare(it.split_once('>').unwrap().1)).collect()
}

#[test]
fn every_judged_ratio_of_a_run_is_a_sentence_on_its_side() {
    let of = run(STOCK);
    let html = conclusion(std::slice::from_ref(&of));
    let (pros, cons) = (items(&html, "pros"), items(&html, "cons"));
    for finding in of_run(&of) {
        let (strength, weakness) = explain::sentences(finding.kind);
        let (list, sentence) = match finding.verdict {
            Verdict::Strength => (&pros, strength),
            Verdict::Weakness => (&cons, weakness),
            Verdict::Neither => continue,
        };
        let item = list.iter().find(|it| it.starts_with(sentence));
        let item = item.unwrap_or_else(|| panic!("no {sentence} in {list:?}"));
        assert!(item.contains(explain::ratio(finding.kind)), "the rule is told: {item}");
    }
}

#[test]
fn a_drive_without_judged_ratios_has_neither_pros_nor_cons() {
    let mut of = run(STOCK);
    of.steps.retain(|step| step.kind == StepKind::Purge);
    let html = conclusion(&[of]);
    assert_eq!(items(&html, "pros"), ["No figure met a criterion."]);
    assert_eq!(items(&html, "cons"), ["No figure met a criterion."]);
    assert!(!html.contains("Steady state was"), "there was nothing to settle");
}

#[test]
fn one_sentence_names_three_cases_at_most_and_counts_the_others() {
    // Each of seven runs falls from its burst in each of its suites.
    let runs: Vec<Run> = (1..=7).map(|seed| run(Shape { seed, ..STOCK })).collect();
    let html = conclusion(&runs);
    let weakness = explain::sentences(FindingKind::BurstOverSettled).1;
    let cons = items(&html, "cons");
    let item = cons.iter().find(|it| it.starts_with(weakness)).expect("it falls");
    assert_eq!(item.matches(" of them under ").count(), 3, "{item}");
    let cases = runs
        .iter()
        .flat_map(of_run)
        .filter(|it| it.kind == FindingKind::BurstOverSettled && it.verdict == Verdict::Weakness)
        .count();
    assert!(item.contains(&format!("and {} more", cases - 3)), "{item}");
}

#[test]
fn the_worst_case_of_a_weakness_comes_first() {
    let runs = [run(STOCK), run(Shape { settled_iops: 20_000.0, seed: 2, ..STOCK })];
    let html = conclusion(&runs);
    let weakness = explain::sentences(FindingKind::BurstOverSettled).1;
    let cons = items(&html, "cons");
    let item = cons.iter().find(|it| it.starts_with(weakness)).expect("both fall");
    let (cases, _) = item.rsplit_once(" % of them under ").expect("a share of the burst");
    let shares = cases.split(" % of them under ").map(|it| it.rsplit(' ').next().unwrap());
    let shares: Vec<f64> = shares.map(|it| it.parse().unwrap()).collect();
    assert!(shares.len() > 1 && shares.is_sorted(), "{shares:?}");
}

#[test]
fn a_doubted_figure_is_withheld_with_the_reason() {
    let mut of = run(STOCK);
    of.warnings = vec![Warning {
        kind: WarningKind::PageCache,
        step: String::new(),
        text: "reads came from <memory>".into(),
        remedy: "use direct I/O".into(),
    }];
    let hidden = withheld(&of);
    assert!(!hidden.is_empty());
    let html = conclusion(&[of]);
    let list = part(&html, "<ul class=\"withheld\">", "</ul>");
    assert_eq!(list.matches("<li>").count(), 1, "one reason");
    assert!(hidden.iter().all(|it| list.contains(&it.finding.workload)), "{list}");
    assert!(list.contains("A page cache was used."));
    assert!(!list.contains("memory"), "the text stands in the list of warnings");
    assert!(!conclusion(&[Run { warnings: Vec::new(), ..run(STOCK) }]).contains("page cache"));
}

#[test]
fn each_drive_has_its_points_against_the_others_and_the_line_says_for_whom_it_is() {
    let third = run(Shape { format: "third", settled_iops: 60_000.0, ..STOCK });
    let mut runs = review_of_two();
    runs.push(third);
    let runs = as_drives(runs);
    let html = conclusion(&runs);
    let points = |name: &str, class: &str| {
        let of = part(&html, &format!("<h3>{name} against the others</h3>"), "</div></div>");
        items(&format!("{of}</div>"), class)
    };
    let rate = |points: Vec<String>| points.into_iter().find(|it| it.contains(" IOPS under "));
    let pros = points("high-performance", "pros");
    let ahead = rate(pros.clone()).unwrap_or_else(|| panic!("it leads: {pros:?}"));
    assert!(ahead.ends_with(" more than third."), "{ahead}");
    let behind = rate(points("stock", "cons")).expect("it is last");
    assert!(behind.ends_with(" fewer than high-performance."), "{behind}");
    assert_eq!(rate(points("third", "pros")), None, "in between");
    let said = bottom_line(&runs);
    assert!(said.starts_with("For throughput at full load: high-performance under "), "{said}");
    assert!(!bottom_line(&review_of_two()).contains("For throughput"), "one drive in two formats");
    let mut mixed = runs;
    let steady = mixed[0].steps.iter_mut().filter_map(|it| it.steady.as_mut());
    steady.for_each(|it| it.achieved = false);
    assert!(!bottom_line(&mixed).contains("For throughput"), "a burst beside settled drives");
}

fn bottom_line(runs: &[Run]) -> String {
    let html = conclusion(runs);
    let said = part(&html, "class=\"bottom-line\">", "</p>");
    bare(said.split_once('>').expect("an element").1)
}

#[test]
fn the_bottom_line_counts_preconditionings_that_reached_steady_state() {
    let mut of = run(STOCK);
    let all = of.steps.iter().filter(|step| step.steady.is_some()).count();
    let settled = format!("Steady state was reached in {all} of {all} preconditionings.");
    assert!(bottom_line(std::slice::from_ref(&of)).contains(&settled));
    of.steps.iter_mut().find_map(|step| step.steady.as_mut()).unwrap().achieved = false;
    let one_less = format!("Steady state was reached in {} of {all} preconditionings.", all - 1);
    assert!(bottom_line(std::slice::from_ref(&of)).contains(&one_less));
    of.steps.retain(|step| step.suite == "4k");
    assert!(bottom_line(std::slice::from_ref(&of)).contains("Steady state was not reached."));
    of.steps.iter_mut().find_map(|step| step.steady.as_mut()).unwrap().achieved = true;
    assert!(bottom_line(&[of]).contains("Steady state was reached."));
}

#[test]
fn the_gain_of_another_format_is_told_with_both_names() {
    let said = bottom_line(&review_of_two());
    assert!(said.contains("Formatted as high-performance instead of stock"), "{said}");
    assert!(said.contains("times the steady-state IOPS under "), "{said}");
    assert!(!bottom_line(&[run(STOCK)]).contains("Formatted as"), "one format gains nothing");
}

#[test]
fn a_run_with_nothing_preconditioned_says_that_nothing_has_settled() {
    let mut of = run(STOCK);
    of.steps.retain(|step| step.kind == StepKind::Purge);
    let page = review(&[of], TITLE);
    assert!(part(&page, "<p class=\"verdict\">", "</p>").contains("Steady state not measured yet"));
    assert!(!section(&page, "conclusion").contains("not measured yet"), "it is not told twice");
}

#[test]
fn published_figures_are_tallied_over_all_runs() {
    let runs = review_of_two();
    let judged = |run: &Run| run.published.iter().filter(|it| it.measured.is_some()).count();
    let all: usize = runs.iter().map(judged).sum();
    let page = review(&runs, TITLE);
    let intro = bare(section(&page, "published"));
    assert!(intro.contains(&format!(" of {all} published figures")), "{intro}");
    assert!(intro.contains("2 more were not measured by these runs."), "one of each run");
}

#[test]
fn figures_in_tolerance_from_listed_stalls_are_counted() {
    let mut of = run(STOCK);
    let stalled = Figure {
        metric: "max_latency_ms".into(),
        value_low: 1000.0,
        value_high: 1000.0,
        measured: Some(1000.0),
        ..of.published[0].clone()
    };
    of.published.push(stalled);
    let before = conclusion(std::slice::from_ref(&of));
    assert!(!before.contains("from listed stalls"), "{before}");
    of.target.host_stall_ms_max = Some(1000.0);
    let html = conclusion(&[of]);
    assert!(html.contains(" are in tolerance, 1 of these from listed stalls."), "{html}");
}

#[test]
fn a_preconditioning_that_wrote_too_little_says_so_in_place_of_the_rule() {
    let mut of = run(STOCK);
    let step = of.steps.iter_mut().find(|it| it.kind == StepKind::Precondition).unwrap();
    let steady = step.steady.as_mut().unwrap();
    (steady.achieved, steady.evidence) = (false, Some(SteadyEvidence::TooLittleWritten));
    step.written = Some(WrittenAmount { addressed_share: 0.149, ..WrittenAmount::default() });
    let html = conclusion(&[of]);
    let cons = items(&html, "cons");
    let con = cons.iter().find(|it| it.starts_with("Did not reach steady state")).unwrap();
    assert!(con.contains("(too little was written, 14.9 % of the addressed space)"), "{con}");
    assert!(!con.contains("No five rounds"), "they met the rule: {con}");
}

#[test]
fn a_published_figure_shows_its_note_else_its_document() {
    let mut of = run(STOCK);
    of.published.truncate(2);
    of.published[0].note = "read off a \"chart\"".into();
    let page = review(&[of], TITLE);
    let published = section(&page, "published");
    assert!(published.contains("title=\"read off a &quot;chart&quot;\""));
    assert!(published.contains("title=\"ioDrive Duo review\""));
}

#[test]
fn conditions_of_a_published_figure_leave_out_a_load_that_it_has_not() {
    let mut of = run(STOCK);
    of.published.truncate(1);
    let figure = |of: &Run| -> Vec<String> {
        let page = review(std::slice::from_ref(of), TITLE);
        let all = part(section(&page, "published"), "Every figure", "</details>").to_owned();
        rows(&all, "<table").remove(1)
    };
    assert_eq!(figure(&of)[1], "4k-rand-read, T16Q16, primary, stock format, linux host");
    (of.published[0].threads, of.published[0].queue_per_thread) = (String::new(), String::new());
    assert_eq!(figure(&of)[1], "4k-rand-read, primary, stock format, linux host");
}

#[test]
fn a_published_ratio_is_taken_to_the_nearest_end_of_a_range() {
    let mut of = run(STOCK);
    of.published.truncate(1);
    of.published[0] = Figure {
        value_low: 200.0,
        value_high: 300.0,
        measured: Some(330.0),
        ..of.published[0].clone()
    };
    let page = review(&[of], TITLE);
    let all = part(section(&page, "published"), "Every figure", "</details>");
    let row = rows(all, "<table").remove(1);
    assert_eq!(row[3..], ["200 to 300", "330", "1.10", "in"], "{row:?}");
}

fn commands(runs: &[Run]) -> String {
    let page = review(runs, TITLE);
    bare(part(&page, "<pre><code>", "</code>").strip_prefix("<pre><code>").unwrap())
}

#[test]
fn the_command_that_repeats_a_model_has_its_host_seed_and_scale() {
    let command = "floatgate review iodrive-duo --protocol enterprise --host linux --seed 1";
    assert_eq!(commands(&review_of_two()), format!("{command} --time-lapse 32"), "once for both");
    let mut whole = run(STOCK);
    whole.target.time_lapse = 1;
    assert_eq!(commands(&[whole]), format!("{command} --full-scale"));
}

#[test]
fn the_command_that_repeats_a_real_drive_quotes_its_name_for_a_shell() {
    let mut real = run(STOCK);
    real.target.kind = TargetKind::File;
    real.target.name = "/tmp/it's a disk".into();
    let command = commands(&[real.clone()]);
    assert_eq!(
        command,
        "floatgate review &#39;/tmp/it&#39;\\&#39;&#39;s a disk&#39; --protocol \
                         enterprise"
    );
    real.target.name = "/dev/nvme0n1".into();
    assert_eq!(commands(&[real]), "floatgate review /dev/nvme0n1 --protocol enterprise");
}

#[test]
fn provenance_names_folder_versions_and_seed_of_every_run() {
    let mut runs = review_of_two();
    runs[1].model_version = None;
    let page = review(&runs, TITLE);
    let table = rows(part(&page, "<footer id=\"provenance\"", "</footer>"), "<table");
    assert_eq!(table.len(), 2);
    assert_eq!(table[0][1], "2026-11-21T101503Z-iodrive-duo-stock");
    assert_eq!(table[0][3..], ["0.1.0", "1", &Run::SCHEMA.to_string(), "1"]);
    assert_eq!(table[1][4], "–", "a real drive has no model");
}

#[test]
fn workloads_beyond_four_are_named_by_the_first_and_the_last() {
    let mut of = run(STOCK);
    let measured = of.steps.iter().find(|step| step.is_primary()).unwrap().clone();
    let add = |of: &mut Run, name: &str| {
        let step = Step { id: format!("4k/{name}"), workload: name.into(), ..measured.clone() };
        of.steps.push(step);
    };
    let named = |of: &Run| {
        let page = review(std::slice::from_ref(of), TITLE);
        let rows = rows(section(&page, "method"), "class=\"steps\"");
        rows.into_iter().find(|row| row[0] == "4K random").unwrap().swap_remove(4)
    };
    add(&mut of, "a");
    add(&mut of, "b");
    assert_eq!(named(&of), "4k-rand-write, 4k-rand-read, a, b");
    add(&mut of, "c");
    assert_eq!(named(&of), "4k-rand-write to c");
}

#[test]
fn time_lapse_is_explained_for_each_run_that_has_it() {
    let mut runs = review_of_two();
    runs[1].target.time_lapse = 8;
    let page = review(&runs, TITLE);
    let method = bare(section(&page, "method"));
    assert!(method.contains("Time lapse, stock: 1/32 of the capacity"), "{method}");
    assert!(method.contains("Time lapse, high-performance: 1/8 of the capacity"), "{method}");
}

#[test]
fn runs_of_one_protocol_name_it_once() {
    let page = review(&review_of_two(), TITLE);
    assert!(section(&page, "method").contains("<p>Protocol: Enterprise steady state. "));
}

#[test]
fn steps_that_no_driver_described_have_no_list() {
    let mut of = run(STOCK);
    of.steps.iter_mut().for_each(|step| step.how.clear());
    assert!(!review(&[of], TITLE).contains("as its driver describes it"));
}

#[test]
fn devices_of_one_target_are_outstanding_together_in_littles_law() {
    let mut of = run(STOCK);
    let off = |of: &Run| {
        let page = review(std::slice::from_ref(of), TITLE);
        let said = part(&page, "(Little's law) in ", "; deviations").to_owned();
        let percent = said.rsplit("within ").next().unwrap().trim_end_matches(" %").to_owned();
        percent.parse::<f64>().unwrap()
    };
    let alone = off(&of);
    assert!(alone < 50.0, "{alone}");
    of.target.devices = 2;
    for step in &mut of.steps {
        let Some(summary) = step.summary.clone() else { continue };
        step.devices = vec![DeviceFigures { name: "a".into(), summary }];
    }
    assert!(off(&of) > alone, "half of what two devices should have outstanding");
}

#[test]
fn platforms_are_told_once_where_runs_share_them_and_apart_where_they_differ() {
    let mut runs = review_of_two();
    let driver = "VSL 3.1.1 on CentOS 6.2 (modelled)";
    assert_eq!(review(&runs, TITLE).matches(driver).count(), 1);
    let fio = |version: &str| PlatformRow { name: "fio".into(), value: version.into() };
    runs[0].environment.sheet.push(fio("3.33"));
    runs[1].environment.sheet.push(fio("3.36"));
    let page = review(&runs, TITLE);
    assert_eq!(page.matches(driver).count(), 2);
    assert!(page.contains("3.33") && page.contains("3.36"));
}

#[test]
fn formats_of_one_drive_differ_in_nothing_that_a_reader_must_be_told() {
    let page = review(&[run(STOCK), run(FAST)], TITLE);
    assert!(!page.contains("id=\"conditions\""));
    let mut other = run(FAST);
    other.model_version = Some(2);
    let page = review(&[run(STOCK), other], TITLE);
    let told = rows(section(&page, "conditions"), "class=\"conditions\"");
    assert_eq!(told, [["model version", "1", "2"]]);
}

#[test]
fn a_mean_above_a_percentile_is_noted_in_every_table_that_has_both() {
    let mut of = run(STOCK);
    let is_shown = |step: &&mut Step| {
        step.kind == StepKind::Measure && step.workload == "8k-70-30" && step.threads == 16
    };
    let shown = of.steps.iter_mut().filter(is_shown).max_by_key(|step| step.queue_per_thread);
    let latency = &mut shown.unwrap().summary.as_mut().unwrap().latency;
    let p999 = latency.latency_ns_p999.unwrap();
    latency.latency_ns_avg = p999 as f64 * 1.5;
    latency.latency_ns_p9999 = Some(p999 * 2);
    let note = "mean above p99.9: rare requests of up to ";
    let page = review(&[of], TITLE);
    assert!(section(&page, "summary").contains(note));
    assert!(section(&page, "suite-8k-70-30").contains(note), "the table of the loads");
    assert!(!review(&[run(STOCK)], TITLE).contains("rare requests of up to"));
}

#[test]
fn figures_of_another_program_are_called_imported() {
    let mut of = run(STOCK);
    of.environment.imported_from = Some("fio-3.33".into());
    (of.target.kind, of.model_version) = (TargetKind::BlockDevice, None);
    let page = review(&[of], TITLE);
    assert!(page.contains("Imported from fio-3.33"));
    assert!(page.contains("how the drive was prepared is unknown"));
    assert!(!page.contains("after the preconditioning of each suite."));
}

#[test]
fn a_latency_that_was_not_measured_is_a_dash() {
    let mut of = run(STOCK);
    for step in &mut of.steps {
        for summary in step.summary.iter_mut().chain(&mut step.settled) {
            let nothing = results::LatencySummary::default();
            (summary.latency, summary.read, summary.write) = (nothing, nothing, nothing);
        }
    }
    let page = review(&[of], TITLE);
    let table = section(&page, "summary");
    assert!(table.contains("<td>–</td>") && !table.contains("<td>0</td>"), "{table}");
}

#[test]
fn imported_figures_have_no_command_no_seed_and_no_rule_of_steady_state() {
    let mut of = run(STOCK);
    of.target.kind = TargetKind::File;
    of.environment.imported_from = Some("fio-3.33".into());
    let page = review(&[of.clone()], TITLE);
    let footer = part(&page, "<footer id=\"provenance\"", "</footer>");
    assert!(!footer.contains("floatgate review") && !footer.contains("To repeat it"), "{footer}");
    assert_eq!(rows(footer, "<table")[0].last().unwrap(), "–");
    assert!(!page.contains("seed 1"), "its requests are unknown");
    assert!(!section(&page, "method").contains("SNIA performance test"), "nothing was judged");
    let page = review(&[of, run(FAST)], TITLE);
    assert_eq!(commands(&[run(FAST)]).lines().count(), 1);
    assert!(page.contains("To repeat it:</p><pre><code>floatgate review iodrive-duo "));
    assert!(section(&page, "method").contains("SNIA performance test"));
}
