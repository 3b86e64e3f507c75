//! Drives that are purged, formatted and resized, whether they are closed or served.

use std::fs;

use serde_json::Value;

use super::clients::noise;
use super::served::{Served, assert_done, client, floatgate, is_there, said, small_drive, status};

#[test]
fn a_closed_drive_is_destroyed_only_by_its_number() {
    let folder = tempfile::tempdir().unwrap();
    small_drive(folder.path()).close().unwrap();
    let floatgate = |args: &[&str]| floatgate(folder.path(), args);
    let before = status(floatgate);
    let number = before["drive"].as_str().unwrap();
    for args in [&["purge", "volume"][..], &["format", "volume", "--capacity", "stock"]] {
        let other = "0123456789abcdef";
        for (more, told) in [
            (&[][..], format!("destroys 2.10 MB of stored data; --destroy {number} allows that")),
            (&["--destroy", other], format!("the volume ID of volume is {number}, not {other}")),
        ] {
            let refused = floatgate(&[args, more].concat());
            assert!(!refused.status.success());
            assert!(said(&refused).contains(&told), "{}", said(&refused));
        }
    }
    assert_eq!(status(floatgate), before);
    assert_done(&floatgate(&["purge", "volume", "--destroy", &number.to_uppercase()]));
    assert_eq!(status(floatgate)["space"]["logical_bytes"], 0);
    let high = ["format", "volume", "--capacity", "high-performance", "--destroy", number];
    assert_done(&floatgate(&high));
    let bytes = |status: &Value| status["format"]["capacity_bytes"].as_u64().unwrap();
    assert!(bytes(&status(floatgate)) < bytes(&before) * 9 / 10);
    let odd = floatgate(&["format", "volume", "--capacity", "4000k", "--destroy", number]);
    assert_done(&odd);
    let told = "(3997696 bytes, rounded down from 4000000 to a multiple of 4096)";
    assert!(said(&odd).contains(told), "{}", said(&odd));
    assert_eq!(bytes(&status(floatgate)), 3_997_696);
    assert_done(&floatgate(&["check", "volume"]));
}

#[test]
fn a_closed_drive_becomes_larger_and_smaller() {
    let folder = tempfile::tempdir().unwrap();
    small_drive(folder.path()).close().unwrap();
    let floatgate = |args: &[&str]| floatgate(folder.path(), args);
    let number = status(floatgate)["drive"].as_str().unwrap().to_owned();
    assert_done(&floatgate(&["resize", "volume", "--size", "4MiB"]));
    let refused = floatgate(&["resize", "volume", "--size", "1MiB"]);
    let told = format!("allow it to be lost with --destroy {number}");
    assert!(said(&refused).contains(&told), "{}", said(&refused));
    let other = floatgate(&["resize", "volume", "--size", "1MiB", "--destroy", "wrong"]);
    let told = format!("the volume ID of volume is {number}, not wrong");
    assert!(said(&other).contains(&told), "{}", said(&other));
    let large = floatgate(&["resize", "volume", "--size", "1GiB"]);
    let told = said(&large);
    assert!(told.contains("the dies have room for at most"), "{told}");
    assert_eq!(status(floatgate)["format"]["capacity_bytes"], 4 << 20);
    let most = told.trim().strip_suffix(" bytes").and_then(|it| it.rsplit_once(' ')).unwrap().1;
    assert_done(&floatgate(&["resize", "volume", "--size", &format!("{most}b")]));
    let beyond = format!("{}b", most.parse::<u64>().unwrap() + 4096);
    assert!(!floatgate(&["resize", "volume", "--size", &beyond]).status.success());
    assert_done(&floatgate(&["resize", "volume", "--size", "1MiB", "--destroy", &number]));
    let now = status(floatgate);
    assert_eq!(now["format"]["capacity_bytes"], 1 << 20);
    assert_eq!(now["space"]["logical_bytes"], 1 << 20);
}

#[test]
fn a_served_drive_is_purged_and_formatted_only_where_that_is_allowed() {
    if !is_there("nbdcopy") {
        return;
    }
    let served = Served::start_small_drive();
    let (there, back) = (served.path("there.img"), served.path("back.img"));
    noise(&there, 8 << 20);
    client("nbdcopy", &["--flush", there.to_str().unwrap(), &served.uri]);
    let floatgate = |args: &[&str]| served.beside(args);
    let number = status(floatgate)["drive"].as_str().unwrap().to_owned();
    let purge = ["purge", "volume", "--destroy", &number];
    let refused = floatgate(&purge);
    let told = format!("process {} serves volume; stop it first", served.pid());
    assert!(said(&refused).contains(&told), "{}", said(&refused));
    assert_done(&floatgate(&[&purge[..], &["--while-served"]].concat()));
    client("nbdcopy", &[&served.uri, back.to_str().unwrap()]);
    assert!(fs::read(&back).unwrap().iter().all(|byte| *byte == 0));
    let format = ["format", "volume", "--capacity", "4MiB", "--destroy", &number, "--while-served"];
    assert_done(&floatgate(&format));
    assert_eq!(status(floatgate)["format"]["capacity_bytes"], 4 << 20);
    fs::remove_file(&back).unwrap();
    client("nbdcopy", &[&served.uri, back.to_str().unwrap()]);
    assert_eq!(fs::metadata(&back).unwrap().len(), 4 << 20);
}

#[test]
fn a_purge_or_format_that_does_not_reach_a_failed_die_names_it_and_fails() {
    let folder = tempfile::tempdir().unwrap();
    small_drive(folder.path()).close().unwrap();
    let floatgate = |args: &[&str]| floatgate(folder.path(), args);
    assert_done(&floatgate(&["fail-die", "volume", "1"]));
    let closed = floatgate(&["status", "volume", "--json"]);
    let closed: Value = serde_json::from_slice(&closed.stdout).unwrap();
    let number = closed["drive"].as_str().unwrap();
    let die = folder.path().join("d1.img");
    let told = format!(
        "Die 1 ({}) has failed and was not erased: destroy it, or erase it by other means; all \
         other dies were erased",
        die.display()
    );
    let purge = ["purge", "volume", "--destroy", number];
    let format = ["format", "volume", "--capacity", "4MiB", "--destroy", number];
    for args in [&purge[..], &format] {
        let failed = floatgate(args);
        assert_eq!(failed.status.code(), Some(1), "{}", said(&failed));
        assert!(said(&failed).contains(&told), "{}", said(&failed));
    }
    let new = ["replace-die", "volume", "1", "--with", "new.img"];
    assert_done(&floatgate(&new));
    assert_done(&floatgate(&purge));
}
