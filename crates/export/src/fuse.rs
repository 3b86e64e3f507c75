//! FUSE: a folder with a file for each export, for loop devices and for programs that open files.
//!
//! ```text
//!   kernel ──► threads of the session ──► Device, at once ──► reply
//!                      └──► Pace ──► Completions, which reply at the model's time
//! ```
//!
//! The files behave like block devices: their size is that of the device, truncation changes
//! nothing, and writes beyond their end fail. Reads and writes bypass the page cache, and a file
//! takes many of them at once.

mod completions;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use blockio::Op;
use device::{Device, DeviceError, Durability};
use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, InitFlags, KernelConfig, LockOwner, MountOption, OpenAccMode, OpenFlags,
    ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs,
    ReplyWrite, Request, Session, TimeOrNow, WriteFlags,
};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use rustix::mount::UnmountFlags;

use self::completions::{Completions, FuseReply};
use crate::{Export, Exports, PacedCommand, Recorder};

/// Client number of all users of the files in recordings; NBD clients are numbered from 1.
pub const CLIENT: u64 = 0;
/// Name of the file of an export without a name.
pub const UNNAMED: &str = "drive";

/// Threads that take requests from the kernel: more than one, since a device may block.
const THREADS: usize = 4;
/// Maximum number of requests that the kernel has outstanding.
const OUTSTANDING_MAX: u16 = 256;
/// Maximum bytes of one write from the kernel, as with most NVMe drives.
const WRITE_BYTES_MAX: u32 = 1 << 20;
/// Block size that the files report in bytes.
const BLOCK_BYTES: u32 = 4096;
/// Time for which the kernel may cache attributes: none, since a drive may be resized while it is
/// served.
const VALID: Duration = Duration::ZERO;
/// Maximum wait for the end of a session after its unmount.
const PATIENCE: Duration = Duration::from_secs(5);
/// Flag of an open file, or of one write, whose data must be durable (`asm-generic/fcntl.h`);
/// `O_SYNC` contains it.
const O_DSYNC: i32 = 0o10000;
/// Bits of the mode of `fallocate` (`linux/falloc.h`).
const KEEP_SIZE: i32 = 0x01;
const PUNCH_HOLE: i32 = 0x02;
const ZERO_RANGE: i32 = 0x10;
/// Bytes that may occur in an export's name, but not in a file's name.
const NOT_IN_NAMES: &AsciiSet = &CONTROLS.add(b'/').add(b'%');
/// Longest name of a file in bytes (`NAME_MAX`).
const NAME_BYTES_MAX: usize = 255;

/// A folder in which exports are mounted as files, until it is dropped.
#[derive(Debug)]
pub struct Mount {
    folder: PathBuf,
    session: BackgroundSession,
}

impl Mount {
    /// Mounts the exports on `folder`. Their recorder gets all requests, as those of client
    /// [`CLIENT`].
    ///
    /// # Errors
    /// Fails if an export's name is too long for a file, `/dev/fuse` is missing, or this user may
    /// not mount.
    pub fn new(exports: &Exports, folder: &Path) -> io::Result<Self> {
        let files = Files::new(exports)?;
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("floatgate".to_owned()),
            MountOption::Subtype("floatgate".to_owned()),
            MountOption::NoAtime,
            MountOption::NoSuid,
            MountOption::NoDev,
        ];
        config.n_threads = Some(THREADS);
        config.clone_fd = true;
        let session = Session::new(files, folder, &config)?.spawn()?;
        Ok(Self { folder: folder.to_owned(), session })
    }

    /// Unmounts the files, unless they are already unmounted, and waits for the last reply. After
    /// that no thread uses the exports.
    ///
    /// # Errors
    /// Fails if a process has a file open.
    pub fn unmount(self) -> io::Result<()> {
        match rustix::mount::unmount(&self.folder, UnmountFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) => {}
            // Users other than root ask fusermount3.
            Err(rustix::io::Errno::PERM) => return self.session.umount_and_join(),
            Err(error) => return Err(error.into()),
        }
        let deadline = Instant::now() + PATIENCE;
        while !self.session.guard.is_finished() {
            if Instant::now() > deadline {
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, "a file in it is open"));
            }
            thread::sleep(Duration::from_millis(2));
        }
        self.session.join()
    }
}

/// Returns the name of the file of an export that is named `export`.
pub fn file_name(export: &str) -> String {
    match export {
        "" => UNNAMED.to_owned(),
        "." | ".." => export.replace('.', "%2E"),
        name => utf8_percent_encode(name, NOT_IN_NAMES).to_string(),
    }
}

