//! Latency against load: a load at shares of the rate that it reaches when nothing holds it back.
//!
//! Two latencies: that of a request from its submission, as Vdbench tells it, and its response from
//! the moment at which it was due, in which its wait at the host is. Only the second shows the
//! queue before a drive that is asked for more than it can do.

use results::{AskedRate, LatencySummary, RateLimit, Step};

use super::group::{Group, table};
use super::metric::RunStep;
use super::steps::{cautions, line, provenance};
use crate::chart::{Axis, Body, Chart, Ends, Look, Point, Series, Unit};
use crate::explain;
use crate::number;
use crate::number::millis;
use crate::subject::{Subject, Suite};
use crate::text::anchor;

/// The rated steps of one load, by run.
type RatedSteps<'a> = Vec<(&'a Subject<'a>, Vec<&'a Step>)>;

/// The curves of `suite`, one for each load.
pub(super) fn section(suite: &Suite<'_>, id: &str) -> String {
    loads(suite).into_iter().map(|it| of_load(suite, it, id)).collect()
}

/// Every chart of them.
pub(super) fn charts(suite: &Suite<'_>, id: &str) -> Vec<Chart> {
    let of = |asked| charts_of(&rated(suite, asked), asked, id);
    loads(suite).into_iter().flat_map(of).collect()
}

/// The loads that were measured at rates, in order of appearance.
fn loads<'a>(suite: &Suite<'a>) -> Vec<(&'a str, u16, u16)> {
    let steps = suite.parts.iter().flat_map(|part| &part.rated);
    let mut loads: Vec<(&str, u16, u16)> = Vec::new();
    for load in steps.map(|step| load(step)) {
        if !loads.contains(&load) {
            loads.push(load);
        }
    }
    loads
}

fn load(step: &Step) -> (&str, u16, u16) {
    (&step.workload, step.threads, step.queue_per_thread)
}

fn rated<'a>(suite: &Suite<'a>, asked: (&str, u16, u16)) -> RatedSteps<'a> {
    suite
        .parts
        .iter()
        .map(|part| {
            let steps = part.rated.iter().copied().filter(|step| load(step) == asked);
            (part.subject, steps.filter(|step| step.summary.is_some()).collect::<Vec<_>>())
        })
        .filter(|(_, steps)| !steps.is_empty())
        .collect()
}

fn taken<'a>(rated: &RatedSteps<'a>) -> Vec<RunStep<'a>> {
    let each = rated.iter();
    each.flat_map(|(subject, steps)| steps.iter().map(|step| (*subject, *step))).collect()
}

fn of_load(suite: &Suite<'_>, asked: (&str, u16, u16), id: &str) -> String {
    let rated = rated(suite, asked);
    let (workload, threads, queue) = asked;
    let title = format!("Latency against load with {workload}, at most T{threads}Q{queue}");
    let mut charts = charts_of(&rated, asked, id);
    let more = charts.split_off(1);
    let numbers = numbers(&taken(&rated));
    let (charts, more) = (charts.as_slice(), more.as_slice());
    Group { title: &title, lead: "", charts, more, numbers: &numbers }.html()
}

fn charts_of(rated: &RatedSteps<'_>, asked: (&str, u16, u16), id: &str) -> Vec<Chart> {
    let (workload, threads, queue) = asked;
    let id = format!("{id}-{}-t{threads}q{queue}", anchor(workload));
    let taken = taken(rated);
    vec![latency(rated, &taken, &id), achieved(rated, &taken, &id)]
}

fn latency(rated: &RatedSteps<'_>, taken: &[RunStep<'_>], id: &str) -> Chart {
    let mut series = Vec::new();
    for (subject, steps) in rated {
        let look = Look { dash: 0, ..Look::of_run(subject.index) };
        let requests = points(steps, |step| Some(&step.summary.as_ref()?.latency));
        series.push(named(format!("{}, latency", subject.label), look, requests));
        let responses = points(steps, |step| step.response.as_ref());
        if !responses.is_empty() {
            let name = format!("{}, response", subject.label);
            series.push(named(name, Look { dash: 1, ..look }, responses));
        }
    }
    Chart {
        id: format!("{id}-latency"),
        title: "Average latency against achieved load".into(),
        explain: explain::LOAD_CURVE,
        provenance: provenance(taken),
        cautions: [cautions(taken), limits(taken)].concat(),
        x: Axis::linear("achieved", Unit::Iops),
        y: Axis { switchable: false, ..Axis::log("Average latency", Unit::Millis) },
        ends: Ends::Last,
        is_wide: false,
        body: Body::Curve(series),
    }
}

