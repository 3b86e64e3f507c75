//! Files of a user, in folders of their own.

use tempfile::TempDir;

use super::*;
use crate::plan::PlannedStep;

const WORKLOAD: &str = r#"
schema = 1
name = "records"
title = "Records"
description = "One record at a time."
source = "our own"
read_percent = 80
access = { kind = "random" }
sizes = [{ bytes = 8192, percent = 100 }]
"#;

const PROTOCOL: &str = r#"
schema = 1
name = "ours"
title = "Ours"
description = "How it serves records."
source = "our own"

[[workloads]]
name = "scans"
read_percent = 100
access = { kind = "sequential" }
sizes = [{ bytes = 65536, percent = 100 }]

[[suites]]
name = "both"
title = "Both"

[[suites.measure]]
workload = "records"
threads = [1]
queue_per_thread = [4]
duration_s = 5
ramp_s = 1
interval_s = 1

[[suites.measure]]
workload = "scans"
threads = [1]
queue_per_thread = [4]
duration_s = 5
ramp_s = 1
interval_s = 1
"#;

/// Two roots, and a library that looks in the first one first.
fn library() -> (TempDir, Library) {
    let dir = TempDir::new().unwrap();
    let roots = ["near", "far"].map(|name| dir.path().join(name));
    for root in &roots {
        fs::create_dir_all(root.join("workloads")).unwrap();
        fs::create_dir_all(root.join("protocols")).unwrap();
    }
    (dir, Library::new(roots.into()))
}

#[test]
fn a_name_is_found_in_the_nearest_folder_that_has_it() {
    let (dir, library) = library();
    fs::write(dir.path().join("far/workloads/any.toml"), WORKLOAD).unwrap();
    let found = library.find::<Workload>("records").unwrap();
    assert_eq!(found.origin, Origin::File(dir.path().join("far/workloads/any.toml")));
    let nearer = WORKLOAD.replace("80", "90");
    fs::write(dir.path().join("near/workloads/records.toml"), nearer).unwrap();
    assert!((library.find::<Workload>("records").unwrap().value.read_percent - 90.0).abs() < 1e-9);
    let listed = library.all::<Workload>();
    assert_eq!(listed.iter().filter(|it| it.value.name == "records").count(), 1);
    assert_eq!(library.find::<Workload>("file-server").unwrap().origin, Origin::BuiltIn);
}

#[test]
fn a_file_is_found_by_its_path() {
    let (dir, _) = library();
    let path = dir.path().join("it.toml");
    fs::write(&path, WORKLOAD).unwrap();
    let found = Library::new(Vec::new()).find::<Workload>(path.to_str().unwrap()).unwrap();
    assert_eq!(found.value.name, "records");
}

#[test]
fn a_protocol_finds_its_own_workloads_and_those_beside_it() {
    let (dir, library) = library();
    fs::write(dir.path().join("near/workloads/records.toml"), WORKLOAD).unwrap();
    fs::write(dir.path().join("near/protocols/ours.toml"), PROTOCOL).unwrap();
    let protocol = library.find::<Protocol>("ours").unwrap().value;
    let plan = library.plan(&protocol, 1).unwrap();
    let names: Vec<&str> = plan.steps.iter().map(PlannedStep::workload_name).collect();
    assert_eq!(names, ["", "records", "scans"]);
    let error = Library::new(Vec::new()).plan(&protocol, 1).unwrap_err();
    assert_eq!(error.to_string(), "suite both: no workload named `records`");
}

#[test]
fn a_name_of_what_is_built_in_is_not_taken_by_something_else() {
    let (dir, library) = library();
    let path = dir.path().join("near/workloads/mine.toml");
    fs::write(&path, WORKLOAD.replace("\"records\"", "\"4k-rand-write\"")).unwrap();
    let error = library.find::<Workload>(path.to_str().unwrap()).unwrap_err();
    assert!(
        error.to_string().ends_with("named `4k-rand-write` is built in, and differs from this one"),
        "{error}"
    );
    assert_eq!(library.find::<Workload>("4k-rand-write").unwrap().origin, Origin::BuiltIn);
    assert_eq!(library.faults::<Workload>().len(), 1);
    let inline = PROTOCOL.replace("\"scans\"", "\"file-server\"");
    fs::write(dir.path().join("near/protocols/ours.toml"), inline).unwrap();
    fs::write(&path, WORKLOAD).unwrap();
    let protocol = library.find::<Protocol>("ours").unwrap().value;
    let error = library.plan(&protocol, 1).unwrap_err().to_string();
    assert!(error.starts_with("protocol ours: a workload named `file-server`"), "{error}");
}

#[test]
fn a_broken_file_is_told_where_its_name_is_asked_for_and_stands_in_no_other_s_way() {
    let (dir, library) = library();
    fs::write(dir.path().join("near/workloads/records.toml"), "schema = 1\nname = 7\n").unwrap();
    let error = library.find::<Workload>("records").unwrap_err();
    assert_eq!(error.to_string(), "reading a workload");
    assert!(library.find::<Workload>("file-server").is_ok());
}

#[test]
fn copies_of_what_is_built_in_are_the_same_thing() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let library = Library::new(vec![root]);
    assert!(library.faults::<Workload>().is_empty());
    assert!(library.faults::<Protocol>().is_empty());
    library.find::<Protocol>("enterprise").unwrap();
}
