//! How a failure is told: once, from the outside in, with what to do about it.

use std::io;
use std::process::ExitCode;

use lab::Kind;

use crate::output;

/// Prints `error: a: b: c`, then `hint: ...` where a remedy is known, and says how to exit.
///
/// A reader that closed the pipe has what it wanted: that is no failure.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    let pipe_closed = error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
    if pipe_closed {
        return ExitCode::SUCCESS;
    }
    output::talk(&format!("error: {error:#}"));
    let hints = error.chain().filter_map(|cause| {
        let remedy = cause.downcast_ref::<lab::Error>()?.remedy();
        (!remedy.is_empty()).then_some(remedy)
    });
    if let Some(hint) = hints.last() {
        output::talk(&format!("hint: {hint}"));
    }
    ExitCode::from(if is_usage(error) { 2 } else { 1 })
}

/// Whether what was typed is at fault.
fn is_usage(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<lab::Error>())
        .last()
        .is_some_and(|error| error.kind() == Kind::Input)
}
