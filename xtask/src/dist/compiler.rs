//! Compiling for every Linux system: the command as a static binary, and the wheel.
//!
//! zig compiles C and links, and maturin builds the wheel. Both come from `PyPI` in the versions
//! below, so that the result depends neither on the C compiler nor on the C library of this
//! machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::inventory::Inventory;
use super::release::Release;
use crate::python::environment_of;
use xtask::files::files_in;
use xtask::program::{run, said};

/// Target of the command, which links even the C library statically.
pub(super) const MUSL: &str = "x86_64-unknown-linux-musl";
/// Target of the wheel.
pub(super) const GLIBC: &str = "x86_64-unknown-linux-gnu";
/// Oldest C library that the wheel runs with: glibc 2.17, of 2012.
const MANYLINUX: &str = "manylinux2014";
/// Packages of `PyPI` that build packages.
const TOOLS: [&str; 4] = ["cargo-zigbuild==0.24.0", "maturin==1.16.0", "wheel", "ziglang==0.17.1"];

/// The tools, in an environment of Python below the target folder.
#[derive(Debug)]
pub(super) struct Compiler {
    programs: PathBuf,
}

impl Compiler {
    /// Installs the tools that are missing.
    pub(super) fn provide(release: &Release) -> Result<Self> {
        let folder = release.target.join("packing-tools");
        Ok(Self { programs: environment_of(&folder, &TOOLS)? })
    }

    /// Compiles the command, for which it installs Rust's library for static binaries.
    pub(super) fn compile_command(&self, release: &Release) -> Result<()> {
        let targets = said(Command::new("rustc").args(["--print", "sysroot"]))?;
        let library = Path::new(targets.trim()).join("lib/rustlib").join(MUSL);
        if !library.exists() {
            run("rustup", &["target", "add", MUSL], &[]).context(
                "Rust's library for static binaries is missing, and rustup cannot add it",
            )?;
        }
        let args = ["zigbuild", "--locked", "--profile", "dist", "--package", "cli"];
        let mut cargo = Command::new("cargo");
        cargo.args(args).args(["--target", MUSL]);
        self.run(cargo, release)
    }

    /// Compiles the wheel.
    pub(super) fn compile_wheel(&self, release: &Release) -> Result<()> {
        let mut maturin = Command::new(self.programs.join("maturin"));
        maturin.args(["build", "--quiet", "--locked", "--profile", "dist", "--zig"]);
        maturin.args(["--manifest-path", "crates/python/Cargo.toml", "--target", GLIBC]);
        maturin.args(["--compatibility", MANYLINUX, "--out"]);
        maturin.arg(release.empty_folder("compiled-wheel")?);
        self.run(maturin, release)
    }

    /// Packs the wheel with the licences of its dependencies. maturin has added the list of them.
    pub(super) fn pack_wheel(&self, release: &Release) -> Result<()> {
        let folder = release.empty_folder("wheel")?;
        let built = files_in(&release.target.join("packing/compiled-wheel"))?;
        let built = built.first().context("maturin built no wheel")?;
        let python = self.programs.join("python");
        let wheel = |args: &[&std::ffi::OsStr]| {
            let mut command = Command::new(&python);
            command.args(["-m", "wheel"]).args(args).env("SOURCE_DATE_EPOCH", &release.epoch);
            said(&mut command)
        };
        wheel(&["unpack".as_ref(), "--dest".as_ref(), folder.as_ref(), built.as_ref()])?;
        let unpacked = folder.join(format!("floatgate-{}", release.version));
        let about = unpacked.join(format!("floatgate-{}.dist-info", release.version));
        forget_folder(&about.join("sboms"), &release.sources)?;
        let licences = about.join("licenses");
        fs::create_dir_all(&licences).context("making the folder of the wheel's licences")?;
        Inventory::of("python", GLIBC, release)?.write_licences(&licences)?;
        let packages = release.packages.as_os_str();
        wheel(&["pack".as_ref(), "--dest-dir".as_ref(), packages, unpacked.as_ref()])?;
        Ok(())
    }

    /// Runs a command that compiles. Its result has no paths of this machine.
    fn run(&self, mut command: Command, release: &Release) -> Result<()> {
        println!("\n$ {command:?}");
        let search = std::env::var_os("PATH").unwrap_or_default();
        let search: Vec<PathBuf> =
            [self.programs.clone()].into_iter().chain(std::env::split_paths(&search)).collect();
        let cargo_home = cargo_home()?;
        // The last that fits counts. The target folder, which has generated sources, may lie in
        // that of the sources.
        let maps = [
            (cargo_home.as_path(), "/cargo"),
            (release.sources.as_path(), "/floatgate"),
            (release.target.as_path(), "/target"),
        ];
        let flags = maps.map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()));
        let status = command
            .current_dir(&release.sources)
            .env("PATH", std::env::join_paths(search)?)
            .env("CARGO_TARGET_DIR", &release.target)
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
            .env("SOURCE_DATE_EPOCH", &release.epoch)
            .status()
            .with_context(|| format!("starting {command:?}"))?;
        if !status.success() {
            bail!("{command:?} failed: {status}");
        }
        Ok(())
    }
}

/// Puts the name that binaries have for the folder of the sources into the lists of dependencies
/// below `sboms`, where maturin names crates of the workspace by their paths on this machine.
fn forget_folder(sboms: &Path, sources: &Path) -> Result<()> {
    for path in files_in(sboms)? {
        let list = fs::read_to_string(&path);
        let list = list.with_context(|| format!("reading {}", path.display()))?;
        let list = list.replace(&sources.display().to_string(), "/floatgate");
        fs::write(&path, list).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// Path of the static binary.
pub(super) fn command(release: &Release) -> PathBuf {
    release.target.join(MUSL).join("dist/floatgate")
}

/// The folder in which cargo keeps the sources of dependencies.
pub(super) fn cargo_home() -> Result<PathBuf> {
    let set = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    set.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))
        .context("neither CARGO_HOME nor HOME is set")
}
