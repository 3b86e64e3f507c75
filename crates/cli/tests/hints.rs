//! Hints are followed: each one that names a command or an option names one that there is, and what
//! can be provoked here is provoked and done as the hint says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn floatgate_in(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_floatgate"))
        .args(args)
        .current_dir(dir)
        .env("COLUMNS", "100")
        .env("HOME", dir)
        .env_remove("XDG_CONFIG_HOME")
        .output()
        .expect("the command was built")
}

/// Returns the last hint of a command that must fail, without `hint: `.
fn hint(dir: &Path, args: &[&str]) -> String {
    let output = floatgate_in(dir, args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{args:?}: {said}");
    let mut hints = said.lines().filter_map(|line| line.strip_prefix("hint: "));
    hints.next_back().unwrap_or_else(|| panic!("{args:?} has no hint: {said}")).to_owned()
}

/// The commands that stand between backticks in a hint, as words.
fn commands(hint: &str) -> Vec<Vec<String>> {
    let quoted = hint.split('`').skip(1).step_by(2);
    let ours = quoted.filter_map(|text| text.strip_prefix("floatgate "));
    ours.map(|text| text.split_whitespace().map(str::to_owned).collect()).collect()
}

fn help(words: &[&str]) -> Option<String> {
    let args = [words, &["--help"]].concat();
    let output = floatgate_in(Path::new("."), &args);
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Every file of the program's own code.
fn sources() -> Vec<PathBuf> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of the project").flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() && !["tests", "examples", "target"].iter().any(|it| name == *it) {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") && name != "tests.rs" {
                found.push(path);
            }
        }
    }
    found
}

/// Text literals of a source, without those of its tests, with line ends inside them taken out.
fn literals(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let code: Vec<&str> =
        code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join("\n").replace("\\\"", "\u{1}").replace("\\\n", "\n");
    let inside = code.split('"').skip(1).step_by(2);
    inside.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn every_command_and_option_that_the_program_names_is_one_that_there_is() {
    let everything = help(&[]).expect("the command helps");
    let mut seen = 0;
    for path in sources() {
        let text = fs::read_to_string(&path).expect("a source is readable");
        for literal in literals(&text) {
            for command in commands(&literal) {
                let words: Vec<&str> = command.iter().map(String::as_str).collect();
                let shown = path.display();
                let known = words.first().is_some_and(|verb| {
                    verb.starts_with(['{', '-']) || everything.contains(&format!("  {verb}"))
                });
                assert!(known, "{shown}: there is no `floatgate {}`", words.join(" "));
                let end = words.iter().position(|it| {
                    !it.chars().all(|c| c.is_ascii_lowercase() || c == '-') || it.starts_with('-')
                });
                let named = &words[..end.unwrap_or(words.len())];
                let page = help(named).or_else(|| help(&named[..named.len().min(1)]));
                let page = page.unwrap_or_else(|| panic!("{shown}: no help for {words:?}"));
                for option in words.iter().filter(|word| word.starts_with("--")) {
                    let option = option.trim_end_matches(|c: char| !c.is_ascii_lowercase());
                    assert!(page.contains(option), "{shown}: {words:?} has no {option}");
                }
                seen += 1;
            }
        }
    }
    assert!(seen >= 20, "only {seen} commands are named");
}

#[test]
fn commands_that_hints_name_can_be_run_as_they_stand() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    fs::write(at.join("broken.csv"), "a,b\n").unwrap();
    let provoked: &[&[&str]] = &[
        &["run", "zzzz"],
        &["run", "iodrive-duo", "zzzz"],
        &["plan", "iodrive-duo", "--protocol", "zzzz"],
        &["protocols", "show", "zzzz"],
        &["workloads", "show", "zzzz"],
        &["trace", "make", "x.iolog", "--workload", "4k-rand-write"],
        &["validate", "--figures", "broken.csv"],
        &["validate", "./disk.img"],
    ];
    for args in provoked {
        let hint = hint(at, args);
        let commands = commands(&hint);
        assert!(!commands.is_empty(), "{args:?}: {hint}");
        for command in commands {
            let words: Vec<&str> = command.iter().map(String::as_str).collect();
            let output = floatgate_in(at, &words);
            assert!(output.status.success(), "{args:?}: {hint}: {output:?}");
        }
    }
}

#[test]
fn a_nearest_name_is_right_in_the_place_of_the_wrong_one() {
    let dir = tempfile::tempdir().unwrap();
    for (args, wrong) in [
        (["plan", "iodrive-dou", "--protocol", "quick"], "iodrive-dou"),
        (["plan", "iodrive-duo", "--protocol", "quik"], "quik"),
    ] {
        let hint = hint(dir.path(), &args);
        let near = hint.split('`').nth(1).expect("a name").to_owned();
        let right = args.map(|word| if word == wrong { near.as_str() } else { word });
        assert!(floatgate_in(dir.path(), &right).status.success(), "{hint}");
    }
}

const BRIEF: &str = r#"
schema = 1
name = "brief"
title = "Brief"
description = "Two seconds."
source = "a test"

[[suites]]
name = "a"
title = "A"

[[suites.measure]]
workload = "4k-rand-read"
threads = [1]
queue_per_thread = [1]
duration_s = 2
ramp_s = 0
interval_s = 1
"#;

#[test]
fn a_file_made_by_truncate_is_reviewed_and_then_only_when_that_is_meant() {
    if Command::new("fio").arg("--version").output().is_err() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    fs::create_dir(at.join("protocols")).unwrap();
    fs::write(at.join("protocols/brief.toml"), BRIEF).unwrap();
    fs::File::create(at.join("disk.img")).unwrap().set_len(32 << 20).unwrap();
    let review = ["review", "./disk.img", "--protocol", "brief"];
    let output = floatgate_in(at, &review);
    assert!(output.status.success(), "{output:?}");
    let said = hint(at, &review);
    assert!(said.contains("add --destroy"), "{said}");
    let again = floatgate_in(at, &[review.as_slice(), &["--destroy"]].concat());
    assert!(again.status.success(), "{again:?}");
}

#[test]
fn a_file_that_does_not_fit_is_never_made_and_the_size_of_the_hint_does() {
    if Command::new("fio").arg("--version").output().is_err() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let run = ["run", "./disk.img", "4k-rand-read", "--runtime", "1s", "--size", "900T"];
    let said = hint(dir.path(), &run);
    assert!(!dir.path().join("disk.img").exists(), "nothing was made");
    let size = said.rsplit("--size ").next().unwrap_or_default();
    assert!(size.ends_with("MiB") && size.len() > 3, "{said}");
    let size = size.trim_end_matches("MiB").parse::<u64>().expect("a number");
    assert!(size > 0, "{said}");
}
