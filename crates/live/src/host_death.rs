//! Death of the process, or of the power, that tests order at any change to a file.
//!
//! Outside of tests neither ever comes, and asking costs nothing.

use std::io;
use std::path::Path;

/// Change to a file that is about to be made.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(test), expect(dead_code, reason = "tests alone look at what changes"))]
pub(crate) enum FileChange<'a> {
    /// Bytes of a file are written or erased.
    Written { path: &'a Path, offset: u64, length: u64 },
    /// A file or a folder is made durable.
    Synced(&'a Path),
    /// A file takes the place of another one.
    Replaced(&'a Path),
    /// Anything else.
    Other,
}

/// Begins a change to a file; never fails outside of tests.
#[cfg(not(test))]
#[inline]
#[expect(clippy::unnecessary_wraps, reason = "it fails in tests")]
pub(crate) const fn begin(_: FileChange<'_>) -> io::Result<()> {
    Ok(())
}

/// False: outside of tests nothing is dead that can ask.
#[cfg(not(test))]
#[inline]
pub(crate) const fn has_come() -> bool {
    false
}

/// The number that the system drew when it started, which is another one after a power loss.
#[cfg(not(test))]
#[inline]
pub(crate) const fn start(drawn: u128) -> u128 {
    drawn
}

#[cfg(test)]
pub(crate) use self::ordered::{begin, cut_power, forget, has_come, order, revive, start};

#[cfg(test)]
mod ordered {
    use std::cell::RefCell;
    use std::collections::BTreeMap;
    use std::fs::{self, OpenOptions};
    use std::os::unix::fs::FileExt as _;
    use std::path::PathBuf;

    use blockio::Rng;

    use super::*;

    const SECTOR_BYTES: usize = 512;

    /// Contents that a power loss may bring back, and the time of the next death.
    #[derive(Debug, Default)]
    struct Host {
        /// Changes until it is dead; none: changes are not counted.
        changes_left: Option<u64>,
        is_dead: bool,
        /// Former contents of sectors that were written since their file was synced.
        sectors: BTreeMap<(PathBuf, u64), Vec<u8>>,
        /// Former contents of files that were replaced since their folder was synced.
        replaced: BTreeMap<PathBuf, Vec<u8>>,
        /// Power losses so far.
        power_losses: u128,
    }

    thread_local! {
        static HOST: RefCell<Host> = RefCell::new(Host::default());
    }

    /// Lets the process of this thread make so many more changes to files, and none after them.
    pub(crate) fn order(changes: u64) {
        HOST.with_borrow_mut(|host| host.changes_left = Some(changes));
    }

    /// True if the process is dead.
    pub(crate) fn has_come() -> bool {
        HOST.with_borrow(|host| host.is_dead)
    }

    /// A new process goes on with the files as they are.
    pub(crate) fn revive() {
        HOST.with_borrow_mut(|host| (host.changes_left, host.is_dead) = (Some(u64::MAX), false));
    }

    /// Takes note of no change any more.
    pub(crate) fn forget() {
        HOST.with_borrow_mut(|host| {
            *host = Host { power_losses: host.power_losses, ..Host::default() };
        });
    }

    /// Has each sector that was not synced be what it was, or stay, or hold part of both.
    pub(crate) fn cut_power(rng: &mut Rng) {
        let (sectors, replaced) = HOST.with_borrow_mut(|host| {
            host.power_losses += 1;
            (std::mem::take(&mut host.sectors), std::mem::take(&mut host.replaced))
        });
        let bias = rng.below(3);
        for ((path, sector), former) in sectors {
            let kept = match (bias, rng.below(4)) {
                (0, 1..) | (2, 0) => continue,
                (1, 1..) | (2, 1) => former.len(),
                _ => usize::try_from(rng.below(former.len() as u64 + 1)).expect("small"),
            };
            // A file that is gone by now has nothing to lose.
            if let Ok(file) = OpenOptions::new().write(true).open(path) {
                file.write_all_at(&former[..kept], sector * SECTOR_BYTES as u64)
                    .expect("it was written");
            }
        }
        for (path, former) in replaced {
            if rng.below(2) == 0 {
                fs::write(path, former).expect("it was written");
            }
        }
    }

    /// The number that the system drew when it started.
    pub(crate) fn start(drawn: u128) -> u128 {
        HOST.with_borrow(|host| drawn.wrapping_add(host.power_losses))
    }

    /// Begins a change to a file.
    ///
    /// # Errors
    /// Fails if the process is dead.
    pub(crate) fn begin(change: FileChange<'_>) -> io::Result<()> {
        HOST.with_borrow_mut(|host| {
            if host.changes_left == Some(0) {
                host.is_dead = true;
            }
            if host.is_dead {
                return Err(io::Error::other("the process has ended"));
            }
            // Only who orders deaths asks for what is lost.
            if let Some(left) = &mut host.changes_left {
                *left -= 1;
                host.note(change);
            }
            Ok(())
        })
    }

    impl Host {
        fn note(&mut self, change: FileChange<'_>) {
            match change {
                FileChange::Written { path, offset, length } => {
                    let Ok(file) = fs::File::open(path) else { return };
                    let bytes = SECTOR_BYTES as u64;
                    let end = (offset + length).div_ceil(bytes);
                    for sector in offset / bytes..end {
                        self.sectors.entry((path.to_owned(), sector)).or_insert_with(|| {
                            let mut former = vec![0; SECTOR_BYTES];
                            let read = file.read_at(&mut former, sector * bytes);
                            former.truncate(read.unwrap_or(0));
                            former
                        });
                    }
                }
                FileChange::Synced(path) => {
                    self.sectors.retain(|(written, _), _| written != path);
                    self.replaced.retain(|replaced, _| replaced.parent() != Some(path));
                }
                FileChange::Replaced(path) => {
                    if let Ok(former) = fs::read(path) {
                        self.replaced.entry(path.to_owned()).or_insert(former);
                    }
                }
                FileChange::Other => {}
            }
        }
    }
}
