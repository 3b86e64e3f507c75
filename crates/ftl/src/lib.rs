//! Flash translation layer: a state machine without clock and without I/O.
//!
//! The host side goes in as [`Ftl::write`], [`Ftl::trim`] and [`Ftl::lookup`]; the media side comes
//! out as [`MediaOp`]s, handed to the [`Media`] of whoever owns the state machine: a timing model
//! books them on dies, a live drive moves bytes, a test keeps them in a `Vec`.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod capacity;
mod config;
mod counters;
mod degraded_rows;
mod divider;
mod extent;
mod ftl;
mod geometry;
mod id;
mod invariants;
mod lost_die;
mod mapping;
mod media;
mod p2l;
mod p2l_cache;
mod placement;
mod recovery;
mod relocation;
mod slc_cache;
mod stream;
mod superblock;
mod table;
mod victim;
mod wear;

pub use config::{Config, ConfigError, Watermarks};
pub use counters::Counters;
pub use divider::Divider;
pub use ftl::{Ftl, Replacement};
pub use geometry::{DieId, Geometry, Layout};
pub use id::{Lpn, PAGE_BYTES, Ppn};
pub use media::{Cause, Media, MediaOp, NoMedia};
pub use placement::{HandleCounters, Isolation, ReclaimUnitHandles};
pub use recovery::{Found, MapError, Recovery};
pub use slc_cache::SlcCache;
pub use superblock::{SuperblockId, SuperblockState};
pub use victim::VictimPolicy;
