//! SIEVE [zhang-2024].
//!
//! ```text
//!  oldest ─► … ─► newest      a hand moves this way: it clears the mark of a visited block and
//!         hand ──►            passes it, and evicts the first block without a mark
//! ```

use crate::queues::{Block, Queues};

/// A first-in first-out queue whose hand spares visited blocks.
#[derive(Clone, Debug)]
pub(super) struct Sieve {
    blocks: u32,
    queue: Queues<1>,
    /// Place of the hand; absent where it is to begin at the oldest block.
    hand: Option<Block>,
}

impl Sieve {
    pub(super) const fn new(blocks: u32) -> Self {
        Self { blocks, queue: Queues::new(), hand: None }
    }

    pub(super) const fn len(&self) -> u32 {
        self.queue.len(0)
    }

    pub(super) fn contains(&self, block: Block) -> bool {
        self.queue.queue_of(block).is_some()
    }

    pub(super) fn find(&mut self, block: Block) -> bool {
        let is_hit = self.contains(block);
        if is_hit {
            self.queue.set_visits(block, 1);
        }
        is_hit
    }

    pub(super) fn insert(&mut self, block: Block, evicted: &mut Vec<Block>) {
        if self.len() == self.blocks {
            evicted.extend(self.evict());
        }
        self.queue.push(0, block);
    }

    fn evict(&mut self) -> Option<Block> {
        let oldest = self.queue.oldest(0)?;
        let mut at = self.hand.unwrap_or(oldest);
        while self.queue.visits(at) > 0 {
            self.queue.set_visits(at, 0);
            at = self.queue.newer_than(at).unwrap_or(oldest);
        }
        self.remove_at_hand(at);
        Some(at)
    }

    fn remove_at_hand(&mut self, block: Block) {
        self.hand = self.queue.newer_than(block);
        self.queue.remove(block);
        let is_held = self.hand.is_none_or(|hand| self.contains(hand));
        assert!(is_held, "the hand is at a block that the cache holds");
    }

    pub(super) fn remove(&mut self, block: Block) {
        if self.hand == Some(block) {
            self.remove_at_hand(block);
        } else {
            self.queue.remove(block);
        }
    }
}
