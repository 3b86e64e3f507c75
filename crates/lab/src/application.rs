//! Applications that were recorded: what a recording tells of the host, and what its replay on
//! another drive predicts.
//!
//! ```text
//! recording ──► parents and think times ──► model, in virtual time ──► span of the replay
//!                                                                        │
//!  transactions per second = recorded ones x recorded span / span of the replay
//! ```
//!
//! Think times hold the work of the host. Where they make up nearly all of the time that the last
//! request waited for, the drive no longer decides: more of the application would run at once on a
//! host whose processors are not modelled, so that nothing is predicted ([`HOST_SHARE_MAX`]).
//! [`crate::driver::model::replay_recording`] carries replays out.

mod host;
mod pending;
mod replayed;

use std::path::Path;

use workload::recording::{self, Recording, parents};

pub use self::host::ReplayHost;
pub(crate) use self::pending::Pending;
pub(crate) use self::replayed::{ByOp, Clock};
pub use self::replayed::{HOST_SHARE_MAX, Prediction, Replayed};
use crate::{Error, Kind};

/// Reads the recording at `path`.
///
/// # Errors
/// Names the file and what is wrong with it.
pub fn read(path: &Path) -> Result<Recording, Error> {
    let shown = path.display();
    let file = std::fs::File::open(path)
        .map_err(|source| Error::new(Kind::Input, format!("opening {shown}")).source(source))?;
    read_from(std::io::BufReader::new(file), &shown.to_string())
}

/// Reads a recording from its bytes; `name` stands for them in errors.
///
/// # Errors
/// Says what is wrong with it.
pub fn read_from(bytes: impl std::io::Read, name: &str) -> Result<Recording, Error> {
    recording::read(bytes).map_err(|source| {
        Error::new(Kind::Input, format!("reading {name}"))
            .source(source)
            .hint("`floatgate record` and `floatgate serve --record` make recordings")
    })
}

/// The recording of an application with so many clients that is built in; none where there is none.
pub fn built_in(application: &str, threads: u32) -> Option<Recording> {
    let bytes = workload::catalogue::recording(application, threads)?;
    Some(recording::read(bytes).expect("a test reads every recording that is built in"))
}

/// Error that no recording of the application with so many clients is built in.
pub fn no_recording(application: &str, threads: u32) -> Error {
    let text = format!("no recording of {application} with {threads} threads is built in");
    let hint = format!(
        "record it on any machine: floatgate app {application} --threads {threads} --memory 4g \
         --timing model --model iodrive-duo --out recordings; then give --recordings recordings"
    );
    Error::new(Kind::Input, text).hint(hint)
}

/// Share of think times in what the last request of a recording waited for, from 0 to 1, as it was
/// recorded; none where nothing was asked for while the benchmark counted.
pub fn host_share(recording: &Recording) -> Option<f64> {
    let requests = recording.measured();
    let share = || Clock::of_recording(requests).host_share(&parents(requests));
    (!requests.is_empty()).then(share)
}
