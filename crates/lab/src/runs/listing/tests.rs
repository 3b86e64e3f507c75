//! Lists of runs: what they tell, and which runs may be deleted.

use super::super::tests::{carry_on, plan, wanted};
use super::*;
use crate::progress::SilentProgress;

/// A finished run named after `target`, and its name.
fn finished(runs: &Runs, target: &str) -> String {
    let folder = runs.create(plan(), wanted(target)).unwrap();
    folder.finish(carry_on(&folder, &SilentProgress)).unwrap().id
}

#[test]
fn a_finished_run_is_listed_with_all_of_its_steps_and_its_size() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::new(dir.path());
    let id = finished(&runs, "mock");
    let listed = runs.listed();
    assert_eq!(listed.len(), 1);
    let it = &listed[0];
    assert_eq!((it.name.as_str(), it.protocol.as_str()), (id.as_str(), "quick"));
    assert_eq!(it.done, plan().steps.len());
    assert!(it.is_complete() && it.size_bytes > 0 && it.fault.is_empty());
}

#[test]
fn a_run_that_was_only_ordered_is_listed_with_nothing_done() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::new(dir.path());
    let folder = runs.create(plan(), wanted("mock")).unwrap();
    let it = runs.listed().remove(0);
    assert_eq!((it.target.as_str(), it.format.as_str()), ("mock", "stock"));
    assert_eq!((it.done, it.planned), (0, plan().steps.len()));
    assert!(!it.is_complete());
    drop(folder);
}

#[test]
fn a_sweep_is_listed_with_the_points_of_its_grid_and_is_interrupted_until_all_are_done() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("2026-11-25T071826Z-iodrive-duo-sweep");
    fs::create_dir_all(&path).unwrap();
    let order = serde_json::json!({
        "drive": ssd::catalogue::text("iodrive-duo").unwrap(),
        "format": "stock",
        "dimensions": [{"key": "threads", "values": [1, 2]}],
    });
    fs::write(path.join(ORDER), order.to_string()).unwrap();
    let listed = || Runs::new(dir.path()).listed().remove(0);
    let steps = || (listed().done, listed().planned, listed().is_complete());
    assert_eq!(steps(), (0, 2, false), "no point yet");
    fs::write(path.join("sweep.json"), "{}").unwrap();
    assert_eq!(steps(), (0, 2, false), "stopped before the first point");
    fs::create_dir(path.join("points")).unwrap();
    fs::write(path.join("points/0000.json"), "{}").unwrap();
    assert_eq!(steps(), (1, 2, false), "stopped before the second one");
    assert!(listed().fault.starts_with("interrupted"), "{:?}", listed());
    assert_eq!((listed().target.as_str(), listed().format.as_str()), ("iodrive-duo", "stock"));
    fs::write(path.join("points/0001.json"), "{}").unwrap();
    assert_eq!(steps(), (2, 2, true));
    assert_eq!(listed().protocol, "sweep");
}

#[test]
fn a_run_that_cannot_be_read_is_listed_with_the_fault_and_is_never_complete() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::new(dir.path());
    let id = finished(&runs, "mock");
    fs::write(dir.path().join(&id).join(RUN), "{").unwrap();
    let it = runs.listed().remove(0);
    assert_eq!(it.name, id);
    assert!(!it.fault.is_empty() && !it.is_complete(), "{it:?}");
    assert!(!it.fault.contains("reading"), "the context is that of the list: {}", it.fault);
}

#[test]
fn runs_are_listed_oldest_first_and_other_folders_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::new(dir.path());
    assert!(runs.listed().is_empty(), "a folder that is not there has no runs");
    finished(&runs, "mock");
    for (name, id) in [("2025-b", "b"), ("2024-a", "a")] {
        let old = dir.path().join(name);
        fs::create_dir(&old).unwrap();
        let order = Order::new(id.into(), String::new(), plan(), wanted(id));
        fs::write(old.join(ORDER), serde_json::to_vec(&order).unwrap()).unwrap();
    }
    fs::create_dir(dir.path().join("notes")).unwrap();
    fs::write(dir.path().join("order.json"), "{}").unwrap();
    let names: Vec<String> = runs.listed().into_iter().map(|it| it.name).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert_eq!(names[..2], ["2024-a", "2025-b"]);
}

