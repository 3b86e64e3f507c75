//! Permission to read a target that keeps its data.

use std::fs;
use std::path::Path;

use lab::{Error, Kind};
use rustix::fs::{FlockOperation, Mode, OFlags};

use super::{DeviceNumber, Permit, no_target};

/// Permits reading `path`, which exists, and opens it for reading only; it may be in use.
///
/// # Errors
/// [`Kind::Refused`] says that a file is locked by what writes to it; [`Kind::Input`] that `path`
/// is neither file nor block device, or cannot be opened.
pub(crate) fn permit_reading(path: &Path) -> Result<Permit, Error> {
    let shown = path.display();
    let failed = || {
        Error::new(Kind::Input, format!("opening the target {shown} for reading"))
            .hint("name an existing block device, or a file, that this user may read")
    };
    let path = fs::canonicalize(path).map_err(|source| failed().source(source))?;
    let metadata = fs::metadata(&path).map_err(|source| failed().source(source))?;
    let is_file = metadata.is_file();
    if !is_file && DeviceNumber::of_node(&metadata).is_none() {
        return Err(no_target(&path, &metadata));
    }
    let target = rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| failed().source(errno))?;
    if is_file {
        rustix::fs::flock(&target, FlockOperation::NonBlockingLockShared).map_err(|errno| {
            let text = format!("refusing to read {}: another program writes to it", path.display());
            Error::new(Kind::Refused, text).hint("wait for the other to end").source(errno)
        })?;
    }
    Ok(Permit { path, target, is_file })
}
