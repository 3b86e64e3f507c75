//! `floatgate serve`: a volume, offered to clients until it is told to stop.

mod checks;
mod front_end;
mod host_keys;
mod idle;
mod nvme;

use std::fmt::Display;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use blockio::Bytes;
use export::Pace;
use export::{Address, Export, Exports, Listener, Observer, Tls, TlsMode, fuse};
use export::{Event, Limits, Server};
use lab::ssd::Drive as ModelDrive;
use lab::subject::{Subject, find_drive};
use lab::wanted::OrderedTarget;
use lab::workload::recording::Tail;
use lab::{Error, Kind};
use live::fault_injection::{FaultInjector, Schedule};
use live::operator::{Operator, PersistentState};
use live::status::Status;
use live::{
    Access, Device, Drive, Namespaces, Operations as _, Promise, ServedNamespace, Upgrade, status,
};
use server::activation::{PassedSockets, Place};
use server::drive_service::{DriveService, PacingModel};
use server::log::{self, Log};
use server::monitor::{self, About, Monitor, Recipients};
use server::recording::{self, RecordingFile};
use server::web::{self, Content, Door, DriveRoutes, Token, Web};
use tracing::{debug, error, info, warn};

use crate::args::{Encryption, HttpArgs, MonitorArgs, Serve, Timing, TimingArgs, TlsArgs};
use crate::configuration::{Configuration, Reread};
use crate::failure::{Input, Opening};
use crate::keeper::Keeper;
use crate::lateness::Watch;
use crate::mount;
use crate::signals::{self, Signal};
use crate::{Ending, output, setup};

use self::checks::{
    check_blocks, check_export, check_memory, check_pages, check_reachable, check_recording,
};
pub(crate) use self::front_end::FrontEndArgs;
use self::front_end::ReadyFrontEnd;
use self::host_keys::HostKeys;
use self::idle::Idle;

/// Interval between two looks of a server at its drive.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Looks from one keeping of what the drive did to the next.
const LOOKS_PER_KEEPING: u64 = 60;
/// Longest wait, before the drive is closed, for answers to management requests under way.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// The file of the drive's folder that holds the token of its page.
const TOKEN: &str = "web.token";

/// Exit status of a server whose power was cut, as that of a process that was killed.
const POWER_CUT: i32 = 137;

/// Drive that is served: its service, the operator for the commands of hosts, and, if it is a
/// volume, the drive itself, to be closed at the end.
struct ServedDrive {
    drive: Option<Arc<Drive>>,
    service: Arc<DriveService>,
    operator: Arc<Operator>,
}

/// Serves, prints the URIs, and waits for a signal.
pub(crate) fn serve(args: &Serve) -> Result<Ending> {
    let _log = Log::start(args.log_level, args.log_json)?;
    let configuration = Configuration::of(args)?;
    let limits = Limits::from(args.limits).checked();
    let limits = limits.map_err(|error| Error::new(Kind::Input, error.to_string()))?;
    check_pages(args)?;
    check_memory(args)?;
    check_promise(args)?;
    check_export(args)?;
    args.record.as_deref().map(check_recording).transpose()?;
    let (paced, tls, http_tls) = (paced(&args.timing)?, tls(&args.tls)?, http_tls(&args.pages)?);
    let recipients = recipients(&args.monitor)?;
    // Before the drive is opened, so that a failure leaves it unchanged.
    let mut passed = PassedSockets::of_process();
    let listeners = args.nbd.iter().map(|place| listen(place, &mut passed, &args.tls));
    let listeners = listeners.collect::<Result<Vec<_>>>()?;
    let nvme_listeners = nvme::listen(args, &mut passed)?;
    let host_keys = HostKeys::read(args)?;
    let front_ends = args.front_ends.prepare()?;
    check_reachable(args, front_ends.is_empty())?;
    let listen_http = |place| listen_http(place, &mut passed, http_tls.as_ref());
    let http = args.http.as_ref().map(listen_http).transpose()?;
    let served = ServedDrive::open(args, recipients, paced.as_ref())?;
    let pace = paced.map(|paced| Arc::clone(&paced.pace));
    let endpoints =
        Endpoints { listeners, nvme_listeners, host_keys, front_ends, http, tls, http_tls, limits };
    let done = serve_through(endpoints, args, &served, pace.as_ref(), configuration);
    served.close_after(done)
}

