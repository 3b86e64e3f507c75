//! The server of one drive, from its configuration to its end.
//!
//! ```text
//!   Config ──► front ends prepared ──► drive opened ──► front ends started ──► signal or idle
//!              a failure up to here                                               │
//!              leaves the drive unchanged      closed ◄── flushed ◄── stopped ◄───┘
//! ```

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use blockio::Bytes;
use export::{Event, Exports, Observer, Server};
use lab::workload::recording::Tail;
use lab::{Error, Kind};
use tracing::{error, info, warn};

use crate::activation::PassedSockets;
use crate::chain_text;
use crate::checks::{check_export, check_memory, check_promise, check_reachable, check_recording};
use crate::config::{Config, ConfigSource, Storage};
use crate::drive_service::{DriveService, PacingModel};
use crate::front_ends::{ExportedDrive, ReadyFrontEnd};
use crate::idle::Idle;
use crate::lateness::Watch;
use crate::log::{self, Log};
use crate::monitor::Recipients;
use crate::pages::PagesListener;
use crate::recording::{RecordedDevice, RecordingFile};
use crate::served_drive::{ServedDrive, keep_life};
use crate::signals::{self, Signal};

/// Interval between two looks of a server at its drive.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Looks from one keeping of what the drive did to the next.
const LOOKS_PER_KEEPING: u64 = 60;

/// Announces to people and scripts how a server is reached.
pub trait Announcer {
    /// Announces the exports, with the URIs of each, once clients can connect.
    ///
    /// # Errors
    /// Fails if there is no one to tell; the server goes on.
    fn exports(&self, offered: &[status::Export]) -> Result<()>;

    /// Announces the address of the pages, which may hold the token: it is not for a log.
    fn pages(&self, introduction: &str);
}

/// Serves until a signal ends it, or until it is idle for the configured time.
///
/// # Errors
/// Fails if the configuration contradicts itself, the drive cannot be opened, the system refuses
/// something, or what was acknowledged could not be made durable at the end.
pub fn run(
    config: &Config,
    source: Option<Box<dyn ConfigSource>>,
    announcer: &dyn Announcer,
) -> Result<()> {
    let _log = Log::start(config.log.level, config.log.is_json)?;
    check(config)?;
    let pacing = config.pacing.as_ref().map(|pacing| pacing.model().map(Arc::new)).transpose()?;
    let recipients = recipients(config)?;
    // Before the drive is opened, so that a failure leaves it unchanged.
    let mut passed = PassedSockets::of_process();
    let front_ends = config.front_ends.prepare(&mut passed)?;
    check_reachable(&front_ends)?;
    let pages = config.pages.as_ref().map(|pages| pages.listen(&mut passed)).transpose()?;
    let served = ServedDrive::open(config, recipients, pacing.as_ref())?;
    let endpoints = Endpoints { front_ends, pages, source, announcer };
    let done = serve(endpoints, config, &served, pacing.as_ref());
    served.close_after(done)
}

fn check(config: &Config) -> Result<()> {
    config.limits.checked().map_err(|error| Error::new(Kind::Input, error.to_string()))?;
    check_memory(config)?;
    check_promise(config)?;
    check_export(config)?;
    config.recording.as_deref().map_or(Ok(()), check_recording)
}

/// Recipients of alerts at each change of health; none where neither a program nor an address was
/// given.
fn recipients(config: &Config) -> Result<Option<Recipients>> {
    let alerts = &config.alerts;
    let recipients = Recipients::new(alerts.program.clone(), alerts.mail.as_deref());
    let recipients = recipients.map_err(|error| Error::new(Kind::Input, chain_text(&error)))?;
    if recipients.is_none() && alerts.is_test {
        let text = "--monitor-test has no recipient";
        let hint = "give --monitor-program or --monitor-mail";
        return Err(Error::new(Kind::Input, text).hint(hint).into());
    }
    Ok(recipients)
}

/// Endpoints for clients and operators, made before the drive is opened.
struct Endpoints<'a> {
    front_ends: Vec<Box<dyn ReadyFrontEnd>>,
    pages: Option<PagesListener>,
    source: Option<Box<dyn ConfigSource>>,
    announcer: &'a dyn Announcer,
}

/// Serves an open drive until it is to end; afterwards nothing refers to the drive any more,
/// whether or not that failed.
fn serve(
    endpoints: Endpoints<'_>,
    config: &Config,
    served: &ServedDrive,
    pacing: Option<&Arc<PacingModel>>,
) -> Result<()> {
    let Endpoints { front_ends, pages, source, announcer } = endpoints;
    let size = {
        // Dropped here, because a reference to it keeps the drive from being closed.
        let device = served.service.device();
        pacing.map_or(Ok(()), |model| model.hold(&*device))?;
        device.size()
    };
    let recording =
        config.recording.as_deref().map(|file| record(file, config, size)).transpose()?;
    let mut unused = UnusedRecording(config.recording.as_deref());
    let pace = pacing.map(|model| &model.pace);
    let recorder = served.service.recorder(recording.as_ref().map(RecordingFile::recorder));
    let exports = served.exports(config, pace)?.recorded(recorder);
    let signals = signals::received()?;
    let observer = observer(&served.service);
    let mut exported = ExportedDrive::new(
        &exports,
        &config.default_export,
        &served.operator,
        &served.service,
        &observer,
    );
    let started = front_ends.into_iter().map(|it| it.start(&mut exported));
    let started: Vec<_> = started.collect::<Result<_>>()?;
    let (offered, sockets) = exported.finish();
    served.service.offer(&offered);
    let is_volume = served.service.volume().is_some();
    let management = is_volume.then(|| served.service.manage(&offered)).transpose()?;
    let web = pages.map(|pages| pages.show(&served.service)).transpose()?;
    if let Some(web) = &web {
        if config.log.is_json {
            info!("the dashboard is at {}", web.place());
        } else {
            announcer.pages(&web.introduction());
        }
    }
    let exports = sockets.encrypted(exports);
    let server = Server::start_each(exports.clone(), sockets.listeners, config.limits, observer);
    let server = server.context("starting the server")?;
    unused.0 = None;
    announce(announcer, &offered);
    let idle = config.idle_max.map(Idle::new);
    wait(&signals, &served.service, source, Watch::new(pace), idle)?;
    flush_early(&exports);
    drop((management, web));
    drop(started);
    server.stop().context("making all writes durable")?;
    recording.map_or(Ok(()), finish)
}

