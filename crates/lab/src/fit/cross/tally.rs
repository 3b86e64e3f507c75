//! Errors of a cross-validation in a few numbers.

use results::deviation::median_size;

use super::CrossRow;

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
}
