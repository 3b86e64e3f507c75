//! Limits within which a real target may be treated.

use std::path::PathBuf;
use std::{env, process};

use blockio::Bytes;

use super::purge_method::PurgeMethod;

/// Size of a file that is made because none was there and no size was given: 1 GiB.
pub const SIZE_DEFAULT: Bytes = Bytes(1 << 30);

/// Limits within which a real target may be treated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// True if data on it may be destroyed.
    pub destroy: bool,
    /// True if nothing may be written: the target is opened for reading only, and keeps its data.
    pub read_only: bool,
    /// Method that returns a device to its state before the first write.
    pub purge: PurgeMethod,
    /// Size of a file that is made or resized; a file that exists keeps its own by default.
    pub size: Option<Bytes>,
    /// Folder for fio's job files, reports and logs, such as `fio` in the folder of the run.
    pub raw: PathBuf,
    /// Conditions under which it is loaded.
    pub conditions: Conditions,
}

/// Conditions under which a target is loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// Temperature of the drive from which no load goes on, in degrees Celsius; absent: the one
    /// that the drive itself calls critical, where the kernel knows it.
    pub temperature_max_c: Option<i64>,
    /// True if settings of this machine are changed for as long as the load lasts, see
    /// `--tune`.
    pub is_tuned: bool,
}

impl Default for Access {
    /// Access that destroys nothing and keeps raw output among temporary files.
    fn default() -> Self {
        let raw = env::temp_dir().join(format!("floatgate-{}", process::id()));
        let conditions = Conditions::default();
        Self {
            destroy: false,
            read_only: false,
            purge: PurgeMethod::Auto,
            size: None,
            raw,
            conditions,
        }
    }
}
