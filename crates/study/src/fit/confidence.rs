//! Uncertainty of fitted numbers, given the figures that they were fitted to.
//!
//! Near the best point a residual is nearly linear in the numbers, so what is known of them is a
//! normal distribution: the inverse of the sum of what each figure tells and of what was known
//! before, that each lies somewhere within its bounds. Where figures tell next to nothing, the
//! bounds remain, and the number counts as undetermined.

use nalgebra::{Cholesky, DMatrix, DVector};

use super::search::{downhill, normal, weight};

/// Deviation of a number of which only the bounds are known, on the scale from 0 to 1.
const DEVIATION_BEFORE: f64 = 0.288_675_134_594_812_9;
/// A number is undetermined if figures leave more than this share of that deviation.
const SHARE_LEFT_MAX: f64 = 0.5;
/// A figure is never taken to be nearer to the truth than this share of its tolerance: it was
/// printed with two or three digits.
const SCATTER_MIN: f64 = 0.15;
/// Numbers that errors this strongly correlated have are determined together only.
const CORRELATION_MIN: f64 = 0.8;
/// Ridge that keeps a refit without some figures from running away.
const RIDGE: f64 = 0.0025;

/// Posterior distribution of the fitted numbers.
#[derive(Clone, Debug)]
pub(super) struct Confidence {
    /// Standard deviations, on the scale from 0 to 1.
    pub(super) deviations: Vec<f64>,
    /// Covariances of each pair of numbers, on the same scale.
    covariance: DMatrix<f64>,
}

impl Confidence {
    /// Computes it from `slopes`, a row for each figure and a column for each number, and the
    /// residuals.
    pub(super) fn of(slopes: &DMatrix<f64>, residuals: &[f64]) -> Self {
        let axes = slopes.ncols();
        let before = vec![DEVIATION_BEFORE.powi(-2); axes];
        let weights: Vec<f64> = residuals.iter().copied().map(weight).collect();
        let posterior = |scatter: f64| {
            let told: Vec<f64> =
                weights.iter().map(|weight| weight / (scatter * scatter)).collect();
            let factor = Cholesky::new(normal(slopes, &told, &before));
            factor.expect("a sum with a positive diagonal").inverse()
        };
        // Once with the least scatter to see how many numbers the figures tell of.
        let told = posterior(SCATTER_MIN);
        let numbers: f64 = (0..axes).map(|axis| 1.0 - told[(axis, axis)] * before[axis]).sum();
        let squares: f64 = residuals.iter().zip(&weights).map(|(r, weight)| weight * r * r).sum();
        let freedom = (residuals.len() as f64 - numbers).max(1.0);
        let covariance = posterior((squares / freedom).sqrt().max(SCATTER_MIN));
        let deviations = (0..axes).map(|axis| covariance[(axis, axis)].sqrt()).collect();
        Self { deviations, covariance }
    }

    /// True if the figures tell next to nothing of the number on `axis`.
    pub(super) fn is_undetermined(&self, axis: usize) -> bool {
        self.deviations[axis] > SHARE_LEFT_MAX * DEVIATION_BEFORE
    }

    /// The numbers whose errors go with those of the number on `axis`: only together are they
    /// determined.
    pub(super) fn goes_with(&self, axis: usize) -> Vec<usize> {
        let correlation = |other: usize| {
            let product = self.deviations[axis] * self.deviations[other];
            self.covariance[(axis, other)] / product
        };
        let others = (0..self.deviations.len()).filter(|other| *other != axis);
        others.filter(|other| correlation(*other).abs() >= CORRELATION_MIN).collect()
    }
}

/// Shares of what the figures tell of the number on `axis`, one for each; none where no figure
/// changes with it.
pub(super) fn shares(slopes: &DMatrix<f64>, residuals: &[f64], axis: usize) -> Vec<f64> {
    let told = residuals.iter().enumerate();
    let told = told.map(|(row, residual)| weight(*residual) * slopes[(row, axis)].powi(2));
    let told: Vec<f64> = told.collect();
    let all: f64 = told.iter().sum();
    if all > 0.0 { told.into_iter().map(|it| it / all).collect() } else { Vec::new() }
}

