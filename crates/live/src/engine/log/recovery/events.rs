//! Events that changed the map since a checkpoint, in order.
//!
//! A unit was filled page by page, so what its table says is in order already: a **run**. Few
//! superblocks are open at a time, so runs overlap with one or two others at most, and one walk
//! over all of them gives the order of everything; nothing is sorted but runs.
//!
//! ```text
//!  host        ├─ unit ─┤├─ unit ─┤├─ unit ─┤
//!  relocation     ├─── unit ───┤├─── unit ───┤     ─► earliest first ─► map
//!  journal      │     │         │
//! ```
//!
//! Invariant: within a run orders do not fall.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ftl::{Lpn, Ppn};

use super::charged;
use crate::format::layout::Layout;
use crate::format::unit::Extent;
use crate::mutants::{self, Mutant};

/// Pages by which a walk announces a page ahead of its event.
const AHEAD: usize = 24;

/// Event that changed the map.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A page got a place on the media, where it is counted as so many bytes. The page `soon` will
    /// get one a little later.
    Placed { lpn: Lpn, ppn: Ppn, bytes: u32, soon: Lpn },
    /// A page got a place in a row that was never completed; its extent is in the journal.
    Journaled { lpn: Lpn, ppn: Ppn, index: u32 },
    /// Pages were trimmed.
    Trim { first: Lpn, pages: u32 },
    /// Pages were found lost.
    Lost { first: Lpn, pages: u32 },
}

/// Page that got a place: eight bytes, since a large drive has millions of them.
#[derive(Clone, Copy, Debug)]
struct PlacedPage {
    lpn: u32,
    /// Count of events, relative to that of its run.
    seq: u16,
    /// Bytes that it is counted as, at most a page.
    bytes: u16,
}

/// Pages of one unit that got their places one after the other.
#[derive(Clone, Copy, Debug)]
struct SlotRun {
    /// Count of events at its first page.
    seq: u64,
    /// The first place of the unit.
    unit: Ppn,
    /// Number of the next page within the unit.
    slot: u32,
    /// Index of the next page among all, and the index at which the run ends.
    at: usize,
    end: usize,
}

/// Events of all units and of the journal.
#[derive(Debug)]
pub(super) struct Events {
    layout: Layout,
    placed: Vec<PlacedPage>,
    runs: Vec<SlotRun>,
    /// Events that the journal has and the rows do not, each with its sequence number.
    journaled: Vec<(u64, Event)>,
}

impl Events {
    pub(super) fn new(layout: &Layout) -> Self {
        let layout = layout.clone();
        Self { layout, placed: Vec::new(), runs: Vec::new(), journaled: Vec::new() }
    }

    /// Adds what the journal says.
    pub(super) fn add(&mut self, seq: u64, event: Event) {
        self.journaled.push((seq, event));
    }

    /// Adds the extents of a unit, from an event on; `unit` is its first place.
    pub(super) fn add_unit(
        &mut self,
        unit: Ppn,
        extents: impl Iterator<Item = Extent>,
        since: u64,
    ) {
        let mut run: Option<SlotRun> = None;
        let mut last = 0;
        for (slot, extent) in (0..).zip(extents) {
            if extent.seq < since {
                self.runs.extend(run.take());
                continue;
            }
            let follows = |run: &SlotRun| {
                let seq = extent.seq.checked_sub(run.seq)?;
                u16::try_from(seq).ok().filter(|_| extent.seq >= last)
            };
            let seq = if let Some(seq) = run.as_ref().and_then(follows) {
                seq
            } else {
                let (seq, at) = (extent.seq, self.placed.len());
                self.runs.extend(run.replace(SlotRun { seq, unit, slot, at, end: at }));
                0
            };
            last = extent.seq;
            self.placed.push(PlacedPage { lpn: extent.lpn.0, seq, bytes: charged(&extent) });
            run = run.map(|run| SlotRun { end: run.end + 1, ..run });
        }
        self.runs.extend(run);
    }

    /// Walks over all events, earliest first.
    pub(super) fn in_order(mut self) -> Walk {
        if !mutants::is(Mutant::OrderIgnored) {
            self.runs.sort_by_key(|run| run.seq);
            self.journaled.sort_by_key(|(seq, _)| *seq);
        }
        Walk { events: self, begun: 0, journaled: 0, left: BinaryHeap::new(), run: None, until: 0 }
    }
}

/// A walk over all events, earliest first.
#[derive(Debug)]
pub(super) struct Walk {
    events: Events,
    /// Runs that were begun, and events of the journal that were taken.
    begun: usize,
    journaled: usize,
    /// Runs that were begun and left for an earlier one: the sequence number at which each
    /// goes on.
    left: BinaryHeap<Reverse<(u64, usize)>>,
    /// The run that is walked over, which comes before everything else up to `until`.
    run: Option<usize>,
    until: u64,
}

impl Iterator for Walk {
    type Item = (u64, Event);

