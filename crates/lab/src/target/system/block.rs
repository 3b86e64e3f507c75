//! One block device as sysfs shows it: a disk, a partition, a loop, dm or md device.

use std::fs;
use std::path::{Path, PathBuf};

use super::DeviceNumber;

/// One block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    name: String,
    folder: PathBuf,
    device: DeviceNumber,
}

impl Block {
    /// The block device whose sysfs folder is, or is linked from, `folder`.
    pub fn read(folder: &Path) -> Option<Self> {
        let folder = fs::canonicalize(folder).ok()?;
        let device = DeviceNumber::parse(fs::read_to_string(folder.join("dev")).ok()?.trim())?;
        let name = folder.file_name()?.to_str()?.to_owned();
        Some(Self { name, folder, device })
    }

    /// Kernel name, such as `sda1`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Path of the node, such as `/dev/sda1`.
    pub fn node(&self) -> String {
        format!("/dev/{}", self.name.replace('!', "/"))
    }

    /// Number.
    pub fn device(&self) -> DeviceNumber {
        self.device
    }

    /// An attribute such as `queue/scheduler`; nothing where it is absent or empty.
    pub fn attribute(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.folder.join(name)).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// An attribute that is a whole number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.attribute(name)?.parse().ok()
    }

    /// Capacity in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.number("size").unwrap_or_default() * blockio::SECTOR_BYTES
    }

    /// True if the kernel refuses writes to it.
    pub fn read_only(&self) -> bool {
        self.number("ro") == Some(1)
    }

    /// True if it is a partition of a disk.
    pub fn is_partition(&self) -> bool {
        self.folder.join("partition").exists()
    }

    /// The disk that it is a part of, or itself.
    #[must_use]
    pub fn disk(&self) -> Self {
        let parent = self.is_partition().then(|| Self::read(self.folder.parent()?)).flatten();
        parent.unwrap_or_else(|| self.clone())
    }

    /// Its partitions, by number of the device.
    pub fn partitions(&self) -> Vec<Self> {
        self.linked("").into_iter().filter(Self::is_partition).collect()
    }

    /// Devices built on top of it: LVM volumes, MD arrays, dm-crypt.
    pub fn holders(&self) -> Vec<Self> {
        self.linked("holders")
    }

    /// The disks that it is stored on in the end: through partitions, LVM, MD, dm.
    pub fn disks_below(&self) -> Vec<Self> {
        let slaves = self.linked("slaves");
        if slaves.is_empty() {
            return vec![self.disk()];
        }
        slaves.iter().flat_map(Self::disks_below).collect()
    }

    /// World-wide name of the disk, which a namespace of NVMe and a LUN of SCSI have; absent of
    /// other disks.
    pub fn wwid(&self) -> Option<String> {
        let disk = self.disk();
        disk.attribute("wwid").or_else(|| disk.attribute("device/wwid"))
    }

    /// True if `self` and `other`, both whole disks, are one drive, of which each path to it has a
    /// node unless a multipath driver joins them.
    pub fn is_same_drive(&self, other: &Self) -> bool {
        self == other || self.wwid().is_some_and(|wwid| other.wwid() == Some(wwid))
    }

    /// True if it is an NVMe namespace or a partition of one.
    pub fn is_nvme(&self) -> bool {
        self.name.starts_with("nvme")
    }

    /// True if it is an ATA drive or a partition of one.
    pub fn is_ata(&self) -> bool {
        self.disk().attribute("device/vendor").is_some_and(|vendor| vendor == "ATA")
    }

    /// True if it is connected through USB.
    pub fn is_on_usb(&self) -> bool {
        self.folder.iter().any(|part| part.to_string_lossy().starts_with("usb"))
    }

    /// Names of the other namespaces of an NVMe controller.
    pub fn namespaces_beside(&self) -> Vec<String> {
        let Some((controller, _)) = self.name.rsplit_once('n') else { return Vec::new() };
        let siblings = self.folder.parent().into_iter().flat_map(fs::read_dir).flatten().flatten();
        let mut names: Vec<String> = siblings
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| *name != self.name)
            .filter(|name| name.rsplit_once('n').is_some_and(|(of, _)| of == controller))
            .collect();
        names.sort();
        names
    }

    /// Temperature in whole degrees Celsius, from the kernel's sensor: of several disks below, that
    /// of the hottest.
    pub fn temperature_c(&self) -> Option<i64> {
        self.disks_below().iter().filter_map(|disk| disk.sensed_c("temp1_input")).max()
    }

    /// The temperature from which on the disk warns of heat, in whole degrees Celsius: of several
    /// disks below, the lowest.
    pub fn temperature_warning_c(&self) -> Option<i64> {
        self.disks_below().iter().filter_map(|disk| disk.sensed_c("temp1_max")).min()
    }

    /// The temperature that the disk calls critical, in whole degrees Celsius: of several disks
    /// below, the lowest.
    pub fn temperature_critical_c(&self) -> Option<i64> {
        self.disks_below().iter().filter_map(|disk| disk.sensed_c("temp1_crit")).min()
    }

    /// Power in watts that the disk's own sensor tells: of several disks below the sum, where each
    /// of them has one.
    pub fn power_w(&self) -> Option<f64> {
        let disks = self.disks_below();
        let microwatts = disks.iter().map(|disk| disk.sensed("power1_input"));
        Some(microwatts.sum::<Option<i64>>()? as f64 / 1e6)
    }

    /// A temperature of the disk's sensor, which counts thousandths of a degree.
    fn sensed_c(&self, name: &str) -> Option<i64> {
        Some(self.sensed(name)? / 1000)
    }

    /// A number of the disk's own sensor (hwmon): `temp1_input` in thousandths of a degree Celsius,
    /// `power1_input` in millionths of a watt.
    fn sensed(&self, name: &str) -> Option<i64> {
        let disk = self.disk();
        let folders = [disk.folder.join("device")].into_iter().chain(disk.controllers());
        let folders = folders.flat_map(|folder| [folder.join("hwmon"), folder]);
        let sensors =
            folders.flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
        let mut read = sensors
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("hwmon"))
            .filter_map(|entry| fs::read_to_string(entry.path().join(name)).ok());
        read.find_map(|text| text.trim().parse().ok())
    }

    /// File behind a loop device; nothing for other devices.
    pub fn backing_file(&self) -> Option<PathBuf> {
        self.attribute("loop/backing_file").map(PathBuf::from)
    }

    /// Name with the kind of a composed device, for a person: `dm-0 (LVM volume vg0-home)`.
    pub fn described(&self) -> String {
        let name = &self.name;
        if let Some(level) = self.attribute("md/level") {
            return format!("{name} (MD array, {level})");
        }
        let Some(volume) = self.attribute("dm/name") else { return name.clone() };
        match self.attribute("dm/uuid").unwrap_or_default().split('-').next() {
            Some("LVM") => format!("{name} (LVM volume {volume})"),
            Some("CRYPT") => format!("{name} (encrypted volume {volume})"),
            Some("mpath") => format!("{name} (multipath device {volume})"),
            _ => format!("{name} (device mapper, {volume})"),
        }
    }

    fn linked(&self, folder: &str) -> Vec<Self> {
        let Ok(entries) = fs::read_dir(self.folder.join(folder)) else { return Vec::new() };
        let mut found: Vec<Self> =
            entries.flatten().filter_map(|entry| Self::read(&entry.path())).collect();
        found.sort_by_key(Self::device);
        found
    }
}

