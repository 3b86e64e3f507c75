//! The memory in which the driver describes the requests of a queue.

use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr;

use rustix::mm::{MapFlags, ProtFlags};

use super::layout::{DESCRIPTOR_BYTES, DESCRIPTORS_STRIDE, Descriptor};

/// Descriptors of a queue, one for each tag, until it is dropped.
#[derive(Debug)]
pub(super) struct Descriptors {
    start: *mut c_void,
    length: usize,
    depth: u16,
}

impl Descriptors {
    /// Maps those of a queue with `depth` tags.
    ///
    /// # Errors
    /// Fails if the device has no such queue.
    #[expect(unsafe_code, reason = "memory is mapped")]
    pub(super) fn map(file: BorrowedFd<'_>, queue: u16, depth: u16) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let length = (usize::from(depth) * DESCRIPTOR_BYTES).next_multiple_of(page);
        let (protection, flags) = (ProtFlags::READ, MapFlags::SHARED | MapFlags::POPULATE);
        let offset = u64::from(queue) * DESCRIPTORS_STRIDE;
        // SAFETY: the address is the system's choice, so that no other memory is touched.
        let start =
            unsafe { rustix::mm::mmap(ptr::null_mut(), length, protection, flags, file, offset) }?;
        Ok(Self { start, length, depth })
    }

    /// The descriptor of a tag.
    #[expect(unsafe_code, reason = "memory that the driver writes is read")]
    pub(super) fn get(&self, tag: u16) -> Descriptor {
        assert!(tag < self.depth, "tag {tag} of {}", self.depth);
        let place = self.start.cast::<[u8; DESCRIPTOR_BYTES]>();
        // SAFETY: the place lies within the mapping, and bytes have any value and any alignment.
        // The driver writes it before it hands the tag over, and not again before it gets it back.
        let bytes = unsafe { ptr::read_volatile(place.add(tag.into())) };
        Descriptor::of(&bytes)
    }
}

impl Drop for Descriptors {
    #[expect(unsafe_code, reason = "memory is unmapped")]
    fn drop(&mut self) {
        // SAFETY: the mapping is that of `map`, and nothing refers to it any more. It fails for no
        // mapping of ours.
        let _ = unsafe { rustix::mm::munmap(self.start, self.length) };
    }
}
