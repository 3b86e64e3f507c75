//! A served drive as the backing of its operator, and as NVMe hosts see it.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Weak};

use export::nvme::{ControllerFault, Subsystem, stored_reservations};
use live::fault_injection::Fault;
use live::operator::{Backing, Operator, PersistentState};
use live::{
    Device, DriveEvent, EventKind, InjectedError, InjectedErrorKind, Meter, MeteredDevice,
    OpalDrive, Operations as _, Protection, SanitizeState,
};
use status::{CommandCounts, Commands, NamespaceTraffic, NvmeController, Refusal};

use super::subject::Subject;
use super::{DriveService, InjectedWear, event_log, locked};

/// Kinds of events as their log has them.
const KINDS: [(EventKind, &str); 6] = [
    (EventKind::Started, "started"),
    (EventKind::Namespace, "namespace"),
    (EventKind::FormatBegan, "format-began"),
    (EventKind::FormatEnded, "format-ended"),
    (EventKind::SanitizeBegan, "sanitize-began"),
    (EventKind::SanitizeEnded, "sanitize-ended"),
];

/// Length of an injected latency spike, and an injected critical temperature.
const LATENCY_SPIKE_MS: u64 = 1000;
const CRITICAL_CELSIUS: i16 = 90;

impl Backing for DriveService {
    fn erase(&self, go_on: &mut dyn FnMut(u64, u64) -> bool) -> Result<(), String> {
        match &self.subject {
            Subject::Volume(volume) => {
                live::purge_volume(&volume.folder, &volume.drive, go_on)
                    .map_err(|error| error.to_string())?;
                // Of the drive alone: that of the service would ask the operator, which waits for
                // this.
                let status = live::describe_status(volume.drive.status(), &volume.folder);
                status.not_erased().map_or(Ok(()), Err)
            }
            Subject::Memory { device, .. } => {
                go_on(0, 1);
                let trimmed = device.trim(0, device.size(), live::Durability::Durable);
                trimmed.map_err(|error| error.to_string())
            }
        }
    }

    fn erases_keys(&self) -> bool {
        self.subject.volume().is_some_and(|volume| volume.drive.is_encrypted())
    }

    fn verify(&self, go_on: &mut dyn FnMut(u64, u64) -> bool) -> Result<(), String> {
        let Some(volume) = self.subject.volume() else { return Ok(()) };
        // A scrub that is running verifies everything, too.
        if volume.drive.status().maintenance.scrub.is_some_and(|scrub| scrub.is_running) {
            return Ok(());
        }
        let scrubbed = volume.drive.scrub_while(true, go_on).map_err(|error| error.to_string())?;
        match scrubbed.lost_lbas.first() {
            Some(lba) => Err(format!("sector {lba} is lost")),
            None => Ok(()),
        }
    }

    fn keep(&self, kept: &PersistentState) -> Result<(), String> {
        let Some(volume) = self.subject.volume() else { return Ok(()) };
        live::keep_operations(&volume.folder, kept).map_err(|error| error.to_string())
    }

    fn is_durable(&self) -> bool {
        self.subject.volume().is_some()
    }

    fn opal(&self) -> Result<Option<OpalDrive>, String> {
        let Some(volume) = self.subject.volume() else { return Ok(None) };
        live::open_opal(&volume.folder).map_err(|error| error.to_string())
    }

    /// Both meters stand before the gate of the namespace, which refuses commands as well.
    fn client_device(&self, id: u32, device: Arc<dyn Device>) -> Arc<dyn Device> {
        let meter = Arc::<Meter>::default();
        locked(&self.meters).insert(id, Arc::clone(&meter));
        let device = Arc::new(MeteredDevice::new(device, Arc::clone(&self.meter)));
        Arc::new(MeteredDevice::new(device, meter))
    }

    fn injects_errors(&self) -> bool {
        self.injector.is_some()
    }

