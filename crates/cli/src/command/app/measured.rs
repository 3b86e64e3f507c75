//! An application on a mounted folder, which may be that of a live drive.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, bail};
use blockio::{Bytes, Nanos};
use export::{Pace, RecordedCommand, Recorder};
use lab::application;
use lab::workload::Application;
use lab::workload::recording::{Transaction, latency_percentile};
use lab::{Error, Kind};
use server::cleanup::{CleanupItem, CleanupShell};
use server::mount::{self, Making};
use server::recording::{RecordedDevice, RecordingFile};
use server::signals::Signal;

use super::{Origin, Point, predicted};
use crate::args::{App, KeyArgs};
use crate::benchmark::{self, Ran};
use crate::command::record::RecordedDrive;
use crate::front_end;
use crate::output;

/// Measures an application in a folder of its own below `folder`, which is removed at the end.
///
/// # Errors
/// Fails if a program or space is missing, or a script fails.
pub(super) fn on_folder(
    application: &Application,
    folder: &Path,
    signals: &Receiver<Signal>,
) -> Result<Vec<Point>> {
    let mut shell = CleanupShell::new()?;
    let scratch = scratch(&mut shell)?;
    let folder = fs::canonicalize(folder)?;
    let drive = folder.display().to_string();
    let mut stage = Stage::new(application, (&folder, scratch), shell, signals)?;
    stage.measure(&drive, None, |_| Ok(None))
}

/// Measures an application on a live drive, the one in `volume` or one in memory, which is mounted
/// during the measurement.
///
/// # Errors
/// Fails if the drive cannot be opened or mounted, a program or space is missing, or a script
/// fails.
pub(super) fn on_live(
    application: &Application,
    volume: Option<&Path>,
    args: &App,
    signals: &Receiver<Signal>,
) -> Result<Vec<Point>> {
    if let Some(out) = args.out.as_ref().filter(|out| out.exists()) {
        let text = format!("{} already exists", out.display());
        return Err(Error::new(Kind::Refused, text).hint("name a new folder").into());
    }
    let memory = args.memory.filter(|_| volume.is_none());
    let mut shell = CleanupShell::new()?;
    let scratch = scratch(&mut shell)?;
    let opened = RecordedDrive::open(volume, memory, &args.timing, &KeyArgs::default())?;
    let switch = Arc::<RecorderSwitch>::default();
    let exports = opened.exports()?.recorded(Arc::<RecorderSwitch>::clone(&switch));
    let making = if args.mkfs || memory.is_some() { Making::Ext4 } else { Making::Kept };
    let mount = scratch.join("mnt");
    let (files, mount) = mount::drive(&mut shell, &exports, &scratch, &mount, making)?;
    let drive = opened.subject().model.map_or_else(
        || opened.subject().device.to_owned(),
        |model| format!("{model}, {}", opened.subject().device),
    );
    // Time outside the drive belongs neither to the application nor to another drive.
    let front_end = args.out.as_ref().map(|_| front_end::round_trip(&mount, |to| switch.turn(to)));
    let front_end = front_end.transpose()?;
    let measured =
        Stage::new(application, (&mount, scratch), shell, signals).and_then(|mut stage| {
            stage.measure(&drive, opened.pace(), |threads| {
                let Some(out) = &args.out else { return Ok(None) };
                fs::create_dir_all(out).with_context(|| format!("making {}", out.display()))?;
                let path = predicted::recording(out, application, threads);
                let subject = RecordedDevice { front_end, ..opened.subject() };
                let file = RecordingFile::begin(&path, &subject)?;
                switch.turn(Some(file.recorder()));
                Ok(Some(Recording { file, path, switch: Arc::clone(&switch) }))
            })
        });
    files.unmount().context("unmounting the drive")?;
    exports.flush().context("making the last writes durable")?;
    drop(exports);
    opened.close()?;
    measured
}

