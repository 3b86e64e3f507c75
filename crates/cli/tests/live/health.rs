//! The health of a drive that stores: one verdict in the status, its exit status, metrics, events
//! and the log, and the alerts to its recipients when it changes.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::clients::noise;
use super::served::{Served, assert_done, client, create_small_drive, floatgate, is_there, said};
use super::web::body;

/// Time limit for a change to be reported.
const PATIENCE: Duration = Duration::from_mins(1);

/// Waits until something is there.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "no {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Spoils most of what a die holds, its headers left out.
fn spoil(die: &Path) {
    let file = OpenOptions::new().write(true).open(die).expect("a die is there");
    let size = file.metadata().expect("it is open").len();
    let half = usize::try_from(size / 2).expect("a small die");
    file.write_all_at(&vec![0xaa; half], size / 2).expect("it takes bytes");
}

fn status(served: &Served) -> Value {
    super::served::status(|args| served.beside(args))
}

/// The value of a metric.
fn metric(served: &Served, name: &str) -> u64 {
    let answer = served.get("/metrics");
    let line = body(&answer).lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {answer}")).parse().expect("a number")
}

/// A program that writes down what it is told, a line a call.
fn hook(folder: &Path) -> std::path::PathBuf {
    let (program, told) = (folder.join("hook"), folder.join("told"));
    let script = format!(
        "#!/bin/sh\nprintf '%s|%s|%s|%s|%s|%s\\n' \"$1\" \"$2\" \"$3\" \"$FLOATGATE_HEALTH\" \
         \"$FLOATGATE_DIE\" \"$FLOATGATE_NAME\" >> {}\n",
        told.display()
    );
    fs::write(&program, script).expect("the folder takes files");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it is ours");
    program
}

