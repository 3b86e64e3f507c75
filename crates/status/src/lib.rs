//! The status of a served drive as one value, and the management socket over which programs ask
//! for it and give orders.
//!
//! ```text
//!   live, server ──► Status ──► Health, Led, critical warning
//!                      │
//!                      └──► management socket ──► status, top, dashboard, Python
//! ```

mod compression;
mod die;
mod fault;
mod health;
mod history;
mod latency_histogram;
mod led;
mod life;
mod maintenance;
pub mod management;
mod namespace;
mod promise;
mod server;
mod status;
mod user_capacity;

pub use self::compression::Compression;
pub use self::die::{Die, DieState, Member};
pub use self::fault::Fault;
pub use self::health::{Health, HealthState, Problem, ProblemKind, warning_names};
pub use self::history::{History, HistorySpan, Step, StepCommands};
pub use self::latency_histogram::{
    LATENCY_BUCKETS, LatencyHistogram, latency_bucket, latency_bucket_start_ns,
};
pub use self::led::Led;
pub use self::life::Life;
pub use self::maintenance::{
    AbsenceCause, AbsentDie, BadPlace, BadPlaceCause, BadPlaceState, CopiedStructure, Damage,
    DamageOutcome, FoundBy, MaintenanceStatus, NotErased, Purge, Rebuild, Redundancy, Scrub,
    Scrubs, SpareFailure, StaleStart,
};
pub use self::namespace::Namespace;
pub use self::promise::{LeftBuffer, Promise};
pub use self::server::{
    Client, Climate, CommandCounts, Commands, EventRecord, Export, Lateness, Model,
    NamespaceTraffic, NvmeController, NvmeQueue, Process, Refusal, Registrant, Reservations,
    Server, Traffic,
};
pub use self::status::{
    Format, HostShortage, LOST_LBAS_MAX, SCHEMA, SPARE_THRESHOLD_PERCENT, Smart, Space, State,
    Status, Supply, Wear, Writes, drive_id,
};
pub use self::user_capacity::UserCapacity;
