//! Quality of a model's reproduction of a set of rows, in a few numbers.

use results::deviation::median_size;
use serde::Serialize;

use super::{Row, is_typical, tolerance};

/// Agreement of modelled with published rows by [`tolerance`]; rows that cannot be compared are not
/// counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Tally {
    /// Rates and average latencies.
    pub typical: Share,
    /// Standard deviations, maxima and percentiles that mechanisms yield.
    pub spread: Share,
    /// Spread figures that a schedule of stalls makes, which is fitted to published ones; see
    /// [`super::is_from_listed_stall`].
    pub from_listed_stalls: Share,
}

/// Share of some rows that are in tolerance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Share {
    /// Rows that were compared.
    pub rows: usize,
    /// Rows that are in tolerance.
    pub near: usize,
    /// Median of `|modelled / published - 1|` of the rows with more than an upper bound; absent
    /// where there are none.
    pub error_median: Option<f64>,
}

impl Tally {
    /// Counts `rows`.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Self {
        let (mut typical, mut spread, mut from_listed_stalls) =
            (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            let Some(compared) = row.compared() else { continue };
            let is_bound = row.value_low == Some(0.0);
            let of_kind = if is_typical(&row.metric) {
                &mut typical
            } else if compared.from_listed_stalls {
                &mut from_listed_stalls
            } else {
                &mut spread
            };
            let near = tolerance(&row.metric);
            of_kind.push(RowRatio { ratio: compared.ratio, near, is_bound });
        }
        Self {
            typical: Share::of(&typical),
            spread: Share::of(&spread),
            from_listed_stalls: Share::of(&from_listed_stalls),
        }
    }
}

/// Modelled over published of one row.
struct RowRatio {
    ratio: f64,
    /// Limits of its tolerance.
    near: (f64, f64),
    /// True if no more than an upper bound was published.
    is_bound: bool,
}

impl Share {
    /// The share of `ratios` that lie between their limits.
    fn of(ratios: &[RowRatio]) -> Self {
        let near = ratios.iter().filter(|it| (it.near.0..=it.near.1).contains(&it.ratio));
        let told = ratios.iter().filter(|it| !it.is_bound);
        Self {
            rows: ratios.len(),
            near: near.count(),
            error_median: median_size(told.map(|it| it.ratio - 1.0)),
        }
    }

    /// Rows in tolerance in percent of all; absent where there are none.
    pub fn near_percent(&self) -> Option<f64> {
        (self.rows > 0).then(|| self.near as f64 / self.rows as f64 * 100.0)
    }
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
