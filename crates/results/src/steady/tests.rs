//! Hand-worked examples of the steady-state rule, among them the mistakes that others made.

use proptest::prelude::*;

use super::*;

fn is_steady(rounds: [f64; 5]) -> bool {
    SteadyVariable::of("iops", &rounds).is_steady()
}

/// Intervals of 10 s with 10 IOPS per unit of `rates`, all of the same latency.
fn intervals(rates: &[u64], latency_ns: u64) -> Vec<Interval> {
    let mut at_s = 0.0;
    rates
        .iter()
        .map(|rate| {
            at_s += 10.0;
            let mut interval = Interval { at_s, span_s: 10.0, ..Interval::default() };
            interval.write.record_many(latency_ns, rate * 100);
            interval
        })
        .collect()
}

fn samples_of(rates: &[u64], latency_ns: u64) -> Vec<Sample> {
    intervals(rates, latency_ns).iter().map(Sample::of).collect()
}

fn samples(rates: &[u64]) -> Vec<Sample> {
    samples_of(rates, 1000)
}

#[test]
fn range_and_slope_of_a_hand_worked_example() {
    // Average 100; max - min = 7; Σ(x - 2)(y - 100) = 2·4 + 1·2 + 0 + 1·1 + 2·3 = 17, so the slope
    // is 17 / Σ(x - 2)² = 1.7 a round.
    let variable = SteadyVariable::of("iops", &[96.0, 98.0, 102.0, 101.0, 103.0]);
    assert!((variable.average - 100.0).abs() < 1e-12);
    assert!((variable.range - 0.07).abs() < 1e-12, "{}", variable.range);
    assert!((variable.slope - 1.7 * 4.0 / 100.0).abs() < 1e-12, "{}", variable.slope);
    assert!(variable.is_steady());
}

#[test]
fn range_is_the_full_width_and_not_an_excursion() {
    // 15 % above and 15 % below: within ± 20 %, but 30 % wide.
    assert!(!is_steady([100.0, 115.0, 85.0, 100.0, 100.0]));
    assert!(is_steady([100.0, 110.0, 90.0, 100.0, 100.0]));
}

#[test]
fn exactly_twenty_percent_passes_and_a_little_more_does_not() {
    assert!(is_steady([100.0, 90.0, 100.0, 110.0, 100.0]));
    assert!(!is_steady([100.0, 90.0, 100.0, 110.1, 100.0]));
}

#[test]
fn the_slope_counts_across_the_window_and_not_by_round() {
    // 3 % a round passes as a slope of rounds, but is 12 % across the window.
    assert!(!is_steady([94.0, 97.0, 100.0, 103.0, 106.0]));
    assert!(is_steady([96.0, 98.0, 100.0, 102.0, 104.0]));
}

#[test]
fn the_slope_is_that_of_the_fit_and_not_from_first_to_last() {
    // First and last differ by 8 %, yet the fit rises by 4 · (2·4 + 10 + 10 + 2·4) / 10 = 14.4 %.
    let rising = SteadyVariable::of("iops", &[96.0, 90.0, 100.0, 110.0, 104.0]);
    assert!((rising.slope - 0.144).abs() < 1e-12, "{}", rising.slope);
    assert!(!rising.is_steady());
    // First and last differ by 11 %, yet the fit rises by 4.8 %.
    let flat = SteadyVariable::of("iops", &[94.5, 105.0, 100.0, 95.0, 105.5]);
    assert!((flat.slope - 0.048).abs() < 1e-12, "{}", flat.slope);
    assert!(flat.is_steady());
}

#[test]
fn the_slope_may_fall_as_little_as_it_may_rise() {
    assert!(!is_steady([106.0, 103.0, 100.0, 97.0, 94.0]));
}

#[test]
fn the_first_window_that_meets_the_rule_is_reported() {
    // A round is 20 s, two intervals.
    let rates = [500, 500, 300, 300, 100, 100, 101, 99, 100, 100, 100, 100, 98, 102, 60, 60];
    let steady = Steady::judge(&samples(&rates), 20.0);
    assert!(steady.achieved);
    assert_eq!(steady.rounds, 7);
    assert!((steady.at_s - 140.0).abs() < 1e-9);
    assert_eq!(steady.variables[0].name, "iops");
    assert_eq!(steady.variables[0].rounds, [1000.0; 5]);
}

