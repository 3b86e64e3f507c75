//! The atlas of the catalogue: every drive reviewed, and the pages of their runs.
//!
//! ```text
//! <folder>/runs/    the runs
//! <folder>/atlas/   what `floatgate atlas` makes of them
//! ```

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use lab::runs::Runs;
use lab::ssd::{DriveSpec, catalogue};

use xtask::files::remove_folder;
use xtask::program::{run, said};
use xtask::target;

/// Status with which the command ends after a measurement that did not reach steady state.
const NOT_STEADY: i32 = 3;

/// Settings of the atlas.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Folder for the runs and the pages
    folder: PathBuf,
    /// Protocol of the reviews
    #[arg(long, default_value = "enterprise")]
    protocol: String,
    /// Largest time lapse of the reviews [default: that of each drive]
    #[arg(long, value_name = "K")]
    time_lapse: Option<u32>,
    /// Reviews only drives of which the folder has no run
    #[arg(long)]
    keep_reviews: bool,
    /// Program to review with [default: the one of this workspace, built for release]
    #[arg(long, value_name = "PATH")]
    floatgate: Option<PathBuf>,
}

/// Reviews every drive, apart from those whose runs are kept, and writes the pages.
///
/// # Errors
/// Fails if a review fails, or a file cannot be written.
pub(crate) fn provide(options: &Options) -> Result<()> {
    let folder = options.folder.as_path();
    if !options.keep_reviews {
        remove_folder(folder)?;
    }
    let built = target().join("release/floatgate");
    let program = if let Some(program) = &options.floatgate {
        program
    } else {
        run("cargo", &["build", "--quiet", "--release", "--package", "cli"], &[])?;
        &built
    };
    let runs = folder.join("runs");
    let kept = Runs::new(&runs).listed();
    let has_run =
        |drive: &DriveSpec| kept.iter().any(|it| it.target == drive.name && it.is_complete());
    for drive in catalogue::drives().iter().filter(|drive| !has_run(drive)) {
        review(program, drive, &runs, options)?;
    }
    let mut atlas = Command::new(program);
    atlas.args(["atlas", "--overwrite", "--dir"]).arg(&runs);
    remove_folder(&folder.join("atlas"))?;
    said(atlas.arg("--out").arg(folder.join("atlas")))?;
    Ok(())
}

/// Reviews one drive in all of its formats.
fn review(program: &Path, drive: &DriveSpec, runs: &Path, options: &Options) -> Result<()> {
    let mut review = Command::new(program);
    review.args(["review", &drive.name, "--protocol", &options.protocol, "--out"]).arg(runs);
    if let Some(time_lapse) = options.time_lapse {
        // That of the drive's file is the largest that its model allows.
        review.args(["--time-lapse", &time_lapse.min(drive.time_lapse).to_string()]);
    }
    let output = review.output().with_context(|| format!("starting {review:?}"))?;
    // A drive that did not reach steady state has a review, which says so.
    let is_reviewed = output.status.success() || output.status.code() == Some(NOT_STEADY);
    ensure!(is_reviewed, "{review:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    println!("reviewed {}", drive.name);
    Ok(())
}
