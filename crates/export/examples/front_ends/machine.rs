//! A virtual machine in miniature: memory that is shared, and messages with descriptors.

use std::io::{IoSlice, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use vm_memory::{Bytes as _, FileOffset, MmapRegion, VolatileMemory as _};

use crate::Failure;

/// Bytes of the memory, and its address in the machine.
pub(crate) const BYTES: u64 = 1 << 20;
pub(crate) const ADDRESS: u64 = 1 << 30;

/// Memory of a machine.
pub(crate) struct Memory {
    pub(crate) file: OwnedFd,
    mapping: MmapRegion,
}

impl Memory {
    pub(crate) fn new() -> Result<Self, Failure> {
        let file = rustix::fs::memfd_create("machine", rustix::fs::MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&file, BYTES)?;
        let offset = FileOffset::new(file.try_clone()?.into(), 0);
        let mapping = MmapRegion::from_file(offset, usize::try_from(BYTES)?)?;
        Ok(Self { file, mapping })
    }

    pub(crate) fn write(&self, at: usize, bytes: &[u8]) {
        self.mapping.as_volatile_slice().write_slice(bytes, at).expect("within the memory");
    }

    pub(crate) fn load_u16(&self, at: usize) -> u16 {
        self.mapping.as_volatile_slice().load(at, Ordering::Acquire).expect("within the memory")
    }

    pub(crate) fn store_u16(&self, at: usize, value: u16) {
        let slice = self.mapping.as_volatile_slice();
        slice.store(value, at, Ordering::Release).expect("within the memory");
    }

    pub(crate) fn load_u32(&self, at: usize) -> u32 {
        self.mapping.as_volatile_slice().load(at, Ordering::Acquire).expect("within the memory")
    }

    pub(crate) fn store_u32(&self, at: usize, value: u32) {
        let slice = self.mapping.as_volatile_slice();
        slice.store(value, at, Ordering::Release).expect("within the memory");
    }
}

/// Sends a message with descriptors.
pub(crate) fn send(
    socket: &UnixStream,
    bytes: &[u8],
    files: &[BorrowedFd<'_>],
) -> Result<(), Failure> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(files)), "it has room");
    }
    let buffers = [IoSlice::new(bytes)];
    rustix::net::sendmsg(socket.as_fd(), &buffers, &mut control, SendFlags::empty())?;
    Ok(())
}

/// Receives a message whose header has so many bytes and its size at an offset; the size includes
/// the header or not.
pub(crate) fn receive(
    mut socket: &UnixStream,
    (header_bytes, size_at): (usize, usize),
    includes_header: bool,
) -> Result<Vec<u8>, Failure> {
    let mut header = vec![0; header_bytes];
    socket.read_exact(&mut header)?;
    let size = u32::from_le_bytes(header[size_at..size_at + 4].try_into()?) as usize;
    let mut body = vec![0; if includes_header { size - header_bytes } else { size }];
    socket.read_exact(&mut body)?;
    Ok(body)
}

/// An event.
pub(crate) fn event() -> Result<OwnedFd, Failure> {
    let flags = rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK;
    Ok(rustix::event::eventfd(0, flags)?)
}

pub(crate) fn raise(event: &OwnedFd) -> Result<(), Failure> {
    rustix::io::write(event, &1_u64.to_ne_bytes())?;
    Ok(())
}

/// Waits until an event is raised.
pub(crate) fn wait(event: &OwnedFd) -> Result<(), Failure> {
    let mut awaited = [rustix::event::PollFd::new(event, rustix::event::PollFlags::IN)];
    rustix::event::poll(&mut awaited, None)?;
    rustix::io::read(event, &mut [0; 8])?;
    Ok(())
}

pub(crate) fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}
