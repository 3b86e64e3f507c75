//! Repertoire: the one table of the commands, log pages, features and Identify structures that a
//! controller has.
//!
//! ```text
//!   table ──► Identify (OACS, ONCS, LPA and others), logs 00h, 05h and 12h: what is claimed
//!     └─────► admin queues, I/O queues, Get Log Page, Get and Set Features: what is carried out
//! ```
//!
//! **Invariants**
//! - A claim and its answer come from the same row, for every transport and purpose of a controller
//!   and every drive behind it.
//!
//! Numbers and scopes are those of [nvme-base-2021] and [nvme-nvm-2021].

use device::{Operability, Operations};

use super::command::{AdminCommand, IoCommand};
use super::host::Purpose;
use super::transport::Transport;
use super::wire::Structure;

/// Rows that a controller has: those whose owner it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repertoire {
    purpose: Purpose,
    transport: Transport,
    operability: Operability,
    injects_errors: bool,
    has_opal: bool,
    /// True if completions keep to the times of a model.
    is_modelled: bool,
}

/// Controllers that have a row.
#[derive(Clone, Copy, Debug)]
enum Owner {
    All,
    Discovery,
    /// Controllers for I/O, as all that follow.
    Io,
    /// Queues and doorbells lie in memory.
    Pcie,
    /// The drive takes operations, if only such as change nothing.
    Operated,
    /// Hosts may change the drive.
    Operable,
    /// Completions keep to the times of a model.
    Modelled,
    /// Hosts may have the drive show errors.
    Injecting,
    /// Hosts may lock the drive.
    Locking,
}

/// Pages of logs, by identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LogPage {
    Supported = 0x00,
    Errors = 0x01,
    Health = 0x02,
    Firmware = 0x03,
    ChangedNamespaces = 0x04,
    Effects = 0x05,
    SelfTests = 0x06,
    HostTelemetry = 0x07,
    ControllerTelemetry = 0x08,
    EnduranceGroup = 0x09,
    PersistentEvents = 0x0D,
    Features = 0x12,
    ManagementInterface = 0x13,
    Discovery = 0x70,
    ReservationNotification = 0x80,
    Sanitize = 0x81,
    OcpHealth = 0xC0,
    Lateness = 0xD1,
}

/// Features, by identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feature {
    Arbitration = 0x01,
    Power = 0x02,
    Temperature = 0x04,
    ErrorRecovery = 0x05,
    WriteCache = 0x06,
    Queues = 0x07,
    InterruptCoalescing = 0x08,
    InterruptVector = 0x09,
    WriteAtomicity = 0x0A,
    Events = 0x0B,
    Timestamp = 0x0E,
    KeepAlive = 0x0F,
    HostBehavior = 0x16,
    Sanitize = 0x17,
    EnduranceEvents = 0x18,
    HostId = 0x81,
    ReservationMask = 0x82,
    ReservationPersistence = 0x83,
    WriteProtection = 0x84,
    /// Of [ocp-nvme-2021].
    ErrorInjection = 0xC0,
}

/// Part of a subsystem that a feature belongs to, as bits of its effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Namespace = 1 << 20,
    Controller = 1 << 21,
    EnduranceGroup = 1 << 23,
    Subsystem = 1 << 25,
}

/// Structures of Identify, by their number (CNS).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdentifyStructure {
    Namespace = 0x00,
    Controller = 0x01,
    ActiveNamespaces = 0x02,
    Descriptors = 0x03,
    NvmNamespace = 0x05,
    NvmController = 0x06,
    NvmActiveNamespaces = 0x07,
    IndependentNamespace = 0x08,
    AllocatedNamespaces = 0x10,
    AllocatedNamespace = 0x11,
    AttachedControllers = 0x12,
    Controllers = 0x13,
    Uuids = 0x17,
    EnduranceGroups = 0x19,
    CommandSets = 0x1C,
}

/// A command, its bits in OACS or ONCS, and its effects.
struct CommandRow<C> {
    command: C,
    owner: Owner,
    optional: u16,
    effects: u32,
}

/// A log page, and its bits in LPA.
struct PageRow(LogPage, Owner, u8);

/// A feature, its scope, and its bits in ONCS.
struct FeatureRow(Feature, Owner, Scope, u16);

/// Effects of commands: supported, and what they change: data, capabilities of a namespace, which
/// namespaces there are.
const SUPPORTED: u32 = 1;
const CHANGES_DATA: u32 = 1 << 1;
const CHANGES_CAPABILITIES: u32 = 1 << 2;
const CHANGES_INVENTORY: u32 = 1 << 3;
/// Outstanding commands that may be beside one: none of its namespace, or none of any.
const ALONE_IN_NAMESPACE: u32 = 1 << 16;
const ALONE: u32 = 2 << 16;
/// Scopes of admin commands. Those for I/O report none: Linux takes bits that it does not know for
/// unusual effects.
const OF_CONTROLLER: u32 = 1 << 21;
const OF_SUBSYSTEM: u32 = 1 << 25;

