//! The beacon: a mark that tells one drive from many, in every view of it.
//!
//! It is a file in the drive's folder: lit whether the drive is served or not, until somebody who
//! found the drive puts it out.

use std::fs::{self, File};
use std::io;
use std::path::Path;

const NAME: &str = "beacon";

/// Whether the beacon of a folder's drive is lit.
pub fn is_lit(vault: &Path) -> bool {
    vault.join(NAME).exists()
}

/// Lights it, or puts it out.
///
/// # Errors
/// What the system answered.
pub fn set(vault: &Path, is_lit: bool) -> io::Result<()> {
    let path = vault.join(NAME);
    if is_lit {
        return File::create(path).map(drop);
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beacon_is_lit_until_it_is_put_out() {
        let folder = tempfile::tempdir().unwrap();
        for is_on in [true, true, false, false] {
            set(folder.path(), is_on).unwrap();
            assert_eq!(is_lit(folder.path()), is_on);
        }
    }
}
