//! Errors of workload and protocol files: file, line, what is wrong and what would be right.

use std::fmt;
use std::ops::Range;

use blockio::text::in_toml_types;
use serde::de::DeserializeOwned;
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Error in a TOML or fio file.
///
/// Shown as `workloads/x.toml:9: sizes sum to 99 percent, not 100`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct SpecError {
    /// File, as it was named by the caller.
    pub file: String,
    /// Line from 1; 0 where unknown.
    pub line: u32,
    /// Column from 1, in characters; 0 where unknown.
    pub column: u32,
    /// Description of what is wrong and what would be right.
    pub text: String,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.text),
            line => write!(f, "{}:{line}: {}", self.file, self.text),
        }
    }
}

/// A rule that a value breaks, and where the value stands.
#[derive(Debug)]
pub(crate) struct Fault {
    /// Keys and indices from the root, separated by dots: `sizes.2.percent`.
    pub(crate) place: String,
    /// Description of what is wrong and what would be right.
    pub(crate) text: String,
}

impl Fault {
    pub(crate) fn new(place: impl Into<String>, text: impl Into<String>) -> Self {
        Self { place: place.into(), text: text.into() }
    }

    /// Err with this fault unless `holds`.
    pub(crate) fn unless(
        holds: bool,
        place: impl Into<String>,
        text: impl Into<String>,
    ) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self::new(place, text)) }
    }

    /// Returns this fault with `outer` put before its place.
    pub(crate) fn within(self, outer: &str) -> Self {
        let place = if self.place.is_empty() {
            outer.to_owned()
        } else {
            format!("{outer}.{}", self.place)
        };
        Self { place, text: self.text }
    }
}

/// Reads a value from the text of a TOML file and checks it; `file` names it in errors.
pub(crate) fn parse<T: DeserializeOwned>(
    text: &str,
    file: &str,
    check: impl FnOnce(&T) -> Result<(), Fault>,
) -> Result<T, SpecError> {
    let value: T = toml::from_str(text).map_err(|error| {
        let (line, column) = error.span().map_or((0, 0), |span| position(text, span.start));
        // The first line repeats the position; the rest is the line, a caret and the message.
        let shown = error.to_string();
        let excerpt = shown.lines().filter(|line| line.contains('|')).collect::<Vec<_>>();
        let message = in_toml_types(error.message());
        let text = std::iter::once(&*message).chain(excerpt).collect::<Vec<_>>().join("\n");
        SpecError { file: file.into(), line, column, text }
    })?;
    check(&value).map_err(|fault| {
        let (line, column) =
            find(text, &fault.place).map_or((0, 0), |span| position(text, span.start));
        SpecError { file: file.into(), line, column, text: fault.text }
    })?;
    Ok(value)
}

/// Range of `place` in `text`: of its key, or of its value inside an array.
fn find(text: &str, place: &str) -> Option<Range<usize>> {
    let document = DeTable::parse(text).ok()?;
    let mut found = None;
    let mut value: Option<&Spanned<DeValue<'_>>> = None;
    for step in place.split('.') {
        let table = match value.map(Spanned::get_ref) {
            None => Some(document.get_ref()),
            Some(DeValue::Table(table)) => Some(table),
            Some(DeValue::Array(array)) => {
                value = array.get(step.parse::<usize>().ok()?);
                found = value.map(Spanned::span);
                continue;
            }
            Some(_) => None,
        };
        // A key that is left out has its default; its table is the nearest place to point at.
        let Some((key, inner)) = table.and_then(|table| table.get_key_value(step)) else { break };
        (found, value) = (Some(key.span()), Some(inner));
    }
    found
}

/// Line and column, from 1, of the byte at `offset`.
fn position(text: &str, offset: usize) -> (u32, u32) {
    let before = &text[..offset.min(text.len())];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a = 1\n[b]\nc = [{ d = 1 }, { d = 2 }]\n[[e]]\nf = 1\n[[e]]\nf = 2\n";

    #[test]
    fn a_place_is_found_in_nested_tables_and_arrays() {
        let at = |place| position(TEXT, find(TEXT, place).unwrap().start);
        assert_eq!(at("a"), (1, 1));
        assert_eq!(at("b.c"), (3, 1));
        assert_eq!(at("b.c.1"), (3, 17));
        assert_eq!(at("b.c.1.d"), (3, 19));
        assert_eq!(at("e.1.f"), (7, 1));
    }

    #[test]
    fn a_key_left_out_is_placed_at_its_table() {
        let at = |place| find(TEXT, place).map(|span| position(TEXT, span.start));
        assert_eq!(at("e.1.missing"), Some((6, 1)));
        assert_eq!(at("missing"), None);
    }
}
