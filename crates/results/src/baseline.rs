//! Some drives of the catalogue, each simulated once under a few loads: what a review sets beside
//! its own drive.
//!
//! The table is `drives/baseline.csv`, embedded. `cargo xtask baseline` writes it: models in their
//! first format and behind their first host, purged, preconditioned and measured by the enterprise
//! protocol. It has the drives that were simulated so far, not the whole catalogue. Each row holds
//! the model version that it was measured with, so that a reader of another version can be told.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::conditions::representative;
use crate::mark::marked;
use crate::{Run, Step, Summary};

/// Name of the table.
pub const FILE: &str = "drives/baseline.csv";
const TEXT: &str = include_str!("../baseline.csv");

/// Jobs of every load of the table.
pub const THREADS: u16 = 16;
/// Requests that each of these jobs keeps outstanding.
pub const QUEUE_PER_THREAD: u16 = 16;

/// One drive of the catalogue. All figures are of measurements that follow a preconditioning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaselineRow {
    /// Name in the catalogue.
    pub drive: String,
    /// Heading on a report.
    pub title: String,
    /// True of a model whose rates have not been compared with published ones.
    pub unvalidated: bool,
    /// Format of the drive.
    pub format: String,
    /// Model version that the row was measured with.
    pub model_version: u32,
    /// 4K random writes in each second.
    pub write_iops: f64,
    /// 4K random reads in each second.
    pub read_iops: f64,
    /// 8K random requests in each second, 70 % of them reads.
    pub mixed_iops: f64,
    /// Latency that 99.9 % of the 4K random writes do not exceed, in nanoseconds.
    pub write_latency_ns_p999: u64,
}

/// A figure of a drive that the table has too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headline {
    /// 4K random writes in each second.
    Write,
    /// 4K random reads in each second.
    Read,
    /// 8K random requests in each second, 70 % of them reads.
    Mixed,
    /// Latency that 99.9 % of the 4K random writes do not exceed.
    WriteTail,
}

impl Headline {
    /// Every figure, in the order of the table.
    pub const ALL: [Self; 4] = [Self::Write, Self::Read, Self::Mixed, Self::WriteTail];

    /// Name of the workload that it is measured with.
    pub const fn workload(self) -> &'static str {
        match self {
            Self::Write | Self::WriteTail => "4k-rand-write",
            Self::Read => "4k-rand-read",
            Self::Mixed => "8k-70-30",
        }
    }

    /// Metric of published figures that it is, with its unit.
    pub const fn metric(self) -> &'static str {
        match self {
            Self::WriteTail => "p999_latency_ms",
            Self::Write | Self::Read | Self::Mixed => "iops",
        }
    }

    /// Its value in a row of the table: requests a second, or nanoseconds.
    pub const fn of_row(self, row: &BaselineRow) -> f64 {
        match self {
            Self::Write => row.write_iops,
            Self::Read => row.read_iops,
            Self::Mixed => row.mixed_iops,
            Self::WriteTail => row.write_latency_ns_p999 as f64,
        }
    }

    /// Its value in a summary of its workload: requests a second, or nanoseconds, absent where too
    /// few requests were measured.
    pub fn of_summary(self, summary: &Summary) -> Option<f64> {
        match self {
            Self::WriteTail => summary.latency.p999_ns().map(|it| it as f64),
            Self::Write | Self::Read | Self::Mixed => Some(summary.iops),
        }
    }

    /// Its value in what `run` measured in `step`: requests a second, or nanoseconds; absent where
    /// too few requests were measured, requests are missing from the percentiles, or a stall makes
    /// it, see [`Self::is_of_listed_stall`].
    pub fn of_step(self, run: &Run, step: &Step) -> Option<f64> {
        let has_value = self != Self::WriteTail
            || !run.lacks_requests(&step.id) && !self.is_of_listed_stall(run, step);
        step.summary.as_ref().filter(|_| has_value).and_then(|summary| self.of_summary(summary))
    }

    /// True if it is as long as a stall that the file of the model lists for its host: it says
    /// nothing of the drive.
    pub fn is_of_listed_stall(self, run: &Run, step: &Step) -> bool {
        let tail = step.summary.as_ref().and_then(|it| it.latency.p999_ns());
        self == Self::WriteTail && tail.is_some_and(|tail| run.target.is_listed_stall(tail))
    }

    /// The measurement of `run` that it is read from: that of the table's load, else that with most
    /// outstanding; of several the first with the least compressible data. Absent where the
    /// workload was not measured.
    pub fn step(self, run: &Run) -> Option<&Step> {
        let measured = run.steps.iter().filter(|step| {
            step.workload == self.workload() && step.is_primary() && step.summary.is_some()
        });
        representative(measured)
    }
}

