//! Reading a trace line by line: broken lines are counted, and too many of them stop it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead};

use blockio::{Nanos, SECTOR_BYTES};
use thiserror::Error;

use super::line::{Line, Lines, TraceEntry};
use super::{Format, Trace, TraceRequest};
use crate::SpecError;

/// Broken lines that are skipped and counted; one more, and the file is no trace.
pub const BROKEN_MAX: u64 = 1000;
/// Units of a trace begin at multiples of this, in sectors: 1 MiB.
const UNIT_SECTORS: u64 = 1 << 11;
/// Beyond this address nothing is a drive, in bytes: 2^60, an exbibyte.
const ADDRESS_LIMIT: u64 = 1 << 60;
/// Beyond this size nothing is a request, in bytes: 1 GiB.
const SIZE_LIMIT: u64 = 1 << 30;

/// A line that could not be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenLine {
    /// Its number, from 1.
    pub line: u64,
    /// Description of what is wrong with it.
    pub text: String,
}

/// A device beneath another one of the same trace: its requests are those of the other again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beneath {
    /// The device that requests were made to.
    pub upper: String,
    /// The device that they were passed on to.
    pub lower: String,
}

/// Lines and requests of a file that are not in its trace, or not as they stand there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkippedLines {
    /// Lines that could not be understood.
    pub broken: u64,
    /// The first of them.
    pub first_broken: Option<BrokenLine>,
    /// Requests that neither read nor write: trims, flushes.
    pub other: u64,
    /// Requests that stood behind one of a later time, and were put in their place.
    pub disordered: u64,
    /// Requests that did not begin and end with a sector, and were widened to whole ones.
    pub widened: u64,
    /// Devices beneath others, whose requests are counted twice.
    pub beneath: Vec<Beneath>,
}

/// Reason why a file cannot be read as a trace.
#[derive(Debug, Error)]
pub enum TraceError {
    /// A line, or the file as a whole, is not what it should be.
    #[error(transparent)]
    Text(#[from] SpecError),
    /// The file could not be read.
    #[error("{file}:{line}: the line cannot be read")]
    Io {
        /// The file.
        file: String,
        /// Number of the line, from 1.
        line: u64,
        /// Error of the system.
        source: io::Error,
    },
}

/// Reads a trace from the text of a file, whose format its first line tells; `file` names it.
///
/// # Errors
/// Fails if the format is none of those known, if more than [`BROKEN_MAX`] lines are broken, and
/// when no request is left.
pub fn read(from: impl BufRead, file: &str) -> Result<Trace, TraceError> {
    let mut reading = TraceReader { file, ..TraceReader::default() };
    let mut format = None;
    for (line, number) in from.split(b'\n').zip(1_u64..) {
        let line =
            line.map_err(|source| TraceError::Io { file: file.into(), line: number, source })?;
        // What is no text is broken, and says so like any other line.
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end_matches('\r');
        if line.trim().is_empty() {
            continue;
        }
        let (_, lines) = match &mut format {
            Some(known) => known,
            unknown => unknown.insert(found(line).ok_or_else(|| reading.unknown(number))?),
        };
        if !reading.take(lines.as_mut(), line, number)? {
            break;
        }
    }
    let format = format.map(|(format, _)| format);
    Ok(reading.finish(format.unwrap_or(Format::IologV2))?)
}

fn found(line: &str) -> Option<(Format, Box<dyn Lines>)> {
    let format = Format::of_line(line)?;
    Some((format, format.lines()?))
}

/// A trace that is being read.
#[derive(Debug, Default)]
struct TraceReader<'a> {
    file: &'a str,
    /// Requests with the index of their unit, addresses within it.
    requests: Vec<(u32, TraceRequest)>,
    units: BTreeMap<String, u32>,
    skipped: SkippedLines,
    /// Pairs of an upper and a lower device.
    stacked: BTreeSet<(String, String)>,
    synthetic: bool,
}

