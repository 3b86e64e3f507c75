//! NVMe/TCP as hosts see it: an initiator of its own against sessions in this process, and against
//! a server on the loopback.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself")]

mod admin;
mod authenticated;
mod claims;
mod commands;
mod crossed;
mod encrypted;
mod host;
mod hostile;
mod laws;
mod locked;
mod operated;
mod property;
mod reserved;
mod served;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use device::{
    Administration, Allocation, Device, DeviceError, DriveHealth, Durability, Identity,
    MemoryDevice,
};
use export::nvme::Subsystem;
use export::{Export, Exports, Pace};

use self::host::{Digests, Host, Inner};

/// Bytes of the namespaces.
const SIZE: u64 = 8 << 20;

/// A device whose size may change and which loses sectors.
#[derive(Debug)]
struct Fragile {
    device: MemoryDevice,
    size: AtomicU64,
    /// A sector that cannot be read; `u64::MAX` for none.
    lost: AtomicU64,
    flushes: AtomicU64,
}

impl Fragile {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            device: MemoryDevice::new(SIZE),
            size: AtomicU64::new(SIZE),
            lost: AtomicU64::new(u64::MAX),
            flushes: AtomicU64::new(0),
        })
    }
}

impl Device for Fragile {
    fn size(&self) -> u64 {
        self.size.load(Ordering::SeqCst)
    }

    fn atomic_bytes(&self) -> u64 {
        4096
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        let (lba, end) = (self.lost.load(Ordering::SeqCst), offset + buffer.len() as u64);
        if (offset / 512..end.div_ceil(512)).contains(&lba) {
            return Err(DeviceError::Unreadable { lba, reason: "a test".to_owned() });
        }
        self.device.read(offset, buffer)
    }

    fn write(&self, offset: u64, bytes: &[u8], durability: Durability) -> Result<(), DeviceError> {
        self.device.write(offset, bytes, durability)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.flushes.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn trim(&self, offset: u64, length: u64, durability: Durability) -> Result<(), DeviceError> {
        self.device.trim(offset, length, durability)
    }

    fn allocations(&self, offset: u64, length: u64) -> Result<Vec<Allocation>, DeviceError> {
        self.device.allocations(offset, length)
    }
}

/// Health that a test has the drive tell.
#[derive(Debug)]
struct Told(std::sync::Mutex<DriveHealth>);

impl Administration for Told {
    fn identity(&self) -> Identity {
        Identity {
            number: 0x0123_4567_89AB_CDEF,
            model: "Floatgate test drive".to_owned(),
            firmware: "0.1.0".to_owned(),
        }
    }

    fn health(&self) -> DriveHealth {
        *self.0.lock().unwrap()
    }
}

/// A subsystem of two namespaces, the second of which is read-only, with its devices.
struct Rig {
    subsystem: Arc<Subsystem>,
    exports: Exports,
    devices: [Arc<Fragile>; 2],
    told: Arc<Told>,
}

impl Rig {
    fn new(block_bytes: u64) -> Self {
        Self::paced(block_bytes, None)
    }

    /// A subsystem whose replies keep to the times of a model.
    fn paced(block_bytes: u64, pace: Option<&Arc<Pace>>) -> Self {
        let devices = [Fragile::new(), Fragile::new()];
        let export = |name: &str, device: &Arc<Fragile>, is_read_only| Export {
            name: name.to_owned(),
            description: String::new(),
            device: Arc::<Fragile>::clone(device),
            is_read_only,
            pace: pace.cloned(),
        };
        let all = vec![export("first", &devices[0], false), export("second", &devices[1], true)];
        let exports = Exports::new(all).unwrap();
        let told = Arc::new(Told(std::sync::Mutex::new(DriveHealth {
            composite_temperature_k: Some(310),
            available_spare_percent: 97,
            available_spare_threshold_percent: 10,
            host_read_bytes: 512_001,
            power_cycles: 3,
            power_on_s: 7300,
            ..DriveHealth::default()
        })));
        let administration = Arc::<Told>::clone(&told);
        let subsystem = Subsystem::new(&exports, administration, block_bytes).unwrap();
        Self { subsystem: Arc::new(subsystem), exports, devices, told }
    }

    /// A connection of which nothing was sent but its initialization.
    fn open(&self, digests: Digests) -> Host<Inner> {
        Host::open(Inner::new(&self.subsystem), digests, 0)
    }

    /// An admin queue with its controller, ready.
    fn admin(&self) -> (Host<Inner>, u16) {
        let mut host = self.open(Digests::default());
        let controller = host.begin(self.subsystem.nqn());
        (host, controller)
    }

    /// An admin queue and an I/O queue of its controller.
    fn queues(&self, digests: Digests, is_unpaced: bool) -> (Host<Inner>, Host<Inner>) {
        let (admin, controller) = self.admin();
        let mut io = self.open(digests);
        io.begin_io((1, controller), self.subsystem.nqn(), is_unpaced);
        (admin, io)
    }
}
