//! `floatgate doctor`: whether this machine is fit to measure real drives.

use anyhow::Result;
use lab::doctor::{Check, State, checks};

use crate::args::Doctor;
use crate::{Ending, output, table};

/// Prints what was looked at, how it is, and what to do about it.
pub(crate) fn doctor(args: &Doctor) -> Result<Ending> {
    let checks = checks(&args.out);
    if args.json {
        output::json(&checks)?;
    } else {
        output::data(&table::columns(&checks.iter().map(row).collect::<Vec<_>>()))?;
    }
    Ok(Ending::Done)
}

fn row(check: &Check) -> [String; 4] {
    let state = match check.state {
        State::Ok => "ok",
        State::Warn => "warn",
        State::Missing => "missing",
    };
    [state.into(), check.name.into(), check.seen.clone(), check.remedy.clone()]
}
