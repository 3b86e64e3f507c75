//! Precision of the rate of a sampled load, from the spread of its windows.
//!
//! Each stratum has one window at a random place, so the error of its time is independent of that
//! of the others. Its variance is that of the differences between neighbouring strata, which a slow
//! change of the load hardly enters: the estimator of successive differences [cochran-1977].

use super::Stratum;

/// Quantile 0.975 of the normal distribution.
const QUANTILE: f64 = 1.960;
/// Pairs of neighbours that tell a spread, at least.
const PAIRS_MIN: usize = 4;

/// Half of the interval at 95 % of the time that `strata` took ÷ that time; 0 where all was in
/// detail, absent where windows are too few to tell.
pub(super) fn reached(strata: &[Stratum]) -> Option<f64> {
    let each_ns = |it: &Stratum| it.length_ns() / (it.counted.requests() as f64).max(1.0);
    let total_ns: f64 = strata.iter().map(Stratum::length_ns).sum();
    let sampled = || strata.iter().filter(|it| it.is_sampled());
    if sampled().next().is_none() {
        return (total_ns > 0.0).then_some(0.0);
    }
    let pairs = strata.windows(2).filter(|pair| !pair[1].is_changed);
    let pairs = pairs.filter(|pair| pair.iter().all(Stratum::is_sampled));
    let squares = pairs.map(|pair| {
        let (one, next) = (each_ns(&pair[0]), each_ns(&pair[1]));
        ((one - next) / f64::midpoint(one, next)).powi(2) / 2.0
    });
    let squares: Vec<f64> = squares.collect();
    if squares.len() < PAIRS_MIN {
        return None;
    }
    let variance = squares.iter().sum::<f64>() / squares.len() as f64;
    let lengths: f64 = sampled().map(|it| it.length_ns() * it.length_ns()).sum();
    Some(QUANTILE * (variance * lengths).sqrt() / total_ns)
}

/// The largest of those of `parts` equal parts of the load; absent where one is not known.
pub(super) fn reached_in_parts(strata: &[Stratum], parts: usize) -> Option<f64> {
    let (first, last) = (strata.first()?.begins_ns, strata.last()?.ends_ns);
    let part_ns = (last - first) / parts as f64;
    let of = |index: usize| {
        let [from, to] = [index, index + 1].map(|it| first + part_ns * it as f64);
        let begin = strata.partition_point(|it| it.begins_ns < from);
        let end = strata.partition_point(|it| it.begins_ns < to);
        reached(&strata[begin..end])
    };
    let all: Option<Vec<f64>> = (0..parts).map(of).collect();
    all?.into_iter().reduce(f64::max)
}
