//! Summary of a review for the terminal; the page has the details.

use blockio::Nanos;
use lab::results::conditions::representative;
use lab::results::mark::marked;
use lab::results::rounds::{WindowCell, window_cells};
use lab::results::steady::WINDOW_ROUNDS;
use lab::results::{Doubt, PREDICTION_ERROR, Run, Steady, Step, StepKind, Summary};

use super::{app, replay};
use crate::table;

/// Indent of the numbers below a title with lines of its own.
const INDENT: &str = "  ";

/// Each run: what its preconditionings ended at, then each workload at the load that stands for it;
/// in lines of at most so many `columns`, where there is a limit.
pub(crate) fn shown(runs: &[Run], columns: Option<usize>) -> String {
    let of_run = |run: &Run| of_run(run, &label(run, runs), columns.unwrap_or(usize::MAX));
    runs.iter().map(of_run).collect::<Vec<_>>().join("\n\n")
}

/// Words that tell `run` from the others of `runs`: its format, and where others have another one,
/// its host and its seed.
pub(super) fn label(run: &Run, runs: &[Run]) -> String {
    let has_other = |differs: &dyn Fn(&Run) -> bool| runs.iter().any(differs);
    let host = has_other(&|other| other.target.host != run.target.host);
    let seed = has_other(&|other| other.seed != run.seed);
    let host = if host { format!(" {}", run.target.host) } else { String::new() };
    let seed = if seed { format!(" seed {}", run.seed) } else { String::new() };
    format!("{}{host}{seed}", run.target.format).trim().to_owned()
}

/// One run, named with its `label`.
fn of_run(run: &Run, label: &str, columns: usize) -> String {
    let title = format!("{} {label}", run.target.title);
    let title = marked(title.trim_end(), run.target.unvalidated);
    let title = table::wrapped(&title, columns).join("\n");
    let head = ["WORKLOAD", "LOAD", "IOPS", "MB/S", "MEAN", "P99.9", ""].map(str::to_owned);
    let applications = applications(&run.steps);
    let settled = run.steps.iter().filter(|step| step.kind == StepKind::Precondition);
    let settled = settled
        .filter_map(|step| Some(row(run, step, (step.settled.as_ref()?, &last_window(step)))));
    let best = best(&run.steps).into_iter();
    let best =
        best.filter_map(|step| Some(row(run, step, (step.summary.as_ref()?, &chosen(run, step)))));
    let rows: Vec<[String; 7]> =
        std::iter::once(head).chain(settled).chain(best).chain(rounds(run)).collect();
    // Applications alone have no such rows.
    let mut numbers = if rows.len() > 1 { table::columns(&rows) } else { String::new() };
    if numbers.lines().any(|line| line.chars().count() > columns) {
        let stacked = rows.iter().skip(1).flat_map(|row| stacked(row, columns));
        numbers = stacked.collect::<Vec<_>>().join("\n");
    }
    numbers += &applications;
    let warnings = match run.warnings.len() {
        0 => String::new(),
        1 => "\n1 warning, see the review".to_owned(),
        count => format!("\n{count} warnings, see the review"),
    };
    format!("{title}\n{numbers}{warnings}")
}

/// Every application with each number of clients; empty where none was replayed.
fn applications(steps: &[Step]) -> String {
    let head = ["APPLICATION", "CLIENTS", "TPS", "MEAN MS", "P99 MS", "HOST"].map(str::to_owned);
    let shown = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |it| format!("{it:.2}"));
    let rows = steps.iter().filter_map(|step| {
        let it = step.application.as_ref()?;
        Some([
            it.node.map_or_else(
                || it.application.clone(),
                |node| format!("{}, drive {node}", it.application),
            ),
            step.threads.to_string(),
            it.tps.map_or_else(
                || "-".to_owned(),
                |tps| format!("{tps:.1}{}", app::pause_mark(it.recorded.pause_share)),
            ),
            shown(it.latency_ms_mean),
            shown(it.latency_ms_p99),
            format!("{:.0} %", it.host_share * 100.0),
        ])
    });
    let rows: Vec<[String; 6]> = std::iter::once(head).chain(rows).collect();
    if rows.len() == 1 {
        return String::new();
    }
    let mut text = table::columns(&rows);
    let figures = || steps.iter().filter_map(|it| it.application.as_ref());
    if figures().any(|it| it.tps.is_none()) {
        text += &replay::host_dominates();
    }
    if figures().any(|it| it.tps.is_some()) {
        text += "\n\n";
        text += PREDICTION_ERROR;
    }
    if figures().any(|it| it.tps.is_some() && it.recorded.pause_share.is_some()) {
        text += app::PAUSED;
    }
    if figures().any(|it| it.latency_ms_mean.is_some() && it.latency_ms_p99.is_some()) {
        text += app::LATENCIES;
    }
    text
}

