//! Front ends of a server: what clients reach a drive by.
//!
//! ```text
//!   options ──► prepare, before the drive is opened ──► ready ──► start ──► running ──► dropped
//! ```
//!
//! One more front end is a file with its options, which implement [`FrontEnd`], and a line of the
//! list at the end of this file.

mod encryption;
mod host_keys;
mod unix_sockets;

use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use export::nvme::Subsystem;
use export::{Address, Exports, Listener, Observer, Protocol, Tls};
use live::operator::Operator;
use live::{Operations as _, Promise};

use self::host_keys::HostKeys;
use crate::activation::{PassedSockets, Place};
use crate::drive_service::DriveService;

/// Options of a front end.
pub(crate) trait FrontEnd {
    /// Acquires what it needs of the system, before the drive is opened, so that a failure leaves
    /// the drive unchanged. None if the front end was not requested.
    ///
    /// # Errors
    /// Fails if the options contradict each other, or the system refuses.
    fn prepare(&self, preparation: &mut Preparation<'_>) -> Result<Option<Box<dyn ReadyFrontEnd>>>;
}

/// Means for front ends that prepare.
pub(crate) struct Preparation<'a> {
    passed: &'a mut PassedSockets,
    /// True if no client may send in plaintext.
    must_encrypt: bool,
}

impl Preparation<'_> {
    /// Listens for clients at a place.
    fn listen(&mut self, place: &Place<Address>) -> Result<Listener> {
        Ok(match place {
            Place::At(address) => Listener::bind(address)?,
            Place::Passed(index) => self.passed.clients(*index)?,
        })
    }
}

/// A front end that is about to serve.
pub(crate) trait ReadyFrontEnd {
    /// Serves until the returned value is dropped, and adds to each export the URIs for clients.
    ///
    /// # Errors
    /// Fails if the system refuses.
    fn start(self: Box<Self>, drive: &mut ExportedDrive<'_>) -> Result<Box<dyn Running>>;
}

/// A front end that serves. When it is dropped it accepts no more requests, and answers those that
/// it accepted.
pub(crate) trait Running {}

impl<T> Running for T {}

/// A drive and its exports, for front ends that start.
pub(crate) struct ExportedDrive<'a> {
    exports: &'a Exports,
    observer: &'a Arc<dyn Observer>,
    operator: &'a Arc<Operator>,
    service: &'a DriveService,
    default_export: &'a str,
    /// Exports with the URIs so far.
    offered: Vec<status::Export>,
    sockets: Sockets,
    host_keys: HostKeys,
    /// The NVMe subsystem, which front ends share; made for the first one that needs it.
    subsystem: Option<Arc<Subsystem>>,
}

/// Sockets of the front ends whose clients share memory and limits, served together.
#[derive(Default)]
pub(crate) struct Sockets {
    pub(crate) listeners: Vec<(Listener, Protocol)>,
    tls: Option<Tls>,
}

impl Sockets {
    /// The exports as clients of these sockets get them.
    pub(crate) fn encrypted(&self, exports: Exports) -> Exports {
        match &self.tls {
            Some(tls) => exports.encrypted(tls.clone()),
            None => exports,
        }
    }
}

impl<'a> ExportedDrive<'a> {
    pub(crate) fn new(
        exports: &'a Exports,
        default_export: &'a str,
        operator: &'a Arc<Operator>,
        service: &'a DriveService,
        observer: &'a Arc<dyn Observer>,
    ) -> Self {
        Self {
            exports,
            observer,
            operator,
            service,
            default_export,
            offered: export_statuses(exports),
            sockets: Sockets::default(),
            host_keys: HostKeys::default(),
            subsystem: None,
        }
    }

    /// The exports with the URIs that front ends added, and the sockets that are left to serve.
    pub(crate) fn finish(self) -> (Vec<status::Export>, Sockets) {
        (self.offered, self.sockets)
    }

    /// True if what clients were answered survives this server: so a device may wait for the next
    /// one.
    fn survives_server(&self) -> bool {
        let promise = self.service.status().acknowledged_survives;
        self.service.volume().is_some() && promise.is_some_and(|it| it != Promise::Nothing)
    }

    /// The NVMe subsystem of the drive.
    fn subsystem(&mut self) -> Arc<Subsystem> {
        let made = self.subsystem.get_or_insert_with(|| {
            let operations = Arc::<Operator>::clone(self.operator);
            let pace = self.exports.iter().next().and_then(|export| export.pace.clone());
            let mut made = Subsystem::operated(operations).paced(pace);
            if let Some(secrets) = &self.host_keys.secrets {
                made = made.authenticated(secrets.clone());
            }
            if let Some((keys, mode)) = &self.host_keys.tls_keys {
                made = made.secured(keys.clone(), *mode);
            }
            let made = Arc::new(made);
            self.service.show_to_hosts(&made);
            made
        });
        Arc::clone(made)
    }

    /// Makes hosts of the NVMe subsystem prove who they are; before it is made.
    fn secure_subsystem(&mut self, keys: HostKeys) {
        assert!(self.subsystem.is_none(), "no host may have come without its key");
        self.host_keys = keys;
    }

    /// The export of a name, to which URIs are added.
    fn export_named(&mut self, name: &str) -> Option<&mut status::Export> {
        self.offered.iter_mut().find(|export| export.name == name)
    }

    /// Adds a URI to the export of each namespace; `uri` makes it of the namespace's number.
    fn add_uris(&mut self, uri: impl Fn(u32) -> String) {
        for namespace in self.operator.namespaces() {
            let name = export_name(&namespace.name, self.default_export);
            if let Some(export) = self.export_named(name) {
                export.uris.push(uri(namespace.id));
            }
        }
    }
}

/// Exports as the status has them, without URIs.
pub(crate) fn export_statuses(exports: &Exports) -> Vec<status::Export> {
    let statuses = exports.iter().map(|export| status::Export {
        name: export.name.clone(),
        size_bytes: export.device.size(),
        is_read_only: export.refuses_changes(),
        uris: Vec::new(),
    });
    statuses.collect()
}

/// The name of a namespace as an export: one that is the whole drive has that of the default.
pub(crate) fn export_name<'a>(name: &'a str, default: &'a str) -> &'a str {
    if name.is_empty() { default } else { name }
}

macro_rules! front_ends {
    ($(mod $name:ident;)+) => {
        $(pub mod $name;)+

        /// Options of all front ends.
        #[derive(Debug, Args)]
        pub struct FrontEndOptions {
            $(#[command(flatten)] $name: $name::Options,)+
        }

        impl FrontEndOptions {
            fn each(&self) -> Vec<&dyn FrontEnd> {
                vec![$(&self.$name),+]
            }
        }
    };
}

impl FrontEndOptions {
    /// Prepares the front ends that were requested.
    ///
    /// # Errors
    /// The first failure of a front end.
    pub(crate) fn prepare(
        &self,
        passed: &mut PassedSockets,
    ) -> Result<Vec<Box<dyn ReadyFrontEnd>>> {
        let must_encrypt = self.nbd.demands_encryption();
        let mut preparation = Preparation { passed, must_encrypt };
        let prepare = |it: &dyn FrontEnd| it.prepare(&mut preparation).transpose();
        self.each().into_iter().filter_map(prepare).collect()
    }

    /// Bytes of a logical block of NVMe hosts.
    pub(crate) const fn block_bytes(&self) -> u32 {
        self.nvme.block_bytes()
    }
}

// In the order in which they start, and list the URIs of an export.
front_ends! {
    mod nbd;
    mod fuse;
    mod nvme;
    mod ublk;
    mod vfio_user;
    mod vhost_user;
}