/// The place of `value` among the table and itself by `headline`, from 1, and how many there are.
pub fn place(headline: Headline, value: f64, known: &str) -> (usize, usize) {
    let others = || rows().iter().filter(|row| row.drive != known);
    let is_ahead = |row: &&BaselineRow| match headline {
        Headline::WriteTail => headline.of_row(row) < value,
        Headline::Write | Headline::Read | Headline::Mixed => headline.of_row(row) > value,
    };
    (others().filter(is_ahead).count() + 1, others().count() + 1)
}

/// True if `step` loads a drive as the table does.
fn has_load(step: &Step) -> bool {
    (step.threads, step.queue_per_thread) == (THREADS, QUEUE_PER_THREAD)
}

/// True if `run` measured `step` as the table does: under its load, on the whole drive, with data
/// that cannot be compressed, in detail, and in steady state unless it only reads. A burst of
/// writes is several times what the drives of the table sustain.
pub fn is_comparable(run: &Run, step: &Step) -> bool {
    let writes = step.summary.as_ref().is_some_and(|summary| summary.write.count > 0);
    conditions(step).is_empty() && (!writes || run.is_settled(step) == Some(true))
}

/// In what `step` differs from the measurements of the table, in words; empty where in nothing.
pub fn conditions(step: &Step) -> Vec<String> {
    let load = format!("at T{}Q{}", step.threads, step.queue_per_thread);
    let footprint = step.footprint_percent.map(|it| format!("on {it} % of the capacity"));
    let percent = step.compressible_percent;
    let data = (percent > 0.0).then(|| format!("with data compressible by {percent} %"));
    let sampled = step.sampling.as_ref().filter(|it| it.is_sampled());
    let sampled = sampled.map(|it| format!("sampled to ±{} %", it.percent()));
    let load = (!has_load(step)).then_some(load);
    load.into_iter().chain(footprint).chain(data).chain(sampled).collect()
}

impl BaselineRow {
    /// Heading on a report, with the mark of an unvalidated model.
    pub fn heading(&self) -> String {
        marked(&self.title, self.unvalidated)
    }

    /// The row of `run`, a model through the enterprise protocol; absent where a load is missing or
    /// was sampled.
    pub fn of_run(run: &Run) -> Option<Self> {
        let value = |headline: Headline| {
            let step = headline.step(run).filter(|step| has_load(step))?;
            if run.precision(Some(&step.suite)).is_some() {
                return None;
            }
            headline.of_step(run, step)
        };
        let write = Headline::Write.step(run)?.summary.as_ref()?;
        Some(Self {
            drive: run.target.name.clone(),
            title: run.target.title.clone(),
            unvalidated: run.target.unvalidated,
            format: run.target.format.clone(),
            model_version: run.model_version?,
            write_iops: value(Headline::Write)?.round(),
            read_iops: value(Headline::Read)?.round(),
            mixed_iops: value(Headline::Mixed)?.round(),
            write_latency_ns_p999: write.latency.latency_ns_p999?,
        })
    }
}

/// Every row of the table, ordered by name.
pub fn rows() -> &'static [BaselineRow] {
    static ROWS: LazyLock<Vec<BaselineRow>> =
        LazyLock::new(|| parse(TEXT).expect("a test reads the embedded table"));
    &ROWS
}

/// Reads a table.
///
/// # Errors
/// Says line and column.
pub fn parse(text: &str) -> Result<Vec<BaselineRow>, csv::Error> {
    csv::Reader::from_reader(text.as_bytes()).deserialize().collect()
}

/// The table of `rows`.
///
/// # Errors
/// None for rows of finite numbers.
pub fn to_csv(rows: &[BaselineRow]) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.serialize(row)?;
    }
    let bytes = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// At most `count` rows besides `known`, those whose `headline` is nearest to `value` by ratio, the
