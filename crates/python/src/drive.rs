//! Drives, workloads and protocols by name, and drives as TOML.

use lab::library::{Item, Library};
use lab::ssd::{DriveSpec, Surroundings, catalogue};
use lab::subject::{Choice, Subject, find_drive_text};
use lab::wanted::TargetSetup;
use lab::workload::{Protocol, Workload};
use lab::{Error, Kind};
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::json;
use study::drive_file::DriveFile;
use toml_edit::Value;

use crate::failure::{exception, json, refused};

/// A drive as the package's Python half passes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DriveOrder {
    /// Name in the catalogue, path of its file, or a name for messages.
    pub(crate) name: String,
    /// Text of its file.
    pub(crate) text: String,
    /// Name of a format; absent: the first one.
    pub(crate) format: Option<String>,
    /// Name of a host driver; absent: the first one.
    pub(crate) host: Option<String>,
    /// Time lapse; absent: the drive's own.
    pub(crate) time_lapse: Option<u32>,
    /// Seed of every random stream.
    pub(crate) seed: u64,
    /// Air, power supply and a failure of a die; absent: as a review assumes.
    #[serde(default)]
    pub(crate) surroundings: Surroundings,
}

impl DriveOrder {
    /// Returns the specification of the drive.
    ///
    /// # Errors
    /// Fails if the text is not a valid drive file, and names the line.
    pub(crate) fn spec(&self) -> Result<DriveSpec, Error> {
        spec(&self.text, &self.name)
    }

    /// Returns the drive as the subject of a measurement.
    ///
    /// # Errors
    /// As [`Self::spec`].
    pub(crate) fn subject(&self) -> Result<Subject, Error> {
        Ok(Subject::Model { name: self.name.clone(), spec: Box::new(self.spec()?) })
    }

    /// Returns the requested setup.
    pub(crate) fn choice(&self) -> Choice {
        Choice {
            format: self.format.clone(),
            host: self.host.clone(),
            clients: None,
            time_lapse: self.time_lapse,
            time_lapse_max: None,
            surroundings: self.surroundings.clone(),
            precision: None,
        }
    }

    /// Returns the requested setup of a model.
    ///
    /// # Errors
    /// Fails if the drive lacks the format or host, and names it.
    pub(crate) fn model_setup(&self) -> Result<TargetSetup, Error> {
        self.subject()?.setup(&self.choice())
    }
}

/// Parses the text of a drive file, which messages call `name`.
///
/// # Errors
/// Fails if the text is not a valid drive file, and names the line.
pub(crate) fn spec(text: &str, name: &str) -> Result<DriveSpec, Error> {
    DriveSpec::parse(text, name)
        .map_err(|source| Error::new(Kind::Input, "reading a drive").source(source))
}

/// Names of the drives of the catalogue.
#[pyfunction]
pub(crate) fn drives() -> Vec<String> {
    catalogue::drives().into_iter().map(|drive| drive.name).collect()
}

/// Names and titles of the workloads, both built-in and the user's.
#[pyfunction]
pub(crate) fn workloads() -> Vec<(String, String)> {
    titles(|it: &Workload| it.title.clone())
}

/// Names and titles of the protocols, both built-in and the user's.
#[pyfunction]
pub(crate) fn protocols() -> Vec<(String, String)> {
    titles(|it: &Protocol| it.title.clone())
}

fn titles<T: Item>(title: impl Fn(&T) -> String) -> Vec<(String, String)> {
    let all = Library::of_user().all::<T>();
    all.iter().map(|entry| (entry.value.name().to_owned(), title(&entry.value))).collect()
}

/// Returns the text of a drive: `name` is its name in the catalogue, or the path of its TOML file.
#[pyfunction]
pub(crate) fn drive_text(name: &str) -> PyResult<String> {
    find_drive_text(name).map_err(|error| exception(&error))
}

/// Returns facts about the drive in `text` that are known before it runs, as JSON. Fails if the
/// text is not a valid drive file.
#[pyfunction]
pub(crate) fn drive_facts(name: &str, text: &str) -> PyResult<String> {
    let drive = spec(text, name).map_err(|error| exception(&error))?;
    let formats = drive.formats();
    let facts = drive.sheet(formats.first().map_or("", String::as_str)).into_iter().map(|fact| {
        json!({
            "group": fact.group,
            "name": fact.name,
            "value": fact.value,
            "source": fact.source,
        })
    });
    json(&json!({
        "sheet": facts.collect::<Vec<_>>(),
        "name": drive.name,
        "title": drive.title,
        "validated": drive.is_validated(),
        "formats": formats,
        "hosts": drive.hosts(),
        "time_lapse_default": drive.time_lapse_default(),
        "raw_capacity_gb": drive.raw_capacity().as_gb_f64(),
    }))
}

/// Returns the drive in `text` with another `value` at `key`, as text.
#[pyfunction]
pub(crate) fn drive_with(
    name: &str,
    text: &str,
    key: &str,
    value: &Bound<'_, PyAny>,
) -> PyResult<String> {
    let value = toml(key, value)?;
    let changed = || -> Result<String, Error> {
        let mut file = DriveFile::parse(text, name)?;
        file.replace(key, value)?;
        let refused = |source| Error::new(Kind::Input, format!("setting {key}")).source(source);
        file.spec().map_err(refused)?;
        Ok(file.text())
    };
    changed().map_err(|error| exception(&error))
}

/// Converts a Python value to a value of a drive file.
fn toml(key: &str, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(flag) = value.extract::<bool>() {
        return Ok(flag.into());
    }
    if let Ok(whole) = value.extract::<i64>() {
        return Ok(whole.into());
    }
    if let Ok(number) = value.extract::<f64>() {
        return Ok(number.into());
    }
    match value.extract::<String>() {
        Ok(text) => Ok(text.into()),
        Err(_) => Err(refused(
            format!("{key} is {value}, which is no number, text or truth value"),
            "give one value; `nand.t_program_us.1` is one of a list",
        )),
    }
}
