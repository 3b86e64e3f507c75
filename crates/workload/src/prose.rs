//! Prose in TOML: may be broken into lines there, is one line here.

use serde::{Deserialize, Deserializer};

/// Reads a text whose line breaks mean nothing.
pub(crate) fn prose<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(joined(&String::deserialize(deserializer)?))
}

/// Reads a text that may be absent and whose line breaks mean nothing.
pub(crate) fn optional_prose<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.as_deref().map(joined))
}

fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
