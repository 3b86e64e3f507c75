//! The package for Debian and Ubuntu.
//!
//! The binary is static, so that the package has no dependencies. It has systemd units; on systems
//! without systemd its scripts do nothing.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::installation;
use super::release::Release;
use xtask::files::{copy_folder, files_below, make_folder_of};
use xtask::program::said;

/// Scripts that dpkg runs.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Name of the file of the package.
pub(super) fn file_name(release: &Release) -> String {
    format!("floatgate_{}_amd64.deb", release.version)
}

/// Builds the package.
pub(super) fn build(release: &Release, installed: &Path) -> Result<()> {
    let folder = release.empty_folder("deb")?;
    let root = folder.join("root");
    copy_folder(installed, &root)?;
    let documents = root.join(installation::DOCUMENTS);
    // Debian has names of its own for the changelog and the licence.
    fs::rename(documents.join("changelog.gz"), documents.join("changelog.Debian.gz"))
        .context("naming the changelog")?;
    fs::remove_file(documents.join("LICENSE")).context("leaving out the licence")?;
    let write = |path: &Path, text: &str, mode: u32| {
        make_folder_of(path)?;
        fs::write(path, text)?;
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
            .with_context(|| format!("writing {}", path.display()))
    };
    write(&documents.join("copyright"), COPYRIGHT, 0o644)?;
    let overrides = root.join("usr/share/lintian/overrides/floatgate");
    write(&overrides, OVERRIDES, 0o644)?;
    let control = root.join("DEBIAN");
    let text = control_file(release, size_kib(&root)?);
    write(&control.join("control"), &text, 0o644)?;
    write(&control.join("conffiles"), &format!("/{}\n", installation::CONFIGURATION), 0o644)?;
    for script in SCRIPTS {
        let path = release.sources.join("contrib/debian").join(script);
        let text = fs::read_to_string(&path).with_context(|| format!("reading {script}"))?;
        write(&control.join(script), &text, 0o755)?;
    }
    write(&control.join("md5sums"), &sums(&root)?, 0o644)?;
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Zxz", "--build"]).arg(&root);
    build.arg(release.package(&file_name(release))).env("SOURCE_DATE_EPOCH", &release.epoch);
    said(&mut build).context("building the package for Debian: apt-get install dpkg-dev")?;
    Ok(())
}

fn control_file(release: &Release, size_kib: u64) -> String {
    let version = release.version;
    format!(
        "\
Package: floatgate
Version: {version}
Architecture: amd64
Maintainer: The Floatgate authors <floatgate@localhost>
Installed-Size: {size_kib}
Recommends: fio
Suggests: fuse3, nbd-client, nvme-cli, prometheus
Section: admin
Priority: optional
Description: measure, model, predict and serve flash storage
 Floatgate runs complete enterprise SSD test protocols on real drives, through
 fio, and on models of drives in virtual time, and writes reviews whose raw
 data can be checked. It fits models to measured drives, predicts what changes
 to them would do, and replays recorded databases on them.
 .
 It also stores data: the same flash translation layer serves block devices
 over NBD and NVMe/TCP and to virtual machines, with compression and parity.
"
    )
}

/// Size of the installed files in KiB.
fn size_kib(folder: &Path) -> Result<u64> {
    let mut size = 0;
    for path in files_below(folder)? {
        size += fs::metadata(&path)?.len().div_ceil(1024);
    }
    Ok(size)
}

/// Checksums of the files, for `dpkg --verify`.
fn sums(root: &Path) -> Result<String> {
    let mut sums = String::new();
    for path in files_below(root)? {
        let name = path.strip_prefix(root).expect("it lies below the root").to_owned();
        if !name.starts_with("DEBIAN") && !name.starts_with("etc") {
            let sum = said(Command::new("md5sum").arg(&path))?;
            let sum = sum.split(' ').next().unwrap_or_default();
            let _ = writeln!(sums, "{sum}  {}", name.display());
        }
    }
    Ok(sums)
}

const COPYRIGHT: &str = "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: floatgate
Comment: The licences of the libraries inside the command are in
 THIRD-PARTY-LICENSES.txt.gz beside this file, and the list of them, with
 versions and checksums, is in the CycloneDX file.

Files: *
Copyright: The Floatgate authors
License: Apache-2.0
 On Debian systems the text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
";

const OVERRIDES: &str = "\
# Static, so that it runs on any release of any distribution.
floatgate: statically-linked-binary [usr/bin/floatgate]
# The package is the project's own, and closes no bugs of Debian's.
floatgate: initial-upload-closes-no-bugs *
";
