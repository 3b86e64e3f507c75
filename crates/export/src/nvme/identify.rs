//! Identify ([nvme-base-2021], "Identify command"; [nvme-nvm-2021], "Identify Namespace Data
//! Structure"; offsets in bytes).

use std::sync::Arc;

use device::{Operations, Protection};

use super::command::{AdminCommand, Command};
use super::context::{CommandCompletion, Context};
use super::controller::Controller;
use super::drive::DISCOVERY_NQN;
use super::error_log;
use super::event;
use super::feature::protections;
use super::host::Purpose;
use super::io::SOURCES_MAX;
use super::namespace::{ALL_NAMESPACES, Namespace};
use super::property::{QUEUE_ENTRIES_MAX, QUEUES_MAX, VERSION};
use super::repertoire::{Feature, IdentifyStructure, Repertoire};
use super::status::Status;
use super::tcp::{ADMIN_CAPSULE_DATA_BYTES, IO_CAPSULE_DATA_BYTES};
use super::transport::{TRANSFER_BYTES_MAX, TRANSFER_PAGES_LOG2, VENDOR};
use super::wire::{Structure, low8, low16};

/// Bytes of every structure.
pub(super) const IDENTIFY_BYTES: usize = 4096;
/// Formats of logical blocks: their bytes, as powers of two.
pub(super) const BLOCK_FORMATS: [u8; 2] = [9, 12];
/// SANICAP: block erase; blocks are deallocated whatever is asked for (NDI), and media are not
/// changed further (NODMMAS).
const SANITIZE_CAPABILITIES: u32 = 1 << 30 | 1 << 29 | 1 << 1;
/// Number of the NVM command set.
const NVM_COMMAND_SET: u8 = 0;
/// UUID of what is of OCP ([ocp-nvme-2021]), by which its tools know the drive.
const OCP_UUID: [u8; 16] = 0xC194_D55B_E094_4794_A21D_2999_8F56_BE6F_u128.to_be_bytes();
/// Bytes of a drive's page; a write of whole pages needs no read before it.
const PAGE_BYTES: u64 = 4096;

/// Sanitize Capabilities (SANICAP) of a drive: crypto erase where it has keys.
pub(super) fn sanitize_capabilities(operations: &dyn Operations) -> u32 {
    SANITIZE_CAPABILITIES | u32::from(operations.erases_keys())
}

/// Answers an Identify command.
pub(super) fn identify(
    controller: &mut Controller,
    context: &Context<'_>,
    command: &Command,
) -> Result<CommandCompletion, Status> {
    let structure = controller.repertoire().structure(low8(command.dword(10)));
    let command_set = low8(command.dword(11) >> 24);
    let id = command.namespace();
    let operations = context.drive.operations();
    let data = match structure.ok_or(Status::INVALID_FIELD)? {
        IdentifyStructure::Controller => of_controller(controller, context),
        // Capabilities common to all namespaces, where hosts manage namespaces.
        IdentifyStructure::Namespace if id == ALL_NAMESPACES && operations.is_operable() => {
            common()
        }
        IdentifyStructure::Namespace => match attached(controller, context, id)? {
            Some(namespace) => of_namespace(&namespace, operations),
            None => Structure::new(IDENTIFY_BYTES),
        },
        IdentifyStructure::AllocatedNamespace => match allocated(context, id)? {
            Some(namespace) => of_namespace(&namespace, operations),
            None => Structure::new(IDENTIFY_BYTES),
        },
        IdentifyStructure::Descriptors => descriptors(active(controller, context, id)?.as_ref()),
        IdentifyStructure::NvmNamespace
        | IdentifyStructure::NvmController
        | IdentifyStructure::NvmActiveNamespaces
            if command_set != NVM_COMMAND_SET =>
        {
            return Err(Status::INVALID_FIELD);
        }
        // Nothing beyond the base structure: no protection information, no metadata.
        IdentifyStructure::NvmNamespace => {
            active(controller, context, id).map(|_| Structure::new(IDENTIFY_BYTES))?
        }
        // No limits of Verify, Write Zeroes and Dataset Management but those of the commands.
        IdentifyStructure::NvmController => Structure::new(IDENTIFY_BYTES),
        IdentifyStructure::ActiveNamespaces | IdentifyStructure::NvmActiveNamespaces => {
            let ids: Vec<u32> = controller.namespaces(context).iter().map(|it| it.id).collect();
            listed(&ids, id)?
        }
        IdentifyStructure::AllocatedNamespaces => {
            let ids: Vec<u32> = context.drive.directory().all().iter().map(|it| it.id).collect();
            listed(&ids, id)?
        }
        IdentifyStructure::IndependentNamespace => match attached(controller, context, id)? {
            Some(namespace) => independent(&namespace, operations),
            None => Structure::new(IDENTIFY_BYTES),
        },
        IdentifyStructure::AttachedControllers => {
            allocated(context, id)?.ok_or(Status::INVALID_NAMESPACE)?;
            let ids = attached_controllers(context, id);
            controllers(&ids, low16(command.dword(10) >> 16))
        }
        IdentifyStructure::Controllers => {
            let ids = context.drive.controller_ids();
            controllers(&ids, low16(command.dword(10) >> 16))
        }
        IdentifyStructure::Uuids => {
            let mut uuids = Structure::new(IDENTIFY_BYTES);
            uuids.put(48, &OCP_UUID);
            uuids
        }
        IdentifyStructure::EnduranceGroups => {
            let mut groups = Structure::new(IDENTIFY_BYTES);
            if low16(command.dword(11)) <= 1 {
                groups.put_u16(0, 1);
                groups.put_u16(2, 1);
            }
            groups
        }
        IdentifyStructure::CommandSets => {
            let mut sets = Structure::new(IDENTIFY_BYTES);
            sets.put_u64(0, 1 << NVM_COMMAND_SET);
            sets
        }
    };
    Ok(CommandCompletion::data(data.into_bytes()))
}

