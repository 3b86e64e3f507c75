//! Figures of the drive that a fit goes by, and contradictions among them.

use std::collections::BTreeSet;

use blockio::nearest;
use lab::plan::Plan;
use lab::{Error, Kind};
use results::published::{self, ANY, Confidence, FigureRow, Metric, Phase};
use results::{Run, StepKind, Summary};
use serde::Serialize;
use ssd::{DriveSpec, PublishedSpec};
use workload::{PublishedMapping, PublishedPhase, Workload};

use crate::validate::{is_about, plans};

/// Metrics to suggest for one that is unknown.
const METRICS: [&str; 5] = ["iops", "mb_s", "avg_latency_ms", "stdev_latency_ms", "max_latency_ms"];
/// Little's law: requests outstanding may differ from threads times queue by this share.
const LITTLE_MAX: f64 = 0.06;
/// Share by which two publications of the same figure may differ.
const TWICE_MAX: f64 = 0.05;

/// Figures that cannot all be true.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Contradiction {
    /// Names of the rows.
    pub rows: Vec<String>,
    /// Description of the contradiction, with its numbers.
    pub text: String,
}

/// The rows of `table` that are about the drive of `spec`.
///
/// `text` and `file` are those that the table was read from, for errors; workloads are known that
/// are built in, or are loads of `plans`.
///
/// # Errors
/// Fails if there is none, naming the devices that there are; if one has an unknown metric or
/// workload, with file and line.
pub(super) fn rows_of<'a>(
    spec: &DriveSpec,
    table: &'a [FigureRow],
    (text, file): (&str, &str),
    plans: &[Plan],
) -> Result<Vec<&'a FigureRow>, Error> {
    let rows: Vec<&FigureRow> = table.iter().filter(|row| is_about(row, spec)).collect();
    if rows.is_empty() {
        return Err(no_figures(spec, table, file));
    }
    let mut workloads = workload::catalogue::workloads();
    let steps = plans.iter().flat_map(|plan| &plan.steps);
    workloads.extend(steps.filter_map(|step| step.workload.clone()));
    for row in &rows {
        check(row, &workloads).map_err(|(what, near)| {
            let line = line_of(text, &row.id);
            let error = Error::new(Kind::Input, format!("{file}:{line}: row {}: {what}", row.id));
            error.hint(near)
        })?;
    }
    Ok(rows)
}

fn no_figures(spec: &DriveSpec, table: &[FigureRow], file: &str) -> Error {
    let device = |row: &FigureRow| match row.capacity_gb {
        Some(gb) => format!("{} {gb}", row.device),
        None => row.device.clone(),
    };
    let devices: BTreeSet<String> = table.iter().map(device).collect();
    let devices: Vec<String> = devices.into_iter().collect();
    let asked = match spec.published_as() {
        Some((device, gb)) => format!("no figure of {device} {gb}"),
        None => format!("{} does not say how figures name it", spec.name),
    };
    Error::new(Kind::Input, format!("{file}: {asked}")).hint(format!(
        "its [published] table must give device and capacity_gb as in the file, which has: {}",
        devices.join(", ")
    ))
}

/// Refuses a row with an unknown metric or workload: returns the fault, and a hint at known names.
///
/// Known are those of a run, and those of the project's own table.
fn check(row: &FigureRow, workloads: &[Workload]) -> Result<(), (String, String)> {
    let own = published::figures();
    let refused = |what: &str, asked: &str, known: BTreeSet<&str>| {
        let hint = match nearest(asked, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known are {}", known.into_iter().collect::<Vec<_>>().join(", ")),
        };
        Err((format!("no {what} is called `{asked}`"), hint))
    };
    let is_metric = Metric::named(&row.metric).is_some();
    if !is_metric && own.iter().all(|other| other.metric != row.metric) {
        let known = METRICS.into_iter().collect();
        return refused("metric with its unit", &row.metric, known);
    }
    let mut names = own.iter().map(|other| other.workload.as_str());
    let mut catalogue = workloads.iter().map(|workload| workload.name.as_str());
    if !catalogue.any(|name| name == row.workload) && !names.any(|name| name == row.workload) {
        let known = workloads.iter().map(|workload| workload.name.as_str()).collect();
        return refused("workload", &row.workload, known);
    }
    Ok(())
}

