//! Rounds, as the SNIA SSS PTS has them reported: every round until steady state, the window that
//! was judged with its fitted line and limits, and a table of sizes by mixes.

use std::fmt::Write as _;

use results::rounds::{self, WindowCell};
use results::steady::{RANGE_MAX, SLOPE_MAX, line_through};
use results::{Steady, SteadyEvidence, SteadyVariable, Step, TrackedMetric};

use super::group::{Group, table};
use super::metric::RunStep;
use super::steps::{cautions, line, provenance};
use crate::chart::{Axis, Body, Chart, Ends, Look, Point, Series, Unit, widened};
use crate::explain;
use crate::number::millis;
use crate::number::{self, percent};
use crate::subject::{Part, Suite};
use crate::text::Text;

/// Shades of a heat map.
const SHADES: usize = 8;

/// The rounds of `suite`, run by run.
pub(super) fn section(suite: &Suite<'_>, id: &str) -> String {
    let of_run = |part: &Part<'_>| {
        let steady = judged(part)?;
        let title = format!("Rounds, {}", part.subject.label);
        let (charts, more): (Vec<Chart>, Vec<Chart>) =
            of_part(part, &steady, id).into_iter().partition(|it| it.id.ends_with("-convergence"));
        let (lead, numbers) = (verdict(&steady), numbers(part));
        let (charts, more) = (charts.as_slice(), more.as_slice());
        let group = Group { title: &title, lead: &lead, charts, more, numbers: &numbers };
        Some(group.html() + &tables(&part.rounds, &steady))
    };
    suite.parts.iter().filter_map(of_run).collect()
}

/// Every chart of the rounds, run by run.
pub(super) fn charts(suite: &Suite<'_>, id: &str) -> Vec<Chart> {
    let of_run =
        |part: &Part<'_>| judged(part).map_or_else(Vec::new, |steady| of_part(part, &steady, id));
    suite.parts.iter().flat_map(of_run).collect()
}

fn judged(part: &Part<'_>) -> Option<Steady> {
    Steady::of_rounds(part.rounds.iter().copied(), &part.subject.run.target)
}

/// Two charts for each number that is tracked: every round, and the window.
fn of_part(part: &Part<'_>, steady: &Steady, id: &str) -> Vec<Chart> {
    let taken: Vec<RunStep<'_>> = part.rounds.iter().map(|step| (part.subject, *step)).collect();
    let of = |(index, variable): (usize, &SteadyVariable)| {
        let id = format!("{id}-rounds-{}-{index}", part.subject.index);
        [convergence(&taken, variable, &id), window(&taken, variable, steady, &id)]
    };
    steady.variables.iter().enumerate().flat_map(of).collect()
}

/// Returns the table of tracked metrics, a row for each round.
fn numbers(part: &Part<'_>) -> String {
    let tracked: Vec<&Step> =
        part.rounds.iter().copied().filter(|step| step.tracked.is_some()).collect();
    let first = || tracked.iter().filter(|step| step.round == Some(1));
    let mut heads = vec!["Round".to_owned()];
    heads.extend(first().map(|step| match step.tracked {
        Some(TrackedMetric::LatencyNsAvg) => format!("{}, average, ms", step.workload),
        Some(TrackedMetric::Iops) | None => format!("{}, IOPS", step.workload),
    }));
    let rows = tracked.chunk_by(|a, b| a.round == b.round).map(|round| {
        let number = round[0].round.map(|round| round.to_string());
        let of = |step: &&Step| {
            step.tracked_value().map_or_else(String::new, |value| match step.tracked {
                Some(TrackedMetric::LatencyNsAvg) => number::plain(millis(value)),
                Some(TrackedMetric::Iops) | None => number::whole(value),
            })
        };
        number.into_iter().chain(round.iter().map(of)).collect()
    });
    table(&heads, rows)
}

fn verdict(steady: &Steady) -> String {
    let outcome = if steady.achieved {
        format!("Steady state after {} rounds", steady.rounds)
    } else if steady.evidence == Some(SteadyEvidence::TooLittleWritten) {
        format!(
            "Steady state not achieved: five rounds up to round {} met the limits, but too little \
             had been written by then; they are reported",
            steady.rounds
        )
    } else {
        format!(
            "Steady state not achieved in {} rounds; the last window is reported",
            steady.rounds
        )
    };
    let mut html = format!("<p>{}:</p><ul>", Text(&outcome));
    for variable in &steady.variables {
        let text = format!(
            "{}: average {}, range {} of it (at most {}), slope across the window {} (at most {})",
            variable.name,
            unit(variable).say(scaled(variable, variable.average)),
            percent(variable.range),
            percent(RANGE_MAX),
            percent(variable.slope),
            percent(SLOPE_MAX),
        );
        let _ = write!(html, "<li>{}</li>", Text(&text));
    }
    html + "</ul>"
}