/// A namespace of the drive, if there is one of this identifier.
fn allocated(context: &Context<'_>, id: u32) -> Result<Option<Arc<Namespace>>, Status> {
    let is_valid = (1..=context.drive.namespace_max()).contains(&id);
    let found = context.drive.directory().all().get(id).cloned();
    if is_valid || found.is_some() { Ok(found) } else { Err(Status::INVALID_NAMESPACE) }
}

/// A namespace of the drive, if it is attached to the host.
fn attached(
    controller: &mut Controller,
    context: &Context<'_>,
    id: u32,
) -> Result<Option<Arc<Namespace>>, Status> {
    let limit = context.drive.namespace_max();
    match controller.namespaces(context).get(id) {
        Some(namespace) => Ok(Some(Arc::clone(namespace))),
        None if (1..=limit).contains(&id) => Ok(None),
        None => Err(Status::INVALID_NAMESPACE),
    }
}

/// A namespace that is attached to the host.
fn active(
    controller: &mut Controller,
    context: &Context<'_>,
    id: u32,
) -> Result<Arc<Namespace>, Status> {
    attached(controller, context, id)?.ok_or(Status::INVALID_FIELD)
}

/// The controllers for I/O whose hosts a namespace is attached to.
fn attached_controllers(context: &Context<'_>, id: u32) -> Vec<u16> {
    let drive = context.drive;
    let is_attached = |controller: &u16| {
        let found = drive.host_controllers(&[*controller]).unwrap_or_default();
        found.iter().any(|of| drive.directory().is_attached(id, of))
    };
    drive.controller_ids().into_iter().filter(is_attached).collect()
}

fn of_controller(controller: &Controller, context: &Context<'_>) -> Structure {
    let drive = context.drive;
    let identity = drive.identity();
    let is_io = controller.kind() == Purpose::Io;
    let mut it = Structure::new(IDENTIFY_BYTES);
    // No vendor of the PCI SIG, but that of the configuration space where there is one; no OUI.
    if !controller.transport().is_fabrics() {
        it.put_u16(0, VENDOR);
    }
    it.put_padded(4, 20, &format!("{:016x}", identity.number));
    it.put_padded(24, 40, &identity.model);
    it.put_padded(64, 8, &identity.firmware);
    // CMIC: the subsystem may have several controllers, and has several ports.
    let has_ports = u8::from(drive.ports().len() > 1);
    it.put_u8(76, if is_io { 1 << 1 | has_ports } else { 0 });
    it.put_u8(77, TRANSFER_PAGES_LOG2);
    it.put_u16(78, controller.id());
    it.put_u32(80, VERSION);
    // CTRATT: host identifiers of 128 bits; endurance groups, a list of UUIDs.
    it.put_u32(96, if is_io { 1 << 9 | 1 << 4 | 1 } else { 1 });
    it.put_u8(111, if is_io { 1 } else { 2 });
    let repertoire = controller.repertoire();
    it.put_u16(256, repertoire.optional_admin_commands());
    it.put_u8(261, repertoire.log_attributes());
    // KAS: a second.
    it.put_u16(320, if repertoire.has_command(AdminCommand::KeepAlive) { 10 } else { 0 });
    if controller.transport().is_fabrics() {
        of_fabrics(&mut it, is_io);
    }
    it.put_terminated(768, 256, if is_io { drive.nqn() } else { DISCOVERY_NQN });
    if is_io {
        it.put_u32(92, event::NAMESPACE_NOTICES);
        of_io_controller(&mut it, context, repertoire);
    }
    it
}