/// A row in lines of its own, for a screen that is too narrow for the table.
fn stacked(row: &[String; 7], columns: usize) -> Vec<String> {
    let [workload, load, iops, mb_s, mean, p999, what] = row;
    let numbers =
        [format!("{iops} IOPS, {mb_s} MB/s, {what}"), format!("mean {mean}, p99.9 {p999}")];
    let mut lines = table::wrapped(&format!("{workload} {load}"), columns);
    let within = columns.saturating_sub(INDENT.len());
    let numbers = numbers.iter().flat_map(|text| table::wrapped(text, within));
    lines.extend(numbers.map(|line| format!("{INDENT}{line}")));
    lines
}

/// Of suites that are measured in rounds each size and mix, on average over the rounds that were
/// judged: single rounds before them are a burst.
fn rounds(run: &Run) -> Vec<[String; 7]> {
    let in_rounds = run.steps.iter().filter(|step| step.cell.is_some() && step.round.is_some());
    let mut suites: Vec<&str> = in_rounds.map(|step| step.suite.as_str()).collect();
    suites.dedup();
    let rows = suites.into_iter().flat_map(|suite| {
        let steps: Vec<&Step> = run.steps.iter().filter(|step| step.suite == suite).collect();
        let steady = Steady::of_rounds(steps.iter().copied(), &run.target);
        let cells = steady.map(|steady| (window_cells(&steps, &steady), steady));
        let rows = cells.into_iter().flat_map(|(cells, steady)| {
            let what = window(&steady);
            let row = |cell: WindowCell| {
                let step = steps.iter().find(|step| step.cell == Some(cell.cell))?;
                Some(averaged(run, step, &cell, &what))
            };
            cells.into_iter().filter_map(row).collect::<Vec<_>>()
        });
        rows.collect::<Vec<_>>()
    });
    rows.collect()
}

/// The rounds that were judged, and the verdict.
fn window(steady: &Steady) -> String {
    let count = steady.variables.first().map_or(1, |variable| variable.rounds.len());
    let first = (steady.rounds as usize + 1).saturating_sub(count);
    let verdict = if steady.achieved { "steady state" } else { "not steady" };
    format!("average of rounds {first} to {}, {verdict}", steady.rounds)
}

/// The figures of a preconditioning, and whether they are those of a drive in steady state.
pub(super) fn last_window(step: &Step) -> String {
    judged(step.steady.as_ref().map(|steady| (steady.rounds as usize, steady.achieved)))
}

/// The rounds of a verdict, the last of so many, and whether they are steady; absent: no verdict.
fn judged(verdict: Option<(usize, bool)>) -> String {
    match verdict {
        Some((_, true)) => "last five rounds, steady state".into(),
        Some((0 | 1, false)) => "the one round so far, not judged".into(),
        Some((few, false)) if few < WINDOW_ROUNDS => {
            format!("the {few} rounds so far, not judged")
        }
        Some((_, false)) => "last five rounds, not steady".into(),
        None => "last five rounds, not judged".into(),
    }
}

/// Name of the workload of `step`, with the title of its suite where another suite of `run` has the
/// same one, such as the same requests of other data.
fn workload(run: &Run, step: &Step) -> String {
    let is_shared = |other: &Step| {
        (other.kind, &other.workload) == (step.kind, &step.workload) && other.suite != step.suite
    };
    if run.steps.iter().any(is_shared) {
        return format!("{}, {}", step.workload, step.suite_title);
    }
    step.workload.clone()
}

/// Row of the averages `cell` of the load of `step`.
fn averaged(run: &Run, step: &Step, cell: &WindowCell, what: &str) -> [String; 7] {
    [
        workload(run, step),
        format!("T{}Q{}", step.threads, step.queue_per_thread),
        format!("{:.0}", cell.iops),
        format!("{:.1}", cell.throughput_mb_s),
        Nanos::from_micros_f64(cell.latency_ns_avg / 1e3).to_string(),
        "-".into(),
        what.to_owned(),
    ]
}

