//! `floatgate run`: one workload on one drive, at once.

mod coverage;
mod spread;
mod stored;
mod threads;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::{env, fs, iter, process};

use anyhow::Result;
use blockio::{Bytes, Nanos};
use lab::order::RunOrder;
use lab::plan::Plan;
use lab::repeats;
use lab::results::mark::UNVALIDATED_REASON;
use lab::results::{
    ClassWrites, HandleWrites, HostLimit, LatencySummary, RateLimit, Spread, Step, StepKind,
    Summary, TierWork, Warning, WarningKind,
};
use lab::runner::{Assignment, NoStepStore, Outcome, Record, StepStore, carry_out};
use lab::subject::Subject;
use lab::target::access::Access;
use lab::wanted::TargetSetup;
use lab::workload::trace::Trace;
use lab::{Error, Kind};
use real::drivers::drivers;
use serde_json::json;

use self::coverage::Coverage;
use self::stored::StoredRun;
use crate::args;
use crate::progress::TerminalProgress;
use crate::{Ending, output, setup, steps, table};

/// Measures, prints the figures with what qualifies them, and stores the run where that was asked
/// for.
pub(crate) fn run(args: &args::Run) -> Result<Ending> {
    check_replay(args)?;
    let subject = Subject::find(&args.target)?;
    setup::tell_without_effect(&subject, &args.real, &args.data);
    let choice = setup::choice(args.format.as_deref(), &args.model);
    let choice = setup::sampled(setup::on_clients(choice, &args.clients), &args.sampling)?;
    let wanted = subject.setup(&setup::placed(choice, &args.place))?;
    let order = order(args);
    let trace = order.trace()?;
    let plan_of = |threads| {
        let plan = order.plan(threads, trace.as_ref(), args.model.seed)?;
        setup::for_reading(subject.plan(plan, &wanted), &subject, &args.real)
    };
    let (subject, wanted) = (&subject, &wanted);
    let mut asked = RunRequest { args, subject, wanted, trace: trace.as_ref(), run: None };
    let plan = plan_of(threads::number(&asked, &plan_of)?)?;
    let stored = args.out.as_deref().map(|out| StoredRun::begin(out, &plan, wanted)).transpose()?;
    asked.run = stored.as_ref().map(|it| it.folder().order().id.as_str());
    let count =
        args.repeat.unwrap_or_else(|| repeats::affordable(subject, iter::once((wanted, &plan))));
    let measured = measured(&asked, &plan.repeats(count), stored.as_ref());
    let measured = measured.map(Outcome::first_with_spread);
    let shown = measured.and_then(|outcome| Ok((shown(&outcome, &asked)?, outcome)));
    let (ending, outcome) = shown.inspect_err(|_| stored.iter().for_each(StoredRun::give_up))?;
    let lasted_s: f64 = outcome.records.iter().map(|(_, record)| record.step.duration_s).sum();
    let told: Vec<&Warning> = warnings(&outcome).collect();
    setup::tell_intact(&args.place, &told, Nanos::from_secs_f64(lasted_s));
    if let Some(stored) = stored {
        let folder = stored.finish(outcome)?;
        if !args.json {
            output::data(&format!("stored in {}", folder.display()))?;
        }
    }
    Ok(ending)
}

/// Refuses options of a replay without a trace: a workload that is named is in their way.
fn check_replay(args: &args::Run) -> Result<()> {
    let option = match (&args.trace, args.speed, args.wrap) {
        (None, Some(_), _) => "--speed",
        (None, None, true) => "--wrap",
        _ => return Ok(()),
    };
    let text = format!("{option} has no trace to apply to");
    Err(Error::new(Kind::Input, text).hint("add --trace FILE, and name no workload").into())
}

