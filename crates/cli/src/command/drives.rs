//! `floatgate drives`: the catalogue, and drives made from data sheets.

use std::fmt::Write as _;

use anyhow::Result;
use lab::driver::model;
use lab::results::SheetRow;
use lab::results::mark::{UNVALIDATED_REASON, marked};
use lab::results::published;
use lab::runs::write_text;
use lab::ssd::{DriveSpec, catalogue};
use lab::subject::{find_drive, find_drive_text};
use lab::{Error, Kind};
use serde_json::{Value, json};
use study::datasheet::DerivedFile;

use crate::args::{DriveCommand, DriveListing, NewDrive};
use crate::command::validate::figures;
use crate::drive_query::{Cell, cells, columns};
use crate::{Ending, output, setup, table};

/// Columns of the notes below a sheet.
const NOTE_COLUMNS: usize = 95;

/// Lists the drives, or shows one with every number and its source.
pub(crate) fn drives(args: &DriveListing) -> Result<Ending> {
    if let Some(DriveCommand::New(args)) = &args.command {
        return made(args);
    }
    if let Some(name) = args.name.as_ref().filter(|_| args.toml) {
        output::data(&find_drive_text(name)?)?;
        return Ok(Ending::Done);
    }
    if let Some(name) = args.name.as_ref().filter(|_| args.figures) {
        output::data(&published_table(name)?)?;
        return Ok(Ending::Done);
    }
    match (&args.name, args.json) {
        (None, false) if args.csv => output::data(&csv(&chosen(args)?)?)?,
        (None, false) => output::data(&list(&chosen(args)?))?,
        (None, true) => {
            output::json(&chosen(args)?.iter().map(described).collect::<Vec<_>>())?;
        }
        (Some(name), false) => output::data(&sheet(&find_drive(name)?))?,
        (Some(name), true) => output::json(&described(&find_drive(name)?))?,
    }
    Ok(Ending::Done)
}

/// Makes a drive from a data sheet; says what the sheet does not.
fn made(args: &NewDrive) -> Result<Ending> {
    if let Some(path) = &args.out {
        setup::check_output(path, args.overwrite)?;
    }
    let rows = figures(Some(&args.datasheet))?;
    let made = DerivedFile::new(&rows, &args.datasheet.display().to_string(), &args.like)?;
    for name in &made.unstated {
        output::talk(&format!("not stated, so as {}: {name}", args.like));
    }
    match &args.out {
        None => output::data(&made.text)?,
        Some(path) => {
            write_text(path, &made.text)?;
            output::data(&path.display().to_string())?;
        }
    }
    Ok(Ending::Done)
}

/// The rows of the project's own tables that concern a drive, below their heading.
fn published_table(name: &str) -> Result<String> {
    let drive = find_drive(name)?;
    let (device, capacity_gb) = drive.published_as().ok_or_else(|| {
        let text = format!("{name}: its file does not say which published figures are its own");
        Error::new(Kind::Input, text).hint("give it [published]: docs/guide/add-a-drive.md")
    })?;
    let sheets = published::datasheets();
    let tables = [(published::TEXT, published::figures()), (published::DATASHEETS, sheets)];
    let mut its = vec![published::TEXT.lines().next().unwrap_or_default()];
    for (text, figures) in tables {
        let rows = published::figures_for(figures, device, capacity_gb);
        let ids: Vec<&str> = rows.map(|row| row.id.as_str()).collect();
        let is_its = |line: &&str| line.split(',').next().is_some_and(|id| ids.contains(&id));
        its.extend(text.lines().skip(1).filter(is_its));
    }
    Ok(its.join("\n"))
}

/// The drives of the catalogue that meet the conditions.
///
/// # Errors
/// Fails if none does.
fn chosen(args: &DriveListing) -> Result<Vec<DriveSpec>> {
    let mut drives = catalogue::drives();
    let Some(query) = &args.query else { return Ok(drives) };
    drives.retain(|drive| query.is_met(&cells(drive)));
    if drives.is_empty() {
        let error = Error::new(Kind::Input, "no drive meets all of the conditions");
        return Err(error.hint("`floatgate drives --csv` prints every column").into());
    }
    Ok(drives)
}

fn csv(drives: &[DriveSpec]) -> Result<String> {
    let cell = |cell: Cell| match cell {
        Cell::Text(text) => text,
        Cell::Number(number) => format!("{}", (number * 100.0).round() / 100.0),
        Cell::Unknown => String::new(),
    };
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(columns())?;
    for drive in drives {
        writer.write_record(cells(drive).into_iter().map(cell))?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?.trim_end().to_owned())
}

fn list(drives: &[DriveSpec]) -> String {
    let rows =
        drives.iter().map(|drive| [drive.name.clone(), heading(drive), drive.formats().join(", ")]);
    table::columns(&rows.collect::<Vec<_>>())
}

/// Title of a drive, with the mark of an unvalidated model.
fn heading(drive: &DriveSpec) -> String {
    marked(&drive.title, !drive.is_validated())
}

/// The sheet of a drive: every number with its source, which stands below it once.
fn sheet(drive: &DriveSpec) -> String {
    let formats = drive.formats();
    let default = formats.first().map_or("", String::as_str);
    let mut sources: Vec<String> = Vec::new();
    let mut row = |fact: SheetRow| {
        let (kind, _) = fact.source.split_once(':').unwrap_or((&fact.source, ""));
        let known = sources.iter().position(|it| *it == fact.source);
        let number = known.unwrap_or_else(|| {
            sources.push(fact.source.clone());
            sources.len() - 1
        });
        let source = format!("{kind} [{}]", number + 1);
        [fact.group, fact.name, fact.value, source]
    };
    let rows: Vec<[String; 4]> = model::sheet(drive, default).into_iter().map(&mut row).collect();
    let reason = || format!("{UNVALIDATED_REASON}\n");
    let reason = if drive.is_validated() { String::new() } else { reason() };
    let mut notes = String::new();
    for (number, source) in (1..).zip(&sources) {
        let lines = table::wrapped(source, NOTE_COLUMNS).join("\n     ");
        let _ = write!(notes, "\n{:>4} {lines}", format!("[{number}]"));
    }
    format!(
        "{}\nformats: {}\nhosts: {}\nplatforms: {}\n{reason}\n{}\n{notes}",
        heading(drive),
        formats.join(", "),
        drive.hosts().join(", "),
        drive.platforms().join(", "),
        table::columns(&rows)
    )
}

fn described(drive: &DriveSpec) -> Value {
    let formats = drive.formats().into_iter().map(|format| {
        let facts = model::sheet(drive, &format).into_iter().map(|fact| {
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
        "validated": drive.is_validated(),
        "formats": formats.collect::<Vec<_>>(),
        "hosts": drive.hosts(),
        "platforms": drive.platforms(),
        "time_lapse_default": drive.time_lapse_default(),
    })
}
