//! Memory of a virtual machine, mapped: every access is checked against its regions.
//!
//! The machine may change it at any moment, so data is copied before it is used: a checksum is
//! taken of the copy that is stored. It may truncate the file of its memory, too, after which every
//! access fails.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use vm_memory::{Bytes as _, VolatileMemory as _, VolatileSlice};

use crate::shared_mapping::{SharedMapping, TruncatedMemory};

/// Error of an access to the memory of a virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GuestMemoryError {
    /// No region has the address.
    #[error("{length} bytes at {address:#x} are outside of the virtual machine's memory")]
    Unmapped {
        /// First guest address.
        address: u64,
        /// Bytes that were to be accessed.
        length: u64,
    },
    /// The virtual machine has truncated its memory.
    #[error(transparent)]
    Truncated(#[from] TruncatedMemory),
}

/// Memory of a virtual machine, whose regions come and go. Copies share the mappings.
#[derive(Clone, Debug, Default)]
pub(crate) struct GuestMemory {
    /// None overlaps another.
    regions: Vec<Arc<Region>>,
    /// True if an access has found one of them truncated.
    is_truncated: Arc<AtomicBool>,
}

/// Place of a region: its guest addresses, and its offset in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// First guest address.
    pub(crate) address: u64,
    /// Bytes.
    pub(crate) size: u64,
    /// Offset in its file.
    pub(crate) offset: u64,
}

#[derive(Debug)]
struct Region {
    address: u64,
    mapping: SharedMapping,
}

impl GuestMemory {
    /// Maps one more region.
    ///
    /// # Errors
    /// Fails if it is empty, overlaps another or exceeds the address space, the file is shorter, or
    /// the system refuses.
    pub(crate) fn add(&mut self, place: Place, file: OwnedFd) -> io::Result<()> {
        let Place { address, size, offset } = place;
        let is_overlapping = |region: &Arc<Region>| {
            address < region.address + region.size()
                && region.address < address.saturating_add(size)
        };
        let end = address.checked_add(size).filter(|_| size > 0);
        if end.is_none() || self.regions.iter().any(is_overlapping) {
            let text = format!("{size} bytes at {address:#x} are empty or overlap another region");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let length = usize::try_from(size).map_err(io::Error::other)?;
        check_length(&file, place)?;
        let mapping = SharedMapping::new(file, (offset, length), Arc::clone(&self.is_truncated))?;
        self.regions.push(Arc::new(Region { address, mapping }));
        Ok(())
    }

    /// Number of its regions.
    pub(crate) const fn regions(&self) -> usize {
        self.regions.len()
    }

    /// True if an access has found that the virtual machine has truncated its memory.
    pub(crate) fn is_truncated(&self) -> bool {
        self.is_truncated.load(Ordering::Acquire)
    }

    /// Unmaps the regions that lie within a range. Returns whether there was one.
    pub(crate) fn remove(&mut self, address: u64, size: u64) -> bool {
        let before = self.regions.len();
        let end = address.saturating_add(size);
        self.regions.retain(|it| it.address < address || it.address + it.size() > end);
        self.regions.len() < before
    }

    /// Copies from guest address `address`.
    ///
    /// # Errors
    /// Fails if a part of it is outside.
    pub(crate) fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), GuestMemoryError> {
        let mut done = 0;
        while done < buffer.len() {
            let left = buffer.len() - done;
            let part = &mut buffer[done..];
            done += self.run(address, done, left)?.access(|slice| slice.copy_to(part))?;
        }
        Ok(())
    }

    /// Copies `bytes` to guest address `address`.
    ///
    /// # Errors
    /// Fails if a part of it is outside; what lies before that is written.
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> Result<(), GuestMemoryError> {
        let mut done = 0;
        while done < bytes.len() {
            let run = self.run(address, done, bytes.len() - done)?;
            run.access(|slice| slice.copy_from(&bytes[done..]))?;
            done += run.length;
        }
        Ok(())
    }

    /// A number that the virtual machine wrote; what it wrote before is seen after this.
    ///
    /// # Errors
    /// Fails if it is outside or not aligned.
    pub(crate) fn load_u16(&self, address: u64) -> Result<u16, GuestMemoryError> {
        let loaded = self.run(address, 0, 2)?.access(|slice| slice.load(0, Ordering::Acquire));
        loaded?.map_err(|_| GuestMemoryError::Unmapped { address, length: 2 })
    }

    /// A number of 32 bits that the virtual machine wrote, as [`GuestMemory::load_u16`].
    ///
    /// # Errors
    /// Fails if it is outside or not aligned.
    pub(crate) fn load_u32(&self, address: u64) -> Result<u32, GuestMemoryError> {
        let loaded = self.run(address, 0, 4)?.access(|slice| slice.load(0, Ordering::Acquire));
        loaded?.map_err(|_| GuestMemoryError::Unmapped { address, length: 4 })
    }

