//! Rounds of a suite: measurements that were repeated until what is tracked held still.
//!
//! The rule is that of [`crate::steady`], over rounds instead of slices of time: a tracked number
//! is that of its step in a round. Rounds that are not whole are not judged.

use crate::steady::WINDOW_ROUNDS;
use crate::{Steady, SteadyVariable, Step, TrackedMetric};

impl Steady {
    /// Judges the rounds among `steps`, which are those of one suite; absent where nothing is
    /// tracked in rounds.
    pub fn of_rounds<'a>(steps: impl Iterator<Item = &'a Step> + Clone) -> Option<Self> {
        let tracked = || steps.clone().filter(|step| step.tracked.is_some());
        let names: Vec<&str> =
            tracked().filter(|step| step.round == Some(1)).map(|it| it.workload.as_str()).collect();
        let series: Vec<Series> = names.iter().map(|name| series(name, tracked())).collect();
        let whole = series.iter().map(|series| series.values.len()).min()?;
        let window = |end: usize| -> Vec<SteadyVariable> {
            let from = end.saturating_sub(WINDOW_ROUNDS);
            series
                .iter()
                .map(|series| SteadyVariable::of(&series.name, &series.values[from..end]))
                .collect()
        };
        let met = (WINDOW_ROUNDS..=whole)
            .find(|end| window(*end).iter().all(SteadyVariable::is_steady));
        let end = met.unwrap_or(whole);
        let round_s = length_s(steps.clone().filter(|step| step.round == Some(1)));
        Some(Self {
            achieved: met.is_some(),
            rounds: u32::try_from(end).unwrap_or(u32::MAX),
            at_s: end as f64 * round_s,
            round_s,
            variables: window(end),
        })
    }
}

/// The values of one tracked number, round by round.
struct Series {
    name: String,
    values: Vec<f64>,
}

/// The number of `workload` in each round from the first on, until one lacks it.
fn series<'a>(workload: &str, steps: impl Iterator<Item = &'a Step> + Clone) -> Series {
    let of = |round: u32| {
        let mut steps = steps.clone();
        steps.find(|step| step.round == Some(round) && step.workload == workload)
    };
    let metric = of(1).and_then(|step| step.tracked).unwrap_or(TrackedMetric::Iops);
    let values = (1..).map_while(|round| {
        let summary = of(round)?.summary.as_ref()?;
        Some(match metric {
            TrackedMetric::Iops => summary.iops,
            TrackedMetric::LatencyNsAvg => summary.latency.latency_ns_avg,
        })
    });
    let unit = match metric {
        TrackedMetric::Iops => "iops",
        TrackedMetric::LatencyNsAvg => "latency_ns_avg",
    };
    Series { name: format!("{workload} {unit}"), values: values.collect() }
}

fn length_s<'a>(steps: impl Iterator<Item = &'a Step>) -> f64 {
    steps.map(|step| step.duration_s).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    /// Rounds of two cells; the writes are tracked and reach `rates`.
    fn rounds(rates: &[u64]) -> Vec<Step> {
        let of = |(rate, round): (&u64, u32)| {
            let step = |workload: &str, rate: u64, tracked| {
                let id = format!("iops/round/{round}/{workload}");
                let minutes = example::minutes(&[rate], 0);
                let step = example::step(&id, workload, (2, 16), &minutes);
                Step { round: Some(round), tracked, ..step }
            };
            [
                step("reads", 1000 * u64::from(round), None),
                step("writes", *rate, Some(TrackedMetric::Iops)),
            ]
        };
        rates.iter().zip(1_u32..).flat_map(of).collect()
    }

    #[test]
    fn rounds_are_steady_at_the_first_window_that_meets_the_rule() {
        let steps = rounds(&[300_000, 200_000, 100_000, 90_000, 88_000, 87_000, 86_000, 85_000]);
        let steady = Steady::of_rounds(steps.iter()).unwrap();
        assert_eq!((steady.achieved, steady.rounds), (true, 7));
        assert_eq!(steady.variables[0].name, "writes iops");
        let window: Vec<f64> = steady.variables[0].rounds.iter().map(|it| it.round()).collect();
        assert_eq!(window, [100_000.0, 90_000.0, 88_000.0, 87_000.0, 86_000.0]);
        assert!((steady.round_s - 120.0).abs() < 1e-9, "two cells of a minute");
    }

    #[test]
    fn rounds_that_never_hold_still_give_their_last_window() {
        let steps = rounds(&[10_000, 20_000, 40_000, 80_000, 160_000, 320_000]);
        let steady = Steady::of_rounds(steps.iter()).unwrap();
        assert_eq!((steady.achieved, steady.rounds), (false, 6));
        assert_eq!(steady.variables[0].rounds.len(), 5);
    }

    #[test]
    fn a_round_that_is_not_whole_is_not_judged() {
        let mut steps = rounds(&[1000; 5]);
        steps.pop();
        let steady = Steady::of_rounds(steps.iter()).unwrap();
        assert_eq!((steady.achieved, steady.rounds), (false, 4));
    }

    #[test]
    fn a_suite_without_rounds_has_no_verdict() {
        assert_eq!(Steady::of_rounds(example::run().steps.iter()), None);
    }
}
