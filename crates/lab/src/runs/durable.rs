//! Files that are there whole, or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use crate::{Error, Kind};

/// The failure to write something at `path`.
pub(super) fn unwritable(path: &Path, source: io::Error) -> Error {
    let hint = match source.kind() {
        io::ErrorKind::StorageFull => "free some space, or choose another --out",
        io::ErrorKind::InvalidFilename => "choose a shorter --out",
        io::ErrorKind::NotFound => "create its folder, or choose another --out",
        _ => "choose another --out, in a folder that you can write to",
    };
    Error::new(Kind::Io, format!("writing {}", path.display())).source(source).hint(hint)
}

/// Writes a file through `fill`: into a temporary one beside it, to the disk, then renamed.
///
/// A failure at any point, such as a full disk, leaves what was at `path` before.
pub(super) fn write(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut temporary = OsString::from(path);
    temporary.push(".part");
    let temporary = Path::new(&temporary);
    let failed = |source: io::Error| unwritable(path, source);
    let written = (|| {
        let mut file = BufWriter::new(File::create(temporary).map_err(failed)?);
        fill(&mut file)?;
        file.flush().map_err(failed)?;
        file.get_ref().sync_all().map_err(failed)?;
        fs::rename(temporary, path).map_err(failed)?;
        sync_parent(path).map_err(failed)
    })();
    if written.is_err() {
        // No reader needs what is left of it; that it cannot be removed changes nothing.
        let _ = fs::remove_file(temporary);
    }
    written
}

/// Makes the name itself durable.
fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => File::open(parent)?.sync_all(),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_rest() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.json");
        fs::write(&path, "old").unwrap();
        let failed = write(&path, |file| {
            file.write_all(b"half").unwrap();
            Err(Error::new(Kind::Io, "the disk is full"))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