    fn inject_errors(&self, errors: &[InjectedError]) -> Result<(), String> {
        let injector = self.injector.as_ref().ok_or("the server has no --fault-injection")?;
        let operator = self.operator.get().and_then(Weak::upgrade);
        let namespaces: Vec<u32> =
            operator.iter().flat_map(|it| it.namespaces()).map(|it| it.id).collect();
        let faults = |it: &InjectedError| (it.after_reads, faults_of(it.kind, &namespaces));
        let mut injected = locked(&self.injected_errors);
        injector.order(errors.iter().map(faults));
        errors.clone_into(&mut injected);
        Ok(())
    }

    fn injected_errors(&self) -> Vec<InjectedError> {
        let Some(injector) = &self.injector else { return Vec::new() };
        let injected = locked(&self.injected_errors);
        injector.pending_orders().into_iter().filter_map(|it| injected.get(it).copied()).collect()
    }

    fn note(&self, kind: EventKind, text: String) {
        tracing::info!(drive = self.number(), "{text}");
        self.event_log.note_as(word(kind), text);
    }

    fn now_unix_ms(&self) -> u64 {
        event_log::now_unix_ms()
    }

    fn events(&self) -> Vec<DriveEvent> {
        let told = self.event_log.told().into_iter();
        told.map(|record| DriveEvent {
            at_unix_ms: record.at_unix_ms,
            kind: kind_of(&record.kind),
            text: record.what,
        })
        .collect()
    }

    fn telemetry(&self) -> Vec<u8> {
        // A status has only numbers, texts and lists, which cannot fail.
        serde_json::to_vec_pretty(&self.status()).unwrap_or_default()
    }
}

/// The faults that show an error. Those of the controller and of its memory are one to hosts: it
/// fails until it is reset.
fn faults_of(error: InjectedErrorKind, namespaces: &[u32]) -> Vec<Fault> {
    let fault = match error {
        InjectedErrorKind::ControllerHang
        | InjectedErrorKind::NandHang
        | InjectedErrorKind::FirmwareError
        | InjectedErrorKind::CriticalMemoryCorruption
        | InjectedErrorKind::MemoryCorruption
        | InjectedErrorKind::NandCorruption
        | InjectedErrorKind::SramCorruption
        | InjectedErrorKind::HardwareMalfunction => Fault::FailControllers {},
        InjectedErrorKind::PlpDefect => Fault::FailPlp {},
        InjectedErrorKind::NoSpares => {
            let worn = |id: &u32| Fault::FailWrites { namespace: *id };
            return namespaces.iter().map(worn).collect();
        }
        InjectedErrorKind::LatencySpike => Fault::Stall { stall_ms: LATENCY_SPIKE_MS },
        InjectedErrorKind::CommandFailure => Fault::FailReads { commands: 1 },
        InjectedErrorKind::CriticalTemperature => Fault::Heat { celsius: CRITICAL_CELSIUS },
        InjectedErrorKind::DieOffline => Fault::FailDie { die: 0 },
    };
    vec![fault]
}

fn word(kind: EventKind) -> &'static str {
    KINDS.iter().find(|(of, _)| *of == kind).map_or("", |(_, word)| word)
}

fn kind_of(word: &str) -> EventKind {
    KINDS.iter().find(|(_, of)| *of == word).map_or(EventKind::Other, |(kind, _)| *kind)
}

impl DriveService {
    /// Sets the operator for the commands of hosts.
    pub fn operate_by(&self, operator: &Arc<Operator>) {
        // It is set once, before the first client.
        let _ = self.operator.set(Arc::downgrade(operator));
    }

    /// Sets the subsystem that NVMe hosts connect to.
    pub fn show_to_hosts(&self, subsystem: &Arc<Subsystem>) {
        // It is set once, before the first host.
        let _ = self.subsystem.set(Arc::downgrade(subsystem));
    }

