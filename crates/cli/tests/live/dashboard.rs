//! The page of a served drive in a real browser, under load.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::browser::Browser;
use super::served::{Served, is_there};

/// Widths of a telephone, a tablet and a wide screen, with the colours that each is looked at in.
const SCREENS: [(u32, &str); 3] = [(390, "dark"), (820, "light"), (1600, "light")];

/// A client that reads and writes until it is dropped.
struct Load(Child);

impl Load {
    fn start(served: &Served) -> Self {
        let fio = Command::new("timeout")
            .args(["--kill-after=5", "300", "fio", "--name=load", "--ioengine=nbd"])
            .args(["--rw=randrw", "--bs=4k", "--iodepth=4", "--time_based", "--runtime=300"])
            .args(["--rate_iops=2000,2000", "--size=8m"])
            .arg(format!("--uri={}", served.uri))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        Self(fio.expect("coreutils are there"))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // `timeout` hands the signal on to the client.
        let _ = Command::new("kill").args(["-s", "TERM", &self.0.id().to_string()]).status();
        let _ = self.0.wait();
    }
}

fn status(served: &Served) -> Value {
    let told = served.beside(&["status", "vault", "--json"]);
    serde_json::from_slice(&told.stdout).expect("JSON")
}

#[test]
fn the_page_moves_with_the_load_and_agrees_with_the_status() {
    let Some(mut browser) = Browser::start() else { return };
    if !is_there("fio") {
        return;
    }
    let served = Served::start_watched();
    browser.resize(1600, 1000, "light");
    browser.open(&format!("http://{}/", served.http));
    browser.wait_until("document.getElementById('link')?.textContent.startsWith('live')");
    assert_eq!(browser.value("before.drive"), status(&served)["drive"]);
    assert_eq!(browser.value("document.getElementById('led').className"), "led attached");

    let load = Load::start(&served);
    browser.wait_until("Number(document.getElementById('write-rate').value) > 0");
    browser.wait_until("document.querySelector('polyline.line').points.length > 5");
    assert_eq!(browser.value("document.getElementById('led').className"), "led active");
    let rate = browser.value("Number(document.getElementById('write-rate').value)");
    let (before, shown) = (status(&served), "before.server.traffic.writes.bytes");
    let seen = browser.value(&format!(
        "{shown} >= {} || new Promise((done) => {{\
        const timer = setInterval(() => {{\
            if ({shown} >= {}) {{ clearInterval(timer); done(true); }} }}, 10); }})",
        before["server"]["traffic"]["writes"]["bytes"],
        before["server"]["traffic"]["writes"]["bytes"]
    ));
    assert_eq!(seen, true, "what the status says is on the page with the next look");
    assert!(rate.as_f64().unwrap() < 1e9, "{rate}");

    drop(load);
    browser.wait_until("Number(document.getElementById('write-rate').value) === 0");
    let told = status(&served);
    let writes = &told["server"]["traffic"]["writes"]["bytes"];
    browser.wait_until(&format!("{shown} === {writes}"));
    for (field, id) in [("stored_bytes", "stored"), ("superblocks_free", "free")] {
        let shown = browser.value(&format!("Number(document.getElementById('{id}').value)"));
        assert_eq!(shown, told["space"][field], "{field}");
    }
    assert!(browser.faults.is_empty(), "{:?}", browser.faults);
}

#[test]
fn the_page_fits_a_telephone_a_tablet_and_a_wide_screen() {
    let Some(mut browser) = Browser::start() else { return };
    let served = Served::start_watched();
    let _load = is_there("fio").then(|| Load::start(&served));
    browser.open(&format!("http://{}/", served.http));
    browser.wait_until("document.querySelector('polyline.line')?.points.length > 3");
    for (width, colours) in SCREENS {
        browser.resize(width, 1000, colours);
        let fits = browser.value("document.documentElement.scrollWidth <= innerWidth");
        assert_eq!(fits, true, "something sticks out at {width} points");
        let picture = format!("dashboard-{width}.png");
        browser.photograph(&Path::new(env!("CARGO_TARGET_TMPDIR")).join(picture));
    }
}

#[test]
fn the_beacon_is_lit_from_the_page_once_it_is_confirmed() {
    let Some(mut browser) = Browser::start() else { return };
    let served = Served::start_watched();
    let token = fs::read_to_string(served.path("vault/web.token")).unwrap();
    browser.open(&format!("http://{}/#token={token}", served.http));
    browser.wait_until("document.getElementById('link')?.textContent.startsWith('live')");
    assert_eq!(browser.value("location.href"), format!("http://{}/", served.http));
    browser.value("document.getElementById('action-beacon').click()");
    let asked = browser.value("document.getElementById('confirm-text').textContent");
    let drive = status(&served)["drive"].as_str().unwrap().to_owned();
    assert!(asked.as_str().unwrap().contains(&drive), "{asked}");
    assert_eq!(status(&served)["is_beacon_lit"], false, "not yet");
    browser.value("document.getElementById('confirm-no').click()");
    assert_eq!(status(&served)["is_beacon_lit"], false, "not at all");
    browser.value("document.getElementById('action-beacon').click()");
    browser.value("document.getElementById('confirm-yes').click()");
    browser.wait_until("document.getElementById('led').className === 'led beacon'");
    assert_eq!(status(&served)["is_beacon_lit"], true);
    assert!(browser.faults.is_empty(), "{:?}", browser.faults);
}

#[test]
fn the_page_comes_back_when_the_server_does() {
    let Some(mut browser) = Browser::start() else { return };
    let served = Served::start_watched();
    let address = served.http.clone();
    browser.open(&format!("http://{address}/"));
    browser.wait_until("document.getElementById('link')?.textContent.startsWith('live')");
    let folder = served.kill();
    browser.wait_until("document.getElementById('link').textContent.startsWith('no answer')");
    let again = Served::start_watched_in(folder, &address);
    browser.wait_until(&format!("before.server.pid === {}", again.pid()));
    browser.wait_until("document.getElementById('link').textContent.startsWith('live')");
}
