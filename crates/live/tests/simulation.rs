//! Crashes at every moment, and what must survive them.

use live::simulation::{Tally, simulate};

#[test]
fn no_crash_breaks_a_promise() {
    let mut tally = Tally::default();
    for seed in 0..40 {
        match simulate(seed, 2000) {
            Ok(done) => tally += done,
            Err(failure) => panic!("{failure}"),
        }
    }
    assert!(tally.crashes > 100 && tally.pages_relocated > 1000, "{tally:?}");
}
