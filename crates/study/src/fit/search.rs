//! The search for the point with the least loss in a unit cube.
//!
//! ```text
//! start ──► descent ──► swarm, with the start and the descent's end among its particles
//!                          └──► descent from the best of all
//! ```
//!
//! The swarm looks everywhere and needs no derivatives (particle swarm optimisation); a descent
//! (Levenberg and Marquardt, derivatives by differences) makes a good place exact in a few steps,
//! because a loss is a sum over residuals that are nearly linear nearby.
//!
//! Points of one generation are evaluated together, so that the caller can evaluate them in
//! parallel. How many there are depends on the counts below alone, never on time: the same seed
//! finds the same point.
//!
//! Along an axis on which each new place costs much, points lie on a lattice about the start, so
//! that the same few places are asked for again and again.

use std::f64::consts::{LN_2, LOG2_E};
use std::sync::{Mutex, PoisonError};

use blockio::Rng;
use nalgebra::{Cholesky, DMatrix, DVector};

/// Residuals at a point, one for each figure; nothing where no drive can be built.
pub(super) type Residuals = Option<Vec<f64>>;

/// Weight of the pull to the start: crossing the whole cube along one axis costs the square of
/// it. Small, so that it decides only what residuals leave open.
const PULL: f64 = 0.05;
/// Half the distance over which derivatives are taken.
const STEP: f64 = 0.03;
/// Steps of one descent at most.
const DESCENT_STEPS: usize = 6;
/// A descent ends when a step gains less than this share of the loss.
const GAIN_MIN: f64 = 0.005;
/// Generations of a swarm that gain less than that, all together, before it ends.
const PATIENCE: usize = 6;
/// Share of its velocity that a particle keeps from one generation to the next, 1 / (2 ln 2).
const INERTIA: f64 = 0.5 * LOG2_E;
/// Most of the way to a better place that a particle's velocity takes up at once, 1/2 + ln 2.
const DRAW: f64 = 0.5 + LN_2;
/// Loss where no drive can be built.
const INFEASIBLE: f64 = 1e9;

/// Function whose residuals are searched for their least loss.
pub(super) trait Landscape: Sync {
    /// Residuals at each of `points`, whose coordinates are 0 to 1.
    fn residuals(&self, points: &[Vec<f64>]) -> Vec<Residuals>;
    /// Distance of the points that may be looked at along `axis`; any may if absent.
    fn spacing(&self, axis: usize) -> Option<f64>;
    /// Takes the best point so far.
    fn found(&self, best: &SearchPoint);
    /// True if the search is to end now, with the best so far.
    fn stop(&self) -> bool;
}

/// Size of a search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// Points that the swarm evaluates; 0 for none.
    pub(super) swarm: usize,
    /// Seed of the swarm.
    pub(super) seed: u64,
}

/// A point and what was found there.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SearchPoint {
    /// The point.
    pub(super) point: Vec<f64>,
    /// Its residuals.
    pub(super) residuals: Vec<f64>,
    /// Its loss.
    pub(super) loss: f64,
}

/// Looks for the least loss from `start` on; nothing if `start` itself is infeasible.
pub(super) fn search(
    landscape: &dyn Landscape,
    start: &[f64],
    effort: Effort,
) -> Option<SearchPoint> {
    let held = vec![false; start.len()];
    let state = SearchState { landscape, start, held: &held, best: Mutex::default() };
    state.evaluate(&[start.to_vec()]);
    let begun = state.best()?;
    descend(&state, begun.clone());
    if effort.swarm > 0 && !landscape.stop() {
        swarm(&state, &begun, effort);
        descend(&state, state.best()?);
    }
    state.best()
}

/// Makes the place around `begun` exact, without looking elsewhere or moving along axes that are
/// `held`; the pull is to `start`.
pub(super) fn polish(
    landscape: &dyn Landscape,
    start: &[f64],
    begun: &[f64],
    held: &[bool],
) -> Option<SearchPoint> {
    let state = SearchState { landscape, start, held, best: Mutex::default() };
    state.evaluate(&[begun.to_vec()]);
    descend(&state, state.best()?);
    state.best()
}