/// A folder for sockets and logs, which servers that run as other users may enter.
fn scratch(shell: &mut CleanupShell) -> Result<PathBuf> {
    let scratch = tempfile::tempdir().context("making a folder for sockets and logs")?.keep();
    shell.register(CleanupItem::Scratch(&scratch))?;
    fs::set_permissions(&scratch, fs::Permissions::from_mode(0o755))?;
    Ok(scratch)
}

/// A recorder that forwards to another one, if there is one.
#[derive(Debug, Default)]
struct RecorderSwitch {
    to: Mutex<Option<Arc<dyn Recorder>>>,
}

impl RecorderSwitch {
    fn turn(&self, to: Option<Arc<dyn Recorder>>) {
        *self.to.lock().unwrap_or_else(PoisonError::into_inner) = to;
    }
}

impl Recorder for RecorderSwitch {
    fn keep(&self, client: u64, served: &[RecordedCommand]) {
        if let Some(to) = &*self.to.lock().unwrap_or_else(PoisonError::into_inner) {
            to.keep(client, served);
        }
    }
}

/// A recording of one measurement.
struct Recording {
    file: RecordingFile,
    path: PathBuf,
    switch: Arc<RecorderSwitch>,
}

impl Recording {
    /// Ends the recording, with the transactions of `log`. Returns the share of the host in it.
    fn finish(self, ran: Ran, command: String, log: &str) -> Result<Option<f64>> {
        self.switch.turn(None);
        let tail = ran.tail(command, &self.file);
        let transactions = transactions(log, self.file.began_unix_ns())?;
        self.file.finish(&tail, &transactions)?;
        Ok(application::host_share(&application::read(&self.path)?))
    }
}

/// An application with its folders and processes, which are removed when this is dropped.
struct Stage<'a> {
    application: &'a Application,
    /// Folder of the application on the drive.
    folder: PathBuf,
    scratch: PathBuf,
    /// An idle process that leads the process group of all others.
    leader: Child,
    signals: &'a Receiver<Signal>,
    /// Absent once it has removed everything.
    shell: Option<CleanupShell>,
}

impl<'a> Stage<'a> {
    /// Checks programs and space, and creates the folder of the application below `drive`.
    fn new(
        application: &'a Application,
        (drive, scratch): (&Path, PathBuf),
        mut shell: CleanupShell,
        signals: &'a Receiver<Signal>,
    ) -> Result<Self> {
        for (program, package) in &application.programs {
            mount::check_program(program, package)?;
        }
        check_space(application, drive)?;
        let folder = drive.join(format!("floatgate-{}-{}", application.name, std::process::id()));
        shell.register(CleanupItem::Folder(&folder))?;
        fs::create_dir(&folder).with_context(|| format!("making {}", folder.display()))?;
        // It ends when its input does, at the end of this process.
        let leader = Command::new("cat").stdin(Stdio::piped()).process_group(0).spawn();
        let leader = leader.context("starting cat")?;
        shell.register(CleanupItem::Group(leader.id()))?;
        Ok(Self { application, folder, scratch, leader, signals, shell: Some(shell) })
    }

