//! Crashes at every moment, and what must survive them.

use live::simulation::{Tally, simulate};

/// Operations of each seed.
const OPERATIONS: u64 = 2000;

fn check(seeds: std::ops::Range<u64>) {
    let mut tally = Tally::default();
    for seed in seeds {
        match simulate(seed, OPERATIONS) {
            Ok(done) => tally += done,
            Err(failure) => panic!("{failure}"),
        }
    }
    assert!(tally.crashes > 500 && tally.crashes_in_recovery > 50, "{tally:?}");
    assert!(tally.pages_relocated > 5000 && tally.dies_changed > 50, "{tally:?}");
    assert!(tally.saved_bytes > 10 << 20 && tally.refused > 1000, "{tally:?}");
    assert!(tally.redundancy_restored > 20 && tally.reformatted > 100, "{tally:?}");
    assert!(tally.closed > 100 && tally.maps_searched > 100, "{tally:?}");
}

// Apart, so that processors share them.

#[test]
fn no_crash_breaks_a_promise() {
    check(0..250);
}

#[test]
fn no_crash_breaks_a_promise_of_other_seeds() {
    check(250..500);
}
