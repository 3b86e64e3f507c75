//! Polls for more work before a thread sleeps.

use std::thread;

/// Polls in a row that find nothing, some 10 us in all where no other thread wants the processor.
const POLLS: u32 = 24;

/// Polls in a row that found nothing. Falling asleep and waking takes about as long as all of them.
#[derive(Debug, Default)]
pub(crate) struct Polls(u32);

impl Polls {
    /// Begins to count anew: there was something.
    pub(crate) const fn reset(&mut self) {
        self.0 = 0;
    }

    /// Counts a poll that found nothing, and yields the processor. Returns whether to poll again;
    /// when it returns false it counts anew.
    pub(crate) fn poll_again(&mut self) -> bool {
        self.0 += 1;
        if self.0 < POLLS {
            thread::yield_now();
            return true;
        }
        self.reset();
        false
    }
}
