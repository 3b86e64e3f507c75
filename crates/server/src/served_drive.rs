//! The drive that is served: opened, looked after, and closed again.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use blockio::Bytes;
use export::{Export, Exports, Pace};
use lab::{Error, Kind};
use live::fault_injection::FaultInjector;
use live::operator::{Operator, PersistentState};
use live::{Drive, Namespaces, Operations as _, Promise, ServedNamespace, Upgrade};
use status::Status;
use tracing::{info, warn};

use crate::checks::check_blocks;
use crate::config::{Config, Storage};
use crate::drive_service::{DriveService, PacingModel};
use crate::failure::Opening;
use crate::monitor::{self, About, Monitor, Recipients};
use crate::{chain_text, fault_injection, front_ends};

/// Longest wait, before the drive is closed, for answers to management requests under way.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// Drive that is served: its service, the operator for the commands of hosts, and, if it is a
/// volume, the drive itself, to be closed at the end.
pub(crate) struct ServedDrive {
    drive: Option<Arc<Drive>>,
    pub(crate) service: Arc<DriveService>,
    pub(crate) operator: Arc<Operator>,
}

impl ServedDrive {
    /// Opens the storage that `config` names, with what watches it.
    ///
    /// # Errors
    /// Fails if it cannot be opened; then it is as it was.
    pub(crate) fn open(
        config: &Config,
        recipients: Option<Recipients>,
        paced: Option<&Arc<PacingModel>>,
    ) -> Result<Self> {
        let injector = fault_injection::injector(config)?;
        let (drive, service) = match &config.storage {
            Storage::Volume(volume) => {
                let (drive, service) = open_volume(config, volume, injector.clone())?;
                (Some(drive), service)
            }
            Storage::Memory(size) => {
                let service = DriveService::in_memory(size.0, injector.clone());
                (None, service.context("generating the drive's ID")?)
            }
        };
        let service = Arc::new(service);
        service.tell_start();
        if let Some(paced) = paced {
            service.keep_pace_with(paced);
        }
        let operator = match operate(config, &service, injector) {
            Ok(operator) => operator,
            Err(error) => {
                close(drive, service).unwrap_or_else(|also| warn_unclosed(&also));
                return Err(error);
            }
        };
        let served = Self { drive, service, operator };
        if let Err(error) = served.look_after(config, recipients) {
            served.close().unwrap_or_else(|also| warn_unclosed(&also));
            return Err(error);
        }
        Ok(served)
    }

    /// Starts maintenance and monitoring.
    fn look_after(&self, config: &Config, recipients: Option<Recipients>) -> Result<()> {
        let service = &self.service;
        if let Some(drive) = &self.drive {
            for unused in drive.unused_media() {
                service.tell_warning(&format!("A die is not used: {unused}."));
            }
        }
        if let Some(recipients) = recipients {
            start_monitor(config, recipients, service)?;
        }
        service.look();
        if let Some(maintenance) = service.maintenance() {
            maintenance.limit_scrubs(config.scrubs.bytes_per_s_max);
            maintenance.keep_redundant()?;
            maintenance.commit_at_rest()?;
            if let Some(period) = config.scrubs.period {
                maintenance.scrub_every(period)?;
            }
        }
        Ok(())
    }

    /// The namespaces as exports; the first is the default.
    pub(crate) fn exports(&self, config: &Config, pace: Option<&Arc<Pace>>) -> Result<Exports> {
        let (default, size) = (&*config.default_export, Bytes(self.service.device().size()));
        let description = match &config.storage {
            Storage::Volume(volume) => {
                Namespaces::of(volume)?.check_capacity(size)?;
                volume.display().to_string()
            }
            Storage::Memory(_) => format!("{size} in memory"),
        };
        let part = |it: ServedNamespace| Export {
            name: front_ends::export_name(&it.name, default).to_owned(),
            description: description.clone(),
            device: it.fenced_device(),
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
    pub(crate) fn close_after(self, served: Result<()>) -> Result<()> {
        let closed = self.close();
        if let (Err(_), Err(also)) = (&served, &closed) {
            warn_unclosed(also);
        }
        served.and(closed)
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
    warn!("{}; it is recovered when it is next opened", chain_text(error));
}

/// Saves the drive's lifetime counters; logs the first failure. Returns whether they were saved.
pub(crate) fn keep_life(service: &DriveService, was_kept: bool) -> bool {
    let kept = service.keep_life();
    if let Some(error) = kept.as_ref().err().filter(|_| was_kept) {
        warn!("the lifetime counters of the volume could not be saved: {error}");
    }
    kept.is_ok()
}

/// The operator of a drive, with the faults that hosts see.
fn operate(
    config: &Config,
    service: &Arc<DriveService>,
    injector: Option<Arc<FaultInjector>>,
) -> Result<Arc<Operator>> {
    let block_bytes = config.front_ends.block_bytes();
    let kept = match &config.storage {
        Storage::Volume(volume) => live::load_operations(volume, block_bytes)?,
        Storage::Memory(_) => PersistentState::whole(block_bytes),
    };
    check_blocks(&kept, service.device().size())?;
    let backing = Arc::<DriveService>::clone(service);
    let operator = Operator::open(service.device(), backing, kept, config.is_read_only);
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
    config: &Config,
    volume: &Path,
    injector: Option<Arc<FaultInjector>>,
) -> Result<(Arc<Drive>, DriveService)> {
    let access = config.access;
    // A server that changes nothing leaves the volume to earlier versions of the program, too.
    let upgrade = if config.is_read_only { Upgrade::Later } else { Upgrade::Now };
    let opening =
        live::Opening { access, promise: config.promise, upgrade, key: config.key.clone() };
    if config.accepts_stale && live::allow_stale(volume).with_context(|| Opening::of(volume))? {
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
    drive.limit_damage(config.die_errors_per_hour);
    if drive.is_key_read_as_before() {
        warn!("{}", live::KEY_READ_AS_BEFORE);
    }
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
fn start_monitor(config: &Config, recipients: Recipients, service: &DriveService) -> Result<()> {
    let Status { drive, name, folder, health, .. } = service.status();
    service.call(Monitor::start(recipients, About { drive, name, folder })?);
    if config.alerts.is_test {
        service.alert(monitor::test_alert(health.state));
    }
    Ok(())
}
