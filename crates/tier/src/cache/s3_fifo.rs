//! S3-FIFO [yang-2023], in the version of libCacheSim 0.3.
//!
//! ```text
//!            ┌─ visited twice ─► main, nine tenths ─► evicted, unless visited
//!  small, a tenth ─ else ──────► ghost, nine tenths of the blocks: numbers only
//!                                  └─ missed again ─► main
//! ```
//!
//! Before the first eviction, what the small queue has no room for goes to the main one.

use crate::queues::{Block, Queues};

const SMALL: usize = 0;
const MAIN: usize = 1;
const GHOST: usize = 2;

/// Visits on probation that lead to the main queue.
const PROMOTION_VISITS: u8 = 2;
/// Most visits that count in the main queue.
const VISITS_MAX: u8 = 3;

/// Three first-in first-out queues.
#[derive(Clone, Debug)]
pub(super) struct S3Fifo {
    blocks: u32,
    small_blocks: u32,
    ghost_blocks: u32,
    queues: Queues<3>,
    has_evicted: bool,
    /// The block looked up last, if it was remembered.
    recalled: Option<Block>,
}

impl S3Fifo {
    pub(super) fn new(blocks: u32) -> Self {
        let ghost_blocks = u64::from(blocks) * 9 / 10;
        Self {
            blocks,
            small_blocks: blocks / 10,
            ghost_blocks: u32::try_from(ghost_blocks).expect("a part of the blocks"),
            queues: Queues::new(),
            has_evicted: false,
            recalled: None,
        }
    }

    pub(super) const fn len(&self) -> u32 {
        self.queues.len(SMALL) + self.queues.len(MAIN)
    }

    pub(super) fn contains(&self, block: Block) -> bool {
        matches!(self.queues.queue_of(block), Some(SMALL | MAIN))
    }

    pub(super) fn find(&mut self, block: Block) -> bool {
        self.recalled = None;
        match self.queues.queue_of(block) {
            Some(GHOST) => {
                self.queues.remove(block);
                self.recalled = Some(block);
                false
            }
            Some(_) => {
                let visits = self.queues.visits(block).saturating_add(1);
                self.queues.set_visits(block, visits);
                true
            }
            None => false,
        }
    }

    pub(super) fn insert(&mut self, block: Block, evicted: &mut Vec<Block>) {
        while self.len() >= self.blocks {
            evicted.extend(self.evict());
        }
        self.queues.remove(block);
        let overflows = !self.has_evicted && self.queues.len(SMALL) >= self.small_blocks;
        let is_recalled = self.recalled.take() == Some(block);
        self.queues.push(if is_recalled || overflows { MAIN } else { SMALL }, block);
    }

    /// Makes room for one block at least, unless all blocks of the small queue were promoted.
    fn evict(&mut self) -> Option<Block> {
        self.has_evicted = true;
        let main_blocks = self.blocks - self.small_blocks;
        if self.queues.len(MAIN) > main_blocks || self.queues.len(SMALL) == 0 {
            return self.evict_main();
        }
        while let Some(block) = self.queues.oldest(SMALL) {
            if self.queues.visits(block) < PROMOTION_VISITS {
                self.queues.renew(GHOST, block);
                if self.queues.len(GHOST) > self.ghost_blocks {
                    self.queues.pop(GHOST);
                }
                return Some(block);
            }
            self.queues.renew(MAIN, block);
        }
        None
    }

    fn evict_main(&mut self) -> Option<Block> {
        loop {
            let block = self.queues.oldest(MAIN)?;
            let visits = self.queues.visits(block).min(VISITS_MAX);
            if visits == 0 {
                self.queues.remove(block);
                return Some(block);
            }
            self.queues.renew(MAIN, block);
            self.queues.set_visits(block, visits - 1);
        }
    }

    pub(super) fn remove(&mut self, block: Block) {
        self.queues.remove(block);
        assert!(self.queues.len(GHOST) <= self.ghost_blocks, "few blocks are remembered");
    }
}
