//! The project's own tasks: `cargo xtask <task>`.

#![expect(clippy::print_stdout, reason = "a tool of the workspace talks to who runs it")]

mod program;
mod test;

use std::path::Path;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own tasks")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Installs what the tests need where it may, then checks form and lints and runs every test
    Test,
}

fn main() -> Result<()> {
    match Args::parse().task {
        Task::Test => test::run_all(),
    }
}

/// The root of the workspace.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask/ lies in the root")
}
