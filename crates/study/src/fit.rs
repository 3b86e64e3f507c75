//! A drive's free parameters, found from what was published or measured of it.
//!
//! ```text
//! drive.toml ──► parameters ─┐                    ┌─► shortcut: thousands of short simulations
//! figures ──► contradictions ┴─► work list ──────────┤        │ corrected by
//!                                                 └─► the protocols, at three points
//!        search: start ──► descent, swarm, descent ──► undetermined numbers go back
//!                  └──► corrected, polished ──► residuals, certainty, leave-one-out errors
//! ```
//!
//! Figures in the result are those of the protocols at the drive's own time lapse, as a validation
//! runs them; the shortcut only says where to go.

mod confidence;
pub mod cross;
mod figures;
mod objective;
mod outcome;
mod parameter;
mod search;
mod shortcut;

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use lab::plan::Plan;
use lab::progress::Progress;
use lab::{Error, Kind};
use nalgebra::DMatrix;
use results::deviation::median_size;
use results::published::FigureRow;
use ssd::{DriveSpec, PublishedSpec};

use self::confidence::{Confidence, left_out, shares};
use self::objective::{Aim, Candidates, Objective};
use self::parameter::{Parameter, parameters};
use self::search::{Effort, SearchPoint, derivatives, polish, robust, search};
use self::shortcut::Shortcut;
use crate::drive_file::DriveFile;
use crate::validate::{RowSource, WorkList};

pub use self::figures::{Contradiction, Evidence, contradictions};
pub use self::outcome::{Fit, FittedNumber, JudgedFigure};
pub use self::parameter::Free;

/// Coordinates nearer than this to an end of their range are at the bound.
const AT_BOUND: f64 = 0.005;
/// Share of what the figures tell of a number that the loads tell which are said to fix it.
const FIXED_SHARE_MIN: f64 = 0.5;
/// Distance of the values that are looked at of a number that changes where data lies, as a share
/// of its range: while searching, and when the best point is made exact.
const SPACING: f64 = 1.0 / 8.0;
const SPACING_EXACT: f64 = 1.0 / 64.0;

/// Observer of a fit.
pub trait Watcher: Progress {
    /// Takes the least loss so far and the number of drives that were evaluated.
    fn searched(&self, evaluations: usize, loss: f64);
}

/// Input of a fit apart from the drive's file: its free parameters, and the figures to fit them to.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Numbers that are open besides those of its `[[fit]]` tables.
    pub free: &'a [Free],
    /// Figures about the drive.
    pub rows: &'a [&'a FigureRow],
    /// Name of the figures in the source of the numbers: a file or a run.
    pub evidence: &'a str,
    /// Assumption about what the figures do not state, such as how the drive was prepared.
    pub assumed: Option<&'a str>,
    /// The only format whose figures count; all if absent. Others are predicted.
    pub format: Option<&'a str>,
    /// Protocols that express the figures.
    pub plans: &'a [Plan],
    /// Name of the drive in the figures, where its file does not say.
    pub published: Option<&'a PublishedSpec>,
    /// Drives that the swarm looks at.
    pub swarm: usize,
    /// Seed of the search.
    pub seed: u64,
    /// Simulations at once.
    pub threads: usize,
}

/// Fits the free parameters of the drive in `file`. Stopped early, returns the best so far,
/// unverified.
///
/// # Errors
/// Fails if the question is at fault, with file and line; or if a model failed.
pub fn fit(file: &DriveFile, question: Question<'_>, watcher: &dyn Watcher) -> Result<Fit, Error> {
    let parameters = parameters(file, question.free)?;
    let published = question.published.cloned();
    let candidates = Candidates { file, parameters: &parameters, published };
    let start: Vec<f64> = parameters.iter().map(Parameter::begin).collect();
    let spec = candidates.spec_at(&start).ok_or_else(|| {
        let text = format!("{} does not describe a valid drive", file.name());
        Error::new(Kind::Input, text)
    })?;
    let contradictions = contradictions(question.rows, spec.device_count());
    let table = Table::new(question, &spec, &contradictions)?;
    let work = Work { question, candidates: &candidates, table: &table, start, watcher };
    work.fit(&spec, contradictions)
}

