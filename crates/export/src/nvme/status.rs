//! Status of a completed command ([nvme-base-2021], "Status Field").

use device::{OperationError, Work};

/// Status Code Type and Status Code of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    kind: u8,
    code: u8,
    /// True if the same command would fail again (Do Not Retry).
    is_final: bool,
    /// True if the error log has an entry about it (More).
    has_more: bool,
    /// Command Retry Delay: the number of a time in Identify, 1 to 3; 0 for none.
    retry: u8,
}

const GENERIC: u8 = 0;
const COMMAND_SPECIFIC: u8 = 1;
const MEDIA: u8 = 2;

impl Status {
    pub(crate) const SUCCESS: Self = Self::retried(GENERIC, 0x00);
    pub(crate) const INVALID_OPCODE: Self = Self::fixed(GENERIC, 0x01);
    pub(crate) const INVALID_FIELD: Self = Self::fixed(GENERIC, 0x02);
    pub(crate) const INTERNAL: Self = Self::retried(GENERIC, 0x06);
    pub(crate) const DATA_TRANSFER: Self = Self::retried(GENERIC, 0x04);
    pub(crate) const ABORTED_BY_REQUEST: Self = Self::retried(GENERIC, 0x07);
    pub(crate) const INVALID_NAMESPACE: Self = Self::fixed(GENERIC, 0x0B);
    pub(crate) const COMMAND_SEQUENCE: Self = Self::fixed(GENERIC, 0x0C);
    pub(crate) const SGL_LENGTH: Self = Self::fixed(GENERIC, 0x0F);
    pub(crate) const SGL_TYPE: Self = Self::fixed(GENERIC, 0x11);
    pub(crate) const PRP_OFFSET: Self = Self::fixed(GENERIC, 0x13);
    pub(crate) const OPERATION_DENIED: Self = Self::fixed(GENERIC, 0x15);
    pub(crate) const HOST_ID_FORMAT: Self = Self::fixed(GENERIC, 0x18);
    pub(crate) const SGL_OFFSET: Self = Self::fixed(GENERIC, 0x16);
    pub(crate) const ABORTED_BY_PREEMPTION: Self = Self::retried(GENERIC, 0x1B);
    pub(crate) const SANITIZE_FAILED: Self = Self::fixed(GENERIC, 0x1C);
    pub(crate) const SANITIZE_IN_PROGRESS: Self = Self::retried(GENERIC, 0x1D);
    pub(crate) const WRITE_PROTECTED: Self = Self::fixed(GENERIC, 0x20);
    pub(crate) const TRANSPORT: Self = Self::retried(GENERIC, 0x22);
    pub(crate) const LBA_OUT_OF_RANGE: Self = Self::fixed(GENERIC, 0x80);
    pub(crate) const CAPACITY_EXCEEDED: Self = Self::fixed(GENERIC, 0x81);
    pub(crate) const RESERVATION_CONFLICT: Self = Self::fixed(GENERIC, 0x83);
    pub(crate) const FORMAT_IN_PROGRESS: Self = Self::retried(GENERIC, 0x84);
    pub(crate) const NO_COMPLETION_QUEUE: Self = Self::fixed(COMMAND_SPECIFIC, 0x00);
    pub(crate) const QUEUE_IDENTIFIER: Self = Self::fixed(COMMAND_SPECIFIC, 0x01);
    pub(crate) const QUEUE_SIZE: Self = Self::fixed(COMMAND_SPECIFIC, 0x02);
    pub(crate) const AER_LIMIT: Self = Self::fixed(COMMAND_SPECIFIC, 0x05);
    pub(crate) const INTERRUPT_VECTOR: Self = Self::fixed(COMMAND_SPECIFIC, 0x08);
    pub(crate) const INVALID_LOG_PAGE: Self = Self::fixed(COMMAND_SPECIFIC, 0x09);
    pub(crate) const INVALID_FORMAT: Self = Self::fixed(COMMAND_SPECIFIC, 0x0A);
    pub(crate) const QUEUE_DELETION: Self = Self::fixed(COMMAND_SPECIFIC, 0x0C);
    pub(crate) const NOT_SAVEABLE: Self = Self::fixed(COMMAND_SPECIFIC, 0x0D);
    pub(crate) const NOT_CHANGEABLE: Self = Self::fixed(COMMAND_SPECIFIC, 0x0E);
    pub(crate) const NOT_OF_NAMESPACE: Self = Self::fixed(COMMAND_SPECIFIC, 0x0F);
    pub(crate) const INSUFFICIENT_CAPACITY: Self = Self::fixed(COMMAND_SPECIFIC, 0x15);
    pub(crate) const NO_IDENTIFIER: Self = Self::fixed(COMMAND_SPECIFIC, 0x16);
    pub(crate) const ALREADY_ATTACHED: Self = Self::fixed(COMMAND_SPECIFIC, 0x18);
    pub(crate) const PRIVATE: Self = Self::fixed(COMMAND_SPECIFIC, 0x19);
    pub(crate) const NOT_ATTACHED: Self = Self::fixed(COMMAND_SPECIFIC, 0x1A);
    pub(crate) const CONTROLLER_LIST: Self = Self::fixed(COMMAND_SPECIFIC, 0x1C);
    pub(crate) const ATTACHMENT_LIMIT: Self = Self::fixed(COMMAND_SPECIFIC, 0x27);
    pub(crate) const SELF_TEST_IN_PROGRESS: Self = Self::retried(COMMAND_SPECIFIC, 0x1D);
    pub(crate) const CONNECT_FORMAT: Self = Self::fixed(COMMAND_SPECIFIC, 0x80);
    pub(crate) const CONNECT_BUSY: Self = Self::retried(COMMAND_SPECIFIC, 0x81);
    pub(crate) const CONNECT_PARAMETER: Self = Self::fixed(COMMAND_SPECIFIC, 0x82);
    pub(crate) const CONNECT_HOST: Self = Self::fixed(COMMAND_SPECIFIC, 0x84);
    pub(crate) const QUEUE_TYPE: Self = Self::fixed(COMMAND_SPECIFIC, 0x85);
    pub(crate) const COMMAND_SIZE_LIMIT: Self = Self::fixed(COMMAND_SPECIFIC, 0x83);
    pub(crate) const AUTHENTICATION_REQUIRED: Self = Self::fixed(COMMAND_SPECIFIC, 0x91);
    pub(crate) const WRITE_FAULT: Self = Self::fixed(MEDIA, 0x80);
    pub(crate) const UNRECOVERED_READ: Self = Self::fixed(MEDIA, 0x81);
    pub(crate) const COMPARE_FAILURE: Self = Self::fixed(MEDIA, 0x85);
    pub(crate) const ACCESS_DENIED: Self = Self::fixed(MEDIA, 0x86);

