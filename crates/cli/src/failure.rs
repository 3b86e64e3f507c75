//! Text and exit status of a failed command: causes from the outermost inward, each once, and a
//! hint at the remedy.

use std::process::ExitCode;

use lab::Kind;
use live::OpenError;
use server::chain_text;
pub(crate) use server::failure::{Input, Opening};

use crate::output::{self, StdoutClosed};

/// Prints `error: a: b: c`, then `hint: ...` where a remedy is known, and says how to exit.
///
/// A reader that closed stdout has what it wanted: that is no failure. Any other pipe that broke is
/// one, such as that to a server.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if error.downcast_ref::<StdoutClosed>().is_some() {
        return ExitCode::SUCCESS;
    }
    output::talk(&format!("error: {}", chain_text(error)));
    let opening = error.downcast_ref::<Opening>();
    let hints = error.chain().filter_map(|cause| {
        let of_drive = cause.downcast_ref::<OpenError>().zip(opening);
        let remedy = match of_drive {
            Some((error, opening)) => opening.remedy(error),
            None => cause.downcast_ref::<lab::Error>()?.remedy().to_owned(),
        };
        (!remedy.is_empty()).then_some(remedy)
    });
    if let Some(hint) = hints.last() {
        output::talk(&format!("hint: {hint}"));
    }
    ExitCode::from(if is_usage(error) { 2 } else { 1 })
}

/// True if the arguments are at fault.
fn is_usage(error: &anyhow::Error) -> bool {
    if error.downcast_ref::<Input>().is_some() {
        return true;
    }
    let of_drive = error.chain().find_map(|cause| cause.downcast_ref::<OpenError>());
    let is_named_wrongly = |error: &OpenError| {
        matches!(error, OpenError::NoDrive { .. } | OpenError::Description { .. })
    };
    if of_drive.is_some_and(is_named_wrongly) {
        return true;
    }
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<lab::Error>())
        .last()
        .is_some_and(|error| error.kind() == Kind::Input)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use anyhow::Context as _;
    use export::{Address, BindError};

    use super::*;

    #[test]
    fn what_the_user_named_wrongly_is_wrong_input_however_deep_it_lies() {
        let failed = || anyhow::Error::new(io::Error::other("no such file"));
        let named = failed().context(Input("reading a.toml".into())).context("serving");
        assert!(is_usage(&named) && !is_usage(&failed().context("serving")));
        let none = OpenError::NoDrive { path: "v".into(), reason: "it has no volume.toml".into() };
        assert!(is_usage(&anyhow::Error::new(none).context(Opening::of(Path::new("v")))));
        let wrong = OpenError::Description { path: "v".into(), reason: "it is no TOML".into() };
        assert!(is_usage(&anyhow::Error::new(wrong).context(Opening::of(Path::new("v")))));
        let busy = OpenError::InUse { path: "v".into(), by: "process 7".into() };
        assert!(!is_usage(&anyhow::Error::new(busy)));
    }

    #[test]
    fn what_an_error_says_of_its_source_is_not_said_again() {
        let address: Address = "tcp:127.0.0.1:1".parse().expect("an address");
        let source = io::Error::other("refused");
        let failed: Result<(), _> = Err(BindError::System { address, source });
        let error = failed.context("starting").expect_err("it failed");
        assert_eq!(chain_text(&error), "starting: listening at tcp:127.0.0.1:1: refused");
        let plain = anyhow::anyhow!("inner").context("outer");
        assert_eq!(chain_text(&plain), "outer: inner");
    }
}
