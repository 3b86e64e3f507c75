//! Memory that outlives the process: a file that is mapped, so that what is stored into it lies in
//! the page cache of the system.
//!
//! A store costs no call of the system. The file's space is taken beforehand, since a page that
//! finds no room when it is touched kills the process.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use memmap2::{MmapMut, MmapOptions};

use super::file::allocate;
use crate::host_death::{self, FileChange};

/// Random number that Linux draws when it starts.
const START: &str = "/proc/sys/kernel/random/boot_id";

/// The machine since it was started, and a file of it: what is in its page cache is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineFile {
    /// Random number of the start of the machine (`boot_id`); 0: unknown.
    pub start: u128,
    /// Number of the file system that the file is on.
    pub device: u64,
    /// Number of the file.
    pub file: u64,
}

/// Memory that the death of the process leaves as it is. Many threads may call at once.
pub trait BufferMemory: fmt::Debug + Send + Sync {
    /// Bytes that it has; 0: none were ever reserved.
    fn size(&self) -> u64;

    /// Returns what tells that what is in it was stored there.
    fn place(&self) -> MachineFile;

    /// Fills `bytes` from an offset on.
    ///
    /// # Panics
    /// When it ends before that.
    fn load(&self, offset: u64, bytes: &mut [u8]);

    /// Stores pieces at their offsets, one after the other. Up to eight bytes at a multiple of
    /// eight are stored at once.
    ///
    /// # Panics
    /// When it ends before that.
    fn store(&self, pieces: &[(u64, &[u8])]);

    /// Has so many bytes, whatever they are.
    ///
    /// # Errors
    /// Fails if the system has no room for them, or cannot map them.
    fn reserve(&self, size: u64) -> io::Result<()>;

    /// Makes durable what was stored, so that nothing gives back what was there before.
    ///
    /// # Errors
    /// Fails if it is not known to be.
    fn sync(&self) -> io::Result<()>;

    /// Gives up what is in it, and its place.
    fn discard(&self);

    /// Path by which people know it; empty where it has none.
    fn name(&self) -> String {
        String::new()
    }
}

/// A file of the page cache.
#[derive(Debug)]
pub(crate) struct MappedFile {
    path: PathBuf,
    start: u128,
    mapped: Mutex<Option<MappedMemory>>,
}

#[derive(Debug)]
struct MappedMemory {
    file: File,
    place: (u64, u64),
    memory: MmapMut,
}

impl MappedFile {
    /// The file at a path, if it is there. No other process may use it.
    ///
    /// # Errors
    /// Fails if it is there and cannot be mapped.
    pub(crate) fn open(path: PathBuf) -> io::Result<Self> {
        Self::mapped_by(path, &options(), map)
    }

    /// Maps the file for reading: what is stored goes to a copy in the memory of this process.
    ///
    /// # Errors
    /// As [`MappedFile::open`].
    pub(crate) fn view(path: PathBuf) -> io::Result<Self> {
        Self::mapped_by(path, OpenOptions::new().read(true), map_copy)
    }

    fn mapped_by(
        path: PathBuf,
        options: &OpenOptions,
        map: fn(File) -> io::Result<MappedMemory>,
    ) -> io::Result<Self> {
        let start = std::fs::read_to_string(START).unwrap_or_default();
        let digits: String = start.chars().filter(char::is_ascii_hexdigit).collect();
        let start = host_death::start(u128::from_str_radix(&digits, 16).unwrap_or(0));
        let mapped = match options.open(&path) {
            Ok(file) if file.metadata()?.len() > 0 => Some(map(file)?),
            Ok(_) => None,
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(Self { path, start, mapped: Mutex::new(mapped) })
    }

    fn mapped(&self) -> MutexGuard<'_, Option<MappedMemory>> {
        self.mapped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Options of a file that only its owner may read, as dies are.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

fn map(file: File) -> io::Result<MappedMemory> {
    let place = place_of(&file)?;
    #[expect(unsafe_code, reason = "another process could shorten the file")]
    // SAFETY: the file is one of the volume's folder, and its opener has locked all of the
    // volume's dies before.
    let memory = unsafe { MmapOptions::new().map_mut(&file) }?;
    Ok(MappedMemory { file, place, memory })
}

fn map_copy(file: File) -> io::Result<MappedMemory> {
    let place = place_of(&file)?;
    #[expect(unsafe_code, reason = "another process could shorten the file")]
    // SAFETY: as above.
    let memory = unsafe { MmapOptions::new().map_copy(&file) }?;
    Ok(MappedMemory { file, place, memory })
}

/// Numbers of the file system of a regular file, and of the file on it.
fn place_of(file: &File) -> io::Result<(u64, u64)> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is no regular file"));
    }
    Ok((metadata.dev(), metadata.ino()))
}

