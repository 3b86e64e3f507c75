//! Tests of looking on.

use std::sync::Mutex;

use super::*;
use crate::progress::{Event, Progress};
use crate::runs::Folder;
use crate::runs::tests::{carry_on, plan, wanted};

fn begin(runs: &Runs) -> Folder {
    runs.create(plan(), wanted("mock")).unwrap()
}

/// Looks at each event, and stops at the end of the first measured step.
struct EventWatcher {
    run_monitor: Mutex<RunMonitor>,
    seen: Mutex<Vec<SeenRun>>,
}

impl Progress for EventWatcher {
    fn moved(&self, _: &Event<'_>) {
        let run = self.run_monitor.lock().unwrap().look().runs.remove(0);
        self.seen.lock().unwrap().push(run);
    }

    fn stop(&self) -> bool {
        let seen = self.seen.lock().unwrap();
        let is_measured = |step: &SeenStep| step.kind == StepKind::Measure && step.is_done;
        seen.last().is_some_and(|run| run.steps.iter().any(is_measured))
    }
}

#[test]
fn a_run_is_seen_from_its_beginning_through_its_steps_to_its_interruption() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::new(dir.path());
    let mut run_monitor = RunMonitor::new(runs.clone());
    assert_eq!(run_monitor.look(), RunsSnapshot::default());
    let folder = begin(&runs);
    let fresh = run_monitor.look().runs.remove(0);
    assert_eq!((fresh.state, fresh.underway), (RunState::Underway, None));
    assert_eq!(fresh.steps.len(), folder.order().plan.steps.len());
    let watcher = EventWatcher { run_monitor: Mutex::new(run_monitor), seen: Mutex::default() };
    let outcome = carry_on(&folder, &watcher);
    let seen = watcher.seen.into_inner().unwrap();
    let glimpsed = |run: &SeenRun| {
        let underway = run.underway.as_ref();
        underway.is_some_and(|it| it.steps.iter().any(|step| step.glimpse.is_some()))
    };
    assert!(seen.iter().any(glimpsed), "no interval was seen: {seen:?}");
    let shares: Vec<f64> =
        seen.iter().filter_map(|run| run.underway.as_ref()).map(|it| it.done).collect();
    assert!(shares.is_sorted() && shares.last() > shares.first(), "{shares:?}");
    let last = seen.last().unwrap();
    let results = last.steps.iter().filter_map(|step| step.result);
    assert!(results.clone().count() > 0 && results.clone().all(|it| it.iops > 0.0), "{last:?}");

    let mut run_monitor = watcher.run_monitor.into_inner().unwrap();
    folder.finish(outcome).unwrap();
    let ended = run_monitor.look().runs.remove(0);
    assert_eq!((ended.state, ended.steps.len()), (RunState::Interrupted, 0));
    assert!(ended.listed.done > 0 && ended.listed.done < ended.listed.planned, "{ended:?}");
}

#[test]
fn a_run_whose_process_is_gone_is_interrupted_and_goes_on_when_it_is_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::new(dir.path());
    let mut run_monitor = RunMonitor::new(runs.clone());
    let folder = begin(&runs);
    let id = folder.order().id.clone();
    let refused = runs.open(&id).unwrap_err();
    assert!(refused.remedy().contains("another process is running it"), "{refused}");
    let refused = runs.delete(&id).unwrap_err();
    assert!(refused.to_string().ends_with("it is in progress"), "{refused}");
    drop(folder);
    assert_eq!(run_monitor.look().runs[0].state, RunState::Interrupted);
    let _again = runs.open(&id).unwrap();
    assert_eq!(run_monitor.look().runs[0].state, RunState::Underway);
}

#[test]
fn pages_are_told_with_their_titles_the_newest_first() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::new(dir.path());
    runs.write_review("a.html", "<title>A &amp; B</title>").unwrap();
    runs.write_review("b.html", "no title").unwrap();
    fs::write(dir.path().join("notes.txt"), "<title>x</title>").unwrap();
    let old = SystemTime::now() - std::time::Duration::from_mins(1);
    File::options().write(true).open(dir.path().join("a.html")).unwrap().set_modified(old).unwrap();
    let mut run_monitor = RunMonitor::new(runs.clone());
    let pages = run_monitor.look().pages;
    let told: Vec<(&str, &str)> =
        pages.iter().map(|page| (page.name.as_str(), page.title.as_str())).collect();
    assert_eq!(told, [("b.html", "b.html"), ("a.html", "A & B")]);
    assert_eq!(run_monitor.page(&pages[1]).unwrap(), "<title>A &amp; B</title>");
    runs.write_review("a.html", "<title>C</title>").unwrap();
    assert_eq!(run_monitor.look().pages[0].title, "C");
}

#[test]
fn a_folder_that_is_no_run_and_an_order_that_is_none_harm_no_run() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::new(dir.path());
    fs::create_dir_all(dir.path().join("broken")).unwrap();
    fs::write(dir.path().join("broken").join(ORDER), "{").unwrap();
    let _folder = begin(&runs);
    let sight = RunMonitor::new(runs).look();
    let states: Vec<RunState> = sight.runs.iter().map(|run| run.state).collect();
    assert_eq!(states, [RunState::Unreadable, RunState::Underway]);
    assert!(!sight.runs[0].listed.fault.is_empty());
}
