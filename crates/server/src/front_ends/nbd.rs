//! NBD, with or without TLS.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use export::{Address, Exports, Listener, Protocol, Tls, TlsMode};

use super::encryption::Encryption;
use super::{ExportedDrive, FrontEnd, Preparation, ReadyFrontEnd, Running};
use crate::activation::Place;
use crate::failure::Input;
use crate::log;

/// `--nbd`.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct Options {
    /// Address for NBD clients: unix:PATH, tcp:PORT (loopback), tcp:HOST:PORT, or fd:N for a socket
    /// inherited from systemd; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    nbd: Vec<Place<Address>>,
    /// Folder with server-cert.pem, server-key.pem and ca-cert.pem: offer TLS to clients
    #[arg(long, value_name = "DIR", help_heading = "Encryption")]
    tls_certificates: Option<PathBuf>,
    /// Policy for clients that do not use TLS
    #[arg(long, value_enum, default_value_t = Encryption::Required, help_heading = "Encryption")]
    #[arg(requires = "tls_certificates")]
    tls: Encryption,
    /// Require a client certificate signed by ca-cert.pem
    #[arg(long, requires = "tls_certificates", help_heading = "Encryption")]
    tls_verify_peer: bool,
}

impl Options {
    /// True if no client of any protocol may send in plaintext.
    pub(super) const fn demands_encryption(&self) -> bool {
        self.tls_certificates.is_some() && matches!(self.tls, Encryption::Required)
    }
}

/// Sockets that listen, and the certificates for their clients.
struct Listeners {
    listeners: Vec<Listener>,
    tls: Option<Tls>,
}

impl FrontEnd for Options {
    fn prepare(
        &self,
        preparation: &mut Preparation<'_>,
    ) -> Result<Option<Box<dyn ReadyFrontEnd>>> {
        let Self { nbd, tls_certificates, tls, tls_verify_peer } = self;
        let load = |folder: &Path| Tls::load(folder, (*tls).into(), *tls_verify_peer);
        let loaded = tls_certificates.as_deref().map(load).transpose();
        let loaded = loaded.with_context(|| Input("reading the certificates".into()))?;
        // Who has to show a certificate is known.
        let is_guarded = *tls_verify_peer && *tls == Encryption::Required;
        let mut listeners = Vec::new();
        for place in nbd {
            let listener = preparation.listen(place)?;
            if listener.is_reachable_from_outside() && !is_guarded {
                log::warn_of_reach(listener.address());
            }
            listeners.push(listener);
        }
        if listeners.is_empty() {
            return Ok(None);
        }
        Ok(Some(Box::new(Listeners { listeners, tls: loaded })))
    }
}

impl ReadyFrontEnd for Listeners {
    fn start(self: Box<Self>, drive: &mut ExportedDrive<'_>) -> Result<Box<dyn Running>> {
        let Self { listeners, tls } = *self;
        add_uris(&mut drive.offered, &listeners, tls.as_ref());
        drive.sockets.tls = tls;
        drive.sockets.listeners.extend(listeners.into_iter().map(|it| (it, Protocol::Nbd)));
        Ok(Box::new(()))
    }
}

/// Adds the URIs that clients reach each export by.
fn add_uris(offered: &mut [status::Export], listeners: &[Listener], tls: Option<&Tls>) {
    let is_encrypted = tls.is_some_and(|tls| tls.mode() == TlsMode::Required);
    let uri: fn(&Address, &str) -> String =
        if is_encrypted { Address::encrypted_uri } else { Address::uri };
    for export in offered {
        export.uris.extend(listeners.iter().map(|it| uri(it.address(), &export.name)));
    }
}

/// Exports as the status has them, with the URIs of NBD clients without TLS.
pub fn export_statuses(exports: &Exports, listeners: &[Listener]) -> Vec<status::Export> {
    let mut statuses = super::export_statuses(exports);
    add_uris(&mut statuses, listeners, None);
    statuses
}
