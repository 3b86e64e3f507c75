//! A served drive in a monitoring system: the metrics, and what `contrib` makes of them.

#![expect(clippy::unwrap_used, reason = "what Prometheus does not do fails the test")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::served::{Served, client, create_small_drive, is_there};
use super::web::body;

/// Time limit for Prometheus to start, and to scrape the drive.
const PATIENCE: Duration = Duration::from_mins(2);

fn contrib(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib").join(file)
}

/// The name that a text begins with.
fn name(text: &str) -> &str {
    let is_other = |char: char| !char.is_ascii_alphanumeric() && char != '_';
    &text[..text.find(is_other).unwrap_or(text.len())]
}

#[test]
fn a_scrape_has_every_metric_that_contrib_and_the_guide_name() {
    let folder = tempfile::tempdir().unwrap();
    create_small_drive(folder.path());
    let served = Served::start_watched_with(folder, "127.0.0.1:0", &["--timing", "model"]);
    let answer = served.get("/metrics");
    let kind = "\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n";
    assert!(answer.contains(kind), "{answer}");
    let scrape = body(&answer);
    assert!(scrape.ends_with("\n# EOF\n"), "{scrape}");
    let there: BTreeSet<&str> =
        scrape.lines().filter(|line| !line.starts_with('#')).map(name).collect();
    let families: BTreeSet<&str> =
        scrape.lines().filter_map(|it| it.strip_prefix("# TYPE ")).map(name).collect();
    let guide = contrib("../docs/guide/monitor-a-drive.md");
    for file in [contrib("grafana-dashboard.json"), contrib("prometheus-alerts.yml"), guide] {
        let text = fs::read_to_string(&file).unwrap();
        let named: BTreeSet<&str> =
            text.match_indices("floatgate_").map(|(at, _)| name(&text[at..])).collect();
        for name in &named {
            let is_there = there.contains(name) || families.contains(name);
            assert!(is_there, "{} names {name}", file.display());
        }
        assert!(named.len() > 5, "{} names {named:?}", file.display());
        if file.extension().is_some_and(|it| it == "md") {
            let is_told = |family: &&&str| named.iter().any(|it| it.starts_with(**family));
            let untold: Vec<_> = families.iter().filter(|it| !is_told(it)).collect();
            assert!(untold.is_empty(), "the guide lacks {untold:?}");
        }
    }
}

#[test]
fn the_numbers_of_a_scrape_are_those_of_the_status() {
    let served = Served::start_watched();
    let scrape = served.get("/metrics");
    let asked = served.beside(&["status", "volume", "--json"]);
    let status: Value = serde_json::from_slice(&asked.stdout).unwrap();
    for (metric, expected) in [
        ("floatgate_capacity_bytes{of=\"host\"}", &status["format"]["capacity_bytes"]),
        ("floatgate_stored_bytes", &status["space"]["stored_bytes"]),
        ("floatgate_power_cycles_total", &status["smart"]["power_cycles"]),
        ("floatgate_media_read_bytes_total{die=\"3\"}", &status["dies"][3]["read_bytes"]),
        ("floatgate_written_bytes_total{cause=\"parity\"}", &status["writes"]["parity_bytes"]),
    ] {
        let line = body(&scrape).lines().find_map(|line| line.strip_prefix(metric));
        assert_eq!(line.map(str::trim), Some(expected.to_string().as_str()), "{metric}");
    }
}

#[test]
fn the_alert_rules_are_rules() {
    if is_there("promtool") {
        client(
            "promtool",
            &["check", "rules", &contrib("prometheus-alerts.yml").to_string_lossy()],
        );
    }
}

