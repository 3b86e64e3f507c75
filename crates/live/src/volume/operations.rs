//! Changes that hosts made to a volume, stored in its folder: numbers, block sizes and protection
//! of namespaces, sectors marked as unreadable, sanitizes and self-tests.
//!
//! ```text
//!   volume.toml     ──► the namespaces, by name, with offset and size
//!   operations.json ──► their numbers and properties, and the operation under way
//! ```
//!
//! The two files are replaced one after the other, each as a whole. If a crash comes between them,
//! the next server ignores a namespace that only `operations.json` has, and gives the first free
//! number to one that only `volume.toml` has.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use device::operator::{KeptNamespace, PersistentState, Sectors};
use device::{
    PersistentReservations, Registration, ReservationKind, SanitizeState, SelfTest, SelfTestEnd,
    SelfTestResult,
};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use status::Namespace;
use status::Refusal;

use crate::volume::folder::replace_file;
use crate::{Namespaces, OpenError};

const NAME: &str = "operations.json";

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct OperationsFile {
    namespaces: Vec<FileNamespace>,
    sanitize: Sanitize,
    exit_is_free: bool,
    keeps_blocks: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_crypto: bool,
    sanitizes_ended: u64,
    self_tests: Vec<FileSelfTest>,
}

#[derive(Debug, Serialize, Deserialize)]
struct FileNamespace {
    id: u32,
    name: String,
    block_bytes: u32,
    #[serde(default)]
    is_protected: bool,
    #[serde(default)]
    is_private: bool,
    /// Ranges of sectors: the first one, and the one after the last.
    #[serde(default)]
    unreadable: Vec<(u64, u64)>,
    #[serde(default)]
    reservations: FileReservations,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct FileReservations {
    is_persistent: bool,
    registrations: Vec<FileRegistration>,
    /// Number of the kind of the reservation.
    #[serde(deserialize_with = "known_kind")]
    kind: Option<u8>,
    holder: Option<[u8; 16]>,
}

#[derive(Debug, Serialize, Deserialize)]
struct FileRegistration {
    host: [u8; 16],
    key: u64,
}

/// Reads the kind of a reservation. One that is not known is refused: the namespace would be open.
fn known_kind<'de, D: Deserializer<'de>>(file: D) -> Result<Option<u8>, D::Error> {
    let kind = Option::<u8>::deserialize(file)?;
    let Some(unknown) = kind.filter(|it| ReservationKind::of(*it).is_none()) else {
        return Ok(kind);
    };
    Err(D::Error::custom(format!("the kind of a reservation is {unknown}, must be 1 to 6")))
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Sanitize {
    #[default]
    Never,
    Done,
    Running,
    Failed,
}

#[derive(Debug, Serialize, Deserialize)]
struct FileSelfTest {
    is_extended: bool,
    end: FileSelfTestEnd,
    power_on_hours: u64,
    namespace: Option<u32>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FileSelfTestEnd {
    Passed,
    Aborted,
    Formatted,
    Sanitized,
    Failed { namespace: u32, lba: u64 },
}

/// Loads the changes that hosts made to the volume in a folder. Namespaces without any have blocks
/// of `block_bytes`.
///
/// # Errors
/// Fails if there is no volume, its namespaces are invalid, or the file of changes cannot be read,
/// since a sanitize may be under way.
pub fn load_operations(volume: &Path, block_bytes: u32) -> Result<PersistentState, OpenError> {
    let file = read_file(volume)?;
    let places = Namespaces::of(volume)?;
    let whole = Namespace { name: String::new(), offset_bytes: 0, size_bytes: 0 };
    let is_whole = places.is_empty();
    let places: Vec<Namespace> =
        if is_whole { vec![whole] } else { places.iter().cloned().collect() };
    let mut known: BTreeMap<String, FileNamespace> =
        file.namespaces.into_iter().map(|it| (it.name.clone(), it)).collect();
    known.retain(|name, _| places.iter().any(|place| place.name == *name));
    let mut taken: Vec<u32> = known.values().map(|it| it.id).collect();
    let mut namespaces: Vec<KeptNamespace> = Vec::new();
    for Namespace { name, offset_bytes, size_bytes } in places {
        let known = known.remove(&name).unwrap_or_else(|| {
            let id = (1..=u32::MAX).find(|id| !taken.contains(id)).expect("there are more numbers");
            taken.push(id);
            let name = name.clone();
            let (is_protected, is_private, unreadable) = Default::default();
            let reservations = FileReservations::default();
            FileNamespace {
                id,
                name,
                block_bytes,
                is_protected,
                is_private,
                unreadable,
                reservations,
            }
        });
        namespaces.push(KeptNamespace {
            id: known.id,
            name,
            offset: offset_bytes,
            size: (!is_whole).then_some(size_bytes),
            block_bytes: known.block_bytes,
            unreadable: Sectors::from_iter(known.unreadable),
            is_protected: known.is_protected,
            is_private: known.is_private,
            reservations: known.reservations.into(),
        });
    }
    namespaces.sort_by_key(|it| it.id);
    Ok(PersistentState {
        namespaces,
        sanitize: match file.sanitize {
            Sanitize::Never => SanitizeState::Never,
            Sanitize::Done => SanitizeState::Done,
            Sanitize::Running => SanitizeState::Running,
            Sanitize::Failed => SanitizeState::Failed,
        },
        exit_is_free: file.exit_is_free,
        keeps_blocks: file.keeps_blocks,
        is_crypto: file.is_crypto,
        sanitizes_ended: file.sanitizes_ended,
        self_tests: file.self_tests.into_iter().map(SelfTestResult::from).collect(),
    })
}

/// Reads the file of changes in a folder; without one, hosts changed nothing.
fn read_file(volume: &Path) -> Result<OperationsFile, OpenError> {
    let path = volume.join(NAME);
    match fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
            let what = format!("{NAME} of {}: {error}", volume.display());
            OpenError::refused(format!("{what}; remove it to forget what hosts changed"))
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(OperationsFile::default()),
        Err(error) => Err(OpenError::medium(&format!("reading {}", path.display()), error)),
    }
}

/// Returns the reason why namespaces of the volume in a folder will refuse all commands when it is
/// served.
///
/// # Errors
/// As [`load_operations`].
pub(crate) fn refusal(volume: &Path) -> Result<Option<Refusal>, OpenError> {
    Ok(match read_file(volume)?.sanitize {
        Sanitize::Never | Sanitize::Done => None,
        Sanitize::Running => Some(Refusal::SanitizeUnfinished),
        Sanitize::Failed => Some(Refusal::SanitizeFailed),
    })
}

/// Stores the changes that hosts made to the volume in a folder.
///
/// # Errors
/// Fails if there is no volume, or the system refuses.
pub fn keep_operations(volume: &Path, kept: &PersistentState) -> Result<(), OpenError> {
    let file = OperationsFile {
        namespaces: kept.namespaces.iter().map(FileNamespace::from).collect(),
        sanitize: match kept.sanitize {
            SanitizeState::Never => Sanitize::Never,
            SanitizeState::Done => Sanitize::Done,
            SanitizeState::Running => Sanitize::Running,
            SanitizeState::Failed => Sanitize::Failed,
        },
        exit_is_free: kept.exit_is_free,
        keeps_blocks: kept.keeps_blocks,
        is_crypto: kept.is_crypto,
        sanitizes_ended: kept.sanitizes_ended,
        self_tests: kept.self_tests.iter().map(FileSelfTest::from).collect(),
    };
    let path = volume.join(NAME);
    let bytes = serde_json::to_vec(&file).expect("numbers and texts become JSON");
    let written = replace_file(&path, &bytes);
    written.map_err(|source| OpenError::medium(&format!("writing {}", path.display()), source))?;
    let places = kept.namespaces.iter().filter_map(|it| {
        let (name, offset_bytes) = (it.name.clone(), it.offset);
        it.size.map(|size_bytes| Namespace { name, offset_bytes, size_bytes })
    });
    let mut places: Vec<Namespace> = places.collect();
    let before = Namespaces::of(volume)?;
    // In their previous order, then the new ones.
    places.sort_by_key(|it| {
        before.iter().position(|other| other.name == it.name).unwrap_or(usize::MAX)
    });
    if before.iter().eq(&places) {
        return Ok(());
    }
    Namespaces::new(places).keep(volume)
}

impl From<&KeptNamespace> for FileNamespace {
    fn from(kept: &KeptNamespace) -> Self {
        Self {
            id: kept.id,
            name: kept.name.clone(),
            block_bytes: kept.block_bytes,
            is_protected: kept.is_protected,
            is_private: kept.is_private,
            unreadable: kept.unreadable.runs().collect(),
            reservations: FileReservations::from(&kept.reservations),
        }
    }
}

impl From<FileReservations> for PersistentReservations {
    fn from(file: FileReservations) -> Self {
        let registrations = file.registrations.into_iter();
        let registration = |it: FileRegistration| Registration { host: it.host, key: it.key };
        Self {
            is_persistent: file.is_persistent,
            registrations: registrations.map(registration).collect(),
            kind: file.kind.and_then(ReservationKind::of),
            holder: file.holder,
        }
    }
}

impl From<&PersistentReservations> for FileReservations {
    fn from(kept: &PersistentReservations) -> Self {
        let registration = |it: &Registration| FileRegistration { host: it.host, key: it.key };
        Self {
            is_persistent: kept.is_persistent,
            registrations: kept.registrations.iter().map(registration).collect(),
            kind: kept.kind.map(|kind| kind as u8),
            holder: kept.holder,
        }
    }
}

impl From<FileSelfTest> for SelfTestResult {
    fn from(file: FileSelfTest) -> Self {
        let end = match file.end {
            FileSelfTestEnd::Passed => SelfTestEnd::Passed,
            FileSelfTestEnd::Aborted => SelfTestEnd::Aborted,
            FileSelfTestEnd::Formatted => SelfTestEnd::Formatted,
            FileSelfTestEnd::Sanitized => SelfTestEnd::Sanitized,
            FileSelfTestEnd::Failed { namespace, lba } => SelfTestEnd::Failed { namespace, lba },
        };
        let test = if file.is_extended { SelfTest::Extended } else { SelfTest::Short };
        let FileSelfTest { power_on_hours, namespace, .. } = file;
        Self { test, end, power_on_hours, namespace }
    }
}

impl From<&SelfTestResult> for FileSelfTest {
    fn from(result: &SelfTestResult) -> Self {
        let end = match result.end {
            SelfTestEnd::Passed => FileSelfTestEnd::Passed,
            SelfTestEnd::Aborted => FileSelfTestEnd::Aborted,
            SelfTestEnd::Formatted => FileSelfTestEnd::Formatted,
            SelfTestEnd::Sanitized => FileSelfTestEnd::Sanitized,
            SelfTestEnd::Failed { namespace, lba } => FileSelfTestEnd::Failed { namespace, lba },
        };
        let is_extended = result.test == SelfTest::Extended;
        let SelfTestResult { power_on_hours, namespace, .. } = *result;
        Self { is_extended, end, power_on_hours, namespace }
    }
}

#[cfg(test)]
mod tests {
    use blockio::Bytes;

    use super::*;
    use crate::{CreateOptions, VolumeOptions, create};
    use status::Compression;

    fn volume(folder: &Path, exports: &[(&str, u64)]) -> std::path::PathBuf {
        let volume = folder.join("volume");
        let options = CreateOptions {
            volume: volume.clone(),
            dies: vec![folder.join("die")],
            size: Bytes(32 << 20),
            is_protected: false,
            over_provisioning: 0.5,
            compression: Compression::None,
            physical: None,
            unit: None,
        };
        let sizes: Vec<(String, Bytes)> =
            exports.iter().map(|(name, size)| ((*name).to_owned(), Bytes(*size))).collect();
        let namespaces = Namespaces::laid_out(&sizes, options.size).unwrap();
        create(&options, &VolumeOptions { namespaces, ..VolumeOptions::default() }).unwrap();
        volume
    }

    #[test]
    fn what_hosts_changed_is_found_again_by_the_next_server() {
        let folder = tempfile::tempdir().unwrap();
        let volume = volume(folder.path(), &[("a", 4 << 20), ("b", 8 << 20)]);
        let mut kept = load_operations(&volume, 4096).unwrap();
        let found: Vec<_> = kept.namespaces.iter().map(|it| (it.id, &*it.name)).collect();
        assert_eq!(found, [(1, "a"), (2, "b")]);
        assert_eq!(kept.namespaces[1].size, Some(8 << 20));
        kept.namespaces.remove(0);
        kept.namespaces[0].unreadable.add(8, 16);
        kept.namespaces[0].block_bytes = 512;
        kept.namespaces[0].is_protected = true;
        kept.namespaces[0].is_private = true;
        kept.namespaces[0].reservations = PersistentReservations {
            is_persistent: true,
            registrations: vec![Registration { host: [3; 16], key: u64::MAX }],
            kind: Some(ReservationKind::ExclusiveAccess),
            holder: Some([3; 16]),
        };
        kept.keeps_blocks = true;
        kept.is_crypto = true;
        kept.sanitize = SanitizeState::Running;
        let end = SelfTestEnd::Failed { namespace: 2, lba: 9 };
        let result =
            SelfTestResult { test: SelfTest::Extended, end, power_on_hours: 3, namespace: None };
        kept.self_tests.push(result);
        keep_operations(&volume, &kept).unwrap();
        assert_eq!(load_operations(&volume, 4096).unwrap(), kept);
        assert_eq!(Namespaces::of(&volume).unwrap().iter().count(), 1);
        // Without any the volume is whole again.
        keep_operations(&volume, &PersistentState::default()).unwrap();
        let whole = load_operations(&volume, 4096).unwrap();
        assert_eq!((whole.namespaces[0].id, whole.namespaces[0].size), (1, None));
    }

    #[test]
    fn a_closed_volume_whose_sanitize_failed_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let volume = volume(folder.path(), &[]);
        let told = |sanitize| {
            let kept = PersistentState { sanitize, ..load_operations(&volume, 512).unwrap() };
            keep_operations(&volume, &kept).unwrap();
            crate::inspect(&volume).unwrap().health.problems.into_iter().next()
        };
        let text = |sanitize| told(sanitize).map(|it| it.text).unwrap_or_default();
        assert_eq!((told(SanitizeState::Never), told(SanitizeState::Done)), (None, None));
        assert!(text(SanitizeState::Failed).starts_with("The last sanitize failed"));
        assert!(text(SanitizeState::Running).starts_with("A sanitize has not ended"));
    }

    #[test]
    fn a_file_that_cannot_be_read_keeps_a_volume_from_being_served() {
        let folder = tempfile::tempdir().unwrap();
        let volume = volume(folder.path(), &[]);
        fs::write(volume.join(NAME), "{").unwrap();
        let error = load_operations(&volume, 512).unwrap_err().to_string();
        assert!(error.contains("operations.json"), "{error}");
        let reserved = r#"{"is_persistent":true,"registrations":[],"kind":7,"holder":null}"#;
        let namespace =
            format!(r#"{{"id":1,"name":"","block_bytes":512,"reservations":{reserved}}}"#);
        fs::write(volume.join(NAME), format!(r#"{{"namespaces":[{namespace}]}}"#)).unwrap();
        let error = load_operations(&volume, 512).unwrap_err().to_string();
        assert!(error.contains("reservation is 7"), "{error}");
    }
}
