//! Whether a drive has settled: the steady-state rule of the SNIA SSS PTS (2.0.2, 2.1.24).
//!
//! A tracking variable is one number a round; the window is the last five rounds. It is steady when
//! both hold:
//!
//! - range: `max - min <= 0.20 * average` (the full width, not an excursion to either side);
//! - slope: the least-squares line over the five points rises or falls by at most 10 % of the
//!   average from the first round to the last, that is `|slope| * 4 <= 0.10 * average`.
//!
//! Tracked are IOPS and average latency; both must be steady in the same window. A round is a slice
//! of time (`round_s`), rounds follow each other from the start of the step, and a last round that
//! is not whole is not judged.

use crate::{Interval, Sample, Steady, SteadyVariable, Summary};

/// Rounds in a window.
pub const WINDOW_ROUNDS: usize = 5;
/// Largest range that passes, as a share of the average.
pub const RANGE_MAX: f64 = 0.20;
/// Largest rise or fall of the fitted line across the window that passes, as a share of the
/// average.
pub const SLOPE_MAX: f64 = 0.10;

impl Steady {
    /// Judges a step by its samples: the first window that met the rule, else the last one.
    ///
    /// A step of fewer than five whole rounds has not settled; its window is what there is.
    pub fn judge(samples: &[Sample], round_s: f64) -> Self {
        let rounds = rounds(samples, round_s);
        let ends = WINDOW_ROUNDS..=rounds.len();
        let met = ends.clone().find(|end| holds(&variables(&rounds[end - WINDOW_ROUNDS..*end])));
        let end = met.unwrap_or(rounds.len());
        let window = &rounds[end.saturating_sub(WINDOW_ROUNDS)..end];
        Self {
            achieved: met.is_some(),
            rounds: u32::try_from(end).unwrap_or(u32::MAX),
            at_s: end as f64 * round_s,
            round_s,
            variables: variables(window),
        }
    }
}

impl Summary {
    /// What the last window of a step measured: the settled figures, steady or not.
    ///
    /// Absent where there is not one whole round. A step of fewer than five gives what there is.
    pub fn of_last_window(intervals: &[Interval], round_s: f64) -> Option<Self> {
        let rounds = whole_rounds(intervals.last()?.at_s, round_s);
        let first = rounds.saturating_sub(WINDOW_ROUNDS);
        let window: Vec<Interval> = intervals
            .iter()
            .filter(|interval| (first..rounds).contains(&round_of(interval.at_s, round_s)))
            .cloned()
            .collect();
        (!window.is_empty()).then(|| Self::of(&window))
    }
}

impl SteadyVariable {
    /// Judges `rounds` of the variable called `name`.
    pub fn of(name: &str, rounds: &[f64]) -> Self {
        let count = rounds.len() as f64;
        let average = if rounds.is_empty() { 0.0 } else { rounds.iter().sum::<f64>() / count };
        let max = rounds.iter().copied().fold(f64::MIN, f64::max);
        let min = rounds.iter().copied().fold(f64::MAX, f64::min);
        let share = |amount: f64| if average > 0.0 { amount / average } else { 0.0 };
        Self {
            name: name.to_owned(),
            rounds: rounds.to_vec(),
            average,
            range: share(max - min),
            slope: share(slope(rounds).abs() * (count - 1.0)),
        }
    }

    /// Whether it meets both conditions over a whole window.
    pub fn is_steady(&self) -> bool {
        self.rounds.len() == WINDOW_ROUNDS
            && self.average > 0.0
            && self.range <= RANGE_MAX + ROUNDING
            && self.slope <= SLOPE_MAX + ROUNDING
    }
}

/// A value exactly at a limit passes, however its last bit was rounded.
const ROUNDING: f64 = 1e-12;

/// One round: requests each second, and their average latency in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Round {
    iops: f64,
    latency_ns_avg: f64,
}

fn rounds(samples: &[Sample], round_s: f64) -> Vec<Round> {
    let count = samples.last().map_or(0, |sample| whole_rounds(sample.at_s, round_s));
    // Span, requests and the sum of their latencies, by round.
    let mut sums = vec![(0.0, 0.0, 0.0); count];
    for sample in samples {
        if let Some((span_s, requests, latency_ns)) = sums.get_mut(round_of(sample.at_s, round_s)) {
            let latency = &sample.summary.latency;
            *span_s += sample.summary.span_s;
            *requests += latency.count as f64;
            *latency_ns += latency.latency_ns_avg * latency.count as f64;
        }
    }
    let ratio = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
    sums.into_iter()
        .map(|(span_s, requests, latency_ns)| Round {
            iops: ratio(requests, span_s),
            latency_ns_avg: ratio(latency_ns, requests),
        })
        .collect()
}

fn variables(window: &[Round]) -> Vec<SteadyVariable> {
    if window.is_empty() {
        return Vec::new();
    }
    let of = |value: fn(&Round) -> f64| window.iter().map(value).collect::<Vec<_>>();
    vec![
        SteadyVariable::of("iops", &of(|round| round.iops)),
        SteadyVariable::of("latency_ns_avg", &of(|round| round.latency_ns_avg)),
    ]
}

fn holds(variables: &[SteadyVariable]) -> bool {
    variables.iter().all(SteadyVariable::is_steady)
}

/// The least-squares line through `values` at 0, 1, 2, …: its value at 0, and its slope.
pub fn line_through(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let slope = slope(values);
    let average = values.iter().sum::<f64>() / count.max(1.0);
    (average - slope * (count - 1.0) / 2.0, slope)
}

/// Slope of the least-squares line through `values` at 0, 1, 2, …
fn slope(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let middle = (count - 1.0) / 2.0;
    let average = values.iter().sum::<f64>() / count;
    let (mut covariance, mut variance) = (0.0, 0.0);
    for (index, value) in values.iter().enumerate() {
        let distance = index as f64 - middle;
        covariance += distance * (value - average);
        variance += distance * distance;
    }
    if variance > 0.0 { covariance / variance } else { 0.0 }
}

/// Times are sums of interval lengths: this much of a round is rounding.
const ROUND_ROUNDING: f64 = 1e-6;

/// Whole rounds until `at_s`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
fn whole_rounds(at_s: f64, round_s: f64) -> usize {
    assert!(round_s > 0.0, "a round lasts {round_s} s");
    (at_s / round_s + ROUND_ROUNDING).floor() as usize
}

/// The round, from zero, of the interval that ends at `at_s`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
fn round_of(at_s: f64, round_s: f64) -> usize {
    ((at_s / round_s - ROUND_ROUNDING).ceil() as usize).saturating_sub(1)
}

#[cfg(test)]
mod tests;
