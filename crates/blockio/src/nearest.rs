//! Suggestions for mistyped names.

/// The name among `known` nearest to `asked`, if one is near enough to be meant.
///
/// Distance is the number of inserted, deleted, replaced or exchanged characters (optimal string
/// alignment), case ignored; near enough is a third of the longer name. A name that contains what
/// was asked counts as near.
pub fn nearest<'a>(asked: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let asked = asked.to_lowercase();
    known
        .into_iter()
        .filter_map(|name| {
            let lower = name.to_lowercase();
            let distance = if asked.len() >= 3 && lower.contains(&asked) {
                1
            } else {
                distance(&asked, &lower)
            };
            let limit = asked.chars().count().max(lower.chars().count()) / 3;
            (distance <= limit.max(1)).then_some((distance, name))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_understood() {
        let known = ["iodrive-duo", "px600-1300", "flashmax-ii"];
        assert_eq!(nearest("iodrive-dou", known), Some("iodrive-duo"));
        assert_eq!(nearest("IODRIVE", known), Some("iodrive-duo"));
        assert_eq!(nearest("optane", known), None);
    }
}
