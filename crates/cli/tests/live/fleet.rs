//! `floatgate dashboard`: several drives on one page, in a real browser and without one.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::browser::Browser;
use super::dashboard::{Load, assert_fits, carry_out};
use super::served::{self, Served, assert_done, floatgate, is_there, said};

/// Time limit for a dashboard to start.
const PATIENCE: Duration = Duration::from_mins(3);

/// A running dashboard, which keeps its token beside it.
pub(crate) struct Dashboard {
    process: Child,
    folder: TempDir,
    /// Address that it answers at, such as `127.0.0.1:8480`.
    pub(crate) http: String,
}

impl Dashboard {
    /// Starts one for these places.
    pub(crate) fn start(places: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder is made");
        let said = folder.path().join("said");
        let stderr = File::create(&said).expect("the folder takes files");
        let process = Command::new(env!("CARGO_BIN_EXE_floatgate"))
            .args(["dashboard", "--http", "127.0.0.1:0", "--token", "token"])
            .args(places)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stderr(stderr)
            .spawn()
            .expect("the command was built");
        let mut dashboard = Self { process, folder, http: String::new() };
        let deadline = Instant::now() + PATIENCE;
        while dashboard.http.is_empty() {
            assert!(Instant::now() < deadline, "it says nothing");
            thread::sleep(Duration::from_millis(10));
            let text = fs::read_to_string(&said).expect("it is there");
            let line = text.lines().next().filter(|_| text.ends_with('\n'));
            let place = line.and_then(|line| line.split_once("http://")?.1.split_once('/'));
            place.unwrap_or_default().0.clone_into(&mut dashboard.http);
        }
        dashboard
    }

    /// Returns the token that its actions require.
    fn token(&self) -> String {
        fs::read_to_string(self.folder.path().join("token")).expect("it generated one")
    }

    /// Sends an HTTP request of these lines, and returns the answer.
    fn ask(&self, lines: &[&str]) -> String {
        served::ask(&self.http, lines)
    }

    /// A browser at its page, with the token; none where no browser is installed.
    pub(crate) fn opened(&self) -> Option<Browser> {
        let mut browser = Browser::start()?;
        browser.open(&format!("http://{}/#token={}", self.http, self.token()));
        browser.wait_until("document.getElementById('link')?.textContent.startsWith('live')");
        Some(browser)
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        // It is gone already where the test stopped it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Makes an empty drive of 8 MiB on four dies in a folder of drives.
fn create(folder: &Path, name: &str, more: &[&str]) {
    let dies: Vec<String> = (0..4).map(|die| format!("{name}-{die}.img")).collect();
    let dies = dies.join(",");
    let args = ["create", name, "--dies", &dies, "--size", "8MiB", "--rated-cycles", "3000"];
    let made = floatgate(folder, &[&args[..], more].concat());
    assert_done(&made);
}

/// Serves a drive of a folder, from a folder of its own.
fn serve(folder: &Path, name: &str) -> Served {
    let volume = folder.join(name).display().to_string();
    Served::start_in(tempfile::tempdir().expect("a folder is made"), &[&volume])
}

fn status(folder: &Path, name: &str) -> Value {
    let told = floatgate(folder, &["status", name, "--json"]);
    serde_json::from_slice(&told.stdout).expect("JSON")
}

/// Returns an expression for the text on the card of a drive.
fn card(name: &str) -> String {
    format!(
        "[...document.querySelectorAll('.drive')].find((it) => it.querySelector('.name')\
             .textContent === '{name}')?.innerText ?? 'no card'"
    )
}

#[test]
fn drives_are_seen_on_one_page_as_they_come_work_and_go() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), "alpha", &[]);
    create(folder.path(), "beta", &[]);
    let dashboard = Dashboard::start(&[&folder.path().display().to_string()]);
    let Some(mut browser) = dashboard.opened() else { return };
    let served = "document.getElementById('served').textContent";
    browser.wait_until(&format!("{served} === '0 of 2'"));
    let closed = "Not served; closed cleanly.";
    assert!(browser.value(&card("beta")).as_str().unwrap().contains(closed));
    let health = "document.getElementById('health').textContent";
    assert_eq!(browser.value(health), "No volume is served.");
    let alpha = serve(folder.path(), "alpha");
    let beta = serve(folder.path(), "beta");
    browser.wait_until(&format!("{served} === '2 of 2'"));
    assert_eq!(browser.value(health), "All 2 served volumes are ok.");

    if is_there("fio") {
        let load = Load::start(&alpha);
        let writes = "document.getElementById('write-rate').value";
        browser.wait_until(&format!("Number({writes}) > 0"));
        browser.wait_until(&format!("({}).includes('p99')", card("alpha")));
        assert!(!browser.value(&card("beta")).as_str().unwrap().contains("p99"));
        drop(load);
        browser.wait_until(&format!("Number({writes}) === 0"));
        let bytes = &status(folder.path(), "alpha")["server"]["traffic"]["writes"]["bytes"];
        browser.wait_until(&format!("before.drives[0].drive.writes.bytes === {bytes}"));
    }

    assert!(floatgate(folder.path(), &["locate", "beta", "on"]).status.success());
    let led = "document.querySelectorAll('.drive .led')[1].className";
    browser.wait_until(&format!("{led} === 'led locate' && document.title.startsWith('(*)')"));
    assert!(browser.value(&card("beta")).as_str().unwrap().contains("The locate LED is on"));
    assert!(floatgate(folder.path(), &["fail-die", "beta", "1"]).status.success());
    browser.wait_until(&format!("{health}.startsWith('beta: Die 1 (')"));
    // The status has a failed die at once, and the events at the next look of the server.
    let events = "document.getElementById('event-rows').textContent";
    browser.wait_until(&format!("{events}.includes('beta: Die 1 (')"));
    drop(beta.kill());
    browser.wait_until(&format!("{served} === '1 of 2'"));
    let unclosed = "Not served since an unclean shutdown";
    assert!(browser.value(&card("beta")).as_str().unwrap().contains(unclosed));
    assert!(browser.value(health).as_str().unwrap().starts_with(&format!("beta: {unclosed}")));
    create(folder.path(), "gamma", &[]);
    browser.wait_until(&format!("{served} === '1 of 3'"));
    fs::remove_dir_all(folder.path().join("gamma")).unwrap();
    browser.wait_until(&format!("{served} === '1 of 2'"));
    let mut again = serve(folder.path(), "beta");
    browser.wait_until(&format!("{served} === '2 of 2'"));
    assert!(browser.value(events).as_str().unwrap().contains("beta: Die 1 ("));
    assert!(again.stop().success());
    let degraded = "beta: Not served; closed cleanly without die 1";
    browser.wait_until(&format!("{health}.startsWith('{degraded}')"));
    drop(dashboard);
    browser.wait_until(&format!("{health}.startsWith('Unknown: ')"));
    assert!(browser.faults.is_empty(), "{:?}", browser.faults);
}

