//! Checks that this machine is fit to measure a real drive.

use std::env;
use std::path::Path;

use blockio::Bytes;
use lab::target::system::System;
use rustix::fs::statvfs;
use serde::Serialize;

use crate::environment::machine;
use crate::fio::engine::{Engine, Version};
use crate::tuning;

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Program or setting that was checked, such as `fio`.
    pub name: &'static str,
    /// Outcome of the check.
    pub state: State,
    /// Finding in words, such as a version.
    pub seen: String,
    /// Advice to the user; empty where nothing is to be done.
    pub remedy: String,
}

/// Outcome of a check, in ascending severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The check passed.
    Ok,
    /// Measuring works, with a restriction.
    Warn,
    /// Something that measurements need is missing.
    Missing,
}

/// Free space below which a run may not fit, with its raw logs.
const FREE_MIN: Bytes = Bytes(2 << 30);
/// Logical processors below which sixteen jobs disturb each other.
const PROCESSORS_MIN: usize = 4;

/// Runs all checks; `runs` is the folder in which runs are kept.
pub fn checks(runs: &Path) -> Vec<Check> {
    let system = System::this_machine();
    let mut checks = vec![fio(Version::installed()), engine()];
    checks.push(permission(rustix::process::geteuid().is_root()));
    checks.extend(TOOLS.iter().map(|tool| tool.check(is_installed(tool.program))));
    checks.push(governor(&system));
    checks.push(tuned(&system));
    checks.push(processors(&system));
    checks.push(virtualisation(&system));
    checks.push(space(runs));
    checks
}

impl Check {
    fn ok(name: &'static str, seen: impl Into<String>) -> Self {
        Self { name, state: State::Ok, seen: seen.into(), remedy: String::new() }
    }

    fn warn(name: &'static str, seen: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, state: State::Warn, seen: seen.into(), remedy: remedy.into() }
    }

    fn missing(name: &'static str, seen: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, state: State::Missing, seen: seen.into(), remedy: remedy.into() }
    }
}

fn fio(installed: Result<Version, lab::Error>) -> Check {
    match installed {
        Err(error) => Check::missing("fio", error.to_string(), error.remedy()),
        Ok(version) if version < Version::OLDEST => {
            let remedy = format!("install fio {} or later", Version::RECOMMENDED);
            Check::missing("fio", format!("{version}, {} is needed", Version::OLDEST), remedy)
        }
        Ok(version) if version < Version::RECOMMENDED => Check::warn(
            "fio",
            format!("{version}: fixed rates with mixed sizes are too low"),
            format!("fio {} or later, for loads with a rate", Version::RECOMMENDED),
        ),
        Ok(version) => Check::ok("fio", version.to_string()),
    }
}

/// Reads from this program's own file: it exists, and nothing is written.
fn engine() -> Check {
    let name = "engine";
    let probed = env::current_exe().ok().map(|program| Engine::probe(&program));
    match probed {
        Some(Ok(engine)) if engine.name == "io_uring" && engine.direct => {
            Check::ok(name, engine.to_string())
        }
        Some(Ok(engine)) => Check::warn(
            name,
            engine.to_string(),
            "io_uring needs Linux 5.1 and kernel.io_uring_disabled = 0",
        ),
        Some(Err(error)) => Check::missing(name, error.to_string(), error.remedy()),
        None => Check::warn(name, "not tried: the path of this program is unknown", ""),
    }
}

fn permission(is_root: bool) -> Check {
    if is_root {
        return Check::ok("permission", "root: files and block devices");
    }
    Check::warn("permission", "not root: files only", "run as root to measure a block device")
}

/// A program that is useful on real drives.
struct Tool {
    program: &'static str,
    use_: &'static str,
    package: &'static str,
}

const TOOLS: [Tool; 3] = [
    Tool { program: "blkdiscard", use_: "purges block devices", package: "util-linux" },
    Tool { program: "nvme", use_: "formats and sanitizes NVMe drives", package: "nvme-cli" },
    Tool { program: "hdparm", use_: "erases SATA drives", package: "hdparm" },
];

