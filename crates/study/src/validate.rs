//! The models against published figures, row by row.
//!
//! ```text
//! rows ──► which drive, format, host, protocol, steps? ──► each simulated once ──► modelled /
//!               ├─ capacity, endurance, warranty: as the drive's file states        published
//!               └─ none: listed with the reason
//! ```
//!
//! A row that is about any format or any host is compared with the drive's first one. It is
//! expressed by the first protocol of the catalogue, in the order of their names, that has its
//! workload, load and phase; protocols that name the row's document come before all others.
//! Tolerances are those of [`tolerance`].

mod figure_plan;
mod tally;
mod work_list;

use blockio::text::stated_load;
use results::Figure;
use results::published::{FigureRow, Phase, is_from_listed_stalls};
use serde::{Deserialize, Serialize};
use ssd::{DriveSpec, HostSpec};

use lab::Error;
use lab::plan::Plan;
use lab::progress::Progress;

pub use results::published::{is_typical, tolerance};

pub use self::figure_plan::plans_of_figures;
pub use self::tally::{Share, Tally, worst};
pub(crate) use self::work_list::{NeededSteps, Simulation, carry_out_all};
pub use self::work_list::{RowSource, WorkList, is_about};

/// One row of figures and what a model made of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the row.
    pub id: String,
    /// Name of the drive where it was published.
    pub device: String,
    /// Format as published.
    pub mode: String,
    /// Host as published.
    pub host: String,
    /// Workload as published.
    pub workload: String,
    /// Jobs as published.
    pub threads: String,
    /// Requests outstanding for each job, as published.
    pub queue_per_thread: String,
    /// Phase of the test, as published.
    pub phase: String,
    /// Metric, whose name implies the unit: `mb_s`.
    pub metric: String,
    /// Published value, lower end.
    pub value_low: Option<f64>,
    /// Published value, upper end.
    pub value_high: Option<f64>,
    /// Verdict on the row.
    #[serde(flatten)]
    pub verdict: Verdict,
}

impl Row {
    /// True if a reviewer measured the row; else a data sheet states it.
    pub fn is_measured(&self) -> bool {
        Phase::named(&self.phase).is_some_and(|phase| !phase.is_stated())
    }

    /// Comparison with the model; absent where there is none.
    pub const fn compared(&self) -> Option<&FigureComparison> {
        match &self.verdict {
            Verdict::In(compared) | Verdict::Out(compared) => Some(compared),
            Verdict::Stated(_) | Verdict::NotExpressible { .. } => None,
        }
    }

    /// Fact of a data sheet beside what the drive's file states; absent for what is simulated.
    pub const fn stated(&self) -> Option<&DatasheetFact> {
        match &self.verdict {
            Verdict::Stated(stated) => Some(stated),
            _ => None,
        }
    }

    /// The load for a table: `T16Q16`, or what of it is stated.
    pub fn load_text(&self) -> String {
        stated_load(&self.threads, &self.queue_per_thread)
    }

    /// The published value for a table, see [`range_text`].
    pub fn published_text(&self) -> String {
        range_text(self.value_low, self.value_high)
    }
}

/// The published value from `low` to `high` for a table: `42644`, `41000 to 42000`, or `at most 1`
/// where no more than an upper bound was published; empty where there is none.
pub fn range_text(low: Option<f64>, high: Option<f64>) -> String {
    match (low, high) {
        (Some(0.0), Some(high)) if high > 0.0 => format!("at most {}", number_text(high)),
        (Some(low), Some(high)) if low < high => {
            format!("{} to {}", number_text(low), number_text(high))
        }
        (Some(value), _) => number_text(value),
        (None, _) => String::new(),
    }
}

/// A number for a table: whole from a hundred on, else three decimals at most.
pub fn number_text(value: f64) -> String {
    if value.abs() >= 100.0 {
        return format!("{value:.0}");
    }
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Verdict on one row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// Within its tolerance.
    In(FigureComparison),
    /// Beyond its tolerance.
    Out(FigureComparison),
    /// A fact of a data sheet, beside what the drive's file states: no simulation tells it.
    Stated(DatasheetFact),
    /// No plan or model can express the row.
    NotExpressible {
        /// Reason why it cannot be compared.
        reason: String,
    },
}

/// A published value beside the modelled one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureComparison {
    /// Name of the model.
    pub drive: String,
    /// Name of the model, the format and the host: `iodrive-duo stock linux`.
    pub model: String,
    /// Name of the protocol that expresses the row.
    pub protocol: String,
    /// Modelled value, in the unit of the metric.
    pub modelled: f64,
    /// Modelled over published; over the nearest end where a range was published.
    pub ratio: f64,
    /// True if the value comes from the stalls that the drive's file lists for the host, see
    /// [`is_from_listed_stall`]. They were fitted to such values; no mechanism yields them.
    #[serde(alias = "scheduled")]
    pub from_listed_stalls: bool,
    /// Version of the models.
    pub model_version: u32,
}

/// True if the value `modelled` of `metric` comes from the stalls of `host` (`[[host.stall]]`):
/// a maximum or a percentile, if a stall lasts at least half as long; a deviation, if there is any
/// stall. Rates and averages come from none.
pub fn is_from_listed_stall(metric: &str, modelled: f64, host: &HostSpec) -> bool {
    let longest = host.stalls.iter().map(|stall| stall.span_ms).max_by(f64::total_cmp);
    is_from_listed_stalls(metric, modelled, longest)
}

