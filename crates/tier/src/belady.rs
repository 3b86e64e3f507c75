//! Belady's bound: hits of a cache that evicts what is used again last [belady-1966].

use std::collections::BTreeMap;

use crate::queues::Block;

/// Hits of an optimal cache of `blocks` blocks that takes in every block that it misses; one entry
/// for each access. None for a cache without blocks.
///
/// ```
/// let accesses = [1, 2, 3, 1, 2, 3];
/// let hits = tier::optimal_hits(&accesses, 2);
/// assert_eq!(hits, [false, false, false, true, false, true]);
/// ```
pub fn optimal_hits(accesses: &[Block], blocks: u32) -> Vec<bool> {
    let next_of = next_uses(accesses);
    // Blocks that are held by their next use, which differs but for those never used again: these
    // are told apart by the place of their last use beyond the end.
    let mut held = BTreeMap::<usize, Block>::new();
    let mut hits = Vec::with_capacity(accesses.len());
    for (index, block) in accesses.iter().enumerate() {
        let is_hit = held.remove(&index).is_some();
        hits.push(is_hit);
        if !is_hit && held.len() == blocks as usize {
            held.pop_last();
        }
        if blocks > 0 {
            held.insert(next_of[index], *block);
        }
        assert!(held.len() <= blocks as usize, "a cache holds no more than it can");
    }
    hits
}

/// Index of the next access to the block of each access; beyond the end, all different, where there
/// is none.
fn next_uses(accesses: &[Block]) -> Vec<usize> {
    let mut seen = BTreeMap::<Block, usize>::new();
    let mut next_of: Vec<usize> = (0..accesses.len()).map(|at| accesses.len() + at).collect();
    for (index, block) in accesses.iter().enumerate().rev() {
        if let Some(next) = seen.insert(*block, index) {
            next_of[index] = next;
        }
    }
    next_of
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Cache, Replacement};

    proptest! {
        #[test]
        fn no_policy_has_more_hits_than_the_bound(
            blocks in 20_u32..40,
            accesses in prop::collection::vec(0_u32..100, 1..800),
        ) {
            let count = |hits: Vec<bool>| hits.iter().filter(|hit| **hit).count();
            let bound = count(optimal_hits(&accesses, blocks));
            for replacement in Replacement::ALL {
                let mut cache = Cache::new(replacement, blocks).unwrap();
                let hits = accesses.iter().map(|block| cache.get(*block)).collect();
                prop_assert!(count(hits) <= bound, "{}", replacement.name());
            }
        }
    }
}
