//! Opening a volume: its write buffer, and what acknowledged writes survive.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use status::Promise;

use crate::engine::dies::witness::Witness;
use crate::medium::MappedFile;
use crate::{Access, BufferMemory, Drive, Medium, OpenError, UnlockingKey, Upgrade};

/// Name of the write buffer in the folder of a volume.
const NAME: &str = "write-buffer";

/// Way in which a volume is opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// Way in which its dies are accessed.
    pub access: Access,
    /// Promise about acknowledged writes; none: that of the volume.
    pub promise: Option<Promise>,
    /// Treatment of a volume of an earlier media format.
    pub upgrade: Upgrade,
    /// Key of an encrypted volume.
    pub key: Option<UnlockingKey>,
}

impl From<Access> for Opening {
    fn from(access: Access) -> Self {
        Self { access, ..Self::default() }
    }
}

/// Path of the write buffer of the volume in a folder. The file is there while the volume is open,
/// and after the death of its server.
pub(crate) fn buffer_path(volume: &Path) -> PathBuf {
    volume.join(NAME)
}

/// The write buffer of the volume in a folder.
///
/// # Errors
/// Fails if there is one that cannot be read: it may hold what was acknowledged.
fn open_buffer(volume: &Path) -> Result<Arc<dyn BufferMemory>, OpenError> {
    opened(volume, MappedFile::open)
}

/// The write buffer of the volume in a folder, for reading: what is stored into it goes nowhere.
///
/// # Errors
/// As [`open_buffer`].
pub(super) fn view_buffer(volume: &Path) -> Result<Arc<dyn BufferMemory>, OpenError> {
    opened(volume, MappedFile::view)
}

fn opened(
    volume: &Path,
    open: fn(PathBuf) -> io::Result<MappedFile>,
) -> Result<Arc<dyn BufferMemory>, OpenError> {
    let path = buffer_path(volume);
    let attempted = format!("opening the write buffer {}", path.display());
    let memory = open(path).map_err(|source| OpenError::medium(&attempted, source))?;
    Ok(Arc::new(memory))
}

/// Dies of a volume, and the holder of the proof of what they must hold.
type ProvenMedia = (Vec<Box<dyn Medium>>, Option<Arc<dyn Witness>>);

/// Opens the drive over the dies of the volume in a folder, which are locked by now; `see` is shown
/// the write buffer.
pub(super) fn open_media(
    volume: &Path,
    (media, witness): ProvenMedia,
    promise: Promise,
    Opening { upgrade, key, .. }: &Opening,
    see: impl FnOnce(&Arc<dyn BufferMemory>),
) -> Result<Drive, OpenError> {
    let memory = open_buffer(volume)?;
    see(&memory);
    let memory_left = Some(&*memory);
    let drive = Drive::replay_buffer(media, witness, memory_left, *upgrade, key.as_ref())?;
    drive.make_promise(promise);
    if promise == Promise::ServerDeath {
        if let Err(error) = drive.begin_buffer(memory) {
            let path = buffer_path(volume);
            drive.write_through(Some(format!(
                "the write buffer {} cannot be had: {error}",
                path.display()
            )));
        }
    } else {
        memory.discard();
    }
    Ok(drive)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use blockio::Rng;

    use super::*;
    use crate::engine::dies::header_copies::newest_header;
    use crate::engine::drive::creation::format_as;
    use crate::format::header::FORMAT_VERSION_MIN;
    use crate::volume::example::three_dies;
    use crate::{CreateOptions, FileMedium, host_death};
    use device::{Device as _, Durability};

    const PAGE: [u8; 4096] = [7; 4096];
    /// One request after the other, each of which may be the last one.
    const ACCESS: Access = Access { is_direct: false, is_ringed: false };

    /// A volume of the oldest format that is read, closed, or as a power loss leaves it.
    fn old_volume(folder: &Path, is_closed: bool) -> CreateOptions {
        let options = three_dies(folder);
        Drive::create(&options).unwrap().close().unwrap();
        let shape = options.shape().unwrap();
        let open = |die: &PathBuf| -> Box<dyn Medium> {
            fs::File::options()
                .write(true)
                .open(die)
                .unwrap()
                .set_len(shape.die_bytes().0)
                .unwrap();
            Box::new(FileMedium::open(die, ACCESS).unwrap())
        };
        let media: Vec<Box<dyn Medium>> = options.dies.iter().map(open).collect();
        let drive = newest_header(&*media[0]).unwrap().unwrap().drive;
        format_as(FORMAT_VERSION_MIN, media, &shape, drive).unwrap();
        fs::remove_file(options.volume.join("dies.witness")).unwrap();
        let (access, upgrade) = (ACCESS, Upgrade::Later);
        let opening = Opening { access, upgrade, promise: Some(Promise::Nothing), key: None };
        let drive = Drive::open_as(&options.volume, opening).unwrap();
        drive.write(0, &PAGE, Durability::Durable).unwrap();
        if is_closed {
            drive.close().unwrap();
        }
        options
    }

    fn files(options: &CreateOptions) -> Vec<(PathBuf, Vec<u8>)> {
        let names = ["volume.toml", "dies.witness"].map(|name| options.volume.join(name));
        let all = options.dies.iter().cloned().chain(names);
        all.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    }

    /// The server dies at each change to any file while it upgrades a volume, and the power may go.
    #[test]
    fn an_upgrade_that_is_cut_off_at_any_change_to_a_file_loses_nothing() {
        let mut rng = Rng::new(0);
        for is_closed in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let options = old_volume(folder.path(), is_closed);
            let before = files(&options);
            for changes in 0.. {
                for (path, bytes) in &before {
                    fs::write(path, bytes).unwrap();
                }
                let _ = fs::remove_file(buffer_path(&options.volume));
                host_death::revive();
                host_death::order(changes);
                drop(Drive::open_as(&options.volume, ACCESS));
                let is_cut = host_death::has_come();
                if changes % 3 > 0 {
                    host_death::cut_power(&mut rng);
                }
                host_death::forget();
                let drive = Drive::open_as(&options.volume, ACCESS)
                    .unwrap_or_else(|error| panic!("{changes} changes: {error}"));
                let mut page = [0; 4096];
                drive.read(0, &mut page).unwrap();
                assert_eq!((page, drive.lost_dies()), (PAGE, vec![]), "{changes} changes");
                drive.close().unwrap();
                let lengths = options.dies.iter().map(|die| fs::metadata(die).unwrap().len());
                let expected = options.shape().unwrap().die_bytes_with_end().0;
                assert!(lengths.into_iter().all(|length| length == expected));
                if !is_cut {
                    assert!(changes > 20, "headers are among what was cut");
                    break;
                }
            }
        }
    }
}
