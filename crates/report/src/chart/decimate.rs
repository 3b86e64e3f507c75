//! Fewer points, same picture: the extremes of every pixel column survive.

/// One point of a series: where, and how much.
pub(crate) type Point = (f64, f64);

/// At most `limit` of `points` (ascending in x), among them the first and the last and, of every
/// column of equally many points, the lowest and the highest. `limit` is at least 4.
pub(crate) fn decimate(points: &[Point], limit: usize) -> Vec<Point> {
    assert!(limit >= 4, "a column needs two points, the ends two more");
    if points.len() <= limit {
        return points.to_vec();
    }
    let (first, last) = (0, points.len() - 1);
    let columns = (limit - 2) / 2;
    let mut kept = vec![first];
    for column in 0..columns {
        let from = 1 + column * (last - 1) / columns;
        let to = 1 + (column + 1) * (last - 1) / columns;
        let by_value = |a: &usize, b: &usize| points[*a].1.total_cmp(&points[*b].1);
        let lowest = (from..to).min_by(by_value);
        let highest = (from..to).max_by(by_value);
        let (Some(lowest), Some(highest)) = (lowest, highest) else { continue };
        kept.push(lowest.min(highest));
        kept.push(lowest.max(highest));
    }
    kept.push(last);
    kept.dedup();
    kept.into_iter().map(|index| points[index]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn spikes_survive_and_order_is_kept(
            values in prop::collection::vec(0.0_f64..1e9, 1..2000), limit in 4_usize..300,
        ) {
            let at = 0_u32..;
            let points: Vec<Point> = at.zip(&values).map(|(x, y)| (f64::from(x), *y)).collect();
            let kept = decimate(&points, limit);
            let highest = |points: &[Point]| points.iter().map(|p| p.1).fold(f64::MIN, f64::max);
            let lowest = |points: &[Point]| points.iter().map(|p| p.1).fold(f64::MAX, f64::min);
            prop_assert!(kept.len() <= limit.max(points.len().min(limit)));
            prop_assert!(highest(&kept).total_cmp(&highest(&points)).is_eq());
            prop_assert!(lowest(&kept).total_cmp(&lowest(&points)).is_eq());
            prop_assert_eq!(kept.first(), points.first());
            prop_assert_eq!(kept.last(), points.last());
            prop_assert!(kept.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
    }
}
