//! Temperature of the machine that a drive without media of its own runs on.

use std::fs;
use std::path::Path;

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

#[cfg(test)]
mod tests {
    use super::*;

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
