//! Tests of the files: what is written is read again, and what is not a result says so.

use proptest::prelude::*;

use super::*;
use crate::{Climate, example};

fn stored(run: &Run) -> Run {
    let (mut samples, mut latencies, mut histograms) = (Vec::new(), Vec::new(), Vec::new());
    run.histograms_to_parquet(&mut histograms).unwrap();
    run.samples_to_parquet(&mut samples).unwrap();
    run.latencies_to_parquet(&mut latencies).unwrap();
    let mut read = Run::from_json(&run.to_json().unwrap()).unwrap();
    read.samples_from_parquet(samples).unwrap();
    read.latencies_from_parquet(latencies).unwrap();
    read.histograms_from_parquet(histograms).unwrap();
    read
}

#[test]
fn a_run_is_read_as_it_was_written() {
    let run = example::run();
    assert!(run.steps.iter().any(|step| !step.samples.is_empty() && !step.write_bins.is_empty()));
    assert!(stored(&run) == run, "something changed on the way");
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    let bytes = || {
        let mut bytes = Vec::new();
        example::run().samples_to_parquet(&mut bytes).unwrap();
        bytes
    };
    assert_eq!(bytes(), bytes());
}

#[test]
fn a_real_drive_has_no_nand_writes_after_reading_either() {
    let mut run = example::run();
    for sample in run.steps.iter_mut().flat_map(|step| &mut step.samples) {
        sample.summary.nand = None;
        sample.superblocks_free_share = None;
    }
    assert!(stored(&run) == run, "something changed on the way");
}

#[test]
fn power_and_heat_are_kept_where_a_drive_tells_them_and_take_no_column_where_not() {
    let mut run = example::run();
    let columns = |run: &Run| {
        let mut bytes = Vec::new();
        run.samples_to_parquet(&mut bytes).unwrap();
        Table::read(SAMPLES, bytes.into()).unwrap().has("temperature_c")
    };
    assert!(!columns(&run));
    let climate = Climate { temperature_c: Some(51.25), ..Climate::default() };
    let step = run.steps.iter_mut().find(|step| !step.samples.is_empty()).unwrap();
    step.samples[0].summary.climate = Some(climate);
    assert!(columns(&run));
    assert!(stored(&run) == run, "something changed on the way");
}

#[test]
fn columns_with_earlier_names_are_read() {
    let mut run = example::run();
    let throttled = Climate {
        thermal_throttled_share: Some(0.5),
        power_throttled_share: Some(0.25),
        ..Climate::default()
    };
    let step = run.steps.iter_mut().find(|step| !step.samples.is_empty()).unwrap();
    step.samples[0].summary.climate = Some(throttled);
    let mut earlier = Table::new(SAMPLES);
    for (name, column) in run.samples_table().columns() {
        let name = match name.as_str() {
            "thermal_throttled_share" => "heat_held_share",
            "power_throttled_share" => "power_held_share",
            name => name,
        };
        earlier.insert(name, column.clone());
    }
    let mut bytes = Vec::new();
    earlier.write(&mut bytes).unwrap();
    let mut read = run.clone();
    read.samples_from_parquet(bytes).unwrap();
    let climate = |run: &Run| {
        let mut samples = run.steps.iter().flat_map(|step| &step.samples);
        samples.find_map(|sample| sample.summary.climate)
    };
    assert_eq!(climate(&read), Some(throttled));
    let json = serde_json::to_string(&throttled).unwrap();
    let json =
        json.replace("thermal_throttled", "heat_held").replace("power_throttled", "power_held");
    assert_eq!(serde_json::from_str::<Climate>(&json).unwrap(), throttled);
}

#[test]
fn a_run_without_steps_is_read_as_it_was_written() {
    let run = Run { steps: Vec::new(), ..example::run() };
    assert!(stored(&run) == run, "something changed on the way");
}

#[test]
fn another_schema_names_both_versions() {
    let text = example::run().to_json().unwrap().replace("\"schema\": 1", "\"schema\": 7");
    assert_eq!(
        Run::from_json(&text).unwrap_err().to_string(),
        "run.json has schema version 7, this program reads 1"
    );
    assert_eq!(
        Run::from_json("{}").unwrap_err().to_string(),
        "run.json has no schema version, this program reads 1"
    );
}

#[test]
fn a_torn_file_is_an_error() {
    let text = example::run().to_json().unwrap();
    assert!(matches!(Run::from_json(&text[..text.len() / 2]), Err(Error::Json(_))));
    let mut run = example::run();
    let mut bytes = Vec::new();
    run.samples_to_parquet(&mut bytes).unwrap();
    let half = bytes[..bytes.len() / 2].to_vec();
    assert!(matches!(run.samples_from_parquet(half), Err(Error::Table { .. })));
    assert!(matches!(run.samples_from_parquet(Vec::new()), Err(Error::Table { .. })));
}

#[test]
fn a_number_that_is_not_finite_is_never_written() {
    let mut run = example::run();
    run.steps[0].duration_s = f64::NAN;
    assert!(matches!(run.to_json(), Err(Error::NotFinite(_))));
}

#[test]
fn rows_of_an_unknown_step_are_refused() {
    let mut bytes = Vec::new();
    example::run().latencies_to_parquet(&mut bytes).unwrap();
    let mut other = example::run();
    other.steps.retain(|step| step.id != "4k/precondition");
    assert_eq!(
        other.latencies_from_parquet(bytes).unwrap_err().to_string(),
        "latencies.parquet has rows of step `4k/precondition`, which run.json does not have"
    );
}

#[test]
fn a_missing_column_is_named() {
    let mut bytes = Vec::new();
    example::run().latencies_to_parquet(&mut bytes).unwrap();
    let error = example::run().samples_from_parquet(bytes).unwrap_err();
    assert_eq!(error.to_string(), "samples.parquet has no column `at_s` of floating-point numbers");
}

proptest! {
    #[test]
    fn numbers_keep_every_bit(
        values in proptest::collection::vec(proptest::option::of(any::<u64>()), 0..50),
        floats in proptest::collection::vec(proptest::option::of(-1e300..1e300_f64), 0..50),
    ) {
        for (name, column) in [("u", Column::U64(values)), ("f", Column::F64(floats))] {
            let mut table = Table::new("t");
            table.insert(name, column.clone());
            let mut bytes = Vec::new();
            table.write(&mut bytes).unwrap();
            let read = Table::read("t", bytes.into()).unwrap();
            let same = match &column {
                Column::U64(values) => read.u64("u").unwrap() == values,
                Column::F64(values) => read.f64("f").unwrap() == values,
                Column::Text(_) => unreachable!("not in the list"),
            };
            prop_assert!(same);
        }
    }
}
