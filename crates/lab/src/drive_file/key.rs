//! Keys of a drive's file: what stands where, by one notation for fits and sweeps.
//!
//! A key is the keys of TOML joined by dots, `nand.t_read_us`. An element of a list is meant by its
//! place from 0, `nand.t_program_us.1`; a table that is one of several by its name, if it has one,
//! `host.linux.submit_us`, `format.stock.user_gb`, or by its place too.

use std::ops::Range;

use toml_edit::{Item, TableLike, Value};

/// A single value of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Leaf {
    /// Path of the value: keys joined by dots.
    pub(super) key: String,
    /// Its value, if that is a number.
    pub(super) number: Option<f64>,
    /// The bytes of the text that it takes up, where the text is known.
    pub(super) span: Option<Range<usize>>,
}

/// Every single value of `table` in the order of the text; keys begin with `prefix`.
pub(super) fn leaves(table: &dyn TableLike, prefix: &str) -> Vec<Leaf> {
    let mut found = Vec::new();
    for (key, item) in table.iter() {
        collect(&format!("{prefix}{key}"), item, &mut found);
    }
    found
}

fn collect(key: &str, item: &Item, found: &mut Vec<Leaf>) {
    if let Some(value) = item.as_value() {
        collect_value(key, value, found);
    } else if let Some(table) = item.as_table_like() {
        found.extend(leaves(table, &format!("{key}.")));
    } else if let Some(tables) = item.as_array_of_tables() {
        for (place, table) in tables.iter().enumerate() {
            found.extend(leaves(table, &format!("{key}.{}.", word(table, place))));
        }
    }
}

fn collect_value(key: &str, value: &Value, found: &mut Vec<Leaf>) {
    match value {
        Value::Array(values) => {
            for (place, value) in values.iter().enumerate() {
                let word = value
                    .as_inline_table()
                    .map_or_else(|| place.to_string(), |table| word(table, place));
                collect_value(&format!("{key}.{word}"), value, found);
            }
        }
        Value::InlineTable(table) => found.extend(leaves(table, &format!("{key}."))),
        single => {
            found.push(Leaf { key: key.to_owned(), number: number(single), span: single.span() });
        }
    }
}

/// Word of a key that stands for `table`, one of several: its name, else its `place`, from 0.
fn word(table: &dyn TableLike, place: usize) -> String {
    named(table).map_or_else(|| place.to_string(), str::to_owned)
}

fn named(table: &dyn TableLike) -> Option<&str> {
    table.get("name").and_then(Item::as_str)
}

#[expect(clippy::cast_precision_loss, reason = "numbers of a drive are far below 2^53")]
fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}

/// The single value at `words`, those of a key, below `table`.
pub(super) fn find<'a>(table: &'a mut dyn TableLike, words: &[&str]) -> Option<&'a mut Value> {
    let (key, rest) = words.split_first()?;
    match table.get_mut(key)? {
        Item::Value(value) => find_value(value, rest),
        Item::Table(table) => find(table, rest),
        Item::ArrayOfTables(tables) => {
            let (word, rest) = rest.split_first()?;
            let place = tables.iter().position(|table| named(table) == Some(word));
            find(tables.get_mut(place.or_else(|| word.parse().ok())?)?, rest)
        }
        Item::None => None,
    }
}

fn find_value<'a>(value: &'a mut Value, words: &[&str]) -> Option<&'a mut Value> {
    match (value, words.split_first()) {
        (Value::Array(_) | Value::InlineTable(_), None) => None,
        (value, None) => Some(value),
        (Value::InlineTable(table), Some(_)) => find(table, words),
        (Value::Array(values), Some((word, rest))) => {
            let is_named = |value: &Value| {
                value.as_inline_table().is_some_and(|table| named(table) == Some(word))
            };
            let place = values.iter().position(is_named).or_else(|| word.parse().ok())?;
            find_value(values.get_mut(place)?, rest)
        }
        _ => None,
    }
}
