//! `floatgate drives`: the catalogue, modelled drives and those that are only listed.

use anyhow::Result;
use lab::results::published;
use lab::ssd::DriveSpec;
use lab::ssd::catalogue::{self, ListedDrive};
use lab::subject::{find_drive, find_drive_text};
use lab::{Error, Kind};
use serde_json::{Value, json};

use crate::args::Named;
use crate::{Ending, output, table};

/// Note on a drive that is listed without a model.
const NO_MODEL: &str = "listed, not validated: no model";

/// Lists the drives, or shows one with every number and its source.
pub(crate) fn drives(args: &Named) -> Result<Ending> {
    let listed = catalogue::listed();
    if let Some(name) = args.name.as_ref().filter(|_| args.toml) {
        output::data(&find_drive_text(name)?)?;
        return Ok(Ending::Done);
    }
    if let Some(name) = args.name.as_ref().filter(|_| args.figures) {
        output::data(&published_table(name)?)?;
        return Ok(Ending::Done);
    }
    if let Some(drive) = listed.iter().find(|drive| Some(&drive.name) == args.name.as_ref()) {
        if args.json {
            output::json(&described_listed(drive))?;
        } else {
            output::data(&known(drive))?;
        }
        return Ok(Ending::Done);
    }
    match (&args.name, args.json) {
        (None, false) => output::data(&list(&catalogue::drives(), &listed))?,
        (None, true) => {
            let drives = catalogue::drives();
            let all = drives.iter().map(described).chain(listed.iter().map(described_listed));
            output::json(&all.collect::<Vec<_>>())?;
        }
        (Some(name), false) => output::data(&sheet(&find_drive(name)?))?,
        (Some(name), true) => output::json(&described(&find_drive(name)?))?,
    }
    Ok(Ending::Done)
}

/// The rows of the project's own table that concern a drive, below its heading.
fn published_table(name: &str) -> Result<String> {
    let drive = find_drive(name)?;
    let figures = published::figures();
    let (device, capacity_gb) = drive.published_as().ok_or_else(|| {
        let text = format!("{name}: its file does not say which published figures are its own");
        Error::new(Kind::Input, text).hint("give it [published]: docs/guide/add-a-drive.md")
    })?;
    let rows = published::figures_for(figures, device, capacity_gb);
    let ids: Vec<&str> = rows.map(|row| row.id.as_str()).collect();
    let is_its = |line: &&str| line.split(',').next().is_some_and(|id| ids.contains(&id));
    let mut lines = published::TEXT.lines();
    let head = lines.next().unwrap_or_default();
    Ok(std::iter::once(head).chain(lines.filter(is_its)).collect::<Vec<_>>().join("\n"))
}

fn list(drives: &[DriveSpec], listed: &[ListedDrive]) -> String {
    let modelled = drives
        .iter()
        .map(|drive| [drive.name.clone(), drive.title.clone(), drive.formats().join(", ")]);
    let listed =
        listed.iter().map(|drive| [drive.name.clone(), drive.title.clone(), NO_MODEL.to_owned()]);
    table::columns(&modelled.chain(listed).collect::<Vec<_>>())
}

/// Returns the title and the data-sheet values of a drive without a model.
fn known(drive: &ListedDrive) -> String {
    let rows = [
        ["User".to_owned(), format!("{} GB", drive.user_gb)],
        ["Media".to_owned(), drive.media.clone()],
        ["Controllers".to_owned(), drive.controllers.clone()],
        ["Link".to_owned(), drive.link.clone()],
        ["Source".to_owned(), drive.source.clone()],
    ];
    format!("{}\n{NO_MODEL}\n\n{}", drive.title, table::columns(&rows))
}

fn described_listed(drive: &ListedDrive) -> Value {
    json!({
        "name": drive.name,
        "title": drive.title,
        "model": false,
        "user_gb": drive.user_gb,
        "media": drive.media,
        "controllers": drive.controllers,
        "link": drive.link,
        "source": drive.source,
    })
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
        "model": true,
        "formats": formats.collect::<Vec<_>>(),
        "hosts": drive.hosts(),
        "time_lapse_default": drive.time_lapse_default(),
    })
}
