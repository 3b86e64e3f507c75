//! NVM subsystem: one drive, its namespaces, and the controllers of its hosts.
//!
//! ```text
//!   Connect, queue 0 ──► controller of the host ──► Connect, queues 1 to N ──► gone with queue 0
//! ```
//!
//! A host connects to the subsystem by its NQN, or to the discovery subsystem, which reports its
//! address. A controller is created for each host that connects (the dynamic controller model).

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use blockio::Nanos;
use device::{Administration, DriveHealth, Identity, Operations, ServedNamespace};

use super::authentication::Secrets;
use super::context::Context;
use super::controller::Controller;
use super::drive::{DISCOVERY_NQN, NvmeDrive};
use super::fabrics::{Connect, ConnectRefusal};
use super::host::{Host, Purpose};
use super::lock::locked;
use super::repertoire::Repertoire;
use super::reservation::shown;
use super::status::Status;
use super::tcp::TlsKeys;
use crate::{Export, Exports, Pace, TlsMode};

/// Minimum size of a logical block in bytes, the sector of devices.
const BLOCK_BYTES_MIN: u64 = 512;

/// An NVM subsystem that hosts connect to.
pub struct Subsystem {
    drive: NvmeDrive,
    /// By identifier.
    controllers: Mutex<BTreeMap<u16, Arc<Mutex<Controller>>>>,
    cuts: Mutex<Vec<Disconnect>>,
    removed_until: Mutex<Option<Instant>>,
    authentication: Option<Secrets>,
    secure_channel: Option<SecureChannel>,
    pace: Option<Arc<Pace>>,
}

/// Encryption of the connections of hosts, in TLS with pre-shared keys.
#[derive(Debug)]
pub(crate) struct SecureChannel {
    keys: TlsKeys,
    mode: TlsMode,
}

impl SecureChannel {
    pub(crate) const fn keys(&self) -> &TlsKeys {
        &self.keys
    }

    /// Returns whether hosts have to encrypt.
    pub(crate) const fn mode(&self) -> TlsMode {
        self.mode
    }
}

/// A drive whose namespaces are fixed: exports.
#[derive(Debug)]
struct FixedDrive {
    administration: Arc<dyn Administration>,
    namespaces: Vec<ServedNamespace>,
}

impl Administration for FixedDrive {
    fn identity(&self) -> Identity {
        self.administration.identity()
    }

    fn health(&self) -> DriveHealth {
        self.administration.health()
    }
}

impl Operations for FixedDrive {
    fn namespaces(&self) -> Vec<ServedNamespace> {
        self.namespaces.clone()
    }
}

/// Ends connections: those of the I/O queues of this controller, or those of all hosts.
pub(crate) type Disconnect = Box<dyn Fn(Option<u16>) + Send + Sync>;

/// Failure of all controllers, on demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerFault {
    /// Every controller is reset: its connections end, and hosts may come again at once.
    Reset,
    /// Every controller fails: its I/O queues end, and its admin queue reports CSTS.CFS.
    Fatal,
    /// The subsystem is gone for a time: connections end, and no host can connect.
    Removed {
        /// Time in milliseconds.
        for_ms: u64,
    },
}

/// Reason why exports cannot be served as namespaces.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubsystemError {
    /// The size of a logical block is not supported.
    #[error("logical blocks of {block_bytes} bytes, must be 512 or 4096")]
    BlockSize {
        /// Requested bytes of a block.
        block_bytes: u64,
    },
    /// The size or the offset of an export is not a multiple of the logical block.
    #[error(
        "export `{name}` of {size} bytes at {origin} does not lie on logical blocks of \
         {block_bytes} bytes; serve it with blocks of 512 bytes"
    )]
    Unaligned {
        /// Name of the export.
        name: String,
        /// Its bytes.
        size: u64,
        /// Its first byte on the drive.
        origin: u64,
        /// Bytes of a block.
        block_bytes: u64,
    },
}

impl Subsystem {
    /// Creates the subsystem of a drive whose exports are its namespaces, numbered from 1 in this
    /// order, in logical blocks of `block_bytes`.
    ///
    /// # Errors
    /// Fails if an export does not consist of whole blocks, or their size is not supported.
    pub fn new(
        exports: &Exports,
        administration: Arc<dyn Administration>,
        block_bytes: u64,
    ) -> Result<Self, SubsystemError> {
        if ![BLOCK_BYTES_MIN, 4096].contains(&block_bytes) {
            return Err(SubsystemError::BlockSize { block_bytes });
        }
        let served = (1..).zip(exports.iter()).map(|(id, it)| fixed(id, it, block_bytes));
        let namespaces = served.collect::<Result<_, _>>()?;
        let pace = exports.iter().next().and_then(|export| export.pace.clone());
        Ok(Self::operated(Arc::new(FixedDrive { administration, namespaces })).paced(pace))
    }

