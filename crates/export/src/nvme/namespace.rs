//! Namespaces: all of the drive, and those that are attached to a host.
//!
//! Attachments are of hosts, not of controllers: a controller is made whenever its host comes
//! (the dynamic model), and sees what was attached to its host before. Namespaces that exist when
//! the server starts are attached to every host; those that are created later, to none at first.
//! Attachments last as long as the server.
//!
//! A private namespace has one controller at a time. Once that is gone, the next controller of its
//! host gets it, unless another was attached meanwhile; of one that exists when the server starts,
//! the next controller of any host, until a host attaches it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use device::{Device, Operations, ServedNamespace};

use super::lock::locked;
use super::reservation::ReservationGuard;
use super::wire::{eui64, nguid, uuid};

/// Namespace Identifier that means all of them.
pub(super) const ALL_NAMESPACES: u32 = u32::MAX;

/// Most hosts that the attachments of a namespace name.
const HOSTS_MAX: usize = 1024;

/// A namespace in logical blocks.
#[derive(Debug)]
pub(super) struct Namespace {
    pub(super) id: u32,
    device: Arc<dyn Device>,
    /// Bytes of a logical block, as a power of two.
    pub(super) block_shift: u8,
    pub(super) uuid: [u8; 16],
    pub(super) nguid: [u8; 16],
    pub(super) eui64: [u8; 8],
    /// True if commands that change data are refused.
    pub(super) is_read_only: bool,
    /// True if one controller at a time has it.
    pub(super) is_private: bool,
    reservations: Arc<ReservationGuard>,
}

/// Namespaces by identifier.
#[derive(Debug, Default)]
pub(super) struct Namespaces(BTreeMap<u32, Arc<Namespace>>);

/// A controller for I/O, and the NQN of its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostController {
    pub(super) id: u16,
    pub(super) host: String,
}

/// Attachment of a namespace to hosts.
#[derive(Debug)]
enum Attachment {
    Shared {
        /// True if it is attached to every host but those in `hosts`; false if to those alone.
        is_open: bool,
        hosts: BTreeSet<String>,
    },
    Private {
        /// Host whose next controller gets it; none for any.
        host: Option<String>,
        /// Identifier of the controller that has it.
        controller: Option<u16>,
    },
}

/// Namespaces of a drive, and the hosts that they are attached to.
#[derive(Debug)]
pub(super) struct Directory {
    operations: Arc<dyn Operations>,
    /// Version of the drive's namespaces with what they are.
    known: RwLock<(u64, Arc<Namespaces>)>,
    attachments: Mutex<Attachments>,
    /// Guards of the namespaces; held while they are looked at anew.
    guards: Mutex<BTreeMap<u32, GuardedNamespace>>,
    /// Counts changes of attachments.
    version: AtomicU64,
}

/// A namespace that is there, by its device, with its guard: another of its identifier later is no
/// longer reserved.
#[derive(Debug)]
struct GuardedNamespace {
    device: Arc<dyn Device>,
    guard: Arc<ReservationGuard>,
}

/// Attachments by namespace.
#[derive(Debug, Default)]
struct Attachments(BTreeMap<u32, Attachment>);

/// Reason why an attachment was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttachmentError {
    /// A host is attached, or detached, as it is asked for.
    IsSo,
    /// More than [`HOSTS_MAX`] hosts would be named.
    TooManyHosts,
    /// A private namespace would have more than one controller.
    IsPrivate,
}

/// Namespaces that were attached to a host when a controller or a queue last looked.
#[derive(Debug, Default)]
pub(super) struct View {
    version: Option<(u64, u64)>,
    namespaces: Arc<Namespaces>,
}

impl Namespace {
    fn of(served: ServedNamespace, drive: u64, reservations: Arc<ReservationGuard>) -> Self {
        let ServedNamespace { id, name, device, block_bytes, is_read_only, is_private, .. } =
            served;
        assert!([512, 4096].contains(&block_bytes), "blocks of {block_bytes} bytes");
        let block_shift = u8::try_from(block_bytes.ilog2()).expect("a power of two");
        let part = format!("namespace {name}");
        let (uuid, nguid, eui64) = (uuid(drive, &part), nguid(drive, &part), eui64(drive, &part));
        Self { id, device, block_shift, uuid, nguid, eui64, is_read_only, is_private, reservations }
    }

    pub(super) fn device(&self) -> &dyn Device {
        self.device.as_ref()
    }

