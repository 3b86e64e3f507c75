//! The page in a real browser: what its script makes of it, and that its policy lets it.

#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "a browser has a clock")]

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use results::{Run, Step, Warning, WarningKind};
use serde_json::Value;
use tempfile::TempDir;

use super::TITLE;
use crate::example::{STOCK, review_of_two, run};
use crate::review;

/// Names that the browser may go by.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Time limit for the browser, generous for a machine under load.
const PATIENCE: Duration = Duration::from_mins(3);

/// Runs before the page's own scripts: notes faults, unfolds every chart and has all in view at
/// once, because a browser without a window draws no frames in which one could come into view.
const BEFORE: &str = "<script>window.faults = [];\
    addEventListener('error', (event) => faults.push(event.message));\
    addEventListener('unhandledrejection', (event) => faults.push(String(event.reason)));\
    window.IntersectionObserver = class { constructor(seen) { this.seen = seen; }\
    observe(target) { const fold = target.closest('details.more'); if (fold) fold.open = true;\
    queueMicrotask(() => this.seen([{ isIntersecting: true, target }])); }\
    unobserve() {} };</script>";
/// Begins what the driver leaves.
const SEEN: &str = "<pre id=\"seen\">";
/// Most attempts to open the page until the driver runs to its end.
const ATTEMPTS: u32 = 4;
const DRIVER: &str = concat!(include_str!("layout.js"), include_str!("browser.js"));

/// A browser and its children, ended when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            let group = format!("-{}", self.0.id());
            let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
            let _ = self.0.wait();
        }
    }
}

#[expect(clippy::print_stderr, reason = "a skipped test says why")]
fn browser() -> Option<&'static str> {
    let runs = |name: &&str| {
        let output = Command::new(name).arg("--version").output();
        output.is_ok_and(|output| output.status.success())
    };
    let found = BROWSERS.into_iter().find(|name| runs(name));
    if found.is_none() {
        eprintln!("skipped: chromium is not installed");
    }
    found
}

/// Opens `page` in the browser. Returns the resulting DOM, and the log of the browser.
fn opened(browser: &str, page: &str) -> (String, String) {
    let folder = TempDir::new().unwrap();
    run_in(folder.path(), browser, page, "--dump-dom")
}

/// Sheets of paper that `page` takes in print; absent without a browser.
pub(super) fn sheets_of_paper(page: &str) -> Option<usize> {
    let folder = TempDir::new().unwrap();
    let print = format!("--print-to-pdf={}", folder.path().join("page.pdf").display());
    let (_, said) = run_in(folder.path(), browser()?, page, &print);
    let pdf = fs::read(folder.path().join("page.pdf")).expect(&said);
    let count = |of: &[u8]| pdf.windows(of.len()).filter(|it| *it == of).count();
    // The tree of pages is of the type that begins likewise.
    Some(count(b"/Type /Page") - count(b"/Type /Pages"))
}

/// Does with `page` as `what` tells the browser. Returns its output and its log.
fn run_in(folder: &Path, browser: &str, page: &str, what: &str) -> (String, String) {
    let (html, dom, said) = (folder.join("page.html"), folder.join("dom"), folder.join("said"));
    fs::write(&html, page).unwrap();
    let child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--enable-logging=stderr", "--disable-dev-shm-usage"])
        .args(["--virtual-time-budget=20000", "--window-size=1300,2000", what])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", html.display()))
        .stdin(Stdio::null())
        .stdout(File::create(&dom).unwrap())
        .stderr(File::create(&said).unwrap())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut running = Running(child);
    let began = Instant::now();
    while running.0.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < PATIENCE, "the browser did not end");
        thread::sleep(Duration::from_millis(50));
    }
    (fs::read_to_string(dom).unwrap(), fs::read_to_string(said).unwrap())
}

/// The page with `BEFORE` in place of its policy.
fn unguarded(page: &str) -> String {
    let from = page.find("<meta http-equiv").unwrap();
    let to = from + page[from..].find('>').unwrap() + 1;
    format!("{}{BEFORE}{}", &page[..from], &page[to..])
}

/// Returns what `driver` leaves after it used `page`; absent without a browser.
pub(super) fn driven_to_its_end(page: &str, driver: &str) -> Option<Value> {
    let browser = browser()?;
    let page = with_driver(page, driver);
    // Virtual time stands still for no thread in the background: on a machine that does much else
    // the browser may end while one still makes a picture.
    let (mut dom, mut said) = opened(browser, &page);
    for _ in 1..ATTEMPTS {
        if dom.contains(SEEN) {
            break;
        }
        (dom, said) = opened(browser, &page);
    }
    assert!(dom.contains(SEEN), "{said}");
    Some(seen(&dom))
}

fn with_driver(page: &str, driver: &str) -> String {
    let page = unguarded(page);
    let body = page.strip_suffix("</body></html>\n").unwrap();
    format!("{body}<script>{driver}</script></body></html>\n")
}

