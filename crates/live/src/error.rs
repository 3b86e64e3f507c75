//! Errors of creating and opening a drive.

use std::io;
use std::path::{Path, PathBuf};

use device::DeviceError;

use crate::format::header::{FORMAT_VERSION_ENCRYPTED as NEWEST, FORMAT_VERSION_MIN};
use crate::format::media_keys::LockedCause;

/// Error of creating or opening a drive.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A call to the system failed.
    #[error("{attempted}: {source}")]
    System {
        /// Operation that failed.
        attempted: String,
        /// Error that the system returned.
        source: io::Error,
    },
    /// The request is impossible, such as a capacity that the dies have no room for.
    #[error("{what}")]
    Refused {
        /// Description of the request, and of what would be possible.
        what: String,
    },
    /// The folder holds no drive.
    #[error("{} is not the folder of a volume: {reason}", path.display())]
    NoDrive {
        /// Folder of the drive.
        path: PathBuf,
        /// Description of what it is, or of what it lacks.
        reason: String,
    },
    /// The description of the drive in its folder cannot be used.
    #[error("{}: {reason}", path.join("volume.toml").display())]
    Description {
        /// Folder of the drive.
        path: PathBuf,
        /// Description of what is wrong with it.
        reason: String,
    },
    /// No die that the folder lists is there.
    #[error(
        "none of the dies that {} lists is there; the first is {}",
        path.join("volume.toml").display(),
        first.display()
    )]
    NoDies {
        /// Folder of the drive.
        path: PathBuf,
        /// The first die of the list.
        first: PathBuf,
    },
    /// The dies that the folder lists are those of another volume.
    #[error(
        "the paths in {} lead to dies of another volume: {what}",
        path.join("volume.toml").display()
    )]
    OtherVolume {
        /// Folder of the drive.
        path: PathBuf,
        /// Description of what is at each path, and of the volume that is meant.
        what: String,
    },
    /// A process has the drive open.
    #[error("{} is in use by {by}; stop that first", path.display())]
    InUse {
        /// Folder of the drive.
        path: PathBuf,
        /// Name of the process, as far as it is known.
        by: String,
    },
    /// A die is of another format.
    #[error(
        "die {die} has format {found}, and this version supports {FORMAT_VERSION_MIN} to \
         {NEWEST}; {}",
        if *found > NEWEST { "use a newer version" } else { "create the volume again" }
    )]
    Version {
        /// Index of the die as it was named.
        die: usize,
        /// Version of its format.
        found: u32,
    },
    /// More dies are missing than the drive can do without.
    #[error("{missing} of {dies} dies are missing or have failed; at most {spare} can be{why}")]
    DiesMissing {
        /// Number of dies that are missing.
        missing: u32,
        /// Number of dies of the drive.
        dies: u32,
        /// Number of dies that the drive can do without.
        spare: u32,
        /// Reasons why given media are not used, each after a semicolon; may be empty.
        why: String,
    },
    /// The dies that are there hold an earlier state than the folder of the drive proves.
    #[error("{what}")]
    Stale {
        /// Description of what they have, and of what they lack.
        what: String,
    },
    /// The drive cannot be unlocked.
    #[error("the volume cannot be unlocked: {0}; nothing was changed")]
    Locked(LockedCause),
    /// Something that must be there is not, and redundancy does not restore it.
    #[error("the volume is damaged: {what}; nothing was changed")]
    Damaged {
        /// Description of what is lost.
        what: String,
    },
    /// The parameters of the format are impossible.
    #[error(transparent)]
    Format(#[from] ftl::ConfigError),
    /// Recovery of the drive failed half-way; it may be tried again.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl OpenError {
    pub(crate) fn medium(attempted: &str, source: io::Error) -> Self {
        Self::System { attempted: attempted.to_owned(), source }
    }

    /// Returns instructions for a user for whom opening the drive of a folder failed with this
    /// error: commands as they are to be typed, in backticks.
    pub fn remedy(&self, folder: &Path) -> String {
        let folder = shell_word(folder);
        let recover = format!(
            "`floatgate volume recover {folder}` reports what can still be read; with --out IMAGE \
             it copies that, with --nbd ADDRESS it serves it read-only"
        );
        match self {
            Self::System { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                format!("allow this user to read and write {folder} and its dies")
            }
            Self::System { source, .. } if source.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                format!("mount the file system of {folder} and its dies so that it can be written")
            }
            Self::System { .. } => {
                format!(
                    "`floatgate volume status {folder}` names the dies; try again once they \
                     answer"
                )
            }
            Self::Refused { .. } | Self::Format(_) => {
                format!("`floatgate volume status {folder}` shows the properties of the volume")
            }
            Self::Description { .. } => {
                format!(
                    "correct {folder}/volume.toml: it has the lines `schema = 1` and `dies = \
                     [\"PATH\", ...]` with each die once; creating the volume again would erase it"
                )
            }
            Self::NoDies { .. } => {
                format!(
                    "correct `dies` in {folder}/volume.toml, or mount the file system of the dies"
                )
            }
            Self::OtherVolume { .. } => format!("correct `dies` in {folder}/volume.toml"),
            Self::NoDrive { path, .. } if path.exists() && !path.is_dir() => {
                format!("name the folder of the volume; {folder} may be one of its dies")
            }
            Self::NoDrive { path, .. } if was_volume(path) => written_again(&folder),
            Self::NoDrive { .. } => format!(
                "check the spelling of {folder}; `floatgate volume create {folder} --dies PATH \
                 --size SIZE` creates a volume"
            ),
            Self::InUse { .. } => {
                format!(
                    "`floatgate volume status {folder}` shows its state, as its server \
                     reports it"
                )
            }
            Self::Version { .. } => {
                format!(
                    "copy the data with the `floatgate` that created {folder}, and create it again"
                )
            }
            Self::DiesMissing { .. } => {
                format!("restore the missing dies in their latest state; failing that, {recover}")
            }
            Self::Stale { .. } => format!(
                "bring back the dies that are named, in their latest state; failing that, \
                 {recover}, and `floatgate volume serve {folder} --force-stale` goes on without \
                 what they lack"
            ),
            Self::Locked(cause) => remedy_of_lock(*cause, &folder),
            Self::Damaged { .. } => recover,
            Self::Device(_) => {
                format!("open it again: durable data is kept; failing that, {recover}")
            }
        }
    }

    /// As [`OpenError::remedy`], for a user who means a volume that exists: nothing that creates
    /// one, which would erase it.
    pub fn remedy_of_existing(&self, folder: &Path) -> String {
        match self {
            Self::NoDrive { path, .. } if !path.exists() || path.is_dir() => {
                written_again(&shell_word(folder))
            }
            _ => self.remedy(folder),
        }
    }

    pub(crate) const fn refused(what: String) -> Self {
        Self::Refused { what }
    }
}

