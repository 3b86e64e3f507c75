//! Options for tests on real drives: leave to destroy, purge method, size, limits, tuning.

use std::path::PathBuf;

use blockio::Bytes;
use clap::Args;
use lab::PurgeMethod;
use lab::target::access::{Access, Conditions};

use crate::quantity;

/// Limits to what a test may do to a real drive.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Real drives")]
pub(crate) struct RealArgs {
    /// Allow data on the target to be destroyed
    ///
    /// Required for block devices, NBD servers, and existing files that are not empty.
    #[arg(long)]
    pub(crate) destroy: bool,
    /// Read only: open the target for reading, keep its data, and refuse loads that write
    ///
    /// Nothing is purged, filled or preconditioned. The run states how much of the target holds
    /// zeroes, which may never have been written.
    #[arg(long, conflicts_with_all = ["destroy", "purge", "size"])]
    pub(crate) read_only: bool,
    /// Purge method: auto, format, sanitize, secure-erase, discard or overwrite
    ///
    /// `auto` tries them in this order; a method given by name must work.
    #[arg(long, value_name = "METHOD", default_value = "auto")]
    pub(crate) purge: PurgeMethod,
    /// Size of a new file to test, such as 4G or 4GiB
    #[arg(long, value_parser = quantity::size, value_name = "SIZE")]
    pub(crate) size: Option<Bytes>,
    /// Stop when the drive reaches this temperature in °C [default: its critical temperature]
    ///
    /// Finished steps are kept; --resume continues once the drive has cooled down.
    #[arg(long, value_name = "CELSIUS", value_parser = quantity::within(1..=150_i64))]
    pub(crate) temperature_max: Option<i64>,
    /// Tune I/O scheduler, merging, CPU governor and PCI links; restore them at the end
    ///
    /// The disk below a file is not tuned, because others use it. The run lists what was changed.
    /// If a run is killed, restore the settings with `floatgate doctor --revert`.
    #[arg(long)]
    pub(crate) tune: bool,
}

/// Machines that a real drive is on.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Real drives")]
pub(crate) struct ClientArgs {
    /// Machines that run `fio --server` and have a target of this name: a,b:8766
    #[arg(long, value_name = "HOSTS")]
    pub(crate) client: Option<String>,
}

impl RealArgs {
    /// Returns the access that a test has to a real target; raw output goes to the folder `raw`.
    pub(crate) fn access(&self, raw: PathBuf) -> Access {
        let Self { destroy, read_only, purge, size, temperature_max: temperature_max_c, tune } =
            *self;
        let conditions = Conditions { temperature_max_c, is_tuned: tune };
        Access { destroy, read_only, purge, size, raw, conditions }
    }

    /// The options given that change nothing on a model.
    pub(crate) fn without_effect_on_models(&self) -> Vec<&'static str> {
        let given = [
            (self.destroy, "--destroy"),
            (self.read_only, "--read-only"),
            (self.purge != PurgeMethod::Auto, "--purge"),
            (self.size.is_some(), "--size"),
            (self.temperature_max.is_some(), "--temperature-max"),
            (self.tune, "--tune"),
        ];
        given.into_iter().filter(|(is_given, _)| *is_given).map(|(_, name)| name).collect()
    }

    /// The options with which a run on a real drive goes on as it began. What it wrote so far may
    /// be destroyed: without leave to do so it would be taken for data that its owner needs.
    pub(crate) fn to_go_on(&self) -> String {
        let leave = if self.read_only { "--read-only" } else { "--destroy" };
        let mut words = vec![leave.to_owned()];
        if self.purge != PurgeMethod::Auto {
            words.push(format!("--purge {}", self.purge));
        }
        words.extend(self.size.map(|Bytes(size)| format!("--size {size}b")));
        words.extend(self.temperature_max.map(|max| format!("--temperature-max {max}")));
        words.extend(self.tune.then(|| "--tune".to_owned()));
        words.join(" ")
    }
}
