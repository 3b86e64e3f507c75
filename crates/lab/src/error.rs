//! The error of this crate: what kind, what was attempted, what to do, and the source.

use std::error::Error as StdError;
use std::fmt;

/// Kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The input names something that does not exist or does not fit.
    Input,
    /// The guard refused to write to a target, or to go on with one that became too hot.
    Refused,
    /// A program that is needed is missing or failed.
    Program,
    /// Reading or writing a file failed.
    Io,
}

/// A failure: text in lower case, no full stop; the remedy is printed as a hint.
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    text: String,
    hint: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// A failure of `kind`; `text` says what was attempted, the value and the limit.
    pub fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), hint: String::new(), source: None }
    }

    /// Adds what the user can do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Adds what caused it; its text is not repeated in this one's.
    #[must_use]
    pub fn source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Kind of the failure.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Hint at what the user can do; empty where nothing is known.
    pub fn remedy(&self) -> &str {
        &self.hint
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.source {
            Some(source) => Some(source.as_ref()),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_failure_does_not_repeat_its_cause() {
        let cause = std::io::Error::other("no space");
        let error = Error::new(Kind::Io, "writing run.json").source(cause).hint("free some");
        assert_eq!(error.to_string(), "writing run.json");
        assert_eq!(StdError::source(&error).map(ToString::to_string), Some("no space".into()));
        assert_eq!((error.kind(), error.remedy()), (Kind::Io, "free some"));
    }

    #[test]
    fn a_failure_without_a_known_remedy_has_none() {
        let error = Error::new(Kind::Program, "fio failed");
        assert_eq!(error.remedy(), "");
        assert!(StdError::source(&error).is_none());
    }
}
