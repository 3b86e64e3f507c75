//! SMART data of a drive: temperature, wear, what was written to it, throttling.
//!
//! smartctl is asked first, which knows NVMe, SATA and SAS drives; nvme-cli where it is missing. A
//! question costs the drive a command or two, so that it is asked between loads and never during
//! one; the temperature comes from the kernel's sensor.

use blockio::Bytes;
use lab::target::system::Block;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tools::Tools;

/// Bytes of an NVMe data unit: a thousand blocks of 512.
const DATA_UNIT_BYTES: u64 = 512_000;
/// Kelvin at 0 °C, as NVMe rounds it.
const FREEZING_K: i64 = 273;

/// SMART data at one moment. Fields that a drive does not tell are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Health {
    /// Temperature in degrees Celsius.
    pub(crate) temperature_c: Option<i64>,
    /// Rated life that is used up, in percent; may exceed 100.
    pub(crate) wear_percent: Option<u64>,
    /// Host writes over its life, in bytes.
    pub(crate) written_bytes: Option<u64>,
    /// Hours that it was powered.
    pub(crate) power_on_hours: Option<u64>,
    /// Errors of the medium over its life.
    pub(crate) media_errors: Option<u64>,
    /// Bits of the critical warning; 0 where all is well.
    pub(crate) critical_warning: Option<u64>,
    /// Sum of the counters of throttling: minutes too hot and transitions of thermal management.
    /// Only a rise of it has a meaning.
    pub(crate) throttled: Option<u64>,
}

impl Health {
    /// Asks the drive that `block` is, or is a part of.
    pub(crate) fn read(tools: &Tools, block: &Block) -> Option<Self> {
        let disk = block.disk();
        let node = disk.node();
        let by_smartctl = || tools.text_of("smartctl", &["--json", "--all", &node]);
        let by_nvme = || tools.text_of("nvme", &["smart-log", &node, "--output-format=json"]);
        let found = by_smartctl().and_then(|text| Self::of_smartctl(&text));
        found.or_else(|| {
            disk.is_nvme().then(by_nvme).flatten().and_then(|text| Self::of_nvme(&text))
        })
    }

    /// Reads `smartctl --json --all`.
    fn of_smartctl(text: &str) -> Option<Self> {
        let told: Value = serde_json::from_str(text).ok()?;
        let log = told.get("nvme_smart_health_information_log");
        let health = Self {
            temperature_c: told.pointer("/temperature/current").and_then(Value::as_i64),
            power_on_hours: told.pointer("/power_on_time/hours").and_then(Value::as_u64),
            ..log.map_or_else(|| Self::of_ata(&told), |log| Self::of_log(log, "percentage_used"))
        };
        (health != Self::default()).then_some(health)
    }

    /// Reads `nvme smart-log --output-format=json`.
    fn of_nvme(text: &str) -> Option<Self> {
        let log: Value = serde_json::from_str(text).ok()?;
        let kelvin = log.get("temperature").and_then(Value::as_i64)?;
        let used =
            if log.get("percent_used").is_some() { "percent_used" } else { "percentage_used" };
        Some(Self {
            temperature_c: Some(kelvin - FREEZING_K),
            power_on_hours: number(&log, "power_on_hours"),
            ..Self::of_log(&log, used)
        })
    }

    /// Reads the SMART log of an NVMe controller, whose wear is called `used`.
    fn of_log(log: &Value, used: &str) -> Self {
        let throttled = ["warning_temp_time", "critical_comp_time"]
            .into_iter()
            .chain(["thm_temp1_trans_count", "thm_temp2_trans_count"])
            // As smartctl calls them.
            .chain(["thermal_mgmt_temperature_1_transition_count"])
            .chain(["thermal_mgmt_temperature_2_transition_count"])
            .filter_map(|key| number(log, key));
        Self {
            temperature_c: None,
            wear_percent: number(log, used),
            written_bytes: number(log, "data_units_written")
                .map(|units| units.saturating_mul(DATA_UNIT_BYTES)),
            power_on_hours: None,
            media_errors: number(log, "media_errors"),
            critical_warning: number(log, "critical_warning"),
            throttled: throttled.reduce(u64::saturating_add),
        }
    }

