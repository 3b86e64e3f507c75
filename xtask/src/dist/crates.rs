//! The crates as `cargo package` packs them: with the files that they embed, so that they build
//! without the rest of the repository.
//!
//! They are in no registry: `ssd`, `live` or `cli` are the names of other crates there.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::release::Release;
use xtask::files::files_in;
use xtask::program::said;

/// Files that crates embed through symbolic links to other parts of the repository: one of each
/// kind.
const EMBEDDED: [(&str, &[&str]); 3] = [
    ("results", &["baseline.csv", "published/figures.csv"]),
    ("ssd", &["build.rs", "drives/iodrive-duo.toml"]),
    (
        "workload",
        &[
            "applications/recordings/pgbench-tpcb-t1.rec",
            "applications/pgbench-tpcb.toml",
            "build.rs",
            "protocols/enterprise.toml",
            "workloads/4k-rand-write.toml",
        ],
    ),
];
/// Packages that are of use in this repository alone.
const KEPT_HERE: [&str; 3] = ["xtask", "figures", "fuzz"];
/// Keys that the manifest of a crate in a registry has.
const FIELDS: [&str; 6] = ["categories", "description", "keywords", "license", "readme", "version"];

/// Packs the crates and checks their contents.
pub(super) fn check_contents(release: &Release) -> Result<()> {
    let folder = unpacked(release)?;
    let mut count = 0;
    for entry in fs::read_dir(&folder)?.flatten() {
        let manifest = fs::read_to_string(entry.path().join("Cargo.toml"))?;
        let manifest: toml::Table = manifest.parse()?;
        for field in FIELDS {
            let value = manifest["package"].get(field);
            ensure!(value.is_some(), "{}: no {field}", entry.path().display());
        }
        for file in ["LICENSE", "README.md"] {
            ensure!(entry.path().join(file).is_file(), "{}: no {file}", entry.path().display());
        }
        count += 1;
    }
    for (name, files) in EMBEDDED {
        let folder = folder.join(format!("{name}-{}", release.version));
        for file in files {
            ensure!(folder.join(file).is_file(), "{name} is packed without {file}");
        }
    }
    println!("crates: {count} are packed with the files that they embed");
    Ok(())
}

/// Builds the command from the packed crates alone.
pub(super) fn check_alone(release: &Release) -> Result<()> {
    let folder = unpacked(release)?;
    let mut workspace = String::from("[workspace]\nresolver = \"3\"\nmembers = [\"*-*\"]\n");
    workspace += "\n[patch.crates-io]\n";
    for entry in fs::read_dir(&folder)?.flatten() {
        let path = entry.file_name().to_string_lossy().into_owned();
        let name = path.rsplit_once('-').context("a crate has a version")?.0;
        let _ = writeln!(workspace, "{name} = {{ path = \"{path}\" }}");
    }
    fs::write(folder.join("Cargo.toml"), workspace)?;
    fs::copy(release.sources.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    let mut check = Command::new("cargo");
    check.args(["check", "--quiet", "--package", "cli"]).current_dir(&folder);
    said(check.env("CARGO_TARGET_DIR", release.target.join("packing/crates-target")))?;
    println!("crates: the command builds from them alone");
    Ok(())
}

/// Packs the crates and unpacks them into a folder each.
fn unpacked(release: &Release) -> Result<PathBuf> {
    let folder = release.empty_folder("crates")?;
    let mut package = Command::new("cargo");
    package.args(["package", "--quiet", "--workspace", "--allow-dirty"]);
    package.args(KEPT_HERE.iter().flat_map(|name| ["--exclude", name]));
    // A library has no lock file: the crate that depends on it selects the versions.
    package.args(["--no-verify", "--exclude-lockfile"]);
    let packed = folder.join("packed");
    package.env("CARGO_TARGET_DIR", &packed).current_dir(&release.sources);
    said(&mut package)?;
    let inside = folder.join("unpacked");
    fs::create_dir(&inside).context("making the folder of the crates")?;
    for path in files_in(&packed.join("package"))? {
        said(Command::new("tar").arg("-xzf").arg(path).arg("-C").arg(&inside))?;
    }
    Ok(inside)
}
