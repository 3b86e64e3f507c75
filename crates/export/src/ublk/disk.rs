//! A device of the driver, from its making to its removal.
//!
//! ```text
//!   add ──► parameters ──► queues fetch ──► start ──► served ──► stop ──► queues end ──► delete
//!                             ▲                         │ the server is killed
//!              start recovery ┴── found by its key ◄── quiesced: requests wait
//! ```

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use blockio::{Bytes, SECTOR_BYTES};
use rustix::fs::OFlags;

use super::block::{DISCARD_SECTORS_MAX, REQUEST_BYTES_MAX};
use super::control::Control;
use super::layout::{ControlCommand, Info, Parameters, feature, state};
use super::queue::{Queue, QueueState};
use super::{UblkError, UblkSettings, devices};
use crate::{Event, Export, Exports, Observer};

/// Requests that a queue can have outstanding, as with most NVMe drives in Linux.
const DEPTH: u16 = 128;
/// Longest wait for a node in `/dev`, and for a queue to begin or to end.
const PATIENCE: Duration = Duration::from_secs(20);
/// Interval between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A device that is served until it is dropped.
pub(super) struct Disk {
    control: Arc<Control>,
    export: Arc<Export>,
    number: u32,
    key: u64,
    /// True if it is removed at the end. One that could not be recovered is left to the next
    /// server.
    is_own: bool,
    presence: Arc<Presence>,
    threads: Vec<JoinHandle<()>>,
}

/// The client that a device is, until the last of its queues ends.
struct Presence {
    client: u64,
    observer: Arc<dyn Observer>,
    is_stopping: AtomicBool,
    failure: Mutex<Option<String>>,
    queues: Vec<Arc<QueueState>>,
    /// Queues that have not ended.
    running: AtomicUsize,
}

impl fmt::Debug for Disk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("Disk");
        out.field("export", &self.export).field("number", &self.number).finish_non_exhaustive()
    }
}

impl Disk {
    /// Makes a device of an export, or goes on with the one that a killed server left.
    pub(super) fn start(
        control: &Arc<Control>,
        exports: &Exports,
        export: &Arc<Export>,
        settings: UblkSettings,
        observer: &Arc<dyn Observer>,
    ) -> Result<Self, UblkError> {
        let key = key(settings.drive, &export.name);
        let left = find(control, key)?;
        let info = match left {
            Some(info) => {
                check(control, &info, export)?;
                control.send_when_free(ControlCommand::StartRecovery, info.number, 0)?;
                info
            }
            None => add(control, export, settings, key)?,
        };
        let disk = Self::serve(control, exports, export, &info, observer);
        if disk.is_err() && left.is_none() {
            // The error is that of the start.
            let _ = control.send(ControlCommand::Delete, info.number, 0);
        }
        let mut disk = disk?;
        disk.is_own = left.is_none();
        let command =
            if left.is_some() { ControlCommand::EndRecovery } else { ControlCommand::Start };
        control.send(command, info.number, process::id().into())?;
        disk.is_own = true;
        // Without its node the device is there all the same.
        let _ = eventually(|| disk.path().metadata().map(drop));
        Ok(disk)
    }

    /// Starts the threads of a device's queues.
    fn serve(
        control: &Arc<Control>,
        exports: &Exports,
        export: &Arc<Export>,
        info: &Info,
        observer: &Arc<dyn Observer>,
    ) -> Result<Self, UblkError> {
        let failed = |attempted: &str| {
            let attempted = format!("{attempted} {}", path(info.number).display());
            move |source| UblkError::System { attempted, source }
        };
        let character = PathBuf::from(format!("/dev/ublkc{}", info.number));
        let file = eventually(|| open(&character)).map_err(failed("opening the queues of"))?;
        let shared = (0..info.queues).map(|_| QueueState::new().map(Arc::new));
        let shared = shared.collect::<io::Result<Vec<_>>>().map_err(failed("serving"))?;
        let client = exports.number_client();
        let presence = Arc::new(Presence {
            client,
            observer: Arc::clone(observer),
            is_stopping: AtomicBool::new(false),
            failure: Mutex::default(),
            queues: shared.clone(),
            running: AtomicUsize::new(shared.len()),
        });
        observer.saw(&Event::Connected { client, export: export.name.clone() });
        let mut disk = Self {
            control: Arc::clone(control),
            export: Arc::clone(export),
            number: info.number,
            key: info.key,
            is_own: false,
            presence,
            threads: Vec::new(),
        };
        let (file, recorder) = (Arc::new(file), exports.recorder());
        let (sender, ready) = mpsc::channel();
        for (number, shared) in (0..).zip(shared) {
            let queue = Queue {
                number,
                depth: info.depth,
                file: Arc::clone(&file),
                export: Arc::clone(export),
                recorder: recorder.map(|it| (Arc::clone(it), client)),
                shared,
            };
            let (own, sender) = (Arc::clone(&disk.presence), sender.clone());
            let builder = thread::Builder::new().name(format!("ublk-{}-{number}", info.number));
            let thread = builder.spawn(move || {
                let ended = queue.run(&sender);
                own.ended(ended);
            });
            disk.threads.push(thread.map_err(failed("serving"))?);
        }
        for _ in 0..info.queues {
            let begun = ready.recv_timeout(PATIENCE).unwrap_or_else(|_| Err(timed_out()));
            begun.map_err(failed("beginning the queues of"))?;
        }
        Ok(disk)
    }

    /// Name of the export.
    pub(super) fn export(&self) -> &str {
        &self.export.name
    }

    /// Path of the block device.
    pub(super) fn path(&self) -> PathBuf {
        path(self.number)
    }

    fn is_served(&self) -> bool {
        self.threads.iter().any(|thread| !thread.is_finished())
    }
}

