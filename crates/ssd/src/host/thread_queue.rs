//! Requests that wait for their thread, which carries out one after the other.

use std::collections::VecDeque;

use super::entry;

/// The queue of each thread.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadQueues {
    threads: Vec<ThreadQueue>,
}

/// Requests that wait for a thread.
#[derive(Clone, Debug, Default)]
struct ThreadQueue {
    /// True while the thread carries out a request.
    busy: bool,
    waiting: VecDeque<u32>,
}

impl ThreadQueues {
    /// True if the request in `slot` may begin at once; else it is queued.
    pub(super) fn take(&mut self, thread: u16, slot: u32) -> bool {
        let queue = entry(&mut self.threads, thread);
        assert!(queue.busy || queue.waiting.is_empty(), "nothing waits for an idle thread");
        if queue.busy {
            queue.waiting.push_back(slot);
        }
        !std::mem::replace(&mut queue.busy, true)
    }

    /// The request that begins now that the one before it has completed.
    pub(super) fn pass_on(&mut self, thread: u16) -> Option<u32> {
        let queue = entry(&mut self.threads, thread);
        assert!(queue.busy, "a thread that is passed on was busy");
        let next = queue.waiting.pop_front();
        queue.busy = next.is_some();
        next
    }

    /// All requests that wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = u32> {
        self.threads.iter().flat_map(|queue| queue.waiting.iter().copied())
    }

    /// Drops all waiting requests.
    pub(super) fn forget(&mut self) {
        self.threads.clear();
    }
}
