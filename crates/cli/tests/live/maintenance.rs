//! Drives that store, looked after: checks of closed ones, dies that fail and are replaced, scrubs.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use serde_json::Value;

use super::clients::noise;
use super::served::{Served, assert_done, client, floatgate, is_there, said, small_drive};

/// Spoils what lies in the middle of a die.
fn spoil(die: &Path) {
    let file = OpenOptions::new().write(true).open(die).expect("a die is there");
    let size = file.metadata().expect("it is open").len();
    let third = usize::try_from(size / 3).expect("a small die");
    file.write_all_at(&vec![0xaa; third], size / 2).expect("it takes bytes");
}

#[test]
fn a_check_finds_rot_and_repairs_it() {
    let folder = tempfile::tempdir().unwrap();
    small_drive(folder.path()).close().unwrap();
    let floatgate = |args: &[&str]| floatgate(folder.path(), args);
    let clean = floatgate(&["check", "volume"]);
    assert_done(&clean);
    assert!(said(&clean).contains("clean: no errors found"), "{}", said(&clean));
    spoil(&folder.path().join("d2.img"));
    let found = floatgate(&["check", "volume"]);
    assert_eq!(found.status.code(), Some(1));
    for part in ["data units: ", "repairable  unit of row ", " on die 2 ", "--repair can repair"] {
        assert!(said(&found).contains(part), "no {part} in\n{}", said(&found));
    }
    let repaired = floatgate(&["check", "volume", "--repair", "--json"]);
    assert_done(&repaired);
    let report: Value = serde_json::from_slice(&repaired.stdout).unwrap();
    assert!(report["repaired"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(report["findings"].as_array().unwrap().len(), 0, "{report}");
    assert_done(&floatgate(&["check", "volume"]));
}

#[test]
fn a_closed_drive_gets_another_die() {
    let folder = tempfile::tempdir().unwrap();
    small_drive(folder.path()).close().unwrap();
    let floatgate = |args: &[&str]| floatgate(folder.path(), args);
    let early = floatgate(&["replace-die", "volume", "1", "--with", "new.img"]);
    assert!(said(&early).contains("die 1 has not failed; fail it first"), "{}", said(&early));
    let (restored, lost) = ("it tolerates 1 more failure", "another failure loses data");
    for (die, redundancy) in [("1", restored), ("2", restored), ("3", lost)] {
        let failed = floatgate(&["fail-die", "volume", die]);
        assert_done(&failed);
        assert!(said(&failed).contains(redundancy), "{}", said(&failed));
    }
    let last = floatgate(&["fail-die", "volume", "0"]);
    let told = "no redundancy is left, so this would lose data: `floatgate volume replace-die`";
    assert!(said(&last).contains(told), "{}", said(&last));
    assert_eq!(floatgate(&["check", "volume"]).status.code(), Some(1));
    for die in ["1", "2", "3"] {
        let new = format!("new{die}.img");
        assert_done(&floatgate(&["replace-die", "volume", die, "--with", &new]));
    }
    assert_done(&floatgate(&["check", "volume"]));
    let none = floatgate(&["fail-die", "volume", "9"]);
    let told = "die 9 does not exist: the volume has 4 dies, numbered from 0";
    assert!(said(&none).contains(told), "{}", said(&none));
}

#[test]
fn a_hot_spare_is_removed_from_a_closed_volume_and_from_a_served_one() {
    let spares = |status: &Value| status["hot_spares"].as_u64();
    let (add, remove) =
        (["add-spare", "volume", "spare.img"], ["remove-spare", "volume", "spare.img"]);
    let folder = tempfile::tempdir().unwrap();
    small_drive(folder.path()).close().unwrap();
    let closed = |args: &[&str]| floatgate(folder.path(), args);
    assert_done(&closed(&add));
    assert_done(&closed(&remove));
    let again = closed(&remove);
    assert_eq!(again.status.code(), Some(1));
    assert!(said(&again).contains("is no hot spare: the volume has none"), "{}", said(&again));
    let served = Served::start_small_drive();
    let status = || -> Value {
        serde_json::from_slice(&served.beside(&["status", "volume", "--json"]).stdout).unwrap()
    };
    assert_done(&served.beside(&add));
    assert_eq!(spares(&status()), Some(1));
    assert_done(&served.beside(&remove));
    let now = status();
    assert_eq!(spares(&now), Some(0));
    let told = now["server"]["events"].to_string();
    assert!(told.contains("Request to remove the hot spare"), "{told}");
    assert!(served.path("spare.img").exists(), "it is kept");
    let die = served.beside(&["remove-spare", "volume", "d1.img"]);
    assert!(said(&die).contains("is a die of the volume, and no hot spare"), "{}", said(&die));
}

#[test]
fn clients_go_on_while_a_die_fails_is_replaced_and_the_next_one_fails() {
    if !is_there("nbdcopy") {
        return;
    }
    let served = Served::start_small_drive();
    let (there, back) = (served.path("there.img"), served.path("back.img"));
    noise(&there, 8 << 20);
    let [from, to] = [&there, &back].map(|path| path.to_str().unwrap());
    client("nbdcopy", &["--flush", from, &served.uri]);
    let comes_back = || {
        client("nbdcopy", &[&served.uri, to]);
        assert!(fs::read(&there).unwrap() == fs::read(&back).unwrap());
    };
    let none = served.beside(&["fail-die", "volume", "64"]);
    let told = "die 64 does not exist: the volume has 4 dies, numbered from 0";
    assert!(said(&none).contains(told), "{}", said(&none));
    assert_done(&served.beside(&["fail-die", "volume", "3"]));
    comes_back();
    let replace = ["replace-die", "volume", "3", "--with", "new.img"];
    assert_done(&served.beside(&[&replace[..], &["--no-wait"]].concat()));
    client("nbdcopy", &["--flush", from, &served.uri]);
    comes_back();
    // Until it is whole the next one is not let go.
    let mut rounds = 0;
    while !served.beside(&["fail-die", "volume", "0"]).status.success() {
        rounds += 1;
        assert!(rounds < 1000, "die 3 is never whole");
    }
    comes_back();
    assert_done(&served.beside(&["scrub", "volume"]));
    let status = served.beside(&["status", "volume", "--json"]);
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    let maintenance = &status["maintenance"];
    assert_eq!(maintenance["rebuild"]["failure"], Value::Null, "{maintenance}");
    assert_eq!(maintenance["scrub"]["units_bad"], 0, "{maintenance}");
    assert_eq!(maintenance["scrub"]["rows_done"], maintenance["scrub"]["rows"], "{maintenance}");
}

#[test]
fn a_scrub_of_a_served_drive_repairs_what_has_rotted() {
    if !is_there("nbdcopy") {
        return;
    }
    let mut served = Served::start_small_drive();
    let stored = served.path("there.img");
    noise(&stored, 8 << 20);
    client("nbdcopy", &["--flush", stored.to_str().unwrap(), &served.uri]);
    spoil(&served.path("d1.img"));
    let scrubbed = served.beside(&["scrub", "volume"]);
    assert_done(&scrubbed);
    assert!(!said(&scrubbed).contains(": 0 corrupt units found"), "{}", said(&scrubbed));
    assert!(served.stop().success());
    assert_done(&served.beside(&["check", "volume"]));
}

#[test]
fn power_that_is_cut_takes_the_server_and_leaves_what_was_flushed() {
    if !is_there("nbdcopy") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    small_drive(folder.path()).close().unwrap();
    let volume = folder.path().join("volume").display().to_string();
    let mut served = Served::start_in(folder, &[&volume, "--fault-injection"]);
    let there = served.path("there.img");
    noise(&there, 8 << 20);
    client("nbdcopy", &["--flush", there.to_str().unwrap(), &served.uri]);
    assert_done(&served.beside(&["inject", "volume", "stall", "50ms"]));
    assert_done(&served.beside(&["inject", "volume", "cut-power"]));
    assert_eq!(served.ended().code(), Some(137));
    let served = Served::start_in(served.kill(), &[&volume]);
    let back = served.path("back.img");
    client("nbdcopy", &[&served.uri, back.to_str().unwrap()]);
    assert!(fs::read(served.path("there.img")).unwrap() == fs::read(back).unwrap());
    let refused = served.beside(&["inject", "volume", "cut-power"]);
    assert!(
        said(&refused).contains("start the server with --fault-injection"),
        "{}",
        said(&refused)
    );
}

#[test]
fn a_server_that_an_option_keeps_from_starting_leaves_the_volume_closed() {
    let folder = tempfile::tempdir().unwrap();
    small_drive(folder.path()).close().unwrap();
    for name in ["recording", "files/there"] {
        fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
        fs::write(folder.path().join(name), "in the way").unwrap();
    }
    for (wrong, value) in
        [("--nvme-block-bytes", "1000"), ("--record", "recording"), ("--fuse", "files")]
    {
        let serve = ["serve", "volume", "--nbd", "unix:socket", wrong, value];
        let refused = floatgate(folder.path(), &serve);
        assert!(!refused.status.success(), "{}", said(&refused));
        let status = super::served::status(|args| floatgate(folder.path(), args));
        assert_eq!(status["state"], "closed", "{wrong}: {}", said(&refused));
        assert_eq!(status["smart"]["unsafe_shutdowns"], 0, "{wrong}");
    }
}
