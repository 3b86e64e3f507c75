//! Discussions of the rows that are farthest from the published figures.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use study::validate::Row;

use xtask::root;

const FILE: &str = "docs/internals/validation.toml";

/// The discussions, in their order.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Discussions {
    #[serde(default, rename = "discussion")]
    all: Vec<Discussion>,
}

/// One cause, and the rows that it explains.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Discussion {
    rows: Vec<String>,
    text: String,
}

impl Discussions {
    /// Reads the discussions that are checked in.
    pub(crate) fn read() -> Result<Self> {
        let text = fs::read_to_string(root().join(FILE)).context(FILE)?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).context(FILE)
    }

    /// Returns the text that discusses the row named `id`, if there is one.
    pub(crate) fn of(&self, id: &str) -> Option<&str> {
        self.find(id).map(|discussion| discussion.text.trim())
    }

    /// Names of the rows that are discussed together with the row named `id`, itself included.
    pub(crate) fn together(&self, id: &str) -> &[String] {
        self.find(id).map_or(&[], |discussion| &discussion.rows)
    }

    fn find(&self, id: &str) -> Option<&Discussion> {
        self.all.iter().find(|discussion| discussion.rows.iter().any(|row| row == id))
    }

    /// Every one of the `worst` rows is to be discussed, and no discussion be about none of them.
    pub(crate) fn check(&self, worst: &[&Row]) -> Result<()> {
        let silent = worst.iter().map(|row| row.id.as_str()).filter(|id| self.of(id).is_none());
        let silent: Vec<&str> = silent.collect();
        ensure!(silent.is_empty(), "{FILE} says nothing of {}", silent.join(", "));
        let is_worst = |id: &String| worst.iter().any(|row| row.id == *id);
        let stale = self.all.iter().filter(|discussion| !discussion.rows.iter().any(is_worst));
        let stale: Vec<String> = stale.map(|discussion| discussion.rows.join(", ")).collect();
        let named = stale.join("; ");
        ensure!(stale.is_empty(), "{FILE} discusses rows that are no longer the worst: {named}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::page::tests::row;

    fn discussions() -> Discussions {
        Discussions::parse("[[discussion]]\nrows = [\"A1\", \"A9\"]\ntext = \"\"\"\nWhy.\n\"\"\"")
            .unwrap()
    }

    fn told(ids: &[&str]) -> String {
        let rows: Vec<Row> = ids.iter().map(|id| row(id, 2.0)).collect();
        let worst: Vec<&Row> = rows.iter().collect();
        discussions().check(&worst).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn a_discussion_may_name_rows_that_are_not_among_the_worst() {
        assert_eq!(told(&["A1"]), "");
    }

    #[test]
    fn a_worst_row_without_discussion_is_named() {
        assert_eq!(
            told(&["A1", "A2", "A3"]),
            "docs/internals/validation.toml says nothing of A2, A3"
        );
    }

    #[test]
    fn a_discussion_of_none_of_the_worst_rows_is_stale() {
        assert_eq!(
            told(&[]),
            "docs/internals/validation.toml discusses rows that are no longer the worst: A1, A9"
        );
    }
}