/// The figures, those that the search goes by first among them.
struct Table {
    judged: Vec<JudgedFigure>,
    /// Figures that the search goes by, by index in `judged`, and what they need.
    used: Vec<usize>,
    work_used: WorkList,
    aims: Vec<Aim>,
    /// Figures that are compared in the end only, and what they need.
    others: Vec<usize>,
    work_others: WorkList,
}

impl Table {
    fn new(
        question: Question<'_>,
        spec: &DriveSpec,
        contradictions: &[Contradiction],
    ) -> Result<Self, Error> {
        let drives = std::slice::from_ref(spec);
        let work_list = WorkList::new(question.rows, drives, question.plans);
        let doubtful: BTreeSet<&str> =
            contradictions.iter().flat_map(|it| &it.rows).map(String::as_str).collect();
        let mut judged: Vec<JudgedFigure> =
            question.rows.iter().map(|row| JudgedFigure::new(row)).collect();
        let (mut used, mut others) = (Vec::new(), Vec::new());
        for (index, entry) in work_list.entries().iter().enumerate() {
            let row = question.rows[index];
            judged[index].unused = match entry {
                Err(reason) => reason.clone(),
                Ok(entry) => {
                    let RowSource { setup, .. } = entry;
                    judged[index].setup = format!("{} {}", setup.format, setup.host);
                    unused(row, entry, question.format, &doubtful).to_owned()
                }
            };
            match entry {
                Ok(_) if judged[index].unused.is_empty() => used.push(index),
                Ok(_) => others.push(index),
                Err(_) => {}
            }
        }
        if used.is_empty() {
            return Err(nothing_to_go_by(&judged));
        }
        let fact = |index: &usize| judged[*index].fact();
        let alike = |index| used.iter().filter(|other| fact(other) == fact(index)).count();
        let aims = used.iter().map(|index| {
            let aim = Aim::new(question.rows[*index], alike(index));
            let aim = aim.expect("a value of 0 is not used");
            match average_beside(&judged[*index], &judged) {
                Some(mean_ms) => aim.beside_average(mean_ms),
                None => aim,
            }
        });
        let aims = aims.collect();
        let work_of = |indices: &[usize]| {
            let rows: Vec<_> = indices.iter().map(|index| question.rows[*index]).collect();
            WorkList::new(&rows, drives, question.plans)
        };
        let (work_used, work_others) = (work_of(&used), work_of(&others));
        Ok(Self { judged, used, work_used, aims, others, work_others })
    }

    /// A number for each figure used that those of one load share, in whatever metric and phase of
    /// a settled drive.
    fn loads(&self) -> Vec<usize> {
        let loads: Vec<_> = self.used.iter().map(|index| self.judged[*index].place()).collect();
        let first = |load| loads.iter().position(|other| *other == load);
        loads.iter().map(|load| first(*load).expect("it is one of them")).collect()
    }
}

/// Average latency of the load of `figure`, which is a standard deviation in the same unit, if one
/// of `all` states it.
fn average_beside(figure: &JudgedFigure, all: &[JudgedFigure]) -> Option<f64> {
    let is_of_it = |it: &&JudgedFigure| {
        it.metric == "avg_latency_ms"
            && (&it.setup, &it.phase, it.place()) == (&figure.setup, &figure.phase, figure.place())
    };
    let is_deviation = figure.metric == "stdev_latency_ms";
    all.iter().filter(|_| is_deviation).find(is_of_it)?.value_low
}

/// Reason why the search does not go by `row`; empty where it does.
fn unused(
    row: &FigureRow,
    entry: &RowSource,
    format: Option<&str>,
    doubtful: &BTreeSet<&str>,
) -> &'static str {
    if row.value_low == Some(0.0) && row.value_high > Some(0.0) {
        "no more than an upper bound"
    } else if row.value_low.is_none_or(|low| low <= 0.0) {
        "not above 0"
    } else if doubtful.contains(row.id.as_str()) {
        "contradicts another figure"
    } else if format.is_some_and(|format| format != entry.setup.format) {
        "not fitted: of another format"
    } else if entry.loads() > 1 {
        "over several loads: compared, not fitted"
    } else {
        ""
    }
}

