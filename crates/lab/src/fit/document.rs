//! A drive's file as a text whose numbers can be found and replaced, with everything else kept.
//!
//! A number's path is its keys joined by dots. Where a table is one of several, its name stands for
//! it (`host.linux.submit_us`), or its index where it has none; so does the index of a number in
//! a list (`nand.t_program_us.1`).

use std::path::Path;
use std::{fs, ops};

use ssd::DriveSpec;
use toml_edit::{Document, DocumentMut, Item, Table, TableLike, Value};

use crate::{Error, Kind};

/// Tables that are no part of the drive.
const NOT_OF_THE_DRIVE: [&str; 1] = ["fit"];

/// A drive's file.
#[derive(Clone, Debug)]
pub(super) struct DriveFile {
    file: String,
    text: String,
    document: DocumentMut,
}

/// A number of the file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Number {
    /// Where it stands: `nand.t_program_us.1`.
    pub(super) path: String,
    /// Its value.
    pub(super) value: f64,
    /// Its line, from 1.
    pub(super) line: usize,
}

impl DriveFile {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// When it cannot be read, or is not a drive; says where.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let file = path.display().to_string();
        let text = fs::read_to_string(path)
            .map_err(|source| Error::new(Kind::Io, format!("reading {file}")).source(source))?;
        Self::parse(&text, &file)
    }

    /// The drive in `text`; `file` names it in errors.
    ///
    /// # Errors
    /// When it is not a drive; says where.
    pub(super) fn parse(text: &str, file: &str) -> Result<Self, Error> {
        let wrong = |source: Box<dyn std::error::Error + Send + Sync>| {
            Error::new(Kind::Input, "reading the drive").source(source)
        };
        DriveSpec::parse(text, file).map_err(|source| wrong(source.into()))?;
        let document = text.parse().map_err(|source: toml_edit::TomlError| wrong(source.into()))?;
        Ok(Self { file: file.to_owned(), text: text.to_owned(), document })
    }

    /// The drive as the file has it.
    pub(super) fn spec(&self) -> DriveSpec {
        DriveSpec::parse(&self.text, &self.file).expect("parsed on reading")
    }

    /// Name of the file.
    pub(super) fn name(&self) -> &str {
        &self.file
    }

    /// Every number of the drive, in the order of the file.
    pub(super) fn numbers(&self) -> Vec<Number> {
        let document: Document<&str> =
            Document::parse(self.text.as_str()).expect("parsed on reading");
        let mut found = Vec::new();
        for (key, item) in document.iter() {
            if !NOT_OF_THE_DRIVE.contains(&key) {
                collect(key, item, &mut |path, value, span| {
                    let before = &self.text[..span.map_or(0, |span| span.start)];
                    let line = before.matches('\n').count() + 1;
                    found.push(Number { path, value, line });
                });
            }
        }
        found.sort_by_key(|number| number.line);
        found
    }

    /// The file with `values` in the place of those at their paths; whole numbers are written as
    /// such where `whole` says so.
    pub(super) fn with<'a>(&self, values: impl IntoIterator<Item = (&'a str, f64, bool)>) -> Self {
        let mut document = self.document.clone();
        for (path, value, whole) in values {
            let keys: Vec<&str> = path.split('.').collect();
            let place = find(document.as_table_mut(), &keys).expect("a path that numbers() gave");
            let decor = place.decor().clone();
            *place = if whole { Value::from(rounded(value)) } else { Value::from(value) };
            *place.decor_mut() = decor;
        }
        Self { text: document.to_string(), document, file: self.file.clone() }
    }

    /// Puts `words` before the source of each table that holds one of `paths`.
    pub(super) fn note<'a>(&mut self, paths: &[&'a str], words: impl Fn(&[&'a str]) -> String) {
        let mut by_table: Vec<(Vec<&str>, Vec<&'a str>)> = Vec::new();
        for path in paths {
            let keys: Vec<&str> = path.split('.').collect();
            let Some((table, key)) = owner(self.document.as_table_mut(), &keys) else { continue };
            match by_table.iter_mut().find(|(known, _)| *known == table) {
                Some((_, keys)) => keys.push(key),
                None => by_table.push((table, vec![key])),
            }
        }
        for (table, numbers) in by_table {
            let mut keys = table.clone();
            keys.push("source");
            if let Some(source) = find(self.document.as_table_mut(), &keys) {
                let before = source.as_str().unwrap_or_default().to_owned();
                let decor = source.decor().clone();
                *source = Value::from(format!("{}; before: {before}", words(&numbers)));
                *source.decor_mut() = decor;
            }
        }
        self.text = self.document.to_string();
    }

    /// The text of the file.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

#[expect(clippy::cast_possible_truncation, reason = "bounds of counts are far below")]
fn rounded(value: f64) -> i64 {
    value.round() as i64
}

/// Hands every number below `item` to `take`.
fn collect(path: &str, item: &Item, take: &mut impl FnMut(String, f64, Option<ops::Range<usize>>)) {
    if let Some(value) = item.as_value() {
        collect_value(path, value, take);
    } else if let Some(table) = item.as_table_like() {
        for (key, item) in table.iter() {
            collect(&format!("{path}.{key}"), item, take);
        }
    } else if let Some(tables) = item.as_array_of_tables() {
        for (index, table) in tables.iter().enumerate() {
            let name = named(table).map_or_else(|| index.to_string(), str::to_owned);
            for (key, item) in table {
                collect(&format!("{path}.{name}.{key}"), item, take);
            }
        }
    }
}

fn collect_value(
    path: &str,
    value: &Value,
    take: &mut impl FnMut(String, f64, Option<ops::Range<usize>>),
) {
    match value {
        Value::Integer(_) | Value::Float(_) => {
            take(path.to_owned(), number(value).expect("one of the two"), value.span());
        }
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                collect_value(&format!("{path}.{index}"), value, take);
            }
        }
        Value::InlineTable(table) => {
            for (key, value) in table {
                collect_value(&format!("{path}.{key}"), value, take);
            }
        }
        _ => {}
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of a drive are far below 2^53")]
fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}

fn named(table: &Table) -> Option<&str> {
    table.get("name").and_then(Item::as_str)
}

/// The value at `keys` below `table`.
fn find<'a>(table: &'a mut dyn TableLike, keys: &[&str]) -> Option<&'a mut Value> {
    let (key, rest) = keys.split_first()?;
    let item = table.get_mut(key)?;
    match item {
        Item::Value(value) => find_value(value, rest),
        Item::Table(table) => find(table, rest),
        Item::ArrayOfTables(tables) => {
            let (name, rest) = rest.split_first()?;
            let index = tables.iter().position(|table| named(table) == Some(name));
            find(tables.get_mut(index.or_else(|| name.parse().ok())?)?, rest)
        }
        Item::None => None,
    }
}

