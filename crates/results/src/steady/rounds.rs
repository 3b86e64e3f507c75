//! Rounds of a suite: measurements that were repeated until what is tracked held still.
//!
//! The rule is that of [`crate::steady`], over rounds instead of slices of time: a tracked number
//! is that of its step in a round. Rounds that are not whole are not judged. A window counts only
//! where enough was written by its end, as [`crate::steady`] has it:
//!
//! - all cells of the rounds together wrote at least the space that they address, and the drive was
//!   written at least its raw capacity since the purge (twice its user capacity where the raw one
//!   is unknown). Rounds that are sequential throughout go on with what the fill before them did:
//!   it counts as theirs (the workload-independent preconditioning of the specification
//!   [snia-pts-2020]);
//! - or, where the raw capacity is unknown, a fill wrote twice the user capacity before the rounds:
//!   the specification asks for no more before it judges them, and one request at a time would
//!   write a large drive over in weeks. How much the rounds wrote is told;
//! - or the drive relocated in each round of the window, at a write amplification that is steady;
//! - or the media are written in place, or the rounds only read.
//!
//! What the rounds of the window measured is averaged cell by cell.

use crate::steady::{USER_CAPACITIES_MIN, WINDOW_ROUNDS, relocates_steadily};
use crate::{
    Cell, Latencies, NandWrites, Sample, Steady, SteadyEvidence, SteadyVariable, Step, Summary,
    Target, TrackedMetric, WrittenAmount,
};

impl Steady {
    /// Judges the rounds `steps` of one suite on `target`; absent where nothing is tracked in them.
    pub fn of_rounds<'a>(steps: impl Iterator<Item = &'a Step>, target: &Target) -> Option<Self> {
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
        let still = (WINDOW_ROUNDS..=whole)
            .filter(|end| window(*end).iter().all(SteadyVariable::is_steady))
            .map(|end| (end, evidence(&steps, end, target)));
        let too_little = Some(SteadyEvidence::TooLittleWritten);
        let (mut met, mut last) = (None, None);
        for (end, evidence) in still {
            last = Some((end, evidence));
            if evidence != too_little {
                met = last;
                break;
            }
        }
        let (end, evidence) = met.or(last).unwrap_or((whole, None));
        let round_s: f64 =
            steps.iter().filter(|step| step.round == Some(1)).map(|step| step.duration_s).sum();
        Some(Self {
            achieved: met.is_some(),
            evidence,
            rounds: u32::try_from(end).unwrap_or(u32::MAX),
            at_s: end as f64 * round_s,
            round_s,
            variables: window(end),
        })
    }
}

/// Judges whether the steady window that ends with the round `end` of `steps` is that of a settled
/// drive; absent where the steps do not tell what they wrote.
fn evidence(steps: &[&Step], end: usize, target: &Target) -> Option<SteadyEvidence> {
    let end = u32::try_from(end).unwrap_or(u32::MAX);
    let first = (end + 1).saturating_sub(u32::try_from(WINDOW_ROUNDS).unwrap_or(u32::MAX));
    let by_then: Vec<&Step> = steps
        .iter()
        .copied()
        .filter(|step| step.round.is_some_and(|round| round <= end))
        .filter(|step| step.summary.as_ref().is_some_and(|it| it.written_bytes() > 0.0))
        .collect();
    let written: Option<Vec<WrittenAmount>> = by_then.iter().map(|step| step.written).collect();
    let written = written?;
    let window = || by_then.iter().copied().filter(|step| step.round >= Some(first));
    if by_then.is_empty() {
        Some(SteadyEvidence::OnlyReads)
    } else if window().all(is_in_place) {
        Some(SteadyEvidence::InPlace)
    } else if is_written_over(&by_then, &written, target) {
        Some(SteadyEvidence::Written)
    } else if relocates_steadily((first..=end).map(|round| nand_of(window(), round)))
        && programmed_share(&by_then) >= 1.0
    {
        Some(SteadyEvidence::Relocation)
    } else {
        Some(SteadyEvidence::TooLittleWritten)
    }
}

/// The NAND is known, and there is none to relocate in.
fn is_in_place(step: &Step) -> bool {
    let has_state = |it: &Sample| it.superblocks_free_share.is_some() || it.summary.tier.is_some();
    let has_superblocks = step.samples.iter().any(has_state);
    let knows_nand = step.summary.as_ref().is_some_and(|summary| summary.nand.is_some());
    knows_nand && !step.samples.is_empty() && !has_superblocks
}

/// True if the drive of `steps`, which wrote `written`, was used up since the purge, and they have
/// written all that they address, unless the fill before them prepared the drive.
fn is_written_over(steps: &[&Step], written: &[WrittenAmount], target: &Target) -> bool {
    let since_purge_bytes = written.iter().map(|it| it.since_purge_bytes).max().unwrap_or(0);
    let shares = written.iter().map(|it| it.since_purge_share);
    let (least, most) = (shares.clone().fold(f64::MAX, f64::min), shares.fold(0.0, f64::max));
    let is_sequential = steps.iter().all(|step| step.workload.contains("-seq-"));
    let own_share: f64 = written.iter().map(|it| it.addressed_share).sum();
    let (is_used_up, is_filled_twice) = match target.raw_capacity_bytes {
        Some(raw_bytes) => (since_purge_bytes >= raw_bytes, false),
        None => (most >= USER_CAPACITIES_MIN, least >= USER_CAPACITIES_MIN),
    };
    is_used_up && (is_sequential || is_filled_twice || own_share >= 1.0)
}

