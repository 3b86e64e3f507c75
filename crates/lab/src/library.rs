//! Workloads, protocols and applications by name: those that are built in, and the user's own
//! files.
//!
//! ```text
//! ends in .toml ─► that file
//! a name ────────► ./workloads/*.toml
//!                  $XDG_CONFIG_HOME/floatgate/workloads/*.toml    (~/.config where it is unset)
//!                  built in
//! ```
//!
//! Protocols lie in `protocols` beside `workloads`, and may hold workloads of their own;
//! applications lie in `applications`.
//!
//! Invariant: a name means one thing. A file that takes the name of what is built in, and is not
//! the same, is refused: published figures and other people's results go by that name.

use std::path::{Path, PathBuf};
use std::{env, fmt, fs};

use serde::Serialize;
use workload::{Application, Protocol, SpecError, Workload, catalogue};

use crate::plan::Plan;
use crate::subject::{read_text, unknown};
use crate::{Error, Kind};

/// The folders in which files of the user are looked for, nearest first.
#[derive(Clone, Debug)]
pub struct Library {
    roots: Vec<PathBuf>,
}

/// Origin of a workload or a protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The program itself.
    BuiltIn,
    /// A file of the user.
    File(PathBuf),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built in"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A workload or a protocol, and where it comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry<T> {
    /// Workload or protocol.
    #[serde(flatten)]
    pub value: T,
    /// Origin of the thing.
    pub origin: Origin,
}

/// Kind of thing that a library can hold: workloads, protocols or applications.
pub trait Item: Clone + PartialEq + Sized {
    /// Word for one in messages.
    const WHAT: &'static str;
    /// Command that lists them.
    const LISTING: &'static str;
    /// Folder of the files.
    const FOLDER: &'static str;

    /// Reads one from the text of a TOML file.
    ///
    /// # Errors
    /// Says file, line and what is wrong.
    fn parse(text: &str, file: &str) -> Result<Self, SpecError>;
    /// Its name.
    fn name(&self) -> &str;
    /// Returns the built-in ones, ordered by name.
    fn built_in() -> Vec<Self>;
    /// The text of the file of the one that is built in and named `name`.
    fn built_in_text(name: &str) -> Option<&'static str>;
}

impl Item for Workload {
    const WHAT: &'static str = "workload";
    const LISTING: &'static str = "floatgate workloads";
    const FOLDER: &'static str = "workloads";

    fn parse(text: &str, file: &str) -> Result<Self, SpecError> {
        Self::parse(text, file)
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn built_in() -> Vec<Self> {
        catalogue::workloads()
    }

    fn built_in_text(name: &str) -> Option<&'static str> {
        catalogue::workload_text(name)
    }
}

impl Item for Protocol {
    const WHAT: &'static str = "protocol";
    const LISTING: &'static str = "floatgate protocols";
    const FOLDER: &'static str = "protocols";

    fn parse(text: &str, file: &str) -> Result<Self, SpecError> {
        Self::parse(text, file)
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn built_in() -> Vec<Self> {
        catalogue::protocols()
    }

    fn built_in_text(name: &str) -> Option<&'static str> {
        catalogue::protocol_text(name)
    }
}

impl Item for Application {
    const WHAT: &'static str = "application";
    const LISTING: &'static str = "floatgate app";
    const FOLDER: &'static str = "applications";

    fn parse(text: &str, file: &str) -> Result<Self, SpecError> {
        Self::parse(text, file)
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn built_in() -> Vec<Self> {
        catalogue::applications()
    }

    fn built_in_text(name: &str) -> Option<&'static str> {
        catalogue::application_text(name)
    }
}

impl Library {
    /// Looks in `roots`, nearest first, each with folders `workloads` and `protocols`.
    pub const fn new(roots: Vec<PathBuf>) -> Self {
        Self { roots }
    }

