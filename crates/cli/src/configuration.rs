//! The configuration of a server: a file that says what could be typed.
//!
//! Its keys are the names of the options of `floatgate serve`, and `vault`: what holds for an
//! option, its values, default and conflicts, holds for the key. What is typed beside `--config`
//! comes after the file, and wins.

use std::ffi::OsString;
use std::fs;

use anyhow::{Context as _, Result, bail};
use clap::{CommandFactory as _, FromArgMatches as _};
use toml::{Table, Value};

use crate::args::{Cli, Command, Serve};

const COMMAND: &str = "serve";
const VAULT: &str = "vault";
const OPTION: &str = "--config";

/// What was typed, with what the file that it names says before it; none if it names none.
///
/// # Errors
/// When the file cannot be read, or says what no option does.
pub(crate) fn apply(typed: &Serve) -> Result<Option<Command>> {
    let Some(path) = &typed.config else { return Ok(None) };
    let shown = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("reading {shown}"))?;
    let mut table: Table = text.parse().with_context(|| format!("reading {shown}"))?;
    if typed.vault.is_some() || typed.memory.is_some() {
        table.remove(VAULT);
    }
    let mut words: Vec<OsString> = vec!["floatgate".into(), COMMAND.into()];
    words.extend(words_of(&table).with_context(|| format!("reading {shown}"))?);
    words.extend(typed_words());
    let command = Cli::command().mut_subcommand(COMMAND, |it| it.args_override_self(true));
    let matches = command.try_get_matches_from(words).unwrap_or_else(|error| error.exit());
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    Ok(Some(cli.command))
}

/// What could be typed instead of a file.
fn words_of(table: &Table) -> Result<Vec<OsString>> {
    let keys = keys();
    let mut words = Vec::new();
    for (key, value) in table {
        if !keys.contains(key) {
            bail!("`{key}` is no key; there are {}", keys.join(", "));
        }
        let values = match value {
            Value::Array(values) => values.as_slice(),
            value => std::slice::from_ref(value),
        };
        for value in values {
            words.extend(word(key, value)?);
        }
    }
    Ok(words)
}

fn word(key: &str, value: &Value) -> Result<Option<OsString>> {
    let text = match value {
        Value::Boolean(is_on) => return Ok(is_on.then(|| format!("--{key}").into())),
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Array(_) | Value::Table(_) | Value::Datetime(_) => {
            bail!("`{key}` is {value}, must be a text, a number, true, false, or a list of them");
        }
    };
    Ok(Some(if key == VAULT { text } else { format!("--{key}={text}") }.into()))
}

/// The keys that there are: the options that a file may hold.
fn keys() -> Vec<String> {
    let command = Cli::command();
    let serve = command.find_subcommand(COMMAND).expect("there is such a command");
    let options = serve.get_arguments().filter_map(|it| it.get_long());
    let options = options.filter(|name| !["config", "help", "version"].contains(name));
    [VAULT].into_iter().chain(options).map(str::to_owned).collect()
}

/// What was typed after the command, the file's own option left out.
fn typed_words() -> impl Iterator<Item = OsString> {
    let mut is_name = false;
    std::env::args_os().skip_while(|word| word != COMMAND).skip(1).filter(move |word| {
        let is_option = word == OPTION;
        let is_both = word.to_string_lossy().starts_with(&format!("{OPTION}="));
        !std::mem::replace(&mut is_name, is_option) && !is_option && !is_both
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<Vec<OsString>> {
        words_of(&text.parse().unwrap())
    }

    #[test]
    fn keys_are_the_options_and_lists_repeat_them() {
        let text = "vault = \"v\"\nnbd = [\"unix:a\", \"tcp:1\"]\nread-only = true\njson = false";
        let expected = ["--nbd=unix:a", "--nbd=tcp:1", "--read-only", "v"];
        assert_eq!(words(text).unwrap(), expected);
    }

    #[test]
    fn what_is_no_key_is_refused_with_those_that_are() {
        let refused = words("bnd = \"tcp:1\"").unwrap_err().to_string();
        assert!(refused.starts_with("`bnd` is no key; there are vault, memory, nbd, http"));
        assert!(words("nbd = {a = 1}").unwrap_err().to_string().contains("must be a text"));
    }

    #[test]
    fn the_example_names_every_key_and_is_a_configuration() {
        let example = include_str!("../../../contrib/floatgate.toml");
        let lines = example.lines().map(|line| line.strip_prefix("#: ").unwrap_or(line));
        let whole: Table = lines.collect::<Vec<_>>().join("\n").parse().unwrap();
        let named: Vec<&String> = whole.keys().collect();
        for key in keys() {
            assert!(named.contains(&&key), "contrib/floatgate.toml lacks {key}");
        }
        words_of(&whole).unwrap();
        words_of(&example.parse().unwrap()).unwrap();
    }
}
