//! The event queue: what will happen, in the order of time.
//!
//! Most events come from a resource that serves in order, so they are pushed in the order of time
//! already: those wait in **lanes**, first in, first out; one that comes a little early overtakes
//! the last of its lane. The others are in a heap of four children a node, whose root may be
//! vacant: an event taken from the heap is usually followed by one put into it, which then takes
//! the vacant root and sinks, so that one pass does the work of two. What is earliest in each plays
//! in a **tournament**, whose winner is the next event; only the matches of a lane whose first
//! event has changed are played anew:
//!
//! ```text
//!            winner
//!          ┌───┴───┐
//!        ┌─┴─┐   ┌─┴─┐
//!      heap link … lanes
//! ```

use std::collections::VecDeque;
use std::hint::select_unpredictable;

use blockio::Nanos;

const CHILDREN: usize = 4;

/// Most mapping units that a die reads at once.
pub(crate) const PAGES_MAX: u16 = 255;

/// Event of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A die has read pages for a request; they go over the channel and the link.
    Sensed {
        /// Request in flight.
        slot: u32,
        /// Channel of the drive.
        channel: u16,
        /// Mapping units read, at most [`PAGES_MAX`].
        pages: u16,
        /// Transfer of each of them on the channel, on average: 1 to 64 lines of
        /// [`crate::backend::LINE_BYTES`].
        page_lines: u16,
    },
    /// The controller has what a request reads beyond its dies: pages in the buffer, and those that
    /// the map answers with zeroes; they go over the link.
    Answered {
        /// Request in flight.
        slot: u32,
        /// Mapping units, from 1 to 2^30 - 1.
        pages: u32,
    },
    /// A module may relocate: host writes wait, or its controller is free.
    Relocate {
        /// Index of the module.
        module: u16,
    },
    /// A module may fold its SLC cache: no write has come for a while.
    Fold {
        /// Index of the module.
        module: u16,
    },
    /// The arm of a hard disk is free, or a command has arrived for it.
    Arm {
        /// Index of the disk.
        disk: u16,
    },
    /// One of the classes of a drive made of two has something to do.
    Classes,
    /// A request is done.
    Done {
        /// Request in flight.
        slot: u32,
    },
    /// A request that was done earlier reaches the program after a stall of the host.
    Noticed {
        /// Request in flight.
        slot: u32,
    },
}

impl Event {
    const DONE: u64 = 0;
    const RELOCATE: u64 = 1;
    const SENSED: u64 = 2;
    const NOTICED: u64 = 3;

    /// The event as one number, which moves through the queue in one piece: kind in the lowest two
    /// bits, lines of a page less one in 6, pages in 8, channel in 16, slot in 32. `Answered` has
    /// the kind of `Noticed`, with its pages in the 30 bits between. `Fold`, `Arm` and `Classes`
    /// have that of `Relocate`, with 1 to 3 in these bits.
    #[inline]
    fn packed(self) -> u64 {
        match self {
            Self::Done { slot } => Self::DONE | u64::from(slot) << 32,
            Self::Noticed { slot } => Self::NOTICED | u64::from(slot) << 32,
            Self::Answered { slot, pages } => {
                debug_assert!((1..1 << 30).contains(&pages), "an answer of {pages} pages");
                Self::NOTICED | u64::from(pages) << 2 | u64::from(slot) << 32
            }
            Self::Relocate { module } => Self::RELOCATE | u64::from(module) << 32,
            Self::Fold { module } => Self::RELOCATE | 1 << 2 | u64::from(module) << 32,
            Self::Arm { disk } => Self::RELOCATE | 2 << 2 | u64::from(disk) << 32,
            Self::Classes => Self::RELOCATE | 3 << 2,
            Self::Sensed { slot, channel, pages, page_lines } => {
                debug_assert!(pages <= PAGES_MAX, "a program unit of {pages} pages");
                debug_assert!((1..=64).contains(&page_lines), "a page of {page_lines} lines");
                Self::SENSED
                    | u64::from(page_lines - 1) << 2
                    | u64::from(pages) << 8
                    | u64::from(channel) << 16
                    | u64::from(slot) << 32
            }
        }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "parts of what was packed")]
    const fn unpacked(packed: u64) -> Self {
        let slot = (packed >> 32) as u32;
        match packed & 3 {
            Self::DONE => Self::Done { slot },
            Self::NOTICED => match (packed as u32) >> 2 {
                0 => Self::Noticed { slot },
                pages => Self::Answered { slot, pages },
            },
            Self::RELOCATE => match (packed as u32) >> 2 {
                0 => Self::Relocate { module: slot as u16 },
                1 => Self::Fold { module: slot as u16 },
                2 => Self::Arm { disk: slot as u16 },
                _ => Self::Classes,
            },
            _ => Self::Sensed {
                slot,
                channel: (packed >> 16) as u16,
                pages: (packed >> 8) as u16 & 0xff,
                page_lines: ((packed >> 2) as u16 & 0x3f) + 1,
            },
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Nanos,
    /// The event, packed.
    event: u64,
    /// Insertions before this one, modulo 2³²: orders events of the same nanosecond.
    order: u32,
}

impl Entry {
    /// Time and order as one number: comparing it needs no branch.
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.at.0) << 32 | u128::from(self.order)
    }
}

