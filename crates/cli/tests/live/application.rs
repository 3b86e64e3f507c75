//! Applications that are measured on folders and on drives, and predicted on models.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::served::{floatgate, is_there, said};

/// An application of `SQLite`, whose result is printed as pgbench would.
const SQLITE: &str = r#"
schema = 1
name = "sqlite"
title = "Inserts into SQLite"
description = "Durable inserts, one process for all."
source = "Our own."
threads = [1, 2]
seconds = 1
space_bytes = 1_000_000
programs = { sqlite3 = "sqlite3" }
parameters = { ROWS = "40" }

[steps]
load = '''
echo 'create table t (a integer, b text);' | sqlite3 "$FOLDER/data"
sleep 1000 &
'''
run = '''
begun=$(date +%s%N)
for row in $(seq "$ROWS"); do
    echo "insert into t values ($row, hex(randomblob(500)));"
done | sqlite3 "$FOLDER/data"
took=$(($(date +%s%N) - begun))
echo "number of transactions actually processed: $ROWS"
echo "latency average = $(awk "BEGIN { print $took / 1e6 / $ROWS }") ms"
echo "tps = $(awk "BEGIN { print $ROWS * 1e9 / $took }") (without initial connection time)"
'''
"#;

/// A folder with the application, which is named `sqlite` there.
fn stage() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("the folder takes files");
    fs::create_dir(folder.path().join("applications")).expect("the folder takes files");
    fs::write(folder.path().join("applications/sqlite.toml"), SQLITE)
        .expect("the folder takes files");
    folder
}

fn points(folder: &Path, args: &[&str]) -> Vec<Value> {
    let ran = floatgate(folder, &[&["app", "sqlite", "--json"], args].concat());
    assert!(ran.status.success(), "{}", said(&ran));
    serde_json::from_slice(&ran.stdout).expect("it is JSON")
}

#[test]
fn an_application_is_measured_on_a_mounted_folder_of_which_nothing_is_left() {
    if !is_there("sqlite3") {
        return;
    }
    let folder = stage();
    fs::create_dir(folder.path().join("mounted")).unwrap();
    let points = points(folder.path(), &["mounted", "--set", "ROWS=20"]);
    assert_eq!(
        points.iter().map(|it| it["threads"].as_u64()).collect::<Vec<_>>(),
        [Some(1), Some(2)]
    );
    for point in &points {
        assert_eq!(point["origin"], "measured");
        assert!(point["tps"].as_f64().unwrap() > 0.0 && point["host_share"].is_null(), "{point}");
    }
    assert_eq!(fs::read_dir(folder.path().join("mounted")).unwrap().count(), 0);
}

#[test]
fn an_application_is_recorded_on_a_drive_and_predicted_on_others() {
    if !is_there("sqlite3") || !is_there("losetup") {
        return;
    }
    let folder = stage();
    let drive = ["--memory", "64MiB", "--timing", "model", "--model", "iodrive-duo"];
    let out = [&["app", "sqlite", "--out", "recordings", "--json"], &drive[..]].concat();
    let mut command = Command::new(env!("CARGO_BIN_EXE_floatgate"));
    // What is mounted then lies in this folder.
    let ran = command.args(out).current_dir(folder.path()).env("TMPDIR", folder.path());
    let ran = ran.stdin(Stdio::null()).output().unwrap();
    if ["mounting files on", "losetup:", "mount:"].iter().any(|it| said(&ran).contains(it)) {
        return;
    }
    assert!(ran.status.success(), "{}", said(&ran));
    let measured: Vec<Value> = serde_json::from_slice(&ran.stdout).unwrap();
    assert!(measured.iter().all(|it| it["host_share"].as_f64().is_some()), "{measured:?}");
    let predicted = points(folder.path(), &["p5800x", "--recordings", "recordings"]);
    assert_eq!(predicted.len(), 2);
    for point in &predicted {
        assert_eq!(point["origin"], "predicted");
        // Nothing is predicted where the host dominates, and something everywhere else.
        assert_eq!(point["tps"].is_null(), point["host_share"].as_f64() > Some(0.8), "{point}");
    }
    let table =
        floatgate(folder.path(), &["app", "sqlite", "p5800x", "--recordings", "recordings"]);
    assert!(String::from_utf8_lossy(&table.stdout).starts_with("drive "), "{}", said(&table));
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let mount = folder.path().to_str().unwrap();
    assert!(!mounts.contains(mount), "a mount is left behind: {mounts}");
}

