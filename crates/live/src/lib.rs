//! Drives that store: the flash translation layer on real bytes and in real time.
//!
//! [`Drive`] is a [`Device`] over dies, which are files, block devices or anything else that is a
//! [`Medium`]. The crate `export` offers it to clients over a protocol.
//!
//! # Get started
//!
//! A drive over four files, any one of which can be lost without losing data:
//!
//! ```
//! use blockio::Bytes;
//! use live::{
//!     Compression, CreateOptions, Device as _, Drive, Durability, Preallocation, VolumeOptions,
//!     create,
//! };
//!
//! let folder = tempfile::tempdir()?;
//! let volume = folder.path().join("volume");
//! let dies: Vec<_> = (0..4).map(|die| folder.path().join(format!("d{die}.img"))).collect();
//! let options = CreateOptions {
//!     volume: volume.clone(),
//!     dies: dies.clone(),
//!     size: Bytes(8 << 20),
//!     is_protected: true,
//!     over_provisioning: 0.15,
//!     compression: Compression::Lz4,
//!     physical: None,
//!     unit: None,
//! };
//! let sparse = VolumeOptions { preallocation: Preallocation::Off, ..VolumeOptions::default() };
//! create(&options, &sparse)?;
//!
//! let drive = Drive::open(&volume)?;
//! drive.write(4096, b"survives", Durability::Durable)?;
//! // Dropped, not closed: a crash. And a die is gone.
//! drop(drive);
//! std::fs::remove_file(&dies[1])?;
//!
//! let drive = Drive::open(&volume)?;
//! let mut read = [0; 8];
//! drive.read(4096, &mut read)?;
//! assert_eq!(&read, b"survives");
//! assert_eq!(drive.lost_dies(), [1]);
//! drive.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Plan`] and [`format()`] make a drive of media that are no files; [`Queue`] has calls that do
//! not wait; [`fault_injection`] makes things go wrong.
//!
//! `ARCHITECTURE.md` lists the layers, from the lowest up; a file uses its own and lower ones,
//! which a test keeps.

mod description;
mod engine;
mod error;
pub mod fault_injection;
mod format;
mod host_death;
mod lock;
mod medium;
mod mutants;
pub mod simulation;
mod volume;

pub use ::device::{
    Administration, Allocation, Device, DeviceError, DriveEvent, DriveHealth, Durability,
    EventKind, Exit, FormatRequest, Identity, InjectedError, InjectedErrorKind, MemoryDevice,
    NamespaceRequest, OpalDrive, OpalStore, OperationError, OperationStatus, Operations,
    Protection, ReadPart, SanitizeState, SelfTest, SelfTestEnd, ServedNamespace, operator,
};
pub use ::status::{Compression, Life, Namespace, Promise, UserCapacity};
pub use engine::drive::creation::{Capacity, Plan, format, format_encrypted};
pub use engine::drive::queue::{Pending, Queue};
pub use engine::drive::scrub::ScrubResult;
pub use engine::drive::{Beyond, Drive};
pub use engine::log::recovery::Upgrade;
pub use error::OpenError;
pub use format::layout::Shape;
pub use format::media_keys::{KEY_READ_AS_BEFORE, LockedCause, UnlockingKey};
pub use medium::{
    Access, BufferMemory, FileMedium, HostSpace, MachineFile, Medium, MediumRead, MediumWrite,
    Preallocation,
};
pub use volume::folder::{
    CreateOptions, NAME_CHARACTERS_MAX, Replacement, VolumeOptions, check_name, check_volume,
    create, create_while, die_count, is_volume, keep_promise, name_drive, name_of, rate_cycles,
    rated_cycles,
};
pub use volume::folder_witness::allow_stale;
pub use volume::hot_spares::{add_spare, hot_spares, remove_spare};
pub use volume::inspect::{OfflineState, describe_status, inspect, unserved};
pub use volume::lifetime::{keep_life, load_life};
pub use volume::maintenance::{Maintenance, check_die};
pub use volume::meter::{Meter, MeteredDevice};
pub use volume::namespace::{Namespaces, namespace_device};
pub use volume::new_die::Contents;
pub use volume::opal::{is_opal_locked, open_opal, psid};
pub use volume::opening::Opening;
pub use volume::operations::{keep_operations, load_operations};
pub use volume::purge::{purge_volume, reformat_volume};
pub use volume::recover::{RecoveredPage, RecoveredVolume};
pub use volume::rekey::rekey_volume;
pub use volume::shortages::{Shortage, host_shortages};
pub use volume::space_taken::SpaceTaken;
pub use volume::unlocking::{is_readable_by_others, key_of_command, key_of_file};
pub use volume::{check, locate};
