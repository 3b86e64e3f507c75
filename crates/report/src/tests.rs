//! The page as a whole: complete, harmless, the same every time, and small.

use crate::example::{FAST, STOCK, Shape, review_of_two, run};
use crate::review;
use results::mark::{UNVALIDATED, UNVALIDATED_REASON};
use results::{
    ApplicationFigures, ApplicationInterval, RecordedApplication, Run, Step, StepKind,
    TransactionMix, Warning, WarningKind,
};

mod atlas;
mod browser;
mod comparisons;
mod content;
mod header;
mod judgement;
mod markup;
mod one_page;
mod pages;
mod snia;
mod suites;

const TITLE: &str = "Fusion-io ioDrive Duo 640 GB (MLC)";

/// The page without the vendored library, whose licence and banner name addresses.
fn own(page: &str) -> String {
    let from = page.find("<script>/*!").unwrap();
    let to = from + page[from..].find("</script>").unwrap();
    format!("{}{}", &page[..from], &page[to..])
}

#[test]
fn the_same_runs_give_the_same_bytes() {
    assert_eq!(review(&review_of_two(), TITLE), review(&review_of_two(), TITLE));
}

#[test]
fn a_review_is_small_enough_to_mail() {
    let page = review(&review_of_two(), TITLE);
    let charts = page.matches("<figure ").count();
    assert!(charts >= 50, "{charts} charts");
    assert!(page.len() * 70 / charts < 3_000_000, "{} bytes for {charts} charts", page.len());
}

#[test]
fn a_comparison_of_six_runs_is_small_enough_to_mail() {
    let runs: Vec<Run> = (1..=6).map(|seed| run(Shape { seed, ..STOCK })).collect();
    let page = review(&runs, "Six runs");
    assert!(page.matches("-heat-").count() >= 24, "a map of each suite of each run");
    assert!(page.len() < 3_100_000, "{} bytes", page.len());
}

#[test]
fn a_group_of_devices_says_how_much_is_outstanding_on_all_of_them() {
    let mut of_eight = run(STOCK);
    of_eight.target.devices = 8;
    let page = review(&[of_eight], TITLE);
    assert!(page.contains("T16Q16 is 2048 requests outstanding in all"));
    assert!(page.contains("<td>2048</td>"));
}

#[test]
fn applications_are_told_as_predictions_of_transactions() {
    let page = review(&[of_applications("A", 1.0), of_applications("B", 0.5)], TITLE);
    assert!(page.contains("Maximum transactions per second, predicted."));
    assert!(page.contains("SysBench: 800 on A at 8 clients and 400 on B"));
    assert!(page.contains("Predicted, not measured: SysBench was recorded on 3 GB in memory"));
    assert!(
        page.contains("whose replies had the latencies of the model slow, on a machine with 2 x")
    );
    assert!(page.contains("percentile of the logged transactions, from begin to commit"));
    // The rate that the host decides has none.
    assert!(page.contains("<td>16</td><td>–</td>") && page.contains("<td>800</td>"));
    assert!(page.contains("Transactions per second, side by side"));
    for of_requests in ["id=\"conclusion\"", "id=\"comparison\"", "Steady state not measured"] {
        assert!(!page.contains(of_requests), "{of_requests}");
    }
    let mixed = review(&[run(STOCK), of_applications("A", 1.0)], TITLE);
    assert!(mixed.contains("id=\"conclusion\""), "requests were measured too");
    let alone = review(&[of_applications("A", 1.0)], TITLE);
    assert!(!alone.contains("side by side"));
}

#[test]
fn a_rate_from_a_recording_with_a_pause_is_marked_and_explained() {
    let mut of = of_applications("A", 1.0);
    assert!(
        !review(std::slice::from_ref(&of), TITLE).contains("† In the recording all clients paused")
    );
    for figures in of.steps.iter_mut().filter_map(|step| step.application.as_mut()) {
        figures.recorded.pause_share = Some(0.12);
    }
    let page = review(&[of], TITLE);
    assert!(page.contains("<td>800 †</td>"));
    assert!(page.contains("<td>16</td><td>–</td>"), "no rate, no mark");
    assert!(page.contains("† In the recording all clients paused at once, with no request"));
    assert!(page.contains("for 12 % of the time"));
}

