//! Block devices that the server itself makes through the ublk driver.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use export::UblkDriver;
use server::front_ends::ublk::driver_error;

use super::KernelClient;

pub(super) const CLIENT: KernelClient = KernelClient {
    name: "ublk",
    option: "--ublk",
    accepts: |uri| uri.starts_with(DEVICES),
    missing: || {
        let is_loaded = Path::new("/dev/ublk-control").exists();
        let remedy = "`modprobe ublk_drv`, with Linux 6.5 or newer and CONFIG_BLK_DEV_UBLK";
        (!is_loaded).then_some(remedy)
    },
    attach,
    owns: |name| name.starts_with("ublkb"),
    detach,
};

/// Beginning of the paths of all devices.
const DEVICES: &str = "/dev/ublkb";

/// The device is there for as long as the server serves it.
fn attach(path: &str) -> Result<PathBuf> {
    let device = PathBuf::from(path);
    fs::metadata(&device).context("looking for the device that the server made")?;
    Ok(device)
}

/// Stops and removes a device, also one whose server was killed.
fn detach(name: &str) -> Result<()> {
    let number = name.strip_prefix("ublkb").and_then(|number| number.parse().ok());
    let number = number.with_context(|| format!("`{name}` is not the name of a whole device"))?;
    if let Some(user) = user(name) {
        bail!("{user}; unmount it first");
    }
    let driver =
        UblkDriver::open().map_err(|error| driver_error("opening the ublk driver", error))?;
    driver.remove(number).map_err(|error| driver_error("removing the device", error))
}

/// Finds a user of a device or of one of its partitions.
fn user(name: &str) -> Option<String> {
    let disk = Path::new("/sys/class/block").join(name);
    let entries = fs::read_dir(&disk).into_iter().flatten().flatten();
    let parts = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let parts = parts.filter(|part| part.starts_with(name));
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    [name.to_owned()].into_iter().chain(parts).find_map(|part| {
        let folder = Path::new("/sys/class/block").join(&part);
        let mut holders = fs::read_dir(folder.join("holders")).into_iter().flatten().flatten();
        if let Some(holder) = holders.next() {
            return Some(format!("{part} is used by {}", holder.file_name().display()));
        }
        let device = fs::read_to_string(folder.join("dev")).ok()?;
        let place = mount_point(&mounts, device.trim())?;
        Some(format!("{part} is mounted on {place}"))
    })
}

/// The folder on which a device is mounted, by the numbers of the device.
fn mount_point<'a>(mounts: &'a str, device: &str) -> Option<&'a str> {
    mounts.lines().find_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        (words.get(2) == Some(&device)).then(|| words.get(4).copied())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mounted_device_is_found_by_its_numbers() {
        let mounts = "21 1 0:20 / /proc rw - proc proc rw\n\
                      36 21 259:3 / /mnt/data rw,relatime shared:1 - ext4 /dev/ublkb0 rw\n";
        assert_eq!(mount_point(mounts, "259:3"), Some("/mnt/data"));
        assert_eq!(mount_point(mounts, "259:30"), None);
    }
}
