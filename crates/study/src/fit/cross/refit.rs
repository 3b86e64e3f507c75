//! Regularised Gauss-Newton refit of free parameters to some of the figures, from a neutral start.
//!
//! ```text
//! start, slopes there (shared by all folds) ──► steps of the linear model, one simulation each;
//!      what a simulation shows beside the linear model corrects the slopes (Broyden)
//!        └──► each number back at the centre, if the figures are met no worse there
//!               └──► slopes taken anew where that led, and further steps
//! ```

use nalgebra::{Cholesky, DMatrix, DVector};

use super::super::search::{downhill, normal, robust, weight};

/// Residual that a model misses the figures by, a third of the tolerance: what a number must gain
/// before it leaves the centre of its range.
const SCATTER: f64 = 0.3;
/// Weight of the centre: as if each number were equally likely anywhere in its range, a variance of
/// 1/12, beside figures of that scatter.
pub(super) const RIDGE: f64 = 12.0 * SCATTER * SCATTER;
/// Steps from each set of slopes.
const STEPS: usize = 4;
/// Sets of slopes, those at the start included.
const ROUNDS: usize = 3;
/// Longest way of one step along one axis: farther off slopes say little.
const REACH: f64 = 0.25;
/// A step shorter than this is none, and a gain of less than this share of the loss is none.
const SHORTEST: f64 = 0.003;
const GAIN_MIN: f64 = 0.005;

/// Residuals of all figures as a function of the free parameters.
pub(super) trait FigureResiduals {
    /// Failure of a simulation.
    type Error;
    /// Residuals at `point`; nothing where there is no such drive.
    fn residuals(&self, point: &[f64]) -> Result<Option<Vec<f64>>, Self::Error>;
    /// Distance of the points that may be looked at along `axis`; any may if absent.
    fn spacing(&self, axis: usize) -> Option<f64>;
}

/// A point with its residuals, and the slopes last known there.
#[derive(Clone, Debug)]
pub(super) struct Refit {
    /// Coordinates of the free parameters, 0 to 1.
    pub(super) point: Vec<f64>,
    /// Residuals of all figures, those left out as well.
    pub(super) residuals: Vec<f64>,
    /// A row for each figure, a column for each number.
    pub(super) slopes: DMatrix<f64>,
}

impl Refit {
    /// Residuals at `point` with slopes by differences; nothing where there is no such drive.
    pub(super) fn at<L: FigureResiduals>(
        landscape: &L,
        point: &[f64],
        step: f64,
    ) -> Result<Option<Self>, L::Error> {
        let Some(residuals) = landscape.residuals(point)? else { return Ok(None) };
        let mut slopes = DMatrix::zeros(residuals.len(), point.len());
        for axis in 0..point.len() {
            let by = landscape.spacing(axis).unwrap_or(step);
            let by = if point[axis] > 0.5 { -by } else { by };
            let mut beside = point.to_vec();
            beside[axis] += by;
            // No drive beside: the number stays, for nothing is known of its effect.
            let Some(there) = landscape.residuals(&beside)? else { continue };
            for (row, (there, here)) in there.iter().zip(&residuals).enumerate() {
                slopes[(row, axis)] = (there - here) / by;
            }
        }
        Ok(Some(Self { point: point.to_vec(), residuals, slopes }))
    }

    /// Loss of the figures that are `known`, and of the way from the centre.
    fn loss(&self, known: &[bool], start: &[f64]) -> f64 {
        let told = self.residuals.iter().zip(known).filter(|(_, known)| **known);
        let way = self.point.iter().zip(start).map(|(at, start)| (at - start).powi(2));
        told.map(|(residual, _)| robust(*residual)).sum::<f64>() + RIDGE * way.sum::<f64>()
    }

    /// Corrects the slopes by what was seen at `there`, `residuals` (Broyden's rank-one update).
    fn learn(&mut self, there: &[f64], residuals: &[f64]) {
        let by = DVector::from_iterator(
            there.len(),
            there.iter().zip(&self.point).map(|(there, at)| there - at),
        );
        let seen = residuals.iter().zip(&self.residuals).map(|(there, here)| there - here);
        let surprise = DVector::from_iterator(residuals.len(), seen) - &self.slopes * &by;
        self.slopes += surprise * by.transpose() / by.norm_squared();
    }
}