    /// A status after which a retry may succeed.
    const fn retried(kind: u8, code: u8) -> Self {
        Self { kind, code, is_final: false, has_more: false, retry: 0 }
    }

    /// A status that a retry would return again (Do Not Retry).
    const fn fixed(kind: u8, code: u8) -> Self {
        Self { kind, code, is_final: true, has_more: false, retry: 0 }
    }

    /// The status with More set, which refers the host to the error log.
    pub(crate) const fn logged(self) -> Self {
        Self { has_more: true, ..self }
    }

    /// The status of a transient failure: without Do Not Retry, and with Command Retry Delay 1 if
    /// the host enabled it (`has_delay`).
    pub(crate) const fn passing(self, has_delay: bool) -> Self {
        Self { is_final: false, retry: if has_delay { 1 } else { 0 }, ..self }
    }

    /// True if the error log gets an entry for it: what the drive could not do, not what the host
    /// should not have asked for.
    pub(crate) const fn is_of_drive(self) -> bool {
        let is_of_host =
            self.code == Self::COMPARE_FAILURE.code || self.code == Self::ACCESS_DENIED.code;
        self.kind == MEDIA && !is_of_host
            || self.kind == GENERIC && self.code == Self::CAPACITY_EXCEEDED.code
    }

    /// Bits 31:17 of dword 3 of a completion. Bit 16, the phase tag, is unused over fabrics.
    pub(crate) const fn field(self) -> u16 {
        (self.code as u16) << 1
            | (self.kind as u16) << 9
            | (self.retry as u16) << 12
            | (self.has_more as u16) << 14
            | (self.is_final as u16) << 15
    }
}

/// The status of a command that background work on the drive does not admit.
pub(super) const fn in_progress(work: Work) -> Status {
    match work {
        Work::Format => Status::FORMAT_IN_PROGRESS,
        Work::Sanitize => Status::SANITIZE_IN_PROGRESS,
        Work::SanitizeFailed => Status::SANITIZE_FAILED,
        Work::SelfTest => Status::SELF_TEST_IN_PROGRESS,
    }
}

/// The status of an operation that was not begun.
pub(super) const fn refusal(error: &OperationError) -> Status {
    match error {
        OperationError::NoNamespace { .. } => Status::INVALID_NAMESPACE,
        OperationError::NoSpace { .. } => Status::INSUFFICIENT_CAPACITY,
        OperationError::TooMany(_) => Status::NO_IDENTIFIER,
        OperationError::Value { .. } => Status::INVALID_FIELD,
        OperationError::Busy(work) => in_progress(*work),
        OperationError::ReadOnly | OperationError::Protected { .. } => Status::WRITE_PROTECTED,
        OperationError::Locked => Status::OPERATION_DENIED,
        OperationError::Unsupported(_) => Status::INVALID_OPCODE,
        OperationError::Failed { .. } => Status::INTERNAL,
    }
}
