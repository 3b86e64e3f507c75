//! Validation: models compared with published figures.

use lab::results::published::{self, FigureRow};
use lab::ssd::DriveSpec;
use lab::{Error, Kind};
use pyo3::prelude::*;
use serde::Deserialize;
use study::fit::cross::{
    CrossQuestion, CrossValidation, cross_validate, drives_cross_validated, modelled,
};
use study::rankings::{JudgedStatement, RankingQuestion, judge, parse, statements};
use study::validate::{Bench, Row, Tally, is_about, plans, plans_of_figures, validate};

use crate::drive::spec;
use crate::failure::{exception, json, order};
use crate::figures::Figures;
use crate::work::{Observer, detached};

/// Order of a validation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ValidateOrder {
    /// Names and texts of the drives' files.
    drives: Vec<(String, String)>,
    /// Figures; absent: the project's own.
    figures: Option<Figures>,
    /// Indices of the rows of the table to compare; absent: all.
    rows: Option<Vec<usize>>,
}

impl ValidateOrder {
    fn specs(&self) -> Result<Vec<DriveSpec>, Error> {
        self.drives.iter().map(|(name, text)| spec(text, name)).collect()
    }

    fn table(&self) -> Result<Vec<FigureRow>, Error> {
        let all = match &self.figures {
            Some(figures) => figures.rows()?,
            None => published::figures().to_vec(),
        };
        let Some(wanted) = &self.rows else { return Ok(all) };
        let row = |index: &usize| {
            all.get(*index).cloned().ok_or_else(|| {
                Error::new(Kind::Input, format!("row {index} of a table of {}", all.len()))
            })
        };
        wanted.iter().map(row).collect()
    }

    /// Index of the first drive that each row is about, or nothing for a row about none.
    fn owners(&self) -> Result<Vec<Option<usize>>, Error> {
        let specs = self.specs()?;
        let owner = |row: &FigureRow| specs.iter().position(|spec| is_about(row, spec));
        Ok(self.table()?.iter().map(owner).collect())
    }

    /// Predicts each family of the figures of each drive from the others.
    fn cross(&self, jobs: usize, observer: &Observer) -> Result<Vec<CrossValidation>, Error> {
        let (table, plans) = (self.table()?, plans()?);
        let of_drive = |(name, text): &(String, String)| {
            let drives = [spec(text, name)?];
            let rows: Vec<&FigureRow> =
                table.iter().filter(|row| is_about(row, &drives[0])).collect();
            let bench = Bench { drives: &drives, plans: &plans, threads: jobs };
            let modelled = modelled(&drives[0].name, &validate(&rows, bench, observer)?);
            let question = CrossQuestion {
                drive: &drives[0].name,
                text,
                figures: &rows,
                modelled: &modelled,
                plans: &plans,
                threads: jobs,
            };
            cross_validate(question, observer)
        };
        self.drives.iter().map(of_drive).collect()
    }

    fn carry_out(&self, jobs: usize, observer: &Observer) -> Result<Vec<Row>, Error> {
        let (specs, table, mut plans) = (self.specs()?, self.table()?, plans()?);
        let rows: Vec<&FigureRow> = table.iter().collect();
        if self.figures.is_some() {
            plans.extend(plans_of_figures(&rows, &plans));
        }
        validate(&rows, Bench { drives: &specs, plans: &plans, threads: jobs }, observer)
    }
}

/// Order of a judgement of rankings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RankingOrder {
    /// Names and texts of the drives' files; empty: the catalogue.
    drives: Vec<(String, String)>,
    /// Path and text of the table of statements; absent: the project's own.
    statements: Option<(String, String)>,
}

impl RankingOrder {
    fn carry_out(&self, jobs: usize, observer: &Observer) -> Result<Vec<JudgedStatement>, Error> {
        let given = match &self.statements {
            Some((path, text)) => parse(text, path)?,
            None => statements(),
        };
        let named = self.drives.iter().map(|(name, text)| spec(text, name));
        let asked = RankingQuestion::new(given, named.collect::<Result<_, _>>()?)?;
        judge(&asked.statements, &asked.drives, jobs, observer)
    }
}

/// Judges statements on the order of drives, `jobs` simulations at once. Returns a list of
/// verdicts as JSON.
#[pyfunction]
#[pyo3(signature = (order_json, jobs, progress=None))]
pub(crate) fn judge_rankings(
    py: Python<'_>,
    order_json: &str,
    jobs: usize,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let asked: RankingOrder = order(order_json)?;
    json(&detached(py, progress, |observer| asked.carry_out(jobs, observer))?)
}

/// Index of the first drive that each row of figures is about, or nothing for a row about none.
#[pyfunction]
pub(crate) fn figure_owners(order_json: &str) -> PyResult<Vec<Option<usize>>> {
    let asked: ValidateOrder = order(order_json)?;
    asked.owners().map_err(|error| exception(&error))
}

/// Median error of the rates and average latencies that were measured, of rows as JSON; nothing
/// where there are none.
#[pyfunction]
pub(crate) fn error_median(rows_json: &str) -> PyResult<Option<f64>> {
    let rows: Vec<Row> = order(rows_json)?;
    Ok(Tally::of(rows.iter().filter(|row| row.is_measured())).typical.error_median)
}

/// Compares rows of figures with the drives, `jobs` simulations at once. Returns a list of rows as
/// JSON.
#[pyfunction]
#[pyo3(signature = (order_json, jobs, progress=None))]
pub(crate) fn validate_drives(
    py: Python<'_>,
    order_json: &str,
    jobs: usize,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let asked: ValidateOrder = order(order_json)?;
    json(&detached(py, progress, |observer| asked.carry_out(jobs, observer))?)
}

/// Cross-validates drives, `jobs` simulations at once. Returns a list of results as JSON.
#[pyfunction]
#[pyo3(signature = (order_json, jobs, progress=None))]
pub(crate) fn cross_validate_drives(
    py: Python<'_>,
    order_json: &str,
    jobs: usize,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let asked: ValidateOrder = order(order_json)?;
    json(&detached(py, progress, |observer| asked.cross(jobs, observer))?)
}

/// Names of the drives that are cross-validated where none is named.
#[pyfunction]
pub(crate) fn drives_to_cross_validate() -> Vec<&'static str> {
    drives_cross_validated()
}

/// The text of the project's own table of published figures.
#[pyfunction]
pub(crate) fn figures_text() -> &'static str {
    published::TEXT
}
