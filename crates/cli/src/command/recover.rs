//! `floatgate recover`: what is left of a drive that cannot be opened.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use blockio::text::counted;
use live::{Salvage, Salvaged};
use serde::Serialize;

use crate::args::Recover;
use crate::progress::Rows;
use crate::{Ending, output};

const PAGE_BYTES: usize = 4096;
/// Most ranges of lost pages that are listed.
const LISTED_MAX: usize = 20;
/// Pages between two looks at the progress.
const PAGES_AT_ONCE: u32 = 256;

/// What was found.
#[derive(Debug, Serialize)]
struct Found {
    /// The checkpoint that it was read from, and all that the dies name.
    checkpoint: u64,
    checkpoints: Vec<u64>,
    /// What cannot be relied upon.
    doubts: Vec<String>,
    size_bytes: u64,
    /// Pages that were read, those that hold nothing, and those that cannot be read.
    pages_read: u64,
    pages_unmapped: u64,
    pages_lost: u64,
    /// Lost pages, as ranges of bytes.
    lost: Vec<Range>,
}

/// Bytes that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Range {
    offset_bytes: u64,
    size_bytes: u64,
}

/// Reads every page, copies what can be read if asked to, and fails if anything is lost or
/// doubtful.
pub(crate) fn recover(args: &Recover) -> Result<Ending> {
    let shown = args.vault.display();
    let salvage = Salvage::open(&args.vault, args.checkpoint)
        .with_context(|| format!("reading what is left of {shown}"))?;
    let image = match &args.out {
        Some(path) => Some((path.as_path(), new_file(path)?)),
        None => None,
    };
    let found = read_all(&salvage, image.as_ref().map(|(_, file)| file))?;
    if let Some((path, file)) = &image {
        let size = found.size_bytes;
        let failed = || format!("writing {}", path.display());
        file.set_len(size).and_then(|()| file.sync_all()).with_context(failed)?;
        let map = map_of(path);
        write_new(&map, ddrescue_map(&found).as_bytes())
            .with_context(|| format!("writing {}", map.display()))?;
    }
    if args.json {
        output::json(&found)?;
    } else {
        output::data(&text(&found))?;
    }
    if found.pages_lost == 0 && found.doubts.is_empty() {
        return Ok(Ending::Done);
    }
    let (lost, doubts) = (counted(found.pages_lost, "page"), found.doubts.len() as u64);
    bail!("{shown}: {lost} lost, {} named", counted(doubts, "doubt"))
}

/// A file that did not exist.
fn new_file(path: &Path) -> Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    file.with_context(|| format!("making {}", path.display()))
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all_at(bytes, 0)?;
    file.sync_all()
}

fn read_all(salvage: &Salvage, image: Option<&File>) -> Result<Found> {
    let pages = salvage.pages();
    let mut found = Found {
        checkpoint: salvage.checkpoint(),
        checkpoints: salvage.checkpoints().to_vec(),
        doubts: salvage.doubts().to_vec(),
        size_bytes: u64::from(pages) * PAGE_BYTES as u64,
        pages_read: 0,
        pages_unmapped: 0,
        pages_lost: 0,
        lost: Vec::new(),
    };
    let rows = Rows::new("reading");
    let mut page = [0; PAGE_BYTES];
    let size_bytes = PAGE_BYTES as u64;
    for index in 0..pages {
        if index % PAGES_AT_ONCE == 0 {
            rows.moved(index.into(), pages.into());
        }
        let offset = u64::from(index) * size_bytes;
        match salvage.read(index, &mut page) {
            Salvaged::Read => {
                found.pages_read += 1;
                let written = image.map_or(Ok(()), |file| file.write_all_at(&page, offset));
                written.context("writing the image")?;
            }
            Salvaged::Unmapped => found.pages_unmapped += 1,
            Salvaged::Lost => {
                found.pages_lost += 1;
                let goes_on = |last: &&mut Range| last.offset_bytes + last.size_bytes == offset;
                match found.lost.last_mut().filter(goes_on) {
                    Some(last) => last.size_bytes += size_bytes,
                    None => found.lost.push(Range { offset_bytes: offset, size_bytes }),
                }
            }
        }
    }
    rows.clear();
    Ok(found)
}

fn text(found: &Found) -> String {
    let numbers: Vec<String> = found.checkpoints.iter().map(ToString::to_string).collect();
    let mut lines = vec![
        format!("read from checkpoint {} of {}", found.checkpoint, numbers.join(", ")),
        format!(
            "{} read, {} never written or trimmed, {} lost",
            counted(found.pages_read, "page"),
            found.pages_unmapped,
            found.pages_lost
        ),
    ];
    lines.extend(found.doubts.iter().map(|doubt| format!("doubtful: {doubt}")));
    for Range { offset_bytes, size_bytes } in found.lost.iter().take(LISTED_MAX) {
        let (first, sectors) = (offset_bytes / 512, size_bytes / 512);
        lines.push(format!("lost: sectors {first} to {}", first + sectors - 1));
    }
    if found.lost.len() > LISTED_MAX {
        lines.push(format!("and {} more ranges; --json lists all", found.lost.len() - LISTED_MAX));
    }
    lines.join("\n")
}

/// `IMAGE.map`.
fn map_of(image: &Path) -> PathBuf {
    let mut path = image.as_os_str().to_owned();
    path.push(".map");
    PathBuf::from(path)
}

/// A mapfile as GNU ddrescue writes it: ranges that were read, and ranges that were not.
fn ddrescue_map(found: &Found) -> String {
    let mut map = String::from(
        "# Mapfile. Created by floatgate\n# current_pos  current_status  current_pass\n",
    );
    let _ = writeln!(map, "0x{:08X}     +               1", found.size_bytes);
    map.push_str("#      pos        size  status\n");
    let mut at = 0;
    let end = Range { offset_bytes: found.size_bytes, size_bytes: 0 };
    for Range { offset_bytes, size_bytes } in found.lost.iter().copied().chain([end]) {
        if offset_bytes > at {
            let _ = writeln!(map, "0x{at:08X}  0x{:08X}  +", offset_bytes - at);
        }
        if size_bytes > 0 {
            let _ = writeln!(map, "0x{offset_bytes:08X}  0x{size_bytes:08X}  -");
        }
        at = offset_bytes + size_bytes;
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_covers_the_image_without_gaps() {
        let range = |offset_bytes, size_bytes| Range { offset_bytes, size_bytes };
        let found = Found {
            checkpoint: 1,
            checkpoints: vec![1],
            doubts: Vec::new(),
            size_bytes: 0x10000,
            pages_read: 13,
            pages_unmapped: 0,
            pages_lost: 3,
            lost: vec![range(0, 0x1000), range(0x4000, 0x2000)],
        };
        let map = ddrescue_map(&found);
        let ranges: Vec<&str> = map.lines().filter(|line| !line.starts_with('#')).skip(1).collect();
        let expected = [
            "0x00000000  0x00001000  -",
            "0x00001000  0x00003000  +",
            "0x00004000  0x00002000  -",
            "0x00006000  0x0000A000  +",
        ];
        assert_eq!(ranges, expected);
    }
}
