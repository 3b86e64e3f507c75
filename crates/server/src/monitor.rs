//! Alerts when the health of a served drive changes: a program is run, or a mail sent, as `mdadm
//! --monitor` and `smartd` do it.
//!
//! ```text
//!   change of health ──► queue ──► a thread of its own ──┬──► PROGRAM EVENT DRIVE DETAIL
//!                          └── full: lost, and logged     └──► sendmail -t
//! ```
//!
//! The server never waits: the queue is bounded, and a program that takes longer than a minute is
//! killed.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use blockio::text::is_unshown;
use status::HealthState;
use tracing::warn;

/// Alert that a program or a mail passes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Alert {
    /// The kind of the problem, `resolved`, `health-ok` or `test`.
    pub(crate) event: &'static str,
    /// Health from now on.
    pub(crate) health: HealthState,
    /// Index of the die that it is about.
    pub(crate) die: Option<u32>,
    /// Description of the change, one sentence.
    pub(crate) detail: String,
    /// Next step for the operator, one sentence; empty if there is none.
    pub(crate) remedy: String,
}

/// Alerts that wait for a slow program.
const WAITING_MAX: usize = 64;
/// Longest run of an alert program before it is killed.
const PATIENCE: Duration = Duration::from_mins(1);
/// Longest wait for pending alerts when the server ends.
const LAST_CALLS: Duration = Duration::from_secs(5);
/// Time between two looks at whether a program has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Paths of sendmail; the first that exists is used.
const SENDMAIL: [&str; 3] = ["/usr/sbin/sendmail", "/usr/lib/sendmail", "/usr/bin/sendmail"];

/// Recipients of alerts; checked when the server starts.
#[derive(Clone, Debug)]
pub(crate) struct Recipients {
    program: Option<PathBuf>,
    /// The program that takes mail, and the address.
    mail: Option<(PathBuf, String)>,
}

impl Recipients {
    /// Returns the recipients that the options name; none if they name none.
    ///
    /// # Errors
    /// Fails if the program cannot be run, the address is none, or nothing takes mail here.
    pub(crate) fn new(program: Option<PathBuf>, mail: Option<&str>) -> Result<Option<Self>> {
        let mail = mail.map(post).transpose()?;
        program.as_deref().map(check_program).transpose()?;
        let is_any = program.is_some() || mail.is_some();
        Ok(is_any.then_some(Self { program, mail }))
    }
}

/// The drive that alerts are about.
#[derive(Clone, Debug)]
pub(crate) struct About {
    /// Its number.
    pub(crate) drive: String,
    /// Its name, as shown to people.
    pub(crate) name: String,
    /// Its folder.
    pub(crate) folder: String,
}

/// Monitor that passes alerts on until it is dropped.
#[derive(Debug)]
pub(crate) struct Monitor {
    queue: Option<SyncSender<Alert>>,
    ended: Mutex<Receiver<()>>,
    caller: Option<JoinHandle<()>>,
}

/// The thread that calls.
#[derive(Debug)]
struct Caller {
    about: About,
    recipients: Recipients,
}

impl Monitor {
    /// Calls these about a drive.
    ///
    /// # Errors
    /// Fails if the system gives no thread.
    pub(crate) fn start(recipients: Recipients, about: About) -> Result<Self> {
        let caller = Caller { about, recipients };
        let (queue, alerts) = mpsc::sync_channel(WAITING_MAX);
        let (over, ended) = mpsc::channel();
        let call = move || {
            for alert in alerts {
                caller.call(&alert);
            }
            // No thread waits any more where that took too long.
            let _ = over.send(());
        };
        let caller = thread::Builder::new().name("monitor".to_owned()).spawn(call);
        let caller = caller.context("starting a thread for alerts")?;
        Ok(Self { queue: Some(queue), ended: Mutex::new(ended), caller: Some(caller) })
    }

    /// Queues an alert, which is sent after those before it.
    pub(crate) fn tell(&self, alert: Alert) {
        let Some(queue) = &self.queue else { return };
        if let Err(lost) = queue.try_send(alert) {
            let (mpsc::TrySendError::Full(alert) | mpsc::TrySendError::Disconnected(alert)) = lost;
            warn!(
                event = alert.event,
                "the alert `{}` was dropped: the queue is full", alert.event
            );
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.queue = None;
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Ok(()) | Err(RecvTimeoutError::Disconnected) = ended.recv_timeout(LAST_CALLS)
            && let Some(caller) = self.caller.take()
        {
            // A thread that panicked calls no recipient any more.
            let _ = caller.join();
        }
    }
}

/// Refuses what cannot be run.
fn check_program(program: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let shown = program.display();
    if !program.is_absolute() {
        bail!("--monitor-program {shown} is not an absolute path");
    }
    let found = std::fs::metadata(program).with_context(|| format!("--monitor-program {shown}"))?;
    if !found.is_file() || found.permissions().mode() & 0o111 == 0 {
        bail!("--monitor-program {shown} cannot be executed; `chmod +x {shown}` allows it");
    }
    Ok(())
}

/// Returns the sendmail program and the address, once that is checked.
fn post(address: &str) -> Result<(PathBuf, String)> {
    if address.is_empty() || address.starts_with('-') || address.chars().any(char::is_control) {
        bail!("--monitor-mail {address:?} is not an address, such as root@localhost");
    }
    let sendmail = SENDMAIL.iter().map(Path::new).find(|path| path.exists());
    let sendmail = sendmail.with_context(|| {
        format!(
            "--monitor-mail {address}: no sendmail program was found ({}); install a mail transfer \
             agent such as msmtp-mta, or use --monitor-program",
            SENDMAIL.join(", ")
        )
    })?;
    Ok((sendmail.to_owned(), address.to_owned()))
}

impl Caller {
    fn call(&self, alert: &Alert) {
        let Recipients { program, mail } = &self.recipients;
        if let Some(program) = program {
            let mut command = Command::new(program);
            command.args([alert.event, &self.about.drive, &alert.detail]);
            Self::report(program, alert, carried_out(self.equipped(&mut command, alert), ""));
        }
        if let Some((sendmail, address)) = mail {
            let mut command = Command::new(sendmail);
            command.args(["-t", "-i"]);
            let mail = self.mail(address, alert);
            Self::report(sendmail, alert, carried_out(self.equipped(&mut command, alert), &mail));
        }
    }

