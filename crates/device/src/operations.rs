//! Operations: commands of hosts to a drive beside reading and writing it.
//!
//! ```text
//!   namespaces:  create ──► attached to hosts by the front end ──► delete
//!   work:        format, sanitize, self-test: one at a time, in the background
//!                  └── a sanitize that was under way goes on when the drive is opened again
//! ```
//!
//! While a namespace is formatted, or the drive sanitized, its devices refuse every command with
//! [`crate::DeviceError::InProgress`], so front ends need not check first. Terms are those of
//! [nvme-base-2021].

use std::sync::{Arc, OnceLock};

use opal::Channel;

use crate::reservations::FencedDevice;
use crate::{Administration, Device, Fence, PersistentReservations};

/// A part of a drive that clients see as a device of their own.
#[derive(Clone, Debug)]
pub struct ServedNamespace {
    /// Number by which hosts know it, from 1; it stays the same as long as the namespace is there.
    pub id: u32,
    /// Name by which clients of other protocols ask for it.
    pub name: String,
    /// Device that clients read and write. After the namespace was deleted it refuses everything
    /// with [`crate::DeviceError::Gone`].
    pub device: Arc<dyn Device>,
    /// Bytes of a logical block: 512 or 4096.
    pub block_bytes: u32,
    /// True if commands that change data are refused.
    pub is_read_only: bool,
    /// True if one controller at a time has it.
    pub is_private: bool,
    /// Fence that reservations of hosts are to other clients.
    pub fence: Arc<Fence>,
}

impl ServedNamespace {
    /// Returns the device for clients that are no NVMe hosts, behind the fence.
    pub fn fenced_device(&self) -> Arc<dyn Device> {
        let (device, fence) = (Arc::clone(&self.device), Arc::clone(&self.fence));
        Arc::new(FencedDevice { device, fence })
    }
}

/// A namespace to be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamespaceRequest {
    /// Its bytes.
    pub size: u64,
    /// Bytes of a logical block: 512 or 4096.
    pub block_bytes: u32,
    /// True if one controller at a time may have it.
    pub is_private: bool,
}

/// Space for namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamespaceSpace {
    /// Largest number of bytes of all namespaces together.
    pub total_bytes: u64,
    /// Bytes that no namespace has.
    pub unallocated_bytes: u64,
}

/// Format of one namespace, or of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatRequest {
    /// Namespace; none for all of them.
    pub namespace: Option<u32>,
    /// Bytes of a logical block afterwards: 512 or 4096.
    pub block_bytes: u32,
    /// True if stored data is to be erased from the media too, not only deallocated.
    pub is_secure: bool,
}

/// Result of one format, which may be under way: it stays what it is when others follow.
#[derive(Clone, Debug, Default)]
pub struct FormatResult(Arc<OnceLock<Result<(), String>>>);

impl FormatResult {
    /// Returns whether the format succeeded, or why it failed; none while it is under way.
    pub fn get(&self) -> Option<&Result<(), String>> {
        self.0.get()
    }

    /// Ends the format.
    pub(crate) fn end(&self, done: Result<(), String>) {
        assert!(self.0.set(done).is_ok(), "a format ends once");
    }
}

/// Failure mode of a sanitize.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// After a failure only another sanitize that succeeds brings the drive back.
    Restricted,
    /// After a failure a host may take the drive back with [`Operations::exit_failure`].
    Unrestricted,
}

/// Sanitize of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SanitizeRequest {
    /// Failure mode.
    pub exit: Exit,
    /// True if blocks were to stay allocated, which they do not.
    pub keeps_blocks: bool,
    /// True if the keys of what is stored are to be erased; blocks are all the same.
    pub is_crypto: bool,
}

impl From<Exit> for SanitizeRequest {
    fn from(exit: Exit) -> Self {
        Self { exit, keeps_blocks: false, is_crypto: false }
    }
}

/// Self-test of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelfTest {
    /// Reads a sample of the stored data.
    Short,
    /// Reads and verifies all stored data.
    Extended,
}

/// Result of a self-test that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelfTestResult {
    /// Kind of test.
    pub test: SelfTest,
    /// End of the test.
    pub end: SelfTestEnd,
    /// Hours that the drive had been served when it ended.
    pub power_on_hours: u64,
    /// Namespace that was tested; none for all.
    pub namespace: Option<u32>,
}

/// End of a self-test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelfTestEnd {
    /// All data that was read was as it was written.
    Passed,
    /// A host aborted it.
    Aborted,
    /// A format ended it.
    Formatted,
    /// A sanitize ended it.
    Sanitized,
    /// Something could not be read.
    Failed {
        /// Namespace of the first failure, 0 if it belongs to none.
        namespace: u32,
        /// Sector of 512 bytes of the first failure within the namespace.
        lba: u64,
    },
}

