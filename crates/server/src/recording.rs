//! The recording of a served drive: what clients asked for, in a file.
//!
//! ```text
//! threads of clients ──► memory, bounded ──► thread of the file ──► file
//! ```
//!
//! No client waits for the file: what comes while the memory is full is not kept, and counted.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result};
use blockio::{Nanos, Op, SECTOR_BYTES};
use export::{PacedCommand, RecordedCommand, Recorder};
use lab::workload::recording::{Head, RecordedRequest, RecordingWriter, Tail, Transaction};
use tracing::error;

/// Requests that are kept in memory at most, some 12 MB: 0.25 s of a million a second.
const REQUESTS_MAX: usize = 1 << 18;
/// Requests for which the thread of the file wakes at once.
const REQUESTS_MANY: usize = 1 << 14;
/// Longest time that requests wait in memory.
const WAIT: Duration = Duration::from_millis(200);

/// Device whose requests are recorded.
#[derive(Clone, Debug)]
pub struct RecordedDevice<'a> {
    /// Description for people.
    pub device: &'a str,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Model whose times replies keep to; none where they are sent at once.
    pub model: Option<&'a str>,
    /// Time that a request takes beside the device; none where it was not measured.
    pub front_end: Option<Nanos>,
    /// Times as slow as a real processor that the application's is, where it is an emulated one.
    pub emulation_slowdown: Option<f64>,
}

/// A recording under way. Dropped without an end it is one that was cut short.
#[derive(Debug)]
pub struct RecordingFile {
    inbox: Arc<Inbox>,
    writer: Option<JoinHandle<io::Result<RecordingWriter<BufWriter<File>>>>>,
}

/// Requests on their way to the file.
#[derive(Debug)]
struct Inbox {
    began: Instant,
    began_unix_ns: u64,
    size_bytes: u64,
    waiting: Mutex<Waiting>,
    /// Signalled when much waits, or all is over.
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    requests: Vec<RecordedRequest>,
    /// Requests that were not kept since the file heard of it.
    lost: u64,
    is_over: bool,
    /// Numbers in the recording of the clients of the server, in order of arrival.
    clients: BTreeMap<u64, u16>,
}

impl RecordingFile {
    /// Begins a recording of a device in the file at `path`, which is made new.
    ///
    /// # Errors
    /// Fails if the file cannot be written, or the system has no thread for it.
    pub fn begin(path: &Path, of: &RecordedDevice<'_>) -> Result<Self> {
        let shown = path.display();
        let file = File::create_new(path).with_context(|| format!("creating {shown}"))?;
        let since_1970 = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let began_unix_ns = u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX);
        let head = Head {
            schema: Head::SCHEMA,
            device: of.device.to_owned(),
            size_bytes: of.size_bytes,
            model: of.model.map(str::to_owned),
            machine: machine(),
            began_unix_ns,
            front_end_ns: of.front_end.map(|it| it.0),
            emulation_slowdown: of.emulation_slowdown,
        };
        let inbox = Inbox {
            began: Instant::now(),
            began_unix_ns,
            size_bytes: of.size_bytes,
            waiting: Mutex::default(),
            wake: Condvar::new(),
        };
        let writer = RecordingWriter::new(BufWriter::new(file), &head);
        let mut writer = writer.with_context(|| format!("writing {shown}"))?;
        // What is killed at once is a recording, too.
        writer.flush().with_context(|| format!("writing {shown}"))?;
        let inbox = Arc::new(inbox);
        let taken = Arc::clone(&inbox);
        let writer = thread::Builder::new()
            .name("recording".to_owned())
            .spawn(move || taken.write_all(writer))
            .context("starting a thread for the recording")?;
        Ok(Self { inbox, writer: Some(writer) })
    }

    /// Recorder of the clients' commands.
    pub fn recorder(&self) -> Arc<dyn Recorder> {
        Arc::<Inbox>::clone(&self.inbox)
    }

    /// Time since the recording began.
    pub fn now(&self) -> Nanos {
        self.inbox.at(Instant::now())
    }

    /// `time` on the clock of the recording: zero if it was before the recording began.
    pub fn at(&self, time: Instant) -> Nanos {
        self.inbox.at(time)
    }

    /// Start of the recording in nanoseconds since 1970, by the clock of this machine.
    pub fn began_unix_ns(&self) -> u64 {
        self.inbox.began_unix_ns
    }

    /// Ends the recording with the transactions that the benchmark logged; everything is on its
    /// file then.
    ///
    /// # Errors
    /// Fails if it could not be written.
    pub fn finish(mut self, tail: &Tail, transactions: &[Transaction]) -> Result<()> {
        let writer = self.end().context("the recording has ended already")?;
        let written = writer.and_then(|mut writer| {
            writer.put_transactions(transactions)?;
            writer.finish(tail)
        });
        let file = written.context("writing the recording")?;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error);
        file.and_then(|file| file.sync_all()).context("writing the recording")
    }

    fn end(&mut self) -> Option<io::Result<RecordingWriter<BufWriter<File>>>> {
        let writer = self.writer.take()?;
        self.inbox.waiting().is_over = true;
        self.inbox.wake.notify_all();
        Some(writer.join().unwrap_or_else(|_| Err(io::Error::other("its thread panicked"))))
    }
}

