//! Kinds of faults.

use serde::{Deserialize, Serialize};

/// Longest stall or removal in milliseconds; a longer one is a power cut.
const MS_MAX: u64 = 60 * 60 * 1000;

/// Fault to inject. One without values has no fields, for serde refuses keys of those alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Fault {
    /// Power cut: data that is not durable is lost or torn, sector by sector.
    CutPower {},
    /// Every command to a die fails from now on.
    FailDie {
        /// Index of the die.
        die: u32,
    },
    /// Bits of a die's data flip.
    FlipBits {
        /// Index of the die; none: a random one.
        #[serde(default)]
        die: Option<u32>,
        /// Number of bits to flip.
        #[serde(default = "Fault::default_bits")]
        bits: u32,
    },
    /// Reads of a range of a die fail from now on, as on a worn medium; writes go on.
    FailRange {
        /// Index of the die.
        die: u32,
        /// First byte.
        from_bytes: u64,
        /// Length, at least 1.
        length_bytes: u64,
    },
    /// Every command to any die waits until this time has gone by.
    Stall {
        /// Milliseconds, at most an hour.
        stall_ms: u64,
    },
    /// Reads fail, and succeed when they are repeated.
    FailReads {
        /// Reads that fail.
        #[serde(default = "Fault::one")]
        commands: u32,
    },
    /// Every NVMe controller is reset: connections end, and hosts may reconnect at once.
    ResetControllers {},
    /// Every NVMe controller fails (CSTS.CFS).
    FailControllers {},
    /// The drive is gone from its NVMe hosts, as if it had been pulled.
    Remove {
        /// Milliseconds until it is back, at most an hour.
        for_ms: u64,
    },
    /// A namespace takes no more writes, as if its media were worn out.
    FailWrites {
        /// Number of the namespace.
        #[serde(default = "Fault::one")]
        namespace: u32,
    },
    /// The drive reports this temperature until another one is set.
    Heat {
        /// Degrees Celsius, -40 to 200.
        celsius: i16,
    },
    /// The drive reports this wear until another one is set.
    Wear {
        /// Share of the rated endurance that is used, in percent, at most 255.
        used_percent: u8,
        /// Spare space that is left, in percent, at most 100.
        spare_percent: u8,
    },
    /// The power-loss protection fails: the drive acknowledges writes once they are durable.
    FailPlp {},
    /// Writes fail for want of space, but for as much as is trimmed from now on.
    Fill {
        /// Bytes that may still be written.
        #[serde(default)]
        left_bytes: u64,
    },
}

impl Fault {
    const fn default_bits() -> u32 {
        8
    }

    const fn one() -> u32 {
        1
    }

    /// Checks the quantities of the fault, which hold of any drive.
    ///
    /// # Errors
    /// States the value and its limits.
    pub fn check(&self) -> Result<(), String> {
        match *self {
            Self::Stall { stall_ms } if stall_ms > MS_MAX => {
                Err(format!("a stall of {stall_ms} ms, must be at most {MS_MAX} ms"))
            }
            Self::Remove { for_ms } if for_ms > MS_MAX => {
                Err(format!("a removal of {for_ms} ms, must be at most {MS_MAX} ms"))
            }
            Self::FailRange { length_bytes: 0, .. } => {
                Err("a range of 0 bytes, must be at least 1".to_owned())
            }
            Self::Heat { celsius } if !(-40..=200).contains(&celsius) => {
                Err(format!("a temperature of {celsius} °C, must be from -40 to 200 °C"))
            }
            Self::Wear { spare_percent, .. } if spare_percent > 100 => {
                Err(format!("spare space of {spare_percent} %, must be at most 100 %"))
            }
            _ => Ok(()),
        }
    }
}