/// greatest first.
pub fn nearest(
    headline: Headline,
    value: f64,
    known: &[&str],
    count: usize,
) -> Vec<&'static BaselineRow> {
    let others = rows().iter().filter(|row| !known.contains(&row.drive.as_str()));
    let mut others: Vec<&BaselineRow> = others.filter(|row| headline.of_row(row) > 0.0).collect();
    let distance = |row: &BaselineRow| (headline.of_row(row) / value.max(1.0)).ln().abs();
    others.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
    others.truncate(count);
    others.sort_by(|a, b| headline.of_row(b).total_cmp(&headline.of_row(a)));
    others
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn the_embedded_table_is_one_and_reads_back_as_it_was_written() {
        assert_eq!(parse(&to_csv(rows()).unwrap()).unwrap(), rows());
        assert!(rows().iter().all(|row| row.write_iops > 0.0 && row.read_iops > 0.0));
        let mut names: Vec<&str> = rows().iter().map(|row| row.drive.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), rows().len(), "each drive has one row");
    }

    #[test]
    fn the_nearest_drives_leave_out_those_that_are_known() {
        let first = &rows()[0];
        let near = nearest(Headline::Write, first.write_iops, &[first.drive.as_str()], 4);
        assert_eq!(near.len(), 4.min(rows().len() - 1));
        assert!(near.iter().all(|row| row.drive != first.drive));
        assert!(near.windows(2).all(|pair| pair[0].write_iops >= pair[1].write_iops));
    }

    #[test]
    fn writes_are_comparable_in_steady_state_only_and_reads_always() {
        let mut run = example::run();
        let is =
            |run: &Run, headline: Headline| headline.step(run).map(|step| is_comparable(run, step));
        assert_eq!(is(&run, Headline::Write), Some(true));
        for steady in run.steps.iter_mut().filter_map(|step| step.steady.as_mut()) {
            steady.achieved = false;
        }
        assert_eq!(is(&run, Headline::Write), Some(false), "a burst");
        assert_eq!(is(&run, Headline::Read), Some(true));
    }

    #[test]
    fn a_sampled_load_is_not_comparable_and_makes_no_row() {
        let mut run = example::run();
        run.model_version = Some(1);
        example::sample(&mut run);
        let step = Headline::Write.step(&run).unwrap();
        assert!(conditions(step).contains(&"sampled to ±1 %".to_owned()));
        assert!(!is_comparable(&run, step));
        assert_eq!(BaselineRow::of_run(&run), None);
    }

    #[test]
    fn of_equal_loads_the_first_with_the_least_compressible_data_is_taken_and_told() {
        let mut run = example::run();
        let step = Headline::Write.step(&run).unwrap().clone();
        let of = |id: &str, compressible_percent| Step {
            id: id.into(),
            compressible_percent,
            footprint_percent: Some(25.0),
            queue_per_thread: 2,
            ..step.clone()
        };
        run.steps = vec![of("half", 50.0), of("none", 0.0), of("again", 0.0)];
        let taken = Headline::Write.step(&run).unwrap();
        assert_eq!(taken.id, "none");
        let load = format!("at T{}Q2", taken.threads);
        assert_eq!(conditions(taken), [load.as_str(), "on 25 % of the capacity"]);
        assert!(!is_comparable(&run, taken), "a quarter of the drive is quicker than all of it");
    }

    #[test]
    fn percentiles_of_a_load_that_lacks_requests_are_withheld_and_its_rate_is_not() {
        let mut run = example::run();
        let step = Headline::Write.step(&run).unwrap().clone();
        run.warnings.push(crate::Warning {
            kind: crate::WarningKind::Unfinished,
            step: step.id.clone(),
            text: String::new(),
            remedy: String::new(),
        });
        assert_eq!(Headline::Write.step(&run).map(|it| &it.id), Some(&step.id), "the same load");
        assert!(Headline::Write.of_step(&run, &step).is_some());
        assert_eq!(Headline::WriteTail.of_step(&run, &step), None);
    }

    #[test]
    fn a_run_has_the_figures_of_its_measurements() {
        let run = example::run();
        let step = Headline::Write.step(&run).unwrap();
        let iops = step.summary.as_ref().unwrap().iops;
        let found = Headline::Write.of_summary(step.summary.as_ref().unwrap()).unwrap();
        assert!((found - iops).abs() < 1e-9);
        let row = BaselineRow::of_run(&run);
        assert!(row.is_none_or(|row| (row.write_iops - iops.round()).abs() < 1.0));
    }
}
