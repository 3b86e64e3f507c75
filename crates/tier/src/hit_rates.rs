//! Hit rates of every read cache over the same accesses, and the bound of all.

use crate::belady::optimal_hits;
use crate::cache::{Block, Cache, Replacement};

/// Hit rates of caches of one size, as shares of the accesses from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct HitRates {
    /// Blocks of each cache.
    pub blocks: u32,
    /// Hit rate of each policy that works with so few blocks.
    pub of: Vec<(Replacement, f64)>,
    /// Belady's bound: no cache that takes in what it misses has more hits.
    pub bound: f64,
}

impl HitRates {
    /// The rates of caches of `blocks` blocks over `accesses`; all 0 without accesses.
    ///
    /// ```
    /// let block = |at| if at % 3 == 0 { at } else { at % 40 };
    /// let accesses: Vec<u32> = (0..900).map(block).collect();
    /// let rates = tier::HitRates::new(&accesses, 50);
    /// assert_eq!(rates.of.len(), tier::Replacement::ALL.len());
    /// assert!(rates.of.iter().all(|(_, rate)| *rate > 0.3 && *rate <= rates.bound));
    /// ```
    pub fn new(accesses: &[Block], blocks: u32) -> Self {
        let share = |hits: usize| hits as f64 / (accesses.len() as f64).max(1.0);
        let rate = |replacement: Replacement| {
            let mut cache = Cache::new(replacement, blocks).ok()?;
            let hits = accesses.iter().filter(|block| cache.get(**block)).count();
            Some((replacement, share(hits)))
        };
        let bound = optimal_hits(accesses, blocks).iter().filter(|hit| **hit).count();
        let of: Vec<(Replacement, f64)> = Replacement::ALL.into_iter().filter_map(rate).collect();
        let bound = share(bound);
        assert!(of.iter().all(|(_, rate)| *rate <= bound), "no policy is above the bound");
        Self { blocks, of, bound }
    }
}
