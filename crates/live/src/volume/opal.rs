//! Opal of a volume, in its folder.
//!
//! ```text
//!   volume.toml     ──► `opal = true`: no server without Opal serves it
//!   opal.json       ──► state: credentials, ranges, locks
//!   opal-mbr, opal-datastore ──► tables of bytes, sparse
//! ```
//!
//! **Invariants**
//! - A volume with Opal is not served without its state.
//! - Its files are for their owner alone: the state has the PSID.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use device::opal::{ByteTable, OpalState, PinCost, Place};
use device::{OpalDrive, OpalStore};
use zeroize::Zeroizing;

use crate::OpenError;
use crate::volume::folder::{has_opal, replace_private_file, update};

const STATE: &str = "opal.json";

/// Opal of a volume that is opened.
#[derive(Debug)]
struct OpalFolder {
    state: PathBuf,
    mbr: File,
    data_store: File,
}

/// Gives a volume Opal, with new credentials. Returns the files that were made.
pub(super) fn make_opal(volume: &Path) -> Result<Vec<PathBuf>, OpenError> {
    let state = volume.join(STATE);
    let failed = |source| OpenError::medium(&format!("writing {}", state.display()), source);
    let mut random = Zeroizing::new([0; 64]);
    fill_random(&mut *random).map_err(failed)?;
    let new = OpalState::new(&random, PinCost::default());
    let mut made = vec![state.clone()];
    for table in ByteTable::ALL {
        open_table(volume, table)?;
        made.push(volume.join(name(table)));
    }
    // The tables' entries in the folder are durable with this one.
    replace_private_file(&state, &new.to_bytes()).map_err(failed)?;
    update(volume, |described| {
        described.opal = true;
        Ok(())
    })?;
    Ok(made)
}

/// Returns the Opal of the volume in a folder; none of one without.
///
/// # Errors
/// Fails if there is no volume, or its state cannot be read: it would be served without locks.
pub fn open_opal(volume: &Path) -> Result<Option<OpalDrive>, OpenError> {
    if !has_opal(volume)? {
        return Ok(None);
    }
    let state = read_state(volume)?;
    let store = OpalFolder {
        state: volume.join(STATE),
        mbr: open_table(volume, ByteTable::Mbr)?,
        data_store: open_table(volume, ByteTable::DataStore)?,
    };
    Ok(Some(OpalDrive { state, store: Arc::new(store) }))
}

/// Returns the PSID of the volume in a folder, for who may read its files; none of one without
/// Opal.
///
/// # Errors
/// Fails as [`open_opal`].
pub fn psid(volume: &Path) -> Result<Option<String>, OpenError> {
    if !has_opal(volume)? {
        return Ok(None);
    }
    read_state(volume).map(|state| Some(state.psid().to_owned()))
}

/// True if a range of the volume in a folder is locked, or shadowed, once a server starts.
///
/// # Errors
/// Fails as [`open_opal`].
pub fn is_opal_locked(volume: &Path) -> Result<bool, OpenError> {
    if !has_opal(volume)? {
        return Ok(false);
    }
    let state = read_state(volume)?.powered_on();
    Ok(state.locking.is_some_and(|it| it.is_locked() || it.is_shadowed()))
}

fn read_state(volume: &Path) -> Result<OpalState, OpenError> {
    let path = volume.join(STATE);
    let bytes = fs::read(&path)
        .map_err(|source| OpenError::medium(&format!("reading {}", path.display()), source))?;
    OpalState::from_bytes(&Zeroizing::new(bytes)).map_err(|reason| {
        let what = format!("the Opal state in {} cannot be used: {reason}", path.display());
        OpenError::refused(format!("{what}; put the file back from a copy of the folder"))
    })
}

const fn name(table: ByteTable) -> &'static str {
    match table {
        ByteTable::Mbr => "opal-mbr",
        ByteTable::DataStore => "opal-datastore",
    }
}

fn open_table(volume: &Path, table: ByteTable) -> Result<File, OpenError> {
    let path = volume.join(name(table));
    let mut options = OpenOptions::new();
    let opened =
        options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
    opened.map_err(|source| OpenError::medium(&format!("opening {}", path.display()), source))
}

fn fill_random(mut buffer: &mut [u8]) -> io::Result<()> {
    while !buffer.is_empty() {
        let filled = rustix::rand::getrandom(&mut *buffer, rustix::rand::GetRandomFlags::empty())?;
        buffer = &mut buffer[filled..];
    }
    Ok(())
}

