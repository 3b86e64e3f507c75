//! `floatgate compare`: runs side by side.

use anyhow::Result;
use lab::results::Run;
use lab::runs::{Runs, write_text};

use crate::args::Compare;
use crate::{Ending, output, setup};

/// Default path of the review; numbered if it exists.
const OUT: &str = "compare.html";

/// Writes one review of several runs, and prints its path.
pub(crate) fn compare(args: &Compare) -> Result<Ending> {
    let runs = Runs::new(&args.dir);
    let loaded: Vec<Run> =
        args.runs.iter().map(|asked| runs.load(asked)).collect::<Result<_, _>>()?;
    if args.json {
        output::json(&loaded)?;
    } else {
        let out = args.out.clone().unwrap_or_else(|| setup::free_name(OUT));
        setup::check_output(&out, args.overwrite)?;
        write_text(&out, &report::review(&loaded, &title(&loaded)))?;
        output::data(&out.display().to_string())?;
    }
    Ok(Ending::Done)
}

/// The targets, each once.
fn title(runs: &[Run]) -> String {
    let mut titles: Vec<String> = Vec::new();
    for title in runs.iter().map(|run| run.target.heading()) {
        if !titles.contains(&title) {
            titles.push(title);
        }
    }
    titles.join(" against ")
}
