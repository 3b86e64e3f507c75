//! Tiers of storage: a fast class before a slow one.
//!
//! # Get started
//!
//! Hit rates of two read caches over the same accesses, and Belady's bound beside them:
//!
//! ```
//! use blockio::Rng;
//! use tier::{Cache, Replacement};
//!
//! let mut rng = Rng::new(1);
//! // Half of the accesses go to a twentieth of the blocks.
//! let mut access = || if rng.below(2) == 0 { rng.below(500) } else { rng.below(10_000) };
//! let accesses: Vec<u32> =
//!     (0..50_000).map(|_| u32::try_from(access()).expect("a block")).collect();
//! let mut hits = Vec::new();
//! for replacement in [Replacement::Lru, Replacement::S3Fifo] {
//!     let mut cache = Cache::new(replacement, 1000)?;
//!     hits.push(accesses.iter().filter(|block| cache.get(**block)).count());
//! }
//! let bound = tier::optimal_hits(&accesses, 1000).iter().filter(|hit| **hit).count();
//! assert!(hits[0] < hits[1] && hits[1] < bound);
//! # Ok::<(), tier::CacheError>(())
//! ```
//!
//! A [`Tier`] says what a request transfers from and to which class, by its [`Policy`].

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod belady;
mod budget;
mod busyness;
mod cache;
mod counters;
mod hit_rates;
mod policy;
mod queues;
mod slow_log;
mod tier;
mod transfer;
mod write_area;

pub use belady::optimal_hits;
pub use cache::{Block, Cache, CacheError, Replacement};
pub use counters::TierCounters;
pub use hit_rates::HitRates;
pub use policy::{Class, Layout, Pin, Policy, TierError, WriteMode};
pub use tier::{BLOCK_BYTES, Classes, Destage, Plan, Tier};
pub use transfer::{Direction, Transfer};