fn announce(announcer: &dyn Announcer, offered: &[status::Export]) {
    // A server without stdout goes on: clients may know its addresses.
    if let Err(error) = announcer.exports(offered) {
        let error = chain_text(&error);
        warn!("could not print the addresses for clients to stdout: {error}");
    }
}

/// Makes durable what was acknowledged so far: a client of one front end may take long to end, and
/// the operator may lose patience meanwhile and kill the server.
fn flush_early(exports: &Exports) {
    if let Err(error) = exports.flush() {
        warn!("the writes so far could not be made durable: {error}; the server tries again");
    }
}

/// The file of a recording that no client is part of yet: it is removed where serving does not
/// begin, so that it is not in the way of the next attempt.
struct UnusedRecording<'a>(Option<&'a Path>);

impl Drop for UnusedRecording<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.0 {
            // What cannot be removed is named by the next attempt.
            let _ = fs::remove_file(file);
        }
    }
}

/// Begins to record the requests of clients to a device of `size` bytes.
fn record(file: &Path, config: &Config, size: u64) -> Result<RecordingFile> {
    let device = match &config.storage {
        Storage::Volume(volume) => format!("the volume {}", volume.display()),
        Storage::Memory(_) => format!("{} in memory", Bytes(size)),
    };
    let recorded = RecordedDevice {
        device: &device,
        size_bytes: size,
        model: config.pacing.as_ref().map(|pacing| &*pacing.drive),
        front_end: None,
        emulation_slowdown: None,
    };
    RecordingFile::begin(file, &recorded)
}

/// Ends a recording at this moment.
fn finish(recording: RecordingFile) -> Result<()> {
    let measured_to = recording.now();
    recording.finish(&Tail { measured_to, ..Tail::default() }, &[])
}

/// Passes events of clients on to the log, and to the service of the drive.
fn observer(service: &Arc<DriveService>) -> Arc<dyn Observer> {
    let service = Arc::clone(service);
    Arc::new(move |event: &Event| {
        service.saw(event);
        log::log_client(event);
    })
}

/// Waits for a signal, or until no client was there for long. Meanwhile observes the drive, and
/// saves its lifetime counters.
fn wait(
    signals: &Receiver<Signal>,
    service: &DriveService,
    mut source: Option<Box<dyn ConfigSource>>,
    mut lateness: Watch,
    mut idle: Option<Idle>,
) -> Result<()> {
    let (mut is_kept, mut looks) = (true, 0_u64);
    loop {
        let patience = idle.as_ref().map_or(LOOK_EVERY, |idle| idle.left().min(LOOK_EVERY));
        match signals.recv_timeout(patience) {
            Err(RecvTimeoutError::Timeout) if idle.as_mut().is_some_and(|it| it.ends(service)) => {
                lateness.look();
                return Ok(());
            }
            Err(RecvTimeoutError::Timeout) => looks += 1,
            Ok(Signal::Reload) => reload(source.as_mut(), service),
            ended => {
                lateness.look();
                return ended.map(drop).context("waiting for a signal");
            }
        }
        if looks.is_multiple_of(LOOKS_PER_KEEPING) {
            lateness.look();
        }
        service.look();
        if looks.is_multiple_of(LOOKS_PER_KEEPING) {
            is_kept = keep_life(service, is_kept);
        }
    }
}

/// Applies the keys of the configuration that may change, and logs the others that changed.
fn reload(source: Option<&mut Box<dyn ConfigSource>>, service: &DriveService) {
    let Some(source) = source else {
        warn!("no configuration to reload: the server was started without --config");
        return;
    };
    let change = match source.reread() {
        Ok(change) => change,
        Err(error) => {
            error!("the configuration was not reloaded: {}", chain_text(&error));
            return;
        }
    };
    log::change(change.log.level, change.log.is_json);
    if let Some(maintenance) = service.maintenance() {
        maintenance.limit_scrubs(change.scrubs.bytes_per_s_max);
    }
    if let (Some(period), Some(maintenance)) = (change.scrubs.period, service.maintenance())
        && let Err(error) = maintenance.scrub_every(period)
    {
        error!("scrubs of the volume could not be scheduled: {error}");
    }
    info!("the configuration was reloaded");
    if !change.fixed.is_empty() {
        warn!("{} changed; this takes effect after a restart", change.fixed.join(", "));
    }
}
