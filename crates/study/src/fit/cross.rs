//! Cross-validation of a drive's model: one family of figures at a time is left out, the free
//! parameters are fitted again to the others, and the family is predicted.
//!
//! ```text
//! neutral start, slopes there ──┬─► without family A: refit ──► A predicted
//! (short runs, shared by all)   ├─► without family B: refit ──► B predicted
//!                               └─► with all of them ──► what each parameter rests on
//! ```
//!
//! Looks are those of the shortcut of a fit. How far they are off the protocols is known at the
//! numbers of the drive's file, and taken out of every figure.

mod family;
mod free_parameters;
mod refit;
mod scaled_drive;
mod tally;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use lab::plan::Plan;
use lab::progress::Progress;
use lab::{Error, Kind};
use nalgebra::DMatrix;
use results::published::FigureRow;
use serde::{Deserialize, Serialize};
use ssd::DriveSpec;
use toml_edit::Value;
use workload::catalogue::find_workload;

use self::free_parameters::{Tie, free_parameters};
use self::refit::{FigureResiduals, Refit, refit};
use self::scaled_drive::scaled_drive;
use super::confidence::Confidence;
use super::figures::contradictions;
use super::objective::Aim;
use super::outcome::JudgedFigure;
use super::parameter::{Parameter, of_spec};
use super::shortcut::Shortcut;
use crate::drive_file::DriveFile;
use crate::validate::{Row, WorkList, is_typical};

pub use self::family::family;
pub use self::free_parameters::{drives_cross_validated, is_space_chosen};
pub use self::tally::{CrossTally, loads, tally, tally_estimated};

/// Centre of a range, from which every refit starts.
const CENTRE: f64 = 0.5;
/// Distance over which slopes are taken, as a share of a range.
const STEP: f64 = 0.04;
/// Distance of the values that are looked at of a number that changes where data lies.
const LATTICE: f64 = 1.0 / 16.0;
/// Figures of estimated workloads that weigh as much as one of a published workload. They scatter
/// three times as widely around a model, since the estimate of the workload is wrong as well.
const ESTIMATED_PER_PUBLISHED: usize = 9;
/// Residual of a figure of which the model gives no value.
const MISSING: f64 = 50.0;

/// Input of a cross-validation.
#[derive(Clone, Copy, Debug)]
pub struct CrossQuestion<'a> {
    /// Name of the drive.
    pub drive: &'a str,
    /// Text of its file.
    pub text: &'a str,
    /// Published figures, in which those about the drive are found.
    pub figures: &'a [&'a FigureRow],
    /// Values that the protocols give at the file's own numbers, by the names of the rows; see
    /// [`modelled`].
    pub modelled: &'a BTreeMap<String, f64>,
    /// Plans that express the figures.
    pub plans: &'a [Plan],
    /// Looks at once.
    pub threads: usize,
}

/// The values of a validation for rates and average latencies of `drive` that were measured, by
/// the names of their rows.
pub fn modelled(drive: &str, rows: &[Row]) -> BTreeMap<String, f64> {
    let typical = rows.iter().filter(|row| row.is_measured() && is_typical(&row.metric));
    let of_drive = typical.filter_map(|row| Some((row, row.compared()?)));
    of_drive
        .filter(|(_, compared)| compared.drive == drive)
        .map(|(row, compared)| (row.id.clone(), compared.modelled))
        .collect()
}

/// Result of a cross-validation of one drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrossValidation {
    /// Name of the drive.
    pub drive: String,
    /// Version of the models that it was computed with.
    pub model_version: u32,
    /// Its free parameters.
    pub numbers: Vec<CrossNumber>,
    /// Its measured rates and average latencies.
    pub rows: Vec<CrossRow>,
    /// Drives that were looked at.
    pub looks: usize,
}

/// Free parameter of a drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrossNumber {
    /// Key of the number in the drive's file.
    pub key: String,
    /// Least value allowed.
    pub low: f64,
    /// Greatest value allowed.
    pub high: f64,
    /// Value at the neutral start.
    pub start: f64,
    /// Value that a refit to all figures finds from there.
    pub refitted: f64,
    /// Value in the drive's file.
    pub file: f64,
    /// Families, with rows in brackets, without which next to nothing is known of the number;
    /// `nothing` where even all of them tell nothing, or the numbers that it is known only together
    /// with. Empty for a number that does not rest on one family.
    pub rests_on: Vec<String>,
}

/// One figure, predicted without its family.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrossRow {
    /// Name of the row.
    pub id: String,
    /// Family that it was left out with.
    pub family: String,
    /// Metric, whose name implies the unit.
    pub metric: String,
    /// True if the workload was not published: its mix is an estimate.
    pub estimated: bool,
    /// Published value, lower end.
    pub low: f64,
    /// Published value, upper end.
    pub high: f64,
    /// Value of the drive's file, which was fitted with the figure in view.
    pub fitted: f64,
    /// Its error: the distance of fitted over published from 1.
    pub fitted_error: f64,
    /// Value predicted without the family.
    pub predicted: f64,
    /// Its error, alike.
    pub error: f64,
}

