//! Crashes at every moment, and what must survive them.

use live::simulation::{Tally, simulate, simulate_deaths, simulate_encrypted};

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
    assert!(tally.closed > 100 && tally.maps_searched > 5, "{tally:?}");
    assert!(tally.outages > 500 && tally.failed_in_outages > 300, "{tally:?}");
    assert!(tally.dies_unwritable > 10, "{tally:?}");
    assert!(tally.scrubbed > 200 && tally.spoilt > 200 && tally.hosts_full > 50, "{tally:?}");
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

/// Seeds of damage that broke a promise once, each with what was wrong.
#[test]
fn seeds_that_failed_before_do_not_fail_again() {
    // Recovery from an older checkpoint found no room in the journal, with headers written.
    const FULL_JOURNAL: u64 = 600_005_250;
    // Pages beyond a smaller size came back.
    const BEYOND_END: u64 = 100_009_996;
    // The copy of the last batch that damage spares lay on a die whose header was written over.
    const SPARED_COPY_ON_MISSING_DIE: u64 = 700_040_970;
    for seed in [FULL_JOURNAL, BEYOND_END, SPARED_COPY_ON_MISSING_DIE] {
        if let Err(failure) = simulate(seed, OPERATIONS) {
            panic!("{failure}");
        }
    }
}

/// The server dies, or the power goes: in either case the other one may follow during recovery.
#[test]
fn the_death_of_a_server_loses_nothing_that_was_acknowledged() {
    let mut tally = Tally::default();
    for seed in 0..250 {
        match simulate_deaths(seed, OPERATIONS) {
            Ok(done) => tally += done,
            Err(failure) => panic!("{failure}"),
        }
    }
    assert!(tally.deaths > 1000 && tally.crashes > 500, "{tally:?}");
    assert!(tally.crashes_in_recovery > 50 && tally.reformatted > 50, "{tally:?}");
}

#[test]
fn no_crash_breaks_a_promise_of_an_encrypted_drive() {
    let mut tally = Tally::default();
    for seed in 0..60 {
        match simulate_encrypted(seed, OPERATIONS) {
            Ok(done) => tally += done,
            Err(failure) => panic!("{failure}"),
        }
    }
    assert!(tally.crashes > 100 && tally.pages_relocated > 1000, "{tally:?}");
    assert!(
        tally.deaths > 50 && tally.reformatted > 20 && tally.saved_bytes > 1 << 20,
        "{tally:?}"
    );
}
