//! QEMU of a newer Debian than that of this machine, with the libraries and firmware that it needs:
//! `cargo xtask test` unpacks it below `target/`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::skip;

/// Says so if there is no such emulator.
pub(super) fn emulator_is_missing() -> bool {
    let is_missing = !program("qemu-system-x86_64").exists();
    if is_missing {
        skip("there is no emulator: `cargo xtask test` unpacks one");
    }
    is_missing
}

/// A program of QEMU, which finds what it was built with, not what this machine has.
pub(super) fn emulator(name: &str) -> Command {
    let libraries = folder().join("usr/lib/x86_64-linux-gnu");
    let mut command = Command::new(folder().join("usr/lib64/ld-linux-x86-64.so.2"));
    command.env("QEMU_MODULE_DIR", libraries.join("qemu"));
    command.arg("--library-path").arg(libraries).arg(program(name));
    if name.starts_with("qemu-system") {
        for firmware in ["qemu", "seabios"] {
            command.arg("-L").arg(folder().join("usr/share").join(firmware));
        }
    }
    command
}

fn program(name: &str) -> PathBuf {
    folder().join("usr/bin").join(name)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("guest-emulator")
}
