//! A Unix socket whose messages come with file descriptors: memory to map, events to wait for.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown,
};

/// Most descriptors of one message, which is the limit of the system (`SCM_MAX_FD`).
const DESCRIPTORS_MAX: usize = 253;

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct DescriptorSocket {
    socket: OwnedFd,
    /// Descriptors that were received and not taken.
    received: VecDeque<OwnedFd>,
    /// Time until which bytes must have been received; none after the handshake.
    deadline: Option<Instant>,
}

impl DescriptorSocket {
    pub(crate) const fn new(socket: OwnedFd) -> Self {
        Self { socket, received: VecDeque::new(), deadline: None }
    }

    /// Bounds receiving, or with `None` no longer does: after the deadline it fails with
    /// [`io::ErrorKind::TimedOut`].
    pub(crate) const fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// Fills `bytes`. Returns false if the connection ended before the first of them.
    ///
    /// # Errors
    /// Fails if the connection ends in the middle of them, or is broken.
    pub(crate) fn receive(&mut self, bytes: &mut [u8]) -> io::Result<bool> {
        let mut filled = 0;
        while filled < bytes.len() {
            if self.deadline.is_some() && !self.wait(None)? {
                continue;
            }
            let received = self.receive_some(&mut bytes[filled..])?;
            if received == 0 && filled == 0 {
                return Ok(false);
            }
            if received == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            filled += received;
        }
        Ok(true)
    }

    fn receive_some(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = loop {
            let buffers = &mut [IoSliceMut::new(bytes)];
            match rustix::net::recvmsg(&self.socket, buffers, &mut control, flags) {
                Err(Errno::INTR) => {}
                received => break received?,
            }
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                self.received.extend(descriptors);
            }
        }
        if self.received.len() > DESCRIPTORS_MAX {
            let text = "more than 253 descriptors without a message";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(received.bytes)
    }

    /// Takes the next descriptor that was received; none if there is none.
    pub(crate) fn take_descriptor(&mut self) -> Option<OwnedFd> {
        self.received.pop_front()
    }

    /// Closes received descriptors that no message took.
    pub(crate) fn drop_descriptors(&mut self) {
        self.received.clear();
    }

    /// Sends all of `bytes`, the first of them with `descriptors`.
    ///
    /// # Errors
    /// Fails if the connection is broken.
    pub(crate) fn send(&self, mut bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut descriptors = descriptors;
        while !bytes.is_empty() {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            if !descriptors.is_empty() {
                assert!(descriptors.len() <= 8, "no message has more");
                assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)), "it has room");
            }
            let flags = SendFlags::NOSIGNAL;
            let buffers = [IoSlice::new(bytes)];
            let sent = retry_on_intr(|| {
                rustix::net::sendmsg(&self.socket, &buffers, &mut control, flags)
            })?;
            bytes = &bytes[sent..];
            descriptors = &[];
        }
        Ok(())
    }

    /// Waits until something can be received, or for this long. Returns whether something can.
    ///
    /// # Errors
    /// Fails if the system refuses, or after the deadline.
    pub(crate) fn wait(&self, patience: Option<Duration>) -> io::Result<bool> {
        let left = self.deadline.map(|it| it.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let patience = patience.into_iter().chain(left).min();
        let mut awaited = [PollFd::new(&self.socket, PollFlags::IN)];
        let patience = patience.map(|it| Timespec::try_from(it).expect("far below an age"));
        match rustix::event::poll(&mut awaited, patience.as_ref()) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(other) => Err(other.into()),
        }
    }

    /// Another handle on the connection, for [`cut`].
    ///
    /// # Errors
    /// Fails if the system has no descriptor left.
    pub(crate) fn handle(&self) -> io::Result<OwnedFd> {
        self.socket.try_clone()
    }
}

/// Shuts the connection down: threads that receive or send return.
pub(crate) fn cut(socket: &OwnedFd) {
    // It fails only when the client is gone.
    let _ = rustix::net::shutdown(socket.as_fd(), Shutdown::Both);
}

/// An event that one side raises and the other waits for.
#[derive(Debug)]
pub(crate) struct Signal(OwnedFd);

impl Signal {
    /// A new one, not raised.
    ///
    /// # Errors
    /// Fails if the system has no descriptor left.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self(rustix::event::eventfd(0, flags)?))
    }

    /// One that a client handed over.
    pub(crate) fn of(descriptor: OwnedFd) -> Self {
        // Reading and writing never wait; a descriptor that refuses this is no event.
        let _ = rustix::io::ioctl_fionbio(&descriptor, true);
        Self(descriptor)
    }

    /// Raises it.
    pub(crate) fn raise(&self) {
        // It fails only when its counter is full, or the client closed it.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Clears it until it is raised again.
    pub(crate) fn clear(&self) {
        // It fails only when it was not raised.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }

    /// Waits until one of these is raised, and clears the first.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub(crate) fn wait_with(&self, other: &Self) -> io::Result<()> {
        let mut awaited =
            [PollFd::new(&self.0, PollFlags::IN), PollFd::new(&other.0, PollFlags::IN)];
        match rustix::event::poll(&mut awaited, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(refused) => return Err(refused.into()),
        }
        if awaited[0].revents().contains(PollFlags::IN) {
            self.clear();
        }
        Ok(())
    }

    /// The descriptor, to be waited for together with others.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// The descriptor, to be handed to others.
    #[cfg(test)]
    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn pair() -> (DescriptorSocket, DescriptorSocket) {
        let (one, other) = UnixStream::pair().unwrap();
        (DescriptorSocket::new(one.into()), DescriptorSocket::new(other.into()))
    }

    #[test]
    fn descriptors_come_with_the_bytes_they_were_sent_with() {
        let (mut here, there) = pair();
        let signal = Signal::new().unwrap();
        there.send(b"message", &[signal.descriptor().as_fd()]).unwrap();
        let mut bytes = [0; 7];
        assert!(here.receive(&mut bytes).unwrap());
        assert_eq!(&bytes, b"message");
        let same = Signal::of(here.take_descriptor().unwrap());
        assert!(here.take_descriptor().is_none());
        same.raise();
        signal.wait_with(&Signal::new().unwrap()).unwrap();
        drop(there);
        assert!(!here.receive(&mut bytes).unwrap(), "the end");
    }

    #[test]
    fn what_has_not_come_by_the_deadline_is_an_error() {
        let (mut here, there) = pair();
        there.send(b"mes", &[]).unwrap();
        here.set_deadline(Some(Instant::now() + Duration::from_millis(5)));
        let error = here.receive(&mut [0; 7]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        here.set_deadline(None);
        there.send(b"sage", &[]).unwrap();
        assert!(here.receive(&mut [0; 4]).unwrap());
    }

    #[test]
    fn an_end_in_the_middle_is_an_error() {
        let (mut here, there) = pair();
        there.send(b"mes", &[]).unwrap();
        drop(there);
        assert!(here.receive(&mut [0; 7]).is_err());
    }
}
