//! A drive's file as a text whose values can be found and replaced, with everything else kept.
//!
//! ```text
//! own text ──────────► keys of its own ─┐
//!    └─ like ──► text of the catalogue ──► keys that it takes ──► replaced: written into the own
//! ```
//!
//! What a file takes from the drive that it is `like` has keys as well. Where such a value is
//! replaced, the smallest part that a file can state by itself is copied into it: a key of a table
//! with the source that it had, or a whole list of tables.

mod key;

use std::fs;
use std::path::Path;

use blockio::nearest;
use lab::{Error, Kind};
use ssd::DriveSpec;
use toml_edit::{Document, DocumentMut, Item, Table, Value};

use self::key::{Leaf, find, leaves};

/// Tables that are no part of the drive.
const NOT_OF_THE_DRIVE: [&str; 2] = ["fit", "published"];

/// A drive's file.
#[derive(Clone, Debug)]
pub struct DriveFile {
    file: String,
    document: DocumentMut,
    /// The drive of the catalogue that it is like.
    like: Option<Like>,
}

#[derive(Clone, Debug)]
struct Like {
    name: String,
    text: &'static str,
    document: DocumentMut,
}

/// A number of the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Number {
    /// Its key: `nand.t_program_us.1`.
    pub(crate) key: String,
    /// Its value.
    pub(crate) value: f64,
    /// File and line: `duo.toml:12`; the file is that of the catalogue for what is taken from it.
    pub(crate) place: String,
}

