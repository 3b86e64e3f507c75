//! Applications that fail while they are measured, and are stopped or killed meanwhile: nothing is
//! left behind, and what was recorded says that it was cut short.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::recorded::{is_running, waits_until};
use crate::served::{floatgate, is_there, said};

/// An application with a server that does nothing, whose `run` is put in.
const SERVER: &str = r#"
schema = 1
name = "broken"
title = "A server"
description = "Its run fails."
source = "Our own."
threads = [1]
seconds = 1
space_bytes = 1_000_000

[steps]
load = '''
sleep LENGTH &
echo $! > "$SCRATCH/server"
echo data > "$FOLDER/data"
sync "$FOLDER/data"
'''
run = '''
RUN
'''
"#;

/// The database is killed, and its benchmark loses it.
const KILLED: &str = r#"
kill -9 $(cat "$SCRATCH/server")
echo "lost connection to server" >&2
"#;
/// The drive is written full.
const FULL: &str = r#"
head -c 100M /dev/zero > "$FOLDER/full" && exit 9
[ "$(stat -c %s "$FOLDER/full")" -gt 10000000 ]
"#;

/// Arguments that measure it on a drive in memory, and record it.
const MEASURE: [&str; 7] = ["app", "broken", "--memory", "64MiB", "--out", "recordings", "--json"];

fn stage(folder: &Path, run: &str, length: &str) {
    fs::create_dir(folder.join("applications")).expect("the folder takes files");
    let text = SERVER.replace("RUN", run).replace("LENGTH", length);
    fs::write(folder.join("applications/broken.toml"), text).expect("the folder takes files");
}

/// True if a mount or a loop device of the application in `folder` is there.
fn is_mounted(folder: &Path) -> bool {
    let scratch = fs::read_to_string(folder.join("scratch")).expect("`run` writes it");
    let mounts = fs::read_to_string("/proc/mounts").expect("Linux has it");
    let loops = Command::new("losetup").arg("--list").output().expect("it is there");
    let loops = String::from_utf8_lossy(&loops.stdout).into_owned();
    [mounts, loops].iter().any(|text| text.contains(scratch.trim()))
}

/// True if this machine cannot mount.
fn has_no_mounts(text: &str) -> bool {
    ["mounting files on", "losetup:", "mount:"].iter().any(|it| text.contains(it))
}

#[test]
fn a_database_that_is_killed_and_a_drive_that_is_full_are_told_of() {
    if !is_there("losetup") {
        return;
    }
    for (fault, length, told) in
        [(KILLED, "53.25", "lost connection to server"), (FULL, "54.25", "No space left on device")]
    {
        let folder = tempfile::tempdir().unwrap();
        let run = format!("echo \"$SCRATCH\" > scratch\n{fault}\nexit 1");
        stage(folder.path(), &run, length);
        let ran = floatgate(folder.path(), &MEASURE);
        let text = said(&ran);
        if has_no_mounts(&text) {
            eprintln!("no file system on this machine");
            return;
        }
        assert!(!ran.status.success() && text.contains(told), "{text}");
        assert!(text.contains("`run` of broken ended with exit status: 1"), "{text}");
        assert!(!is_running(length), "a process is left behind");
        assert!(!is_mounted(folder.path()), "a mount is left behind");
        let args = ["app", "broken", "p5800x", "--recordings", "recordings"];
        let refused = said(&floatgate(folder.path(), &args));
        // Nothing at all was asked of the drive where the database was gone before.
        let told = ["broken-t1.rec was cut short", "it has no request"];
        assert!(told.iter().any(|it| refused.contains(it)), "{refused}");
    }
}

#[test]
fn nothing_is_left_behind_where_a_failure_meets_ctrl_c_or_a_kill() {
    if !is_there("losetup") {
        return;
    }
    let crossed = [
        (KILLED, "INT", "55.25"),
        (KILLED, "KILL", "56.25"),
        (FULL, "INT", "57.25"),
        (FULL, "KILL", "58.25"),
    ];
    for (fault, signal, length) in crossed {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        // After the failure the benchmark hangs.
        let run = format!(
            "echo \"$SCRATCH\" > {here}/scratch\n{fault}\ntouch {here}/begun\nsleep {length}",
            here = path.display()
        );
        stage(&path, &run, length);
        let errors = fs::File::create(path.join("errors")).unwrap();
        let mut measured = Command::new(env!("CARGO_BIN_EXE_floatgate"))
            .args(MEASURE)
            .current_dir(&path)
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .unwrap();
        let begun = path.join("begun");
        if !waits_until(&|| begun.exists()) {
            measured.kill().unwrap();
            measured.wait().unwrap();
            let text = fs::read_to_string(path.join("errors")).unwrap();
            assert!(has_no_mounts(&text), "{text}");
            eprintln!("no file system on this machine");
            return;
        }
        let id = measured.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
        assert!(!measured.wait().unwrap().success(), "{signal}");
        assert!(waits_until(&|| !is_running(length)), "{signal} leaves a process behind");
        assert!(waits_until(&|| !is_mounted(&path)), "{signal} leaves a mount behind");
        let replayed = floatgate(&path, &["replay", "recordings/broken-t1.rec", "p5800x"]);
        let told = said(&replayed);
        assert!(
            told.contains("recording was cut short") || told.contains("it has no request"),
            "{told}"
        );
    }
}