#[test]
fn pages_that_a_scrub_finds_lost_are_told_everywhere() {
    if !is_there("nbdcopy") {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room");
    create_small_drive(folder.path());
    let hook = hook(folder.path()).display().to_string();
    let args = ["--scrub", "1s", "--monitor-program", &hook];
    let served = Served::start_watched_with(folder, "127.0.0.1:0", &args);
    let stored = served.path("there.img");
    noise(&stored, 8 << 20);
    client("nbdcopy", &["--flush", stored.to_str().expect("it is text"), &served.uri]);
    assert_eq!(status(&served)["health"]["state"], "ok");
    assert_eq!(metric(&served, "floatgate_lost_pages"), 0);
    spoil(&served.path("d1.img"));
    spoil(&served.path("d2.img"));

    // The scrub comes by itself.
    let told = wait_for("lost pages", || Some(status(&served)).filter(|it| it["pages_lost"] != 0));
    assert_eq!(told["health"]["state"], "critical", "{}", told["health"]);
    let problem = &told["health"]["problems"][0];
    assert_eq!(problem["kind"], "pages-lost", "{problem}");
    assert!(told["smart"]["critical_warning"].as_u64().expect("bits") & 4 != 0, "{told}");
    let shown = served.beside(&["status", "volume"]);
    assert_eq!(shown.status.code(), Some(5));
    for part in ["health", "critical; ", " pages lost; critical warning 0x04: NVM subsystem "] {
        assert!(said(&shown).contains(part), "no {part} in\n{}", said(&shown));
    }
    assert!(metric(&served, "floatgate_lost_pages") > 0);
    assert!(metric(&served, "floatgate_media_errors_total") > 0);
    assert_eq!(metric(&served, "floatgate_health{state=\"critical\"}"), 1);
    assert_eq!(metric(&served, "floatgate_problems{kind=\"pages-lost\"}"), 1);
    // One that ended before the damage found nothing.
    let events = || status(&served)["server"]["events"].to_string();
    wait_for("event of the scrub", || events().contains(" pages lost").then_some(()));
    assert!(metric(&served, "floatgate_scrubs_ended_total") > 0);
    let log = || fs::read_to_string(served.path("said")).expect("it says something");
    let is_told =
        |log: &str| log.contains("error: A scrub read all ") && log.contains(" pages lost");
    wait_for("scrub in the log", || is_told(&log()).then_some(()));
    let told = wait_for("call", || {
        let text = fs::read_to_string(served.path("told")).unwrap_or_default();
        text.lines().find(|line| line.starts_with("pages-lost|")).map(str::to_owned)
    });
    assert!(told.contains("cannot be read back") && told.ends_with("|critical||volume"), "{told}");
}

#[test]
fn a_die_that_fails_and_comes_back_calls_twice_and_names_where_it_is() {
    let folder = tempfile::tempdir().expect("there is room");
    let dies = "d0.img,d1.img,d2.img,d3.img";
    let create = ["create", "volume", "--dies", dies, "--size", "8MiB", "--name", "Mail store"];
    assert_done(&floatgate(folder.path(), &create));
    let hook = hook(folder.path()).display().to_string();
    let args = ["--monitor-program", &hook, "--monitor-test"];
    let served = Served::start_watched_with(folder, "127.0.0.1:0", &args);
    let told = served.path("told");
    let call = |event: &str| {
        wait_for(event, || {
            let text = fs::read_to_string(&told).unwrap_or_default();
            text.lines().find(|line| line.starts_with(event)).map(str::to_owned)
        })
    };
    let number = status(&served)["drive"].as_str().expect("a text").to_owned();
    let tested = call("test|");
    assert!(tested.starts_with(&format!("test|{number}|This is a test")), "{tested}");
    assert_done(&served.beside(&["fail-die", "volume", "2"]));
    let failed = call("die-failed|");
    let die = served.path("d2.img").display().to_string();
    assert!(failed.contains(&format!("|Die 2 ({die}) ")), "{failed}");
    assert!(failed.ends_with("|degraded|2|Mail store"), "{failed}");
    let shown = served.beside(&["status", "volume"]);
    assert_eq!(shown.status.code(), Some(4), "{}", said(&shown));
    assert!(said(&shown).contains("Mail store, "), "{}", said(&shown));
    assert_done(&served.beside(&["replace-die", "volume", "2", "--with", "new.img"]));
    let resolved = call("resolved|");
    assert!(resolved.contains("new.img) is rebuilt."), "{resolved}");
    assert!(call("health-ok|").contains("|ok||Mail store"));
    assert_eq!(served.beside(&["status", "volume"]).status.code(), Some(0));
    let metrics = served.get("/metrics");
    assert!(metrics.contains(",name=\"Mail store\","), "{metrics}");
}

#[test]
fn a_program_that_hangs_holds_up_neither_the_server_nor_its_end() {
    let folder = tempfile::tempdir().expect("there is room");
    create_small_drive(folder.path());
    let program = folder.path().join("hangs");
    fs::write(&program, "#!/bin/sh\nexec sleep 300\n").expect("the folder takes files");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let program = program.display().to_string();
    let args = ["--monitor-program", &program, "--monitor-test"];
    let mut served = Served::start_watched_with(folder, "127.0.0.1:0", &args);
    assert_done(&served.beside(&["fail-die", "volume", "1"]));
    assert_eq!(status(&served)["health"]["state"], "degraded");
    let begun = Instant::now();
    assert!(served.stop().success());
    assert!(begun.elapsed() < Duration::from_mins(2), "{:?}", begun.elapsed());
}

#[test]
fn a_recipient_that_cannot_be_called_is_refused_before_the_drive_is_opened() {
    let folder = tempfile::tempdir().expect("there is room");
    create_small_drive(folder.path());
    File::create(folder.path().join("plain")).expect("the folder takes files");
    let plain = folder.path().join("plain").display().to_string();
    let refused = |args: &[&str]| {
        let serve = ["serve", "volume", "--nbd", "unix:s"];
        let refused = floatgate(folder.path(), &[&serve[..], args].concat());
        assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
        said(&refused)
    };
    assert!(refused(&["--monitor-program", "plain"]).contains("is not an absolute path"));
    assert!(refused(&["--monitor-program", &plain]).contains("cannot be executed"));
    assert!(refused(&["--monitor-test"]).contains("has no recipient"));
    assert!(refused(&["--monitor-mail=-oQ/tmp"]).contains("is not an address"));
    let state = &super::served::status(|args| floatgate(folder.path(), args))["state"];
    assert_eq!(state, "closed", "it was not opened");
}

#[test]
fn the_server_keeps_what_the_drive_did_for_charts() {
    let served = Served::start_watched();
    let steps = wait_for("steps", || {
        let answer = served.get("/history/2min.json");
        let history: Value = serde_json::from_str(body(&answer)).expect("it is JSON");
        assert_eq!((&history["span"], &history["step_s"]), (&"2min".into(), &1.into()));
        let steps = history["steps"].as_array().expect("a list").clone();
        (steps.len() > 1).then_some(steps)
    });
    assert!(steps.iter().all(|step| step["writes"]["bytes_per_s"] == 0), "{steps:?}");
    let day: Value =
        serde_json::from_str(body(&served.get("/history/24h.json"))).expect("it is JSON");
    assert_eq!((&day["step_s"], &day["steps_max"]), (&60.into(), &1440.into()));
    assert!(served.get("/history/1y.json").starts_with("HTTP/1.1 404 "));
}