#[test]
fn each_drive_has_its_whole_page_behind_the_first_one_and_is_changed_there() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), "alpha", &["--hot-spares", "spare.img"]);
    create(folder.path(), "beta", &[]);
    let servers = [serve(folder.path(), "alpha"), serve(folder.path(), "beta")];
    let dashboard = Dashboard::start(&[&folder.path().display().to_string()]);
    let Some(mut browser) = dashboard.opened() else { return };
    browser.wait_until(&format!("({}).includes('1 hot spare')", card("alpha")));
    browser.value("document.querySelector('.drive a.name').click()");
    let alpha = status(folder.path(), "alpha");
    let drive = "document.getElementById('drive')?.textContent";
    browser.wait_until(&format!("{drive} === {}", alpha["name"]));
    let shown = browser.value("document.getElementById('format-rows').textContent");
    assert!(shown.as_str().unwrap().contains("Hot spares1"), "{shown}");
    assert_eq!(browser.value("document.getElementById('token-form').hidden"), true);

    carry_out(&mut browser, "fail-die", &[("die", "2")]);
    browser
        .wait_until("before.hot_spares === 0 && before.maintenance.rebuild?.is_running === false");
    browser.wait_until("before.dies.every((die) => !die.is_lost)");
    let health = "document.getElementById('health').textContent";
    browser.wait_until(&format!("{health} === 'Health is ok.'"));
    let another = folder.path().join("another.img").display().to_string();
    carry_out(&mut browser, "add-spare", &[("path", &another)]);
    browser.wait_until("before.hot_spares === 1");
    assert_eq!(
        status(folder.path(), "beta")["server"]["events"].to_string().find("fail die"),
        None
    );

    assert_eq!(browser.value("document.getElementById('home').hidden"), false);
    browser.value("document.querySelector('#home a').click()");
    browser.wait_until("document.getElementById('served')?.textContent === '2 of 2'");
    assert!(browser.faults.is_empty(), "{:?}", browser.faults);
    drop(servers);
}

