//! Results of other load generators, stored as runs.

use std::fs;
use std::path::Path;

use results::Run;

use crate::Error;
use crate::fio_report::{self, ImportedRun};
use crate::runs::Runs;
use crate::vdbench_report;

/// Stores a fio report or a flat file of vdbench in `runs`, called `title`; absent: as the files or
/// devices that were used.
///
/// # Errors
/// Fails if it is neither, or the run cannot be stored.
pub fn import_run(runs: &Runs, file: &Path, title: Option<&str>) -> Result<Run, Error> {
    let is_flat = fs::read_to_string(file).is_ok_and(|it| vdbench_report::is_flat_file(&it));
    let read = if is_flat { vdbench_report::import } else { fio_report::import };
    let ImportedRun { plan, wanted, outcome, begun } = read(file, title)?;
    runs.create_imported(plan, wanted, begun)?.finish(outcome)
}
