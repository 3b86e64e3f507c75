//! `floatgate record`: a command whose requests to a drive are recorded.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use blockio::{Bytes, Nanos};
use export::nbd::{Limits, Server};
use export::{Address, Listener};
use lab::workload::recording::{Benchmark, Tail};
use live::{Access, Device, Drive, MemoryDevice};
use rustix::process::{Pid, kill_process_group};
use server::recording::{self, RecordingFile};

use super::serve::{Offer, hold, paced, tell};
use crate::args::{Record, Timing};
use crate::failure::Opening;
use crate::keeper::{Keeper, Kept};
use crate::mount::{Making, mount};
use crate::signals::{self, Signal};
use crate::{Ending, output, setup};

/// Time between two looks at whether the command has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Texts of which every line with the result of a benchmark has one.
const RESULTS: [&str; 3] = ["transactions:", "tps = ", " micros/op "];

/// Serves the drive on a socket of its own, runs the command, and keeps what it asked for.
pub(crate) fn record(args: &Record) -> Result<Ending> {
    setup::check_output(&args.out, false)?;
    let signals = signals::received()?;
    let mut keeper = Keeper::new()?;
    let scratch = tempfile::tempdir().context("making a folder for the socket")?.keep();
    keeper.keep(Kept::Scratch(&scratch))?;
    let socket = scratch.join("nbd.sock");
    let (device, drive) = open(args)?;
    let pace = paced(&args.timing)?.map(|paced| Arc::clone(&paced.pace));
    hold(pace.as_deref(), &*device)?;
    let offer = Offer { volume: None, default: "", is_read_only: false, pace: pace.as_ref() };
    let recording = begin(args, device.size())?;
    let exports = offer.exports(&device)?.recorded(recording.recorder());
    drop(device);
    let listener = Listener::bind(&Address::Unix(socket))?;
    let limits = Limits::default().checked()?;
    let server = Server::start(exports, vec![listener], limits, tell);
    let server = server.context("starting the server")?;
    let ran = mounted(args, &scratch, &mut keeper).and_then(|mount| {
        let command = command(args, &scratch, mount.as_deref())?;
        run(args, (command, &mut keeper), &recording, &signals)
    });
    // Before the server: what is mounted is written back to it.
    drop(keeper);
    server.stop().context("making the last writes durable")?;
    if let Some(drive) = drive.and_then(Arc::into_inner) {
        drive.close().context("closing the drive")?;
    }
    let Ran { status, tail } = match ran {
        Ok(ran) => ran,
        Err(error) => {
            drop(recording);
            if !error.is::<Stopped>() {
                // Nothing was recorded that anybody asked for.
                fs::remove_file(&args.out).context("removing the recording")?;
            }
            return Err(error);
        }
    };
    let benchmark = tail.benchmark.clone();
    recording.finish(&tail)?;
    match benchmark {
        Some(it) => output::talk(&format!("{}: {:.1} transactions per second", it.tool, it.tps)),
        None => output::talk(
            "no result of sysbench, pgbench or db_bench was printed: `floatgate replay` tells \
             factors and no TPS",
        ),
    }
    output::data(&args.out.display().to_string())?;
    if !status.success() {
        bail!("the command ended with {status}; what it asked for is recorded");
    }
    Ok(Ending::Done)
}

fn begin(args: &Record, size_bytes: u64) -> Result<RecordingFile> {
    let device = match &args.volume {
        Some(volume) => format!("the live drive {}", volume.display()),
        None => format!("{} in memory", Bytes(size_bytes)),
    };
    let model = (args.timing.timing == Timing::Model).then_some(args.timing.model.as_str());
    let of = recording::Subject { device: &device, size_bytes, model };
    RecordingFile::begin(&args.out, &of)
}

/// The device to serve, and the drive that is to be closed at the end.
type Opened = (Arc<dyn Device>, Option<Arc<Drive>>);

fn open(args: &Record) -> Result<Opened> {
    let Some(volume) = &args.volume else {
        let size = args.memory.context("nothing to serve")?;
        return Ok((Arc::new(MemoryDevice::new(size.0)), None));
    };
    let drive = Drive::open_as(volume, Access::default());
    let drive = Arc::new(drive.with_context(|| Opening::of(volume))?);
    Ok((Arc::<Drive>::clone(&drive), Some(drive)))
}

/// The folder on which the drive is mounted, where that was asked for.
fn mounted(args: &Record, scratch: &Path, keeper: &mut Keeper) -> Result<Option<PathBuf>> {
    let Some(folder) = &args.mount else { return Ok(None) };
    let making = if args.mkfs { Making::Ext4 } else { Making::Kept };
    mount(keeper, folder, scratch, making).map(Some)
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
struct Stopped(String);

/// A command that has ended.
struct Ran {
    status: ExitStatus,
    tail: Tail,
}

fn run(
    args: &Record,
    (mut command, keeper): (Command, &mut Keeper),
    recording: &RecordingFile,
    signals: &Receiver<Signal>,
) -> Result<Ran> {
    let shown = args.command.iter().map(|word| setup::shell_word(&word.to_string_lossy()));
    let shown = shown.collect::<Vec<_>>().join(" ");
    let began = recording.now();
    let mut child = command.spawn().with_context(|| format!("starting {shown}"))?;
    keeper.keep(Kept::Group(child.id()))?;
    let output = child.stdout.take().context("the output of the command")?;
    let (printed, status) = thread::scope(|scope| {
        let printed = scope.spawn(|| follow(output, recording));
        let status = wait(&mut child, signals);
        (printed.join(), status)
    });
    let (status, is_stopped) = status?;
    let ended = recording.now();
    if is_stopped {
        return Err(Stopped(args.out.display().to_string()).into());
    }
    let Ok(Printed { text, result_at }) = printed else { bail!("reading its output failed") };
    let benchmark = Benchmark::parse(&text);
    let (measured_from, measured_to) = match (&benchmark, result_at) {
        (Some(it), Some(at)) => (at.saturating_sub(it.span()).max(began), at),
        _ => (began, ended),
    };
    let tail = Tail { command: shown, measured_from, measured_to, benchmark };
    Ok(Ran { status, tail })
}

/// Waits for the command; it is told to end when this process is. Returns whether it was.
fn wait(child: &mut Child, signals: &Receiver<Signal>) -> Result<(ExitStatus, bool)> {
    let mut is_stopped = false;
    loop {
        if let Some(status) = child.try_wait().context("waiting for the command")? {
            return Ok((status, is_stopped));
        }
        if matches!(signals.recv_timeout(LOOK_EVERY), Ok(Signal::Stop)) {
            is_stopped = true;
            // One that has just ended needs no signal.
            let _ = kill_process_group(Pid::from_child(child), rustix::process::Signal::TERM);
        }
    }
}

/// Output of a command.
struct Printed {
    text: String,
    /// Time of the last line that had the result of a benchmark, on the clock of the recording.
    result_at: Option<Nanos>,
}

/// Passes on what a command prints.
fn follow(output: ChildStdout, recording: &RecordingFile) -> Printed {
    let mut printed = Printed { text: String::new(), result_at: None };
    let mut lines = BufReader::new(output);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
        let text = String::from_utf8_lossy(&line);
        if RESULTS.iter().any(|result| text.contains(result)) {
            printed.result_at = Some(recording.now());
        }
        // On stderr: the path of the recording is all that stdout has.
        output::talk(text.trim_end());
        printed.text += &text;
        line.clear();
    }
    printed
}
