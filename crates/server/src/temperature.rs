//! Temperature of what a drive without a model runs on: the disks below its dies, or the machine.

use std::fs;
use std::path::Path;

use lab::target::system::{Block, DeviceNumber, System};
use status::Die;

/// Folder of the system's thermal zones.
const ZONES: &str = "/sys/class/thermal";

/// Temperature in kelvin of the warmest thermal zone of this machine; none where it has none, as
/// most virtual machines.
pub(crate) fn of_machine() -> Option<u16> {
    warmest(Path::new(ZONES))
}

fn warmest(zones: &Path) -> Option<u16> {
    let zones = fs::read_dir(zones).ok()?.flatten();
    let texts = zones.filter_map(|zone| fs::read_to_string(zone.path().join("temp")).ok());
    let millidegrees = texts.filter_map(|text| text.trim().parse::<i64>().ok());
    // A zone without a sensor reads as zero, or as far below it.
    let warmest = millidegrees.filter(|it| (1_000..200_000).contains(it)).max()?;
    u16::try_from((warmest + 273_150 + 500) / 1000).ok()
}

/// Notes what the sensors of the disks below dies say, whether these are block devices or files.
pub(crate) fn note_disks(dies: &mut [Die], system: &System) {
    for die in dies {
        let path = die.path.as_deref().map(Path::new);
        let Some(disk) = path.and_then(|path| disk_below(path, system)) else { continue };
        die.temperature_c = disk.temperature_c();
        die.temperature_warning_c = disk.temperature_warning_c();
        die.power_w = disk.power_w();
    }
}

/// Temperature in kelvin of the hottest disk below dies.
pub(crate) fn of_disks(dies: &[Die]) -> Option<u16> {
    kelvin(dies.iter().filter_map(|die| die.temperature_c).max()?)
}

/// The lowest temperature in kelvin from which on a disk below dies warns of heat.
pub(crate) fn warning_of_disks(dies: &[Die]) -> Option<u16> {
    kelvin(dies.iter().filter_map(|die| die.temperature_warning_c).min()?)
}

fn kelvin(celsius: i64) -> Option<u16> {
    u16::try_from(celsius + 273).ok()
}

fn disk_below(path: &Path, system: &System) -> Option<Block> {
    let found = fs::metadata(path).ok()?;
    let number = DeviceNumber::of_node(&found);
    system.block(number.unwrap_or_else(|| DeviceNumber::below_file(&found)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dies_have_the_temperature_limit_and_power_of_the_disk_that_their_file_is_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d0");
        fs::write(&path, "").unwrap();
        let DeviceNumber { major, minor } = DeviceNumber::below_file(&fs::metadata(&path).unwrap());
        let disk = folder.path().join(format!("sys/dev/block/{major}:{minor}"));
        let sensor = disk.join("device/hwmon/hwmon3");
        fs::create_dir_all(&sensor).unwrap();
        fs::write(disk.join("dev"), format!("{major}:{minor}")).unwrap();
        for (name, value) in
            [("temp1_input", "61850"), ("temp1_max", "74850"), ("power1_input", "6500000")]
        {
            fs::write(sensor.join(name), value).unwrap();
        }
        let named = |path: &Path| Die { path: Some(path.display().to_string()), ..Die::default() };
        let mut dies = [named(&path), named(&folder.path().join("absent")), Die::default()];
        note_disks(&mut dies, &System::below(folder.path()));
        let sensed = |die: &Die| (die.temperature_c, die.temperature_warning_c, die.power_w);
        assert_eq!(sensed(&dies[0]), (Some(61), Some(74), Some(6.5)));
        assert_eq!((sensed(&dies[1]), sensed(&dies[2])), ((None, None, None), (None, None, None)));
        assert_eq!((of_disks(&dies), warning_of_disks(&dies)), (Some(334), Some(347)));
        assert_eq!((of_disks(&dies[1..]), warning_of_disks(&[])), (None, None));
    }

    #[test]
    fn the_warmest_zone_counts_and_those_without_a_sensor_do_not() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(warmest(folder.path()), None);
        for (name, text) in [("a", "45600\n"), ("b", "31000\n"), ("c", "-274000\n"), ("d", "x")] {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("temp"), text).unwrap();
        }
        assert_eq!(warmest(folder.path()), Some(319));
    }
}
