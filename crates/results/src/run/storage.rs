//! A run as files: `run.json`, `samples.parquet`, `latencies.parquet`, `histograms.parquet`.
//!
//! Nothing here opens a file: texts and bytes come and go through the caller, who writes them
//! atomically. A column's name carries its unit, last but for what it is of (`_read`, `_write`).

use std::collections::BTreeMap;
use std::io::Write;

use bytes::Bytes;
use serde::Deserialize;

use crate::table::{Column, Table};
use crate::{Bin, Error, Run, Sample, Step};

const SAMPLES: &str = "samples.parquet";
const LATENCIES: &str = "latencies.parquet";
const HISTOGRAMS: &str = "histograms.parquet";

impl Run {
    /// The text of `run.json`; samples and histograms are not in it.
    ///
    /// # Errors
    /// Fails if a number is not finite, so that the text could not be read again.
    pub fn to_json(&self) -> Result<String, Error> {
        let text = serde_json::to_string_pretty(self).map_err(Error::Json)?;
        // JSON has no word for an infinite number or none: it would be a null in a number's place.
        serde_json::from_str::<Self>(&text).map_err(Error::NotFinite)?;
        Ok(text + "\n")
    }

    /// Reads the text of `run.json`; samples and histograms are empty.
    ///
    /// # Errors
    /// Fails if it is of another schema version, which it names, or no result at all.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Head {
            schema: Option<u64>,
        }
        let head: Head = serde_json::from_str(text).map_err(Error::Json)?;
        match head.schema {
            Some(found) if found == u64::from(Self::SCHEMA) => {}
            Some(found) => return Err(Error::OtherSchema { found }),
            None => return Err(Error::NoSchema),
        }
        let mut run: Self = serde_json::from_str(text).map_err(Error::Json)?;
        run.judge_earlier();
        Ok(run)
    }

    /// Writes the samples of all steps, one row each.
    ///
    /// # Errors
    /// Fails if `to` does not take them.
    pub fn samples_to_parquet(&self, to: impl Write + Send) -> Result<(), Error> {
        self.samples_table().write(to)
    }

    /// Returns the samples of all steps, one row each, with the columns of `samples.parquet`.
    pub fn samples_table(&self) -> Table {
        let rows: Vec<(&str, &Sample)> = self
            .steps
            .iter()
            .flat_map(|step| step.samples.iter().map(|sample| (step.id.as_str(), sample)))
            .collect();
        let mut table = Table::new(SAMPLES);
        let steps = rows.iter().map(|(step, _)| (*step).to_owned());
        table.insert("step", Column::Text(steps.collect()));
        for field in fields().filter(|field| !field.is_empty(&rows)) {
            let column = match field.number {
                Number::F64 { get, .. } => Column::F64(rows.iter().map(|row| get(row.1)).collect()),
                Number::U64 { get, .. } => Column::U64(rows.iter().map(|row| get(row.1)).collect()),
            };
            table.insert(field.name, column);
        }
        table
    }

    /// Reads the samples of all steps, replacing those that are there.
    ///
    /// # Errors
    /// Fails if they are not Parquet, lack a column, or belong to a step that the run does not
    /// have.
    pub fn samples_from_parquet(&mut self, from: impl Into<Bytes>) -> Result<(), Error> {
        let table = Table::read(SAMPLES, from.into())?;
        let steps = table.text("step")?;
        let mut samples = vec![Sample::default(); steps.len()];
        for field in fields() {
            let Some(name) = field.column(&table) else { continue };
            match field.number {
                Number::F64 { set, .. } => fill(&mut samples, table.f64(name)?, set),
                Number::U64 { set, .. } => fill(&mut samples, table.u64(name)?, set),
            }
        }
        let mut rows = rows_by_step(steps, samples);
        for step in &mut self.steps {
            step.samples = rows.remove(&step.id).unwrap_or_default();
        }
        none_left(&table, rows)
    }

    /// Writes the latency histograms of all steps, one row a bin.
    ///
    /// # Errors
    /// Fails if `to` does not take them.
    pub fn latencies_to_parquet(&self, to: impl Write + Send) -> Result<(), Error> {
        self.latencies_table().write(to)
    }

    /// Returns the latency histograms of all steps, one row a bin, with the columns of
    /// `latencies.parquet`.
    pub fn latencies_table(&self) -> Table {
        let rows: Vec<(&str, &str, Bin)> = self
            .steps
            .iter()
            .flat_map(|step| {
                let of = |op, bins: &'_ [Bin]| {
                    bins.iter().map(|bin| (step.id.as_str(), op, *bin)).collect::<Vec<_>>()
                };
                [of(READ, &step.read_bins), of(WRITE, &step.write_bins)].concat()
            })
            .collect();
        let mut table = Table::new(LATENCIES);
        let texts =
            |text: fn(&(&str, &str, Bin)) -> String| Column::Text(rows.iter().map(text).collect());
        let numbers = |number: fn(&Bin) -> u64| {
            Column::U64(rows.iter().map(|(_, _, bin)| Some(number(bin))).collect())
        };
        table.insert("step", texts(|(step, _, _)| (*step).to_owned()));
        table.insert("op", texts(|(_, op, _)| (*op).to_owned()));
        table.insert("latency_ns", numbers(|bin| bin.latency_ns));
        table.insert("count", numbers(|bin| bin.count));
        table
    }

    /// Reads the latency histograms of all steps, replacing those that are there.
    ///
    /// # Errors
    /// Fails if they are not Parquet, lack a column, or belong to a step that the run does not
    /// have.
    pub fn latencies_from_parquet(&mut self, from: impl Into<Bytes>) -> Result<(), Error> {
        let table = Table::read(LATENCIES, from.into())?;
        let (steps, ops) = (table.text("step")?, table.text("op")?);
        let latencies_ns = table.u64("latency_ns")?.iter().map(|it| it.unwrap_or_default());
        let counts = table.u64("count")?.iter().map(|it| it.unwrap_or_default());
        let bins = latencies_ns.zip(counts).map(|(latency_ns, count)| Bin { latency_ns, count });
        let bins: Vec<(&String, Bin)> = ops.iter().zip(bins).collect();
        let mut rows = rows_by_step(steps, bins);
        for step in &mut self.steps {
            let bins = rows.remove(&step.id).unwrap_or_default();
            let of = |op| bins.iter().filter(|row| row.0 == op).map(|row| row.1).collect();
            (step.read_bins, step.write_bins) = (of(READ), of(WRITE));
        }
        none_left(&table, rows)
    }

    /// Writes the latency histogram of every sample, one row a bin.
    ///
    /// # Errors
    /// Fails if `to` does not take them.
    pub fn histograms_to_parquet(&self, to: impl Write + Send) -> Result<(), Error> {
        let samples = self.steps.iter().flat_map(|step| {
            (0_u64..).zip(&step.samples).map(|(index, sample)| (step.id.as_str(), index, sample))
        });
        let rows: Vec<(&str, u64, Bin)> = samples
            .flat_map(|(step, index, sample)| {
                sample.bins.iter().map(move |bin| (step, index, *bin))
            })
            .collect();
        let numbers = |number: fn(&(&str, u64, Bin)) -> u64| {
            Column::U64(rows.iter().map(|row| Some(number(row))).collect())
        };
        let mut table = Table::new(HISTOGRAMS);
        let steps = rows.iter().map(|(step, _, _)| (*step).to_owned());
        table.insert("step", Column::Text(steps.collect()));
        table.insert("sample", numbers(|row| row.1));
        table.insert("latency_ns", numbers(|row| row.2.latency_ns));
        table.insert("count", numbers(|row| row.2.count));
        table.write(to)
    }

    /// Reads the latency histograms of the samples, which are there already.
    ///
    /// # Errors
    /// Fails if they are not Parquet, lack a column, or belong to a step that the run does not
    /// have.
    pub fn histograms_from_parquet(&mut self, from: impl Into<Bytes>) -> Result<(), Error> {
        let table = Table::read(HISTOGRAMS, from.into())?;
        let column = |name: &'static str| -> Result<Vec<u64>, Error> {
            Ok(table.u64(name)?.iter().map(|it| it.unwrap_or_default()).collect())
        };
        let (samples, latencies_ns, counts) =
            (column("sample")?, column("latency_ns")?, column("count")?);
        let bins = latencies_ns.into_iter().zip(counts);
        let bins = bins.map(|(latency_ns, count)| Bin { latency_ns, count });
        let bins: Vec<(u64, Bin)> = samples.into_iter().zip(bins).collect();
        let mut rows = rows_by_step(table.text("step")?, bins);
        for step in &mut self.steps {
            for (index, bin) in rows.remove(&step.id).unwrap_or_default() {
                let sample = usize::try_from(index).ok().and_then(|at| step.samples.get_mut(at));
                let Some(sample) = sample else {
                    return Err(Error::NoStep { table: HISTOGRAMS, step: step.id.clone() });
                };
                sample.bins.push(bin);
            }
        }
        none_left(&table, rows)
    }

    /// The step named `id`.
    pub fn step(&self, id: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.id == id)
    }
}

