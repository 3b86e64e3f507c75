//! Distance of modelled figures from published ones.
//!
//! The residual of a figure is the logarithm of modelled over published, over that of the ratio at
//! which a validation calls it out of tolerance: 1 at the edge. So rates and averages count most, a
//! deviation or a maximum a fifth as much. Within a published range it is 0. Figures that state one
//! fact, such as the rate and the average latency of one load, share its weight.
//!
//! [`Shortcut`] is off by a factor that hardly changes from one drive to the next one nearby. It is
//! known where the protocols have been run, and taken out of every figure before it is judged.

use std::sync::{Mutex, PoisonError};

use lab::Error;
use results::published::FigureRow;
use ssd::DriveSpec;

use super::Watcher;
use super::parameter::Parameter;
use super::search::{Landscape, Residuals, SearchPoint};
use super::shortcut::Shortcut;
use crate::drive_file::DriveFile;
use crate::validate::tolerance;

/// Residuals beyond this are not told apart: whatever is modelled is wrong by orders.
const RESIDUAL_MAX: f64 = 50.0;

/// Standard deviations of latency are told apart in steps of this share of the average latency.
const DEVIATION_RESOLUTION: f64 = 0.05;

/// One figure to come close to.
#[derive(Clone, Debug)]
pub(super) struct Aim {
    low: f64,
    high: f64,
    /// Logarithm of the ratio at the edge of its tolerance.
    tolerance: f64,
    /// Differences below this are not told apart, in the unit of the metric.
    resolution: f64,
    /// Figures that state the same fact: a rate, a throughput and an average latency of one load
    /// are one.
    alike: usize,
}

impl Aim {
    /// Aim of `row`, one of `alike` rows that state one fact; absent where it says no number above
    /// 0.
    pub(super) fn new(row: &FigureRow, alike: usize) -> Option<Self> {
        let (low, high) = (row.value_low?, row.value_high?);
        let (_, most) = tolerance(&row.metric);
        (low > 0.0).then(|| Self { low, high, tolerance: most.ln(), resolution: 0.0, alike })
    }

    /// This aim, of a standard deviation of a load whose average latency is `mean` in its unit: a
    /// deviation that is a small share of it is not told apart from none.
    #[must_use]
    pub(super) fn beside_average(self, mean: f64) -> Self {
        Self { resolution: mean * DEVIATION_RESOLUTION, ..self }
    }

    /// The residual of `modelled`; `ranged` is whether all of a range is equally good.
    pub(super) fn residual(&self, modelled: f64, ranged: bool) -> f64 {
        let middle = (self.low * self.high).sqrt();
        let nearest = if ranged { modelled.clamp(self.low, self.high) } else { middle };
        let (seen, aimed) = (modelled + self.resolution, nearest + self.resolution);
        let residual = (seen / aimed).ln() / self.scale();
        if residual.is_nan() { RESIDUAL_MAX } else { residual.clamp(-RESIDUAL_MAX, RESIDUAL_MAX) }
    }

    /// Modelled over published for a residual.
    pub(super) fn ratio(&self, residual: f64) -> f64 {
        let share = self.resolution / (self.low * self.high).sqrt();
        ((1.0 + share) * (residual * self.scale()).exp() - share).max(0.0)
    }

    /// Logarithm of a ratio whose residual is 1.
    fn scale(&self) -> f64 {
        self.tolerance * (self.alike as f64).sqrt()
    }
}

/// A drive's file with some of its numbers open.
#[derive(Debug)]
pub(super) struct Candidates<'a> {
    pub(super) file: &'a DriveFile,
    pub(super) parameters: &'a [Parameter],
    /// Name of the drive in the figures, where its file does not say.
    pub(super) published: Option<ssd::PublishedSpec>,
}

