//! Requests that wait for their thread, which carries out one after the other.

use std::collections::VecDeque;

use super::entry;

/// Whose turn it is in each thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    threads: Vec<Turn>,
}

#[derive(Clone, Debug, Default)]
struct Turn {
    taken: bool,
    waiting: VecDeque<u32>,
}

impl Turns {
    /// True if the request in `slot` may begin at once; else it is queued.
    pub(super) fn take(&mut self, thread: u16, slot: u32) -> bool {
        let turn = entry(&mut self.threads, thread);
        assert!(turn.taken || turn.waiting.is_empty(), "nothing waits for an idle thread");
        if turn.taken {
            turn.waiting.push_back(slot);
        }
        !std::mem::replace(&mut turn.taken, true)
    }

    /// The request that begins now that the one before it has completed.
    pub(super) fn pass_on(&mut self, thread: u16) -> Option<u32> {
        let turn = entry(&mut self.threads, thread);
        assert!(turn.taken, "a turn that is passed on was taken");
        let next = turn.waiting.pop_front();
        turn.taken = next.is_some();
        next
    }

    /// All requests that wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = u32> {
        self.threads.iter().flat_map(|turn| turn.waiting.iter().copied())
    }

    /// Drops all waiting requests.
    pub(super) fn forget(&mut self) {
        self.threads.clear();
    }
}
