//! Checks of packages: each is installed in a root with nothing else in it, and run there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::inventory::Inventory;
use super::release::Release;
use super::root_folder::RootFolder;
use super::{compiler, crates, deb, image, installation, tarball};
use crate::python::{environment_of, wheel_in};
use xtask::files::copy;
use xtask::program::{install, is_root, may_install, run, said, succeeds};

/// Largest wheel.
const WHEEL_BYTES_MAX: u64 = 15_000_000;
/// Release of Debian in which the package is installed.
const DEBIAN: &str = "bookworm";
/// Reviews a drive, as `python3 FILE` in an empty folder.
const REVIEW_IN_PYTHON: &str = "\
import floatgate as fg
review = fg.review(fg.Drive.load('iodrive-duo'), 'quick', out='runs', time_lapse=64)
assert '</html>' in open(review.path).read()
print(fg.__version__)
";

/// Builds the archive and the package for Debian with the command of the debug build, checks the
/// latter, and checks the contents of the crates.
///
/// # Errors
/// Fails if a package cannot be built or does not work.
pub(crate) fn check_quickly() -> Result<()> {
    println!("\npackages");
    let mut release = Release::of_sources()?;
    release.packages = release.empty_folder("quick-packages")?;
    let command = without_debug_information(&release)?;
    let inventory = Inventory::of("cli", compiler::GLIBC, &release)?;
    let installed = installation::lay(&release, &command, &inventory)?;
    tarball::build(&release, &installed)?;
    crates::check_contents(&release)?;
    let programs = [("dpkg-deb", "--version"), ("busybox", "--help"), ("unshare", "--version")];
    let missing = programs.iter().find(|(program, option)| !succeeds(program, &[option]));
    if let Some((program, _)) = missing {
        println!("{program} is missing: skips the package for Debian");
    } else if !is_root() {
        println!("this user cannot install packages: skips the package for Debian");
    } else {
        deb::build(&release, &installed)?;
        check_deb_without_system(&release, Some(&command))?;
    }
    Ok(())
}

/// A copy of the command of the debug build with a fourth of its size, so that it is packed sooner.
fn without_debug_information(release: &Release) -> Result<PathBuf> {
    let built = release.target.join("debug/floatgate");
    let command = release.empty_folder("quick-command")?.join("floatgate");
    let mut strip = Command::new("strip");
    strip.args(["--strip-all", "-o"]).arg(&command).arg(&built);
    if said(&mut strip).is_err() {
        copy(&built, &command)?;
    }
    Ok(command)
}

/// Checks every package of a release.
pub(super) fn check_all(release: &Release) -> Result<()> {
    said(Command::new("sha256sum").args(["--check", "SHA256SUMS"]).current_dir(&release.packages))
        .context("checking the packages; `cargo xtask dist` builds them")?;
    check_archive(release)?;
    check_deb_without_system(release, None)?;
    check_deb_in_debian(release)?;
    check_image(release)?;
    check_wheel(release)?;
    check_bill(release)?;
    crates::check_contents(release)?;
    crates::check_alone(release)
}

/// Checks the version that a package printed, and prints that its review succeeded.
fn confirm(package: &str, version: &str, release: &Release) -> Result<()> {
    ensure!(version.ends_with(release.version), "{package}: the version is {version}");
    println!("{package}: {version} reviews a drive");
    Ok(())
}

/// The archive in a root that holds nothing but its binary.
fn check_archive(release: &Release) -> Result<()> {
    let folder = release.empty_folder("check-archive")?;
    let name = format!("floatgate-{}-x86_64-linux-musl", release.version);
    let archive = release.package(&format!("{name}.tar.gz"));
    said(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(&folder))?;
    let root = RootFolder::of(folder.join(name));
    confirm("archive, in an empty root", &root.review("/bin/floatgate")?, release)
}

/// The package for Debian beside a static shell: dpkg and its scripts, without systemd.
///
/// The libraries of the program `needs_libraries` are installed too.
fn check_deb_without_system(release: &Release, needs_libraries: Option<&Path>) -> Result<()> {
    let root = RootFolder::of(release.empty_folder("check-deb")?);
    root.add_shell()?;
    if let Some(program) = needs_libraries {
        root.add_libraries_of(program)?;
    }
    let database = root.path().join("var/lib/dpkg");
    for folder in ["info", "updates"] {
        fs::create_dir_all(database.join(folder)).context("making a database of packages")?;
    }
    fs::write(database.join("status"), "").context("making a database of packages")?;
    let dpkg = |args: &[&str]| {
        let option = format!("--root={}", root.path().display());
        said(Command::new("dpkg").arg(option).args(["--force-not-root", "--no-pager"]).args(args))
    };
    let package = release.package(&deb::file_name(release)).display().to_string();
    dpkg(&["--install", &package])?;
    let changed = dpkg(&["--verify", "floatgate"])?;
    ensure!(changed.is_empty(), "installed files differ from the packed ones: {changed}");
    confirm(".deb, beside a shell", &root.review("/usr/bin/floatgate")?, release)?;
    dpkg(&["--remove", "floatgate"])?;
    let configuration = root.path().join(installation::CONFIGURATION);
    ensure!(configuration.exists(), "removing the package removes its configuration");
    dpkg(&["--purge", "floatgate"])?;
    ensure!(!configuration.exists(), "purging the package leaves its configuration");
    ensure!(!root.path().join(installation::DOCUMENTS).exists(), "purging leaves documents");
    Ok(())
}