/// The unit in which a tracked number is shown.
fn unit(variable: &SteadyVariable) -> Unit {
    if variable.name.ends_with("iops") { Unit::Iops } else { Unit::Millis }
}

fn scaled(variable: &SteadyVariable, value: f64) -> f64 {
    if unit(variable) == Unit::Iops { value } else { millis(value) }
}

/// Name of the workload of a tracked number.
fn workload(variable: &SteadyVariable) -> &str {
    variable.name.split(' ').next().unwrap_or_default()
}

/// The axis of rounds.
fn rounds_axis() -> Axis {
    Axis::linear("round", Unit::Plain)
}

/// The tracked number in every round.
fn convergence(taken: &[RunStep<'_>], variable: &SteadyVariable, id: &str) -> Chart {
    let name = workload(variable);
    let points: Vec<Point> = taken
        .iter()
        .filter(|(_, step)| step.workload == name && step.tracked.is_some())
        .filter_map(|(_, step)| {
            Some((f64::from(step.round?), scaled(variable, step.tracked_value()?)))
        })
        .collect();
    let subject = taken[0].0;
    let look = Look::of_run(subject.index);
    Chart {
        id: format!("{id}-convergence"),
        title: format!("{name}, every round"),
        explain: explain::CONVERGENCE,
        provenance: provenance(taken),
        cautions: cautions(taken),
        x: rounds_axis(),
        y: Axis::linear("Round", unit(variable)),
        ends: Ends::Last,
        is_wide: false,
        body: Body::Lines(vec![line(subject.label.clone(), look, points)], Vec::new()),
    }
}

/// The rounds of the window with their average, its band, the fitted line and its limits.
fn window(taken: &[RunStep<'_>], variable: &SteadyVariable, steady: &Steady, id: &str) -> Chart {
    let count = variable.rounds.len();
    let first = f64::from(steady.rounds) - count as f64 + 1.0;
    let places: Vec<f64> = (0..count).map(|index| first + index as f64).collect();
    let at = |of: &dyn Fn(usize) -> f64| -> Vec<Point> {
        places.iter().enumerate().map(|(index, x)| (*x, scaled(variable, of(index)))).collect()
    };
    let average = variable.average;
    let (start, slope) = line_through(&variable.rounds);
    let half = RANGE_MAX / 2.0;
    let look = Look::of_run(taken[0].0.index);
    let dashed = |dash| Look { dash, ..look };
    let series: Vec<Series> = vec![
        line("rounds".into(), Look { dash: 0, ..look }, at(&|index| variable.rounds[index])),
        line("average".into(), dashed(1), at(&|_| average)),
        line("110 % of it".into(), dashed(3), at(&|_| average * (1.0 + half))),
        line("90 % of it".into(), dashed(3), at(&|_| average * (1.0 - half))),
        line("best fit".into(), dashed(2), at(&|index| start + slope * index as f64)),
    ];
    Chart {
        id: format!("{id}-window"),
        title: format!("{}, steady-state window", workload(variable)),
        explain: explain::WINDOW,
        provenance: provenance(taken),
        cautions: cautions(taken),
        x: rounds_axis(),
        y: Axis { domain: around(&series), ..Axis::linear("Window", unit(variable)) },
        ends: Ends::Last,
        is_wide: false,
        body: Body::Lines(series, Vec::new()),
    }
}

/// The span of all that is drawn, which is a band far from zero: from there its lines would lie
/// upon each other. Absent where nothing is above zero.
fn around(series: &[Series]) -> Option<(f64, f64)> {
    let values = || series.iter().flat_map(|it| &it.points).map(|(_, value)| *value);
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    (low >= 0.0 && low < high).then(|| widened(low, high))
}

/// Title of a table, and the number that it shows of a cell.
type Table = (&'static str, fn(&WindowCell) -> Option<f64>);

/// The tables of sizes by mixes over the window: IOPS, throughput, and three latencies.
fn tables(steps: &[&Step], steady: &Steady) -> String {
    let cells = rounds::window_cells(steps, steady);
    if cells.is_empty() {
        return String::new();
    }
    let tables: [Table; 5] = [
        ("IOPS", |it| Some(it.iops)),
        ("Throughput, MB/s", |it| Some(it.throughput_mb_s)),
        ("Average latency, ms", |it| Some(millis(it.latency_ns_avg))),
        ("p99.999 latency, ms", |it| Some(millis(it.latency_ns_p99999? as f64))),
        ("Maximum latency, ms", |it| Some(millis(it.latency_ns_max? as f64))),
    ];
    let tables: String = tables.iter().map(|(title, of)| heat_map(title, &cells, *of)).collect();
    format!(
        "<p class=\"small\">{}</p><div class=\"matrices\">{tables}</div>",
        Text(explain::ROUND_HEAT)
    )
}

/// A table of sizes by mixes, each cell shaded by its place between the least and the greatest.
fn heat_map(title: &str, cells: &[WindowCell], of: fn(&WindowCell) -> Option<f64>) -> String {
    let columns = distinct(cells.iter().map(|it| it.cell.read_percent));
    let rows = distinct(cells.iter().map(|it| f64::from(it.cell.bytes)));
    let values = || cells.iter().filter_map(of).filter(|value| *value > 0.0);
    let (least, most) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
    let mut html = format!(
        "<figure><figcaption><h4>{}</h4></figcaption><div class=\"scroll\">\
         <table class=\"matrix\"><thead><tr><th scope=\"col\">KiB</th>",
        Text(title)
    );
    for read in &columns {
        let _ = write!(html, "<th scope=\"col\">{read}/{}</th>", 100.0 - read);
    }
    html.push_str("</tr></thead><tbody>");
    for bytes in &rows {
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", number::trimmed(bytes / 1024.0));
        for read in &columns {
            let found = cells.iter().find(|it| {
                f64::from(it.cell.bytes).total_cmp(bytes).is_eq()
                    && it.cell.read_percent.total_cmp(read).is_eq()
            });
            let _ = match found.map(of) {
                Some(Some(value)) => write!(
                    html,
                    "<td class=\"s{}\">{}</td>",
                    shade(value, least, most),
                    Text(&number::plain(value))
                ),
                Some(None) => write!(html, "<td>–</td>"),
                None => write!(html, "<td></td>"),
            };
        }
        html.push_str("</tr>");
    }
    html + "</tbody></table></div></figure>"
}

/// Every value once, greatest first.
fn distinct(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(|a, b| b.total_cmp(a));
    values.dedup();
    values
}

/// The shade of `value` by its ratio to the least, on a logarithmic scale.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to SHADES - 1")]
fn shade(value: f64, least: f64, most: f64) -> usize {
    if value <= 0.0 || most <= least {
        return 0;
    }
    let place = (value / least).ln() / (most / least).ln();
    ((place.clamp(0.0, 1.0) * SHADES as f64) as usize).min(SHADES - 1)
}

#[cfg(test)]
mod tests {
    use results::{Cell, Run, Step, TrackedMetric};

    use crate::example::{STOCK, run};
    use crate::review;

    /// The run with two cells, one of them tracked, in `rounds` rounds.
    fn in_rounds(rounds: u32, growth: f64) -> Run {
        let mut run = run(STOCK);
        let free = run.steps.iter().find(|step| step.workload == "4k-rand-read").cloned();
        let free = free.expect("it was measured");
        for round in 1..=rounds {
            for (read_percent, workload, tracked) in
                [(100.0, "4k-rand-100-0", None), (0.0, "4k-rand-0-100", Some(TrackedMetric::Iops))]
            {
                let mut step = Step {
                    id: format!("iops/round-{round:02}/{workload}/T4Q32"),
                    suite: "iops".into(),
                    suite_title: "IOPS".into(),
                    workload: workload.into(),
                    round: Some(round),
                    tracked,
                    cell: Some(Cell { bytes: 4096, read_percent }),
                    ..free.clone()
                };
                let summary = step.summary.as_mut().expect("it was measured");
                summary.iops *= growth.powi(i32::try_from(round).expect("a small number"));
                run.steps.push(step);
            }
        }
        run
    }

    #[test]
    fn rounds_that_held_still_are_reported_with_window_and_tables() {
        let page = review(&[in_rounds(5, 1.0)], "x");
        assert!(page.contains("Steady state after 5 rounds"));
        assert!(page.contains("4k-rand-0-100, every round"));
        assert!(page.contains("4k-rand-0-100, steady-state window"));
        assert!(page.contains("best fit"));
        assert!(page.contains("not from zero"), "a band of a fifth fills its chart");
        let measured = "4k-rand-100-0, 4k-rand-0-100, in rounds</td><td>2</td>";
        assert!(page.contains(measured), "the table of what was measured names a round");
        assert!(page.contains("<th scope=\"col\">100/0</th><th scope=\"col\">0/100</th>"));
        assert!(page.contains("99.999"));
    }

    #[test]
    fn rounds_that_never_held_still_say_so() {
        let page = review(&[in_rounds(7, 1.5)], "x");
        assert!(page.contains("Steady state not achieved in 7 rounds"));
    }
}
