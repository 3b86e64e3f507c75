//! Flash translation layer: a state machine without clock and without I/O.
//!
//! The host side goes in as [`Ftl::write`], [`Ftl::trim`] and [`Ftl::lookup`]; the media side comes
//! out as [`MediaOp`]s, handed to the [`Media`] of the owner of the state machine: a timing model
//! books them on dies, a live drive moves bytes, a test keeps them in a `Vec`.
//!
//! # Get started
//!
//! The write amplification of uniform random writes, as many as four times the capacity:
//!
//! ```
//! use blockio::Rng;
//! use ftl::{Config, Ftl, Geometry, Lpn, NoMedia, ReclaimUnitHandles, VictimPolicy, Watermarks};
//!
//! let config = Config {
//!     geometry: Geometry {
//!         banks: 1,
//!         dies_per_bank: 4,
//!         planes_per_die: 1,
//!         erase_blocks_per_plane: 128,
//!         pages_per_erase_block: 64,
//!         page_kib: 4,
//!         indirection_kib: 4,
//!         stripe_dies: 0, // no parity
//!     },
//!     pages_logical: 26_000, // of 32,768: 26 % more flash than the host sees
//!     pages_stored_max: 26_000,
//!     extents_per_page: 1,
//!     victim: VictimPolicy::Greedy,
//!     watermarks: Watermarks { low: 3, high: 4, burst: 0.1, price_max: 0.0, batch_pages: 1 },
//!     wear_spread_max: 0,
//!     handles: ReclaimUnitHandles::ONE,
//!     slc_cache: None,
//!     seed: 1,
//! };
//! let mut ftl = Ftl::format(&config)?;
//! let mut rng = Rng::new(1);
//! for _ in 0..4 * config.pages_logical {
//!     let lpn = u32::try_from(rng.below(config.pages_logical.into())).expect("a page number");
//!     ftl.write(0, Lpn(lpn), &mut NoMedia);
//! }
//! let counters = ftl.counters();
//! let amplification = counters.pages_programmed() as f64 / counters.pages_host as f64;
//! assert!((1.5..2.5).contains(&amplification), "{amplification}");
//! # Ok::<(), ftl::ConfigError>(())
//! ```
//!
//! Media of your own implement [`Media`], which has an example.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod config;
mod counters;
mod divider;
mod extent;
mod ftl;
mod geometry;
mod id;
mod mapping;
mod media;
mod p2l_cache;
mod placement;
mod stream;
mod superblock;
mod table;
mod victim;
mod wear;

pub use config::{Config, ConfigError, SlcCache, Watermarks};
pub use counters::Counters;
pub use divider::Divider;
pub use ftl::recovery::{MapError, RecoveredSuperblock, Recovery};
pub use ftl::{Debt, DieLoss, Ftl, Occupancy, Pace, Redundancy, SuperblockStatus, Unit};
pub use geometry::{DieId, Geometry, Layout};
pub use id::{Lpn, PAGE_BYTES, Ppn};
pub use mapping::Map;
pub use media::{Cause, Media, MediaOp, NoMedia};
pub use placement::{HandleCounters, Isolation, ReclaimUnitHandles};
pub use superblock::{SuperblockId, SuperblockState};
pub use victim::VictimPolicy;