/// Endpoints for clients, made before the drive is opened.
struct Endpoints {
    listeners: Vec<Listener>,
    nvme_listeners: Vec<Listener>,
    host_keys: HostKeys,
    front_ends: Vec<Box<dyn ReadyFrontEnd>>,
    http: Option<TcpListener>,
    tls: Option<Tls>,
    http_tls: Option<Tls>,
    limits: Limits,
}

/// Serves an open drive until a signal comes; afterwards nothing refers to the drive any more,
/// whether or not that failed.
fn serve_through(
    endpoints: Endpoints,
    args: &Serve,
    served: &ServedDrive,
    pace: Option<&Arc<Pace>>,
    configuration: Option<Configuration>,
) -> Result<()> {
    let Endpoints { listeners, nvme_listeners, host_keys, front_ends, http, tls, http_tls, .. } =
        endpoints;
    let size = {
        // Dropped here, because a reference to it keeps the drive from being closed.
        let device = served.service.device();
        hold(pace.map(|pace| &**pace), &*device)?;
        device.size()
    };
    let recording = args.record.as_deref().map(|file| record(file, args, size)).transpose()?;
    let mut unused = UnusedRecording(args.record.as_deref());
    let exports = served.exports(args, pace)?;
    let recorder = served.service.recorder(recording.as_ref().map(RecordingFile::recorder));
    let exports = exports.recorded(recorder);
    let exports = match tls {
        Some(tls) => exports.encrypted(tls),
        None => exports,
    };
    let signals = signals::received()?;
    let files = args.fuse.as_deref().map(|folder| Files::mount(&exports, folder)).transpose()?;
    let mut offered = offered(&exports, &listeners);
    if let Some(files) = &files {
        files.add_to(&mut offered);
    }
    let observer = observer(&served.service);
    let drive = (&served.operator, &served.service);
    let front = front_end::ExportedDrive::new(&exports, drive, &observer, (args, &host_keys));
    let listeners = nvme::with_subsystem((listeners, nvme_listeners), &front, &mut offered);
    let started = front_ends.into_iter().map(|it| it.start(&front, &mut offered));
    let started: Vec<_> = started.collect::<Result<_>>()?;
    drop(front);
    served.service.offer(&offered);
    let is_volume = served.service.volume().is_some();
    let management = is_volume.then(|| served.service.manage(&offered)).transpose()?;
    let web = http.map(|listener| show(args, (listener, http_tls), &served.service)).transpose()?;
    let text = shown(&offered, args.json)?;
    let server = Server::start_each(exports.clone(), listeners, endpoints.limits, observer);
    let server = server.context("starting the server")?;
    unused.0 = None;
    print_addresses(&text);
    let idle = args.exit_when_idle.map(Idle::new);
    wait(&signals, &served.service, configuration, (Watch::new(pace), idle))?;
    flush_early(&exports);
    drop((management, web));
    drop((files, started));
    server.stop().context("making all writes durable")?;
    recording.map_or(Ok(()), finish)
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

/// Ends a recording at this moment.
fn finish(recording: RecordingFile) -> Result<()> {
    let measured_to = recording.now();
    recording.finish(&Tail { measured_to, ..Tail::default() }, &[])
}

/// Prints the addresses for clients.
fn print_addresses(text: &str) {
    // A server without stdout goes on: clients may know its addresses.
    if let Err(error) = output::data(text) {
        let error = server::chain_text(&error);
        warn!("could not print the addresses for clients to stdout: {error}");
    }
}

/// Passes events of clients on to the log, and to the service of the drive.
fn observer(service: &Arc<DriveService>) -> Arc<dyn Observer> {
    let service = Arc::clone(service);
    Arc::new(move |event: &Event| {
        service.saw(event);
        tell(event);
    })
}

/// Exports that are mounted as files.
struct Files {
    folder: PathBuf,
    /// Absent once they are unmounted.
    mount: Option<(fuse::Mount, Keeper)>,
}

impl Files {
    fn mount(exports: &Exports, folder: &Path) -> Result<Self> {
        let folder = mount::empty_folder(folder)?;
        let mut keeper = Keeper::new()?;
        let mount = mount::files(&mut keeper, exports, &folder)?;
        Ok(Self { folder, mount: Some((mount, keeper)) })
    }

    /// Adds the path of each export's file to its URIs.
    fn add_to(&self, offered: &mut [status::Export]) {
        for export in offered {
            let path = self.folder.join(fuse::file_name(&export.name));
            export.uris.push(path.display().to_string());
        }
    }
}

/// Unmounts them once none is open, or after two seconds.
impl Drop for Files {
    fn drop(&mut self) {
        let Some((mount, keeper)) = self.mount.take() else { return };
        drop(keeper);
        if let Err(error) = mount.unmount() {
            let folder = self.folder.display();
            warn!("a file in {folder} is still open; I/O to it fails from now on: {error}");
        }
    }
}

/// Fills the model with the data that the device stores.
pub(super) fn hold(pace: Option<&Pace>, device: &dyn Device) -> Result<()> {
    let held = pace.map_or(Ok(()), |pace| pace.hold(device));
    held.context("loading the stored data into the model")
}

/// Begins to record the requests of clients to a device of `size` bytes.
fn record(file: &Path, args: &Serve, size: u64) -> Result<RecordingFile> {
    let device = match &args.volume {
        Some(volume) => format!("the volume {}", volume.display()),
        None => format!("{} in memory", Bytes(size)),
    };
    let model = (args.timing.timing == Timing::Model).then_some(args.timing.model.as_str());
    let (front_end, emulation_slowdown) = (None, None);
    let of = recording::RecordedDevice {
        device: &device,
        size_bytes: size,
        model,
        front_end,
        emulation_slowdown,
    };
    RecordingFile::begin(file, &of)
}

/// Waits for a signal, or until no client was there for long. Meanwhile observes the drive, and
/// saves its lifetime counters.
fn wait(
    signals: &Receiver<Signal>,
    service: &DriveService,
    mut configuration: Option<Configuration>,
    (mut lateness, mut idle): (Watch, Option<Idle>),
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
            Ok(Signal::Reload) => reload(configuration.as_mut(), service),
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
fn reload(configuration: Option<&mut Configuration>, service: &DriveService) {
    let Some(configuration) = configuration else {
        warn!("no configuration to reload: the server was started without --config");
        return;
    };
    let Reread { serve, fixed } = match configuration.reread() {
        Ok(reread) => reread,
        Err(error) => {
            error!("the configuration was not reloaded: {}", server::chain_text(&error));
            return;
        }
    };
    log::change(serve.log_level, serve.log_json);
    if let Some(maintenance) = service.maintenance() {
        maintenance.limit_scrubs(scrub_rate(serve.scrub_rate));
    }
    if let (Some(period), Some(maintenance)) = (serve.scrub, service.maintenance())
        && let Err(error) = maintenance.scrub_every(period)
    {
        error!("scrubs of the volume could not be scheduled: {error}");
    }
    info!("the configuration was reloaded");
    if !fixed.is_empty() {
        warn!("{} changed; this takes effect after a restart", fixed.join(", "));
    }
}

/// The limit of scrubs in bytes each second.
fn scrub_rate(typed: Option<Bytes>) -> Option<NonZeroU64> {
    typed.and_then(|rate| NonZeroU64::new(rate.0))
}

/// Saves the drive's lifetime counters; logs the first failure. Returns whether they were saved.
fn keep_life(service: &DriveService, was_kept: bool) -> bool {
    let kept = service.keep_life();
    if let Some(error) = kept.as_ref().err().filter(|_| was_kept) {
        warn!("the lifetime counters of the volume could not be saved: {error}");
    }
    kept.is_ok()
}

impl ServedDrive {
    fn open(
        args: &Serve,
        recipients: Option<Recipients>,
        paced: Option<&Arc<PacingModel>>,
    ) -> Result<Self> {
        let injector = injector(args)?;
        let (drive, service) = if let Some(volume) = &args.volume {
            let (drive, service) = open_volume(args, volume, injector.clone())?;
            (Some(drive), service)
        } else {
            let size = args.memory.context("nothing to serve")?;
            let service = DriveService::in_memory(size.0, injector.clone());
            (None, service.context("generating the drive's ID")?)
        };
        let service = Arc::new(service);
        service.tell_start();
        if let Some(paced) = paced {
            service.keep_pace_with(paced);
        }
        let operator = match operate(args, &service, injector) {
            Ok(operator) => operator,
            Err(error) => {
                close(drive, service).unwrap_or_else(|also| warn_unclosed(&also));
                return Err(error);
            }
        };
        let served = Self { drive, service, operator };
        if let Err(error) = served.look_after(args, recipients) {
            served.close().unwrap_or_else(|also| warn_unclosed(&also));
            return Err(error);
        }
        Ok(served)
    }

    /// Starts maintenance and monitoring.
    fn look_after(&self, args: &Serve, recipients: Option<Recipients>) -> Result<()> {
        let service = &self.service;
        if let Some(drive) = &self.drive {
            for unused in drive.unused_media() {
                service.tell_warning(&format!("A die is not used: {unused}."));
            }
        }
        if let Some(recipients) = recipients {
            monitor(args, recipients, service)?;
        }
        service.look();
        if let Some(maintenance) = service.maintenance() {
            maintenance.limit_scrubs(scrub_rate(args.scrub_rate));
            maintenance.keep_redundant()?;
            maintenance.commit_at_rest()?;
            if let Some(period) = args.scrub {
                maintenance.scrub_every(period)?;
            }
        }
        Ok(())
    }

    /// The namespaces as exports; the first is the default.
    fn exports(&self, args: &Serve, pace: Option<&Arc<Pace>>) -> Result<Exports> {
        let (default, size) = (&*args.export, Bytes(self.service.device().size()));
        let description = match &args.volume {
            Some(volume) => {
                Namespaces::of(volume)?.check_capacity(size)?;
                volume.display().to_string()
            }
            None => format!("{size} in memory"),
        };
        let part = |it: ServedNamespace| Export {
            name: front_end::export_name(&it.name, default).to_owned(),
            description: description.clone(),
            device: it.device,
            is_read_only: it.is_read_only,
            pace: pace.cloned(),
        };
        let namespaces = self.operator.namespaces();
        Ok(Exports::new(with_default_first(namespaces.into_iter().map(part).collect(), default)?)?)
    }

    fn close(self) -> Result<()> {
        let Self { drive, service, operator } = self;
        operator.stop();
        drop(operator);
        close(drive, service)
    }

    /// Closes the drive, whether or not serving it failed, so that the next opening has nothing to
    /// recover. Of two failures the first one is returned.
    fn close_after(self, served: Result<()>) -> Result<Ending> {
        let closed = self.close();
        if let (Err(_), Err(also)) = (&served, &closed) {
            warn_unclosed(also);
        }
        served.and(closed)?;
        Ok(Ending::Done)
    }
}

/// Closes a drive whose operator is gone, once no client uses it any more.
fn close(drive: Option<Arc<Drive>>, service: Arc<DriveService>) -> Result<()> {
    service.look();
    keep_life(&service, true);
    service.tell("The server stopped.");
    if let Some(maintenance) = service.maintenance() {
        maintenance.stop();
    }
    drop(service);
    let Some(drive) = drive else { return Ok(()) };
    let deadline = Instant::now() + LAST_ANSWERS;
    while Arc::strong_count(&drive) > 1 && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(1));
    }
    // A client that hangs in the drive keeps it open; what was flushed is safe all the same.
    let Some(drive) = Arc::into_inner(drive) else {
        let text = "closing the volume: a request that does not end still uses it";
        let hint = "nothing that was flushed is lost: the volume is recovered when it is next \
                    opened";
        return Err(Error::new(Kind::Io, text).hint(hint).into());
    };
    drive.close().context("closing the volume")
}

