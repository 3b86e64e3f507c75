//! Space on the fast class for written data that the slow class lacks yet.
//!
//! ```text
//!  shape:  destaged │ oldest … newest │ free     a ring of places; what was overwritten is skipped
//!  back:   places by block, overwritten where they are; units leave in order of address
//! ```
//!
//! **Invariants**: a block has one place at most; a place that is in use is no free one.

use std::collections::{BTreeSet, VecDeque};

use crate::policy::WriteMode;
use crate::queues::Block;

/// Stands for no place and no block.
const NONE: u32 = u32::MAX;

/// A block that is destaged, and the place from which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leaving {
    pub(crate) block: Block,
    pub(crate) place: u32,
}

/// Written data on the fast class.
#[derive(Clone, Debug)]
pub(crate) struct WriteArea {
    blocks: u32,
    /// Place of each block, by number.
    place_of: Vec<u32>,
    order: Order,
}

#[derive(Clone, Debug)]
enum Order {
    Age(Ring),
    Address(Places),
}

/// Places in the order in which they were written; positions count on and on.
#[derive(Clone, Debug)]
struct Ring {
    block_at: Vec<Block>,
    oldest: u64,
    /// Position up to which data has begun to leave.
    taken: u64,
    next: u64,
    /// Ends of what is leaving, in order, and whether it has left.
    leaving: VecDeque<(u64, bool)>,
}

#[derive(Clone, Debug)]
struct Places {
    free: Vec<u32>,
    /// Blocks that were written since they last began to leave.
    dirty: BTreeSet<Block>,
    /// Blocks that are leaving: each keeps its place until it has left, and does not leave twice.
    leaving: BTreeSet<Block>,
    /// Address at which the next unit is looked for.
    cursor: Block,
}

impl WriteArea {
    /// An empty area of `blocks` places.
    pub(crate) fn new(mode: WriteMode, blocks: u32) -> Self {
        let order = if mode == WriteMode::Shape {
            let block_at = vec![NONE; blocks as usize];
            Order::Age(Ring { block_at, oldest: 0, taken: 0, next: 0, leaving: VecDeque::new() })
        } else {
            let free = (0..blocks).rev().collect();
            Order::Address(Places {
                free,
                dirty: BTreeSet::new(),
                leaving: BTreeSet::new(),
                cursor: 0,
            })
        };
        Self { blocks, place_of: Vec::new(), order }
    }

    /// Places that it has.
    pub(crate) const fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Place of a block, if the area has it.
    pub(crate) fn place(&self, block: Block) -> Option<u32> {
        self.place_of.get(block as usize).copied().filter(|place| *place != NONE)
    }

    /// Places that can be written.
    pub(crate) fn free(&self) -> u32 {
        match &self.order {
            Order::Age(ring) => self.blocks - in_ring(ring.next - ring.oldest),
            Order::Address(places) => {
                u32::try_from(places.free.len()).expect("no more than all places")
            }
        }
    }

    /// Places in use that have not begun to leave.
    pub(crate) fn waiting(&self) -> u32 {
        match &self.order {
            Order::Age(ring) => in_ring(ring.next - ring.taken),
            Order::Address(places) => {
                u32::try_from(places.dirty.len()).expect("no more than all places")
            }
        }
    }

    /// Places a block that the host writes; there is a free place. True if it was overwritten here.
    pub(crate) fn write(&mut self, block: Block) -> (u32, bool) {
        let before = self.place(block);
        let place = match &mut self.order {
            Order::Age(ring) => {
                if let Some(before) = before {
                    ring.block_at[before as usize] = NONE;
                }
                let place = in_ring(ring.next % u64::from(self.blocks));
                assert!(ring.next - ring.oldest < u64::from(self.blocks), "a place is free");
                ring.block_at[place as usize] = block;
                ring.next += 1;
                place
            }
            Order::Address(places) => {
                places.dirty.insert(block);
                before.unwrap_or_else(|| places.free.pop().expect("a place is free"))
            }
        };
        if block as usize >= self.place_of.len() {
            self.place_of.resize(block as usize + 1, NONE);
        }
        self.place_of[block as usize] = place;
        (place, before.is_some())
    }

    /// Forgets a block that was trimmed. What is leaving goes on to.
    pub(crate) fn forget(&mut self, block: Block) {
        let Some(place) = self.place(block) else { return };
        match &mut self.order {
            Order::Age(ring) => ring.block_at[place as usize] = NONE,
            Order::Address(places) => {
                if !places.dirty.remove(&block) || places.leaving.contains(&block) {
                    // It keeps its place while it leaves.
                    return;
                }
                places.free.push(place);
            }
        }
        self.place_of[block as usize] = NONE;
    }

    /// The next blocks to leave, at most `unit` of them: the oldest, or all of an aligned unit of
    /// addresses. None where nothing waits.
    pub(crate) fn take(&mut self, unit: u32) -> Option<Vec<Leaving>> {
        match &mut self.order {
            Order::Age(ring) => ring.take(self.blocks, unit),
            Order::Address(places) => {
                let blocks = places.take(unit)?;
                let place_of = &self.place_of;
                let leaving = |block: Block| Leaving { block, place: place_of[block as usize] };
                Some(blocks.into_iter().map(leaving).collect())
            }
        }
    }

