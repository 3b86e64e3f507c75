//! Commands of admin queues: what they are carried out on, and what comes of them.

use blockio::Nanos;

use super::drive::NvmeDrive;
use super::status::Status;
use crate::{Pace, TlsMode};

/// Completion of a command, with its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandCompletion {
    pub(super) status: Status,
    /// Dwords 0 and 1.
    pub(super) value: u64,
    pub(super) data: Vec<u8>,
}

/// Effect of a command.
#[derive(Debug)]
pub(super) enum Outcome {
    Completed(CommandCompletion),
    /// Completed later, by the controller.
    Held,
    /// Completed, and the queue goes.
    Disconnected,
}

impl From<Status> for CommandCompletion {
    fn from(status: Status) -> Self {
        Self { status, value: 0, data: Vec::new() }
    }
}

impl CommandCompletion {
    pub(super) fn value(value: impl Into<u64>) -> Self {
        Self { value: value.into(), ..Status::SUCCESS.into() }
    }

    pub(super) fn data(data: Vec<u8>) -> Self {
        Self { data, ..Status::SUCCESS.into() }
    }
}

impl From<Result<CommandCompletion, Status>> for Outcome {
    fn from(done: Result<CommandCompletion, Status>) -> Self {
        Self::Completed(done.unwrap_or_else(CommandCompletion::from))
    }
}

/// Drive and time of a command of the admin queue.
pub(super) struct Context<'a> {
    pub(super) drive: &'a NvmeDrive,
    pub(super) now: Nanos,
    /// Address that the host connected to, and its port.
    pub(super) address: Option<std::net::SocketAddr>,
    /// Obligation of hosts to encrypt; none where they cannot.
    pub(super) encryption: Option<TlsMode>,
    /// The model whose times completions keep to, if there is one.
    pub(super) pace: Option<&'a Pace>,
}