    /// Stores a number once everything that was written before can be seen.
    ///
    /// # Errors
    /// Fails if it is outside or not aligned.
    pub(crate) fn store_u16(&self, address: u64, value: u16) -> Result<(), GuestMemoryError> {
        let run = self.run(address, 0, 2)?;
        let stored = run.access(|slice| slice.store(value, 0, Ordering::Release));
        stored?.map_err(|_| GuestMemoryError::Unmapped { address, length: 2 })
    }

    /// Stores a number of 32 bits, as [`GuestMemory::store_u16`].
    ///
    /// # Errors
    /// Fails if it is outside or not aligned.
    pub(crate) fn store_u32(&self, address: u64, value: u32) -> Result<(), GuestMemoryError> {
        let run = self.run(address, 0, 4)?;
        let stored = run.access(|slice| slice.store(value, 0, Ordering::Release));
        stored?.map_err(|_| GuestMemoryError::Unmapped { address, length: 4 })
    }

    /// The memory that lies in one piece `done` bytes behind `address`, at most `left` bytes.
    fn run(&self, address: u64, done: usize, left: usize) -> Result<Run<'_>, GuestMemoryError> {
        let outside = GuestMemoryError::Unmapped { address, length: (done + left) as u64 };
        let at = address.checked_add(done as u64).ok_or(outside)?;
        let within = |region: &&Arc<Region>| {
            at.checked_sub(region.address).is_some_and(|offset| offset < region.size())
        };
        let region = self.regions.iter().find(within).ok_or(outside)?;
        let offset = usize::try_from(at - region.address).map_err(|_| outside)?;
        let length = left.min(region.mapping.size() - offset);
        Ok(Run { region, offset, length })
    }
}

/// Memory that lies in one piece.
struct Run<'a> {
    region: &'a Region,
    /// Offset in the region.
    offset: usize,
    length: usize,
}

impl Run<'_> {
    fn access<T>(&self, access: impl FnOnce(VolatileSlice<'_>) -> T) -> Result<T, TruncatedMemory> {
        let Self { region, offset, length } = *self;
        region.mapping.access(|mapping| {
            access(mapping.get_slice(offset, length).expect("a run lies within its region"))
        })
    }
}

/// Checks that a file is as long as its mapping.
pub(crate) fn check_length(file: &OwnedFd, place: Place) -> io::Result<()> {
    let length = u64::try_from(rustix::fs::fstat(file)?.st_size).unwrap_or(0);
    let end = place.offset.checked_add(place.size);
    if end.is_none_or(|end| end > length) {
        let Place { size, offset, .. } = place;
        let text = format!("{size} bytes at offset {offset} exceed the file of {length} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(())
}

impl Region {
    fn size(&self) -> u64 {
        self.mapping.size() as u64
    }
}

/// A file in memory of `size` bytes, which several processes can map.
///
/// # Errors
/// Fails if the system refuses.
pub(crate) fn memory_file(name: &str, size: u64) -> io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC)?;
    rustix::fs::ftruncate(&file, size)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(parts: &[(u64, u64)]) -> GuestMemory {
        let mut memory = GuestMemory::default();
        for (address, size) in parts {
            let file = memory_file("guest", *size).unwrap();
            memory.add(Place { address: *address, size: *size, offset: 0 }, file).unwrap();
        }
        memory
    }

    #[test]
    fn what_was_written_across_parts_is_read_back_and_nothing_outside_of_them() {
        let memory = memory(&[(0x1000, 0x1000), (0x2000, 0x1000), (0x9000, 0x1000)]);
        memory.write(0x1FFE, b"abcd").unwrap();
        let mut back = [0; 4];
        memory.read(0x1FFE, &mut back).unwrap();
        assert_eq!(&back, b"abcd");
        assert_eq!(memory.load_u16(0x2000), Ok(u16::from_le_bytes(*b"cd")));
        for address in [0, 0xFFF, 0x2FFD, 0x8FFF, 0x9FFD, u64::MAX - 1] {
            assert!(memory.read(address, &mut back).is_err(), "{address:#x}");
            assert!(memory.write(address, &back).is_err(), "{address:#x}");
        }
        assert!(memory.load_u16(0x1001).is_err(), "not aligned");
    }

    #[test]
    fn parts_that_overlap_or_have_no_file_behind_them_are_refused() {
        let mut memory = memory(&[(0x1000, 0x1000)]);
        let add = |memory: &mut GuestMemory, address, size| {
            let file = memory_file("guest", 0x1000).unwrap();
            memory.add(Place { address, size, offset: 0 }, file)
        };
        for (address, size) in [(0x1FFF, 0x10), (0, 0x1001), (u64::MAX, 2), (0x5000, 0)] {
            assert!(add(&mut memory, address, size).is_err(), "{address:#x}");
        }
        assert!(add(&mut memory, 0x8000, 0x2000).is_err(), "the file is shorter");
        assert!(add(&mut memory, 0x2000, 0x1000).is_ok());
        assert!(memory.remove(0x1000, 0x1000));
        assert!(memory.load_u16(0x1000).is_err());
        assert!(memory.load_u16(0x2000).is_ok());
    }
}
