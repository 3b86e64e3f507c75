//! Files and block devices, through the page cache of the system or past it.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, IoSliceMut};
use std::num::NonZeroU64;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use blockio::Bytes;
use device::is_host_full;
use rustix::fs::{Advice, AtFlags, FallocateFlags, OFlags, StatxFlags};
use rustix::io::Errno;

use super::aligned::{ALIGN, AlignedBytes, Cover};
use super::{Medium, MediumRead, MediumWrite, ZEROES_BYTES, batch, overwrite, ring};
use crate::host_death::{self, FileChange};
use crate::medium::HostSpace;

/// Bytes of the blocks that the system counts a file's space in.
const SECTOR_BYTES: u64 = 512;
/// Attempts at a lock, and the pause after each.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// I/O mode of files and block devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Past the page cache of the system (`O_DIRECT`): what a drive has in memory is then what it
    /// says it has, and its speed is that of the medium.
    pub is_direct: bool,
    /// Several things at once through `io_uring`, where the system has it.
    pub is_ringed: bool,
}

/// Allocation of the host's space for a file when it is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preallocation {
    /// All of it: what is written later never lacks space (`fallocate`).
    #[default]
    Full,
    /// None: a sparse file, which takes space once it is written, while the host has any.
    Off,
}

impl Default for Access {
    /// Through the page cache, several things at once.
    fn default() -> Self {
        Self { is_direct: false, is_ringed: true }
    }
}

/// As this thread would be served by the system.
impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = if self.is_direct { "bypassing" } else { "through" };
        let at_once = if self.is_ringed && ring::is_there() {
            "requests in parallel through io_uring"
        } else {
            "one request at a time"
        };
        write!(f, "{way} the page cache, {at_once}")
    }
}

/// A file or a block device.
#[derive(Debug)]
pub struct FileMedium {
    file: File,
    path: PathBuf,
    size: AtomicU64,
    access: Access,
    /// Allocation of its space when it was opened.
    preallocation: Preallocation,
    /// Bytes that are read and written at a time, and at multiples of them.
    block_bytes: usize,
    /// Held while a part of a block is written.
    patching: Mutex<()>,
}

impl FileMedium {
    /// Makes a file of `size` bytes, which only its owner may read and write. A file that exists is
    /// left alone; one that could not be made whole is removed.
    ///
    /// # Errors
    /// Fails if it exists or cannot be made, the host has too little space for it, or it cannot be
    /// accessed so.
    pub fn create(
        path: &Path,
        size: u64,
        access: Access,
        preallocation: Preallocation,
    ) -> io::Result<Self> {
        host_death::begin(FileChange::Other)?;
        let file = options(access, OFlags::empty()).create_new(true).open(path);
        let file = file.map_err(|error| told(error, access))?;
        let free = free_bytes(&file);
        let allocated = match preallocation {
            Preallocation::Full => allocate(&file, size),
            Preallocation::Off => Ok(()),
        };
        let made = allocated
            .and_then(|()| host_death::begin(FileChange::Other))
            .and_then(|()| file.set_len(size))
            .map_err(|error| lacking(error, size, free))
            .and_then(|()| Self::over(file, path, access));
        if made.is_err() && !host_death::has_come() {
            // It holds nothing yet; why it was not made is what counts.
            let _ = std::fs::remove_file(path);
        }
        made
    }

