//! Options for tests on real drives: leave to destroy, purge method, size, limits, tuning.

use std::path::PathBuf;

use blockio::Bytes;
use clap::Args;
use lab::PurgeMethod;
use lab::real::access::{Access, Conditions};

use crate::quantity;

/// Limits to what a test may do to a real drive.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Real drives")]
pub(crate) struct RealArgs {
    /// Allows what is on the target to be destroyed
    ///
    /// Needed for a block device, an NBD server, and for a file that exists and is not empty.
    #[arg(long)]
    pub(crate) destroy: bool,
    /// Method of purging a device: auto, format, sanitize, secure-erase, discard or overwrite
    ///
    /// A way that is named and does not work is an error; auto takes the next one.
    #[arg(long, value_name = "METHOD", default_value = "auto")]
    pub(crate) purge: PurgeMethod,
    /// Size of a file that is made for the test, such as 4G or 4GiB
    #[arg(long, value_parser = quantity::size, value_name = "SIZE")]
    pub(crate) size: Option<Bytes>,
    /// Ends where the drive is this hot, in °C [default: what the drive calls critical]
    ///
    /// Finished steps are kept; --resume goes on with the others once it has cooled.
    #[arg(long, value_name = "CELSIUS", value_parser = clap::value_parser!(i64).range(1..=150))]
    pub(crate) temperature_max: Option<i64>,
    /// Sets scheduler, merging, CPU governor and PCI links for measuring, and back at the end
    ///
    /// Of a file the disk below keeps its settings, since others use it. The run lists what was
    /// changed. After a run that was killed, `floatgate doctor --revert` puts it back.
    #[arg(long)]
    pub(crate) tune: bool,
}

impl RealArgs {
    /// Returns the access that a test has to a real target; raw output goes to the folder `raw`.
    pub(crate) fn access(&self, raw: PathBuf) -> Access {
        let Self { destroy, purge, size, temperature_max: temperature_max_c, tune } = *self;
        let conditions = Conditions { temperature_max_c, is_tuned: tune };
        Access { destroy, purge, size, raw, conditions }
    }

    /// The options with which a run on a real drive goes on as it began. What it wrote so far may
    /// be destroyed: without leave to do so it would be taken for somebody's data.
    pub(crate) fn to_go_on(&self) -> String {
        let mut words = vec!["--destroy".to_owned()];
        if self.purge != PurgeMethod::Auto {
            words.push(format!("--purge {}", self.purge));
        }
        words.extend(self.size.map(|Bytes(size)| format!("--size {size}b")));
        words.extend(self.temperature_max.map(|max| format!("--temperature-max {max}")));
        words.extend(self.tune.then(|| "--tune".to_owned()));
        words.join(" ")
    }
}
