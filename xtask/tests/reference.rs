//! The pages of `docs/reference` name every field of the types that they describe.

use std::fs;
use std::path::Path;

#[test]
fn the_page_of_drives_names_every_field() {
    check(
        "drive.md",
        &[
            "ssd/src/spec.rs",
            "ssd/src/spec/fit.rs",
            "ssd/src/spec/devices.rs",
            "ssd/src/spec/disk.rs",
            "ssd/src/spec/in_place.rs",
            "ssd/src/spec/placement.rs",
            "ssd/src/spec/read_retry.rs",
            "ssd/src/spec/slc_cache.rs",
            "tier/src/policy.rs",
        ],
    );
}

#[test]
fn the_page_of_workloads_names_every_field() {
    check(
        "workload.md",
        &["workload/src/spec.rs", "workload/src/stream.rs", "workload/src/trace/shape.rs"],
    );
}

#[test]
fn the_page_of_protocols_names_every_field() {
    check("protocol.md", &["workload/src/protocol.rs"]);
}

#[test]
fn the_page_of_results_names_every_field() {
    check(
        "results.md",
        &[
            "results/src/run.rs",
            "results/src/sample.rs",
            "results/src/confidence.rs",
            "results/src/spread.rs",
            "results/src/placement.rs",
            "results/src/tier.rs",
            "results/src/application.rs",
        ],
    );
}

#[test]
fn a_field_is_read_with_the_name_that_files_use() {
    let text = "\
#[derive(Serialize)]
pub struct Two {
    /// First.
    pub first: u32,
    #[serde(rename = \"second\")]
    pub seconds: Vec<u32>,
    #[serde(skip)]
    pub of_memory: u32,
}
#[derive(Clone)]
pub struct NotInFiles {
    pub third: u32,
}";
    assert_eq!(fields(text), ["first", "second"]);
}

fn check(page: &str, sources: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask/ lies in the root");
    let page_text = read(&root.join("docs/reference").join(page));
    for source in sources {
        let fields = fields(&read(&root.join("crates").join(source)));
        assert!(!fields.is_empty(), "no fields found in {source}");
        let missing: Vec<&String> =
            fields.iter().filter(|field| !page_text.contains(&format!("`{field}`"))).collect();
        assert!(missing.is_empty(), "docs/reference/{page} lacks {missing:?} of {source}");
    }
}

/// The fields of the structs of a source text that files are made of, as files name them.
fn fields(source: &str) -> Vec<String> {
    let mut fields = Vec::new();
    let mut in_file = false;
    let (mut renamed, mut skipped) = (None, false);
    for line in source.lines() {
        if let Some(derived) = line.strip_prefix("#[derive(") {
            in_file = derived.contains("Serialize") || derived.contains("Deserialize");
        }
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("#[serde(rename = \"") {
            renamed = rest.split('"').next().map(str::to_owned);
        }
        skipped |= line == "#[serde(skip)]";
        let field = line.strip_prefix("pub ").and_then(|rest| rest.split_once(": "));
        let Some((name, _)) = field.filter(|(name, _)| !name.contains(' ')) else { continue };
        if !std::mem::take(&mut skipped) && in_file {
            fields.push(renamed.take().unwrap_or_else(|| name.to_owned()));
        }
    }
    fields
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("reading {}: {error}", path.display()))
}