/// Carries out the plans, which differ in their seeds, and keeps the steps of the first in the
/// folder of the run if it is stored: models side by side, a real target again and again.
fn measured(
    asked: &RunRequest<'_>,
    plans: &[Plan],
    stored: Option<&StoredRun>,
) -> Result<Vec<Outcome>> {
    let raw = Raw::new();
    let path = stored.map_or_else(|| raw.path.clone(), |it| it.folder().raw());
    // Before the drivers, which may have tuned the machine when Ctrl-C is pressed.
    let progress = TerminalProgress::new()?;
    let at_once = if asked.wanted.is_model() { plans.len() } else { 1 };
    let mut outcomes = Vec::new();
    for plans in plans.chunks(at_once) {
        let mut access = asked.args.real.access(path.clone());
        // What an earlier repeat wrote may be destroyed by the next one.
        access.destroy |= !outcomes.is_empty();
        let stored = stored.filter(|_| outcomes.is_empty());
        let done = carried_out(asked, plans, &access, stored, &progress);
        progress.clear();
        outcomes.extend(done.inspect_err(|_| raw.keep())?);
        if outcomes.iter().any(|outcome: &Outcome| outcome.interrupted) {
            break;
        }
    }
    Ok(outcomes)
}

/// Carries out plans at once, the first of which may be stored.
fn carried_out(
    asked: &RunRequest<'_>,
    plans: &[Plan],
    access: &Access,
    stored: Option<&StoredRun>,
    progress: &TerminalProgress,
) -> Result<Vec<Outcome>> {
    let drivers: Vec<_> = plans
        .iter()
        .map(|plan| drivers(asked.subject, asked.wanted, plan.seed, access))
        .collect::<Result<_, _>>()?;
    if let (Subject::Real { path }, [plan, ..], [drivers, ..]) = (asked.subject, plans, &*drivers) {
        steps::announce(path, steps::capacity(&drivers()?.target()), plan);
    }
    let stored = stored.map(|it| it.folder() as &dyn StepStore);
    let stores = stored.into_iter().chain(iter::repeat(&NoStepStore as &dyn StepStore));
    let assignments: Vec<Assignment<'_>> = plans
        .iter()
        .zip(&drivers)
        .zip(stores)
        .map(|((plan, drivers), step_store)| Assignment {
            label: &asked.wanted.format,
            plan,
            drivers: drivers.as_ref(),
            step_store,
            finished: Vec::new(),
        })
        .collect();
    Ok(carry_out(&assignments, setup::jobs(None), progress)?)
}

/// Folder for job files and reports of a load generator: deleted when the run succeeds, kept for
/// diagnosis when it fails.
struct Raw {
    path: PathBuf,
    is_kept: Cell<bool>,
}

impl Raw {
    fn new() -> Self {
        let path = env::temp_dir().join(format!("floatgate-{}", process::id()));
        Self { path, is_kept: Cell::new(false) }
    }