impl TraceReader<'_> {
    /// Takes a line in; whether more may follow.
    fn take(&mut self, lines: &mut dyn Lines, line: &str, number: u64) -> Result<bool, SpecError> {
        let read = lines.read(line).and_then(|line| match line {
            Line::Request(entry) => Ok(Some(Line::Request(checked(entry)?))),
            Line::End => Ok(None),
            other => Ok(Some(other)),
        });
        if lines.restarts() {
            self.requests.clear();
            self.skipped.widened = 0;
        }
        match read {
            Ok(Some(Line::Request(entry))) => self.add(entry),
            Ok(Some(Line::Other)) => self.skipped.other += 1,
            Ok(Some(Line::Beneath { upper, lower })) => {
                self.stacked.insert((upper.to_owned(), lower.to_owned()));
            }
            Ok(Some(Line::Nothing | Line::End)) => {}
            Ok(None) => return Ok(false),
            Err(text) => self.broken(number, text)?,
        }
        Ok(true)
    }

    fn add(&mut self, entry: TraceEntry<'_>) {
        self.synthetic |= entry.unit == super::iolog::SYNTHETIC;
        let next = u32::try_from(self.units.len()).unwrap_or(u32::MAX);
        let unit = match self.units.get(entry.unit) {
            Some(unit) => *unit,
            None => *self.units.entry(entry.unit.to_owned()).or_insert(next),
        };
        let is_whole = |bytes: u64| bytes.is_multiple_of(SECTOR_BYTES);
        let widens = !is_whole(entry.offset_bytes) || !is_whole(entry.bytes);
        self.skipped.widened += u64::from(widens);
        let lba = entry.offset_bytes / SECTOR_BYTES;
        let end = (entry.offset_bytes + entry.bytes).div_ceil(SECTOR_BYTES);
        let sectors = u32::try_from(end - lba).expect("a size below the limit");
        self.requests
            .push((unit, TraceRequest { at: entry.at, lba, sectors, op: entry.op, handle: 0 }));
    }

    /// Devices beneath others, where requests of both are there.
    fn beneath(&self) -> Vec<Beneath> {
        let used: BTreeSet<u32> = self.requests.iter().map(|(unit, _)| *unit).collect();
        let is_used = |name: &String| self.units.get(name).is_some_and(|unit| used.contains(unit));
        let both = self.stacked.iter().filter(|(upper, lower)| is_used(upper) && is_used(lower));
        both.map(|(upper, lower)| Beneath { upper: upper.clone(), lower: lower.clone() }).collect()
    }

    fn broken(&mut self, line: u64, text: String) -> Result<(), SpecError> {
        self.skipped.broken += 1;
        let first = self.skipped.first_broken.get_or_insert(BrokenLine { line, text });
        if self.skipped.broken <= BROKEN_MAX {
            return Ok(());
        }
        let (line, text) = (first.line, &first.text);
        let text = format!(
            "{text} (this and {BROKEN_MAX} more lines are broken: the file is not a trace, or is \
             damaged)"
        );
        Err(self.error(line, text))
    }

    fn unknown(&self, line: u64) -> SpecError {
        let text = "the first line is not of a known trace format: fio iolog (version 2 or 3), \
                    blkparse text, MSR Cambridge CSV, SYSTOR '17 CSV or SPC";
        self.error(line, text.into())
    }

    fn error(&self, line: u64, text: String) -> SpecError {
        let line = u32::try_from(line).unwrap_or(u32::MAX);
        SpecError { file: self.file.into(), line, column: 0, text }
    }

    fn finish(self, format: Format) -> Result<Trace, SpecError> {
        if self.requests.is_empty() {
            return Err(match &self.skipped.first_broken {
                Some(first) => self.error(first.line, first.text.clone()),
                None => self.error(0, "it has no reads or writes".into()),
            });
        }
        let beneath = self.beneath();
        let Self { file, requests, skipped, synthetic, .. } = self;
        let mut skipped = SkippedLines { beneath, ..skipped };
        let (mut requests, space_sectors) = one_space(requests);
        skipped.disordered = disordered(&requests);
        requests.sort_by_key(|request| request.at);
        let first = requests[0].at;
        for request in &mut requests {
            request.at = request.at - first;
        }
        let name = file.to_owned();
        Ok(Trace { name, format, requests, space_sectors, synthetic, skipped })
    }
}

/// An entry that can be asked of a drive.
fn checked(entry: TraceEntry<'_>) -> Result<TraceEntry<'_>, String> {
    if entry.bytes == 0 || entry.bytes > SIZE_LIMIT {
        return Err(format!("a request of {} bytes, not from 1 to {SIZE_LIMIT}", entry.bytes));
    }
    if entry.offset_bytes > ADDRESS_LIMIT {
        return Err(format!("an address of {} bytes, beyond {ADDRESS_LIMIT}", entry.offset_bytes));
    }
    Ok(entry)
}

/// Units one after another in one space, and how large that is.
fn one_space(requests: Vec<(u32, TraceRequest)>) -> (Vec<TraceRequest>, u64) {
    let mut sizes: BTreeMap<u32, u64> = BTreeMap::new();
    for (unit, request) in &requests {
        let size = sizes.entry(*unit).or_default();
        *size = (*size).max(request.lba + u64::from(request.sectors));
    }
    let mut space = 0;
    for size in sizes.values_mut() {
        let begins = space;
        space += size.next_multiple_of(UNIT_SECTORS);
        *size = begins;
    }
    let placed = requests.into_iter().map(|(unit, request)| {
        let begins = sizes.get(&unit).copied().unwrap_or_default();
        TraceRequest { lba: begins + request.lba, ..request }
    });
    (placed.collect(), space)
}

fn disordered(requests: &[TraceRequest]) -> u64 {
    let mut latest = Nanos::ZERO;
    let mut count = 0;
    for request in requests {
        count += u64::from(request.at < latest);
        latest = latest.max(request.at);
    }
    count
}
