//! Recorders, which keep the commands of clients with the times of receipt and reply.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use crate::PacedCommand;

/// Command of a client, carried out and answered.
#[derive(Clone, Copy, Debug)]
pub struct RecordedCommand {
    /// The command.
    pub asked: PacedCommand,
    /// Time at which the server had received all of it.
    pub issued_at: Instant,
    /// Time just before the reply was passed to the kernel. A time taken afterwards could be later
    /// than the client's next command, which depends on this reply.
    pub completed_at: Instant,
}

/// Receiver of answered commands. Any thread may call it, and it never blocks.
pub trait Recorder: Send + Sync + fmt::Debug {
    /// Records commands of a client. Its number is that of an NBD client, from 1 in order of
    /// arrival, or [`crate::fuse::CLIENT`].
    fn keep(&self, client: u64, served: &[RecordedCommand]);
}

/// A recorder with the times of one client.
#[derive(Debug)]
pub(crate) struct Tape {
    recorder: Arc<dyn Recorder>,
    client: u64,
    /// Time of the latest receipt.
    received_at: Instant,
    /// Time at which the latest replies began to be sent.
    sending_at: Instant,
    served: Vec<RecordedCommand>,
}

impl Tape {
    pub(crate) fn new(recorder: Arc<dyn Recorder>, client: u64) -> Self {
        let now = Instant::now();
        Self { recorder, client, received_at: now, sending_at: now, served: Vec::new() }
    }

    /// Notes that something was received just now.
    pub(crate) fn note_received(&mut self) {
        self.received_at = Instant::now();
    }

    /// Notes that replies are about to be sent.
    pub(crate) fn note_sending(&mut self) {
        self.sending_at = Instant::now();
    }

    /// Records the commands of the latest receipt, which have just been answered.
    pub(crate) fn keep(&mut self, answered: &mut Vec<PacedCommand>) {
        let issued_at = self.received_at;
        self.keep_issued(answered.drain(..).map(|asked| (asked, issued_at)));
    }

    /// Records commands that have just been answered, each with the time of its issue.
    pub(crate) fn keep_issued(&mut self, answered: impl Iterator<Item = (PacedCommand, Instant)>) {
        let mut answered = answered.peekable();
        if answered.peek().is_none() {
            return;
        }
        let sending_at = self.sending_at;
        let served = |(asked, issued_at)| {
            // Commands without a reply of their own leave no time of sending.
            RecordedCommand { asked, issued_at, completed_at: sending_at.max(issued_at) }
        };
        self.served.extend(answered.map(served));
        self.recorder.keep(self.client, &self.served);
        self.served.clear();
    }
}
