//! The documents as the chapters of a book: their order, and links that hold on a site.
//!
//! The order is that of README. Links to Rust sources lead to rustdoc's pages of them, and other
//! files are copied as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};

use super::files_of;
use xtask::files::{copy, make_folder_of, normal, remove_folder};
use xtask::root;

/// Documents beside `docs/`.
const DOCUMENTS: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
/// Parts of the book: heading, and the documents in it; a folder stands for all that it holds.
const PARTS: [(&str, &[&str]); 5] = [
    ("Guides", &["docs/guide/"]),
    ("Reference", &["docs/reference/", "docs/glossary.md"]),
    (
        "Why to believe the numbers",
        &[
            "docs/internals/README.md",
            "docs/internals/validation.md",
            "docs/internals/steady-state.md",
            "docs/internals/time-lapse.md",
            "docs/internals/sampling.md",
            "docs/internals/applications.md",
            "docs/sources.md",
        ],
    ),
    ("How it works", &["ARCHITECTURE.md", "docs/internals/"]),
    ("Taking part", &["CONTRIBUTING.md", "docs/style.md", "CHANGELOG.md"]),
];
/// Text of the page that leads to the API documentation.
const INTERFACES: &str = "\
# Programming interfaces

| language | pages | begin with |
|---|---|---|
| Python | [floatgate](api/python/floatgate.html) \
| [Use Floatgate from Python](docs/guide/use-from-python.md) |
| Rust, modelled drives | [ssd](api/rust/ssd/index.html) | the example on its first page |
| Rust, flash translation layer | [ftl](api/rust/ftl/index.html) | the example on its first page |
| Rust, drives that store data | [live](api/rust/live/index.html) | the example on its first page |
| Rust, loads | [workload](api/rust/workload/index.html) \
| [Write a workload](docs/guide/write-a-workload.md) |
| Rust, runs and fits \
| [lab](api/rust/lab/index.html), [study](api/rust/study/index.html), \
[results](api/rust/results/index.html), \
[report](api/rust/report/index.html) \
| [Architecture](ARCHITECTURE.md) |
| Rust, serving \
| [device](api/rust/device/index.html), [export](api/rust/export/index.html), \
[status](api/rust/status/index.html), [server](api/rust/server/index.html) \
| [Architecture](ARCHITECTURE.md) |
| Rust, the words of all of them | [blockio](api/rust/blockio/index.html) | |
";
const BOOK: &str = "\
[book]
title = \"Floatgate\"
description = \"Measure, model, predict and serve flash storage\"
language = \"en\"

[build]
create-missing = false
use-default-preprocessors = false

[output.html]
default-theme = \"light\"
preferred-dark-theme = \"navy\"
additional-css = [\"site.css\"]
no-section-label = true
input-404 = \"\"

[output.html.print]
enable = false

[output.html.search]
limit-results = 30
";
/// Chapter that leads to the atlas.
const GALLERY: &str = "\
# Gallery

[The atlas](atlas/index.html) has every drive of the catalogue: one table to sort and filter, a \
review of each, comparisons of up to five. `floatgate atlas` makes such pages of your own runs.

[Validation](docs/internals/validation.md) and [its charts](docs/gallery/validation.html) set \
each figure of the models beside the published one.
";
/// Additional style of the documents: wide tables scroll.
const STYLE: &str = include_str!("site.css");

/// A book for mdBook.
#[derive(Debug)]
pub(super) struct Book {
    /// Text of each chapter by its path in the book.
    chapters: BTreeMap<PathBuf, String>,
    /// Files that chapters link to, by their paths in the book.
    files: BTreeMap<PathBuf, PathBuf>,
    summary: String,
}

impl Book {
    /// The documents of the repository.
    pub(super) fn of_documents() -> Result<Self> {
        let mut sources: Vec<PathBuf> = DOCUMENTS.map(|it| root().join(it)).to_vec();
        sources.extend(files_of(&root().join("docs"), "md")?);
        let mut texts = BTreeMap::new();
        for source in sources {
            let path = source.strip_prefix(root()).expect("it is in the repository").to_owned();
            let text = fs::read_to_string(&source)
                .with_context(|| format!("reading {}", source.display()))?;
            texts.insert(path, text);
        }
        let summary = summary(&texts);
        let (mut chapters, mut files) = (BTreeMap::new(), BTreeMap::new());
        for (path, text) in &texts {
            chapters.insert(in_book(path), relinked(path, text, &mut files));
        }
        chapters.insert("interfaces.md".into(), INTERFACES.to_owned());
        chapters.insert("gallery.md".into(), GALLERY.to_owned());
        let charts = PathBuf::from("docs/gallery/validation.html");
        files.insert(charts.clone(), root().join(charts));
        Ok(Self { chapters, files, summary })
    }

    /// Writes the book as mdBook reads it.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        remove_folder(folder)?;
        let write = |path: PathBuf, text: &str| {
            make_folder_of(&path)?;
            fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
        };
        write(folder.join("book.toml"), BOOK)?;
        write(folder.join("site.css"), STYLE)?;
        write(folder.join("src/SUMMARY.md"), &self.summary)?;
        for (path, text) in &self.chapters {
            write(folder.join("src").join(path), text)?;
        }
        for (path, source) in &self.files {
            copy(source, &folder.join("src").join(path))?;
        }
        Ok(())
    }
}

