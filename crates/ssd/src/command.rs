//! Controller time of commands to media without a map: so much for a command, and for each sector.

use blockio::{Bytes, Nanos, SECTOR_BYTES};

use crate::spec::{DriveSpec, HostSpec};

/// Time that commands take on the controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandCosts {
    read: Nanos,
    write: Nanos,
    read_sector_ps: u64,
    write_sector_ps: u64,
}

impl CommandCosts {
    /// Costs on the controller of `spec`, which may be a driver on `host`.
    pub(crate) fn new(spec: &DriveSpec, host: &HostSpec) -> Self {
        let controller = &spec.controller;
        let factor = if controller.on_host { host.controller_factor } else { 1.0 };
        let command = |micros: f64| Nanos::from_micros_f64(micros * factor);
        let sector_kib = Bytes(SECTOR_BYTES).as_kib_f64();
        Self {
            read: command(controller.read_us),
            write: command(controller.write_us),
            read_sector_ps: picos(controller.read_us_per_kib * sector_kib * factor),
            write_sector_ps: picos(controller.write_us_per_kib * sector_kib * factor),
        }
    }

    /// Time of a read of `sectors`.
    #[inline]
    pub(crate) fn read(&self, sectors: u32) -> Nanos {
        self.read + span(self.read_sector_ps, sectors.into())
    }

    /// Time of a write of `sectors`; 0 for a trim or a flush.
    #[inline]
    pub(crate) fn write(&self, sectors: u32) -> Nanos {
        self.write + span(self.write_sector_ps, sectors.into())
    }
}

/// Picoseconds in some microseconds, rounded to the nearest.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive time")]
pub(crate) fn picos(micros: f64) -> u64 {
    (micros * 1e6).round() as u64
}

/// Time of `count` parts that take `ps` picoseconds each.
#[inline]
pub(crate) const fn span(ps: u64, count: u64) -> Nanos {
    Nanos(ps * count / 1000)
}