/// Line of the row named `id` in a table, from 1.
fn line_of(text: &str, id: &str) -> usize {
    let is_row = |line: &str| line.split(',').next().is_some_and(|cell| cell.trim() == id);
    text.lines().position(is_row).map_or(1, |index| index + 1)
}

/// Figures that a fit goes by, and the protocols that they were measured with.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// Name of the file of figures, or of the run.
    pub name: String,
    /// The text that the rows were read from; empty where they come from none.
    pub text: String,
    /// Rows of the figures.
    pub table: Vec<FigureRow>,
    /// The plans that express them.
    pub plans: Vec<Plan>,
    /// Name and capacity by which the rows identify the drive; absent to use those of its file.
    pub published: Option<PublishedSpec>,
    /// Assumption about the drive that the figures were measured on, in a sentence; absent where
    /// their source says how it was prepared.
    pub assumed: Option<String>,
}

/// User capacity of the first format, in bytes.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive size")]
fn user_bytes(spec: &DriveSpec) -> u64 {
    (spec.formats[0].user_gb * 1e9) as u64
}

impl Evidence {
    /// Published figures in `table`, which was read from `text` in the file `name`.
    ///
    /// # Errors
    /// Fails if a protocol of the catalogue has no plan.
    pub fn of_table(name: String, text: String, table: Vec<FigureRow>) -> Result<Self, Error> {
        Ok(Self { name, text, table, plans: plans()?, published: None, assumed: None })
    }

    /// Figures of the drive of `spec` in `run`, which followed `plan`. The report of another
    /// program does not say how the drive was prepared: all of it is taken as written once.
    pub fn of_run(spec: &DriveSpec, run: &Run, plan: Plan) -> Self {
        let assumed = run.imported_from().map(|program| {
            format!(
                "{program} does not say how the drive was prepared: assumed is that all of it was \
                 written once, in order, before each load"
            )
        });
        let plan = if assumed.is_some() { plan.filled_before_each_load() } else { plan };
        let name = format!("run {}", run.id).trim_end().to_owned();
        let named = PublishedSpec {
            device: spec.name.clone(),
            capacity_gb: spec.formats[0].user_gb,
            precondition_hours: None,
            source: format!("derived: {name}"),
        };
        let expresses = PublishedMapping {
            documents: Vec::new(),
            phase: PublishedPhase::Primary,
            mb_bytes: 1_000_000,
            precondition_by_drive: false,
            host: String::new(),
        };
        // A load beyond the end of the drive is refused where it is simulated.
        let mut plan = plan.placed(user_bytes(spec)).unwrap_or(plan);
        plan.published = Some(expresses);
        Self {
            name,
            text: String::new(),
            table: rows_of_run(spec, run, &named),
            plans: vec![plan],
            published: Some(named),
            assumed,
        }
    }

    /// The rows about the drive of `spec`, which must have `format` if one is given; and the drive
    /// as they identify it.
    ///
    /// # Errors
    /// Fails if there is no row about it, naming the devices that there are; if one has an unknown
    /// metric or workload, with file and line; or if it has no such format.
    pub fn about(
        &self,
        spec: DriveSpec,
        format: Option<&str>,
    ) -> Result<(DriveSpec, Vec<&FigureRow>), Error> {
        let spec = DriveSpec { published: self.published.clone().or(spec.published), ..spec };
        let rows = rows_of(&spec, &self.table, (&self.text, &self.name), &self.plans)?;
        if let Some(format) = format {
            let refuse = |source| Error::new(Kind::Input, "choosing figures").source(source);
            spec.format(format).map_err(refuse)?;
        }
        Ok((spec, rows))
    }
}

