//! `cargo xtask validate`: published figures beside modelled ones, into the documents.

mod discussion;
mod page;

use std::fs;
use std::thread;

use anyhow::{Context, Result};
use lab::progress::Unwatched;
use lab::results::published;
use lab::ssd::catalogue;
use lab::validate::{Bench, plans, validate, worst};

use self::discussion::Discussions;
use crate::root;

const PAGE: &str = "docs/internals/validation.md";
/// Seed of every validation: the table must come out the same.
const SEED: u64 = 1;
/// Rows that are farthest from what was published, and discussed.
const WORST: usize = 10;

/// Simulates what rows of the project's own figures need and writes the page.
///
/// # Errors
/// When a simulation failed, the page cannot be written, or the discussions do not fit the worst
/// rows; the page is written all the same then.
pub(crate) fn run() -> Result<()> {
    let discussions = Discussions::read()?;
    let drives = catalogue::drives();
    let figures: Vec<_> = published::figures().iter().collect();
    let plans = plans(SEED)?;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let bench = Bench { drives: &drives, plans: &plans, threads };
    let rows = validate(&figures, bench, &Unwatched)?;
    let path = root().join(PAGE);
    let text = page::page(&rows, &discussions, SEED);
    fs::write(&path, text).with_context(|| format!("writing {PAGE}"))?;
    println!("{PAGE}: {}", page::count(&rows));
    discussions.check(&worst(&rows, WORST))
}