/// A run of one application on the drive `name`, with `factor` times 100 transactions a second for
/// each of its clients.
fn of_applications(name: &str, factor: f64) -> Run {
    let mut of = run(STOCK);
    of.target.title = name.into();
    of.id = format!("run-{name}");
    of.warnings.clear();
    let measure = of.steps.iter().find(|step| step.is_primary()).unwrap().clone();
    let step = |clients: u16| {
        let is_told = clients < 16;
        let told = |value: f64| is_told.then_some(value);
        let figures = ApplicationFigures {
            application: "sysbench-oltp".into(),
            title: "SysBench".into(),
            tps: told(f64::from(clients) * 100.0 * factor),
            latency_ms_mean: told(10.0 / factor),
            latency_ms_p99: told(30.0 / factor),
            host_share: if is_told { 0.4 } else { 0.9 },
            node: None,
            intervals: Vec::new(),
            mix: Some(TransactionMix {
                reads: 26.0,
                writes: 7.5,
                flushes: 1.5,
                read_bytes: 26.0 * 16384.0,
                write_bytes: 65536.0,
            }),
            recorded: RecordedApplication {
                device: "3 GB in memory".into(),
                model: Some("./slow.toml".into()),
                machine: "2 x AMD EPYC".into(),
                requests: 1000,
                span_s: 3.0,
                tps: Some(50.0),
                host_share: 0.1,
                pause_share: None,
            },
        };
        Step {
            id: format!("sysbench-oltp/sysbench-oltp/{clients}-clients"),
            kind: StepKind::Application,
            suite: "sysbench-oltp".into(),
            suite_title: "SysBench".into(),
            workload: "sysbench-oltp".into(),
            threads: clients,
            queue_per_thread: 1,
            application: Some(figures),
            ..measure.clone()
        }
    };
    of.steps = [2, 4, 8, 16].map(step).to_vec();
    of
}

#[test]
fn drives_with_one_load_each_are_drawn_over_time() {
    let mut of = of_applications("A", 1.0);
    for (number, step) in (1..).zip(&mut of.steps) {
        let at = |index: u32| ApplicationInterval {
            at_s: f64::from(index) * 10.0,
            tps: 1000.0,
            latency_ms_mean: Some(8.0),
        };
        let figures = step.application.as_mut().unwrap();
        figures.node = Some(number);
        figures.intervals = (1..=24).map(at).collect();
    }
    let page = review(&[of], TITLE);
    assert!(page.contains("Average latency over time") && page.contains("drive 4"));
    assert!(page.contains("<th scope=\"col\">Drive</th>"), "drives and no clients");
    assert!(
        page.contains("a transaction makes 26") && page.contains("reads (416 KiB in total), 7.5")
    );
    assert!(!page.contains("Share of the host</"), "over clients, of which there is one number");
}

#[test]
fn nothing_is_asked_of_a_network() {
    let page = own(&review(&review_of_two(), TITLE));
    for request in ["http:", "https:", " src=", "url(", "@import", "fetch(", "XMLHttp"] {
        assert!(!page.contains(request), "{request}");
    }
    let links = page.split(" href=\"").skip(1);
    assert!(links.clone().count() > 5);
    assert!(links.into_iter().all(|link| link.starts_with('#')));
}

#[test]
fn names_of_a_run_cannot_become_markup() {
    const HOSTILE: &str = "</script><script>alert(1)</script><img onerror='x' a=\"b\">&<!--";
    let mut runs = review_of_two();
    let text = || HOSTILE.to_owned();
    for run in &mut runs {
        (run.id, run.started_at, run.floatgate_version) = (text(), text(), text());
        (run.protocol, run.protocol_title) = (text(), text());
        (run.target.title, run.target.name, run.target.host) = (text(), text(), text());
        run.target.format.push_str(HOSTILE);
        for row in &mut run.target.sheet {
            (row.group, row.name, row.value, row.source) = (text(), text(), text(), text());
        }
        for row in &mut run.environment.sheet {
            (row.name, row.value) = (text(), text());
        }
        for figure in &mut run.published {
            (figure.id, figure.document, figure.note) = (text(), text(), text());
            (figure.mode, figure.host, figure.phase) = (text(), text(), text());
        }
        for step in &mut run.steps {
            (step.how, step.suite_title) = (text(), text());
            step.suite.push_str(HOSTILE);
            step.workload.push_str(HOSTILE);
            step.id.push_str(HOSTILE);
        }
        let step = run.steps[1].id.clone();
        let kind = WarningKind::NotSteady;
        run.warnings.push(Warning { kind, step, text: text(), remedy: text() });
    }
    let harmless = review(&review_of_two(), TITLE);
    let page = review(&runs, HOSTILE);
    for tag in ["<script", "</script", "<img", "<!--"] {
        assert_eq!(page.matches(tag).count(), harmless.matches(tag).count(), "{tag}");
    }
}

