//! Each target on every kept input, and on ten seconds of mutations of them.

use std::env;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use fuzz::{Mutator, Target};

/// Seconds of mutations of each target, and the seed of the first of them.
const SECONDS: (&str, u64) = ("FLOATGATE_FUZZ_SECONDS", 10);
const SEED: (&str, u64) = ("FLOATGATE_FUZZ_SEED", 1);

fn chosen((variable, default): (&str, u64)) -> u64 {
    env::var(variable).map_or(default, |text| text.parse().expect("a whole number"))
}

/// The kept inputs of a target, in the order of their names.
fn corpus(target: Target) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name());
    let entries = fs::read_dir(&folder).expect("every target has a corpus");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("it can be read")).collect()
}

fn survive(target: Target) {
    let corpus = corpus(target);
    for input in &corpus {
        target.run(input);
    }
    let seed = chosen(SEED);
    let mut mutator = Mutator::new(&corpus, seed);
    let end = Instant::now() + Duration::from_secs(chosen(SECONDS));
    let mut count = 0_u64;
    while Instant::now() < end {
        let input = mutator.input();
        count += 1;
        let outcome = catch_unwind(AssertUnwindSafe(|| target.run(&input)));
        let name = target.name();
        assert!(
            outcome.is_ok(),
            "keep this as corpus/{name}/BROKEN (input {count} of seed {seed}): {input:02x?}"
        );
    }
    assert!(count > 10, "{} took {count} inputs", target.name());
}

macro_rules! targets {
    ($($name:ident: $target:ident,)*) => {
        $(#[test]
        fn $name() {
            survive(Target::$target);
        })*
    };
}

targets! {
    batches_are_taken_or_refused: Batch,
    checkpoints_are_taken_or_refused: Checkpoint,
    drives_open_or_are_refused: Drive,
    extents_are_taken_or_refused: Extent,
    headers_of_dies_are_taken_or_refused: Header,
    nbd_clients_are_answered_or_refused: Nbd,
    nvme_hosts_are_answered_or_refused: Nvme,
    tables_are_taken_or_refused: Table,
    headers_of_units_are_taken_or_refused: UnitHeader,
}

#[test]
fn every_target_has_a_test_and_a_program() {
    let manifest = include_str!("../Cargo.toml");
    for target in Target::ALL {
        let name = target.name();
        assert!(manifest.contains(&format!("fuzz_targets/{name}.rs")), "{name}");
        assert!(!corpus(target).is_empty(), "{name} has kept inputs");
    }
}