/// Two drives of which one is not served any more after ten minutes, and nothing else is scraped
/// after two hours, as `promtool` tells of it.
const ABSENCE: &str = r#"
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'up{job="floatgate", instance="a:1"}', values: "1x10 0x120 _x60"}
      - {series: 'up{job="floatgate", instance="b:1"}', values: "1x130 _x60"}
      - {series: 'floatgate_drive_info{job="floatgate", instance="a:1", drive="0a"}',
         values: "1x10 stale _x180"}
      - {series: 'floatgate_drive_info{job="floatgate", instance="b:1", drive="0b"}',
         values: "1x130 _x60"}
    promql_expr_test: []
    alert_rule_test:
      - {alertname: FloatgateNotScraped, eval_time: 10m, exp_alerts: []}
      - {alertname: FloatgateDriveGone, eval_time: 10m, exp_alerts: []}
      - {alertname: FloatgateNothingScraped, eval_time: 60m, exp_alerts: []}
      - alertname: FloatgateNotScraped
        eval_time: 13m
        exp_alerts:
          - exp_labels: {severity: critical, job: floatgate, instance: "a:1"}
            exp_annotations:
              summary: "a:1 does not answer: the drive is not served, or its server hangs"
      - alertname: FloatgateDriveGone
        eval_time: 20m
        exp_alerts:
          - exp_labels: {severity: warning, instance: "a:1", drive: "0a"}
            exp_annotations:
              summary: "drive 0a was served at a:1 within a day and is not now"
      - alertname: FloatgateNothingScraped
        eval_time: 150m
        exp_alerts:
          - exp_labels: {severity: critical, job: floatgate}
            exp_annotations: {summary: "no drive is scraped: the job `floatgate` has no target"}
"#;

/// A drive whose die 1 comes to have more damage than is allowed, while die 0 has as much as is.
const DAMAGE: &str = r#"
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'floatgate_damaged_places_hour{instance="a:1", die="0"}', values: "20x20"}
      - {series: 'floatgate_damaged_places_hour{instance="a:1", die="1"}', values: "0x10 23x10"}
      - {series: 'floatgate_damaged_places_limit{instance="a:1", die="0"}', values: "20x20"}
      - {series: 'floatgate_damaged_places_limit{instance="a:1", die="1"}', values: "20x20"}
    alert_rule_test:
      - {alertname: FloatgateDieDamaged, eval_time: 9m, exp_alerts: []}
      - alertname: FloatgateDieDamaged
        eval_time: 15m
        exp_alerts:
          - exp_labels: {severity: warning, instance: "a:1", die: "1"}
            exp_annotations:
              summary: >-
                23 places of die 1 of a:1 were found damaged within an hour, more than
                --die-errors-per-hour; parity gave the data back: replace the die
"#;

/// A drive that is started with `--force-stale` and then comes to have lost pages, and one whose
/// die 0 misses a session.
const STALE: &str = r#"
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'floatgate_problems{instance="a:1", kind="stale-start"}', values: "0x5 1x15"}
      - {series: 'floatgate_lost_pages{instance="a:1"}', values: "0x10 3x10"}
      - {series: 'floatgate_problems{instance="b:1", kind="die-failed"}', values: "0x5 1x15"}
    alert_rule_test:
      - {alertname: FloatgateStale, eval_time: 4m, exp_alerts: []}
      - {alertname: FloatgateDataLost, eval_time: 9m, exp_alerts: []}
      - {alertname: FloatgateRedundancyLost, eval_time: 4m, exp_alerts: []}
      - alertname: FloatgateStale
        eval_time: 15m
        exp_alerts:
          - exp_labels: {severity: critical, instance: "a:1", kind: stale-start}
            exp_annotations:
              summary: >-
                a:1 was started with --force-stale: data may be older than what was flushed;
                `floatgate volume status` says since when
      - alertname: FloatgateDataLost
        eval_time: 15m
        exp_alerts:
          - exp_labels: {severity: critical, instance: "a:1"}
            exp_annotations: {summary: "3 pages of a:1 cannot be read back"}
      - alertname: FloatgateRedundancyLost
        eval_time: 15m
        exp_alerts:
          - exp_labels: {severity: critical, instance: "b:1"}
            exp_annotations:
              summary: >-
                1 of the dies of b:1 have failed or are being rebuilt; `floatgate volume status`
                says whether another failure loses data
"#;

