//! A key of a drive's file, replaced by another value.
//!
//! A key is written as in TOML: `nand.t_read_us`. An element of a list is meant by its place from
//! 0, `nand.t_program_us.1`, a format or a host also by its name, `format.stock.user_gb`.

use blockio::nearest;
use results::sweep::Value;
use toml::{Table, Value as Toml};

use crate::{Error, Kind};

/// `drive` with `value` at `key`.
///
/// # Errors
/// Names the nearest key where the drive has no such one, or says that it is not a single value.
pub(super) fn set(drive: &mut Table, key: &str, value: &Value) -> Result<(), Error> {
    let known = leaves(drive);
    let Some(place) = find(drive, key) else {
        let error = Error::new(Kind::Input, format!("the drive's file has no `{key}`"));
        return Err(match nearest(key, known.iter().map(String::as_str)) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint("a key that is left out of the file must be written there first"),
        });
    };
    if place.is_table() || place.is_array() {
        let text = format!("`{key}` is not a single value");
        let inner = known.iter().find(|name| name.starts_with(&format!("{key}.")));
        let hint = inner.map_or_else(String::new, |name| format!("such as `{name}`"));
        return Err(Error::new(Kind::Input, text).hint(hint));
    }
    *place = toml_value(value);
    Ok(())
}

#[expect(clippy::cast_possible_truncation, reason = "whole and within 2⁵³, checked")]
fn toml_value(value: &Value) -> Toml {
    match value {
        Value::Word(word) => match word.as_str() {
            "true" => Toml::Boolean(true),
            "false" => Toml::Boolean(false),
            word => Toml::String(word.to_owned()),
        },
        Value::Number(number) if number.fract() == 0.0 && number.abs() < 9e15 => {
            Toml::Integer(*number as i64)
        }
        Value::Number(number) => Toml::Float(*number),
    }
}

fn find<'a>(drive: &'a mut Table, key: &str) -> Option<&'a mut Toml> {
    let mut words = key.split('.');
    let mut place = drive.get_mut(words.next()?)?;
    for word in words {
        place = match place {
            Toml::Table(table) => table.get_mut(word)?,
            Toml::Array(list) => {
                let index = word.parse().ok().or_else(|| named(list, word))?;
                list.get_mut(index)?
            }
            _ => return None,
        };
    }
    Some(place)
}

/// Place of the element whose key `name` is `word`.
fn named(list: &[Toml], word: &str) -> Option<usize> {
    list.iter().position(|item| name(item) == Some(word))
}

fn name(item: &Toml) -> Option<&str> {
    item.get("name").and_then(Toml::as_str)
}

/// The keys of all single values.
fn leaves(drive: &Table) -> Vec<String> {
    let mut found = Vec::new();
    for (key, value) in drive {
        collect(key.clone(), value, &mut found);
    }
    found
}

fn collect(key: String, value: &Toml, found: &mut Vec<String>) {
    match value {
        Toml::Table(table) => {
            table.iter().for_each(|(word, value)| collect(format!("{key}.{word}"), value, found));
        }
        Toml::Array(list) => {
            for (index, item) in list.iter().enumerate() {
                let word = name(item).map_or_else(|| index.to_string(), str::to_owned);
                collect(format!("{key}.{word}"), item, found);
            }
        }
        _ => found.push(key),
    }
}
