//! Power and temperature over time, with the drive's limits: during the preconditioning, and where
//! none tells them over all steps of the suite, one after the other.

use results::{Climate, Limits, Step};

use super::group::Group;
use super::metric::RunStep;
use super::steps::{cautions, line, provenance};
use crate::chart::{Axis, Body, Chart, Ends, Look, Point, Series, Unit};
use crate::explain;
use crate::subject::{Part, Subject, Suite};

/// A number of power and heat that is charted, and the limit that it has.
struct ClimateMetric {
    id: &'static str,
    title: &'static str,
    unit: Unit,
    ends: Ends,
    explain: &'static str,
    of: fn(&Climate) -> Option<f64>,
    limits: &'static [Limit],
}

/// Text of a limit before its value, and the value; none where it is not known.
type Limit = (&'static str, fn(&Limits) -> Option<f64>);

const KINDS: [ClimateMetric; 2] = [
    ClimateMetric {
        id: "power",
        title: "Power",
        unit: Unit::Watts,
        ends: Ends::Mean,
        explain: explain::POWER,
        of: |climate| climate.power_w,
        limits: &[("power limit", |limits| limits.power_w)],
    },
    ClimateMetric {
        id: "temperature",
        title: "Temperature",
        unit: Unit::Celsius,
        ends: Ends::Maximum,
        explain: explain::TEMPERATURE,
        of: |climate| climate.temperature_c,
        limits: &[
            ("throttles at", |limits| limits.throttle_c),
            ("warning temperature", |limits| limits.warning_c),
            ("critical temperature", |limits| limits.critical_c),
        ],
    },
];

/// Steps of a run, drawn one after the other.
struct StepSequence<'a> {
    subject: &'a Subject<'a>,
    steps: Vec<&'a Step>,
}

impl<'a> StepSequence<'a> {
    /// The preconditioning of `part`, where it tells power or heat, else all steps of its suite
    /// that do; absent where none does.
    fn of(part: &Part<'a>, suite: &str) -> Option<Self> {
        let tells = |step: &&Step| step.samples.iter().any(|it| it.summary.climate.is_some());
        let mut steps: Vec<&'a Step> = part.precondition.into_iter().filter(tells).collect();
        if steps.is_empty() {
            let all = part.subject.run.steps.iter().filter(|step| step.suite == suite);
            steps = all.filter(tells).collect();
        }
        (!steps.is_empty()).then_some(Self { subject: part.subject, steps })
    }

    /// A number of every sample against time, in seconds; what was not told is left out.
    fn points(&self, of: fn(&Climate) -> Option<f64>) -> Vec<Point> {
        let mut before_s = 0.0;
        let mut points = Vec::new();
        for step in &self.steps {
            points.extend(step.samples.iter().filter_map(|sample| {
                Some((before_s + sample.at_s, of(sample.summary.climate.as_ref()?)?))
            }));
            before_s += step.samples.last().map_or(0.0, |sample| sample.at_s);
        }
        points
    }

    fn taken(&self) -> impl Iterator<Item = RunStep<'a>> {
        self.steps.iter().map(|step| (self.subject, *step))
    }
}

/// Power and temperature of a suite that has no preconditioning to show them in.
pub(super) fn section(suite: &Suite<'_>, id: &str) -> String {
    if !suite.preconditions().is_empty() {
        return String::new();
    }
    let charts = charts(suite, id);
    Group { title: "Power and temperature", charts: &charts, ..Group::default() }.html()
}

/// Power and temperature against time; empty where no drive tells them.
pub(super) fn charts(suite: &Suite<'_>, id: &str) -> Vec<Chart> {
    let told: Vec<StepSequence<'_>> =
        suite.parts.iter().filter_map(|part| StepSequence::of(part, suite.name)).collect();
    KINDS.iter().filter_map(|kind| over_time(&told, kind, id)).collect()
}