    /// Frees what has left, in the order in which it was taken or in any other.
    pub(crate) fn left(&mut self, leaving: &[Leaving], end: u64) {
        for Leaving { block, place } in leaving {
            if let Order::Address(places) = &mut self.order {
                let was_leaving = places.leaving.remove(block);
                assert!(was_leaving, "what has left was taken");
            }
            if self.place(*block) != Some(*place) {
                continue;
            }
            match &mut self.order {
                Order::Age(ring) => ring.block_at[*place as usize] = NONE,
                // It was written again meanwhile, to the same place.
                Order::Address(places) if places.dirty.contains(block) => continue,
                Order::Address(places) => places.free.push(*place),
            }
            self.place_of[*block as usize] = NONE;
        }
        if let Order::Age(ring) = &mut self.order {
            ring.left(end);
        }
        assert!(self.free() <= self.blocks, "no more is free than there is");
    }

    /// Position up to which data has begun to leave: the `end` of what was taken last.
    pub(crate) const fn taken(&self) -> u64 {
        match &self.order {
            Order::Age(ring) => ring.taken,
            Order::Address(_) => 0,
        }
    }
}

impl Ring {
    fn take(&mut self, blocks: u32, unit: u32) -> Option<Vec<Leaving>> {
        if self.taken == self.next {
            return None;
        }
        let mut leaving = Vec::new();
        while self.taken < self.next && leaving.len() < unit as usize {
            let place = in_ring(self.taken % u64::from(blocks));
            let block = self.block_at[place as usize];
            if block != NONE {
                leaving.push(Leaving { block, place });
            }
            self.taken += 1;
        }
        self.leaving.push_back((self.taken, false));
        Some(leaving)
    }

    fn left(&mut self, end: u64) {
        let entry = self.leaving.iter_mut().find(|(at, _)| *at == end);
        entry.expect("what has left was taken").1 = true;
        while let Some((end, true)) = self.leaving.front() {
            self.oldest = *end;
            self.leaving.pop_front();
        }
        assert!(self.oldest <= self.taken, "what was freed was taken");
    }
}

impl Places {
    fn take(&mut self, unit: u32) -> Option<Vec<Block>> {
        let mut in_turn = self.dirty.range(self.cursor..).chain(self.dirty.range(..self.cursor));
        let first = *in_turn.find(|block| !self.leaving.contains(block))?;
        let end = (first / unit).saturating_add(1).saturating_mul(unit);
        let unit = self.dirty.range(first..end).copied();
        let blocks: Vec<Block> = unit.filter(|block| !self.leaving.contains(block)).collect();
        for block in &blocks {
            self.dirty.remove(block);
            self.leaving.insert(*block);
        }
        self.cursor = end;
        Some(blocks)
    }
}

fn in_ring(count: u64) -> u32 {
    u32::try_from(count).expect("no more than the places of a ring")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_ring_frees_space_in_order_and_skips_what_was_overwritten() {
        let mut area = WriteArea::new(WriteMode::Shape, 4);
        for block in [8, 9, 8] {
            area.write(block);
        }
        assert_eq!((area.free(), area.waiting(), area.place(8)), (1, 3, Some(2)));
        let first = area.take(1).unwrap();
        assert_eq!(first, [Leaving { block: 9, place: 1 }]);
        let first_end = area.taken();
        let second = area.take(1).unwrap();
        area.left(&second, area.taken());
        assert_eq!(area.free(), 1, "the older one has not left");
        area.left(&first, first_end);
        assert_eq!((area.free(), area.place(8)), (4, None));
    }

    #[test]
    fn a_block_that_is_written_while_it_leaves_stays() {
        let mut area = WriteArea::new(WriteMode::Back, 8);
        for block in [5, 17, 6] {
            area.write(block);
        }
        let leaving = area.take(4).unwrap();
        assert_eq!(leaving.iter().map(|it| it.block).collect::<Vec<_>>(), [5, 6]);
        area.write(6);
        area.left(&leaving, 0);
        assert_eq!((area.place(5), area.waiting(), area.free()), (None, 2, 6));
        assert!(area.place(6).is_some());
    }

    proptest! {
        #[test]
        fn every_place_is_in_use_or_free(
            is_ring in any::<bool>(),
            steps in prop::collection::vec((0_u32..60, 0..5), 1..400),
        ) {
            let mode = if is_ring { WriteMode::Shape } else { WriteMode::Back };
            let mut area = WriteArea::new(mode, 16);
            let mut under_way = Vec::new();
            for (block, step) in steps {
                match step {
                    0 => under_way.extend(area.take(4).map(|taken| (taken, area.taken()))),
                    1 if !under_way.is_empty() => {
                        let (taken, end): (Vec<Leaving>, u64) =
                            under_way.swap_remove(block as usize % under_way.len());
                        area.left(&taken, end);
                    }
                    2 => area.forget(block),
                    _ if area.free() > 0 => _ = area.write(block),
                    _ => {}
                }
                let in_flight = under_way.iter().flat_map(|(taken, _)| taken);
                let keeps = |it: &Leaving| is_ring || area.place(it.block) == Some(it.place);
                prop_assert!(in_flight.clone().all(keeps), "what leaves is read from its place");
                let places: BTreeSet<u32> = (0..60).filter_map(|it| area.place(it)).collect();
                let blocks = (0..60).filter(|it| area.place(*it).is_some()).count();
                prop_assert_eq!(places.len(), blocks, "no two blocks share a place");
                prop_assert!(blocks <= 16 - area.free() as usize);
            }
        }
    }
}
