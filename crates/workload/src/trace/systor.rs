//! CSV of the traces of a virtual desktop infrastructure of SYSTOR '17 [lee-2017].
//!
//! ```text
//! Timestamp,Response,IOType,LUN,Offset,Size
//! 1456088400.009633,.000256,W,0,399041687552,4096
//! time of the request, response time, direction, logical unit, offset, size
//! ```
//!
//! Times are seconds since 1970, offsets and sizes bytes. Response times may be missing.

use blockio::{Nanos, Op};

use super::line::{Line, Lines, TraceEntry, number};

/// Reads the CSV.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Systor;

impl Lines for Systor {
    fn read<'a>(&mut self, line: &'a str) -> Result<Line<'a>, String> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        if fields[0].eq_ignore_ascii_case("timestamp") {
            return Ok(Line::Nothing);
        }
        let at = decimal(fields[0])
            .ok_or_else(|| format!("the time stamp is `{}`, not seconds since 1970", fields[0]))?;
        let op = match fields.get(2) {
            Some(&("R" | "r")) => Op::Read,
            Some(&("W" | "w")) => Op::Write,
            Some(other) => return Err(format!("direction `{other}`, not R or W")),
            None => return Err(format!("{} fields, 6 are needed", fields.len())),
        };
        let (offset_bytes, bytes) =
            (number(&fields, 4, "the offset")?, number(&fields, 5, "the size")?);
        Ok(Line::Request(TraceEntry { unit: fields[3], at, op, offset_bytes, bytes }))
    }
}

/// Seconds with up to nine decimals, exactly: a float has no nanoseconds left since 1970.
fn decimal(text: &str) -> Option<Nanos> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if decimals.len() > 9 || !is_number(decimals) || !is_number(whole) || whole.is_empty() {
        return None;
    }
    let nanos: u64 = format!("{decimals:0<9}").parse().ok()?;
    let whole: u64 = whole.parse().ok()?;
    Some(Nanos(whole.checked_mul(1_000_000_000)?.checked_add(nanos)?))
}