/// Refits to the figures that are `known`, from `begun`, which is at the centre of all ranges.
pub(super) fn refit<L: FigureResiduals>(
    landscape: &L,
    begun: &Refit,
    known: &[bool],
    step: f64,
) -> Result<Refit, L::Error> {
    let start = &begun.point;
    let mut at = begun.clone();
    for round in 0..ROUNDS {
        let before = at.loss(known, start);
        if round > 0 {
            let renewed = Refit::at(landscape, &at.point, step)?;
            at = renewed.unwrap_or(at);
        }
        descend(landscape, &mut at, known, start)?;
        bring_back(landscape, &mut at, known, start)?;
        if before - at.loss(known, start) < GAIN_MIN * before {
            break;
        }
    }
    Ok(at)
}

/// Puts each number back at the centre of its range if the loss is less there.
///
/// Simulations are short and scatter, and so do slopes: a number that no figure tells of drifts.
fn bring_back<L: FigureResiduals>(
    landscape: &L,
    at: &mut Refit,
    known: &[bool],
    start: &[f64],
) -> Result<(), L::Error> {
    for axis in 0..start.len() {
        if (at.point[axis] - start[axis]).abs() < SHORTEST {
            continue;
        }
        let mut to = at.point.clone();
        to[axis] = start[axis];
        let Some(residuals) = landscape.residuals(&to)? else { continue };
        let next = Refit { point: to, residuals, slopes: at.slopes.clone() };
        if next.loss(known, start) < at.loss(known, start) {
            *at = next;
        }
    }
    Ok(())
}

/// Steps from `at` until they gain little.
fn descend<L: FigureResiduals>(
    landscape: &L,
    at: &mut Refit,
    known: &[bool],
    start: &[f64],
) -> Result<(), L::Error> {
    let mut damping = 0.01;
    for _ in 0..STEPS {
        let to = step_from(at, known, start, damping, &|axis| landscape.spacing(axis));
        let way = to.iter().zip(&at.point).map(|(to, from)| (to - from).abs());
        if way.fold(0.0, f64::max) < SHORTEST {
            return Ok(());
        }
        let Some(residuals) = landscape.residuals(&to)? else {
            damping *= 10.0;
            continue;
        };
        at.learn(&to, &residuals);
        let next = Refit { point: to, residuals, slopes: at.slopes.clone() };
        let (now, then) = (at.loss(known, start), next.loss(known, start));
        if then >= now {
            damping *= 10.0;
            continue;
        }
        *at = next;
        damping /= 3.0;
        if now - then < GAIN_MIN * now {
            return Ok(());
        }
    }
    Ok(())
}