fn index(offset: u64) -> usize {
    usize::try_from(offset).expect("within the memory")
}

impl BufferMemory for MappedFile {
    fn size(&self) -> u64 {
        self.mapped().as_ref().map_or(0, |mapped| mapped.memory.len() as u64)
    }

    fn place(&self) -> MachineFile {
        let (device, file) = self.mapped().as_ref().map_or((0, 0), |mapped| mapped.place);
        MachineFile { start: self.start, device, file }
    }

    fn load(&self, offset: u64, bytes: &mut [u8]) {
        let mapped = self.mapped();
        let from = index(offset);
        let memory = &mapped.as_ref().expect("it was reserved").memory;
        bytes.copy_from_slice(&memory[from..from + bytes.len()]);
    }

    fn store(&self, pieces: &[(u64, &[u8])]) {
        let mut mapped = self.mapped();
        // None once it was given up.
        let Some(mapped) = mapped.as_mut() else { return };
        if host_death::begin(FileChange::Other).is_err() {
            return;
        }
        for (offset, bytes) in pieces {
            let from = index(*offset);
            mapped.memory[from..from + bytes.len()].copy_from_slice(bytes);
        }
    }

    fn reserve(&self, size: u64) -> io::Result<()> {
        let mut mapped = self.mapped();
        *mapped = None;
        host_death::begin(FileChange::Other)?;
        let file = options().create(true).truncate(false).open(&self.path)?;
        let reserved = allocate(&file, size).and_then(|()| file.set_len(size));
        let done = reserved.and_then(|()| map(file));
        match done {
            Ok(done) => {
                *mapped = Some(done);
                Ok(())
            }
            Err(error) => {
                // What is there is not whole.
                let _ = std::fs::remove_file(&self.path);
                Err(error)
            }
        }
    }

    fn sync(&self) -> io::Result<()> {
        match self.mapped().as_ref() {
            Some(mapped) => mapped.memory.flush().and_then(|()| mapped.file.sync_data()),
            None => Ok(()),
        }
    }

    fn discard(&self) {
        if self.mapped().take().is_some() && host_death::begin(FileChange::Other).is_ok() {
            // One that stays is of a session that is over, which counts for nothing.
            let _ = std::fs::remove_file(&self.path);
        }
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stored_is_there_for_the_next_opening_and_gone_once_it_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("write-buffer");
        let memory = MappedFile::open(path.clone()).unwrap();
        assert_eq!(memory.size(), 0);
        assert!(!path.exists(), "it is made once it is reserved");
        memory.reserve(8192).unwrap();
        memory.store(&[(4090, b"across two"), (0, b"first")]);
        let other = MappedFile::open(path.clone()).unwrap();
        let mut found = [0; 10];
        other.load(4090, &mut found);
        assert_eq!(&found, b"across two");
        assert_eq!(other.place(), memory.place());
        assert_ne!(other.place(), MachineFile::default());
        memory.discard();
        assert!(!path.exists());
    }

    #[test]
    fn a_copy_has_another_place() {
        let folder = tempfile::tempdir().unwrap();
        let [path, copy] = ["one", "two"].map(|name| folder.path().join(name));
        let memory = MappedFile::open(path.clone()).unwrap();
        memory.reserve(4096).unwrap();
        std::fs::copy(&path, &copy).unwrap();
        assert_ne!(MappedFile::open(copy).unwrap().place(), memory.place());
    }
}