fn nothing_to_go_by(judged: &[JudgedFigure]) -> Error {
    let reasons: BTreeSet<&str> = judged.iter().map(|it| it.unused.as_str()).collect();
    let reasons: Vec<&str> = reasons.into_iter().filter(|reason| !reason.is_empty()).collect();
    let text = format!("none of {} figures can be fitted: {}", judged.len(), reasons.join("; "));
    Error::new(Kind::Input, text)
        .hint("`floatgate workloads` and `floatgate protocols` list the loads that can be fitted")
}

/// A fit under way.
struct Work<'a> {
    question: Question<'a>,
    candidates: &'a Candidates<'a>,
    table: &'a Table,
    start: Vec<f64>,
    watcher: &'a dyn Watcher,
}

/// A point, and what the protocols measure there; nothing where they were stopped.
struct VerifiedPoint {
    point: Vec<f64>,
    values: Option<Vec<Option<f64>>>,
}

impl Work<'_> {
    fn fit(&self, spec: &DriveSpec, contradictions: Vec<Contradiction>) -> Result<Fit, Error> {
        let shortcut = Shortcut::new(&self.table.work_used, spec, self.question.threads)
            .watched_by(self.watcher);
        let placing = self.candidates.placing(&shortcut, &self.start);
        let mut objective = Objective {
            candidates: self.candidates,
            shortcut: &shortcut,
            aims: &self.table.aims,
            corrections: vec![0.0; self.table.used.len()],
            ranged: true,
            placing: &placing,
            spacing: SPACING,
            watcher: self.watcher,
            evaluations: Mutex::default(),
            seen: Mutex::default(),
            failure: Mutex::default(),
        };
        let begun = self.verify(self.start.clone())?;
        correct(&mut objective, &begun)?;
        let effort = Effort { swarm: self.question.swarm, seed: self.question.seed };
        let found = search(&objective, &self.start, effort);
        let found = found.ok_or_else(|| taken(&objective))?;
        let best = self.improve(&mut objective, found)?;
        objective.ranged = false;
        let slopes = self.slopes(&objective, &best.point);
        let mut fit = self.outcome(&objective, (&begun, &best), &slopes)?;
        fit.contradictions = contradictions;
        fit.time_lapse_search = shortcut.time_lapse();
        fit.interrupted = self.watcher.stop();
        match objective.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(fit),
        }
    }

    /// Derivatives at `point`; zeroes, which determine nothing, where the fit was stopped.
    fn slopes(&self, objective: &Objective<'_>, point: &[f64]) -> DMatrix<f64> {
        let slopes = derivatives(objective, point);
        let is_empty = slopes.nrows() == 0;
        if is_empty { DMatrix::zeros(self.table.used.len(), point.len()) } else { slopes }
    }

    /// Runs the protocols at `point`.
    fn verify(&self, point: Vec<f64>) -> Result<VerifiedPoint, Error> {
        let spec = self.candidates.spec_at(&point).expect("only feasible points are verified");
        if self.watcher.stop() {
            return Ok(VerifiedPoint { point, values: None });
        }
        let (threads, watcher) = (self.question.threads, self.watcher);
        match self.table.work_used.values(&[spec], threads, &Relay(watcher)) {
            Ok(values) => Ok(VerifiedPoint { point, values: Some(values) }),
            Err(_) if self.watcher.stop() => Ok(VerifiedPoint { point, values: None }),
            Err(error) => Err(error),
        }
    }

    /// Values that the protocols measure at `point` for the figures that the search did not go by;
    /// absent where the protocols were stopped or give none.
    fn predicted(&self, point: &[f64]) -> Result<Vec<Option<f64>>, Error> {
        let spec = self.candidates.spec_at(point).expect("the best point is feasible");
        let nothing = || vec![None; self.table.others.len()];
        if self.watcher.stop() {
            return Ok(nothing());
        }
        let (threads, watcher) = (self.question.threads, self.watcher);
        let values = self.table.work_others.values(&[spec], threads, &Relay(watcher));
        if self.watcher.stop() { Ok(values.unwrap_or_else(|_| nothing())) } else { values }
    }

    /// Puts what the figures leave open back to its start, corrects the shortcut there, and makes
    /// the rest exact. Returns the better of both points.
    fn improve(
        &self,
        objective: &mut Objective<'_>,
        found: SearchPoint,
    ) -> Result<VerifiedPoint, Error> {
        if self.watcher.stop() {
            return Ok(VerifiedPoint { point: found.point, values: None });
        }
        (objective.ranged, objective.spacing) = (false, SPACING_EXACT);
        let slopes = self.slopes(objective, &found.point);
        let certainty = Confidence::of(&slopes, &found.residuals);
        objective.ranged = true;
        let mut point = found.point;
        let mut held = vec![false; point.len()];
        for axis in 0..point.len() {
            if certainty.is_undetermined(axis) && certainty.goes_with(axis).is_empty() {
                (point[axis], held[axis]) = (self.start[axis], true);
            }
        }
        if self.candidates.spec_at(&point).is_none() {
            point.clone_from(&self.start);
        }
        let first = self.verify(point)?;
        if first.values.is_none() {
            return Ok(first);
        }
        correct(objective, &first)?;
        let polished = polish(objective, &self.start, &first.point, &held);
        let Some(polished) = polished.filter(|it| it.point != first.point) else {
            return Ok(first);
        };
        let second = self.verify(polished.point)?;
        Ok(if loss(objective, &second) < loss(objective, &first) { second } else { first })
    }

    fn outcome(
        &self,
        objective: &Objective<'_>,
        (begun, best): (&VerifiedPoint, &VerifiedPoint),
        slopes: &DMatrix<f64>,
    ) -> Result<Fit, Error> {
        let estimated = || {
            let seen = objective.values(std::slice::from_ref(&best.point)).pop().flatten();
            seen.unwrap_or_else(|| vec![None; self.table.used.len()])
        };
        let values = best.values.clone().unwrap_or_else(estimated);
        let mut figures = self.table.judged.clone();
        for (position, index) in self.table.used.iter().enumerate() {
            figures[*index].start = begun.values.as_ref().and_then(|values| values[position]);
            figures[*index].fitted(values[position]);
        }
        for (index, value) in self.table.others.iter().zip(self.predicted(&best.point)?) {
            figures[*index].fitted(value);
        }
        let residuals = objective.judge(&values);
        let certainty = Confidence::of(slopes, &residuals);
        let places = (best.point.as_slice(), self.start.as_slice());
        let predicted = left_out(slopes, &residuals, &self.table.loads(), places);
        for ((index, aim), residual) in self.table.used.iter().zip(&self.table.aims).zip(predicted)
        {
            figures[*index].ratio_left_out = Some(aim.ratio(residual));
        }
        let error = |of: &dyn Fn(&JudgedFigure) -> bool| {
            let ratios = figures.iter().filter(|it| of(it)).filter_map(|it| it.ratio_left_out);
            median_size(ratios.map(|ratio| ratio - 1.0))
        };
        let used_alone = |it: &JudgedFigure| it.unused.is_empty();
        Ok(Fit {
            drive: self.noted(&best.point),
            assumed: self.question.assumed.map(str::to_owned),
            parameters: self.fitted(&best.point, &certainty, (slopes, &residuals)),
            left_out_error_median: error(&used_alone),
            left_out_rate_error_median: error(&JudgedFigure::is_rate),
            figures,
            contradictions: Vec::new(),
            evaluations: objective.evaluated(),
            time_lapse_search: 0,
            verified: best.values.is_some(),
            interrupted: false,
        })
    }

    /// Loads that together tell half of what is known of the number on `axis` or more, in the order
    /// of how much each tells.
    fn fixed_by(&self, axis: usize, slopes: &DMatrix<f64>, residuals: &[f64]) -> Vec<String> {
        let mut loads: Vec<(String, f64)> = Vec::new();
        for (index, share) in self.table.used.iter().zip(shares(slopes, residuals, axis)) {
            let load = self.table.judged[*index].load_text();
            match loads.iter_mut().find(|(other, _)| *other == load) {
                Some((_, sum)) => *sum += share,
                None => loads.push((load, share)),
            }
        }
        loads.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut sum = 0.0;
        let named = loads.into_iter().take_while(|(_, share)| {
            let is_short = sum < FIXED_SHARE_MIN;
            sum += share;
            is_short
        });
        named.map(|(load, _)| load).collect()
    }

    fn fitted(
        &self,
        point: &[f64],
        certainty: &Confidence,
        told: (&DMatrix<f64>, &[f64]),
    ) -> Vec<FittedNumber> {
        let parameters = self.candidates.parameters;
        let one = |axis: usize| {
            let (it, at) = (&parameters[axis], point[axis]);
            let others = certainty.goes_with(axis);
            let undetermined = certainty.is_undetermined(axis);
            FittedNumber {
                path: it.path.clone(),
                low: it.low,
                high: it.high,
                start: it.start,
                value: it.value(at),
                deviation: certainty.deviations[axis] * it.slope(at),
                undetermined,
                fixed_by: if undetermined {
                    Vec::new()
                } else {
                    self.fixed_by(axis, told.0, told.1)
                },
                goes_with: others.iter().map(|other| parameters[*other].path.clone()).collect(),
                at_bound: !(AT_BOUND..=1.0 - AT_BOUND).contains(&at),
            }
        };
        (0..parameters.len()).map(one).collect()
    }

    /// The drive's file at `point`, whose sources say what was fitted to what.
    fn noted(&self, point: &[f64]) -> String {
        let parameters = self.candidates.parameters;
        let mut file = self.candidates.file_at(point);
        let moved = parameters.iter().zip(point).filter(|(it, at)| it.is_moved(**at));
        let paths: Vec<&str> = moved.map(|(it, _)| it.path.as_str()).collect();
        let (rows, evidence) = (self.table.used.len(), self.question.evidence);
        let of =
            self.question.format.map_or(String::new(), |format| format!(" of format {format}"));
        file.note(&paths, |numbers| {
            let numbers = numbers.join(", ");
            format!("derived: {numbers} fitted to {rows} figures{of} in {evidence}")
        });
        let original = self.candidates.file.spec();
        if !paths.is_empty() && original.is_ok_and(|drive| drive.is_validated()) {
            file.claim_validated();
        }
        file.text()
    }
}