/// Work in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A format.
    Format,
    /// A sanitize.
    Sanitize,
    /// A sanitize that failed: nothing else is done until the next one succeeds.
    SanitizeFailed,
    /// A self-test.
    SelfTest,
}

impl Work {
    /// Returns a description of the work, to follow "the drive is ".
    pub const fn word(self) -> &'static str {
        match self {
            Self::Format => "being formatted",
            Self::Sanitize => "being sanitized",
            Self::SanitizeFailed => "unusable after a failed sanitize",
            Self::SelfTest => "testing itself",
        }
    }

    /// Returns the next step for a host whose command is refused meanwhile.
    const fn remedy(self) -> &'static str {
        match self {
            Self::SanitizeFailed => "sanitize it again",
            Self::Format | Self::Sanitize | Self::SelfTest => "wait for it",
        }
    }
}

/// State of sanitizing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SanitizeState {
    /// The drive was never sanitized.
    #[default]
    Never,
    /// The last sanitize succeeded.
    Done,
    /// One is under way.
    Running,
    /// The last one failed.
    Failed,
}

/// Status of sanitizing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SanitizeStatus {
    /// State of the last sanitize.
    pub state: SanitizeState,
    /// Share that is done, in parts of 65536; 65535 when none is under way.
    pub progress: u16,
    /// True if nothing was written since the last one succeeded, or since the drive was made.
    pub is_erased: bool,
    /// Number of sanitizes that ended, well or not.
    pub ended: u64,
    /// True if a host may leave the failure mode without another sanitize.
    pub exit_is_free: bool,
    /// True if the last one was to leave blocks allocated.
    pub keeps_blocks: bool,
    /// True if the last one was to erase keys.
    pub is_crypto: bool,
}

/// Status of work and of what hosts may have changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationStatus {
    /// True if a format is under way.
    pub is_formatting: bool,
    /// Reason why the last format failed; none if it did not.
    pub format_failure: Option<String>,
    /// State of sanitizing.
    pub sanitize: SanitizeStatus,
    /// Self-test under way, with the percentage that is done.
    pub self_test: Option<(SelfTest, u8)>,
    /// Self-tests that ended, the latest first, at most 20.
    pub self_tests: Vec<SelfTestResult>,
}

/// Operations that a drive takes from hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operability {
    /// None: its parts are fixed.
    #[default]
    Fixed,
    /// Operations that change nothing, such as a self-test: the drive is served for reading only.
    ReadOnly,
    /// All of them.
    Full,
}

/// Protection of a namespace from changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protection {
    /// Not protected.
    #[default]
    Open,
    /// Protected by a host.
    ByHost,
    /// Protected by the drive, whose media take no more writes there.
    ByDrive,
}

/// Error that a host has a drive show, to test itself, with its number in Error Injection
/// ([ocp-nvme-2021]; those above 11 of later revisions).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedErrorKind {
    /// The controller hangs.
    ControllerHang = 1,
    /// The media hang.
    NandHang = 2,
    /// The power-loss protection is defect.
    PlpDefect = 3,
    /// The firmware fails.
    FirmwareError = 4,
    /// Memory that the drive cannot do without is corrupt.
    CriticalMemoryCorruption = 5,
    /// Other memory is corrupt.
    MemoryCorruption = 6,
    /// The firmware's own data on the media is corrupt.
    NandCorruption = 7,
    /// Memory of the controller is corrupt.
    SramCorruption = 8,
    /// The hardware fails.
    HardwareMalfunction = 9,
    /// No spare blocks are left.
    NoSpares = 10,
    /// Commands take long.
    LatencySpike = 14,
    /// A command fails.
    CommandFailure = 15,
    /// The drive is too hot.
    CriticalTemperature = 21,
    /// A die is gone.
    DieOffline = 22,
}

/// Error that is to come once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InjectedError {
    /// Kind of the error.
    pub kind: InjectedErrorKind,
    /// Reads from now on after which it comes; 0 for at once.
    pub after_reads: u16,
}

/// Kind of an event in the life of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A server began with it.
    Started,
    /// A namespace was created, deleted or resized.
    Namespace,
    /// A format began.
    FormatBegan,
    /// A format ended.
    FormatEnded,
    /// A sanitize began.
    SanitizeBegan,
    /// A sanitize ended.
    SanitizeEnded,
    /// Anything else.
    Other,
}

/// An event in the life of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveEvent {
    /// Milliseconds since the beginning of 1970, UTC.
    pub at_unix_ms: u64,
    /// Kind of the event.
    pub kind: EventKind,
    /// Description, as sentences.
    pub text: String,
}