impl OpalFolder {
    const fn table(&self, table: ByteTable) -> &File {
        match table {
            ByteTable::Mbr => &self.mbr,
            ByteTable::DataStore => &self.data_store,
        }
    }
}

impl OpalStore for OpalFolder {
    fn keep(&self, state: &[u8]) -> Result<(), String> {
        replace_private_file(&self.state, state).map_err(|error| error.to_string())
    }

    fn read(&self, place: Place, buffer: &mut [u8]) -> Result<(), String> {
        let (file, mut at, mut rest) = (self.table(place.table), place.offset, buffer);
        while !rest.is_empty() {
            match file.read_at(rest, at) {
                // Never written.
                Ok(0) => {
                    rest.fill(0);
                    break;
                }
                Ok(read) => {
                    at += read as u64;
                    rest = &mut rest[read..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }

    fn write(&self, place: Place, bytes: &[u8]) -> Result<(), String> {
        let file = self.table(place.table);
        let written = file.write_all_at(bytes, place.offset).and_then(|()| file.sync_data());
        written.map_err(|error| error.to_string())
    }

    fn clear(&self, table: ByteTable) -> Result<(), String> {
        let file = self.table(table);
        file.set_len(0).and_then(|()| file.sync_all()).map_err(|error| error.to_string())
    }

    fn random(&self, buffer: &mut [u8]) -> Result<(), String> {
        fill_random(buffer).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use blockio::Bytes;

    use super::*;
    use crate::{Compression, CreateOptions, VolumeOptions, create};
    use device::opal::LockingSp;

    fn volume(folder: &Path, opal: bool) -> PathBuf {
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
        create(&options, &VolumeOptions { opal, ..VolumeOptions::default() }).unwrap();
        volume
    }

    #[test]
    fn a_volume_keeps_its_state_and_tables_for_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let volume = volume(folder.path(), true);
        let OpalDrive { state, store } = open_opal(&volume).unwrap().unwrap();
        assert_eq!(psid(&volume).unwrap().as_deref(), Some(state.psid()));
        for name in [STATE, "opal-mbr", "opal-datastore"] {
            let mode = fs::metadata(volume.join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
        let place = Place { table: ByteTable::Mbr, offset: (128 << 20) - 10 };
        store.write(place, &[7; 10]).unwrap();
        let mut changed = state.clone();
        changed.owner.tries = 3;
        assert!(!is_opal_locked(&volume).unwrap());
        let mut locking = LockingSp::activated(changed.owner.clone(), 512);
        // Open until the next power cycle.
        locking.ranges[1].length = 8;
        locking.ranges[1].is_read_lock_enabled = true;
        changed.locking = Some(locking);
        store.keep(&changed.to_bytes()).unwrap();
        assert!(is_opal_locked(&volume).unwrap());
        let OpalDrive { state, store } = open_opal(&volume).unwrap().unwrap();
        assert_eq!(state, changed);
        let mut bytes = [1; 20];
        store.read(Place { offset: place.offset - 10, ..place }, &mut bytes).unwrap();
        assert_eq!((&bytes[..10], &bytes[10..]), (&[0; 10][..], &[7; 10][..]));
        store.read(Place { table: ByteTable::DataStore, offset: 5 }, &mut bytes).unwrap();
        assert_eq!(bytes, [0; 20]);
        store.clear(ByteTable::Mbr).unwrap();
        store.read(place, &mut bytes[..10]).unwrap();
        assert_eq!(bytes[..10], [0; 10]);
    }

    #[test]
    fn a_volume_is_not_served_without_its_state() {
        let folder = tempfile::tempdir().unwrap();
        let volume = volume(folder.path(), true);
        let path = volume.join(STATE);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        assert!(open_opal(&volume).unwrap_err().to_string().contains(STATE));
        fs::remove_file(&path).unwrap();
        assert!(open_opal(&volume).is_err());
    }

    #[test]
    fn a_volume_has_opal_only_if_it_was_created_so() {
        let folder = tempfile::tempdir().unwrap();
        let volume = volume(folder.path(), false);
        assert!(open_opal(&volume).unwrap().is_none() && psid(&volume).unwrap().is_none());
        assert!(!fs::read_to_string(volume.join("volume.toml")).unwrap().contains("opal"));
    }
}