fn warn_unclosed(error: &anyhow::Error) {
    warn!("{}; it is recovered when it is next opened", server::chain_text(error));
}

/// The operator of a drive, with the faults that hosts see.
fn operate(
    args: &Serve,
    service: &Arc<DriveService>,
    injector: Option<Arc<FaultInjector>>,
) -> Result<Arc<Operator>> {
    let kept = match &args.volume {
        Some(volume) => live::load_operations(volume, args.nvme_block_bytes)?,
        None => PersistentState::whole(args.nvme_block_bytes),
    };
    check_blocks(&kept, service.device().size())?;
    let backing = Arc::<DriveService>::clone(service);
    let operator = Operator::open(service.device(), backing, kept, args.read_only);
    let operator = Arc::new(operator.context("operating the drive")?);
    service.operate_by(&operator);
    if let Some(injector) = injector {
        let service = Arc::downgrade(service);
        injector.call_for_hosts(Box::new(move |fault| match service.upgrade() {
            Some(service) => service.inject_for_hosts(fault),
            None => Err(io::Error::other("the volume is being closed")),
        }));
    }
    Ok(operator)
}

/// Opens the drive of a folder.
fn open_volume(
    args: &Serve,
    volume: &Path,
    injector: Option<Arc<FaultInjector>>,
) -> Result<(Arc<Drive>, DriveService)> {
    let access = Access::from(args.access);
    // A server that changes nothing leaves the volume to earlier versions of the program, too.
    let upgrade = if args.read_only { Upgrade::Later } else { Upgrade::Now };
    let opening = live::Opening { access, promise: args.promise.promise(), upgrade };
    if args.force_stale && live::allow_stale(volume).with_context(|| Opening::of(volume))? {
        warn!(
            "the volume starts from an earlier state, as --force-stale allows: what was written \
             last is given up"
        );
    }
    let drive = match &injector {
        Some(injector) => Drive::open_with_faults(volume, opening, injector),
        None => Drive::open_as(volume, opening),
    };
    let drive = Arc::new(drive.with_context(|| Opening::of(volume))?);
    drive.limit_damage(args.die_errors_per_hour);
    info!("the dies are accessed {access}");
    match drive.promise() {
        Promise::PowerLoss => info!("acknowledged writes survive a power loss"),
        Promise::ServerDeath => info!("acknowledged writes survive the death of the server"),
        Promise::Nothing => warn!(
            "acknowledged writes survive neither a power loss nor the death of the server before \
             they are flushed"
        ),
    }
    let service = DriveService::new(volume, Arc::clone(&drive), injector);
    Ok((drive, service))
}

