//! Tests of the histogram: against the exact figures, and against the HDR histogram's own crate.

use proptest::prelude::*;

use super::*;

fn recorded(latencies_ns: &[u64]) -> Latencies {
    let mut latencies = Latencies::default();
    for &latency_ns in latencies_ns {
        latencies.record(latency_ns);
    }
    latencies
}

/// Everything observable: summary and bins.
fn seen(latencies: &Latencies) -> (LatencySummary, Vec<Bin>) {
    (latencies.summary(), latencies.bins())
}

#[test]
fn a_mean_above_the_99th_percentile_has_a_note_that_names_the_longest_request() {
    let with_stalls = |count: usize| {
        let usual = vec![100_000; 10_000 - count];
        recorded(&[usual, vec![10_000_000_000; count]].concat()).summary()
    };
    let note = "mean above p99.9: rare requests of up to 10.0 s raise it";
    assert_eq!(with_stalls(5).mean_note().as_deref(), Some(note));
    assert_eq!(with_stalls(200).mean_note(), None, "the 99th percentile is one of them");
    assert_eq!(recorded(&[5; 1000]).summary().mean_note(), None);
    assert_eq!(LatencySummary::default().mean_note(), None);
}

#[test]
fn figures_of_a_hand_worked_example() {
    let summary = recorded(&[2, 4, 4, 4, 5, 5, 7, 9]).summary();
    assert_eq!(
        summary,
        LatencySummary {
            count: 8,
            latency_ns_avg: 5.0,
            latency_ns_stdev: 2.0,
            latency_ns_min: 2,
            latency_ns_max: 9,
            latency_ns_p50: Some(4),
            latency_ns_p90: Some(9),
            latency_ns_p99: Some(9),
            latency_ns_p999: Some(9),
            latency_ns_p9999: Some(9),
        }
    );
}

#[test]
fn nothing_recorded_is_all_zero() {
    assert_eq!(Latencies::default().summary(), LatencySummary::default());
    assert_eq!(Latencies::default().bins(), []);
}

#[test]
fn a_small_deviation_of_long_latencies_does_not_cancel() {
    let hour_ns = 3_600_000_000_000;
    let summary = recorded(&[hour_ns, hour_ns + 2]).summary();
    assert!((summary.latency_ns_stdev - 1.0).abs() < 1e-9, "{}", summary.latency_ns_stdev);
}

#[test]
fn a_latency_beyond_the_limit_counts_as_the_limit() {
    let summary = recorded(&[u64::MAX]).summary();
    assert_eq!(summary.latency_ns_max, Latencies::LATENCY_NS_LIMIT);
}

#[test]
fn absurd_bins_neither_panic_nor_wrap() {
    let bin = Bin { latency_ns: u64::MAX, count: u64::MAX };
    let summary = Latencies::from_bins(&[bin, bin]).summary();
    assert_eq!(summary.count, u64::MAX);
    assert!(summary.latency_ns_stdev.is_finite());
}

#[test]
fn widened_extremes_are_reported() {
    let mut latencies = recorded(&[1000]);
    latencies.widen(900, 5000);
    assert_eq!(latencies.summary().latency_ns_min, 900);
    assert_eq!(latencies.summary().latency_ns_max, 5000);
}

#[test]
fn a_closed_histogram_is_small() {
    let mut latencies = recorded(&[20_000, 1_000_000_000]);
    latencies.close();
    assert_eq!(latencies.open.capacity(), 0);
    assert_eq!(latencies.closed.len(), 2);
}

fn any_latencies() -> impl Strategy<Value = Vec<u64>> {
    proptest::collection::vec(
        (0_u32..42, any::<u64>()).prop_map(|(bits, x)| x >> (63 - bits)),
        1..300,
    )
}