/// Residuals that the rows of each group would have, had the fit not known them: the linear model
/// refitted to all other rows, from `point`, numbers that are then open staying at `start`.
pub(super) fn left_out(
    slopes: &DMatrix<f64>,
    residuals: &[f64],
    groups: &[usize],
    (point, start): (&[f64], &[f64]),
) -> Vec<f64> {
    let mut predicted = residuals.to_vec();
    for group in groups {
        let weights: Vec<f64> = residuals
            .iter()
            .zip(groups)
            .map(|(residual, of)| if of == group { 0.0 } else { weight(*residual) })
            .collect();
        let matrix = normal(slopes, &weights, &vec![RIDGE; point.len()]);
        let back = start.iter().zip(point).map(|(start, at)| RIDGE * (start - at));
        let right =
            DVector::from_iterator(point.len(), back) + downhill(slopes, residuals, &weights);
        let mut by = Cholesky::new(matrix).expect("a sum with a positive diagonal").solve(&right);
        for (by, at) in by.iter_mut().zip(point) {
            *by = (at + *by).clamp(0.0, 1.0) - at;
        }
        let moved = slopes * by;
        for index in (0..groups.len()).filter(|index| groups[*index] == *group) {
            predicted[index] = residuals[index] + moved[index];
        }
    }
    predicted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_no_figure_depends_on_is_undetermined() {
        let certainty =
            Confidence::of(&DMatrix::from_row_slice(2, 2, &[6.0, 0.0, 4.0, 0.1]), &[0.1, -0.1]);
        assert!(!certainty.is_undetermined(0));
        assert!(certainty.is_undetermined(1));
    }

    #[test]
    fn two_numbers_of_which_only_the_sum_shows_are_undetermined_together() {
        let certainty = Confidence::of(&DMatrix::from_element(2, 2, 5.0), &[0.05, -0.05]);
        assert!(certainty.is_undetermined(0) && certainty.is_undetermined(1));
        assert_eq!(certainty.goes_with(0), [1]);
    }

    #[test]
    fn a_figure_tells_of_a_number_as_much_as_it_changes_with_it() {
        let slopes = DMatrix::from_row_slice(3, 2, &[3.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
        let found = shares(&slopes, &[0.0, 0.0, 0.0], 0);
        assert!((found[0] - 0.9).abs() < 1e-9 && (found[1] - 0.1).abs() < 1e-9, "{found:?}");
        assert!(shares(&slopes, &[0.0, 0.0, 0.0], 1).is_empty(), "nothing changes with it");
        let outlier = shares(&slopes, &[20.0, 0.0, 0.0], 0);
        assert!(outlier[0] < 0.5, "a figure that is missed by far tells little: {outlier:?}");
    }

    #[test]
    fn more_scatter_leaves_more_open() {
        let slopes = DMatrix::from_element(4, 1, 3.0);
        let near = Confidence::of(&slopes, &[0.1, -0.1, 0.1, -0.1]);
        let far = Confidence::of(&slopes, &[2.0, -2.0, 2.0, -2.0]);
        assert!(far.deviations[0] > 2.0 * near.deviations[0]);
    }

    #[test]
    fn a_figure_that_alone_tells_of_a_number_is_predicted_from_its_start() {
        let slopes = DMatrix::from_row_slice(2, 2, &[4.0, 0.0, 0.0, 2.0]);
        let predicted = left_out(&slopes, &[0.0, 0.0], &[0, 1], (&[0.5, 0.8], &[0.5, 0.3]));
        assert!(predicted[0].abs() < 1e-9);
        assert!((predicted[1] - 2.0 * -0.5).abs() < 1e-6, "{predicted:?}");
    }

    #[test]
    fn figures_that_repeat_each_other_are_predicted_by_each_other() {
        let slopes = DMatrix::from_element(3, 1, 4.0);
        let predicted = left_out(&slopes, &[0.2, 0.0, -0.2], &[0, 1, 2], (&[0.5], &[0.5]));
        assert!((predicted[0] - 0.3).abs() < 0.02, "{predicted:?}");
        let together = left_out(&slopes, &[0.2, 0.0, -0.2], &[0, 0, 0], (&[0.5], &[0.1]));
        assert!((together[1] + 1.6).abs() < 1e-6, "{together:?}");
    }
}