/// `exports` with the default one first; without a name that is the first.
fn with_default_first(mut exports: Vec<Export>, default: &str) -> Result<Vec<Export>> {
    if default.is_empty() {
        return Ok(exports);
    }
    let index = exports.iter().position(|export| export.name == *default);
    let index = index.with_context(|| format!("the export `{default}` was removed"))?;
    exports[..=index].rotate_right(1);
    Ok(exports)
}

/// Sets up alerts for changes of a drive's health, and sends a test event if requested.
fn monitor(args: &Serve, recipients: Recipients, service: &DriveService) -> Result<()> {
    let Status { drive, name, folder, health, .. } = service.status();
    service.call(Monitor::start(recipients, About { drive, name, folder })?);
    if args.monitor.is_test {
        service.alert(monitor::test_alert(health.state));
    }
    Ok(())
}

/// The injector of faults that were asked for, by command or by a schedule.
fn injector(args: &Serve) -> Result<Option<Arc<FaultInjector>>> {
    let Some(file) = &args.fault_injection else { return Ok(None) };
    let schedule = match file {
        None => Schedule::default(),
        Some(file) => {
            let reading = || Input::reading(file);
            let text = fs::read_to_string(file).with_context(reading)?;
            let schedule = Schedule::parse(&text).with_context(reading)?;
            // A drive in memory has no dies, and takes no notice of their faults.
            if let Some(volume) = &args.volume {
                schedule.check_dies(live::die_count(volume)?).with_context(reading)?;
            }
            schedule
        }
    };
    let injector = FaultInjector::new(schedule, end_without_power, |fault, error| {
        warn!("injecting the scheduled fault {fault:?}: {error}");
    });
    injector.keep_time().context("starting the clock of the schedule")?;
    Ok(Some(injector))
}