/// Derivatives of the residuals at `point`, figure by figure and axis by axis, by central
/// differences inside the cube. An axis along which nothing can be built has zeroes.
pub(super) fn derivatives(landscape: &dyn Landscape, point: &[f64]) -> DMatrix<f64> {
    let step =
        |axis| landscape.spacing(axis).map_or(STEP, |spacing| spacing * (STEP / spacing).ceil());
    let sides: Vec<[Vec<f64>; 2]> =
        (0..point.len()).map(|axis| sides(point, axis, step(axis))).collect();
    let points: Vec<Vec<f64>> = sides.iter().flatten().cloned().collect();
    let mut residuals = landscape.residuals(&points).into_iter();
    let mut columns = Vec::new();
    for (axis, [low, high]) in sides.iter().enumerate() {
        let across = high[axis] - low[axis];
        let pair = residuals.next().flatten().zip(residuals.next().flatten());
        columns.push(pair.map(|(low, high)| {
            low.iter().zip(&high).map(|(low, high)| (high - low) / across).collect::<Vec<f64>>()
        }));
    }
    let figures = columns.iter().flatten().map(Vec::len).max().unwrap_or(0);
    DMatrix::from_fn(figures, point.len(), |row, axis| {
        columns[axis].as_ref().map_or(0.0, |column| column[row])
    })
}

/// Normal matrix of weighted least squares: `slopes` transposed times `slopes`, each row counted
/// `weights` times, plus `ridge` on the diagonal.
pub(super) fn normal(slopes: &DMatrix<f64>, weights: &[f64], ridge: &[f64]) -> DMatrix<f64> {
    let mut weighted = slopes.clone();
    for (mut row, weight) in weighted.row_iter_mut().zip(weights) {
        row *= *weight;
    }
    let mut sum = slopes.tr_mul(&weighted);
    for (axis, ridge) in ridge.iter().enumerate() {
        sum[(axis, axis)] += ridge;
    }
    sum
}

/// The direction in which the weighted squares of residuals become smaller.
pub(super) fn downhill(slopes: &DMatrix<f64>, residuals: &[f64], weights: &[f64]) -> DVector<f64> {
    let pulls = residuals.iter().zip(weights).map(|(residual, weight)| -weight * residual);
    slopes.tr_mul(&DVector::from_iterator(residuals.len(), pulls))
}

/// The points on both sides of `point` along `axis`, `step` away and inside the cube.
fn sides(point: &[f64], axis: usize, step: f64) -> [Vec<f64>; 2] {
    [-step, step].map(|step| {
        let mut side = point.to_vec();
        side[axis] = (side[axis] + step).clamp(0.0, 1.0);
        side
    })
}

/// Loss of a residual: its square near zero, its amount far off, so that a figure that no drive can
/// meet does not drag the others away.
pub(super) fn robust(residual: f64) -> f64 {
    2.0 * ((1.0 + residual * residual).sqrt() - 1.0)
}

/// The weight that makes a square of [`robust`] nearby.
pub(super) fn weight(residual: f64) -> f64 {
    1.0 / (1.0 + residual * residual).sqrt()
}

/// A search under way.
struct SearchState<'a> {
    landscape: &'a dyn Landscape,
    start: &'a [f64],
    /// Axes along which a descent does not go.
    held: &'a [bool],
    best: Mutex<Option<SearchPoint>>,
}