    /// Reads the attributes of an ATA drive: 241 counts the host's writes, in the unit of its name.
    fn of_ata(told: &Value) -> Self {
        let table = told.pointer("/ata_smart_attributes/table").and_then(Value::as_array);
        let row = |id: u64| {
            let mut rows = table?.iter();
            rows.find(|row| row.get("id").and_then(Value::as_u64) == Some(id))
        };
        let raw = |row: &Value| row.pointer("/raw/value").and_then(Value::as_u64);
        let written = row(241).and_then(|row| {
            let name = row.get("name").and_then(Value::as_str).unwrap_or_default();
            Some(raw(row)?.saturating_mul(written_unit_bytes(name, told)?))
        });
        Self {
            written_bytes: written,
            media_errors: row(187).and_then(raw).or_else(|| row(198).and_then(raw)),
            ..Self::default()
        }
    }

    /// Summary in one line; empty where nothing is known.
    pub(crate) fn shown(&self) -> String {
        let told = [
            self.temperature_c.map(|celsius| format!("{celsius} °C")),
            self.wear_percent.map(|percent| format!("{percent} % of rated life used")),
            self.written_bytes.map(|bytes| format!("{} written in its life", Bytes(bytes))),
            self.power_on_hours.map(|hours| format!("{hours} h powered on")),
            self.media_errors.map(|count| format!("{count} media errors")),
            self.critical_warning
                .filter(|bits| *bits != 0)
                .map(|bits| format!("critical warning {bits:#x}")),
        ];
        told.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Summary of the wear since `before`, in one line; empty where nothing is known.
    pub(crate) fn since(&self, before: &Self) -> String {
        let risen = |of: fn(&Self) -> Option<u64>| Some(of(self)?.saturating_sub(of(before)?));
        let told = [
            risen(|it| it.written_bytes).map(|bytes| format!("{} written", Bytes(bytes))),
            risen(|it| it.wear_percent)
                .map(|points| format!("{points} percentage points of rated life")),
            risen(|it| it.media_errors).map(|count| format!("{count} media errors")),
        ];
        told.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Bytes that the attribute called `name` counts; absent where it does not count writes of the host
/// or does not say in what. The names are those of smartmontools' `drivedb.h`.
fn written_unit_bytes(name: &str, told: &Value) -> Option<u64> {
    let sector = told.get("logical_block_size").and_then(Value::as_u64).unwrap_or(512);
    if name.to_ascii_lowercase().contains("nand") {
        return None;
    }
    let units = [("_32MiB", 32 << 20), ("_GiB", 1 << 30), ("_GB", 1_000_000_000)];
    let unit = units.into_iter().find(|(unit, _)| name.contains(unit));
    let is_in_sectors = name.is_empty() || name.contains("LBA") || name.contains("Sector");
    unit.map(|(_, bytes)| bytes).or_else(|| is_in_sectors.then_some(sector))
}

/// A number of a log. nvme-cli writes those of 128 bits as text, or, by its version, as a fraction.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
fn number(log: &Value, key: &str) -> Option<u64> {
    match log.get(key)? {
        Value::String(text) => text.parse().ok(),
        value => value.as_u64().or_else(|| value.as_f64().map(|number| number as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_fixture::Machine;
    use crate::tools::fake::Fakes;

    const SMARTCTL: &str = r#"{"temperature":{"current":41},"power_on_time":{"hours":120},
        "nvme_smart_health_information_log":{"critical_warning":0,"percentage_used":3,
        "data_units_written":2000000,"media_errors":0,"warning_temp_time":2}}"#;
    const NVME: &str = r#"{"critical_warning":0,"temperature":323,"percent_used":5,
        "data_units_written":10,"power_on_hours":7,"media_errors":1,"thm_temp1_trans_count":4}"#;
    const SATA: &str = r#"{"logical_block_size":512,"temperature":{"current":30},
        "ata_smart_attributes":{"table":[{"id":241,"raw":{"value":2000}},
        {"id":187,"raw":{"value":0}}]}}"#;

    #[test]
    fn smartctl_tells_of_nvme_and_of_ata_drives() {
        let nvme = Health::of_smartctl(SMARTCTL).unwrap();
        assert_eq!((nvme.temperature_c, nvme.wear_percent), (Some(41), Some(3)));
        assert_eq!((nvme.written_bytes, nvme.throttled), (Some(1_024_000_000_000), Some(2)));
        let sata = Health::of_smartctl(SATA).unwrap();
        assert_eq!((sata.written_bytes, sata.media_errors), (Some(1_024_000), Some(0)));
        assert_eq!(Health::of_smartctl("{}"), None);
        assert_eq!(Health::of_smartctl("smartctl: not a drive"), None);
    }

    #[test]
    fn writes_of_an_ata_drive_are_counted_in_the_unit_of_their_name() {
        let written = |name: &str| {
            let text = SATA.replace("\"id\":241,", &format!("\"id\":241,\"name\":\"{name}\","));
            Health::of_smartctl(&text).unwrap().written_bytes
        };
        assert_eq!(written("Total_LBAs_Written"), Some(2000 * 512));
        assert_eq!(written("Host_Writes_32MiB"), Some(2000 * (32 << 20)));
        assert_eq!(written("Host_Writes_GiB"), Some(2000 << 30));
        assert_eq!(written("Lifetime_Writes_GiB"), Some(2000 << 30));
        assert_eq!(written("Total_Writes_GB"), Some(2_000_000_000_000));
        assert_eq!(written("NAND_Writes_1GiB"), None);
        assert_eq!(written("Media_Wear_Index"), None, "no unit that is known");
    }

    #[test]
    fn transitions_of_thermal_management_are_read_by_both_of_their_names() {
        let renamed = SMARTCTL.replace(
            "\"warning_temp_time\":2",
            "\"warning_temp_time\":2,\"thermal_mgmt_temperature_1_transition_count\":3,
            \"thermal_mgmt_temperature_2_transition_count\":1",
        );
        assert_eq!(Health::of_smartctl(&renamed).unwrap().throttled, Some(6));
    }

    #[test]
    fn nvme_cli_is_asked_where_smartctl_is_missing() {
        let machine = Machine::with_disk();
        machine.block("nvme0n1", "nvme0n1", "259:0");
        let block = machine.system().block_at("/dev/nvme0n1".as_ref()).unwrap();
        let fakes = Fakes::none().with("nvme", &format!("echo '{NVME}'"));
        let health = Health::read(&fakes.tools(), &block).unwrap();
        assert_eq!((health.temperature_c, health.throttled), (Some(50), Some(4)));
        assert_eq!(fakes.asked(), ["nvme smart-log /dev/nvme0n1 --output-format=json"]);
        let sda = machine.system().block_at("/dev/sda".as_ref()).unwrap();
        assert_eq!(Health::read(&fakes.tools(), &sda), None);
    }

    #[test]
    fn numbers_of_128_bits_are_read_as_each_nvme_cli_writes_them() {
        for written in ["10", "\"10\"", "10.0", "1e1"] {
            let text = NVME.replace("\"data_units_written\":10", "\"data_units_written\":");
            let text = text.replace("written\":", &format!("written\":{written}"));
            let health = Health::of_nvme(&text).unwrap();
            assert_eq!(health.written_bytes, Some(5_120_000), "{written}");
        }
    }

    #[test]
    fn what_a_test_cost_the_drive_is_the_difference() {
        let before = Health::of_nvme(NVME).unwrap();
        let after = Health { written_bytes: Some(517_120_000), ..before };
        assert_eq!(
            after.since(&before),
            "512 MB written, 0 percentage points of rated life, 0 media errors"
        );
        assert_eq!(Health::default().since(&before), "");
        assert!(
            before.shown().starts_with("50 °C, 5 % of rated life used, "),
            "{}",
            before.shown()
        );
    }
}