/// Resource whose events are, as a rule, inserted in order of time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lane {
    /// The link to the host.
    Link,
    /// Processors of the host, which all take the same time to wake up.
    Woken,
    /// The controller of this module, which acknowledges.
    Acknowledged(u16),
    /// The dies of this module that were idle, as its controller commands them in order.
    Sensed(u16),
    /// Relocation of this module in the background, one step at a time.
    Relocation(u16),
}

/// Modules with lanes of their own; others share them.
const MODULES_MAX: u16 = 4;

impl Lane {
    /// Its place in the tournament.
    #[inline]
    fn place(self) -> usize {
        match self {
            Self::Link => HEAP + 1,
            Self::Woken => HEAP + 2,
            Self::Acknowledged(module) => HEAP + 3 + usize::from(module % MODULES_MAX) * 3,
            Self::Sensed(module) => HEAP + 4 + usize::from(module % MODULES_MAX) * 3,
            Self::Relocation(module) => HEAP + 5 + usize::from(module % MODULES_MAX) * 3,
        }
    }

    /// Lanes of a drive of so many modules.
    const fn count(modules: usize) -> usize {
        let modules = if modules < MODULES_MAX as usize { modules } else { MODULES_MAX as usize };
        2 + 3 * if modules == 0 { 1 } else { modules }
    }
}

/// Places of the tournament: the heap and every lane that a drive can have.
const PLACES: usize = 16;
/// Bits of a key, the lowest, that say which place it is from.
const PLACE_BITS: u32 = PLACES.trailing_zeros();
const PLACE_MASK: u64 = (1 << PLACE_BITS) - 1;
/// Times of events are below this, some 36 years, so that a key has room for its place.
const TIME_LIMIT: u64 = (1 << (u64::BITS - PLACE_BITS)) - PLACES as u64;

/// The earliest entry of the heap and of each lane, which are its places.
#[derive(Clone, Debug)]
struct Tournament {
    /// The players' keys in the second half, by place, and before them the winner of each match:
    /// of those at `2 i` and `2 i + 1` at `i`, so that the winner of all is at 1. A key is a time
    /// and the place it is from; that of an empty place has a time of its own past the limit.
    keys: [u64; 2 * PLACES],
    /// Insertions before the player's, by place: decides between equal times.
    orders: [u32; PLACES],
}

impl Tournament {
    /// All places are empty.
    fn new() -> Self {
        let mut tournament = Self { keys: [u64::MAX; 2 * PLACES], orders: [0; PLACES] };
        (0..PLACES).for_each(|place| tournament.clear(place));
        tournament
    }

    /// The earliest time and its place; none if all places are empty.
    #[inline]
    const fn winner(&self) -> Option<(Nanos, usize)> {
        let key = self.keys[1];
        let at = key >> PLACE_BITS;
        if at < TIME_LIMIT { Some((Nanos(at), place_of(key))) } else { None }
    }

    /// Time of the player at `place`; past the limit if the place is empty.
    #[inline]
    const fn at(&self, place: usize) -> Nanos {
        Nanos(self.keys[PLACES + place % PLACES] >> PLACE_BITS)
    }

    /// True if nothing is at `place`.
    #[inline]
    const fn is_empty(&self, place: usize) -> bool {
        self.at(place).0 >= TIME_LIMIT
    }