#[test]
fn a_drive_that_never_settles_reports_its_last_window() {
    let steady = Steady::judge(&samples(&[900, 800, 700, 600, 500, 400, 300]), 10.0);
    assert!(!steady.achieved);
    assert_eq!(steady.rounds, 7);
    assert_eq!(steady.variables[0].rounds, [7000.0, 6000.0, 5000.0, 4000.0, 3000.0]);
}

#[test]
fn both_variables_must_be_steady_in_the_same_window() {
    let latencies_ns = [1000, 1000, 1000, 1000, 2000, 2000, 2000, 2000, 2000];
    let samples: Vec<Sample> = latencies_ns
        .iter()
        .zip(1_u32..)
        .map(|(latency_ns, round)| {
            let at_s = f64::from(round) * 10.0;
            Sample { at_s, ..samples_of(&[100], *latency_ns).remove(0) }
        })
        .collect();
    let steady = Steady::judge(&samples, 10.0);
    assert_eq!((steady.achieved, steady.rounds), (true, 9));
}

#[test]
fn a_last_round_that_is_not_whole_is_not_judged() {
    let steady = Steady::judge(&samples(&[100, 100, 100, 100, 100, 1]), 20.0);
    assert_eq!(steady.rounds, 3);
    assert_eq!(steady.variables[0].rounds, [1000.0, 1000.0, 505.0]);
    let steady = Steady::judge(&samples(&[100, 100, 100, 100, 1]), 20.0);
    assert_eq!(steady.variables[0].rounds, [1000.0, 1000.0]);
}

#[test]
fn fewer_than_five_rounds_are_never_steady() {
    let steady = Steady::judge(&samples(&[100; 4]), 10.0);
    assert!(!steady.achieved);
    assert_eq!((steady.rounds, steady.variables[0].rounds.len()), (4, 4));
    assert_eq!(Steady::judge(&[], 10.0).variables, []);
}

#[test]
fn a_drive_that_does_nothing_is_not_steady() {
    let steady = Steady::judge(&samples(&[0; 6]), 10.0);
    assert!(!steady.achieved);
    assert!(steady.variables.iter().all(|variable| variable.range.is_finite()));
}

#[test]
fn the_settled_figures_are_those_of_the_last_five_whole_rounds() {
    let rates = [900, 900, 900, 900, 100, 100, 100, 100, 100, 100, 200, 200, 200, 200, 1];
    let settled = last_window(&intervals(&rates, 1000), 20.0).unwrap();
    assert!((settled.span_s - 100.0).abs() < 1e-9);
    assert!((settled.iops - 1400.0).abs() < 1e-9, "{}", settled.iops);
    assert_eq!(last_window(&intervals(&rates[..1], 1000), 20.0), None);
    assert_eq!(last_window(&[], 20.0), None);
}

proptest! {
    #[test]
    fn the_verdict_does_not_depend_on_the_unit(
        rounds in proptest::array::uniform5(80.0_f64..120.0), scale in 0.001_f64..1e6,
    ) {
        let (one, other) = (
            SteadyVariable::of("iops", &rounds),
            SteadyVariable::of("iops", &rounds.map(|round| round * scale)),
        );
        prop_assert!((one.range - other.range).abs() < 1e-9);
        prop_assert!((one.slope - other.slope).abs() < 1e-9);
    }
}

/// A drive of 1 MB of user capacity and 1.2 MB of flash, purged.
const SMALL: WriteRequirement = WriteRequirement {
    before_bytes: 0.0,
    addressed_bytes: 1e6,
    user_bytes: 1e6,
    raw_bytes: Some(1.2e6),
    time_lapse: 1.0,
};

/// Rounds of ten seconds, one sample each, that write `bytes` and have the NAND relocate so many
/// for each of them.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small, not negative")]
fn writing(rounds: usize, bytes: u64, relocated: impl Fn(usize) -> f64) -> Vec<Sample> {
    let mut intervals = intervals(&vec![100; rounds], 1000);
    for (index, interval) in intervals.iter_mut().enumerate() {
        interval.write_bytes = bytes;
        interval.nand = Some(NandWrites {
            host_sent_bytes: bytes,
            host_bytes: bytes,
            relocation_bytes: (bytes as f64 * relocated(index)) as u64,
            ..NandWrites::default()
        });
        interval.superblocks_free_share = Some(0.5);
    }
    intervals.iter().map(Sample::of).collect()
}

