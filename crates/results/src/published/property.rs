//! Properties of drives that data sheets state and no run measures: endurance, warranty, weight,
//! air, temperatures, interface, flash.

use crate::SheetRow;

use super::{Confidence, FigureRow, datasheets, figures, figures_for};

/// Properties by the metric of their rows: the metric, its name, its unit.
const NAMES: [(&str, &str, &str); 26] = [
    ("release_year", "Released", ""),
    ("warranty_years", "Warranty", "years"),
    ("endurance_pbw", "Endurance", "PB written"),
    ("endurance_dwpd", "Endurance, daily", "drive writes a day"),
    ("pcie_gen", "PCIe generation", ""),
    ("pcie_lanes", "PCIe lanes", ""),
    ("pcie_lanes_needed_gen1", "PCIe lanes needed, generation 1", ""),
    ("pcie_lanes_needed_gen2", "PCIe lanes needed, generation 2", ""),
    ("virtual_functions", "Virtual functions", ""),
    ("module_count", "Modules", ""),
    ("controller_count", "Controllers", ""),
    ("raw_capacity_gb", "Raw flash, as printed", "GB"),
    ("nand_node_nm", "Flash process", "nm"),
    ("nand_layers", "Flash layers", ""),
    ("nand_package_count", "Flash packages", ""),
    ("nand_package_gb", "Flash package", "GB"),
    ("power_w", "Power", "W"),
    ("idle_power_w", "Power, idle", "W"),
    ("operating_temp_c", "Temperature, operating", "°C"),
    ("storage_temp_c", "Temperature, storage", "°C"),
    ("ambient_max_c", "Inlet air at most", "°C"),
    ("airflow_lfm", "Air flow", "LFM"),
    ("humidity_percent", "Humidity", "%"),
    ("operating_altitude_ft", "Altitude, operating", "ft"),
    ("storage_altitude_ft", "Altitude, storage", "ft"),
    ("weight_oz", "Weight", "oz"),
];
/// Workload of a row about a module, and not about the card.
const OF_MODULE: &str = "per-iodimm";

/// Property of a drive, as published.
#[derive(Clone, Debug, PartialEq)]
pub struct Property {
    /// Metric of its row, with its unit.
    pub metric: &'static str,
    /// Name in words.
    pub name: String,
    /// Value with its unit in words, or both ends of a range.
    pub value: String,
    /// The value; of a range its low end.
    pub low: f64,
    /// `published`, and the document.
    pub source: String,
    /// True if it is that of one of several modules.
    pub is_of_module: bool,
}

/// Properties that the project's tables have of the drive known as `device` with `capacity_gb` on
/// its label, those of a name once.
pub fn properties(device: &str, capacity_gb: f64) -> Vec<Property> {
    let rows: Vec<&FigureRow> = [figures(), datasheets()]
        .into_iter()
        .flat_map(|table| figures_for(table, device, capacity_gb))
        .collect();
    let of_name = |(metric, name, unit): (&'static str, &'static str, &'static str)| {
        let its = rows.iter().filter(move |row| row.metric == metric);
        its.filter_map(move |row| of_row(metric, name, unit, row))
    };
    let mut found: Vec<Property> = Vec::new();
    for property in NAMES.into_iter().flat_map(of_name) {
        if !found.iter().any(|it| (it.metric, &it.name) == (property.metric, &property.name)) {
            found.push(property);
        }
    }
    found
}

/// Value of one of the [`properties`] of the whole drive; of a range its low end.
pub fn property(device: &str, capacity_gb: f64, metric: &str) -> Option<f64> {
    let its = |it: &Property| it.metric == metric && !it.is_of_module;
    properties(device, capacity_gb).into_iter().find(its).map(|it| it.low)
}

/// [`properties`] as rows of a specification sheet.
pub fn data_sheet(device: &str, capacity_gb: f64) -> Vec<SheetRow> {
    let row = |it: Property| SheetRow {
        group: "Data sheet".into(),
        name: it.name,
        value: it.value,
        source: it.source,
    };
    properties(device, capacity_gb).into_iter().map(row).collect()
}

fn of_row(metric: &'static str, name: &str, unit: &str, row: &FigureRow) -> Option<Property> {
    let (low, high) = row.value_low.zip(row.value_high)?;
    if row.confidence == Confidence::Garbled {
        return None;
    }
    let is_of_module = row.workload == OF_MODULE;
    let range =
        if low.to_bits() == high.to_bits() { format!("{low}") } else { format!("{low} to {high}") };
    let note = if row.note.is_empty() { String::new() } else { format!("; {}", row.note) };
    Some(Property {
        metric,
        name: if is_of_module { format!("{name}, each module") } else { name.to_owned() },
        value: format!("{range} {unit}").trim_end().to_owned(),
        low,
        source: format!("published: {}{note}", row.document),
        is_of_module,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_has_what_its_sheet_states_and_a_range_has_both_ends() {
        let all = properties("Fusion ioMemory PX600", 2600.0);
        let value = |metric: &str| {
            let found = all.iter().find(|it| it.metric == metric);
            found.map(|it| it.value.as_str())
        };
        assert_eq!(value("weight_oz"), Some("5.2 oz"));
        assert_eq!(value("operating_temp_c"), Some("0 to 55 °C"));
        assert_eq!(value("warranty_years"), Some("5 years"));
        assert_eq!(value("iops"), None, "a rate is no property");
        assert!(all.iter().all(|it| it.source.starts_with("published: PX600 review")));
        assert_eq!(properties("Fusion ioMemory PX600", 1.0), []);
    }

    #[test]
    fn what_is_garbled_is_not_told_and_a_module_is_not_the_card() {
        let all = properties("Fusion-io ioDrive Duo MLC", 640.0);
        assert!(all.iter().all(|it| it.metric != "warranty_years"), "a digit is lost");
        let raw: Vec<&str> = all
            .iter()
            .filter(|it| it.metric == "raw_capacity_gb")
            .map(|it| it.name.as_str())
            .collect();
        assert_eq!(raw, ["Raw flash, as printed, each module", "Raw flash, as printed"]);
    }

    #[test]
    fn every_name_is_of_a_row() {
        for (metric, name, _) in NAMES {
            let mut rows = figures().iter().chain(datasheets());
            assert!(rows.any(|row| row.metric == metric), "{name}: no row has {metric}");
        }
    }
}
