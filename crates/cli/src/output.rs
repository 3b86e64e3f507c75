//! The one place that prints.

use std::io::{self, Write as _};
use std::os::fd::AsFd;

use anyhow::{Context as _, Result};
use lab::results::Warning;
use serde::Serialize;
use status::Export;

use crate::table;

/// Fewest columns that lines are wrapped at.
const COLUMNS_MIN: usize = 20;

/// Error of stdout whose reader has closed it, since it has what it wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("standard output is closed")]
pub(crate) struct StdoutClosed;

/// Prints one line, or several, of what was asked for to stdout.
///
/// # Errors
/// Fails if stdout takes no more.
pub(crate) fn data(text: &str) -> Result<()> {
    written(&[text.trim_end_matches('\n').as_bytes(), b"\n"])
}

/// Prints to stdout what a terminal does, such as to clear itself; no line ends with it.
///
/// # Errors
/// Fails if stdout takes no more.
pub(crate) fn raw(text: &str) -> Result<()> {
    written(&[text.as_bytes()])
}

/// Prints a value as JSON to stdout.
///
/// # Errors
/// Fails if stdout takes no more.
pub(crate) fn json(value: &impl Serialize) -> Result<()> {
    data(&serde_json::to_string_pretty(value).context("writing JSON")?)
}

/// Prints a URI for each export at each place, or all of them as one line of JSON.
///
/// # Errors
/// Fails if stdout takes no more.
pub(crate) fn exports(offered: &[Export], is_json: bool) -> Result<()> {
    if is_json {
        return data(&serde_json::to_string(offered).context("writing JSON")?);
    }
    let uris = offered.iter().flat_map(|export| &export.uris).map(String::as_str);
    data(&uris.collect::<Vec<_>>().join("\n"))
}

/// Prints bytes to stdout as they are.
///
/// # Errors
/// Fails if stdout takes no more.
pub(crate) fn bytes(bytes: &[u8]) -> Result<()> {
    written(&[bytes])
}

/// Writes parts to stdout, one after the other.
fn written(parts: &[&[u8]]) -> Result<()> {
    let mut stdout = io::stdout().lock();
    let written = parts.iter().try_for_each(|part| stdout.write_all(part));
    match written.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(StdoutClosed.into()),
        Err(error) => Err(error).context("writing to standard output"),
        Ok(()) => Ok(()),
    }
}

/// Prints what a reader must know before trusting a number to stderr, beside a result that has it
/// too.
pub(crate) fn warning(warning: &Warning) {
    talk(&in_columns(&text_of(warning), columns()));
}

/// Prints what a reader must know before trusting a number to stdout, as a part of the result.
///
/// # Errors
/// Fails if stdout takes no more.
pub(crate) fn result_warning(warning: &Warning) -> Result<()> {
    data(&in_columns(&text_of(warning), columns_of(&io::stdout())))
}

fn text_of(warning: &Warning) -> String {
    let Warning { step, text, .. } = warning;
    let step = if step.is_empty() { String::new() } else { format!("{step}: ") };
    format!("warning: {step}{text}")
}

/// `text` broken between words, further lines indented, where there is a limit of columns.
fn in_columns(text: &str, columns: Option<usize>) -> String {
    const INDENT: &str = "  ";
    let Some(columns) = columns else { return text.to_owned() };
    table::wrapped(text, columns.saturating_sub(INDENT.len())).join(&format!("\n{INDENT}"))
}

/// Columns of the terminal that stderr is; absent where it is none: there lines stay whole.
pub(crate) fn columns() -> Option<usize> {
    columns_of(&io::stderr())
}

fn columns_of(terminal: &impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col).max(COLUMNS_MIN))
}

/// Prints a line about the work to stderr.
pub(crate) fn talk(text: &str) {
    // There is no other stream on which to say that stderr is closed.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_broken_between_words_on_a_terminal_only() {
        let text = "warning: 4k/precondition: steady state not achieved in 12 rounds of 30 m";
        assert_eq!(in_columns(text, None), text);
        for columns in [40, 80] {
            let shown = in_columns(text, Some(columns));
            assert!(shown.lines().all(|line| line.chars().count() <= columns), "{shown}");
            assert_eq!(shown.split_whitespace().collect::<Vec<_>>().join(" "), text);
        }
    }
}
