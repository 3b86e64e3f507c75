//! Hosts with too little space, such as for sparse dies that may grow beyond what their file system
//! has free.

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use blockio::Bytes;

use super::folder::read;
use super::space_taken::file_system;

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
