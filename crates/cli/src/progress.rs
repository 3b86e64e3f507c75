//! Progress on stderr: a bar on a terminal; elsewhere a line for each finished step, and one at
//! least every 30 s.

mod log_lines;

use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use indicatif::{ProgressBar, ProgressStyle};
use lab::progress::{Event, Progress};
use lab::results::StepKind;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use study::fit::Watcher;

use self::log_lines::{LogLines, SILENCE_MAX};
use crate::output;

/// Positions of the bar.
const BAR_LENGTH: u64 = 1000;
/// Drives that a search evaluates between two lines about it, without a terminal.
const EVALUATIONS_BETWEEN: usize = 50;

/// Shows progress, and remembers that Ctrl-C was pressed.
#[derive(Debug)]
pub(crate) struct TerminalProgress {
    bar: Option<ProgressBar>,
    /// Lines where there is no bar.
    lines: Option<LogLines>,
    stop: Arc<AtomicBool>,
    /// Drives evaluated when the next line about a search is printed, without a terminal.
    told: Mutex<usize>,
}

impl TerminalProgress {
    /// Takes Ctrl-C over for the rest of the program.
    ///
    /// # Errors
    /// Fails if Ctrl-C was already taken over, or the system has no thread.
    pub(crate) fn new() -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(&stop)).context("taking over Ctrl-C")?;
        }
        let (bar, lines) = bar_or_lines().context("starting a thread for the progress")?;
        Ok(Self { bar, lines, stop, told: Mutex::default() })
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.lines.iter().for_each(LogLines::rest);
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Progress for TerminalProgress {
    fn moved(&self, event: &Event<'_>) {
        let left = event.left_s.map_or_else(String::new, |left_s| format!("{} left", span(left_s)));
        let step = format!("{} {}", event.run, event.step.id);
        let step = step.trim_start();
        if let Some(bar) = &self.bar {
            bar.set_position(position(event.done));
            // What matters most comes first: a narrow terminal shows the beginning.
            let parts = [left.as_str(), event.text, step];
            let told = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
            bar.set_message(told.join("  "));
        } else if let Some(lines) = &self.lines {
            let percent = event.done * 100.0;
            let line = format!("{percent:3.0} %  {step}  {left}").trim_end().to_owned();
            if event.step_finished && event.step.kind != StepKind::Purge {
                lines.tell(line);
            } else {
                lines.note(format!("{line}  {}", event.text).trim_end().to_owned());
            }
        }
    }

    fn stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Watcher for TerminalProgress {
    fn searched(&self, evaluations: usize, loss: f64) {
        let text = format!("{evaluations} parameter sets evaluated, lowest loss so far {loss:.3}");
        if let Some(bar) = &self.bar {
            bar.set_message(text);
        } else if let Some(lines) = &self.lines {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            if evaluations >= *told {
                lines.tell(text);
                *told = evaluations + EVALUATIONS_BETWEEN;
            } else {
                lines.note(text);
            }
        }
    }
}

/// Progress of work on the rows of a live drive: a bar, or lines if stderr is no terminal.
#[derive(Debug)]
pub(crate) struct Rows {
    name: String,
    bar: Option<ProgressBar>,
    lines: Option<LogLines>,
}

impl Rows {
    /// Shows work of this name.
    pub(crate) fn new(name: &str) -> Self {
        // Without a thread the work goes on unseen.
        let (bar, lines) = bar_or_lines().unwrap_or_default();
        if let Some(bar) = &bar {
            bar.set_message(name.to_owned());
        }
        Self { name: name.to_owned(), bar, lines }
    }

    /// Sets the progress to `done` of `all` rows.
    pub(crate) fn moved(&self, done: u64, all: u64) {
        let share = done as f64 / all.max(1) as f64;
        if let Some(bar) = &self.bar {
            bar.set_position(position(share));
        }
        if let Some(lines) = &self.lines {
            lines.note(format!("{:3.0} %  {}", share * 100.0, self.name));
        }
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.lines.iter().for_each(LogLines::rest);
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A bar if stderr is a terminal, otherwise lines.
fn bar_or_lines() -> io::Result<(Option<ProgressBar>, Option<LogLines>)> {
    if io::stderr().is_terminal() {
        return Ok((Some(bar()), None));
    }
    Ok((None, Some(LogLines::start(SILENCE_MAX, Box::new(output::talk))?)))
}

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:8} {percent:>3} %  {wide_msg}")
        .expect("the template is well-formed")
        .progress_chars("━━╌");
    ProgressBar::new(BAR_LENGTH).with_style(style)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1000")]
fn position(done: f64) -> u64 {
    (done.clamp(0.0, 1.0) * BAR_LENGTH as f64) as u64
}

/// A span as one says it: `40 s`, `12 min`, `3.5 h`.
fn span(seconds: f64) -> String {
    match seconds {
        ..90.0 => format!("{seconds:.0} s"),
        ..5400.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}
