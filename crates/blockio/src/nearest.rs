//! Suggestions for mistyped names.

use strsim::osa_distance;

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
                osa_distance(&asked, &lower)
            };
            let limit = asked.chars().count().max(lower.chars().count()) / 3;
            (distance <= limit.max(1)).then_some((distance, name))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
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
