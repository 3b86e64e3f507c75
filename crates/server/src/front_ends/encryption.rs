//! Policy on clients that do not encrypt.

use clap::ValueEnum;
use export::TlsMode;

/// Policy on clients that do not encrypt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Encryption {
    /// TLS is optional
    Allowed,
    /// Clients must start TLS before anything else
    Required,
}

impl From<Encryption> for TlsMode {
    fn from(encryption: Encryption) -> Self {
        match encryption {
            Encryption::Allowed => Self::Allowed,
            Encryption::Required => Self::Required,
        }
    }
}
