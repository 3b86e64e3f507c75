//! A real browser without a window, told what to do over the pipes of its debugging protocol.

#![expect(clippy::unwrap_used, reason = "what the browser does not do fails the test")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::served::is_there;

/// Names that the browser may go by.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Time limit for anything, generous for a machine under load.
const PATIENCE: Duration = Duration::from_mins(3);
/// Time from one look at a page to the next.
const LOOK: Duration = Duration::from_millis(100);

/// A browser with one page, ended with its children when dropped.
pub(crate) struct Browser {
    process: Child,
    orders: ChildStdin,
    messages: Receiver<Value>,
    /// Number of the last order.
    orders_given: u64,
    session: String,
    /// Exceptions of the page and errors in its log, content security policies included.
    pub(crate) faults: Vec<String>,
    _profile: TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let group = format!("-{}", self.process.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.process.wait();
    }
}

impl Browser {
    /// Opens an empty page; none where no browser is installed, which is said.
    pub(crate) fn start() -> Option<Self> {
        let program = BROWSERS.into_iter().find(|name| is_there(name))?;
        let profile = tempfile::tempdir().unwrap();
        // The protocol is spoken over descriptors 3 and 4.
        let mut process = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", program])
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--disable-background-networking", "--disable-component-update"])
            .args(["--disable-sync", "--no-first-run", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let (orders, said) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let (sender, messages) = mpsc::channel();
        thread::spawn(move || {
            for message in BufReader::new(said).split(0) {
                let Ok(message) = message else { return };
                // The test may have ended.
                let _ = sender.send(serde_json::from_slice(&message).unwrap());
            }
        });
        let (orders_given, session, faults) = (0, String::new(), Vec::new());
        let mut browser =
            Self { process, orders, messages, orders_given, session, faults, _profile: profile };
        let page = browser.order("Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": page["targetId"], "flatten": true});
        let attached = browser.order("Target.attachToTarget", &attach);
        attached["sessionId"].as_str().unwrap().clone_into(&mut browser.session);
        for domain in ["Runtime.enable", "Log.enable", "Page.enable"] {
            browser.order(domain, &json!({}));
        }
        Some(browser)
    }

    /// Has something done. Returns what came of it.
    fn order(&mut self, method: &str, parameters: &Value) -> Value {
        let message = self.answer(method, parameters);
        assert!(message["error"].is_null(), "{method}: {message}");
        message["result"].clone()
    }

    /// Has something done. Returns the browser's answer, which may be an error.
    fn answer(&mut self, method: &str, parameters: &Value) -> Value {
        self.orders_given += 1;
        let id = self.orders_given;
        let mut order = json!({"id": id, "method": method, "params": parameters});
        if !self.session.is_empty() {
            order["sessionId"] = json!(self.session);
        }
        let mut message = serde_json::to_vec(&order).unwrap();
        message.push(0);
        self.orders.write_all(&message).unwrap();
        loop {
            let message = self.messages.recv_timeout(PATIENCE).expect("the browser answers");
            if message["id"] == id {
                return message;
            }
            self.note(&message);
        }
    }

    fn note(&mut self, message: &Value) {
        let details = &message["params"];
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => {
                self.faults.push(details["exceptionDetails"].to_string());
            }
            Some("Log.entryAdded") if details["entry"]["level"] == "error" => {
                self.faults.push(details["entry"].to_string());
            }
            _ => {}
        }
    }

    /// Goes to a page.
    pub(crate) fn open(&mut self, address: &str) {
        let gone = self.order("Page.navigate", &json!({"url": address}));
        assert!(gone["errorText"].is_null(), "{gone}");
    }

    /// Gives the page a size in points, and light or dark colours.
    pub(crate) fn resize(&mut self, width: u32, height: u32, colours: &str) {
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600
        });
        self.order("Emulation.setDeviceMetricsOverride", &size);
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": colours}]});
        self.order("Emulation.setEmulatedMedia", &media);
    }

    /// Evaluates an expression in the page, and waits for its promise if it is one.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        self.value_unless_gone(expression).expect("the page stays")
    }

    /// As [`Self::value`]; none if the page goes to another one meanwhile.
    fn value_unless_gone(&mut self, expression: &str) -> Option<Value> {
        let evaluation = json!({
            "expression": expression, "awaitPromise": true, "returnByValue": true,
            "userGesture": true
        });
        let message = self.answer("Runtime.evaluate", &evaluation);
        if message["error"]["message"] == "Inspected target navigated or closed" {
            return None;
        }
        assert!(message["error"].is_null(), "{expression}: {message}");
        let answer = &message["result"];
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        Some(answer["result"]["value"].clone())
    }

    /// Waits until an expression of the page is true.
    pub(crate) fn wait_until(&mut self, expression: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.value_unless_gone(expression) != Some(Value::Bool(true)) {
            let page = if Instant::now() < deadline { Value::Null } else { self.text() };
            assert!(page.is_null(), "never: {expression}; the page says {page}");
            thread::sleep(LOOK);
        }
    }

    fn text(&mut self) -> Value {
        self.value("document.body.innerText")
    }

    /// Keeps a picture of the whole page.
    pub(crate) fn photograph(&mut self, path: &Path) {
        let asked = json!({"format": "png", "captureBeyondViewport": true});
        let taken = self.order("Page.captureScreenshot", &asked);
        let decoded = Command::new("base64")
            .arg("--decode")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut decoder = decoded.unwrap();
        let mut input = decoder.stdin.take().unwrap();
        let picture = taken["data"].as_str().unwrap().to_owned();
        let feeder = thread::spawn(move || input.write_all(picture.as_bytes()));
        let decoded = decoder.wait_with_output().unwrap();
        feeder.join().unwrap().unwrap();
        fs::write(path, decoded.stdout).unwrap();
    }
}