    /// Its reservations, which are the same as long as it is there.
    pub(super) const fn reservations(&self) -> &Arc<ReservationGuard> {
        &self.reservations
    }

    /// Logical blocks; a remainder of a device that was resized meanwhile is left out.
    pub(super) fn blocks(&self) -> u64 {
        self.device().size() >> self.block_shift
    }
}

impl Namespaces {
    pub(super) fn get(&self, id: u32) -> Option<&Arc<Namespace>> {
        self.0.get(&id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Namespace>> {
        self.0.values()
    }
}

impl Directory {
    pub(super) fn new(operations: Arc<dyn Operations>) -> Self {
        let (known, attachments, guards) = Default::default();
        let own = Self { operations, known, attachments, guards, version: AtomicU64::new(0) };
        let there = own.all();
        let open = |is_private| {
            if is_private {
                return Attachment::Private { host: None, controller: None };
            }
            Attachment::Shared { is_open: true, hosts: BTreeSet::new() }
        };
        let attachments = there.iter().map(|it| (it.id, open(it.is_private))).collect();
        *locked(&own.attachments) = Attachments(attachments);
        own
    }

    /// The namespaces of the drive.
    pub(super) fn all(&self) -> Arc<Namespaces> {
        let version = self.operations.namespaces_version();
        {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            if known.0 == version && !known.1.0.is_empty() {
                return Arc::clone(&known.1);
            }
        }
        let drive = self.operations.identity().number;
        let mut guards = locked(&self.guards);
        let version = self.operations.namespaces_version();
        let served = self.operations.namespaces();
        guards.retain(|id, _| served.iter().any(|it| it.id == *id));
        let namespace = |it: ServedNamespace| {
            let guard = self.guard(&mut guards, &it);
            (it.id, Arc::new(Namespace::of(it, drive, guard)))
        };
        let all = Arc::new(Namespaces(served.into_iter().map(namespace).collect()));
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        *known = (version, Arc::clone(&all));
        all
    }

    /// The guard of a namespace: another one if the namespace is another.
    fn guard(
        &self,
        guards: &mut BTreeMap<u32, GuardedNamespace>,
        served: &ServedNamespace,
    ) -> Arc<ReservationGuard> {
        let known = guards.get(&served.id).filter(|it| Arc::ptr_eq(&it.device, &served.device));
        if let Some(known) = known {
            return Arc::clone(&known.guard);
        }
        let fence = Arc::clone(&served.fence);
        let guard = Arc::new(ReservationGuard::new(served.id, fence, self.operations.as_ref()));
        let (device, own) = (Arc::clone(&served.device), Arc::clone(&guard));
        guards.insert(served.id, GuardedNamespace { device, guard: own });
        guard
    }

    /// The namespaces that are attached to a controller now; `view` is brought up to date.
    pub(super) fn refresh<'a>(&self, view: &'a mut View, of: &HostController) -> &'a Namespaces {
        let own = self.version.load(Ordering::Acquire);
        let version = (self.operations.namespaces_version(), own);
        if view.version != Some(version) {
            let all = self.all();
            let attachments = locked(&self.attachments);
            let attached = all.0.iter().filter(|(id, _)| attachments.is_attached(**id, of));
            let attached = attached.map(|(id, it)| (*id, Arc::clone(it))).collect();
            (view.version, view.namespaces) = (Some(version), Arc::new(Namespaces(attached)));
        }
        &view.namespaces
    }

    /// True if a namespace is attached to a controller.
    pub(super) fn is_attached(&self, id: u32, of: &HostController) -> bool {
        locked(&self.attachments).is_attached(id, of)
    }

