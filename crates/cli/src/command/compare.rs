//! `floatgate compare`: runs side by side.

use anyhow::Result;
use lab::results::Run;
use lab::runs::{Runs, one_page_of, write_text};
use lab::{Error, Kind};

use crate::args::Compare;
use crate::{Ending, drive_prices, output, regression, setup};

/// Default path of the review; numbered if it exists.
const OUT: &str = "compare.html";

/// Writes one review of several runs, and prints its path.
pub(crate) fn compare(args: &Compare) -> Result<Ending> {
    check_limits(args)?;
    let runs = Runs::new(&args.dir);
    let mut loaded: Vec<Run> =
        args.runs.iter().map(|asked| runs.load(asked)).collect::<Result<_, _>>()?;
    drive_prices::check(&args.price.prices)?;
    if let Some((drive, _)) = args
        .price
        .prices
        .iter()
        .find(|(drive, _)| loaded.iter().all(|run| run.target.name != *drive))
    {
        let text = format!("--price {drive}: no run is of this drive");
        return Err(Error::new(Kind::Input, text).hint("name it as `floatgate runs` does").into());
    }
    drive_prices::apply(&args.price.prices, &mut loaded);
    check_one_page(args)?;
    let judged = regression::judge(&args.fail_if, &loaded);
    if args.json {
        output::json(&loaded)?;
        judged.beyond.iter().chain(&judged.by_chance).for_each(|it| output::talk(it));
    } else {
        let out = args.out.clone().unwrap_or_else(|| setup::free_name(OUT));
        let one_page = args.one_page.then(|| one_page_of(&out));
        for path in std::iter::once(&out).chain(&one_page) {
            setup::check_output(path, args.overwrite)?;
        }
        write_text(&out, &report::review(&loaded, &title(&loaded)))?;
        judged.beyond.iter().chain(&judged.by_chance).try_for_each(|it| output::data(it))?;
        output::data(&out.display().to_string())?;
        if let Some(one_page) = one_page {
            write_text(&one_page, &report::one_page(&loaded, &title(&loaded)))?;
            output::data(&one_page.display().to_string())?;
        }
    }
    if !judged.unjudged.is_empty() {
        let limits = judged.unjudged.join(", ");
        let text = format!("no load has the figure in the first run and in a later one: {limits}");
        let hint = "compare runs of the same protocol, with enough requests for the percentile";
        return Err(Error::new(Kind::Program, text).hint(hint).into());
    }
    Ok(if judged.beyond.is_empty() { Ending::Done } else { Ending::BeyondLimit })
}

/// Refuses more runs than a page of paper holds.
fn check_one_page(args: &Compare) -> Result<()> {
    let (count, limit) = (args.runs.len(), report::ONE_PAGE_RUNS_MAX);
    if !args.one_page || count <= limit {
        return Ok(());
    }
    let text = format!("--one-page of {count} runs: a page holds at most {limit}");
    Err(Error::new(Kind::Input, text).hint("compare fewer of them with --one-page").into())
}

/// Refuses limits without a run to judge.
fn check_limits(args: &Compare) -> Result<()> {
    if args.fail_if.is_empty() || args.runs.len() > 1 {
        return Ok(());
    }
    let text = "--fail-if needs a second run, which is judged by the first";
    Err(Error::new(Kind::Input, text).hint("name the run that is the standard first").into())
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
