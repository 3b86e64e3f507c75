//! Settings of this machine that a measurement wants otherwise, changed for as long as it lasts.
//!
//! ```text
//! before each change  its line in the journal: what, as it was, as it will be
//! end, error, Ctrl-C  everything as it was, last first; the journal is emptied
//! killed              the journal stays: `floatgate doctor --revert`, or the next run that tunes
//! reboot              settings and journal are gone alike: both lie in memory
//! ```
//!
//! **Invariants**
//! - Nothing is changed that the journal does not name.
//! - A setting that another process changed in between stays as it is.
//! - The journal is locked while a run needs it: two runs never tune one machine.
//!
//! Sources: the kernel's `Documentation/ABI/stable/sysfs-block` and
//! `Documentation/admin-guide/pm/cpufreq.rst`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use results::{Warning, WarningKind};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use lab::target::system::{Block, System, chosen};
use lab::{Error, Kind};

/// Path of the journal, below the root.
const JOURNAL: &str = "run/floatgate/tuned.jsonl";

/// Settings of a drive's queue, and their values under measurement.
const QUEUE: [(&str, &str); 4] = [
    // Requests reach the drive in the order in which they were sent, each as large as it was.
    ("scheduler", "none"),
    ("nomerges", "2"),
    // The processor that sent a request completes it.
    ("rq_affinity", "2"),
    // No completion waits for the pool of random numbers.
    ("add_random", "0"),
];

/// Folder of the kernel's frequency policies: one for each set of processors that share a clock.
const POLICIES: &str = "sys/devices/system/cpu/cpufreq";
/// Path of the policy for power saving of PCI Express links (ASPM).
const LINKS: &str = "sys/module/pcie_aspm/parameters/policy";

/// A setting and its value under measurement.
struct Wish {
    name: &'static str,
    path: String,
    value: &'static str,
}

/// A setting that was changed: a line of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Change {
    /// Name of the setting, such as `scheduler`.
    name: String,
    /// Path of the setting, below the root.
    path: String,
    before: String,
    after: String,
}

/// A machine whose settings are changed until this is dropped.
#[derive(Debug)]
pub(crate) struct TunedMachine {
    system: System,
    journal: TuningJournal,
    changes: Vec<Change>,
    refused: Vec<String>,
}

/// Outcome of reverting one setting of a run that was killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReversionOutcome {
    /// Path of the setting.
    pub setting: String,
    /// Action that was taken, or the reason why none was.
    pub text: String,
    /// True if nothing is left to be done.
    pub is_done: bool,
}

impl TunedMachine {
    /// Changes what disturbs measurements on `disks`, or on whatever it is, of this machine.
    ///
    /// # Errors
    /// Fails if the journal cannot be written, or another run has the machine tuned.
    pub(crate) fn begin(system: &System, disks: &[Block]) -> Result<Self, Error> {
        let mut journal = TuningJournal::open(system)?;
        // As a run that was killed found the machine, so it is to be again after this one.
        let left = put_back(system, &journal.changes());
        if let Some(left) = left.iter().find(|it| !it.is_done) {
            let text = format!("left by a run that was killed: {} {}", left.setting, left.text);
            return Err(Error::new(Kind::Io, text).hint("see `floatgate doctor --revert`"));
        }
        journal.empty()?;
        let (changes, refused) = (Vec::new(), Vec::new());
        let mut tuned = Self { system: system.clone(), journal, changes, refused };
        for wish in wishes(system, disks) {
            tuned.change(wish)?;
        }
        Ok(tuned)
    }

    fn change(&mut self, wish: Wish) -> Result<(), Error> {
        let Wish { name, path, value } = wish;
        let Some(before) = setting(&self.system, &path).filter(|before| before != value) else {
            return Ok(());
        };
        let change = Change { name: name.into(), path, before, after: value.into() };
        self.journal.note(&change)?;
        match self.system.set(&change.path, value) {
            Ok(()) => self.changes.push(change),
            Err(source) => {
                self.refused.push(format!("{name} stays {}: {source}", change.before));
            }
        }
        Ok(())
    }

    /// Summary of the changes in one line: `scheduler none (was mq-deadline), nomerges 2 (was 0)`.
    pub(crate) fn shown(&self) -> String {
        let mut told: Vec<String> = Vec::new();
        for Change { name, before, after, .. } in &self.changes {
            let text = format!("{name} {after} (was {before})");
            // A machine has as many governors as processors.
            if !told.contains(&text) {
                told.push(text);
            }
        }
        if told.is_empty() { "no setting needed a change".into() } else { told.join(", ") }
    }

    /// Warnings about settings that the machine would not let be changed.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = Warning> {
        self.refused.iter().map(|text| Warning {
            kind: WarningKind::Environment,
            step: String::new(),
            text: format!("the machine could not be tuned: {text}"),
            remedy: "run as root, on the machine itself".into(),
        })
    }
}

