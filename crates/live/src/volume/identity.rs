//! Identity of a file or block device on the host: path, model and serial number, by which the
//! right disk is pulled.
//!
//! Model and serial number are those of udev's database, and where that has none, of sysfs: NVMe
//! (`device/serial`), SCSI and ATA (`device/vpd_pg80`, unit serial number page), virtio (`serial`).
//! A partition has those of its disk.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use blockio::text::is_unshown;

/// Bytes before the serial number in page 80h of a SCSI device.
const VPD_HEADER_BYTES: usize = 4;
/// Most characters that are taken of a model or serial number.
const CHARACTERS_MAX: usize = 80;

/// A file or block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MediumIdentity {
    pub(crate) path: String,
    /// True if nothing is there.
    pub(crate) is_missing: bool,
    /// Model of the block device; none of a file, or if neither source names it.
    pub(crate) model: Option<String>,
    /// Serial number of the block device; none as there.
    pub(crate) serial: Option<String>,
}

/// Directories of the system that describe block devices.
#[derive(Clone, Copy, Debug)]
struct Sources<'a> {
    udev: &'a Path,
    sysfs: &'a Path,
}

impl MediumIdentity {
    /// Returns the identity of the file or block device at a path.
    pub(crate) fn of(path: &Path) -> Self {
        let sources =
            Sources { udev: Path::new("/run/udev/data"), sysfs: Path::new("/sys/dev/block") };
        let found = fs::metadata(path);
        let is_missing = found.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        let device = found.ok().filter(|it| it.file_type().is_block_device());
        let (model, serial) = device.map_or((None, None), |device| {
            let number = device.rdev();
            sources.model_and_serial(rustix::fs::major(number), rustix::fs::minor(number))
        });
        Self { path: path.display().to_string(), is_missing, model, serial }
    }
}

impl Sources<'_> {
    fn model_and_serial(&self, major: u32, minor: u32) -> (Option<String>, Option<String>) {
        let known = fs::read_to_string(self.udev.join(format!("b{major}:{minor}")));
        let known = known.unwrap_or_default();
        let property = |name: &str| {
            let value = known.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            value.and_then(|value| printable(value.as_bytes()))
        };
        let folder = self.disk(major, minor);
        let file = |name: &str| printable(&fs::read(folder.join(name)).ok()?);
        let page = || {
            let page = fs::read(folder.join("device/vpd_pg80")).ok()?;
            printable(page.get(VPD_HEADER_BYTES..)?)
        };
        let model = property("E:ID_MODEL").or_else(|| file("device/model"));
        let serial = property("E:ID_SERIAL_SHORT")
            .or_else(|| file("device/serial"))
            .or_else(page)
            .or_else(|| file("serial"));
        (model, serial)
    }

    /// The folder of a disk, or of the disk that a partition lies on.
    fn disk(&self, major: u32, minor: u32) -> PathBuf {
        let folder = self.sysfs.join(format!("{major}:{minor}"));
        let folder = fs::canonicalize(&folder).unwrap_or(folder);
        match folder.parent() {
            Some(disk) if folder.join("partition").exists() => disk.to_owned(),
            _ => folder,
        }
    }
}

/// Returns the printable part of a text that a device reported; none if nothing is left.
fn printable(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let shown = text.chars().filter(|it| !is_unshown(*it)).take(CHARACTERS_MAX);
    let shown = shown.collect::<String>().trim().to_owned();
    (!shown.is_empty()).then_some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(folder: &Path, name: &str, contents: &[u8]) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    #[test]
    fn udev_comes_first_and_sysfs_where_it_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (udev, sysfs) = (folder.path().join("udev"), folder.path().join("sys"));
        let sources = Sources { udev: &udev, sysfs: &sysfs };
        let of = |minor| sources.model_and_serial(8, minor);
        put(&udev, "b8:0", b"S:disk\nE:ID_MODEL=QEMU_HARDDISK\nE:ID_SERIAL_SHORT=QM1\n");
        put(&sysfs, "8:0/device/model", b"something else\n");
        assert_eq!(of(0), (Some("QEMU_HARDDISK".into()), Some("QM1".into())));
        put(&sysfs, "8:1/device/model", b"PX600   \n");
        put(&sysfs, "8:1/device/serial", b" 1331G0009 \n");
        assert_eq!(of(1), (Some("PX600".into()), Some("1331G0009".into())));
        put(&sysfs, "8:2/device/vpd_pg80", b"\0\x80\0\x04Z1D2\0");
        assert_eq!(of(2), (None, Some("Z1D2".into())));
        put(&sysfs, "8:3/serial", b"virtio-1");
        assert_eq!(of(3), (None, Some("virtio-1".into())));
        assert_eq!(of(9), (None, None));
    }

    #[test]
    fn a_partition_has_the_serial_number_of_its_disk() {
        let folder = tempfile::tempdir().unwrap();
        let sources = Sources { udev: folder.path(), sysfs: folder.path() };
        put(folder.path(), "disk/device/serial", b"S1");
        put(folder.path(), "disk/part/partition", b"1\n");
        std::os::unix::fs::symlink("disk/part", folder.path().join("259:1")).unwrap();
        assert_eq!(sources.model_and_serial(259, 1), (None, Some("S1".into())));
    }

    #[test]
    fn a_file_is_known_by_its_path_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d0");
        put(folder.path(), "d0", b"");
        let identity = MediumIdentity::of(&path);
        assert_eq!((identity.model, identity.serial), (None, None));
        assert_eq!((identity.path, identity.is_missing), (path.display().to_string(), false));
        assert!(MediumIdentity::of(&folder.path().join("d1")).is_missing);
    }
}
