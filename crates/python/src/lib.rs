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
mod drive;
mod failure;
mod review;
mod run;
mod simulator;
mod sweep;
mod table;
mod work;

use pyo3::prelude::*;

/// The module `floatgate._core`.
#[pymodule]
#[pyo3(name = "_core")]
fn core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("MODEL_VERSION", lab::ssd::MODEL_VERSION)?;
    module.add_class::<run::RunData>()?;
    module.add_class::<table::ArrowTable>()?;
    module.add_class::<simulator::Simulator>()?;
    module.add_function(wrap_pyfunction!(drive::drives, module)?)?;
    module.add_function(wrap_pyfunction!(drive::workloads, module)?)?;
    module.add_function(wrap_pyfunction!(drive::protocols, module)?)?;
    module.add_function(wrap_pyfunction!(drive::drive_text, module)?)?;
    module.add_function(wrap_pyfunction!(drive::drive_facts, module)?)?;
    module.add_function(wrap_pyfunction!(drive::drive_with, module)?)?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(run::open_run, module)?)?;
    module.add_function(wrap_pyfunction!(review::review, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::sweep_order, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::sweep_point, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::sweep_all, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::sweep_result, module)?)?;
    module.add_class::<sweep::SweepFolder>()?;
    module.add_function(wrap_pyfunction!(application::replay, module)?)?;
    module.add_function(wrap_pyfunction!(application::app, module)?)?;
    Ok(())
}
