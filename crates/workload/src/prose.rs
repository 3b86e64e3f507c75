//! Prose in TOML: may be broken into lines there, is one line here.

use serde::{Deserialize, Deserializer};

/// Reads a text whose line breaks mean nothing.
pub(crate) fn prose<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
}
