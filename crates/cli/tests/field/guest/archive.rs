//! The first file system of the guest: a cpio archive in the form that Linux unpacks at its start
//! (`newc`, Documentation/driver-api/early-userspace/buffer-format.rst).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const CHARACTERS: u32 = 0o020_600;

/// Folder of programs of another Debian, and of their libraries.
const OTHER: &str = "other";

/// An archive in the making.
pub(super) struct Archive {
    bytes: Vec<u8>,
    names: BTreeSet<PathBuf>,
}

impl Archive {
    /// With a console, and folders for what the guest mounts.
    pub(super) fn new() -> Self {
        let mut archive = Self { bytes: Vec::new(), names: BTreeSet::new() };
        for folder in ["dev", "proc", "sys", "tmp", "home"] {
            archive.folder(Path::new(folder));
        }
        archive.entry("dev/console", CHARACTERS, (5, 1), &[]);
        archive
    }

    /// Adds `program` of this machine with the libraries that it loads; whether it is there.
    pub(super) fn program(&mut self, program: &Path) -> bool {
        let Some(name) = program.file_name() else { return false };
        let Ok(content) = fs::read(program) else { return false };
        self.file(&Path::new("bin").join(name), &content);
        let output = Command::new("ldd").arg(program).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        for library in said.split_whitespace().filter(|word| word.starts_with('/')) {
            let path = Path::new(library.trim_end_matches(':'));
            let within = path.strip_prefix("/").unwrap();
            if !self.names.contains(within) {
                self.file(within, &fs::read(path).unwrap());
            }
        }
        true
    }

    /// Adds a program of another Debian that is unpacked in `folder`, with the loader and the
    /// libraries that it was built with; whether it is there.
    pub(super) fn program_of(&mut self, folder: &Path, name: &str) -> bool {
        let mut places = ["usr/sbin", "usr/bin"].iter().map(|it| folder.join(it).join(name));
        let Some(program) = places.find(|it| it.exists()) else { return false };
        let loader = folder.join("usr/lib64/ld-linux-x86-64.so.2");
        let libraries = folder.join("usr/lib/x86_64-linux-gnu");
        let listing = Command::new(&loader)
            .arg("--library-path")
            .arg(&libraries)
            .arg("--list")
            .arg(&program)
            .output()
            .unwrap();
        let said = String::from_utf8(listing.stdout).unwrap();
        let words = said.split_whitespace().map(Path::new);
        let libraries = words.filter(|word| word.starts_with(&libraries)).map(Path::to_owned);
        for path in libraries.chain([program]) {
            let within = Path::new(OTHER).join(path.file_name().unwrap());
            if !self.names.contains(&within) {
                self.file(&within, &fs::read(path).unwrap());
            }
        }
        let (other, within) = (Path::new(OTHER), Path::new(OTHER).join("loader"));
        if !self.names.contains(&within) {
            self.file(&within, &fs::read(loader).unwrap());
        }
        let (other, within) = (other.display(), within.display());
        let start =
            format!("#!/bin/sh\nexec /{within} --library-path /{other} /{other}/{name} \"$@\"\n");
        self.file(&Path::new("bin").join(name), start.as_bytes());
        true
    }

    /// Adds a file that may be run, with the folders around it.
    pub(super) fn file(&mut self, path: &Path, content: &[u8]) {
        if let Some(folder) = path.parent() {
            self.folder(folder);
        }
        self.names.insert(path.to_owned());
        self.entry(path.to_str().unwrap(), PROGRAM, (0, 0), content);
    }

    fn folder(&mut self, path: &Path) {
        let mut around: Vec<&Path> = path.ancestors().collect();
        around.pop();
        for folder in around.into_iter().rev() {
            if self.names.insert(folder.to_owned()) {
                self.entry(folder.to_str().unwrap(), FOLDER, (0, 0), &[]);
            }
        }
    }

    /// The whole archive.
    pub(super) fn finished(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        let number = u32::try_from(self.names.len()).unwrap();
        let sizes = [content.len(), name.len() + 1].map(|size| u32::try_from(size).unwrap());
        // Number, mode, owner, group, links, time, size, device, device of a node, name, checksum.
        let fields = [number, mode, 0, 0, 1, 0, sizes[0], 0, 0, device.0, device.1, sizes[1], 0];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").into_bytes());
        }
        self.bytes.extend(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}