/// The files of a mount, whose inodes are numbered from 2 in the order of the exports.
#[derive(Debug)]
struct Files {
    served: Vec<File>,
    recorder: Option<Arc<dyn Recorder>>,
    mounted_at: SystemTime,
}

#[derive(Debug)]
struct File {
    name: String,
    export: Arc<Export>,
    /// Absent if replies are sent at once.
    completions: Option<Completions>,
}

impl Files {
    fn new(exports: &Exports) -> io::Result<Self> {
        let recorder = exports.recorder().cloned();
        let file = |export: &Arc<Export>| {
            let name = file_name(&export.name);
            if name.len() > NAME_BYTES_MAX {
                let text = format!(
                    "the export `{}` makes a file name of {} bytes, the limit is {NAME_BYTES_MAX}",
                    export.name,
                    name.len()
                );
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
            let pace = export.pace.as_ref();
            let completions = pace.map(|pace| Completions::start(pace, recorder.clone()));
            let completions = completions.transpose()?;
            Ok(File { name, export: Arc::clone(export), completions })
        };
        let files = exports.iter().map(file).collect::<io::Result<Vec<_>>>()?;
        for (index, file) in files.iter().enumerate() {
            if files[..index].iter().any(|other| other.name == file.name) {
                let text = format!("two exports make a file named `{}`", file.name);
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
        }
        Ok(Self { served: files, recorder, mounted_at: SystemTime::now() })
    }

    /// The file of an inode; none for the folder.
    fn find(&self, inode: INodeNo) -> Option<&File> {
        let index = usize::try_from(inode.0).ok()?.checked_sub(FIRST_INODE)?;
        self.served.get(index)
    }

    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let (kind, size, perm) = match self.find(inode) {
            _ if inode == INodeNo::ROOT => (FileType::Directory, 0, 0o700),
            Some(file) if file.export.refuses_changes() => {
                (FileType::RegularFile, file.export.device.size(), 0o400)
            }
            Some(file) => (FileType::RegularFile, file.export.device.size(), 0o600),
            None => return None,
        };
        Some(FileAttr {
            ino: inode,
            size,
            blocks: size.div_ceil(512),
            atime: self.mounted_at,
            mtime: self.mounted_at,
            ctime: self.mounted_at,
            crtime: self.mounted_at,
            kind,
            perm,
            nlink: 1,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            rdev: 0,
            blksize: BLOCK_BYTES,
            flags: 0,
        })
    }

    /// Carries out a command to the file of `inode`. Replies at once if it failed or there is no
    /// model, otherwise when the model has completed it.
    fn answer<R, S>(
        &self,
        inode: INodeNo,
        reply: R,
        act: impl FnOnce(&dyn Device) -> Result<(PacedCommand, S), Errno>,
    ) where
        R: Refusable + Send + 'static,
        S: FnOnce(R) + Send + 'static,
    {
        let issued_at = Instant::now();
        let Some(file) = self.find(inode) else { return reply.refuse(Errno::EISDIR) };
        let device = file.export.device.as_ref();
        let (asked, send) = match act(device) {
            Ok(done) => done,
            Err(errno) => return reply.refuse(errno),
        };
        let asked = PacedCommand { offset: asked.offset.saturating_add(device.origin()), ..asked };
        let reply = FuseReply::new(asked, issued_at, move || send(reply));
        match &file.completions {
            Some(completions) => completions.hold(reply),
            None => reply.send(self.recorder.as_deref()),
        }
    }
}

/// Number of the first file's inode; the folder has 1.
const FIRST_INODE: usize = 2;

/// A reply that can also carry an error.
trait Refusable {
    fn refuse(self, errno: Errno);
}

macro_rules! refusable {
    ($($reply:ty),*) => {
        $(impl Refusable for $reply {
            fn refuse(self, errno: Errno) {
                self.error(errno);
            }
        })*
    };
}

refusable!(ReplyData, ReplyWrite, ReplyEmpty);

impl Filesystem for Files {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // If an old kernel lacks a capability, only speed is lost.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.set_max_write(WRITE_BYTES_MAX);
        let _ = config.set_max_background(OUTSTANDING_MAX);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.served.iter().position(|file| OsStr::new(&file.name) == name);
        let inode = found.filter(|_| parent == INodeNo::ROOT).map(inode);
        match inode.and_then(|inode| self.attributes(inode)) {
            Some(attributes) => reply.entry(&VALID, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Some(attributes) => reply.attr(&VALID, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    /// Changes nothing, as with a block device, which cannot be truncated.
    fn setattr(
        &self,
        request: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        _size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        if mode.is_some() || uid.is_some() || gid.is_some() {
            return reply.error(Errno::EPERM);
        }
        self.getattr(request, inode, handle, reply);
    }

    fn open(&self, _: &Request, inode: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let Some(file) = self.find(inode) else { return reply.error(Errno::EISDIR) };
        if file.export.refuses_changes() && flags.acc_mode() != OpenAccMode::O_RDONLY {
            return reply.error(Errno::EROFS);
        }
        let direct = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(0), direct);
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.answer(inode, reply, |device| {
            // Reads stop at the end of the file.
            let length = device.size().saturating_sub(offset).min(size.into());
            let mut bytes = vec![0; usize::try_from(length).expect("it has 32 bits")];
            device.read(offset, &mut bytes).map_err(|error| errno(&error))?;
            let asked = PacedCommand { op: Op::Read, offset, length, fua: false };
            Ok((asked, move |reply: ReplyData| reply.data(&bytes)))
        });
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let is_read_only = self.find(inode).is_some_and(|file| file.export.is_read_only);
        // The kernel sends no fsync after such a write, because it bypasses the page cache.
        let fua = flags.0 & O_DSYNC != 0;
        let durability = if fua { Durability::Durable } else { Durability::Volatile };
        self.answer(inode, reply, |device| {
            let length = data.len() as u64;
            check_change(device, is_read_only, offset, length)?;
            device.write(offset, data, durability).map_err(|error| errno(&error))?;
            let asked = PacedCommand { op: Op::Write, offset, length, fua };
            let written = u32::try_from(length).expect("the kernel sends at most 16 MiB");
            Ok((asked, move |reply: ReplyWrite| reply.written(written)))
        });
    }

    /// Answers a close, which makes nothing durable.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.answer(inode, reply, |device| {
            device.flush().map_err(|error| errno(&error))?;
            let asked = PacedCommand { op: Op::Flush, offset: 0, length: 0, fua: false };
            Ok((asked, ReplyEmpty::ok))
        });
    }