impl SearchState<'_> {
    /// Losses at `points`; remembers the best.
    fn evaluate(&self, points: &[Vec<f64>]) -> Vec<SearchPoint> {
        let points: Vec<Vec<f64>> = points.iter().map(|point| self.on_lattice(point)).collect();
        let found = self.landscape.residuals(&points);
        let judged: Vec<SearchPoint> = points
            .iter()
            .zip(found)
            .map(|(point, residuals)| {
                let loss = residuals.as_ref().map_or(INFEASIBLE, |residuals| {
                    residuals.iter().copied().map(robust).sum::<f64>() + self.pull(point)
                });
                SearchPoint { point: point.clone(), residuals: residuals.unwrap_or_default(), loss }
            })
            .collect();
        let mut best = self.best.lock().unwrap_or_else(PoisonError::into_inner);
        for found in &judged {
            let better = best.as_ref().is_none_or(|best| found.loss < best.loss);
            if found.loss < INFEASIBLE && better {
                *best = Some(found.clone());
            }
        }
        if let Some(found) = &*best {
            self.landscape.found(found);
        }
        judged
    }

    /// The nearest point that may be looked at.
    fn on_lattice(&self, point: &[f64]) -> Vec<f64> {
        let at = |(axis, at): (usize, &f64)| match self.landscape.spacing(axis) {
            Some(spacing) => {
                let from = self.start[axis];
                (from + ((at - from) / spacing).round() * spacing).clamp(0.0, 1.0)
            }
            None => *at,
        };
        point.iter().enumerate().map(at).collect()
    }

    fn best(&self) -> Option<SearchPoint> {
        self.best.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn pull(&self, point: &[f64]) -> f64 {
        let away = point.iter().zip(self.start).map(|(at, start)| at - start);
        away.map(|away| (PULL * away).powi(2)).sum()
    }
}

/// Descends from `at` until little is gained.
fn descend(state: &SearchState<'_>, mut at: SearchPoint) {
    let mut damping = 0.01;
    for _ in 0..DESCENT_STEPS {
        if state.landscape.stop() {
            return;
        }
        let slopes = derivatives(state.landscape, &at.point);
        if slopes.nrows() == 0 {
            // Stopped meanwhile: nothing was looked at around the point.
            return;
        }
        let tried: Vec<Vec<f64>> = [0.1, 1.0, 10.0, 100.0]
            .iter()
            .filter_map(|factor| step(state, &at, &slopes, damping * factor))
            .collect();
        let judged = state.evaluate(&tried).into_iter().enumerate();
        let Some((index, next)) = judged.min_by(|a, b| a.1.loss.total_cmp(&b.1.loss)) else {
            return;
        };
        let gain = at.loss - next.loss;
        if gain > 0.0 {
            damping *= [0.1, 1.0, 10.0, 100.0][index];
            at = next;
        } else {
            damping *= 1000.0;
        }
        if gain.abs() < GAIN_MIN * at.loss || damping > 1e6 {
            return;
        }
    }
}

/// One step of a descent; axes that would leave the cube are held.
fn step(
    state: &SearchState<'_>,
    at: &SearchPoint,
    slopes: &DMatrix<f64>,
    damping: f64,
) -> Option<Vec<f64>> {
    let weights: Vec<f64> = at.residuals.iter().copied().map(weight).collect();
    let mut free: Vec<bool> = state.held.iter().map(|held| !held).collect();
    for _ in 0..=at.point.len() {
        let mut slopes = slopes.clone();
        let mut right = DVector::zeros(free.len());
        for axis in 0..free.len() {
            if free[axis] {
                right[axis] = PULL * PULL * (state.start[axis] - at.point[axis]);
            } else {
                slopes.column_mut(axis).fill(0.0);
            }
        }
        right += downhill(&slopes, &at.residuals, &weights);
        let mut matrix = normal(&slopes, &weights, &vec![PULL * PULL; free.len()]);
        for axis in 0..free.len() {
            matrix[(axis, axis)] += damping * (matrix[(axis, axis)] + 1e-6);
        }
        let by = Cholesky::new(matrix)?.solve(&right);
        let leaves = |index: &usize| {
            let (from, by) = (at.point[*index], by[*index]);
            free[*index] && ((from >= 1.0 && by > 0.0) || (from <= 0.0 && by < 0.0))
        };
        let Some(held) = (0..free.len()).find(leaves) else {
            let to = at.point.iter().zip(&by).map(|(from, by)| (from + by).clamp(0.0, 1.0));
            return Some(to.collect());
        };
        free[held] = false;
    }
    None
}