/// Ends the process as a power cut does. If the cut was incomplete the process stays, so that the
/// client that asked for it gets the error; all commands to the dies fail.
#[expect(clippy::exit, reason = "nothing of a process outlives the power")]
fn end_without_power(cut: &io::Result<()>) {
    match cut {
        Ok(()) => std::process::exit(POWER_CUT),
        Err(error) => error!("{error}; stop the server, and do not use the data on the dies"),
    }
}

/// The model whose times replies keep to, if they do.
pub(super) fn paced(args: &TimingArgs) -> Result<Option<Arc<PacingModel>>> {
    if args.timing == Timing::Off {
        return Ok(None);
    }
    let spec = find_drive(&args.model)?;
    let choice = setup::choice(args.format.as_deref(), &args.setup);
    let wanted = Subject::find(&args.model)?.setup(&choice)?;
    let OrderedTarget::Model(setup) = wanted else {
        bail!("{} is not a modelled drive", args.model)
    };
    let setup = setup.with_seed(args.setup.seed);
    let drive = ModelDrive::new(&spec, &setup).context("setting up the model")?;
    Ok(Some(Arc::new(PacingModel::new(&spec, Pace::new(drive)))))
}

/// Loads the TLS certificates for NBD clients; none without `--tls-certificates`.
fn tls(args: &TlsArgs) -> Result<Option<Tls>> {
    let Some(folder) = &args.tls_certificates else { return Ok(None) };
    let loaded = Tls::load(folder, args.tls.into(), args.tls_verify_peer);
    loaded.map(Some).with_context(|| Input("reading the certificates".into()))
}

