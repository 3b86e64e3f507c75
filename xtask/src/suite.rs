//! Packages from another suite of Debian than that of this machine, unpacked in a folder.
//!
//! ```text
//! <folder>/apt/    configuration, sources, lists, status and cache of apt, all of them its own
//! <folder>/...     what the packages hold
//! ```
//!
//! **Invariants**: the sources, lists and packages of this machine stay as they are, and nothing is
//! installed. Every package is verified by the keys of this machine's Debian.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use xtask::program::said;

/// Release of Debian whose server this machine's own sources name.
pub(crate) const OWN_RELEASE: &str = "bookworm";
/// Keys that have signed the suites.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Packages of some suites, and a folder in which they are unpacked.
pub(crate) struct Suite {
    folder: PathBuf,
    /// Name of the last one.
    last: String,
}

impl Suite {
    /// Fetches the lists of packages of `suites`, such as `bookworm-backports`, from the server
    /// that this machine has its own packages from. The folder is made, with what apt needs below
    /// it.
    ///
    /// # Errors
    /// Fails if the sources of this machine name no server of Debian, the folder cannot be
    /// written, or the lists cannot be fetched.
    pub(crate) fn fetch(suites: &[&str], folder: &Path) -> Result<Self> {
        let server = server()?;
        let last = suites.last().map_or_else(String::new, |name| (*name).to_owned());
        let suite = Self { folder: folder.to_owned(), last };
        let apt = suite.apt();
        for own in ["state/lists/partial", "cache/archives/partial"] {
            let own = apt.join(own);
            fs::create_dir_all(&own).with_context(|| format!("making {}", own.display()))?;
        }
        let lines = suites.iter().flat_map(|name| {
            ["deb", "deb-src"]
                .map(|kind| format!("{kind} [signed-by={KEYS}] {server} {name} main\n"))
        });
        fs::write(apt.join("sources.list"), lines.collect::<String>())?;
        // No package is installed there, so that dependencies are downloaded too.
        fs::write(apt.join("status"), "")?;
        fs::write(apt.join("apt.conf"), configuration(&apt))?;
        said(suite.command("apt-get").arg("update"))?;
        Ok(suite)
    }

    /// Returns what `package` depends on, the names alone.
    ///
    /// # Errors
    /// Fails if there is no such package.
    pub(crate) fn dependencies(&self, package: &str) -> Result<Vec<String>> {
        let depends = said(self.command("apt-cache").args(["depends", package]))?;
        let names = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
        Ok(names.map(str::to_owned).collect())
    }

    /// Downloads these packages alone, and unpacks them in the folder.
    ///
    /// # Errors
    /// Fails if a package is missing, or cannot be downloaded or unpacked.
    pub(crate) fn unpack(&self, packages: &[&str]) -> Result<()> {
        let archives = self.apt().join("cache/archives");
        said(self.command("apt-get").arg("download").args(packages).current_dir(&archives))?;
        self.unpack_downloaded()
    }

    /// Downloads these packages and all that they depend on, from the last of the suites where it
    /// has them, and unpacks them in the folder.
    ///
    /// # Errors
    /// Fails if a package is missing, or cannot be downloaded or unpacked.
    pub(crate) fn unpack_with_dependencies(&self, packages: &[&str]) -> Result<()> {
        let install = ["install", "--download-only", "--yes", "--no-install-recommends"];
        let release = ["--target-release", &self.last];
        said(self.command("apt-get").args(install).args(release).args(packages))?;
        self.unpack_downloaded()
    }

    /// Downloads the source of `package`, and unpacks it in a folder of its own below the folder.
    ///
    /// # Errors
    /// Fails if there is no such package, or it cannot be downloaded or unpacked.
    pub(crate) fn unpack_source(&self, package: &str) -> Result<()> {
        let download = ["source", "--download-only", package];
        said(self.command("apt-get").args(download).current_dir(&self.folder))?;
        let paths = fs::read_dir(&self.folder)?
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<Vec<PathBuf>>>()?;
        let is_original = |path: &&PathBuf| path.to_string_lossy().contains(".orig.tar.");
        let original = paths.iter().find(is_original);
        let original = original.with_context(|| format!("{package} has no original source"))?;
        said(Command::new("tar").arg("-xf").arg(original).arg("-C").arg(&self.folder))?;
        Ok(())
    }

    /// Unpacks every downloaded archive, and deletes it.
    fn unpack_downloaded(&self) -> Result<()> {
        let archives = self.apt().join("cache/archives");
        let mut count = 0;
        for entry in fs::read_dir(&archives)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "deb") {
                said(Command::new("dpkg-deb").arg("--extract").args([&path, &self.folder]))?;
                fs::remove_file(&path)?;
                count += 1;
            }
        }
        if count == 0 {
            bail!("apt-get downloaded nothing into {}", archives.display());
        }
        Ok(())
    }

    /// A program of apt that sees these suites alone.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.arg("--config-file").arg(self.apt().join("apt.conf")).env("LC_ALL", "C");
        command
    }

    /// The folder of what apt needs.
    fn apt(&self) -> PathBuf {
        self.folder.join("apt")
    }
}

/// Returns the URL from which this machine has the packages of its own release.
fn server() -> Result<String> {
    let mut listing = Command::new("apt-get");
    listing.args(["indextargets", "--format", "$(RELEASE) $(REPO_URI)", "Created-By: Packages"]);
    let targets = said(&mut listing)?;
    let own = targets.lines().find_map(|line| line.strip_prefix(OWN_RELEASE)?.strip_prefix(' '));
    let own = own.with_context(|| format!("apt has no source of the release {OWN_RELEASE}"))?;
    Ok(own.to_owned())
}

/// Configuration of apt that keeps everything of its own below `apt`, and runs no hooks of this
/// machine. It is read after that of this machine, of which a proxy holds here too.
fn configuration(apt: &Path) -> String {
    let apt = apt.display();
    format!(
        "#clear APT::Update::Post-Invoke;\n\
         #clear APT::Update::Post-Invoke-Success;\n\
         #clear DPkg::Post-Invoke;\n\
         Dir::State \"{apt}/state\";\n\
         Dir::State::lists \"{apt}/state/lists\";\n\
         Dir::State::status \"{apt}/status\";\n\
         Dir::Cache \"{apt}/cache\";\n\
         Dir::Etc::SourceList \"{apt}/sources.list\";\n\
         Dir::Etc::SourceParts \"/dev/null\";\n\
         Dir::Etc::Preferences \"/dev/null\";\n\
         Dir::Etc::PreferencesParts \"/dev/null\";\n\
         APT::Sandbox::User \"root\";\n\
         APT::Install-Suggests \"false\";\n\
         Acquire::Languages \"none\";\n\
         Acquire::Retries \"2\";\n\
         Acquire::http::Timeout \"30\";\n\
         Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n"
    )
}
