//! What a drive is: a TOML file.

use thiserror::Error;

/// A drive of the catalogue, or a user's own.
#[derive(Clone, Debug, PartialEq)]
pub struct DriveSpec {
    /// Name in the catalogue, such as `iodrive-duo`.
    pub name: String,
    /// Heading on a report.
    pub title: String,
}

/// One row of the specification sheet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Group, such as `NAND`.
    pub group: String,
    /// What it is.
    pub name: String,
    /// Value with its unit.
    pub value: String,
    /// `published`, `derived` or `estimated`, then where from.
    pub source: String,
}

/// Why a text is not a drive, or a setup not one of its own.
#[derive(Debug, Error)]
#[error("{file}: {text}")]
pub struct SpecError {
    /// File, with line where known.
    pub file: String,
    /// What is wrong and what would be right.
    pub text: String,
}

impl DriveSpec {
    /// Reads a drive from the text of a TOML file; `file` names it in errors.
    pub fn parse(text: &str, file: &str) -> Result<Self, SpecError> {
        Err(SpecError { file: file.into(), text: format!("{} bytes not understood", text.len()) })
    }

    /// Names of its formats, the default one first.
    pub fn formats(&self) -> Vec<String> {
        vec!["stock".into(), "high-performance".into()]
    }

    /// Names of its host drivers, the default one first.
    pub fn hosts(&self) -> Vec<String> {
        vec!["linux".into(), "windows".into()]
    }

    /// Name by which `published/figures.csv` knows the drive, and its label capacity in GB.
    pub fn published_as(&self) -> Option<(&str, f64)> {
        Some(("Fusion-io ioDrive Duo MLC", 640.0))
    }

    /// Time lapse at which it still holds its settled figures.
    pub fn time_lapse_default(&self) -> u32 {
        32
    }

    /// Specification sheet in one format.
    pub fn sheet(&self, format: &str) -> Vec<Fact> {
        vec![Fact {
            group: "Capacity".into(),
            name: "Format".into(),
            value: format.into(),
            source: "published".into(),
        }]
    }

    /// What is known of one host driver and the machine around it, for the test platform.
    pub fn host_sheet(&self, host: &str) -> Vec<(String, String)> {
        vec![("Driver".into(), host.into())]
    }
}
