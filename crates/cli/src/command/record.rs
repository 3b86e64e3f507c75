//! `floatgate trace record`: a command whose requests to a drive are recorded.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use anyhow::{Context as _, Result, bail};
use blockio::Bytes;
use export::{Address, Export, Exports, Listener, Pace};
use export::{Limits, Server};
use lab::workload::recording::Tail;
use live::{Device, Drive, MemoryDevice};
use server::cleanup::{CleanupItem, CleanupShell};
use server::config::Pacing;
use server::lateness;
use server::log::log_client;
use server::mount::{self, Making};
use server::recording::{self, RecordingFile};
use server::signals::{self, Signal};

use crate::args::{KeyArgs, Record, TimingArgs};
use crate::{Ending, benchmark, output, setup};

/// Serves the drive on a private socket, runs the command, and records its requests.
pub(crate) fn record(args: &Record) -> Result<Ending> {
    setup::check_new(&args.out)?;
    let signals = signals::received()?;
    let mut shell = CleanupShell::new()?;
    let scratch = tempfile::tempdir().context("making a folder for the socket")?.keep();
    shell.register(CleanupItem::Scratch(&scratch))?;
    let socket = scratch.join("nbd.sock");
    let opened = RecordedDrive::open(args.volume.as_deref(), args.memory, &args.timing, &args.key)?;
    let emulation_slowdown = args.emulated.map(f64::from);
    let subject = recording::RecordedDevice { emulation_slowdown, ..opened.subject() };
    let recording = RecordingFile::begin(&args.out, &subject)?;
    let exports = opened.exports()?.recorded(recording.recorder());
    let listener = Listener::bind(&Address::Unix(socket))?;
    let limits = Limits::default().checked()?;
    let mut files = None;
    let making = if args.mkfs { Making::Ext4 } else { Making::Kept };
    let mounted = args.mount.as_deref().map(|folder| {
        mount::drive(&mut shell, &exports, &scratch, folder, making).map(|(mount, folder)| {
            files = Some(mount);
            folder
        })
    });
    let mounted = mounted.transpose();
    let server = Server::start(exports, vec![listener], limits, log_client);
    let server = server.context("starting the server")?;
    let ran = mounted.and_then(|mount| {
        let command = command(args, &scratch, mount.as_deref())?;
        run(args, command, &mut shell, &recording, &signals)
    });
    // Before the server: what is mounted is written back to it.
    drop(shell);
    if let Some(files) = files {
        files.unmount().context("unmounting the drive")?;
    }
    server.stop().context("making the last writes durable")?;
    opened.close()?;
    let (status, tail) = match ran {
        Ok(ran) => ran,
        Err(error) => {
            drop(recording);
            if !error.is::<Interruption>() {
                // The recording is empty, because the command did not start.
                fs::remove_file(&args.out).context("removing the recording")?;
            }
            return Err(error);
        }
    };
    let benchmark = tail.benchmark.clone();
    recording.finish(&tail, &[])?;
    match benchmark {
        Some(it) => output::talk(&format!("{}: {:.1} transactions per second", it.tool, it.tps)),
        None => output::talk(
            "no result of sysbench, pgbench or db_bench was printed: `floatgate trace replay` \
             tells factors and no TPS",
        ),
    }
    output::data(&args.out.display().to_string())?;
    if !status.success() {
        bail!("the command ended with {status}; its I/O up to then is recorded");
    }
    Ok(Ending::Done)
}

/// A drive that is served while a command runs.
pub(super) struct RecordedDrive {
    device: Arc<dyn Device>,
    /// The drive of a folder, which is to be closed at the end.
    drive: Option<Arc<Drive>>,
    pace: Option<Arc<Pace>>,
    /// Description of the device for people.
    about: String,
    model: Option<String>,
}

impl RecordedDrive {
    /// Opens the drive in `volume`, or one in `memory`.
    ///
    /// # Errors
    /// Fails if neither is named, the drive cannot be opened, or there is no such model.
    pub(super) fn open(
        volume: Option<&Path>,
        memory: Option<Bytes>,
        timing: &TimingArgs,
        key: &KeyArgs,
    ) -> Result<Self> {
        let pacing = timing.pacing();
        let model = pacing.as_ref().map(Pacing::model).transpose()?;
        let (device, drive, about): (Arc<dyn Device>, _, _) = if let Some(volume) = volume {
            let drive = Arc::new(key.open(volume)?);
            let about = format!("the volume {}", volume.display());
            (Arc::<Drive>::clone(&drive), Some(drive), about)
        } else {
            let size = memory.context("nothing to serve: name a drive, or --memory SIZE")?;
            (Arc::new(MemoryDevice::new(size.0)), None, format!("{size} in memory"))
        };
        model.as_ref().map_or(Ok(()), |model| model.hold(&*device))?;
        let pace = model.map(|model| model.pace);
        let model = pacing.map(|pacing| pacing.drive);
        Ok(Self { device, drive, pace, about, model })
    }

    /// The model that sets the timing, if there is one.
    pub(super) fn pace(&self) -> Option<&Pace> {
        self.pace.as_deref()
    }

    pub(super) fn exports(&self) -> Result<Exports> {
        let whole = Export {
            name: String::new(),
            description: self.about.clone(),
            device: Arc::clone(&self.device),
            is_read_only: false,
            pace: self.pace.clone(),
        };
        Ok(Exports::new(vec![whole])?)
    }

    /// The device as its recordings name it.
    pub(super) fn subject(&self) -> recording::RecordedDevice<'_> {
        let model = self.model.as_deref();
        recording::RecordedDevice {
            device: &self.about,
            size_bytes: self.device.size(),
            model,
            front_end: None,
            emulation_slowdown: None,
        }
    }

    /// Closes the drive, of which no front end may have an export any more.
    ///
    /// # Errors
    /// Fails if its last state could not be written.
    pub(super) fn close(self) -> Result<()> {
        drop(self.device);
        let closed = self.drive.and_then(Arc::into_inner).map(Drive::close);
        closed.transpose().context("closing the drive")?;
        // No client sends requests any more, so the counts are final.
        if let Some(text) = self.pace.and_then(|pace| lateness::text(&pace.lateness())) {
            output::talk(&format!("warning: {text}"));
        }
        Ok(())
    }
}

/// The command, which finds the drive in its environment.
fn command(args: &Record, scratch: &Path, mount: Option<&Path>) -> Result<Command> {
    let (program, arguments) = args.command.split_first().context("no command")?;
    let mut command = Command::new(program);
    // A group of its own, so that all of it can be ended.
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
    let socket = scratch.join("nbd.sock");
    command.env("FLOATGATE_NBD", format!("nbd+unix:///?socket={}", socket.display()));
    if let Some(mount) = mount {
        command.env("FLOATGATE_MOUNT", mount);
    }
    Ok(command)
}

/// The command was told to end, as this process was.
#[derive(Debug, thiserror::Error)]
#[error("stopped: {0} is a recording that was cut short")]
struct Interruption(String);

fn run(
    args: &Record,
    mut command: Command,
    shell: &mut CleanupShell,
    recording: &RecordingFile,
    signals: &Receiver<Signal>,
) -> Result<(ExitStatus, Tail)> {
    let shown = benchmark::shown(&command);
    let child = command.spawn().with_context(|| format!("starting {shown}"))?;
    shell.register(CleanupItem::Group(child.id()))?;
    let ran = benchmark::follow(child, signals)?;
    if ran.is_stopped {
        return Err(Interruption(args.out.display().to_string()).into());
    }
    Ok((ran.status, ran.tail(shown, recording)))
}
