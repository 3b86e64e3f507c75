//! Drives that store: the flash translation layer on real bytes and in real time.
//!
//! [`Drive`] is a [`Device`] over dies, which are files, block devices or anything else that is a
//! [`Medium`]. The crate `export` offers it to clients over a protocol.
//!
//! The rooms, from the lowest up: `lock`, `mutants`; `medium`; `fault_injection`; `format`, the
//! structures of the media without I/O; `error`; `status`, types alone; `engine`; `management`;
//! `volume`; `simulation`. A file uses its own room and lower ones, which a test keeps.

mod engine;
mod error;
pub mod fault_injection;
mod format;
mod lock;
pub mod management;
mod medium;
mod mutants;
pub mod simulation;
pub mod status;
mod volume;

pub use ::device::{
    Administration, Allocation, Device, DeviceError, DriveHealth, Durability, Identity,
    MemoryDevice, Read,
};
pub use engine::creation::{Capacity, Plan, format};
pub use engine::drive::{Beyond, Drive, UserCapacity};
pub use engine::queue::{Pending, Queue};
pub use engine::scrub::Scrubbed;
pub use error::OpenError;
pub use format::compress::Compression;
pub use format::layout::Shape;
pub use medium::{Access, FileMedium, HostSpace, Medium, MediumRead, MediumWrite, Preallocation};
pub use status::{Life, Namespace};
pub use volume::folder::{
    CreateOptions, Equipment, NAME_CHARACTERS_MAX, Replacement, check_name, create, is_volume,
    name_drive, name_of, rate_cycles, rated_cycles,
};
pub use volume::hot_spares::{add_spare, hot_spares};
pub use volume::inspect::{inspect, was_closed};
pub use volume::maintenance::Maintenance;
pub use volume::meter::{Meter, Metered};
pub use volume::namespace::Namespaces;
pub use volume::salvage::{Salvage, Salvaged};
pub use volume::shortages::{Shortage, host_shortages};
pub use volume::{check, locate};
