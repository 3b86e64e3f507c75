//! The crates that a package links: a software bill of materials (`CycloneDX` 1.5), and the texts
//! of their licences.
//!
//! cargo says which crates are linked for the target. Their licences are the files that they come
//! with, checksums are those of `Cargo.lock`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use super::release::Release;
use xtask::program::said;

/// Texts of the licences for crates that come without a file of them.
const MIT: &str = include_str!("../../licences/MIT.txt");
const APACHE: &str = include_str!("../../../LICENSE");
/// Licence of the C library of static binaries.
const MUSL: &str = include_str!("../../licences/musl.txt");
/// Beginnings of the names of files that hold licences.
const FILES: [&str; 6] = ["LICENSE", "LICENCE", "COPYRIGHT", "NOTICE", "UNLICENSE", "PATENTS"];
/// Folders of a crate that are looked through for licences of what it contains.
const DEPTH_MAX: u32 = 2;

/// Crates that one of our packages links.
#[derive(Debug)]
pub(super) struct Inventory {
    /// Our package.
    package: String,
    version: &'static str,
    target: &'static str,
    /// Seconds since 1970.
    epoch: String,
    /// Version of Rust's library.
    rust: String,
    /// Folder of the documents that Rust has about the licences of its library.
    rust_documents: PathBuf,
    /// Ours and others', ordered by name and version.
    crates: Vec<Crate>,
    /// SHA-256 of crates, by name and version.
    checksums: BTreeMap<(String, String), String>,
}

/// A crate, as `cargo metadata` describes it.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Crate {
    name: String,
    version: String,
    id: String,
    license: Option<String>,
    description: Option<String>,
    repository: Option<String>,
    authors: Vec<String>,
    source: Option<String>,
    manifest_path: PathBuf,
    /// Identifiers of the crates that it links itself.
    #[serde(skip)]
    links: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Crate>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    dependencies: Vec<String>,
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<LockedPackage>,
}

#[derive(Deserialize)]
struct LockedPackage {
    name: String,
    version: String,
    checksum: Option<String>,
}

impl Inventory {
    /// The inventory of what `package` links for `target`.
    pub(super) fn of(package: &str, target: &'static str, release: &Release) -> Result<Self> {
        let linked = linked(package, target, release)?;
        let metadata = ["metadata", "--format-version", "1", "--locked", "--filter-platform"];
        let metadata = cargo(release, &[&metadata[..], &[target]].concat())?;
        let metadata: Metadata =
            serde_json::from_str(&metadata).context("reading what cargo metadata prints")?;
        let is_linked = |it: &Crate| linked.contains(&(it.name.clone(), it.version.clone()));
        let mut crates: Vec<Crate> = metadata.packages.into_iter().filter(is_linked).collect();
        crates.sort();
        let ids: BTreeSet<String> = crates.iter().map(|it| it.id.clone()).collect();
        for node in metadata.resolve.nodes {
            let Some(of) = crates.iter_mut().find(|it| it.id == node.id) else { continue };
            of.links = node.dependencies.into_iter().filter(|id| ids.contains(id)).collect();
        }
        let lock = fs::read_to_string(release.sources.join("Cargo.lock"));
        let lock: Lock = toml::from_str(&lock.context("reading Cargo.lock")?)?;
        let checksums = lock.package.into_iter();
        let checksums = checksums.filter_map(|it| Some(((it.name, it.version), it.checksum?)));
        let rustc =
            |args: &[&str]| said(Command::new("rustc").args(args).current_dir(&release.sources));
        let rust = rustc(&["--version"])?.split(' ').nth(1).unwrap_or_default().to_owned();
        let sysroot = PathBuf::from(rustc(&["--print", "sysroot"])?.trim());
        Ok(Self {
            package: package.to_owned(),
            version: release.version,
            target,
            epoch: release.epoch.clone(),
            rust,
            rust_documents: sysroot.join("share/doc/rust"),
            crates,
            checksums: checksums.collect(),
        })
    }

