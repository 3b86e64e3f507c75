//! Progress of a run, in its folder, for other processes that look on.
//!
//! `progress.json` is replaced as a whole, about once a second while something moves, and is gone
//! when the run has ended. It is not made durable: after a crash no process needs it, and a drive
//! that is being measured is not to be made to write it. That a run is under way is told by its
//! `order.json`, which the process that carries it out holds locked.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::files::ORDER;
use crate::plan::Plan;
use crate::progress::{Event, Glimpse};

/// Name of the file.
pub(super) const PROGRESS: &str = "progress.json";
/// Version of its form.
const SCHEMA: u32 = 1;
/// Time between two writes of it, except where a step begins or ends.
const WRITE_EVERY: Duration = Duration::from_secs(1);
/// Attempts, and the pause between them, to lock a run that another process looks at.
const HOLD_TRIES: u32 = 50;
const HOLD_PAUSE: Duration = Duration::from_millis(10);

/// Progress of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Underway {
    /// Version of this form.
    pub schema: u32,
    /// Share of its plan that is over, by protocol time, 0 to 1.
    pub done: f64,
    /// Seconds of wall time left to it, and to others that were begun with it.
    pub left_s: Option<f64>,
    /// Steps under way, several where suites of a model are carried out at once.
    pub steps: Vec<StepUnderway>,
}

/// Progress of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepUnderway {
    /// Name of the step.
    pub id: String,
    /// Share of it that is over, 0 to 1.
    pub done: f64,
    /// Current activity or latest figures in words; may be empty.
    pub text: String,
    /// Latest figures.
    pub glimpse: Option<Glimpse>,
}

/// Writes how far a run is.
#[derive(Debug)]
pub(super) struct Board {
    path: PathBuf,
    /// Protocol time of the whole plan, in seconds.
    total_s: f64,
    state: Mutex<BoardState>,
}

#[derive(Debug, Default)]
struct BoardState {
    told: Underway,
    /// Protocol seconds that are over of each step.
    over_s: BTreeMap<String, f64>,
    written_at: Option<Instant>,
}

impl Board {
    /// Board of a run in `folder`, which carries out `plan`.
    pub(super) fn new(folder: &Path, plan: &Plan) -> Self {
        let (path, total_s) = (folder.join(PROGRESS), plan.duration_s());
        Self { path, total_s, state: Mutex::default() }
    }

    /// Records progress. If it cannot be written, only the progress display is lost.
    pub(super) fn note(&self, event: &Event<'_>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_turn = state.take(event, self.total_s);
        let is_due = state.written_at.is_none_or(|at| at.elapsed() >= WRITE_EVERY);
        if is_turn || is_due {
            // What is there stays, and is old.
            let _ = replace(&self.path, &state.told);
            state.written_at = Some(Instant::now());
        }
    }

    /// The run has ended.
    pub(super) fn clear(&self) {
        // One that stays is taken for nothing: the run is not held any more.
        let _ = fs::remove_file(&self.path);
    }
}

impl BoardState {
    /// Takes up an event; says whether a step began or ended with it.
    fn take(&mut self, event: &Event<'_>, total_s: f64) -> bool {
        let Event { step, step_done, step_finished, left_s, text, glimpse, .. } = *event;
        self.over_s.insert(step.id.clone(), step_done * step.length_s());
        let over_s: f64 = self.over_s.values().sum();
        self.told.schema = SCHEMA;
        self.told.done = if total_s > 0.0 { (over_s / total_s).clamp(0.0, 1.0) } else { 0.0 };
        self.told.left_s = left_s;
        let steps = &mut self.told.steps;
        let is_new = steps.iter().all(|it| it.id != step.id);
        steps.retain(|it| it.id != step.id);
        if !step_finished {
            let (id, text) = (step.id.clone(), text.to_owned());
            steps.push(StepUnderway { id, done: step_done, text, glimpse });
            steps.sort_by(|a, b| a.id.cmp(&b.id));
        }
        is_new || step_finished
    }
}