impl Candidates<'_> {
    /// The file with the numbers at `point`; those that are not moved stay as they are written.
    pub(super) fn file_at(&self, point: &[f64]) -> DriveFile {
        let mut file = self.file.clone();
        let moved = self.parameters.iter().zip(point).filter(|(it, at)| it.is_moved(**at));
        for (parameter, at) in moved {
            file.replace(&parameter.path, parameter.toml(*at)).expect("a key of the file");
        }
        file
    }

    /// Numbers that change where data lies when they leave `start`, as `shortcut` sees drives: a
    /// flag for each.
    pub(super) fn placing(&self, shortcut: &Shortcut<'_>, start: &[f64]) -> Vec<bool> {
        let placements = |point: &[f64]| shortcut.placements(&self.spec_at(point)?);
        let before = placements(start);
        let is_placing = |axis: usize| {
            [0.0, 0.5, 1.0].into_iter().any(|at| {
                let mut point = start.to_vec();
                point[axis] = at;
                placements(&point).is_some_and(|there| Some(&there) != before.as_ref())
            })
        };
        (0..start.len()).map(is_placing).collect()
    }

    /// The drive at `point`; nothing where it is not feasible.
    pub(super) fn spec_at(&self, point: &[f64]) -> Option<DriveSpec> {
        let spec = self.file_at(point).spec().ok()?;
        let published = self.published.clone().or_else(|| spec.published.clone());
        Some(DriveSpec { published, ..spec })
    }
}

/// A point and the value of each figure there; absent where there is none.
type SeenPoint = (Vec<f64>, Vec<Option<f64>>);

/// The landscape that a fit searches.
pub(super) struct Objective<'a> {
    pub(super) candidates: &'a Candidates<'a>,
    pub(super) shortcut: &'a Shortcut<'a>,
    /// Aims, one for each row of the work list.
    pub(super) aims: &'a [Aim],
    /// Logarithm of what the protocols give over what the shortcut gives, row by row.
    pub(super) corrections: Vec<f64>,
    /// True if all of a published range is equally good; else its middle is the aim.
    pub(super) ranged: bool,
    /// Numbers that change where data lies, so that each new value costs a drive that settles.
    pub(super) placing: &'a [bool],
    /// Distance of the values of such a number that are looked at, as a share of its range.
    pub(super) spacing: f64,
    pub(super) watcher: &'a dyn Watcher,
    /// Drives that were looked at.
    pub(super) evaluations: Mutex<usize>,
    /// Points that were looked at, and what the shortcut gives there without corrections: all that
    /// is known once the watcher has stopped the looks.
    pub(super) seen: Mutex<Vec<SeenPoint>>,
    /// The first failure of the model.
    pub(super) failure: Mutex<Option<Error>>,
}

impl Objective<'_> {
    /// Values that the shortcut gives at each of `points`, with its corrections; absent where a
    /// point is not feasible, or the model failed.
    pub(super) fn values(&self, points: &[Vec<f64>]) -> Vec<Option<Vec<Option<f64>>>> {
        if self.watcher.stop() {
            return points.iter().map(|point| self.seen_at(point)).collect();
        }
        let drives: Vec<_> = points.iter().map(|point| self.candidates.spec_at(point)).collect();
        *self.evaluations.lock().unwrap_or_else(PoisonError::into_inner) += points.len();
        match self.shortcut.values(&drives) {
            Ok(values) => {
                let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                for (point, values) in points.iter().zip(&values) {
                    seen.extend(values.iter().map(|values| (point.clone(), values.clone())));
                }
                values.into_iter().map(|values| Some(self.corrected(values?))).collect()
            }
            Err(error) => {
                let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                failure.get_or_insert(error);
                vec![None; points.len()]
            }
        }
    }

    /// Values at a point that was looked at before.
    fn seen_at(&self, point: &[f64]) -> Option<Vec<Option<f64>>> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, values) = seen.iter().rev().find(|(known, _)| known == point)?;
        Some(self.corrected(values.clone()))
    }

    fn corrected(&self, values: Vec<Option<f64>>) -> Vec<Option<f64>> {
        let corrections = self.corrections.iter();
        values.into_iter().zip(corrections).map(|(it, by)| Some(it? * by.exp())).collect()
    }

    /// Residuals of values, one for each figure.
    pub(super) fn judge(&self, values: &[Option<f64>]) -> Vec<f64> {
        let residual = |(aim, value): (&Aim, &Option<f64>)| {
            value.map_or(RESIDUAL_MAX, |value| aim.residual(value, self.ranged))
        };
        self.aims.iter().zip(values).map(residual).collect()
    }

    /// Drives that were looked at.
    pub(super) fn evaluated(&self) -> usize {
        *self.evaluations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Landscape for Objective<'_> {
    fn residuals(&self, points: &[Vec<f64>]) -> Vec<Residuals> {
        self.values(points).into_iter().map(|values| Some(self.judge(&values?))).collect()
    }

    fn spacing(&self, axis: usize) -> Option<f64> {
        self.placing[axis].then_some(self.spacing)
    }

    fn found(&self, best: &SearchPoint) {
        self.watcher.searched(self.evaluated(), best.loss);
    }

    fn stop(&self) -> bool {
        let failed = self.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        failed || self.watcher.stop()
    }
}

