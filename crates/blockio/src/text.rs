//! Quantities as people read them: the one way in which terminals, events and logs write them.
//!
//! Capacity and throughput are decimal (`1.07 GB`, `12.3 MB/s`), as on the labels of drives and in
//! the pages of a served drive, whose `shared.js` rounds alike. Binary units are for pages and
//! buffers, and say so (`4 KiB`): that is what [`crate::Bytes`] displays.

/// Decimal units of bytes, each a thousand times the one before.
const UNITS: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];

/// Bytes in decimal units with three significant digits, such as `999 B`, `1.07 GB`, `640 GB`.
pub fn bytes(bytes: u64) -> String {
    scaled(bytes as f64)
}

/// Bytes a second in decimal units with three significant digits, such as `12.3 MB/s`.
pub fn rate(bytes_per_s: f64) -> String {
    scaled(bytes_per_s.max(0.0)) + "/s"
}

/// A number of things, whose plural adds an `s`: `1 finding`, `2 findings`.
pub fn counted(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// True of a character that changes how the text around it is shown, so that it could pass for
/// something else: control characters, and those of the direction of writing.
pub fn is_unshown(character: char) -> bool {
    let is_direction = matches!(
        character,
        '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
    );
    character.is_control() || is_direction
}

/// A text that others chose, such as a name, with a replacement character for each of
/// [`is_unshown`].
pub fn shown(text: &str) -> String {
    text.replace(is_unshown, "\u{FFFD}")
}

/// The load of `threads` and `queue_per_thread` as published, of which either may be empty:
/// `T16Q16`, `T16`, `Q256`, or nothing.
pub fn stated_load(threads: &str, queue_per_thread: &str) -> String {
    let part = |letter: &str, number: &str| {
        if number.is_empty() { String::new() } else { format!("{letter}{number}") }
    };
    part("T", threads) + &part("Q", queue_per_thread)
}

/// The message of an error in a TOML file, whose types of Rust become those that a user knows.
pub fn in_toml_types(message: &str) -> String {
    const WORDS: [(&str, &str); 17] = [
        ("a nonzero u8", "a whole number from 1 to 255"),
        ("a nonzero u16", "a whole number from 1 to 65535"),
        ("a nonzero u32", "a whole number from 1 to 4294967295"),
        ("a nonzero u64", "a whole number above zero"),
        ("u8", "a whole number from 0 to 255"),
        ("u16", "a whole number from 0 to 65535"),
        ("u32", "a whole number from 0 to 4294967295"),
        ("u64", "a whole number, not below zero"),
        ("usize", "a whole number, not below zero"),
        ("i16", "a whole number from -32768 to 32767"),
        ("i32", "a whole number"),
        ("i64", "a whole number"),
        ("f32", "a number"),
        ("f64", "a number"),
        ("a boolean", "true or false"),
        ("a sequence", "a list"),
        ("a map", "a table"),
    ];
    let Some((before, expected)) = message.split_once(", expected ") else {
        return message.to_owned();
    };
    // What follows the type, such as ` for key`, stays.
    let of_type = |(rust, toml): &(&str, &str)| {
        let rest = expected.strip_prefix(rust)?;
        let is_whole = !rest.starts_with(|c: char| c.is_alphanumeric());
        is_whole.then(|| format!("{before}, expected {toml}{rest}"))
    };
    if expected.starts_with("struct ") {
        return format!("{before}, expected a table");
    }
    WORDS.iter().find_map(of_type).unwrap_or_else(|| message.to_owned())
}

fn scaled(value: f64) -> String {
    let (mut value, mut unit) = (value, 0);
    // What rounds to a thousand belongs to the next unit.
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let decimals = match value {
        _ if unit == 0 => 0,
        _ if value >= 99.95 => 0,
        _ if value >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_decimal_with_three_digits() {
        assert_eq!([bytes(0), bytes(999), bytes(1000)], ["0 B", "999 B", "1.00 kB"]);
        assert_eq!([bytes(9_999), bytes(99_960), bytes(999_600)], ["10.0 kB", "100 kB", "1.00 MB"]);
        assert_eq!([bytes(1 << 30), bytes(640_000_000_000)], ["1.07 GB", "640 GB"]);
        assert_eq!(bytes(u64::MAX), "18447 PB");
        assert_eq!([rate(12_340_000.0), rate(-0.1)], ["12.3 MB/s", "0 B/s"]);
    }

    #[test]
    fn types_are_told_in_words_of_toml() {
        let told =
            |expected| in_toml_types(&format!("invalid type: string \"a\", expected {expected}"));
        for (rust, toml) in [
            ("u64", "a whole number, not below zero"),
            ("i16", "a whole number from -32768 to 32767"),
            ("u16 for key `a`", "a whole number from 0 to 65535 for key `a`"),
            ("a nonzero u32", "a whole number from 1 to 4294967295"),
            ("f64", "a number"),
            ("a boolean", "true or false"),
            ("a sequence", "a list"),
            ("struct Geometry", "a table"),
            ("one of a, b", "one of a, b"),
        ] {
            assert_eq!(told(rust), format!("invalid type: string \"a\", expected {toml}"));
        }
        assert_eq!(in_toml_types("missing field `name`"), "missing field `name`");
    }

    #[test]
    fn what_others_chose_is_shown_without_control_and_direction_characters() {
        let odd = "a\u{1b}[2Jb\u{202e}c\u{2067}d\ne";
        assert_eq!(shown(odd), "a\u{FFFD}[2Jb\u{FFFD}c\u{FFFD}d\u{FFFD}e");
        assert_eq!(shown("Größe \u{05D0}"), "Größe \u{05D0}", "letters of any script stay");
    }

    #[test]
    fn a_published_load_has_the_parts_that_are_stated() {
        let said = [("16", "4"), ("16", ""), ("", "256"), ("", "")].map(|(t, q)| stated_load(t, q));
        assert_eq!(said, ["T16Q4", "T16", "Q256", ""]);
    }

    #[test]
    fn one_is_singular_and_all_others_are_plural() {
        let said = [0, 1, 2].map(|count| counted(count, "finding"));
        assert_eq!(said, ["0 findings", "1 finding", "2 findings"]);
    }
}
