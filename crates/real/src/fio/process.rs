//! One fio process, watched until it ends or is asked to.

use std::fs::{self, File};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use lab::target::hosts::Hosts;
use lab::{Error, Kind, Watch};
use rustix::process::{Pid, Signal, kill_process_group};

use super::engine::{not_started, reason};
use super::job::{self, OUTPUT_FILE};

/// File that takes fio's own messages.
const MESSAGES_FILE: &str = "messages.txt";
/// Time between two looks at the process.
const POLL: Duration = Duration::from_millis(100);
/// Time that fio may take to write its logs after it was asked to end.
const PATIENCE: Duration = Duration::from_mins(2);
/// Time that a killed fio may take to end. One that waits for a drive which never answers does not
/// end at all; what was tuned has to be put back all the same.
const PATIENCE_AFTER_KILL: Duration = Duration::from_secs(5);
/// Time after which it is asked again: fio 3.33 forgets a signal that comes while it starts its
/// jobs, and carries out the whole load.
const AGAIN: Duration = Duration::from_secs(2);

/// Reason why fio ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The jobs ran to their end.
    Done,
    /// The jobs were asked to end early.
    Stopped,
}

/// Observation of a running process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observation {
    /// Seconds since it began.
    pub(super) passed_s: f64,
    /// Process id.
    pub(super) process: u32,
}

/// Runs the job file in `folder`, here or on `hosts`. `tell` is called now and then, and says
/// whether it goes on.
///
/// fio dies with the thread that waits for it: without that, the session that goes on after this
/// program was killed would meet a load that no process watches. It gets a process group of its
/// own: Ctrl-C on the terminal reaches this program only, which then asks fio to end in the way in
/// which it still writes its logs.
pub(super) fn run(
    folder: &Path,
    hosts: Option<&Hosts>,
    watch: &mut dyn Watch,
    mut tell: impl FnMut(&mut dyn Watch, Observation) -> bool,
) -> Result<Ending, Error> {
    let messages = File::create(folder.join(MESSAGES_FILE)).and_then(|file| {
        let copy = file.try_clone()?;
        Ok((file, copy))
    });
    let (out, err) = messages.map_err(|source| {
        Error::new(Kind::Io, format!("writing to {}", folder.display())).source(source)
    })?;
    let child = dying_with_us("fio")
        .args(job::arguments_in(folder, hosts))
        .current_dir(folder)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .process_group(0)
        .spawn()
        .map_err(not_started)?;
    let mut running = Running(child);
    let began = Instant::now();
    let mut asked_to_end: Option<Instant> = None;
    let mut asked_again = began;
    loop {
        if let Some(status) = running.ended()? {
            return judge(status, asked_to_end.is_some(), folder);
        }
        match asked_to_end {
            None => {
                let passed_s = began.elapsed().as_secs_f64();
                let look = Observation { passed_s, process: running.0.id() };
                if watch.stop() || !tell(watch, look) {
                    running.signal(Signal::INT);
                    asked_again = Instant::now();
                    asked_to_end = Some(asked_again);
                }
            }
            Some(since) if since.elapsed() > PATIENCE => return Err(deaf()),
            Some(_) if asked_again.elapsed() > AGAIN => {
                running.signal(Signal::INT);
                asked_again = Instant::now();
            }
            Some(_) => {}
        }
        thread::sleep(POLL);
    }
}