    /// Looks in the current folder and in the user's configuration.
    pub fn of_user() -> Self {
        let home = || Some(PathBuf::from(env::var_os("HOME")?).join(".config"));
        let absolute = |path: PathBuf| path.is_absolute().then_some(path);
        let configured = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).and_then(absolute);
        let configuration = configured.or_else(home).map(|path| path.join("floatgate"));
        Self::new([PathBuf::from(".")].into_iter().chain(configuration).collect())
    }

    /// Everything that can be named, ordered by name: what is built in, and the user's files. Of
    /// several files with one name the nearest one counts.
    pub fn all<T: Item>(&self) -> Vec<Entry<T>> {
        let built_in = T::built_in().into_iter();
        let mut all: Vec<Entry<T>> =
            built_in.map(|value| Entry { value, origin: Origin::BuiltIn }).collect();
        for entry in self.read::<T>().into_iter().filter_map(|(_, read)| read.ok()) {
            if !all.iter().any(|known| known.value.name() == entry.value.name()) {
                all.push(entry);
            }
        }
        all.sort_by(|a, b| a.value.name().cmp(b.value.name()));
        all
    }

    /// Errors in files of the user, nearest folder first.
    pub fn faults<T: Item>(&self) -> Vec<Error> {
        self.read::<T>().into_iter().filter_map(|(_, read)| read.err()).collect()
    }

    /// The one named `name`, or in the file `name`.
    ///
    /// # Errors
    /// Names the nearest one, or says what is wrong with the file.
    pub fn find<T: Item>(&self, name: &str) -> Result<Entry<T>, Error> {
        if Path::new(name).extension().is_some_and(|extension| extension == "toml") {
            return read_file(Path::new(name));
        }
        for (path, read) in self.read::<T>() {
            match read {
                // Built in, too, then: the same by another way.
                Ok(entry) if entry.value.name() == name => return Ok(entry),
                // A file of that name that cannot be used is meant, not another of that name.
                Err(error) if path.file_stem().is_some_and(|stem| stem == name) => {
                    return Err(error);
                }
                Ok(_) | Err(_) => {}
            }
        }
        let built_in = T::built_in().into_iter().find(|value| value.name() == name);
        built_in.map(|value| Entry { value, origin: Origin::BuiltIn }).ok_or_else(|| {
            let all = self.all::<T>();
            unknown((T::WHAT, T::LISTING), name, all.iter().map(|entry| entry.value.name()))
        })
    }

    /// The plan of `protocol`, whose workloads are its own, the user's or built in.
    ///
    /// # Errors
    /// Names the workload that is not there, or is something else elsewhere.
    pub fn plan(&self, protocol: &Protocol, seed: u64) -> Result<Plan, Error> {
        let mut known = protocol.workloads.clone();
        for own in &known {
            check_name(own, &format!("protocol {}", protocol.name))?;
        }
        let is_own = |other: &Workload| protocol.workloads.iter().any(|it| it.name == other.name);
        let others = self.all::<Workload>().into_iter().map(|entry| entry.value);
        known.extend(others.filter(|other| !is_own(other)));
        Plan::new(protocol, &known, seed)
    }

    /// Every file of the user, nearest folder first, and what is in it.
    fn read<T: Item>(&self) -> Vec<(PathBuf, Result<Entry<T>, Error>)> {
        let files = self.roots.iter().flat_map(|root| files_in(&root.join(T::FOLDER)));
        files.map(|path| (path.clone(), read_file(&path))).collect()
    }
}

/// The TOML files in `folder`, ordered by name; none where there is no such folder.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|it| it == "toml")).collect();
    files.sort();
    files
}

fn read_file<T: Item>(path: &Path) -> Result<Entry<T>, Error> {
    let (what, shown) = (T::WHAT, path.display().to_string());
    let value = T::parse(&read_text(path)?, &shown)
        .map_err(|source| Error::new(Kind::Input, format!("reading a {what}")).source(source))?;
    check_name(&value, &shown)?;
    Ok(Entry { value, origin: Origin::File(path.to_owned()) })
}

/// Refuses what takes the name of something else that is built in.
fn check_name<T: Item>(value: &T, place: &str) -> Result<(), Error> {
    let (what, name) = (T::WHAT, value.name());
    match T::built_in().into_iter().find(|known| known.name() == name) {
        Some(known) if known != *value => {
            let text =
                format!("{place}: a {what} named `{name}` is built in, and differs from this one");
            Err(Error::new(Kind::Input, text).hint(format!("give it another name than `{name}`")))
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