/// Achieved rate and average latency of each step that has one, with what was asked for.
fn points<'a>(
    steps: &[&'a Step],
    of: fn(&'a Step) -> Option<&'a LatencySummary>,
) -> Vec<(Point, String)> {
    let point = |step: &&'a Step| {
        let place = (step.summary.as_ref()?.iops, millis(of(step)?.mean_ns()?));
        Some((place, asked(step.rate.as_ref()?)))
    };
    steps.iter().filter_map(point).collect()
}

fn named(name: String, look: Look, points: Vec<(Point, String)>) -> Series {
    let (points, labels) = points.into_iter().unzip();
    Series { name, look, points, errors: Vec::new(), labels }
}

/// The asked rate in words; marked where it could not be sent.
fn asked(rate: &AskedRate) -> String {
    let share = match rate.percent {
        Some(percent) => format!("{percent} %"),
        None => format!("{} IOPS", number::short(rate.iops)),
    };
    if rate.limit == Some(RateLimit::Generator) { format!("{share} (generator)") } else { share }
}

fn achieved(rated: &RatedSteps<'_>, taken: &[RunStep<'_>], id: &str) -> Chart {
    let mut series = Vec::new();
    for (subject, steps) in rated {
        let rates: Vec<(f64, f64)> = steps
            .iter()
            .filter_map(|step| Some((step.rate.as_ref()?.iops, step.summary.as_ref()?.iops)))
            .collect();
        let look = Look { dash: 0, ..Look::of_run(subject.index) };
        let ideal = rates.iter().map(|(asked, _)| (*asked, *asked)).collect();
        series.push(line(format!("{}, achieved", subject.label), look, rates));
        series.push(line(format!("{}, asked", subject.label), Look { dash: 2, ..look }, ideal));
    }
    Chart {
        id: format!("{id}-achieved"),
        title: "Achieved rate against requested rate".into(),
        explain: explain::ASKED,
        provenance: provenance(taken),
        cautions: limits(taken),
        x: Axis::linear("asked", Unit::Iops),
        y: Axis::linear("Achieved", Unit::Iops),
        ends: Ends::Last,
        is_wide: false,
        body: Body::Curve(series),
    }
}

/// Returns a caution for each rate that the load generator could not send.
fn limits(taken: &[RunStep<'_>]) -> Vec<String> {
    let limited = |(subject, step): &RunStep<'_>| {
        let rate = step.rate.as_ref()?;
        (rate.limit == Some(RateLimit::Generator)).then(|| {
            format!(
                "{}: at {} the load generator was the limit, not the drive.",
                subject.label,
                asked(&AskedRate { limit: None, ..rate.clone() })
            )
        })
    };
    taken.iter().filter_map(limited).collect()
}

fn numbers(taken: &[RunStep<'_>]) -> String {
    let heads = [
        "Run",
        "Asked, %",
        "Asked, IOPS",
        "Achieved, IOPS",
        "MB/s",
        "Latency, ms",
        "p99, ms",
        "p99.9, ms",
        "Response, ms",
        "p99, ms",
        "p99.9, ms",
        "Limit",
    ];
    let rows = taken.iter().filter_map(|(subject, step)| {
        let (rate, summary) = (step.rate.as_ref()?, step.summary.as_ref()?);
        let percent = rate.percent.map_or_else(String::new, number::trimmed);
        let mut row = vec![
            subject.label.clone(),
            percent,
            number::whole(rate.iops),
            number::whole(summary.iops),
            number::whole(summary.throughput_mb_s()),
        ];
        for latency in [Some(&summary.latency), step.response.as_ref()] {
            row.extend(latency.map_or_else(Default::default, |it| {
                [
                    number::plain_ns(it.mean_ns()),
                    number::plain_millis(it.p99_ns()),
                    number::plain_millis(it.p999_ns()),
                ]
            }));
        }
        row.push(limit(rate.limit).into());
        Some(row)
    });
    table(&heads.map(String::from), rows)
}

const fn limit(limit: Option<RateLimit>) -> &'static str {
    match limit {
        None => "",
        Some(RateLimit::Drive) => "drive",
        Some(RateLimit::Generator) => "generator",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{STOCK, rated, run};
    use crate::review;

    #[test]
    fn asked_and_achieved_rates_and_both_latencies_are_on_the_page() {
        let mut run = run(STOCK);
        run.steps.extend([50, 120].map(|percent| rated(&run, percent, None)));
        let page = review(&[run], "x");
        assert!(page.contains("Latency against load with 8k-70-30, at most T16Q16"));
        assert!(page.contains("stock, response"));
        assert!(page.contains("stock, asked"));
        assert!(page.contains("120 %"));
    }

    #[test]
    fn a_rate_that_the_generator_could_not_send_is_marked() {
        let mut run = run(STOCK);
        run.steps.push(rated(&run, 120, Some(RateLimit::Generator)));
        let page = review(&[run], "x");
        assert!(page.contains("120 % (generator)"));
        assert!(page.contains("at 120 % the load generator was the limit, not the drive."));
    }
}
