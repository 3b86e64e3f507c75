//! Subject of a service: a volume, or a drive in memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use live::{Compression, Device, Drive, Life, Maintenance, MemoryDevice, Namespaces, rated_cycles};
use status::{Format, Server, Smart, Space, State, Status, Supply};

/// Drive that is served.
#[derive(Debug)]
pub(super) enum Subject {
    /// The drive of a folder.
    Volume(Box<VolumeSubject>),
    /// A drive in memory.
    Memory {
        /// Drawn when it was made.
        number: u64,
        device: Arc<MemoryDevice>,
    },
}

/// The drive of a folder.
#[derive(Debug)]
pub(super) struct VolumeSubject {
    pub(super) folder: PathBuf,
    pub(super) drive: Arc<Drive>,
    pub(super) maintenance: Maintenance,
    /// Erases that superblocks are rated for.
    rated_cycles: Option<u32>,
    /// Lifetime counters when this server began.
    life: Life,
}

impl Subject {
    pub(super) fn of_volume(folder: &Path, drive: Arc<Drive>) -> Self {
        Self::Volume(Box::new(VolumeSubject {
            folder: folder.to_owned(),
            maintenance: Maintenance::new(folder, Arc::clone(&drive)),
            drive,
            rated_cycles: rated_cycles(folder),
            life: live::load_life(folder),
        }))
    }

    /// The drive of a folder, if it is one.
    pub(super) fn volume(&self) -> Option<&VolumeSubject> {
        match self {
            Self::Volume(volume) => Some(volume),
            Self::Memory { .. } => None,
        }
    }

    /// The number of the drive, 16 hexadecimal digits.
    pub(super) fn number(&self) -> String {
        match self {
            Self::Volume(volume) => volume.drive.status().drive,
            Self::Memory { number, .. } => format!("{number:016x}"),
        }
    }

    /// Its kind, for the model number of the drive.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Volume(_) => "live",
            Self::Memory { .. } => "memory",
        }
    }

    pub(super) fn device(&self) -> Arc<dyn Device> {
        match self {
            Self::Volume(volume) => Arc::<Drive>::clone(&volume.drive),
            Self::Memory { device, .. } => Arc::<MemoryDevice>::clone(device),
        }
    }

    /// Returns its status, with that of its server.
    pub(super) fn status(&self, server: Server) -> Status {
        match self {
            Self::Volume(volume) => {
                let VolumeSubject { folder, drive, rated_cycles, life, .. } = &**volume;
                let mut status = drive.status().served(server).rated(*rated_cycles);
                if let Some(space) = &mut status.space {
                    space.host_shortage = drive.host_shortage();
                }
                // None if they can no longer be read: the drive is served nevertheless.
                status.namespaces =
                    Namespaces::of(folder).unwrap_or_default().iter().cloned().collect();
                status.life = status.life_after(*life);
                live::describe_status(status, folder)
            }
            Self::Memory { device, .. } => {
                let mut status = of_memory(self.number(), device).served(server);
                status.life = status.life_after(Life::default());
                status.judged()
            }
        }
    }
}

/// The status of a drive in memory: no dies, no wear, no background work.
fn of_memory(drive: String, device: &MemoryDevice) -> Status {
    let (size, stored_bytes) = (device.size(), device.stored_bytes());
    Status {
        schema: status::SCHEMA,
        drive,
        name: "memory".to_owned(),
        folder: String::new(),
        health: status::Health::default(),
        state: State::Open,
        reason: None,
        refusal: None,
        led: status::Led::default(),
        is_locate_led_on: false,
        format: Format {
            capacity_bytes: size,
            data_bytes: size,
            raw_bytes: size,
            physical_bytes: size,
            over_provisioning_percent: 0.0,
            dies: 0,
            is_protected: false,
            is_compressed: false,
            compression: Compression::None,
            is_encrypted: false,
            superblocks: 0,
            superblock_bytes: 0,
            journal_bytes: 0,
            mapping_bytes: 0,
        },
        smart: Smart {
            available_spare: Some(100),
            // It ends with its server.
            power_cycles: 1,
            ..Smart::default()
        },
        pages_lost: Some(0),
        lost_lbas: Vec::new(),
        acknowledged_survives: None,
        write_through_reason: None,
        write_buffer: None,
        dies: Vec::new(),
        hot_spares: 0,
        namespaces: Vec::new(),
        space: Some(Space {
            logical_bytes: stored_bytes,
            stored_bytes,
            stored_bytes_max: size,
            compression_ratio: None,
            supply: Supply::Ample,
            superblocks_free: 0,
            superblocks: String::new(),
            host_shortage: None,
        }),
        wear: None,
        writes: None,
        life: Life::default(),
        maintenance: status::MaintenanceStatus::default(),
        server: None,
    }
}
