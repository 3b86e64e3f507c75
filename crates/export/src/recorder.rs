//! Recorders: whoever keeps what clients ask for, and when they were answered.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use crate::Asked;

/// Command of a client that was carried out and answered.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// The command.
    pub asked: Asked,
    /// Time at which the server had received all of it.
    pub issued_at: Instant,
    /// Time just before the reply was handed to the system: no client can act on it earlier. Taken
    /// afterwards it may be later than what the client asks for next.
    pub completed_at: Instant,
}

/// Whoever keeps commands that were answered. Any thread may call it; it holds nobody up.
pub trait Recorder: Send + Sync + fmt::Debug {
    /// Keeps commands of a client: the number of an NBD client, from 1 in order of arrival, or
    /// [`crate::fuse::CLIENT`].
    fn keep(&self, client: u64, served: &[Served]);
}

/// One client's way to a recorder.
#[derive(Debug)]
pub(crate) struct Tape {
    recorder: Arc<dyn Recorder>,
    client: u64,
    /// Time at which something was received last.
    received_at: Instant,
    /// Time at which replies began to be sent last.
    sending_at: Instant,
    served: Vec<Served>,
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

    /// Keeps commands that were received last and have just been answered.
    pub(crate) fn keep(&mut self, answered: &mut Vec<Asked>) {
        let issued_at = self.received_at;
        self.keep_issued(answered.drain(..).map(|asked| (asked, issued_at)));
    }

    /// Keeps commands that have just been answered, each with the time of its issue.
    pub(crate) fn keep_issued(&mut self, answered: impl Iterator<Item = (Asked, Instant)>) {
        let mut answered = answered.peekable();
        if answered.peek().is_none() {
            return;
        }
        let sending_at = self.sending_at;
        let served = |(asked, issued_at)| {
            // Nothing was sent where a command has no reply of its own.
            Served { asked, issued_at, completed_at: sending_at.max(issued_at) }
        };
        self.served.extend(answered.map(served));
        self.recorder.keep(self.client, &self.served);
        self.served.clear();
    }
}