/// `program`, which the kernel kills when this thread ends; where util-linux is missing, the
/// program alone.
pub(super) fn dying_with_us(program: &str) -> Command {
    let there = Command::new("setpriv").arg("--version").output();
    if !there.is_ok_and(|output| output.status.success()) {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", program]);
    command
}

fn deaf() -> Error {
    let text = format!("fio did not end within {} s of being asked to", PATIENCE.as_secs());
    Error::new(Kind::Program, text).hint("the drive may have stopped answering requests: see dmesg")
}

/// A process that does not outlive this value, unless the kernel cannot end it.
struct Running(Child);

impl Running {
    fn ended(&mut self) -> Result<Option<ExitStatus>, Error> {
        let status = self.0.try_wait();
        status.map_err(|source| Error::new(Kind::Program, "waiting for fio").source(source))
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            // A process that has just ended is none to end.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            self.signal(Signal::KILL);
            // Nothing is left to do where it stays: it ends when the drive answers.
            has_ended(PATIENCE_AFTER_KILL, || !matches!(self.0.try_wait(), Ok(None)));
        }
    }
}

/// Looks until a process has ended, for so long at most; true if it has.
fn has_ended(patience: Duration, mut look: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    loop {
        if look() {
            return true;
        }
        if began.elapsed() >= patience {
            return false;
        }
        thread::sleep(POLL);
    }
}

fn judge(status: ExitStatus, asked_to_end: bool, folder: &Path) -> Result<Ending, Error> {
    if asked_to_end {
        return Ok(Ending::Stopped);
    }
    if let Some(signal) = status.signal() {
        let text = format!("fio was killed by signal {signal}");
        return Err(Error::new(Kind::Program, text)
            .hint("signal 9 is often the kernel, short of memory: see dmesg"));
    }
    if status.success() {
        return Ok(Ending::Done);
    }
    let said = said_in(folder);
    let said = reason(&said).unwrap_or_else(|| status.to_string());
    let error = Error::new(Kind::Program, format!("fio failed: {said}"));
    Err(error.hint(remedy(&said, folder)))
}

fn remedy(said: &str, folder: &Path) -> String {
    let known = [
        ("No space left", "free space on the file system, or use a smaller --size"),
        ("Input/output error", "the drive failed a request: see dmesg"),
        ("failed to connect", "start `fio --server` there, and let this machine reach its port"),
        ("Permission denied", "run as root"),
        ("Operation not permitted", "run as root"),
        ("memlock", "raise the limit of locked memory (ulimit -l)"),
    ];
    let known = known.iter().find(|(sign, _)| said.contains(sign));
    let shown = folder.display();
    known.map_or_else(
        || format!("{shown} has the job file and all output of fio"),
        |(_, remedy)| (*remedy).to_owned(),
    )
}

/// All that fio said: on its outputs, and before the report in the report's file.
fn said_in(folder: &Path) -> String {
    let mut said = fs::read_to_string(folder.join(MESSAGES_FILE)).unwrap_or_default();
    let report = fs::read_to_string(folder.join(OUTPUT_FILE)).unwrap_or_default();
    said.push('\n');
    said.push_str(report.split("\n{").next().unwrap_or_default());
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_with_the_cause_is_preferred() {
        let said = "note: both iodepth >= 1 and synchronous I/O engine are selected\n\
                    fio: pid=77, err=28/file:b.c:1, func=write, error=No space left on device\n\
                    fio: exiting";
        let said = reason(said).unwrap();
        assert!(said.ends_with("error=No space left on device"), "{said}");
        assert!(remedy(&said, Path::new("raw")).contains("--size"));
        assert_eq!(reason("\n\n"), None);
    }

    #[test]
    fn a_process_that_no_signal_ends_is_left_after_a_while() {
        let mut looks = 0;
        let mut hung = || {
            looks += 1;
            false
        };
        assert!(!has_ended(Duration::ZERO, &mut hung));
        assert!(looks > 0);
        assert!(has_ended(PATIENCE_AFTER_KILL, || true));
    }

    #[test]
    fn a_killed_process_names_its_signal() {
        let error = judge(ExitStatus::from_raw(9), false, Path::new("absent")).unwrap_err();
        assert_eq!(error.to_string(), "fio was killed by signal 9");
        assert_eq!(judge(ExitStatus::from_raw(9), true, Path::new("")).unwrap(), Ending::Stopped);
    }
}