fn find_value<'a>(value: &'a mut Value, keys: &[&str]) -> Option<&'a mut Value> {
    match (value, keys.split_first()) {
        (value, None) => Some(value),
        (Value::Array(values), Some((index, rest))) => {
            find_value(values.get_mut(index.parse().ok()?)?, rest)
        }
        (Value::InlineTable(table), Some((key, rest))) => find_value(table.get_mut(key)?, rest),
        _ => None,
    }
}

/// The nearest table above `keys` that has a source, and the rest of the path below it.
fn owner<'a>(document: &mut Table, keys: &[&'a str]) -> Option<(Vec<&'a str>, &'a str)> {
    (1..keys.len()).rev().find_map(|depth| {
        let mut to_source = keys[..depth].to_vec();
        to_source.push("source");
        let value = find(document, &to_source)?;
        value.as_str()?;
        Some((keys[..depth].to_vec(), keys[depth]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUO: &str = include_str!("../../../../drives/iodrive-duo.toml");

    fn duo() -> DriveFile {
        DriveFile::parse(DUO, "duo.toml").unwrap()
    }

    fn value(file: &DriveFile, path: &str) -> f64 {
        file.numbers().into_iter().find(|number| number.path == path).unwrap().value
    }

    #[test]
    fn numbers_are_found_by_table_list_and_name() {
        let file = duo();
        assert!((value(&file, "controller.relocate_us") - 21.9).abs() < 1e-9);
        assert!((value(&file, "nand.t_program_us.1") - 2400.0).abs() < 1e-9);
        assert!((value(&file, "host.windows.controller_factor") - 1.04).abs() < 1e-9);
        let number = file.numbers().into_iter().find(|one| one.path == "nand.t_read_us").unwrap();
        assert_eq!(DUO.lines().nth(number.line - 1).unwrap(), "t_read_us = 50");
    }

    #[test]
    fn a_replaced_number_leaves_every_other_byte_as_it_was() {
        let file = duo().with([("controller.relocate_us", 17.5, false)]);
        assert_eq!(file.text(), DUO.replacen("relocate_us = 21.9 ", "relocate_us = 17.5 ", 1));
        let file = duo().with([("nand.t_program_us.1", 2000.0, false)]);
        assert_eq!(file.text(), DUO.replacen("[500, 2400]", "[500, 2000.0]", 1));
        let file = duo().with([("geometry.spare_erase_blocks_per_plane", 77.3, true)]);
        assert_eq!(file.spec().geometry.spare_erase_blocks_per_plane, 77);
    }

    #[test]
    fn a_source_says_what_was_fitted_and_keeps_what_it_said() {
        let mut file = duo();
        let paths = ["nand.t_program_us.1", "nand.t_read_us", "host.linux.submit_us"];
        file.note(&paths, |numbers| format!("derived: {} fitted", numbers.join(", ")));
        let spec = file.spec();
        assert!(spec.nand.source.starts_with("derived: t_program_us, t_read_us fitted; before: "));
        assert!(spec.hosts[0].source.starts_with("derived: submit_us fitted; before: estimated"));
        assert_eq!(DUO.lines().count(), file.text().lines().count());
    }
}