/// Of each workload of each suite that is not measured in rounds the load that stands for it on the
/// page too; the fastest of those at rates where there is no other, since a rate bounds them.
fn best(steps: &[Step]) -> Vec<&Step> {
    let alone = || {
        let measures = steps.iter().filter(|step| step.kind == StepKind::Measure);
        measures.filter(|step| step.round.is_none() && step.summary.is_some())
    };
    let mut workloads: Vec<(&str, &str)> = Vec::new();
    for step in alone() {
        let workload = (step.suite.as_str(), step.workload.as_str());
        if !workloads.contains(&workload) {
            workloads.push(workload);
        }
    }
    let best = workloads.into_iter().filter_map(|(suite, workload)| {
        let is_of = |step: &&Step| step.suite == suite && step.workload == workload;
        let same = || alone().filter(is_of);
        let iops = |step: &&Step| step.summary.as_ref().map_or(0.0, |summary| summary.iops);
        let free = representative(same().filter(|step| step.rate.is_none()));
        free.or_else(|| same().max_by(|a, b| iops(a).total_cmp(&iops(b))))
    });
    best.collect()
}

/// Returns the reason why of the loads of its workload `step` is shown.
fn chosen(run: &Run, step: &Step) -> String {
    let is_alike = |other: &&Step| {
        other.kind == StepKind::Measure
            && other.rate.is_some() == step.rate.is_some()
            && (&other.suite, &other.workload) == (&step.suite, &step.workload)
    };
    match (&step.rate, run.steps.iter().filter(is_alike).count()) {
        (Some(rate), _) if rate.limit.is_none() => "at the requested rate".into(),
        (Some(rate), _) => format!("requested {:.0} IOPS, not reached", rate.iops),
        (None, 1) if run.target.kind.is_model() => "modelled".into(),
        (None, 1) => "measured".into(),
        (None, loads) => format!("of {loads} loads"),
    }
}

fn row(run: &Run, step: &Step, (summary, what): (&Summary, &str)) -> [String; 7] {
    let latency = &summary.latency;
    let doubt = Doubt::of(run, step, summary);
    let p999 = latency.p999_ns().filter(|_| doubt.is_none_or(Doubt::has_percentiles));
    [
        workload(run, step),
        format!("T{}Q{}", step.threads, step.queue_per_thread),
        format!("{:.0}", summary.iops),
        format!("{:.1}", summary.throughput_mb_s()),
        latency
            .mean_ns()
            .map_or_else(|| "-".into(), |it| Nanos::from_micros_f64(it / 1e3).to_string()),
        p999.map_or_else(|| "-".into(), |it| Nanos(it).to_string()),
        std::iter::once(what.to_owned())
            .chain(doubt.map(Doubt::note))
            .chain(latency.mean_note())
            .collect::<Vec<_>>()
            .join(", "),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<[String; 7]> {
        let row = ["4k-rand-write", "T16Q16", "42644", "174.7", "6.003 ms", "20.45 ms"];
        let [workload, load, iops, mb_s, mean, p999] = row.map(str::to_owned);
        vec![[workload, load, iops, mb_s, mean, p999, "steady state".into()]]
    }

    #[test]
    fn a_row_has_lines_of_its_own_on_a_narrow_screen() {
        let lines = stacked(&rows()[0], 40);
        let expect = [
            "4k-rand-write T16Q16",
            "  42644 IOPS, 174.7 MB/s, steady state",
            "  mean 6.003 ms, p99.9 20.45 ms",
        ];
        assert_eq!(lines, expect);
        assert!(lines.iter().all(|line| line.chars().count() <= 40));
        assert!(table::columns(&rows()).chars().count() <= 80, "the table fits 80 columns");
    }

    #[test]
    fn rounds_that_are_too_few_for_a_verdict_are_named_as_so_many() {
        assert_eq!(judged(Some((12, true))), "last five rounds, steady state");
        assert_eq!(judged(Some((12, false))), "last five rounds, not steady");
        assert_eq!(judged(Some((3, false))), "the 3 rounds so far, not judged");
        assert_eq!(judged(Some((1, false))), "the one round so far, not judged");
    }
}
