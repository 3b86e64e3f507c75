//! Configuration file of a server: options of `floatgate volume serve` as TOML.
//!
//! Its keys are the names of the options, and `volume`. Values, defaults and conflicts of an option
//! apply to its key. Options on the command line take precedence. A running server rereads the file
//! on request: some keys take effect, and it names the others that changed.
//!
//! The file becomes words of the command line, which `clap` parses: [`Serve`] is the only
//! declaration of an option. `serde::Deserialize` on [`Serve`] would bypass `clap` and so need a
//! second declaration of units (`1g`, `7d`), conflicts and required options; and a plain struct
//! does not tell a value that was typed from a default, which the precedence of the command line
//! needs.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::{CommandFactory as _, FromArgMatches as _};
use server::config::{ConfigChange, ConfigSource};
use toml::{Table, Value};

use crate::args::{Cli, Command, Serve, Volume};
use crate::command::serve;
use crate::failure::Input;

const COMMAND: &str = "serve";
const VOLUME: &str = "volume";
const OPTION: &str = "--config";
const SCRUB: &str = "scrub";
/// An option whose value may be left out.
const FAULT_INJECTION: &str = "fault-injection";
/// Options that are no keys: those about the file, and what an operator allows for one start.
const NO_KEYS: [&str; 4] = ["config", "force-stale", "help", "version"];
/// Keys that may change while a server runs.
const CHANGEABLE: [&str; 4] = ["log-level", "log-json", SCRUB, "scrub-rate"];

/// The configuration file of a server, as it was read last.
#[derive(Debug)]
pub(crate) struct Configuration {
    path: PathBuf,
    table: Table,
}

impl Configuration {
    /// Reads the configuration of a server; none if it has no file.
    ///
    /// # Errors
    /// Fails if it can no longer be read.
    pub(crate) fn of(serve: &Serve) -> Result<Option<Self>> {
        let Some(path) = &serve.config else { return Ok(None) };
        Ok(Some(Self { path: path.clone(), table: read(path)? }))
    }
}

impl ConfigSource for Configuration {
    /// Reads the file again. Options on the command line still win.
    fn reread(&mut self) -> Result<ConfigChange> {
        let table = read(&self.path)?;
        let shown = self.path.display();
        words_of(&table).with_context(|| format!("reading {shown}"))?;
        let mut changeable = table.clone();
        changeable.retain(|key, _| CHANGEABLE.contains(&key));
        let mut words = words_of(&changeable)?;
        // The file stands for all that is not parsed again.
        words.push(format!("{OPTION}={shown}").into());
        let Command::FormerVolume(Volume::Serve(serve)) = parsed(words)? else {
            bail!("{shown} does not configure a server");
        };
        let mut fixed = differing(&self.table, &table);
        // Without `scrub` in the file there is no period to go back to: the server keeps the one it
        // has.
        fixed.retain(|key| {
            !CHANGEABLE.contains(&key.as_str()) || (key == SCRUB && serve.scrub.is_none())
        });
        self.table = table;
        Ok(ConfigChange { log: serve::log(&serve), scrubs: serve::scrubs(&serve), fixed })
    }
}

/// Keys that two tables give different values.
fn differing(before: &Table, after: &Table) -> Vec<String> {
    let mut keys: Vec<String> = before.keys().chain(after.keys()).cloned().collect();
    keys.sort();
    keys.dedup();
    keys.retain(|key| before.get(key) != after.get(key));
    keys
}

fn read(path: &Path) -> Result<Table> {
    let reading = || Input::reading(path);
    let text = fs::read_to_string(path).with_context(reading)?;
    text.parse().with_context(reading)
}

/// Returns the options on the command line, completed by those of the configuration file that they
/// name; none if they name no file.
///
/// # Errors
/// Fails if the file cannot be read, or has an unknown key.
pub(crate) fn apply(typed: &Serve) -> Result<Option<Command>> {
    let Some(path) = &typed.config else { return Ok(None) };
    let mut table = read(path)?;
    if typed.volume.is_some() || typed.memory.is_some() {
        table.remove(VOLUME);
    }
    let words = words_of(&table).with_context(|| Input::reading(path))?;
    let mut command = parsed(words).unwrap_or_else(|error| error.exit());
    if let Command::FormerVolume(Volume::Serve(serve)) = &mut command {
        serve.config = Some(path.clone());
    }
    Ok(Some(command))
}

