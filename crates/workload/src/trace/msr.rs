//! CSV of the block traces of Microsoft Research Cambridge [narayanan-2008].
//!
//! ```text
//! 128166372003061629,hm,0,Read,383496192,32768,413
//! time stamp, host, disk, direction, offset, size, response time
//! ```
//!
//! Times are those of Windows: ticks of 100 ns since 1601. Offsets and sizes are bytes.

use blockio::{Nanos, Op};

use super::line::{Line, Lines, TraceEntry, number};

/// Length of a tick, in nanoseconds.
const TICK_NS: u64 = 100;

/// Reads the CSV.
#[derive(Clone, Debug, Default)]
pub(super) struct Msr {
    /// Ticks of the first request: nanoseconds since 1601 are beyond 64 bits.
    first: Option<u64>,
}

/// The disk of `line`: its host and its number there, since hosts count their disks from 0.
fn disk(line: &str) -> &str {
    let (_, rest) = line.split_once(',').unwrap_or_default();
    let mut commas = rest.match_indices(',').map(|(at, _)| at);
    commas.nth(1).map_or(rest, |end| &rest[..end])
}

/// Longest time that a line may lie before the first one, in ticks of 100 ns: an hour.
const BEFORE_TICKS: u64 = 3600 * 10_000_000;

impl Lines for Msr {
    fn read<'a>(&mut self, line: &'a str) -> Result<Line<'a>, String> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        if fields[0].eq_ignore_ascii_case("timestamp") {
            return Ok(Line::Nothing);
        }
        let ticks: u64 = number(&fields, 0, "the time stamp")?;
        let op = match fields.get(3) {
            Some(&"Read") => Op::Read,
            Some(&"Write") => Op::Write,
            Some(other) => return Err(format!("direction `{other}`, not Read or Write")),
            None => return Err(format!("{} fields, at least 6 are needed", fields.len())),
        };
        let (offset_bytes, bytes) =
            (number(&fields, 4, "the offset")?, number(&fields, 5, "the size")?);
        let origin = *self.first.get_or_insert(ticks.saturating_sub(BEFORE_TICKS));
        let since = ticks
            .checked_sub(origin)
            .and_then(|ticks| ticks.checked_mul(TICK_NS))
            .ok_or_else(|| format!("time stamp {ticks} is over an hour before the first one"))?;
        let unit = disk(line);
        Ok(Line::Request(TraceEntry { unit, at: Nanos(since), op, offset_bytes, bytes }))
    }
}