/// Writes what the page cache has of the device, and removes it.
impl Drop for Disk {
    fn drop(&mut self) {
        // Another process may have removed it, and its number may be that of another device.
        let is_there = self.control.info(self.number).is_ok_and(|info| info.key == self.key);
        let is_removed = self.is_own && is_there;
        if is_removed && self.is_served() {
            sync(self.path());
        }
        self.presence.is_stopping.store(true, Ordering::Release);
        if is_removed {
            // A device that is not stopped in time is left to the next server.
            let _ = self.control.send(ControlCommand::Stop, self.number, 0);
            let deadline = Instant::now() + PATIENCE;
            while self.is_served() && Instant::now() < deadline {
                thread::sleep(LOOK_EVERY);
            }
        }
        self.presence.abandon();
        for thread in self.threads.drain(..) {
            // A panic of it was printed.
            let _ = thread.join();
        }
        if is_removed {
            let _ = self.control.send(ControlCommand::Delete, self.number, 0);
        }
    }
}

impl Presence {
    fn abandon(&self) {
        self.queues.iter().for_each(|queue| queue.abandon());
    }

    /// Notes that the thread of a queue ended. After a failure the others end, too.
    fn ended(&self, ended: io::Result<()>) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = ended {
            failure.get_or_insert_with(|| error.to_string());
            self.abandon();
        }
        if self.running.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        let client = self.client;
        let event = match failure.take() {
            Some(reason) => Event::Dropped { client, reason },
            None if self.is_stopping.load(Ordering::Acquire) => Event::Disconnected { client },
            None => Event::Dropped { client, reason: "its device was removed".to_owned() },
        };
        self.observer.saw(&event);
    }
}

/// The number by which the device of an export is found again (FNV-1a).
fn key(drive: u64, export: &str) -> u64 {
    let bytes = drive.to_le_bytes().into_iter().chain(export.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Finds a device that waits for a server; what is left of one that does not is removed.
fn find(control: &Control, key: u64) -> Result<Option<Info>, UblkError> {
    for number in devices() {
        // Another process may remove one of its devices meanwhile.
        let Ok(info) = control.info(number) else { continue };
        if info.key != key {
            continue;
        }
        if info.features & feature::USER_RECOVERY != 0 && info.state != state::DEAD {
            return Ok(Some(info));
        }
        control.send(ControlCommand::Stop, number, 0)?;
        control.send(ControlCommand::Delete, number, 0)?;
    }
    Ok(None)
}

fn parameters(export: &Export) -> Parameters {
    Parameters {
        sectors: export.device.size() / SECTOR_BYTES,
        is_read_only: export.refuses_changes(),
        has_write_cache: !export.device.is_write_through(),
        sectors_max: REQUEST_BYTES_MAX / 512,
        discard_sectors_max: DISCARD_SECTORS_MAX,
    }
}

/// Checks that a device that outlived its server is still the export.
fn check(control: &Control, info: &Info, export: &Export) -> Result<(), UblkError> {
    let (was, is) = (control.parameters(info.number)?, parameters(export));
    if (was.sectors, was.is_read_only) == (is.sectors, is.is_read_only) {
        return Ok(());
    }
    let [was, is] = [was, is].map(|it| {
        let protection = if it.is_read_only { ", read-only" } else { "" };
        format!("{}{protection}", Bytes(it.sectors * SECTOR_BYTES))
    });
    Err(UblkError::Differs { device: path(info.number), was, is })
}

/// Makes a device that is not started yet.
fn add(
    control: &Control,
    export: &Export,
    settings: UblkSettings,
    key: u64,
) -> Result<Info, UblkError> {
    let outlives = feature::USER_RECOVERY | feature::USER_RECOVERY_REISSUE;
    let wish = Info {
        queues: settings.queues,
        depth: DEPTH,
        request_bytes_max: REQUEST_BYTES_MAX,
        features: if settings.outlives_server { outlives } else { 0 },
        key,
        ..Info::default()
    };
    let info = control.add(&wish)?;
    let set = control.set_parameters(info.number, &parameters(export));
    if set.is_err() {
        // The error is that of the parameters.
        let _ = control.send(ControlCommand::Delete, info.number, 0);
    }
    set.map(|()| info)
}

fn path(number: u32) -> PathBuf {
    PathBuf::from(format!("/dev/ublkb{number}"))
}

/// Opens the device of the queues.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    File::options().read(true).write(true).custom_flags(flags).open(path)
}

/// Repeats what fails until the system has made a node, or a killed server has let go of it.
fn eventually<T>(attempt: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let result = attempt();
        let passes = result.as_ref().err().map(io::Error::kind).is_some_and(|kind| {
            let passing = [
                io::ErrorKind::NotFound,
                io::ErrorKind::PermissionDenied,
                io::ErrorKind::ResourceBusy,
            ];
            passing.contains(&kind)
        });
        if !passes || Instant::now() > deadline {
            return result;
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Writes what the page cache has of a block device, within a time limit.
fn sync(path: PathBuf) {
    let (sender, ended) = mpsc::channel();
    let sync = move || {
        // Its users learn of an error themselves.
        let _ = File::open(path).and_then(|device| device.sync_all());
        // The caller may have given up waiting.
        let _ = sender.send(());
    };
    if thread::Builder::new().name("ublk-sync".to_owned()).spawn(sync).is_ok() {
        let _ = ended.recv_timeout(PATIENCE);
    }
}

fn timed_out() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "a queue did not begin in time")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_export_of_a_drive_has_a_key_of_its_own() {
        let keys = [key(1, ""), key(1, "data"), key(1, "logs"), key(2, ""), key(2, "data")];
        for (index, one) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(one));
        }
        assert_eq!(key(7, "data"), key(7, "data"), "the next server computes the same");
    }
}
