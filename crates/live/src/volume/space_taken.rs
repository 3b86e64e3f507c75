//! Space of the host that the files of a volume take.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf, absolute};

use blockio::Bytes;
use blockio::text::counted;

use crate::format::layout::{HEADER_BYTES, Layout};
use crate::medium::is_block_device;
use crate::{OpenError, Preallocation, Shape};

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
    /// Space that the dies and hot spares at `paths` of a new volume of `shape` take, by file
    /// system; none of block devices.
    pub fn of<'a>(
        shape: &Shape,
        paths: impl Iterator<Item = &'a PathBuf>,
        preallocation: Preallocation,
    ) -> Vec<Self> {
        let layout = Layout::new(shape);
        let most = layout.die_bytes_with_end();
        let at_once = match preallocation {
            Preallocation::Full => most,
            Preallocation::Off => layout.unit_from(0) + HEADER_BYTES,
        };
        let mut systems: BTreeMap<u64, Self> = BTreeMap::new();
        for path in paths {
            // What cannot be found is told when the file is made.
            let Some((system, free)) = file_system(path) else { continue };
            let zero = Bytes(0);
            let it = Self { path: path.clone(), files: 0, at_once: zero, most: zero, free };
            let it = systems.entry(system).or_insert(it);
            it.files += 1;
            it.at_once.0 += at_once;
            it.most.0 += most;
        }
        systems.into_values().collect()
    }

    /// Checks that each file system has room for what the files of a new volume take at once.
    ///
    /// # Errors
    /// Names the first one that has not.
    pub(super) fn check<'a>(
        shape: &Shape,
        paths: impl Iterator<Item = &'a PathBuf>,
        preallocation: Preallocation,
    ) -> Result<(), OpenError> {
        let all = Self::of(shape, paths, preallocation);
        let Some(short) = all.into_iter().find(|it| it.at_once > it.free) else { return Ok(()) };
        let Self { path, files, at_once, free, .. } = &short;
        let remedy = match preallocation {
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
pub(super) fn file_system(path: &Path) -> Option<(u64, Bytes)> {
    if is_block_device(path) {
        return None;
    }
    let path = absolute(path).ok()?;
    let there = path.ancestors().find(|it| it.exists())?;
    let space = rustix::fs::statvfs(there).ok()?;
    Some((there.metadata().ok()?.dev(), Bytes(space.f_bavail.saturating_mul(space.f_frsize))))
}
