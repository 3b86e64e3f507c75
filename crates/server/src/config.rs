//! Configuration of a server: storage, front ends, and how both are treated.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use blockio::Bytes;
use export::Limits;
use lab::subject::{Choice, Subject, find_drive};
use live::{Access, Promise, UnlockingKey};

use crate::drive_service::PacingModel;
use crate::front_ends::FrontEndOptions;
use crate::log::Level;
use crate::pages::PagesConfig;

/// Everything that is said to a server before it starts.
#[derive(Debug)]
pub struct Config {
    /// Storage that is served.
    pub storage: Storage,
    /// Name of the export of a client that requests none; empty for the first, or the only one.
    pub default_export: String,
    /// True to refuse writes and all other changes by clients.
    pub is_read_only: bool,
    /// The front ends that were requested.
    pub front_ends: FrontEndOptions,
    /// Limits of the clients of NBD and NVMe/TCP.
    pub limits: Limits,
    /// Pages for browsers and monitoring.
    pub pages: Option<PagesConfig>,
    /// Access to the dies.
    pub access: Access,
    /// Promise about acknowledged writes; that of the volume where none is given.
    pub promise: Option<Promise>,
    /// Key of an encrypted volume.
    pub key: Option<UnlockingKey>,
    /// True to start from an earlier state than was served last.
    pub accepts_stale: bool,
    /// Damaged places of a die in an hour above which the die is a problem.
    pub die_errors_per_hour: u64,
    /// Faults that may be injected.
    pub faults: FaultInjection,
    /// Scrubs without a request.
    pub scrubs: ScrubConfig,
    /// Recipients of alerts when the health of the drive changes.
    pub alerts: AlertConfig,
    /// New file in which the requests of clients are recorded.
    pub recording: Option<PathBuf>,
    /// Modelled drive that sets the timing of replies; absent: as fast as possible.
    pub pacing: Option<Pacing>,
    /// Time without a client after which the server ends; absent: never.
    pub idle_max: Option<Duration>,
    /// Log on stderr.
    pub log: LogConfig,
}

/// Storage that is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// The volume of a folder.
    Volume(PathBuf),
    /// Memory of this many bytes, which starts empty and is lost at the end.
    Memory(Bytes),
}

/// Faults that may be injected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultInjection {
    /// None.
    Refused,
    /// Faults of commands.
    Allowed,
    /// Faults of commands, and of a schedule: a file, or the name of one that is built in.
    Scheduled(PathBuf),
}

/// Scrubs that the server begins by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubConfig {
    /// Time in which all data is read once; absent: no scrub begins by the clock.
    pub period: Option<Duration>,
    /// Bytes of the dies that are read each second at most; absent: no limit.
    pub bytes_per_s_max: Option<NonZeroU64>,
}

/// Recipients of alerts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlertConfig {
    /// Program that is run at each change of health.
    pub program: Option<PathBuf>,
    /// Mail address.
    pub mail: Option<String>,
    /// True to send a test event when the server starts.
    pub is_test: bool,
}

/// Modelled drive that sets the timing of replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pacing {
    /// Name in the catalogue, or path of a drive file.
    pub drive: String,
    /// Format, host and surroundings of the model.
    pub choice: Choice,
    /// Seed of its random streams.
    pub seed: u64,
}

/// Log on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// The least severe level that is logged.
    pub level: Level,
    /// True for a line of JSON for each event.
    pub is_json: bool,
}

impl Pacing {
    /// The model, empty, whose time begins now.
    ///
    /// # Errors
    /// Fails if there is no such drive, format or host.
    pub fn model(&self) -> Result<PacingModel> {
        let spec = find_drive(&self.drive)?.surrounded_by(&self.choice.surroundings)?;
        let setup = Subject::find(&self.drive)?.setup(&self.choice)?;
        PacingModel::new(&spec, &setup.with_seed(self.seed))
    }
}

/// Configuration that a running server reads again.
pub trait ConfigSource {
    /// Reads it.
    ///
    /// # Errors
    /// Fails if it is not valid; then nothing changes.
    fn reread(&mut self) -> Result<ConfigChange>;
}

/// Configuration that was read again.
#[derive(Debug)]
pub struct ConfigChange {
    /// Log, which changes at once.
    pub log: LogConfig,
    /// Scrubs, which change at once.
    pub scrubs: ScrubConfig,
    /// Keys that changed, but take effect only at the next start.
    pub fixed: Vec<String>,
}
