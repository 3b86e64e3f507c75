//! Power and temperature during preconditioning, with the drive's limits.

use results::{Climate, Limits, Step};

use super::preconditioning::{points, time_axis};
use super::{
    Axis, Body, Chart, Ends, Look, Series, Subject, Suite, Taken, Unit, cautions, line, provenance,
};
use crate::explain;

/// A number of power and heat that is charted, and the limit that it has.
struct Kind {
    id: &'static str,
    title: &'static str,
    unit: Unit,
    ends: Ends,
    explain: &'static str,
    of: fn(&Climate) -> f64,
    limit: fn(&Limits) -> Option<f64>,
    /// What the limit is, before its value.
    meaning: &'static str,
}

const KINDS: [Kind; 2] = [
    Kind {
        id: "power",
        title: "Power",
        unit: Unit::Watts,
        ends: Ends::Mean,
        explain: explain::POWER,
        of: |climate| climate.power_w,
        limit: |limits| limits.power_w,
        meaning: "may draw",
    },
    Kind {
        id: "temperature",
        title: "Temperature",
        unit: Unit::Celsius,
        ends: Ends::Maximum,
        explain: explain::TEMPERATURE,
        of: |climate| climate.temperature_c,
        limit: |limits| Some(limits.throttle_c),
        meaning: "slows down at",
    },
];

/// Power and temperature against time; empty where no drive tells them.
pub(super) fn charts(suite: &Suite<'_>, id: &str) -> Vec<Chart> {
    let tells = |step: &Step| step.samples.iter().any(|it| it.summary.climate.is_some());
    let taken: Vec<Taken<'_>> =
        suite.preconditions().into_iter().filter(|(_, step)| tells(step)).collect();
    if taken.is_empty() {
        return Vec::new();
    }
    KINDS.iter().map(|kind| over_time(&taken, kind, id)).collect()
}

fn over_time(taken: &[Taken<'_>], kind: &Kind, id: &str) -> Chart {
    let (x, secs) = time_axis(taken);
    let series = taken.iter().flat_map(|(subject, step)| {
        let of = points(step, secs, |sample| Some((kind.of)(sample.summary.climate.as_ref()?)));
        let own = line(subject.label.clone(), Look::of_run(subject.index), of);
        std::iter::once(own).chain(limit(subject, step, kind, secs))
    });
    Chart {
        id: format!("{id}-{}", kind.id),
        title: kind.title.into(),
        explain: kind.explain,
        provenance: provenance(taken),
        cautions: cautions(taken),
        x,
        y: Axis::linear(kind.title, kind.unit),
        ends: kind.ends,
        is_wide: false,
        body: Body::Lines(series.collect(), Vec::new()),
    }
}

/// The limit as a dashed line over the whole step.
fn limit(subject: &Subject<'_>, step: &Step, kind: &Kind, secs: f64) -> Option<Series> {
    let limit = (kind.limit)(subject.run.target.limits.as_ref()?)?;
    let (first, last) = (step.samples.first()?.at_s / secs, step.samples.last()?.at_s / secs);
    let name = format!("{}: {} {}", subject.label, kind.meaning, kind.unit.say(limit));
    let look = Look { dash: 2, ..Look::of_run(subject.index) };
    Some(line(name, look, vec![(first, limit), (last, limit)]))
}
