//! The files of an installation of the command, below a folder that stands for `/`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::inventory::Inventory;
use super::release::Release;
use xtask::files::{copy, files_in, make_folder_of};
use xtask::program::said;

/// Folder of documents and licences.
pub(super) const DOCUMENTS: &str = "usr/share/doc/floatgate";
/// Configuration that an administrator may change, a conffile of Debian.
pub(super) const CONFIGURATION: &str = "etc/floatgate/scratch.toml";

/// Files of the sources, and where they are installed.
const FILES: [(&str, &str); 11] = [
    ("contrib/floatgate.toml", CONFIGURATION),
    ("contrib/floatgate@.service", "usr/lib/systemd/system/floatgate@.service"),
    ("contrib/floatgate@.socket", "usr/lib/systemd/system/floatgate@.socket"),
    ("contrib/floatgate-dashboard.service", "usr/lib/systemd/system/floatgate-dashboard.service"),
    ("contrib/sysusers.conf", "usr/lib/sysusers.d/floatgate.conf"),
    ("contrib/tmpfiles.conf", "usr/lib/tmpfiles.d/floatgate.conf"),
    ("contrib/grafana-dashboard.json", "usr/share/floatgate/grafana-dashboard.json"),
    ("contrib/prometheus-alerts.yml", "usr/share/floatgate/prometheus-alerts.yml"),
    ("README.md", "usr/share/doc/floatgate/README.md"),
    ("CHANGELOG.md", "usr/share/doc/floatgate/changelog"),
    ("LICENSE", "usr/share/doc/floatgate/LICENSE"),
];
/// Shells, and where they look for completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/floatgate"),
    ("zsh", "usr/share/zsh/vendor-completions/_floatgate"),
    ("fish", "usr/share/fish/vendor_completions.d/floatgate.fish"),
];

/// Lays the files of an installation and returns their folder.
pub(super) fn lay(release: &Release, command: &Path, inventory: &Inventory) -> Result<PathBuf> {
    let root = release.empty_folder("installed")?;
    let program = root.join("usr/bin/floatgate");
    copy(command, &program)?;
    for (from, to) in FILES {
        copy(&release.sources.join(from), &root.join(to))?;
    }
    let documents = root.join(DOCUMENTS);
    inventory.write(&documents)?;
    inventory.write_licences(&documents)?;
    for (shell, path) in COMPLETIONS {
        let path = root.join(path);
        make_folder_of(&path)?;
        let completions = said(Command::new(&program).args(["completions", shell]))?;
        fs::write(&path, completions).with_context(|| format!("writing {}", path.display()))?;
    }
    said(Command::new(&program).arg("man").arg(root.join("usr/share/man/man1")))?;
    // Large documents and manual pages are compressed, as Debian requires.
    for path in ["changelog", "THIRD-PARTY-LICENSES.txt", "RUST-LIBRARY-COPYRIGHT.html"] {
        compress(&documents.join(path))?;
    }
    for page in files_in(&root.join("usr/share/man/man1"))? {
        compress(&page)?;
    }
    set_modes(&root)?;
    Ok(root)
}

/// Replaces a file by its compressed form, without name or date inside.
fn compress(path: &Path) -> Result<()> {
    if path.exists() {
        said(Command::new("gzip").args(["--best", "--no-name", "--force"]).arg(path))?;
    }
    Ok(())
}

/// Sets modes that do not depend on the umask: 755 for folders and programs, 644 for other files.
fn set_modes(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)?.flatten() {
        let path = entry.path();
        let is_program = path.parent().is_some_and(|it| it.ends_with("bin"));
        let mode = if path.is_dir() || is_program { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))
            .with_context(|| format!("setting the mode of {}", path.display()))?;
        if path.is_dir() {
            set_modes(&path)?;
        }
    }
    Ok(())
}