/// The command that is typed after what a file says.
fn parsed(words: Vec<OsString>) -> Result<Command, clap::Error> {
    let begin = ["floatgate", COMMAND].map(OsString::from);
    let words = begin.into_iter().chain(words).chain(typed_words());
    let command = Cli::command().mut_subcommand(COMMAND, |it| it.args_override_self(true));
    let matches = command.try_get_matches_from(words)?;
    Ok(Cli::from_arg_matches(&matches)?.command)
}

/// Returns the command-line words that say the same as a configuration file.
fn words_of(table: &Table) -> Result<Vec<OsString>> {
    let keys = keys();
    let mut words = Vec::new();
    for (key, value) in table {
        let Some((_, takes_value)) = keys.iter().find(|(name, _)| name == key) else {
            let known: Vec<&str> = keys.iter().map(|(name, _)| name.as_str()).collect();
            bail!("unknown key `{key}`; known keys are {}", known.join(", "));
        };
        let values = match value {
            Value::Array(values) => values.as_slice(),
            value => std::slice::from_ref(value),
        };
        for value in values {
            // As an option without its value it would take the next word for it.
            let is_fitting = *takes_value != value.is_bool();
            if !is_fitting && key != FAULT_INJECTION {
                let must = if *takes_value { "a text or a number" } else { "true or false" };
                bail!("`{key}` is {value}, must be {must}");
            }
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
    Ok(Some(if key == VOLUME { text } else { format!("--{key}={text}") }.into()))
}

/// The keys that there are, which are the options that a file may hold, and whether each takes a
/// value.
fn keys() -> Vec<(String, bool)> {
    let command = Cli::command();
    let serve = command.find_subcommand(COMMAND).expect("there is such a command");
    let options = serve.get_arguments().filter_map(|it| {
        let name = it.get_long().filter(|name| !NO_KEYS.contains(name))?;
        Some((name.to_owned(), it.get_action().takes_values()))
    });
    std::iter::once((VOLUME.to_owned(), true)).chain(options).collect()
}

/// Returns the words typed after the command, except the option that names the file.
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
        let text = "volume = \"v\"\nnbd = [\"unix:a\", \"tcp:1\"]\nread-only = true\njson = false";
        let expected = ["--nbd=unix:a", "--nbd=tcp:1", "--read-only", "v"];
        assert_eq!(words(text).unwrap(), expected);
    }

    #[test]
    fn keys_that_differ_are_those_with_other_values_and_those_that_one_table_lacks() {
        let table = |text: &str| text.parse::<Table>().unwrap();
        let (before, after) = (table("a = 1\nb = 2\nc = 3"), table("a = 1\nb = 3\nd = 4"));
        assert_eq!(differing(&before, &after), ["b", "c", "d"]);
    }

    #[test]
    fn what_is_no_key_is_refused_with_those_that_are() {
        let refused = words("bnd = \"tcp:1\"").unwrap_err().to_string();
        assert!(refused.starts_with("unknown key `bnd`; known keys are volume, memory, nbd, "));
        assert!(words("nbd = {a = 1}").unwrap_err().to_string().contains("must be a text"));
        let text = words("volume = \"v\"\nnbd = true").unwrap_err().to_string();
        assert_eq!(text, "`nbd` is true, must be a text or a number");
        let text = words("read-only = \"yes\"").unwrap_err().to_string();
        assert_eq!(text, "`read-only` is \"yes\", must be true or false");
    }

    #[test]
    fn the_example_names_every_key_and_is_a_configuration() {
        let example = include_str!("../../../contrib/floatgate.toml");
        let lines = example.lines().map(|line| line.strip_prefix("#: ").unwrap_or(line));
        let whole: Table = lines.collect::<Vec<_>>().join("\n").parse().unwrap();
        let named: Vec<&String> = whole.keys().collect();
        for (key, _) in keys() {
            assert!(named.contains(&&key), "contrib/floatgate.toml lacks {key}");
        }
        words_of(&whole).unwrap();
        words_of(&example.parse().unwrap()).unwrap();
    }
}
