//! `cargo xtask dist`: the packages of a release, built reproducibly, and installed and run in
//! clean roots.
//!
//! ```text
//!   command ──► static binary ──► installed files ──┬► .tar.gz
//!                (musl)              ▲              ├► .deb
//!   dependencies ──► licences, SBOM ─┤              └► container image
//!                                    ▼
//!   Python package ───────────────► wheel
//! ```
//!
//! **Invariants**: nothing below the sources is written to; every date is that of the newest
//! commit.

mod check;
mod compiler;
mod crates;
mod deb;
mod image;
mod installation;
mod inventory;
mod release;
mod repetition;
mod root_folder;
mod tarball;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use xtask::files::{checksum, files_in, make_empty};

pub(crate) use self::check::check_quickly;
use self::release::Release;

/// Steps of `cargo xtask dist`, each of which needs those before it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    /// Installs the packages that were built in clean roots and runs them, instead of building.
    pub(crate) check: bool,
    /// Builds everything again from a copy of the sources in another folder, and compares.
    pub(crate) again: bool,
    /// Packs the binary and the wheel of the last build, without compiling.
    pub(crate) keep_compiled: bool,
}

/// Builds the packages into `packages` in the target folder, or checks them, as the options say.
///
/// # Errors
/// Fails if a package cannot be built, or one that was built does not work.
pub(crate) fn run(options: Options) -> Result<()> {
    let release = Release::of_sources()?;
    if options.check {
        return check::check_all(&release);
    }
    build(&release, options.keep_compiled)?;
    if options.again {
        repetition::compare(&release)?;
    }
    Ok(())
}

/// Builds the wheel alone into `wheels` in the target folder, as [`run`] does.
///
/// # Errors
/// Fails if it cannot be built.
pub(crate) fn wheel() -> Result<()> {
    let release = Release::of_sources()?;
    let release = Release { packages: release.target.join("wheels"), ..release };
    make_empty(&release.packages)?;
    let compiler = compiler::Compiler::provide(&release)?;
    compiler.compile_wheel(&release)?;
    compiler.pack_wheel(&release)?;
    list(&release.packages)
}

/// Builds every package, and prints their sizes.
fn build(release: &Release, keep_compiled: bool) -> Result<()> {
    make_empty(&release.packages)?;
    let compiler = compiler::Compiler::provide(release)?;
    if !keep_compiled {
        compiler.compile_command(release)?;
        compiler.compile_wheel(release)?;
    }
    let inventory = inventory::Inventory::of("cli", compiler::MUSL, release)?;
    inventory.write(&release.packages)?;
    let installed = installation::lay(release, &compiler::command(release), &inventory)?;
    tarball::build(release, &installed)?;
    deb::build(release, &installed)?;
    image::build(release, &installed)?;
    compiler.pack_wheel(release)?;
    list(&release.packages)
}

/// Writes the checksums of the packages and prints their sizes.
fn list(packages: &Path) -> Result<()> {
    let mut sums = String::new();
    println!();
    for path in files_in(packages)? {
        let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        println!("{:>9.2} MB  {name}", bytes.len() as f64 / 1e6);
        writeln!(sums, "{}  {name}", checksum(&bytes)).expect("a string takes all");
    }
    let path = packages.join("SHA256SUMS");
    fs::write(&path, sums).with_context(|| format!("writing {}", path.display()))?;
    println!("in {}", packages.display());
    Ok(())
}
