//! A read cache: which blocks the fast class holds copies of.
//!
//! ```text
//!  find ─ hit ──► served from the fast class
//!    └─── miss ─► served from the slow class; insert, which evicts
//! ```
//!
//! Each policy does what its paper says, in the version of libCacheSim 0.3, whose hits it equals
//! request by request (`tests/hits.rs`).

mod arc;
mod lru;
mod s3_fifo;
mod sieve;
mod two_queue;

use serde::Deserialize;
use thiserror::Error;

use self::arc::Arc;
use self::lru::Lru;
use self::s3_fifo::S3Fifo;
use self::sieve::Sieve;
use self::two_queue::TwoQueue;
pub use crate::queues::Block;

/// Policy by which a read cache selects what it evicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replacement {
    /// Least recently used.
    Lru,
    /// SIEVE: first in first out, visited blocks excepted [zhang-2024].
    Sieve,
    /// S3-FIFO: a small queue on probation before the main one [yang-2023].
    S3Fifo,
    /// Adaptive replacement: recency and frequency in balance [megiddo-2003].
    Arc,
    /// 2Q: a queue on probation before one of least recent use [johnson-1994].
    #[serde(rename = "two-q")]
    TwoQueue,
}

/// Refusal of a cache that its policy cannot work with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a {name} cache of {blocks} blocks is too small, it needs at least {blocks_min}")]
pub struct CacheError {
    /// Name of the policy.
    pub name: &'static str,
    /// Blocks that were asked for.
    pub blocks: u32,
    /// Fewest blocks with which the policy works.
    pub blocks_min: u32,
}

impl Replacement {
    /// Every policy, in the order in which documents name them.
    pub const ALL: [Self; 5] = [Self::Lru, Self::Sieve, Self::S3Fifo, Self::Arc, Self::TwoQueue];

    /// Name as drive files have it, such as `s3-fifo`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lru => "lru",
            Self::Sieve => "sieve",
            Self::S3Fifo => "s3-fifo",
            Self::Arc => "arc",
            Self::TwoQueue => "two-q",
        }
    }

    /// Fewest blocks with which it works: those of which each of its queues has one.
    pub const fn blocks_min(self) -> u32 {
        match self {
            Self::Lru | Self::Sieve | Self::Arc => 1,
            // A tenth is the small queue, which a single block must not fill.
            Self::S3Fifo => 20,
            Self::TwoQueue => 4,
        }
    }
}

/// A read cache.
///
/// The owner looks a block up, and inserts it where that is wise:
///
/// ```
/// use tier::{Cache, Replacement};
///
/// let mut cache = Cache::new(Replacement::Lru, 2)?;
/// for block in [1, 2, 1, 3] {
///     if !cache.find(block) {
///         cache.insert(block);
///     }
/// }
/// assert_eq!(cache.take_evicted(), Some(2));
/// assert!(cache.contains(1) && cache.contains(3));
/// # Ok::<(), tier::CacheError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cache {
    state: CacheState,
    blocks: u32,
    /// Blocks that insertions have evicted and the owner has not taken yet.
    evicted: Vec<Block>,
}

#[derive(Clone, Debug)]
enum CacheState {
    Lru(Lru),
    Sieve(Sieve),
    S3Fifo(S3Fifo),
    Arc(Arc),
    TwoQueue(TwoQueue),
}

impl Cache {
    /// An empty cache of `blocks` blocks.
    ///
    /// # Errors
    /// Fails if the policy needs more.
    pub fn new(replacement: Replacement, blocks: u32) -> Result<Self, CacheError> {
        let blocks_min = replacement.blocks_min();
        if blocks < blocks_min {
            return Err(CacheError { name: replacement.name(), blocks, blocks_min });
        }
        let state = match replacement {
            Replacement::Lru => CacheState::Lru(Lru::new(blocks)),
            Replacement::Sieve => CacheState::Sieve(Sieve::new(blocks)),
            Replacement::S3Fifo => CacheState::S3Fifo(S3Fifo::new(blocks)),
            Replacement::Arc => CacheState::Arc(Arc::new(blocks)),
            Replacement::TwoQueue => CacheState::TwoQueue(TwoQueue::new(blocks)),
        };
        Ok(Self { state, blocks, evicted: Vec::new() })
    }

