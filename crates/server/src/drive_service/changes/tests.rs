//! Changes of a drive whose status is that of one in memory, changed by hand.

use status::{Die, MaintenanceStatus};

use super::super::DriveService;
use super::*;

/// The status of a drive with dies.
fn status() -> Status {
    let mut status = DriveService::in_memory(1 << 20, None).expect("a number").status();
    let die = |index: u32| Die { path: Some(format!("/d{index}")), ..Die::default() };
    (status.dies, status.folder) = ((0..3).map(die).collect(), "/v".to_owned());
    status
}

/// The texts of what a look tells.
fn told(known: &mut DriveSnapshot, status: &Status) -> Vec<String> {
    known.look(status).into_iter().map(|change| change.text).collect()
}

fn with_failure(hot_spares: u32, is_kept: bool) -> Status {
    let (path, reason) = ("/s0".to_owned(), "opening it: No such file".to_owned());
    let failure = SpareFailure { path, die: 1, reason, is_kept };
    let maintenance =
        MaintenanceStatus { spare_failures: vec![failure], ..MaintenanceStatus::default() };
    Status { hot_spares, maintenance, ..status() }
}

#[test]
fn a_hot_spare_that_could_not_be_used_is_told_once_with_why_and_what_to_do() {
    let mut known = DriveSnapshot::default();
    assert!(told(&mut known, &Status { hot_spares: 1, ..status() }).is_empty());
    let text = "The hot spare /s0 could not replace Die 1 (/d1): opening it: No such file. It \
                stays a hot spare and is tried again: remedy the cause, or add another one with \
                `floatgate volume add-spare /v PATH`.";
    assert_eq!(told(&mut known, &with_failure(1, true)), [text]);
    assert!(told(&mut known, &with_failure(1, true)).is_empty());
}

#[test]
fn scrubs_that_ended_since_the_last_look_are_each_told_once() {
    let mut known = DriveSnapshot::default();
    let mut now = status();
    let scrub = |rows, units_bad| Scrub { rows, units_bad, ..Scrub::default() };
    let scrubs = &mut now.maintenance.scrubs;
    (scrubs.ended, scrubs.lately) = (1, vec![scrub(7, 0)]);
    assert_eq!(told(&mut known, &now), ["A scrub read all 7 rows: no errors found."]);
    let scrubs = &mut now.maintenance.scrubs;
    (scrubs.ended, scrubs.lately) = (3, vec![scrub(7, 0), scrub(8, 2), scrub(9, 0)]);
    let both = [
        "A scrub read all 8 rows: 2 corrupt units found, 0 repaired, 0 pages lost.",
        "A scrub read all 9 rows: no errors found.",
    ];
    assert_eq!(told(&mut known, &now), both);
    assert!(told(&mut known, &now).is_empty());
}

#[test]
fn a_scrub_that_the_volume_began_is_told_once_and_before_its_end() {
    let mut known = DriveSnapshot::default();
    let mut now = status();
    told(&mut known, &now);
    let scrub = Scrub { rows: 7, for_die: Some(1), ..Scrub::default() };
    let scrubs = &mut now.maintenance.scrubs;
    (scrubs.for_damage, scrubs.ended, scrubs.lately) = (1, 1, vec![scrub]);
    let texts = told(&mut known, &now);
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[0].starts_with("Reads found more damage on Die 1 (/d1) within an hour"));
    assert_eq!(texts[1], "A scrub read all 7 rows: no errors found.");
    assert!(told(&mut known, &now).is_empty());
}

#[test]
fn a_hot_spare_that_was_given_up_did_not_replace_a_die() {
    let mut known = DriveSnapshot::default();
    told(&mut known, &Status { hot_spares: 1, ..status() });
    let given_up = told(&mut known, &with_failure(0, false));
    assert_eq!(given_up.len(), 1, "{given_up:?}");
    assert!(given_up[0].ends_with(
        "was given up: add another one with `floatgate volume add-spare /v \
                               PATH`."
    ));
    let mut known = DriveSnapshot::default();
    told(&mut known, &Status { hot_spares: 2, ..status() });
    let taken = told(&mut known, &Status { hot_spares: 1, ..status() });
    assert_eq!(taken, ["A hot spare replaced a failed die, or was removed; 1 is left."]);
    let mut in_place = Status { hot_spares: 0, ..status() };
    in_place.dies[2].path = Some("/s1".to_owned());
    let taken = told(&mut known, &in_place);
    assert_eq!(taken, ["The hot spare /s1 replaced die 2 (/d2), which failed; 0 are left."]);
}

#[test]
fn a_purge_tells_the_dies_that_it_did_not_erase() {
    let purged = |is_lost, failure: Option<&str>| {
        let mut status = status();
        status.dies[2].is_lost = is_lost;
        let failure = failure.map(str::to_owned);
        status.maintenance.purge = Some(Purge { failure, ..Purge::default() });
        let mut known = DriveSnapshot::default();
        let events = told(&mut known, &status);
        assert!(told(&mut known, &status).is_empty(), "it is told once");
        events
    };
    let rest = "A purge erased all other dies. Die 2 (/d2) has failed and was not erased: destroy \
                it, or erase it by other means.";
    assert_eq!(purged(true, None), [rest]);
    assert_eq!(purged(false, None), ["A purge erased all data."]);
    let failed = "A purge ended before it was complete: it was stopped.";
    assert_eq!(purged(false, Some("it was stopped")), [failed]);
}
