//! `floatgate drives`: the catalogue of modelled drives.

use anyhow::Result;
use lab::ssd::{DriveSpec, catalogue};
use lab::subject::find_drive;
use serde_json::{Value, json};

use crate::args::Named;
use crate::{Ending, output, table};

/// Lists the drives, or shows one with every number and its source.
pub(crate) fn drives(args: &Named) -> Result<Ending> {
    match (&args.name, args.json) {
        (None, false) => output::data(&list(&catalogue::drives()))?,
        (None, true) => {
            output::json(&catalogue::drives().iter().map(described).collect::<Vec<_>>())?;
        }
        (Some(name), false) => output::data(&sheet(&find_drive(name)?))?,
        (Some(name), true) => output::json(&described(&find_drive(name)?))?,
    }
    Ok(Ending::Done)
}

fn list(drives: &[DriveSpec]) -> String {
    let rows: Vec<[String; 3]> = drives
        .iter()
        .map(|drive| [drive.name.clone(), drive.title.clone(), drive.formats().join(", ")])
        .collect();
    table::columns(&rows)
}

fn sheet(drive: &DriveSpec) -> String {
    let formats = drive.formats();
    let default = formats.first().map_or("", String::as_str);
    let rows: Vec<[String; 4]> = drive
        .sheet(default)
        .into_iter()
        .map(|fact| [fact.group, fact.name, fact.value, fact.source])
        .collect();
    format!(
        "{}\nformats: {}\nhosts: {}\n\n{}",
        drive.title,
        formats.join(", "),
        drive.hosts().join(", "),
        table::columns(&rows)
    )
}

fn described(drive: &DriveSpec) -> Value {
    let formats = drive.formats().into_iter().map(|format| {
        let facts = drive.sheet(&format).into_iter().map(|fact| {
            json!({
                "group": fact.group,
                "name": fact.name,
                "value": fact.value,
                "source": fact.source,
            })
        });
        json!({ "sheet": facts.collect::<Vec<_>>(), "name": format })
    });
    json!({
        "name": drive.name,
        "title": drive.title,
        "formats": formats.collect::<Vec<_>>(),
        "hosts": drive.hosts(),
        "time_lapse_default": drive.time_lapse_default(),
    })
}
