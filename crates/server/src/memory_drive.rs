//! A drive in memory as it is administered: commands counted, no media, no wear.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use live::status::Traffic;
use live::{Administration, Device, DriveHealth, Identity, MemoryDevice, Meter, Metered};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::drive_service::{Paced, model_name, warmth};

/// A drive that is empty at first and gone at the end.
#[derive(Debug)]
pub struct MemoryDrive {
    number: u64,
    meter: Arc<Meter>,
    begun: Instant,
    model: Option<Arc<Paced>>,
}

impl MemoryDrive {
    /// Makes a device of `size` bytes, whose replies keep to the times of `model` if there is one,
    /// and what administers it.
    ///
    /// # Errors
    /// Fails if the system has no random number, by which the drive is told from others.
    pub fn new(size: u64, model: Option<Arc<Paced>>) -> io::Result<(Arc<dyn Device>, Self)> {
        let mut number = [0; 8];
        // So few bytes come at once or not at all.
        getrandom(&mut number, GetRandomFlags::empty())?;
        let meter = Arc::<Meter>::default();
        let device = Metered::new(Arc::new(MemoryDevice::new(size)), Arc::clone(&meter));
        let number = u64::from_le_bytes(number);
        Ok((Arc::new(device), Self { number, meter, begun: Instant::now(), model }))
    }
}

impl Administration for MemoryDrive {
    fn identity(&self) -> Identity {
        Identity {
            number: self.number,
            model: model_name(self.model.as_deref(), "memory"),
            firmware: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    fn health(&self) -> DriveHealth {
        let Traffic { reads, writes, .. } = self.meter.traffic();
        let age = self.begun.elapsed();
        let climate = self.model.as_ref().and_then(|model| model.status().climate);
        DriveHealth {
            available_spare_percent: 100,
            host_read_bytes: reads.bytes,
            host_written_bytes: writes.bytes,
            host_read_commands: reads.commands,
            host_write_commands: writes.commands,
            // It has been switched on once, and it ends with the power.
            power_cycles: 1,
            power_on_s: age.as_secs(),
            ..warmth(climate.as_ref())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use live::Durability;

    #[test]
    fn a_drive_in_memory_counts_what_clients_move_and_claims_nothing_else() {
        let (device, drive) = MemoryDrive::new(1 << 20, None).unwrap();
        device.write(0, &[1; 8192], Durability::Volatile).unwrap();
        device.read(0, &mut [0; 4096]).unwrap();
        let health = drive.health();
        assert_eq!((health.host_written_bytes, health.host_read_bytes), (8192, 4096));
        assert_eq!((health.host_write_commands, health.host_read_commands), (1, 1));
        assert_eq!(health.warning_temperature_k, None, "nothing is modelled");
        assert_eq!(health.media_written_bytes, None, "it has none");
        assert_eq!(drive.identity().model, "Floatgate memory drive");
        let (_, other) = MemoryDrive::new(1 << 20, None).unwrap();
        assert_ne!(drive.identity().number, other.identity().number);
    }
}
