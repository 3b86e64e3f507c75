//! A drive as a service: its configuration, its unit, its manual pages.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::served::{Served, client, create_small_drive, floatgate, is_there, said};

#[test]
fn a_configuration_says_what_could_be_typed_and_what_is_typed_wins() {
    let folder = tempfile::tempdir().unwrap();
    create_small_drive(folder.path());
    let refusal = |text: &str, typed: &[&str]| {
        fs::write(folder.path().join("c.toml"), text).unwrap();
        let refused = floatgate(folder.path(), &[&["serve", "--config", "c.toml"], typed].concat());
        (refused.status.code(), String::from_utf8_lossy(&refused.stderr).into_owned())
    };
    let (code, said) = refusal("volume = \"volume\"\nnbd = \"none\"", &[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("`none` is not an address"), "{said}");
    let (code, said) = refusal("volume = \"nothing\"\nnbd = \"unix:s\"", &["other"]);
    assert!(code == Some(2) && said.starts_with("error: opening other: "), "{said}");
    let (code, said) = refusal("volume = \"volume\"\nbnd = \"unix:s\"", &[]);
    assert!(
        code == Some(2) && said.starts_with("error: reading c.toml: unknown key `bnd`"),
        "{said}"
    );
    let (code, said) = refusal("volume = \"volume\"", &[]);
    assert!(code == Some(2) && said.contains("--nbd ADDRESS"), "{said}");
    let timed = "volume = \"nothing\"\nnbd = \"unix:s\"\ntiming = \"model\"";
    let (code, said) = refusal(timed, &["--seed", "2"]);
    assert!(code == Some(2) && said.contains("nothing is not the folder of a volume"), "{said}");
    let (code, said) = refusal(&timed.replace("timing", "#"), &["--seed", "2"]);
    assert!(code == Some(2) && said.contains("--timing <TIMING>"), "{said}");
    let (code, said) = refusal("volume = ", &[]);
    assert!(code == Some(2) && said.starts_with("error: reading c.toml: "), "{said}");
}

#[test]
fn what_a_server_cannot_do_is_refused_before_the_volume_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    create_small_drive(folder.path());
    let floatgate = |args: &[&str]| floatgate(folder.path(), args);
    let power_cycles = || {
        let shown = floatgate(&["status", "volume", "--json"]);
        let status: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
        status["smart"]["power_cycles"].as_u64().expect("a number")
    };
    fs::write(folder.path().join("taken.rec"), "").unwrap();
    let schedule = "[[fault]]\nkind = \"fail-die\"\ndie = 4\nafter_ms = 1\n";
    fs::write(folder.path().join("faults.toml"), schedule).unwrap();
    fs::write(folder.path().join("hidden.toml"), schedule.replace('4', "\"a\"")).unwrap();
    assert!(floatgate(&["export", "add", "volume", "logs", "--size", "1MiB"]).status.success());
    let before = power_cycles();
    for (code, option, expected) in [
        (1, &["--record", "taken.rec"][..], "taken.rec already exists"),
        (2, &["--export", "data"], "volume has no export named `data`\nhint: its exports are logs"),
        (2, &["--fault-injection", "faults.toml"], "names die 4, but there are 4 dies, counted"),
        (
            2,
            &["--fault-injection", "hidden.toml"],
            "expected a whole number from 0 to 4294967295\n",
        ),
        (2, &["--max-connections", "0"], "the maximum number of clients is 0"),
        (2, &["--max-connections-per-peer", "0"], "the maximum number of clients is 0"),
        (2, &["--monitor-test"], "--monitor-test has no recipient"),
    ] {
        let record: &[&str] = if option[0] == "--record" { &[] } else { &["--record", "new.rec"] };
        let args = [&["serve", "volume", "--nbd", "unix:s"], record, option].concat();
        let refused = floatgate(&args);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(code) && said.contains(expected), "{said}");
        assert!(!folder.path().join("new.rec").exists(), "{args:?} left a recording");
    }
    assert_eq!(power_cycles(), before, "none opened the volume");
}

#[test]
fn a_volume_in_memory_of_no_whole_blocks_is_refused_with_sizes_that_are() {
    let folder = tempfile::tempdir().unwrap();
    let serve = |options: &[&str]| {
        let args = [&["serve", "--nbd", "unix:s"], options].concat();
        let refused = floatgate(folder.path(), &args);
        (refused.status.code(), said(&refused))
    };
    assert_eq!(
        serve(&["--memory", "1000001b"]),
        (
            Some(2),
            "error: --memory 1000001b: must be a multiple of 512 bytes, a logical block\n\
             hint: use 999936b or 1000448b\n"
                .to_owned()
        )
    );
    let (_, said) = serve(&["--memory", "512b", "--nvme-block-bytes", "4096"]);
    assert!(said.ends_with("hint: use 4096b\n"), "{said}");
}

#[test]
fn a_server_for_a_job_ends_once_no_client_is_left() {
    let begun = Instant::now();
    let mut served = Served::start(&["--memory", "1MiB", "--exit-when-idle", "300ms"]);
    if is_there("nbdinfo") {
        client("nbdinfo", &["--size", &served.uri]);
    }
    assert!(served.ended().success());
    assert!(begun.elapsed() >= Duration::from_millis(300));
}

#[test]
fn secrets_that_other_users_may_read_are_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secrets");
    let secret = "DHHC-1:00:ia6zGodOr4SEG0Zzaw398rpY0wqipUWj4jWjUh4HWUz6aQ2n:";
    fs::write(&file, format!("nqn.2014-08.org.host {secret}\n")).unwrap();
    let options = ["--nvme", "tcp:0", "--nvme-secrets", "secrets", "--exit-when-idle", "1ms"];
    let args = [&["serve", "--memory", "1MiB"][..], &options].concat();
    for (mode, is_warned) in [(0o644, true), (0o600, false)] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let ended = floatgate(folder.path(), &args);
        assert!(ended.status.success(), "{}", said(&ended));
        let warning = "other users may use the secrets in secrets, which has mode 644: `chmod 600";
        assert_eq!(said(&ended).contains(warning), is_warned, "{}", said(&ended));
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let done = floatgate(folder.path(), &["man", "man1"]);
    assert!(done.status.success());
    for page in [
        "floatgate.1",
        "floatgate-volume.1",
        "floatgate-volume-serve.1",
        "floatgate-trace-record.1",
    ] {
        let text = fs::read_to_string(folder.path().join("man1").join(page)).unwrap();
        assert!(text.contains(".SH NAME"), "{page}");
    }
}

#[test]
fn the_units_are_some_and_leave_the_service_little_to_harm() {
    if !is_there("systemd-analyze") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let unit_named =
        |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib").join(name);
    let service = |name: &str, instance: &str| {
        let text = fs::read_to_string(unit_named(name)).unwrap();
        // Where the command would be installed there is none on a machine that builds it.
        let text = text.replace("/usr/bin/floatgate", env!("CARGO_BIN_EXE_floatgate"));
        let path = folder.path().join(instance);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let drive = service("floatgate@.service", "floatgate@scratch.service");
    let dashboard = service("floatgate-dashboard.service", "floatgate-dashboard.service");
    let socket = unit_named("floatgate@.socket");
    fs::copy(socket, folder.path().join("floatgate@scratch.socket")).unwrap();
    let socket = folder.path().join("floatgate@scratch.socket").display().to_string();
    client("systemd-analyze", &["verify", "--man=no", &drive, &dashboard, &socket]);
    for unit in [&drive, &dashboard] {
        let args = ["security", "--offline=true", "--threshold=20", "--no-pager", unit];
        client("systemd-analyze", &args);
    }
}