/// The package in a Debian that has systemd: its user, its folder, its units, and a review by that
/// user.
fn check_deb_in_debian(release: &Release) -> Result<()> {
    let is_there = || succeeds("mmdebstrap", &["--version"]);
    let provided = is_there() || (may_install() && install(&["mmdebstrap"]) && is_there());
    if !(is_root() && provided) {
        bail!("a root of Debian needs root and mmdebstrap: apt-get install mmdebstrap");
    }
    let folder = release.empty_folder("check-debian")?;
    let path = folder.join("root").display().to_string();
    run("mmdebstrap", &["--quiet", "--variant=minbase", "--include=systemd", DEBIAN, &path], &[])?;
    let root = RootFolder::of(PathBuf::from(&path));
    let name = deb::file_name(release);
    copy(&release.package(&name), &root.path().join(&name))?;
    let shell = |script: &str| said(&mut root.command("/bin/sh", &["-ec", script]));
    shell(&format!("apt-get install --yes /{name}"))?;
    let owner = shell("stat --format '%U:%G %a' /var/lib/floatgate")?;
    ensure!(owner.trim() == "floatgate:floatgate 700", "/var/lib/floatgate is {owner}");
    shell("systemd-analyze verify --man=no /usr/lib/systemd/system/floatgate*")?;
    let version = root.review("/usr/bin/floatgate")?;
    confirm(".deb, in Debian with systemd", &version, release)?;
    // As its user, who may write to the folder of the drives and to nothing else.
    shell(
        "cd /var/lib/floatgate; setpriv --reuid=floatgate --regid=floatgate --clear-groups \
         floatgate volume create scratch --dies d0.img,d1.img,d2.img,d3.img --size 64M \
         --protect 3+1",
    )?;
    shell("apt-get purge --yes floatgate; test -e /var/lib/floatgate/scratch")?;
    Ok(())
}

/// The image, unpacked as a container engine does it, with itself as the root.
fn check_image(release: &Release) -> Result<()> {
    let folder = release.empty_folder("check-image")?;
    let image = release.package(&image::file_name(release));
    said(Command::new("tar").arg("-xf").arg(image).arg("-C").arg(&folder))?;
    let read = |path: PathBuf| -> Result<Value> {
        let text = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("reading {}", path.display()))
    };
    let blob = |value: &Value| -> Result<PathBuf> {
        let digest = value["digest"].as_str().context("a blob has a digest")?;
        Ok(folder.join("blobs").join(digest.replace(':', "/")))
    };
    let manifest = read(blob(&read(folder.join("index.json"))?["manifests"][0])?)?;
    let configuration = read(blob(&manifest["config"])?)?;
    let root = folder.join("root");
    fs::create_dir(&root).context("making the root of the image")?;
    for layer in manifest["layers"].as_array().context("an image has layers")? {
        said(Command::new("tar").arg("-xf").arg(blob(layer)?).arg("-C").arg(&root))?;
    }
    let entry = configuration["config"]["Entrypoint"][0].as_str();
    let entry = entry.context("the image has an entry point")?;
    confirm("image, in its own root", &RootFolder::of(root).review(entry)?, release)
}

/// The wheel in a new virtual environment.
fn check_wheel(release: &Release) -> Result<()> {
    let folder = release.empty_folder("check-wheel")?;
    let wheel = wheel_in(&release.packages)?;
    let name = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    ensure!(name.contains("manylinux"), "{name} is not for all Linux systems");
    let bytes = wheel.metadata().context("reading the size of the wheel")?.len();
    ensure!(bytes <= WHEEL_BYTES_MAX, "{name} has {bytes} bytes, over {WHEEL_BYTES_MAX}");
    said(Command::new("python3").args(["-m", "venv"]).arg(folder.join("environment")))?;
    let python = folder.join("environment/bin/python");
    let run =
        |args: &[&str]| said(Command::new(&python).args(args).current_dir(&folder).env_clear());
    run(&["-m", "pip", "install", "--no-index", "--quiet", &wheel.display().to_string()])?;
    confirm("wheel, in a fresh environment", run(&["-c", REVIEW_IN_PYTHON])?.trim(), release)
}

/// The bill of materials by the schema of `CycloneDX`.
fn check_bill(release: &Release) -> Result<()> {
    let folder = release.target.join("packing-validator");
    let validator = "cyclonedx-python-lib[json-validation]";
    let programs = environment_of(&folder, &[validator])?;
    let bill = release.package(&format!("floatgate-{}.cdx.json", release.version));
    let script = "\
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
fault = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read())
sys.exit(f'{fault!r}' if fault else 0)
";
    said(Command::new(programs.join("python")).args(["-c", script]).arg(&bill))
        .context("the bill of materials does not conform to the schema of CycloneDX")?;
    println!("bill of materials: valid CycloneDX 1.5");
    Ok(())
}
