//! Runs beside each other: bars, ratios, places, summary tables.

use results::{
    Run, Sampling, Steady, SteadyEvidence, Step, StepKind, TargetKind, Warning, WarningKind,
};

use super::TITLE;
use super::markup::{bare, part, rows, section};
use crate::example::{FAST, STOCK, Shape, as_drives, review_of_two, run};
use crate::review;

fn comparison(runs: &[Run]) -> String {
    section(&review(runs, TITLE), "comparison").to_owned()
}

#[test]
fn ratios_are_those_to_the_first_run() {
    let html = comparison(&review_of_two());
    assert!(html.contains("<h3>Against stock</h3>"));
    let ratios = rows(&html, "class=\"ratios\"");
    let row = |name: &str| ratios.iter().find(|row| row[0] == name).unwrap();
    let write: f64 = row("4k-rand-write")[1].trim_end_matches('×').parse().unwrap();
    let expected = FAST.settled_iops / STOCK.settled_iops;
    assert!((write / expected - 1.0).abs() < 0.05, "{write} for {expected}");
    let read = row("4k-rand-read");
    assert!(read[1].ends_with("× even") && read[2].ends_with("× even"), "{read:?}");
}

#[test]
fn a_workload_that_one_run_lacks_has_no_ratio_and_no_place() {
    let mut runs = as_drives(review_of_two());
    runs[1].steps.retain(|step| step.suite != "file-server");
    let html = comparison(&runs);
    let ratios = rows(&html, "class=\"ratios\"");
    let lacking = ratios.iter().find(|row| row[0] == "file-server");
    assert!(lacking.is_none_or(|row| row[1] == "–" && row[2] == "–"), "{lacking:?}");
    let order = rows(&html, "<h3>Order</h3>");
    assert!(order.iter().all(|row| row[0] != "file-server"), "one run alone measured it");
    assert!(order.iter().any(|row| row[0] == "4k-rand-write"));
}

#[test]
fn a_price_is_told_for_what_is_known_and_no_price_is_invented() {
    let mut runs = review_of_two();
    assert!(!review(&runs, TITLE).contains("<h3>Price</h3>"), "none is known");
    runs[0].target.price = Some("12800USD@2010-01".parse().unwrap());
    runs[0].target.endurance_pb = Some(8.0);
    let told = bare(part(&review(&runs, TITLE), "<h3>Price</h3>", "</tbody>"));
    assert!(
        told.contains("12,800 USD (2010-01, as stated)") && told.contains("20.0 USD"),
        "{told}"
    );
    assert!(told.contains("1.60 USD"), "for each TB written: {told}");
    assert!(told.ends_with("high-performance––––"), "{told}");
}

#[test]
fn each_load_names_the_first_by_each_metric_and_every_place_has_its_figure() {
    let third = run(Shape { format: "third", settled_iops: 60_000.0, ..STOCK });
    let mut runs = review_of_two();
    runs.push(third);
    let html = comparison(&as_drives(runs));
    let order = rows(&html, "<h3>Order</h3>");
    let of = |workload: &str, level: &str| {
        let row = order.iter().find(|row| row[0] == workload && row[1].ends_with(level));
        row.unwrap_or_else(|| panic!("no {workload} {level} in {order:?}")).clone()
    };
    let write = of("4k-rand-write", "T16Q16, full");
    assert!(write[2].starts_with("high-performance +"), "{write:?}");
    assert!(write[3].starts_with("high-performance −"), "the lower latency: {write:?}");
    assert_eq!(write.len(), 7, "a workload, its load and five metrics: {write:?}");
    assert_eq!(of("4k-rand-read", "full")[2], "even");
    assert!(of("8k-70-30", "low")[1] < of("8k-70-30", "middle")[1]);
    let places = rows(&html, "<summary>Every place");
    let at = places.iter().position(|row| row[0] == "4k-rand-write T16Q16, full").unwrap();
    let ranks = places[at + 1..][..3].iter().map(|row| {
        let (figure, rank) = row[1].split_once(' ').unwrap();
        assert!(figure.replace(',', "").parse::<f64>().is_ok(), "{row:?}");
        (row[0].as_str(), rank.to_owned())
    });
    let expected = [("stock", "3."), ("high-performance", "1."), ("third", "2.")];
    assert_eq!(ranks.collect::<Vec<_>>(), expected.map(|(name, rank)| (name, rank.to_owned())));
}

