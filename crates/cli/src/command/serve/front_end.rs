//! Front ends of `floatgate serve` beside those that listen for NBD and NVMe/TCP.
//!
//! ```text
//!   options ──► prepare, before the drive is opened ──► Prepared ──► start ──► Running ──► dropped
//! ```
//!
//! One more front end is a file with its options, which implement [`FrontEnd`], and an entry of the
//! list at the end of this file.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::Args;
use export::nvme::Subsystem;
use export::{Address, Exports, Listener, Observer};
use live::operator::Operator;
use live::{Operations as _, Promise, status};
use server::drive_service::DriveService;

use super::host_keys::HostKeys;
use crate::args::Serve;

/// Options of a front end.
pub(super) trait FrontEnd {
    /// Acquires what it needs of the system, before the drive is opened, so that a failure leaves
    /// the drive unchanged. None if the front end was not requested.
    ///
    /// # Errors
    /// Fails if the system refuses.
    fn prepare(&self) -> Result<Option<Box<dyn ReadyFrontEnd>>>;
}

/// A front end that is about to serve.
pub(super) trait ReadyFrontEnd {
    /// Serves until the returned value is dropped, and adds to each export the URIs for clients.
    ///
    /// # Errors
    /// Fails if the system refuses.
    fn start(
        self: Box<Self>,
        served: &ExportedDrive<'_>,
        offered: &mut [status::Export],
    ) -> Result<Box<dyn Running>>;
}

/// A front end that serves. When it is dropped it accepts no more requests, and answers those that
/// it accepted.
pub(super) trait Running {}

impl<T> Running for T {}

/// A drive and its exports, for front ends.
pub(super) struct ExportedDrive<'a> {
    pub(super) exports: &'a Exports,
    pub(super) observer: &'a Arc<dyn Observer>,
    pub(super) operator: &'a Arc<Operator>,
    service: &'a DriveService,
    args: &'a Serve,
    host_keys: &'a HostKeys,
    /// The NVMe subsystem, which all front ends share; made for the first one that needs it.
    subsystem: OnceCell<Arc<Subsystem>>,
}

impl<'a> ExportedDrive<'a> {
    pub(super) fn new(
        exports: &'a Exports,
        (operator, service): (&'a Arc<Operator>, &'a Arc<DriveService>),
        observer: &'a Arc<dyn Observer>,
        (args, host_keys): (&'a Serve, &'a HostKeys),
    ) -> Self {
        Self { exports, observer, operator, service, args, host_keys, subsystem: OnceCell::new() }
    }

    /// True if what clients were answered survives this server: so a device may wait for the next
    /// one.
    pub(super) fn survives_server(&self) -> bool {
        let promise = self.service.status().acknowledged_survives;
        self.args.volume.is_some() && promise.is_some_and(|it| it != Promise::Nothing)
    }

    /// The NVMe subsystem of the drive.
    pub(super) fn subsystem(&self) -> Arc<Subsystem> {
        Arc::clone(self.subsystem.get_or_init(|| {
            let operations = Arc::<Operator>::clone(self.operator);
            let pace = self.exports.iter().next().and_then(|export| export.pace.clone());
            let mut made = Subsystem::operated(operations).paced(pace);
            if let Some(secrets) = &self.host_keys.secrets {
                made = made.authenticated(secrets.clone());
            }
            if let Some(keys) = &self.host_keys.tls_keys {
                made = made.secured(keys.clone(), self.args.nvme_tls.into());
            }
            let made = Arc::new(made);
            self.service.show_to_hosts(&made);
            made
        }))
    }

    /// Adds a URI to the export of each namespace; `uri` makes it of the namespace's number.
    pub(super) fn add_uris(&self, offered: &mut [status::Export], uri: impl Fn(u32) -> String) {
        for namespace in self.operator.namespaces() {
            let name = export_name(&namespace.name, &self.args.export);
            if let Some(export) = offered.iter_mut().find(|export| export.name == name) {
                export.uris.push(uri(namespace.id));
            }
        }
    }
}

/// Starts a server at a Unix socket, and adds URIs to exports.
type Start<S> = dyn Fn(Listener, &ExportedDrive<'_>, &mut [status::Export]) -> Result<S>;

/// Unix sockets for virtual machines, with the server that each gets.
struct Sockets<S> {
    listeners: Vec<Listener>,
    start: Box<Start<S>>,
}

impl<S: 'static> Sockets<S> {
    /// Listens at the paths; none without paths.
    fn prepare(paths: &[PathBuf], start: Box<Start<S>>) -> Result<Option<Box<dyn ReadyFrontEnd>>> {
        let listeners = paths.iter().map(|path| Listener::bind(&Address::Unix(path.clone())));
        let listeners: Vec<_> = listeners.collect::<Result<_, _>>()?;
        let sockets = || Box::new(Self { listeners, start }) as Box<dyn ReadyFrontEnd>;
        Ok((!paths.is_empty()).then(sockets))
    }
}

impl<S: 'static> ReadyFrontEnd for Sockets<S> {
    fn start(
        self: Box<Self>,
        served: &ExportedDrive<'_>,
        offered: &mut [status::Export],
    ) -> Result<Box<dyn Running>> {
        let Self { listeners, start } = *self;
        let start = |listener| start(listener, served, offered);
        let servers: Result<Vec<S>> = listeners.into_iter().map(start).collect();
        Ok(Box::new(servers.context("serving virtual machines")?))
    }
}

/// The path of a Unix socket.
fn path(listener: &Listener) -> String {
    match listener.address() {
        Address::Unix(path) => path.display().to_string(),
        other @ Address::Tcp { .. } => other.to_string(),
    }
}

macro_rules! front_ends {
    ($(mod $name:ident;)+) => {
        $(mod $name;)+

        /// Options of all front ends of this folder.
        #[derive(Debug, Args)]
        pub(crate) struct FrontEndArgs {
            $(#[command(flatten)] $name: $name::Options,)+
        }

        impl FrontEndArgs {
            fn each(&self) -> Vec<&dyn FrontEnd> {
                vec![$(&self.$name),+]
            }
        }
    };
}

impl FrontEndArgs {
    /// Prepares the front ends that were requested.
    ///
    /// # Errors
    /// The first failure of a front end.
    pub(super) fn prepare(&self) -> Result<Vec<Box<dyn ReadyFrontEnd>>> {
        self.each().into_iter().filter_map(|it| it.prepare().transpose()).collect()
    }
}

front_ends! {
    mod ublk;
    mod vfio_user;
    mod vhost_user;
}

/// The name of a namespace as an export: one that is the whole drive has that of the default.
pub(super) fn export_name<'a>(name: &'a str, default: &'a str) -> &'a str {
    if name.is_empty() { default } else { name }
}
