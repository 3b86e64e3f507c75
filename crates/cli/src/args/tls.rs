//! Options for encryption of NBD connections.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use export::TlsMode;

/// Encryption of connections from NBD clients.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Encryption")]
pub(crate) struct TlsArgs {
    /// Folder with server-cert.pem, server-key.pem and ca-cert.pem: offer TLS to clients
    #[arg(long, value_name = "DIR")]
    pub(crate) tls_certificates: Option<PathBuf>,
    /// Policy for clients that do not use TLS
    #[arg(long, value_enum, default_value_t = Encryption::Required, requires = "tls_certificates")]
    pub(crate) tls: Encryption,
    /// Require a client certificate signed by ca-cert.pem
    #[arg(long, requires = "tls_certificates")]
    pub(crate) tls_verify_peer: bool,
}

/// Policy on clients that do not encrypt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Encryption {
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