/// Has promtool say whether the rules alert as a description of its own has it.
fn assert_alerts(expected: &str) {
    if !is_there("promtool") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("expected.yml");
    let rules = contrib("prometheus-alerts.yml");
    fs::write(&path, format!("rule_files: [{:?}]\n{expected}", rules.display().to_string()))
        .unwrap();
    client("promtool", &["test", "rules", &path.to_string_lossy()]);
}

#[test]
fn a_drive_that_is_not_served_raises_an_alert() {
    assert_alerts(ABSENCE);
}

#[test]
fn a_stale_start_lost_pages_and_a_die_that_missed_a_session_raise_alerts() {
    assert_alerts(STALE);
}

#[test]
fn a_die_with_more_damage_than_is_allowed_raises_an_alert() {
    assert_alerts(DAMAGE);
}

/// A Prometheus that looks at a drive each second, with the rules of `contrib`.
struct Prometheus {
    process: Child,
    port: u16,
    _folder: TempDir,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Prometheus {
    fn watch(served: &Served) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
             rule_files: [\"{}\"]\n\
             scrape_configs: [{{job_name: floatgate, static_configs: [{{targets: [{:?}]}}]}}]\n",
            contrib("prometheus-alerts.yml").display(),
            served.http
        );
        let path = folder.path().join("prometheus.yml");
        fs::write(&path, config).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = Command::new("prometheus")
            .arg(format!("--config.file={}", path.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .args(["--log.level=warn"])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self { process, port, _folder: folder }
    }

    /// The data that its interface answers with; nothing while it does not.
    fn ask(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!("GET /api/v1/{path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let answer: Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
        assert!(
            answer["error"].is_null() || answer["errorType"] == "unavailable",
            "{path}: {answer}"
        );
        Some(answer["data"].clone())
    }

    /// Repeats a query until its answer is as wanted, and returns that.
    fn ask_until(&self, path: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let data = self.ask(path);
            if let Some(data) = data.as_ref().filter(|data| is_wanted(data)) {
                return data.clone();
            }
            assert!(Instant::now() < deadline, "Prometheus answers {path} with {data:?}");
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// An expression of the dashboard as an address has it, its variables filled in.
fn query(expression: &str, instance: &str) -> String {
    let filled = expression.replace("$instance", instance).replace("$__rate_interval", "1m");
    let escape = |text: String, byte| text + &format!("%{byte:02X}");
    filled.bytes().fold("query?query=".to_owned(), escape)
}

#[test]
fn a_real_prometheus_reads_every_metric_and_evaluates_every_rule_and_panel() {
    if !is_there("prometheus") {
        return;
    }
    let served = Served::start_watched();
    let prometheus = Prometheus::watch(&served);
    let targets = prometheus.ask_until("targets", |data| {
        ["up", "down"].contains(&data["activeTargets"][0]["health"].as_str().unwrap_or_default())
    });
    let target = &targets["activeTargets"][0];
    assert_eq!((&target["health"], &target["lastError"]), (&"up".into(), &"".into()), "{target}");
    let sums = prometheus.ask_until(&query("floatgate_capacity_bytes{of=\"host\"}", ""), |data| {
        !data["result"][0].is_null()
    });
    assert_eq!(sums["result"][0]["value"][1], (8 << 20).to_string());
    // Before the first scrape the rules of absence hold.
    let is_evaluated = |data: &Value| {
        let is_done = |rule: &Value| rule["health"] != "unknown" && rule["state"] != "pending";
        let rules = data["groups"][0]["rules"].as_array();
        rules.is_some_and(|rules| rules.iter().all(is_done))
    };
    let rules = prometheus.ask_until("rules", is_evaluated);
    for rule in rules["groups"][0]["rules"].as_array().unwrap() {
        assert_eq!((&rule["health"], &rule["state"]), (&"ok".into(), &"inactive".into()), "{rule}");
    }
    let dashboard = fs::read_to_string(contrib("grafana-dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            let data = prometheus.ask(&query(expression, &served.http));
            assert!(data.is_some_and(|it| it["result"].is_array()), "{expression}");
        }
    }
}
