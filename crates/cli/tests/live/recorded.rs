//! Applications that are recorded on a served drive, and replayed on models.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::served::{floatgate, is_there, said};

#[test]
fn a_database_is_recorded_and_replayed_on_drives_that_are_not_there() {
    if !["sqlite3", "losetup"].into_iter().all(is_there) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/live/transactions.sh");
    let record =
        ["record", "--memory", "64MiB", "--mount", "mnt", "--mkfs", "--out", "a.rec", "--", "bash"];
    let recorded = floatgate(folder.path(), &[&record[..], &[script]].concat());
    if ["mounting files on", "losetup:", "mount:"].iter().any(|it| said(&recorded).contains(it)) {
        eprintln!("no file system: {}", said(&recorded));
        assert!(!folder.path().join("a.rec").exists(), "nothing that was asked for is in it");
        return;
    }
    assert!(recorded.status.success(), "{}", said(&recorded));
    assert_eq!(recorded.stdout, b"a.rec\n");
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    assert!(!mounts.contains(folder.path().to_str().unwrap()), "a mount is left behind");

    let replay = |args: &[&str]| {
        let replayed = floatgate(folder.path(), &[&["replay", "a.rec"], args].concat());
        assert!(replayed.status.success(), "{}", said(&replayed));
        String::from_utf8(replayed.stdout).unwrap()
    };
    let rows: Value = serde_json::from_str(&replay(&["p5800x", "px600-2600", "--json"])).unwrap();
    for row in rows.as_array().unwrap() {
        assert!(row["requests"].as_u64().unwrap() > 60, "a transaction is more than a request");
        assert!(row["flush"]["count"].as_u64().unwrap() >= 60, "each is made durable");
        let [recorded_s, replayed_s, host_share] =
            ["recorded_s", "replayed_s", "host_share"].map(|key| row[key].as_f64().unwrap());
        assert!(recorded_s > 0.0 && replayed_s > 0.0 && host_share > 0.0, "{row}");
        // A process for each transaction: the host has most of the time, so that no rate is told.
        assert_eq!(row["prediction"].is_null(), host_share > 0.8, "{row}");
    }
    let again: Value = serde_json::from_str(&replay(&["p5800x", "px600-2600", "--json"])).unwrap();
    assert_eq!(rows, again, "the same recording, model and seed");
    let copied = replay(&["p5800x", "--copies", "4", "--json"]);
    let copied: Value = serde_json::from_str(&copied).unwrap();
    assert_eq!(copied[0]["requests"].as_u64(), rows[0]["requests"].as_u64().map(|it| 4 * it));
    let table = replay(&["px600-2600"]);
    assert!(table.starts_with("drive ") && table.contains("(recorded)"), "{table}");
}

/// True if a `sleep` of this length is running.
pub(crate) fn is_running(length: &str) -> bool {
    let pattern = format!("^sleep {length}$");
    Command::new("pgrep").args(["-f", &pattern]).output().is_ok_and(|it| it.status.success())
}

/// Waits until something is so. False if it is not for half a minute.
pub(crate) fn waits_until(is_so: &dyn Fn() -> bool) -> bool {
    let patience = Instant::now() + Duration::from_secs(30);
    while !is_so() && Instant::now() < patience {
        thread::sleep(Duration::from_millis(20));
    }
    is_so()
}

/// Writes a file, waits until that is recorded, says so, and then sleeps for its argument.
const SCRIPT: &str =
    "echo > $FLOATGATE_MOUNT/file; sync $FLOATGATE_MOUNT/file; sleep 1; touch begun; sleep $0";

#[test]
fn no_mount_is_left_behind_by_a_recorder_that_is_stopped_or_killed() {
    if !["losetup"].into_iter().all(is_there) {
        return;
    }
    // A length of sleep that nothing else has.
    for (signal, mark) in [("TERM", "51.25"), ("KILL", "52.25")] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let is_mounted = || {
            let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
            mounts.contains(path.join("mnt").to_str().unwrap())
        };
        let mut recorder = Command::new(env!("CARGO_BIN_EXE_floatgate"))
            .args(["record", "--memory", "64MiB", "--mount", "mnt", "--mkfs", "--out", "a.rec"])
            .args(["--", "sh", "-c", SCRIPT, mark])
            .current_dir(&path)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begun = path.join("begun");
        if !waits_until(&|| begun.exists()) {
            eprintln!("no file system on this machine");
            recorder.kill().unwrap();
            recorder.wait().unwrap();
            return;
        }
        assert!(is_mounted());
        let pid = recorder.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        assert!(!recorder.wait().unwrap().success());
        assert!(waits_until(&|| !is_mounted()), "{signal} leaves a mount behind");
        assert!(waits_until(&|| !is_running(mark)), "{signal} leaves a process behind");
        // What was asked for until then is there, and says that it was cut short.
        let replayed = floatgate(&path, &["replay", "a.rec", "p5800x"]);
        let told = said(&replayed);
        assert!(replayed.status.success() && told.contains("recording was cut short"), "{told}");
    }
}