#[test]
fn every_chart_names_its_runs() {
    let runs = review_of_two();
    let page = review(&runs, TITLE);
    for figure in page.split("<figure id=").skip(1) {
        let figure = figure.split("</figure>").next().unwrap();
        let named = runs.iter().filter(|run| figure.contains(&format!("run {}, seed", run.id)));
        let own = figure.contains("-wa-") || figure.contains("-heat-");
        assert_eq!(named.count(), if own { 1 } else { 2 }, "{figure}");
    }
}

#[test]
fn an_unvalidated_model_is_marked_wherever_its_figures_are() {
    let mut runs = vec![run(STOCK)];
    runs[0].target.unvalidated = true;
    let page = review(&runs, &runs[0].target.heading());
    assert!(page.contains(&format!("<h1>{TITLE}, {UNVALIDATED}</h1>")));
    assert_eq!(page.matches(UNVALIDATED_REASON).count(), 1, "once a page");
    for figure in page.split("<figure ").skip(1) {
        let figure = figure.split("</figure>").next().unwrap();
        assert!(figure.contains(UNVALIDATED), "{figure}");
    }
    for section in page.split("<section ").skip(1) {
        let section = section.split("</section>").next().unwrap();
        let has_figures = section.contains("IOPS");
        assert!(!has_figures || section.contains(UNVALIDATED), "{section}");
    }
    let page = review(&[run(STOCK)], TITLE);
    assert!(!page.contains(&format!("stock, {UNVALIDATED}")) && !page.contains(UNVALIDATED_REASON));
}

#[test]
fn an_unvalidated_model_beside_another_is_the_one_that_is_marked() {
    let mut runs = review_of_two();
    runs[1].target.unvalidated = true;
    let page = review(&runs, TITLE);
    assert!(page.contains(&format!("high-performance, {UNVALIDATED}: run")));
    assert!(!page.contains(&format!("stock, {UNVALIDATED}")));
}

#[test]
fn a_warning_stands_on_top_and_once_at_the_charts_of_its_step() {
    let mut runs = vec![run(STOCK)];
    runs[0].warnings.push(Warning {
        kind: WarningKind::Throttled,
        step: "8k-70-30/precondition".into(),
        text: "it was hot for 31 %".into(),
        remedy: "cool it".into(),
    });
    let page = review(&runs, TITLE);
    let marked = page.matches("class=\"caution\"").count();
    assert_eq!(marked, 1, "once for the charts of the preconditioning");
    assert_eq!(page.matches("it was hot for 31 %").count(), marked + 1);
    runs[0].warnings[1].kind = WarningKind::NotSteady;
    let page = review(&runs, TITLE);
    assert!(!page.contains("class=\"caution\""), "the verdict on the preconditioning says so");
}

#[test]
fn a_review_opens_with_a_verdict_and_a_picture() {
    let page = review(&[run(STOCK)], TITLE);
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(
        at("Modelled in steady state: 39K IOPS 4K random write") < at("class=\"glance\""),
        "the verdict first"
    );
    assert!(at("class=\"glance\"") < at("glance-strip"));
    assert!(at("glance-strip") < at("id=\"summary\""), "tables follow");
    assert!(page.contains(">published<"), "the published figure is beside the run's");
    assert!(page.contains("class=\"other\""), "drives of the catalogue are beside it");
    assert!(page.contains("The IOPS of 4K random writes settle at "));
}

#[test]
fn a_drive_that_never_settled_is_not_said_to_have() {
    let mut burst = run(STOCK);
    for step in burst.steps.iter_mut().filter(|step| step.steady.is_some()) {
        step.steady.as_mut().expect("it is there").achieved = false;
    }
    let page = review(&[burst], TITLE);
    assert!(page.contains("Modelled, steady state not reached: "));
    assert!(!page.contains("Steady state: ") && !page.contains("in steady state: "));
    let own = &page[page.find("<tr class=\"own").unwrap()..];
    let cells: Vec<&str> = own[..own.find("</tr>").unwrap()].split("<td").skip(1).collect();
    let is_marked: Vec<bool> = cells.iter().map(|it| it.contains("<i>not steady</i>")).collect();
    assert_eq!(is_marked, [true, false, true, true], "reads have nothing to settle");
}

