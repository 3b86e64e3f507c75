//! Warnings about the figures of one step.

use blockio::{Bytes, Nanos};
use results::steady::{WINDOW_ROUNDS, WriteRequirement};
use results::{Lateness, Steady, SteadyEvidence, Summary, Warning, WarningKind};

use crate::plan::PlannedStep;

/// Share by which the requests outstanding may fall short of those asked for.
const QUEUE_SHORT_MAX: f64 = 0.05;

/// Share by which the requests outstanding may exceed those asked for.
const LITTLES_LAW_MAX: f64 = 0.01;

/// Share of unwritten pages among those read from which a warning tells of it: the rate of reads is
/// off by about as much.
const UNWRITTEN_MAX: f64 = 0.01;

/// Requests on average that a step asked for, and those of them that no interval counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outstanding {
    /// Threads times queue, of all devices.
    pub(super) asked: f64,
    /// Requests that the load generator was at work on.
    pub(super) uncounted: f64,
    /// Requests that had not completed when the last interval ended.
    pub(super) unfinished: f64,
}

/// Warnings that follow from the figures of `step`, which asked for `requests`.
pub(super) fn of_load(
    step: &PlannedStep,
    requests: Outstanding,
    summary: &Summary,
    verdict: Option<(&Steady, &WriteRequirement)>,
) -> Vec<Warning> {
    let unsettled = verdict.and_then(|(steady, required)| match steady.evidence {
        Some(SteadyEvidence::TooLittleWritten) => Some(burst(step, summary, required)),
        _ => not_steady(step, steady),
    });
    let outstanding = outstanding(step, requests, summary);
    unsettled.into_iter().chain(outstanding).collect()
}

