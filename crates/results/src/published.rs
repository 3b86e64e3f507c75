//! Published figures: what reviews and data sheets say of a drive, row by row.
//!
//! The project's own table is `published/figures.csv`, embedded; a user's table has the same
//! columns. Which step of which protocol a row was measured with is the lab's to find; a
//! [`Reading`] says where in a run of it the value stands:
//!
//! | phase | what of a run it is compared with |
//! |---|---|
//! | `burst` | the start of the preconditioning, see [`Part::Burst`], or a measurement in burst |
//! | `precondition-end` | the last steady-state window of the preconditioning |
//! | `steady` | the same; for a workload that is only measured, its measurement |
//! | `primary` | the measurement at those threads and queue |
//! | `datasheet` | the best of several loads: the highest rate, the lowest latency |
//! | `datasheet-sustained` | the same on a settled drive |
//!
//! A mode names a format, or what the data is like: `uncompressed`, or a ratio as
//! `compressed-2:1`, see [`compressible`].
//!
//! A value of which only an upper bound was published has 0 as its lower end: a run may contradict
//! it, but is no better for keeping it, so no fit and no median error counts it.
//!
//! Over a range of loads, such as threads `2-16`, the median is compared, of a maximum the largest.
//! Latency and deviation are those of the reviews: the average is over reads and writes together,
//! the deviation is the mean of theirs.

mod condition;
mod figure;
mod peers;
mod property;
mod reading;
mod row;

use std::sync::LazyLock;

use thiserror::Error;

pub use self::condition::{Loads, Metric, Range, compressible, is_of};
pub use self::figure::Figure;
pub use self::peers::{Peer, peers};
pub use self::property::{Property, data_sheet, properties, property};
pub use self::reading::{
    ANY, Over, Part, Reading, burst, is_from_listed_stalls, is_typical, tolerance,
};
pub use self::row::{Confidence, FigureRow, Phase};

use crate::price::Price;

/// Name of the project's own table.
pub const FILE: &str = "published/figures.csv";
/// The table as it stands in its file.
pub const TEXT: &str = include_str!("../published/figures.csv");

/// Error in a table of figures.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}:{line}: {text}")]
pub struct FiguresError {
    /// File, as it was named by the caller.
    pub file: String,
    /// Line from 1.
    pub line: u64,
    /// Name of the column; empty where the whole line is meant.
    pub column: String,
    /// Description of what is wrong and what would be right.
    pub text: String,
}

/// Name of the table of data sheets of today's drives, from which their files are made.
pub const DATASHEETS_FILE: &str = "published/datasheets.csv";
/// The table of data sheets as it stands in its file.
pub const DATASHEETS: &str = include_str!("../published/datasheets.csv");

/// Metric of the rows of prices, in US dollars.
const PRICE_METRIC: &str = "price_usd";

/// Reads a table of figures; `file` names it in errors.
///
/// # Errors
/// Says file, line, column and what would be right.
pub fn parse(text: &str, file: &str) -> Result<Vec<FigureRow>, FiguresError> {
    row::parse(text, file)
}

/// Every row of the project's own table, in its order.
pub fn figures() -> &'static [FigureRow] {
    static FIGURES: LazyLock<Vec<FigureRow>> =
        LazyLock::new(|| parse(TEXT, FILE).expect("a test reads the embedded table"));
    &FIGURES
}

/// Every row of the table of data sheets, in its order.
pub fn datasheets() -> &'static [FigureRow] {
    static ROWS: LazyLock<Vec<FigureRow>> = LazyLock::new(|| {
        parse(DATASHEETS, DATASHEETS_FILE).expect("a test reads the embedded table")
    });
    &ROWS
}

/// The rows of `figures` about the drive known as `device` with `capacity_gb` on its label.
pub fn figures_for<'a>(
    figures: &'a [FigureRow],
    device: &str,
    capacity_gb: f64,
) -> impl Iterator<Item = &'a FigureRow> {
    figures.iter().filter(move |row| {
        let same_size = |gb: f64| (gb - capacity_gb).abs() < 0.5;
        row.device == device && row.capacity_gb.is_some_and(same_size)
    })
}

/// Price that the table of data sheets has of the drive known as `device` with `capacity_gb` on its
/// label; its note begins with the date.
pub fn price(device: &str, capacity_gb: f64) -> Option<Price> {
    let mut rows = figures_for(datasheets(), device, capacity_gb);
    let is_price =
        |row: &&FigureRow| row.metric == PRICE_METRIC && row.confidence != Confidence::Garbled;
    let row = rows.find(is_price)?;
    let date = row.note.split(';').next()?.trim();
    let price: Price = format!("{}USD@{date}", row.value_low?).parse().ok()?;
    Some(Price { source: row.document.clone(), ..price })
}

#[cfg(test)]
mod tests;