    /// Opens a file or block device and holds it against a second drive; a block device also
    /// against mounts, swap, RAID and LVM, as `O_EXCL` does.
    ///
    /// # Errors
    /// Fails if it does not exist, may not be written, is in use, or cannot be accessed so.
    pub fn open(path: &Path, access: Access) -> io::Result<Self> {
        check_kind(path)?;
        let open = |flags| open_with(path, access, flags).map_err(|error| told(error, access));
        if !is_block_device(path) {
            return Self::over(open(OFlags::empty())?, path, access);
        }
        match open(OFlags::EXCL) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                // Another drive that has it says so by its lock.
                let other = open(OFlags::empty())?;
                patiently(|| other.try_lock())?;
                drop(other);
                Self::over(open(OFlags::EXCL).map_err(claimed)?, path, access)
            }
            file => Self::over(file?, path, access),
        }
    }

    /// Opens a file or block device for reading only, beside others that do.
    ///
    /// # Errors
    /// Fails if it does not exist, may not be read, or a drive uses it.
    pub(crate) fn view(path: &Path) -> io::Result<Self> {
        check_kind(path)?;
        let file = File::open(path)?;
        patiently(|| file.try_lock_shared())?;
        Self::sized(file, path, Access::default())
    }

    fn over(file: File, path: &Path, access: Access) -> io::Result<Self> {
        patiently(|| file.try_lock())?;
        Self::sized(file, path, access)
    }

    fn sized(file: File, path: &Path, access: Access) -> io::Result<Self> {
        // The length that metadata tells is zero for a block device.
        let size = io::Seek::seek(&mut (&file), io::SeekFrom::End(0))?;
        // After a sync that failed the cache still has what never reached the medium, as clean.
        // Advice: what is dirty stays, and some file systems have no cache to drop.
        let _ = rustix::fs::fadvise(&file, 0, None, Advice::DontNeed);
        let block_bytes = if access.is_direct { block_bytes(&file) } else { 1 };
        // Block devices have no blocks of a file system.
        let taken = file.metadata()?.blocks() * SECTOR_BYTES;
        let preallocation = if taken >= size { Preallocation::Full } else { Preallocation::Off };
        let (path, patching, size) = (path.to_owned(), Mutex::new(()), AtomicU64::new(size));
        Ok(Self { file, path, size, access, preallocation, block_bytes, patching })
    }

    /// Returns how its space was allocated when it was opened.
    pub(crate) const fn preallocation(&self) -> Preallocation {
        self.preallocation
    }

    /// Takes the host's space for some bytes of a sparse file, as far as its file system can.
    ///
    /// # Errors
    /// Fails if the host has too little.
    pub(crate) fn reserve(&self, offset: u64, length: u64) -> io::Result<()> {
        let free = free_bytes(&self.file);
        let ask = || rustix::fs::fallocate(&self.file, FallocateFlags::KEEP_SIZE, offset, length);
        match rustix::io::retry_on_intr(ask) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            done => done.map_err(|error| lacking(error.into(), length, free)),
        }
    }

    /// Returns its I/O mode.
    pub(crate) const fn access(&self) -> Access {
        self.access
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Whole blocks about a range, where bytes cannot be asked for as they are.
    pub(super) fn cover(&self, offset: u64, length: usize) -> Option<Cover> {
        self.access.is_direct.then(|| Cover::of(offset, length, self.block_bytes))
    }

    /// Fills the beginning of `blocks` from the file, `needed` bytes at least.
    fn read_blocks(&self, offset: u64, blocks: &mut [u8], needed: usize) -> io::Result<()> {
        let mut filled = 0;
        while filled < needed {
            match self.file.read_at(&mut blocks[filled..], offset + filled as u64) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes a range that may begin and end within blocks: what else they hold stays.
    fn write_covered(&self, cover: Cover, bytes: &[u8]) -> io::Result<()> {
        let mut blocks = AlignedBytes::new(cover.length);
        let is_patch = !cover.is_exact(bytes.len());
        let _patching =
            is_patch.then(|| self.patching.lock().unwrap_or_else(PoisonError::into_inner));
        let end = cover.before + bytes.len();
        if cover.before > 0 {
            let first = &mut blocks.bytes_mut()[..self.block_bytes];
            self.read_edge(cover.offset, first)?;
        }
        let last = cover.length - self.block_bytes;
        if end < cover.length && (last > 0 || cover.before == 0) {
            let from = cover.offset + last as u64;
            self.read_edge(from, &mut blocks.bytes_mut()[last..])?;
        }
        blocks.bytes_mut()[cover.before..end].copy_from_slice(bytes);
        self.file.write_all_at(blocks.bytes(), cover.offset)
    }

    fn begin_change(&self, offset: u64, length: u64) -> io::Result<()> {
        host_death::begin(FileChange::Written { path: &self.path, offset, length })
    }

    /// Reads a block that the file may end within.
    fn read_edge(&self, offset: u64, block: &mut [u8]) -> io::Result<()> {
        let there = usize::try_from(self.size().saturating_sub(offset)).unwrap_or(usize::MAX);
        self.read_blocks(offset, block, there.min(self.block_bytes))
    }
}

fn options(access: Access, flags: OFlags) -> OpenOptions {
    let direct = if access.is_direct { OFlags::DIRECT } else { OFlags::empty() };
    let mut options = OpenOptions::new();
    // What clients store is for no other user to read. The mode counts only where a file is made.
    options.read(true).write(true).mode(0o600);
    options.custom_flags((flags | direct).bits().cast_signed());
    options
}

fn open_with(path: &Path, access: Access, flags: OFlags) -> io::Result<File> {
    options(access, flags).open(path)
}

/// Checks that a path leads to a file or a block device: opening a pipe would wait for its writer.
fn check_kind(path: &Path) -> io::Result<()> {
    let kind = std::fs::metadata(path)?.file_type();
    if kind.is_file() || kind.is_block_device() {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::Unsupported, "it is neither a file nor a block device"))
}

/// True if a path leads to a block device.
pub(crate) fn is_block_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|it| it.file_type().is_block_device())
}

