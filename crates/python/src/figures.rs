//! Published figures that the caller gives, as a table of text.

use lab::results::published::{self, FigureRow};
use lab::{Error, Kind};
use serde::Deserialize;

/// A table of figures with the columns of `published/figures.csv`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figures {
    /// Name of the table in messages and sources.
    pub(crate) name: String,
    /// Text of the table: comma-separated values.
    pub(crate) text: String,
}

impl Figures {
    /// Rows of the table.
    ///
    /// # Errors
    /// Fails if a row is invalid, and names its line.
    pub(crate) fn rows(&self) -> Result<Vec<FigureRow>, Error> {
        published::parse(&self.text, &self.name).map_err(|source| {
            Error::new(Kind::Input, "reading published figures")
                .source(source)
                .hint("floatgate.figures(drive) returns rows of a valid table")
        })
    }
}
