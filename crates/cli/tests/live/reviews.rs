//! Runs on the page: those under way, and the reviews of those that have ended.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::browser::Browser;
use super::dashboard::assert_fits;
use super::fleet::Dashboard;
use super::served::floatgate;

/// A review that goes on until it is dropped, or told to stop.
struct Review(Child);

impl Review {
    /// Begins one that takes long, in a folder.
    fn begin(folder: &Path) -> Self {
        let process = Command::new(env!("CARGO_BIN_EXE_floatgate"))
            .args(["review", "iodrive-duo", "--format", "stock", "--time-lapse", "16"])
            .args(["--jobs", "1", "--repeat", "1"])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(process.expect("the command was built"))
    }

    /// Tells it to stop, as Ctrl-C does.
    fn interrupt(&self) {
        let process = self.0.id().to_string();
        let sent = Command::new("kill").args(["-s", "INT", &process]).status();
        assert!(sent.expect("there is a `kill`").success());
    }
}

impl Drop for Review {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A finished review of a short protocol in the `runs` of a folder.
fn finish(folder: &Path) {
    let model = ["review", "iodrive-duo", "--time-lapse", "64"];
    let args = [&model[..], &["--protocol", "quick", "--repeat", "1"]].concat();
    let done = floatgate(folder, &args);
    let is_measured = matches!(done.status.code(), Some(0 | 3));
    assert!(is_measured, "{}", String::from_utf8_lossy(&done.stderr));
}

fn dashboard(folder: &Path) -> Dashboard {
    Dashboard::start(&["--runs", &folder.join("runs").display().to_string()])
}

fn text(browser: &mut Browser, selector: &str) -> String {
    let found = browser.value(&format!("document.querySelector('{selector}')?.innerText ?? ''"));
    found.as_str().expect("a text").to_owned()
}

#[test]
fn a_run_is_watched_while_it_is_under_way_and_found_when_it_was_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let dashboard = dashboard(folder.path());
    let Some(mut browser) = dashboard.opened() else { return };
    browser.wait_until("!document.getElementById('reviews').hidden");
    assert!(text(&mut browser, "#no-runs").contains("No run is in progress."));
    let review = Review::begin(folder.path());
    browser.wait_until("document.querySelector('.run tbody')?.innerText.includes('IOPS')");
    // What is left is told once the pace is known.
    browser.wait_until("document.querySelector('.run')?.innerText.includes(' left')");
    let shown = text(&mut browser, ".run");
    for part in ["iodrive-duo stock", "enterprise, ", "% done, ", " left", " steps completed"] {
        assert!(shown.contains(part), "no {part} in {shown}");
    }
    browser.value("document.querySelector('.run details').open = true");
    browser.wait_until("document.querySelector('.run progress').value > 0.005");
    browser.wait_until("document.querySelector('.run details').innerText.includes('done')");
    browser.wait_until("document.querySelector('.run .spark .line').points.length > 2");
    assert_fits(&mut browser, "reviews", |_, _| {});
    review.interrupt();
    browser.wait_until(
        "document.getElementById('ended-rows').innerText.includes('interrupted')\
         && document.querySelector('.run') === null",
    );
    assert!(browser.faults.is_empty(), "{:?}", browser.faults);
}

#[test]
fn the_review_of_a_finished_run_is_opened_and_has_no_way_to_the_drives() {
    let folder = tempfile::tempdir().unwrap();
    finish(folder.path());
    let dashboard = dashboard(folder.path());
    let Some(mut browser) = dashboard.opened() else { return };
    browser.wait_until("document.querySelector('#ended-rows a') !== null");
    assert!(text(&mut browser, "#ended-rows").contains("done"));
    assert_eq!(text(&mut browser, "#page-rows"), "", "each page is that of a run");
    browser.value("document.querySelector('#ended-rows a').click()");
    browser.wait_until("document.querySelector('h1')?.textContent.includes('ioDrive Duo')");
    // Charts are drawn by its script, once they are in sight.
    browser.wait_until(
        "(document.querySelector('.plot')?.scrollIntoView(), document.querySelector('canvas'))\
         instanceof Element",
    );
    assert!(browser.faults.is_empty(), "{:?}", browser.faults);
    assert_eq!(browser.value("self.origin"), "null");
    let reached = "fetch('/overview.json').then(() => 'reached', () => 'refused')";
    assert_eq!(browser.value(reached), "refused");
    let token = "(() => { try { return sessionStorage.getItem('token'); }\
                 catch (error) { return error.name; } })()";
    assert_eq!(browser.value(token), "SecurityError");
}
