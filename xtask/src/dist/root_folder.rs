//! A folder as the root of a process, to run a package where nothing else is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use xtask::files::copy;
use xtask::program::{is_page, said};

/// A folder that commands see as `/`.
#[derive(Debug)]
pub(super) struct RootFolder {
    path: PathBuf,
}

impl RootFolder {
    /// Takes a folder that holds the packages' files.
    pub(super) fn of(path: PathBuf) -> Self {
        Self { path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Installs a static shell and its tools.
    pub(super) fn add_shell(&self) -> Result<()> {
        let programs = self.path.join("bin");
        fs::create_dir_all(&programs).context("making the folder of a shell")?;
        let busybox = said(Command::new("which").arg("busybox"));
        let busybox = busybox.context("busybox is missing: apt-get install busybox-static")?;
        fs::copy(busybox.trim(), programs.join("busybox")).context("copying busybox")?;
        said(&mut self.command("/bin/busybox", &["--install", "-s", "/bin"]))?;
        Ok(())
    }

    /// Installs the libraries that a program of this machine needs.
    pub(super) fn add_libraries_of(&self, program: &Path) -> Result<()> {
        let listed = said(Command::new("ldd").arg(program))?;
        let paths = listed.split_whitespace().filter(|word| word.starts_with('/'));
        for library in paths.filter(|path| Path::new(path).exists()) {
            let to = self.path.join(library.trim_start_matches('/'));
            copy(Path::new(library), &to)?;
        }
        Ok(())
    }

    /// A command that sees the folder as its root, with nothing of this machine's environment.
    pub(super) fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        // Only root may change its root; other users become root in a user namespace.
        if !crate::program::is_root() {
            command.arg("--map-root-user");
        }
        // Where the root has a folder for it, /proc is mounted.
        if self.path.join("proc").is_dir() {
            command.args(["--mount", "--pid", "--fork", "--mount-proc"]);
        }
        let root = format!("--root={}", self.path.display());
        command.args([&root, "--wd=/", program]).args(args);
        let search = std::env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("PATH", search).env("HOME", "/");
        command
    }

    /// Reviews a modelled drive with the quick protocol, and returns the version of the command.
    pub(super) fn review(&self, program: &str) -> Result<String> {
        let version = said(&mut self.command(program, &["--version"]))?;
        let protocol =
            ["--protocol", "quick", "--time-lapse", "64", "--repeat", "1", "--out", "/runs"];
        let review = [&["review", "iodrive-duo"][..], &protocol].concat();
        let reviewed = self.command(program, &review).output().context("reviewing")?;
        // 3: it was measured, and its short preconditioning is no steady state.
        if !matches!(reviewed.status.code(), Some(0 | 3)) {
            bail!("a review failed: {}", String::from_utf8_lossy(&reviewed.stderr).trim());
        }
        let printed = String::from_utf8_lossy(&reviewed.stdout).into_owned();
        let page = printed.lines().map(str::trim).find(|line| is_page(line));
        let page = page.with_context(|| format!("the review named no page: {printed}"))?;
        let text = fs::read_to_string(self.path.join(page.trim_start_matches('/')))
            .with_context(|| format!("reading {page}"))?;
        if !(text.contains("</html>") && text.contains("ioDrive Duo")) {
            bail!("{page} is no review of the drive");
        }
        Ok(version.trim().to_owned())
    }
}