/// NAND writes of `steps`, relocation included, as a share of what they address.
fn programmed_share(steps: &[&Step]) -> f64 {
    let of = |step: &Step| {
        let nand = step.summary.as_ref()?.nand?;
        Some(step.written?.addressed_share * nand.write_amplification()?)
    };
    steps.iter().filter_map(|step| of(step)).sum()
}

/// Share of what they address that the first `rounds` of the random writes in `steps` wrote; absent
/// where they are sequential throughout, or do not tell it.
pub fn written_share(steps: &[&Step], rounds: u32) -> Option<f64> {
    let by_then = steps.iter().filter(|step| step.round.is_some_and(|round| round <= rounds));
    let writes =
        by_then.filter(|step| step.summary.as_ref().is_some_and(|it| it.written_bytes() > 0.0));
    if writes.clone().all(|step| step.workload.contains("-seq-")) {
        return None;
    }
    writes.map(|step| Some(step.written?.addressed_share)).sum()
}

/// NAND writes in one `round` of `steps`; absent where they are not known.
fn nand_of<'a>(steps: impl Iterator<Item = &'a Step>, round: u32) -> Option<NandWrites> {
    let of_round = steps.filter(|step| step.round == Some(round));
    let all: Option<Vec<NandWrites>> = of_round.map(|step| step.summary.as_ref()?.nand).collect();
    all?.into_iter().reduce(|a, b| a + b)
}

/// Measurements in one cell of a matrix over the rounds of a window: averages of the rounds, and
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
    /// Latency that 99.999 % of the requests do not exceed, in nanoseconds; absent where fewer than
    /// ten requests lie beyond it.
    pub latency_ns_p99999: Option<u64>,
    /// Largest latency, in nanoseconds; absent where a round was sampled.
    pub latency_ns_max: Option<u64>,
}

