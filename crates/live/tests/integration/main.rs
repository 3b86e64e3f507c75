//! Drives on files, devices and simulated disks, through what the crate offers.
//!
//! One program: it is linked once, and its tests share the processors to the end.

mod absence;
mod atomic;
mod block_device;
mod check;
mod copies;
mod crossed;
mod damage;
mod encryption;
mod exhaustive;
mod fault_injection;
mod folder_bits;
mod foreign;
mod formatting;
mod full;
mod health;
mod hot_spares;
mod images;
mod lost;
mod making;
mod opening;
mod packed;
mod redundancy;
mod remains;
mod returning;
mod server_death;
mod simulation;
mod slow;
mod stale;
mod threads;
mod together;
mod volume;

use std::path::Path;

use blockio::Bytes;
use live::{Compression, CreateOptions};

/// A volume in `folder` over so many dies, protected if they are several, without compression.
fn volume_options(folder: &Path, dies: usize, size: Bytes) -> CreateOptions {
    CreateOptions {
        volume: folder.join("volume"),
        dies: (0..dies).map(|die| folder.join(format!("d{die}.img"))).collect(),
        size,
        is_protected: dies > 1,
        over_provisioning: 0.15,
        compression: Compression::None,
        physical: None,
        unit: None,
    }
}
