//! Text of blkparse in its default format (`blkparse(1)`).
//!
//! ```text
//! 8,0    3       11     0.009507758   697  Q   W 223490 + 8 [kjournald]
//! device cpu     number seconds       pid  action, direction, sector + sectors [process]
//! ```
//!
//! A request appears many times in its life. It counts when it is queued (`Q`), as fio counts it; a
//! trace that was filtered down to what a driver was given counts when it is issued (`D`). Where a
//! device passes requests on to another one (`A`), and both were traced, each is there twice.

use blockio::{Op, SECTOR_BYTES};

use super::line::{Line, Lines, TraceEntry, number, seconds};

/// Devices of an event that passes a request on: `8,0 … A W 223490 + 8 <- (253,0) 999`.
fn remapped<'a>(fields: &[&'a str]) -> Line<'a> {
    let from = fields.iter().position(|field| *field == "<-");
    let upper = from.and_then(|at| fields.get(at + 1));
    upper.map_or(Line::Nothing, |upper| Line::Beneath {
        upper: upper.trim_matches(['(', ')']),
        lower: fields[0],
    })
}

/// Event whose time counts as that of the request: queued (`Q`) or issued (`D`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Moment {
    /// None was seen yet, or issues only.
    #[default]
    Issued,
    /// Queued: issues no longer count.
    Queued,
}

/// Reads blkparse text.
#[derive(Clone, Debug, Default)]
pub(super) struct Blkparse {
    moment: Moment,
    restarts: bool,
}

impl Lines for Blkparse {
    fn read<'a>(&mut self, line: &'a str) -> Result<Line<'a>, String> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if fields[0].starts_with("CPU") || fields[0].starts_with("Total") {
            return Ok(Line::End);
        }
        if !fields[0].contains(',') {
            return Err(format!("`{}` is not a device such as 8,0", fields[0]));
        }
        let (action, direction) = match (fields.get(5), fields.get(6)) {
            (Some(action), Some(direction)) => (*action, *direction),
            // Messages and timers carry no direction.
            (Some(_), None) => return Ok(Line::Nothing),
            _ => return Err(format!("{} fields: no action", fields.len())),
        };
        if action == "A" {
            return Ok(remapped(&fields));
        }
        match (action, self.moment) {
            ("Q", Moment::Issued) => (self.moment, self.restarts) = (Moment::Queued, true),
            ("Q", Moment::Queued) | ("D", Moment::Issued) => {}
            _ => return Ok(Line::Nothing),
        }
        let op = match () {
            () if direction.contains('D') => return Ok(Line::Other),
            () if direction.contains('R') => Op::Read,
            () if direction.contains('W') => Op::Write,
            () => return Ok(Line::Other),
        };
        if fields.get(8) != Some(&"+") {
            // A flush without data has no place.
            return Ok(Line::Other);
        }
        let at = seconds(number(&fields, 3, "the time")?, "the time")?;
        let (sector, sectors): (u64, u64) =
            (number(&fields, 7, "the sector")?, number(&fields, 9, "the number of sectors")?);
        if sectors == 0 {
            return Ok(Line::Other);
        }
        let (offset_bytes, bytes) =
            (sector.saturating_mul(SECTOR_BYTES), sectors.saturating_mul(SECTOR_BYTES));
        Ok(Line::Request(TraceEntry { unit: fields[0], at, op, offset_bytes, bytes }))
    }

    fn restarts(&mut self) -> bool {
        std::mem::take(&mut self.restarts)
    }
}
