//! Addresses of real targets, as they are given on the command line.

use std::fs;
use std::path::{Path, PathBuf};

use super::hosts::Hosts;
use super::nbd;
use crate::{Error, Kind};

/// Address of a real target, which has not been examined yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A file or a block device of this machine. A file that does not exist is made.
    Local(PathBuf),
    /// Several files or block devices of this machine as one target.
    Group {
        /// The name that was given: the paths with commas between them.
        name: String,
        /// The paths, two at least.
        paths: Vec<PathBuf>,
    },
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
    /// Says which of `hosts` is none, or is there twice; and that a name between commas is empty,
    /// or that several devices were named on other hosts.
    pub fn parse(name: &str, hosts: &str) -> Result<Self, Error> {
        if nbd::is_uri(name) && hosts.is_empty() {
            return Ok(Self::Export(name.to_owned()));
        }
        let paths = grouped(name)?;
        Ok(match (hosts, paths.as_slice()) {
            ("", []) => Self::Local(name.into()),
            ("", _) => Self::Group { name: name.to_owned(), paths },
            (hosts, []) => Self::Fleet { hosts: Hosts::parse(hosts)?, path: name.into() },
            (hosts, _) => {
                let text = format!(
                    "{name} are several devices, which can only be measured on this machine"
                );
                let hint = format!("name one device with --client {hosts}, or leave out --client");
                return Err(Error::new(Kind::Input, text).hint(hint));
            }
        })
    }

    /// Name of the target, without its hosts: a path or a URI.
    pub fn name(&self) -> &Path {
        match self {
            Self::Local(path) | Self::Fleet { path, .. } => path,
            Self::Group { name, .. } => Path::new(name),
            Self::Export(uri) => Path::new(uri),
        }
    }

    /// True if it is a file of this machine, or files, or becomes one.
    pub fn is_file(&self) -> bool {
        match self {
            Self::Local(path) => fs::metadata(path).map_or(true, |found| found.is_file()),
            Self::Group { paths, .. } => {
                paths.iter().all(|path| fs::metadata(path).is_ok_and(|found| found.is_file()))
            }
            Self::Export(_) | Self::Fleet { .. } => false,
        }
    }
}

/// The paths in `name` between commas; none where it is one path. A path that exists is one,
/// whatever is in its name.
///
/// # Errors
/// Fails if nothing stands before or after a comma.
fn grouped(name: &str) -> Result<Vec<PathBuf>, Error> {
    if !name.contains(',') || Path::new(name).exists() {
        return Ok(Vec::new());
    }
    let paths: Vec<PathBuf> = name.split(',').map(|path| path.trim().into()).collect();
    if paths.iter().any(|path| path.as_os_str().is_empty()) {
        let text = format!("`{name}` has a comma without a device on either side");
        let hint = "name devices as /dev/nvme1n1,/dev/nvme2n1";
        return Err(Error::new(Kind::Input, text).hint(hint));
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_between_commas_are_one_group_on_this_machine() {
        let parsed = Address::parse("/dev/nvme1n1,/dev/nvme2n1", "").unwrap();
        let Address::Group { paths, .. } = &parsed else { panic!("{parsed:?}") };
        assert_eq!(paths, &[Path::new("/dev/nvme1n1"), Path::new("/dev/nvme2n1")]);
        assert_eq!(parsed.name(), Path::new("/dev/nvme1n1,/dev/nvme2n1"));
        let error = Address::parse("/dev/a,/dev/b", "x,y").unwrap_err();
        assert!(error.to_string().contains("several devices"), "{error}");
        let error = Address::parse("/dev/a,", "").unwrap_err();
        assert_eq!(error.remedy(), "name devices as /dev/nvme1n1,/dev/nvme2n1");
    }

    #[test]
    fn a_file_with_a_comma_in_its_name_is_one_target() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("a,b.img");
        fs::write(&path, "").unwrap();
        let parsed = Address::parse(path.to_str().unwrap(), "").unwrap();
        assert_eq!(parsed, Address::Local(path));
    }
}