impl Drop for RecordingFile {
    fn drop(&mut self) {
        if let Some(Ok(writer)) = self.end() {
            // What was kept is in the file; that there is no end says that it was cut short.
            drop(writer);
        }
    }
}

impl Recorder for Inbox {
    fn keep(&self, client: u64, served: &[RecordedCommand]) {
        let mut waiting = self.waiting();
        let next = u16::try_from(waiting.clients.len()).unwrap_or(u16::MAX);
        let client = *waiting.clients.entry(client).or_insert(next);
        for served in served {
            let Some(request) = self.recorded(client, served) else { continue };
            if waiting.requests.len() >= REQUESTS_MAX {
                waiting.lost += 1;
            } else {
                waiting.requests.push(request);
            }
        }
        let is_many = waiting.requests.len() >= REQUESTS_MANY;
        drop(waiting);
        if is_many {
            self.wake.notify_one();
        }
    }
}

impl Inbox {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at(&self, time: Instant) -> Nanos {
        let since = time.saturating_duration_since(self.began);
        Nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    /// A command as it is kept; none if no drive had to do with it.
    fn recorded(&self, client: u16, served: &RecordedCommand) -> Option<RecordedRequest> {
        let RecordedCommand {
            asked: PacedCommand { op, offset, length, fua },
            issued_at,
            completed_at,
        } = *served;
        let is_flush = op == Op::Flush;
        let end = offset.checked_add(length).filter(|end| *end <= self.size_bytes)?;
        let (lba, last) = (offset / SECTOR_BYTES, end.div_ceil(SECTOR_BYTES));
        let sectors = if is_flush { 0 } else { u32::try_from(last - lba).ok()? };
        let lba = if is_flush { 0 } else { lba };
        let [issued_at, completed_at] = [issued_at, completed_at].map(|time| self.at(time));
        (is_flush || sectors > 0).then_some(RecordedRequest {
            issued_at,
            completed_at,
            op,
            fua,
            lba,
            sectors,
            client,
        })
    }

    /// Writes what comes until all is over.
    fn write_all<W: Write>(&self, mut to: RecordingWriter<W>) -> io::Result<RecordingWriter<W>> {
        let mut requests = Vec::new();
        loop {
            let waiting = self.waiting();
            let is_idle = |it: &mut Waiting| it.requests.len() < REQUESTS_MANY && !it.is_over;
            let waited = self.wake.wait_timeout_while(waiting, WAIT, is_idle);
            let mut waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
            std::mem::swap(&mut requests, &mut waiting.requests);
            let (lost, is_over) = (std::mem::take(&mut waiting.lost), waiting.is_over);
            drop(waiting);
            if let Err(error) = put(&mut to, &requests, lost) {
                error!("the recording ended early; clients are still served: {error}");
                return Err(error);
            }
            requests.clear();
            if is_over {
                return Ok(to);
            }
        }
    }
}

fn put<W: Write>(
    to: &mut RecordingWriter<W>,
    requests: &[RecordedRequest],
    lost: u64,
) -> io::Result<()> {
    if lost > 0 {
        to.put_lost(lost)?;
    }
    to.put(requests)?;
    to.flush()
}

/// Processor and kernel of this machine.
fn machine() -> String {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let processors = text("/proc/cpuinfo");
    let model = processors.lines().find_map(|line| line.strip_prefix("model name"));
    let model =
        model.and_then(|it| it.split_once(':')).map_or("unknown processor", |it| it.1.trim());
    let count = thread::available_parallelism().map_or(1, usize::from);
    format!("{count} x {model}, Linux {}", text("/proc/sys/kernel/osrelease").trim())
}

#[cfg(test)]
mod tests {
    use lab::workload::recording::read;

