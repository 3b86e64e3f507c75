//! Studies that consist of many measurements.
//!
//! ```text
//!   published figures ──► validate ──► what a model misses ──► fit ──► drive file
//!   statements on order and ratios ──► rankings ──► hold, tie or fail
//!   data sheet, a drive of its class ──► a drive file
//!   one drive, a grid of its parameters and loads ──► sweep ──► a table and a page
//! ```

pub mod datasheet;
pub mod drive_file;
pub mod fit;
pub mod rankings;
pub mod sweep;
pub mod validate;