/// Requests that a device has carried out since the machine started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskCounts {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Sectors of 512 bytes read.
    pub sectors_read: u64,
    /// Sectors of 512 bytes written.
    pub sectors_written: u64,
    /// Milliseconds that all of them took together.
    pub spent_ms: u64,
}

impl DiskCounts {
    /// Reads and writes.
    pub fn requests(self) -> u64 {
        self.reads + self.writes
    }

    /// Bytes read and written.
    pub fn bytes(self) -> u64 {
        (self.sectors_read + self.sectors_written) * blockio::SECTOR_BYTES
    }
}

impl Block {
    /// The counters of `/sys/block/*/stat`.
    pub fn counts(&self) -> Option<DiskCounts> {
        let text = self.attribute("stat")?;
        let numbers: Vec<u64> =
            text.split_whitespace().map_while(|number| number.parse().ok()).collect();
        match numbers[..] {
            [reads, _, sectors_read, read_ms, writes, _, sectors_written, write_ms, ..] => {
                let spent_ms = read_ms + write_ms;
                Some(DiskCounts { reads, writes, sectors_read, sectors_written, spent_ms })
            }
            _ => None,
        }
    }

    /// The nearest ancestor in the tree of hardware that has the attribute `name`, and its value:
    /// `current_link_speed` belongs to the PCI function.
    pub fn inherited(&self, name: &str) -> Option<String> {
        let controllers = self.controllers();
        let folders = std::iter::once(&self.folder).chain(&controllers);
        folders.flat_map(|folder| folder.ancestors().take(8)).find_map(|folder| {
            let text = fs::read_to_string(folder.join(name)).ok()?;
            Some(text.trim().to_owned()).filter(|text| !text.is_empty())
        })
    }

    /// Folders of the controllers of a namespace that several can reach: it hangs on none of them,
    /// but beside links to them below `nvme-subsystem`.
    fn controllers(&self) -> Vec<PathBuf> {
        let is_controller = |name: &str| {
            let number = name.strip_prefix("nvme").unwrap_or_default();
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        };
        let beside = self.folder.parent().into_iter().flat_map(fs::read_dir).flatten().flatten();
        let mut found: Vec<PathBuf> = beside
            .filter(|entry| is_controller(&entry.file_name().to_string_lossy()))
            .filter_map(|entry| fs::canonicalize(entry.path()).ok())
            .collect();
        found.sort();
        found
    }
}

#[cfg(test)]
mod tests;