#[test]
fn bars_are_grouped_by_workload_at_the_load_that_stands_for_it() {
    let html = comparison(&review_of_two());
    let bars = part(&html, "<figure id=\"compare-iops\"", "</figure>");
    for workload in ["4k-rand-write, T16Q16", "4k-rand-read, T16Q16", "8k-70-30, T16Q16"] {
        assert!(bars.contains(workload), "{workload}");
    }
    assert!(!bars.contains("T8Q8"), "a lighter load is not drawn");
    assert_eq!(html.matches("<ul class=\"legend\">").count(), 1, "one legend for both charts");
}

#[test]
fn two_groups_of_repeats_are_named_with_the_number_of_their_runs() {
    let repeats = |shape: Shape<'static>| {
        (1..=2).map(move |seed| {
            let mut run = run(Shape { seed, ..shape });
            run.target.kind = TargetKind::BlockDevice;
            (run.seed, run.model_version) = (1, None);
            run.id = format!("{}-{seed}", run.id);
            run
        })
    };
    let runs: Vec<Run> = repeats(STOCK).chain(repeats(FAST)).collect();
    let html = comparison(&as_drives(runs));
    let heading = "<h3>Against stock, 2 runs</h3>";
    assert!(html.contains(heading), "{}", part(&html, "<h3>Against", "</h3>"));
    assert!(html.contains("high-performance, 2 runs</th>"));
    let order = rows(&html, "<h3>Order</h3>");
    let row = order.iter().find(|row| row[0] == "4k-rand-write").unwrap();
    assert!(row[2].starts_with("high-performance, 2 runs +"), "{row:?}");
    let places = rows(&html, "<summary>Every place");
    let named = |name: &str| places.iter().filter(|row| row[0] == name).count();
    assert_eq!(named("stock, 2 runs"), order.len(), "a row for each group, none for a repeat");
    assert_eq!(named("stock"), 0);
}

#[test]
fn a_settled_preconditioning_is_compared_with_the_model_by_its_last_window() {
    let mut measured = run(STOCK);
    measured.target.kind = TargetKind::BlockDevice;
    let html = comparison(&[run(STOCK), measured]);
    let missed = rows(&html, "Model against measurement");
    let row = missed.iter().find(|row| row[0].ends_with(", last window")).unwrap();
    assert_eq!(row[3..], ["+0 %", "+0 %"], "the same numbers: {row:?}");
}

/// The run with a warning that requests of its step `id` are missing.
fn lacking(mut run: Run, id: &str) -> Run {
    assert!(run.step(id).is_some());
    run.warnings.push(Warning {
        kind: WarningKind::Unfinished,
        step: id.into(),
        text: "197.0 had not completed".into(),
        remedy: "measure for longer".into(),
    });
    run
}

#[test]
fn figures_that_lack_requests_have_no_percentile_no_bar_and_no_winner() {
    let mut runs = as_drives(review_of_two());
    let steps = runs[1].steps.iter();
    let write = steps.filter(|step| step.is_primary() && step.workload == "4k-rand-write");
    let id = write.max_by_key(|step| step.threads * step.queue_per_thread).unwrap().id.clone();
    runs[1] = lacking(runs[1].clone(), &id);
    let rows = summary(&runs, PRIMARY);
    let at = rows.iter().position(|row| row[0].starts_with("4k-rand-write")).unwrap();
    let missing = &rows[at + 2][0];
    assert!(missing.starts_with("high-performance requests missing"), "{missing}");
    assert_eq!((rows[at + 1][4] == "–", &*rows[at + 2][4]), (false, "–"));
    let html = comparison(&runs);
    let withheld = "Without a bar: high-performance in 4k-rand-write, whose figures a warning";
    assert!(html.contains(withheld), "{html}");
    assert!(!comparison(&as_drives(review_of_two())).contains("Without a bar"));
    let order = super::markup::rows(&html, "<h3>Order</h3>");
    let row = order.iter().find(|row| row[0] == "4k-rand-write").unwrap();
    assert!(row[2..].iter().all(|cell| cell == "–"), "one alone is not first: {row:?}");
    assert!(order.iter().any(|row| row[2].contains('+')), "other loads keep theirs: {order:?}");
    assert!(html.contains("<td class=\"absent\">in doubt</td>"));
    let page = review(&runs, TITLE);
    let left_out = "Percentiles of 4k-rand-write: high-performance is left out, since requests";
    assert!(section(&page, "suite-4k").contains(left_out));
    let figure = part(&page, "<figure id=\"4k-4k-rand-write-percentiles\"", "</figure>");
    assert!(figure.contains("<ul class=\"legend\">") || figure.contains("stock"), "{figure}");
    let law = part(&page, "high-performance: IOPS times average latency", "</p>").to_owned();
    assert!(law.contains("1 load lacks requests that had not completed"), "{law}");
}