impl DriveFile {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// Fails if it cannot be read, or is not a drive; says where.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let file = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|source| {
            let hint = "name a drive file: `floatgate drives NAME --toml` prints one";
            Error::new(Kind::Input, format!("reading {file}")).source(source).hint(hint)
        })?;
        Self::parse(&text, &file)
    }

    /// The drive in `text`; `file` names it in errors.
    ///
    /// # Errors
    /// Fails if it is not a drive; says where.
    pub fn parse(text: &str, file: &str) -> Result<Self, Error> {
        DriveSpec::parse(text, file)
            .map_err(|source| Error::new(Kind::Input, "reading the drive").source(source))?;
        let document: DocumentMut = text.parse().expect("a drive is TOML");
        let like = document.get("like").and_then(Item::as_str).map(Like::of);
        Ok(Self { file: file.to_owned(), document, like })
    }

    /// The drive as the file has it; nothing where what was put into it makes none.
    ///
    /// # Errors
    /// Fails with the line and the fault.
    pub fn spec(&self) -> Result<DriveSpec, ssd::SpecError> {
        DriveSpec::parse(&self.text(), &self.file)
    }

    /// Name of the file.
    pub(crate) fn name(&self) -> &str {
        &self.file
    }

    /// Its text.
    pub fn text(&self) -> String {
        self.document.to_string()
    }

    /// Every number of the drive, those first that are stated here.
    pub(crate) fn numbers(&self) -> Vec<Number> {
        let own = self.text();
        let taken = self.like.as_ref().map(|like| (like.text, format!("{}.toml", like.name)));
        let own_keys = located(&own, &self.file).into_iter();
        let taken_keys = taken.map_or_else(Vec::new, |(text, file)| located(text, &file));
        let is_taken = |(leaf, _): &(Leaf, String)| self.is_taken(&leaf.key);
        own_keys
            .chain(taken_keys.into_iter().filter(is_taken))
            .filter_map(|(Leaf { key, number, .. }, place)| {
                Some(Number { key, value: number?, place })
            })
            .collect()
    }

    /// True if `key` is inherited from the drive that this one is like. Tables are merged one level
    /// deep.
    fn is_taken(&self, key: &str) -> bool {
        let mut words = key.split('.');
        let first = words.next().and_then(|word| self.document.get(word));
        match (first, words.next()) {
            (None, _) => true,
            (Some(own), Some(word)) => {
                own.as_table_like().is_some_and(|own| !own.contains_key(word))
            }
            (Some(_), None) => false,
        }
    }

    /// Puts `value` in the place of the one at `key`.
    ///
    /// # Errors
    /// Names the nearest key where there is no such one, or says that it is not a single value.
    pub fn replace(&mut self, key: &str, value: Value) -> Result<(), Error> {
        let words: Vec<&str> = key.split('.').collect();
        if self.is_taken(key) {
            self.take(&words);
        }
        let Some(place) = find(self.document.as_table_mut(), &words) else {
            return Err(self.no_value(key));
        };
        let decor = place.decor().clone();
        *place = value;
        *place.decor_mut() = decor;
        Ok(())
    }

    /// Copies the part with the key of `words` from the drive that this one is like, if that has
    /// it.
    fn take(&mut self, words: &[&str]) {
        let Some(like) = &mut self.like else { return };
        if find(like.document.as_table_mut(), words).is_none() {
            return;
        }
        let (first, second) = (words[0], words.get(1));
        let mut theirs = like.document[first].clone();
        without_position(&mut theirs);
        match (theirs.as_table_like(), second) {
            (Some(theirs), Some(second)) => {
                let own = self.document.entry(first).or_insert_with(|| Item::Table(Table::new()));
                let own = own.as_table_like_mut().expect("what is taken adds to tables only");
                for word in [*second, "source"] {
                    if let (false, Some(item)) = (own.contains_key(word), theirs.get(word)) {
                        own.insert(word, item.clone());
                    }
                }
            }
            _ => {
                self.document.insert(first, theirs);
            }
        }
    }

    /// Error for a `key` without a value; its hint names the nearest key.
    fn no_value(&self, key: &str) -> Error {
        let mut known = keys(&self.document);
        if let Some(like) = &self.like {
            known.extend(keys(&like.document).into_iter().filter(|key| self.is_taken(key)));
        }
        if let Some(inner) = known.iter().find(|name| name.starts_with(&format!("{key}."))) {
            let text = format!("`{key}` is not a single value");
            return Error::new(Kind::Input, text).hint(format!("such as `{inner}`"));
        }
        let text = format!("{} has no `{key}`", self.file);
        let error = Error::new(Kind::Input, text);
        match nearest(key, known.iter().map(String::as_str)) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint("a key that is left out of the file must be written there first"),
        }
    }

    /// States that rates of the drive, as it is in this file, were compared with published ones.
    pub(crate) fn claim_validated(&mut self) {
        self.document["validated"] = toml_edit::value(true);
    }

    /// Puts `words` before the source of each table that holds one of `keys`.
    pub(crate) fn note<'a>(&mut self, keys: &[&'a str], words: impl Fn(&[&'a str]) -> String) {
        let mut by_table: Vec<(Vec<&str>, Vec<&'a str>)> = Vec::new();
        for key in keys {
            let words: Vec<&str> = key.split('.').collect();
            let Some((table, key)) = owner(self.document.as_table_mut(), &words) else { continue };
            match by_table.iter_mut().find(|(known, _)| *known == table) {
                Some((_, keys)) => keys.push(key),
                None => by_table.push((table, vec![key])),
            }
        }
        for (mut table, numbers) in by_table {
            table.push("source");
            if let Some(source) = find(self.document.as_table_mut(), &table) {
                let before = source.as_str().unwrap_or_default().to_owned();
                let decor = source.decor().clone();
                *source = Value::from(format!("{}; before: {before}", words(&numbers)));
                *source.decor_mut() = decor;
            }
        }
    }
}

impl Like {
    /// The drive of the catalogue called `name`.
    fn of(name: &str) -> Self {
        let text = ssd::catalogue::text(name).expect("a drive that was read is like one that is");
        let document = text.parse().expect("tested: every file of the catalogue is TOML");
        Self { name: name.to_owned(), text, document }
    }
}

/// Every single value of the drive in `text`, with file and line.
fn located(text: &str, file: &str) -> Vec<(Leaf, String)> {
    let document: Document<&str> = Document::parse(text).expect("it was TOML before");
    let own = drive_of(document.as_table());
    let place = |leaf: &Leaf| {
        let begin = leaf.span.as_ref().map_or(0, |span| span.start);
        format!("{file}:{}", text[..begin].matches('\n').count() + 1)
    };
    own.into_iter().map(|leaf| (leaf.clone(), place(&leaf))).collect()
}

/// Keys of every single value of the drive in `document`.
fn keys(document: &DocumentMut) -> Vec<String> {
    drive_of(document.as_table()).into_iter().map(|leaf| leaf.key).collect()
}

fn drive_of(table: &Table) -> Vec<Leaf> {
    let is_of_drive = |leaf: &Leaf| {
        let table = leaf.key.split('.').next().unwrap_or_default();
        !NOT_OF_THE_DRIVE.contains(&table)
    };
    leaves(table, "").into_iter().filter(is_of_drive).collect()
}

/// Forgets where in another text `item` stood, so that it is written where it is put.
fn without_position(item: &mut Item) {
    match item {
        Item::Table(table) => forget(table),
        Item::ArrayOfTables(tables) => tables.iter_mut().for_each(forget),
        Item::Value(_) | Item::None => {}
    }
}

fn forget(table: &mut Table) {
    table.set_position(None);
    table.iter_mut().for_each(|(_, item)| without_position(item));
}

/// The nearest table above the key of `words` that has a source, and the rest of the key below it.
fn owner<'a>(document: &mut Table, words: &[&'a str]) -> Option<(Vec<&'a str>, &'a str)> {
    (1..words.len()).rev().find_map(|depth| {
        let mut to_source = words[..depth].to_vec();
        to_source.push("source");
        find(document, &to_source)?.as_str()?;
        Some((words[..depth].to_vec(), words[depth]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUO: &str = include_str!("../../../drives/iodrive-duo.toml");
    const LESS: &str = include_str!("../../../drives/px600-1300.toml");

    fn duo() -> DriveFile {
        DriveFile::parse(DUO, "duo.toml").unwrap()
    }

    fn like_another() -> DriveFile {
        DriveFile::parse(LESS, "less.toml").unwrap()
    }

    fn number(file: &DriveFile, key: &str) -> Number {
        file.numbers().into_iter().find(|number| number.key == key).unwrap()
    }

    fn replaced(mut file: DriveFile, key: &str, value: impl Into<Value>) -> DriveFile {
        file.replace(key, value.into()).unwrap();
        file
    }

    #[test]
    fn numbers_are_found_by_table_list_and_name() {
        let file = duo();
        assert!((number(&file, "controller.relocate_us").value - 21.9).abs() < 1e-9);
        assert!((number(&file, "nand.t_program_us.1").value - 2400.0).abs() < 1e-9);
        assert!((number(&file, "host.windows.controller_factor").value - 1.04).abs() < 1e-9);
        let line = DUO.lines().position(|line| line == "t_read_us = 50").unwrap() + 1;
        assert_eq!(number(&file, "nand.t_read_us").place, format!("duo.toml:{line}"));
    }

    #[test]
    fn a_replaced_number_leaves_every_other_byte_as_it_was() {
        let file = replaced(duo(), "controller.relocate_us", 17.5);
        assert_eq!(file.text(), DUO.replacen("relocate_us = 21.9 ", "relocate_us = 17.5 ", 1));
        let file = replaced(duo(), "nand.t_program_us.1", 2000.0);
        assert_eq!(file.text(), DUO.replacen("[500, 2400]", "[500, 2000.0]", 1));
    }

    #[test]
    fn a_file_has_the_numbers_of_the_drive_that_it_is_like_except_what_it_says_itself() {
        let (less, whole) = (like_another(), ssd::catalogue::find("px600-2600").unwrap());
        let relocate = number(&less, "controller.relocate_us");
        assert!((relocate.value - whole.controller.relocate_us).abs() < 1e-9);
        assert!(relocate.place.starts_with("px600-2600.toml:"), "{relocate:?}");
        let all = less.numbers();
        let banks: Vec<_> = all.iter().filter(|it| it.key == "geometry.banks").collect();
        assert!(banks.len() == 1 && (banks[0].value - 4.0).abs() < 1e-9, "{banks:?}");
        assert!(banks[0].place.starts_with("less.toml:"), "{banks:?}");
    }

    #[test]
    fn any_number_put_where_it_is_leaves_the_drive_what_it_was() {
        let whole = like_another().spec().unwrap();
        for Number { key, value, .. } in like_another().numbers() {
            let same: Value = value.to_string().parse().unwrap();
            assert_eq!(replaced(like_another(), &key, same).spec().unwrap(), whole, "{key}");
        }
    }

    #[test]
    fn a_taken_number_is_written_into_the_file_with_the_source_that_it_had() {
        let mut file = replaced(like_another(), "controller.relocate_us", 3.5);
        file.note(&["controller.relocate_us"], |keys| format!("derived: {}", keys.join(", ")));
        let spec = file.spec().unwrap();
        assert!((spec.controller.relocate_us - 3.5).abs() < 1e-9);
        assert!(spec.controller.source.starts_with("derived: relocate_us; before: "), "{spec:?}");
        assert_eq!(file.text().matches("[controller]").count(), 1);
        assert!(!file.text().contains("[nand]"), "{}", file.text());
    }

    #[test]
    fn a_slip_in_a_key_gets_the_nearest_one() {
        let refused = |mut file: DriveFile, key| file.replace(key, 1.into()).unwrap_err();
        let error = refused(duo(), "nand.t_raed_us");
        assert_eq!(error.to_string(), "duo.toml has no `nand.t_raed_us`");
        assert_eq!(error.remedy(), "did you mean `nand.t_read_us`?");
        let error = refused(like_another(), "nand.t_program_us");
        assert_eq!(error.to_string(), "`nand.t_program_us` is not a single value");
        assert_eq!(error.remedy(), "such as `nand.t_program_us.0`");
    }

    #[test]
    fn a_source_says_what_was_fitted_and_keeps_what_it_said() {
        let mut file = duo();
        let keys = ["nand.t_program_us.1", "nand.t_read_us", "host.linux.submit_us"];
        file.note(&keys, |numbers| format!("derived: {} fitted", numbers.join(", ")));
        let spec = file.spec().unwrap();
        assert!(spec.nand.source.starts_with("derived: t_program_us, t_read_us fitted; before: "));
        assert!(spec.hosts[0].source.starts_with("derived: submit_us fitted; before: estimated"));
        assert_eq!(DUO.lines().count(), file.text().lines().count());
    }
}
