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
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use blockio::Nanos;
use device::{Administration, Device, Identity};

use super::controller::{Controller, Host, Purpose};
use super::fabrics::{Connect, ConnectRefusal};
use super::status::Status;
use super::wire::{uuid, uuid_text};
use crate::{Export, Exports};

/// NQN of every discovery subsystem ([nvme-base-2021], "NVMe Qualified Names").
pub(super) const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";
/// Maximum number of controllers; further hosts are refused with Connect Controller Busy.
const CONTROLLERS_MAX: usize = 256;
/// Largest identifier of a controller ([nvme-base-2021], "CNTLID").
const CONTROLLER_ID_MAX: u16 = 0xFFEF;
/// Minimum size of a logical block in bytes, the sector of devices.
const BLOCK_BYTES_MIN: u64 = 512;

/// An NVM subsystem that hosts connect to.
pub struct Subsystem {
    nqn: String,
    identity: Identity,
    administration: Arc<dyn Administration>,
    namespaces: Vec<Namespace>,
    state: Mutex<SubsystemState>,
    /// Number of entries ever written to error logs.
    errors: AtomicU64,
}

#[derive(Default)]
struct SubsystemState {
    /// Controllers by identifier, with the type of each.
    controllers: BTreeMap<u16, (Purpose, Arc<Mutex<Controller>>)>,
    /// Identifier that was assigned last.
    last: u16,
}

/// A namespace: an export in logical blocks.
#[derive(Debug)]
pub(super) struct Namespace {
    pub(super) export: Arc<Export>,
    /// Bytes of a logical block, as a power of two.
    pub(super) block_shift: u8,
    pub(super) uuid: [u8; 16],
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

impl Namespace {
    fn of(export: &Arc<Export>, block_bytes: u64, drive: u64) -> Result<Self, SubsystemError> {
        let (size, origin) = (export.device.size(), export.device.origin());
        if !size.is_multiple_of(block_bytes) || !origin.is_multiple_of(block_bytes) {
            let name = export.name.clone();
            return Err(SubsystemError::Unaligned { name, size, origin, block_bytes });
        }
        let block_shift = u8::try_from(block_bytes.ilog2()).expect("a power of two");
        let uuid = uuid(drive, &format!("namespace {}", export.name));
        Ok(Self { export: Arc::clone(export), block_shift, uuid })
    }

    pub(super) fn device(&self) -> &dyn Device {
        self.export.device.as_ref()
    }

    /// Number of logical blocks; a partial block at the end of a resized device is not counted.
    pub(super) fn blocks(&self) -> u64 {
        self.device().size() >> self.block_shift
    }
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
        let identity = administration.identity();
        let namespaces = exports.iter().map(|it| Namespace::of(it, block_bytes, identity.number));
        let namespaces = namespaces.collect::<Result<_, _>>()?;
        let uuid = uuid_text(uuid(identity.number, "subsystem"));
        Ok(Self {
            nqn: format!("nqn.2014-08.org.nvmexpress:uuid:{uuid}"),
            identity,
            administration,
            namespaces,
            state: Mutex::default(),
            errors: AtomicU64::new(0),
        })
    }

    /// Returns the NQN by which hosts connect to it.
    pub fn nqn(&self) -> &str {
        &self.nqn
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(super) fn administration(&self) -> &dyn Administration {
        self.administration.as_ref()
    }

    pub(super) fn namespaces(&self) -> &[Namespace] {
        &self.namespaces
    }

    /// Number of namespaces, which is also the largest Namespace Identifier.
    pub(super) fn namespace_count(&self) -> u32 {
        u32::try_from(self.namespaces.len()).expect("far fewer exports")
    }

    /// The namespace with an identifier, which counts from 1.
    pub(super) fn namespace(&self, id: u32) -> Option<&Namespace> {
        self.namespaces.get(usize::try_from(id.checked_sub(1)?).ok()?)
    }

    /// Identifiers of the controllers for I/O, in ascending order.
    pub(super) fn controller_ids(&self) -> Vec<u16> {
        let state = self.lock();
        let of_io = state.controllers.iter().filter(|(_, (kind, _))| *kind == Purpose::Io);
        of_io.map(|(id, _)| *id).collect()
    }

    /// Returns the number of the next error to log, from 1.
    pub(super) fn next_error(&self) -> u64 {
        self.errors.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Number of errors logged so far by all controllers.
    pub(super) fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
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
        if !is_discovery && connect.subsystem != self.nqn {
            return Err(ConnectRefusal::data(Connect::SUBSYSTEM_AT));
        }
        if connect.queue > 0 {
            return self.find(connect);
        }
        if connect.controller != Connect::ANY_CONTROLLER {
            return Err(ConnectRefusal::data(Connect::CONTROLLER_AT));
        }
        let kind = if is_discovery { Purpose::Discovery } else { Purpose::Io };
        Ok(self.admit(kind, connect.host.clone(), (connect.keep_alive_ms, now))?)
    }

    /// Makes a controller for a host that came at `now`, with its Keep Alive Timeout in
    /// milliseconds, 0 for none.
    ///
    /// # Errors
    /// Fails if there are as many as may be.
    pub(super) fn admit(
        &self,
        kind: Purpose,
        host: Host,
        since: (u32, Nanos),
    ) -> Result<Arc<Mutex<Controller>>, Status> {
        let mut state = self.lock();
        if state.controllers.len() >= CONTROLLERS_MAX {
            return Err(Status::CONNECT_BUSY);
        }
        let id = state.next_id();
        let controller = Arc::new(Mutex::new(Controller::new(id, kind, host, since)));
        state.controllers.insert(id, (kind, Arc::clone(&controller)));
        Ok(controller)
    }

    /// Finds the controller that an I/O queue belongs to, and adds the queue to it.
    fn find(&self, connect: &Connect) -> Result<Arc<Mutex<Controller>>, ConnectRefusal> {
        let found = self.lock().controllers.get(&connect.controller).map(|(_, it)| Arc::clone(it));
        let controller = found.ok_or_else(|| ConnectRefusal::data(Connect::CONTROLLER_AT))?;
        locked(&controller).connect_queue(connect)?;
        Ok(controller)
    }

    /// Removes a queue whose connection is gone; the admin queue takes its controller with it.
    pub(super) fn leave(&self, controller: u16, queue: u16) {
        let mut state = self.lock();
        if queue == 0 {
            let gone = state.controllers.remove(&controller);
            drop(state);
            if let Some((_, gone)) = gone {
                locked(&gone).end();
            }
        } else {
            let found = state.controllers.get(&controller).map(|(_, it)| Arc::clone(it));
            drop(state);
            if let Some(found) = found {
                locked(&found).remove_queue(queue);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, SubsystemState> {
        locked(&self.state)
    }
}

impl SubsystemState {
    /// An unused controller identifier, chosen so that reuse comes as late as possible.
    fn next_id(&mut self) -> u16 {
        loop {
            self.last = if self.last >= CONTROLLER_ID_MAX { 1 } else { self.last + 1 };
            if !self.controllers.contains_key(&self.last) {
                return self.last;
            }
        }
    }
}

impl fmt::Debug for Subsystem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let namespaces = self.namespaces.len();
        let mut shown = out.debug_struct("Subsystem");
        shown.field("nqn", &self.nqn).field("namespaces", &namespaces).finish_non_exhaustive()
    }
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
