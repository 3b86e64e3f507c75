//! Quality of a model's reproduction of a set of rows, in a few numbers.

use results::deviation::median_size;
use serde::Serialize;

use super::{Row, tolerance};

/// Error of a rate or an average latency that still counts as near, as a share.
const NEAR: f64 = 0.2;

/// Agreement of modelled with published rows; rows that cannot be compared are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Tally {
    /// Rates and average latencies; within 20 % is near.
    pub typical: Share,
    /// Deviations, maxima and percentiles that mechanisms yield; within a factor of two is near.
    pub spread: Share,
    /// Those that a schedule of stalls makes, which is fitted to published ones; see
    /// [`super::is_scheduled`].
    pub scheduled: Share,
}

/// Share of some rows that are near.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Share {
    /// Rows that were compared.
    pub rows: usize,
    /// Rows that are near.
    pub near: usize,
    /// Median of `|modelled / published - 1|`; absent where there are no rows.
    pub error_median: Option<f64>,
}

impl Tally {
    /// Counts `rows`.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Self {
        let (mut typical, mut spread, mut scheduled) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            let Some(compared) = row.compared() else { continue };
            let near = nearness(&row.metric);
            let of_kind = if is_typical(&row.metric) {
                &mut typical
            } else if compared.scheduled {
                &mut scheduled
            } else {
                &mut spread
            };
            of_kind.push((compared.ratio, near));
        }
        Self {
            typical: Share::of(&typical),
            spread: Share::of(&spread),
            scheduled: Share::of(&scheduled),
        }
    }
}

impl Share {
    /// The share of the ratios that lie between their limits.
    fn of(ratios: &[(f64, (f64, f64))]) -> Self {
        let near = ratios.iter().filter(|(ratio, (low, high))| (low..=high).contains(&ratio));
        Self {
            rows: ratios.len(),
            near: near.count(),
            error_median: median_size(ratios.iter().map(|(ratio, _)| ratio - 1.0)),
        }
    }

    /// Near rows in percent of all; absent where there are none.
    pub fn near_percent(&self) -> Option<f64> {
        (self.rows > 0).then(|| self.near as f64 / self.rows as f64 * 100.0)
    }
}

/// True if `metric` is a rate or an average latency; else it is a deviation, a maximum or a
/// percentile.
pub fn is_typical(metric: &str) -> bool {
    matches!(metric, "iops" | "mb_s" | "avg_latency_ms")
}

fn nearness(metric: &str) -> (f64, f64) {
    if is_typical(metric) { (1.0 - NEAR, 1.0 + NEAR) } else { tolerance(metric) }
}

/// The measured rows whose ratio is farthest from 1, the farthest first; at most `count`.
///
/// Twice as much is as far as half as much.
pub fn worst(rows: &[Row], count: usize) -> Vec<&Row> {
    let distance = |row: &Row| row.compared().map_or(0.0, |compared| compared.ratio.ln().abs());
    let measured = rows.iter().filter(|row| row.is_measured() && row.compared().is_some());
    let mut measured: Vec<&Row> = measured.collect();
    measured.sort_by(|a, b| distance(b).total_cmp(&distance(a)));
    measured.truncate(count);
    measured
}

#[cfg(test)]
mod tests;
