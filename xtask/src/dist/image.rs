//! The container image, as an archive that podman, docker, skopeo and buildah load.
//!
//! buildah builds it from `contrib/Containerfile`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::installation;
use super::release::Release;
use xtask::files::{copy, copy_folder};
use xtask::program::{install, may_install, said, succeeds};

/// Name of the file of the image.
pub(super) fn file_name(release: &Release) -> String {
    format!("floatgate-{}-x86_64.oci.tar", release.version)
}

/// Builds the image.
pub(super) fn build(release: &Release, installed: &Path) -> Result<()> {
    let is_there = || succeeds("buildah", &["--version"]);
    if !(is_there() || may_install() && install(&["buildah"]) && is_there()) {
        bail!("buildah is missing: apt-get install buildah");
    }
    let folder = release.empty_folder("image")?;
    let root = folder.join("context/root");
    copy(&installed.join("usr/bin/floatgate"), &root.join("usr/bin/floatgate"))?;
    copy_folder(&installed.join(installation::DOCUMENTS), &root.join(installation::DOCUMENTS))?;
    // For temporary files of runs.
    let temporary = root.join("tmp");
    std::fs::create_dir(&temporary).context("making /tmp of the image")?;
    said(Command::new("chmod").arg("1777").arg(&temporary))?;
    let image =
        format!("oci-archive:{}:floatgate:{}", folder.join("image.tar").display(), release.version);
    let mut buildah = Command::new("buildah");
    // Nothing is left on this machine but the file.
    buildah.args(["--storage-driver", "vfs", "--root"]).arg(folder.join("storage"));
    buildah.arg("--runroot").arg(folder.join("runs"));
    buildah.args(["build", "--isolation", "chroot", "--quiet", "--timestamp", &release.epoch]);
    buildah.args(["--label", &format!("org.opencontainers.image.version={}", release.version)]);
    buildah.args(["--label", "org.opencontainers.image.licenses=Apache-2.0"]);
    buildah.arg("--file").arg(release.sources.join("contrib/Containerfile"));
    buildah.args(["--tag", &image]).arg(folder.join("context"));
    said(&mut buildah).context("building the image")?;
    pack_again(release, &folder)
}

/// Packs the image again, since the archive of buildah has the dates of the build.
fn pack_again(release: &Release, folder: &Path) -> Result<()> {
    let unpacked = folder.join("unpacked");
    std::fs::create_dir(&unpacked).context("making the folder of the unpacked image")?;
    let tar = |args: &[&std::ffi::OsStr]| said(Command::new("tar").args(args));
    let built = folder.join("image.tar");
    tar(&[
        "--extract".as_ref(),
        "--file".as_ref(),
        built.as_ref(),
        "-C".as_ref(),
        unpacked.as_ref(),
    ])?;
    let image = release.package(&file_name(release));
    let mut pack = Command::new("tar");
    pack.args(super::tarball::repeatable(release)).arg("--create").arg("--file").arg(image);
    said(pack.arg("--directory").arg(&unpacked).args(["blobs", "index.json", "oci-layout"]))?;
    Ok(())
}
