//! The steps of one suite, in order.

use blockio::nearest;
use results::StepKind;
use workload::{Access, Curve, Measure, Suite, Workload};

use super::{Pace, PlannedNode, PlannedStep};
use crate::application::{copied, no_recording};
use crate::replay::{PlannedReplay, Source};
use crate::{Error, Kind, Rate};

/// Purge, fill, preconditioning and measurements of `suite`.
///
/// # Errors
/// Names the workload that is not there, or that cannot fill a drive.
pub(super) fn steps(suite: &Suite, workloads: &[Workload]) -> Result<Vec<PlannedStep>, Error> {
    let mut steps = vec![purge(&suite.name, &suite.title)];
    steps.extend(fill(suite, workloads)?);
    steps.extend(random_fill(suite));
    steps.extend(precondition(suite, workloads)?);
    steps.extend(rounds(suite, workloads)?);
    steps.extend(applications(suite)?);
    for measure in &suite.measure {
        let workload = suite.adapted(find(workloads, &measure.workload, suite)?);
        check_replay(suite, measure, &workload)?;
        for workload in measure.variants(&workload) {
            steps.extend(measure.points().flat_map(|at| measured(suite, measure, &workload, at)));
        }
    }
    Ok(steps)
}

/// Every round that there may be: which of them are spared, their figures decide.
fn rounds(suite: &Suite, workloads: &[Workload]) -> Result<Vec<PlannedStep>, Error> {
    let Some(rounds) = &suite.rounds else { return Ok(Vec::new()) };
    let mut steps = Vec::new();
    for measure in &rounds.measure {
        let workload = suite.adapted(find(workloads, &measure.workload, suite)?);
        for workload in measure.variants(&workload) {
            let mut tracked = rounds.track.iter().filter(|it| it.workload == workload.name);
            let metric = tracked.next().map(|it| metric(it.metric));
            let points = measure.points().map(|at| free(suite, measure, &workload, at));
            steps.extend(points.map(|step| PlannedStep { tracked: metric, ..step }));
        }
    }
    for tracked in &rounds.track {
        if !steps.iter().any(|step| step.workload_name() == tracked.workload) {
            let (suite, name) = (&suite.name, &tracked.workload);
            let text = format!("suite {suite}: no round measures `{name}`, which is tracked");
            return Err(Error::new(Kind::Input, text));
        }
    }
    let round = |number: u32| {
        let of_round = move |step: &PlannedStep| PlannedStep {
            id: step.id.replacen('/', &format!("/round-{number:02}/"), 1),
            round: Some(number),
            ..step.clone()
        };
        steps.iter().map(of_round).collect::<Vec<_>>()
    };
    Ok((1..=rounds.count_max).flat_map(round).collect())
}

const fn metric(asked: workload::TrackedMetric) -> results::TrackedMetric {
    match asked {
        workload::TrackedMetric::Iops => results::TrackedMetric::Iops,
        workload::TrackedMetric::Latency => results::TrackedMetric::LatencyNsAvg,
    }
}

/// The purge of the suite named `suite`.
pub(super) fn purge(suite: &str, suite_title: &str) -> PlannedStep {
    PlannedStep {
        id: format!("{suite}/purge"),
        kind: StepKind::Purge,
        suite: suite.to_owned(),
        suite_title: suite_title.to_owned(),
        workload: None,
        published_as: Vec::new(),
        threads: 0,
        queue_per_thread: 0,
        ramp_s: 0.0,
        duration_s: 0.0,
        interval_s: 0.0,
        round_s: 0.0,
        real: None,
        large_model_max_s: None,
        replay: None,
        round: None,
        tracked: None,
        fill_passes: 0,
        pace: None,
        application: None,
        node: None,
    }
}