/// Cross-validates one drive.
///
/// # Errors
/// Fails if it has no free parameters, or its figures are of one family; if a model failed, or it
/// was stopped.
pub fn cross_validate(
    question: CrossQuestion<'_>,
    progress: &dyn Progress,
) -> Result<CrossValidation, Error> {
    let file = DriveFile::parse(question.text, &format!("{}.toml", question.drive))?;
    let spec = file.spec();
    let spec =
        spec.map_err(|source| Error::new(Kind::Input, "reading the drive").source(source))?;
    let (fits, ties) = free_parameters(&spec)?;
    let numbers = file.numbers();
    let parameters = fits.iter().map(|fit| of_spec(&file, &numbers, fit));
    let parameters = parameters.collect::<Result<Vec<_>, _>>()?;
    let subjects = subjects(question, spec.device_count());
    let families: BTreeSet<&str> = subjects.iter().map(|it| it.family.as_str()).collect();
    if families.len() < 2 {
        let text = format!("{} has figures of {} families", question.drive, families.len());
        return Err(Error::new(Kind::Input, text)
            .hint("a cross-validation needs measured rates or average latencies of two"));
    }
    let rows: Vec<&FigureRow> = subjects.iter().map(|it| it.row).collect();
    let work_list = WorkList::new(&rows, std::slice::from_ref(&spec), question.plans);
    let scaled = scaled_drive(spec.clone());
    let shortcut = Shortcut::new(&work_list, &scaled, question.threads);
    let seen = FigureLandscape {
        file: &file,
        parameters: &parameters,
        ties,
        shortcut: &shortcut,
        aims: aims(&subjects, &work_list),
        corrections: corrections(&shortcut, &scaled, &subjects)?,
        placing: Vec::new(),
        progress,
        known: RefCell::default(),
        looks: Cell::new(1),
    };
    let seen = FigureLandscape { placing: seen.placing(), ..seen };
    seen.crossed(&spec.name, &subjects, &families)
}

/// One figure that is predicted.
struct PredictedFigure<'a> {
    row: &'a FigureRow,
    family: String,
    estimated: bool,
    fitted: f64,
    /// False if it contradicts another one: it is predicted, and tells nothing.
    is_sound: bool,
}

impl PredictedFigure<'_> {
    /// Distance of `value` over published, or over the nearer end of a range, from 1.
    fn error(&self, value: f64) -> f64 {
        let (low, high) = self.ends();
        (value / value.clamp(low, high) - 1.0).abs()
    }

    fn ends(&self) -> (f64, f64) {
        let low = self.row.value_low.unwrap_or(0.0);
        (low, self.row.value_high.unwrap_or(low))
    }
}

