//! The figures of one drive's data sheet, each known by what a number may follow from.

use blockio::text::stated_load;
use lab::{Error, Kind};
use results::published::{FigureRow, Phase};

/// Subject of a figure of a data sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    SequentialRead,
    SequentialWrite,
    RandomRead,
    SettledWrite,
    BurstWrite,
    ReadLatency,
    WriteLatency,
    Capacity,
    PcieGen,
    PcieLanes,
    FormFactor,
    NandLayers,
    ReleaseYear,
    EndurancePbw,
    EnduranceDwpd,
    WarrantyYears,
    /// A figure that no number of a model follows from.
    Noted,
}

impl Quantity {
    /// The figures that numbers follow from, each with its name and its columns.
    const MODELLED: [(Self, &'static str); 7] = [
        (Self::SequentialRead, "128k-seq-read mb_s"),
        (Self::SequentialWrite, "128k-seq-write mb_s"),
        (Self::RandomRead, "4k-rand-read iops"),
        (Self::SettledWrite, "4k-rand-write iops (datasheet-sustained)"),
        (Self::BurstWrite, "4k-rand-write iops (datasheet)"),
        (Self::ReadLatency, "4k-rand-read avg_latency_ms"),
        (Self::WriteLatency, "4k-rand-write avg_latency_ms"),
    ];

    /// Subject of `row`; absent where no data sheet's figure is called that.
    fn of(row: &FigureRow) -> Option<Self> {
        let is_settled = row.phase == Phase::Sustained;
        Some(match (row.metric.as_str(), row.workload.as_str()) {
            _ if !row.phase.is_stated() => return None,
            ("mb_s", "128k-seq-read" | "seq-read") => Self::SequentialRead,
            ("mb_s", "128k-seq-write" | "seq-write") => Self::SequentialWrite,
            ("iops", "4k-rand-read") => Self::RandomRead,
            ("iops", "4k-rand-write") if is_settled => Self::SettledWrite,
            ("iops", "4k-rand-write") => Self::BurstWrite,
            ("avg_latency_ms", "4k-rand-read" | "read-access") => Self::ReadLatency,
            ("avg_latency_ms", "4k-rand-write" | "write-access") => Self::WriteLatency,
            ("usable_capacity_gb" | "capacity_gb", _) => Self::Capacity,
            ("pcie_gen", _) => Self::PcieGen,
            ("pcie_lanes", _) => Self::PcieLanes,
            ("form_factor", _) => Self::FormFactor,
            ("nand_layers", _) => Self::NandLayers,
            ("release_year", _) => Self::ReleaseYear,
            ("endurance_pbw", _) => Self::EndurancePbw,
            ("endurance_dwpd", _) => Self::EnduranceDwpd,
            ("warranty_years", _) => Self::WarrantyYears,
            ("power_w" | "idle_power_w" | "price_usd", _) | ("iops", "4k-70-30" | "8k-70-30") => {
                Self::Noted
            }
            _ => return None,
        })
    }

    /// Metrics besides those of [`Self::MODELLED`], for errors.
    const OTHERS: &'static str = "usable_capacity_gb, pcie_gen, pcie_lanes, form_factor, \
        nand_layers, release_year, endurance_pbw, endurance_dwpd, warranty_years, power_w, \
        idle_power_w, price_usd";
}

/// The figures of one drive's data sheet.
#[derive(Clone, Debug)]
pub(super) struct Sheet<'a> {
    file: &'a str,
    pub(super) device: &'a str,
    pub(super) capacity_gb: f64,
    figures: Vec<(Quantity, &'a FigureRow, f64)>,
}

impl<'a> Sheet<'a> {
    /// # Errors
    /// Fails if the rows are about no drive or several, or one is unknown, not positive, or states
    /// what another does.
    pub(super) fn new(rows: &'a [FigureRow], file: &'a str) -> Result<Self, Error> {
        let at = |text: String| Error::new(Kind::Input, format!("reading {file}: {text}"));
        let Some(first) = rows.first() else {
            let hint = "give it rows as published/datasheets.csv has them";
            return Err(at("no figure, must have at least the capacity".into()).hint(hint));
        };
        let key = |row: &FigureRow| (row.device.clone(), row.capacity_gb.map(f64::to_bits));
        if let Some(other) = rows.iter().find(|row| key(row) != key(first)) {
            let text = format!(
                "row {} is about {} and row {} about {}, must be one drive of one capacity",
                first.id,
                shown(first),
                other.id,
                shown(other)
            );
            return Err(at(text).hint("keep the rows of one drive"));
        }
        let mut figures: Vec<(Quantity, &FigureRow, f64)> = Vec::new();
        for row in rows {
            let (quantity, value) = figure(row).map_err(|(text, hint)| at(text).hint(hint))?;
            let before = figures.iter().find(|(known, ..)| *known == quantity);
            if let Some((_, before, _)) = before.filter(|_| quantity != Quantity::Noted) {
                let text = format!("row {} states again what row {} does", row.id, before.id);
                return Err(at(text).hint("keep the one that is about this capacity"));
            }
            figures.push((quantity, row, value));
        }
        let stated = figures.iter().find(|it| it.0 == Quantity::Capacity).map(|it| it.2);
        let capacity_gb = stated.or(first.capacity_gb).filter(|gb| *gb > 0.0).ok_or_else(|| {
            at(format!("the capacity of {} is not stated", first.device))
                .hint("fill the column capacity_gb, in decimal GB")
        })?;
        Ok(Self { file, device: &first.device, capacity_gb, figures })
    }