    fn keep(&self) {
        self.is_kept.set(true);
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        if !self.is_kept.get() {
            // For a model there is none.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// The order that the arguments make.
fn order(args: &args::Run) -> RunOrder {
    // A run that is stored may be continued from another folder.
    let whole = |path: &Path| args.out.as_ref().and_then(|_| path.canonicalize().ok());
    RunOrder {
        workload: args.workload.clone(),
        transfer_bytes: args.bs.map(|size| size.0),
        threads: args.threads,
        queue_per_thread: args.queue,
        duration_s: args.runtime.as_secs_f64(),
        precondition_s: args.precondition.map_or(0.0, |span| span.as_secs_f64()),
        rate: args.rate,
        compressible_percent: args.data.compressible,
        trace: args.trace.as_deref().map(|path| whole(path).unwrap_or_else(|| path.to_owned())),
        speed: args.speed,
        wrap: args.wrap,
    }
}

/// Returns the warnings of all steps, which qualify the figures.
fn warnings(outcome: &Outcome) -> impl Iterator<Item = &Warning> {
    outcome.records.iter().flat_map(|(_, record)| &record.warnings)
}

/// Request of the user: the arguments, the drive in its setup, and the trace where one is replayed.
struct RunRequest<'a> {
    args: &'a args::Run,
    subject: &'a Subject,
    wanted: &'a TargetSetup,
    trace: Option<&'a Trace>,
    /// Name of the run, if it is stored.
    run: Option<&'a str>,
}

/// The record of the step of `kind`; absent where there was none.
fn record_of(outcome: &Outcome, kind: StepKind) -> Option<&Record> {
    outcome.records.iter().map(|(_, record)| record).find(|record| record.step.kind == kind)
}

fn shown(outcome: &Outcome, asked: &RunRequest<'_>) -> Result<Ending> {
    let record = record_of(outcome, StepKind::Measure)
        .and_then(|record| Some((record, record.step.summary.as_ref()?)));
    let Some((record, summary)) = record else {
        return Err(Error::new(Kind::Program, "stopped before anything was measured").into());
    };
    if summary.latency.count == 0 {
        return Err(nothing_completed(&record.step, outcome.target.time_lapse).into());
    }
    if asked.args.json {
        let is_model = outcome.target.kind.is_model();
        let precondition = record_of(outcome, StepKind::Precondition);
        output::json(&json!({
            "floatgate_version": env!("CARGO_PKG_VERSION"),
            "model_version": is_model.then_some(lab::ssd::MODEL_VERSION),
            "seed": asked.args.model.seed,
            "target": outcome.target,
            "environment": outcome.environment,
            "precondition": precondition.map(|record| &record.step),
            "step": record.step,
            "limited_by_host": host_limit(outcome, record, summary).map(|it| it.to_string()),
            "run": asked.run,
            "warnings": warnings(outcome).collect::<Vec<_>>(),
        }))?;
    } else {
        printed(outcome, asked, record, summary)?;
    }
    let mut ending = Ending::Done;
    for warning in warnings(outcome) {
        if asked.args.json {
            output::warning(warning);
        } else {
            output::result_warning(warning)?;
        }
        // Without a preconditioning nothing of a run is judged.
        let is_unsteady =
            matches!(warning.kind, WarningKind::NotSteady | WarningKind::NotPreconditioned);
        if is_unsteady && asked.args.require_steady {
            ending = Ending::NotSteady;
        }
    }
    Ok(ending)
}

/// Prints the figures, and what qualifies them.
fn printed(
    outcome: &Outcome,
    asked: &RunRequest<'_>,
    record: &Record,
    summary: &Summary,
) -> Result<()> {
    let (step, target) = (&record.step, &outcome.target);
    let lapse = target.time_lapse;
    let of_devices = (lapse, target.devices);
    let coverage =
        asked.trace.map(|trace| Coverage::new((trace, asked.args.speed), step, of_devices));
    let missed = missed(step, summary, coverage.as_ref());
    let response = step.response.as_ref().filter(|_| missed.is_none());
    output::data(&figures(summary, response))?;
    let precondition = record_of(outcome, StepKind::Precondition);
    let steady = precondition.and_then(|record| record.step.steady.as_ref());
    let settles = settles(asked.subject);
    let is_fresh =
        settles && summary.write.count > 0 && !steady.is_some_and(|steady| steady.achieved);
    let kept = asked.args.real.read_only && !target.kind.is_model();
    let state =
        if kept { AS_FOUND.to_owned() } else { state(precondition, step, summary, settles) };
    let state = state + &lapsed(lapse, step.duration_s, is_fresh) + &climate(step, summary);
    let lacks = record.warnings.iter().any(|it| it.kind == WarningKind::Unfinished);
    let told = if lacks {
        LACKING.to_owned()
    } else {
        latencies(response, summary, step.spread.as_ref())
            + &spread::note(step.spread.as_ref())
            + &mean_notes(summary)
    };
    let sampling = step.sampling.as_ref().map_or_else(String::new, |it| format!("\n{}", it.text()));
    let replayed = coverage.map_or_else(String::new, |it| {
        format!("\n{}\n{}", step.how, it.line(step.rate.as_ref().map(|rate| rate.iops)))
    });
    let mark = if target.unvalidated { format!("\n{UNVALIDATED_REASON}") } else { String::new() };
    output::data(&(details(&told, summary, &state) + &sampling + &replayed + &mark))?;
    let limited = host_limit(outcome, record, summary).map(limited);
    let doubts = missed.into_iter().chain(limited).chain(coverage.and_then(|it| it.warning()));
    doubts.map(|text| format!("warning: {text}")).try_for_each(|text| output::data(&text))
}

/// The part of the host that bounds the load of `record`; absent where the drive does.
fn host_limit(outcome: &Outcome, record: &Record, summary: &Summary) -> Option<HostLimit> {
    outcome.target.host_limit(record.step.threads, summary)
}

/// The warning about a load that the host bounds.
fn limited(limit: HostLimit) -> String {
    let remedy = match limit {
        HostLimit::Threads(_) => "use more --threads",
        HostLimit::Processors(_) | HostLimit::SerialSection => "no number of --threads helps",
    };
    format!("limited by the host ({limit}): a faster drive would not be faster here; {remedy}")
}

/// True if writes change what `subject` does: not of models that are written in place.
fn settles(subject: &Subject) -> bool {
    match subject {
        Subject::Model { spec, .. } => spec.settles(),
        Subject::Real { .. } => true,
    }
}

/// The warning about a load whose requests did not come at the rate that was asked for; absent
/// where they did, or none was.
///
/// Beyond saturation the queue grows for as long as the load lasts, and so does the time from when
/// a request was due: in time lapse it is 1/k of that at full scale.
fn missed(step: &Step, summary: &Summary, coverage: Option<&Coverage>) -> Option<String> {
    let limit = step.rate.as_ref().and_then(|rate| rate.limit);
    let limit = limit.or_else(|| coverage?.falls_behind().then_some(RateLimit::Drive))?;
    let asked = match (&step.rate, coverage) {
        (_, Some(_)) | (None, None) => "the rate of the trace was not reached".to_owned(),
        (Some(rate), None) => {
            format!("requested {:.0} IOPS, not reached: {:.0}", rate.iops, summary.iops)
        }
    };
    Some(match limit {
        RateLimit::Drive => format!(
            "{asked}; no response time, since the queue grew until the load ended: it would \
             depend on the length of the load"
        ),
        RateLimit::Generator => format!(
            "{asked}, limited by the load generator; no response time, since requests were late \
             before they reached the drive"
        ),
    })
}

/// The error of a load in which no request completed.
fn nothing_completed(step: &Step, time_lapse: u32) -> Error {
    let span = Nanos::from_secs_f64(step.duration_s / f64::from(time_lapse.max(1)));
    let scale = if time_lapse > 1 {
        format!(" (simulated at 1/{time_lapse} scale)")
    } else {
        String::new()
    };
    let text = format!("{}: no request completed in {span}{scale}", step.workload);
    let smaller = if time_lapse > 1 { " or a smaller --time-lapse" } else { "" };
    Error::new(Kind::Input, text).hint(format!("use a longer --runtime{smaller}"))
}

/// The rate and the mean latency; at a rate, where requests may wait at the host before they are
/// submitted, also the mean time from when each was due.
fn figures(summary: &Summary, response: Option<&LatencySummary>) -> String {
    let mean = |latency: &LatencySummary| Nanos::from_micros_f64(latency.latency_ns_avg / 1e3);
    let (iops, latency) = (summary.iops, mean(&summary.latency));
    response.map_or_else(
        || format!("{iops:.0} IOPS\n{latency} mean latency"),
        |response| {
            let response = mean(response);
            format!(
                "{iops:.0} IOPS\n{latency} mean latency (from submission)\n{response} mean \
                 response time (from the time it was due)"
            )
        },
    )
}

/// The state of the drive in which `measured` was: how far it was written, and whether it was in
/// steady state; of a drive that does not settle, why there is none.
fn state(
    preconditioned: Option<&Record>,
    measured: &Step,
    summary: &Summary,
    settles: bool,
) -> String {
    let share = measured.written.map_or(0.0, |written| written.since_purge_share);
    let written = format!("{share:.2} times the user capacity written since the purge");
    let amplification = summary.nand.and_then(|nand| nand.write_amplification());
    let amplification =
        amplification.map_or_else(String::new, |it| format!(", write amplification {it:.2}"));
    if !settles && preconditioned.is_none() {
        return format!(
            "media are overwritten in place, so no preconditioning is needed; \
             {written}{amplification}"
        );
    }
    // For a load that only reads it is the same requests as writes.
    let with = preconditioned.filter(|it| it.step.workload != measured.workload);
    let with = with.map_or_else(String::new, |it| format!(" with {}", it.step.workload));
    let steady = preconditioned.and_then(|record| record.step.steady.as_ref());
    let state = match steady {
        Some(steady) if steady.achieved => format!("preconditioned{with} to steady state"),
        Some(_) => format!("preconditioned{with}, steady state not reached"),
        None if summary.write.count > 0 => {
            "not preconditioned: measure steady state with --precondition (6h or longer)".into()
        }
        None => "filled and not preconditioned".into(),
    };
    format!("{state}; {written}{amplification}")
}

/// Returns a line on the scale of a model in time lapse, whose requests and bytes are a part of
/// those at full scale, as are the rates of a settled drive only; empty at full scale.
fn lapsed(time_lapse: u32, duration_s: f64, is_fresh: bool) -> String {
    if time_lapse <= 1 {
        return String::new();
    }
    let fresh = if is_fresh {
        "; before steady state, rates and latencies also depend on the scale, because caches and \
         deferred work do not shrink (use --precondition, a longer --runtime or a smaller \
         --time-lapse)"
    } else {
        ""
    };
    let simulated = Nanos::from_secs_f64(duration_s / f64::from(time_lapse));
    format!(
        "\nsimulated at 1/{time_lapse} scale, for {simulated}: requests and bytes are \
         1/{time_lapse} of those at full scale{fresh}"
    )
}

/// State of a target that keeps its data.
const AS_FOUND: &str = "read as it was found: not purged, filled or preconditioned";

/// Line in place of the percentiles of a load whose figures lack requests.
const LACKING: &str = "no percentiles: requests that had not completed are missing";

/// The percentiles of each kind of request with their intervals, and of the `response` at a rate;
/// `-` for those beyond which fewer than ten requests lie.
fn latencies(
    response: Option<&LatencySummary>,
    summary: &Summary,
    spread: Option<&Spread>,
) -> String {
    let kinds = [
        ("read", Some(&summary.read), spread.map(|it| &it.read)),
        ("write", Some(&summary.write), spread.map(|it| &it.write)),
        ("response", response, None),
    ];
    let head = ["", "requests", "p50", "p99", "p99.9", "max"].map(str::to_owned);
    let rows = kinds.into_iter().flat_map(|(kind, latency, spread)| {
        let latency = latency.filter(|latency| latency.count > 0);
        let row = latency.map(|latency| percentiles(kind, latency));
        row.into_iter().chain(spread.and_then(spread::row))
    });
    let rows: Vec<[String; 6]> = iter::once(head).chain(rows).collect();
    table::columns(&rows)
}

/// Lines on means that are above a percentile of the table; empty without any.
fn mean_notes(summary: &Summary) -> String {
    let kinds = [
        ("reads and writes", &summary.latency),
        ("read", &summary.read),
        ("write", &summary.write),
    ];
    // Of one kind of request all are of that kind.
    let has_both = summary.read.count > 0 && summary.write.count > 0;
    let kinds = kinds.into_iter().skip(usize::from(!has_both));
    let line = |(kind, latency): (&str, &LatencySummary)| {
        Some(format!("\n{kind}: {}", latency.mean_note()?))
    };
    kinds.filter_map(line).collect()
}

/// Line on the power of a load and on its heat: at its end, and the highest that was read in it,
/// which may be left from what came before. Empty where neither is known.
fn climate(step: &Step, summary: &Summary) -> String {
    let Some(climate) = summary.climate else { return String::new() };
    let power = climate.power_w.map(|power_w| format!("mean power {power_w:.1} W"));
    let end_c = step.samples.last().and_then(|it| it.summary.climate?.temperature_c);
    let end = end_c.map(|celsius| format!("temperature {celsius:.1} °C at the end"));
    let most = climate.temperature_c.map(|celsius| format!("maximum {celsius:.1} °C"));
    let told: Vec<String> = power.into_iter().chain(end).chain(most).collect();
    format!("\n{}", told.join(", "))
}

/// The `latencies`, the `state` of the drive, and its placement handles.
fn details(latencies: &str, summary: &Summary, state: &str) -> String {
    let placement: String = summary.placement.iter().map(placement).collect();
    let tier = summary.tier.as_ref().map_or_else(String::new, |work| tier(work, summary.span_s));
    format!("{latencies}\n{state}{placement}{tier}")
}

/// Lines on where requests to a tier were served, and on the writes of its classes.
fn tier(work: &TierWork, span_s: f64) -> String {
    let percent =
        |share: Option<f64>| share.map_or_else(|| "-".into(), |it| format!("{:.1} %", it * 100.0));
    let class = |name: &str, writes: &ClassWrites| {
        let amplification =
            writes.write_amplification().map_or_else(|| "-".into(), |it| format!("{it:.2}"));
        format!(
            "\n{name} class: {} written, write amplification {amplification}, {:.2} drive writes \
             a day",
            Bytes(writes.sent_bytes),
            writes.drive_writes_per_day(span_s)
        )
    };
    format!(
        "\nhit rate {}, read from the fast class {}; {} destaged, {} absorbed{}{}",
        percent(work.hit_rate()),
        percent(work.read_fast_share()),
        Bytes(work.destaged_bytes),
        Bytes(work.absorbed_bytes),
        class("fast", &work.fast),
        class("slow", &work.slow),
    )
}

/// Line on what was programmed for one placement handle.
fn placement(writes: &HandleWrites) -> String {
    let HandleWrites { handle, host_bytes, relocation_bytes, wear_bytes } = *writes;
    let (host, moved) = (Bytes(host_bytes), Bytes(relocation_bytes + wear_bytes));
    let amplification =
        writes.write_amplification().map_or_else(|| "-".into(), |it| format!("{it:.2}"));
    format!(
        "\nplacement handle {handle}: {host} written, {moved} moved, write amplification \
         {amplification}"
    )
}

fn percentiles(kind: &str, latency: &LatencySummary) -> [String; 6] {
    let known =
        |latency_ns: Option<u64>| latency_ns.map_or_else(|| "-".into(), |it| Nanos(it).to_string());
    [
        kind.into(),
        latency.count.to_string(),
        known(latency.p50_ns()),
        known(latency.p99_ns()),
        known(latency.p999_ns()),
        known(latency.max_ns()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_that_rare_requests_raise_is_told_of_each_kind_once() {
        let stalled = LatencySummary {
            count: 10_000,
            latency_ns_avg: 5e6,
            latency_ns_p99: Some(1_000_000),
            latency_ns_p999: Some(6_000_000),
            latency_ns_p9999: Some(7_000_000),
            latency_ns_max: 20_000_000_000,
            ..LatencySummary::default()
        };
        let one = Summary { latency: stalled, write: stalled, ..Summary::default() };
        let note = "mean above p99: rare requests of up to 20.0 s raise it";
        assert_eq!(mean_notes(&one), format!("\nwrite: {note}"));
        let read = LatencySummary { latency_ns_avg: 9e5, ..stalled };
        let both = Summary { read, ..one };
        assert_eq!(mean_notes(&both), format!("\nreads and writes: {note}\nwrite: {note}"));
        assert_eq!(mean_notes(&Summary::default()), "");
    }

    #[test]
    fn the_host_as_the_limit_is_named_with_what_helps() {
        let said = limited(HostLimit::Threads(1));
        assert!(said.starts_with("limited by the host (1 thread): "), "{said}");
        assert!(said.ends_with("use more --threads"), "{said}");
        assert!(!limited(HostLimit::SerialSection).contains("use more"));
    }

    #[test]
    fn rates_before_steady_state_are_said_to_depend_on_the_scale() {
        assert_eq!(lapsed(1, 5.0, true), "");
        assert!(!lapsed(32, 5.0, false).contains("depend on the scale"));
        let fresh = lapsed(32, 5.0, true);
        assert!(fresh.contains("1/32 scale, for 156 ms: requests"), "{fresh}");
        assert!(fresh.contains("1/32 of those at full scale; before steady state"), "{fresh}");
    }
}