fn replace(path: &Path, told: &Underway) -> io::Result<()> {
    let next = path.with_extension("json.part");
    fs::write(&next, serde_json::to_vec(told)?)?;
    fs::rename(&next, path)
}

/// Holds the run of a folder as one that is under way, until what is returned is dropped or
/// unlocked. Nothing is held on a file system that knows no locks.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] when another process carries it out, and when there is none.
pub(super) fn hold(folder: &Path) -> io::Result<File> {
    let order = File::open(folder.join(ORDER))?;
    for _ in 0..HOLD_TRIES {
        match order.try_lock() {
            // Another process may just be looking.
            Err(TryLockError::WouldBlock) => thread::sleep(HOLD_PAUSE),
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(order),
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

/// True if a process carries out the run of a folder.
pub(super) fn is_held(folder: &Path) -> bool {
    let Ok(order) = File::open(folder.join(ORDER)) else { return false };
    matches!(order.try_lock_shared(), Err(TryLockError::WouldBlock))
}

#[cfg(test)]
mod tests {
    use workload::catalogue;

    use super::*;

    fn plan() -> Plan {
        let protocol = catalogue::find_protocol("quick").unwrap();
        Plan::new(&protocol, &catalogue::workloads(), 1).unwrap()
    }

    fn event(plan: &Plan, step: usize, step_done: f64) -> Event<'_> {
        Event {
            run: "",
            step: &plan.steps[step],
            step_done,
            step_finished: step_done >= 1.0,
            done: 0.5,
            left_s: Some(7.0),
            text: "1.0k IOPS",
            glimpse: Some(Glimpse { iops: 1e3, throughput_mb_s: 4.096, latency_ns_avg: None }),
        }
    }

    #[test]
    fn steps_are_told_from_their_beginning_to_their_end_and_time_adds_up() {
        let (folder, plan) = (tempfile::tempdir().unwrap(), plan());
        let board = Board::new(folder.path(), &plan);
        let told = || -> Underway {
            serde_json::from_slice(&fs::read(folder.path().join(PROGRESS)).unwrap()).unwrap()
        };
        board.note(&event(&plan, 1, 0.0));
        board.note(&event(&plan, 2, 0.0));
        let ids = |told: &Underway| told.steps.iter().map(|it| it.id.clone()).collect::<Vec<_>>();
        let mut expected = [plan.steps[1].id.clone(), plan.steps[2].id.clone()];
        expected.sort();
        assert_eq!(ids(&told()), expected);
        board.note(&event(&plan, 1, 1.0));
        let after = told();
        assert_eq!(ids(&after), [plan.steps[2].id.clone()]);
        let share = plan.steps[1].length_s() / plan.duration_s();
        assert!((after.done - share).abs() < 1e-9, "{after:?}");
        assert_eq!((after.left_s, after.schema), (Some(7.0), 1));
        board.clear();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_step_that_goes_on_is_written_about_once_a_second() {
        let (folder, plan) = (tempfile::tempdir().unwrap(), plan());
        let board = Board::new(folder.path(), &plan);
        board.note(&event(&plan, 1, 0.0));
        let path = folder.path().join(PROGRESS);
        fs::remove_file(&path).unwrap();
        board.note(&event(&plan, 1, 0.1));
        assert!(!path.exists(), "it was written a moment ago");
        board.state.lock().unwrap().written_at = None;
        board.note(&event(&plan, 1, 0.2));
        assert!(path.exists());
    }

    #[test]
    fn a_run_is_held_by_one_alone_until_it_is_let_go() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_held(folder.path()));
        fs::write(folder.path().join(ORDER), "{}").unwrap();
        assert!(!is_held(folder.path()));
        let held = hold(folder.path()).unwrap();
        assert!(is_held(folder.path()));
        let refused = hold(folder.path()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        held.unlock().unwrap();
        assert!(!is_held(folder.path()));
    }
}
