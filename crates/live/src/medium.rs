//! Media that dies are made of: storage that is written at byte offsets and made durable.
//!
//! A medium promises little, and nothing more is assumed of it anywhere:
//! - What was written is read back, until the power goes.
//! - Once [`Medium::sync`] has returned, what was written before it was called survives.
//! - Of what was not synced, each sector of 512 bytes may survive, may be as it was before, or may
//!   hold part of both; one sector says nothing about another.
//! - A read may fail, or silently return what was never written there; checksums tell.
//! - Requests to several media may be submitted together; they are carried out in any order.

mod aligned;
mod batch;
mod buffer_memory;
mod file;
mod ring;

use std::any::Any;
use std::fmt;
use std::io::{self, IoSliceMut};

pub use self::batch::{MediumRead, MediumWrite};
pub(crate) use self::batch::{read_all, write_and_sync};
pub(crate) use self::buffer_memory::MappedFile;
pub use self::buffer_memory::{BufferMemory, MachineFile};
pub(crate) use self::file::is_block_device;
pub use self::file::{Access, FileMedium, Preallocation};

/// Zeroes that are written at a time.
const ZEROES_BYTES: usize = 1 << 20;

/// Space of the host that a die lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostSpace {
    /// Number of the file system.
    pub system: u64,
    /// Bytes that the die may still take.
    pub lacking: u64,
    /// Bytes that are free.
    pub free: u64,
}

/// Bytes at positions. Many threads may call at once.
///
/// A die of one's own needs four calls. This one lies in memory, and so does the drive over it:
///
/// ```
/// use std::io;
/// use std::sync::{Arc, Mutex};
///
/// use blockio::Bytes;
/// use live::{Compression, Device as _, Drive, Durability, Medium, Plan, format};
///
/// #[derive(Clone, Debug)]
/// struct Memory(Arc<Mutex<Vec<u8>>>);
///
/// impl Memory {
///     fn with<T>(&self, offset: u64, work: impl FnOnce(&mut [u8]) -> T) -> T {
///         work(&mut self.0.lock().expect("no thread panics")[offset as usize..])
///     }
/// }
///
/// impl Medium for Memory {
///     fn size(&self) -> u64 {
///         self.with(0, |bytes| bytes.len() as u64)
///     }
///     fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
///         self.with(offset, |bytes| buffer.copy_from_slice(&bytes[..buffer.len()]));
///         Ok(())
///     }
///     fn write_at(&self, offset: u64, written: &[u8]) -> io::Result<()> {
///         self.with(offset, |bytes| bytes[..written.len()].copy_from_slice(written));
///         Ok(())
///     }
///     fn sync(&self) -> io::Result<()> {
///         Ok(())
///     }
/// }
///
/// let plan = Plan {
///     size: Bytes(8 << 20),
///     dies: 1,
///     is_protected: false,
///     over_provisioning: 0.2,
///     compression: Compression::None,
///     physical: None,
///     unit: None,
/// };
/// let shape = plan.shape()?;
/// let die = Memory(Arc::new(Mutex::new(vec![0; shape.die_bytes().0 as usize])));
/// format(vec![Box::new(die.clone())], &shape, 1)?;
/// let drive = Drive::open_media(vec![Box::new(die)])?;
/// drive.write(0, b"in memory", Durability::Durable)?;
/// drive.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Medium: Any + fmt::Debug + Send + Sync {
    /// Bytes that it holds.
    fn size(&self) -> u64;

    /// Makes it longer, so that it holds `size` bytes: zeroes that have their space.
    ///
    /// # Errors
    /// Fails if it cannot be longer; then it may hold some of them.
    fn lengthen(&self, size: u64) -> io::Result<()> {
        let _ = size;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Fills `buffer` from `offset` on.
    ///
    /// # Errors
    /// Fails if it cannot be filled.
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
    /// Fails if not all of it could be written; then any part of it may have been.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Has what lies there read as zeroes: nothing gives it back once that was made durable. A
    /// sparse file becomes a hole there, as far as the system can.
    ///
    /// # Errors
    /// As [`Medium::write_at`].
    fn erase(&self, offset: u64, length: u64) -> io::Result<()> {
        overwrite(self, offset, length)
    }

    /// Makes durable whatever was written before.
    ///
    /// # Errors
    /// Fails if it is not known to be.
    fn sync(&self) -> io::Result<()>;

    /// Has the system begin with what was written there, which is not read again soon: the sync
    /// that follows then has less to wait for. Promises nothing.
    fn begin_sync(&self, offset: u64, length: u64) {
        let _ = (offset, length);
    }

    /// Returns the free space of the host beneath the medium; none if all of its space is
    /// allocated, or that is not known.
    fn host_space(&self) -> Option<HostSpace> {
        None
    }

    /// Path by which people know it; empty where it has none.
    fn name(&self) -> String {
        String::new()
    }

    /// Carries out reads of several media, of which this is the first one's, and says of each
    /// whether its buffers were filled: at once where all are media of one kind that can, else one
    /// after the other.
    fn submit_reads(&self, batch: &mut [MediumRead<'_, '_>]) -> Vec<io::Result<()>> {
        batch::read_in_turn(batch)
    }

    /// As [`Medium::submit_reads`], writes what is to be written and makes all media of the batch
    /// durable; says of each whether it is.
    fn submit_writes(&self, batch: &[MediumWrite<'_>]) -> Vec<io::Result<()>> {
        batch::write_in_turn(batch)
    }
}

/// The file that a medium is and nothing besides; none where requests have to pass through it.
pub(crate) fn file_of(medium: &dyn Medium) -> Option<&FileMedium> {
    (medium as &dyn Any).downcast_ref()
}

/// Writes zeroes over what lies there.
pub(crate) fn overwrite(
    medium: &(impl Medium + ?Sized),
    offset: u64,
    length: u64,
) -> io::Result<()> {
    let zeroes = vec![0; ZEROES_BYTES];
    let end = offset + length;
    for at in (offset..end).step_by(ZEROES_BYTES) {
        let part = usize::try_from(end - at).unwrap_or(ZEROES_BYTES).min(ZEROES_BYTES);
        medium.write_at(at, &zeroes[..part])?;
    }
    Ok(())
}
