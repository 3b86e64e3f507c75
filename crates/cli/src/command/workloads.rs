//! `floatgate workloads`: those that are built in, and the user's own.

use anyhow::Result;
use blockio::Bytes;
use lab::library::{Entry, Library};
use lab::workload::{Access, ByteRange, Workload, WorkloadStream};

use super::listing;
use crate::args::{Listing, ListingCommand};
use crate::{Ending, output, table};

/// Lists the workloads, shows one, or makes some of a job file of fio.
pub(crate) fn workloads(args: &Listing) -> Result<Ending> {
    let library = Library::of_user();
    match (&args.command, &args.name) {
        (Some(ListingCommand::Import(args)), _) => listing::import_workloads(args)?,
        (Some(ListingCommand::Show { name, toml: true, .. }), _) => {
            output::data(&listing::text::<Workload>(&library, name)?)?;
        }
        (Some(ListingCommand::Show { name, json, .. }), _) => show(&library, name, *json)?,
        (None, Some(name)) => show(&library, name, args.json)?,
        (Some(ListingCommand::List { json: true }), _) => output::json(&library.all::<Workload>())?,
        (None, None) if args.json => output::json(&library.all::<Workload>())?,
        (Some(ListingCommand::List { .. }), _) | (None, None) => list(&library)?,
    }
    Ok(Ending::Done)
}

fn show(library: &Library, name: &str, json: bool) -> Result<()> {
    let found = library.find::<Workload>(name)?;
    if json { output::json(&found) } else { output::data(&sheet(&found)) }
}

fn list(library: &Library) -> Result<()> {
    let rows: Vec<[String; 4]> = library
        .all::<Workload>()
        .into_iter()
        .map(|Entry { value, origin }| {
            let mix = mix(&value);
            [value.name, value.title, mix, origin.to_string()]
        })
        .collect();
    output::data(&table::columns(&rows))?;
    listing::tell_faults::<Workload>(library);
    Ok(())
}

fn sheet(entry: &Entry<Workload>) -> String {
    let Entry { value: workload, origin } = entry;
    let sizes: Vec<[String; 2]> = workload
        .sizes
        .iter()
        .map(|size| [Bytes(size.bytes.into()).to_string(), format!("{} %", size.percent)])
        .collect();
    let streams = match streams(&workload.streams) {
        streams if streams.is_empty() => streams,
        streams => format!("\n{streams}"),
    };
    format!(
        "{}\n{}\n{}, {}, {}\nsource: {}\nfrom: {origin}\n\n{}{streams}",
        workload.title,
        workload.description,
        mix(workload),
        access(&workload.access),
        place(workload),
        workload.source,
        table::columns(&sizes)
    )
}

/// A line for each stream; empty where there are none.
fn streams(streams: &[WorkloadStream]) -> String {
    let rows: Vec<[String; 4]> = streams
        .iter()
        .map(|stream| {
            let bytes = stream.bytes.map_or(String::new(), |it| Bytes(it.into()).to_string());
            let (requests, space) = (stream.request_percent, stream.space_percent);
            let shares = format!("{requests} % of the requests in {space} % of the space");
            let access = format!("{} {bytes}", access(&stream.access));
            [stream.name.clone(), access, shares, format!("placement handle {}", stream.handle)]
        })
        .collect();
    table::columns(&rows)
}

/// Reads and writes of each request in percent.
fn mix(workload: &Workload) -> String {
    let read = workload.read_percent;
    format!("{read} % read, {} % write", 100.0 - read)
}

/// The part of the drive that is addressed.
fn place(workload: &Workload) -> String {
    let Workload { footprint_percent, offset_percent, range, .. } = workload;
    match range {
        Some(ByteRange { offset_bytes, size_bytes: Some(size) }) => {
            format!("{} from {} on", Bytes(*size), Bytes(*offset_bytes))
        }
        Some(ByteRange { offset_bytes, size_bytes: None }) => {
            format!("all from {} on", Bytes(*offset_bytes))
        }
        None if *offset_percent > 0.0 => {
            format!("{footprint_percent} % of the drive after its first {offset_percent} %")
        }
        None => format!("{footprint_percent} % of the drive"),
    }
}

fn access(access: &Access) -> String {
    match access {
        Access::Random => "random".into(),
        Access::Sequential => "sequential".into(),
        Access::Zipf { theta } => format!("zipf, theta {theta}"),
        Access::HotCold { hot_request_percent, hot_space_percent } => {
            format!("{hot_request_percent} % of the requests in {hot_space_percent} % of the space")
        }
        Access::Streams => "in streams".into(),
    }
}