/// A preconditioning that met the limits of the rule before it had written enough.
fn burst(step: &PlannedStep, summary: &Summary, required: &WriteRequirement) -> Warning {
    let written = summary.written_bytes() * required.time_lapse;
    let share = written / required.addressed_bytes.max(1.0) * 100.0;
    let capacity = required.used_up_bytes();
    let is_raw = required.raw_bytes.is_some();
    let capacity_name = if is_raw { "its raw capacity" } else { "twice its user capacity" };
    let needed_bytes = required.addressed_bytes.max(capacity - required.before_bytes);
    let needed_s = step.duration_s * needed_bytes / written.max(1.0);
    let lacking = if written < required.addressed_bytes {
        let [written, addressed] = [written, required.addressed_bytes].map(whole);
        format!("the load had written {share:.1} % of what it addresses ({written} of {addressed})")
    } else {
        let [written, capacity] = [required.before_bytes + written, capacity].map(whole);
        format!("{written} had been written since the purge, less than {capacity_name}, {capacity}")
    };
    Warning {
        kind: WarningKind::NotPreconditioned,
        step: step.id.clone(),
        text: format!(
            "IOPS and latency met the limits of the steady-state rule, but {lacking}: a burst, not \
             steady state"
        ),
        remedy: format!(
            "precondition for at least {}: at this rate the load has by then written what it \
             addresses, and the drive {capacity_name} since the purge",
            Nanos::from_secs_f64(needed_s.ceil()),
        ),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
fn whole(bytes: f64) -> Bytes {
    Bytes(bytes.round() as u64)
}

/// Replies of a served model that were so late that the figures are in part those of its server.
pub(super) fn late(step: &PlannedStep, lateness: &Lateness) -> Option<Warning> {
    let Lateness { replies, late, slowdown, .. } = *lateness;
    let [mean, most] = [lateness.late_by_ns_mean, lateness.late_by_ns_max].map(Nanos);
    lateness.is_harmful().then(|| Warning {
        kind: WarningKind::Lateness,
        step: step.id.clone(),
        text: format!(
            "{late} of {replies} replies ({:.1} %) left the server later than in the model, by \
             {mean} on average and {most} at most, {:.1} % of the model's time in all: these \
             figures are in part those of the server, not those of the model",
            lateness.late_share() * 100.0,
            slowdown * 100.0
        ),
        remedy: "stop other processes on the server's machine, or reduce the request rate; a \
                 review of the model itself needs no server"
            .into(),
    })
}

/// Reads that met unwritten space, within what is reported of the step: the last window of a
/// preconditioning, which may well begin on a purged drive; else all of it.
pub(super) fn unwritten(
    step: &PlannedStep,
    summary: Option<&Summary>,
    settled: Option<&Summary>,
) -> Option<Warning> {
    let share = settled.or(summary)?.pages_read?.unwritten_share();
    let within = if settled.is_some() { " in the last five rounds" } else { "" };
    (share >= UNWRITTEN_MAX).then(|| Warning {
        kind: WarningKind::UnwrittenReads,
        step: step.id.clone(),
        text: format!(
            "{:.1} % of the pages read{within} had never been written: the drive answers them \
             from its map, not from its media",
            share * 100.0
        ),
        remedy: "fill the drive before it is read: `fill` in the protocol's suite".into(),
    })
}

fn not_steady(step: &PlannedStep, steady: &Steady) -> Option<Warning> {
    let rounds = format!("{} rounds of {}", steady.rounds, Nanos::from_secs_f64(steady.round_s));
    let text = if (steady.rounds as usize) < WINDOW_ROUNDS {
        format!("steady state not judged: {rounds} are fewer than the {WINDOW_ROUNDS} it takes")
    } else {
        let unsteady = steady.variables.iter().filter(|variable| !variable.is_steady());
        let of = |variable: &results::SteadyVariable| {
            let (range, slope) = (variable.range * 100.0, variable.slope * 100.0);
            let is_rate = variable.name.ends_with("iops");
            let name = if is_rate { "IOPS" } else { "average latency" };
            format!("{name} had a range of {range:.1} % and a slope of {slope:.1} %")
        };
        let unsteady: Vec<String> = unsteady.map(of).collect();
        let reason = if unsteady.is_empty() {
            "too little was written".into()
        } else {
            let unsteady = unsteady.join(", ");
            format!("in the last five {unsteady} of the average (limits 20 % and 10 %)")
        };
        format!("steady state not achieved in {rounds}: {reason}")
    };
    (!steady.achieved).then(|| Warning {
        kind: WarningKind::NotSteady,
        step: step.id.clone(),
        text,
        remedy: "precondition for longer; the last five rounds are reported anyway".into(),
    })
}

/// Little's law: IOPS times mean latency is what was outstanding, unless a rate says how much is.
///
/// What the load generator was at work on is allowed for: a thread with one request at a time
/// cannot have it outstanding while it prepares it. The edges of the span are not, beyond 5 %: a
/// request that stands still when the span ends is missing from every figure.
fn outstanding(step: &PlannedStep, requests: Outstanding, summary: &Summary) -> Option<Warning> {
    if step.pace.is_some() {
        return None;
    }
    let Outstanding { asked, uncounted, unfinished } = requests;
    let deviation = summary.littles_law_deviation(asked)?;
    let found = asked * (1.0 + deviation);
    let warning = |kind, text, remedy: &str| {
        Some(Warning { kind, step: step.id.clone(), text, remedy: remedy.into() })
    };
    let allowed_above = (LITTLES_LAW_MAX + summary.littles_law_edge()).min(QUEUE_SHORT_MAX);
    if deviation > allowed_above {
        return warning(
            WarningKind::LittlesLaw,
            format!(
                "IOPS times mean latency gives {found:.1} outstanding requests, but there were \
                 {asked}"
            ),
            "measure for longer than the largest latency, with a ramp",
        );
    }
    if deviation >= -QUEUE_SHORT_MAX - uncounted / asked {
        return None;
    }
    if deviation >= -QUEUE_SHORT_MAX - (uncounted + unfinished) / asked {
        return warning(
            WarningKind::Unfinished,
            format!(
                "IOPS times mean latency gives {found:.1} outstanding requests instead of \
                 {asked}: requests that had not completed by the end, {unfinished:.1} on average \
                 over the measurement, are missing from all figures. Latencies are too low; \
                 percentiles and findings are withheld"
            ),
            "measure for longer than the longest request, or use a smaller --time-lapse, which \
             makes the measurement longer on the drive's own clock",
        );
    }
    warning(
        WarningKind::QueueNotFilled,
        format!("on average {found:.1} requests were outstanding instead of {asked}"),
        if step.threads > 1 {
            "reduce --threads: the jobs compete for processors"
        } else {
            "stop other processes on this machine"
        },
    )
}

#[cfg(test)]
mod tests {
    use results::LatencySummary;
    use workload::catalogue;

    use super::*;
    use crate::plan::Plan;

    /// A step that asks for 256 outstanding, and what is said of `iops` at a latency of 1 ms.
    fn said(iops: f64) -> Vec<(WarningKind, String)> {
        said_of(iops, 0.0)
    }

    /// So many requests outstanding, all of them counted.
    fn asked(asked: f64) -> Outstanding {
        Outstanding { asked, uncounted: 0.0, unfinished: 0.0 }
    }

    /// Warnings as of [`said`], where the load generator holds `uncounted` requests.
    fn said_of(iops: f64, uncounted: f64) -> Vec<(WarningKind, String)> {
        told(iops, Outstanding { uncounted, ..asked(256.0) }, 1_000_000)
    }

    /// Warnings as of [`said`], with `requests` and a largest latency.
    fn told(iops: f64, requests: Outstanding, largest_ns: u64) -> Vec<(WarningKind, String)> {
        let protocol = catalogue::find_protocol("enterprise").unwrap();
        let plan = Plan::new(&protocol, &catalogue::workloads(), 1).unwrap();
        let step = plan.steps.iter().find(|step| step.id == "4k/4k-rand-read/T16Q16").unwrap();
        let latency = LatencySummary {
            count: 256_000_000,
            latency_ns_avg: 1e6,
            latency_ns_max: largest_ns,
            ..LatencySummary::default()
        };
        let summary = Summary { span_s: 1000.0, iops, latency, ..Summary::default() };
        let warnings = of_load(step, requests, &summary, None);
        warnings.into_iter().map(|warning| (warning.kind, warning.text)).collect()
    }

    #[test]
    fn a_queue_that_was_not_filled_is_told_with_what_was_outstanding() {
        let said = said(200_000.0);
        assert_eq!(said[0].0, WarningKind::QueueNotFilled);
        assert_eq!(said[0].1, "on average 200.0 requests were outstanding instead of 256");
    }

    #[test]
    fn requests_that_are_known_not_to_be_counted_are_not_missing() {
        assert_eq!(said_of(240_000.0, 4.0), [], "5 % and four");
        assert_eq!(said_of(230_000.0, 4.0)[0].0, WarningKind::QueueNotFilled);
    }

    #[test]
    fn requests_that_a_step_leaves_unfinished_are_told_however_long_they_take() {
        let stuck = Outstanding { unfinished: 197.0, ..asked(256.0) };
        // A stall as long as the span, which the edges alone would excuse.
        let [(kind, text)] = told(59_000.0, stuck, 1_000_000_000_000).try_into().unwrap();
        assert_eq!(kind, WarningKind::Unfinished);
        assert!(
            text.starts_with("IOPS times mean latency gives 59.0 outstanding requests instead"),
            "{text}"
        );
        assert!(text.contains("by the end, 197.0 on average over the measurement, are"), "{text}");
        let few = Outstanding { unfinished: 12.0, ..asked(256.0) };
        assert_eq!(told(244_000.0, few, 1_000_000_000_000), [], "less than 5 %");
        let above = told(280_000.0, asked(256.0), 1_000_000_000_000);
        assert_eq!(above[0].0, WarningKind::LittlesLaw);
    }

    /// The preconditioning of 4K writes for six hours.
    fn precondition() -> PlannedStep {
        let protocol = catalogue::find_protocol("enterprise").unwrap();
        let plan = Plan::new(&protocol, &catalogue::workloads(), 1).unwrap();
        plan.steps.into_iter().find(|step| step.id == "4k/precondition").unwrap()
    }

    /// Warnings of a preconditioning with this verdict that wrote `written` bytes; the drive has
    /// 100 GB and 125 GB of flash.
    fn judged(written: u64, steady: &Steady) -> Vec<Warning> {
        let step = precondition();
        let required = WriteRequirement {
            before_bytes: 0.0,
            addressed_bytes: 100e9,
            user_bytes: 100e9,
            raw_bytes: Some(125e9),
            time_lapse: 1.0,
        };
        let summary = Summary {
            span_s: 1.0,
            throughput_write_mb_s: written as f64 / 1e6,
            ..Summary::default()
        };
        of_load(&step, asked(256.0), &summary, Some((steady, &required)))
    }

    fn steady(achieved: bool, evidence: Option<SteadyEvidence>) -> Steady {
        let of = |name: &str, rounds: [f64; 5]| results::SteadyVariable::of(name, &rounds);
        let variables =
            vec![of("iops", [100.0, 130.0, 100.0, 130.0, 100.0]), of("latency", [1.0; 5])];
        Steady { achieved, evidence, rounds: 12, at_s: 21_600.0, round_s: 1800.0, variables }
    }

    #[test]
    fn a_preconditioning_that_did_not_settle_says_by_how_much_it_missed() {
        assert!(judged(500_000_000_000, &steady(true, Some(SteadyEvidence::Written))).is_empty());
        let warnings = judged(500_000_000_000, &steady(false, None));
        assert_eq!(warnings.len(), 1);
        assert_eq!(warnings[0].kind, WarningKind::NotSteady);
        let text = &warnings[0].text;
        assert!(text.starts_with("steady state not achieved in 12 rounds of 30.0 min"), "{text}");
        let told = "in the last five IOPS had a range of 26.8 % and a slope of ";
        assert!(text.contains(told) && !text.contains("latency"), "{text}");
        assert_eq!(warnings[0].step, "4k/precondition");
        let few = Steady { rounds: 1, ..steady(false, None) };
        let text = judged(500_000_000_000, &few).remove(0).text;
        let expected =
            "steady state not judged: 1 rounds of 30.0 min are fewer than the 5 it takes";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_burst_says_how_much_was_written_and_how_long_it_would_take() {
        let warnings =
            judged(10_000_000_000, &steady(false, Some(SteadyEvidence::TooLittleWritten)));
        assert_eq!(warnings.len(), 1);
        assert_eq!(warnings[0].kind, WarningKind::NotPreconditioned);
        let Warning { text, remedy, .. } = &warnings[0];
        assert!(text.contains("10.0 % of what it addresses (10 GB of 100 GB)"), "{text}");
        // The flash of 125 GB at 10 GB in six hours.
        let expected = "precondition for at least 75.0 h: at this rate the load has by then \
                        written what it addresses, and the drive its raw capacity since the purge";
        assert_eq!(remedy, expected);
        // All that it addresses, but not all flash.
        let steady = steady(false, Some(SteadyEvidence::TooLittleWritten));
        let text = judged(110_000_000_000, &steady).remove(0).text;
        assert!(text.contains("110 GB had been written since the purge, less than"), "{text}");
    }

    #[test]
    fn replies_that_were_late_are_told_from_a_hundredth_or_a_slowdown_of_a_twentieth_on() {
        let told = |late, late_by_ns| {
            let counts = crate::LatenessCounts {
                replies: 1000,
                late,
                modelled_ns: 1_000_000_000,
                late_by_ns,
                late_by_ns_max: late_by_ns,
            };
            super::late(&precondition(), &counts.figures())
        };
        assert_eq!(told(10, 1_000_000), None);
        assert_eq!(told(1, 50_000_000), None, "one, by a twentieth of all the time");
        assert_eq!(told(1, 50_000_001).unwrap().kind, WarningKind::Lateness);
        let text = told(11, 2_200_000).unwrap().text;
        let begins = "11 of 1000 replies (1.1 %) left the server later than in the model, by 200 \
                      us on average and 2.20 ms at most, 0.2 % of the model's time in all: ";
        assert!(text.starts_with(begins), "{text}");
    }

    #[test]
    fn reads_of_unwritten_pages_are_told_from_a_hundredth_on() {
        let told = |pages: u64| {
            let pages_read = Some(results::PagesRead { count: 1000, unwritten: pages });
            let summary = Summary { pages_read, ..Summary::default() };
            unwritten(&precondition(), Some(&summary), None)
        };
        assert_eq!(told(9), None);
        let warning = told(10).unwrap();
        assert_eq!(warning.kind, WarningKind::UnwrittenReads);
        assert!(warning.text.starts_with("1.0 % of the pages read had"), "{}", warning.text);
        assert!(!warning.remedy.is_empty());
    }

    #[test]
    fn reads_of_a_preconditioning_are_judged_by_its_last_window() {
        let of = |pages: u64| {
            let pages_read = Some(results::PagesRead { count: 1000, unwritten: pages });
            Summary { pages_read, ..Summary::default() }
        };
        let (all, last) = (of(200), of(9));
        assert_eq!(unwritten(&precondition(), Some(&all), Some(&last)), None);
        let warning = unwritten(&precondition(), Some(&all), Some(&all)).unwrap();
        assert!(warning.text.starts_with("20.0 % of the pages read in the last five rounds had"));
    }

    #[test]
    fn a_load_at_a_rate_is_not_held_to_its_queue() {
        let mut step = precondition();
        step.pace = Some(crate::plan::Pace::Fixed(crate::Rate {
            iops: 10.0,
            gaps: workload::Gaps::Exponential,
        }));
        let latency =
            LatencySummary { count: 1000, latency_ns_avg: 1e6, ..LatencySummary::default() };
        let summary = Summary { span_s: 100.0, iops: 10.0, latency, ..Summary::default() };
        assert!(of_load(&step, asked(256.0), &summary, None).is_empty());
        step.pace = None;
        let warnings = of_load(&step, asked(256.0), &summary, None);
        assert_eq!(warnings[0].kind, WarningKind::QueueNotFilled);
    }

    #[test]
    fn the_remedy_for_a_short_queue_depends_on_the_threads() {
        let latency =
            LatencySummary { count: 1000, latency_ns_avg: 1e6, ..LatencySummary::default() };
        let summary = Summary { span_s: 100.0, iops: 100.0, latency, ..Summary::default() };
        let mut step = precondition();
        let remedy =
            |step: &PlannedStep| of_load(step, asked(256.0), &summary, None).remove(0).remedy;
        assert!(remedy(&step).starts_with("reduce --threads"));
        step.threads = 1;
        assert!(remedy(&step).starts_with("stop other processes"));
    }

    #[test]
    fn figures_that_break_littles_law_are_told() {
        assert_eq!(said(256_000.0), []);
        let said = said(280_000.0);
        assert_eq!(said[0].0, WarningKind::LittlesLaw);
        let told = "IOPS times mean latency gives 280.0 outstanding requests, but there were 256";
        assert_eq!(said[0].1, told);
    }
}