    /// A command with what it is to know in its environment.
    fn equipped<'a>(&self, command: &'a mut Command, alert: &Alert) -> &'a mut Command {
        let About { drive, name, folder } = &self.about;
        let die = alert.die.map_or_else(String::new, |die| die.to_string());
        let known: [(&str, &OsStr); 8] = [
            ("FLOATGATE_EVENT", alert.event.as_ref()),
            ("FLOATGATE_DRIVE", drive.as_ref()),
            ("FLOATGATE_NAME", name.as_ref()),
            ("FLOATGATE_FOLDER", folder.as_ref()),
            ("FLOATGATE_HEALTH", alert.health.word().as_ref()),
            ("FLOATGATE_DIE", die.as_ref()),
            ("FLOATGATE_DETAIL", alert.detail.as_ref()),
            ("FLOATGATE_NEXT_STEP", alert.remedy.as_ref()),
        ];
        command.envs(known).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null())
    }

    fn mail(&self, address: &str, alert: &Alert) -> String {
        let About { drive, name, folder } = &self.about;
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let Alert { event, health, detail, remedy, .. } = alert;
        let health = health.word();
        // What a folder is called may hold anything, and a header ends with a line.
        let name = name.replace(is_unshown, " ");
        format!(
            "To: {address}\nSubject: Floatgate {event}: {name} is {health} on {}\n\
             Content-Type: text/plain; charset=utf-8\nAuto-Submitted: auto-generated\n\n\
             {detail}\n{remedy}\n\ndrive   {drive}\nname    {name}\nfolder  {folder}\n\
             health  {health}\nevent   {event}\n\nThis mail is from the server of the volume.\n",
            host.trim()
        )
    }

    /// Logs what did not go well.
    fn report(program: &Path, alert: &Alert, done: io::Result<Option<ExitStatus>>) {
        let (shown, event) = (program.display(), alert.event);
        match done {
            Ok(Some(status)) if status.success() => {}
            Ok(Some(status)) => warn!(event, "{shown} failed for the event `{event}`: {status}"),
            Ok(None) => warn!(event, "{shown} took over a minute for `{event}`: killed"),
            Err(error) => warn!(event, "{shown} could not be run for the event `{event}`: {error}"),
        }
    }
}

/// Runs a command to its end and gives it a text; none where it was killed because it took too
/// long.
fn carried_out(command: &mut Command, text: &str) -> io::Result<Option<ExitStatus>> {
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A text fits into the pipe, so this thread does not wait; a program need not read it.
        let _ = input.write_all(text.as_bytes());
    }
    let deadline = Instant::now() + PATIENCE;
    wait(&mut child, deadline)
}

fn wait(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Returns the alert that `--monitor-test` sends.
pub(crate) fn test_alert(health: HealthState) -> Alert {
    Alert {
        event: "test",
        health,
        die: None,
        detail: "This is a test: the server was started with --monitor-test.".to_owned(),
        remedy: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(name: &str) -> Caller {
        let about =
            About { drive: "0f".to_owned(), name: name.to_owned(), folder: "/v".to_owned() };
        Caller { about, recipients: Recipients { program: None, mail: None } }
    }

    #[test]
    fn a_mail_says_what_happened_and_what_to_do_and_a_name_adds_no_header() {
        let alert = Alert {
            event: "die-failed",
            health: HealthState::Degraded,
            die: Some(2),
            detail: "Die 2 (/dev/sdc) failed.".to_owned(),
            remedy: "Replace it.".to_owned(),
        };
        let mail = caller("store\nBcc: all@example.org").mail("root@localhost", &alert);
        let (headers, text) = mail.split_once("\n\n").expect("headers end");
        assert_eq!(headers.lines().count(), 4, "{headers}");
        let subject = "Subject: Floatgate die-failed: store Bcc: all@example.org is degraded on ";
        assert!(headers.starts_with("To: root@localhost\n") && headers.contains(subject), "{mail}");
        assert!(
            text.starts_with("Die 2 (/dev/sdc) failed.\nReplace it.\n\ndrive   0f\n"),
            "{mail}"
        );
    }

    #[test]
    fn a_program_that_takes_too_long_is_killed() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("coreutils are there");
        let status = wait(&mut child, Instant::now()).expect("it is ours");
        assert!(status.is_none(), "{status:?}");
    }
}