    #[inline]
    fn next(&mut self) -> Option<(u64, Event)> {
        loop {
            let Some(index) = self.run else {
                match self.choose()? {
                    Choice::Run => continue,
                    Choice::Journaled(seq, event) => return Some((seq, event)),
                }
            };
            let run = &mut self.events.runs[index];
            let next = if run.at < run.end { self.events.placed.get(run.at) } else { None };
            let Some(placed) = next else {
                self.run = None;
                continue;
            };
            let seq = run.seq + u64::from(placed.seq);
            if seq > self.until {
                self.left.push(Reverse((seq, index)));
                self.run = None;
                continue;
            }
            let ppn = self.events.layout.ppn_within(run.unit, run.slot);
            // The pages of a stream that come later lie behind, whichever run they belong to.
            let soon = Lpn(self.events.placed.get(run.at + AHEAD).unwrap_or(placed).lpn);
            (run.at, run.slot) = (run.at + 1, run.slot + 1);
            let (lpn, bytes) = (Lpn(placed.lpn), placed.bytes.into());
            return Some((seq, Event::Placed { lpn, ppn, bytes, soon }));
        }
    }
}

impl Walk {
    /// Goes on with the run that has the earliest event, unless the journal has it; none where
    /// nothing is left.
    fn choose(&mut self) -> Option<Choice> {
        let waiting = |walk: &Self| walk.events.runs.get(walk.begun).map(|run| run.seq);
        let left = |walk: &Self| walk.left.peek().map(|Reverse((seq, _))| *seq);
        let journaled = self.events.journaled.get(self.journaled).copied();
        let earliest = |walk: &Self| waiting(walk).into_iter().chain(left(walk)).min();
        let first = earliest(self);
        let is_first = |(seq, _): &(u64, Event)| first.is_none_or(|first| *seq <= first);
        if let Some((seq, event)) = journaled.filter(is_first) {
            self.journaled += 1;
            return Some(Choice::Journaled(seq, event));
        }
        if left(self) == first {
            let Reverse((_, index)) = self.left.pop()?;
            self.run = Some(index);
        } else {
            self.run = Some(self.begun);
            self.begun += 1;
        }
        let others = earliest(self).into_iter().chain(journaled.map(|(seq, _)| seq));
        self.until = others.min().unwrap_or(u64::MAX);
        Some(Choice::Run)
    }
}

/// Source of the earliest event: a run, or the journal.
#[derive(Clone, Copy, Debug)]
enum Choice {
    Run,
    Journaled(u64, Event),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Shape;
    use crate::format::layout::Place;
    use crate::format::unit::Codec;

    const SHAPE: Shape = Shape {
        dies: 1,
        is_protected: false,
        unit_pages: 4,
        rows: 8,
        ..crate::format::layout::tests::SHAPE
    };

    fn extent(lpn: u32, seq: u64) -> Extent {
        Extent { lpn: Lpn(lpn), codec: Codec::Lz4, key: 0, length: 500, seq, payload_crc: 0 }
    }

    fn any_order() -> impl Strategy<Value = u64> {
        prop_oneof![100..140_u64, 0..1_000_000_u64, Just(u64::MAX)]
    }

    proptest! {
        #[test]
        fn a_walk_is_all_events_since_the_checkpoint_sorted_by_their_order(
            tables in prop::collection::vec(prop::collection::vec(any_order(), 0..16), 0..12),
            is_in_turn in any::<bool>(),
            trims in prop::collection::vec(any_order(), 0..5),
            since in 90..130_u64,
        ) {
            let layout = Layout::new(&SHAPE);
            let (mut events, mut expected) = (Events::new(&layout), Vec::new());
            for (unit, mut seqs) in (0..).zip(tables) {
                if is_in_turn {
                    seqs.sort_unstable();
                }
                let place = |slot| layout.ppn(Place { row: unit, unit: 0, slot });
                let numbered = seqs.iter().zip(unit * 16..);
                let extents: Vec<Extent> =
                    numbered.map(|(seq, lpn)| extent(lpn, *seq)).collect();
                events.add_unit(place(0), extents.iter().copied(), since);
                for (slot, extent) in (0..).zip(&extents) {
                    if extent.seq >= since {
                        expected.push((extent.seq, extent.lpn.0, place(slot)));
                    }
                }
            }
            for seq in &trims {
                events.add(*seq, Event::Trim { first: Lpn(9999), pages: 1 });
                expected.push((*seq, 9999, Ppn(0)));
            }
            let mut found: Vec<_> = events.in_order().map(|(seq, event)| match event {
                Event::Placed { lpn, ppn, .. } => (seq, lpn.0, ppn),
                Event::Trim { first, .. } => (seq, first.0, Ppn(0)),
                Event::Journaled { .. } | Event::Lost { .. } => panic!("none was added"),
            }).collect();
            prop_assert!(found.is_sorted_by_key(|(seq, ..)| *seq));
            found.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
}