/// Rows of the summary table below this heading.
fn summary(runs: &[Run], heading: &str) -> Vec<Vec<String>> {
    let page = review(runs, TITLE);
    let table = part(section(&page, "summary"), heading, "</table>").to_owned();
    let bodies = table.split("<tbody>").skip(1);
    bodies
        .flat_map(|body| body.split("<tr").skip(1))
        .map(|row| {
            let cells = row.split("<t").skip(1);
            cells.map(|cell| bare(cell.split_once('>').map_or("", |it| it.1))).collect()
        })
        .collect()
}

const SETTLED: &str = "The last five rounds of each preconditioning";
const PRIMARY: &str = "Primary test: each workload at T16Q16, else at its greatest load";

#[test]
fn every_run_has_a_row_below_each_workload_of_the_summary() {
    let rows = summary(&review_of_two(), PRIMARY);
    let loads: Vec<&str> = rows.iter().filter(|row| row.len() == 1).map(|it| &*it[0]).collect();
    assert_eq!(loads.len(), 5, "two of 4K, and three sweeps: {loads:?}");
    assert!(loads.iter().all(|it| it.ends_with("T16Q16")), "{loads:?}");
    let names: Vec<&str> = rows.iter().filter(|row| row.len() > 1).map(|it| &*it[0]).collect();
    let expected = ["stock", "high-performance"].repeat(5);
    assert!(names.iter().zip(&expected).all(|(it, name)| it.starts_with(name)), "{names:?}");
    assert_eq!(names.len(), expected.len());
}

#[test]
fn a_run_that_lacks_a_workload_has_no_row_below_it() {
    let mut runs = review_of_two();
    runs[1].steps.retain(|step| step.workload != "4k-rand-read");
    let rows = summary(&runs, PRIMARY);
    let at = rows.iter().position(|row| row[0].starts_with("4k-rand-read")).unwrap();
    assert_eq!(rows[at + 1][0], "stock");
    assert_eq!(rows.get(at + 2).map(Vec::len), Some(1), "the next workload follows");
}

#[test]
fn a_real_drive_has_no_write_amplification() {
    let mut real = run(STOCK);
    real.target.kind = TargetKind::BlockDevice;
    for step in &mut real.steps {
        step.summary.iter_mut().chain(&mut step.settled).for_each(|it| it.nand = None);
        step.samples.iter_mut().for_each(|it| it.summary.nand = None);
    }
    let page = review(&[real.clone()], TITLE);
    assert!(!page.contains("Write amplification by cause"));
    let rows = summary(&[real], PRIMARY);
    assert!(rows.iter().filter(|row| row.len() > 1).all(|row| row[7] == "–"), "{rows:?}");
    let rows = summary(&[run(STOCK)], PRIMARY);
    assert!(rows.iter().any(|row| row.len() > 1 && row[7] != "–"));
}

fn steady_cell(change: impl Fn(&mut Step)) -> String {
    let mut of = run(STOCK);
    of.steps.retain(|step| step.suite == "4k");
    let step = of.steps.iter_mut().find(|step| step.kind == StepKind::Precondition);
    change(step.unwrap());
    let rows = summary(&[of], SETTLED);
    rows.iter().find(|row| row.len() > 1).unwrap().iter().nth_back(1).unwrap().clone()
}

#[test]
fn what_was_written_by_the_end_is_apart_from_the_time_of_steady_state() {
    let mut of = run(STOCK);
    let step = of.steps.iter_mut().find(|step| step.kind == StepKind::Precondition).unwrap();
    step.written = Some(results::WrittenAmount {
        since_purge_bytes: 5_000_000,
        since_purge_share: 7.94,
        addressed_share: 7.94,
    });
    let rows = summary(&[of], SETTLED);
    let row = rows.iter().find(|row| row.len() > 1).unwrap();
    assert_eq!(row.last().unwrap(), "7.9");
    assert!(!row.iter().nth_back(1).unwrap().contains("7.9"), "{row:?}");
}

fn steady(step: &mut Step) -> &mut Steady {
    step.steady.as_mut().unwrap()
}

#[test]
fn the_summary_tells_steady_state_a_burst_and_what_was_not_judged_apart() {
    assert!(steady_cell(|_| ()).ends_with('h') || steady_cell(|_| ()).ends_with("min"));
    assert_eq!(steady_cell(|step| step.steady = None), "not judged");
    assert_eq!(steady_cell(|step| steady(step).achieved = false), "not reached");
    let burst = |step: &mut Step| {
        steady(step).achieved = false;
        steady(step).evidence = Some(SteadyEvidence::TooLittleWritten);
    };
    assert_eq!(steady_cell(burst), "burst");
}

