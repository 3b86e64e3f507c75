//! Latencies of a stratum, from its window and those around it.
//!
//! A window meets a part of the cycle of relocation, its stratum all of it. What all of it
//! relocated was counted, so windows around are weighted until together they relocated as much:
//! those that saw more of it count more where the one window saw too little. Weights of this kind
//! calibrate a sample to what is known of the whole [deville-1992].

use results::Latencies;

use super::Stratum;

/// Windows to either side that tell of a stratum.
const NEIGHBOURS: usize = 12;
/// Windows that are weighted, at least.
pub(super) const WINDOWS_MIN: usize = 6;
/// Largest weight of a window.
const WEIGHT_MAX: f64 = 4.0;
/// Requests of a pool for each that was measured, so that weights are hardly rounded.
const PARTS: f64 = 64.0;

/// Latencies of reads and of writes.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Pool {
    pub(super) read: Latencies,
    pub(super) write: Latencies,
}

/// The pool of each of `strata`; none where its window alone tells of it.
pub(super) fn pools(strata: &[Stratum]) -> Vec<Option<Pool>> {
    (0..strata.len()).map(|index| pool(strata, index)).collect()
}

fn pool(strata: &[Stratum], index: usize) -> Option<Pool> {
    let stratum = &strata[index];
    if !stratum.is_sampled() {
        return None;
    }
    let around = around(strata, index);
    let seen: Vec<f64> = around.iter().map(|it| it.relocated_window).collect();
    let count = seen.len() as f64;
    let mean = seen.iter().sum::<f64>() / count;
    let variance = seen.iter().map(|it| (it - mean) * (it - mean)).sum::<f64>() / count;
    if around.len() < WINDOWS_MIN || variance <= 0.0 {
        return None;
    }
    let short = stratum.relocated_all - mean;
    let weight = |it: f64| (1.0 + short * (it - mean) / variance).clamp(0.0, WEIGHT_MAX);
    let mut pool = Pool::default();
    for (window, weight) in around.iter().zip(seen.iter().map(|it| weight(*it))) {
        let weighted = |latencies: &Latencies| {
            let count = latencies.count() as f64 * weight * PARTS;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
            let count = count as u64;
            latencies.weighted(count, count)
        };
        pool.read.merge(&weighted(&window.window.read));
        pool.write.merge(&weighted(&window.window.write));
    }
    pool.read.close();
    pool.write.close();
    Some(pool)
}

/// The strata whose windows tell of that at `index`: as far as relocation did not change.
fn around(strata: &[Stratum], index: usize) -> Vec<&Stratum> {
    let mut first = index;
    while first > index.saturating_sub(NEIGHBOURS) && !strata[first].is_changed {
        first -= 1;
    }
    let mut end = index + 1;
    while end < strata.len() && end <= index + NEIGHBOURS && !strata[end].is_changed {
        end += 1;
    }
    strata[first..end].iter().filter(|it| it.is_sampled()).collect()
}
