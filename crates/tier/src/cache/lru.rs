//! Least recently used.

use crate::queues::{Block, Queues};

/// A cache that evicts what was not used for longest.
#[derive(Clone, Debug)]
pub(super) struct Lru {
    blocks: u32,
    queue: Queues<1>,
}

impl Lru {
    pub(super) const fn new(blocks: u32) -> Self {
        Self { blocks, queue: Queues::new() }
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
            self.queue.renew(0, block);
        }
        is_hit
    }

    pub(super) fn insert(&mut self, block: Block, evicted: &mut Vec<Block>) {
        if self.len() == self.blocks {
            evicted.extend(self.queue.pop(0));
        }
        self.queue.push(0, block);
    }

    pub(super) fn remove(&mut self, block: Block) {
        self.queue.remove(block);
    }
}
