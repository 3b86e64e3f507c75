//! Policy of a tier: what goes to which class, as a value.

use serde::Deserialize;
use thiserror::Error;

use crate::Replacement;

/// Class of storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The faster and smaller one.
    Fast,
    /// The slower one, which holds everything but what only the fast one does.
    Slow,
}

/// Path of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteMode {
    /// All writes append to a log on the fast class, and leave it in the order of their age
    /// [zhou-2024].
    Shape,
    /// All writes go to places on the fast class, where they are overwritten, and leave it in the
    /// order of their addresses.
    Back,
    /// All writes go to the slow class; copies on the fast one become invalid.
    Around,
    /// All writes go to the slow class, and to the fast one where the read cache has the block or
    /// admits it.
    Through,
}

/// Layout of data on the slow class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Every block has one place, that of its number.
    #[default]
    InPlace,
    /// Blocks are appended to a log with a map of 4 KiB and garbage collection by the host
    /// [zhou-2024].
    Log,
}

/// Range of addresses that stays on one class.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// Begin, in decimal GB of the whole drive.
    pub from_gb: f64,
    /// End, in decimal GB.
    pub to_gb: f64,
    /// Class that holds it, alone.
    pub class: Class,
}

/// Policy of a tier.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Path of writes.
    pub write: WriteMode,
    /// Layout of data on the slow class.
    #[serde(default)]
    pub layout: Layout,
    /// Policy of the read cache; absent: there is none.
    pub read_cache: Option<Replacement>,
    /// Share of the fast class for written data, in percent, where writes go there first; the rest
    /// is the read cache's.
    #[serde(default = "Policy::default_write_percent")]
    pub write_percent: f64,
    /// Unit in which written data leaves the fast class, in KiB, a multiple of 4.
    #[serde(default = "Policy::default_destage_kib")]
    pub destage_kib: u32,
    /// Share of the space for written data, in percent, from which on it is destaged.
    #[serde(default = "Policy::default_destage_percent")]
    pub destage_percent: f64,
    /// Units that are destaged at a time.
    #[serde(default = "Policy::default_destage_units")]
    pub destage_units: u32,
    /// Spare space of a log, in percent of the slow class.
    #[serde(default = "Policy::default_spare_percent")]
    pub spare_percent: f64,
    /// Size of the pieces in which a log is cleaned, in MiB.
    #[serde(default = "Policy::default_band_mib")]
    pub band_mib: u32,
    /// True if blocks that both classes hold are read from the one that answers sooner [wu-2021].
    #[serde(default)]
    pub split: bool,
    /// Misses of a block after which the read cache admits it; 1: at the first.
    #[serde(default = "Policy::default_admit_after")]
    pub admit_after: u8,
    /// Longest request whose blocks the read cache admits, in KiB.
    #[serde(default = "Policy::default_admit_kib_max")]
    pub admit_kib_max: u32,
    /// Most that admissions may write to the fast class, in writes of all of it a day; absent: no
    /// limit.
    pub admit_drive_writes_per_day: Option<f64>,
    /// Ranges that stay on one class.
    #[serde(rename = "pin", default)]
    pub pins: Vec<Pin>,
}

/// Refusal of a policy, or of classes that it cannot work with.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{name} is {value}, must be {limit}")]
pub struct TierError {
    /// Key of the policy, or a property of a class.
    pub name: &'static str,
    /// Its value, as text.
    pub value: String,
    /// Range that it must be in, as text.
    pub limit: String,
}

impl TierError {
    pub(crate) fn new(name: &'static str, value: &dyn ToString, limit: impl Into<String>) -> Self {
        Self { name, value: value.to_string(), limit: limit.into() }
    }
}

impl Policy {
    /// Most blocks of a unit that is destaged: 64 MiB.
    const DESTAGE_KIB_MAX: u32 = 65_536;

    const fn default_write_percent() -> f64 {
        50.0
    }

    const fn default_destage_kib() -> u32 {
        1024
    }

    const fn default_destage_percent() -> f64 {
        50.0
    }

    const fn default_destage_units() -> u32 {
        8
    }

    const fn default_spare_percent() -> f64 {
        20.0
    }

    const fn default_band_mib() -> u32 {
        64
    }

    const fn default_admit_after() -> u8 {
        1
    }

    const fn default_admit_kib_max() -> u32 {
        128
    }

    /// True if written data goes to the fast class first.
    pub const fn writes_to_fast(&self) -> bool {
        matches!(self.write, WriteMode::Shape | WriteMode::Back)
    }

    /// Checks the policy by itself.
    ///
    /// # Errors
    /// Names the first key that is out of range, or that another one rules out.
    pub fn check(&self) -> Result<(), TierError> {
        let percents = [
            ("write_percent", self.write_percent, 1.0, 100.0),
            ("destage_percent", self.destage_percent, 0.0, 90.0),
            ("spare_percent", self.spare_percent, 3.0, 90.0),
        ];
        for (name, value, least, most) in percents {
            if !(least..=most).contains(&value) {
                return Err(TierError::new(name, &value, format!("from {least} to {most}")));
            }
        }
        let counts = [
            ("destage_units", self.destage_units, 1, 1024),
            ("band_mib", self.band_mib, 1, 1 << 20),
            ("admit_after", self.admit_after.into(), 1, 100),
            ("destage_kib", self.destage_kib, 4, Self::DESTAGE_KIB_MAX),
        ];
        for (name, value, least, most) in counts {
            if !(least..=most).contains(&value) {
                return Err(TierError::new(name, &value, format!("from {least} to {most}")));
            }
        }
        let writes_per_day = self.admit_drive_writes_per_day.unwrap_or_default();
        if !(0.0..=1e6).contains(&writes_per_day) {
            let limit = "from 0 to 1000000";
            return Err(TierError::new("admit_drive_writes_per_day", &writes_per_day, limit));
        }
        self.check_together()
    }

    fn check_together(&self) -> Result<(), TierError> {
        let (kib, band_kib) = (self.destage_kib, u64::from(self.band_mib) * 1024);
        if !kib.is_multiple_of(4) {
            return Err(TierError::new("destage_kib", &kib, "a multiple of 4"));
        }
        if self.layout == Layout::Log {
            if !self.writes_to_fast() {
                let limit = "in-place where writes do not go to the fast class first";
                return Err(TierError::new("layout", &"log", limit));
            }
            if !band_kib.is_multiple_of(kib.into()) || band_kib / u64::from(kib) > 65_535 {
                let limit = format!("65535 times destage_kib ({kib}) at most, and a multiple");
                return Err(TierError::new("band_mib", &self.band_mib, limit));
            }
        }
        if self.split && self.read_cache.is_none() {
            let limit = "false without a read_cache: written data is on one class alone";
            return Err(TierError::new("split", &true, limit));
        }
        if !self.writes_to_fast() && self.read_cache.is_none() {
            let limit = "shape or back without a read_cache: nothing else uses the fast class";
            return Err(TierError::new("write", &"around or through", limit));
        }
        Ok(())
    }
}