/// The point to which the linear model leads; axes that would leave the cube are held.
fn step_from(
    at: &Refit,
    known: &[bool],
    start: &[f64],
    damping: f64,
    spacing: &dyn Fn(usize) -> Option<f64>,
) -> Vec<f64> {
    let axes = at.point.len();
    let told = at.residuals.iter().zip(known);
    let weights: Vec<f64> =
        told.map(|(residual, known)| if *known { weight(*residual) } else { 0.0 }).collect();
    let mut free = vec![true; axes];
    loop {
        let mut slopes = at.slopes.clone();
        let mut back = DVector::zeros(axes);
        for axis in 0..axes {
            if free[axis] {
                back[axis] = RIDGE * (start[axis] - at.point[axis]);
            } else {
                slopes.column_mut(axis).fill(0.0);
            }
        }
        let right = back + downhill(&slopes, &at.residuals, &weights);
        let mut matrix = normal(&slopes, &weights, &vec![RIDGE; axes]);
        for axis in 0..axes {
            matrix[(axis, axis)] *= 1.0 + damping;
        }
        let Some(factor) = Cholesky::new(matrix) else { return at.point.clone() };
        let by = factor.solve(&right);
        let leaves = |axis: &usize| {
            let from = at.point[*axis];
            free[*axis] && ((from >= 1.0 && by[*axis] > 0.0) || (from <= 0.0 && by[*axis] < 0.0))
        };
        if let Some(held) = (0..axes).find(leaves) {
            free[held] = false;
            continue;
        }
        return (0..axes)
            .map(|axis| {
                let to = (at.point[axis] + by[axis].clamp(-REACH, REACH)).clamp(0.0, 1.0);
                spacing(axis).map_or(to, |by| (to / by).round() * by)
            })
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use super::*;

    /// Residuals that are linear in the numbers.
    struct Linear {
        slopes: DMatrix<f64>,
        zero: Vec<f64>,
        spacing: Option<f64>,
        asked: Cell<usize>,
    }

    impl Linear {
        fn new(slopes: &[[f64; 2]], zero: [f64; 2]) -> Self {
            let slopes = DMatrix::from_fn(slopes.len(), 2, |row, axis| slopes[row][axis]);
            Self { slopes, zero: zero.to_vec(), spacing: None, asked: Cell::new(0) }
        }
    }

    impl FigureResiduals for Linear {
        type Error = Infallible;

        fn residuals(&self, point: &[f64]) -> Result<Option<Vec<f64>>, Infallible> {
            self.asked.set(self.asked.get() + 1);
            let away = DVector::from_fn(2, |axis, _| point[axis] - self.zero[axis]);
            Ok(Some((&self.slopes * away).iter().copied().collect()))
        }

        fn spacing(&self, axis: usize) -> Option<f64> {
            self.spacing.filter(|_| axis == 1)
        }
    }

    fn refitted(linear: &Linear, known: &[bool]) -> Refit {
        let begun = Refit::at(linear, &[0.5, 0.5], 0.05).unwrap().unwrap();
        refit(linear, &begun, known, 0.05).unwrap()
    }

    #[test]
    fn figures_that_determine_the_numbers_bring_them_back_and_predict_the_rest() {
        let linear = Linear::new(&[[40.0, 3.0], [2.0, 35.0], [20.0, 20.0]], [0.2, 0.9]);
        let found = refitted(&linear, &[true, true, false]);
        assert!((found.point[0] - 0.2).abs() < 0.01, "{found:?}");
        assert!((found.point[1] - 0.9).abs() < 0.01, "{found:?}");
        assert!(found.residuals[2].abs() < 0.2, "{found:?}");
        assert!(linear.asked.get() < 25, "{} simulations", linear.asked.get());
    }

    #[test]
    fn a_number_that_only_the_figure_left_out_tells_of_stays_at_the_centre() {
        let linear = Linear::new(&[[40.0, 0.0], [0.0, 35.0]], [0.2, 0.9]);
        let found = refitted(&linear, &[true, false]);
        assert!((found.point[1] - 0.5).abs() < 1e-9, "{found:?}");
        assert!((found.residuals[1] + 35.0 * 0.4).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn a_number_that_scatter_alone_has_moved_is_brought_back() {
        let linear = Linear::new(&[[40.0, 0.0], [0.0, 0.0]], [0.2, 0.9]);
        let mut drifted = Refit::at(&linear, &[0.2, 0.8], 0.05).unwrap().unwrap();
        bring_back(&linear, &mut drifted, &[true, true], &[0.5, 0.5]).unwrap();
        assert_eq!(drifted.point, [0.2, 0.5], "the first is told of, the second is not");
        assert!(drifted.residuals[0].abs() < 1e-9);
    }

    #[test]
    fn a_figure_that_is_left_out_does_not_move_the_numbers() {
        let known = [true, true, false];
        let one =
            refitted(&Linear::new(&[[40.0, 3.0], [2.0, 35.0], [9.0, 0.0]], [0.3, 0.6]), &known);
        let other =
            refitted(&Linear::new(&[[40.0, 3.0], [2.0, 35.0], [-70.0, 50.0]], [0.3, 0.6]), &known);
        assert_eq!(one.point, other.point);
    }

    #[test]
    fn numbers_stay_within_their_ranges() {
        let found = refitted(&Linear::new(&[[40.0, 0.0], [0.0, 40.0]], [1.4, -0.3]), &[true; 2]);
        assert_eq!(found.point, [1.0, 0.0]);
    }

    #[test]
    fn points_keep_to_the_lattice_of_a_number_that_places_data() {
        let mut linear = Linear::new(&[[40.0, 3.0], [2.0, 35.0]], [0.2, 0.83]);
        linear.spacing = Some(0.125);
        let found = refitted(&linear, &[true; 2]);
        assert!((found.point[1] / 0.125).fract().abs() < 1e-9, "{found:?}");
    }
}
