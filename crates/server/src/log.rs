//! Log of a server: one line per event on stderr, as text or as JSON.
//!
//! ```text
//!   tracing::warn!(client, "…") ──► line ──► queue ──► a thread of its own ──► stderr
//!                                              └── full: the line is lost, and counted
//! ```
//!
//! The server waits neither for a disk nor for a reader: lines that do not fit into the queue are
//! lost, and the next line states how many.
//!
//! The queue is a bounded channel of the standard library. `tracing-appender` has one too, but its
//! count of lost lines is not part of the log, and it brings thirteen packages.

use std::fmt::{Debug, Display};
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use export::Event as ClientEvent;
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber, debug, warn};

/// Lines that wait for a slow reader.
const WAITING_MAX: usize = 1024;
/// Longest wait for the last lines to be written when the log is dropped.
const PATIENCE: Duration = Duration::from_secs(1);

/// Log level; each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Level {
    /// Failures
    Error,
    /// Failures, risks and refusals
    Warn,
    /// Also the start and end of work, and requests
    Info,
    /// Also clients that connect and disconnect
    Debug,
}

/// Writes a line to stderr.
fn write_line(line: &str) {
    // There is no other stream on which to say that stderr is closed.
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Level and format of the log; a reload of the configuration changes them.
#[derive(Debug)]
struct Form {
    level: AtomicU8,
    is_json: AtomicBool,
}

/// The log of this process, once there is one.
static FORM: OnceLock<Arc<Form>> = OnceLock::new();

/// Message to the thread that writes.
enum Message {
    Line(String),
    /// Requests a reply once all lines before it are written.
    Flush(Sender<()>),
}

/// The log. Its last lines are written when it is dropped.
#[derive(Debug)]
pub struct Log {
    queue: SyncSender<Message>,
}

/// Takes events of this program.
struct Listener {
    form: Arc<Form>,
    queue: SyncSender<Message>,
    lost: AtomicU64,
}

impl Log {
    /// Starts the log at `level`, as JSON or as text.
    ///
    /// # Errors
    /// Fails if the system gives no thread, or there is a log already.
    pub fn start(level: Level, is_json: bool) -> Result<Self> {
        let (queue, lines) = mpsc::sync_channel(WAITING_MAX);
        let writer = thread::Builder::new().name("log".to_owned());
        writer.spawn(move || write(&lines)).context("starting a thread for the log")?;
        let form = FORM.get_or_init(|| {
            Arc::new(Form { level: AtomicU8::new(level as u8), is_json: is_json.into() })
        });
        let listener =
            Listener { form: Arc::clone(form), queue: queue.clone(), lost: AtomicU64::new(0) };
        tracing::subscriber::set_global_default(listener).context("starting the log")?;
        Ok(Self { queue })
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let (written, is_written) = mpsc::channel();
        if self.queue.try_send(Message::Flush(written)).is_ok() {
            // A reader that takes nothing does not keep the server from ending.
            let _ = is_written.recv_timeout(PATIENCE);
        }
    }
}

/// Changes the level and the format of the log, if there is one.
pub fn change(level: Level, is_json: bool) {
    if let Some(form) = FORM.get() {
        form.level.store(level as u8, Ordering::Relaxed);
        form.is_json.store(is_json, Ordering::Relaxed);
    }
}

/// Warns that other machines can reach `place`, without a password or a certificate.
pub fn warn_of_reach(place: &dyn Display) {
    warn!(
        "{place} can be reached from other machines without a password or a certificate; an SSH \
         tunnel is safer"
    );
}

/// Logs an event of a client.
pub fn log_client(event: &ClientEvent) {
    match event {
        ClientEvent::Connected { client, export } => {
            debug!(client, export, "client {client} connected to `{export}`");
        }
        ClientEvent::HostConnected { client, controller, host } => {
            debug!(
                client,
                controller, host, "client {client}, {host}, connected as controller {controller}"
            );
        }
        ClientEvent::Disconnected { client } => debug!(client, "client {client} disconnected"),
        ClientEvent::Dropped { client, reason } => {
            warn!(client, reason, "client {client} was dropped: {reason}");
        }
        ClientEvent::Rejected { clients: 1, reason } => {
            warn!(reason, "a client was rejected: {reason}");
        }
        ClientEvent::Rejected { clients, reason } => {
            warn!(
                clients,
                reason, "{clients} clients were rejected; the reason for the last: {reason}"
            );
        }
    }
}

fn write(lines: &Receiver<Message>) {
    while let Ok(message) = lines.recv() {
        match message {
            Message::Line(line) => write_line(&line),
            // The thread that asked may have lost patience.
            Message::Flush(written) => drop(written.send(())),
        }
    }
}

impl Level {
    fn of(metadata: &Metadata<'_>) -> Self {
        match *metadata.level() {
            tracing::Level::ERROR => Self::Error,
            tracing::Level::WARN => Self::Warn,
            tracing::Level::INFO => Self::Info,
            tracing::Level::DEBUG | tracing::Level::TRACE => Self::Debug,
        }
    }
}

impl Subscriber for Listener {
    /// The level may change: every event asks anew.
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && Level::of(metadata) as u8 <= self.form.level.load(Ordering::Relaxed)
    }

    fn event(&self, event: &Event<'_>) {
        let mut said = EventText::default();
        event.record(&mut said);
        said.lost = self.lost.swap(0, Ordering::Relaxed);
        let level = Level::of(event.metadata());
        let is_json = self.form.is_json.load(Ordering::Relaxed);
        let line = if is_json { said.for_programs(level) } else { said.for_people(level) };
        if self.queue.try_send(Message::Line(line)).is_err() {
            self.lost.fetch_add(said.lost + 1, Ordering::Relaxed);
        }
    }

    // There are no spans.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Text and fields of an event.
#[derive(Debug, Default)]
struct EventText {
    text: String,
    fields: Map<String, Value>,
    /// Events lost before this one, because the queue was full.
    lost: u64,
}

impl EventText {
    /// The text, after a word where it is bad.
    fn for_people(&self, level: Level) -> String {
        let word = match level {
            Level::Error => "error: ",
            Level::Warn => "warning: ",
            Level::Info | Level::Debug => "",
        };
        let lost = match self.lost {
            0 => String::new(),
            lost => format!("warning: {lost} lines of the log were lost\n"),
        };
        format!("{lost}{word}{}", self.text)
    }

    /// An object, whose fields are those of the event beside when, how bad, and the text.
    fn for_programs(&self, level: Level) -> String {
        let age = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let level = format!("{level:?}").to_lowercase();
        let mut object = Map::from_iter([
            ("at_unix_ms".to_owned(), json!(u64::try_from(age.as_millis()).unwrap_or(u64::MAX))),
            ("level".to_owned(), json!(level)),
            ("what".to_owned(), json!(self.text)),
        ]);
        if self.lost > 0 {
            object.insert("lost".to_owned(), json!(self.lost));
        }
        object.extend(self.fields.clone());
        Value::Object(object).to_string()
    }

    fn take(&mut self, field: &Field, value: Value) {
        self.fields.insert(field.name().to_owned(), value);
    }
}

impl Visit for EventText {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.text = format!("{value:?}");
        } else {
            self.take(field, json!(format!("{value:?}")));
        }
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field, json!(value));
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.take(field, json!(value));
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.take(field, json!(value));
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.take(field, json!(value));
    }
}
