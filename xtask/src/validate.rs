//! `cargo xtask validate`: published figures beside modelled ones, into the documents and the
//! gallery.

pub(crate) mod cross;
mod discussion;
mod gallery;
mod headline;
mod page;

use std::fs;
use std::thread;

use anyhow::{Context, Result};
use lab::progress::Unwatched;
use lab::results::published;
use lab::ssd::catalogue;
use lab::validate::{Bench, plans, unvalidated, validate, worst};

use self::discussion::Discussions;
use crate::root;

const PAGE: &str = "docs/internals/validation.md";
const GALLERY: &str = "docs/gallery/validation.html";
/// Seed of every validation: the table must come out the same.
const SEED: u64 = 1;
/// Rows that are farthest from what was published, and discussed.
const WORST: usize = 10;

/// Simulates what rows of the project's own figures need and writes the pages.
///
/// # Errors
/// Fails if a simulation failed, a page cannot be written, or the discussions do not fit the worst
/// rows; the pages are written all the same then.
pub(crate) fn run() -> Result<()> {
    let discussions = Discussions::read()?;
    let drives = catalogue::drives();
    let figures: Vec<_> = published::figures().iter().collect();
    let plans = plans(SEED)?;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let bench = Bench { drives: &drives, plans: &plans, threads };
    let rows = validate(&figures, bench, &Unwatched)?;
    let crossed = cross::current()?;
    let section = headline::marked_section(&crossed);
    let texts = [
        (PAGE, page::page(&rows, &discussions, SEED, &(unvalidated(&drives), section))),
        (GALLERY, gallery::page(&rows, &discussions, SEED, unvalidated(&drives))),
    ];
    for (page, text) in texts {
        fs::write(root().join(page), text).with_context(|| format!("writing {page}"))?;
    }
    headline::write(&crossed)?;
    println!("{PAGE}: {}", page::count(&rows));
    discussions.check(&worst(&rows, WORST))
}
