//! Other programs: whether they are there, installing them, running them.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::root;

/// Runs `program` with `args` in the root, its output going to ours.
///
/// # Errors
/// Fails if it cannot be started, or ends with a failure.
pub fn run(program: &str, args: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let shown = format!("{program} {}", args.join(" "));
    println!("\n$ {shown}");
    let status = Command::new(program)
        .args(args)
        .envs(environment.iter().copied())
        .current_dir(root())
        .status()
        .with_context(|| format!("starting `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed: {status}");
    }
    Ok(())
}

/// Runs a command and returns what it prints.
///
/// # Errors
/// Fails if it cannot be started, or ends with a failure; the error has what it said.
pub fn said(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("starting {command:?}"))?;
    if !output.status.success() {
        let printed = [output.stdout, output.stderr].concat();
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&printed).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns true if `program` with `args` can be run and succeeds; its output is discarded.
pub fn succeeds(program: &str, args: &[&str]) -> bool {
    let command = Command::new(program)
        .args(args)
        .current_dir(root())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    command.is_ok_and(|status| status.success())
}

/// Returns true if a line that a command printed is the path of a page.
pub fn is_page(line: &str) -> bool {
    Path::new(line).extension().is_some_and(|it| it == "html")
}

/// Returns true if this process is root's.
pub fn is_root() -> bool {
    let user = Command::new("id").arg("-u").output();
    user.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Returns true if this process may install system packages.
pub fn may_install() -> bool {
    is_root() && succeeds("apt-get", &["--version"])
}

/// Installs packages of the system, quietly.
pub fn install(packages: &[&str]) -> bool {
    let mut args = vec!["install", "--yes", "--no-install-recommends"];
    args.extend(packages);
    succeeds("apt-get", &["update"]) && succeeds("apt-get", &args)
}
