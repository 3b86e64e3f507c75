//! Work on a separate thread, while the calling thread reports progress and checks for Ctrl-C.
//!
//! ```text
//! caller:  wait 50 ms ─► signals? ─► callback with the latest progress ─► wait ...
//!             ▲                              │ either may raise: stop
//! worker:  simulate ───────── events ────────┘
//! ```

use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use lab::Error;
use lab::progress::{Event, Progress};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use study::fit::Watcher;

use crate::failure::exception;

/// Maximum time between checks for signals.
const LOOK: Duration = Duration::from_millis(50);
/// Minimum time between reports of progress, except at the end of a step.
const BETWEEN: Duration = Duration::from_millis(100);

/// Work between two looks at the clock.
const BEATS: u32 = 1024;

/// Checks for signals, such as that of Ctrl-C, in a loop on the calling thread.
pub(crate) struct Pulse {
    beats: u32,
    last: Instant,
}

impl Pulse {
    pub(crate) fn new() -> Self {
        Self { beats: 0, last: Instant::now() }
    }

    /// Counts a piece of work of some microseconds.
    ///
    /// # Errors
    /// Fails if a signal arrived whose handler raises.
    #[inline]
    pub(crate) fn beat(&mut self) -> PyResult<()> {
        self.beats += 1;
        if self.beats < BEATS {
            return Ok(());
        }
        self.look()
    }

    #[cold]
    fn look(&mut self) -> PyResult<()> {
        self.beats = 0;
        if self.last.elapsed() < LOOK {
            return Ok(());
        }
        self.last = Instant::now();
        #[expect(clippy::redundant_closure_for_method_calls, reason = "of any lifetime")]
        let signals = Python::attach(|py| py.check_signals());
        signals
    }
}

/// A report of progress that owns its data.
#[derive(Clone, Debug)]
struct Report {
    run: String,
    step: String,
    step_done: f64,
    step_finished: bool,
    done: f64,
    left_s: Option<f64>,
    text: String,
}

/// Observer that passes reports on to the thread that called.
#[derive(Debug)]
pub(crate) struct Observer {
    reports: Mutex<Sender<Report>>,
    is_watched: bool,
    last: Mutex<Instant>,
    stop: AtomicBool,
}

impl Observer {
    /// True if a report is to be passed on now: there is a callback, and the step has finished or
    /// enough time has passed since the previous report.
    fn is_due(&self, step_finished: bool) -> bool {
        if !self.is_watched {
            return false;
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = step_finished || last.elapsed() >= BETWEEN;
        if is_due {
            *last = Instant::now();
        }
        is_due
    }

    fn pass(&self, report: Report) {
        let reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        // After a failure of the caller, which ends the work too, nothing receives reports.
        let _ = reports.send(report);
    }
}

impl Watcher for Observer {
    fn searched(&self, evaluations: usize, loss: f64) {
        if self.is_due(false) {
            self.pass(Report {
                run: String::new(),
                step: "search".to_owned(),
                step_done: 0.0,
                step_finished: false,
                done: 0.0,
                left_s: None,
                text: format!("{evaluations} drives evaluated, least loss so far {loss:.3}"),
            });
        }
    }
}

impl Progress for Observer {
    fn moved(&self, event: &Event<'_>) {
        if !self.is_due(event.step_finished) {
            return;
        }
        self.pass(Report {
            run: event.run.to_owned(),
            step: event.step.id.clone(),
            step_done: event.step_done,
            step_finished: event.step_finished,
            done: event.done,
            left_s: event.left_s,
            text: event.text.to_owned(),
        });
    }

    fn stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Runs `work` without the interpreter's lock, and reports its progress to `callback`.
///
/// # Errors
/// Fails if the work fails, a signal such as Ctrl-C arrives, or `callback` raises.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    callback: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Observer) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let (done, result) = observed(py, callback, work);
    done?;
    result.map_err(|error| exception(&error))
}

/// [`detached`], for work that has a result even if Ctrl-C ends it early.
///
/// # Errors
/// As [`detached`], but for Ctrl-C where the work has a result.
pub(crate) fn detached_partly<T: Send>(
    py: Python<'_>,
    callback: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Observer) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let (done, result) = observed(py, callback, work);
    match (done, result) {
        (Err(signal), Ok(part)) if signal.is_instance_of::<PyKeyboardInterrupt>(py) => Ok(part),
        (Err(failure), _) => Err(failure),
        (Ok(()), result) => result.map_err(|error| exception(&error)),
    }
}

/// Returns whether a signal arrived or the callback raised, and the result of the work.
fn observed<T: Send>(
    py: Python<'_>,
    callback: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Observer) -> Result<T, Error> + Send,
) -> (PyResult<()>, Result<T, Error>) {
    let callback = callback.map(|it| it.clone().unbind());
    let (reports, incoming) = mpsc::channel();
    let observer = Observer {
        reports: Mutex::new(reports),
        is_watched: callback.is_some(),
        last: Mutex::new(Instant::now()),
        stop: AtomicBool::new(false),
    };
    let (done, ended) = py.detach(move || {
        thread::scope(|scope| {
            let (over, is_over) = mpsc::channel::<()>();
            let observer = &observer;
            let worker = scope.spawn(move || {
                // Dropped when the work ends, even by a panic.
                let _over = over;
                work(observer)
            });
            let done = wait(&is_over, &incoming, callback.as_ref());
            if done.is_err() {
                observer.stop.store(true, Ordering::Relaxed);
            }
            (done, worker.join())
        })
    });
    (done, ended.unwrap_or_else(|panicked| panic::resume_unwind(panicked)))
}

/// Waits for the end of the work.
///
/// # Errors
/// Fails if a signal arrives, the task is cancelled, or the callback raises.
fn wait(
    is_over: &Receiver<()>,
    reports: &Receiver<Report>,
    callback: Option<&Py<PyAny>>,
) -> PyResult<()> {
    loop {
        let is_over = is_over.recv_timeout(LOOK) != Err(RecvTimeoutError::Timeout);
        Python::attach(|py| {
            py.check_signals()?;
            // Signals reach the main thread only, which cancels the tasks on others.
            py.import("floatgate._tasks")?.call_method0("check")?;
            let Some(callback) = callback else { return Ok(()) };
            reports.try_iter().try_for_each(|report| pass_on(py, callback, &report))
        })?;
        if is_over {
            return Ok(());
        }
    }
}

/// Calls `callback` with a report.
fn pass_on(py: Python<'_>, callback: &Py<PyAny>, report: &Report) -> PyResult<()> {
    let event = PyDict::new(py);
    event.set_item("run", &report.run)?;
    event.set_item("step", &report.step)?;
    event.set_item("step_done", report.step_done)?;
    event.set_item("step_finished", report.step_finished)?;
    event.set_item("done", report.done)?;
    event.set_item("left_s", report.left_s)?;
    event.set_item("text", &report.text)?;
    callback.call1(py, (event,)).map(drop)
}
