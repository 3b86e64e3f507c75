//! Groups of commands, by what a person wants to do, as `floatgate --help` lists them.

use std::any::TypeId;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Command, CommandFactory as _, Subcommand as _};

use super::{Cli, Recording, Volume};

/// Heading and commands of each group.
const GROUPS: [(&str, &[&str]); 4] = [
    (
        "Measure and compare",
        &["review", "run", "plan", "compare", "atlas", "runs", "workloads", "protocols", "trace"],
    ),
    ("Model and predict", &["drives", "app", "sweep", "fit", "validate"]),
    ("Serve storage", &["volume", "dashboard"]),
    ("The machine", &["doctor", "completions", "help"]),
];
/// Columns from the beginning of a line to the summary of a command.
const SUMMARY_COLUMN: usize = 15;

/// Has options take negative numbers, such as `-1` and `-5k`, which their own parsers refuse with
/// the range: otherwise they pass for options that are unknown. Names and paths are not numbers.
fn with_negative_numbers(command: Command) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|it| it.get_name().to_owned()).collect();
    let command = command.mut_args(|option| {
        let takes_one = option.get_long().is_some() && option.get_action().takes_values();
        let parsed = option.get_value_parser().type_id();
        let is_text = parsed == TypeId::of::<String>() || parsed == TypeId::of::<PathBuf>();
        let has_values = option.get_value_names().is_some_and(|it| it.concat().contains("VALUES"));
        if takes_one && (!is_text || has_values) {
            option.allow_hyphen_values(true)
        } else {
            option
        }
    });
    names.into_iter().fold(command, |all, name| all.mut_subcommand(name, with_negative_numbers))
}

/// The command line; names of earlier versions are hidden.
pub(crate) fn command_line() -> Command {
    let former = Volume::augment_subcommands(Recording::augment_subcommands(Command::new("")));
    let former = former.get_subcommands().map(|it| it.get_name().to_owned());
    former
        .collect::<Vec<_>>()
        .into_iter()
        .fold(Cli::command(), |all, name| all.mut_subcommand(name, |it| it.hide(true)))
}

/// The command line, whose help lists the commands by group.
pub(crate) fn grouped() -> Command {
    let command = with_negative_numbers(command_line());
    let header = command.get_styles().get_header().to_owned();
    let literal = command.get_styles().get_literal().to_owned();
    let mut template = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (heading, names) in GROUPS {
        let _ = write!(template, "\n{header}{heading}:{header:#}\n");
        for name in names {
            let summary = summary(&command, name);
            let pad = SUMMARY_COLUMN - 2 - name.len();
            let _ = writeln!(template, "  {literal}{name}{literal:#}{:pad$}{summary}", "");
        }
    }
    let _ = write!(template, "\n{header}Options:{header:#}\n{{options}}{{after-help}}");
    command.help_template(template)
}

/// The first line of a command's help.
fn summary(command: &Command, name: &str) -> String {
    if name == "help" {
        return "Print this help, or that of a command".to_owned();
    }
    let found = command.get_subcommands().find(|it| it.get_name() == name);
    let about = found.and_then(Command::get_about);
    about.map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let mut all: BTreeSet<String> = command_line()
            .get_subcommands()
            .filter(|it| !it.is_hide_set())
            .map(|it| it.get_name().to_owned())
            .collect();
        all.insert("help".to_owned());
        assert_eq!(grouped.len(), all.len(), "each of them once");
        assert_eq!(grouped.iter().map(ToString::to_string).collect::<BTreeSet<_>>(), all);
    }

    #[test]
    fn every_command_has_a_summary_of_one_line() {
        for (_, names) in GROUPS {
            for name in names {
                let summary = summary(&Cli::command(), name);
                let width = SUMMARY_COLUMN + summary.len();
                assert!(!summary.is_empty() && width <= 80, "{name}: {summary}");
            }
        }
    }
}