#[test]
fn no_client_changes_a_drive_by_its_page_without_the_token_its_number_and_an_own_page() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), "alpha", &[]);
    create(folder.path(), "beta", &[]);
    let _servers = [serve(folder.path(), "alpha"), serve(folder.path(), "beta")];
    let dashboard = Dashboard::start(&[&folder.path().display().to_string()]);
    let number = |name| status(folder.path(), name)["drive"].as_str().unwrap().to_owned();
    let (alpha, beta) = (number("alpha"), number("beta"));
    let (host, json) = (format!("Host: {}", dashboard.http), "Content-Type: application/json");
    let bearer = format!("Authorization: Bearer {}", dashboard.token());
    let wrong = format!("Authorization: Bearer {}", "0".repeat(32));
    let order = |first: &str, named: &str, headers: &[&str]| {
        let order = format!(
            "{{\"drive\":{named:?},\"request\":{{\"request\":\"locate\",\"is_lit\":true}}}}"
        );
        let length = format!("Content-Length: {}", order.len());
        let answer = dashboard.ask(&[&[first, &length][..], headers, &["", &order]].concat());
        answer.get(9..12).unwrap_or("none").to_owned()
    };
    let post = format!("POST /drives/{alpha}/request HTTP/1.1");
    for (expected, first, named, headers) in [
        ("403", &*post, &*alpha, vec!["Host: evil.example", json, &bearer]),
        ("403", &post, &alpha, vec![&host, json, &bearer, "Origin: http://evil.example"]),
        ("403", &post, &alpha, vec![&host, json, &bearer, "Origin: null"]),
        ("401", &post, &alpha, vec![&host, json]),
        ("401", &post, &alpha, vec![&host, json, &wrong]),
        ("415", &post, &alpha, vec![&host, "Content-Type: text/plain", &bearer]),
        ("409", &post, &beta, vec![&host, json, &bearer]),
        ("404", "POST /request HTTP/1.1", &alpha, vec![&host, json, &bearer]),
        ("404", "POST /drives/0123456789abcdef/request HTTP/1.1", &alpha, vec![&host, &bearer]),
        ("405", "POST / HTTP/1.1", &alpha, vec![&host, json, &bearer]),
        ("405", &post.replacen("POST", "GET", 1), &alpha, vec![&host, json, &bearer]),
    ] {
        assert_eq!(order(first, named, &headers), expected, "{first} {headers:?}");
    }
    let is_lit = |name| status(folder.path(), name)["is_locate_led_on"].clone();
    assert_eq!((is_lit("alpha"), is_lit("beta")), (false.into(), false.into()));
    assert_eq!(order(&post, &alpha, &[&host, json, &bearer]), "200");
    assert_eq!((is_lit("alpha"), is_lit("beta")), (true.into(), false.into()));
    let metrics = dashboard.ask(&[&format!("GET /drives/{beta}/metrics HTTP/1.1"), &host]);
    assert!(metrics.contains(&format!("floatgate_drive_info{{drive=\"{beta}\",")), "{metrics}");
    let overview = dashboard.ask(&["GET /overview.json HTTP/1.1", &host]);
    let (_, overview) = overview.split_once("\r\n\r\n").unwrap();
    let overview: Value = serde_json::from_str(overview).unwrap();
    assert_eq!(overview["drives"][1]["drive"]["drive"], *beta);
}

#[test]
fn a_place_that_is_none_and_a_file_that_is_no_token_are_one_clear_error_each() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("notes"), "not to be lost").unwrap();
    let refused = |code: i32, args: &[&str]| {
        let refused = floatgate(folder.path(), &[&["dashboard"][..], args].concat());
        assert_eq!(refused.status.code(), Some(code));
        let said = said(&refused);
        assert_eq!(said.lines().count(), 1, "{said}");
        said
    };
    assert!(refused(2, &["nothing"]).starts_with("error: looking at nothing: No such file"));
    let no_drive = refused(2, &["notes"]);
    assert!(no_drive.starts_with("error: notes is neither the folder of a volume"), "{no_drive}");
    let no_token = refused(1, &[".", "--http", "127.0.0.1:0", "--token", "notes"]);
    assert!(no_token.contains("the file contains something other than a token"), "{no_token}");
    assert_eq!(fs::read_to_string(folder.path().join("notes")).unwrap(), "not to be lost");
}

#[test]
fn the_page_of_many_drives_fits_a_telephone_a_tablet_and_a_wide_screen() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["archive", "mail-store", "scratch", "web"];
    for name in names {
        create(folder.path(), name, &[]);
    }
    let served: Vec<Served> = names[..3].iter().map(|name| serve(folder.path(), name)).collect();
    let dashboard = Dashboard::start(&[&folder.path().display().to_string()]);
    let Some(mut browser) = dashboard.opened() else { return };
    let loads: Vec<Load> =
        served.iter().take(2).filter(|_| is_there("fio")).map(Load::start).collect();
    assert!(floatgate(folder.path(), &["fail-die", "scratch", "3"]).status.success());
    assert!(floatgate(folder.path(), &["locate", "mail-store", "on"]).status.success());
    browser.wait_until("document.getElementById('health').textContent.includes('Die 3')");
    browser.wait_until("document.querySelector('.spark .line').points.length > 7");
    assert_fits(&mut browser, "fleet", |_, _| {});
    drop(loads);
    assert!(browser.faults.is_empty(), "{:?}", browser.faults);
}
