//! Checks in a browser, at the widths of a telephone, a tablet and a desktop screen.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use xtask::program::{said, succeeds};

/// Widths of windows, in pixels.
const WIDTHS: [u32; 3] = [390, 820, 1440];
/// Pages that have everything: text, code, wide tables, the atlas, interfaces.
const PAGES: [&str; 11] = [
    "index.html",
    "gallery.html",
    "atlas/index.html",
    "interfaces.html",
    "docs/start.html",
    "docs/guide/test-a-real-drive.html",
    "docs/reference/drive.html",
    "docs/internals/index.html",
    "docs/internals/validation.html",
    "api/rust/ssd/index.html",
    "api/python/floatgate.html",
];
/// A word to search for, and the beginning of the address of a page that must be found.
const SEARCH: (&str, &str) = ("preconditioning", "docs/");
/// Names of the browser's program.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Measures by how much a page is wider than its window, and names the elements that overflow.
const MEASURE: &str = "<script>addEventListener('load', () => {
  const root = document.documentElement, wide = root.scrollWidth - root.clientWidth;
  const out = [...document.querySelectorAll('main *')].filter(it => !it.closest('table, pre') &&
    it.getBoundingClientRect().right > root.clientWidth + 1).map(it => it.tagName).slice(0, 5);
  root.dataset.wide = wide; root.dataset.window = root.clientWidth; root.dataset.out = out.join();
});</script>";

/// Opens pages at each width, checks that none is wider than its window and that the search finds
/// something, and writes screenshots to `pictures`.
///
/// # Errors
/// Fails if there is no browser, or a page is not as it should be.
pub(super) fn look(site: &Path, pictures: &Path) -> Result<()> {
    let browser = BROWSERS.into_iter().find(|it| succeeds(it, &["--version"]));
    let browser = browser.context("a browser is missing: apt-get install chromium")?;
    fs::create_dir_all(pictures).context("making the folder of the pictures")?;
    let profile = pictures.join("profile");
    let open = |width: u32, options: &[String], page: &str| {
        let mut command = Command::new(browser);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"]);
        command.args(["--no-first-run", "--disable-background-networking", "--hide-scrollbars"]);
        command.args(["--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]);
        command.arg(format!("--user-data-dir={}", profile.display()));
        command.arg("--virtual-time-budget=5000").arg(format!("--window-size={width},1000"));
        said(command.args(options).arg(format!("file://{}/{page}", site.display())))
    };
    for page in PAGES {
        let text =
            fs::read_to_string(site.join(page)).with_context(|| format!("reading {page}"))?;
        // Beside the page, so that its links hold.
        let measured = page.replace(".html", ".measured.html");
        fs::write(site.join(&measured), text.replace("</body>", &format!("{MEASURE}</body>")))?;
        for width in WIDTHS {
            let name = format!("{}-{width}.png", page.replace('/', "-").replace(".html", ""));
            let picture = format!("--screenshot={}", pictures.join(name).display());
            open(width, &[picture], page)?;
            let seen = open(width, &["--dump-dom".to_owned()], &measured)?;
            let value = |key: &str| {
                let (_, rest) = seen.split_once(&format!("data-{key}=\""))?;
                rest.split_once('"').map(|(value, _)| value.to_owned())
            };
            let wide = value("wide").with_context(|| format!("{page} was not measured"))?;
            if wide != "0" {
                bail!("{page} is {wide} pixels wider than {width}: {:?}", value("out"));
            }
        }
        fs::remove_file(site.join(&measured))?;
    }
    let (word, page) = SEARCH;
    let found = open(WIDTHS[2], &["--dump-dom".to_owned()], &format!("index.html?search={word}"))?;
    let (_, results) = found.split_once("id=\"mdbook-searchresults\"").unwrap_or_default();
    ensure!(results.contains(page), "the search finds nothing for {word}");
    println!("screenshots at {WIDTHS:?} pixels are in {}", pictures.display());
    Ok(())
}