#[rustfmt::skip]
const ADMIN: [CommandRow<AdminCommand>; 19] = [
    row(AdminCommand::DeleteSubmissionQueue, Owner::Pcie, 0, OF_CONTROLLER),
    row(AdminCommand::CreateSubmissionQueue, Owner::Pcie, 0, OF_CONTROLLER),
    row(AdminCommand::GetLogPage, Owner::All, 0, OF_CONTROLLER),
    row(AdminCommand::DeleteCompletionQueue, Owner::Pcie, 0, OF_CONTROLLER),
    row(AdminCommand::CreateCompletionQueue, Owner::Pcie, 0, OF_CONTROLLER),
    row(AdminCommand::Identify, Owner::All, 0, OF_CONTROLLER),
    row(AdminCommand::Abort, Owner::Io, 0, OF_CONTROLLER),
    row(AdminCommand::SetFeatures, Owner::All, 0, OF_CONTROLLER),
    row(AdminCommand::GetFeatures, Owner::All, 0, OF_CONTROLLER),
    row(AdminCommand::AsynchronousEvent, Owner::All, 0, OF_CONTROLLER),
    row(AdminCommand::NamespaceManagement, Owner::Operable, 1 << 3,
        CHANGES_INVENTORY | ALONE | OF_SUBSYSTEM),
    row(AdminCommand::DeviceSelfTest, Owner::Operated, 1 << 4, OF_SUBSYSTEM),
    row(AdminCommand::NamespaceAttachment, Owner::Operable, 1 << 3,
        CHANGES_INVENTORY | ALONE | OF_SUBSYSTEM),
    row(AdminCommand::KeepAlive, Owner::All, 0, OF_CONTROLLER),
    row(AdminCommand::DoorbellBuffer, Owner::Pcie, 1 << 8, OF_CONTROLLER),
    row(AdminCommand::FormatNvm, Owner::Operable, 1 << 1,
        CHANGES_DATA | CHANGES_CAPABILITIES | ALONE_IN_NAMESPACE | OF_SUBSYSTEM),
    row(AdminCommand::SecuritySend, Owner::Locking, 1, CHANGES_DATA | OF_SUBSYSTEM),
    row(AdminCommand::SecurityReceive, Owner::Locking, 1, OF_SUBSYSTEM),
    row(AdminCommand::Sanitize, Owner::Operable, 0, CHANGES_DATA | ALONE | OF_SUBSYSTEM),
];

const IO: [CommandRow<IoCommand>; 13] = [
    row(IoCommand::Read, Owner::Io, 0, 0),
    row(IoCommand::Write, Owner::Io, 0, CHANGES_DATA),
    row(IoCommand::Flush, Owner::Io, 0, 0),
    row(IoCommand::DatasetManagement, Owner::Io, 1 << 2, CHANGES_DATA),
    row(IoCommand::WriteZeroes, Owner::Io, 1 << 3, CHANGES_DATA),
    row(IoCommand::Compare, Owner::Io, 1, 0),
    row(IoCommand::Verify, Owner::Io, 1 << 7, 0),
    row(IoCommand::Copy, Owner::Io, 1 << 8, CHANGES_DATA),
    row(IoCommand::WriteUncorrectable, Owner::Operable, 1 << 1, CHANGES_DATA),
    row(IoCommand::ReservationRegister, Owner::Io, 1 << 5, 0),
    row(IoCommand::ReservationReport, Owner::Io, 1 << 5, 0),
    row(IoCommand::ReservationAcquire, Owner::Io, 1 << 5, 0),
    row(IoCommand::ReservationRelease, Owner::Io, 1 << 5, 0),
];

const PAGES: [PageRow; 18] = [
    PageRow(LogPage::Supported, Owner::All, 0),
    PageRow(LogPage::Errors, Owner::Io, 0),
    PageRow(LogPage::Health, Owner::Io, 0),
    PageRow(LogPage::Firmware, Owner::Io, 0),
    PageRow(LogPage::ChangedNamespaces, Owner::Io, 0),
    PageRow(LogPage::Effects, Owner::Io, 1 << 1),
    PageRow(LogPage::SelfTests, Owner::Operated, 0),
    PageRow(LogPage::HostTelemetry, Owner::Io, 1 << 3),
    PageRow(LogPage::ControllerTelemetry, Owner::Io, 1 << 3),
    PageRow(LogPage::EnduranceGroup, Owner::Io, 0),
    PageRow(LogPage::PersistentEvents, Owner::Io, 1 << 4),
    PageRow(LogPage::Features, Owner::Io, 1 << 5),
    PageRow(LogPage::ManagementInterface, Owner::Io, 1 << 5),
    PageRow(LogPage::Discovery, Owner::Discovery, 0),
    PageRow(LogPage::ReservationNotification, Owner::Io, 0),
    PageRow(LogPage::Sanitize, Owner::Operated, 0),
    PageRow(LogPage::OcpHealth, Owner::Io, 0),
    PageRow(LogPage::Lateness, Owner::Modelled, 0),
];

