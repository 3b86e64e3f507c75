//! Space of the host: what the files of a volume take, and hosts that have too little of it, such
//! as for sparse dies that may grow beyond what their file system has free.

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf, absolute};

use blockio::Bytes;
use blockio::text::counted;

use super::folder::read;
use crate::format::layout::Layout;
use crate::medium::is_block_device;
use crate::status::HostShortage;
use crate::{CreateOptions, Drive, OpenError, Preallocation, VolumeOptions};

/// Bytes of the blocks that the system counts a file's space in.
const SECTOR_BYTES: u64 = 512;

/// A file system that has too little space free for the dies on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// One of the dies.
    pub path: PathBuf,
    /// Bytes that the dies on it may still take, spare ones included.
    pub needed: Bytes,
    /// Bytes that are free.
    pub free: Bytes,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, needed, free } = self;
        let path = path.display();
        write!(
            f,
            "the file system of {path} has {free} free, the dies on it may take {needed} more; \
             writes fail with ENOSPC once it is full"
        )
    }
}

/// Space that the dies and hot spares of a new volume take on a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceTaken {
    /// One of them.
    pub path: PathBuf,
    /// Number of them, 1 to 64 and the hot spares.
    pub files: u64,
    /// Bytes taken when they are created: of sparse ones what headers, journal and checkpoints
    /// need, of others all.
    pub at_once: Bytes,
    /// Bytes taken at most.
    pub most: Bytes,
    /// Bytes that are free.
    pub free: Bytes,
}

impl SpaceTaken {
    /// Space that the files of a new volume take, by file system; none of block devices.
    ///
    /// # Errors
    /// As [`CreateOptions::check`].
    pub fn of(options: &CreateOptions, volume: &VolumeOptions) -> Result<Vec<Self>, OpenError> {
        let layout = Layout::new(&options.shape()?);
        let most = layout.die_bytes();
        let at_once = match volume.preallocation {
            Preallocation::Full => most,
            Preallocation::Off => layout.unit_from(0),
        };
        let mut systems: BTreeMap<u64, Self> = BTreeMap::new();
        for path in options.dies.iter().chain(&volume.hot_spares) {
            // What cannot be found is told when the file is made.
            let Some((system, free)) = file_system(path) else { continue };
            let zero = Bytes(0);
            let it = Self { path: path.clone(), files: 0, at_once: zero, most: zero, free };
            let it = systems.entry(system).or_insert(it);
            it.files += 1;
            it.at_once.0 += at_once;
            it.most.0 += most;
        }
        Ok(systems.into_values().collect())
    }

    /// Checks that each file system has room for what the files of a new volume take at once.
    ///
    /// # Errors
    /// Names the first one that has not.
    pub(super) fn check(options: &CreateOptions, volume: &VolumeOptions) -> Result<(), OpenError> {
        let all = Self::of(options, volume)?;
        let Some(short) = all.into_iter().find(|it| it.at_once > it.free) else { return Ok(()) };
        let Self { path, files, at_once, free, .. } = &short;
        let remedy = match volume.preallocation {
            Preallocation::Off => "choose a smaller size or fewer dies",
            Preallocation::Full => "use --sparse, which takes space as it is written",
        };
        Err(OpenError::refused(format!(
            "the {} on the file system of {} take {at_once} when they are created, and it has \
             {free} free; free some space, or {remedy}",
            counted(*files, "file"),
            path.display(),
        )))
    }
}

/// The file system that a file is or is to be on, and its free bytes; none of a block device.
fn file_system(path: &Path) -> Option<(u64, Bytes)> {
    if is_block_device(path) {
        return None;
    }
    let path = absolute(path).ok()?;
    let there = path.ancestors().find(|it| it.exists())?;
    let space = rustix::fs::statvfs(there).ok()?;
    Some((there.metadata().ok()?.dev(), Bytes(space.f_bavail.saturating_mul(space.f_frsize))))
}

impl Drive {
    /// Free space of the host that is too little for a write of one page, or for one that was
    /// refused; none where there is enough.
    pub fn host_shortage(&self) -> Option<HostShortage> {
        self.headroom.shortage(self.store())
    }
}

/// File systems with too little space for the dies of a folder's drive; none where there is no
/// drive.
pub fn host_shortages(volume: &Path) -> Vec<Shortage> {
    let Ok(described) = read(volume) else { return Vec::new() };
    let mut systems: BTreeMap<u64, Shortage> = BTreeMap::new();
    for path in described.dies.into_iter().chain(described.spares) {
        let Ok(file) = path.metadata() else { continue };
        let lacking = file.len().saturating_sub(file.blocks() * SECTOR_BYTES);
        let Some((system, free)) = file_system(&path).filter(|_| lacking > 0) else { continue };
        let shortage = Shortage { path, needed: Bytes(0), free };
        systems.entry(system).or_insert(shortage).needed.0 += lacking;
    }
    systems.into_values().filter(|it| it.needed > it.free).collect()
}