/// The error of a block device that something of the system holds.
fn claimed(error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::ResourceBusy {
        return error;
    }
    let text = "it is mounted, or swap, RAID, LVM or another program holds it; see lsblk, and \
                release it first";
    io::Error::new(error.kind(), text)
}

/// Takes the host's space for all of a file, by zeroes where its file system can only do that.
/// The file may be longer than `size` then.
pub(super) fn allocate(file: &File, size: u64) -> io::Result<()> {
    let fallocate = || rustix::fs::fallocate(file, FallocateFlags::empty(), 0, size);
    match rustix::io::retry_on_intr(fallocate) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            let zeroes = AlignedBytes::new(ZEROES_BYTES);
            let offsets = (0..size).step_by(ZEROES_BYTES);
            offsets.into_iter().try_for_each(|at| file.write_all_at(zeroes.bytes(), at))
        }
        done => Ok(done?),
    }
}

/// Bytes that the file system of a file has free, where it says so.
fn free_bytes(file: &File) -> Option<Bytes> {
    let space = rustix::fs::fstatvfs(file).ok()?;
    Some(Bytes(space.f_bavail.saturating_mul(space.f_frsize)))
}

/// An error of taking so many bytes for a file, with what was free before, where the host had no
/// room for it.
fn lacking(error: io::Error, wanted: u64, free: Option<Bytes>) -> io::Error {
    if !is_host_full(&error) {
        return error;
    }
    let wanted = Bytes(wanted);
    let had = free.map_or_else(|| "too little".to_owned(), |free| free.to_string());
    let text = format!("{wanted} are wanted, and its file system has {had} free; free some space");
    io::Error::new(error.kind(), text)
}

/// An error of opening, with what may be behind it.
fn told(error: io::Error, access: Access) -> io::Error {
    if access.is_direct && error.kind() == io::ErrorKind::InvalidInput {
        let text = "its file system does not support direct I/O; leave out --direct";
        return io::Error::new(io::ErrorKind::Unsupported, text);
    }
    error
}

/// Bytes of the blocks that the system moves past its page cache, for addresses and lengths alike.
fn block_bytes(file: &File) -> usize {
    let told = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok();
    // Systems before 6.1 do not tell.
    let bytes = told.map_or(0, |it| it.stx_dio_offset_align.max(it.stx_dio_mem_align));
    let bytes = usize::try_from(bytes).unwrap_or(ALIGN);
    if bytes.is_power_of_two() && (512..=ALIGN).contains(&bytes) { bytes } else { ALIGN }
}

/// Locks a file that no process has open. A process that is being started holds what its parent has
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