/// Measurements over the window that `steady` judged, cell by cell, in the order of the first
/// round; `steps` are those of its suite.
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
        latencies.merge(&step.latencies(&step.read_bins));
        latencies.merge(&step.latencies(&step.write_bins));
    }
    let longest = summaries.iter().map(|it| it.latency.latency_ns_max).max()?;
    let is_seen = steps.iter().all(|step| step.sampling_note().is_none());
    Some(WindowCell {
        cell,
        iops: mean(|it| it.iops),
        throughput_mb_s: mean(Summary::throughput_mb_s),
        latency_ns_avg: mean(|it| it.latency.latency_ns_avg),
        latency_ns_p99999: latencies.five_nines_ns().map(|it| it.min(longest)),
        latency_ns_max: is_seen.then_some(longest),
    })
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

    fn judged(steps: &[Step]) -> Option<Steady> {
        Steady::of_rounds(steps.iter(), &example::run().target)
    }

    #[test]
    fn rounds_are_steady_at_the_first_window_that_meets_the_rule() {
        let steps = rounds(&[300_000, 200_000, 92_000, 90_000, 88_000, 87_000, 86_000, 85_000]);
        let steady = judged(&steps).unwrap();
        assert_eq!((steady.achieved, steady.rounds), (true, 7));
        assert_eq!(steady.variables[0].name, "writes iops");
        let window: Vec<f64> = steady.variables[0].rounds.iter().map(|it| it.round()).collect();
        assert_eq!(window, [92_000.0, 90_000.0, 88_000.0, 87_000.0, 86_000.0]);
        assert!((steady.round_s - 120.0).abs() < 1e-9, "two cells of a minute");
    }

    #[test]
    fn rounds_that_never_hold_still_give_their_last_window() {
        let steps = rounds(&[10_000, 20_000, 40_000, 80_000, 160_000, 320_000]);
        let steady = judged(&steps).unwrap();
        assert_eq!((steady.achieved, steady.rounds), (false, 6));
        assert_eq!(steady.variables[0].rounds.len(), 5);
    }

    #[test]
    fn a_round_that_is_not_whole_is_not_judged() {
        let mut steps = rounds(&[1000; 5]);
        steps.pop();
        let steady = judged(&steps).unwrap();
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
        let steady = Steady::of_rounds(steps.iter().copied(), &example::run().target).unwrap();
        let cells = window_cells(&steps, &steady);
        let iops: Vec<f64> = cells.iter().map(|it| it.iops.round()).collect();
        let (reads, writes) =
            (5000.0, (92_000.0 + 90_000.0 + 88_000.0 + 87_000.0 + 86_000.0) / 5.0);
        assert_eq!(iops, [reads, writes], "of rounds 3 to 7");
        let largest = steps.iter().filter(|it| it.round == Some(3)).nth(1).unwrap();
        let largest = largest.summary.as_ref().unwrap().latency.latency_ns_max;
        let longest = cells[1].latency_ns_max.unwrap();
        assert!(longest >= largest);
        assert!(cells[1].latency_ns_p99999.is_some_and(|it| it <= longest));
    }

    #[test]
    fn a_suite_without_rounds_has_no_verdict() {
        assert_eq!(judged(&example::run().steps), None);
    }

    /// Rounds that hold still from the first on, each of which wrote so many thousandths of the
    /// drive after `before` of them.
    fn flat(before: u32, each: u32, rounds_wanted: usize) -> Vec<Step> {
        let capacity_bytes = example::run().target.user_capacity_bytes;
        let mut steps = rounds(&vec![1000; rounds_wanted]);
        for step in steps.iter_mut().filter(|step| step.workload == "writes") {
            let since_purge = before + each * step.round.unwrap();
            step.written = Some(WrittenAmount {
                since_purge_bytes: capacity_bytes / 1000 * u64::from(since_purge),
                since_purge_share: f64::from(since_purge) / 1e3,
                addressed_share: f64::from(each) / 1e3,
            });
            let summary = step.summary.as_mut().unwrap();
            (summary.nand, summary.throughput_write_mb_s) = (None, 10.0);
        }
        for step in steps.iter_mut().filter(|step| step.workload == "reads") {
            let summary = step.summary.as_mut().unwrap();
            (summary.iops_write, summary.throughput_write_mb_s) = (0.0, 0.0);
        }
        steps
    }

    #[test]
    fn rounds_that_wrote_too_little_hold_still_and_are_not_steady() {
        let steady = judged(&flat(0, 10, 25)).unwrap();
        assert_eq!((steady.achieved, steady.rounds), (false, 25));
        assert_eq!(steady.evidence, Some(SteadyEvidence::TooLittleWritten));
        // Of random writes a fill in order is no preconditioning: a plateau follows it too.
        assert!(!judged(&flat(2000, 10, 25)).unwrap().achieved);
    }

    #[test]
    fn rounds_are_steady_once_they_have_written_the_drive_over() {
        let steady = judged(&flat(2000, 125, 25)).unwrap();
        assert_eq!((steady.achieved, steady.rounds), (true, 8));
        assert_eq!(steady.evidence, Some(SteadyEvidence::Written));
    }

    /// The verdict on `steps` of a drive of unknown raw capacity.
    fn judged_unknown(steps: &[Step]) -> Steady {
        let target = Target { raw_capacity_bytes: None, ..example::run().target };
        Steady::of_rounds(steps.iter(), &target).unwrap()
    }

    #[test]
    fn a_drive_of_unknown_raw_capacity_is_used_up_once_it_was_written_twice_over() {
        let steady = judged_unknown(&flat(0, 125, 25));
        assert_eq!((steady.achieved, steady.rounds), (true, 16), "16 rounds of an eighth");
        assert_eq!(steady.evidence, Some(SteadyEvidence::Written));
        assert!(!judged_unknown(&flat(0, 125, 12)).achieved, "1.5 times");
    }

    #[test]
    fn rounds_after_two_fills_are_judged_as_the_specification_does() {
        let steps = flat(2000, 10, 25);
        let steady = judged_unknown(&steps);
        assert_eq!((steady.achieved, steady.rounds), (true, 5));
        assert_eq!(steady.evidence, Some(SteadyEvidence::Written));
        let steps: Vec<&Step> = steps.iter().collect();
        let share = written_share(&steps, steady.rounds).unwrap();
        assert!((share - 0.05).abs() < 1e-9, "{share} of what they address");
        assert!(!judged_unknown(&flat(1000, 10, 25)).achieved, "one fill is not enough");
    }

    #[test]
    fn sequential_rounds_go_on_with_the_fill_before_them() {
        let mut steps = flat(2000, 10, 5);
        for step in &mut steps {
            step.workload = format!("128k-seq-{}", step.workload);
        }
        let steady = judged(&steps).unwrap();
        assert_eq!(steady.evidence, Some(SteadyEvidence::Written));
        for step in steps.iter_mut().filter_map(|step| step.written.as_mut()) {
            (step.since_purge_bytes, step.since_purge_share) = (1000, 0.01);
        }
        assert!(!judged(&steps).unwrap().achieved, "purged, and not filled");
    }

    #[test]
    fn rounds_in_which_the_drive_relocates_steadily_are_those_of_a_settled_drive() {
        let evidence = |relocation_bytes| {
            let mut steps = flat(2000, 10, 5);
            let nand = NandWrites {
                host_sent_bytes: 1000,
                host_bytes: 1000,
                relocation_bytes,
                ..NandWrites::default()
            };
            for step in steps.iter_mut().filter(|step| step.workload == "writes") {
                step.summary.as_mut().unwrap().nand = Some(nand);
                step.samples.iter_mut().for_each(|it| it.superblocks_free_share = Some(0.1));
            }
            judged(&steps).unwrap().evidence
        };
        assert_eq!(evidence(19_500), Some(SteadyEvidence::Relocation));
        let too_little = Some(SteadyEvidence::TooLittleWritten);
        assert_eq!(evidence(18_500), too_little, "0.98 of what they address");
    }
}