/// The figures that a validation gave values for.
fn subjects(question: CrossQuestion<'_>, devices: u32) -> Vec<PredictedFigure<'_>> {
    let contradictions = contradictions(question.figures, devices);
    let doubtful: BTreeSet<&str> =
        contradictions.iter().flat_map(|it| &it.rows).map(String::as_str).collect();
    let rows = question.figures.iter().enumerate().filter_map(|(index, row)| {
        let fitted = *question.modelled.get(&row.id)?;
        let is_new = !question.figures[..index].iter().any(|before| is_repeated(before, row));
        (is_new && row.value_low? > 0.0).then(|| PredictedFigure {
            row,
            family: family(row),
            estimated: is_estimated(&row.workload),
            fitted,
            is_sound: !doubtful.contains(row.id.as_str()),
        })
    });
    rows.collect()
}

/// True if `row` says again what `before` says: a review that repeats a figure in its conclusion
/// has measured it once.
fn is_repeated(before: &FigureRow, row: &FigureRow) -> bool {
    let (id, note) = (row.id.clone(), row.note.clone());
    FigureRow { id, confidence: row.confidence, note, ..before.clone() } == *row
}

/// True if the source of the workload named `name` says that its mix is an estimate.
fn is_estimated(name: &str) -> bool {
    find_workload(name).is_some_and(|workload| workload.source.starts_with("estimated"))
}

/// Aims of the subjects; those that state one fact share its weight, and those of estimated
/// workloads weigh less.
fn aims(subjects: &[PredictedFigure<'_>], work_list: &WorkList) -> Vec<Aim> {
    let judged = subjects.iter().zip(work_list.entries()).map(|(subject, entry)| {
        let setup = entry.as_ref().map(|it| format!("{} {}", it.setup.format, it.setup.host));
        JudgedFigure { setup: setup.unwrap_or_default(), ..JudgedFigure::new(subject.row) }
    });
    let judged: Vec<JudgedFigure> = judged.collect();
    let alike =
        |one: &JudgedFigure| judged.iter().filter(|other| other.fact() == one.fact()).count();
    let aims = subjects.iter().zip(&judged).map(|(it, judged)| {
        let sharing = if it.estimated { ESTIMATED_PER_PUBLISHED } else { 1 };
        Aim::new(it.row, alike(judged) * sharing)
    });
    aims.map(|aim| aim.expect("subjects are above 0")).collect()
}

/// Logarithms of what the protocols give over what looks give, at the numbers of the file.
fn corrections(
    shortcut: &Shortcut<'_>,
    spec: &DriveSpec,
    subjects: &[PredictedFigure<'_>],
) -> Result<Vec<f64>, Error> {
    let seen = shortcut.values(&[Some(spec.clone())])?.pop().flatten().unwrap_or_default();
    let of = |(subject, seen): (&PredictedFigure<'_>, Option<f64>)| match seen {
        Some(seen) if seen > 0.0 && subject.fitted > 0.0 => (subject.fitted / seen).ln(),
        _ => 0.0,
    };
    Ok(subjects.iter().zip(seen).map(of).collect())
}

/// Figures of a drive as looks show them, as a landscape over its free parameters.
struct FigureLandscape<'a> {
    file: &'a DriveFile,
    parameters: &'a [Parameter],
    ties: &'static [Tie],
    shortcut: &'a Shortcut<'a>,
    aims: Vec<Aim>,
    corrections: Vec<f64>,
    /// Numbers that change where data lies.
    placing: Vec<bool>,
    progress: &'a dyn Progress,
    /// Values at the points that were looked at.
    known: RefCell<BTreeMap<Vec<u64>, Option<Vec<f64>>>>,
    looks: Cell<usize>,
}

impl FigureLandscape<'_> {
    fn crossed(
        &self,
        drive: &str,
        subjects: &[PredictedFigure<'_>],
        families: &BTreeSet<&str>,
    ) -> Result<CrossValidation, Error> {
        let start = vec![CENTRE; self.parameters.len()];
        let begun = Refit::at(self, &start, STEP)?.ok_or_else(|| {
            let text = format!("{drive} is not a valid drive at the centres of its ranges");
            Error::new(Kind::Input, text)
        })?;
        let known = |left_out: Option<&str>| -> Vec<bool> {
            let told =
                |it: &PredictedFigure<'_>| it.is_sound && Some(it.family.as_str()) != left_out;
            subjects.iter().map(told).collect()
        };
        let whole = refit(self, &begun, &known(None), STEP)?;
        let mut rows = Vec::new();
        for family in families {
            let found = refit(self, &begun, &known(Some(family)), STEP)?;
            let values = self.values(&found.point)?.unwrap_or_default();
            let of_family = subjects.iter().zip(values).filter(|(it, _)| it.family == *family);
            rows.extend(of_family.map(|(subject, predicted)| row(subject, predicted)));
        }
        rows.sort_by(|a, b| a.id.cmp(&b.id));
        let numbers = (0..start.len()).map(|axis| self.number(axis, &whole, subjects, families));
        Ok(CrossValidation {
            drive: drive.to_owned(),
            model_version: ssd::MODEL_VERSION,
            numbers: numbers.collect(),
            rows,
            looks: self.looks.get(),
        })
    }

    fn number(
        &self,
        axis: usize,
        whole: &Refit,
        subjects: &[PredictedFigure<'_>],
        families: &BTreeSet<&str>,
    ) -> CrossNumber {
        let it = &self.parameters[axis];
        CrossNumber {
            key: it.path.clone(),
            low: rounded(it.low),
            high: rounded(it.high),
            start: rounded(it.value(CENTRE)),
            refitted: rounded(it.value(whole.point[axis])),
            file: it.start,
            rests_on: rests_on(axis, whole, self.parameters, subjects, families),
        }
    }

    /// Drive at `point`; nothing where it is not feasible.
    fn spec_at(&self, point: &[f64]) -> Option<DriveSpec> {
        let mut file = self.file.clone();
        for (parameter, at) in self.parameters.iter().zip(point) {
            file.replace(&parameter.path, parameter.toml(*at)).ok()?;
        }
        let numbers = if self.ties.is_empty() { Vec::new() } else { file.numbers() };
        for tie in self.ties {
            let value = |key: &str| numbers.iter().find(|it| it.key == key).map(|it| it.value);
            let terms = tie.terms.iter().map(|(key, times)| Some(times * value(key)?));
            let sum: f64 = terms.sum::<Option<f64>>()?;
            file.replace(tie.key, Value::from(sum)).ok()?;
        }
        file.spec().ok().map(scaled_drive)
    }

    /// Numbers that change where data lies when they leave the centre: a flag for each.
    fn placing(&self) -> Vec<bool> {
        let centre = vec![CENTRE; self.parameters.len()];
        let placements = |point: &[f64]| self.shortcut.placements(&self.spec_at(point)?);
        let before = placements(&centre);
        let is_placing = |axis: usize| {
            [0.0, 1.0].into_iter().any(|at| {
                let mut point = centre.clone();
                point[axis] = at;
                placements(&point).is_some_and(|there| Some(&there) != before.as_ref())
            })
        };
        (0..centre.len()).map(is_placing).collect()
    }

    /// Values of all figures at `point`, corrected; 0 where the model gives none.
    fn values(&self, point: &[f64]) -> Result<Option<Vec<f64>>, Error> {
        let key: Vec<u64> = point.iter().map(|at| at.to_bits()).collect();
        if let Some(known) = self.known.borrow().get(&key) {
            return Ok(known.clone());
        }
        if self.progress.stop() {
            return Err(Error::new(Kind::Program, "stopped before the cross-validation was done"));
        }
        self.looks.set(self.looks.get() + 1);
        let seen = self.shortcut.values(&[self.spec_at(point)])?.pop().flatten();
        let corrected = |(seen, by): (Option<f64>, &f64)| seen.map_or(0.0, |seen| seen * by.exp());
        let values: Option<Vec<f64>> =
            seen.map(|seen| seen.into_iter().zip(&self.corrections).map(corrected).collect());
        self.known.borrow_mut().insert(key, values.clone());
        Ok(values)
    }
}

impl FigureResiduals for FigureLandscape<'_> {
    type Error = Error;

    fn residuals(&self, point: &[f64]) -> Result<Option<Vec<f64>>, Error> {
        let residual = |(aim, value): (&Aim, f64)| {
            if value > 0.0 { aim.residual(value, true) } else { MISSING }
        };
        let values = self.values(point)?;
        Ok(values.map(|values| self.aims.iter().zip(values).map(residual).collect()))
    }

    fn spacing(&self, axis: usize) -> Option<f64> {
        self.placing[axis].then_some(LATTICE)
    }
}

fn row(subject: &PredictedFigure<'_>, predicted: f64) -> CrossRow {
    let (low, high) = subject.ends();
    CrossRow {
        id: subject.row.id.clone(),
        family: subject.family.clone(),
        metric: subject.row.metric.clone(),
        estimated: subject.estimated,
        low,
        high,
        fitted: rounded(subject.fitted),
        fitted_error: rounded(subject.error(subject.fitted)),
        predicted: rounded(predicted),
        error: rounded(subject.error(predicted)),
    }
}

/// Families, else loads, without which next to nothing is known of the number on `axis`.
fn rests_on(
    axis: usize,
    whole: &Refit,
    parameters: &[Parameter],
    subjects: &[PredictedFigure<'_>],
    families: &BTreeSet<&str>,
) -> Vec<String> {
    let is_open = |told: &dyn Fn(&PredictedFigure<'_>) -> bool| {
        let told = |index: &usize| subjects[*index].is_sound && told(&subjects[*index]);
        let rows: Vec<usize> = (0..subjects.len()).filter(told).collect();
        let slopes = DMatrix::from_fn(rows.len(), whole.point.len(), |row, axis| {
            whole.slopes[(rows[row], axis)]
        });
        let residuals: Vec<f64> = rows.iter().map(|row| whole.residuals[*row]).collect();
        Confidence::of(&slopes, &residuals).is_undetermined(axis)
    };
    if is_open(&|_| true) {
        return alone_unknown(axis, whole, parameters);
    }
    let mut found = Vec::new();
    for family in families {
        if !is_open(&|it| it.family != *family) {
            continue;
        }
        let of_family = subjects.iter().filter(|it| it.family == *family);
        let rows =
            of_family.map(|it| it.row.id.as_str()).filter(|id| is_open(&|it| it.row.id != *id));
        let rows: Vec<&str> = rows.collect();
        found.push(match rows.as_slice() {
            [] => (*family).to_owned(),
            rows => format!("{family} ({})", rows.join(", ")),
        });
    }
    found
}

/// Rest of the number on `axis` that all figures leave open: all of it, or all but what it makes
/// together with others.
fn alone_unknown(axis: usize, whole: &Refit, parameters: &[Parameter]) -> Vec<String> {
    let certainty = Confidence::of(&whole.slopes, &whole.residuals);
    let others = certainty.goes_with(axis);
    let others: Vec<&str> = others.iter().map(|other| parameters[*other].path.as_str()).collect();
    if others.is_empty() {
        return vec!["nothing".to_owned()];
    }
    vec![format!("only together with {}", others.join(", "))]
}

/// Five digits: more are noise.
fn rounded(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests;
