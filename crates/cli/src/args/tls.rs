//! Options for encryption of NBD connections.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Encryption of connections from NBD clients.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Encryption")]
pub(crate) struct TlsArgs {
    /// Folder of server-cert.pem, server-key.pem and ca-cert.pem: clients encrypt
    #[arg(long, value_name = "DIR")]
    pub(crate) tls_certificates: Option<PathBuf>,
    /// Demand on clients to encrypt
    #[arg(long, value_enum, default_value_t = Encryption::Required)]
    pub(crate) tls: Encryption,
    /// Takes in only clients with a certificate that ca-cert.pem signed
    #[arg(long, requires = "tls_certificates")]
    pub(crate) tls_verify_peer: bool,
}

/// Policy on clients that do not encrypt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Encryption {
    /// They may
    Allowed,
    /// They learn nothing before they do
    Required,
}
