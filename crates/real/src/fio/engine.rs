//! The fio of this machine: whether there is one, how old it is, and which of its engines the
//! kernel and the target take.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::Command;

use lab::{Error, Kind};

/// Version of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    /// Part before the point.
    pub(super) major: u32,
    /// Part after the point.
    pub(super) minor: u32,
}

/// I/O engine of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Engine {
    /// fio's name of it.
    pub(crate) name: &'static str,
    /// True if requests bypass the page cache.
    pub(crate) direct: bool,
}

impl Version {
    /// Oldest version in which fixed rates come out right with mixed sizes.
    pub(crate) const RECOMMENDED: Self = Self { major: 3, minor: 42 };
    /// Oldest version with `slat_percentiles`, without which no load reports the parts of its
    /// latency; its histogram logs are those of 3.33 and 3.42.
    pub(crate) const OLDEST: Self = Self { major: 3, minor: 18 };

    /// Reads `fio-3.33` or `fio-3.42-12-gabcdef`.
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.trim().strip_prefix("fio-")?.split(['.', '-']);
        Some(Self { major: numbers.next()?.parse().ok()?, minor: numbers.next()?.parse().ok()? })
    }

    /// The version of the fio on the path, if it can be used.
    ///
    /// # Errors
    /// Fails if there is none, or it is too old.
    pub(super) fn usable() -> Result<Self, Error> {
        let version = Self::installed()?;
        if version < Self::OLDEST {
            let text = format!("fio is {version}, {} is needed", Self::OLDEST);
            let hint = format!("install fio {} or later", Self::RECOMMENDED);
            return Err(Error::new(Kind::Program, text).hint(hint));
        }
        Ok(version)
    }

    /// The version of the fio on the path.
    ///
    /// # Errors
    /// Fails if there is none, or it does not say.
    pub(crate) fn installed() -> Result<Self, Error> {
        let output = Command::new("fio").arg("--version").output().map_err(not_started)?;
        let text = String::from_utf8_lossy(&output.stdout);
        Self::parse(&text).ok_or_else(|| {
            Error::new(Kind::Program, format!("`fio --version` answered `{}`", text.trim()))
                .hint("install fio 3.42 or later")
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Engine {
    /// Engines in order of preference. The page cache is used only when nothing else works.
    pub(super) const ALL: [Self; 3] = [
        Self { name: "io_uring", direct: true },
        Self { name: "libaio", direct: true },
        Self { name: "io_uring", direct: false },
    ];

    /// Engine for NBD servers; no cache of this machine is between.
    pub(super) const NBD: Self = Self { name: "nbd", direct: true };

    /// fio's key for the target.
    pub(super) fn target_key(self) -> &'static str {
        if self == Self::NBD { "uri" } else { "filename" }
    }

    /// The engine for the NBD server at `uri`, if this fio has it and can read there.
    ///
    /// # Errors
    /// Says what fio said.
    pub(super) fn probe_nbd(uri: &str) -> Result<Self, Error> {
        match Self::NBD.reads(uri) {
            Ok(()) => Ok(Self::NBD),
            Err(ReadFailure::Start(source)) => Err(not_started(source)),
            Err(ReadFailure::Read(line)) => {
                let text = format!("fio cannot read from {uri}: {line}");
                let hint = "fio needs its nbd engine (`fio --enghelp=nbd`): install one that was \
                            built with libnbd";
                Err(Error::new(Kind::Program, text).hint(hint))
            }
        }
    }

    /// The first engine that reads from `target`.
    ///
    /// # Errors
    /// Fails with the output of fio if no engine works.
    pub(crate) fn probe(target: &Path) -> Result<Self, Error> {
        let mut said = String::new();
        let name = target.to_string_lossy().replace(':', "\\:");
        for engine in Self::ALL {
            match engine.reads(&name) {
                Ok(()) => return Ok(engine),
                Err(ReadFailure::Start(source)) => return Err(not_started(source)),
                Err(ReadFailure::Read(line)) => said = line,
            }
        }
        let text = format!("fio cannot read from {}: {said}", target.display());
        Err(Error::new(Kind::Program, text).hint("`floatgate doctor` checks fio and the kernel"))
    }

    /// Reads one block of the target that fio calls `name`.
    fn reads(self, name: &str) -> Result<(), ReadFailure> {
        let output = Command::new("fio")
            .args(["--name=probe", "--readonly", "--rw=read", "--bs=4k", "--number_ios=1"])
            .args(["--allow_file_create=0", "--size=4k", "--output-format=terse"])
            .arg(format!("--ioengine={}", self.name))
            .arg(format!("--direct={}", u8::from(self.direct)))
            .arg(format!("--{}={name}", self.target_key()))
            .env("LC_ALL", "C")
            .output()
            .map_err(ReadFailure::Start)?;
        if output.status.success() {
            return Ok(());
        }
        let mut said = String::from_utf8_lossy(&output.stderr).into_owned();
        said.push_str(&String::from_utf8_lossy(&output.stdout));
        Err(ReadFailure::Read(reason(&said).unwrap_or_else(|| output.status.to_string())))
    }
}

/// Reason why a block could not be read.
enum ReadFailure {
    /// fio did not start.
    Start(io::Error),
    /// fio's message.
    Read(String),
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {}",
            self.name,
            if self.direct { "direct" } else { "through the page cache" }
        )
    }
}

/// The error of an fio that could not be started.
pub(super) fn not_started(source: io::Error) -> Error {
    let missing = source.kind() == io::ErrorKind::NotFound;
    let text = if missing { "fio is not installed" } else { "starting fio" };
    Error::new(Kind::Program, text)
        .hint("install it: apt install fio, dnf install fio or pacman -S fio")
        .source(source)
}

/// The line that says what went wrong.
pub(super) fn reason(said: &str) -> Option<String> {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let telling = |signs: &[&str]| {
        lines().find(|line| signs.iter().any(|sign| line.contains(sign))).map(str::to_owned)
    };
    // What follows an option that is unknown says no more than that a job was dropped.
    telling(&["Bad option"])
        .or_else(|| telling(&["error=", "io_u error", "failed to connect", "disconnected"]))
        .or_else(|| telling(&["fio: ", "rror"]))
        .or_else(|| lines().next().filter(|line| !line.starts_with('{')).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_releases_and_of_builds_in_between_are_read() {
        assert_eq!(Version::parse("fio-3.33\n"), Some(Version { major: 3, minor: 33 }));
        assert_eq!(Version::parse("fio-3.42-12-gabcdef"), Some(Version { major: 3, minor: 42 }));
        assert_eq!(Version::parse("fio 3"), None);
        assert!(Version::parse("fio-3.9") < Some(Version::RECOMMENDED));
        assert!(Version::parse("fio-3.17") < Some(Version::OLDEST), "it has no slat_percentiles");
        assert!(Version::parse("fio-3.18") >= Some(Version::OLDEST));
    }

    #[test]
    fn an_option_that_fio_does_not_know_is_the_reason() {
        let said = "fio: failed parsing slat_percentiles=1\n\
                    Bad option <slat_percentiles=1>\n\
                    fio: job global dropped";
        assert_eq!(reason(said).unwrap(), "Bad option <slat_percentiles=1>");
    }
}
