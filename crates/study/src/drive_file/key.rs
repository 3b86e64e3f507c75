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

#[cfg(test)]
mod tests {
    use toml_edit::{Document, DocumentMut};

    use super::*;

    const TEXT: &str = r#"
title = "a drive"
sizes = [4, [8, 16]]
limit = inf
[nand]
t_read_us = 50
is_slc = false
[[host]]
name = "linux"
stalls = [{ every_s = 1.5, span_ms = 2 }, { name = "flush", every_s = 8 }]
[[host]]
serial_us = 0.25
"#;

    fn keys(text: &str) -> Vec<(String, Option<f64>)> {
        let document = Document::parse(text.to_owned()).unwrap();
        leaves(document.as_table(), "").into_iter().map(|leaf| (leaf.key, leaf.number)).collect()
    }

    /// The value at `key`, as it stands in the file.
    fn value(text: &str, key: &str) -> Option<String> {
        let mut document: DocumentMut = text.parse().unwrap();
        let words: Vec<&str> = key.split('.').collect();
        Some(find(document.as_table_mut(), &words)?.to_string().trim().to_owned())
    }

    #[test]
    fn every_single_value_has_a_key_in_the_order_of_the_text() {
        let found = keys(TEXT);
        let keys: Vec<&str> = found.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(
            keys,
            [
                "title",
                "sizes.0",
                "sizes.1.0",
                "sizes.1.1",
                "limit",
                "nand.t_read_us",
                "nand.is_slc",
                "host.linux.name",
                "host.linux.stalls.0.every_s",
                "host.linux.stalls.0.span_ms",
                "host.linux.stalls.flush.name",
                "host.linux.stalls.flush.every_s",
                "host.1.serial_us",
            ]
        );
        let numbers: Vec<f64> = found.iter().filter_map(|(_, number)| *number).collect();
        assert_eq!(numbers, [4.0, 8.0, 16.0, f64::INFINITY, 50.0, 1.5, 2.0, 8.0, 0.25]);
    }

    #[test]
    fn the_span_of_a_value_is_its_bytes_and_no_more() {
        let document = Document::parse(TEXT.to_owned()).unwrap();
        let leaves = leaves(document.as_table(), "");
        let text = |key: &str| {
            let leaf = leaves.iter().find(|leaf| leaf.key == key).unwrap();
            &TEXT[leaf.span.clone().unwrap()]
        };
        assert_eq!(text("title"), "\"a drive\"");
        assert_eq!(text("host.linux.stalls.flush.every_s"), "8");
        assert_eq!(text("host.1.serial_us"), "0.25");
    }

    #[test]
    fn an_element_is_found_by_its_name_or_by_its_place() {
        assert_eq!(value(TEXT, "host.linux.stalls.0.every_s").as_deref(), Some("1.5"));
        assert_eq!(value(TEXT, "host.0.stalls.1.every_s").as_deref(), Some("8"));
        assert_eq!(value(TEXT, "host.0.stalls.flush.every_s").as_deref(), Some("8"));
        assert_eq!(value(TEXT, "host.1.serial_us").as_deref(), Some("0.25"));
    }

    #[test]
    fn a_key_of_nothing_of_several_or_beyond_the_end_finds_none() {
        for key in [
            "nand",
            "nand.t_raed_us",
            "nand.t_read_us.0",
            "sizes",
            "sizes.1",
            "sizes.2",
            "sizes.-1",
            "host",
            "host.windows.serial_us",
            "host.2.serial_us",
            "host.linux",
            "host.linux.stalls.0",
            "host.linux.stalls.sync.every_s",
            "title.0",
            "",
        ] {
            assert_eq!(value(TEXT, key), None, "`{key}`");
        }
    }

    #[test]
    fn a_name_that_is_a_number_goes_before_a_place() {
        let text = "[[mode]]\nname = \"1\"\nwatts = 10\n[[mode]]\nname = \"0\"\nwatts = 20\n";
        assert_eq!(value(text, "mode.1.watts").as_deref(), Some("10"));
        assert_eq!(value(text, "mode.0.watts").as_deref(), Some("20"));
    }

    #[test]
    fn every_key_of_every_drive_leads_back_to_its_value() {
        for drive in ssd::catalogue::drives() {
            let text = ssd::catalogue::text(&drive.name).unwrap();
            let mut document: DocumentMut = text.parse().unwrap();
            for leaf in leaves(&document.as_table().clone(), "") {
                let words: Vec<&str> = leaf.key.split('.').collect();
                let found = find(document.as_table_mut(), &words);
                let found = found.unwrap_or_else(|| panic!("{}: no {}", drive.name, leaf.key));
                assert_eq!(number(found), leaf.number, "{}: {}", drive.name, leaf.key);
            }
        }
    }
}