/// Fields of a controller for I/O only.
fn of_io_controller(it: &mut Structure, context: &Context<'_>, repertoire: Repertoire) {
    let drive = context.drive;
    let operations = drive.operations();
    let (health, space) = (operations.health(), operations.space());
    // CRDT1: a tenth of a second.
    it.put_u16(128, 1);
    if repertoire.has_command(AdminCommand::FormatNvm) {
        // FNA: a secure erase is of all namespaces; bit 2 where keys can be erased.
        it.put_u8(524, 1 << 1 | u8::from(operations.erases_keys()) << 2);
    }
    if repertoire.has_command(AdminCommand::Sanitize) {
        it.put_u32(328, sanitize_capabilities(operations));
    }
    if repertoire.has_command(AdminCommand::DeviceSelfTest) {
        // EDSTT: a minute, which is not estimated from the drive. DSTO: one self-test at a time.
        it.put_u16(316, 1);
        it.put_u8(318, 1);
    }
    // ENDGIDMAX: the drive is one endurance group. PELS: at most 64 KiB of persistent events.
    it.put_u16(340, 1);
    it.put_u32(352, 1);
    // ACL and AERL, less one.
    it.put_u8(258, 3);
    it.put_u8(259, u8::try_from(event::HELD_MAX - 1).expect("a few"));
    // FRMW: one slot, which is read-only.
    it.put_u8(260, 1 << 1 | 1);
    it.put_u8(262, u8::try_from(error_log::ENTRIES - 1).expect("a few"));
    it.put_u16(266, health.warning_temperature_k.unwrap_or(0));
    it.put_u16(268, health.critical_temperature_k.unwrap_or(0));
    it.put_u128(280, space.total_bytes.into());
    it.put_u128(296, space.unallocated_bytes.into());
    // SQES and CQES: entries of 64 and 16 bytes.
    it.put_u8(512, 0x66);
    it.put_u8(513, 0x44);
    // NN and MNAN.
    it.put_u32(516, drive.namespace_max());
    it.put_u32(540, drive.namespace_max());
    if repertoire.has_feature(Feature::WriteProtection) {
        it.put_u8(531, protections(operations));
    }
    // OCFS: the first format of Copy.
    it.put_u16(534, 1);
    it.put_u16(520, repertoire.optional_io_commands());
    // VWC: a volatile write cache, unless writes are durable, and flushes of all namespaces.
    it.put_u8(525, 3 << 1 | u8::from(!health.is_write_through));
    // AWUN and AWUPF: one block, whatever its size; namespaces tell more.
}

/// Fields of controllers that are reached by fabrics.
fn of_fabrics(it: &mut Structure, is_io: bool) {
    const { assert!(ADMIN_CAPSULE_DATA_BYTES >= 8192 && QUEUES_MAX > 0) }
    it.put_u16(514, low16(QUEUE_ENTRIES_MAX));
    // SGLS: SGLs of any length, with offsets in capsules, and of the transport.
    it.put_u32(536, 1 << 21 | 1 << 20 | 1);
    if is_io {
        // IOCCSZ and IORCSZ: capsules of commands, with the data that they carry, and of responses.
        let capsule = (64 + IO_CAPSULE_DATA_BYTES) / 16;
        it.put_u32(1792, u32::try_from(capsule).expect("a few KiB"));
        it.put_u32(1796, 1);
        // FCATTR: controllers are made as hosts come. MSDBD: one SGL descriptor.
        it.put_u8(1803, 1);
        // OFCS: Disconnect.
        it.put_u16(1804, 1);
    }
}

/// Fields that all namespaces have in common.
fn common() -> Structure {
    let mut it = Structure::new(IDENTIFY_BYTES);
    put_formats(&mut it, true);
    it
}

fn put_formats(it: &mut Structure, has_pages: bool) {
    let [small, page] = BLOCK_FORMATS.map(u32::from);
    it.put_u8(25, u8::from(has_pages));
    // LBAF0 and LBAF1: 512 bytes, good; 4096 bytes, best.
    it.put_u32(128, 2 << 24 | small << 16);
    if has_pages {
        it.put_u32(132, page << 16);
    }
}