/// The figures that a run measured, as rows about the drive that they call `named`.
fn rows_of_run(spec: &DriveSpec, run: &Run, named: &PublishedSpec) -> Vec<FigureRow> {
    let mode = if run.target.format.is_empty() {
        spec.formats()[0].clone()
    } else {
        run.target.format.clone()
    };
    let os = if run.target.host.is_empty() { "any".into() } else { run.target.host.clone() };
    let mut rows = Vec::new();
    // A load that is not known cannot be modelled.
    for step in run.steps.iter().filter(|step| !step.workload.is_empty()) {
        let (summary, phase) = match step.kind {
            StepKind::Precondition => (&step.settled, Phase::Steady),
            StepKind::Measure => (&step.summary, Phase::Primary),
            StepKind::Purge | StepKind::Fill | StepKind::Application => continue,
        };
        for (metric, value) in summary.iter().flat_map(figures_of) {
            rows.push(FigureRow {
                id: format!("{} {metric}", step.id),
                document: run.id.clone(),
                device: named.device.clone(),
                capacity_gb: Some(named.capacity_gb),
                mode: mode.clone(),
                os: os.clone(),
                workload: step.workload.clone(),
                threads: step.threads.to_string(),
                queue_per_thread: step.queue_per_thread.to_string(),
                phase,
                metric: metric.to_owned(),
                value_low: Some(value),
                value_high: Some(value),
                confidence: Confidence::Exact,
                note: String::new(),
            });
        }
    }
    rows
}

/// The figures of `summary` that were measured.
fn figures_of(summary: &Summary) -> impl Iterator<Item = (&'static str, f64)> {
    let latency = &summary.latency;
    let ms = |latency_ns: Option<f64>| latency_ns.map(|it| it / 1e6);
    [
        ("iops", Some(summary.iops)),
        ("avg_latency_ms", ms(latency.mean_ns())),
        ("stdev_latency_ms", ms(summary.stdev_of_directions_ns())),
        ("max_latency_ms", ms(latency.max_ns().map(|it| it as f64))),
    ]
    .into_iter()
    .filter_map(|(metric, value)| Some((metric, value?)))
}

/// Rows among `rows`, about `devices` devices, that cannot all be true.
pub fn contradictions(rows: &[&FigureRow], devices: u32) -> Vec<Contradiction> {
    let mut found = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        for other in rows[index + 1..].iter().filter(|other| is_same_load(row, other)) {
            let text = twice(row, other).or_else(|| little(row, other, devices));
            if let Some(text) = text.or_else(|| little(other, row, devices)) {
                found.push(Contradiction { rows: vec![row.id.clone(), other.id.clone()], text });
            }
        }
    }
    found
}

/// True if both rows are about one load of one setup in one phase.
fn is_same_load(row: &FigureRow, other: &FigureRow) -> bool {
    let same = |a: &str, b: &str| a == b || a == ANY || b == ANY;
    row.workload == other.workload
        && row.threads == other.threads
        && row.queue_per_thread == other.queue_per_thread
        && row.phase == other.phase
        && row.mode == other.mode
        && same(&row.os, &other.os)
}

fn ends(row: &FigureRow) -> Option<(f64, f64)> {
    (row.confidence != Confidence::Garbled).then_some((row.value_low?, row.value_high?))
}

/// Contradiction of two rows that give one metric different values; absent where they agree.
fn twice(row: &FigureRow, other: &FigureRow) -> Option<String> {
    let exact = ["iops", "mb_s", "avg_latency_ms"].contains(&row.metric.as_str());
    if row.metric != other.metric || !exact {
        return None;
    }
    let ((low, high), (other_low, other_high)) = (ends(row)?, ends(other)?);
    let apart = (low / other_high).max(other_low / high) - 1.0;
    (apart > TWICE_MAX).then(|| {
        format!("{} is {low} in one and {other_low} in the other, for one load", row.metric)
    })
}

/// Contradiction of a rate and an average latency whose product is not the requests outstanding
/// (Little's law); absent where they agree. Threads are those of each of `devices`, rates are
/// their sum.
fn little(rate: &FigureRow, latency: &FigureRow, devices: u32) -> Option<String> {
    if rate.metric != "iops" || latency.metric != "avg_latency_ms" {
        return None;
    }
    let threads = rate.threads.parse::<f64>().ok()? * f64::from(devices);
    let outstanding = threads * rate.queue_per_thread.parse::<f64>().ok()?;
    let ((iops_low, iops_high), (low_ms, high_ms)) = (ends(rate)?, ends(latency)?);
    let (least, most) = (iops_low * low_ms / 1e3, iops_high * high_ms / 1e3);
    let apart = (least / outstanding).max(outstanding / most) - 1.0;
    (apart > LITTLE_MAX).then(|| {
        format!(
            "{iops_low} IOPS at {low_ms} ms make {least:.0} requests outstanding, \
             not {outstanding:.0}"
        )
    })
}

#[cfg(test)]
mod tests;
