//! Crashes live drives, kills their servers and takes their dies away, seed after seed: `simulate
//! MINUTES SEED [SEEDS]`, as `cargo xtask sim` calls it. It takes at least so many seeds, one where
//! the number is absent.
//! A seed that fails is printed, and the others go on.

#![expect(clippy::print_stdout, reason = "it tells how far it is")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use live::simulation::{
    Absences, Tally, simulate, simulate_absences, simulate_deaths, simulate_encrypted,
};

/// Operations of each seed.
const OPERATIONS: u64 = 2000;
/// Sessions of each seed in which dies may be absent.
const SESSIONS: u64 = 12;
/// Seeds after which it prints how far it is: ten million operations of each kind.
const SEEDS_A_LINE: u64 = 5000;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).filter_map(|text| text.parse::<u64>().ok());
    let minutes = numbers.next().unwrap_or(1);
    let first = numbers.next().unwrap_or(0);
    let seeds = numbers.next().unwrap_or(1);
    let until = Instant::now() + Duration::from_mins(minutes);
    let (mut crashes, mut deaths, mut encrypted, mut absences) =
        (Tally::default(), Tally::default(), Tally::default(), Absences::default());
    let mut failures = 0_u64;
    for seed in first.. {
        let runs = [
            (&mut crashes, simulate(seed, OPERATIONS)),
            (&mut deaths, simulate_deaths(seed, OPERATIONS)),
            (&mut encrypted, simulate_encrypted(seed, OPERATIONS)),
        ];
        for (tally, run) in runs {
            match run {
                Ok(done) => *tally += done,
                Err(failure) => {
                    failures += 1;
                    println!("{failure}");
                    println!("repeat it: cargo xtask sim --minutes 0 --seed {seed}");
                }
            }
        }
        match simulate_absences(seed, SESSIONS) {
            Ok(done) => absences += done,
            Err(broken) => {
                failures += 1;
                println!("{broken}");
            }
        }
        let is_over = Instant::now() >= until && seed - first + 1 >= seeds;
        if is_over || (seed - first + 1).is_multiple_of(SEEDS_A_LINE) {
            println!("seeds {first} to {seed}: {failures} failed, {crashes:?}");
            println!("with deaths of the server: {deaths:?}");
            println!("encrypted: {encrypted:?}");
            println!("with absent dies: {absences:?}");
        }
        if is_over {
            break;
        }
    }
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