const FEATURES: [FeatureRow; 20] = [
    FeatureRow(Feature::Arbitration, Owner::Io, Scope::Controller, 0),
    FeatureRow(Feature::Power, Owner::Io, Scope::Controller, 0),
    FeatureRow(Feature::Temperature, Owner::Io, Scope::Controller, 0),
    FeatureRow(Feature::ErrorRecovery, Owner::Io, Scope::Namespace, 0),
    FeatureRow(Feature::WriteCache, Owner::Io, Scope::Controller, 0),
    FeatureRow(Feature::Queues, Owner::Io, Scope::Controller, 0),
    FeatureRow(Feature::InterruptCoalescing, Owner::Pcie, Scope::Controller, 0),
    FeatureRow(Feature::InterruptVector, Owner::Pcie, Scope::Controller, 0),
    FeatureRow(Feature::WriteAtomicity, Owner::Io, Scope::Controller, 0),
    FeatureRow(Feature::Events, Owner::All, Scope::Controller, 0),
    FeatureRow(Feature::Timestamp, Owner::Io, Scope::Controller, 1 << 6),
    FeatureRow(Feature::KeepAlive, Owner::All, Scope::Controller, 0),
    FeatureRow(Feature::HostBehavior, Owner::Io, Scope::Controller, 0),
    FeatureRow(Feature::Sanitize, Owner::Operable, Scope::Subsystem, 0),
    FeatureRow(Feature::EnduranceEvents, Owner::Io, Scope::EnduranceGroup, 0),
    FeatureRow(Feature::HostId, Owner::Io, Scope::Controller, 0),
    FeatureRow(Feature::ReservationMask, Owner::Io, Scope::Namespace, 0),
    FeatureRow(Feature::ReservationPersistence, Owner::Io, Scope::Namespace, 0),
    FeatureRow(Feature::WriteProtection, Owner::Operated, Scope::Namespace, 0),
    FeatureRow(Feature::ErrorInjection, Owner::Injecting, Scope::Subsystem, 0),
];

const STRUCTURES: [(IdentifyStructure, Owner); 15] = [
    (IdentifyStructure::Namespace, Owner::Io),
    (IdentifyStructure::Controller, Owner::All),
    (IdentifyStructure::ActiveNamespaces, Owner::Io),
    (IdentifyStructure::Descriptors, Owner::Io),
    (IdentifyStructure::NvmNamespace, Owner::Io),
    (IdentifyStructure::NvmController, Owner::Io),
    (IdentifyStructure::NvmActiveNamespaces, Owner::Io),
    (IdentifyStructure::IndependentNamespace, Owner::Io),
    (IdentifyStructure::AllocatedNamespaces, Owner::Io),
    (IdentifyStructure::AllocatedNamespace, Owner::Io),
    (IdentifyStructure::AttachedControllers, Owner::Io),
    (IdentifyStructure::Controllers, Owner::Io),
    (IdentifyStructure::Uuids, Owner::Io),
    (IdentifyStructure::EnduranceGroups, Owner::Io),
    (IdentifyStructure::CommandSets, Owner::Io),
];

/// ONCS: Select of Get Features.
const SELECT: u16 = 1 << 4;
/// LPA: lengths and offsets of pages beyond 16 bits.
const LONG_PAGES: u8 = 1 << 2;

const fn row<C>(command: C, owner: Owner, optional: u16, effects: u32) -> CommandRow<C> {
    CommandRow { command, owner, optional, effects }
}

impl Repertoire {
    /// The rows of a controller of this purpose that is reached by this transport.
    pub(super) fn new(
        (purpose, transport): (Purpose, Transport),
        operations: &dyn Operations,
        is_modelled: bool,
    ) -> Self {
        let (operability, injects_errors) = (operations.operability(), operations.injects_errors());
        let has_opal = operations.has_opal();
        Self { purpose, transport, operability, injects_errors, has_opal, is_modelled }
    }

