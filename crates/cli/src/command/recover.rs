//! `floatgate volume recover`: the readable data of a volume that cannot be opened, reported,
//! copied or served.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use blockio::Bytes;
use blockio::text::counted;
use export::{Address, Export, Exports, Listener};
use export::{Limits, Server};
use lab::{Error, Kind};
use live::{Device, Namespace, Namespaces, RecoveredPage, RecoveredVolume, is_opal_locked};
use serde::Serialize;
use server::front_ends::nbd;
use server::log::{self, Level, Log};
use server::signals::{self, Signal};
use tracing::{info, warn};

use crate::args::Recover;
use crate::failure::Opening;
use crate::progress::Rows;
use crate::{Ending, output};

const PAGE_BYTES: usize = 4096;
/// Most ranges of lost pages that are listed.
const LISTED_MAX: usize = 20;
/// Pages between two looks at the progress.
const PAGES_AT_ONCE: u32 = 256;

/// Result of a recovery.
#[derive(Debug, Serialize)]
struct RecoveryResult {
    /// The checkpoint that it was read from, and all that the dies name.
    checkpoint: u64,
    checkpoints: Vec<u64>,
    /// Reasons why the data read may not be the data last written.
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

/// Serves what can be read, or reads every page, copies what can be read if asked to, and fails if
/// anything is lost or doubtful.
pub(crate) fn recover(args: &Recover) -> Result<Ending> {
    if args.force && args.nbd.is_empty() {
        let text = "--force has nothing to serve";
        return Err(Error::new(Kind::Input, text).hint("add --nbd ADDRESS, without --out").into());
    }
    let shown = args.volume.display();
    let recovered = RecoveredVolume::open(&args.volume, args.checkpoint, args.key.key()?.as_ref())
        .with_context(|| Opening::for_recovery(&args.volume))?;
    if !args.nbd.is_empty() {
        if is_opal_locked(&args.volume)? {
            let text =
                format!("{shown}: a host locked it by TCG Opal, so it is not served past that");
            let hint = "unlock it as that host, or copy the data for its owner: --out FILE";
            return Err(Error::new(Kind::Input, text).hint(hint).into());
        }
        return serve_read_only(args, recovered);
    }
    let image = match &args.out {
        Some(path) => Some((path.as_path(), new_file(path)?)),
        None => None,
    };
    let found = read_all(&recovered, image.as_ref().map(|(_, file)| file))?;
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
    let lost = counted(found.pages_lost, "page");
    bail!("{shown}: {lost} lost, {} reported", inconsistencies(&found.doubts))
}

fn inconsistencies(doubts: &[String]) -> String {
    match doubts.len() {
        1 => "1 inconsistency".to_owned(),
        count => format!("{count} inconsistencies"),
    }
}

/// Serves what can be read until a signal ends it; refuses where something is doubtful, unless that
/// is accepted.
fn serve_read_only(args: &Recover, recovered: RecoveredVolume) -> Result<Ending> {
    let _log = Log::start(Level::Info, false)?;
    let (shown, numbers) = (args.volume.display(), numbers(recovered.checkpoints()));
    for doubt in recovered.doubts() {
        warn!("inconsistency: {doubt}");
    }
    if !recovered.doubts().is_empty() && !args.force {
        let found = inconsistencies(recovered.doubts());
        bail!(
            "{shown}: {found} reported, so any page may be older than the last write; --force \
             serves the data nevertheless"
        );
    }
    let bind = |address: &Address| {
        let listener = Listener::bind(address)?;
        if listener.is_reachable_from_outside() {
            log::warn_of_reach(listener.address());
        }
        Ok(listener)
    };
    let listeners = args.nbd.iter().map(bind).collect::<Result<Vec<_>>>()?;
    let checkpoint = recovered.checkpoint();
    let device: Arc<dyn Device> = Arc::new(recovered);
    let exports = exports(&args.volume, &device)?;
    let offered = nbd::export_statuses(&exports, &listeners);
    let signals = signals::received()?;
    let server = Server::start(exports, listeners, Limits::default(), log::log_client);
    let server = server.context("starting the server")?;
    info!("served read-only from checkpoint {checkpoint} (of {numbers}); no die is written");
    output::exports(&offered, args.json)?;
    while signals.recv().context("waiting for a signal")? == Signal::Reload {}
    server.stop().context("ending the server")?;
    Ok(Ending::Done)
}

/// The exports of a volume, or the whole of it, read-only.
fn exports(volume: &Path, device: &Arc<dyn Device>) -> Result<Exports> {
    let namespaces = Namespaces::of(volume)?;
    let export = |name: &str, device: Arc<dyn Device>| Export {
        name: name.to_owned(),
        description: volume.display().to_string(),
        device,
        is_read_only: true,
        pace: None,
    };
    if namespaces.is_empty() {
        return Ok(Exports::new(vec![export("", Arc::clone(device))])?);
    }
    namespaces.check_capacity(Bytes(device.size()))?;
    let part = |it: &Namespace| export(&it.name, live::namespace_device(it, Arc::clone(device)));
    Ok(Exports::new(namespaces.iter().map(part).collect())?)
}

/// A file that did not exist.
fn new_file(path: &Path) -> Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    file.with_context(|| format!("creating {}", path.display()))
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all_at(bytes, 0)?;
    file.sync_all()
}

fn read_all(recovered: &RecoveredVolume, image: Option<&File>) -> Result<RecoveryResult> {
    let pages = recovered.pages();
    let mut found = RecoveryResult {
        checkpoint: recovered.checkpoint(),
        checkpoints: recovered.checkpoints().to_vec(),
        doubts: recovered.doubts().to_vec(),
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
        match recovered.read(index, &mut page) {
            RecoveredPage::Read => {
                found.pages_read += 1;
                let written = image.map_or(Ok(()), |file| file.write_all_at(&page, offset));
                written.context("writing the image")?;
            }
            RecoveredPage::Unmapped => found.pages_unmapped += 1,
            RecoveredPage::Lost => {
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

fn text(found: &RecoveryResult) -> String {
    let mut lines = vec![
        format!("read from checkpoint {} (of {})", found.checkpoint, numbers(&found.checkpoints)),
        format!(
            "{} read, {} never written or trimmed, {} lost",
            counted(found.pages_read, "page"),
            found.pages_unmapped,
            found.pages_lost
        ),
    ];
    lines.extend(found.doubts.iter().map(|doubt| format!("inconsistency: {doubt}")));
    for Range { offset_bytes, size_bytes } in found.lost.iter().take(LISTED_MAX) {
        let (first, sectors) = (offset_bytes / 512, size_bytes / 512);
        lines.push(format!("lost: sectors {first} to {}", first + sectors - 1));
    }
    if found.lost.len() > LISTED_MAX {
        lines.push(format!("and {} more ranges; --json lists all", found.lost.len() - LISTED_MAX));
    }
    lines.join("\n")
}

/// Numbers of checkpoints in a sentence.
fn numbers(checkpoints: &[u64]) -> String {
    checkpoints.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// `IMAGE.map`.
fn map_of(image: &Path) -> PathBuf {
    let mut path = image.as_os_str().to_owned();
    path.push(".map");
    PathBuf::from(path)
}

/// A mapfile as GNU ddrescue writes it: ranges that were read, and ranges that were not.
fn ddrescue_map(found: &RecoveryResult) -> String {
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
        let found = RecoveryResult {
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
