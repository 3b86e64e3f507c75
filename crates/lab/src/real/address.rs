//! Addresses of real targets, as they are given on the command line.

use std::fs;
use std::path::{Path, PathBuf};

use super::hosts::Hosts;
use super::nbd;
use crate::Error;

/// Address of a real target, which nobody has looked at yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A file or a block device of this machine. A file that does not exist is made.
    Local(PathBuf),
    /// An export of an NBD server, by its URI.
    Export(String),
    /// Files or devices of the same name, one on each of several hosts.
    Fleet {
        /// The machines.
        hosts: Hosts,
        /// Name of the target on each of them.
        path: PathBuf,
    },
}

impl Address {
    /// The target named `name` on `hosts`, such as `a,b:8766`, or on this machine where there are
    /// none.
    ///
    /// # Errors
    /// Says which of `hosts` is none, or is there twice.
    pub fn parse(name: &str, hosts: &str) -> Result<Self, Error> {
        Ok(match hosts {
            "" if nbd::is_uri(name) => Self::Export(name.to_owned()),
            "" => Self::Local(name.into()),
            hosts => Self::Fleet { hosts: Hosts::parse(hosts)?, path: name.into() },
        })
    }

    /// Name of the target, without its hosts: a path or a URI.
    pub(crate) fn name(&self) -> &Path {
        match self {
            Self::Local(path) | Self::Fleet { path, .. } => path,
            Self::Export(uri) => Path::new(uri),
        }
    }

    /// True if it is a file of this machine, or becomes one.
    pub(crate) fn is_file(&self) -> bool {
        match self {
            Self::Local(path) => fs::metadata(path).map_or(true, |found| found.is_file()),
            Self::Export(_) | Self::Fleet { .. } => false,
        }
    }
}
