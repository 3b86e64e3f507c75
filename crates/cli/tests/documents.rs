//! The commands that documents show are commands that there are, with options that they have.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAMS: [&str; 2] = ["floatgate ", "cargo run --release -- "];

#[test]
fn every_command_of_the_documents_exists_with_its_options() {
    let mut seen = 0;
    for document in documents() {
        let shown = document.display();
        let text = fs::read_to_string(&document).expect("a document is readable");
        for command in commands(&text) {
            let words: Vec<&str> = command.split_whitespace().collect();
            let verb = words[0];
            // What stands before the options may name a command below the command.
            let options = words.iter().position(|it| it.starts_with('-')).unwrap_or(words.len());
            let help = help(&words[..options]).or_else(|| help(&[verb]));
            let help = help.unwrap_or_else(|| panic!("{shown}: no command `{verb}`"));
            for option in words.into_iter().filter(|word| word.starts_with("--")) {
                let name = option.split('=').next().expect("an option has a name");
                assert!(help.contains(name), "{shown}: `{verb}` has no option {name}");
            }
            seen += 1;
        }
    }
    assert!(seen >= 10, "only {seen} commands found");
}

/// README and everything below `docs/`.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = vec![root.join("README.md")];
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("docs/ is readable") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found
}

/// The commands of a text in code blocks, each on a line of its own, without the program.
fn commands(text: &str) -> Vec<&str> {
    let blocks = text.split("```").skip(1).step_by(2);
    let lines = blocks.flat_map(str::lines);
    lines
        .filter_map(|line| PROGRAMS.iter().find_map(|program| line.strip_prefix(program)))
        .collect()
}

/// What the command that these words name says about itself, if it exists.
fn help(words: &[&str]) -> Option<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_floatgate"))
        .args(words)
        .arg("--help")
        .output()
        .expect("the command of this package runs");
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