const READ: &str = "read";
const WRITE: &str = "write";

fn rows_by_step<T>(steps: &[String], rows: Vec<T>) -> BTreeMap<String, Vec<T>> {
    let mut by_step: BTreeMap<String, Vec<T>> = BTreeMap::new();
    for (step, row) in steps.iter().zip(rows) {
        by_step.entry(step.clone()).or_default().push(row);
    }
    by_step
}

fn none_left<T>(table: &Table, rows: BTreeMap<String, Vec<T>>) -> Result<(), Error> {
    match rows.into_keys().next() {
        Some(step) => Err(Error::NoStep { table: table.name(), step }),
        None => Ok(()),
    }
}

fn fill<T: Copy>(samples: &mut [Sample], values: &[Option<T>], set: fn(&mut Sample, T)) {
    for (sample, value) in samples.iter_mut().zip(values) {
        if let Some(value) = value {
            set(sample, *value);
        }
    }
}

/// Every number of a sample.
fn fields() -> impl Iterator<Item = &'static Field> {
    SPAN_FIELDS.iter().chain(LATENCY_FIELDS.as_flattened())
}

/// One number of a sample and the column it is kept in.
struct Field {
    name: &'static str,
    number: Number,
    /// True if it is younger than the schema: a file without any such number has no column for it.
    later: bool,
}

