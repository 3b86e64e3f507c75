//! A drive in virtual time.
//!
//! A [`Drive`] is a value that neither reads the clock nor touches a disk. Its owner submits
//! requests at times of its own choosing and asks for completions up to a time.
//!
//! # Get started
//!
//! One thread reads 4 KiB at random places of a purged drive: it submits the next read when the one
//! before completes. The map alone answers reads of unwritten space, so the first half writes.
//!
//! ```
//! use blockio::{Bytes, Lba, Nanos, Op, Request, Rng};
//! use ssd::{Drive, Setup, catalogue};
//!
//! let spec = catalogue::find("iodrive-duo").expect("it is in the catalogue");
//! let setup = Setup { format: "stock".into(), host: "linux".into(), time_lapse: 64, seed: 1 };
//! let mut drive = Drive::new(&spec, &setup)?;
//!
//! let pages = drive.user_sectors() / Bytes::from_kib(4).sectors();
//! let mut rng = Rng::new(1);
//! let mut submit = |drive: &mut Drive, at: Nanos, op: Op| {
//!     let lba = Lba(rng.below(pages) * Bytes::from_kib(4).sectors());
//!     drive.submit(at, Request { tag: 0, thread: 0, op, handle: 0, lba, sectors: 8 });
//! };
//! let (mut at, mut latency_us) = (Nanos::ZERO, [0.0; 2]);
//! for (half, op) in [(0, Op::Write), (1, Op::Read)] {
//!     for _ in 0..1000 {
//!         submit(&mut drive, at, op);
//!         let done = drive.next_completion(Nanos::MAX).expect("one request is outstanding");
//!         latency_us[half] += done.latency().as_micros_f64() / 1000.0;
//!         at = done.completed_at;
//!     }
//! }
//! // A write is done when it is in the buffer, which survives a loss of power.
//! assert!(latency_us[0] < 60.0 && latency_us[1] < 120.0, "{latency_us:?}");
//! assert_eq!(drive.counters().pages_host, 1000);
//! # Ok::<(), ssd::SpecError>(())
//! ```
//!
//! A drive of your own is a file: [`DriveSpec::parse`]. [`Drive::counters`] and [`Drive::climate`]
//! report its work, power and temperature. Loads, preconditioning and statistics are in the crates
//! `workload` and `lab`.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod backend;
mod buffer;
pub mod catalogue;
mod class_pair;
mod climate;
mod command;
mod die;
mod die_failure;
mod disk;
mod drive;
mod event;
mod host;
mod in_place;
mod link;
mod module;
mod server;
mod spec;
mod stall;
mod stripe;

pub use climate::POWER_WINDOW_S;
pub use die_failure::{DieFailure, FailedDie};
pub use drive::{ClassCounters, Drive, PagesRead, Placement, Setup, TierWork, WarmedRequests};
pub use spec::{
    BufferSpec, ChannelsSpec, CompressionSpec, ControllerSpec, DevicesSpec, DiskSpec, DriveSpec,
    EnduranceSpec, EnergySpec, Fact, FitScale, FitSpec, FormatSpec, GeometrySpec, HostSpec,
    InPlaceSpec, IsolationSpec, LinkSpec, MappingSpec, MappingUnit, ModuleLayout, ModulesSpec,
    NandSpec, OverProvisioning, PlacementSpec, PlatformSpec, PowerSpec, PublishedSpec,
    ReadRetrySpec, RelocationSpec, SlcCacheSpec, SlotPower, SpecError, StallDuring, StallHolds,
    StallSpec, Surroundings, ThermalSpec, TierSpec, VictimSpec,
};

/// Version of the models: rises whenever a simulated number moves.
pub const MODEL_VERSION: u32 = 11;