/// One of a swarm.
struct Particle {
    point: Vec<f64>,
    velocity: Vec<f64>,
    /// The best that it came by.
    best: SearchPoint,
}

impl Particle {
    /// Moves on, drawn to the best that it came by and to that of all; the sides of the cube hold
    /// it. Returns where it is then.
    fn fly(&mut self, best_of_all: &[f64], rng: &mut Rng) -> Vec<f64> {
        for (axis, common) in best_of_all.iter().enumerate() {
            let at = self.point[axis];
            let to_own = rng.unit_f64() * (self.best.point[axis] - at);
            let to_common = rng.unit_f64() * (common - at);
            self.velocity[axis] = INERTIA * self.velocity[axis] + DRAW * (to_own + to_common);
            self.point[axis] = (at + self.velocity[axis]).clamp(0.0, 1.0);
        }
        self.point.clone()
    }
}

/// Sends a swarm through the cube; what it finds is remembered in `state`.
fn swarm(state: &SearchState<'_>, begun: &SearchPoint, effort: Effort) {
    let axes = begun.point.len();
    let size = (axes + 10).min(effort.swarm);
    let mut rng = Rng::new(effort.seed).split("swarm");
    let mut points = stratified(size, axes, &mut rng);
    points.truncate(size.saturating_sub(2));
    let scattered = state.evaluate(&points).into_iter();
    let mut particles: Vec<Particle> = scattered
        .chain([begun.clone()])
        .chain(state.best())
        .map(|found| {
            let velocity = (0..axes).map(|_| 0.5 * rng.unit_f64() - 0.25).collect();
            Particle { point: found.point.clone(), velocity, best: found }
        })
        .collect();
    // Least loss before each generation.
    let mut losses = Vec::new();
    for generation in 0..effort.swarm / particles.len() {
        let Some(best) = state.best() else { return };
        losses.push(best.loss);
        let before = generation.checked_sub(PATIENCE).map(|index| losses[index]);
        let is_idle = before.is_some_and(|before| before - best.loss < GAIN_MIN * before);
        if is_idle || state.landscape.stop() {
            return;
        }
        let moved = particles.iter_mut().map(|particle| particle.fly(&best.point, &mut rng));
        let points: Vec<_> = moved.collect();
        for (particle, found) in particles.iter_mut().zip(state.evaluate(&points)) {
            if found.loss < particle.best.loss {
                particle.best = found;
            }
        }
    }
}

