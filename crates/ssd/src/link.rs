//! Carriers of data between host and modules: the link of a device, and ports behind a bridge.

use blockio::{Nanos, SECTOR_BYTES};

use crate::server::{PriorityServer, Server};

/// Both directions of the link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    to_host: Server,
    to_drive: Server,
    read_sector_ps: u64,
    write_sector_ps: u64,
}

/// Both directions of the port by which a bridge reaches a module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    to_bridge: PriorityServer,
    to_module: Server,
    sector_ps: u64,
}

impl Link {
    /// An idle link of these rates in decimal MB/s.
    pub(crate) fn new(read_mb_s: f64, write_mb_s: f64) -> Self {
        Self {
            to_host: Server::default(),
            to_drive: Server::default(),
            read_sector_ps: sector_ps(read_mb_s),
            write_sector_ps: sector_ps(write_mb_s),
        }
    }

    /// Carries sectors to the host from `at` on; returns when they are there.
    #[inline]
    pub(crate) fn read(&mut self, at: Nanos, sectors: u32) -> Nanos {
        self.to_host.book(at, span(sectors, self.read_sector_ps))
    }

    /// Carries sectors from the host from `at` on; returns when they are there.
    #[inline]
    pub(crate) fn write(&mut self, at: Nanos, sectors: u32) -> Nanos {
        self.to_drive.book(at, span(sectors, self.write_sector_ps))
    }
}

impl Port {
    /// An idle port of this rate in decimal MB/s.
    pub(crate) fn new(mb_s: f64) -> Self {
        let (to_bridge, to_module) = (PriorityServer::default(), Server::default());
        Self { to_bridge, to_module, sector_ps: sector_ps(mb_s) }
    }

    /// Carries sectors to the bridge that will be ready at `ready`, no earlier than `now`; returns
    /// when they are there.
    #[inline]
    pub(crate) fn read(&mut self, now: Nanos, ready: Nanos, sectors: u32) -> Nanos {
        self.to_bridge.book_ahead(now, ready, span(sectors, self.sector_ps))
    }

    /// Carries sectors from the bridge from `at` on; returns when they are there.
    #[inline]
    pub(crate) fn write(&mut self, at: Nanos, sectors: u32) -> Nanos {
        self.to_module.book(at, span(sectors, self.sector_ps))
    }
}

/// Picoseconds that a sector takes at a rate in decimal MB/s.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive time")]
fn sector_ps(mb_s: f64) -> u64 {
    (SECTOR_BYTES as f64 * 1e6 / mb_s).round() as u64
}

/// Time of `sectors` that take `sector_ps` picoseconds each.
#[inline]
fn span(sectors: u32, sector_ps: u64) -> Nanos {
    Nanos(u64::from(sectors) * sector_ps / 1000)
}
