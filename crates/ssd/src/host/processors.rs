//! Processors that the threads of a host share.

use blockio::Nanos;

use super::entry;

/// Processors and the threads that have something outstanding.
///
/// More of them than processors take turns, so each takes longer for what it does. A thread that
/// only waits counts as one that works: exact where the processors are the limit, a little
/// pessimistic elsewhere.
#[derive(Clone, Debug)]
pub(super) struct Processors {
    count: u64,
    busy_threads: u64,
    outstanding: Vec<u32>,
}

impl Processors {
    /// `count` idle processors, at least one.
    pub(super) const fn new(count: u32) -> Self {
        Self { count: count as u64, busy_threads: 0, outstanding: Vec::new() }
    }

    /// A request of `thread` begins.
    pub(super) fn began(&mut self, thread: u16) {
        let outstanding = entry(&mut self.outstanding, thread);
        self.busy_threads += u64::from(*outstanding == 0);
        *outstanding += 1;
    }

    /// A request of `thread` ends.
    pub(super) fn ended(&mut self, thread: u16) {
        let outstanding = entry(&mut self.outstanding, thread);
        *outstanding -= 1;
        self.busy_threads -= u64::from(*outstanding == 0);
        debug_assert!(self.busy_threads <= self.outstanding.len() as u64, "a thread is busy once");
    }

    /// Time that a thread takes for work of `span`: longer if more threads are busy than there are
    /// processors.
    pub(super) const fn stretched(&self, span: Nanos) -> Nanos {
        if self.busy_threads <= self.count {
            return span;
        }
        Nanos(span.0 * self.busy_threads / self.count)
    }

    /// Drops everything outstanding.
    pub(super) fn forget(&mut self) {
        self.busy_threads = 0;
        self.outstanding.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_beyond_the_processors_take_turns() {
        let mut processors = Processors::new(2);
        let span = Nanos(100);
        for thread in [0, 0, 1] {
            processors.began(thread);
        }
        assert_eq!(processors.stretched(span), span);
        processors.began(2);
        assert_eq!(processors.stretched(span), Nanos(150));
        processors.ended(0);
        assert_eq!(processors.stretched(span), Nanos(150));
        processors.ended(0);
        assert_eq!(processors.stretched(span), span);
    }
}
