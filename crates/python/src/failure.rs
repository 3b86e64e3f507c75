//! Failures as exceptions that carry the remedy.

use std::error::Error as StdError;

use lab::{Error, Kind};
use pyo3::prelude::*;
use serde::de::DeserializeOwned;

mod python {
    //! The exception that the package's Python half defines.

    pyo3::import_exception!(floatgate._error, Error);
}

/// Phrases of remedies of the command, and the same in Python.
const IN_PYTHON: [(&str, &str); 9] = [
    ("`floatgate drives`", "`floatgate.drives()`"),
    ("`floatgate protocols`", "`floatgate.protocols()`"),
    ("`floatgate review iodrive-duo`", "`floatgate.review(drive)`"),
    ("`floatgate workloads`", "`floatgate.workloads()`"),
    ("a shorter --out", "a shorter `out`"),
    ("another --out", "another `out`"),
    ("give --recordings ", "pass `recordings=` "),
    ("or --free ", "or pass `free=` "),
    ("with --format and --host", "with `format=` and `host=`"),
];

/// A remedy in the words of this package: who has it may not have the command.
fn in_python(remedy: &str) -> String {
    IN_PYTHON.iter().fold(remedy.to_owned(), |remedy, (from, to)| remedy.replace(from, to))
}

/// The exception for a failure: its message with those of its causes, and its remedy.
pub(crate) fn exception(error: &Error) -> PyErr {
    let mut texts = vec![error.to_string()];
    let mut remedy = error.remedy().to_owned();
    let mut source = error.source();
    while let Some(cause) = source {
        texts.push(cause.to_string());
        if let Some(inner) = cause.downcast_ref::<Error>().filter(|it| !it.remedy().is_empty()) {
            inner.remedy().clone_into(&mut remedy);
        }
        source = cause.source();
    }
    python::Error::new_err((texts.join(": "), in_python(&remedy)))
}

/// The exception for invalid input, with a remedy.
pub(crate) fn refused(text: impl Into<String>, remedy: &str) -> PyErr {
    exception(&Error::new(Kind::Input, text).hint(remedy))
}

/// Parses an order from the package's Python half.
///
/// # Errors
/// Fails if a value is of the wrong type or out of range, and names it.
pub(crate) fn order<T: DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|source| {
        exception(&Error::new(Kind::Input, "reading the arguments").source(source))
    })
}

/// Serializes a value as JSON.
///
/// # Errors
/// Fails if the value has no form in JSON.
pub(crate) fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string_pretty(value)
        .map_err(|source| exception(&Error::new(Kind::Io, "writing a result").source(source)))
}
