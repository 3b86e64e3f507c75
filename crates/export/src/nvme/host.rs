//! Hosts as they present themselves, and what they connect for.

use super::transport::Transport;

/// Purpose of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Reads and writes namespaces.
    Io,
    /// Reports the addresses of subsystems.
    Discovery,
}

/// A host as it presents itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    /// NQN.
    pub(super) name: String,
    /// Host Identifier, of 128 bits.
    pub(super) id: [u8; 16],
    pub(super) transport: Transport,
    /// True if it is authenticated.
    pub(super) is_authenticated: bool,
    /// True if its connections are encrypted.
    pub(super) is_encrypted: bool,
}

impl Host {
    /// True if its identifier came with Connect, and has 128 bits.
    pub(super) const fn is_extended(&self) -> bool {
        self.transport.is_fabrics()
    }
}
