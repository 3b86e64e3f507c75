//! Packages that are built by themselves share what is compiled for the workspace.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Packages that commands of `cargo xtask test` build by themselves.
const BUILT_ALONE: [&str; 2] = ["xtask", "python"];

/// Every dependency that is compiled for `packages`, with its features.
fn features(packages: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .args(["tree", "--prefix", "none", "--no-dedupe", "--format", "{p} [{f}]"])
        .args(packages)
        .output()
        .expect("Cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("names are UTF-8");
    text.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}

#[test]
fn what_is_built_by_itself_has_the_features_of_the_workspace() {
    let workspace = features(&["--workspace", "--edges", "normal,build,dev"]);
    for package in BUILT_ALONE {
        let alone = features(&["--package", package, "--edges", "normal,build"]);
        assert!(alone.len() > 40, "{alone:?}");
        let others: Vec<&String> = alone.difference(&workspace).collect();
        assert!(
            others.is_empty(),
            "{package} would compile these, and all that depend on them, once more: {others:#?}\n\
             Give xtask/workspace-hack/Cargo.toml the features that the workspace has"
        );
    }
}
