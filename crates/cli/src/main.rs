//! The `floatgate` command: what was typed becomes a call of the lab, and what came out is shown.
//!
//! Results go to stdout, talk to stderr. Exit status: 0 done, 1 failed, 2 what was given is not
//! right, 3 measured but not steady where --require-steady was given, 4 and 5 of `floatgate volume
//! status` alone: the drive's health is degraded, is critical; 6 of `floatgate compare` alone: a
//! limit of --fail-if was exceeded; docs/reference/exit-status.md has the table.

mod args;
mod benchmark;
mod command;
mod configuration;
mod drive_prices;
mod drive_query;
mod failure;
mod front_end;
mod output;
mod progress;
mod quantity;
mod regression;
mod setup;
mod steps;
mod table;

use std::process::ExitCode;

use anyhow::Result;
use clap::FromArgMatches as _;

use crate::args::{Cli, Command, Volume};

/// Outcome of a command that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// Done as asked.
    Done,
    /// Measured, but some preconditioning never met the steady-state rule, which was required.
    NotSteady,
    /// Shown, and the drive's health is degraded.
    Degraded,
    /// Shown, and the drive's health is critical.
    Critical,
    /// Compared, and a run is beyond a limit of `--fail-if`.
    BeyondLimit,
}

fn main() -> ExitCode {
    match command().and_then(carry_out) {
        Ok(Ending::Done) => ExitCode::SUCCESS,
        Ok(Ending::NotSteady) => ExitCode::from(3),
        Ok(Ending::Degraded) => ExitCode::from(4),
        Ok(Ending::Critical) => ExitCode::from(5),
        Ok(Ending::BeyondLimit) => ExitCode::from(6),
        Err(error) => failure::report(&error),
    }
}

/// Parses the command line; options of `serve` are completed from its configuration file.
fn command() -> Result<Command> {
    let Cli { command } = Cli::from_arg_matches(&args::grouped().get_matches())?;
    match &command {
        Command::Volume(Volume::Serve(typed)) | Command::FormerVolume(Volume::Serve(typed)) => {
            configuration::apply(typed).map(|all| all.unwrap_or(command))
        }
        _ => Ok(command),
    }
}

fn carry_out(command: Command) -> Result<Ending> {
    match command {
        Command::Review(args) => command::review::review(&args),
        Command::Run(args) => command::run::run(&args),
        Command::Runs(args) => command::runs::runs(&args),
        Command::Compare(args) => command::compare::compare(&args),
        Command::Atlas(args) => command::atlas::atlas(&args),
        Command::Plan(args) => command::plan::plan(&args),
        Command::Drives(args) => command::drives::drives(&args),
        Command::Workloads(args) => command::workloads::workloads(&args),
        Command::Protocols(args) => command::protocols::protocols(&args),
        Command::Sweep(args) => command::sweep::sweep(&args),
        Command::App(args) => command::app::app(&args),
        Command::Trace(command) => command::trace::trace(&command),
        Command::FormerRecording(command) => command::trace::recording(&command),
        Command::Volume(command) | Command::FormerVolume(command) => volume(command),
        Command::Validate(args) => command::validate::validate(&args),
        Command::Fit(args) => command::fit::fit(&args),
        Command::Dashboard(args) => command::dashboard::dashboard(&args),
        Command::Doctor(args) => command::doctor::doctor(&args),
        Command::Completions { shell } => command::completions::completions(shell),
        Command::Man(args) => command::man::man(&args),
    }
}

fn volume(command: Volume) -> Result<Ending> {
    match command {
        Volume::Create(args) => command::create::create(&args),
        Volume::Serve(args) => command::serve::serve(args),
        Volume::Attach(args) => command::attach::attach(&args),
        Volume::Detach(args) => command::attach::detach(&args),
        Volume::Locate(args) => command::locate::locate(&args),
        Volume::Top(args) => command::top::top(&args),
        Volume::Status(args) => command::status::status(&args),
        Volume::Rekey(args) => command::rekey::rekey(&args),
        Volume::Purge(args) => command::format::purge(&args),
        Volume::Format(args) => command::format::format(&args),
        Volume::Resize(args) => command::format::resize(&args),
        Volume::Export(command) => command::export::export(&command),
        Volume::Check(args) => command::check::check(&args),
        Volume::Recover(args) => command::recover::recover(&args),
        Volume::Scrub(args) => command::maintenance::scrub(&args),
        Volume::FailDie(args) => command::maintenance::fail_die(&args),
        Volume::ReplaceDie(args) => command::maintenance::replace_die(&args),
        Volume::AddSpare(args) => command::maintenance::add_spare(&args),
        Volume::RemoveSpare(args) => command::maintenance::remove_spare(&args),
        Volume::Inject(args) => command::maintenance::inject(&args),
    }
}
