//! How a failure is told: once, from the outside in, with what to do about it.

use std::io;
use std::process::ExitCode;

use lab::Kind;
use live::OpenError;

use crate::output;

/// What to do about a live drive that opening refuses.
const RECOVER: &str =
    "`floatgate recover FOLDER` says what is left of it, and copies it with --out";

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
    output::talk(&format!("error: {}", text(error)));
    let hints = error.chain().filter_map(|cause| {
        let remedy = match cause.downcast_ref::<OpenError>() {
            Some(OpenError::Damaged { .. } | OpenError::DiesMissing { .. }) => RECOVER,
            _ => cause.downcast_ref::<lab::Error>()?.remedy(),
        };
        (!remedy.is_empty()).then_some(remedy)
    });
    if let Some(hint) = hints.last() {
        output::talk(&format!("hint: {hint}"));
    }
    ExitCode::from(if is_usage(error) { 2 } else { 1 })
}

/// What failed, from the outside in, and nothing of it twice: an error may end with the text of its
/// source, which is a link of the chain by itself.
pub(crate) fn text(error: &anyhow::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    for cause in error.chain().map(ToString::to_string) {
        if !parts.last().is_some_and(|outer| outer.ends_with(&cause)) {
            parts.push(cause);
        }
    }
    parts.join(": ")
}

/// Whether what was typed is at fault.
fn is_usage(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<lab::Error>())
        .last()
        .is_some_and(|error| error.kind() == Kind::Input)
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;
    use live::export::{Address, BindError};

    use super::*;

    #[test]
    fn what_an_error_says_of_its_source_is_not_said_again() {
        let address: Address = "tcp:127.0.0.1:1".parse().expect("an address");
        let source = io::Error::other("refused");
        let failed: Result<(), _> = Err(BindError::System { address, source });
        let error = failed.context("starting").expect_err("it failed");
        assert_eq!(text(&error), "starting: listening at tcp:127.0.0.1:1: refused");
        let plain = anyhow::anyhow!("inner").context("outer");
        assert_eq!(text(&plain), "outer: inner");
    }
}
