//! The drive of a subsystem, as commands of its controllers see it: identity, namespaces,
//! operations, and the controllers that hosts have.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use device::operator::NAMESPACES_MAX;
use device::{Identity, Operations};

use super::counters::ControllerSnapshot;
use super::host::{Host, Purpose};
use super::lock::locked;
use super::namespace::{Directory, HostController};
use super::reservation::{Notification, ReservingHost};
use super::wire::{uuid, uuid_text};

/// NQN of every discovery subsystem ([nvme-base-2021], "NVMe Qualified Names").
pub(super) const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";
/// Maximum number of controllers; further hosts are refused with Connect Controller Busy.
const CONTROLLERS_MAX: usize = 256;
/// Largest identifier of a controller ([nvme-base-2021], "CNTLID").
const CONTROLLER_ID_MAX: u16 = 0xFFEF;

/// The drive of a subsystem.
pub(super) struct NvmeDrive {
    nqn: String,
    identity: Identity,
    operations: Arc<dyn Operations>,
    directory: Directory,
    registry: Mutex<Registry>,
    /// Ports of the subsystem, numbered from 1: the addresses of those for fabrics.
    ports: Mutex<Vec<Option<SocketAddr>>>,
    /// Number of entries ever written to error logs.
    errors: AtomicU64,
    /// Endurance Group Event Configuration of the only group; its events are those of SMART.
    endurance_events: AtomicU32,
    /// Sanitize Config: a sanitize that is to leave blocks allocated is carried out all the same
    /// (NODRM).
    answers_no_deallocate: AtomicBool,
}

/// Controllers that hosts have.
#[derive(Default)]
struct Registry {
    /// Purpose and status of each, by identifier.
    controllers: BTreeMap<u16, (Purpose, Arc<ControllerSnapshot>)>,
    /// Identifier given last.
    last: u16,
}

impl NvmeDrive {
    pub(super) fn new(operations: Arc<dyn Operations>) -> Self {
        let identity = operations.identity();
        let uuid = uuid_text(uuid(identity.number, "subsystem"));
        Self {
            nqn: format!("nqn.2014-08.org.nvmexpress:uuid:{uuid}"),
            identity,
            directory: Directory::new(Arc::clone(&operations)),
            operations,
            registry: Mutex::default(),
            ports: Mutex::default(),
            errors: AtomicU64::new(0),
            endurance_events: AtomicU32::new(0),
            answers_no_deallocate: AtomicBool::new(false),
        }
    }

    /// NQN by which hosts connect to the subsystem.
    pub(super) fn nqn(&self) -> &str {
        &self.nqn
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(super) fn operations(&self) -> &dyn Operations {
        self.operations.as_ref()
    }

    /// The largest identifier that a namespace may have.
    pub(super) fn namespace_max(&self) -> u32 {
        let all = self.directory.all();
        let last = all.iter().map(|it| it.id).max().unwrap_or(1);
        if self.operations.is_operable() { last.max(NAMESPACES_MAX) } else { last }
    }

    /// Namespaces, and the hosts that they are attached to.
    pub(super) const fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Registers a controller for `host`. Returns its identifier and its status; none if there are
    /// 256 controllers.
    pub(super) fn register(
        &self,
        kind: Purpose,
        host: &Host,
    ) -> Option<(u16, Arc<ControllerSnapshot>)> {
        let mut registry = locked(&self.registry);
        if registry.controllers.len() >= CONTROLLERS_MAX {
            return None;
        }
        let id = registry.next_id();
        let shown = Arc::new(ControllerSnapshot::new(id, host));
        registry.controllers.insert(id, (kind, Arc::clone(&shown)));
        if kind == Purpose::Io {
            self.directory.admit(&HostController { id, host: host.name.clone() });
        }
        Some((id, shown))
    }

    /// Removes a controller that is gone.
    pub(super) fn remove(&self, controller: u16) {
        self.directory.release(controller);
        self.forget_host(ReservingHost::Anonymous { controller });
        locked(&self.registry).controllers.remove(&controller);
        // Its host may have come again before it was gone.
        for (id, shown) in self.of_io() {
            self.directory.admit(&HostController { id, host: shown.host().to_owned() });
        }
    }

    /// Adds notices about a namespace to the logs of the controllers of their hosts.
    pub(super) fn notify(&self, namespace: u32, told: &[Notification]) {
        if told.is_empty() {
            return;
        }
        for (id, shown) in self.of_io() {
            let of = HostController { id, host: shown.host().to_owned() };
            let host = shown.identity().host;
            let own = told.iter().filter(|it| it.host == host);
            if self.directory.is_attached(namespace, &of) {
                own.for_each(|it| shown.notifications().add(it.notice, namespace));
            }
        }
    }

    /// Removes the registrations of a host without an identity, which is gone with its controller
    /// or a reset.
    pub(super) fn forget_host(&self, host: ReservingHost) {
        if matches!(host, ReservingHost::Identified(_)) {
            return;
        }
        for namespace in self.directory.all().iter() {
            let guard = namespace.reservations();
            let told = guard.forget(self.operations(), host);
            // It was not stored, so that storing cannot fail.
            self.notify(guard.namespace(), &told.unwrap_or_default());
        }
    }

    /// Status of the controllers for I/O, in ascending order of their identifiers.
    pub(super) fn controllers(&self) -> Vec<status::NvmeController> {
        self.of_io().into_iter().map(|(_, shown)| shown.report()).collect()
    }

    /// Each controller among `ids` for I/O with its host; none where one is no such controller.
    pub(super) fn host_controllers(&self, ids: &[u16]) -> Option<Vec<HostController>> {
        let of_io: BTreeMap<u16, Arc<ControllerSnapshot>> = self.of_io().into_iter().collect();
        let found = |id: &u16| {
            let host = of_io.get(id)?.host().to_owned();
            Some(HostController { id: *id, host })
        };
        ids.iter().map(found).collect()
    }

    /// Identifiers of the controllers for I/O, in ascending order.
    pub(super) fn controller_ids(&self) -> Vec<u16> {
        self.of_io().into_iter().map(|(id, _)| id).collect()
    }

    fn of_io(&self) -> Vec<(u16, Arc<ControllerSnapshot>)> {
        let registry = locked(&self.registry);
        let of_io = registry.controllers.iter().filter(|(_, (kind, _))| *kind == Purpose::Io);
        of_io.map(|(id, (_, shown))| (*id, Arc::clone(shown))).collect()
    }

    /// Returns the number of the next error to log, from 1.
    pub(super) fn next_error(&self) -> u64 {
        self.errors.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Adds a port, with its address where it is one for fabrics.
    pub(super) fn add_port(&self, address: Option<SocketAddr>) {
        locked(&self.ports).push(address);
    }

    /// The ports in the order of their numbers, from 1 on.
    pub(super) fn ports(&self) -> Vec<Option<SocketAddr>> {
        locked(&self.ports).clone()
    }

    pub(super) fn endurance_events(&self) -> u32 {
        self.endurance_events.load(Ordering::Relaxed)
    }

    pub(super) fn set_endurance_events(&self, value: u32) {
        self.endurance_events.store(value, Ordering::Relaxed);
    }

    /// True if a sanitize that is to leave blocks allocated is carried out all the same.
    pub(super) fn answers_no_deallocate(&self) -> bool {
        self.answers_no_deallocate.load(Ordering::Relaxed)
    }

    pub(super) fn answer_no_deallocate(&self, does: bool) {
        self.answers_no_deallocate.store(does, Ordering::Relaxed);
    }

    /// Number of errors logged so far by all controllers.
    pub(super) fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }
}

impl Registry {
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