    /// Writes the bill of materials and the licences beside each other.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join(format!("floatgate-{}.cdx.json", self.version));
        let text = serde_json::to_string_pretty(&self.bill())? + "\n";
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        Ok(())
    }

    /// Writes the licences of everything that is linked into `folder`.
    pub(super) fn write_licences(&self, folder: &Path) -> Result<()> {
        let path = folder.join("THIRD-PARTY-LICENSES.txt");
        fs::write(&path, self.licences()?)
            .with_context(|| format!("writing {}", path.display()))?;
        // Authors and licences of each file of Rust's library.
        let of_rust = self.rust_documents.join("COPYRIGHT-library.html");
        if of_rust.exists() {
            fs::copy(&of_rust, folder.join("RUST-LIBRARY-COPYRIGHT.html"))
                .with_context(|| format!("copying {}", of_rust.display()))?;
        }
        Ok(())
    }

    /// The bill of materials.
    fn bill(&self) -> Value {
        let (main, others): (Vec<&Crate>, Vec<&Crate>) =
            self.crates.iter().partition(|it| it.name == self.package);
        let mut components: Vec<Value> = others.iter().map(|it| self.component(it)).collect();
        components.push(json!({
            "type": "library", "bom-ref": "rust-std", "name": "rust-std", "version": self.rust,
            "description": "The standard library of Rust", "scope": "required",
            "licenses": [{"expression": "MIT OR Apache-2.0"}],
            "purl": format!("pkg:generic/rust-std@{}", self.rust),
        }));
        let dependencies: Vec<Value> = self
            .crates
            .iter()
            .map(|it| json!({"ref": reference(it), "dependsOn": self.references(&it.links)}))
            .collect();
        json!({
            "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
            "metadata": {
                "timestamp": timestamp(&self.epoch),
                "component": main.first().map(|it| {
                    let mut component = self.component(it);
                    component["type"] = json!("application");
                    component["name"] = json!("floatgate");
                    component
                }),
                "properties": [{"name": "floatgate:target", "value": self.target}],
            },
            "components": components,
            "dependencies": dependencies,
        })
    }

    fn component(&self, of: &Crate) -> Value {
        let mut component = json!({
            "type": "library", "bom-ref": reference(of), "name": of.name, "version": of.version,
            "scope": "required",
        });
        if let Some(purl) = purl(of) {
            component["purl"] = json!(purl);
        }
        if let Some(description) = &of.description {
            component["description"] = json!(description.trim());
        }
        if let Some(licence) = &of.license {
            // Older crates have a slash in place of OR.
            component["licenses"] = json!([{"expression": licence.replace('/', " OR ")}]);
        }
        if let Some(sum) = self.checksums.get(&(of.name.clone(), of.version.clone())) {
            component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
        }
        if let Some(repository) = &of.repository {
            component["externalReferences"] = json!([{"type": "vcs", "url": repository}]);
        }
        component
    }

    fn references(&self, ids: &[String]) -> Vec<String> {
        self.crates.iter().filter(|it| ids.contains(&it.id)).map(reference).collect()
    }

    /// The texts of the licences, each once, with the crates that have it.
    fn licences(&self) -> Result<String> {
        let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for of in self.crates.iter().filter(|it| it.source.is_some()) {
            let folder = of.manifest_path.parent().expect("a manifest lies in a folder");
            let mut found = Vec::new();
            find(folder, 0, &mut found)?;
            if found.is_empty() {
                found.push((String::new(), without_file(of)?));
            }
            for (file, text) in found {
                texts.entry(text).or_default().push(format!("{} {}{file}", of.name, of.version));
            }
        }
        if self.target == super::compiler::MUSL {
            texts.entry(MUSL.to_owned()).or_default().push("musl, the C library".to_owned());
        }
        let mut ordered: Vec<(Vec<String>, String)> =
            texts.into_iter().map(|(text, of)| (of, text)).collect();
        ordered.sort();
        let mut licences = String::from(
            "Floatgate contains the libraries below, under these licences. RUST-LIBRARY-COPYRIGHT\
             .html has those\nof the standard library of Rust, which is under MIT OR Apache-2.0.\n",
        );
        for (of, text) in ordered {
            let line = "=".repeat(100);
            let _ = write!(licences, "\n{line}\n{}\n{line}\n\n{}\n", of.join("\n"), text.trim());
        }
        Ok(licences)
    }
}

/// Names and versions of the crates that are linked: no tools of the build, no tests.
fn linked(package: &str, target: &str, release: &Release) -> Result<BTreeSet<(String, String)>> {
    let tree = ["tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}"];
    let tree = cargo(release, &[&tree[..], &["--package", package, "--target", target]].concat())?;
    let crates = tree.lines().filter_map(|line| {
        let (name, version) = line.split_once(" v")?;
        Some((name.to_owned(), version.split(' ').next()?.to_owned()))
    });
    Ok(crates.collect())
}

fn cargo(release: &Release, args: &[&str]) -> Result<String> {
    said(Command::new("cargo").args(args).current_dir(&release.sources))
}

/// Finds files of licences in a folder and those below it: paths, after a colon, and texts.
fn find(folder: &Path, depth: u32, found: &mut Vec<(String, String)>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let name_of =
        |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
    let begins = |path: &Path| FILES.iter().any(|it| name_of(path).starts_with(it));
    // COPYING beside another licence is the one that was not chosen: that of zstd is the GPL.
    let is_alone = !paths.iter().any(|path| begins(path));
    for path in paths {
        let name = name_of(&path);
        let is_licence = begins(&path) || is_alone && name.starts_with("COPYING");
        if path.is_file()
            && is_licence
            && path.extension().is_none_or(|it| !it.eq_ignore_ascii_case("rs"))
        {
            let text = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
            let text = String::from_utf8_lossy(&text).replace('\r', "");
            let shown = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            found.push((format!(": {shown}"), text));
        } else if path.is_dir() && (is_licence || depth < DEPTH_MAX) {
            find(&path, depth + 1, found)?;
        }
    }
    Ok(())
}

/// The licence of a crate that comes without a file of it.
fn without_file(of: &Crate) -> Result<String> {
    match of.license.as_deref() {
        Some("MIT") => Ok(format!("Copyright (c) {}\n\n{MIT}", of.authors.join(", "))),
        Some("Apache-2.0") => Ok(APACHE.to_owned()),
        license => {
            let Crate { name, version, .. } = of;
            bail!("{name} {version} comes without the text of its licence {license:?}: add it here")
        }
    }
}

/// Package URL of a crate; absent for the project's own, which are in no registry.
fn purl(of: &Crate) -> Option<String> {
    of.source.as_ref()?;
    Some(format!("pkg:cargo/{}@{}", of.name, of.version.replace('+', "%2B")))
}

/// Name of a crate within the bill.
fn reference(of: &Crate) -> String {
    purl(of).unwrap_or_else(|| format!("floatgate/{}@{}", of.name, of.version))
}

/// A time in seconds since 1970 as a date and a time of day, in UTC.
fn timestamp(epoch: &str) -> Option<String> {
    let time = chrono::DateTime::from_timestamp(epoch.parse().ok()?, 0)?;
    Some(time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true))
}
