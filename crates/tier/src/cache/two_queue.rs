//! 2Q [johnson-1994], in the version of libCacheSim 0.3.
//!
//! ```text
//!  in, a quarter: first in first out ─► out, half of the blocks: numbers only
//!                                         └─ missed again ─► main: least recently used
//! ```

use crate::queues::{Block, Queues};

const IN: usize = 0;
const MAIN: usize = 1;
const OUT: usize = 2;

/// A queue on probation before one of least recent use.
#[derive(Clone, Debug)]
pub(super) struct TwoQueue {
    blocks: u32,
    queues: Queues<3>,
    /// The block looked up last, if it was remembered.
    recalled: Option<Block>,
}

impl TwoQueue {
    pub(super) const fn new(blocks: u32) -> Self {
        Self { blocks, queues: Queues::new(), recalled: None }
    }

    pub(super) const fn len(&self) -> u32 {
        self.queues.len(IN) + self.queues.len(MAIN)
    }

    pub(super) fn contains(&self, block: Block) -> bool {
        matches!(self.queues.queue_of(block), Some(IN | MAIN))
    }

    pub(super) fn find(&mut self, block: Block) -> bool {
        self.recalled = None;
        match self.queues.queue_of(block) {
            Some(OUT) => {
                self.queues.remove(block);
                self.recalled = Some(block);
                false
            }
            Some(MAIN) => {
                self.queues.renew(MAIN, block);
                true
            }
            Some(_) => true,
            None => false,
        }
    }

    pub(super) fn insert(&mut self, block: Block, evicted: &mut Vec<Block>) {
        if self.len() == self.blocks {
            evicted.extend(self.evict());
        }
        self.queues.remove(block);
        if self.recalled.take() != Some(block) {
            self.queues.push(IN, block);
            return;
        }
        if self.queues.len(MAIN) >= self.blocks - self.in_blocks() {
            evicted.extend(self.queues.pop(MAIN));
        }
        self.queues.push(MAIN, block);
    }

    const fn in_blocks(&self) -> u32 {
        self.blocks / 4
    }

    fn evict(&mut self) -> Option<Block> {
        if self.queues.len(MAIN) > 0 && self.queues.len(IN) <= self.in_blocks() {
            return self.queues.pop(MAIN);
        }
        let block = self.queues.oldest(IN)?;
        self.queues.renew(OUT, block);
        if self.queues.len(OUT) > self.blocks / 2 {
            self.queues.pop(OUT);
        }
        Some(block)
    }

    pub(super) fn remove(&mut self, block: Block) {
        self.queues.remove(block);
        assert!(self.queues.len(OUT) <= self.blocks / 2, "few blocks are remembered");
    }
}
