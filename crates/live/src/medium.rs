//! What dies are made of: places that bytes can be written to and made durable.
//!
//! A medium promises little, and nothing more is assumed of it anywhere:
//! - What was written is read back, until the power goes.
//! - Once [`Medium::sync`] has returned, what was written before it was called survives.
//! - Of what was not synced, each sector of 512 bytes may survive, may be as it was before, or may
//!   hold part of both; one sector says nothing about another.
//! - A read may fail, or silently return what was never written there; checksums tell.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::fs::FallocateFlags;

/// How often a lock is tried for again, and how long after.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(10);
/// Zeroes that are written at a time.
const ZEROES_BYTES: usize = 1 << 20;

/// Bytes at positions. Many threads may call at once.
pub trait Medium: fmt::Debug + Send + Sync {
    /// Bytes that it holds.
    fn size(&self) -> u64;

    /// Fills `buffer` from `offset` on.
    ///
    /// # Errors
    /// When it cannot be filled.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Fills `buffers` one after the other from `offset` on, in one go where that is possible.
    ///
    /// # Errors
    /// As [`Medium::read_at`].
    fn read_vectored_at(&self, offset: u64, buffers: &mut [IoSliceMut<'_>]) -> io::Result<()> {
        let mut at = offset;
        for buffer in buffers {
            self.read_at(at, buffer)?;
            at += buffer.len() as u64;
        }
        Ok(())
    }

    /// Writes `bytes` from `offset` on.
    ///
    /// # Errors
    /// When not all of it could be written; then any part of it may have been.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Has what lies there read as zeroes: nothing gives it back once that was made durable, and
    /// where the system can it takes no space any more.
    ///
    /// # Errors
    /// As [`Medium::write_at`].
    fn erase(&self, offset: u64, length: u64) -> io::Result<()> {
        overwrite(self, offset, length)
    }

    /// Makes durable whatever was written before.
    ///
    /// # Errors
    /// When it is not known to be.
    fn sync(&self) -> io::Result<()>;
}

/// Locks a file that nobody has open. A process that is being started holds what its parent has
/// open until it runs a program of its own, so a lock that was given up may be there for a moment.
fn patiently(lock: impl Fn() -> Result<(), TryLockError>) -> io::Result<()> {
    for _ in 0..LOCK_TRIES {
        match lock() {
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_PAUSE),
            done => return done.map_err(io::Error::from),
        }
    }
    lock().map_err(io::Error::from)
}

/// Writes zeroes over what lies there.
fn overwrite(medium: &(impl Medium + ?Sized), offset: u64, length: u64) -> io::Result<()> {
    let zeroes = vec![0; ZEROES_BYTES];
    let end = offset + length;
    for at in (offset..end).step_by(ZEROES_BYTES) {
        let part = usize::try_from(end - at).unwrap_or(ZEROES_BYTES).min(ZEROES_BYTES);
        medium.write_at(at, &zeroes[..part])?;
    }
    Ok(())
}

/// A file or a block device, through the page cache of the system.
#[derive(Debug)]
pub struct FileMedium {
    file: File,
    size: u64,
}

impl FileMedium {
    /// Makes a file of `size` bytes that take space once they are written. A file that exists is
    /// left alone.
    ///
    /// # Errors
    /// When it exists or cannot be made.
    pub fn create(path: &Path, size: u64) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        file.set_len(size)?;
        Self::over(file)
    }

    /// Opens a file or block device and holds it against a second drive.
    ///
    /// # Errors
    /// When it does not exist, may not be written, or is in use.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::over(OpenOptions::new().read(true).write(true).open(path)?)
    }

    /// Opens a file or block device for reading only, beside others that do.
    ///
    /// # Errors
    /// When it does not exist, may not be read, or a drive uses it.
    pub(crate) fn view(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        patiently(|| file.try_lock_shared())?;
        Self::sized(file)
    }

    fn over(file: File) -> io::Result<Self> {
        patiently(|| file.try_lock())?;
        Self::sized(file)
    }

    fn sized(file: File) -> io::Result<Self> {
        // The length that metadata tells is zero for a block device.
        let size = io::Seek::seek(&mut (&file), io::SeekFrom::End(0))?;
        Ok(Self { file, size })
    }
}

impl Medium for FileMedium {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    fn read_vectored_at(&self, offset: u64, buffers: &mut [IoSliceMut<'_>]) -> io::Result<()> {
        let wanted: usize = buffers.iter().map(|buffer| buffer.len()).sum();
        let read = rustix::io::preadv(&self.file, buffers, offset)?;
        if read == wanted {
            return Ok(());
        }
        // Less than asked for is rare: begin again, in pieces.
        let mut at = offset;
        for buffer in buffers {
            self.read_at(at, buffer)?;
            at += buffer.len() as u64;
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn erase(&self, offset: u64, length: u64) -> io::Result<()> {
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.file, punch, offset, length) {
            Ok(()) => Ok(()),
            // Not every file system knows holes, and not every device zeroes what it discards.
            Err(_) => overwrite(self, offset, length),
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}
