//! `floatgate protocols`: those that are built in, and the user's own.

use anyhow::Result;
use blockio::Nanos;
use lab::library::{Entry, Library};
use lab::workload::{Protocol, Suite};

use super::listing;
use crate::args::{Listing, ListingCommand};
use crate::{Ending, output, table};

/// Lists the protocols, shows one, or makes one of a job file of fio.
pub(crate) fn protocols(args: &Listing) -> Result<Ending> {
    let library = Library::of_user();
    match (&args.command, &args.name) {
        (Some(ListingCommand::Import(args)), _) => listing::import_protocol(args)?,
        (Some(ListingCommand::Show { name, toml: true, .. }), _) => {
            output::data(&listing::text::<Protocol>(&library, name)?)?;
        }
        (Some(ListingCommand::Show { name, json, .. }), _) => show(&library, name, *json)?,
        (None, Some(name)) => show(&library, name, args.json)?,
        (Some(ListingCommand::List { json: true }), _) => output::json(&library.all::<Protocol>())?,
        (None, None) if args.json => output::json(&library.all::<Protocol>())?,
        (Some(ListingCommand::List { .. }), _) | (None, None) => list(&library)?,
    }
    Ok(Ending::Done)
}

fn show(library: &Library, name: &str, json: bool) -> Result<()> {
    let found = library.find::<Protocol>(name)?;
    if json { output::json(&found) } else { output::data(&sheet(&found)) }
}

fn list(library: &Library) -> Result<()> {
    let rows: Vec<[String; 4]> = library
        .all::<Protocol>()
        .into_iter()
        .map(|Entry { value, origin }| {
            let load = match value.duration_s() {
                0 => "replays of recordings".into(),
                duration_s => format!("{} of load", length(duration_s)),
            };
            [value.name, value.title, load, origin.to_string()]
        })
        .collect();
    output::data(&table::columns(&rows))?;
    listing::tell_faults::<Protocol>(library);
    Ok(())
}

fn sheet(entry: &Entry<Protocol>) -> String {
    let Entry { value: protocol, origin } = entry;
    let suites: Vec<[String; 4]> = protocol.suites.iter().flat_map(rows).collect();
    format!(
        "{}\n{}\n{} of load; purges and fills come on top\nsource: {}\nfrom: {origin}\n\n{}\n\n\
         `floatgate plan DRIVE --protocol {}` lists every step",
        protocol.title,
        protocol.description,
        length(protocol.duration_s()),
        protocol.source,
        table::columns(&suites),
        protocol.name,
    )
}

/// Returns the stages of a suite, one row each: suite, action, workload, load.
fn rows(suite: &Suite) -> Vec<[String; 4]> {
    let line = |what: &str, workload: &str, load: String| {
        [suite.name.clone(), what.to_owned(), workload.to_owned(), load]
    };
    let fill = suite.fill.iter().map(|it| line("write everything once", it, String::new()));
    let precondition = suite.precondition.iter().map(|it| {
        let (threads, queue) = (it.threads, it.queue_per_thread);
        let load = format!("T{threads}Q{queue} for {}", length(it.duration_s));
        line("precondition", &it.workload, load)
    });
    let rounds = suite.rounds.iter().flat_map(|rounds| {
        let what = format!("measure, up to {} rounds", rounds.count_max);
        let loads = rounds.measure.iter();
        loads.map(move |it| line(&what, &it.workload, loads_of(it))).collect::<Vec<_>>()
    });
    let measure = suite.measure.iter().map(|it| line("measure", &it.workload, loads_of(it)));
    fill.chain(precondition).chain(rounds).chain(measure).collect()
}

fn loads_of(measure: &lab::workload::Measure) -> String {
    let points: Vec<String> =
        measure.points().map(|(threads, queue)| format!("T{threads}Q{queue}")).collect();
    let each = length(measure.duration_s);
    match points.as_slice() {
        [first, .., last] => format!("{} loads, {first} to {last}, {each} each", points.len()),
        _ => format!("{} for {each}", points.join(", ")),
    }
}

fn length(seconds: u64) -> String {
    Nanos::from_secs_f64(seconds as f64).to_string()
}
