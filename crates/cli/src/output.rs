//! The one place that prints.

use std::io::{self, Write as _};

use anyhow::{Context as _, Result};
use lab::results::Warning;
use serde::Serialize;

/// Prints one line, or several, of what was asked for to stdout.
///
/// # Errors
/// When stdout takes no more.
pub(crate) fn data(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.trim_end_matches('\n').as_bytes())?;
    stdout.write_all(b"\n")?;
    stdout.flush()?;
    Ok(())
}

/// Prints to stdout what a terminal does, such as to clear itself; no line ends with it.
///
/// # Errors
/// When stdout takes no more.
pub(crate) fn raw(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// Prints a value as JSON to stdout.
///
/// # Errors
/// When stdout takes no more.
pub(crate) fn json(value: &impl Serialize) -> Result<()> {
    data(&serde_json::to_string_pretty(value).context("writing JSON")?)
}

/// Prints bytes to stdout as they are.
///
/// # Errors
/// When stdout takes no more.
pub(crate) fn bytes(bytes: &[u8]) -> Result<()> {
    Ok(io::stdout().lock().write_all(bytes)?)
}

/// Prints what a reader must know before trusting a number to stderr.
pub(crate) fn warning(warning: &Warning) {
    let Warning { step, text, .. } = warning;
    if step.is_empty() {
        talk(&format!("warning: {text}"));
    } else {
        talk(&format!("warning: {step}: {text}"));
    }
}

/// Prints a line about the work to stderr.
pub(crate) fn talk(text: &str) {
    // Nobody is left to be told that stderr is closed.
    let _ = writeln!(io::stderr().lock(), "{text}");
}
