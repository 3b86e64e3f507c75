//! The little linear algebra of a fit: symmetric positive definite systems of a few unknowns.

/// A symmetric positive definite matrix as its Cholesky factor.
#[derive(Clone, Debug)]
pub(super) struct Factor {
    /// Rows of the lower triangle.
    rows: Vec<Vec<f64>>,
}

impl Factor {
    /// Factors `matrix`; nothing where it is not positive definite.
    pub(super) fn of(matrix: &[Vec<f64>]) -> Option<Self> {
        let mut rows: Vec<Vec<f64>> = Vec::with_capacity(matrix.len());
        for (index, given) in matrix.iter().enumerate() {
            let mut row = Vec::with_capacity(index + 1);
            for column in 0..index {
                let rest = given[column] - dot(&row, &rows[column][..column]);
                row.push(rest / rows[column][column]);
            }
            let rest = given[index] - dot(&row, &row);
            if rest.is_nan() || rest <= 0.0 {
                return None;
            }
            row.push(rest.sqrt());
            rows.push(row);
        }
        Some(Self { rows })
    }

    /// The `x` for which matrix times `x` is `right`.
    pub(super) fn solve(&self, right: &[f64]) -> Vec<f64> {
        let count = self.rows.len();
        let mut x = Vec::with_capacity(count);
        for (row, right) in self.rows.iter().zip(right) {
            x.push((right - dot(&row[..x.len()], &x)) / row[x.len()]);
        }
        for index in (0..count).rev() {
            let below: f64 = (index + 1..count).map(|row| self.rows[row][index] * x[row]).sum();
            x[index] = (x[index] - below) / self.rows[index][index];
        }
        x
    }

    /// The inverse of the matrix, row by row.
    pub(super) fn inverse(&self) -> Vec<Vec<f64>> {
        let count = self.rows.len();
        let unit = |index| (0..count).map(|row| f64::from(u8::from(row == index))).collect();
        (0..count).map(|index| self.solve(&unit(index) as &Vec<f64>)).collect()
    }
}

/// The sum of products, as far as the shorter one reaches.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Transposed `rows` times `rows`, each row counted `weights` times, plus `ridge` on the diagonal.
pub(super) fn normal(rows: &[Vec<f64>], weights: &[f64], ridge: &[f64]) -> Vec<Vec<f64>> {
    let mut sum: Vec<Vec<f64>> = vec![vec![0.0; ridge.len()]; ridge.len()];
    for (row, weight) in rows.iter().zip(weights) {
        for (line, left) in sum.iter_mut().zip(row) {
            for (cell, right) in line.iter_mut().zip(row) {
                *cell += weight * left * right;
            }
        }
    }
    for (index, ridge) in ridge.iter().enumerate() {
        sum[index][index] += ridge;
    }
    sum
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_solved_solves(
            rows in prop::collection::vec(prop::collection::vec(-3.0_f64..3.0, 4), 1..9),
            right in prop::collection::vec(-3.0_f64..3.0, 4),
        ) {
            let matrix = normal(&rows, &vec![1.0; rows.len()], &[0.1; 4]);
            let factor = Factor::of(&matrix).unwrap();
            let x = factor.solve(&right);
            for (line, right) in matrix.iter().zip(&right) {
                prop_assert!((dot(line, &x) - right).abs() < 1e-9);
            }
            for (index, line) in factor.inverse().iter().enumerate() {
                prop_assert!((dot(line, &matrix[index]) - 1.0).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn what_is_not_positive_definite_has_no_factor() {
        assert!(Factor::of(&[vec![1.0, 2.0], vec![2.0, 1.0]]).is_none());
    }
}