/// Reason why an operation was not begun; nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperationError {
    /// There is no namespace with this identifier.
    #[error("there is no namespace {id}")]
    NoNamespace {
        /// Identifier.
        id: u32,
    },
    /// Too little space for a namespace.
    #[error("{asked} bytes for a namespace, {free} are free in one piece")]
    NoSpace {
        /// Bytes that were asked for.
        asked: u64,
        /// Bytes of the largest gap.
        free: u64,
    },
    /// The largest number of namespaces exists.
    #[error("there are {0} namespaces, which is the limit")]
    TooMany(u32),
    /// A value that the drive does not support.
    #[error("{what} is {value}, must be {limit}")]
    Value {
        /// Name of the value.
        what: &'static str,
        /// The value.
        value: u64,
        /// Supported values.
        limit: &'static str,
    },
    /// Work is under way that has to end first.
    #[error("the drive is {}; {}", .0.word(), .0.remedy())]
    Busy(Work),
    /// The drive is served for reading only.
    #[error("the drive is served for reading only")]
    ReadOnly,
    /// TCG Opal locks a range, or keeps namespaces as they are.
    #[error("TCG Opal locks the drive; unlock its ranges, or revert the drive")]
    Locked,
    /// A host has protected a namespace from changes.
    #[error("namespace {id} is write-protected; remove the protection first")]
    Protected {
        /// Identifier.
        id: u32,
    },
    /// The drive does not support the operation.
    #[error("this drive cannot {0}")]
    Unsupported(&'static str),
    /// The drive or the system failed.
    #[error("{attempted}: {reason}")]
    Failed {
        /// Operation that failed.
        attempted: &'static str,
        /// Reason, as text.
        reason: String,
    },
}

/// Reason why a command of security protocols is not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecurityRefusal {
    /// The drive, or its security protocol, is not of that kind.
    #[error("the drive does not have this security protocol")]
    Unsupported,
    /// The command before is still carried out.
    #[error("the security command before is still carried out")]
    Busy,
    /// The state of the drive does not admit it.
    #[error("the drive's state does not admit the security command")]
    Sequence,
}

/// A drive as hosts operate it. Many threads may call at once.
///
/// Methods that are not overridden refuse, or report nothing, as of a drive whose parts are fixed.
pub trait Operations: Administration {
    /// Returns the namespaces that exist, in ascending order of their identifiers.
    fn namespaces(&self) -> Vec<ServedNamespace>;

    /// Returns a number that changes whenever [`Operations::namespaces`] does, sizes apart.
    fn namespaces_version(&self) -> u64 {
        0
    }

    /// Returns the operations that it takes from hosts, as long as it is served.
    fn operability(&self) -> Operability {
        Operability::Fixed
    }

    /// True if namespaces may be created and deleted, and the drive formatted and sanitized.
    fn is_operable(&self) -> bool {
        self.operability() == Operability::Full
    }

    /// Returns the space for namespaces.
    fn space(&self) -> NamespaceSpace {
        let bytes = self.namespaces().iter().map(|it| it.device.size()).sum();
        NamespaceSpace { total_bytes: bytes, unallocated_bytes: 0 }
    }

    /// Creates an empty namespace. Returns its identifier.
    ///
    /// # Errors
    /// Fails if there is no room, a value is not supported, or work is under way.
    fn create_namespace(&self, request: &NamespaceRequest) -> Result<u32, OperationError> {
        let _ = request;
        Err(OperationError::Unsupported("create namespaces"))
    }

    /// Deletes a namespace with its data; all of them if `id` is none.
    ///
    /// # Errors
    /// Fails if there is no such namespace, or work is under way.
    fn delete_namespace(&self, id: Option<u32>) -> Result<(), OperationError> {
        let _ = id;
        Err(OperationError::Unsupported("delete namespaces"))
    }

    /// Begins to format. Returns where the result of this format will be.
    ///
    /// # Errors
    /// Fails if there is no such namespace, a value is not supported, or work is under way.
    fn begin_format(&self, request: &FormatRequest) -> Result<FormatResult, OperationError> {
        let _ = request;
        Err(OperationError::Unsupported("be formatted"))
    }

    /// Begins to erase all data that was ever stored, from the media too. A sanitize goes on after
    /// a crash, and cannot be stopped.
    ///
    /// # Errors
    /// Fails if work is under way.
    fn begin_sanitize(&self, request: SanitizeRequest) -> Result<(), OperationError> {
        let _ = request;
        Err(OperationError::Unsupported("be sanitized"))
    }

    /// Leaves the failure mode of a sanitize that was begun with [`Exit::Unrestricted`].
    ///
    /// # Errors
    /// Fails if only another sanitize ends it.
    fn exit_failure(&self) -> Result<(), OperationError> {
        Err(OperationError::Unsupported("be sanitized"))
    }