/// As [`OpenError::remedy`], of a volume that cannot be unlocked.
fn remedy_of_lock(cause: LockedCause, folder: &str) -> String {
    match cause {
        LockedCause::NoKey | LockedCause::WrongKey => format!(
            "give {folder} the key that it was locked with: --key-file FILE or --key-command \
             COMMAND"
        ),
        LockedCause::KeysErased => {
            format!("create {folder} again: nothing that it stored can be decrypted")
        }
        LockedCause::NotEncrypted => format!("leave out the key to open {folder}"),
    }
}

/// True if a folder has files that volumes have besides their description.
fn was_volume(folder: &Path) -> bool {
    let names = ["events.jsonl", "events.old.jsonl", "lifetime.json", "operations.json"];
    names.iter().any(|name| folder.join(name).exists())
}

fn written_again(folder: &str) -> String {
    format!(
        "check the spelling of {folder}; if it was a volume, write {folder}/volume.toml again: \
         `schema = 1`, `dies = [\"PATH\", ...]`, and `spares` and each `[[export]]` that it had"
    )
}

/// A path as a shell takes it for one word.
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of each kind; a new kind does not compile before it is listed here.
    fn one_of_each() -> Vec<OpenError> {
        let listed = |error: &OpenError| match error {
            OpenError::System { .. }
            | OpenError::Refused { .. }
            | OpenError::NoDrive { .. }
            | OpenError::Description { .. }
            | OpenError::NoDies { .. }
            | OpenError::OtherVolume { .. }
            | OpenError::InUse { .. }
            | OpenError::Version { .. }
            | OpenError::DiesMissing { .. }
            | OpenError::Stale { .. }
            | OpenError::Locked(_)
            | OpenError::Damaged { .. }
            | OpenError::Format(_)
            | OpenError::Device(_) => 14,
        };
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let all = vec![
            OpenError::System { attempted: "opening a die".into(), source: denied },
            OpenError::refused("none of the media is a die of a volume".into()),
            OpenError::NoDrive { path: "volume".into(), reason: "it has no volume.toml".into() },
            OpenError::Description { path: "volume".into(), reason: "no dies".into() },
            OpenError::NoDies { path: "volume".into(), first: "/gone/d0.img".into() },
            OpenError::OtherVolume { path: "volume".into(), what: "d0 is die 0 of another".into() },
            OpenError::InUse { path: "volume".into(), by: "process 7".into() },
            OpenError::Version { die: 0, found: 2 },
            OpenError::DiesMissing { missing: 2, dies: 4, spare: 1, why: String::new() },
            OpenError::Stale { what: "die 1 has what was written last".into() },
            OpenError::Locked(LockedCause::WrongKey),
            OpenError::Damaged { what: "batch 5 is lost".into() },
            OpenError::Format(ftl::ConfigError::TooLarge { pages: 2, page_kib: 4, limit: 1 }),
            OpenError::Device(DeviceError::ReadOnly),
        ];
        assert_eq!(all.len(), listed(&all[0]), "one of each kind");
        all
    }

    #[test]
    fn every_error_has_a_remedy_that_names_the_folder() {
        for error in one_of_each() {
            let remedy = error.remedy(Path::new("/srv/drives/d 1"));
            assert!(remedy.contains("'/srv/drives/d 1'"), "{error}: {remedy}");
            let is_lasting = matches!(
                error,
                OpenError::DiesMissing { .. }
                    | OpenError::Stale { .. }
                    | OpenError::Damaged { .. }
                    | OpenError::Device(_)
            );
            let recovers = remedy.contains("`floatgate volume recover '/srv/drives/d 1'`");
            assert_eq!(recovers, is_lasting, "{error}: {remedy}");
        }
    }

    #[test]
    fn a_folder_that_was_a_volume_is_not_to_be_created_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let error = OpenError::NoDrive { path: path.into(), reason: "it has none".into() };
        let creates = |remedy: String| remedy.contains("create");
        assert!(creates(error.remedy(path)) && !creates(error.remedy_of_existing(path)));
        std::fs::write(path.join("events.jsonl"), "").unwrap();
        let remedy = error.remedy(path);
        assert!(remedy.contains("`schema = 1`") && !creates(remedy));
    }

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        assert_eq!(shell_word(Path::new("/srv/a-1")), "/srv/a-1");
        assert_eq!(shell_word(Path::new("it's")), r"'it'\''s'");
        assert_eq!(shell_word(Path::new("")), "''");
    }
}
