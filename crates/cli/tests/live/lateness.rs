//! A modelled drive that is served and measured through its server, which tells how late it was.

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::served::{Served, client, is_there, said};

/// Times for which the server is stopped, as by a machine that has no processor for it, and runs.
const STOPPED: Duration = Duration::from_millis(300);
const RUNNING: Duration = Duration::from_millis(700);

/// A disk that takes some milliseconds for a request, served at its own pace.
fn serve() -> Served {
    Served::start(&["--memory", "32MiB", "--timing", "model", "--model", "savvio-15k1-73"])
}

/// Runs 4K reads on the drive of a server for some seconds; what it printed.
fn run(served: &Served, options: &[&str]) -> std::process::Output {
    let arguments = ["run", &served.uri, "4k-rand-read", "--threads", "1", "--queue", "1"];
    let rest = ["--runtime", "4s", "--destroy", "--purge", "overwrite"];
    served.beside(&[&arguments[..], &rest, options].concat())
}

fn signal(served: &Served, name: &str) {
    let pid = served.pid().to_string();
    let sent = Command::new("kill").args(["-s", name, &pid]).stderr(Stdio::null()).status();
    assert!(sent.expect("there is a `kill`").success());
}

/// Replies that a client of the server is told of before any choice.
fn replies_listed(served: &Served) -> u64 {
    let printed = client("nbdinfo", &[&served.uri]);
    let told = printed.split_once("x-floatgate:lateness/replies=").expect("a context").1;
    let number = told.split(',').next().unwrap_or_default();
    number.parse().expect("a number")
}

#[test]
fn a_run_on_a_served_model_says_how_late_the_server_was() {
    if !["fio", "nbdinfo"].into_iter().all(is_there) {
        return;
    }
    let served = serve();
    assert_eq!(replies_listed(&served), 0);
    let output = thread::scope(|scope| {
        let running = scope.spawn(|| run(&served, &["--json"]));
        // Whatever the run is at: its reads take longer than the time between two stops.
        while !running.is_finished() {
            thread::sleep(RUNNING);
            signal(&served, "STOP");
            thread::sleep(STOPPED);
            signal(&served, "CONT");
        }
        running.join().unwrap()
    });
    assert!(output.status.success(), "{}", said(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let lateness = &result["step"]["lateness"];
    let number = |name: &str| lateness[name].as_f64().unwrap_or_else(|| panic!("{lateness}"));
    let measured = result["step"]["summary"]["latency"]["count"].as_f64().unwrap();
    assert!(number("replies") >= measured, "{measured}: {lateness}");
    assert!(number("late") >= 1.0 && number("late") <= number("replies"), "{lateness}");
    assert!(number("late_by_ns_max") > 0.8 * 3e8, "as long as it was stopped: {lateness}");
    assert!(number("latency_ns_avg") > 1e6, "a disk takes milliseconds: {lateness}");
    assert!(number("slowdown") > 0.05, "{lateness}");
    let warnings = result["warnings"].as_array().unwrap();
    let late = warnings.iter().find(|it| it["kind"] == "lateness").expect("a warning");
    assert_eq!(late["step"], result["step"]["id"]);
    assert!(late["text"].as_str().unwrap().contains("in part those of the server"), "{late}");
    let rows = result["environment"]["sheet"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["name"] == "Replies late for the served model"), "{rows:?}");
    assert!(replies_listed(&served) as f64 >= number("replies"));
}

#[test]
fn a_server_without_a_model_tells_no_lateness() {
    if !is_there("fio") {
        return;
    }
    let served = Served::start(&["--memory", "32MiB"]);
    let output = run(&served, &["--json"]);
    assert!(output.status.success(), "{}", said(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(result["step"]["lateness"].is_null());
}
