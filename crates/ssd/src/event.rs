//! The event queue: what will happen, in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use blockio::Nanos;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A die has read pages for a request; they go over the channel and the link.
    Sensed {
        /// Request in flight.
        slot: u32,
        /// Channel of the drive.
        channel: u16,
        /// Mapping units read.
        pages: u16,
    },
    /// A module relocates, host writes waiting, and is ready for the next step.
    Relocate {
        /// Index of the module.
        module: u16,
    },
    /// A request is done.
    Done {
        /// Request in flight.
        slot: u32,
    },
}

/// Events by time; equal times in the order of insertion.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    inserted: u64,
}

impl EventQueue {
    /// Time of the earliest event.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// Inserts an event.
    #[inline]
    pub(crate) fn push(&mut self, at: Nanos, event: Event) {
        self.inserted += 1;
        self.heap.push(Reverse((at, self.inserted, event)));
    }

    /// Removes the earliest event if it is not after `until`.
    #[inline]
    pub(crate) fn pop(&mut self, until: Nanos) -> Option<(Nanos, Event)> {
        if self.next_at()? > until {
            return None;
        }
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.heap.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_keep_their_order() {
        let mut queue = EventQueue::default();
        for slot in [3, 1, 2] {
            queue.push(Nanos(5), Event::Done { slot });
        }
        queue.push(Nanos(4), Event::Done { slot: 9 });
        let popped = std::iter::from_fn(|| queue.pop(Nanos(10)));
        let slots: Vec<u32> = popped
            .map(|(_, event)| match event {
                Event::Done { slot } | Event::Sensed { slot, .. } => slot,
                Event::Relocate { .. } => unreachable!("none was pushed"),
            })
            .collect();
        assert_eq!(slots, [9, 3, 1, 2]);
    }
}
