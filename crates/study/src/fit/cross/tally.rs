//! Errors of a cross-validation in a few numbers.

use std::collections::BTreeSet;

use results::deviation::median_size;
use results::published::{Phase, figures};

use super::{CrossRow, CrossValidation};

/// Errors of some figures: of the drive's file, which was fitted to them, and of predictions
/// without their family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CrossTally {
    /// Figures.
    pub rows: usize,
    /// Median and ninth decile of the predictions' errors, as shares.
    pub predicted: (f64, f64),
    /// Median and ninth decile of the errors of the file, as shares.
    pub fitted: (f64, f64),
}

/// Errors of those of `rows` whose workload was published; absent without any.
pub fn tally<'a>(rows: impl IntoIterator<Item = &'a CrossRow>) -> Option<CrossTally> {
    of(rows.into_iter().filter(|row| !row.estimated))
}

/// Errors of those of `rows` whose workload is an estimate; absent without any.
pub fn tally_estimated<'a>(rows: impl IntoIterator<Item = &'a CrossRow>) -> Option<CrossTally> {
    of(rows.into_iter().filter(|row| row.estimated))
}

/// Loads that the rows of `crossed` with a published workload are of. Rate, throughput and average
/// latency of one load state one fact, as in a fit; a row of no table is a load of its own.
pub fn loads(crossed: &[CrossValidation]) -> usize {
    let published = crossed.iter().flat_map(|of| {
        of.rows.iter().filter(|row| !row.estimated).map(|row| (of.drive.as_str(), row))
    });
    let load = |(drive, row): (&str, &CrossRow)| {
        let figure = figures().iter().find(|figure| figure.id == row.id);
        let parts = figure.map_or_else(
            || vec![row.id.clone()],
            |it| {
                let is_burst = (it.phase == Phase::Burst).to_string();
                let setup = [it.mode.clone(), it.os.clone(), it.workload.clone()];
                let load = [it.threads.clone(), it.queue_per_thread.clone(), is_burst];
                setup.into_iter().chain(load).collect()
            },
        );
        (drive.to_owned(), parts)
    };
    published.map(load).collect::<BTreeSet<_>>().len()
}

fn of<'a>(rows: impl Iterator<Item = &'a CrossRow>) -> Option<CrossTally> {
    let (mut predicted, mut fitted): (Vec<f64>, Vec<f64>) =
        rows.map(|row| (row.error, row.fitted_error)).unzip();
    Some(CrossTally {
        rows: predicted.len(),
        predicted: quantiles(&mut predicted)?,
        fitted: quantiles(&mut fitted)?,
    })
}

/// Median, and ninth decile by nearest rank.
fn quantiles(errors: &mut [f64]) -> Option<(f64, f64)> {
    errors.sort_by(f64::total_cmp);
    let rank = (errors.len() * 9).div_ceil(10);
    Some((median_size(errors.iter().copied())?, *errors.get(rank.checked_sub(1)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(error: f64, estimated: bool) -> CrossRow {
        CrossRow {
            id: "A1".into(),
            family: "4k random".into(),
            metric: "iops".into(),
            estimated,
            low: 1.0,
            high: 1.0,
            fitted: 1.0,
            fitted_error: error / 2.0,
            predicted: 1.0 + error,
            error,
        }
    }

    #[test]
    fn rows_of_estimated_workloads_count_apart() {
        let rows: Vec<CrossRow> = (1..=10)
            .map(|tenth| row(f64::from(tenth) / 10.0, false))
            .chain([row(9.0, true)])
            .collect();
        let told = tally(&rows).unwrap();
        assert_eq!((told.rows, told.predicted), (10, (0.55, 0.9)));
        assert_eq!(told.fitted, (0.275, 0.45));
        assert_eq!(tally_estimated(&rows).unwrap().predicted, (9.0, 9.0));
        assert_eq!(tally(&rows[10..]), None);
    }

    #[test]
    fn rate_and_latency_of_one_load_are_one_load() {
        let of = |ids: &[&str]| CrossValidation {
            drive: "iodrive-duo".into(),
            model_version: 1,
            numbers: Vec::new(),
            rows: ids.iter().map(|id| CrossRow { id: (*id).into(), ..row(0.1, false) }).collect(),
            looks: 1,
        };
        // A084 and A089 are rate and average latency of 4 KiB writes at one load.
        assert_eq!(loads(&[of(&["A084", "A089"])]), 1);
        assert_eq!(loads(&[of(&["A084", "A089", "A053"])]), 2);
        let estimated = CrossValidation { rows: vec![row(0.1, true)], ..of(&[]) };
        assert_eq!(loads(&[of(&["A084"]), estimated]), 1);
    }
}
