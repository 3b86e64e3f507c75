//! The part of a trace that a load replayed, and whether the drive kept up with its times.
//!
//! The times of a trace are those of the drive's own clock: in time lapse k a load of protocol time
//! t replays t/k of it.

use blockio::Nanos;
use lab::results::Step;
use lab::workload::trace::Trace;

/// Shortfall of the requests that were due, as a share of them, from which the drive did not keep
/// up.
const MISSED_MAX: f64 = 0.02;

/// Part of a trace that a load replayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Coverage {
    /// Requests of the trace.
    requests: u64,
    /// Length of the trace at the speed of the replay; absent in a closed loop.
    timed: Option<Nanos>,
    /// Time of the load on the drive's own clock.
    simulated: Nanos,
    time_lapse: u32,
    /// Requests that completed on each device.
    completed: u64,
    /// Requests that were due meanwhile; absent in a closed loop.
    due: Option<u64>,
}

impl Coverage {
    /// Coverage of `trace` by the load of `step`, in time lapse and on so many devices.
    pub(super) fn new(
        (trace, speed): (&Trace, Option<f64>),
        step: &Step,
        (time_lapse, devices): (u32, u32),
    ) -> Self {
        let simulated = Nanos::from_secs_f64(step.duration_s / f64::from(time_lapse.max(1)));
        let count = step.summary.as_ref().map_or(0, |summary| summary.latency.count);
        Self {
            requests: trace.requests().len() as u64,
            timed: speed.map(|speed| Nanos::from_secs_f64(trace.span().as_secs_f64() / speed)),
            simulated,
            time_lapse,
            completed: count / u64::from(devices.max(1)),
            due: speed.map(|speed| due(trace, simulated.as_secs_f64() * speed)),
        }
    }

    /// True if clearly fewer requests completed than were due.
    pub(super) fn falls_behind(&self) -> bool {
        let behind = |due: u64| (self.completed as f64) < due as f64 * (1.0 - MISSED_MAX) - 1.0;
        self.due.is_some_and(behind)
    }

    /// Line on the part that was replayed, and on the requests due in it.
    pub(super) fn line(&self, asked_iops: Option<f64>) -> String {
        let Self { requests, simulated, completed, .. } = *self;
        let Some((span, due)) = self.timed.zip(self.due) else {
            return format!("replayed {completed} requests of the {requests} of the trace");
        };
        let part = simulated.min(span);
        let asked = asked_iops.map_or_else(String::new, |iops| {
            let reached = completed as f64 / simulated.as_secs_f64().max(f64::MIN_POSITIVE);
            format!(
                "; requested {iops:.0} IOPS on average over the trace, reached {reached:.0} in \
                 this part"
            )
        });
        format!(
            "replayed {part} of {span} of the trace: {due} requests were due, {completed} \
             completed{asked}"
        )
    }

    /// The warning about a load that did not get through the trace once; absent where it did.
    pub(super) fn warning(&self) -> Option<String> {
        let smaller = if self.time_lapse > 1 { " or a smaller --time-lapse" } else { "" };
        if let Some(span) = self.timed {
            let needed = span * u64::from(self.time_lapse);
            return (self.simulated < span).then(|| {
                format!(
                    "less than one replay of the trace: its first {} of {span} only; use \
                     --runtime {:.0}s{smaller}",
                    self.simulated,
                    needed.as_secs_f64().ceil()
                )
            });
        }
        (self.completed < self.requests).then(|| {
            format!(
                "less than one replay of the trace: {} of {} requests; use a longer \
                 --runtime{smaller}",
                self.completed, self.requests
            )
        })
    }
}

/// Requests of `trace` that are due in its first `seconds`, if it begins again whenever it ends.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and positive")]
fn due(trace: &Trace, seconds: f64) -> u64 {
    let requests = trace.requests();
    let count = requests.len() as u64;
    // Between the last request and the first of the next replay lies the mean gap.
    let lap_s = trace.span().as_secs_f64() * (1.0 + 1.0 / (count.saturating_sub(1).max(1) as f64));
    if lap_s <= 0.0 {
        return count;
    }
    let laps = (seconds / lap_s).floor();
    let rest = Nanos::from_secs_f64(seconds - laps * lap_s);
    laps as u64 * count + requests.partition_point(|it| it.at <= rest) as u64
}

#[cfg(test)]
mod tests {
    use lab::workload::trace;

    use super::*;

    /// Eleven reads, one each second.
    fn trace() -> Trace {
        let reads: String =
            (0..11).fold(String::new(), |text, at| text + &format!("{at}000000 f read 0 4096\n"));
        let text = format!("fio version 3 iolog\n0 f add\n0 f open\n{reads}11000000 f close\n");
        trace::read(text.as_bytes(), "ten.iolog").expect("it is a trace")
    }

    #[test]
    fn requests_are_due_as_the_trace_has_them_and_again_when_it_ends() {
        let trace = trace();
        assert_eq!([0.0, 4.5, 10.0].map(|seconds| due(&trace, seconds)), [1, 5, 11]);
        assert_eq!(due(&trace, 12.5), 13, "eleven, and two of the next replay");
    }

    #[test]
    fn a_part_of_a_trace_is_told_with_what_was_due_in_it() {
        let part = Coverage {
            requests: 180_200,
            timed: Some(Nanos::from_secs_f64(20.0)),
            simulated: Nanos::from_secs_f64(0.625),
            time_lapse: 32,
            completed: 63,
            due: Some(5_632),
        };
        assert!(part.falls_behind());
        assert_eq!(
            part.line(Some(9010.0)),
            "replayed 625 ms of 20.0 s of the trace: 5632 requests were due, 63 completed; \
             requested 9010 IOPS on average over the trace, reached 101 in this part"
        );
        let told = part.warning().expect("it is a part");
        assert!(told.contains("its first 625 ms of 20.0 s only; use --runtime 640s"), "{told}");
        let whole = Coverage { simulated: Nanos::from_secs_f64(20.0), completed: 5600, ..part };
        assert!(whole.warning().is_none() && !whole.falls_behind());
    }

    #[test]
    fn a_closed_loop_tells_the_requests_that_it_did_not_reach() {
        let closed = Coverage {
            requests: 20_000,
            timed: None,
            simulated: Nanos::from_secs_f64(1.0),
            time_lapse: 1,
            completed: 8_000,
            due: None,
        };
        assert!(!closed.falls_behind());
        let told = closed.warning().expect("it is a part");
        assert!(told.ends_with("8000 of 20000 requests; use a longer --runtime"), "{told}");
        assert!(Coverage { completed: 20_000, ..closed }.warning().is_none());
    }
}