    /// From now on the event of this time and order is earliest at `place`.
    #[inline]
    fn set(&mut self, place: usize, at: Nanos, order: u32) {
        assert!(at.0 < TIME_LIMIT, "an event is due within 36 years of virtual time");
        self.orders[place % PLACES] = order;
        self.play(place, at.0);
    }

    /// From now on nothing is at `place`.
    #[inline]
    fn clear(&mut self, place: usize) {
        self.play(place, TIME_LIMIT + place as u64 % PLACES as u64);
    }

    /// Plays the matches of `place` anew, whose player now has the time `at`.
    #[inline]
    fn play(&mut self, place: usize, at: u64) {
        let mut index = PLACES + place % PLACES;
        let mut key = at << PLACE_BITS | (place % PLACES) as u64;
        self.keys[index] = key;
        for _ in 0..PLACE_BITS {
            let other = self.keys[index ^ 1];
            // Which one wins cannot be predicted; said so, or the compiler makes it a branch. That
            // two are at the same time is rare.
            key = if (key ^ other) >> PLACE_BITS == 0 {
                self.earlier(key, other)
            } else {
                select_unpredictable(other < key, other, key)
            };
            index /= 2;
            self.keys[index] = key;
        }
    }

    /// Of two keys of the same time, that of the event which was inserted first.
    #[cold]
    const fn earlier(&self, a: u64, b: u64) -> u64 {
        if self.orders[place_of(b)] < self.orders[place_of(a)] { b } else { a }
    }
}

/// The place that a key is from.
#[inline]
const fn place_of(key: u64) -> usize {
    (key & PLACE_MASK) as usize
}

/// Events by time; equal times in the order of insertion.
#[derive(Clone, Debug)]
pub(crate) struct EventQueue {
    /// Times of the earliest entries: of the heap first, then of each lane.
    earliest: Tournament,
    /// The first event of each lane, packed, by place; nothing of use where a lane is empty.
    first: [u64; PLACES],
    /// Events after the first in each lane, by place.
    rest: Vec<VecDeque<Entry>>,
    heap: Vec<Entry>,
    /// True if the heap's root has been taken and not been replaced yet.
    vacant: bool,
    inserted: u32,
    /// Time of the event that was removed last; kept up for assertions alone.
    popped_at: Nanos,
}

/// The heap's place in the tournament; those of the lanes follow.
const HEAP: usize = 0;
/// Events of a lane that one may overtake; one that is earlier still goes to the heap.
const OVERTAKEN_MAX: usize = 32;

impl EventQueue {
    /// No events of a drive of so many modules, at least one.
    pub(crate) fn new(modules: usize) -> Self {
        let places = 1 + Lane::count(modules);
        assert!(places <= PLACES, "a key says which of {places} places it is from");
        Self {
            earliest: Tournament::new(),
            first: [0; PLACES],
            rest: vec![VecDeque::new(); places],
            heap: Vec::new(),
            vacant: false,
            inserted: 0,
            popped_at: Nanos::ZERO,
        }
    }

    /// Time of the earliest event.
    pub(crate) fn next_at(&self) -> Option<Nanos> {
        self.earliest.winner().map(|(at, _)| at)
    }

    /// Inserts an event.
    #[inline]
    pub(crate) fn push(&mut self, at: Nanos, event: Event) {
        self.inserted = self.inserted.wrapping_add(1);
        self.push_heap(at, event.packed(), self.inserted);
    }

    /// Inserts an event that comes after those inserted into `lane` before, as a rule.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "an entry that is passed on is copied through memory")]
    pub(crate) fn push_in_order(&mut self, lane: Lane, at: Nanos, event: Event) {
        self.inserted = self.inserted.wrapping_add(1);
        let (event, order, place) = (event.packed(), self.inserted, lane.place());
        if self.earliest.is_empty(place) {
            self.first[place] = event;
            self.earliest.set(place, at, order);
            return;
        }
        let last_at = self.rest[place].back().map_or(self.earliest.at(place), |last| last.at);
        if last_at <= at {
            self.append(place, at, event, order);
        } else {
            self.overtake(place, at, event, order);
        }
    }

