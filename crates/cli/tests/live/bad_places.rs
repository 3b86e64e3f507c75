//! Places of a die where its medium fails: read from parity, listed, emptied, and not written again
//! by this server nor by one after it was killed.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use live::{Device as _, Durability};
use serde_json::Value;

use super::clients::noise;
use super::served::{Served, assert_done, client, is_there, small_drive, status};

/// Time limit for a superblock to be retired.
const PATIENCE: Duration = Duration::from_mins(1);
const DIE: usize = 1;

/// The state of the only bad place, once there is one.
fn bad_place(status: &Value) -> Option<&Value> {
    let places = status["maintenance"]["bad_places"].as_array().expect("it is a list");
    assert!(places.len() <= 1, "{places:?}");
    places.first()
}

/// Contents of a die in the range of a bad place.
fn contents(folder: &Path, place: &Value) -> Vec<u8> {
    let number =
        |name: &str| usize::try_from(place[name].as_u64().expect("a number")).expect("a small die");
    let (from, length) = (number("offset_bytes"), number("length_bytes"));
    let die = fs::read(folder.join(format!("d{DIE}.img"))).expect("it is there");
    die[from..from + length].to_vec()
}

/// The last range of a die where a page of sevens lies: a copy in the journal is before it.
fn page_of_sevens(folder: &Path) -> Range<usize> {
    let die = fs::read(folder.join(format!("d{DIE}.img"))).expect("it is there");
    let is_page = |at: &usize| die[*at..*at + 4096].iter().all(|byte| *byte == 7);
    let from = (0..die.len() - 4096).rev().find(is_page).expect("it holds some");
    from..from + 4096
}

fn serve(folder: tempfile::TempDir) -> Served {
    let volume = folder.path().join("volume").display().to_string();
    Served::start_in(folder, &[&volume, "--fault-injection"])
}

fn told(served: &Served) -> Value {
    status(|args| served.beside(args))
}

/// Writes everything that clients may, a few times.
fn rewrite(served: &Served) {
    let noise_file = served.path("noise.img");
    noise(&noise_file, 8 << 20);
    for _ in 0..3 {
        client("nbdcopy", &["--flush", noise_file.to_str().expect("it is text"), &served.uri]);
    }
}

#[test]
fn a_place_that_fails_is_not_written_again_also_after_the_server_was_killed() {
    if !is_there("nbdcopy") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder is made");
    let drive = small_drive(folder.path());
    drive.write(0, &vec![7; 2 << 20], Durability::Durable).expect("there is room");
    drive.close().expect("the files take it");
    let bad = page_of_sevens(folder.path());

    let served = serve(folder);
    let (from, length) = (bad.start.to_string(), bad.len().to_string());
    let die = DIE.to_string();
    let fault = ["inject", "volume", "fail-range", &die, "--from", &from, "--length", &length];
    assert_done(&served.beside(&fault));
    let copy = served.path("copy.img");
    client("nbdcopy", &[&served.uri, copy.to_str().expect("it is text")]);
    let read = fs::read(&copy).expect("it was made");
    assert!(read[..2 << 20].iter().all(|byte| *byte == 7), "parity answers");
    // It may be a page of parity, which no client reads.
    served.beside(&["scrub", "volume"]);
    let deadline = Instant::now() + PATIENCE;
    let place = loop {
        let told = told(&served);
        match bad_place(&told).filter(|place| place["state"] == "retired") {
            Some(place) => break place.clone(),
            None => assert!(Instant::now() < deadline, "never retired: {told}"),
        }
        thread::sleep(Duration::from_millis(20));
    };
    assert_eq!((&place["die"], &place["cause"]), (&Value::from(DIE), &"read-error".into()));
    let before = contents(served.path("").as_path(), &place);
    rewrite(&served);
    assert_eq!(contents(served.path("").as_path(), &place), before, "written again");

    let served = serve(served.kill());
    rewrite(&served);
    let status = told(&served);
    assert_eq!((bad_place(&status), &status["health"]["state"]), (Some(&place), &"ok".into()));
    let superblock = usize::try_from(place["superblock"].as_u64().expect("a number"));
    let map = status["space"]["superblocks"].as_str().expect("it is text");
    assert_eq!(&map[superblock.expect("a few")..][..1], "b", "{map}");
    assert_eq!(contents(served.path("").as_path(), &place), before, "written again");
    let said = served.beside(&["status", "volume", "--all"]);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let expected = "read errors since ";
    assert!(said.contains("1 place not to be used again") && said.contains(expected), "{said}");
}
