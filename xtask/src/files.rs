//! Files and folders: what is in them, copies, and checksums.

use std::fmt::Write as _;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use sha2::{Digest as _, Sha256};

use crate::program::said;

/// Returns the files of a folder in order, without those of its folders.
///
/// # Errors
/// Fails if the folder cannot be read.
pub fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    Ok(entries_of(folder)?.into_iter().filter(|path| path.is_file()).collect())
}

/// Returns every file below a folder, in order.
///
/// # Errors
/// Fails if a folder cannot be read.
pub fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in entries_of(folder)? {
        if path.is_dir() {
            found.extend(files_below(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn entries_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    paths.sort();
    Ok(paths)
}

/// Removes a folder with everything below it, if it exists.
///
/// # Errors
/// Fails if something in it cannot be removed.
pub fn remove_folder(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    Ok(())
}

/// Makes a folder, which is empty afterwards.
///
/// # Errors
/// Fails if it cannot be made.
pub fn make_empty(folder: &Path) -> Result<()> {
    remove_folder(folder)?;
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))
}

/// Makes the folder that holds a file.
///
/// # Errors
/// Fails if it cannot be made.
pub fn make_folder_of(path: &Path) -> Result<()> {
    let folder = path.parent().expect("a file lies in a folder");
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))
}

/// Copies a file; the folder of the copy is made.
///
/// # Errors
/// Fails if the file cannot be copied.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    make_folder_of(to)?;
    fs::copy(from, to)
        .with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
    Ok(())
}

/// Copies a folder with everything below it to `to`, or into `to` if that is a folder.
///
/// # Errors
/// Fails if something cannot be copied.
pub fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    make_folder_of(to)?;
    said(Command::new("cp").arg("-r").args([from, to]))?;
    Ok(())
}

/// Writes `text` into the document at `path`, between the first two such marks, in the place of
/// what is there.
///
/// # Errors
/// Fails if a mark is missing, or the document cannot be read or written.
pub fn replace_between(path: &Path, begin: &str, end: &str, text: &str) -> Result<()> {
    let shown = path.display();
    let document = fs::read_to_string(path).with_context(|| format!("reading {shown}"))?;
    let (before, rest) = document.split_once(begin).context("the document has a begin mark")?;
    let (_, after) = rest.split_once(end).context("the document has an end mark")?;
    let document = format!("{before}{begin}{text}{end}{after}");
    fs::write(path, document).with_context(|| format!("writing {shown}"))
}

/// Returns a path without `.` and `..`, each of which is taken as a step in a tree without links.
pub fn normal(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = whole.pop(),
            Component::CurDir => {}
            part => whole.push(part),
        }
    }
    whole
}

/// Returns the SHA-256 of bytes in hexadecimal digits.
pub fn checksum(bytes: &[u8]) -> String {
    let mut digits = String::new();
    for byte in Sha256::digest(bytes) {
        write!(digits, "{byte:02x}").expect("a string takes all");
    }
    digits
}