    /// Appends an event to a lane that is not empty. It takes the parts of an entry, and is the one
    /// place that appends, so that the queue's own code becomes part of it.
    #[inline(never)]
    fn append(&mut self, place: usize, at: Nanos, event: u64, order: u32) {
        self.rest[place].push_back(Entry { at, event, order });
    }

    /// Makes the second event of a lane its first. The one place that takes from a lane, as above.
    #[inline(never)]
    fn advance(&mut self, place: usize) {
        if let Some(next) = self.rest[place].pop_front() {
            self.first[place] = next.event;
            self.earliest.set(place, next.at, next.order);
        } else {
            self.earliest.clear(place);
        }
    }

    /// Inserts an event into a lane before those that are later.
    #[inline(never)]
    fn overtake(&mut self, place: usize, at: Nanos, event: u64, order: u32) {
        let rest = &mut self.rest[place];
        let later = rest.iter().rev().take(OVERTAKEN_MAX + 1).take_while(|it| it.at > at).count();
        if later > OVERTAKEN_MAX {
            self.push_heap(at, event, order);
        } else if later < rest.len() || self.earliest.at(place) <= at {
            rest.insert(rest.len() - later, Entry { at, event, order });
        } else {
            let (first_at, first_order) = (self.earliest.at(place), self.earliest.orders[place]);
            rest.push_front(Entry { at: first_at, event: self.first[place], order: first_order });
            self.first[place] = event;
            self.earliest.set(place, at, order);
        }
    }

    /// Removes the earliest event if it is not after `until`.
    #[inline]
    pub(crate) fn pop(&mut self, until: Nanos) -> Option<(Nanos, Event)> {
        let (at, place) = self.earliest.winner()?;
        if at > until {
            return None;
        }
        let event = if place == HEAP {
            self.pop_heap()
        } else {
            let event = self.first[place];
            self.advance(place);
            event
        };
        debug_assert!(self.next_at().is_none_or(|next| next >= at), "events come in order of time");
        if cfg!(debug_assertions) {
            self.popped_at = at;
        }
        Some((at, Event::unpacked(event)))
    }

    /// Asserts that nothing later than `at` has happened.
    #[inline]
    pub(crate) fn assert_not_past(&self, at: Nanos) {
        debug_assert!(at >= self.popped_at, "{at} is past: the drive is at {}", self.popped_at);
    }

    /// All events that are pending, in any order.
    pub(crate) fn pending(&self) -> impl Iterator<Item = Event> {
        let lanes = (HEAP + 1..PLACES).filter(|place| !self.earliest.is_empty(*place));
        let heap = self.heap.iter().skip(usize::from(self.vacant));
        let entries = self.rest.iter().flatten().chain(heap).map(|entry| entry.event);
        lanes.map(|place| self.first[place]).chain(entries).map(Event::unpacked)
    }

    /// Asserts that lanes and heap are in order, and that what is kept of each is its earliest.
    pub(crate) fn check_invariants(&self) {
        for (place, rest) in self.rest.iter().enumerate().skip(HEAP + 1) {
            let has_first = rest.is_empty() || !self.earliest.is_empty(place);
            assert!(has_first, "something comes before the rest of a lane");
            let first = (self.earliest.at(place), self.earliest.orders[place]);
            let rest = rest.iter().map(|entry| (entry.at, entry.order));
            let is_sorted = std::iter::once(first).chain(rest).is_sorted_by_key(|(at, _)| at);
            assert!(is_sorted, "events of a lane are in order of time");
        }
        for (index, entry) in self.heap.iter().enumerate().skip(1) {
            let parent = (index - 1) / CHILDREN;
            let is_vacant = parent == 0 && self.vacant;
            let is_after = is_vacant || self.heap[parent].key() <= entry.key();
            assert!(is_after, "an event of the heap is not before its parent");
        }
        let rest = self.heap.iter().skip(usize::from(self.vacant));
        let first = rest.min_by_key(|entry| entry.key());
        assert_eq!(
            first.is_none(),
            self.earliest.is_empty(HEAP),
            "an empty heap is known to be so"
        );
        let is_known = first.is_none_or(|first| {
            (first.at, first.order) == (self.earliest.at(HEAP), self.earliest.orders[HEAP])
        });
        assert!(is_known, "the heap is looked for at its earliest");
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.earliest = Tournament::new();
        self.rest.iter_mut().for_each(VecDeque::clear);
        self.heap.clear();
        self.vacant = false;
    }

