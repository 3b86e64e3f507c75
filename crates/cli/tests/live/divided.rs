//! Drives that are divided among exports.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::clients::noise;
use super::served::{Served, assert_done, client, floatgate, is_there, said, status};

/// Makes a drive of 8 MiB in a folder, of which 6 are divided.
fn create(folder: &Path) {
    let dies = "d0.img,d1.img,d2.img,d3.img";
    let exports = ["--export", "one=4MiB", "--export", "two=2MiB"];
    let create = ["create", "volume", "--dies", dies, "--size", "8MiB"];
    assert_done(&floatgate(folder, &[&create[..], &exports].concat()));
}

/// A server of a divided drive, and what its exports are reached by.
fn served() -> (Served, [String; 2]) {
    let folder = tempfile::tempdir().expect("a folder is made");
    create(folder.path());
    let volume = folder.path().join("volume").display().to_string();
    let served = Served::start_in(folder, &[&volume]);
    let uris = ["one", "two"].map(|name| served.uri.replace("///one?", &format!("///{name}?")));
    assert_eq!(uris[0], served.uri);
    (served, uris)
}

#[test]
fn every_export_is_listed_and_the_first_is_the_default() {
    if !is_there("nbdinfo") {
        return;
    }
    let (served, [one, two]) = served();
    let list: Value =
        serde_json::from_str(&client("nbdinfo", &["--list", "--json", &one])).unwrap();
    let exports: Vec<(&str, u64)> = list["exports"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["export-name"].as_str().unwrap(), it["export-size"].as_u64().unwrap()))
        .collect();
    assert_eq!(exports, [("one", 4 << 20), ("two", 2 << 20)]);
    assert_eq!(client("nbdinfo", &["--size", &two]).trim(), (2 << 20).to_string());
    let none = one.replace("///one?", "///?");
    assert_eq!(client("nbdinfo", &["--size", &none]).trim(), (4 << 20).to_string());
    let said = said(&served.beside(&["status", "volume"]));
    assert!(said.contains("`two`, 2.10 MB; 0 clients"), "{said}");
}

#[test]
fn what_is_copied_to_one_export_stays_when_the_other_is_trimmed() {
    if !is_there("nbdcopy") || !is_there("nbdsh") {
        return;
    }
    let (mut served, [one, two]) = served();
    let (there, back) = (served.path("there.img"), served.path("back.img"));
    noise(&there, 2 << 20);
    let [from, to] = [&there, &back].map(|path| path.to_str().expect("the folder's name is text"));
    client("nbdcopy", &["--flush", from, &two]);
    client("nbdcopy", &["--flush", &two, &one]);
    client("nbdcopy", &[&one, to]);
    let copied = fs::read(&back).unwrap();
    assert!(copied[..2 << 20] == fs::read(&there).unwrap());
    let trim =
        "import nbd, sys; h = nbd.NBD(); h.connect_uri(sys.argv[1]); h.trim(h.get_size(), 0)";
    client("/usr/bin/python3", &["-c", trim, &one]);
    let map = client("nbdinfo", &["--map", "--totals", &one]);
    assert!(map.contains("4194304 100.0%   3 hole,zero"), "{map}");
    client("nbdcopy", &[&two, to]);
    assert!(fs::read(&back).unwrap()[..2 << 20] == fs::read(&there).unwrap());
    assert!(served.stop().success());
}

#[test]
fn no_offset_reaches_from_one_export_into_another() {
    if !is_there("nbdsh") {
        return;
    }
    let (_served, [one, two]) = served();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/live/beyond.py");
    let said = client("/usr/bin/python3", &[script, &one, &two]);
    assert!(said.ends_with("none reached\n"), "{said}");
}

#[test]
fn exports_of_a_closed_drive_are_added_resized_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path());
    let floatgate = |args: &[&str]| floatgate(folder.path(), args);
    let names = || {
        let status = status(floatgate);
        let exports = status["namespaces"].as_array().unwrap().clone();
        let name = |it: &Value| format!("{} {}", it["name"].as_str().unwrap(), it["size_bytes"]);
        exports.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    let refused = floatgate(&["export", "add", "volume", "three", "--size", "4MiB"]);
    assert!(said(&refused).contains("the largest gap has 2 MiB of 8 MiB"), "{}", said(&refused));
    assert_done(&floatgate(&["export", "add", "volume", "three", "--size", "1MiB"]));
    let refused = floatgate(&["export", "resize", "volume", "two", "--size", "3MiB"]);
    assert!(said(&refused).contains("can grow to at most 2 MiB"), "{}", said(&refused));
    assert_done(&floatgate(&["export", "resize", "volume", "three", "--size", "2MiB"]));
    assert_done(&floatgate(&["export", "remove", "volume", "one"]));
    assert_eq!(names(), "two 2097152, three 2097152");
    let refused = floatgate(&["resize", "volume", "--size", "7MiB"]);
    assert!(said(&refused).contains("would exceed the capacity of 7 MiB"), "{}", said(&refused));
    assert_done(&floatgate(&["export", "remove", "volume", "three"]));
    assert_done(&floatgate(&["resize", "volume", "--size", "7MiB"]));
    assert_done(&floatgate(&["check", "volume"]));
}

#[test]
fn what_an_export_stores_is_lost_only_where_that_is_allowed() {
    if !is_there("nbdcopy") {
        return;
    }
    let (mut server, [_, two]) = served();
    let there = server.path("there.img");
    noise(&there, 2 << 20);
    client("nbdcopy", &["--flush", there.to_str().unwrap(), &two]);
    let running = server.beside(&["export", "remove", "volume", "two"]);
    assert!(said(&running).contains("is in use by process"), "{}", said(&running));
    assert!(server.stop().success());
    let floatgate = |args: &[&str]| server.beside(args);
    let number = status(floatgate)["drive"].as_str().unwrap().to_owned();
    for args in [&["resize", "volume", "two", "--size", "1MiB"][..], &["remove", "volume", "two"]] {
        let refused = floatgate(&[&["export"], args].concat());
        let told = said(&refused);
        let remedy = format!("MiB of stored data would be lost; --destroy {number} allows that");
        assert!(told.contains(&remedy), "{told}");
    }
    assert_done(&floatgate(&["export", "remove", "volume", "two", "--destroy", &number]));
    assert_eq!(status(floatgate)["space"]["logical_bytes"], 0);
}