    use super::*;

    fn served(op: Op, offset: u64, length: u64) -> RecordedCommand {
        let now = Instant::now();
        let asked = PacedCommand { op, offset, length, fua: op == Op::Write };
        RecordedCommand { asked, issued_at: now, completed_at: now + Duration::from_micros(80) }
    }

    fn begin(path: &Path) -> RecordingFile {
        let of = RecordedDevice {
            device: "a test",
            size_bytes: 1 << 20,
            model: Some("iodrive-duo"),
            front_end: Some(Nanos(45_000)),
            emulation_slowdown: Some(20.0),
        };
        RecordingFile::begin(path, &of).unwrap()
    }

    #[test]
    fn what_was_kept_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r");
        let recording = begin(&path);
        let recorder = recording.recorder();
        recorder.keep(7, &[served(Op::Write, 4096, 8192), served(Op::Flush, 0, 0)]);
        // Half a sector is asked of a drive as a whole one; none, or one beyond the end, is not.
        recorder.keep(3, &[served(Op::Read, 300, 300), served(Op::Read, 1 << 20, 512)]);
        recorder.keep(3, &[served(Op::Read, 0, 0)]);
        let tail = Tail { command: "true".into(), ..Tail::default() };
        let transaction = Transaction { from: Nanos(1), to: recording.now() + Nanos(2) };
        recording.finish(&tail, &[transaction]).unwrap();
        let found = read(File::open(&path).unwrap()).unwrap();
        let shown: Vec<_> = found
            .requests
            .iter()
            .map(|it| (it.client, it.op, it.lba, it.sectors, it.fua))
            .collect();
        let expected =
            [(0, Op::Write, 8, 16, true), (0, Op::Flush, 0, 0, false), (1, Op::Read, 0, 2, false)];
        assert_eq!(shown, expected);
        assert!(found.requests.iter().all(|it| it.latency() == Nanos::from_micros(80)));
        assert_eq!(found.tail.map(|it| it.command), Some("true".to_owned()));
        assert_eq!(found.head.model.as_deref(), Some("iodrive-duo"));
        assert_eq!(found.head.front_end_ns, Some(45_000));
        assert_eq!(found.head.emulation_slowdown, Some(20.0));
        // It began before the first request: what it waited for is unknown.
        assert!(found.transactions.is_empty());
        assert!(found.head.machine.contains("Linux"), "{}", found.head.machine);
    }

    #[test]
    fn one_without_an_end_was_cut_short_and_has_what_came() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r");
        let recording = begin(&path);
        recording.recorder().keep(1, &[served(Op::Read, 0, 512)]);
        drop(recording);
        let found = read(File::open(&path).unwrap()).unwrap();
        assert!(found.tail.is_none());
        assert_eq!(found.requests.len(), 1);
        let other = RecordedDevice {
            device: "",
            size_bytes: 0,
            model: None,
            front_end: None,
            emulation_slowdown: None,
        };
        assert!(RecordingFile::begin(&path, &other).is_err());
    }

    #[test]
    fn what_comes_while_the_memory_is_full_is_counted() {
        let inbox = Inbox {
            began: Instant::now(),
            began_unix_ns: 0,
            size_bytes: 1 << 20,
            waiting: Mutex::default(),
            wake: Condvar::new(),
        };
        let many = vec![served(Op::Read, 0, 512); REQUESTS_MAX];
        inbox.keep(1, &many);
        inbox.keep(2, &many[..5]);
        let waiting = inbox.waiting();
        assert_eq!((waiting.requests.len(), waiting.lost), (REQUESTS_MAX, 5));
    }
}
