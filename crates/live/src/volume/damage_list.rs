//! Damage that was found on the dies of a volume, kept in its folder across sessions and crashes:
//! each place, when and by what it was found, and what became of it.

use std::fs;
use std::io;
use std::path::Path;

use status::Damage;

use crate::volume::folder::replace_file;

const NAME: &str = "damage.jsonl";
/// Places that are kept, the last of them.
const KEPT_MAX: usize = 1000;
/// Places that a status has.
const TOLD_MAX: usize = 100;

/// The last damage of a folder's volume, as a status tells it.
pub(crate) fn lately(volume: &Path) -> Vec<Damage> {
    let all = load(volume);
    all[all.len().saturating_sub(TOLD_MAX)..].to_vec()
}

/// Adds damage to what a folder keeps; nothing is written where there is none.
///
/// # Errors
/// What the system answered; then what was kept stays.
pub(crate) fn add(volume: &Path, damage: &[Damage]) -> io::Result<()> {
    if damage.is_empty() {
        return Ok(());
    }
    let mut all = load(volume);
    all.extend(damage);
    let mut text = String::new();
    for damage in &all[all.len().saturating_sub(KEPT_MAX)..] {
        text += &serde_json::to_string(damage)?;
        text.push('\n');
    }
    replace_file(&volume.join(NAME), text.as_bytes())
}

/// All that is kept; lines that say nothing are left out.
fn load(volume: &Path) -> Vec<Damage> {
    let text = fs::read_to_string(volume.join(NAME)).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use status::{DamageOutcome, FoundBy};

    fn damage(row: u32) -> Damage {
        let (found_by, outcome) = (FoundBy::Scrub, DamageOutcome::Rewritten);
        let (die, row, lba, copy_of) = (Some(1), Some(row), None, None);
        Damage { at_unix_s: 7, die, row, lba, copy_of, found_by, outcome }
    }

    #[test]
    fn the_last_places_are_kept_and_the_latest_of_them_told() {
        let folder = tempfile::tempdir().unwrap();
        add(folder.path(), &[]).unwrap();
        assert!(!folder.path().join(NAME).exists(), "nothing is written where there is none");
        for from in [0, 600] {
            let some: Vec<Damage> = (from..from + 600).map(damage).collect();
            add(folder.path(), &some).unwrap();
        }
        assert_eq!(load(folder.path()), (200..1200).map(damage).collect::<Vec<_>>());
        assert_eq!(lately(folder.path()), (1100..1200).map(damage).collect::<Vec<_>>());
    }

    #[test]
    fn a_line_that_says_nothing_leaves_the_others() {
        let folder = tempfile::tempdir().unwrap();
        add(folder.path(), &[damage(1), damage(2)]).unwrap();
        let text = fs::read_to_string(folder.path().join(NAME)).unwrap();
        fs::write(folder.path().join(NAME), format!("{{\n{text}")).unwrap();
        assert_eq!(lately(folder.path()), [damage(1), damage(2)]);
    }
}