/// A fact of a data sheet beside what a drive's file states.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatasheetFact {
    /// Name of the model.
    pub drive: String,
    /// Name of the format.
    pub format: String,
    /// Value by the drive's file, in the unit of the metric.
    pub value: f64,
    /// True if it is the published one, within the precision of what is printed: 1 %.
    pub agrees: bool,
}

/// Difference of a stated value that is within what makers round, as a share.
const STATED_SHARE: f64 = 0.01;
/// Word of a table of figures for a row about one module of a card.
const OF_MODULE: &str = "per-iodimm";

/// The verdict on a row that is a fact of a data sheet; absent where no drive's file states it.
fn stated(row: &FigureRow, drives: &[DriveSpec]) -> Option<DatasheetFact> {
    let spec = drives.iter().find(|spec| is_about(row, spec))?;
    let format = work_list::format(row, spec).ok()?;
    let value = spec.stated(&row.metric, &format, row.workload == OF_MODULE)?;
    let (low, high) = (row.value_low?, row.value_high.or(row.value_low)?);
    let range = low * (1.0 - STATED_SHARE)..=high * (1.0 + STATED_SHARE);
    Some(DatasheetFact { drive: spec.name.clone(), format, value, agrees: range.contains(&value) })
}

/// Models and plans that rows are compared with.
#[derive(Clone, Copy, Debug)]
pub struct Bench<'a> {
    /// The models, at the time lapse that is their own.
    pub drives: &'a [DriveSpec],
    /// The plans whose steps stand for the published tests, see [`plans`].
    pub plans: &'a [Plan],
    /// Simulations at once.
    pub threads: usize,
}

/// Sentence that names those of `drives` whose models are unvalidated; empty without any.
pub fn unvalidated(drives: &[DriveSpec]) -> String {
    let names: Vec<&str> = drives
        .iter()
        .filter(|drive| !drive.is_validated())
        .map(|drive| drive.name.as_str())
        .collect();
    if names.is_empty() {
        return String::new();
    }
    format!("Unvalidated models, whose rates no published ones confirm: {}.", names.join(", "))
}

/// Seed of every comparison with published figures, whose results must come out the same.
pub const SEED: u64 = 1;

/// The plans of the protocols of the catalogue that stand for published tests, in its order.
///
/// # Errors
/// Names the workload that a protocol lacks.
pub fn plans() -> Result<Vec<Plan>, Error> {
    let workloads = workload::catalogue::workloads();
    let protocols = workload::catalogue::protocols().into_iter();
    let published = protocols.filter(|protocol| protocol.published.is_some());
    published.map(|protocol| Plan::new(&protocol, &workloads, SEED)).collect()
}

/// Compares `rows` with the models; each step that some row needs is simulated once, and no row is
/// left out.
///
/// # Errors
/// Fails if a simulation failed or was stopped.
pub fn validate(
    rows: &[&FigureRow],
    bench: Bench<'_>,
    progress: &dyn Progress,
) -> Result<Vec<Row>, Error> {
    let work_list = WorkList::new(rows, bench.drives, bench.plans);
    let values = work_list.values(bench.drives, bench.threads, progress)?;
    let judged = rows.iter().zip(work_list.entries()).zip(values);
    Ok(judged
        .map(|((row, entry), value)| {
            let verdict = match entry {
                Err(reason) => stated(row, bench.drives).map_or_else(
                    || Verdict::NotExpressible { reason: reason.clone() },
                    Verdict::Stated,
                ),
                Ok(entry) => judge(row, entry, value, bench.drives),
            };
            described(row, verdict)
        })
        .collect())
}

fn judge(
    row: &FigureRow,
    entry: &RowSource,
    measured: Option<f64>,
    drives: &[DriveSpec],
) -> Verdict {
    let figure = row.figure().map(|figure| Figure { measured, ..figure });
    let found = figure.and_then(|figure| Some((figure.measured?, figure.ratio()?)));
    let Some((modelled, ratio)) = found else {
        let reason = "the model completed no request, or the figure is zero".to_owned();
        return Verdict::NotExpressible { reason };
    };
    let setup = &entry.setup;
    let host = drives.iter().find(|spec| spec.name == setup.target);
    let host = host.and_then(|spec| spec.host(&setup.host).ok());
    let compared = FigureComparison {
        drive: setup.target.clone(),
        model: setup.to_string(),
        protocol: entry.protocol.clone(),
        modelled,
        ratio,
        from_listed_stalls: host
            .is_some_and(|host| is_from_listed_stall(&row.metric, modelled, &host)),
        model_version: ssd::MODEL_VERSION,
    };
    let (low, high) = tolerance(&row.metric);
    if (low..=high).contains(&ratio) { Verdict::In(compared) } else { Verdict::Out(compared) }
}

fn described(row: &FigureRow, verdict: Verdict) -> Row {
    Row {
        id: row.id.clone(),
        device: row.device.clone(),
        mode: row.mode.clone(),
        host: row.os.clone(),
        workload: row.workload.clone(),
        threads: row.threads.clone(),
        queue_per_thread: row.queue_per_thread.clone(),
        phase: row.phase.name().into(),
        metric: row.metric.clone(),
        value_low: row.value_low,
        value_high: row.value_high,
        verdict,
    }
}

#[cfg(test)]
mod tests;
