//! Conversation: one client's side of a protocol, as a value that the owner of the socket drives.
//!
//! ```text
//!   recv ──► inbox ──► take: commands are carried out ──► replies ──► send
//!                        └─ settle: what promised durability, after one flush ──► replies
//! ```
//!
//! NBD and NVMe/TCP are conversations: received bytes go in, commands to the device and bytes for
//! the client come out. None owns a socket, a thread or a clock.

use std::error::Error;

use blockio::Nanos;

use crate::{PacedCommand, Replies};

/// Bytes of replies above which they are sent before more is read from the device.
pub(crate) const REPLIES_BYTES_MAX: usize = 128 << 10;

/// Progress made with received bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveProgress {
    /// Bytes that are done with.
    pub used_bytes: usize,
    /// Bytes that must be there, from the first that is not done with, before anything more can
    /// be; zero when replies have to be sent first.
    pub wanted_bytes: usize,
    /// Room that replies must have before the next request can be carried out; zero when they have
    /// it.
    pub room_bytes: usize,
}

impl ReceiveProgress {
    /// True if something has to come, or to go, before more can be taken.
    pub(crate) const fn is_blocked(&self) -> bool {
        self.wanted_bytes > 0 || self.room_bytes > 0
    }
}

/// Progress made with the next request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next {
    /// Bytes that are done with.
    pub(crate) used_bytes: usize,
    /// Bytes that must be there before it can be carried out; zero when it was, or when it was
    /// refused.
    pub(crate) wanted_bytes: usize,
    /// Room that replies must have before it can be; zero when they have it.
    pub(crate) room_bytes: usize,
    /// Command for the modelled drive, if the request is one.
    pub(crate) asked: Option<PacedCommand>,
    /// True if it was carried out.
    pub(crate) is_done: bool,
}

impl Next {
    /// Reports bytes that are done with, and nothing else.
    pub(crate) const fn used(used_bytes: usize) -> Self {
        Self { used_bytes, wanted_bytes: 0, room_bytes: 0, asked: None, is_done: false }
    }

    /// Asks for bytes after these are done with.
    pub(crate) const fn wants(used_bytes: usize, wanted_bytes: usize) -> Self {
        Self { wanted_bytes, ..Self::used(used_bytes) }
    }
}

/// One client's side of a protocol.
pub(crate) trait Conversation {
    /// Reason why the client is to be dropped.
    type Violation: Error;

    /// Takes the next request, if all of it is there. Reads may be pending afterwards: their
    /// replies have room for data that is yet to be read.
    ///
    /// # Errors
    /// Fails if the client is to be dropped, once it has the replies.
    fn begin_next(&mut self, input: &[u8], replies: &mut Replies) -> Result<Next, Self::Violation>;

    /// Reads the data of pending reads, all of them together.
    fn finish_reads(&mut self, replies: &mut Replies);

    /// Flushes what must be durable, and answers the commands that wait for it.
    fn settle(&mut self, replies: &mut Replies);

    /// True if nothing more is taken.
    fn is_over(&self) -> bool;

    /// Commands whose replies are there since this was emptied; none where they are not collected.
    fn answered(&mut self) -> &mut Option<Vec<PacedCommand>>;

    /// Takes the complete requests among the received bytes, until many replies wait.
    ///
    /// # Errors
    /// As [`Conversation::begin_next`].
    fn take(
        &mut self,
        input: &[u8],
        replies: &mut Replies,
    ) -> Result<ReceiveProgress, Self::Violation> {
        let mut taken = ReceiveProgress::default();
        while !self.is_over() && replies.len() < REPLIES_BYTES_MAX && !taken.is_blocked() {
            let next = self.begin_next(&input[taken.used_bytes..], replies);
            let next = next.inspect_err(|_| self.finish_reads(replies))?;
            taken.used_bytes += next.used_bytes;
            (taken.wanted_bytes, taken.room_bytes) = (next.wanted_bytes, next.room_bytes);
        }
        self.finish_reads(replies);
        Ok(taken)
    }

    /// Takes the next request, if all of it is there; a read has its data afterwards.
    ///
    /// # Errors
    /// As [`Conversation::begin_next`].
    fn take_next(&mut self, input: &[u8], replies: &mut Replies) -> Result<Next, Self::Violation> {
        let next = self.begin_next(input, replies);
        self.finish_reads(replies);
        next
    }

    /// True if [`Conversation::advance`] is to be called.
    fn is_timed(&self) -> bool {
        false
    }

    /// Sets the time to `now`, at which requests are taken and at which those before have ended.
    fn set_time(&mut self, now: Nanos) {
        let _ = now;
    }

    /// Advances time to `now`, which may add replies. Returns the time until which it need not be
    /// called again, if there is one.
    ///
    /// # Errors
    /// As [`Conversation::begin_next`].
    fn advance(
        &mut self,
        now: Nanos,
        replies: &mut Replies,
    ) -> Result<Option<Nanos>, Self::Violation> {
        let _ = (now, replies);
        Ok(None)
    }
}
