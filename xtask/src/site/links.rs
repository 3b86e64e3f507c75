//! Checks of a site: every link between its pages leads to a file of the site, and to an anchor in
//! it; no page loads anything from another site.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use html5gum::{Token, Tokenizer};
use percent_encoding::percent_decode_str;

use super::files_of;
use xtask::files::normal;

/// Maximum number of faults in the message.
const FAULTS_MAX: usize = 40;

/// Beginning of the pages that rustdoc writes.
const RUSTDOC: &str = "api/rust/";

/// Links that rustdoc copies from the documentation of other crates, with a blanket implementation
/// of one of their traits, onto the pages of our types. There they lead nowhere.
const OF_DEPENDENCIES: [&str; 1] = ["dispatcher#setting-the-default-subscriber"];

/// Folder of the lists of a trait's implementations in other crates. The page of a trait loads its
/// list though rustdoc writes none for a trait that is re-exported and implemented nowhere else.
const IMPLEMENTATIONS: &str = "trait.impl/";

/// Links and places of a page.
#[derive(Debug, Default)]
struct Page {
    /// Targets of links to other pages.
    links: Vec<String>,
    /// Files that the page loads: scripts, styles, pictures.
    parts: Vec<String>,
    /// Names that links may lead to.
    places: BTreeSet<String>,
}

/// Checks the links of every page below `site`, apart from those that begin, from the root of the
/// site, with one of `left_out`. Returns the number of pages.
///
/// # Errors
/// Lists links that lead nowhere, and parts of pages that come from elsewhere.
pub(super) fn check(site: &Path, left_out: &[&str]) -> Result<usize> {
    let mut pages = BTreeMap::new();
    for path in files_of(site, "html")? {
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        pages.insert(path.strip_prefix(site).expect("below the site").to_owned(), read(&text));
    }
    let mut faults = Vec::new();
    for (path, page) in &pages {
        for part in &page.parts {
            if is_elsewhere(part) && !part.starts_with("data:") {
                faults.push(format!("{}: {part} comes from elsewhere", path.display()));
            }
        }
        let is_of_rustdoc = path.starts_with(RUSTDOC);
        for link in page.links.iter().chain(&page.parts).filter(|link| !is_elsewhere(link)) {
            if is_of_rustdoc && is_left_out_by_rustdoc(link) {
                continue;
            }
            let (to, place) = resolved(path, link);
            let shown = to.to_string_lossy().into_owned();
            if left_out.iter().any(|beginning| shown.starts_with(beginning)) {
                continue;
            }
            if let Some(fault) = fault(site, &pages, &to, &place) {
                faults.push(format!("{}: {link}: {fault}", path.display()));
            }
        }
    }
    if !faults.is_empty() {
        let count = faults.len();
        faults.truncate(FAULTS_MAX);
        bail!("{count} links lead nowhere:\n{}", faults.join("\n"));
    }
    Ok(pages.len())
}

/// Returns true if rustdoc writes this link without its target.
fn is_left_out_by_rustdoc(link: &str) -> bool {
    OF_DEPENDENCIES.contains(&link) || link.contains(IMPLEMENTATIONS)
}

/// Returns a link's fault, if it has one.
fn fault(site: &Path, pages: &BTreeMap<PathBuf, Page>, to: &Path, place: &str) -> Option<String> {
    let Some(page) = pages.get(to) else {
        let is_file = site.join(to).is_file();
        return (!is_file).then(|| "there is no such file".to_owned());
    };
    // Lines of sources, and what scripts of the page make of a fragment.
    let is_made = place.starts_with(|it: char| it.is_ascii_digit()) || place.contains('=');
    let is_there = place.is_empty() || is_made || page.places.contains(place);
    (!is_there).then(|| "the page has no such place".to_owned())
}

/// Reads what a page links to and has.
fn read(text: &str) -> Page {
    let mut page = Page::default();
    let mut in_script = false;
    for Ok(token) in Tokenizer::new(text) {
        let tag = match token {
            Token::StartTag(tag) if !in_script => tag,
            Token::EndTag(tag) => {
                in_script &= *tag.name != *b"script";
                continue;
            }
            _ => continue,
        };
        let name = String::from_utf8_lossy(&tag.name).into_owned();
        in_script = name == "script";
        let value = |key: &str| {
            let value = tag.attributes.get(key.as_bytes())?;
            Some(String::from_utf8_lossy(value).into_owned())
        };
        // rustdoc encodes names as links do.
        let id = value("id");
        page.places.extend(id.as_deref().map(plain));
        page.places.extend(id);
        page.places.extend(value("name").filter(|_| name == "a"));
        match name.as_str() {
            "a" | "area" => page.links.extend(value("href")),
            "link" => page.parts.extend(value("href")),
            _ => page.parts.extend(value("src")),
        }
    }
    page
}

/// Returns true if a link leads to another site, or is data itself.
fn is_elsewhere(link: &str) -> bool {
    let scheme = link.split(['/', '#', '?']).next().unwrap_or_default();
    link.starts_with("//") || scheme.contains(':')
}

/// A text without percent-encoding.
fn plain(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// The file and the place in it that a link of `page` leads to.
fn resolved(page: &Path, link: &str) -> (PathBuf, String) {
    let (file, place) = link.split_once('#').unwrap_or((link, ""));
    let file = file.split('?').next().unwrap_or_default();
    let (file, place) = (plain(file), plain(place));
    if file.is_empty() {
        return (page.to_owned(), place);
    }
    let mut whole = normal(&page.parent().map(|folder| folder.join(&file)).unwrap_or_default());
    if file.ends_with('/') || file == "." || file == ".." {
        whole.push("index.html");
    }
    (whole, place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults_of(pages: &[(&str, &str)]) -> String {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in pages {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        check(folder.path(), &["left-out/"])
            .map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn links_to_pages_places_and_folders_resolve() {
        let page = "<a href='b/c.html#x%20y'></a><a href='b/'></a><a href='#top'></a>\
                    <p id=top></p><a href='https://example.org'></a><a href='left-out/gone.html'></a>\
                    <a href='#impl-A%3CT%3E'></a><p id='impl-A%3CT%3E'></p>\
                    <script>'<a href=\"gone\">'</script>";
        let others = [("b/c.html", "<p id='x y'><a href='../a.html'></a>"), ("b/index.html", "")];
        assert_eq!(faults_of(&[("a.html", page), others[0], others[1]]), "");
    }

    #[test]
    fn links_that_rustdoc_leaves_without_a_target_count_on_its_pages_alone() {
        let page = "<a href='dispatcher#setting-the-default-subscriber'></a>\
                    <script src='../trait.impl/a/trait.B.js'></script>";
        assert_eq!(faults_of(&[("api/rust/a/trait.B.html", page)]), "");
        assert!(faults_of(&[("a.html", page)]).starts_with("2 links lead nowhere"));
        let own = faults_of(&[("api/rust/a/trait.B.html", "<a href='#gone'></a>")]);
        assert!(own.starts_with("1 links lead nowhere"), "{own}");
    }

    #[test]
    fn what_leads_nowhere_or_comes_from_elsewhere_is_told() {
        let page = "<a href='gone.html'></a><a href='#gone'></a>\
                    <script src='https://cdn.example.org/x.js'></script><img src='gone.png'>";
        let faults = faults_of(&[("a.html", page)]);
        assert!(faults.starts_with("4 links lead nowhere"), "{faults}");
        assert!(faults.contains("https://cdn.example.org/x.js comes from elsewhere"), "{faults}");
    }
}
