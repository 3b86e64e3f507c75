//! Adaptive replacement cache [megiddo-2003].
//!
//! ```text
//!  seen once:  recent ─► recent ghosts       a hit among ghosts moves the target of `recent`
//!  seen again: frequent ─► frequent ghosts   towards the list that they came from
//! ```

use crate::queues::{Block, Queues};

const RECENT: usize = 0;
const FREQUENT: usize = 1;
const RECENT_GHOSTS: usize = 2;
const FREQUENT_GHOSTS: usize = 3;

/// Two lists of least recent use, and the numbers of what each evicted.
#[derive(Clone, Debug)]
pub(super) struct Arc {
    blocks: u32,
    queues: Queues<4>,
    /// Blocks that the list of those seen once is to have: p of the paper, 0 to all.
    recent_target: f64,
    /// The block looked up last and the list of ghosts that it was in, if any.
    recalled: Option<(Block, usize)>,
}

impl Arc {
    pub(super) const fn new(blocks: u32) -> Self {
        Self { blocks, queues: Queues::new(), recent_target: 0.0, recalled: None }
    }

    pub(super) const fn len(&self) -> u32 {
        self.queues.len(RECENT) + self.queues.len(FREQUENT)
    }

    pub(super) fn contains(&self, block: Block) -> bool {
        matches!(self.queues.queue_of(block), Some(RECENT | FREQUENT))
    }

    pub(super) fn find(&mut self, block: Block) -> bool {
        self.recalled = None;
        match self.queues.queue_of(block) {
            Some(RECENT | FREQUENT) => {
                self.queues.renew(FREQUENT, block);
                true
            }
            Some(ghosts) => {
                self.adapt(ghosts);
                self.queues.remove(block);
                self.recalled = Some((block, ghosts));
                false
            }
            None => false,
        }
    }

    /// Moves the target towards the list whose ghost was asked for.
    fn adapt(&mut self, ghosts: usize) {
        let [recent, frequent] =
            [RECENT_GHOSTS, FREQUENT_GHOSTS].map(|queue| f64::from(self.queues.len(queue)));
        let target = if ghosts == RECENT_GHOSTS {
            self.recent_target + (frequent / recent).max(1.0)
        } else {
            self.recent_target - (recent / frequent).max(1.0)
        };
        self.recent_target = target.clamp(0.0, f64::from(self.blocks));
    }

    pub(super) fn insert(&mut self, block: Block, evicted: &mut Vec<Block>) {
        let recalled = self.recalled.take().filter(|(recalled, _)| *recalled == block);
        let ghosts = recalled.map(|(_, ghosts)| ghosts);
        if self.len() == self.blocks {
            let gone = if ghosts.is_some() { self.replace(ghosts) } else { self.evict() };
            evicted.extend(gone);
        }
        self.queues.remove(block);
        self.queues.push(if ghosts.is_some() { FREQUENT } else { RECENT }, block);
    }

    /// Case IV of the paper: the block is in no list.
    fn evict(&mut self) -> Option<Block> {
        let once = self.queues.len(RECENT) + self.queues.len(RECENT_GHOSTS);
        if once >= self.blocks {
            if self.queues.pop(RECENT_GHOSTS).is_none() {
                return self.queues.pop(RECENT);
            }
            return self.replace(None);
        }
        let again = self.queues.len(FREQUENT) + self.queues.len(FREQUENT_GHOSTS);
        if u64::from(once) + u64::from(again) >= 2 * u64::from(self.blocks) {
            self.queues.pop(FREQUENT_GHOSTS);
        }
        self.replace(None)
    }

    /// REPLACE of the paper: one block becomes a ghost.
    fn replace(&mut self, ghosts: Option<usize>) -> Option<Block> {
        let recent = self.queues.len(RECENT);
        let length = f64::from(recent);
        let is_above = length > self.recent_target;
        let is_at = length >= self.recent_target && ghosts == Some(FREQUENT_GHOSTS);
        let is_recent = recent > 0 && (is_above || is_at) || self.queues.len(FREQUENT) == 0;
        let (from, to) =
            if is_recent { (RECENT, RECENT_GHOSTS) } else { (FREQUENT, FREQUENT_GHOSTS) };
        let block = self.queues.oldest(from)?;
        self.queues.renew(to, block);
        Some(block)
    }

    pub(super) fn remove(&mut self, block: Block) {
        self.queues.remove(block);
        assert!(self.recent_target >= 0.0, "the target is a number of blocks");
    }
}
