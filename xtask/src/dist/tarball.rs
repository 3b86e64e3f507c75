//! The archive for any Linux system: the static binary, manual pages, completions and licences.
//!
//! It can be unpacked anywhere, or over a prefix:
//! `tar xf FILE -C /usr/local --strip-components=1`.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::installation;
use super::release::Release;
use xtask::files::{copy, copy_folder};
use xtask::program::said;

/// Builds the archive.
pub(super) fn build(release: &Release, installed: &Path) -> Result<()> {
    let name = format!("floatgate-{}-x86_64-linux-musl", release.version);
    let folder = release.empty_folder("archive")?;
    let inside = folder.join(&name);
    for part in ["bin", "share"] {
        copy_folder(&installed.join("usr").join(part), &inside.join(part))?;
    }
    let documents = inside.join("share/doc/floatgate");
    for file in [installation::CONFIGURATION, "usr/lib/systemd/system/floatgate@.service"] {
        let to = documents.join(Path::new(file).file_name().expect("a file has a name"));
        copy(&installed.join(file), &to)?;
    }
    let archive = release.package(&format!("{name}.tar.gz"));
    let compressed = "--use-compress-program=gzip --best --no-name";
    let mut tar = Command::new("tar");
    tar.args(repeatable(release)).arg(compressed).arg("--create").arg("--file").arg(archive);
    said(tar.arg("--directory").arg(&folder).arg(&name))?;
    Ok(())
}

/// Options of tar for archives that depend on nothing but the contents of the files.
pub(super) fn repeatable(release: &Release) -> Vec<String> {
    let options = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"];
    let date = format!("--mtime=@{}", release.epoch);
    options.map(str::to_owned).into_iter().chain([date]).collect()
}
