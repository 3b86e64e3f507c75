//! Drives that store, looked at from outside: `floatgate volume status` on closed drives.

use std::process::Output;

use serde_json::Value;

use super::served::{floatgate, small_drive};

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("text")
}

#[test]
fn a_closed_drive_is_shown_as_text_and_as_json_that_agree() {
    let folder = tempfile::tempdir().unwrap();
    small_drive(folder.path()).close().unwrap();
    let json = printed(&floatgate(folder.path(), &["status", "volume", "--json"]));
    let status: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&status["schema"], &status["state"]), (&Value::from(2), &Value::from("closed")));
    assert_eq!(status["space"]["stored_bytes"], 2 << 20);
    assert_eq!(status["smart"]["critical_warning"], 0);
    let text = printed(&floatgate(folder.path(), &["status", "volume", "--all"]));
    let number = status["drive"].as_str().unwrap();
    for expected in [
        &format!("{number}, closed"),
        "8.39 MB for clients",
        "4 dies, 3+1",
        "2.10 MB of 8.39 MB, 25.0 %",
        "ok; spare 100 %; 0 pages lost",
        "0 of 4 failed",
        "1, unsafe shutdowns 0",
        "die 3",
    ] {
        assert!(text.contains(expected), "no `{expected}` in\n{text}");
    }
    let paths = text.lines().filter(|line| line.starts_with("die "));
    for (index, line) in paths.enumerate() {
        let path = folder.path().join(format!("d{index}.img"));
        assert!(line.ends_with(&path.display().to_string()), "{line}");
    }
    let others = text.lines().filter(|line| !line.starts_with("die "));
    assert!(others.into_iter().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn a_drive_that_was_not_closed_and_one_in_use_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let drive = small_drive(folder.path());
    let refused = floatgate(folder.path(), &["status", "volume"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(said, "error: volume is in use by another process; stop that first\n");
    drop(drive);
    let shown = floatgate(folder.path(), &["status", "volume"]);
    assert_eq!(shown.status.code(), Some(4), "it is degraded");
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(text.contains("unclean shutdown; it is recovered when it is next served"), "{text}");
    assert!(text.contains("degraded; spare unknown; lost pages unknown"), "{text}");
    let shown = floatgate(folder.path(), &["status", "volume", "--json"]);
    let status: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!((&status["pages_lost"], &status["state"]), (&Value::Null, &"unclosed".into()));
    assert_eq!(status["smart"]["available_spare"], Value::Null);
}

#[test]
fn a_folder_without_a_drive_is_refused_once() {
    let folder = tempfile::tempdir().unwrap();
    let refused = floatgate(folder.path(), &["status", "nothing"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    let why = "nothing is not the folder of a volume: there is no such folder";
    assert!(said.starts_with(&format!("error: finding nothing: {why}\nhint: ")), "{said}");
    assert_eq!((said.lines().count(), refused.status.code()), (2, Some(2)));
}