    /// Attaches a namespace to the hosts of controllers, or detaches it; a private one is that of
    /// the controller.
    ///
    /// # Errors
    /// Fails if that changes nothing for one of them, or the namespace has too many hosts; then
    /// nothing has changed.
    pub(super) fn attach(
        &self,
        namespace: &Namespace,
        controllers: &[HostController],
        is_attached: bool,
    ) -> Result<(), AttachmentError> {
        let mut attachments = locked(&self.attachments);
        if namespace.is_private {
            attachments.attach_private(namespace.id, controllers, is_attached)?;
        } else {
            attachments.attach(namespace.id, controllers, is_attached)?;
        }
        self.version.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Gives a controller that came the private namespaces of its host that no other has.
    pub(super) fn admit(&self, new: &HostController) {
        for attachment in locked(&self.attachments).0.values_mut() {
            if let Attachment::Private { host, controller: controller @ None } = attachment
                && host.as_ref().is_none_or(|host| *host == new.host)
            {
                // One for any host stays so: who comes first may fail to authenticate.
                *controller = Some(new.id);
            }
        }
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    /// Takes private namespaces from a controller that is gone.
    pub(super) fn release(&self, id: u16) {
        for attachment in locked(&self.attachments).0.values_mut() {
            if let Attachment::Private { controller, .. } = attachment {
                controller.take_if(|it| *it == id);
            }
        }
    }

    /// Forgets the attachments of a namespace that was created or deleted.
    pub(super) fn forget(&self, id: u32) {
        locked(&self.attachments).0.remove(&id);
        self.version.fetch_add(1, Ordering::AcqRel);
    }
}

impl Attachments {
    fn is_attached(&self, id: u32, of: &HostController) -> bool {
        match self.0.get(&id) {
            Some(Attachment::Shared { is_open, hosts }) => *is_open != hosts.contains(&of.host),
            Some(Attachment::Private { controller, .. }) => *controller == Some(of.id),
            None => false,
        }
    }

    fn attach(
        &mut self,
        id: u32,
        controllers: &[HostController],
        is_attached: bool,
    ) -> Result<(), AttachmentError> {
        if controllers.iter().any(|of| self.is_attached(id, of) == is_attached) {
            return Err(AttachmentError::IsSo);
        }
        let (is_open, mut hosts) = match self.0.get(&id) {
            Some(Attachment::Shared { is_open, hosts }) => (*is_open, hosts.clone()),
            _ => (false, BTreeSet::new()),
        };
        // Two controllers may be of one host.
        let changed: BTreeSet<&String> = controllers.iter().map(|it| &it.host).collect();
        if is_open == is_attached {
            hosts.retain(|host| !changed.contains(host));
        } else if hosts.len() + changed.len() > HOSTS_MAX {
            return Err(AttachmentError::TooManyHosts);
        } else {
            hosts.extend(changed.into_iter().cloned());
        }
        self.0.insert(id, Attachment::Shared { is_open, hosts });
        Ok(())
    }

    fn attach_private(
        &mut self,
        id: u32,
        controllers: &[HostController],
        is_attached: bool,
    ) -> Result<(), AttachmentError> {
        let is_own = |of: &HostController| self.is_attached(id, of);
        let is_taken =
            matches!(self.0.get(&id), Some(Attachment::Private { controller: Some(_), .. }));
        match (is_attached, controllers) {
            (true, _) if controllers.iter().any(is_own) => Err(AttachmentError::IsSo),
            (true, [HostController { id: controller, host }]) if !is_taken => {
                let (host, controller) = (Some(host.clone()), Some(*controller));
                self.0.insert(id, Attachment::Private { host, controller });
                Ok(())
            }
            (true, _) => Err(AttachmentError::IsPrivate),
            (false, _) if controllers.iter().all(is_own) => {
                self.0.remove(&id);
                Ok(())
            }
            (false, _) => Err(AttachmentError::IsSo),
        }
    }
}

impl View {
    /// The namespaces as of the last look.
    pub(super) fn namespaces(&self) -> &Namespaces {
        &self.namespaces
    }

    /// A share of the namespaces, for a caller that keeps them beyond the next look.
    pub(super) fn shared(&self) -> Arc<Namespaces> {
        Arc::clone(&self.namespaces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attachments_name_a_limited_number_of_hosts() {
        let host = |number: usize| {
            let host = format!("nqn.2014-08.org.nvmexpress:uuid:{number}");
            vec![HostController { id: 1, host }]
        };
        for is_open in [false, true] {
            let there = Attachment::Shared { is_open, hosts: BTreeSet::new() };
            let mut attachments = Attachments(BTreeMap::from([(1, there)]));
            let is_new = !is_open;
            for number in 0..HOSTS_MAX {
                assert_eq!(attachments.attach(1, &host(number), is_new), Ok(()));
            }
            let next = host(HOSTS_MAX);
            assert_eq!(attachments.attach(1, &next, is_new), Err(AttachmentError::TooManyHosts));
            assert_eq!(attachments.is_attached(1, &next[0]), is_open, "nothing has changed");
            assert_eq!(attachments.attach(1, &host(7), is_new), Err(AttachmentError::IsSo));
            attachments.attach(1, &host(7), is_open).unwrap();
            assert_eq!(attachments.attach(1, &next, is_new), Ok(()));
        }
    }
}