#[test]
fn warnings_of_one_kind_stand_together_and_all_of_them_on_paper() {
    let mut runs = vec![run(STOCK)];
    for load in ["T2Q2", "T4Q4", "T8Q8"] {
        runs[0].warnings.push(Warning {
            kind: WarningKind::LittlesLaw,
            step: format!("4k/{load}"),
            text: format!("{load} is off"),
            remedy: "run it again".into(),
        });
    }
    let page = review(&runs, TITLE);
    assert_eq!(page.matches("Rate, latency and queue disagree").count(), 1);
    assert_eq!(page.matches("run it again.").count(), 1, "one remedy for all");
    assert!(page.contains("Rate, latency and queue disagree, 3 warnings."), "one sentence");
    assert!(page.contains(".warnings details::details-content"), "print opens them");
}

#[test]
fn what_explains_folds_away() {
    let page = review(&review_of_two(), TITLE);
    let shown: usize = page
        .split("<details")
        .enumerate()
        .map(|(index, part)| {
            let open = if index == 0 { part } else { part.split_once("</details>").unwrap().1 };
            open.matches("<figure id=").count()
        })
        .sum();
    assert!(shown <= 26, "{shown} charts are in sight");
}

#[test]
fn identifiers_are_unique() {
    let page = review(&review_of_two(), TITLE);
    let mut ids: Vec<&str> =
        page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
}

#[test]
fn a_run_that_was_stopped_is_still_a_page() {
    let mut nothing = run(STOCK);
    nothing.steps.clear();
    let mut purged = run(STOCK);
    purged.steps.truncate(1);
    let mut unsampled = run(FAST);
    for step in &mut unsampled.steps {
        step.samples.clear();
        (step.summary, step.settled, step.steady) = (None, None, None);
        (step.read_bins, step.write_bins) = (Vec::new(), Vec::new());
    }
    let pages: [Vec<Run>; 4] =
        [Vec::new(), vec![nothing.clone()], vec![purged, unsampled], vec![nothing, run(FAST)]];
    for runs in pages {
        let page = review(&runs, TITLE);
        assert!(page.ends_with("</html>\n"));
        assert!(!page.contains("NaN") && !page.contains(">inf"), "{}", runs.len());
    }
    let page = review(&[run(FAST)], TITLE);
    assert!(!page.contains("steps were done"));
}

#[test]
fn runs_of_other_protocols_stand_side_by_side() {
    let mut quick = run(FAST);
    quick.protocol = "quick".into();
    quick.protocol_title = "Quick look".into();
    quick.steps.retain(|step| step.suite == "4k");
    let page = review(&[run(STOCK), quick], TITLE);
    assert!(page.contains("Enterprise steady state; Quick look"));
    assert!(page.contains("id=\"conditions\""), "the protocols differ");
}

#[test]
fn a_workload_of_two_suites_is_named_with_each() {
    let mut twice = run(FAST);
    let again: Vec<_> = twice.steps.iter().filter(|step| step.suite == "4k").cloned().collect();
    twice.steps.extend(again.into_iter().map(|step| Step {
        id: format!("again-{}", step.id),
        suite: "again".into(),
        suite_title: "Once more".into(),
        ..step
    }));
    let title = format!("4k-rand-write, {}", twice.steps[0].suite_title);
    let page = review(&[twice], TITLE);
    assert!(page.contains("4k-rand-write, Once more") && page.contains(&title));
    assert!(!review(&[run(FAST)], TITLE).contains(&title));
}

/// Writes pages to look at into the folder that `REPORT_DUMP` names.
#[test]
#[expect(clippy::disallowed_methods, reason = "where a person asked for pages, not a result")]
fn pages_can_be_looked_at() {
    let Ok(folder) = std::env::var("REPORT_DUMP") else { return };
    let many: Vec<_> = (1..=6_u32)
        .map(|index| {
            let settled_iops = 20_000.0 * f64::from(index);
            run(Shape { settled_iops, seed: u64::from(index), ..STOCK })
        })
        .collect();
    let mut odd = vec![run(STOCK), run(FAST)];
    odd[0].steps.truncate(2);
    odd[1].steps.clear();
    for (name, runs) in
        [("two", review_of_two()), ("six", many), ("one", vec![run(FAST)]), ("odd", odd)]
    {
        std::fs::write(format!("{folder}/{name}.html"), review(&runs, TITLE)).unwrap();
    }
}
