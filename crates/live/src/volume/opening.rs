//! Opening a volume: its write buffer, and what acknowledged writes survive.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::witness::Witness;
use crate::medium::MappedFile;
use crate::status::Promise;
use crate::{Access, BufferMemory, Drive, Medium, OpenError};

/// Name of the write buffer in the folder of a volume.
const NAME: &str = "write-buffer";

/// Way in which a volume is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// Way in which its dies are accessed.
    pub access: Access,
    /// Promise about acknowledged writes; none: that of the volume.
    pub promise: Option<Promise>,
}

impl From<Access> for Opening {
    fn from(access: Access) -> Self {
        Self { access, promise: None }
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
    see: impl FnOnce(&Arc<dyn BufferMemory>),
) -> Result<Drive, OpenError> {
    let memory = open_buffer(volume)?;
    see(&memory);
    let drive = Drive::replay_buffer(media, witness, Some(&*memory))?;
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