/// The table of contents.
fn summary(texts: &BTreeMap<PathBuf, String>) -> String {
    let mut summary = String::from("# Summary\n\n[Floatgate](index.md)\n\n");
    summary += "- [Ten minutes with Floatgate](docs/start.md)\n- [Gallery](gallery.md)\n";
    summary += "- [Programming interfaces](interfaces.md)\n";
    let mut listed = vec![PathBuf::from("README.md"), PathBuf::from("docs/start.md")];
    let order = &texts[Path::new("README.md")];
    for (heading, members) in PARTS {
        let _ = write!(summary, "\n# {heading}\n\n");
        for member in members {
            let mut paths: Vec<&PathBuf> = texts
                .keys()
                .filter(|path| path.to_string_lossy().starts_with(member) && !listed.contains(path))
                .collect();
            // The order of README; documents that it does not name come last.
            let place = |path: &Path| order.find(&format!("({}", path.display()));
            paths.sort_by_key(|path| (place(path).unwrap_or(usize::MAX), (*path).clone()));
            for path in paths.into_iter().cloned().collect::<Vec<_>>() {
                let title = title(&texts[&path]);
                let _ = writeln!(summary, "- [{title}]({})", in_book(&path).display());
                listed.push(path);
            }
        }
    }
    summary
}

/// Heading of a document, without marks of code.
fn title(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim_start_matches("# ").replace('`', "")
}

/// Path of a document in the book.
fn in_book(path: &Path) -> PathBuf {
    if path.ends_with("README.md") { path.with_file_name("index.md") } else { path.to_owned() }
}

/// A document with links that hold in the book; the files that they lead to are added to `files`.
fn relinked(path: &Path, text: &str, files: &mut BTreeMap<PathBuf, PathBuf>) -> String {
    let mut is_code = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        if is_code || !line.contains("](") {
            lines.push(line.to_owned());
            continue;
        }
        let mut parts = line.split("](");
        let mut changed = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (target, rest) = part.split_once(')').unwrap_or((part, ""));
            let _ = write!(changed, "]({}){rest}", link(path, target, files));
        }
        lines.push(changed);
    }
    lines.join("\n") + "\n"
}

/// A link of the document `from` as it is in the book.
fn link(from: &Path, target: &str, files: &mut BTreeMap<PathBuf, PathBuf>) -> String {
    if target.contains("://") || target.starts_with('#') || target.starts_with("mailto:") {
        return target.to_owned();
    }
    let (file, fragment) = target.split_once('#').unwrap_or((target, ""));
    let fragment = if fragment.is_empty() { String::new() } else { format!("#{fragment}") };
    let folder = from.parent().expect("a document lies in the repository");
    let to = normal(&folder.join(file));
    let up = "../".repeat(folder.components().count());
    let is_chapter = to.starts_with("docs") || DOCUMENTS.iter().any(|it| to == Path::new(it));
    if is_chapter && to.extension().is_some_and(|it| it == "md") {
        return format!("{up}{}{fragment}", in_book(&to).display());
    }
    if let Some(page) = page_of_source(&to) {
        return format!("{up}api/rust/src/{page}");
    }
    let source = root().join(&to);
    if source.is_dir() {
        // README describes the folders of the repository.
        return format!("{up}{}", in_book(Path::new("README.md")).display());
    }
    // A browser shows text, and downloads files of unknown types. mdBook takes any file whose name
    // begins with that of a document for a page.
    let is_shown = ["html", "png", "svg"].iter().any(|it| to.extension() == Some(it.as_ref()));
    let is_document = to.extension().is_some_and(|it| it == "md");
    let name = match (is_shown, is_document) {
        (true, _) => to.clone(),
        (false, true) => to.with_extension("txt"),
        (false, false) => PathBuf::from(format!("{}.txt", to.display())),
    };
    files.insert(name.clone(), source);
    format!("{up}{}", name.display())
}

/// The page that rustdoc makes of a source.
fn page_of_source(path: &Path) -> Option<String> {
    let mut parts = path.strip_prefix("crates").ok()?.components();
    let Component::Normal(name) = parts.next()? else { return None };
    let inside = parts.as_path().strip_prefix("src").ok()?;
    let is_source = inside.extension().is_some_and(|it| it == "rs");
    is_source.then(|| format!("{}/{}.html", name.to_string_lossy(), inside.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_pages_of_documents_sources_and_files() {
        let mut files = BTreeMap::new();
        let mut linked = |target: &str| link(Path::new("docs/guide/x.md"), target, &mut files);
        assert_eq!(linked("../internals/README.md#what"), "../../docs/internals/index.md#what");
        assert_eq!(linked("https://example.org/a.md"), "https://example.org/a.md");
        assert_eq!(linked("#here"), "#here");
        assert_eq!(
            linked("../../crates/live/src/medium/ring.rs"),
            "../../api/rust/src/live/medium/ring.rs.html"
        );
        assert_eq!(linked("../../contrib/floatgate.toml"), "../../contrib/floatgate.toml.txt");
        assert!(files.contains_key(Path::new("contrib/floatgate.toml.txt")));
    }

    #[test]
    fn every_document_is_in_the_table_of_contents_once() {
        let book = Book::of_documents().unwrap();
        for path in book.chapters.keys().filter(|path| !path.ends_with("index.md")) {
            let link = format!("]({})", path.display());
            assert_eq!(book.summary.matches(&link).count(), 1, "{}", path.display());
        }
    }
}
