//! Runs side by side.

use lab::results::Run;
use lab::results::compare::{compare, differences};
use lab::results::order::orders;
use lab::results::repeats::groups;
use pyo3::prelude::*;
use serde_json::json as value;

use crate::failure::json;
use crate::run::RunData;

/// The loads of several runs beside each other, their order and what else differs, as JSON.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of Python are handed over")]
pub(crate) fn compare_runs(runs: Vec<PyRef<'_, RunData>>) -> PyResult<String> {
    let runs: Vec<&Run> = runs.iter().map(|it| it.run()).collect();
    let loads = compare(&runs);
    json(&value!({
        "loads": loads,
        "orders": orders(&loads, &groups(&runs)),
        "differences": differences(&runs),
    }))
}

/// One page on several runs.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of Python are handed over")]
pub(crate) fn compare_html(runs: Vec<PyRef<'_, RunData>>) -> String {
    let runs: Vec<Run> = runs.iter().map(|it| it.run().clone()).collect();
    let mut titles: Vec<String> = Vec::new();
    for title in runs.iter().map(|run| run.target.heading()) {
        if !titles.contains(&title) {
            titles.push(title);
        }
    }
    report::review(&runs, &titles.join(" against "))
}