    /// Begins a self-test of a namespace, or of all of them.
    ///
    /// # Errors
    /// Fails if there is no such namespace, or work is under way.
    fn begin_self_test(
        &self,
        test: SelfTest,
        namespace: Option<u32>,
    ) -> Result<(), OperationError> {
        let _ = (test, namespace);
        Err(OperationError::Unsupported("test itself"))
    }

    /// Aborts the self-test under way, if there is one.
    fn abort_self_test(&self) {}

    /// Returns the progress and the results of work.
    fn operation_status(&self) -> OperationStatus {
        OperationStatus::default()
    }

    /// Marks sectors of 512 bytes of a namespace as unreadable, until they are written or trimmed.
    /// Once it returns no crash undoes it.
    ///
    /// # Errors
    /// Fails if there is no such namespace, or the mark cannot be stored.
    fn mark_unreadable(&self, id: u32, sector: u64, sectors: u64) -> Result<(), OperationError> {
        let _ = (id, sector, sectors);
        Err(OperationError::Unsupported("mark sectors as unreadable"))
    }

    /// Protects a namespace from changes, or ends its protection.
    ///
    /// # Errors
    /// Fails if there is no such namespace, the drive is served for reading only, or the protection
    /// cannot be stored.
    fn protect(&self, id: u32, is_protected: bool) -> Result<(), OperationError> {
        let _ = (id, is_protected);
        Err(OperationError::Unsupported("protect namespaces"))
    }

    /// Returns the protection of a namespace from changes.
    fn protection(&self, id: u32) -> Protection {
        let _ = id;
        Protection::Open
    }

    /// True if it can store reservations, so that they outlast the server.
    fn keeps_reservations(&self) -> bool {
        false
    }

    /// Returns the reservations of a namespace that are stored.
    fn reservations(&self, id: u32) -> PersistentReservations {
        let _ = id;
        PersistentReservations::default()
    }

    /// Stores the reservations of a namespace. Once it returns no crash undoes it.
    ///
    /// # Errors
    /// Fails if there is no such namespace, or they cannot be stored; those before are still there.
    fn keep_reservations(
        &self,
        id: u32,
        reservations: &PersistentReservations,
    ) -> Result<(), OperationError> {
        let _ = (id, reservations);
        Err(OperationError::Unsupported("store reservations"))
    }

    /// True if hosts may lock it by TCG Opal.
    fn has_opal(&self) -> bool {
        false
    }

    /// Carries out Security Send.
    ///
    /// # Errors
    /// Fails if the drive does not have the protocol, or the command before is still carried out.
    fn security_send(&self, channel: Channel, data: &[u8]) -> Result<(), SecurityRefusal> {
        let _ = (channel, data);
        Err(SecurityRefusal::Unsupported)
    }

    /// Takes note that the host of a channel is gone, and its session over.
    fn security_end(&self, channel: u64) {
        let _ = channel;
    }

    /// Carries out Security Receive. Returns at most `length` bytes.
    ///
    /// # Errors
    /// Fails as [`Operations::security_send`].
    fn security_receive(
        &self,
        channel: Channel,
        length: usize,
    ) -> Result<Vec<u8>, SecurityRefusal> {
        let _ = (channel, length);
        Err(SecurityRefusal::Unsupported)
    }

    /// True if what is stored is encrypted, and erasing all of it erases its keys first.
    fn erases_keys(&self) -> bool {
        false
    }

    /// True if hosts may have it show errors.
    fn injects_errors(&self) -> bool {
        false
    }

    /// Replaces the errors that are to come.
    ///
    /// # Errors
    /// Fails if the drive shows no such error.
    fn inject_errors(&self, errors: &[InjectedError]) -> Result<(), OperationError> {
        let _ = errors;
        Err(OperationError::Unsupported("show errors"))
    }

    /// Returns the errors that are still to come, as they were asked for.
    fn injected_errors(&self) -> Vec<InjectedError> {
        Vec::new()
    }

    /// Adds a note of a host's command to the drive's history.
    fn note(&self, kind: EventKind, text: String) {
        let _ = (kind, text);
    }

    /// Returns the time of the clock that events have, in milliseconds since the beginning of 1970,
    /// UTC; 0 where there is none.
    fn now_unix_ms(&self) -> u64 {
        0
    }

    /// Returns the latest events in the life of the drive, the last at the end.
    fn events(&self) -> Vec<DriveEvent> {
        Vec::new()
    }

    /// Returns the counters of the drive as text, for diagnosis.
    fn telemetry(&self) -> Vec<u8> {
        Vec::new()
    }
}
