//! Attempts, as context of their errors.

use std::fmt;
use std::path::{Path, PathBuf};

use live::OpenError;

/// Hint for a recovery that can read nothing.
const NOTHING_LEFT: &str =
    "leave out --checkpoint to read the newest intact one; if there is none, restore a backup";

/// Attempt to open a drive by its folder, as context for the error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    attempt: Attempt,
    folder: PathBuf,
}

/// Purpose of opening a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    /// To be used.
    Use,
    /// To ask its server, or to read its status.
    Find,
    /// To be checked.
    Check,
    /// For what is left of it, so that there is no other way.
    Recover,
}

impl Opening {
    /// Opening a drive as it should be.
    pub fn of(folder: &Path) -> Self {
        Self { attempt: Attempt::Use, folder: folder.to_owned() }
    }

    /// Finding a drive, to ask its server or to read its status.
    pub fn to_find(folder: &Path) -> Self {
        Self { attempt: Attempt::Find, folder: folder.to_owned() }
    }

    /// Opening a drive to check it.
    pub fn for_check(folder: &Path) -> Self {
        Self { attempt: Attempt::Check, folder: folder.to_owned() }
    }

    /// Opening a drive for what is left of it.
    pub fn for_recovery(folder: &Path) -> Self {
        Self { attempt: Attempt::Recover, folder: folder.to_owned() }
    }

    /// Returns the remedy for an error, as a hint.
    pub fn remedy(&self, error: &OpenError) -> String {
        let is_damage = matches!(
            error,
            OpenError::Damaged { .. } | OpenError::DiesMissing { .. } | OpenError::Stale { .. }
        );
        match self.attempt {
            Attempt::Recover if is_damage => NOTHING_LEFT.to_owned(),
            // An operator who means a volume that exists is not told how to make one over it.
            Attempt::Recover | Attempt::Find => error.remedy_of_existing(&self.folder),
            Attempt::Use | Attempt::Check => error.remedy(&self.folder),
        }
    }
}

impl fmt::Display for Opening {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attempted = match self.attempt {
            Attempt::Use => "opening",
            Attempt::Find => "finding",
            Attempt::Check => "checking",
            Attempt::Recover => "reading the remaining data of",
        };
        write!(out, "{attempted} {}", self.folder.display())
    }
}

/// Attempt to read something that the user named, as context for the error: the input is at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input(pub String);

impl Input {
    /// Reading a file.
    pub fn reading(file: &Path) -> Self {
        Self(format!("reading {}", file.display()))
    }
}

impl fmt::Display for Input {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The chain of an error's causes, outermost first, without repetitions: an error may end with the
/// text of its source, which is a link of the chain by itself.
pub fn chain_text(error: &anyhow::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    for cause in error.chain().map(ToString::to_string) {
        if !parts.last().is_some_and(|outer| outer.ends_with(&cause)) {
            parts.push(cause);
        }
    }
    parts.join(": ")
}
