//! Activity of a served drive over the last minutes, hour and day, in bounded memory.
//!
//! ```text
//!   status each second ──► ring of 2 minutes, a step each second ─┐
//!                     ├──► ring of 1 hour, each ten seconds       ├──► charts
//!                     └──► ring of 24 hours, each minute         ─┘
//! ```
//!
//! Every ring takes the difference of counters from step to step by itself: its percentiles are
//! those of all commands of a step, and not averages of shorter ones.
//!
//! **Invariant**: a ring never holds more steps than its span has, 1,920 in all; with them the
//! history takes less than 512 KiB, however long the server runs.

use std::collections::VecDeque;
use std::time::Duration;

use status::{
    Climate, Commands, History, HistorySpan, Status, Step, StepCommands, Traffic, Writes,
};

/// Tolerance by which a step may be taken early: looks come about a second apart.
const EARLY: Duration = Duration::from_millis(500);

/// The rings of a served drive.
#[derive(Debug)]
pub(super) struct Rings([Ring; 3]);

/// Steps of one length.
#[derive(Debug)]
struct Ring {
    span: HistorySpan,
    steps: VecDeque<Step>,
    /// The counters at the end of the last step; none before the first look.
    last: Option<Counters>,
}

/// Counters of a drive, from which steps take differences.
#[derive(Clone, Debug)]
struct Counters {
    /// Since the server began.
    age: Duration,
    traffic: Traffic,
    writes: Writes,
    climate: Option<Climate>,
}

impl Default for Rings {
    fn default() -> Self {
        let ring = |span: HistorySpan| Ring {
            span,
            steps: VecDeque::with_capacity(span.steps_max()),
            last: None,
        };
        Self(HistorySpan::ALL.map(ring))
    }
}

impl Rings {
    /// Records a status at a time in seconds since the beginning of 1970.
    pub(super) fn look(&mut self, status: &Status, at_unix_s: u64) {
        let Some(server) = &status.server else { return };
        let now = Counters {
            age: Duration::from_secs_f64(server.uptime_s.max(0.0)),
            traffic: server.traffic.clone(),
            writes: status.writes.unwrap_or_default(),
            climate: server.model.as_ref().and_then(|model| model.climate),
        };
        for ring in &mut self.0 {
            ring.look(&now, status, at_unix_s);
        }
    }

    /// Returns the steps kept for a span.
    pub(super) fn history(&self, span: HistorySpan) -> History {
        let ring = self.0.iter().find(|ring| ring.span == span);
        History {
            span,
            step_s: span.step_s(),
            steps_max: span.steps_max(),
            steps: ring.map(|ring| ring.steps.iter().copied().collect()).unwrap_or_default(),
        }
    }
}

impl Ring {
    fn look(&mut self, now: &Counters, status: &Status, at_unix_s: u64) {
        let Some(then) = &self.last else {
            self.last = Some(now.clone());
            return;
        };
        let passed = now.age.saturating_sub(then.age);
        if passed + EARLY < Duration::from_secs(self.span.step_s().into()) {
            return;
        }
        let step = Step {
            at_unix_s,
            erase_count_mean: status.wear.map(|wear| narrow(wear.erase_count_mean)),
            stored_bytes: status.space.as_ref().map(|space| space.stored_bytes),
            ..step(now, then, passed.as_secs_f64())
        };
        self.push(step);
        self.last = Some(now.clone());
    }

    fn push(&mut self, step: Step) {
        if self.steps.len() == self.span.steps_max() {
            self.steps.pop_front();
        }
        self.steps.push_back(step);
    }
}

/// Returns the rates between two readings of the counters, `seconds` apart.
fn step(now: &Counters, then: &Counters, seconds: f64) -> Step {
    let of = |now: &Commands, then: &Commands| commands(&now.since(then), seconds);
    let causes = |of: fn(&Writes) -> u64| {
        whole(of(&now.writes).saturating_sub(of(&then.writes)) as f64 / seconds)
    };
    let power = now.climate.zip(then.climate).map(|(now, then)| now.power_w_since(&then, seconds));
    Step {
        reads: of(&now.traffic.reads, &then.traffic.reads),
        writes: of(&now.traffic.writes, &then.traffic.writes),
        flushes: of(&now.traffic.flushes, &then.traffic.flushes),
        written_bytes_per_s: [
            causes(|it| it.host_bytes),
            causes(|it| it.relocation_bytes),
            causes(|it| it.wear_bytes),
            causes(|it| it.parity_bytes),
            causes(|it| it.metadata_bytes),
            causes(|it| it.rebuild_bytes),
        ],
        temperature_c: now.climate.map(|climate| narrow(climate.temperature_c)),
        power_w: power.map(narrow),
        ..Step::default()
    }
}

fn commands(counted: &Commands, seconds: f64) -> StepCommands {
    StepCommands {
        iops: narrow(counted.commands as f64 / seconds),
        bytes_per_s: whole(counted.bytes as f64 / seconds),
        latency_ns_p50: counted.latency_histogram.percentile_ns(0.5),
        latency_ns_p99: counted.latency_histogram.percentile_ns(0.99),
    }
}

/// A number for a chart, to a tenth.
#[expect(clippy::cast_possible_truncation, reason = "a chart shows three digits")]
fn narrow(value: f64) -> f32 {
    ((value * 10.0).round() / 10.0) as f32
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use status::{LATENCY_BUCKETS, LatencyHistogram, latency_bucket};

    use super::*;

    fn counters(second: u64, writes: &[(u64, u64)]) -> Counters {
        let mut traffic = Traffic::default();
        let mut counts = vec![0; LATENCY_BUCKETS];
        for (latency_ns, count) in writes {
            counts[latency_bucket(*latency_ns)] = *count;
            traffic.writes.commands += count;
            traffic.writes.bytes += count * 4096;
        }
        traffic.writes.latency_histogram = LatencyHistogram::new(counts);
        Counters {
            age: Duration::from_secs(second),
            traffic,
            writes: Writes::default(),
            climate: None,
        }
    }

    #[test]
    fn a_step_has_rates_and_the_percentiles_of_its_own_commands() {
        let now = counters(10, &[(500, 1000), (20_000, 90), (900_000, 10)]);
        let step = step(&now, &counters(0, &[(500, 1000)]), 10.0);
        assert!((step.writes.iops - 10.0).abs() < 0.01, "{step:?}");
        assert_eq!(step.writes.bytes_per_s, 40_960);
        let [p50, p99] = [step.writes.latency_ns_p50, step.writes.latency_ns_p99];
        assert!(p50.is_some_and(|it| it.abs_diff(20_000) <= 2_500), "{p50:?}");
        assert!(p99.is_some_and(|it| it.abs_diff(900_000) <= 112_500), "{p99:?}");
        assert_eq!(step.reads.latency_ns_p99, None);
    }

    #[test]
    fn memory_is_bounded_however_long_a_server_runs() {
        let Rings(mut rings) = Rings::default();
        let mut bytes = 0;
        for ring in &mut rings {
            for second in 0..10_000 {
                ring.push(Step { at_unix_s: second, ..Step::default() });
            }
            assert_eq!(ring.steps.len(), ring.span.steps_max());
            assert_eq!(ring.steps.back().map(|step| step.at_unix_s), Some(9_999));
            bytes += ring.steps.capacity() * size_of::<Step>();
        }
        assert!(bytes < 512 << 10, "{bytes} bytes");
    }
}
