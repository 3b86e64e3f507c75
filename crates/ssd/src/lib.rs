//! A drive in virtual time.
//!
//! A [`Drive`] is a value that neither reads the clock nor touches a disk. Whoever owns it submits
//! requests at times of their choosing and asks for completions up to a time.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod backend;
mod buffer;
pub mod catalogue;
mod climate;
mod die;
mod die_failure;
mod drive;
mod event;
mod host;
mod in_place;
mod module;
mod server;
mod spec;
mod stall;
mod stripe;

pub use climate::{POWER_WINDOW_S, Reading};
pub use die_failure::{DieFailure, FailedDie};
pub use drive::{Drive, PagesRead, Placement, Setup};
pub use spec::{
    BufferSpec, ChannelsSpec, CompressionSpec, ControllerSpec, DevicesSpec, DriveSpec,
    EnduranceSpec, EnergySpec, Fact, FitScale, FitSpec, FormatSpec, GeometrySpec, HostSpec,
    InPlaceSpec, IsolationSpec, LinkSpec, MappingSpec, MappingUnit, ModuleLayout, ModulesSpec,
    NandSpec, OverProvisioning, PlacementSpec, PowerSpec, PublishedSpec, RelocationSpec, SlotPower,
    SpecError, StallHolds, StallSpec, Surroundings, ThermalSpec, VictimSpec,
};

/// Version of the models: rises whenever a simulated number moves.
pub const MODEL_VERSION: u32 = 6;
