//! Hostile bytes for everything that reads bytes of others.
//!
//! ```text
//!   corpus/TARGET/ ──► mutations ──► Target::run: it refuses them or takes them, and never panics
//! ```
//!
//! `cargo test -p fuzz` runs each target on what is kept and on ten seconds of mutations of it, on
//! any toolchain. libFuzzer, which follows the branches that an input takes, runs the same targets:
//! `cargo xtask soak`, or `cargo +nightly fuzz run TARGET --features libfuzzer`.

mod drive;
mod mutation;
mod nbd;
mod nvme;

use std::sync::Arc;

use device::MemoryDevice;
use export::{Export, Exports};
use live::simulation::hostile::Structure;

pub use self::mutation::Mutator;

/// A reader of bytes of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Batches of the journal, with checksums as they are and correct ones.
    Batch,
    /// Headers of checkpoints, likewise.
    Checkpoint,
    /// Whole drives, any fields of which say anything, with correct checksums.
    Drive,
    /// Extents of units.
    Extent,
    /// Headers of dies.
    Header,
    /// The NBD server, before and after the handshake.
    Nbd,
    /// NVMe/TCP, before and after a host has connected a queue.
    Nvme,
    /// Tables of units.
    Table,
    /// Headers of units.
    UnitHeader,
}

impl Target {
    /// All targets.
    pub const ALL: [Self; 9] = [
        Self::Batch,
        Self::Checkpoint,
        Self::Drive,
        Self::Extent,
        Self::Header,
        Self::Nbd,
        Self::Nvme,
        Self::Table,
        Self::UnitHeader,
    ];

    /// Name of the folder of its corpus, and of the program for libFuzzer.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Batch => "batch",
            Self::Checkpoint => "checkpoint",
            Self::Drive => "drive",
            Self::Extent => "extent",
            Self::Header => "header",
            Self::Nbd => "nbd",
            Self::Nvme => "nvme",
            Self::Table => "table",
            Self::UnitHeader => "unit_header",
        }
    }

    /// Has it read `input`.
    ///
    /// # Panics
    /// Panics if a promise is broken.
    pub fn run(self, input: &[u8]) {
        match self {
            Self::Batch => Structure::Batch.survives(input),
            Self::Checkpoint => Structure::Checkpoint.survives(input),
            Self::Drive => drive::run(input),
            Self::Extent => Structure::Extent.survives(input),
            Self::Header => Structure::Header.survives(input),
            Self::Nbd => nbd::run(input),
            Self::Nvme => nvme::run(input),
            Self::Table => Structure::Table.survives(input),
            Self::UnitHeader => Structure::UnitHeader.survives(input),
        }
    }
}

/// A device in memory that a front end offers.
fn exports(is_read_only: bool) -> Exports {
    let export = Export {
        name: "fuzz".into(),
        description: "a device for a fuzzer".into(),
        device: Arc::new(MemoryDevice::new(1 << 20)),
        is_read_only,
        pace: None,
    };
    Exports::new(vec![export]).expect("one export with a short name")
}