fn of_namespace(namespace: &Namespace, operations: &dyn Operations) -> Structure {
    let block_bytes = 1_u64 << namespace.block_shift;
    let blocks = namespace.blocks();
    let less_one = |bytes: u64| low16(u32::try_from(bytes / block_bytes - 1).expect("a few"));
    let mut it = Structure::new(IDENTIFY_BYTES);
    it.put_u64(0, blocks);
    it.put_u64(8, blocks);
    it.put_u64(16, blocks);
    // NSFEAT: its own atomic units, and preferred granularities.
    it.put_u8(24, 1 << 4 | 1 << 1);
    let atomic_bytes = namespace.device().atomic_bytes().max(block_bytes);
    let has_pages = namespace.device().atomic_bytes() >= PAGE_BYTES;
    put_formats(&mut it, has_pages || operations.is_operable());
    it.put_u8(26, u8::from(block_bytes == PAGE_BYTES));
    it.put_u8(30, sharing(namespace));
    it.put_u8(31, reservation_capabilities(operations));
    // DLFEAT: deallocated blocks read as zeroes; Write Zeroes may deallocate.
    it.put_u8(33, 1 << 3 | 1);
    // NAWUN and NAWUPF, and their boundaries NABSN and NABSPF; NABO is 0.
    for at in [34, 36, 40, 44] {
        it.put_u16(at, less_one(atomic_bytes));
    }
    it.put_u128(48, namespace.device().size().into());
    // NPWG, NPWA, NPDG, NPDA: pages.
    for at in [64, 66, 68, 70] {
        it.put_u16(at, less_one(PAGE_BYTES.max(block_bytes)));
    }
    // MSSRL, MCL and MSRC of Copy: a largest transfer in all.
    let most = TRANSFER_BYTES_MAX as u64 / block_bytes;
    it.put_u16(74, low16(u32::try_from(most).expect("a thousand")));
    it.put_u32(76, u32::try_from(most).expect("a thousand"));
    it.put_u8(80, u8::try_from(SOURCES_MAX - 1).expect("below 128"));
    // NSATTR: write-protected. ENDGID: of the only endurance group.
    it.put_u8(99, u8::from(is_protected(namespace, operations)));
    it.put_u16(102, 1);
    it.put(104, &namespace.nguid);
    it.put(120, &namespace.eui64);
    it
}

/// Multi-path and sharing capabilities (NMIC): whether several controllers may have it.
fn sharing(namespace: &Namespace) -> u8 {
    u8::from(!namespace.is_private)
}

/// RESCAP: all kinds of reservations, and Ignore Existing Key as of revision 1.3; whether they can
/// persist through power loss.
fn reservation_capabilities(operations: &dyn Operations) -> u8 {
    1 << 7 | 0x3F << 1 | u8::from(operations.keeps_reservations())
}

fn is_protected(namespace: &Namespace, operations: &dyn Operations) -> bool {
    namespace.is_read_only || operations.protection(namespace.id) != Protection::Open
}

fn independent(namespace: &Namespace, operations: &dyn Operations) -> Structure {
    let mut it = Structure::new(IDENTIFY_BYTES);
    it.put_u8(1, sharing(namespace));
    it.put_u8(2, reservation_capabilities(operations));
    it.put_u8(8, u8::from(is_protected(namespace, operations)));
    // ENDGID: of the only endurance group.
    it.put_u16(12, 1);
    // NSTAT: ready.
    it.put_u8(14, 1);
    it
}

/// A list of the namespaces after `after`.
fn listed(ids: &[u32], after: u32) -> Result<Structure, Status> {
    if after >= ALL_NAMESPACES - 1 {
        return Err(Status::INVALID_NAMESPACE);
    }
    let mut it = Structure::new(IDENTIFY_BYTES);
    let later = ids.iter().filter(|id| **id > after);
    for (index, id) in later.take(IDENTIFY_BYTES / 4).enumerate() {
        it.put_u32(4 * index, *id);
    }
    Ok(it)
}

/// Namespace Identification Descriptors: UUID, NGUID, EUI64 and command set.
fn descriptors(namespace: &Namespace) -> Structure {
    let mut it = Structure::new(IDENTIFY_BYTES);
    let described: [(u8, &[u8]); 4] = [
        (3, &namespace.uuid),
        (2, &namespace.nguid),
        (1, &namespace.eui64),
        (4, &[NVM_COMMAND_SET]),
    ];
    let mut at = 0;
    for (kind, bytes) in described {
        it.put(at, &[kind, u8::try_from(bytes.len()).expect("at most 16")]);
        it.put(at + 4, bytes);
        at += 4 + bytes.len();
    }
    it
}

/// Controller List with the identifiers from `first` on.
fn controllers(ids: &[u16], first: u16) -> Structure {
    let mut it = Structure::new(IDENTIFY_BYTES);
    let listed: Vec<u16> =
        ids.iter().copied().filter(|id| *id >= first).take(IDENTIFY_BYTES / 2 - 1).collect();
    it.put_u16(0, u16::try_from(listed.len()).expect("bounded"));
    for (index, id) in listed.into_iter().enumerate() {
        it.put_u16(2 + 2 * index, id);
    }
    it
}