fn verdict(change: impl Fn(&mut Step)) -> String {
    let mut of = run(STOCK);
    of.steps.retain(|step| step.suite == "4k");
    let step = of.steps.iter_mut().find(|step| step.kind == StepKind::Precondition);
    change(step.unwrap());
    let page = review(&[of], TITLE);
    bare(part(section(&page, "suite-4k"), "<ul class=\"verdicts\">", "</ul>"))
}

#[test]
fn the_verdict_on_a_preconditioning_states_range_and_slope_with_their_limits() {
    let said = verdict(|_| ());
    assert!(said.contains("reached steady state after"), "{said}");
    for name in ["IOPS range ", "average latency range "] {
        let rest = said.split(name).nth(1).unwrap_or_else(|| panic!("no {name}in {said}"));
        assert!(rest.contains("(limit 20 %), slope "), "{rest}");
        assert!(rest.contains("(limit 10 %)"), "{rest}");
    }
}

#[test]
fn a_preconditioning_that_did_not_settle_says_why() {
    let said = verdict(|step| steady(step).achieved = false);
    assert!(said.contains("did not reach steady state in "), "{said}");
    let said = verdict(|step| step.steady = None);
    assert!(said.contains("stock was not judged: too few samples."), "{said}");
    let said = verdict(|step| {
        steady(step).achieved = false;
        steady(step).evidence = Some(SteadyEvidence::TooLittleWritten);
        step.written = Some(results::WrittenAmount {
            since_purge_bytes: 1,
            since_purge_share: 0.4,
            addressed_share: 0.35,
        });
    });
    assert!(said.contains("had written too little (35 % of what it addresses)"), "{said}");
}

#[test]
fn only_runs_that_differ_in_the_drive_alone_are_drawn_side_by_side_and_ranked() {
    let mut runs = as_drives(review_of_two());
    let html = comparison(&runs);
    assert!(html.contains("id=\"compare-iops\"") && html.contains("class=\"places\""));
    assert!(!review(&runs, TITLE).contains("id=\"conditions\""), "no more differs");
    runs[1].target.host = "windows".into();
    let page = review(&runs, TITLE);
    let html = section(&page, "comparison");
    assert!(!html.contains("id=\"compare-iops\"") && !html.contains("class=\"places\""));
    assert!(html.contains("Runs that differ in host are not put in order."));
    let ratios = rows(html, "class=\"ratios\"");
    assert!(ratios.iter().any(|row| row[0] == "4k-rand-write"), "their rows stay");
    let told = rows(section(&page, "conditions"), "class=\"conditions\"");
    assert!(told.contains(&["host", "linux", "windows"].map(String::from).to_vec()), "{told:?}");
    let at = |text: &str| page.find(text).unwrap();
    assert!(at("id=\"conditions\"") < at("id=\"glance\""), "what differs stands first");
    // Formats of one drive are drawn together, and not ranked.
    let html = comparison(&review_of_two());
    assert!(html.contains("id=\"compare-iops\"") && !html.contains("class=\"places\""));
}

#[test]
fn a_run_that_differs_from_those_drawn_is_named_below_them() {
    let mut runs = as_drives(vec![run(STOCK), run(FAST), run(Shape { format: "third", ..STOCK })]);
    assert!(!comparison(&runs).contains("Not drawn beside them"));
    runs[2].target.host = "windows".into();
    let html = comparison(&runs);
    assert!(html.contains("<p>Not drawn beside them: third, which differ in host.</p>"), "{html}");
}

#[test]
fn runs_without_a_workload_in_common_have_no_table_of_ratios() {
    let mut runs = review_of_two();
    for step in &mut runs[1].steps {
        step.workload = format!("other-{}", step.workload);
    }
    let html = comparison(&runs);
    assert!(!html.contains("class=\"ratios\"") && !html.contains("<h3>Against"), "{html}");
}

#[test]
fn a_sampled_run_is_told_from_one_in_detail() {
    let mut runs = review_of_two();
    let detailed = review(&runs, TITLE);
    for step in &mut runs[1].steps {
        let requests = step.summary.as_ref().map_or(0, |it| it.latency.count);
        step.sampling = Some(Sampling {
            precision: 0.01,
            windows: 40,
            requests_measured: 163_840,
            requests,
            ..Sampling::default()
        });
    }
    let html = review(&runs, TITLE);
    let rows = rows(&html, "class=\"conditions\"");
    assert!(rows.iter().any(|row| row[..3] == ["sampling", "none", "to ±1 %"]), "{rows:?}");
    let note = "sampled to ±1 %, maximum of 40 windows alone";
    assert!(part(&html, "<section id=\"summary\"", "</section>").contains(note));
    assert!(html.contains(" --precision 1%"), "the command that repeats it");
    assert!(!detailed.contains("sampled") && !detailed.contains("--precision"));
}
