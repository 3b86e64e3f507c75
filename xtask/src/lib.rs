//! Tools that all tasks of the workspace share: files, other programs, and where it lies.

#![expect(clippy::print_stdout, reason = "a tool of the workspace talks to who runs it")]

pub mod files;
pub mod program;

use std::path::{Path, PathBuf};

/// Returns the root of the workspace.
///
/// # Panics
/// Never: the folder of this crate lies in it.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask/ lies in the root")
}

/// Returns the folder that cargo builds into.
pub fn target() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    root().join(target.unwrap_or_else(|| PathBuf::from("target")))
}