    /// The value of a figure; absent where it is not stated.
    pub(super) fn value(&self, quantity: Quantity) -> Option<f64> {
        self.figure(quantity).map(|(.., value)| *value)
    }

    /// A figure in words, with its document; empty where it is not stated.
    pub(super) fn quoted(&self, quantity: Quantity) -> String {
        let Some((_, row, value)) = self.figure(quantity) else { return String::new() };
        let unit = match row.metric.as_str() {
            "iops" => "a second",
            "mb_s" => "MB/s",
            "avg_latency_ms" => "ms on average",
            "endurance_pbw" => "PB written",
            "endurance_dwpd" => "drive writes a day",
            other => other,
        };
        let load = stated_load(&row.threads, &row.queue_per_thread);
        let load = if load.is_empty() { load } else { format!(" at {load}") };
        format!("{value} {unit} of {}{load} ({})", row.workload, row.document)
    }

    /// The document of the first figure that names one.
    pub(super) fn document(&self) -> &str {
        self.figures
            .iter()
            .map(|it| it.1.document.as_str())
            .find(|it| !it.is_empty())
            .unwrap_or("a data sheet")
    }

    /// The form that is stated, such as `U.2`.
    pub(super) fn form(&self) -> Option<String> {
        self.figure(Quantity::FormFactor).map(|it| it.1.workload.to_uppercase())
    }

    /// Name of the drive in the catalogue.
    pub(super) fn name(&self) -> String {
        let text = format!("{} {}", self.device, self.capacity_gb.round());
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
        let words: Vec<String> =
            words.filter(|word| !word.is_empty()).map(str::to_ascii_lowercase).collect();
        words.join("-")
    }

    /// Names of the figures that are not stated, and that numbers would follow from.
    pub(super) fn unstated(&self) -> Vec<&'static str> {
        // From the rate of reads follows that of writes in burst, as in the class.
        let follows = self.value(Quantity::RandomRead).is_some();
        let is_missing = |(quantity, _): &&(Quantity, &'static str)| {
            self.value(*quantity).is_none() && !(follows && *quantity == Quantity::BurstWrite)
        };
        Quantity::MODELLED.iter().filter(is_missing).map(|(_, name)| *name).collect()
    }

    /// Metrics that are stated and that no number follows from.
    pub(super) fn noted(&self) -> Vec<&str> {
        let noted = self.figures.iter().filter(|it| it.0 == Quantity::Noted);
        let mut metrics: Vec<&str> = noted.map(|it| it.1.metric.as_str()).collect();
        metrics.sort_unstable();
        metrics.dedup();
        metrics
    }

    /// The error that a figure is impossible.
    pub(super) fn wrong(&self, quantity: Quantity, text: &str) -> Error {
        let id = self.figure(quantity).map_or("", |it| it.1.id.as_str());
        let text = format!("deriving a drive from {}: row {id}: {text}", self.file);
        Error::new(Kind::Input, text).hint("check the row, or take another class with --like")
    }

    fn figure(&self, quantity: Quantity) -> Option<&(Quantity, &'a FigureRow, f64)> {
        self.figures.iter().find(|it| it.0 == quantity)
    }
}

/// Subject of a row and its value; else what is wrong, and the remedy.
fn figure(row: &FigureRow) -> Result<(Quantity, f64), (String, String)> {
    let FigureRow { id, metric, workload, phase, .. } = row;
    let quantity = Quantity::of(row).ok_or_else(|| {
        let known: Vec<&str> = Quantity::MODELLED.iter().map(|(_, name)| *name).collect();
        let text = format!("row {id} states {metric} of {workload} in phase {phase}");
        let text = format!("{text}, which no number of a drive follows from");
        let hint = format!("known: {}, and of anything {}", known.join(", "), Quantity::OTHERS);
        (text, hint)
    })?;
    let value = row.value_high.filter(|value| *value > 0.0).ok_or_else(|| {
        let text = format!("row {id}: {metric} of {workload} must be above 0");
        (text, "leave the row away where the sheet has no value".to_owned())
    })?;
    Ok((quantity, value))
}

fn shown(row: &FigureRow) -> String {
    let gb = row.capacity_gb.map_or("no capacity".to_owned(), |gb| format!("{gb} GB"));
    format!("{}, {gb}", row.device)
}
