//! `cargo xtask timings`: what the README's first command compiles, by time, into
//! docs/internals/build.md.

use std::fmt::Write as _;
use std::fs;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};
use serde::Deserialize;
use xtask::files::{remove_folder, replace_between};
use xtask::program::run;
use xtask::{root, target};

const PAGE: &str = "docs/internals/build.md";
const BEGIN: &str = "<!-- written by cargo xtask timings -->\n";
const END: &str = "<!-- end -->\n";
/// Units that the table has.
const UNITS: usize = 25;

/// One call of a compiler, or of a build script.
#[derive(Debug, Deserialize)]
struct Unit {
    name: String,
    version: String,
    target: String,
    /// Seconds from the start of the build.
    start: f64,
    /// Seconds that it took.
    duration: f64,
}

/// Builds the first command in an empty folder, and writes the table.
///
/// # Errors
/// Fails if it does not build, or Cargo's page of times is another than is known.
pub(crate) fn measure() -> Result<()> {
    let folder = target().join("timings");
    remove_folder(&folder)?;
    let shown = folder.display().to_string();
    run("cargo", &["fetch", "--quiet", "--locked"], &[])?;
    let begun = Instant::now();
    run("cargo", &["build", "--release", "--locked", "--timings", "--target-dir", &shown], &[])?;
    let seconds = begun.elapsed().as_secs_f64();
    let page = folder.join("cargo-timings/cargo-timing.html");
    let page = fs::read_to_string(&page).with_context(|| format!("reading {}", page.display()))?;
    let mut units = units(&page)?;
    units.sort_by(|a, b| b.duration.total_cmp(&a.duration));
    let text = table(&units, seconds);
    print!("{text}");
    replace_between(&root().join(PAGE), BEGIN, END, &text)
}

/// The units on Cargo's page of times.
fn units(page: &str) -> Result<Vec<Unit>> {
    let data = page.split_once("const UNIT_DATA = ").context("Cargo's page has units")?.1;
    let (data, _) = data.split_once(";\n").context("the units end")?;
    serde_json::from_str(data).context("reading the units")
}

fn table(units: &[Unit], seconds: f64) -> String {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let sum: f64 = units.iter().map(|unit| unit.duration).sum();
    let mut text = format!(
        "{seconds:.0} s on {processors} processors; {} units took {sum:.0} s together.\n\n\
         | unit | took s | from s | to s |\n|---|---|---|---|\n",
        units.len()
    );
    for unit in units.iter().take(UNITS) {
        let Unit { name, version, target, start, duration } = unit;
        let end = start + duration;
        let _ =
            writeln!(text, "| {name} {version}{target} | {duration:.1} | {start:.1} | {end:.1} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_cargos_page_become_rows() {
        let page = "const DURATION = 3;\nconst UNIT_DATA = [{\"i\": 0, \"name\": \"ftl\", \
                    \"version\": \"0.1.0\", \"mode\": \"todo\", \"target\": \" build-script\", \
                    \"start\": 1.5, \"duration\": 2.25, \"sections\": null}];\nrest";
        let units = units(page).expect("a page");
        assert!(table(&units, 3.0).ends_with("| ftl 0.1.0 build-script | 2.2 | 1.5 | 3.8 |\n"));
    }
}