    /// Takes the parts of an entry: as one it would be copied through memory.
    #[inline(never)]
    fn push_heap(&mut self, at: Nanos, event: u64, order: u32) {
        let entry = Entry { at, event, order };
        if self.vacant {
            self.vacant = false;
            self.sink(entry);
        } else {
            self.heap.push(entry);
            self.rise(self.heap.len() - 1, entry);
        }
        let root = &self.heap[0];
        self.earliest.set(HEAP, root.at, root.order);
    }

    /// Takes the event at the root, which it leaves vacant.
    #[inline]
    fn pop_heap(&mut self) -> u64 {
        self.fill_vacant();
        self.vacant = true;
        debug_assert_eq!(self.heap[0].at, self.earliest.at(HEAP), "the root is the earliest");
        match least_of(self.heap.get(1..).unwrap_or_default()) {
            Some((_, next)) => self.earliest.set(HEAP, next.at, next.order),
            None => self.earliest.clear(HEAP),
        }
        self.heap[0].event
    }

    /// Gives a vacant root to the last entry.
    #[inline]
    fn fill_vacant(&mut self) {
        if self.vacant {
            self.vacant = false;
            let last = self.heap.pop().expect("a vacant root is an entry");
            if !self.heap.is_empty() {
                self.sink(last);
            }
        }
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

    /// Places `entry` at `at` and lets it rise to where it belongs.
    #[inline]
    fn rise(&mut self, mut at: usize, entry: Entry) {
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
        let is_right = family[right].key() < family[left].key();
        let index = select_unpredictable(is_right, right, left);
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
            Event::Done { slot }
            | Event::Noticed { slot }
            | Event::Answered { slot, .. }
            | Event::Sensed { slot, .. } => slot,
            Event::Relocate { module } | Event::Fold { module } => module.into(),
            Event::Arm { disk } => disk.into(),
            Event::Classes => 0,
        }
    }

    #[test]
    fn equal_times_keep_their_order() {
        let mut queue = EventQueue::new(1);
        for slot in [3, 1, 2] {
            queue.push(Nanos(5), Event::Done { slot });
        }
        queue.push(Nanos(4), Event::Done { slot: 9 });
        let popped = std::iter::from_fn(|| queue.pop(Nanos(10)));
        assert_eq!(popped.map(|(_, event)| slot(event)).collect::<Vec<_>>(), [9, 3, 1, 2]);
    }

    proptest! {
        #[test]
        fn an_event_survives_packing(
            slot: u32, channel: u16, pages in 0..=PAGES_MAX, page_lines in 1_u16..=64,
            answered in 1_u32..1 << 30,
        ) {
            let events = [
                Event::Sensed { slot, channel, pages, page_lines },
                Event::Relocate { module: channel },
                Event::Fold { module: channel },
                Event::Arm { disk: channel },
                Event::Classes,
                Event::Done { slot },
                Event::Noticed { slot },
                Event::Answered { slot, pages: answered },
            ];
            for event in events {
                prop_assert_eq!(Event::unpacked(event.packed()), event);
            }
        }

        #[test]
        fn pushes_and_pops_agree_with_a_sorted_list(
            steps in prop::collection::vec(prop::option::weighted(0.6, 0_u64..50), 1..200)
        ) {
            let (mut queue, mut list) = (EventQueue::new(1), Vec::new());
            for (number, step) in (0_u32..).zip(steps) {
                if let Some(at) = step {
                    let (at, event) = (at, Event::Done { slot: number });
                    match number % 3 {
                        0 => queue.push_in_order(Lane::Link, Nanos(at), event),
                        1 => queue.push_in_order(Lane::Sensed(4), Nanos(at), event),
                        _ => queue.push(Nanos(at), event),
                    }
                    list.push((at, number));
                    list.sort_unstable();
                } else {
                    let expected = (!list.is_empty()).then(|| list.remove(0));
                    let popped = queue.pop(Nanos::MAX).map(|(at, event)| (at.0, slot(event)));
                    prop_assert_eq!(popped, expected);
                }
                prop_assert_eq!(queue.next_at().map(|at| at.0), list.first().map(|(at, _)| *at));
                prop_assert_eq!(queue.pending().count(), list.len());
                queue.check_invariants();
            }
        }
    }
}