fn listen(place: &Place<Address>, passed: &mut PassedSockets, tls: &TlsArgs) -> Result<Listener> {
    let listener = match place {
        Place::At(address) => Listener::bind(address)?,
        Place::Passed(index) => passed.clients(*index)?,
    };
    // Who has to show a certificate is known.
    let is_guarded = tls.tls_verify_peer && tls.tls == Encryption::Required;
    if listener.is_reachable_from_outside() && !is_guarded {
        warn_of_reach(listener.address());
    }
    Ok(listener)
}

/// Refuses promises of a volume in memory, whose data is gone with its server.
fn check_promise(args: &Serve) -> Result<()> {
    if args.memory.is_some() && args.promise.promise().is_some() {
        let text = "--durable and --volatile are about volumes in a folder, not about --memory";
        return Err(Error::new(Kind::Input, text).into());
    }
    Ok(())
}

/// Recipients of alerts at each change of health; none where neither a program nor an address was
/// given.
fn recipients(args: &MonitorArgs) -> Result<Option<Recipients>> {
    let recipients = Recipients::new(args.program.clone(), args.mail.as_deref());
    let recipients =
        recipients.map_err(|error| Error::new(Kind::Input, server::chain_text(&error)))?;
    if recipients.is_none() && args.is_test {
        let text = "--monitor-test has no recipient";
        let hint = "give --monitor-program or --monitor-mail";
        return Err(Error::new(Kind::Input, text).hint(hint).into());
    }
    Ok(recipients)
}

