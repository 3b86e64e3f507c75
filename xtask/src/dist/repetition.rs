//! A release built twice, the second time from scratch and from a copy of the sources in another
//! folder: the packages must have the same bytes.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::build;
use super::release::Release;
use xtask::files::files_in;
use xtask::program::said;

/// Builds the release of the same commit elsewhere and compares each package.
pub(super) fn compare(release: &Release) -> Result<()> {
    let folder = release.empty_folder("again")?;
    let sources = folder.join("sources");
    let clone = ["clone", "--quiet", "--no-hardlinks", "--depth", "1"];
    let of = format!("file://{}", release.sources.display());
    said(Command::new("git").args(clone).arg(of).arg(&sources))
        .context("copying the newest commit")?;
    let again = Release {
        sources,
        target: folder.join("target"),
        packages: folder.join("packages"),
        ..release.clone()
    };
    build(&again, false)?;
    let mut different = Vec::new();
    for path in files_in(&release.packages)? {
        let name = path.file_name().unwrap_or_default().to_owned();
        let same = fs::read(again.packages.join(&name))
            .is_ok_and(|bytes| fs::read(&path).is_ok_and(|first| first == bytes));
        println!("{}: {}", name.display(), if same { "the same" } else { "different" });
        if !same {
            different.push(name.display().to_string());
        }
    }
    if !different.is_empty() {
        bail!(
            "built twice, these differ: {} (both are below {})",
            different.join(", "),
            folder.display()
        );
    }
    Ok(())
}
