//! Latency in depth: against throughput, and its percentiles on an axis of nines.

use results::conditions::representative;
use results::{Bin, LatencySpread, LatencySummary, Step, is_percentile_known};

use super::group::table;
use super::metric::RunStep;
use super::steps::{apart, cautions, is_listed, line, provenance};
use crate::chance::{beside_millis, of_percentiles, origin};
use crate::chart::Look;
use crate::chart::{Axis, Body, Chart, Ends, Point, Series, Unit};
use crate::explain;
use crate::number;
use crate::number::millis;
use crate::subject::{Subject, Suite};
use crate::text::{anchor, loads};

/// The median: what lies left of it is hardly of interest.
const SHARE_MIN: f64 = 0.5;
/// Five nines: the axis goes no further.
const SHARE_MAX: f64 = 0.99999;
/// Steps from one to the other.
const STEPS: u32 = 160;

/// The percentiles of every workload.
pub(super) fn charts(suite: &Suite<'_>, id: &str) -> Vec<Chart> {
    let workloads = suite.workloads().into_iter();
    workloads.map(|workload| chart(suite, workload, id)).collect()
}

/// Each run's measurement of `workload` that stands for it, where no requests are missing.
pub(super) fn heaviest<'a>(suite: &Suite<'a>, workload: &str) -> Vec<RunStep<'a>> {
    let measures = suite.measures(workload).into_iter();
    let greatest = |(subject, steps): (&'a Subject<'a>, Vec<&'a Step>)| {
        let step = representative(steps.into_iter())?;
        (!subject.run.lacks_requests(&step.id)).then_some((subject, step))
    };
    measures.filter_map(greatest).collect()
}

/// The percentiles of `workload` at each run's load that stands for it.
pub(super) fn chart(suite: &Suite<'_>, workload: &str, id: &str) -> Chart {
    let taken = &heaviest(suite, workload);
    let lacking = suite.measures(workload).into_iter().map(|(subject, _)| subject);
    let lacking = lacking.filter(|of| taken.iter().all(|(subject, _)| subject.index != of.index));
    let left_out = lacking.map(|subject| {
        let label = &subject.label;
        format!("Percentiles of {workload}: {label} is left out, since requests are missing.")
    });
    let mut title = workload.to_owned();
    if !taken.is_empty() {
        title = format!("{title}, {}", loads(taken.iter().map(|(_, step)| *step)));
    }
    Chart {
        id: format!("{id}-{}-percentiles", anchor(workload)),
        title: format!("{title}, percentiles"),
        explain: explain::PERCENTILES,
        provenance: provenance(taken),
        cautions: cautions(taken).into_iter().chain(left_out).collect(),
        x: Axis::nines("percentile of requests"),
        y: Axis::log("Latency", Unit::Millis),
        ends: Ends::Last,
        is_wide: false,
        body: Body::Lines(
            taken.iter().flat_map(|(subject, step)| lines(subject, step)).collect(),
            Vec::new(),
        ),
    }
}

/// One line, or one for reads and one for writes where both happened; what a listed stall makes of
/// it apart, as marks.
fn lines(subject: &Subject<'_>, step: &Step) -> Vec<Series> {
    let mixed = !step.read_bins.is_empty() && !step.write_bins.is_empty();
    [(false, &step.read_bins), (true, &step.write_bins)]
        .into_iter()
        .filter(|(_, bins)| !bins.is_empty())
        .flat_map(|(writes, bins)| {
            let (name, look) = if mixed {
                apart(subject, writes)
            } else {
                (subject.label.clone(), Look::of_run(subject.index))
            };
            let (listed, own) = by_share(bins, step.latencies(bins).measured())
                .into_iter()
                .partition(|it| is_listed(subject, it));
            let marks = Look { dash: Look::MARKS, ..look };
            let marks = line(format!("{name}, listed stalls"), marks, sparse(listed));
            std::iter::once(line(name, look, own))
                .chain((!marks.points.is_empty()).then_some(marks))
        })
        .collect()
}

/// Every eighth of `points`, and the last: enough for marks that do not touch.
fn sparse(points: Vec<Point>) -> Vec<Point> {
    let last = points.len().saturating_sub(1);
    let kept = points.into_iter().enumerate().filter(|(at, _)| at % 8 == 0 || *at == last);
    kept.map(|(_, point)| point).collect()
}

