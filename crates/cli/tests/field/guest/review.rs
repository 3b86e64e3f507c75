//! The loop closes: a modelled drive is served over NVMe/TCP, a guest reviews it, and its figures
//! are compared with those of a review of the model itself.
//!
//! ```text
//!   model ──► review                                    the model's own figures
//!   model ──► serve ──► NVMe/TCP ──► guest: review      the guest's figures, and how late
//! ```
//!
//! The model is a disk of some milliseconds a request, since the processors of the guest are
//! emulated. Its figures are the same at every scale, so the served one is small, and the review
//! of the model takes its full size.
//!
//! What passes between the server and fio is the machine's: the guest's kernel, the emulated
//! network, fio. A step is held to the model only where that was little, as the latencies of the
//! client and of the model show for the same requests.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::emulator::emulator_is_missing;
use super::linux::{self, Said, listen};
use super::nvme_tcp::{self, MODULES};
use super::{Running, kernel, lines_of};
use crate::fio_is_missing;

/// Programs that the guest runs.
const PROGRAMS: [&str; 9] =
    ["floatgate", "sh", "mount", "cat", "sleep", "ip", "insmod", "nvme", "fio"];
/// The drive, and the scale at which it is served.
const MODEL: &str = "savvio-15k1-73";
const SERVED: [&str; 4] = ["--memory", "136MiB", "--time-lapse", "512"];
/// Share by which a figure may differ from that of the model.
const DIFFERENCE_MAX: f64 = 0.05;
/// Share of the model's latency that may pass outside of the server where a step is held to it.
const ELSEWHERE_MAX: f64 = 0.03;

/// Variable with the name of a protocol of the catalogue to review by instead of [`BRIEF`]: that of
/// docs/internals/virtual-machines.md is `quick`.
const PROTOCOL_VARIABLE: &str = "FLOATGATE_GUEST_PROTOCOL";
/// Loads of seconds, one after the other.
const BRIEF: &str = r#"
schema = 1
name = "loop"
title = "Closed loop"
description = "Seconds of each load."
source = "this test"

[[suites]]
name = "loop"
title = "Closed loop"

[[suites.measure]]
workload = "4k-rand-read"
threads = [1, 4]
queue_per_thread = [4]
duration_s = 12
ramp_s = 2
interval_s = 1

[[suites.measure]]
workload = "8k-70-30"
threads = [2]
queue_per_thread = [8]
duration_s = 12
ramp_s = 2
interval_s = 1
"#;

/// A load with the figures of the model and of the guest.
struct Compared {
    step: String,
    /// IOPS, and mean latency in nanoseconds.
    model: [f64; 2],
    guest: [f64; 2],
    /// Lateness of the server under the load.
    lateness: Value,
}

impl Compared {
    /// Differences of IOPS and mean latency from those of the model, as shares of them.
    fn differences(&self) -> [f64; 2] {
        [0, 1].map(|at| self.guest[at] / self.model[at] - 1.0)
    }

    fn lateness(&self, field: &str) -> f64 {
        self.lateness[field].as_f64().unwrap_or_else(|| panic!("{}: no {field}", self.step))
    }

    /// Share of the latency of the same requests in the model that passed elsewhere.
    fn elsewhere(&self) -> f64 {
        self.guest[1] / self.lateness("latency_ns_avg") - 1.0
    }

    /// A row of a table.
    fn row(&self) -> String {
        let [iops, latency] = self.differences();
        let [model, guest] = [self.model, self.guest];
        format!(
            "| {} | {:.1} | {:.1} | {:+.1} % | {:.2} | {:.2} | {:+.1} % | {:+.1} % | {:.2} % | \
             {:.2} % |",
            self.step.trim_start_matches("loop/"),
            model[0],
            guest[0],
            iops * 100.0,
            model[1] / 1e6,
            guest[1] / 1e6,
            latency * 100.0,
            self.elsewhere() * 100.0,
            self.lateness("late") / self.lateness("replies") * 100.0,
            self.lateness("slowdown") * 100.0,
        )
    }
}

/// Text of a protocol of the catalogue.
fn of_catalogue(name: &str) -> String {
    let shown = Command::new(env!("CARGO_BIN_EXE_floatgate"))
        .args(["protocols", "show", name, "--toml"])
        .output()
        .unwrap();
    assert!(shown.status.success(), "{shown:?}");
    String::from_utf8(shown.stdout).unwrap()
}