#[test]
fn a_command_that_fails_is_told_of_and_its_requests_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let args =
        ["record", "--memory", "1MiB", "--out", "a.rec", "--", "sh", "-c", "echo so; exit 3"];
    let recorded = floatgate(folder.path(), &args);
    assert_eq!(recorded.status.code(), Some(1));
    assert!(said(&recorded).contains("exit status: 3"), "{}", said(&recorded));
    assert!(said(&recorded).contains("so\n"), "what it printed is passed on");
    let replayed = floatgate(folder.path(), &["replay", "a.rec", "p5800x"]);
    assert!(said(&replayed).contains("it has no request"), "{}", said(&replayed));
    let again = floatgate(folder.path(), &args);
    assert!(said(&again).contains("a.rec already exists"), "{}", said(&again));
}

#[test]
fn a_command_that_there_is_not_leaves_no_recording() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["record", "--memory", "1MiB", "--out", "a.rec", "--", "no-such-program"];
    let recorded = floatgate(folder.path(), &args);
    assert_eq!(recorded.status.code(), Some(1));
    assert!(said(&recorded).contains("starting no-such-program"), "{}", said(&recorded));
    assert!(!folder.path().join("a.rec").exists());
}

#[test]
fn what_is_no_recording_or_no_model_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.rec"), "fio version 2 iolog\n").unwrap();
    let replayed = floatgate(folder.path(), &["replay", "a.rec", "p5800x"]);
    assert_eq!(replayed.status.code(), Some(2));
    assert!(said(&replayed).contains("it does not begin with FLGTREC1"), "{}", said(&replayed));
    let none = floatgate(folder.path(), &["replay", "none.rec", "p5800x"]);
    assert!(said(&none).contains("opening none.rec"), "{}", said(&none));
}

#[test]
fn jobs_of_fio_are_imported_from_their_logs() {
    if !is_there("fio") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let job = |name: &str| {
        let logs = [format!("--write_iolog={name}.iolog"), format!("--write_lat_log={name}")];
        let ran = Command::new("fio")
            .args(["--name", name, "--filename=disk.img", "--size=4m", "--rw=randrw", "--bs=4k"])
            .args(["--log_offset=1", "--fsync=16", "--number_ios=100"])
            .args(logs)
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .status();
        assert!(ran.is_ok_and(|status| status.success()), "fio ran");
    };
    job("a");
    job("b");
    let import = |args: &[&str]| {
        floatgate(folder.path(), &[&["trace", "import"], args, &["--out", "a.rec"]].concat())
    };
    let logs = ["--latency-log", "a_lat.1.log,b_lat.1.log"];
    let one = import(&[&["a.iolog"], &logs[..]].concat());
    assert_eq!(one.status.code(), Some(2));
    assert!(said(&one).contains("iologs of 1 jobs, and 2 latency logs"), "{}", said(&one));
    let alone = import(&["a.iolog"]);
    assert!(said(&alone).contains("or iologs of fio, with --latency-log"), "{}", said(&alone));
    let imported = import(&[&["a.iolog", "b.iolog"], &logs[..]].concat());
    assert!(imported.status.success(), "{}", said(&imported));
    let replayed = floatgate(folder.path(), &["replay", "a.rec", "p5800x", "--json"]);
    assert!(replayed.status.success(), "{}", said(&replayed));
    let rows: Value = serde_json::from_slice(&replayed.stdout).unwrap();
    assert!(rows[0]["requests"].as_u64().unwrap() >= 200, "{rows}");
    assert!(rows[0]["flush"]["count"].as_u64().unwrap() >= 6, "{rows}");
}
