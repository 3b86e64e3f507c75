//! Schedules: which faults come when, from a TOML file.

use blockio::text::in_toml_types;
use serde::Deserialize;

use super::Fault;

/// Most times that one entry comes.
const TIMES_MAX: u64 = 1000;

/// Schedules that are built in, by name: months of a drive in minutes.
const SCENARIOS: [(&str, &str); 1] =
    [("dying-drive", include_str!("../../scenarios/dying-drive.toml"))];

/// Returns the text of a schedule that is built in.
pub fn scenario(name: &str) -> Option<&'static str> {
    SCENARIOS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

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
    fault: Vec<toml::Table>,
}

/// Times of an entry, whose other keys are those of its fault.
#[derive(Debug, Default, Deserialize)]
struct InjectionTimes {
    after_ms: Option<u64>,
    after_commands: Option<u64>,
    every_ms: Option<u64>,
    every_commands: Option<u64>,
    times: Option<u64>,
}

impl InjectionTimes {
    const KEYS: [&str; 5] = ["after_ms", "after_commands", "every_ms", "every_commands", "times"];

    /// Lists the times in ascending order.
    fn list(&self) -> Result<Vec<InjectionTime>, &'static str> {
        let (kind, after, every): (fn(u64) -> InjectionTime, _, _) = match self {
            Self { after_ms: Some(after), after_commands: None, every_commands: None, .. } => {
                (InjectionTime::AfterMs, *after, self.every_ms)
            }
            Self { after_ms: None, after_commands: Some(after), every_ms: None, .. } => {
                (InjectionTime::AfterCommands, *after, self.every_commands)
            }
            _ => {
                return Err(
                    "needs either `after_ms` or `after_commands`, and `every_` in the same",
                );
            }
        };
        let (every, times) = match (every, self.times) {
            (None, None) => (0, 1),
            (Some(every @ 1..), Some(times @ 1..=TIMES_MAX)) => (every, times),
            _ => return Err("`every_` needs `times`, and it `every_`: from 1, at most 1000 times"),
        };
        Ok((0..times)
            .map(|index| kind(after.saturating_add(index.saturating_mul(every))))
            .collect())
    }
}

/// Reads an entry of a schedule.
///
/// # Errors
/// Says what is missing, superfluous or out of range.
fn entry(mut keys: toml::Table) -> Result<(Vec<InjectionTime>, Fault), String> {
    let worded = |error: toml::de::Error| in_toml_types(error.message());
    let times: toml::Table =
        InjectionTimes::KEYS.iter().filter_map(|key| keys.remove_entry(*key)).collect();
    let times = times.try_into::<InjectionTimes>().map_err(worded)?.list()?;
    let kind = keys.remove("kind").ok_or("needs a `kind`")?;
    if keys.insert("fault".to_owned(), kind).is_some() {
        return Err("unknown field `fault`".to_owned());
    }
    let fault: Fault = keys.try_into().map_err(worded)?;
    fault.check()?;
    Ok((times, fault))
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
        for (number, keys) in (1..).zip(fault) {
            let refuse = |what| ScheduleError::Fault { fault: number, what };
            let (times, fault) = entry(keys).map_err(refuse)?;
            planned.extend(times.into_iter().map(|time| (time, fault)));
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
    fn a_fault_comes_again_as_often_as_its_entry_says() {
        let text = "[[fault]]\nkind = \"fail-reads\"\nafter_commands = 10\n\
                    every_commands = 5\ntimes = 3\n";
        let reads = Fault::FailReads { commands: 1 };
        let expected = [10, 15, 20].map(|at| (InjectionTime::AfterCommands(at), reads));
        assert_eq!(Schedule::parse(text).unwrap().planned, expected);
    }

    #[test]
    fn scenarios_are_schedules_for_two_dies() {
        for (name, text) in SCENARIOS {
            let schedule = Schedule::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            schedule.check_dies(2).unwrap();
            assert_eq!(scenario(name), Some(text));
        }
        assert_eq!(scenario("young-drive"), None);
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
            ("kind = \"stall\"\nafter_ms = 1", "fault 1: missing field `stall_ms`"),
            ("kind = \"cut-power\"", "fault 1: needs either"),
            ("after_ms = 1", "fault 1: needs a `kind`"),
            ("kind = \"fill\"\nafter_ms = 1\ntimes = 3", "fault 1: `every_` needs `times`"),
            ("kind = \"fill\"\nafter_ms = 1\nevery_commands = 3", "`every_` in the same"),
            ("kind = \"fill\"\nafter_ms = 1\nevery_ms = 3\ntimes = 1001", "at most 1000 times"),
            ("kind = \"fail-die\"\nafter_ms = 1", "fault 1: missing field `die`"),
            ("kind = \"fail-die\"\nafter_ms = 1\ndie = \"1\"", "fault 1: "),
            ("kind = \"fail-range\"\nafter_ms = 1\ndie = 1", "missing field `from_bytes`"),
            ("kind = \"wear\"\nafter_ms = 1\nused_percent = 300\nspare_percent = 1", "300"),
            (
                "kind = \"wear\"\nafter_ms = 1\nused_percent = 1\nspare_percent = 101",
                "at most 100 %",
            ),
            (
                "kind = \"fail-range\"\nafter_ms = 1\ndie = 1\nfrom_bytes = 0\nlength_bytes = 0",
                "a range of 0 bytes",
            ),
            ("kind = \"fill\"\nafter_ms = 1\nwhen = 1", "unknown field"),
            ("kind = \"cut-power\"\nafter_ms = 1\ndie = 1", "fault 1: unknown field `die`"),
            ("kind = \"fail-plp\"\nafter_ms = 1\nfor_ms = 1", "unknown field `for_ms`"),
            ("kind = \"fail-controllers\"\nafter_ms = 1\ndie = 1", "unknown field `die`"),
            ("kind = \"reset-controllers\"\nafter_ms = 1\ndie = 1", "unknown field `die`"),
            ("kind = \"fill\"\nafter_ms = 1\nfault = \"stall\"", "unknown field `fault`"),
            ("kind = \"melt\"\nafter_ms = 1", "unknown variant"),
            ("kind = \"heat\"\nafter_ms = 1\ncelsius = 300", "fault 1: a temperature of 300"),
            ("kind = \"stall\"\nafter_ms = 1\nstall_ms = 3600001", "must be at most 3600000"),
        ] {
            let error = Schedule::parse(&format!("[[fault]]\n{text}\n")).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
