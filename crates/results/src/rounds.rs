//! Rounds of a suite: measurements that were repeated until what is tracked held still.
//!
//! The rule is that of [`crate::steady`], over rounds instead of slices of time: a tracked number
//! is that of its step in a round. Rounds that are not whole are not judged. What the rounds of the
//! window measured is averaged cell by cell.

use crate::steady::WINDOW_ROUNDS;
use crate::{Cell, Latencies, Steady, SteadyVariable, Step, Summary, TrackedMetric};

impl Steady {
    /// Judges the rounds among `steps`, which are those of one suite; absent where nothing is
    /// tracked in rounds.
    pub fn of_rounds<'a>(steps: impl Iterator<Item = &'a Step>) -> Option<Self> {
        let steps: Vec<&Step> = steps.collect();
        let tracked: Vec<&Step> =
            steps.iter().copied().filter(|step| step.tracked.is_some()).collect();
        let first = tracked.iter().filter(|step| step.round == Some(1));
        let series: Vec<Series> = first.map(|step| series(&step.workload, &tracked)).collect();
        let whole = series.iter().map(|series| series.values.len()).min()?;
        let window = |end: usize| -> Vec<SteadyVariable> {
            let from = end.saturating_sub(WINDOW_ROUNDS);
            series
                .iter()
                .map(|series| SteadyVariable::of(&series.name, &series.values[from..end]))
                .collect()
        };
        let met =
            (WINDOW_ROUNDS..=whole).find(|end| window(*end).iter().all(SteadyVariable::is_steady));
        let end = met.unwrap_or(whole);
        let round_s: f64 =
            steps.iter().filter(|step| step.round == Some(1)).map(|step| step.duration_s).sum();
        Some(Self {
            achieved: met.is_some(),
            evidence: None,
            rounds: u32::try_from(end).unwrap_or(u32::MAX),
            at_s: end as f64 * round_s,
            round_s,
            variables: window(end),
        })
    }
}

/// What the rounds of a window measured in one cell of a matrix: averages of the rounds, and
/// latencies of all their requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowCell {
    /// Size and mix.
    pub cell: Cell,
    /// Requests completed in each second.
    pub iops: f64,
    /// Decimal MB/s read and written.
    pub throughput_mb_s: f64,
    /// Arithmetic mean of the latency, in nanoseconds.
    pub latency_ns_avg: f64,
    /// Latency that 99.999 % of the requests do not exceed, in nanoseconds.
    pub latency_ns_p99999: u64,
    /// Largest latency, in nanoseconds.
    pub latency_ns_max: u64,
}

/// What the rounds of the window that `steady` judged measured, in the order of the first round;
/// `steps` are those of its suite.
pub fn window_cells(steps: &[&Step], steady: &Steady) -> Vec<WindowCell> {
    let window = steady.variables.first().map_or(1, |variable| variable.rounds.len());
    let first = (steady.rounds + 1).saturating_sub(u32::try_from(window).unwrap_or(1));
    let in_first = steps.iter().filter(|step| step.round == Some(first));
    let of = |cell: Cell| {
        let rounds = first..=steady.rounds;
        let same = steps.iter().copied().filter(|step| step.cell == Some(cell));
        let within: Vec<&Step> =
            same.filter(|step| step.round.is_some_and(|round| rounds.contains(&round))).collect();
        average(cell, &within)
    };
    in_first.filter_map(|step| of(step.cell?)).collect()
}

fn average(cell: Cell, steps: &[&Step]) -> Option<WindowCell> {
    let summaries: Vec<&Summary> = steps.iter().filter_map(|it| it.summary.as_ref()).collect();
    let mean = |of: fn(&Summary) -> f64| {
        summaries.iter().map(|it| of(it)).sum::<f64>() / summaries.len() as f64
    };
    let mut latencies = Latencies::default();
    for step in steps {
        latencies.merge(&Latencies::from_bins(&step.read_bins));
        latencies.merge(&Latencies::from_bins(&step.write_bins));
    }
    let latency_ns_max = summaries.iter().map(|it| it.latency.latency_ns_max).max()?;
    Some(WindowCell {
        cell,
        iops: mean(|it| it.iops),
        throughput_mb_s: mean(Summary::throughput_mb_s),
        latency_ns_avg: mean(|it| it.latency.latency_ns_avg),
        latency_ns_p99999: latencies.five_nines_ns().min(latency_ns_max),
        latency_ns_max,
    })
}

impl Step {
    /// The number that decides whether the rounds hold still; absent where none does, or nothing
    /// was measured.
    pub fn tracked_value(&self) -> Option<f64> {
        let summary = self.summary.as_ref()?;
        Some(match self.tracked? {
            TrackedMetric::Iops => summary.iops,
            TrackedMetric::LatencyNsAvg => summary.latency.latency_ns_avg,
        })
    }
}

/// The values of one tracked number, round by round.
struct Series {
    name: String,
    values: Vec<f64>,
}

/// The number of `workload` in each round from the first on, until one lacks it.
fn series(workload: &str, steps: &[&Step]) -> Series {
    let of = |round: u32| {
        steps.iter().find(|step| step.round == Some(round) && step.workload == workload)
    };
    let unit = match of(1).and_then(|step| step.tracked) {
        Some(TrackedMetric::LatencyNsAvg) => "latency_ns_avg",
        Some(TrackedMetric::Iops) | None => "iops",
    };
    let values = (1..).map_while(|round| of(round)?.tracked_value());
    Series { name: format!("{workload} {unit}"), values: values.collect() }
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
        let steps = rounds(&[300_000, 200_000, 92_000, 90_000, 88_000, 87_000, 86_000, 85_000]);
        let steady = Steady::of_rounds(steps.iter()).unwrap();
        assert_eq!((steady.achieved, steady.rounds), (true, 7));
        assert_eq!(steady.variables[0].name, "writes iops");
        let window: Vec<f64> = steady.variables[0].rounds.iter().map(|it| it.round()).collect();
        assert_eq!(window, [92_000.0, 90_000.0, 88_000.0, 87_000.0, 86_000.0]);
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
    fn a_cell_is_the_average_of_the_window_and_of_no_other_round() {
        let mut steps = rounds(&[300_000, 200_000, 92_000, 90_000, 88_000, 87_000, 86_000, 85_000]);
        for step in &mut steps {
            let read_percent = if step.workload == "reads" { 100.0 } else { 0.0 };
            step.cell = Some(Cell { bytes: 4096, read_percent });
        }
        let steps: Vec<&Step> = steps.iter().collect();
        let steady = Steady::of_rounds(steps.iter().copied()).unwrap();
        let cells = window_cells(&steps, &steady);
        let iops: Vec<f64> = cells.iter().map(|it| it.iops.round()).collect();
        let (reads, writes) =
            (5000.0, (92_000.0 + 90_000.0 + 88_000.0 + 87_000.0 + 86_000.0) / 5.0);
        assert_eq!(iops, [reads, writes], "of rounds 3 to 7");
        let largest = steps.iter().filter(|it| it.round == Some(3)).nth(1).unwrap();
        let largest = largest.summary.as_ref().unwrap().latency.latency_ns_max;
        assert!(cells[1].latency_ns_max >= largest);
        assert!(cells[1].latency_ns_p99999 <= cells[1].latency_ns_max);
    }

    #[test]
    fn a_suite_without_rounds_has_no_verdict() {
        assert_eq!(Steady::of_rounds(example::run().steps.iter()), None);
    }
}