impl Tool {
    fn check(&self, is_installed: bool) -> Check {
        let Self { program, use_, package } = self;
        if is_installed {
            return Check::ok(program, *use_);
        }
        Check::warn(program, format!("not installed: it {use_}"), format!("install {package}"))
    }
}

fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(Into::into);
    env::split_paths(&path).chain(system).any(|folder| folder.join(program).is_file())
}

fn governor(system: &System) -> Check {
    let name = "governor";
    match machine::governor(system).as_deref() {
        Some("performance") => Check::ok(name, "performance"),
        Some(other) => Check::warn(name, other, "--tune sets it to performance for a run"),
        None => Check::ok(name, "no cpufreq governor on this machine"),
    }
}

fn tuned(system: &System) -> Check {
    let name = "tuning";
    match tuning::left_on(system) {
        0 => Check::ok(name, "Floatgate has changed no setting"),
        some if tuning::is_in_use(system) => {
            Check::ok(name, format!("{some} settings are changed by a run that is in progress"))
        }
        some => Check::warn(
            name,
            format!("{some} settings are still changed by a run that was killed"),
            "floatgate doctor --revert",
        ),
    }
}

fn processors(system: &System) -> Check {
    let (name, count) = ("processors", machine::processors(system));
    if count < PROCESSORS_MIN {
        let seen =
            format!("{count}: with sixteen jobs the processors limit the rate, not the drive");
        return Check::warn(name, seen, format!("measure with {PROCESSORS_MIN} or more"));
    }
    Check::ok(name, count.to_string())
}

fn virtualisation(system: &System) -> Check {
    let name = "virtualisation";
    match machine::hypervisor(system) {
        None => Check::ok(name, "none detected"),
        Some(vendor) => Check::warn(
            name,
            format!("virtual machine ({vendor}): its disk and its cores are shared"),
            "measure on the machine itself",
        ),
    }
}

fn space(runs: &Path) -> Check {
    let name = "space for runs";
    let existing = runs.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let Ok(system) = statvfs(existing) else {
        return Check::warn(
            name,
            format!("the free space of {} is unknown", existing.display()),
            "",
        );
    };
    let free = Bytes(system.f_bavail.saturating_mul(system.f_frsize));
    let seen = format!("{free} free in {}", existing.display());
    if free < FREE_MIN {
        return Check::warn(name, seen, format!("free {FREE_MIN}, or name another folder"));
    }
    Check::ok(name, seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_fixture::Machine;

    #[test]
    fn every_check_that_is_not_ok_has_a_remedy() {
        let folder = tempfile::TempDir::new().unwrap();
        for check in checks(folder.path()) {
            assert_eq!(check.state == State::Ok, check.remedy.is_empty(), "{check:?}");
        }
    }

    #[test]
    fn an_absent_folder_of_runs_is_judged_by_the_folder_around_it() {
        let folder = tempfile::TempDir::new().unwrap();
        let check = space(&folder.path().join("not/yet"));
        assert!(check.seen.ends_with(&format!("free in {}", folder.path().display())));
    }

    #[test]
    fn a_missing_fio_is_missing_and_says_how_to_install_it() {
        let error = lab::Error::new(lab::Kind::Program, "fio is not installed").hint("apt");
        let check = fio(Err(error));
        assert_eq!((check.state, check.remedy.as_str()), (State::Missing, "apt"));
        assert_eq!(fio(Ok(Version::RECOMMENDED)).state, State::Ok);
        assert_eq!(fio(Ok(Version::OLDEST)).state, State::Warn);
    }

    #[test]
    fn a_saving_governor_and_few_processors_are_warned_of() {
        let machine = Machine::with_disk();
        machine.write("proc/cpuinfo", "processor : 0");
        machine.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave");
        assert_eq!(governor(&machine.system()).state, State::Warn);
        assert_eq!(tuned(&machine.system()).state, State::Ok);
        assert_eq!(processors(&machine.system()).state, State::Warn);
        assert_eq!(virtualisation(&machine.system()).state, State::Ok);
    }
}
