//! Linux with modules in an emulated machine that uses a server of this machine.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use super::emulator::emulator;
use super::{Archive, Running, archive_of};
use crate::skip;

/// Output of the guest under each name, with how the command ended as the last line.
pub(super) type Said = BTreeMap<String, String>;

/// The archive that a guest starts from, with programs of this machine, and modules of the kernel,
/// each after those that it needs: one that is built in is left out, but the last has to be there.
/// Its only process runs `script` after `begin.sh`. None if something is missing.
pub(super) fn first_files(
    kernel: &Path,
    (programs, modules): (&[&str], &[&str]),
    script: &[u8],
) -> Option<Archive> {
    let mut archive = archive_of(programs)?;
    let guest = kernel.parent().and_then(Path::parent)?;
    let mut present = Vec::new();
    find_modules(&guest.join("lib/modules"), &mut present);
    let mut names = String::new();
    for module in modules {
        let files = [format!("{module}.ko"), format!("{module}.ko.xz")];
        let is_it = |path: &&PathBuf| files.iter().any(|file| path.ends_with(file));
        if let Some(path) = present.iter().find(is_it) {
            let name = path.file_name().unwrap().to_str().unwrap();
            archive.file(&Path::new("lib/modules").join(name), &fs::read(path).unwrap());
            names.push_str(name);
            names.push('\n');
        } else if Some(module) == modules.last() {
            skip(&format!("the kernel of the guest has no module {module}"));
            return None;
        }
    }
    archive.file(Path::new("etc/modules"), names.as_bytes());
    archive.file(Path::new("init"), &[include_bytes!("begin.sh"), script].concat());
    Some(archive)
}

/// An emulated machine that boots `kernel` with the `initramfs` of a folder, with these devices of
/// QEMU and words for the kernel. It has one processor, unless the devices say otherwise.
pub(super) fn machine(folder: &Path, kernel: &Path, (devices, words): (&[&str], &str)) -> Child {
    emulator("qemu-system-x86_64")
        .args(["-nodefaults", "-no-user-config", "-nographic", "-serial", "stdio"])
        .args(["-accel", "tcg", "-cpu", "max", "-smp", "1", "-m", "1G"])
        .args(devices)
        .args(["-append", &format!("console=ttyS0 quiet panic=1 mitigations=off {words}")])
        .args([Path::new("-kernel"), kernel])
        .args([Path::new("-initrd"), &folder.join("initramfs")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(File::create(folder.join("qemu")).unwrap())
        .spawn()
        .unwrap()
}

fn find_modules(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            find_modules(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// Creates a volume of three dies in a folder.
pub(super) fn volume(folder: &Path, options: &[&str]) -> PathBuf {
    let volume = folder.join("volume");
    let dies = ["a", "b", "c"].map(|name| folder.join(name).display().to_string());
    let created = Command::new(env!("CARGO_BIN_EXE_floatgate"))
        .arg("create")
        .arg(&volume)
        .args(["--dies", &dies.join(",")])
        .args(options)
        .output()
        .unwrap();
    assert!(created.status.success(), "{created:?}");
    volume
}

/// Serves a volume. Returns the first line that the server prints, once it takes clients.
pub(super) fn serve(volume: &Path, options: &[&str]) -> (Running, String) {
    serve_any(&[&[volume.to_str().unwrap()], options].concat())
}

/// Serves any drive, as above.
pub(super) fn serve_any(options: &[&str]) -> (Running, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_floatgate"))
        .arg("serve")
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (Running(child), line)
}

/// Lets the guest live until it says that it is done, for as long as `patience`.
pub(super) fn listen(
    lines: &Receiver<String>,
    patience: Duration,
    mut at_word: impl FnMut(&str),
) -> Said {
    let (begun, mut said, mut name) = (Instant::now(), Said::new(), "boot".to_owned());
    loop {
        let left = patience.checked_sub(begun.elapsed()).unwrap_or_default();
        let line = match lines.recv_timeout(left) {
            Ok(line) => line.trim_end().to_owned(),
            Err(ended) => panic!("{ended}: {said:#?}"),
        };
        match line.strip_prefix("guest: ") {
            Some("done") => return said,
            Some(word) if !word.starts_with("exit ") => {
                at_word(word);
                word.clone_into(&mut name);
            }
            _ => {
                let text = said.entry(name.clone()).or_default();
                text.push_str(&line);
                text.push('\n');
            }
        }
    }
}
