//! Commands that may be benchmarks: run to their end, with the time at which they printed a result.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use lab::workload::recording::{Benchmark, Tail};
use rustix::process::{Pid, kill_process_group};
use server::recording::RecordingFile;
use server::signals::Signal;

use crate::{output, setup};

/// Time between checks whether the command has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Texts that occur in the lines with a benchmark's result.
const RESULTS: [&str; 3] = ["transactions:", "tps = ", " micros/op "];

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: ExitStatus,
    /// True if it was told to end because this process was told to end.
    pub(crate) is_stopped: bool,
    /// Result of a benchmark that it printed, if any.
    pub(crate) benchmark: Option<Benchmark>,
    began: Instant,
    ended: Instant,
    result_at: Option<Instant>,
}

/// Waits for `child` and passes on its piped output. When this process is told to end, so is the
/// child's process group. Processes that the child leaves behind may keep its output open.
///
/// # Errors
/// Fails if the system cannot wait for it.
pub(crate) fn follow(mut child: Child, signals: &Receiver<Signal>) -> Result<Ran> {
    let began = Instant::now();
    let lines = lines(child.stdout.take().context("the output of the command")?);
    let (mut text, mut result_at, mut is_stopped, mut ended) = (String::new(), None, false, None);
    loop {
        match lines.recv_timeout(LOOK_EVERY) {
            Ok((line, at)) => {
                if RESULTS.iter().any(|result| line.contains(result)) {
                    result_at = Some(at);
                }
                // On stderr, since stdout is for results only.
                output::talk(line.trim_end());
                text += &line;
                continue;
            }
            // Everything was read that came before the end.
            Err(_) if ended.is_some() => break,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => thread::sleep(LOOK_EVERY),
        }
        ended = child.try_wait().context("waiting for the command")?;
        if matches!(signals.try_recv(), Ok(Signal::Stop)) {
            is_stopped = true;
            let group = rustix::process::getpgid(Some(Pid::from_child(&child)));
            // One that has just ended needs no signal.
            let _ =
                group.and_then(|group| kill_process_group(group, rustix::process::Signal::TERM));
        }
    }
    let (status, benchmark) = (ended.context("it has ended")?, Benchmark::parse(&text));
    Ok(Ran { status, is_stopped, benchmark, began, ended: Instant::now(), result_at })
}

impl Ran {
    /// The tail of a recording of the command. The measurement ends when the benchmark printed its
    /// result, and lasts as long as the result says.
    pub(crate) fn tail(self, command: String, recording: &RecordingFile) -> Tail {
        let began = recording.at(self.began);
        let (measured_from, measured_to) = match (&self.benchmark, self.result_at) {
            (Some(it), Some(at)) => {
                let at = recording.at(at);
                (at.saturating_sub(it.span()).max(began), at)
            }
            _ => (began, recording.at(self.ended)),
        };
        Tail { command, measured_from, measured_to, benchmark: self.benchmark }
    }
}

/// A command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| setup::shell_word(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

/// Lines that a command prints, with the times at which they were read.
fn lines(output: ChildStdout) -> Receiver<(String, Instant)> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut lines = BufReader::new(output);
        let mut line = Vec::new();
        // To the end, even without a receiver: a server that it left behind may print.
        while lines.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
            let _ = sender.send((String::from_utf8_lossy(&line).into_owned(), Instant::now()));
            line.clear();
        }
    });
    receiver
}
