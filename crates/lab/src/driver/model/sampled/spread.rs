//! Intervals of the figures of a sampled load: from strata after its ramp, and for each batch of
//! them from its own windows.
//!
//! The pools of neighbouring strata share windows, so that batches of such strata would differ by
//! less than chance has them. Here the windows of a batch are pooled among themselves.

use results::{ConfidenceInterval, Interval, IntervalKind, Spread, Summary};

use super::{Stratum, pool, precision};

/// The strata whose windows come after the ramp.
pub(super) fn after_ramp(strata: &[Stratum], ramp_ns: f64) -> &[Stratum] {
    &strata[strata.partition_point(|it| it.window_ns[0] < ramp_ns)..]
}

/// The intervals of all figures; absent where strata are fewer than five.
pub(super) fn spread(strata: &[Stratum]) -> Option<Spread> {
    let all: Vec<Interval> = strata.iter().map(|it| it.interval(1.0)).collect();
    let least = pool::WINDOWS_MIN;
    Spread::of_batches(&Summary::of(&all), (strata.len(), least), &|range| of_own(&strata[range]))
}

/// The figures of `strata` from their own windows alone.
fn of_own(strata: &[Stratum]) -> Summary {
    let pools = pool::pools(strata);
    let own = strata.iter().zip(pools).map(|(it, pool)| it.interval_of(pool.as_ref(), 1.0));
    Summary::of(&own.collect::<Vec<_>>())
}

/// The interval of the rate over all of `strata`, from the differences of neighbours.
pub(super) fn rate(strata: &[Stratum]) -> Option<ConfidenceInterval> {
    let half = precision::reached(strata)?;
    let requests: u64 = strata.iter().map(|it| it.counted.requests()).sum();
    let span_ns: f64 = strata.iter().map(Stratum::length_ns).sum();
    let rate = requests as f64 * 1e9 / span_ns.max(f64::MIN_POSITIVE);
    let [low, high] = [rate * (1.0 - half), rate * (1.0 + half)];
    Some(ConfidenceInterval::new(IntervalKind::Batches, low.max(0.0), high))
}

#[cfg(test)]
mod tests {
    use blockio::Rng;

    use super::super::RequestCounts;
    use super::*;

    /// A stratum of a second from `begins_s` on whose window has requests of `latency_us`, and
    /// relocated as much as `relocated` says.
    fn stratum(begins_s: f64, latency_us: u64, relocated: f64) -> Stratum {
        let mut window = Interval { span_s: 0.01, ..Interval::default() };
        window.write.record_many(latency_us * 1000, 4096);
        Stratum {
            begins_ns: begins_s * 1e9,
            ends_ns: (begins_s + 1.0) * 1e9,
            window_ns: [begins_s, begins_s + 0.01].map(|it| it * 1e9),
            window,
            counted: RequestCounts { writes: 100_000, ..RequestCounts::default() },
            whole: Interval::default(),
            is_changed: false,
            relocated_window: relocated,
            relocated_all: 1.0,
            pool: None,
        }
    }

    fn pooled(mut strata: Vec<Stratum>) -> Vec<Stratum> {
        let pools = pool::pools(&strata);
        strata.iter_mut().zip(pools).for_each(|(stratum, pool)| stratum.pool = pool);
        strata
    }

    /// 120 strata whose windows have latencies about 1,000 us; what they relocated says nothing.
    fn load(seed: u64) -> Vec<Stratum> {
        let mut rng = Rng::new(seed);
        let strata = (0..120_u32).map(|index| {
            let latency_us = 500 + rng.below(1001);
            stratum(f64::from(index), latency_us, 0.5 + rng.below(1000) as f64 / 1000.0)
        });
        pooled(strata.collect())
    }

    /// Nineteen of twenty intervals hold the mean that windows are drawn about.
    #[test]
    fn intervals_of_latencies_hold_the_truth_as_often_as_they_say() {
        let held = (0..60).filter(|seed| {
            let of = spread(&load(*seed)).unwrap().write.latency_ns_avg.unwrap();
            of.low <= 1e6 && 1e6 <= of.high
        });
        let held = held.count();
        assert!(held >= 53, "{held} of 60");
    }

    #[test]
    fn what_was_in_the_ramp_is_in_no_interval() {
        let ramp = (0..40_u32).map(|it| stratum(f64::from(it), 9_000, 1.0));
        let after = (40..100_u32).map(|it| stratum(f64::from(it), 1_000 + u64::from(it % 3), 1.0));
        let strata: Vec<Stratum> = ramp.chain(after).collect();
        let counting = after_ramp(&strata, 40e9);
        assert_eq!(counting.len(), 60);
        let latency = spread(counting).unwrap().write.latency_ns_avg.unwrap();
        assert!(latency.high < 1.1e6, "{latency:?}");
    }
}