    /// The namespaces of the drive, with the commands of clients for each.
    pub(super) fn namespace_traffic(&self) -> Vec<NamespaceTraffic> {
        let Some(operator) = self.operator.get().and_then(Weak::upgrade) else {
            return Vec::new();
        };
        let meters: BTreeMap<u32, Arc<Meter>> = locked(&self.meters).clone();
        let traffic = |id| meters.get(&id).map(|meter| meter.traffic()).unwrap_or_default();
        let sanitize = unsanitized(&operator);
        let subsystem = self.subsystem.get().and_then(Weak::upgrade);
        let namespaces = operator.namespaces().into_iter().map(|it| {
            let (traffic, protection) = (traffic(it.id), operator.protection(it.id));
            let of_hosts = subsystem.as_ref().and_then(|subsystem| subsystem.reservations(it.id));
            let stored = || stored_reservations(operator.as_ref(), it.id);
            let worn = (protection == Protection::ByDrive).then_some(Refusal::WritesFail);
            NamespaceTraffic {
                id: it.id,
                is_write_protected: it.is_read_only || protection != Protection::Open,
                refusal: sanitize.or(worn),
                reservations: of_hosts.unwrap_or_else(stored),
                name: it.name,
                size_bytes: it.device.size(),
                block_bytes: it.block_bytes,
                reads: counts(&traffic.reads),
                writes: counts(&traffic.writes),
                flushes: counts(&traffic.flushes),
                trims: counts(&traffic.trims),
            }
        });
        namespaces.collect()
    }

    /// The controllers of NVMe hosts.
    pub(super) fn controllers(&self) -> Vec<NvmeController> {
        let subsystem = self.subsystem.get().and_then(Weak::upgrade);
        subsystem.map(|it| it.controllers()).unwrap_or_default()
    }

    /// Injects a fault that NVMe hosts see.
    ///
    /// # Errors
    /// Fails if there is no such namespace, or no NVMe hosts are served.
    pub fn inject_for_hosts(&self, fault: Fault) -> io::Result<()> {
        let none = || {
            io::Error::other(
                "NVMe hosts are not served; start the server with --nvme or --vfio-user",
            )
        };
        let of_controllers = |fault| {
            let subsystem = self.subsystem.get().and_then(Weak::upgrade);
            subsystem.ok_or_else(none)?.fail_controllers(fault);
            Ok(())
        };
        match fault {
            Fault::ResetControllers {} => of_controllers(ControllerFault::Reset),
            Fault::FailControllers {} => of_controllers(ControllerFault::Fatal),
            Fault::Remove { for_ms } => of_controllers(ControllerFault::Removed { for_ms }),
            Fault::FailWrites { namespace } => {
                let operator = self.operator.get().and_then(Weak::upgrade);
                let operator = operator.ok_or_else(none)?;
                operator.fail_writes(namespace).map_err(io::Error::other)
            }
            Fault::FailPlp {} => {
                let volume = self.subject.volume().ok_or_else(|| {
                    io::Error::other("a volume in memory has no power-loss protection")
                })?;
                let reason = "an injected fault has its power-loss protection fail";
                volume.drive.write_through(Some(reason.to_owned()));
                // What was acknowledged before has to survive, too.
                volume.drive.flush().map_err(io::Error::other)
            }
            Fault::Heat { celsius } => {
                *locked(&self.heat) = Some(celsius);
                Ok(())
            }
            Fault::Wear { used_percent, spare_percent } => {
                *locked(&self.wear) = Some(InjectedWear { used_percent, spare_percent });
                Ok(())
            }
            _ => Err(io::Error::other("this is not a fault for NVMe hosts")),
        }
    }
}

/// The reason why all namespaces refuse commands after a sanitize, if they do.
fn unsanitized(operator: &Operator) -> Option<Refusal> {
    match operator.operation_status().sanitize.state {
        SanitizeState::Failed => Some(Refusal::SanitizeFailed),
        // One that can be operated goes on with it.
        SanitizeState::Running if !operator.is_operable() => Some(Refusal::SanitizeUnfinished),
        SanitizeState::Running | SanitizeState::Never | SanitizeState::Done => None,
    }
}

fn counts(commands: &Commands) -> CommandCounts {
    let Commands { commands, bytes, failures, .. } = commands;
    CommandCounts { commands: *commands, bytes: *bytes, failures: *failures }
}