#[cfg(test)]
mod tests {
    use results::published::parse;

    use super::*;

    const HEAD: &str = "id,document,device,capacity_gb,mode,os,workload,threads,queue_per_thread,\
                        phase,metric,value_low,value_high,confidence,note\n";

    fn aim(metric: &str, range: &str, alike: usize) -> Option<Aim> {
        let text = format!(
            "{HEAD}A1,a review,duo,640,stock,linux,w,16,16,primary,{metric},{range},exact,\n"
        );
        Aim::new(&parse(&text, "figures.csv").unwrap()[0], alike)
    }

    #[test]
    fn a_residual_is_one_at_the_edge_of_the_tolerance() {
        let rate = aim("iops", "1000,1000", 1).unwrap();
        assert!(rate.residual(1000.0, true).abs() < 1e-9);
        assert!((rate.residual(1150.0, true) - 1.0).abs() < 1e-9);
        assert!((rate.residual(1000.0 / 1.15, true) + 1.0).abs() < 1e-9, "as far below");
        let maximum = aim("max_latency_ms", "10,10", 1).unwrap();
        assert!((maximum.residual(20.0, true) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn all_of_a_range_is_equally_good_where_that_is_asked_for() {
        let it = aim("iops", "100,400", 1).unwrap();
        for value in [100.0, 250.0, 400.0] {
            assert!(it.residual(value, true).abs() < 1e-9, "{value}");
        }
        assert!(it.residual(100.0, false) < 0.0 && it.residual(400.0, false) > 0.0);
        assert!(it.residual(200.0, false).abs() < 1e-9, "the geometric middle");
    }

    #[test]
    fn figures_that_state_one_fact_share_its_weight() {
        let (alone, four) =
            (aim("iops", "100,100", 1).unwrap(), aim("iops", "100,100", 4).unwrap());
        let [one, quarter] = [&alone, &four].map(|it| it.residual(150.0, true).powi(2));
        assert!((quarter * 4.0 - one).abs() < 1e-9);
    }

    #[test]
    fn a_ratio_is_found_again_from_its_residual() {
        let it = aim("avg_latency_ms", "3,3", 2).unwrap();
        for value in [0.5, 3.0, 7.0] {
            let ratio = it.ratio(it.residual(value, true));
            assert!((ratio - value / 3.0).abs() < 1e-9, "{value}");
        }
    }

    #[test]
    fn what_is_wrong_by_orders_is_not_told_apart_and_nothing_is_not_a_number() {
        let it = aim("iops", "1000,1000", 1).unwrap();
        assert!((it.residual(1e30, true) - RESIDUAL_MAX).abs() < 1e-9);
        assert!((it.residual(0.0, true) + RESIDUAL_MAX).abs() < 1e-9, "no request completed");
        assert!((it.residual(f64::NAN, true) - RESIDUAL_MAX).abs() < 1e-9);
    }

    #[test]
    fn a_small_deviation_is_not_told_apart_from_none() {
        let of = |mean| aim("stdev_latency_ms", "0.01,0.01", 1).unwrap().beside_average(mean);
        assert!(of(0.0).residual(0.0, true) < -20.0, "infinitely far without an average");
        let residual = of(1.0).residual(0.0, true);
        assert!((-0.3..0.0).contains(&residual), "{residual}");
        let wide = of(0.01).residual(0.03, true);
        assert!((1.4..1.6).contains(&wide), "of a wide one all but all counts: {wide}");
        assert!((of(0.01).ratio(wide) - 3.0).abs() < 1e-9);
        assert!((of(1.0).ratio(residual)).abs() < 1e-9);
    }

    #[test]
    fn a_figure_of_zero_is_nothing_to_aim_at() {
        assert!(aim("iops", "0,0", 1).is_none());
        assert!(aim("iops", "0,10", 1).is_none());
    }
}