/// Takes out of `objective` how far the shortcut is off at a verified point.
fn correct(objective: &mut Objective<'_>, at: &VerifiedPoint) -> Result<(), Error> {
    let Some(values) = &at.values else { return Ok(()) };
    objective.corrections.fill(0.0);
    let seen = objective.values(std::slice::from_ref(&at.point)).pop().flatten();
    if seen.is_none() && objective.watcher.stop() {
        return Ok(());
    }
    let seen = seen.ok_or_else(|| taken(objective))?;
    for (index, (seen, known)) in seen.into_iter().zip(values).enumerate() {
        if let (Some(seen), Some(known)) = (seen, *known)
            && seen > 0.0
            && known > 0.0
        {
            objective.corrections[index] = (known / seen).ln();
        }
    }
    Ok(())
}

/// Loss of the protocols' values at a point; infinite where they were stopped.
fn loss(objective: &Objective<'_>, at: &VerifiedPoint) -> f64 {
    at.values
        .as_ref()
        .map_or(f64::INFINITY, |values| objective.judge(values).into_iter().map(robust).sum())
}

/// Passes progress of the protocols on.
struct Relay<'a>(&'a dyn Watcher);

impl Progress for Relay<'_> {
    fn moved(&self, event: &lab::progress::Event<'_>) {
        self.0.moved(event);
    }

    fn stop(&self) -> bool {
        self.0.stop()
    }
}

/// The failure that ended a search without any feasible point.
fn taken(objective: &Objective<'_>) -> Error {
    let mut failure = objective.failure.lock().unwrap_or_else(PoisonError::into_inner);
    failure.take().unwrap_or_else(|| {
        Error::new(Kind::Program, "the fit was stopped before the first drive was evaluated")
    })
}

#[cfg(test)]
pub(crate) mod tests;
