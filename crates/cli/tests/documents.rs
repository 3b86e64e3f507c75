//! Checks of the documents: each block of commands is carried out in a folder of its document, or
//! says why it is not; each command exists with its options either way.
//!
//! ```text
//! ```sh                      carried out, in the order of the document
//! ```sh not-run=slow         not carried out, and why: see REASONS
//! ```toml file=mine.toml     written into the folder, for the commands after it
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use tempfile::TempDir;

const PROGRAMS: [&str; 2] = ["floatgate ", "cargo run --release -- "];
/// Languages whose blocks are commands.
const SHELLS: [&str; 2] = ["sh", "console"];
/// Reasons for not carrying out a block, each with words of which the block must contain one.
const REASONS: [(&str, &[&str]); 7] = [
    // It takes longer than a test may.
    ("slow", &["review", "sweep", "validate", "fit", "serve", "bench", "report"]),
    // It is about a block device or a mounted folder, which a test has none of.
    ("device", &["/dev/", "losetup", "mnt", "floatgate app"]),
    // A server stands beside it, or the drive that one serves.
    (
        "server",
        &[
            "volume",
            "serve",
            "floatgate volume status",
            "nbd",
            "nvme",
            "vhost",
            "dashboard",
            "curl",
            "ssh",
            "systemctl",
            "systemd-",
            "runuser",
            "socket",
        ],
    ),
    // It is about other machines.
    ("hosts", &["--client", "ssh", "--server"]),
    // It is about a cluster.
    ("cluster", &["ray"]),
    // It names a run that the reader made.
    ("run-name", &["2026-"]),
    // It builds the project, or installs what its tests need.
    ("project", &["cargo", "python", "git", "apt"]),
];

/// A block of a document.
struct Block {
    /// First word of its information: `sh`.
    language: String,
    /// Keys and values after the language, such as `not-run=slow`.
    notes: Vec<(String, String)>,
    line: usize,
    text: String,
}

#[test]
fn every_command_of_the_documents_exists_with_its_options() {
    let mut seen = 0;
    for document in documents() {
        let shown = document.display();
        let text = fs::read_to_string(&document).expect("a document is readable");
        for command in blocks(&text).iter().flat_map(commands) {
            let words: Vec<&str> = command.split_whitespace().collect();
            let verb = words[0];
            // What stands before the options may name a command below the command.
            let options = words.iter().position(|it| it.starts_with('-')).unwrap_or(words.len());
            let named = [&words[..options], &words[..options.min(2)], &words[..1]];
            let help = named.into_iter().find_map(help);
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

#[test]
fn every_block_that_is_not_carried_out_says_why() {
    for document in documents() {
        let shown = document.display();
        let text = fs::read_to_string(&document).expect("a document is readable");
        for block in blocks(&text) {
            let Block { language, notes, line, text } = &block;
            let is_shell = SHELLS.contains(&language.as_str());
            assert!(!language.is_empty(), "{shown}:{line}: a block says what it is in");
            let has_command = text.lines().any(|it| PROGRAMS.iter().any(|at| it.starts_with(at)));
            assert!(is_shell || !has_command, "{shown}:{line}: commands are in a block of sh");
            for (key, value) in notes {
                let reason = REASONS.iter().find(|(name, _)| name == value);
                match (key.as_str(), reason) {
                    ("not-run", Some((_, signs))) => assert!(
                        signs.iter().any(|sign| text.contains(sign)),
                        "{shown}:{line}: nothing in it is about `{value}`"
                    ),
                    ("file", _) => assert!(!is_shell, "{shown}:{line}: a file is no command"),
                    _ => panic!("{shown}:{line}: `{key}={value}` is not known here"),
                }
            }
        }
    }
}

#[test]
fn the_commands_of_the_documents_do_what_they_show() {
    let documents = Mutex::new(documents().into_iter());
    let take = || documents.lock().expect("no thread fails while it takes one").next();
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let carried_out: usize = thread::scope(|scope| {
        let worker = || std::iter::from_fn(take).map(|it| carry_out_document(&it)).sum::<usize>();
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|it| it.join().expect("each document holds")).sum()
    });
    assert!(carried_out >= 8, "only {carried_out} blocks were carried out");
}

fn carry_out_document(document: &Path) -> usize {
    let text = fs::read_to_string(document).expect("a document is readable");
    let blocks = blocks(&text);
    if !blocks.iter().any(Block::is_carried_out) {
        return 0;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    carry_out(document, &blocks, &folder)
}

/// Carries out the blocks of one document in `folder`. Returns how many there were.
fn carry_out(document: &Path, blocks: &[Block], folder: &TempDir) -> usize {
    let shown = document.display();
    let programs = folder.path().join(".bin");
    fs::create_dir(&programs).expect("a folder is made");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_floatgate"), programs.join("floatgate"))
        .expect("a link is made");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let mut count = 0;
    for block in blocks {
        if let Some(file) = block.note("file") {
            let file = folder.path().join(file);
            fs::create_dir_all(file.parent().expect("it is in the folder")).expect("it is made");
            fs::write(file, &block.text).expect("a file is written");
        }
        if !block.is_carried_out() {
            continue;
        }
        let output = Command::new("sh")
            .args(["-eu", "-c", &block.script()])
            .current_dir(folder)
            .env("PATH", &path)
            .env("HOME", folder.path())
            .env_remove("XDG_CONFIG_HOME")
            .output()
            .expect("a shell runs");
        // 3: measured, and not steady, as short runs are.
        let is_done = matches!(output.status.code(), Some(0 | 3));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(is_done, "{shown}:{}: {}\n{said}", block.line, block.text);
        count += 1;
    }
    count
}

impl Block {
    fn note(&self, key: &str) -> Option<&str> {
        self.notes.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    fn is_carried_out(&self) -> bool {
        SHELLS.contains(&self.language.as_str()) && self.note("not-run").is_none()
    }

    /// Script for a shell, with the command that was built.
    fn script(&self) -> String {
        let lines = self.text.lines().map(|line| line.strip_prefix("$ ").unwrap_or(line));
        let lines = lines.map(|line| line.replace("cargo run --release -- ", "floatgate "));
        lines.collect::<Vec<_>>().join("\n")
    }
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

/// The blocks of a text that are fenced, in order.
fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (line, number) in text.lines().zip(1..) {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(information), None) => {
                let mut words = information.split_whitespace();
                let language = words.next().unwrap_or_default().to_owned();
                let notes = words.map(|word| word.split_once('=').unwrap_or((word, "")));
                let notes = notes.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
                open = Some(Block { language, notes, line: number, text: String::new() });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.text.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    blocks
}

/// The commands of a block, each on a line of its own, without the program.
fn commands(block: &Block) -> Vec<&str> {
    let lines = block.text.lines().map(|line| line.strip_prefix("$ ").unwrap_or(line));
    lines
        .filter_map(|line| PROGRAMS.iter().find_map(|program| line.strip_prefix(program)))
        .collect()
}

/// Returns the `--help` of the command that these words name; none if it does not exist.
fn help(words: &[&str]) -> Option<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_floatgate"))
        .args(words)
        .arg("--help")
        .output()
        .expect("the command of this package runs");
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
