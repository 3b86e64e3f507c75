//! Errors of writing and reading results.

use parquet::errors::ParquetError;
use thiserror::Error;

use crate::Run;

/// Error of writing or reading a result.
#[derive(Debug, Error)]
pub enum Error {
    /// `run.json` is not JSON, or not of this schema.
    #[error("run.json is not a result")]
    Json(#[source] serde_json::Error),
    /// The result holds a number that JSON cannot: no run writes one.
    #[error("the result would not be readable: a number in it is not finite")]
    NotFinite(#[source] serde_json::Error),
    /// `run.json` does not say which schema it follows.
    #[error("run.json has no schema version, this program reads {}", Run::SCHEMA)]
    NoSchema,
    /// `run.json` follows another schema.
    #[error("run.json has schema version {found}, this program reads {}", Run::SCHEMA)]
    OtherSchema {
        /// The version that it says it follows.
        found: u64,
    },
    /// A Parquet file could not be written or read.
    #[error("{table} is not a whole Parquet file, or could not be written")]
    Table {
        /// Name of the file.
        table: &'static str,
        /// Error of the Parquet library.
        source: ParquetError,
    },
    /// A Parquet file lacks a column, or has it in another type.
    #[error("{table} has no column `{column}` of {kind}")]
    NoColumn {
        /// Name of the file.
        table: &'static str,
        /// Name of the column.
        column: &'static str,
        /// Type that its values should have.
        kind: &'static str,
    },
    /// A Parquet file has rows that belong to no step.
    #[error("{table} has rows of step `{step}`, which run.json does not have")]
    NoStep {
        /// Name of the file.
        table: &'static str,
        /// Name of the step.
        step: String,
    },
}
