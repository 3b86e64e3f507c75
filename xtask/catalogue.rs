//! Build script of the crates that hold a catalogue: every TOML file of its folders, and every
//! recording of an application, embedded.
//!
//! The folders lie in the root of the repository. A crate has symbolic links to those that it
//! embeds, and to this script, so that there is one copy of each file and `cargo package` takes it
//! along.
//!
//! A file that is added, changed or removed is seen by the next build. For each folder there is
//! `<folder>.rs` among the build's output, the path and text of each file, ordered by name, and
//! `recordings.rs` with the bytes of each recording.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Folders that are embedded by the crates that have them.
const FOLDERS: [&str; 5] = ["applications", "drives", "hosts", "protocols", "workloads"];
/// Folder of recordings, whose changes are seen with those of the folder above it.
const RECORDINGS: &str = "applications/recordings";

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let write = |name: &str, source: String| {
        fs::write(out.join(name), source).expect("the folder of the build takes files");
    };
    for folder in FOLDERS.into_iter().filter(|folder| here.join(folder).exists()) {
        println!("cargo::rerun-if-changed={folder}");
        let names = names_in(&here.join(folder), "toml");
        write(&format!("{folder}.rs"), source(folder, &names, "toml"));
    }
    if here.join(RECORDINGS).exists() {
        write("recordings.rs", source(RECORDINGS, &names_in(&here.join(RECORDINGS), "rec"), "rec"));
    }
}

/// Names of the files in `folder` with this ending, without it, in order.
fn names_in(folder: &Path, ending: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("the folder is readable").path());
    let files = paths.filter(|path| path.extension().is_some_and(|extension| extension == ending));
    let mut names: Vec<String> = files
        .map(|path| path.file_stem().expect("it has a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The expression of a slice of the path and content of each file: text, or the bytes of a
/// recording.
fn source(folder: &str, names: &[String], ending: &str) -> String {
    let include = if ending == "rec" { "include_bytes!" } else { "include_str!" };
    let entry = |name: &String| {
        let file = format!("{folder}/{name}.{ending}");
        let path = format!("concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/{file}\")");
        format!("({file:?}, {include}({path})),\n")
    };
    format!("&[\n{}]\n", names.iter().map(entry).collect::<String>())
}