    /// The subsystem of a drive that hosts operate.
    pub fn operated(operations: Arc<dyn Operations>) -> Self {
        Self {
            drive: NvmeDrive::new(operations),
            controllers: Mutex::default(),
            cuts: Mutex::default(),
            removed_until: Mutex::default(),
            authentication: None,
            secure_channel: None,
            pace: None,
        }
    }

    /// Delays completions on queues of virtual machines as a model says, if there is one; those of
    /// NVMe/TCP have the pace of their exports.
    #[must_use]
    pub fn paced(self, pace: Option<Arc<Pace>>) -> Self {
        Self { pace, ..self }
    }

    /// The drive and the time of a command of an admin queue; `address` is that which the host
    /// connected to.
    pub(super) fn context(&self, now: Nanos, address: Option<SocketAddr>) -> Context<'_> {
        let encryption = self.secure_channel.as_ref().map(SecureChannel::mode);
        Context { drive: &self.drive, now, address, encryption, pace: self.pace.as_deref() }
    }

    /// The model that delays completions on queues of virtual machines.
    pub(super) const fn pace(&self) -> Option<&Arc<Pace>> {
        self.pace.as_ref()
    }

    /// Admits only hosts that authenticate themselves with one of these secrets.
    #[must_use]
    pub fn authenticated(self, secrets: Secrets) -> Self {
        Self { authentication: Some(secrets), ..self }
    }

    /// Has hosts encrypt their connections over TCP with these keys, if they want to or have to.
    #[must_use]
    pub fn secured(self, keys: TlsKeys, mode: TlsMode) -> Self {
        Self { secure_channel: Some(SecureChannel { keys, mode }), ..self }
    }

    /// Returns the NQN by which hosts connect to it.
    pub fn nqn(&self) -> &str {
        self.drive.nqn()
    }

    /// Returns the controllers that hosts have, in ascending order of their identifiers.
    pub fn controllers(&self) -> Vec<status::NvmeController> {
        self.drive.controllers()
    }

    /// Returns the reservations of a namespace; none if there is no such namespace.
    pub fn reservations(&self, namespace: u32) -> Option<status::Reservations> {
        let all = self.drive.directory().all();
        all.get(namespace).map(|it| shown(&it.reservations().snapshot()))
    }

    /// The drive, as commands of its controllers see it.
    pub(super) const fn drive(&self) -> &NvmeDrive {
        &self.drive
    }

    /// Secrets of hosts; none where any host may connect.
    pub(super) const fn authentication(&self) -> Option<&Secrets> {
        self.authentication.as_ref()
    }

    /// Encryption of connections over TCP; none where there is none.
    pub(crate) const fn secure_channel(&self) -> Option<&SecureChannel> {
        self.secure_channel.as_ref()
    }

    /// Adds a port that hosts come by, with its address where it is one for fabrics.
    pub(crate) fn add_port(&self, address: Option<SocketAddr>) {
        self.drive.add_port(address);
    }

    /// Has `cut` called when connections are to end.
    pub(crate) fn call_to_cut(&self, cut: Disconnect) {
        locked(&self.cuts).push(cut);
    }

    /// True if it is gone for a while.
    pub(super) fn is_removed(&self) -> bool {
        locked(&self.removed_until).is_some_and(|until| Instant::now() < until)
    }

    /// Injects a failure of all controllers.
    pub fn fail_controllers(&self, fault: ControllerFault) {
        if let ControllerFault::Removed { for_ms } = fault {
            *locked(&self.removed_until) = Some(Instant::now() + Duration::from_millis(for_ms));
        }
        let controllers: Vec<_> = locked(&self.controllers).values().cloned().collect();
        for controller in &controllers {
            let mut controller = locked(controller);
            match fault {
                ControllerFault::Fatal => controller.fail(),
                ControllerFault::Reset | ControllerFault::Removed { .. } => controller.lose(),
            }
        }
        // Admin queues of failed controllers stay, and report the failure; I/O queues end with
        // their next command.
        if fault != ControllerFault::Fatal {
            locked(&self.cuts).iter().for_each(|cut| cut(None));
        }
    }

    /// Ends the connections of a controller's I/O queues, because it was reset.
    pub(super) fn cut_queues_of(&self, controller: u16) {
        locked(&self.cuts).iter().for_each(|cut| cut(Some(controller)));
    }

    /// Creates a controller for a host, or finds the one that an I/O queue belongs to.
    ///
    /// # Errors
    /// Fails if the parameters do not match this subsystem or its controllers.
    pub(super) fn connect(
        &self,
        connect: &Connect,
        now: Nanos,
    ) -> Result<Arc<Mutex<Controller>>, ConnectRefusal> {
        let is_discovery = connect.subsystem == DISCOVERY_NQN;
        if !is_discovery && connect.subsystem != self.nqn() {
            return Err(ConnectRefusal::data(Connect::SUBSYSTEM_AT));
        }
        if connect.queue > 0 {
            return self.find(connect);
        }
        if connect.controller != Connect::ANY_CONTROLLER {
            return Err(ConnectRefusal::data(Connect::CONTROLLER_AT));
        }
        let kind = if is_discovery { Purpose::Discovery } else { Purpose::Io };
        let is_unknown = |secrets: &Secrets| !secrets.knows(&connect.host.name);
        if kind == Purpose::Io && self.authentication.as_ref().is_some_and(is_unknown) {
            return Err(Status::CONNECT_HOST.into());
        }
        Ok(self.admit(kind, connect.host.clone(), (connect.keep_alive_ms, now))?)
    }

    /// Makes a controller for a host that came at `now`, with its Keep Alive Timeout in
    /// milliseconds, 0 for none.
    ///
    /// # Errors
    /// Fails if there are 256 controllers.
    pub(super) fn admit(
        &self,
        kind: Purpose,
        host: Host,
        since: (u32, Nanos),
    ) -> Result<Arc<Mutex<Controller>>, Status> {
        let (id, shown) = self.drive.register(kind, &host).ok_or(Status::CONNECT_BUSY)?;
        let operations = self.drive.operations();
        let is_modelled = self.pace.is_some();
        let repertoire = Repertoire::new((kind, host.transport), operations, is_modelled);
        let controller = Controller::new((id, shown), kind, repertoire, host, since);
        let controller = Arc::new(Mutex::new(controller));
        locked(&self.controllers).insert(id, Arc::clone(&controller));
        Ok(controller)
    }

    /// Finds the controller that an I/O queue belongs to, and adds the queue to it.
    fn find(&self, connect: &Connect) -> Result<Arc<Mutex<Controller>>, ConnectRefusal> {
        let found = self.controller(connect.controller);
        let controller = found.ok_or_else(|| ConnectRefusal::data(Connect::CONTROLLER_AT))?;
        locked(&controller).connect_queue(connect)?;
        Ok(controller)
    }

    /// Removes a controller whose admin queue is gone.
    pub(super) fn leave(&self, controller: u16) {
        let Some(gone) = self.controller(controller) else { return };
        // First, so that no queue that comes meanwhile is served.
        let channel = {
            let mut gone = locked(&gone);
            gone.end();
            gone.security_channel()
        };
        self.drive.operations().security_end(channel);
        locked(&self.controllers).remove(&controller);
        // Its identifier is given again only after it is in no map.
        self.drive.remove(controller);
    }

    fn controller(&self, id: u16) -> Option<Arc<Mutex<Controller>>> {
        locked(&self.controllers).get(&id).map(Arc::clone)
    }
}

impl fmt::Debug for Subsystem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Subsystem").field("nqn", &self.nqn()).finish_non_exhaustive()
    }
}

/// An export as a namespace.
fn fixed(id: u32, export: &Export, block_bytes: u64) -> Result<ServedNamespace, SubsystemError> {
    let (size, origin) = (export.device.size(), export.device.origin());
    if !size.is_multiple_of(block_bytes) || !origin.is_multiple_of(block_bytes) {
        let name = export.name.clone();
        return Err(SubsystemError::Unaligned { name, size, origin, block_bytes });
    }
    Ok(ServedNamespace {
        id,
        name: export.name.clone(),
        device: Arc::clone(&export.device),
        block_bytes: u32::try_from(block_bytes).expect("it was checked"),
        is_read_only: export.is_read_only,
        is_private: false,
        fence: Arc::default(),
    })
}
