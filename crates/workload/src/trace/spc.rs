//! The trace format of the Storage Performance Council (SPC Trace File Format, revision 1.0.1).
//!
//! ```text
//! 0,20941264,8192,W,0.551706
//! unit, address, size, opcode, time stamp
//! ```
//!
//! Addresses are blocks of 512 bytes, sizes bytes, times seconds; fields may follow.

use blockio::{Op, SECTOR_BYTES};

use super::line::{Line, Lines, TraceEntry, number, seconds};

/// Reads the format.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spc;

impl Lines for Spc {
    fn read<'a>(&mut self, line: &'a str) -> Result<Line<'a>, String> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let _: u32 = number(&fields, 0, "the unit")?;
        let block: u64 = number(&fields, 1, "the address")?;
        let bytes = number(&fields, 2, "the size")?;
        let op = match fields.get(3) {
            Some(&("R" | "r")) => Op::Read,
            Some(&("W" | "w")) => Op::Write,
            Some(other) => return Err(format!("opcode `{other}`, not R or W")),
            None => return Err(format!("{} fields, at least 5 are needed", fields.len())),
        };
        let at = seconds(number(&fields, 4, "the time stamp")?, "the time stamp")?;
        let offset_bytes = block.saturating_mul(SECTOR_BYTES);
        Ok(Line::Request(TraceEntry { unit: fields[0], at, op, offset_bytes, bytes }))
    }
}
