//! Drives that store: the flash translation layer on real bytes and in real time.
//!
//! A [`Device`] is what a client sees; exports hand it to clients over a protocol. [`Drive`] is one
//! over dies, which are files, block devices or anything else that is a [`Medium`].

pub mod beacon;
mod caretaker;
pub mod check;
mod checkpoint;
mod compress;
mod contents;
mod core;
mod creation;
mod device;
mod dies;
mod drive;
mod encoding;
mod error;
pub mod export;
mod header;
mod headroom;
mod identity;
mod journal;
mod layout;
mod life;
mod lost;
pub mod management;
mod medium;
mod memory;
mod meter;
pub mod misbehavior;
mod namespace;
mod pace;
mod planted;
mod queue;
mod recovery;
mod row;
mod salvage;
pub mod simulation;
pub mod status;
mod store;
mod unit;
mod upkeep;
mod vault;
mod verification;

pub use caretaker::Caretaker;
pub use compress::Compression;
pub use creation::{Capacity, Plan, format};
pub use device::{Allocation, Device, DeviceError, Durability, Read};
pub use drive::{Beyond, Drive, UserCapacity};
pub use error::OpenError;
pub use headroom::HostSpace;
pub use layout::Shape;
pub use life::Life;
pub use medium::{Access, FileMedium, Medium, Preallocation};
pub use memory::MemoryDevice;
pub use meter::{Meter, Metered};
pub use namespace::{Namespace, Namespaces};
pub use pace::{Asked, Lane, Pace};
pub use queue::{Pending, Queue};
pub use salvage::{Salvage, Salvaged};
pub use upkeep::Scrubbed;
pub use vault::{
    CreateOptions, Equipment, NAME_CHARACTERS_MAX, Replacement, Shortage, add_spare, check_name,
    create, host_shortages, is_vault, name_drive, name_of, rate_cycles, rated_cycles, spare_dies,
};
