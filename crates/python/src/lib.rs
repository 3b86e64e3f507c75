//! The compiled half of the Python package `floatgate`: the module `floatgate._core`.
//!
//! ```text
//! floatgate/*.py ──► order as JSON ──► _core ──► lab ──► result as JSON, tables as Arrow streams
//! ```
//!
//! Orders and results are passed as texts, so that they can be sent to other processes and are
//! the same bytes as those of the command. The Python half (`python/floatgate`) converts them to
//! values.
//!
//! Invariants:
//! - The interpreter's lock is released while a drive is simulated. Meanwhile the calling thread
//!   checks for Ctrl-C and reports progress.
//! - Failures are raised as `floatgate.Error`, with a remedy.

mod application;
mod comparison;
mod drive;
mod failure;
mod figures;
mod fit;
mod review;
mod run;
mod simulator;
mod sweep;
mod table;
mod validation;
mod volume;
mod work;

use pyo3::prelude::*;

/// The module `floatgate._core`.
#[pymodule]
#[pyo3(name = "_core")]
mod core {
    use super::{Bound, PyModule, PyModuleMethods as _, PyResult};
    use pyo3::types::PyTuple;

    #[pymodule_export]
    use crate::application::{recording, replay};
    #[pymodule_export]
    use crate::comparison::{compare_html, compare_runs};
    #[pymodule_export]
    use crate::drive::{drive_facts, drive_text, drive_with, drives, protocols, workloads};
    #[pymodule_export]
    use crate::fit::fit_drive;
    #[pymodule_export]
    use crate::review::{plan, review};
    #[pymodule_export]
    use crate::run::{RunData, import_run, open_run, run};
    #[pymodule_export]
    use crate::simulator::{Completion, Simulator};
    #[pymodule_export]
    use crate::sweep::{
        SweepFolder, sweep_all, sweep_html, sweep_order, sweep_point, sweep_result,
    };
    #[pymodule_export]
    use crate::table::ArrowTable;
    #[pymodule_export]
    use crate::validation::{
        cross_validate_drives, drives_to_cross_validate, error_median, figure_owners, figures_text,
        judge_rankings, validate_drives,
    };
    #[pymodule_export]
    use crate::volume::{volume_history, volume_inject, volume_status};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("MODEL_VERSION", lab::ssd::MODEL_VERSION)?;
        module.add("STATUSES", PyTuple::new(module.py(), crate::simulator::STATUSES)?)
    }
}