impl Drop for TunedMachine {
    fn drop(&mut self) {
        let reverted = put_back(&self.system, &self.changes);
        if reverted.iter().all(|it| it.is_done) {
            // What stays in the journal is put back again, which changes nothing.
            let _ = self.journal.empty();
        }
    }
}

/// Puts back what runs that were killed changed, setting by setting.
///
/// # Errors
/// Fails if the journal cannot be read, or a run that lives has the machine tuned.
pub fn revert() -> Result<Vec<ReversionOutcome>, Error> {
    revert_on(&System::this_machine())
}

fn revert_on(system: &System) -> Result<Vec<ReversionOutcome>, Error> {
    if left_on(system) == 0 {
        return Ok(Vec::new());
    }
    let mut journal = TuningJournal::open(system)?;
    let reverted = put_back(system, &journal.changes());
    if reverted.iter().all(|it| it.is_done) {
        journal.empty()?;
    }
    Ok(reverted)
}

/// Settings that the journal names: those of a run that is under way, or that was killed.
pub(crate) fn left_on(system: &System) -> usize {
    changes_in(&system.text(JOURNAL).unwrap_or_default()).len()
}

/// True if a run that is under way has the machine tuned.
pub(crate) fn is_in_use(system: &System) -> bool {
    matches!(TuningJournal::open(system), Err(error) if error.kind() == Kind::Refused)
}

/// Settings to change, in the order in which they are changed.
fn wishes(system: &System, disks: &[Block]) -> Vec<Wish> {
    let mut wishes = Vec::new();
    for disk in disks {
        let path = |name| format!("sys/class/block/{}/queue/{name}", disk.name());
        wishes.extend(QUEUE.map(|(name, value)| Wish { name, path: path(name), value }));
    }
    let policies = system.names(POLICIES).into_iter().filter(|name| name.starts_with("policy"));
    wishes.extend(policies.map(|policy| Wish {
        name: "CPU governor",
        path: format!("{POLICIES}/{policy}/scaling_governor"),
        value: "performance",
    }));
    wishes.push(Wish { name: "PCIe ASPM", path: LINKS.into(), value: "performance" });
    wishes
}

/// Current value of a setting; absent where there is none.
fn setting(system: &System, path: &str) -> Option<String> {
    Some(chosen(&system.text(path)?).to_owned())
}

/// Puts `changes` back, last first.
fn put_back(system: &System, changes: &[Change]) -> Vec<ReversionOutcome> {
    changes.iter().rev().map(|change| put_one_back(system, change)).collect()
}

fn put_one_back(system: &System, change: &Change) -> ReversionOutcome {
    let Change { path, before, after, .. } = change;
    let (text, is_done) = match setting(system, path) {
        None => ("is gone".into(), true),
        Some(now) if now == *before => (format!("is {now}, as it was"), true),
        Some(now) if now != *after => (format!("stays {now}, which another program set"), true),
        Some(now) => match system.set(path, before) {
            Ok(()) => (format!("is {before} again, was {now}"), true),
            Err(source) => (format!("stays {now}: {source}"), false),
        },
    };
    ReversionOutcome { setting: format!("/{path}"), text, is_done }
}

/// The journal, open and locked.
#[derive(Debug)]
struct TuningJournal {
    path: PathBuf,
    file: File,
}

impl TuningJournal {
    fn open(system: &System) -> Result<Self, Error> {
        let path = system.path(JOURNAL);
        let opened = path
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| OpenOptions::new().create(true).append(true).read(true).open(&path));
        let file = opened.map_err(|source| unwritten(&path, source))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|errno| {
            Error::new(Kind::Refused, "another run has tuned this machine and is still in progress")
                .hint("wait until it ends")
                .source(errno)
        })?;
        Ok(Self { path, file })
    }

    /// The lines that are whole: of one that is not, the change was not made.
    fn changes(&self) -> Vec<Change> {
        changes_in(&fs::read_to_string(&self.path).unwrap_or_default())
    }

    fn note(&mut self, change: &Change) -> Result<(), Error> {
        let line = serde_json::to_string(change).expect("plain strings") + "\n";
        self.file.write_all(line.as_bytes()).map_err(|source| unwritten(&self.path, source))
    }

    /// Truncates the journal. The file stays: a lock on one that is gone would hold no other run
    /// off.
    fn empty(&mut self) -> Result<(), Error> {
        self.file.set_len(0).map_err(|source| unwritten(&self.path, source))
    }
}

fn changes_in(journal: &str) -> Vec<Change> {
    journal.lines().map_while(|line| serde_json::from_str(line).ok()).collect()
}

fn unwritten(path: &Path, source: io::Error) -> Error {
    let text = format!("writing {}, which says what is tuned", path.display());
    Error::new(Kind::Io, text).hint("run as root").source(source)
}

#[cfg(test)]
mod tests;
