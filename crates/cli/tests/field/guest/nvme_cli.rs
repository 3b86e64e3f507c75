//! The tests that the source package of nvme-cli brings, on a served drive as the NVMe drive on PCI
//! Express of an emulated machine. `cargo xtask test` unpacks them below `target/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::emulator::emulator_is_missing;
use super::linux::{self, Said, listen, serve_any};
use super::{Archive, Running, kernel, lines_of, vfio_user};
use crate::skip;

/// Programs that the guest and the tests run.
const PROGRAMS: [&str; 16] = [
    "sh", "mount", "cat", "sleep", "ls", "find", "grep", "awk", "tr", "cut", "wc", "dd", "dmesg",
    "insmod", "nvme", "python3",
];
/// Modules of Python that the tests import, and those that it loads without being asked.
const IMPORTS: &str = "import encodings.ascii, encodings.idna, encodings.latin_1, unittest.main, \
                       unittest.async_case, unittest.loader, unittest.runner, argparse, difflib, \
                       filecmp, pprint, json, math, mmap, os, random, re, runpy, shutil, stat, \
                       subprocess, sys, time, traceback";
/// Size of the drive, of which memory holds what is written: the tests create namespaces of 20 Mi
/// blocks, of 4096 bytes, too.
const SIZE: &str = "96GiB";
/// Variable that also has the longest test run, of three minutes, which uses all namespaces.
const ALL_VARIABLE: &str = "FLOATGATE_GUEST_ALL";
const LONGEST: &str = "nvme_create_max_ns";
/// Python starts twenty times on an emulated processor.
const PATIENCE: Duration = Duration::from_mins(20);
/// Tests that fail on this drive, and why.
const FAILURES: [(&str, &str); 4] = [
    (LONGEST, "creates, uses and deletes all 63, then calls a method of `super` itself"),
    ("nvme_get_lba_status", "Get LBA Status is optional, and not offered"),
    ("nvme_lba_status_log", "so is its log page"),
    ("nvme_smart_log", "looks for names of fields that this nvme-cli prints otherwise"),
];

/// The folder of the unpacked tests.
fn tests() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("guest-nvme-cli");
    let sources = fs::read_dir(folder).into_iter().flatten().flatten();
    let tests = sources.map(|entry| entry.path().join("tests")).find(|tests| tests.is_dir());
    if tests.is_none() {
        skip("nvme-cli's own tests are not there: `cargo xtask test` unpacks them");
    }
    tests
}

/// Adds the modules of this machine's Python that the tests need, where it looks for them.
fn add_modules(archive: &mut Archive) {
    let print = "from importlib.util import find_spec; \
                 print(find_spec('unittest.__main__').origin); \
                 print(*(it.__file__ for it in list(sys.modules.values()) \
                 if getattr(it, '__file__', None)), sep='\\n')";
    let said = Command::new("/usr/bin/python3")
        .args(["-I", "-S", "-c", &format!("{IMPORTS}; {print}")])
        .output()
        .unwrap();
    assert!(said.status.success(), "{said:?}");
    let paths = String::from_utf8(said.stdout).unwrap();
    for path in paths.lines().map(Path::new) {
        let within = path.strip_prefix("/").unwrap();
        archive.file(within, &fs::read(path).unwrap());
    }
}

/// The machine's first files: its programs, Python, and the tests in their folder.
fn first_files(kernel: &Path, tests: &Path) -> Option<(Vec<u8>, Vec<String>)> {
    let script = include_bytes!("nvme_cli.sh");
    let mut archive = linux::first_files(kernel, (&PROGRAMS, &[]), script)?;
    add_modules(&mut archive);
    let mut names = Vec::new();
    for entry in fs::read_dir(tests).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        archive.file(&Path::new("tests").join(&name), &fs::read(entry.path()).unwrap());
        names.extend(name.strip_suffix("_test.py").map(str::to_owned));
    }
    // The base class, and an example that tests nothing.
    names.retain(|name| name != "nvme" && name != "nvme_simple_template");
    if std::env::var_os(ALL_VARIABLE).is_none() {
        names.retain(|name| name != LONGEST);
    }
    // What it leaves behind is too small for the others.
    names.sort_by_key(|name| (name == LONGEST, name.clone()));
    archive.file(Path::new("etc/tests"), (names.join("\n") + "\n").as_bytes());
    Some((archive.finished(), names))
}

/// Boots the machine with a drive, and returns what each test said.
fn said(kernel: &Path, first_files: &[u8]) -> Said {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("initramfs"), first_files).unwrap();
    let socket = folder.path().join("drive.sock");
    let at = ["--vfio-user", socket.to_str().unwrap()];
    let (_server, line) = serve_any(&[&["--memory", SIZE], &at[..]].concat());
    assert!(line.starts_with("vfio-user:"), "{line}");
    let mut guest = Running(vfio_user::machine(folder.path(), kernel, (&[&socket], 1)));
    let lines = lines_of(&mut guest.0);
    listen(&lines, PATIENCE, |_| {})
}

#[test]
#[expect(clippy::print_stderr, reason = "what each test said is told to who asks for it")]
fn the_tests_of_nvme_cli_pass() {
    let Some(tests) = tests() else { return };
    let Some(kernel) = kernel() else { return };
    if emulator_is_missing() {
        return;
    }
    let Some((archive, names)) = first_files(&kernel, &tests) else { return };
    assert!(names.len() >= 18, "{names:?}");
    let said = said(&kernel, &archive);
    if let Some(text) = said.get(LONGEST) {
        assert!(text.contains("#### Deleting 63"), "{text}");
    }
    for name in &names {
        let text = said.get(name).unwrap_or_else(|| panic!("{name} was not run: {said:#?}"));
        eprintln!("{name}:\n{text}");
    }
    for name in &names {
        let is_passed = said[name].ends_with("guest: exit 0\n");
        let fails = FAILURES.iter().find(|(test, _)| test == name);
        assert_eq!(is_passed, fails.is_none(), "{name}: {fails:?}: {}", said[name]);
    }
}