fn over_time(told: &[StepSequence<'_>], kind: &ClimateMetric, id: &str) -> Option<Chart> {
    let drawn: Vec<(&StepSequence<'_>, Vec<Point>)> = told
        .iter()
        .map(|told| (told, told.points(kind.of)))
        .filter(|(_, points)| !points.is_empty())
        .collect();
    let ends_s = drawn.iter().filter_map(|(_, points)| Some(points.last()?.0));
    let (unit, secs) = Unit::of_span(ends_s.reduce(f64::max)?);
    let taken: Vec<RunStep<'_>> = drawn.iter().flat_map(|(told, _)| told.taken()).collect();
    let series = drawn.iter().flat_map(|(told, points)| {
        let points: Vec<Point> = points.iter().map(|(at_s, value)| (at_s / secs, *value)).collect();
        let limits = limits(told.subject, kind, &points);
        let own = line(told.subject.label.clone(), Look::of_run(told.subject.index), points);
        std::iter::once(own).chain(limits)
    });
    Some(Chart {
        id: format!("{id}-{}", kind.id),
        title: kind.title.into(),
        explain: kind.explain,
        provenance: provenance(&taken),
        cautions: cautions(&taken),
        x: Axis::linear("protocol time", unit),
        y: Axis::linear(kind.title, kind.unit),
        ends: kind.ends,
        is_wide: false,
        body: Body::Lines(series.collect(), Vec::new()),
    })
}

/// The limits that are known as dashed lines over all of `points`.
fn limits(subject: &Subject<'_>, kind: &ClimateMetric, points: &[Point]) -> Vec<Series> {
    let Some(limits) = &subject.run.target.limits else { return Vec::new() };
    let ends = points.first().zip(points.last());
    let of = |(meaning, limit): &Limit| {
        let (limit, (first, last)) = (limit(limits)?, ends?);
        let name = format!("{}: {meaning} {}", subject.label, kind.unit.say(limit));
        let look = Look { dash: 2, ..Look::of_run(subject.index) };
        Some(line(name, look, vec![(first.0, limit), (last.0, limit)]))
    };
    kind.limits.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use results::Run;

    use super::*;
    use crate::example::{STOCK, run};
    use crate::subject::{subjects, suites};

    /// A review of a real drive whose sensor told of every second interval.
    fn measured() -> Run {
        let mut run = run(STOCK);
        run.target.limits =
            Some(Limits { warning_c: Some(70.0), critical_c: Some(84.0), ..Limits::default() });
        for step in &mut run.steps {
            for (index, sample) in step.samples.iter_mut().enumerate().step_by(2) {
                let temperature_c = Some(40.0 + (index % 20) as f64);
                sample.summary.climate = Some(Climate { temperature_c, ..Climate::default() });
            }
        }
        run
    }

    fn drawn(run: &Run) -> Vec<Chart> {
        let subjects = subjects(std::slice::from_ref(run));
        let suites = suites(&subjects);
        charts(&suites[0], "it")
    }

    #[test]
    fn a_real_drive_shows_its_temperature_and_what_it_warns_of_but_no_power() {
        let charts = drawn(&measured());
        let [chart] = charts.as_slice() else { panic!("{} charts", charts.len()) };
        assert_eq!(chart.title, "Temperature");
        let html = chart.figure(false);
        assert!(html.contains("warning temperature 70 °C"), "{html}");
        assert!(html.contains("critical temperature 84 °C"), "{html}");
        assert!(!html.contains("throttles at"), "the drive did not tell that");
    }

    #[test]
    fn without_a_preconditioning_all_steps_are_drawn_one_after_the_other() {
        let mut run = measured();
        run.steps.retain(|step| step.kind != results::StepKind::Precondition);
        let steps = run.steps.iter().filter(|step| step.suite == run.steps[0].suite);
        let points = steps.map(|step| step.samples.len().div_ceil(2)).sum::<usize>();
        let charts = drawn(&run);
        let Body::Lines(series, _) = &charts[0].body else { panic!("no lines") };
        assert_eq!(series[0].points.len(), points);
        assert!(series[0].points.is_sorted_by(|a, b| a.0 < b.0), "time goes on");
        let subjects = subjects(std::slice::from_ref(&run));
        assert!(section(&suites(&subjects)[0], "it").contains("Power and temperature"));
    }

    #[test]
    fn a_drive_that_tells_nothing_has_no_chart() {
        let run = Run { steps: run(STOCK).steps, ..measured() };
        assert!(drawn(&run).is_empty());
        let subjects = subjects(std::slice::from_ref(&run));
        assert_eq!(section(&suites(&subjects)[0], "it"), "");
    }
}
