//! `cargo xtask soak`: for hours, what the tests do for seconds.
//!
//! | share of the time | what |
//! |---|---|
//! | half | the simulation of crashes and of deaths of the server, seed after seed |
//! | half | libFuzzer on each target of `fuzz/`, from the kept corpus |
//! | besides | bits of small volumes and of their folders flipped, operators whose servers die |
//! | besides | 100 crashes of a server beside clients, and with 50 updates under file systems |
//! | besides | nvme-cli's tests |

use std::fs;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use xtask::program::{run, said};
use xtask::{root, target};

use crate::guest;

/// Targets of `fuzz/`.
const TARGETS: [&str; 9] =
    ["batch", "checkpoint", "drive", "extent", "header", "nbd", "nvme", "table", "unit_header"];
/// Flags that have the compiler tell libFuzzer which branches an input takes, as cargo-fuzz sets
/// them; these work on stable toolchains, which lack the sanitizers.
const COVERAGE: [&str; 7] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cdebug-assertions=on",
];
/// Seeds of commands of operators.
const OPERATORS_SEEDS: &str = "2000";
/// Bytes from one flipped bit of the files in a folder to the next: each is an opening.
const FOLDER_STRIDE: &str = "97";
/// Server crashes beside clients.
const CRASHES: &str = "100";

/// Goes on for so many minutes, and as long as the exhaustive tests take besides.
///
/// # Errors
/// Names the first step that found something.
pub(crate) fn run_for(minutes: u64, seed: Option<u64>) -> Result<()> {
    let seed = match seed {
        Some(seed) => seed,
        // Far above those that the tests take.
        None => 1 << 32 | SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() & 0xFFFF_FFFF,
    };
    println!("the seed is {seed}: --seed {seed} repeats what does not depend on time");
    simulate(minutes.div_ceil(2), seed, None)?;
    fuzz(minutes * 60 / 2 / TARGETS.len() as u64, seed)?;
    let test = ["test", "--package", "live", "--test", "integration", "damage::"];
    run("cargo", &test, &[("FLOATGATE_FLIP_STRIDE", "1")])?;
    let test = ["test", "--package", "live", "--test", "integration", "folder_bits::"];
    run("cargo", &test, &[("FLOATGATE_FLIP_STRIDE", FOLDER_STRIDE)])?;
    let first = seed.to_string();
    let test = ["test", "--package", "live", "--lib", "operators::", "--", "--nocapture"];
    let seeds = [
        ("FLOATGATE_OPERATORS_FIRST", first.as_str()),
        ("FLOATGATE_OPERATORS_SEEDS", OPERATORS_SEEDS),
    ];
    run("cargo", &test, &seeds)?;
    let test = ["test", "--package", "cli", "--test", "live", "clients::"];
    run("cargo", &test, &[("FLOATGATE_CRASHES", CRASHES)])?;
    guest::server_deaths(CRASHES)?;
    guest::nvme_cli()
}

/// Crashes live drives for so many minutes, or by so many seeds, which takes seconds.
///
/// # Errors
/// Fails if a seed broke a promise; it was printed.
pub(crate) fn simulate(minutes: u64, seed: u64, seeds: Option<u64>) -> Result<()> {
    let mut numbers = vec![minutes.to_string(), seed.to_string()];
    numbers.extend(seeds.map(|seeds| seeds.to_string()));
    // Some seeds cost less than a build for speed.
    let build: &[&str] = if seeds.is_some() { &[] } else { &["--release"] };
    let example = [&["run", "--quiet"], build, &["-p", "live", "--example", "simulate", "--"]];
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    run("cargo", &[&example.concat()[..], &numbers].concat(), &[])
}

/// Runs libFuzzer on each target for so many seconds.
fn fuzz(seconds: u64, seed: u64) -> Result<()> {
    let folder = target().join("fuzz");
    let triple = said(Command::new("rustc").args(["--print", "host-tuple"]))?;
    let triple = triple.trim();
    let shown = folder.display().to_string();
    // With a target named, the flags are none of build scripts and macros.
    let build = ["build", "--release", "--package", "fuzz", "--features", "libfuzzer"];
    let to = ["--target", triple, "--target-dir", &shown];
    let flags = COVERAGE.join("\u{1f}");
    run("cargo", &[&build[..], &to].concat(), &[("CARGO_ENCODED_RUSTFLAGS", &flags)])?;
    for name in TARGETS {
        let program = folder.join(triple).join("release").join(name).display().to_string();
        let found = folder.join("corpus").join(name);
        fs::create_dir_all(&found).with_context(|| format!("making {}", found.display()))?;
        let kept = root().join("fuzz/corpus").join(name).display().to_string();
        let (time, seed) =
            (format!("-max_total_time={seconds}"), format!("-seed={}", seed % (1 << 32)));
        let options = [time.as_str(), &seed, "-max_len=4096", "-print_final_stats=1"];
        let folders = [found.display().to_string(), kept];
        let folders = [folders[0].as_str(), &folders[1]];
        run(&program, &[&options[..], &folders].concat(), &[])?;
    }
    Ok(())
}
