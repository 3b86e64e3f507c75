//! The locate LED: a mark in software that tells one drive from many, in every view of it. No LED
//! of an enclosure is switched.
//!
//! It is a file in the drive's folder: lit whether the drive is served or not, until an operator
//! who found the drive puts it out.

use std::fs::{self, File};
use std::io;
use std::path::Path;

const NAME: &str = "locate";

/// True if the locate LED of a folder's drive is lit.
pub fn is_lit(volume: &Path) -> bool {
    volume.join(NAME).exists()
}

/// Lights it, or puts it out.
///
/// # Errors
/// What the system answered.
pub fn set(volume: &Path, is_lit: bool) -> io::Result<()> {
    let path = volume.join(NAME);
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
    fn the_locate_led_is_on_until_it_is_turned_off() {
        let folder = tempfile::tempdir().unwrap();
        for is_on in [true, true, false, false] {
            set(folder.path(), is_on).unwrap();
            assert_eq!(is_lit(folder.path()), is_on);
        }
    }
}