/// Columns with the names that they had in earlier files.
const EARLIER_NAMES: [(&str, &str); 2] =
    [("thermal_throttled_share", "heat_held_share"), ("power_throttled_share", "power_held_share")];

impl Field {
    /// The name of its column in `table`, which may be an earlier one; absent if a file need not
    /// have it and `table` lacks it.
    fn column(&self, table: &Table) -> Option<&'static str> {
        let earlier = EARLIER_NAMES.iter().find(|names| names.0 == self.name).map(|names| names.1);
        let found = [Some(self.name), earlier].into_iter().flatten().find(|name| table.has(name));
        found.or((!self.later).then_some(self.name))
    }

    /// True if no column is kept for it, since none of `rows` has such a number.
    fn is_empty(&self, rows: &[(&str, &Sample)]) -> bool {
        let has = |sample: &Sample| match self.number {
            Number::F64 { get, .. } => get(sample).is_some(),
            Number::U64 { get, .. } => get(sample).is_some(),
        };
        self.later && !rows.iter().any(|(_, sample)| has(sample))
    }
}

/// Accessors of a number of a sample, by its type.
enum Number {
    F64 { get: fn(&Sample) -> Option<f64>, set: fn(&mut Sample, f64) },
    U64 { get: fn(&Sample) -> Option<u64>, set: fn(&mut Sample, u64) },
}

/// A number that every sample has, in the column `$name`.
macro_rules! number {
    ($kind:ident $name:expr => $($path:ident).+) => {
        Field {
            name: $name,
            number: Number::$kind {
                get: |sample| Some(sample.$($path).+),
                set: |sample, value| sample.$($path).+ = value,
            },
            later: false,
        }
    };
}

/// A number of the NAND writes, which a real drive does not tell.
macro_rules! nand {
    ($field:ident) => {
        Field {
            name: concat!("nand_", stringify!($field)),
            number: Number::U64 {
                get: |sample| sample.summary.nand.map(|nand| nand.$field),
                set: |sample, value| sample.summary.nand.get_or_insert_default().$field = value,
            },
            later: false,
        }
    };
}

/// A number of power and heat, of which most drives tell nothing.
macro_rules! climate {
    ($field:ident) => {
        Field {
            name: stringify!($field),
            number: Number::F64 {
                get: |sample| sample.summary.climate.and_then(|climate| climate.$field),
                set: |sample, value| {
                    sample.summary.climate.get_or_insert_default().$field = Some(value);
                },
            },
            later: true,
        }
    };
}