    /// Blocks that it can hold.
    pub const fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Blocks that it holds.
    pub const fn len(&self) -> u32 {
        match &self.state {
            CacheState::Lru(it) => it.len(),
            CacheState::Sieve(it) => it.len(),
            CacheState::S3Fifo(it) => it.len(),
            CacheState::Arc(it) => it.len(),
            CacheState::TwoQueue(it) => it.len(),
        }
    }

    /// True if it holds nothing.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if it holds `block`; changes nothing.
    pub fn contains(&self, block: Block) -> bool {
        match &self.state {
            CacheState::Lru(it) => it.contains(block),
            CacheState::Sieve(it) => it.contains(block),
            CacheState::S3Fifo(it) => it.contains(block),
            CacheState::Arc(it) => it.contains(block),
            CacheState::TwoQueue(it) => it.contains(block),
        }
    }

    /// Looks up a block for the host: true if the cache holds it. The policy takes note.
    pub fn find(&mut self, block: Block) -> bool {
        match &mut self.state {
            CacheState::Lru(it) => it.find(block),
            CacheState::Sieve(it) => it.find(block),
            CacheState::S3Fifo(it) => it.find(block),
            CacheState::Arc(it) => it.find(block),
            CacheState::TwoQueue(it) => it.find(block),
        }
    }

    /// Takes in a block that it does not hold and that was looked up last.
    pub fn insert(&mut self, block: Block) {
        assert!(!self.contains(block), "a block is inserted once");
        let evicted = &mut self.evicted;
        match &mut self.state {
            CacheState::Lru(it) => it.insert(block, evicted),
            CacheState::Sieve(it) => it.insert(block, evicted),
            CacheState::S3Fifo(it) => it.insert(block, evicted),
            CacheState::Arc(it) => it.insert(block, evicted),
            CacheState::TwoQueue(it) => it.insert(block, evicted),
        }
        assert!(self.len() <= self.blocks, "a cache holds no more than it can");
    }

    /// Looks up a block and takes it in if it is missing: true if it was there.
    pub fn get(&mut self, block: Block) -> bool {
        let is_hit = self.find(block);
        if !is_hit {
            self.insert(block);
            self.evicted.clear();
        }
        is_hit
    }

    /// Forgets a block; true if the cache held it.
    pub fn remove(&mut self, block: Block) -> bool {
        let was_held = self.contains(block);
        match &mut self.state {
            CacheState::Lru(it) => it.remove(block),
            CacheState::Sieve(it) => it.remove(block),
            CacheState::S3Fifo(it) => it.remove(block),
            CacheState::Arc(it) => it.remove(block),
            CacheState::TwoQueue(it) => it.remove(block),
        }
        assert!(!self.contains(block), "a block that was removed is gone");
        was_held
    }

    /// The next block that an insertion evicted since they were last taken, if any.
    pub fn take_evicted(&mut self) -> Option<Block> {
        self.evicted.pop()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cache_that_is_too_small_is_refused_with_the_least_size() {
        let error = Cache::new(Replacement::S3Fifo, 19).unwrap_err().to_string();
        assert_eq!(error, "a s3-fifo cache of 19 blocks is too small, it needs at least 20");
        for replacement in Replacement::ALL {
            assert!(Cache::new(replacement, replacement.blocks_min() - 1).is_err());
        }
    }

    proptest! {
        #[test]
        fn a_cache_holds_what_was_inserted_and_neither_evicted_nor_removed(
            index in 0..Replacement::ALL.len(),
            blocks in 20_u32..40,
            accesses in prop::collection::vec((0_u32..120, 0..10), 1..600),
        ) {
            let mut cache = Cache::new(Replacement::ALL[index], blocks).unwrap();
            let mut held = std::collections::BTreeSet::new();
            for (block, kind) in accesses {
                if kind == 0 {
                    prop_assert_eq!(cache.remove(block), held.remove(&block));
                    continue;
                }
                prop_assert_eq!(cache.find(block), held.contains(&block));
                if kind > 2 && !held.contains(&block) {
                    cache.insert(block);
                    held.insert(block);
                    while let Some(evicted) = cache.take_evicted() {
                        prop_assert!(held.remove(&evicted));
                    }
                }
                prop_assert_eq!(cache.len() as usize, held.len());
            }
        }
    }
}
