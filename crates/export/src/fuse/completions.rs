//! Completions: replies that are held back until a model is done.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::CLIENT;
use crate::{Holder, Lane, Pace, PacedCommand, RecordedCommand, Recorder};

/// Threads of the host in the model; each request is of the one with the fewest outstanding.
const LANES: usize = 16;

/// The reply to a command that was carried out.
pub(super) struct FuseReply {
    asked: PacedCommand,
    issued_at: Instant,
    send: Box<dyn FnOnce() + Send>,
}

impl FuseReply {
    pub(super) fn new(
        asked: PacedCommand,
        issued_at: Instant,
        send: impl FnOnce() + Send + 'static,
    ) -> Self {
        Self { asked, issued_at, send: Box::new(send) }
    }

    /// Sends it, and records it.
    pub(super) fn send(self, recorder: Option<&dyn Recorder>) {
        let Self { asked, issued_at, send } = self;
        let completed_at = Instant::now();
        send();
        if let Some(recorder) = recorder {
            recorder.keep(CLIENT, &[RecordedCommand { asked, issued_at, completed_at }]);
        }
    }
}

/// Replies that wait for a model.
pub(super) struct Completions {
    waiting: Arc<PacedReplies>,
    lanes: Vec<Lane>,
}

struct PacedReplies {
    recorder: Option<Arc<dyn Recorder>>,
    held: Mutex<HeldReplies>,
    /// Signalled when nothing is held any more.
    is_empty: Condvar,
}

struct HeldReplies {
    /// Number of replies that each lane waits for.
    outstanding: Vec<usize>,
    /// By the model's ticket, with the index of the lane.
    replies: BTreeMap<u32, (usize, FuseReply)>,
}

impl Completions {
    /// Begins to hold replies at the pace of a model.
    ///
    /// # Errors
    /// Fails if the system has no thread, or the model no room for more clients.
    pub(super) fn start(pace: &Arc<Pace>, recorder: Option<Arc<dyn Recorder>>) -> io::Result<Self> {
        let held = HeldReplies { outstanding: vec![0; LANES], replies: BTreeMap::new() };
        let waiting = PacedReplies { recorder, held: Mutex::new(held), is_empty: Condvar::new() };
        let waiting = Arc::new(waiting);
        let lane = |_| Lane::new(pace, Arc::<PacedReplies>::clone(&waiting));
        let lanes = (0..LANES).map(lane).collect::<io::Result<Vec<_>>>()?;
        Ok(Self { waiting, lanes })
    }

    /// Passes a command that was carried out to the model, and holds its reply until it is due.
    pub(super) fn hold(&self, reply: FuseReply) {
        let mut held = self.waiting.held();
        let lane = (0..LANES).min_by_key(|index| held.outstanding[*index]);
        let lane = lane.expect("there are some");
        let ticket = self.lanes[lane].submit(reply.issued_at, reply.asked);
        held.outstanding[lane] += 1;
        let replaced = held.replies.insert(ticket, (lane, reply));
        assert!(replaced.is_none(), "tickets wrap around after 2^32 commands");
    }
}

/// Waits until nothing is held.
impl Drop for Completions {
    fn drop(&mut self) {
        let mut held = self.waiting.held();
        while !held.replies.is_empty() {
            held = self.waiting.is_empty.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl fmt::Debug for Completions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Completions").finish_non_exhaustive()
    }
}

impl PacedReplies {
    fn held(&self) -> MutexGuard<'_, HeldReplies> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Holder for PacedReplies {
    fn send_due(&self, tickets: &[u32]) {
        for ticket in tickets {
            let mut held = self.held();
            let Some((lane, reply)) = held.replies.remove(ticket) else { continue };
            held.outstanding[lane] -= 1;
            let is_empty = held.replies.is_empty();
            drop(held);
            reply.send(self.recorder.as_deref());
            if is_empty {
                self.is_empty.notify_all();
            }
        }
    }
}
