//! Read retries: more of them the more a block has been erased, and the longer its data lies there.

use serde::Deserialize;

/// Reads that NAND repeats with other reference voltages until its code can correct the data, as
/// measured on chips.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadRetrySpec {
    /// Program/erase cycles of the rows of `steps`, ascending.
    pub pe_cycles: Vec<f64>,
    /// Days since data was programmed of the columns of `steps`, ascending.
    pub retention_days: Vec<f64>,
    /// Mean retries per read, row by row; interpolated in between, constant beyond the ends.
    pub steps: Vec<Vec<f64>>,
    /// Time of each retry, in microseconds.
    pub step_us: f64,
    /// Program/erase cycles of every block when a run begins; 0 if absent.
    #[serde(default)]
    pub worn_cycles: f64,
    /// Days for which stored data has rested when the first load begins; 0 if absent.
    #[serde(default)]
    pub rested_days: f64,
    /// Source.
    pub source: String,
}

impl ReadRetrySpec {
    /// Mean retries per read.
    pub fn steps_at(&self, pe_cycles: f64, retention_days: f64) -> f64 {
        let (row, down) = place(&self.pe_cycles, pe_cycles);
        let (column, right) = place(&self.retention_days, retention_days);
        let at = |row: usize, column: usize| {
            let row = &self.steps[row.min(self.pe_cycles.len() - 1)];
            row[column.min(self.retention_days.len() - 1)]
        };
        let between = |row| at(row, column) * (1.0 - right) + at(row, column + 1) * right;
        between(row) * (1.0 - down) + between(row + 1) * down
    }

    /// Description of what does not fit; none where all does.
    pub(super) fn fault(&self) -> Option<String> {
        let ascends = |axis: &[f64]| {
            let is_number = axis.iter().all(|it| it.is_finite() && *it >= 0.0);
            !axis.is_empty() && is_number && axis.is_sorted_by(|a, b| a < b)
        };
        if !ascends(&self.pe_cycles) || !ascends(&self.retention_days) {
            return Some("pe_cycles and retention_days must each ascend from 0 or above".into());
        }
        let (rows, columns) = (self.pe_cycles.len(), self.retention_days.len());
        let fits = self.steps.len() == rows && self.steps.iter().all(|row| row.len() == columns);
        if !fits {
            return Some(format!("steps must have {rows} rows of {columns} numbers"));
        }
        let is_number = |step: &f64| (0.0..=1000.0).contains(step);
        let all = self.steps.iter().flatten().all(is_number);
        (!all).then(|| "steps must be from 0 to 1000 each".into())
    }
}

/// Index of the last point of an ascending axis at or before `value`, and the position of `value`
/// between it and the next one, 0 to 1.
fn place(axis: &[f64], value: f64) -> (usize, f64) {
    let after = axis.partition_point(|point| *point <= value);
    match (after.checked_sub(1), axis.get(after)) {
        (None, _) => (0, 0.0),
        (Some(last), None) => (last, 0.0),
        (Some(last), Some(next)) => (last, (value - axis[last]) / (next - axis[last])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> ReadRetrySpec {
        ReadRetrySpec {
            pe_cycles: vec![0.0, 1000.0],
            retention_days: vec![0.0, 100.0, 300.0],
            steps: vec![vec![0.0, 2.0, 4.0], vec![1.0, 5.0, 9.0]],
            step_us: 50.0,
            worn_cycles: 0.0,
            rested_days: 0.0,
            source: "estimated: for a test".into(),
        }
    }

    #[test]
    fn steps_are_those_measured_and_in_proportion_between_them() {
        let expected = [
            (0.0, 0.0, 0.0),
            (0.0, 100.0, 2.0),
            (1000.0, 300.0, 9.0),
            (0.0, 200.0, 3.0),
            (500.0, 100.0, 3.5),
            (500.0, 200.0, 5.0),
            // Beyond the ends.
            (9e9, 9e9, 9.0),
            (0.0, 9e9, 4.0),
        ];
        for (cycles, days, steps) in expected {
            let seen = measured().steps_at(cycles, days);
            assert!((seen - steps).abs() < 1e-12, "{cycles} cycles, {days} days: {seen}");
        }
    }

    #[test]
    fn a_table_that_is_none_is_refused() {
        assert_eq!(measured().fault(), None);
        let descends = ReadRetrySpec { pe_cycles: vec![1000.0, 0.0], ..measured() };
        assert!(descends.fault().is_some());
        let ragged = ReadRetrySpec { steps: vec![vec![0.0; 3], vec![0.0; 2]], ..measured() };
        assert!(ragged.fault().expect("refused").contains("2 rows of 3 numbers"));
    }
}
