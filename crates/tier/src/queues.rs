//! Queues of blocks, of which each block is in one at most.
//!
//! ```text
//!  oldest ─► newer ─► … ─► newest
//! ```
//!
//! **Invariants**: a block is in the queue that its node says, and nodes that no block uses are
//! listed as free. Nothing depends on the order of a hash.

/// Number of a block.
pub type Block = u32;

/// Stands for no node.
const NONE: u32 = u32::MAX;

/// `N` queues of blocks.
#[derive(Clone, Debug)]
pub(crate) struct Queues<const N: usize> {
    /// Node of each block, by number; [`NONE`] of those in no queue.
    node_of: Vec<u32>,
    nodes: Vec<Node>,
    free: Vec<u32>,
    ends: [Ends; N],
}

#[derive(Clone, Copy, Debug)]
struct Node {
    block: Block,
    queue: u8,
    visits: u8,
    older: u32,
    newer: u32,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    oldest: u32,
    newest: u32,
    len: u32,
}

impl<const N: usize> Queues<N> {
    pub(crate) const fn new() -> Self {
        let ends = [Ends { oldest: NONE, newest: NONE, len: 0 }; N];
        Self { node_of: Vec::new(), nodes: Vec::new(), free: Vec::new(), ends }
    }

    /// Blocks in a queue.
    pub(crate) const fn len(&self, queue: usize) -> u32 {
        self.ends[queue].len
    }

    /// The queue that holds `block`, if any does.
    pub(crate) fn queue_of(&self, block: Block) -> Option<usize> {
        self.node(block).map(|node| usize::from(self.nodes[node as usize].queue))
    }

    /// The block that has been in a queue longest.
    pub(crate) fn oldest(&self, queue: usize) -> Option<Block> {
        self.block(self.ends[queue].oldest)
    }

    /// The block that entered the queue of `block` next after it.
    pub(crate) fn newer_than(&self, block: Block) -> Option<Block> {
        self.block(self.nodes[self.node(block)? as usize].newer)
    }

    /// Visits that were counted of a block.
    pub(crate) fn visits(&self, block: Block) -> u8 {
        self.node(block).map_or(0, |node| self.nodes[node as usize].visits)
    }

    /// Sets the number of visits of a block that is in a queue.
    pub(crate) fn set_visits(&mut self, block: Block, visits: u8) {
        let node = self.node(block).expect("a block that is visited is in a queue");
        self.nodes[node as usize].visits = visits;
    }

    /// Adds a block that is in no queue as the newest, without visits.
    pub(crate) fn push(&mut self, queue: usize, block: Block) {
        let index = block as usize;
        if index >= self.node_of.len() {
            self.node_of.resize(index + 1, NONE);
        }
        assert_eq!(self.node_of[index], NONE, "a block is in one queue at most");
        let before = self.ends[queue].newest;
        let queue_number = u8::try_from(queue).expect("few queues");
        let node = Node { block, queue: queue_number, visits: 0, older: before, newer: NONE };
        let at = if let Some(at) = self.free.pop() {
            self.nodes[at as usize] = node;
            at
        } else {
            self.nodes.push(node);
            u32::try_from(self.nodes.len() - 1).expect("fewer nodes than blocks")
        };
        self.node_of[index] = at;
        match self.nodes.get_mut(before as usize) {
            Some(before) => before.newer = at,
            None => self.ends[queue].oldest = at,
        }
        let ends = &mut self.ends[queue];
        ends.newest = at;
        ends.len += 1;
    }

    /// Removes a block from its queue, which is returned; none if it is in none.
    pub(crate) fn remove(&mut self, block: Block) -> Option<usize> {
        let at = self.node(block)?;
        let Node { queue, older, newer, .. } = self.nodes[at as usize];
        let queue = usize::from(queue);
        match self.nodes.get_mut(older as usize) {
            Some(older) => older.newer = newer,
            None => self.ends[queue].oldest = newer,
        }
        match self.nodes.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => self.ends[queue].newest = older,
        }
        let len = &mut self.ends[queue].len;
        assert!(*len > 0, "a queue that held a block was not empty");
        *len -= 1;
        self.node_of[block as usize] = NONE;
        self.free.push(at);
        Some(queue)
    }

    /// Removes the oldest block of a queue.
    pub(crate) fn pop(&mut self, queue: usize) -> Option<Block> {
        let block = self.oldest(queue)?;
        self.remove(block);
        Some(block)
    }

    /// Moves a block to the newest end of a queue, without visits.
    pub(crate) fn renew(&mut self, queue: usize, block: Block) {
        self.remove(block);
        self.push(queue, block);
    }

    fn node(&self, block: Block) -> Option<u32> {
        self.node_of.get(block as usize).copied().filter(|node| *node != NONE)
    }

    fn block(&self, node: u32) -> Option<Block> {
        self.nodes.get(node as usize).map(|node| node.block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_keeps_the_order_in_which_blocks_entered_it() {
        let mut queues = Queues::<2>::new();
        for block in [5, 7, 9] {
            queues.push(0, block);
        }
        assert_eq!((queues.oldest(0), queues.newer_than(5), queues.len(0)), (Some(5), Some(7), 3));
        queues.set_visits(7, 2);
        queues.renew(1, 7);
        assert_eq!((queues.queue_of(7), queues.visits(7)), (Some(1), 0));
        assert_eq!(queues.newer_than(5), Some(9));
        assert_eq!([queues.pop(0), queues.pop(0), queues.pop(0)], [Some(5), Some(9), None]);
        assert_eq!((queues.remove(7), queues.remove(7)), (Some(1), None));
    }
}