    fn fallocate(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        // Punched and zeroed ranges both read as zeroes afterwards.
        if !matches!(mode & !KEEP_SIZE, PUNCH_HOLE | ZERO_RANGE) {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let is_read_only = self.find(inode).is_some_and(|file| file.export.is_read_only);
        self.answer(inode, reply, |device| {
            check_change(device, is_read_only, offset, length)?;
            device.trim(offset, length, Durability::Volatile).map_err(|error| errno(&error))?;
            let asked = PacedCommand { op: Op::Trim, offset, length, fua: false };
            Ok((asked, ReplyEmpty::ok))
        });
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let bytes: u64 = self.served.iter().map(|file| file.export.device.size()).sum();
        let (blocks, files) = (bytes / u64::from(BLOCK_BYTES), self.served.len() as u64);
        let name_bytes_max = u32::try_from(NAME_BYTES_MAX).expect("it is 255");
        reply.statfs(blocks, 0, 0, files, 0, BLOCK_BYTES, name_bytes_max, BLOCK_BYTES);
    }

    fn readdir(
        &self,
        _: &Request,
        folder: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        if folder != INodeNo::ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let dots = [".", ".."].map(|name| (INodeNo::ROOT, FileType::Directory, name));
        let files = self.served.iter().enumerate();
        let files =
            files.map(|(index, file)| (inode(index), FileType::RegularFile, file.name.as_str()));
        let entries = dots.into_iter().chain(files).zip(1..);
        let rest = entries.skip_while(|(_, number)| *number <= offset);
        for ((inode, kind, name), number) in rest {
            if reply.add(inode, number, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}

/// The inode of a file by its index.
fn inode(index: usize) -> INodeNo {
    INodeNo((index + FIRST_INODE) as u64)
}

/// Refuses a change that a block device does not support.
fn check_change(
    device: &dyn Device,
    is_read_only: bool,
    offset: u64,
    length: u64,
) -> Result<(), Errno> {
    if is_read_only {
        return Err(Errno::EROFS);
    }
    device.check_range(offset, length).map_err(|_| Errno::ENOSPC)
}

fn errno(error: &DeviceError) -> Errno {
    match error {
        DeviceError::OutOfRange { .. } => Errno::EINVAL,
        DeviceError::ReadOnly => Errno::EROFS,
        DeviceError::InProgress(_) | DeviceError::Reserved => Errno::EBUSY,
        DeviceError::Locked => Errno::EACCES,
        DeviceError::Gone => Errno::ENXIO,
        _ if error.is_no_space() => Errno::ENOSPC,
        DeviceError::NoSpace { .. }
        | DeviceError::HostFull { .. }
        | DeviceError::Unreadable { .. }
        | DeviceError::Poisoned { .. }
        | DeviceError::Transient { .. }
        | DeviceError::Medium { .. } => Errno::EIO,
    }
}

#[cfg(test)]
mod tests;