/// The driver, which measures the texts of `pages`, too.
fn driver(pages: &[(&str, String)]) -> String {
    let pages: Vec<(&str, String)> =
        pages.iter().map(|(name, page)| (*name, unguarded(page))).collect();
    // Only strings hold a `<`, and only there could it end the script.
    let pages = serde_json::to_string(&pages).unwrap().replace('<', "\\u003c");
    format!("const PAGES = {pages};{DRIVER}")
}

/// Pages whose texts are measured: one run with many warnings, a review, a comparison of drives
/// with long names and doubts, of which one is a real drive.
fn measured_pages() -> Vec<(&'static str, String)> {
    let mut warned = run(STOCK);
    let warning = |step: &Step| Warning {
        kind: WarningKind::NotPreconditioned,
        step: step.id.clone(),
        text: format!("{} wrote too little for a steady state", step.id),
        remedy: "precondition for longer".into(),
    };
    warned.warnings = warned.steps.iter().map(warning).collect();
    for step in &mut warned.steps {
        step.steady.iter_mut().for_each(|steady| steady.achieved = false);
        step.summary.iter_mut().for_each(|it| it.host_processor_us = Some(12.5));
    }
    let mut drives = review_of_two();
    drives[1].target.name = "another".into();
    drives[1].target.title = "Another Maker EnterpriseDrive 9000 Ultra 61.44 TB (QLC)".into();
    drives[1].target.host = "windows".into();
    drives.push(Run { seed: 7, ..warned.clone() });
    vec![
        ("one run", review(&[warned], TITLE)),
        ("review", review(&review_of_two(), TITLE)),
        ("comparison", review(&drives, TITLE)),
    ]
}

/// Returns the result that the driver left in the DOM.
fn seen(dom: &str) -> Value {
    let (_, rest) = dom.split_once(SEEN).expect("the driver came to its end");
    let (text, _) = rest.split_once("</pre>").unwrap();
    let plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&plain).unwrap()
}

#[test]
fn a_reader_can_hide_zoom_switch_and_save() {
    let page = review(&review_of_two(), TITLE);
    let Some(seen) = driven_to_its_end(&page, &driver(&measured_pages())) else { return };
    assert_eq!(seen["faults"], serde_json::json!([]), "{seen}");
    let layout = seen["layout"].as_array().unwrap();
    assert!(layout.is_empty(), "{} texts lie wrong: {layout:#?}", layout.len());
    assert_eq!(seen["texts"], true, "texts were found on every page at every width");
    assert_eq!(seen["figures"], seen["opened"], "every chart has its tools");
    assert!(seen["drawn"].as_u64().unwrap() > 30, "{}", seen["drawn"]);
    assert_eq!(seen["canvas"], true, "each canvas has a size");
    assert_eq!((&seen["hidden"], &seen["shown"]), (&"false".into(), &"true".into()));
    assert_eq!(seen["scale"], serde_json::json!([true, "ms"]));
    let tip = seen["tip"].as_str().unwrap();
    assert!(tip.contains("stock ") && tip.contains("high-performance "), "{tip}");

    // A PNG takes a while: it may be saved after what was asked for later.
    let saved = seen["saved"].as_array().unwrap();
    let of = |ending| -> Vec<&Value> {
        saved.iter().filter(|it| it["name"].as_str().unwrap().ends_with(ending)).collect()
    };
    let (tables, vectors, pictures) = (of(".csv"), of(".svg"), of(".png"));
    let counts = [&tables, &vectors, &pictures].map(Vec::len);
    assert_eq!(counts, [2; 3], "three of a line chart, three of a heat map: {saved:?}");
    let csv = tables[0]["text"].as_str().unwrap();
    assert!(csv.starts_with("series,protocol time h,Throughput IOPS\r\nstock,"), "{csv}");
    for svg in vectors {
        assert!(svg["text"].as_str().unwrap().starts_with("<svg viewBox="));
        assert_eq!(svg["variables"], false, "a picture of its own knows no style sheet");
    }
    for png in pictures {
        assert_eq!(png["head"], serde_json::json!([0x89, b'P', b'N', b'G']));
        assert!(png["size"].as_u64().unwrap() > 10_000, "{}", png["size"]);
    }
    let heat = tables[1]["text"].as_str().unwrap();
    let head = "series,\"protocol time h, end of the cell\",\"Latency ms, upper end of the cell\",\
                \"share of requests, 0 to 1\"\r\n";
    assert!(heat.starts_with(head), "{heat}");
}

#[test]
fn the_policy_of_the_page_lets_its_own_scripts_and_styles_through() {
    let Some(browser) = browser() else { return };
    let (dom, said) = opened(browser, &review(&review_of_two(), TITLE));
    assert!(dom.contains("id=\"provenance\""), "the page came to its end");
    let refused = ["Refused to", "Content Security Policy", "Uncaught"];
    let faults: Vec<&str> =
        said.lines().filter(|line| refused.iter().any(|sign| line.contains(sign))).collect();
    assert!(faults.is_empty(), "{faults:?}");
}
