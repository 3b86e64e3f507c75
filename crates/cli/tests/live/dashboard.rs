//! The page of a served drive in a real browser, under load.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::browser::Browser;
use super::clients::noise;
use super::served::{Served, client, create_small_drive, is_there};

/// Widths of a telephone, a tablet and a wide screen.
const WIDTHS: [u32; 3] = [390, 800, 1600];

/// A client that reads and writes until it is dropped.
pub(crate) struct Load(Child);

impl Load {
    pub(crate) fn start(served: &Served) -> Self {
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
    super::served::status(|args| served.beside(args))
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
    browser.wait_until("CHARTS.throughput.plot.data[0].length > 5");
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
    let served = Served::start_watched();
    let Some(mut browser) = at_the_page_of(&served) else { return };
    let _load = is_there("fio").then(|| Load::start(&served));
    browser.wait_until("CHARTS.throughput.plot.data[0].length > 3");
    assert_fits(&mut browser, "drive", |browser, name| {
        browser.value("document.getElementById('action-fail-die').click()");
        let fits = browser.value(
            "{ const { left, right } = document.getElementById('confirm').getBoundingClientRect();\
             left >= 0 && right <= innerWidth }",
        );
        assert_eq!(fits, true, "the question sticks out: {name}");
        photograph(browser, &format!("{name}-asked"));
        browser.value("document.getElementById('confirm-no').click()");
    });
}

/// A browser at the page of a drive, with leave to change it; none where there is no browser.
fn at_the_page_of(served: &Served) -> Option<Browser> {
    let mut browser = Browser::start()?;
    let token =
        fs::read_to_string(served.path("volume/web.token")).expect("the server generated one");
    browser.open(&format!("http://{}/#token={token}", served.http));
    browser.wait_until("document.getElementById('link')?.textContent.startsWith('live')");
    Some(browser)
}

/// Types the value of an expression into a field of the dialogue.
fn fill(browser: &mut Browser, field: &str, expression: &str) {
    browser.value(&format!(
        "{{ const field = document.getElementById('field-{field}'); field.value = {expression};\
         field.dispatchEvent(new Event('input')); }}"
    ));
}

/// Asks for an action of the page, with these fields filled in and the drive named.
fn ask(browser: &mut Browser, action: &str, fields: &[(&str, &str)]) {
    browser.value(&format!("document.getElementById('action-{action}').click()"));
    let is_refused = "document.getElementById('confirm-yes').disabled";
    for (field, text) in fields {
        fill(browser, field, &format!("'{text}'"));
    }
    assert_eq!(browser.value(is_refused), true, "no drive is named");
    fill(browser, "drive", "'0123456789abcdef'");
    assert_eq!(browser.value(is_refused), true, "another drive is named");
    fill(browser, "drive", "before.drive");
    browser.value("document.getElementById('outcome').textContent = ''");
    browser.value("document.getElementById('confirm-yes').click()");
}

/// Asks for an action as `ask` does, and waits until it is done.
pub(crate) fn carry_out(browser: &mut Browser, action: &str, fields: &[(&str, &str)]) {
    ask(browser, action, fields);
    browser.wait_until("document.getElementById('outcome').textContent.endsWith(': Done.')");
}

#[test]
fn a_die_fails_and_is_rebuilt_before_the_readers_eyes() {
    let served = Served::start_watched();
    let Some(mut browser) = at_the_page_of(&served) else { return };
    let state = "document.querySelector('#die-rows tr:nth-child(3) td').textContent";
    assert_eq!(browser.value(state), "good");
    assert_eq!(browser.value("document.getElementById('action-replace-die').disabled"), true);

    carry_out(&mut browser, "fail-die", &[("die", "2")]);
    browser.wait_until(&format!("{state} === 'failed'"));
    let health = "document.getElementById('health').textContent";
    assert_eq!(browser.value(health), "Degraded: 1 problem.");
    let problem = browser.value("document.getElementById('problems').innerText");
    let (die, folder) = (served.path("d2.img"), served.path("volume"));
    for part in [
        format!("Die 2 ({}) has failed; ", die.display()),
        format!("Replace it: floatgate volume replace-die {} 2 --with PATH.", folder.display()),
    ] {
        assert!(problem.as_str().unwrap().contains(&part), "no {part} in {problem}");
    }
    assert_eq!(browser.value("document.getElementById('action-fail-die').disabled"), true);
    browser.resize(1600, 1000, "dark");
    photograph(&mut browser, "die-lost");

    let new = served.path("new.img").display().to_string();
    carry_out(&mut browser, "replace-die", &[("die", "2"), ("path", &new)]);
    browser.wait_until(&format!("{state} === 'good'"));
    browser.wait_until("before.maintenance.rebuild?.is_running === false");
    assert_eq!(browser.value(health), "Health is ok.");
    assert_eq!(browser.value("before.maintenance.rebuild.die"), 2);
    for part in ["Die 2 (", ") has failed; ", ") is rebuilt."] {
        let events = "document.getElementById('event-rows').textContent";
        browser.wait_until(&format!("{events}.includes('{part}')"));
    }
    assert!(browser.faults.is_empty(), "{:?}", browser.faults);
}

#[test]
fn a_drive_is_formatted_and_purged_from_the_page_once_it_is_named_and_not_before() {
    let served = Served::start_watched();
    let Some(mut browser) = at_the_page_of(&served) else { return };
    let before = status(&served)["format"]["capacity_bytes"].as_u64().unwrap();
    browser.value("document.getElementById('action-format').click()");
    fill(&mut browser, "capacity", "'high-performance'");
    browser.value("document.getElementById('confirm-no').click()");
    assert_eq!(status(&served)["format"]["capacity_bytes"], before, "it was left");

    carry_out(&mut browser, "format", &[("capacity", "high-performance")]);
    browser.wait_until(&format!("before.format.capacity_bytes < {before}"));
    let shown = browser.value("document.getElementById('format-rows').textContent");
    let after = status(&served)["format"]["capacity_bytes"].as_u64().unwrap();
    assert!(after < before * 9 / 10, "{after} of {before}");
    let capacity = format!("Capacity{:.2} MB", after as f64 / 1e6);
    let promise = "Acknowledged writessurvive the server; once flushed a power loss too";
    for row in [capacity.as_str(), promise] {
        assert!(shown.as_str().unwrap().contains(row), "no {row} in {shown}");
    }

    carry_out(&mut browser, "purge", &[]);
    browser.wait_until("before.maintenance.purge?.is_running === false");
    browser.wait_until("document.getElementById('work').textContent.includes('Purge: done')");
    assert_eq!(status(&served)["maintenance"]["purge"]["failure"], Value::Null);
    assert!(browser.faults.is_empty(), "{:?}", browser.faults);
}

#[test]
fn a_drive_is_resized_from_the_page_and_what_it_stores_is_lost_only_where_that_is_said() {
    if !is_there("nbdcopy") {
        return;
    }
    let served = Served::start_watched();
    let Some(mut browser) = at_the_page_of(&served) else { return };
    let there = served.path("there.img");
    noise(&there, 8 << 20);
    client("nbdcopy", &["--flush", there.to_str().unwrap(), &served.uri]);
    let capacity = || status(&served)["format"]["capacity_bytes"].clone();
    let outcome = "document.getElementById('outcome').textContent";
    ask(&mut browser, "resize", &[("size", "4 MiB"), ("beyond", "keep it")]);
    browser.wait_until(&format!("{outcome}.includes('beyond the new end')"));
    assert_eq!(capacity(), 8 << 20);
    carry_out(&mut browser, "resize", &[("size", "4 MiB"), ("beyond", "discard it")]);
    browser.wait_until(&format!("before.format.capacity_bytes === {}", 4 << 20));
    assert_eq!(capacity(), 4 << 20);
    browser.value("document.getElementById('action-resize').click()");
    fill(&mut browser, "size", "'4 elephants'");
    let is_valid = "document.getElementById('field-size').checkValidity()";
    assert_eq!(browser.value(is_valid), false, "what is no size is not sent");
    assert!(browser.faults.iter().all(|fault| fault.contains("409")), "{:?}", browser.faults);
}

#[test]
fn the_page_tells_the_power_and_heat_of_a_modelled_drive_and_has_no_place_for_them_without() {
    let plain = Served::start_watched();
    let Some(mut browser) = at_the_page_of(&plain) else { return };
    assert_eq!(browser.value("document.getElementById('temperature-tile').hidden"), true);
    let folder = tempfile::tempdir().unwrap();
    create_small_drive(folder.path());
    let served = Served::start_watched_with(folder, "127.0.0.1:0", &["--timing", "model"]);
    browser.open(&format!("http://{}/", served.http));
    browser.wait_until("Number(document.getElementById('power')?.value) > 5");
    let shown = |browser: &mut Browser, id: &str| {
        let value = browser.value(&format!("Number(document.getElementById('{id}').value)"));
        value.as_f64().expect("a number")
    };
    let temperature_c = shown(&mut browser, "temperature");
    assert!((30.0..50.0).contains(&temperature_c), "{temperature_c} °C of an idle Duo");
    let power_w = shown(&mut browser, "power");
    assert!((10.5..12.0).contains(&power_w), "{power_w} W of an idle Duo");
    let kelvin = &status(&served)["smart"]["composite_temperature"];
    assert!((kelvin.as_f64().unwrap() - 273.15 - temperature_c).abs() < 2.0, "{kelvin} K");
    browser.wait_until("CHARTS.temperature.rows.length > 2");
    browser.resize(1600, 1000, "light");
    photograph(&mut browser, "model");
    assert!(browser.faults.is_empty(), "{:?}", browser.faults);
}

/// Shows the page as wide as each screen, in both colours: nothing sticks out, and a picture of it
/// is kept. `more` is done there, told the name of the picture.
pub(crate) fn assert_fits(
    browser: &mut Browser,
    page: &str,
    mut more: impl FnMut(&mut Browser, &str),
) {
    for (width, colours) in WIDTHS.into_iter().flat_map(|it| [(it, "light"), (it, "dark")]) {
        browser.resize(width, 1000, colours);
        let name = format!("{page}-{width}-{colours}");
        let fits = browser.value("document.documentElement.scrollWidth <= innerWidth");
        assert_eq!(fits, true, "something sticks out: {name}");
        photograph(browser, &name);
        more(browser, &name);
    }
}

/// Keeps a picture of the page for the developer to look at.
fn photograph(browser: &mut Browser, name: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    browser.photograph(&folder.join(format!("dashboard-{name}.png")));
}

#[test]
fn the_locate_led_is_turned_on_from_the_page_once_it_is_confirmed() {
    let served = Served::start_watched();
    let Some(mut browser) = at_the_page_of(&served) else { return };
    assert_eq!(browser.value("location.href"), format!("http://{}/", served.http));
    browser.value("document.getElementById('action-locate').click()");
    let asked = browser.value("document.getElementById('confirm-text').textContent");
    let drive = status(&served)["drive"].as_str().unwrap().to_owned();
    assert!(asked.as_str().unwrap().contains(&drive), "{asked}");
    assert_eq!(status(&served)["is_locate_led_on"], false, "not yet");
    browser.value("document.getElementById('confirm-no').click()");
    assert_eq!(status(&served)["is_locate_led_on"], false, "not at all");
    browser.value("document.getElementById('action-locate').click()");
    browser.value("document.getElementById('confirm-yes').click()");
    browser.wait_until("document.getElementById('led').className === 'led locate'");
    assert_eq!(status(&served)["is_locate_led_on"], true);
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