impl Medium for FileMedium {
    fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    fn lengthen(&self, size: u64) -> io::Result<()> {
        let had = self.size();
        if !self.file.metadata()?.is_file() || size <= had {
            return Err(io::ErrorKind::Unsupported.into());
        }
        host_death::begin(FileChange::Other)?;
        let allocate =
            || rustix::fs::fallocate(&self.file, FallocateFlags::empty(), had, size - had);
        match rustix::io::retry_on_intr(allocate) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.file.set_len(size)?,
            done => done?,
        }
        self.size.store(size, Ordering::Release);
        Ok(())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let Some(cover) = self.cover(offset, buffer.len()) else {
            return self.file.read_exact_at(buffer, offset);
        };
        let mut blocks = AlignedBytes::new(cover.length);
        let wanted = cover.before..cover.before + buffer.len();
        self.read_blocks(cover.offset, blocks.bytes_mut(), wanted.end)?;
        buffer.copy_from_slice(&blocks.bytes()[wanted]);
        Ok(())
    }

    fn read_vectored_at(&self, offset: u64, buffers: &mut [IoSliceMut<'_>]) -> io::Result<()> {
        let wanted: usize = buffers.iter().map(|buffer| buffer.len()).sum();
        if let Some(cover) = self.cover(offset, wanted) {
            let mut blocks = AlignedBytes::new(cover.length);
            self.read_blocks(cover.offset, blocks.bytes_mut(), cover.before + wanted)?;
            scatter(&blocks.bytes()[cover.before..], buffers);
            return Ok(());
        }
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
        if bytes.is_empty() {
            return Ok(());
        }
        self.begin_change(offset, bytes.len() as u64)?;
        match self.cover(offset, bytes.len()) {
            Some(cover) => self.write_covered(cover, bytes),
            None => self.file.write_all_at(bytes, offset),
        }
    }

    fn erase(&self, offset: u64, length: u64) -> io::Result<()> {
        self.begin_change(offset, length)?;
        let ask = |flags| rustix::fs::fallocate(&self.file, flags, offset, length);
        let punch = || ask(FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE);
        let erased = match self.preallocation {
            Preallocation::Off => punch(),
            // Space that was taken stays taken.
            Preallocation::Full => {
                let zeroed = ask(FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE);
                zeroed.or_else(|_| punch().and_then(|()| ask(FallocateFlags::KEEP_SIZE)))
            }
        };
        match erased {
            Ok(()) => Ok(()),
            // Not every file system knows holes, and not every device zeroes what it discards.
            Err(_) => overwrite(self, offset, length),
        }
    }

    fn sync(&self) -> io::Result<()> {
        host_death::begin(FileChange::Synced(&self.path))?;
        self.file.sync_data()
    }

    fn begin_sync(&self, offset: u64, length: u64) {
        if !self.access.is_direct {
            // Advice not to keep bytes is, for those that are dirty, the order to write them out.
            let length = NonZeroU64::new(length);
            let _ = rustix::fs::fadvise(&self.file, offset, length, Advice::DontNeed);
        }
    }

    fn host_space(&self) -> Option<HostSpace> {
        let file = self.file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let lacking = self.size().saturating_sub(file.blocks() * SECTOR_BYTES);
        if self.preallocation == Preallocation::Full || lacking == 0 {
            return None;
        }
        let Bytes(free) = free_bytes(&self.file)?;
        Some(HostSpace { system: file.dev(), lacking, free })
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn submit_reads(&self, batch: &mut [MediumRead<'_, '_>]) -> Vec<io::Result<()>> {
        batch::read_files(batch)
    }

    fn submit_writes(&self, batch: &[MediumWrite<'_>]) -> Vec<io::Result<()>> {
        batch::write_files(batch)
    }
}

impl Drop for FileMedium {
    fn drop(&mut self) {
        // The system may still have the file open, for a request that it has answered already.
        let _ = self.file.unlock();
    }
}

/// Fills buffers one after the other from the beginning of `bytes`, which has as many.
pub(super) fn scatter(bytes: &[u8], buffers: &mut [IoSliceMut<'_>]) {
    let mut rest = bytes;
    for buffer in buffers {
        let (here, after) = rest.split_at(buffer.len());
        buffer.copy_from_slice(here);
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;

    const SIZE: usize = 40_000;

    fn medium(folder: &TempDir, is_direct: bool) -> FileMedium {
        let access = Access { is_direct, ..Access::default() };
        let path = folder.path().join("die");
        FileMedium::create(&path, SIZE as u64, access, Preallocation::Full).expect("a new file")
    }

    proptest! {
        #[test]
        fn past_the_cache_ranges_of_any_length_hold_what_was_written_last(
            ranges in prop::collection::vec((0..SIZE, 0..9000_usize), 1..20),
        ) {
            let folder = TempDir::new().unwrap();
            let medium = medium(&folder, true);
            let mut model = vec![0; SIZE];
            for (byte, (from, length)) in (1_u8..).zip(ranges) {
                let end = SIZE.min(from + length);
                medium.write_at(from as u64, &vec![byte; end - from]).unwrap();
                model[from..end].fill(byte);
            }
            let mut back = vec![9; SIZE];
            medium.read_at(0, &mut back).unwrap();
            prop_assert_eq!(&back, &model);
            let (one, two) = back.split_at_mut(777);
            let mut pieces = [IoSliceMut::new(one), IoSliceMut::new(&mut two[..10_000])];
            medium.read_vectored_at(1001, &mut pieces).unwrap();
            prop_assert_eq!(&back[..10_777], &model[1001..11_778]);
        }
    }

    #[test]
    fn no_bytes_are_written_and_read_at_any_offset() {
        let folder = TempDir::new().unwrap();
        for is_direct in [false, true] {
            let medium = medium(&folder, is_direct);
            for offset in [0, 1, 512, 4096, SIZE as u64] {
                medium.write_at(offset, &[]).unwrap();
                medium.read_at(offset, &mut []).unwrap();
            }
            std::fs::remove_file(folder.path().join("die")).unwrap();
        }
    }

    #[test]
    fn what_lies_beyond_the_end_is_not_read() {
        let folder = TempDir::new().unwrap();
        for is_direct in [false, true] {
            let medium = medium(&folder, is_direct);
            let error = medium.read_at(SIZE as u64 - 1, &mut [0; 5000]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "direct: {is_direct}");
            std::fs::remove_file(folder.path().join("die")).unwrap();
        }
    }
}