proptest! {
    #[test]
    fn percentiles_and_bins_equal_those_of_the_hdr_histogram(latencies_ns in any_latencies()) {
        let mut oracle = hdrhistogram::Histogram::<u64>::new(2).unwrap();
        for latency_ns in &latencies_ns {
            oracle.record(*latency_ns).unwrap();
        }
        let latencies = recorded(&latencies_ns);
        let summary = latencies.summary();
        let at = |quantile| oracle.value_at_quantile(quantile).clamp(
            summary.latency_ns_min,
            summary.latency_ns_max,
        );
        prop_assert_eq!(summary.latency_ns_p50, Some(at(0.5)));
        prop_assert_eq!(summary.latency_ns_p99, Some(at(0.99)));
        prop_assert_eq!(summary.latency_ns_p9999, Some(at(0.9999)));
        let bins: Vec<Bin> = oracle
            .iter_recorded()
            .map(|bin| Bin {
                latency_ns: bin.value_iterated_to(),
                count: bin.count_since_last_iteration(),
            })
            .collect();
        prop_assert_eq!(latencies.bins(), bins);
    }

    #[test]
    fn average_deviation_and_extremes_are_exact(latencies_ns in any_latencies()) {
        let summary = recorded(&latencies_ns).summary();
        let count = latencies_ns.len() as f64;
        let avg = latencies_ns.iter().map(|&it| it as f64).sum::<f64>() / count;
        let squares = latencies_ns.iter().map(|&it| (it as f64 - avg).powi(2));
        let variance = squares.sum::<f64>() / count;
        prop_assert!((summary.latency_ns_avg - avg).abs() <= avg * 1e-9);
        prop_assert!((summary.latency_ns_stdev - variance.sqrt()).abs() <= avg * 1e-9 + 1e-9);
        prop_assert_eq!(Some(&summary.latency_ns_min), latencies_ns.iter().min());
        prop_assert_eq!(Some(&summary.latency_ns_max), latencies_ns.iter().max());
    }

    #[test]
    fn merging_equals_recording_together(a in any_latencies(), b in any_latencies(), close: bool) {
        let mut merged = recorded(&a);
        let mut other = recorded(&b);
        if close {
            merged.close();
            other.close();
        }
        merged.merge(&other);
        prop_assert_eq!(seen(&merged), seen(&recorded(&[a, b].concat())));
    }

    #[test]
    fn closing_changes_nothing_that_is_seen(a in any_latencies(), b in any_latencies()) {
        let mut closed = recorded(&a);
        closed.close();
        prop_assert_eq!(seen(&closed), seen(&recorded(&a)));
        for latency_ns in &b {
            closed.record(*latency_ns);
        }
        prop_assert_eq!(seen(&closed), seen(&recorded(&[a, b].concat())));
    }

    #[test]
    fn bins_rebuild_the_same_bins(latencies_ns in any_latencies()) {
        let bins = recorded(&latencies_ns).bins();
        prop_assert_eq!(Latencies::from_bins(&bins).bins(), bins);
    }

    #[test]
    fn recording_many_equals_recording_one_by_one(
        latency_ns in 0_u64..1 << 45, count in 0_u64..50,
    ) {
        let mut many = Latencies::default();
        many.record_many(latency_ns, count);
        let one_by_one = vec![latency_ns; usize::try_from(count).unwrap()];
        prop_assert_eq!(seen(&many), seen(&recorded(&one_by_one)));
    }
}

proptest! {
    #[test]
    fn a_stall_in_time_lapse_counts_as_it_does_among_all_requests_of_full_scale(
        latencies_ns in prop::collection::vec(100_000_u64..10_000_000, 1..50),
        stalled_ns in 1_000_u64..100_000_000,
        time_lapse in 1_u32..64,
    ) {
        let (mut full, mut lapsed) = (Latencies::default(), Latencies::default());
        for &latency_ns in &latencies_ns {
            full.record_many(latency_ns, u64::from(time_lapse));
            lapsed.record(latency_ns);
        }
        let of_stalled_ns = latencies_ns[0];
        full.record_many(of_stalled_ns, u64::from(time_lapse) - 1);
        full.record(of_stalled_ns + stalled_ns * u64::from(time_lapse));
        lapsed.record_stalled(of_stalled_ns + stalled_ns, stalled_ns, time_lapse);
        let (full, lapsed) = (full.summary(), lapsed.summary());
        prop_assert_eq!(full.count, lapsed.count * u64::from(time_lapse));
        prop_assert_eq!(full.latency_ns_max, lapsed.latency_ns_max);
        prop_assert_eq!(full.latency_ns_min, lapsed.latency_ns_min);
        for (full, lapsed) in [
            (full.latency_ns_avg, lapsed.latency_ns_avg),
            (full.latency_ns_stdev, lapsed.latency_ns_stdev),
        ] {
            prop_assert!((full - lapsed).abs() <= full * 1e-6 + 1.0, "{} and {}", full, lapsed);
        }
    }
}