/// A number of the pages that reads asked for, of which real drives tell nothing.
macro_rules! pages_read {
    ($name:literal, $field:ident) => {
        Field {
            name: $name,
            number: Number::U64 {
                get: |sample| sample.summary.pages_read.map(|pages| pages.$field),
                set: |sample, value| {
                    sample.summary.pages_read.get_or_insert_default().$field = value;
                },
            },
            later: true,
        }
    };
}

/// A number of a latency summary that every sample has in which any latency was measured.
macro_rules! measured {
    ($kind:ident $name:expr => $summary:ident.$field:ident) => {
        Field {
            name: $name,
            number: Number::$kind {
                get: |sample| {
                    let latency = &sample.summary.$summary;
                    (latency.count > 0).then_some(latency.$field)
                },
                set: |sample, value| sample.summary.$summary.$field = value,
            },
            later: false,
        }
    };
}

/// A percentile of a latency summary. Results from earlier versions have zeroes where none was
/// measured.
macro_rules! percentile {
    ($name:expr => $summary:ident.$field:ident) => {
        Field {
            name: $name,
            number: Number::U64 {
                get: |sample| sample.summary.$summary.$field,
                set: |sample, value| {
                    let latency = &mut sample.summary.$summary;
                    let is_measured =
                        latency.count > 0 && (value > 0 || latency.latency_ns_max == 0);
                    latency.$field = is_measured.then_some(value);
                },
            },
            later: false,
        }
    };
}

/// The numbers of one latency summary, in columns that end with `$suffix`.
macro_rules! latency {
    ($kind:ident, $suffix:literal) => {
        [
            number!(U64 concat!("count", $suffix) => summary.$kind.count),
            measured!(F64 concat!("latency_ns_avg", $suffix) => $kind.latency_ns_avg),
            measured!(F64 concat!("latency_ns_stdev", $suffix) => $kind.latency_ns_stdev),
            measured!(U64 concat!("latency_ns_min", $suffix) => $kind.latency_ns_min),
            measured!(U64 concat!("latency_ns_max", $suffix) => $kind.latency_ns_max),
            percentile!(concat!("latency_ns_p50", $suffix) => $kind.latency_ns_p50),
            percentile!(concat!("latency_ns_p90", $suffix) => $kind.latency_ns_p90),
            percentile!(concat!("latency_ns_p99", $suffix) => $kind.latency_ns_p99),
            percentile!(concat!("latency_ns_p999", $suffix) => $kind.latency_ns_p999),
            percentile!(concat!("latency_ns_p9999", $suffix) => $kind.latency_ns_p9999),
        ]
    };
}

/// The numbers of a sample that are not latencies.
static SPAN_FIELDS: &[Field] = &[
    number!(F64 "at_s" => at_s),
    number!(F64 "span_s" => summary.span_s),
    number!(F64 "iops" => summary.iops),
    number!(F64 "iops_read" => summary.iops_read),
    number!(F64 "iops_write" => summary.iops_write),
    number!(F64 "throughput_mb_s_read" => summary.throughput_read_mb_s),
    number!(F64 "throughput_mb_s_write" => summary.throughput_write_mb_s),
    number!(F64 "outstanding_avg" => summary.outstanding_avg),
    nand!(host_sent_bytes),
    nand!(host_bytes),
    nand!(relocation_bytes),
    nand!(wear_bytes),
    nand!(parity_bytes),
    nand!(metadata_bytes),
    nand!(erase_count),
    Field {
        name: "superblocks_free_share",
        number: Number::F64 {
            get: |sample| sample.superblocks_free_share,
            set: |sample, value| sample.superblocks_free_share = Some(value),
        },
        later: false,
    },
    climate!(power_w),
    climate!(temperature_c),
    climate!(thermal_throttled_share),
    climate!(power_throttled_share),
    pages_read!("pages_read", count),
    pages_read!("pages_read_unwritten", unwritten),
    Field {
        name: "host_processor_us",
        number: Number::F64 {
            get: |sample| sample.summary.host_processor_us,
            set: |sample, value| sample.summary.host_processor_us = Some(value),
        },
        later: true,
    },
];

/// The numbers of the three latency summaries of a sample.
static LATENCY_FIELDS: &[[Field; 10]] =
    &[latency!(latency, ""), latency!(read, "_read"), latency!(write, "_write")];

#[cfg(test)]
mod tests;
