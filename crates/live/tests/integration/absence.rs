//! Dies that are absent for sessions, copies that are damaged and losses that are known: nothing
//! older is served, nothing known is forgotten, and any one die may go after a scrub.

use live::simulation::{Absences, simulate_absences};

#[test]
fn absent_dies_damaged_copies_and_known_losses_break_no_law() {
    let mut all = Absences::default();
    for seed in 0..120 {
        let played = simulate_absences(seed, 12);
        all += played.unwrap_or_else(|broken| panic!("{broken}"));
    }
    let Absences {
        sessions, refused, cut, copies_bad, reconstructed, pages_lost, units_held, ..
    } = all;
    assert!(sessions > 900 && refused > 50 && cut > 300, "{all:?}");
    assert!(copies_bad > 30 && reconstructed > 50 && pages_lost > 50, "{all:?}");
    assert!(units_held > 200 && all.bad_places > 100 && all.retired > 50, "{all:?}");
}
