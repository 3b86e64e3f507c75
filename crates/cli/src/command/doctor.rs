//! `floatgate doctor`: whether this machine is fit to measure real drives.

use anyhow::Result;
use lab::{Error, Kind};
use real::doctor::{Check, State, checks};
use real::tuning::{self, ReversionOutcome};

use crate::args::Doctor;
use crate::{Ending, output, table};

/// Prints what was looked at, how it is, and what to do about it; or puts settings back.
pub(crate) fn doctor(args: &Doctor) -> Result<Ending> {
    if args.revert {
        return revert(args.json);
    }
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

/// Puts back what runs that were killed left tuned, and prints what became of each setting.
fn revert(json: bool) -> Result<Ending> {
    let reverted = tuning::revert()?;
    if json {
        output::json(&reverted)?;
    } else if reverted.is_empty() {
        output::talk("no settings to restore");
    } else {
        let row = |it: &ReversionOutcome| [it.setting.clone(), it.text.clone()];
        output::data(&table::columns(&reverted.iter().map(row).collect::<Vec<_>>()))?;
    }
    if reverted.iter().any(|it| !it.is_done) {
        let error = Error::new(Kind::Io, "not every setting could be restored");
        return Err(error.hint("run as root").into());
    }
    Ok(Ending::Done)
}