#[test]
fn a_rate_from_a_recording_in_which_all_clients_paused_is_marked() {
    let folder = stage();
    let args = ["app", "sysbench-oltp", "px600-2600", "--threads", "8,16"];
    let ran = floatgate(folder.path(), &args);
    assert!(ran.status.success(), "{}", said(&ran));
    let text = String::from_utf8_lossy(&ran.stdout);
    let row = |start: &str| text.lines().find(|it| it.contains(start)).unwrap_or_default();
    let (eight, sixteen) = (row("predicted  8 "), row("predicted  16 "));
    assert!(!eight.is_empty() && !eight.contains('†') && sixteen.contains("† 10 %"), "{text}");
    assert!(text.contains("with no request outstanding, for this share of the time"), "{text}");
}

#[test]
fn what_cannot_be_measured_or_predicted_is_refused_with_a_remedy() {
    let folder = stage();
    let path = folder.path().join("applications/sqlite.toml");
    let refused = |args: &[&str]| {
        let ran = floatgate(folder.path(), &[&["app"], args].concat());
        assert!(!ran.status.success(), "{args:?}");
        said(&ran)
    };
    assert!(refused(&["sqlit", "."]).contains("did you mean `sqlite`?"));
    assert!(refused(&["sqlite"]).contains("no drive to measure"));
    assert!(
        refused(&["sqlite", "p5800x"])
            .contains("no recording of sqlite with 1 threads is built in")
    );
    assert!(refused(&["sqlite", ".", "--set", "ROW=1"]).contains("it has ROWS"));
    assert!(refused(&["sqlite", ".", "--out", "o"]).contains("--out o records volumes only"));
    for option in [&["--recordings", "r"], &["--buffered", "5"], &["--host-speed", "2"]] {
        let said = refused(&[&["sqlite", "."], &option[..]].concat());
        assert!(said.contains(&format!("{} applies to predictions", option[0])), "{said}");
    }
    for option in [&["--set", "ROWS=1"], &["--runtime", "5s"]] {
        let said = refused(&[&["sqlite", "p5800x"], &option[..]].concat());
        assert!(said.contains(&format!("{} applies to measurements", option[0])), "{said}");
    }
    let without = refused(&["sqlite", "p5800x", "--recordings", "none"]);
    assert!(without.contains("opening none/sqlite-t1.rec"), "{without}");
    fs::write(&path, SQLITE.replace("{ sqlite3 = \"sqlite3\" }", "{ nosuch = \"no-package\" }"))
        .unwrap();
    assert!(refused(&["sqlite", "."]).contains("the package no-package of Debian and Ubuntu"));
    fs::write(&path, SQLITE.replace("1_000_000", "1_000_000_000_000_000")).unwrap();
    assert!(
        refused(&["sqlite", "."]).contains("sqlite needs 1000 TB"),
        "{}",
        refused(&["sqlite", "."])
    );
    fs::write(&path, SQLITE.replace("echo \"tps", "# \"")).unwrap();
    assert!(!is_there("sqlite3") || refused(&["sqlite", "."]).contains("printed no result"));
    fs::write(&path, SQLITE.replace("load = '''", "load = '''\nexit 3")).unwrap();
    assert!(!is_there("sqlite3") || refused(&["sqlite", "."]).contains("`load` of sqlite ended"));
    let left = fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name());
    assert!(left.into_iter().all(|name| name == "applications"), "something is left behind");
}
