//! Schedules: which faults come when, from a TOML file.

use blockio::text::in_toml_types;
use serde::Deserialize;

use super::Fault;

/// Bits that flip where a schedule does not say how many.
const BITS: u32 = 8;

/// Faults to inject, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// Seed of every random choice, such as the die whose bits flip.
    pub seed: u64,
    /// Faults with their times, in any order.
    pub planned: Vec<(InjectionTime, Fault)>,
}

/// Time at which a fault is injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectionTime {
    /// So many milliseconds after the drive was opened.
    AfterMs(u64),
    /// With this command of the clients, counted from 1.
    AfterCommands(u64),
}

/// Error in the text of a schedule.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// The text is not TOML, or not of this form.
    #[error("{0}")]
    Form(String),
    /// A fault does not say what it has to.
    #[error("fault {fault}: {what}")]
    Fault {
        /// Its number, from 1.
        fault: usize,
        /// Description of what is missing, superfluous or out of range.
        what: String,
    },
    /// A fault names a die that the drive does not have.
    #[error("fault {fault} names die {die}, but there are {dies} dies, counted from 0")]
    NoDie {
        /// Number of the fault, from 1.
        fault: usize,
        /// Index of the die.
        die: u32,
        /// Number of dies of the drive.
        dies: u32,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScheduleFile {
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    fault: Vec<ScheduledFault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FaultKind {
    CutPower,
    FailDie,
    FailRange,
    FlipBits,
    Stall,
    Fill,
    FailReads,
    ResetControllers,
    FailControllers,
    Remove,
    FailWrites,
    FailPlp,
    Heat,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScheduledFault {
    kind: FaultKind,
    after_ms: Option<u64>,
    after_commands: Option<u64>,
    die: Option<u32>,
    bits: Option<u32>,
    stall_ms: Option<u64>,
    left_bytes: Option<u64>,
    from_bytes: Option<u64>,
    length_bytes: Option<u64>,
    commands: Option<u32>,
    for_ms: Option<u64>,
    namespace: Option<u32>,
    celsius: Option<i16>,
}

impl ScheduledFault {
    fn when(&self) -> Result<InjectionTime, &'static str> {
        match (self.after_ms, self.after_commands) {
            (Some(after), None) => Ok(InjectionTime::AfterMs(after)),
            (None, Some(after)) => Ok(InjectionTime::AfterCommands(after)),
            _ => Err("needs either `after_ms` or `after_commands`"),
        }
    }

    fn fault(&self) -> Result<Fault, &'static str> {
        if self.stall_ms.is_some() != (self.kind == FaultKind::Stall) {
            return Err("`stall_ms` belongs to `stall`, which needs it");
        }
        if self.bits.is_some() && self.kind != FaultKind::FlipBits {
            return Err("`bits` belongs to `flip-bits`");
        }
        if self.left_bytes.is_some() && self.kind != FaultKind::Fill {
            return Err("`left_bytes` belongs to `fill`");
        }
        let has_die = [FaultKind::FlipBits, FaultKind::FailDie, FaultKind::FailRange];
        if self.die.is_some() && !has_die.contains(&self.kind) {
            return Err("`die` belongs to `fail-die`, `fail-range` and `flip-bits`");
        }
        let (from, length) = (self.from_bytes.is_some(), self.length_bytes.is_some());
        let is_range = self.kind == FaultKind::FailRange;
        if (from, length) != (is_range, is_range) {
            return Err("`from_bytes` and `length_bytes` belong to `fail-range`, which needs both");
        }
        if self.commands.is_some() && self.kind != FaultKind::FailReads {
            return Err("`commands` belongs to `fail-reads`");
        }
        if self.for_ms.is_some() != (self.kind == FaultKind::Remove) {
            return Err("`for_ms` belongs to `remove`, which needs it");
        }
        if self.namespace.is_some() && self.kind != FaultKind::FailWrites {
            return Err("`namespace` belongs to `fail-writes`");
        }
        if self.celsius.is_some() != (self.kind == FaultKind::Heat) {
            return Err("`celsius` belongs to `heat`, which needs it");
        }
        Ok(match self.kind {
            FaultKind::FailReads => Fault::FailReads { commands: self.commands.unwrap_or(1) },
            FaultKind::FailPlp => Fault::FailPlp,
            FaultKind::ResetControllers => Fault::ResetControllers,
            FaultKind::FailControllers => Fault::FailControllers,
            FaultKind::Remove => Fault::Remove { for_ms: self.for_ms.unwrap_or_default() },
            FaultKind::FailWrites => Fault::FailWrites { namespace: self.namespace.unwrap_or(1) },
            FaultKind::Heat => Fault::Heat { celsius: self.celsius.unwrap_or_default() },
            FaultKind::CutPower => Fault::CutPower,
            FaultKind::FailDie => {
                Fault::FailDie { die: self.die.ok_or("`fail-die` needs a `die`")? }
            }
            FaultKind::FlipBits => {
                Fault::FlipBits { die: self.die, bits: self.bits.unwrap_or(BITS) }
            }
            FaultKind::FailRange => Fault::FailRange {
                die: self.die.ok_or("`fail-range` needs a `die`")?,
                from_bytes: self.from_bytes.unwrap_or_default(),
                length_bytes: self.length_bytes.unwrap_or_default(),
            },
            FaultKind::Stall => Fault::Stall { stall_ms: self.stall_ms.unwrap_or_default() },
            FaultKind::Fill => Fault::Fill { left_bytes: self.left_bytes.unwrap_or_default() },
        })
    }
}

impl Schedule {
    /// Reads a schedule.
    ///
    /// # Errors
    /// Fails if it is none; says which fault, and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, ScheduleError> {
        let ScheduleFile { seed, fault } = toml::from_str(text)
            .map_err(|error| ScheduleError::Form(in_toml_types(error.to_string().trim_end())))?;
        let mut planned = Vec::new();
        for (number, entry) in (1..).zip(&fault) {
            let refuse = |what| ScheduleError::Fault { fault: number, what };
            let both = entry.when().and_then(|when| Ok((when, entry.fault()?)));
            let (when, fault) = both.map_err(|what| refuse(what.to_owned()))?;
            fault.check().map_err(refuse)?;
            planned.push((when, fault));
        }
        Ok(Self { seed, planned })
    }

    /// Checks that each die that a fault names is one of `dies`.
    ///
    /// # Errors
    /// Names the first fault of which it is not.
    pub fn check_dies(&self, dies: u32) -> Result<(), ScheduleError> {
        for (fault, (_, planned)) in (1..).zip(&self.planned) {
            let (Fault::FailDie { die }
            | Fault::FailRange { die, .. }
            | Fault::FlipBits { die: Some(die), .. }) = *planned
            else {
                continue;
            };
            if die >= dies {
                return Err(ScheduleError::NoDie { fault, die, dies });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_says_what_comes_when() {
        let text = "seed = 7\n[[fault]]\nkind = \"stall\"\nafter_ms = 5000\nstall_ms = 2000\n\
                    [[fault]]\nkind = \"flip-bits\"\nafter_commands = 10\n";
        let expected = vec![
            (InjectionTime::AfterMs(5000), Fault::Stall { stall_ms: 2000 }),
            (InjectionTime::AfterCommands(10), Fault::FlipBits { die: None, bits: 8 }),
        ];
        assert_eq!(Schedule::parse(text).unwrap(), Schedule { seed: 7, planned: expected });
    }

    #[test]
    fn a_die_that_the_drive_lacks_is_refused() {
        let text = "[[fault]]\nkind = \"fill\"\nafter_ms = 1\n\
                    [[fault]]\nkind = \"fail-die\"\ndie = 3\nafter_ms = 1\n";
        let schedule = Schedule::parse(text).unwrap();
        assert!(schedule.check_dies(4).is_ok());
        let refused = schedule.check_dies(3).unwrap_err().to_string();
        assert_eq!(refused, "fault 2 names die 3, but there are 3 dies, counted from 0");
    }

    #[test]
    fn what_does_not_belong_there_is_refused() {
        for (text, expected) in [
            ("kind = \"stall\"\nafter_ms = 1", "fault 1: `stall_ms` belongs to `stall`"),
            ("kind = \"cut-power\"", "fault 1: needs either"),
            ("kind = \"fail-die\"\nafter_ms = 1", "fault 1: `fail-die` needs a `die`"),
            ("kind = \"fail-range\"\nafter_ms = 1\ndie = 1", "which needs both"),
            (
                "kind = \"fail-range\"\nafter_ms = 1\ndie = 1\nfrom_bytes = 0\nlength_bytes = 0",
                "a range of 0 bytes",
            ),
            ("kind = \"fill\"\nafter_ms = 1\nwhen = 1", "unknown field"),
            ("kind = \"melt\"\nafter_ms = 1", "unknown variant"),
            ("kind = \"heat\"\nafter_ms = 1\ncelsius = 300", "fault 1: a temperature of 300"),
            ("kind = \"stall\"\nafter_ms = 1\nstall_ms = 3600001", "must be at most 3600000"),
        ] {
            let error = Schedule::parse(&format!("[[fault]]\n{text}\n")).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
