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
    /// Those that a schedule of stalls makes, which is fitted to published ones; see
    /// [`super::is_scheduled`].
    pub scheduled: Share,
}

/// Share of some rows that are in tolerance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Share {
    /// Rows that were compared.
    pub rows: usize,
    /// Rows that are in tolerance.
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
            let near = tolerance(&row.metric);
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