/// The replays of the recordings of the suite's application, one for each number of clients.
///
/// # Errors
/// Fails if no such application, or no recording of it, is built in.
fn applications(suite: &Suite) -> Result<Vec<PlannedStep>, Error> {
    let Some(name) = &suite.application else { return Ok(Vec::new()) };
    let known = workload::catalogue::applications();
    let Some(application) = known.iter().find(|it| it.name == *name) else {
        let names = known.iter().map(|it| it.name.as_str());
        let text = format!("suite {}: no application named `{name}` is built in", suite.name);
        let hint = nearest(name, names).map_or_else(
            || "`floatgate app` lists them".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        return Err(Error::new(Kind::Input, text).hint(hint));
    };
    let replay = |clients: &u32| {
        let no_recording = || no_recording(name, *clients);
        let (recording, _) = copied(application, *clients).ok_or_else(no_recording)?;
        let threads = u16::try_from(*clients).map_err(|_| no_recording())?;
        let requests = recording.measured();
        let span = requests.first().map(|first| recording.end() - first.issued_at);
        Ok(PlannedStep {
            id: format!("{}/{name}/{threads}-clients", suite.name),
            kind: StepKind::Application,
            threads,
            queue_per_thread: 1,
            duration_s: span.unwrap_or_default().as_secs_f64(),
            application: Some(application.clone()),
            ..purge(&suite.name, &suite.title)
        })
    };
    let Some(nodes) = &suite.nodes else {
        return application.threads.iter().map(replay).collect();
    };
    let one = replay(&nodes.clients.into())?;
    let node = |number: u16| PlannedStep {
        id: format!("{}/{name}/node-{number}", suite.name),
        duration_s: nodes.duration_s(),
        interval_s: nodes.interval_s,
        node: Some(PlannedNode { number, count: nodes.count }),
        ..one.clone()
    };
    Ok((1..=nodes.count).map(node).collect())
}

fn fill(suite: &Suite, workloads: &[Workload]) -> Result<Option<PlannedStep>, Error> {
    let Some(name) = &suite.fill else { return Ok(None) };
    let workload = find(workloads, name, suite)?;
    if !workload.only_writes() || workload.access != Access::Sequential {
        let text = format!("suite {}: a fill with `{name}` leaves space unwritten", suite.name);
        let hint = "take a sequential workload that only writes, such as `128k-seq-write`";
        return Err(Error::new(Kind::Input, text).hint(hint));
    }
    Ok(Some(fill_with(suite, "fill", workload, suite.fill_passes)))
}

/// So many passes of `workload` over the whole drive, whatever the suite's footprint.
fn fill_with(suite: &Suite, name: &str, workload: &Workload, passes: u32) -> PlannedStep {
    PlannedStep {
        id: format!("{}/{name}", suite.name),
        kind: StepKind::Fill,
        fill_passes: passes,
        workload: Some(Workload {
            footprint_percent: workload.footprint_percent,
            ..suite.adapted(workload)
        }),
        ..purge(&suite.name, &suite.title)
    }
}

/// The random writes over the whole drive after the fill, if the suite asks for any.
fn random_fill(suite: &Suite) -> Option<PlannedStep> {
    if suite.fill_random_passes == 0 {
        return None;
    }
    let workload =
        workload::catalogue::find_workload(RANDOM_FILL).expect("a test reads the catalogue");
    Some(fill_with(suite, "fill-random", &workload, suite.fill_random_passes))
}

/// Name of the workload that writes everything where a suite does not name one.
const FILL: &str = "128k-seq-write";
/// Name of the workload of a suite's random writes after the fill.
const RANDOM_FILL: &str = "4k-rand-write";

/// The fill of a suite that does not ask for one, before `steps`; its data is like theirs.
pub(super) fn fill_before(steps: &[PlannedStep], passes: u32) -> Option<PlannedStep> {
    let load = steps.iter().find(|step| step.kind != StepKind::Purge)?;
    let fill = workload::catalogue::find_workload(FILL).expect("a test reads the catalogue");
    let compressible_percent = load.compressible_percent();
    Some(PlannedStep {
        id: format!("{}/fill", load.suite),
        kind: StepKind::Fill,
        fill_passes: passes,
        workload: Some(Workload { compressible_percent, ..fill }),
        ..purge(&load.suite, &load.suite_title)
    })
}

/// A workload is replayed if it says what a trace of it has besides.
fn check_replay(suite: &Suite, measure: &Measure, workload: &Workload) -> Result<(), Error> {
    if measure.replay.is_none() || workload.trace.is_some() {
        return Ok(());
    }
    let text = format!("suite {}: no trace can be made of `{}`", suite.name, workload.name);
    Err(Error::new(Kind::Input, text).hint("give the workload a [trace], or leave out replay"))
}

fn precondition(suite: &Suite, workloads: &[Workload]) -> Result<Option<PlannedStep>, Error> {
    let Some(asked) = &suite.precondition else { return Ok(None) };
    Ok(Some(PlannedStep {
        id: format!("{}/precondition", suite.name),
        kind: StepKind::Precondition,
        workload: Some(suite.adapted(find(workloads, &asked.workload, suite)?)),
        threads: asked.threads,
        queue_per_thread: asked.queue_per_thread,
        duration_s: asked.duration_s as f64,
        interval_s: asked.interval_s as f64,
        round_s: asked.round_s as f64,
        real: asked.real,
        ..purge(&suite.name, &suite.title)
    }))
}

/// One load of `measure` while nothing holds it back, then at every share of the suite's curve.
fn measured(
    suite: &Suite,
    measure: &Measure,
    workload: &Workload,
    at: (u16, u16),
) -> Vec<PlannedStep> {
    let free = free(suite, measure, workload, at);
    let curve = suite.curve.iter().flat_map(|curve| on_curve(curve, &free)).collect::<Vec<_>>();
    std::iter::once(free).chain(curve).collect()
}

/// The points of `curve` for the load of `free`.
fn on_curve(curve: &Curve, free: &PlannedStep) -> Vec<PlannedStep> {
    let point = |percent: &f64| PlannedStep {
        id: format!("{}-{percent}percent", free.id),
        ramp_s: curve.ramp_s as f64,
        duration_s: curve.duration_s as f64,
        interval_s: curve.interval_s as f64,
        pace: Some(Pace::Share { of: free.id.clone(), percent: *percent, gaps: curve.gaps }),
        ..free.clone()
    };
    curve.percents.iter().map(point).collect()
}

fn free(
    suite: &Suite,
    measure: &Measure,
    workload: &Workload,
    (threads, queue_per_thread): (u16, u16),
) -> PlannedStep {
    PlannedStep {
        id: format!("{}/{}/T{threads}Q{queue_per_thread}", suite.name, workload.name),
        kind: StepKind::Measure,
        workload: Some(workload.clone()),
        published_as: measure.published_as.clone(),
        threads,
        queue_per_thread,
        ramp_s: measure.ramp_s as f64,
        duration_s: measure.duration_s as f64,
        interval_s: measure.interval_s as f64,
        replay: measure
            .replay
            .map(|replay| PlannedReplay { source: Source::Shape, addresses: replay.addresses }),
        pace: paced(measure),
        ..purge(&suite.name, &suite.title)
    }
}

/// Pace of `measure`: its rate, or the times of its trace; absent for a closed loop.
fn paced(measure: &Measure) -> Option<Pace> {
    let rate = measure.rate_iops.map(|iops| Pace::Fixed(Rate { iops, gaps: measure.gaps }));
    rate.or_else(|| Some(Pace::Trace { speed: measure.replay?.speed? }))
}

fn find<'a>(workloads: &'a [Workload], name: &str, suite: &Suite) -> Result<&'a Workload, Error> {
    workloads.iter().find(|workload| workload.name == name).ok_or_else(|| {
        let suite = &suite.name;
        let error = Error::new(Kind::Input, format!("suite {suite}: no workload named `{name}`"));
        match nearest(name, workloads.iter().map(|workload| workload.name.as_str())) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint("`floatgate workloads` lists them"),
        }
    })
}

#[cfg(test)]
mod tests;
