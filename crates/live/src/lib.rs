//! Drives that store: the flash translation layer on real bytes and in real time.
//!
//! [`Drive`] is a [`Device`] over dies, which are files, block devices or anything else that is a
//! [`Medium`]. The crate `export` offers it to clients over a protocol.

pub mod check;
mod checkpoint;
mod compress;
mod core;
mod creation;
mod dies;
mod drive;
mod encoding;
mod error;
pub mod fault_injection;
mod header;
mod headroom;
mod identity;
mod journal;
mod layout;
mod lifetime;
pub mod locate;
mod lost;
mod maintenance;
pub mod management;
mod medium;
mod meter;
mod mutants;
mod namespace;
mod queue;
mod recovery;
mod row;
mod salvage;
mod scrub;
pub mod simulation;
pub mod status;
mod store;
mod unit;
mod unit_tables;
mod verification;
mod volume;

pub use ::device::{Allocation, Device, DeviceError, Durability, MemoryDevice, Read};
pub use compress::Compression;
pub use creation::{Capacity, Plan, format};
pub use drive::{Beyond, Drive, UserCapacity};
pub use error::OpenError;
pub use headroom::HostSpace;
pub use layout::Shape;
pub use lifetime::Life;
pub use maintenance::Maintenance;
pub use medium::{Access, FileMedium, Medium, Preallocation};
pub use meter::{Meter, Metered};
pub use namespace::{Namespace, Namespaces};
pub use queue::{Pending, Queue};
pub use salvage::{Salvage, Salvaged};
pub use scrub::Scrubbed;
pub use volume::{
    CreateOptions, Equipment, NAME_CHARACTERS_MAX, Replacement, Shortage, add_spare, check_name,
    create, host_shortages, hot_spares, is_volume, name_drive, name_of, rate_cycles, rated_cycles,
};