#[test]
fn a_deleted_run_is_gone_with_its_files_and_their_size_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::new(dir.path());
    let id = finished(&runs, "mock");
    let size = runs.listed()[0].size_bytes;
    assert_eq!(runs.delete(&id).unwrap(), size);
    assert!(runs.names().is_empty());
    assert!(runs.delete(&id).is_err(), "there is nothing left to delete");
}

#[test]
fn a_review_goes_with_the_last_run_that_it_shows() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::new(dir.path());
    let (first, second) = (finished(&runs, "first"), finished(&runs, "second"));
    let page = runs.write_review("both.html", "<html>").unwrap();
    for id in [&first, &second] {
        runs.note_page(id, "both.html").unwrap();
    }
    runs.delete(&first).unwrap();
    assert!(page.is_file(), "the other run is still on it");
    let size = runs.listed()[0].size_bytes;
    assert_eq!(runs.delete(&second).unwrap(), size + 6, "the page counts too");
    assert!(!page.exists());
}

#[test]
fn a_note_that_names_something_else_deletes_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("runs");
    let outside = dir.path().join("outside.html");
    fs::write(&outside, "<html>").unwrap();
    let runs = Runs::new(&root);
    for (target, note) in
        [("a", "../outside.html"), ("b", "notes.txt"), ("c", "gone.html"), ("d", "")]
    {
        let id = finished(&runs, target);
        fs::write(root.join("notes.txt"), "keep").unwrap();
        runs.note_page(&id, note).unwrap();
        runs.delete(&id).unwrap();
        assert!(outside.is_file() && root.join("notes.txt").is_file(), "{note}");
    }
}

#[test]
fn a_run_that_is_carried_out_is_not_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::new(dir.path());
    let folder = runs.create(plan(), wanted("mock")).unwrap();
    let id = folder.order().id.clone();
    assert!(runs.listed()[0].is_running && !runs.listed()[0].is_complete());
    let refused = runs.delete(&id).unwrap_err();
    assert_eq!(refused.kind(), Kind::Refused);
    assert!(refused.to_string().ends_with("it is in progress"), "{refused}");
    assert_eq!(refused.remedy(), "stop it first");
    drop(folder);
    assert!(!runs.listed()[0].is_running);
    assert!(runs.delete(&id).is_ok(), "its process let go of it");
}

#[test]
fn a_folder_that_is_no_run_or_lies_elsewhere_is_not_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::new(dir.path().join("runs"));
    let elsewhere = Runs::new(dir.path().join("elsewhere"));
    let id = finished(&elsewhere, "mock");
    let path = dir.path().join("elsewhere").join(&id);
    let refused = runs.delete(&path.to_string_lossy()).unwrap_err();
    assert_eq!(refused.kind(), Kind::Refused);
    assert!(path.is_dir());
    let folder = dir.path().join("runs").join("photos");
    fs::create_dir_all(&folder).unwrap();
    let refused = runs.delete(&folder.to_string_lossy()).unwrap_err();
    assert!(refused.to_string().contains("is not a run in"), "{refused}");
    assert_eq!(refused.remedy(), "`floatgate runs` lists them");
    assert!(folder.is_dir());
}

#[test]
fn an_order_of_another_schema_is_not_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::new(dir.path());
    let folder = runs.create(plan(), wanted("mock")).unwrap();
    let later = Order { schema: 2, ..folder.order().clone() };
    let path = folder.path().join(ORDER);
    drop(folder);
    fs::write(&path, serde_json::to_vec(&later).unwrap()).unwrap();
    let refused = runs.open(&later.id).unwrap_err();
    assert!(refused.to_string().ends_with("its order has schema 2, not 1"), "{refused}");
    assert_eq!(refused.remedy(), "begin a new run");
}

#[test]
fn the_cause_of_an_error_is_told_without_its_context() {
    let plain = Error::new(Kind::Io, "reading a file");
    assert_eq!(cause(&plain), "reading a file");
    let caused = Error::new(Kind::Io, "reading a file").source("it is torn");
    assert_eq!(cause(&caused), "it is torn");
}