#[test]
fn a_burst_that_holds_still_is_no_steady_state() {
    let samples = writing(8, 10_000, |_| 0.0);
    assert!(Steady::judge(&samples, 10.0).achieved, "its rounds hold still");
    let steady = Steady::judge_written(&samples, 10.0, &SMALL);
    assert!(!steady.achieved);
    assert_eq!(steady.evidence, Some(SteadyEvidence::TooLittleWritten));
    assert_eq!(steady.rounds, 8);
}

/// The figures of a step are those of its last five rounds.
#[test]
fn a_steady_state_that_was_lost_again_is_none() {
    let mut samples = writing(20, 100_000, |_| 0.0);
    assert!(Steady::judge_written(&samples, 10.0, &SMALL).achieved);
    for (sample, percent) in samples[15..].iter_mut().zip([90.0, 76.0, 60.0, 50.0, 44.0]) {
        sample.summary.iops *= percent / 100.0;
        let latency = &mut sample.summary.latency;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a test")]
        let count = (latency.count as f64 * percent / 100.0) as u64;
        latency.count = count;
    }
    let steady = Steady::judge_written(&samples, 10.0, &SMALL);
    assert!(!steady.achieved, "{steady:?}");
    assert_eq!((steady.rounds, steady.evidence), (20, None), "the last window is told");
    assert!(steady.variables[0].range > 0.2, "{:?}", steady.variables[0]);
}

#[test]
fn a_steady_state_begins_where_the_drive_was_written_over() {
    let samples = writing(20, 100_000, |_| 0.0);
    let steady = Steady::judge_written(&samples, 10.0, &SMALL);
    assert_eq!(steady.evidence, Some(SteadyEvidence::Written));
    assert_eq!(steady.rounds, 12, "1.2 MB, its raw capacity");
    let filled = WriteRequirement { before_bytes: 1e6, ..SMALL };
    assert_eq!(Steady::judge_written(&samples, 10.0, &filled).rounds, 10, "what it addresses");
    let lapsed = WriteRequirement { time_lapse: 2.0, ..filled };
    assert_eq!(Steady::judge_written(&samples, 10.0, &lapsed).rounds, 5);
}

#[test]
fn a_drive_of_unknown_raw_capacity_is_written_twice_over() {
    let unknown = WriteRequirement { raw_bytes: None, ..SMALL };
    let steady = |rounds, before_bytes| {
        let required = WriteRequirement { before_bytes, ..unknown };
        let samples = writing(rounds, 100_000, |_| 0.0);
        let Steady { evidence, rounds, .. } = Steady::judge_written(&samples, 10.0, &required);
        (evidence, rounds)
    };
    let (too_little, written) = (SteadyEvidence::TooLittleWritten, SteadyEvidence::Written);
    assert_eq!(steady(12, 0.0), (Some(too_little), 12), "1.2 times its user capacity");
    assert_eq!(steady(25, 0.0), (Some(written), 20), "twice its user capacity");
    assert_eq!(steady(25, 2e6), (Some(written), 10), "filled twice before: what it addresses");
}

#[test]
fn relocation_at_a_steady_amplification_is_a_steady_state() {
    let steady = |relocated: fn(usize) -> f64| {
        Steady::judge_written(&writing(8, 10_000, relocated), 10.0, &SMALL).evidence
    };
    assert_eq!(steady(|_| 12.0), Some(SteadyEvidence::Relocation));
    let too_little = Some(SteadyEvidence::TooLittleWritten);
    assert_eq!(steady(|_| 11.0), too_little, "0.96 of what it addresses, relocation included");
    assert_eq!(steady(|round| 20.0 + 4.0 * round as f64), too_little, "it still rises");
    assert_eq!(steady(|round| if round == 7 { 99.0 } else { 0.0 }), too_little, "it just began");
}

#[test]
fn media_written_in_place_and_loads_that_only_read_have_nothing_to_settle() {
    let mut samples = writing(5, 10_000, |_| 0.0);
    for sample in &mut samples {
        sample.superblocks_free_share = None;
    }
    let evidence = |samples: &[Sample]| Steady::judge_written(samples, 10.0, &SMALL).evidence;
    assert_eq!(evidence(&samples), Some(SteadyEvidence::InPlace));
    assert_eq!(evidence(&writing(5, 0, |_| 0.0)), Some(SteadyEvidence::OnlyReads));
}