/// `count` points, each axis of which has one in each of `count` equal parts (Latin hypercube).
fn stratified(count: usize, axes: usize, rng: &mut Rng) -> Vec<Vec<f64>> {
    let mut points = vec![Vec::with_capacity(axes); count];
    for _ in 0..axes {
        let mut parts: Vec<usize> = (0..count).collect();
        for index in (1..count).rev() {
            let other = rng.below(index as u64 + 1);
            parts.swap(index, usize::try_from(other).expect("below a count in memory"));
        }
        for (point, part) in points.iter_mut().zip(parts) {
            point.push((part as f64 + rng.unit_f64()) / count as f64);
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Residuals as a plain function of the point.
    struct Plain<F>(F, [Option<f64>; 2]);

    impl<F: Fn(&[f64]) -> Residuals + Sync> Landscape for Plain<F> {
        fn residuals(&self, points: &[Vec<f64>]) -> Vec<Residuals> {
            points.iter().map(|point| (self.0)(point)).collect()
        }

        fn spacing(&self, axis: usize) -> Option<f64> {
            self.1[axis]
        }

        fn found(&self, _: &SearchPoint) {}

        fn stop(&self) -> bool {
            false
        }
    }

    fn valley(point: &[f64]) -> Residuals {
        let (x, y) = (point[0], point[1]);
        x.is_finite().then(|| vec![10.0 * (y - 0.3 - (x - 0.7).powi(2)), 3.0 * (x - 0.8)])
    }

    #[test]
    fn a_descent_follows_a_valley_to_its_end() {
        let found =
            search(&Plain(valley, [None; 2]), &[0.1, 0.9], Effort { swarm: 0, seed: 1 }).unwrap();
        assert!((found.point[0] - 0.8).abs() < 0.01, "{found:?}");
        assert!((found.point[1] - 0.31).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn a_swarm_finds_the_deeper_of_two_valleys() {
        let wells = |point: &[f64]| {
            let x = point[0];
            let shallow = 0.5 + 20.0 * (x - 0.2).abs();
            Some(vec![shallow.min(6.0 * (x - 0.85).abs())])
        };
        let descended =
            search(&Plain(wells, [None; 2]), &[0.1], Effort { swarm: 0, seed: 1 }).unwrap();
        assert!((descended.point[0] - 0.2).abs() < 0.1, "{descended:?}");
        let found =
            search(&Plain(wells, [None; 2]), &[0.1], Effort { swarm: 200, seed: 1 }).unwrap();
        assert!((found.point[0] - 0.85).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn what_no_residual_depends_on_stays_at_its_start() {
        let one = |point: &[f64]| Some(vec![5.0 * (point[0] - 0.6)]);
        let found =
            search(&Plain(one, [None; 2]), &[0.2, 0.4], Effort { swarm: 100, seed: 3 }).unwrap();
        assert!((found.point[0] - 0.6).abs() < 0.01, "{found:?}");
        assert!((found.point[1] - 0.4).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn the_same_seed_finds_the_same_point() {
        let effort = Effort { swarm: 120, seed: 9 };
        let run = || search(&Plain(valley, [None; 2]), &[0.1, 0.9], effort);
        assert_eq!(run(), run());
    }

    #[test]
    fn an_edge_of_the_cube_holds_a_descent() {
        let beyond = |point: &[f64]| Some(vec![point[0] - 1.5, point[1] - 0.5, point[0] * 0.1]);
        let found =
            search(&Plain(beyond, [None; 2]), &[0.5, 0.1], Effort { swarm: 0, seed: 1 }).unwrap();
        assert!((found.point[0] - 1.0).abs() < 1e-9, "{found:?}");
        assert!((found.point[1] - 0.5).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn points_that_cannot_be_built_are_avoided() {
        let edge = |point: &[f64]| (point[0] < 0.7).then(|| vec![4.0 * (point[0] - 0.65)]);
        let found = search(&Plain(edge, [None; 2]), &[0.1], Effort { swarm: 60, seed: 1 }).unwrap();
        assert!((found.point[0] - 0.65).abs() < 0.02, "{found:?}");
    }

    #[test]
    fn along_an_axis_with_a_lattice_only_its_points_are_looked_at() {
        let asked = Mutex::new(Vec::new());
        let watched = |point: &[f64]| {
            asked.lock().unwrap().push(point[1]);
            valley(point)
        };
        let landscape = Plain(watched, [None, Some(0.125)]);
        let found = search(&landscape, &[0.1, 0.9], Effort { swarm: 80, seed: 1 }).unwrap();
        let mut places: Vec<f64> = asked.into_inner().unwrap();
        places.sort_by(f64::total_cmp);
        places.dedup_by(|a, b| (*a - *b).abs() < 1e-9);
        assert!(places.len() <= 10, "{places:?}");
        assert!((found.point[1] - 0.275).abs() < 1e-9, "{found:?}");
        assert!((found.point[0] - 0.8).abs() < 0.3, "{found:?}");
    }
}