/// Latency in milliseconds at shares that every run has, equally far apart by nines, as far as
/// the requests tell that were `measured`.
fn by_share(bins: &[Bin], measured: u64) -> Vec<Point> {
    let count: u64 = bins.iter().map(|bin| bin.count).sum();
    let mut rest = bins.iter();
    let (mut within, mut latency_ns) = (0, 0);
    let nines = |share: f64| -(1.0 - share).log10();
    let step = (nines(SHARE_MAX) - nines(SHARE_MIN)) / f64::from(STEPS);
    let mut points = Vec::new();
    for index in 0..=STEPS {
        let share = 1.0 - 10_f64.powf(-(nines(SHARE_MIN) + step * f64::from(index)));
        if !is_percentile_known(measured, share) {
            break;
        }
        while (within as f64) < share * count as f64 {
            let Some(bin) = rest.next() else { break };
            within += bin.count;
            latency_ns = bin.latency_ns;
        }
        points.push((share.clamp(SHARE_MIN, SHARE_MAX), millis(latency_ns as f64)));
    }
    points
}

/// The percentiles of `taken` in a table, reads and writes apart.
pub(super) fn numbers(taken: &[RunStep<'_>]) -> String {
    let heads = [
        "Run",
        "Workload",
        "Requests",
        "Count",
        "p50, ms",
        "p90, ms",
        "p99, ms",
        "p99.9, ms",
        "p99.99, ms",
        "p99.999, ms",
        "Maximum, ms",
    ];
    let mut intervals = Vec::new();
    let mut rows = Vec::new();
    for (subject, step) in taken {
        let Some(summary) = &step.summary else { continue };
        let spread = subject.spread(step);
        let kinds = [
            ("reads", summary.read, &step.read_bins, spread.read),
            ("writes", summary.write, &step.write_bins, spread.write),
        ];
        for kind in kinds.into_iter().filter(|(_, latency, ..)| latency.count > 0) {
            intervals.extend(of_percentiles(&kind.3).into_iter().flatten());
            rows.push(row(subject, step, kind));
        }
    }
    let origin = match origin(&intervals) {
        origin if origin.is_empty() => origin,
        origin => format!("<p class=\"small\">{}</p>", origin.trim_start()),
    };
    table(&heads.map(String::from), rows.into_iter()) + &origin
}

fn row(
    subject: &Subject<'_>,
    step: &Step,
    (kind, latency, bins, spread): (&str, LatencySummary, &Vec<Bin>, LatencySpread),
) -> Vec<String> {
    // The upper end of a bin may lie beyond the largest latency in it.
    let five_nines = step.latencies(bins).five_nines_ns();
    let five_nines = five_nines.map(|it| it.min(latency.latency_ns_max));
    let percentiles = [
        latency.p50_ns(),
        latency.p90_ns(),
        latency.p99_ns(),
        latency.p999_ns(),
        latency.p9999_ns(),
    ];
    let kind = std::iter::once(kind.to_owned()).chain(step.sampling_note());
    let kind = kind.collect::<Vec<_>>().join(", ");
    let name = [subject.label.clone(), step.workload.clone(), kind];
    let with_intervals = percentiles.into_iter().zip(of_percentiles(&spread));
    name.into_iter()
        .chain(std::iter::once(number::whole(latency.count as f64)))
        .chain(
            with_intervals.map(|(it, interval)| beside_millis(number::plain_millis(it), interval)),
        )
        .chain([five_nines, latency.max_ns()].map(number::plain_millis))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latency_at_a_share_is_that_of_the_bin_that_reaches_it() {
        let bins = [(1_000_000, 900), (5_000_000, 90), (20_000_000, 9), (80_000_000, 1)]
            .map(|(latency_ns, count)| Bin { latency_ns, count: count * 10_000 });
        let points = by_share(&bins, u64::MAX);
        let at = |share: f64| points.iter().find(|point| point.0 >= share).unwrap().1;
        let shown = [0.5, 0.89, 0.91, 0.98, 0.995, 0.9999].map(|share| at(share).to_string());
        assert_eq!(shown, ["1", "1", "5", "5", "20", "80"]);

        let few = [Bin { latency_ns: 1_000_000, count: 1_000 }];
        let last = by_share(&few, 1_000).last().map_or(0.0, |point| point.0);
        assert!((0.985..=0.99).contains(&last), "{last}: ten requests lie beyond");
        let last = by_share(&few, 100).last().map_or(0.0, |point| point.0);
        assert!((0.88..=0.9).contains(&last), "{last}: a hundred stand for a thousand");
    }
}
