//! Tests of cross-validations, on drives that take no time to simulate.

use lab::progress::SilentProgress;
use results::published::figures;
use ssd::catalogue;

use super::*;
use crate::validate::{Bench, is_about, plans, validate};

fn crossed(name: &str, wanted: impl Fn(&FigureRow) -> bool) -> Result<CrossValidation, Error> {
    let drives = [catalogue::find(name).unwrap()];
    let rows: Vec<&FigureRow> =
        figures().iter().filter(|row| is_about(row, &drives[0]) && wanted(row)).collect();
    let plans = plans().unwrap();
    let bench = Bench { drives: &drives, plans: &plans, threads: 2 };
    let modelled = modelled(name, &validate(&rows, bench, &SilentProgress).unwrap());
    let question = CrossQuestion {
        drive: name,
        text: catalogue::text(name).unwrap(),
        figures: &rows,
        modelled: &modelled,
        plans: &plans,
        threads: 2,
    };
    cross_validate(question, &SilentProgress)
}

#[test]
fn every_measured_rate_of_a_drive_is_predicted_without_its_family_and_always_alike() {
    let found = crossed("p5800x-pair", |_| true).unwrap();
    let families: BTreeSet<&str> = found.rows.iter().map(|row| row.family.as_str()).collect();
    let expected = ["4k random", "4k random, low load", "8k sequential", "large sequential"];
    assert_eq!(Vec::from_iter(families), expected);
    assert_eq!(found.rows.len(), 8);
    for row in &found.rows {
        assert!(!row.estimated && row.predicted > 0.0, "{row:?}");
        let nearest = row.predicted.clamp(row.low, row.high);
        assert!(((row.predicted / nearest - 1.0).abs() - row.error).abs() < 1e-3, "{row:?}");
    }
    // A refit starts at the centre of a range, and not at the file.
    for number in &found.numbers {
        assert!((number.start - (number.low * number.high).sqrt()).abs() < 1e-3, "{number:?}");
        assert!((number.start / number.file - 1.0).abs() > 0.1, "{number:?}");
    }
    assert_eq!(crossed("p5800x-pair", |_| true).unwrap(), found);
}

#[test]
fn figures_of_one_family_are_refused() {
    let error = crossed("p5800x-pair", |row| row.workload == "8k-seq-read").unwrap_err();
    assert_eq!(error.to_string(), "p5800x-pair has figures of 1 families");
}

#[test]
fn a_drive_without_open_numbers_is_refused_with_those_that_have_some() {
    let error = crossed("p5510", |_| true).unwrap_err();
    assert!(error.to_string().contains("p5510 has no free parameters"), "{error}");
    assert!(error.remedy().contains("px600-2600"), "{error:?}");
}

#[test]
fn the_open_numbers_of_every_drive_are_in_its_file_within_their_ranges() {
    for name in drives_cross_validated() {
        let file = DriveFile::parse(catalogue::text(name).unwrap(), name).unwrap();
        let (numbers, spec) = (file.numbers(), file.spec().unwrap());
        let (fits, ties) = free_parameters(&spec).unwrap();
        for fit in fits {
            let found = of_spec(&file, &numbers, &fit).unwrap();
            assert!(found.low < found.high, "{name} {}", found.path);
        }
        // What follows from others is in the file as it follows.
        for tie in ties {
            let value = |key: &str| numbers.iter().find(|it| it.key == key).unwrap().value;
            let sum: f64 = tie.terms.iter().map(|(key, times)| times * value(key)).sum();
            assert!((sum / value(tie.key) - 1.0).abs() < 0.01, "{name} {}: {sum}", tie.key);
        }
    }
}

#[test]
fn a_workload_is_estimated_if_its_source_says_so() {
    assert!(is_estimated("vdi-fc-boot") && is_estimated("sql"));
    assert!(!is_estimated("4k-rand-read") && !is_estimated("an unknown name"));
}

#[test]
fn a_figure_that_its_review_repeats_counts_once() {
    let found = crossed("optane-pmem-200", |_| true).unwrap();
    let large = found.rows.iter().filter(|row| row.family == "large sequential");
    let names: Vec<&str> = large.map(|row| row.id.as_str()).collect();
    assert_eq!(names, ["D033"], "D038 says the same again");
    let of = |name: &str| figures().iter().find(|row| row.id == name).unwrap();
    assert!(is_repeated(of("D033"), of("D038")));
    assert!(!is_repeated(of("B077"), of("B078")), "two values of one metric are two figures");
}
