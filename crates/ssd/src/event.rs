//! The event queue: what will happen, in the order of time.
//!
//! A heap of four children a node, whose root may be vacant: most events are followed by one new
//! event (a completion by the next request), which then takes the vacant root and sinks, so that
//! one pass does the work of two.

use blockio::Nanos;

const CHILDREN: usize = 4;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// A module may relocate: host writes wait, or its controller is free.
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

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Nanos,
    /// Insertions before this one, modulo 2³²: orders events of the same nanosecond.
    order: u32,
    event: Event,
}

impl Entry {
    /// Time and order as one number: comparing it needs no branch.
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.at.0) << 32 | u128::from(self.order)
    }
}

/// Events by time; equal times in the order of insertion.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventQueue {
    heap: Vec<Entry>,
    /// Whether the root has been taken and not been replaced yet.
    vacant: bool,
    inserted: u32,
}

impl EventQueue {
    /// Time of the earliest event.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<Nanos> {
        if self.vacant {
            self.heap.iter().skip(1).take(CHILDREN).map(|entry| entry.at).min()
        } else {
            self.heap.first().map(|entry| entry.at)
        }
    }

    /// Inserts an event.
    #[inline]
    pub(crate) fn push(&mut self, at: Nanos, event: Event) {
        let entry = Entry { at, order: self.inserted, event };
        self.inserted = self.inserted.wrapping_add(1);
        if self.vacant {
            self.vacant = false;
            self.sink(entry);
        } else {
            self.heap.push(entry);
            self.rise(self.heap.len() - 1);
        }
    }

    /// Removes the earliest event if it is not after `until`.
    #[inline]
    pub(crate) fn pop(&mut self, until: Nanos) -> Option<(Nanos, Event)> {
        if self.vacant {
            self.vacant = false;
            let last = self.heap.pop().expect("a vacant root is an entry");
            if !self.heap.is_empty() {
                self.sink(last);
            }
        }
        let first = *self.heap.first()?;
        if first.at > until {
            return None;
        }
        self.vacant = true;
        Some((first.at, first.event))
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.heap.clear();
        self.vacant = false;
    }

    /// Places `entry` at the root and lets it sink to where it belongs.
    #[inline]
    fn sink(&mut self, entry: Entry) {
        let mut at = 0;
        loop {
            let children = at * CHILDREN + 1;
            let Some(family) = self.heap.get(children..) else { break };
            let Some((index, least)) = least_of(family) else { break };
            if entry.key() <= least.key() {
                break;
            }
            self.heap[at] = least;
            at = children + index;
        }
        self.heap[at] = entry;
    }

    /// Lets the entry at `at` rise to where it belongs.
    #[inline]
    fn rise(&mut self, mut at: usize) {
        let entry = self.heap[at];
        while at > 0 {
            let parent = (at - 1) / CHILDREN;
            if self.heap[parent].key() <= entry.key() {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = entry;
    }
}

/// The earliest of the first `CHILDREN` entries and its index; a full family, by far the most
/// frequent, in two rounds without branches.
#[inline]
fn least_of(family: &[Entry]) -> Option<(usize, Entry)> {
    if let Some([a, b, c, d]) = family.first_chunk() {
        let left = usize::from(b.key() < a.key());
        let right = 2 + usize::from(d.key() < c.key());
        let index = if family[right].key() < family[left].key() { right } else { left };
        return Some((index, family[index]));
    }
    let entries = family.iter().take(CHILDREN).copied().enumerate();
    entries.min_by_key(|(_, entry)| entry.key())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slot(event: Event) -> u32 {
        match event {
            Event::Done { slot } | Event::Sensed { slot, .. } => slot,
            Event::Relocate { module } => module.into(),
        }
    }

    #[test]
    fn equal_times_keep_their_order() {
        let mut queue = EventQueue::default();
        for slot in [3, 1, 2] {
            queue.push(Nanos(5), Event::Done { slot });
        }
        queue.push(Nanos(4), Event::Done { slot: 9 });
        let popped = std::iter::from_fn(|| queue.pop(Nanos(10)));
        assert_eq!(popped.map(|(_, event)| slot(event)).collect::<Vec<_>>(), [9, 3, 1, 2]);
    }

    proptest! {
        #[test]
        fn pushes_and_pops_agree_with_a_sorted_list(
            steps in prop::collection::vec(prop::option::weighted(0.6, 0_u64..50), 1..200)
        ) {
            let (mut queue, mut list) = (EventQueue::default(), Vec::new());
            for (number, step) in (0_u32..).zip(steps) {
                if let Some(at) = step {
                    queue.push(Nanos(at), Event::Done { slot: number });
                    list.push((at, number));
                    list.sort_unstable();
                } else {
                    let expected = (!list.is_empty()).then(|| list.remove(0));
                    let popped = queue.pop(Nanos::MAX).map(|(at, event)| (at.0, slot(event)));
                    prop_assert_eq!(popped, expected);
                }
                prop_assert_eq!(queue.next_at().map(|at| at.0), list.first().map(|(at, _)| *at));
            }
        }
    }
}
