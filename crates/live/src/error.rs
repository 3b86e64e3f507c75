//! Why a drive could not be created or opened.

use std::io;
use std::path::PathBuf;

use crate::DeviceError;
use crate::header::FORMAT_VERSION;

/// Why a drive could not be created or opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Something about the system's files failed.
    #[error("{attempted}: {source}")]
    System {
        /// What was attempted.
        attempted: String,
        /// What the system answered.
        source: io::Error,
    },
    /// What was asked for cannot be.
    #[error("{what}")]
    Refused {
        /// What it is, and what would be possible.
        what: String,
    },
    /// The folder holds no drive.
    #[error("{}: {reason}", path.display())]
    NoDrive {
        /// The folder.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// A process has the drive open.
    #[error("{} is in use by {by}; stop that first", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
        /// Which one, as far as that is known.
        by: String,
    },
    /// A die is of another format.
    #[error(
        "die {die} has format {found}, this program knows {FORMAT_VERSION}; {}",
        if *found > FORMAT_VERSION { "use a newer one" } else { "create the drive anew" }
    )]
    Version {
        /// Index of the die as it was named.
        die: usize,
        /// Its format.
        found: u32,
    },
    /// More dies are missing than the drive can do without.
    #[error(
        "{missing} of {dies} dies are missing or have failed, {spare} can be done without{why}"
    )]
    DiesMissing {
        /// Dies that are not there.
        missing: u32,
        /// Dies of the drive.
        dies: u32,
        /// How many the drive can do without.
        spare: u32,
        /// Why media that were given are not used, each after a semicolon; may be empty.
        why: String,
    },
    /// What must be there is not, and redundancy does not give it back.
    #[error("the drive is damaged: {what}; nothing was changed")]
    Damaged {
        /// What is lost.
        what: String,
    },
    /// The format does not work out.
    #[error(transparent)]
    Format(#[from] ftl::ConfigError),
    /// Bringing the drive back failed half-way; it may be tried again.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl OpenError {
    pub(crate) fn medium(attempted: &str, source: io::Error) -> Self {
        Self::System { attempted: attempted.to_owned(), source }
    }

    pub(crate) const fn refused(what: String) -> Self {
        Self::Refused { what }
    }
}
