//! Requests of programs to a served drive, over its management socket or its page.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use blockio::text;
use live::fault_injection::Fault;
use live::{Beyond, Contents, UserCapacity, locate};
use status::Export;
use status::management::{Answer, FAULTS_NOT_ALLOWED, Management, Request};

use super::DriveService;

impl DriveService {
    /// Serves the management socket of the drive, whose exports are `offered`, until the returned
    /// value is dropped.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub fn manage(self: &Arc<Self>, offered: &[Export]) -> Result<Management> {
        self.offer(offered);
        let Some(volume) = self.volume() else {
            bail!("a volume in memory has no folder for a management socket");
        };
        // A request that is under way does not keep the drive from being closed.
        let own = Arc::downgrade(self);
        let answer = move |request| match own.upgrade() {
            Some(own) => own.answer(&request),
            None => Answer::Refused { reason: "the volume is being closed".to_owned() },
        };
        Management::start(volume, answer)
            .with_context(|| format!("opening the management socket of {}", volume.display()))
    }

    /// Carries out a request.
    pub fn answer(&self, request: &Request) -> Answer {
        let in_memory = "a volume in memory has no dies and no folder";
        let volume = self.subject.volume().ok_or_else(|| in_memory.to_owned());
        let done = match request {
            Request::Status => return Answer::Status { status: Box::new(self.status()) },
            Request::History { span } => {
                return Answer::History { history: Box::new(self.history(*span)) };
            }
            Request::Locate { is_lit } => {
                volume.and_then(|it| told(locate::set(&it.folder, *is_lit)))
            }
            Request::FailDie { die } => volume.and_then(|it| told(it.maintenance.fail_die(*die))),
            Request::ReplaceDie { die, path, destroy } => {
                let contents = Contents::lost_if(*destroy);
                let volume = volume.and_then(|it| check_absolute(path).map(|()| it));
                volume.and_then(|it| told(it.maintenance.replace_die(*die, path, contents)))
            }
            Request::AddSpare { path, destroy } => {
                let contents = Contents::lost_if(*destroy);
                let volume = volume.and_then(|it| check_absolute(path).map(|()| it));
                volume.and_then(|it| told(it.maintenance.add_spare(path, contents)))
            }
            Request::RemoveSpare { path } => {
                let volume = volume.and_then(|it| check_absolute(path).map(|()| it));
                volume.and_then(|it| told(it.maintenance.remove_spare(path)))
            }
            Request::Scrub => volume.and_then(|it| told(it.maintenance.scrub())),
            Request::Purge { drive, while_served } => {
                self.allowed(drive, *while_served).and_then(|()| told(volume?.maintenance.purge()))
            }
            Request::Format { drive, capacity, while_served } => self
                .allowed(drive, *while_served)
                .and_then(|()| told(volume?.maintenance.format(*capacity))),
            Request::Resize { drive, size_bytes, discard, while_served } => {
                let beyond = if *discard { Beyond::Lost } else { Beyond::Kept };
                self.allowed(drive, *while_served)
                    .and_then(|()| told(volume?.maintenance.resize(*size_bytes, beyond)))
            }
            Request::InjectFault { fault } => self.inject_fault(*fault),
        };
        let order = order(request);
        match done {
            Ok(()) => {
                self.tell(&format!("Request to {order}: accepted."));
                Answer::Done
            }
            Err(error) => {
                self.tell(&format!("Request to {order}: refused: {error}."));
                Answer::Refused { reason: error }
            }
        }
    }

    /// Checks a request to purge, format or resize: it must name this drive and allow the change
    /// while clients use it.
    fn allowed(&self, drive: &str, while_served: bool) -> Result<(), String> {
        let own = self.number();
        match (drive == own, while_served) {
            (false, _) => Err(format!("the volume here has the ID {own}, not {drive}")),
            (_, false) => Err("clients may use the volume; set while_served to proceed".to_owned()),
            _ => Ok(()),
        }
    }

    fn inject_fault(&self, fault: Fault) -> Result<(), String> {
        let Some(injector) = &self.injector else {
            return Err(FAULTS_NOT_ALLOWED.to_owned());
        };
        injector.inject(fault).map_err(|error| error.to_string())
    }
}

/// Refuses a path that would be taken from the working folder of the server.
fn check_absolute(path: &Path) -> Result<(), String> {
    if path.is_absolute() {
        return Ok(());
    }
    Err(format!("the path {} is relative, must be absolute: begin it with /", path.display()))
}

/// An error as its text.
fn told<T>(done: Result<T, impl Display>) -> Result<T, String> {
    done.map_err(|error| error.to_string())
}

/// Returns the infinitive phrase for a request in event messages, to follow "to".
fn order(request: &Request) -> String {
    match request {
        Request::Status => "report the status".to_owned(),
        Request::History { span } => format!("report the history of {}", span.word()),
        Request::Locate { is_lit: true } => "turn the locate LED on".to_owned(),
        Request::Locate { is_lit: false } => "turn the locate LED off".to_owned(),
        Request::FailDie { die } => format!("fail die {die}"),
        Request::ReplaceDie { die, path, .. } => {
            format!("replace die {die} with {}", path.display())
        }
        Request::AddSpare { path, .. } => format!("add the hot spare {}", path.display()),
        Request::RemoveSpare { path } => format!("remove the hot spare {}", path.display()),
        Request::Scrub => "scrub the volume".to_owned(),
        Request::Purge { .. } => "purge the volume".to_owned(),
        Request::Format { capacity: UserCapacity::Bytes(size), .. } => {
            format!("format the volume to {}", text::bytes(*size))
        }
        Request::Format { capacity: UserCapacity::Stock, .. } => {
            "format the volume to its stock capacity".to_owned()
        }
        Request::Format { .. } => "format the volume for high performance".to_owned(),
        Request::Resize { size_bytes, .. } => {
            format!("resize the volume to {}", text::bytes(*size_bytes))
        }
        Request::InjectFault { fault } => {
            let fault = serde_json::to_string(fault).unwrap_or_default();
            format!("inject a fault ({fault})")
        }
    }
}