/// Result of a review of the model itself.
fn of_model(folder: &Path) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_floatgate"))
        .args(["review", MODEL, "--full-scale", "--protocol", "protocol.toml", "--repeat", "1"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{output:?}");
    // Beside the folder of the run lies its page.
    let mut results = fs::read_dir(folder.join("runs")).unwrap().flatten();
    let result = results.find_map(|entry| fs::read(entry.path().join("run.json")).ok()).unwrap();
    serde_json::from_slice(&result).unwrap()
}

/// Result of a review of the served model in a guest; none if something is missing.
fn of_guest(folder: &Path, patience: Duration) -> Option<(Value, Said)> {
    let kernel = kernel()?;
    let script = include_bytes!("review.sh");
    let mut archive = linux::first_files(&kernel, (&PROGRAMS, &MODULES), script)?;
    nvme_tcp::name_host(&mut archive);
    archive.file(Path::new("etc/protocol.toml"), &fs::read(folder.join("protocol.toml")).unwrap());
    fs::write(folder.join("initramfs"), archive.finished()).unwrap();
    let timing = ["--timing", "model", "--model", MODEL];
    let server = nvme_tcp::Server::start_with(&[&SERVED[..], &timing].concat(), "0");
    let mut guest = Running(nvme_tcp::machine(folder, &kernel, (&server, &[], "")));
    let mut said = listen(&lines_of(&mut guest.0), patience, |_| {});
    let result = said.remove("result").expect("the guest printed one");
    let text = result.strip_suffix("guest: exit 0\n").unwrap_or_else(|| panic!("{said:#?}"));
    Some((serde_json::from_str(text).unwrap_or_else(|why| panic!("{why}: {said:#?}")), said))
}

/// IOPS and mean latency of a step.
fn figures(step: &Value) -> [f64; 2] {
    let summary = &step["summary"];
    [&summary["iops"], &summary["latency"]["latency_ns_avg"]].map(|it| it.as_f64().unwrap())
}

/// Compares all measurements that both results have.
fn compared(model: &Value, guest: &Value) -> Vec<Compared> {
    let measured = |run: &Value| -> Vec<Value> {
        let steps = run["steps"].as_array().unwrap().iter();
        steps.filter(|step| step["kind"] == "measure").cloned().collect()
    };
    let (of_model, of_guest) = (measured(model), measured(guest));
    assert_eq!(of_model.len(), of_guest.len());
    let pairs = of_model.iter().zip(&of_guest);
    pairs
        .map(|(model, guest)| {
            assert_eq!(model["id"], guest["id"]);
            Compared {
                step: guest["id"].as_str().unwrap().to_owned(),
                model: figures(model),
                guest: figures(guest),
                lateness: guest["lateness"].clone(),
            }
        })
        .collect()
}

/// Reviews the model by `protocol` by itself and in the guest, and prints the comparison; none if
/// something is missing.
#[expect(clippy::print_stderr, reason = "the comparison is for documents, too")]
fn closed(protocol: &str, patience: Duration) -> Option<(Vec<Compared>, Value)> {
    if fio_is_missing() || emulator_is_missing() {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("protocol.toml"), protocol).unwrap();
    let model = of_model(folder.path());
    let (guest, said) = of_guest(folder.path(), patience)?;
    let all = compared(&model, &guest);
    eprintln!("{}", said["review"]);
    eprintln!(
        "| load | IOPS, model | guest | differs | latency in ms, model | guest | differs | \
         elsewhere | late | slowdown |\n|---|---|---|---|---|---|---|---|---|---|"
    );
    for it in &all {
        eprintln!("{}", it.row());
    }
    Some((all, guest))
}

/// Checks that the server told how late it was, that the client saw no reply earlier than the model
/// has it, and that a step with a late server has a warning. Where server and path took hardly any
/// time of their own, figures are those of the model.
fn check(all: &[Compared], guest: &Value) {
    let warnings = guest["warnings"].as_array().unwrap();
    for it in all {
        let row = it.row();
        assert!(it.lateness("replies") > 0.0 && it.elsewhere() > -0.02, "{row}");
        let late_share = it.lateness("late") / it.lateness("replies");
        let is_late = late_share > 0.01 || it.lateness("slowdown") > 0.05;
        let is_warned =
            |warning: &Value| warning["kind"] == "lateness" && warning["step"] == it.step.as_str();
        assert_eq!(warnings.iter().any(is_warned), is_late, "{row}");
        let [iops, latency] = it.differences().map(f64::abs);
        if it.elsewhere() <= ELSEWHERE_MAX {
            assert!(iops <= DIFFERENCE_MAX && latency <= DIFFERENCE_MAX, "{row}");
        }
    }
}

#[test]
fn a_review_of_a_served_model_gives_the_figures_of_the_model_where_the_machine_has_the_time() {
    let (protocol, patience) = match env::var(PROTOCOL_VARIABLE) {
        Ok(name) => (of_catalogue(&name), Duration::from_mins(40)),
        Err(_) => (BRIEF.to_owned(), super::PATIENCE),
    };
    let Some((all, guest)) = closed(&protocol, patience) else { return };
    let model = guest["target"]["sheet"].as_array().unwrap().iter();
    let model = model.clone().find(|row| row["name"] == "Model").unwrap();
    assert_eq!(model["value"], format!("Floatgate as {MODEL}"));
    check(&all, &guest);
}
