//! Keys of encrypted volumes, by the commands that take them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::served::floatgate;

/// Text of a command on stderr, and whether it succeeded.
fn said(folder: &Path, args: &[&str]) -> (String, bool) {
    let output = floatgate(folder, args);
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.success())
}

#[test]
fn a_rekey_is_in_the_events_with_the_media_that_it_does_not_reach() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for name in ["one", "two"] {
        fs::write(at.join(name), format!("passphrase {name}\r\n")).unwrap();
        fs::set_permissions(at.join(name), Permissions::from_mode(0o600)).unwrap();
    }
    let dies = "d0.img,d1.img,d2.img";
    let base = ["volume", "create", "v", "--dies", dies, "--size", "8MiB", "--sparse"];
    let created = said(at, &[&base[..], &["--encrypt", "--key-file", "one"]].concat());
    assert!(created.1 && !created.0.contains("warning"), "{created:?}");
    let failed = said(at, &["volume", "fail-die", "v", "1", "--key-file", "one"]);
    assert!(failed.1, "{failed:?}");

    // One that others may read, and a command.
    fs::set_permissions(at.join("one"), Permissions::from_mode(0o644)).unwrap();
    let new = ["--new-key-command", "cat two; cat"];
    let rekeyed = said(at, &[&["volume", "rekey", "v", "--key-file", "one"], &new[..]].concat());
    assert!(rekeyed.1, "{rekeyed:?}");
    assert!(rekeyed.0.contains("the key file one may be read by its group"), "{rekeyed:?}");
    assert!(rekeyed.0.contains("d1.img, die 1, may hold headers that the former"), "{rekeyed:?}");
    fs::write(at.join("latin"), b"\xe4\xf6\xfc").unwrap();
    let bad = ["volume", "rekey", "v", "--key-file", "two", "--new-key-file", "latin"];
    let bad = said(at, &bad);
    assert!(!bad.1 && bad.0.contains("neither text in UTF-8"), "{bad:?}");
    let former = said(at, &["volume", "rekey", "v", "--key-file", "one", "--new-key-file", "two"]);
    assert!(!former.1 && former.0.contains("is not the one"), "{former:?}");

    let events = fs::read_to_string(at.join("v/events.jsonl")).unwrap();
    let of_keys: Vec<&str> = events.lines().filter(|line| line.contains("another key")).collect();
    let [given, refused] = of_keys[..] else { panic!("{events}") };
    assert!(given.contains("was given another key. ") && given.contains("d1.img, die 1, may"));
    assert!(refused.contains("was not given another key: the new key is neither"), "{refused}");
    assert!(!events.contains("passphrase one") && !events.contains("passphrase two"));
}