    /// Sets the application up, measures it with each number of threads, and ends it. `pace` sets
    /// the timing of the drive, if a model does. `begin` is called before each measurement, and may
    /// begin a recording of it.
    fn measure(
        &mut self,
        drive: &str,
        pace: Option<&Pace>,
        begin: impl Fn(u32) -> Result<Option<Recording>>,
    ) -> Result<Vec<Point>> {
        let application = self.application;
        let (steps, first) = (&application.steps, application.threads[0]);
        output::talk(&format!("{}: loading on {drive}", application.title));
        self.step("load", &steps.load, first)?;
        if !steps.warm.is_empty() {
            self.step("warm", &steps.warm, first)?;
        }
        let mut points = Vec::new();
        for &threads in &application.threads {
            output::talk(&format!("{}: {threads} threads", application.title));
            let recording = begin(threads)?;
            let before = pace.map(Pace::lateness);
            let ran = self.step("run", &steps.run, threads)?;
            let late = pace.map(Pace::lateness_and_peaks).zip(before);
            let late = late.map(|((now, peaks), before)| now.since(&before, &peaks));
            let Some(benchmark) = ran.benchmark.clone() else {
                bail!(
                    "`run` of {} printed no result of sysbench, pgbench or db_bench",
                    application.name
                );
            };
            let command = format!("{} at {threads} threads", application.name);
            let log = self.take_log()?;
            let latency_ms_p99 =
                benchmark.latency_ms_p99.map_or_else(|| logged_p99(&log), |p99| Ok(Some(p99)))?;
            let host_share =
                recording.map(|it| it.finish(ran, command, &log)).transpose()?.flatten();
            points.push(Point {
                drive: drive.to_owned(),
                origin: Origin::Measured,
                unvalidated: None,
                state: None,
                threads,
                tps: Some(benchmark.tps),
                latency_ms_mean: benchmark.latency_ms_mean,
                latency_ms_p99,
                host_share,
                slowdown: late.map(|it| it.slowdown()),
                recording_pause_share: None,
            });
        }
        if !steps.stop.is_empty() {
            self.step("stop", &steps.stop, first)?;
        }
        Ok(points)
    }

    /// File into which the scripts may log transactions.
    fn log(&self) -> PathBuf {
        self.scratch.join("transactions")
    }

    /// The transactions that `run` logged, as text; empty if it keeps no log. The next measurement
    /// starts a new log.
    fn take_log(&self) -> Result<String> {
        let log = self.log();
        match fs::read_to_string(&log) {
            Ok(text) => {
                fs::remove_file(&log).context("removing the log of transactions")?;
                Ok(text)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(error).context("reading the log of transactions"),
        }
    }

    /// Runs a script to its end.
    fn step(&self, name: &str, script: &str, threads: u32) -> Result<Ran> {
        let Self { application, folder, scratch, leader, signals, .. } = self;
        let group = i32::try_from(leader.id()).context("numbering the group of processes")?;
        let mut command = Command::new("bash");
        command.args(["-eu", "-c", script, name]).envs(&application.parameters);
        command.env("FOLDER", folder).env("SCRATCH", scratch).env("TRANSACTIONS", self.log());
        command.env("THREADS", threads.to_string());
        command.env("SECONDS_MEASURED", application.seconds.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).process_group(group);
        let child = command.spawn().context("starting bash")?;
        let ran = benchmark::follow(child, signals)?;
        if ran.is_stopped {
            bail!("stopped");
        }
        if !ran.status.success() {
            bail!("`{name}` of {} ended with {}", application.name, ran.status);
        }
        Ok(ran)
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        drop(self.leader.stdin.take());
        // Before the leader is waited for: until then its number is not reused.
        self.shell = None;
        let _ = self.leader.wait();
    }
}

/// Parses the transactions that `run` logged.
fn transactions(log: &str, began_unix_ns: u64) -> Result<Vec<Transaction>> {
    Transaction::parse_log(log, began_unix_ns).map_err(|text| {
        let hint = "docs/reference/application.md has the form of the log";
        Error::new(Kind::Input, text).hint(hint).into()
    })
}

/// 99th percentile of the latencies in a log, in milliseconds; none where it is empty.
fn logged_p99(log: &str) -> Result<Option<f64>> {
    let logged = transactions(log, 0)?;
    let mut latencies: Vec<Nanos> = logged.iter().map(Transaction::latency).collect();
    Ok(latency_percentile(&mut latencies, 99.0).map(|it| it.as_secs_f64() * 1e3))
}

/// Refuses a drive that the application would fill.
fn check_space(application: &Application, drive: &Path) -> Result<()> {
    let space = rustix::fs::statvfs(drive).context("asking for the free space")?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    if free >= application.space_bytes {
        return Ok(());
    }
    let text = format!(
        "{} needs {}, and {} has {} free",
        application.name,
        Bytes(application.space_bytes),
        drive.display(),
        Bytes(free)
    );
    let hint = "name a larger drive, or a copy of the application's file with less data";
    Err(Error::new(Kind::Input, text).hint(hint).into())
}