    fn has(self, owner: Owner) -> bool {
        let is_io = self.purpose == Purpose::Io;
        match owner {
            Owner::All => true,
            Owner::Discovery => !is_io,
            Owner::Io => is_io,
            Owner::Pcie => is_io && self.transport == Transport::Pcie,
            Owner::Operated => is_io && self.operability >= Operability::ReadOnly,
            Owner::Operable => is_io && self.operability == Operability::Full,
            Owner::Modelled => is_io && self.is_modelled,
            Owner::Injecting => is_io && self.injects_errors,
            Owner::Locking => is_io && self.has_opal,
        }
    }

    fn admin_rows(self) -> impl Iterator<Item = &'static CommandRow<AdminCommand>> {
        ADMIN.iter().filter(move |row| self.has(row.owner))
    }

    fn io_rows(self) -> impl Iterator<Item = &'static CommandRow<IoCommand>> {
        IO.iter().filter(move |row| self.has(row.owner))
    }

    fn page_rows(self) -> impl Iterator<Item = &'static PageRow> {
        PAGES.iter().filter(move |row| self.has(row.1))
    }

    fn feature_rows(self) -> impl Iterator<Item = &'static FeatureRow> {
        FEATURES.iter().filter(move |row| self.has(row.1))
    }

    pub(super) fn admin_command(self, opcode: u8) -> Option<AdminCommand> {
        let mut commands = self.admin_rows().map(|row| row.command);
        commands.find(|it| *it as u8 == opcode)
    }

    pub(super) fn has_command(self, command: AdminCommand) -> bool {
        self.admin_rows().any(|row| row.command == command)
    }

    pub(super) fn has_feature(self, feature: Feature) -> bool {
        self.feature_rows().any(|row| row.0 == feature)
    }

    pub(super) fn io_command(self, opcode: u8) -> Option<IoCommand> {
        self.io_rows().map(|row| row.command).find(|it| *it as u8 == opcode)
    }

    pub(super) fn page(self, id: u8) -> Option<LogPage> {
        self.page_rows().map(|row| row.0).find(|it| *it as u8 == id)
    }

    /// A feature with its scope.
    pub(super) fn feature(self, id: u8) -> Option<(Feature, Scope)> {
        self.feature_rows().map(|row| (row.0, row.2)).find(|(it, _)| *it as u8 == id)
    }

    pub(super) fn structure(self, number: u8) -> Option<IdentifyStructure> {
        let mut rows = STRUCTURES.iter().filter(|(_, owner)| self.has(*owner));
        rows.find(|(it, _)| *it as u8 == number).map(|(it, _)| *it)
    }

    /// Optional Admin Command Support (OACS).
    pub(super) fn optional_admin_commands(self) -> u16 {
        self.admin_rows().fold(0, |bits, row| bits | row.optional)
    }

    /// Optional NVM Command Support (ONCS).
    pub(super) fn optional_io_commands(self) -> u16 {
        let commands = self.io_rows().map(|row| row.optional);
        commands.chain(self.feature_rows().map(|row| row.3)).fold(SELECT, |bits, it| bits | it)
    }

    /// Log Page Attributes (LPA).
    pub(super) fn log_attributes(self) -> u8 {
        self.page_rows().fold(LONG_PAGES, |bits, row| bits | row.2)
    }

    /// The log of supported pages.
    pub(super) fn supported_pages(self) -> Vec<u8> {
        let mut it = Structure::new(1024);
        self.page_rows().for_each(|row| it.put_u32(4 * row.0 as usize, SUPPORTED));
        it.into_bytes()
    }

    /// The log of Commands Supported and Effects: admin commands, then those for I/O.
    pub(super) fn command_effects(self) -> Vec<u8> {
        let mut it = Structure::new(4096);
        for row in self.admin_rows() {
            it.put_u32(4 * row.command as usize, SUPPORTED | row.effects);
        }
        for row in self.io_rows() {
            it.put_u32(1024 + 4 * row.command as usize, SUPPORTED | row.effects);
        }
        it.into_bytes()
    }

    /// The log of Feature Identifiers Supported and Effects.
    pub(super) fn feature_effects(self) -> Vec<u8> {
        let mut it = Structure::new(1024);
        for row in self.feature_rows() {
            it.put_u32(4 * row.0 as usize, SUPPORTED | row.2 as u32);
        }
        it.into_bytes()
    }
}

/// The command of an opcode, whichever controller has it.
pub(super) fn admin_command(opcode: u8) -> Option<AdminCommand> {
    ADMIN.iter().map(|row| row.command).find(|it| *it as u8 == opcode)
}

/// The feature of an identifier, whichever controller has it.
pub(super) fn feature(id: u8) -> Option<Feature> {
    FEATURES.iter().map(|row| row.0).find(|it| *it as u8 == id)
}
