//! Recorded applications: the host's share in a recording, and predictions from its replay on
//! another drive.
//!
//! ```text
//! recording ──► parents and think times ──► model, in virtual time ──► span of the replay
//!                                                                        │
//!  transactions per second = recorded ones x recorded span / span of the replay
//! ```
//!
//! Think times contain the work of the host, whose processors they share. If they make up nearly
//! all of the critical path, the host determines the rate, and nothing is predicted
//! ([`HOST_SHARE_MAX`]). [`crate::driver::model::ReplayModel`] carries out replays.

mod host;
mod memory;
mod pending;
mod processors;
mod replayed;
mod tree;

use std::num::NonZeroU32;
use std::path::Path;

use workload::Application;
use workload::recording::{self, Recording, parents};

pub use self::host::ReplayHost;
pub use self::pending::Pending;
pub use self::replayed::{ByOp, Clock};
pub use self::replayed::{
    HOST_SHARE_MAX, HOST_SHARE_SHOWN, LATENCY_RATIO_MAX, PAUSE_SHARE_MAX, Prediction, ReplayResult,
};
pub use self::tree::RequestTree;
use crate::{Error, Kind};

/// Reads the recording at `path`.
///
/// # Errors
/// Fails if the file is not a valid recording, and names it and the fault.
pub fn read(path: &Path) -> Result<Recording, Error> {
    let shown = path.display();
    let file = std::fs::File::open(path)
        .map_err(|source| Error::new(Kind::Input, format!("opening {shown}")).source(source))?;
    read_from(std::io::BufReader::new(file), &shown.to_string())
}

/// Reads a recording from its bytes, which errors call `name`.
///
/// # Errors
/// Fails if the bytes are not a valid recording, and names the fault.
pub fn read_from(bytes: impl std::io::Read, name: &str) -> Result<Recording, Error> {
    recording::read(bytes).map_err(|source| {
        Error::new(Kind::Input, format!("reading {name}"))
            .source(source)
            .hint("`floatgate trace record` and `floatgate volume serve --record` write recordings")
    })
}

/// The built-in recording of an application with this number of clients, if there is one.
pub fn built_in(application: &str, threads: u32) -> Option<Recording> {
    let bytes = workload::catalogue::recording(application, threads)?;
    Some(recording::read(bytes).expect("a test reads every recording that is built in"))
}

/// Built-in recording for an application with this number of clients, and the number of its copies
/// to replay; none if there is no such recording.
pub fn copied(application: &Application, threads: u32) -> Option<(Recording, NonZeroU32)> {
    let copies = NonZeroU32::new(threads).filter(|_| application.copies);
    let recorded = if copies.is_some() { 1 } else { threads };
    Some((built_in(&application.name, recorded)?, copies.unwrap_or(NonZeroU32::MIN)))
}

/// Error for an application or a number of clients without a built-in recording.
pub fn no_recording(application: &str, threads: u32) -> Error {
    let text = format!("no recording of {application} with {threads} threads is built in");
    let hint = format!(
        "record it on any machine: floatgate app {application} --threads {threads} --memory 4g \
         --timing model --model iodrive-duo --out recordings; then give --recordings recordings"
    );
    Error::new(Kind::Input, text).hint(hint)
}

/// Share of think times in the critical path of a recording, from 0 to 1; none if it has no
/// requests from the time in which the benchmark counted.
pub fn host_share(recording: &Recording) -> Option<f64> {
    let requests = recording.measured();
    let parents = parents(requests);
    (!requests.is_empty()).then(|| Clock::of_recording(requests, &parents).host_share(&parents))
}

#[cfg(test)]
mod tests;
