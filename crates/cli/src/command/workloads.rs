//! `floatgate workloads`: the catalogue of workloads.

use anyhow::Result;
use blockio::Bytes;
use lab::subject::find_workload;
use lab::workload::{Access, Workload, catalogue};

use crate::args::Named;
use crate::{Ending, output, table};

/// Lists the workloads, or shows one.
pub(crate) fn workloads(args: &Named) -> Result<Ending> {
    match (&args.name, args.json) {
        (None, false) => output::data(&list(&catalogue::workloads()))?,
        (None, true) => output::json(&catalogue::workloads())?,
        (Some(name), false) => output::data(&sheet(&find_workload(name)?))?,
        (Some(name), true) => output::json(&find_workload(name)?)?,
    }
    Ok(Ending::Done)
}

fn list(workloads: &[Workload]) -> String {
    let rows: Vec<[String; 3]> = workloads
        .iter()
        .map(|workload| [workload.name.clone(), workload.title.clone(), mix(workload)])
        .collect();
    table::columns(&rows)
}

fn sheet(workload: &Workload) -> String {
    let sizes: Vec<[String; 2]> = workload
        .sizes
        .iter()
        .map(|size| [Bytes(size.bytes.into()).to_string(), format!("{} %", size.percent)])
        .collect();
    format!(
        "{}\n{}\n{}, {}, {} % of the drive\nsource: {}\n\n{}",
        workload.title,
        workload.description,
        mix(workload),
        access(&workload.access),
        workload.footprint_percent,
        workload.source,
        table::columns(&sizes)
    )
}

fn mix(workload: &Workload) -> String {
    let read = workload.read_percent;
    format!("{read} % read, {} % write", 100.0 - read)
}

fn access(access: &Access) -> String {
    match access {
        Access::Random => "random".into(),
        Access::Sequential => "sequential".into(),
        Access::Zipf { theta } => format!("zipf, theta {theta}"),
        Access::HotCold { hot_request_percent, hot_space_percent } => {
            format!("{hot_request_percent} % of the requests in {hot_space_percent} % of the space")
        }
    }
}
