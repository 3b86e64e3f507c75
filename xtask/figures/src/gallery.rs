//! The gallery: a review of every drive of the catalogue, and cards that lead to them.
//!
//! ```text
//! <folder>/<drive>.html   reviews
//! <folder>/runs/          their runs
//! <folder>/cards.md       the cards
//! ```

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use lab::results::baseline::{self, BaselineRow};
use lab::ssd::{DriveSpec, catalogue};

use xtask::files::remove_folder;
use xtask::program::{is_page, run};
use xtask::target;

/// Status with which the command ends after a measurement that did not reach steady state.
const NOT_STEADY: i32 = 3;

/// Settings of the gallery.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Folder that the reviews and the cards are written into
    folder: PathBuf,
    /// Protocol of the reviews
    #[arg(long, default_value = "enterprise")]
    protocol: String,
    /// Largest time lapse of the reviews [default: that of each drive]
    #[arg(long, value_name = "K")]
    time_lapse: Option<u32>,
    /// Makes only the reviews that the folder lacks
    #[arg(long)]
    keep_reviews: bool,
    /// Program to review with [default: the one of this workspace, built for release]
    #[arg(long, value_name = "PATH")]
    floatgate: Option<PathBuf>,
}

/// Reviews every drive, apart from those whose reviews are kept, and writes the cards.
///
/// # Errors
/// Fails if a review fails, or a file cannot be written.
pub(crate) fn provide(options: &Options) -> Result<()> {
    let (drives, folder) = (ordered(), options.folder.as_path());
    if !options.keep_reviews {
        remove_folder(folder)?;
    }
    let mut missing = drives.iter().filter(|it| !page_of(folder, it).exists()).peekable();
    if missing.peek().is_some() {
        let built = target().join("release/floatgate");
        let program = if let Some(program) = &options.floatgate {
            program
        } else {
            run("cargo", &["build", "--quiet", "--release", "--package", "cli"], &[])?;
            &built
        };
        for drive in missing {
            review(program, drive, folder, options)?;
        }
    }
    fs::write(folder.join("cards.md"), cards(&drives)).context("writing the cards")
}

/// The drives in the order of the gallery: validated ones first, then by year.
fn ordered() -> Vec<DriveSpec> {
    let mut drives = catalogue::drives();
    drives.sort_by_key(|it| (!it.is_validated(), it.year, it.title.clone()));
    drives
}

fn page_of(folder: &Path, drive: &DriveSpec) -> PathBuf {
    folder.join(format!("{}.html", drive.name))
}

/// Reviews one drive in all of its formats.
fn review(program: &Path, drive: &DriveSpec, folder: &Path, options: &Options) -> Result<()> {
    let runs = folder.join("runs").join(&drive.name);
    let mut review = Command::new(program);
    review.args(["review", &drive.name, "--protocol", &options.protocol, "--out"]).arg(&runs);
    if let Some(time_lapse) = options.time_lapse {
        // That of the drive's file is the largest that its model allows.
        review.args(["--time-lapse", &time_lapse.min(drive.time_lapse).to_string()]);
    }
    let output = review.output().with_context(|| format!("starting {review:?}"))?;
    // A drive that did not reach steady state has a review, which says so.
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_reviewed = output.status.success() || output.status.code() == Some(NOT_STEADY);
    let page = printed.lines().map(str::trim).find(|line| is_reviewed && is_page(line));
    let page = page.with_context(|| {
        format!("{review:?} failed: {printed}{}", String::from_utf8_lossy(&output.stderr))
    })?;
    fs::rename(page, page_of(folder, drive)).with_context(|| format!("moving {page}"))?;
    println!("reviewed {}", drive.name);
    Ok(())
}

/// Cards of drives, as HTML within Markdown.
fn cards(drives: &[DriveSpec]) -> String {
    let mut html = String::from("<ul class=\"gallery\">\n");
    for drive in drives {
        let DriveSpec { name, title, year, media, .. } = drive;
        let state = if drive.is_validated() { "validated" } else { "not validated" };
        let year = year.map_or_else(String::new, |year| format!("{year}, "));
        let _ = writeln!(
            html,
            "<li><a href=\"gallery/{name}.html\"><b>{}</b><small>{year}{}, {state}</small>{}\
             </a></li>",
            escaped(title),
            escaped(media),
            figures(baseline::rows().iter().find(|row| row.drive == *name)),
        );
    }
    html + "</ul>\n\nThe figures are those after the preconditioning of the enterprise protocol, \
            with 16 threads and a queue depth of 16 each.\n"
}

/// Figures of a drive, where the baseline table has them.
fn figures(row: Option<&BaselineRow>) -> String {
    let Some(row) = row else { return String::new() };
    let line = |name: &str, iops: f64| format!("<dt>{name}</dt><dd>{:.0}K IOPS</dd>", iops / 1e3);
    format!(
        "<dl>{}{}{}</dl>",
        line("4 KiB random writes", row.write_iops),
        line("4 KiB random reads", row.read_iops),
        line("8 KiB, 70 % reads", row.mixed_iops),
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
