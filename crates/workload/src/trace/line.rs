//! Lines of traces: what each format makes of them, and the numbers in them.

use blockio::{Nanos, Op};

/// Content of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// A request.
    Request(TraceEntry<'a>),
    /// A device beneath another, to which requests of that one are passed on.
    Beneath {
        /// The device that they were made to.
        upper: &'a str,
        /// The device that they are passed on to.
        lower: &'a str,
    },
    /// Something that is neither a read nor a write: a trim, a flush, an event of no interest.
    Other,
    /// Nothing: a heading, a blank line.
    Nothing,
    /// End of the trace: the rest of the file, such as a summary, is ignored.
    End,
}

/// A request as it stands in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TraceEntry<'a> {
    /// Disk, file or storage unit.
    pub(super) unit: &'a str,
    /// Time of the request, from any origin.
    pub(super) at: Nanos,
    /// Read or write.
    pub(super) op: Op,
    /// First byte.
    pub(super) offset_bytes: u64,
    /// Bytes.
    pub(super) bytes: u64,
}

/// Reads the lines of one format, from the first to the last.
pub(super) trait Lines {
    /// Parses `line`.
    ///
    /// # Errors
    /// What is wrong with it and what would be right.
    fn read<'a>(&mut self, line: &'a str) -> Result<Line<'a>, String>;

    /// True, once, if the line just read supersedes the requests before it, which are dropped.
    fn restarts(&mut self) -> bool {
        false
    }
}

/// The `index`-th of `fields` as a number.
pub(super) fn number<T: std::str::FromStr>(
    fields: &[&str],
    index: usize,
    what: &str,
) -> Result<T, String> {
    let Some(text) = fields.get(index) else {
        return Err(format!("{what} is missing: the line has {} fields", fields.len()));
    };
    text.parse().map_err(|_| format!("{what} is `{text}`, not a number"))
}

/// Seconds, never negative and below a century.
pub(super) fn seconds(value: f64, what: &str) -> Result<Nanos, String> {
    const CENTURY_S: f64 = 3.2e9;
    if (0.0..CENTURY_S).contains(&value) {
        Ok(Nanos::from_secs_f64(value))
    } else {
        Err(format!("{what} is {value} s, not from 0 to {CENTURY_S}"))
    }
}