/// Loads the TLS certificates for HTTP; none without `--http-tls-certificates`.
pub(super) fn http_tls(args: &HttpArgs) -> Result<Option<Tls>> {
    let Some(folder) = &args.http_tls_certificates else { return Ok(None) };
    let loaded = Tls::load(folder, TlsMode::Required, args.http_tls_verify_peer);
    loaded.map(Some).with_context(|| Input("reading the certificates for HTTP".into()))
}

/// Listens for browsers; warns if other machines can reach the address.
pub(super) fn listen_http(
    place: &Place<SocketAddr>,
    passed: &mut PassedSockets,
    tls: Option<&Tls>,
) -> Result<TcpListener> {
    let listener = match place {
        Place::At(address) => web::listen(*address)?,
        Place::Passed(index) => passed.http(*index)?,
    };
    let address = listener.local_addr().context("asking for the port of HTTP")?;
    if !address.ip().is_loopback() && !tls.is_some_and(Tls::verifies_clients) {
        let scheme = if tls.is_some() { "https" } else { "http" };
        warn_of_reach(&format_args!("{scheme}://{address}"));
    }
    Ok(listener)
}

/// Shows a drive to browsers and monitoring.
fn show(
    args: &Serve,
    (listener, tls): (TcpListener, Option<Tls>),
    service: &Arc<DriveService>,
) -> Result<Web> {
    let hosts = args.pages.http_host.clone();
    let token = Token::generate(service.volume().map(|volume| volume.join(TOKEN)));
    let token = token.context("writing the token of the dashboard")?;
    let routes = DriveRoutes::new(Arc::downgrade(service));
    let web = Web::start(listener, Content::Drive(routes), Door { token, hosts, tls })?;
    introduce(&web, args.log_json);
    Ok(web)
}

/// Prints the address of the page past the log, since it may hold the token; with JSON, logs it
/// without the token.
fn introduce(web: &Web, is_json: bool) {
    if is_json {
        info!("the dashboard is at {}", web.place());
    } else {
        output::talk(&web.introduction());
    }
}

pub(super) fn warn_of_reach(place: &dyn Display) {
    warn!(
        "{place} can be reached from other machines without a password or a certificate; an SSH \
         tunnel is safer"
    );
}

/// Returns the exports with the URIs that clients reach them by.
pub(super) fn offered(exports: &Exports, listeners: &[Listener]) -> Vec<status::Export> {
    let is_encrypted = exports.tls().is_some_and(|tls| tls.mode() == TlsMode::Required);
    let uri: fn(&Address, &str) -> String =
        if is_encrypted { Address::encrypted_uri } else { Address::uri };
    let offered = exports.iter().map(|export| status::Export {
        name: export.name.clone(),
        size_bytes: export.device.size(),
        is_read_only: export.refuses_changes(),
        uris: listeners.iter().map(|it| uri(it.address(), &export.name)).collect(),
    });
    offered.collect()
}

/// A URI for each export at each place, or all of it as JSON.
pub(super) fn shown(offered: &[status::Export], json: bool) -> Result<String> {
    if json {
        return serde_json::to_string(offered).context("writing JSON");
    }
    let uris = offered.iter().flat_map(|export| &export.uris).map(String::as_str);
    Ok(uris.collect::<Vec<_>>().join("\n"))
}

/// Logs an event of a client.
pub(super) fn tell(event: &Event) {
    match event {
        Event::Connected { client, export } => {
            debug!(client, export, "client {client} connected to `{export}`");
        }
        Event::HostConnected { client, controller, host } => {
            debug!(
                client,
                controller, host, "client {client}, {host}, connected as controller {controller}"
            );
        }
        Event::Disconnected { client } => debug!(client, "client {client} disconnected"),
        Event::Dropped { client, reason } => {
            warn!(client, reason, "client {client} was dropped: {reason}");
        }
        Event::Rejected { clients: 1, reason } => {
            warn!(reason, "a client was rejected: {reason}");
        }
        Event::Rejected { clients, reason } => {
            warn!(
                clients,
                reason, "{clients} clients were rejected; the reason for the last: {reason}"
            );
        }
    }
}
