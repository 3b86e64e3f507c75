//! fio's iolog, versions 2 and 3 (fio's HOWTO, "Trace file format").
//!
//! ```text
//! fio version 2 iolog            fio version 3 iolog
//! /dev/sda add                   0 /dev/sda add
//! /dev/sda open                  0 /dev/sda open
//! /dev/sda read 4096 8192        1203 /dev/sda read 4096 8192      us, bytes
//! /dev/sda wait 1000 0                                             us since the wait before
//! ```
//!
//! Time stamps are microseconds (`log_io_u` and `iolog_delay` in `iolog.c` of fio 3.33).

use std::fmt::Write as _;

use blockio::{Nanos, Op, SECTOR_BYTES};

use super::line::{Line, Lines, TraceEntry, number, seconds};

/// The unit in an iolog that marks it as synthetic.
pub const SYNTHETIC: &str = "floatgate-synthetic";

/// Reads an iolog.
#[derive(Clone, Debug)]
pub(super) struct IologLines {
    version: u32,
    begun: bool,
    /// Sum of the pauses of version 2 so far, in microseconds.
    waited_us: u64,
}

impl IologLines {
    /// Version 2: order and pauses.
    pub(super) fn v2() -> Self {
        Self { version: 2, begun: false, waited_us: 0 }
    }

    /// Version 3: a time stamp for each request.
    pub(super) fn v3() -> Self {
        Self { version: 3, ..Self::v2() }
    }

    fn timed<'a>(&self, fields: &[&'a str]) -> Result<(Nanos, Vec<&'a str>), String> {
        let us =
            if self.version == 2 { self.waited_us } else { number(fields, 0, "the time stamp")? };
        let at = seconds(us as f64 / 1e6, "the time stamp")?;
        let rest = if self.version == 2 { fields } else { &fields[1..] };
        Ok((at, rest.to_vec()))
    }
}

impl Lines for IologLines {
    fn read<'a>(&mut self, line: &'a str) -> Result<Line<'a>, String> {
        if !std::mem::replace(&mut self.begun, true) {
            return Ok(Line::Nothing);
        }
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (at, fields) = self.timed(&fields)?;
        let (Some(unit), Some(action)) = (fields.first(), fields.get(1)) else {
            return Err(format!("{} fields: not a file and an action", fields.len()));
        };
        let op = match *action {
            "add" | "open" | "close" => return Ok(Line::Nothing),
            "sync" | "datasync" | "trim" => return Ok(Line::Other),
            "wait" if self.version == 2 => {
                let us: u64 = number(&fields, 2, "the pause")?;
                self.waited_us = self.waited_us.saturating_add(us);
                return Ok(Line::Nothing);
            }
            "read" => Op::Read,
            "write" => Op::Write,
            other => return Err(format!("`{other}` is not an action of an iolog")),
        };
        let offset_bytes = number(&fields, 2, "the offset")?;
        let bytes = number(&fields, 3, "the length")?;
        Ok(Line::Request(TraceEntry { unit, at, op, offset_bytes, bytes }))
    }
}

/// One request of an iolog to be written: time, direction, first sector and sectors.
pub type IologRequest = (Nanos, Op, u64, u32);

/// The form of an iolog to be written.
#[derive(Clone, Copy, Debug)]
pub struct Iolog<'a> {
    /// Name of the file or device that its requests are on.
    pub file: &'a str,
    /// True for version 3, whose requests have time stamps; else version 2, without pauses.
    pub is_timed: bool,
}

impl Iolog<'_> {
    /// Returns the lines before the first request.
    pub fn head(&self) -> String {
        let Self { file, is_timed } = *self;
        let (version, zero) = if is_timed { (3, "0 ") } else { (2, "") };
        format!("fio version {version} iolog\n{zero}{file} add\n{zero}{file} open\n")
    }

    /// Adds the line of a request to `text`.
    pub fn add(&self, text: &mut String, (at, op, lba, sectors): IologRequest) {
        let action = if op == Op::Read { "read" } else { "write" };
        let (offset, bytes) = (lba * SECTOR_BYTES, u64::from(sectors) * SECTOR_BYTES);
        self.stamp(text, at);
        let _ = writeln!(text, "{} {action} {offset} {bytes}", self.file);
    }

    fn stamp(&self, text: &mut String, at: Nanos) {
        if self.is_timed {
            let _ = write!(text, "{} ", at.0 / 1000);
        }
    }

    /// Returns the text of the whole of an iolog with `requests`.
    pub fn text(&self, requests: impl Iterator<Item = IologRequest>) -> String {
        let mut text = self.head();
        let mut last = Nanos::ZERO;
        for request in requests {
            self.add(&mut text, request);
            last = request.0;
        }
        self.stamp(&mut text, last);
        let _ = writeln!(text, "{} close", self.file);
        text
    }
}
