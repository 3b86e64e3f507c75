//! NVMe/TCP of `floatgate serve`: listeners, and the URIs for hosts.

use std::sync::Arc;

use anyhow::{Result, bail};
use export::{Address, Listener, Protocol};
use live::status;
use server::activation::{PassedSockets, Place};
use tracing::warn;

use super::front_end::ExportedDrive;
use super::warn_of_reach;
use crate::args::{Encryption, Serve};

/// Listens for NVMe/TCP hosts. An address that other machines can reach requires authentication, by
/// secrets or by TLS, or that the user allows any host.
pub(super) fn listen(args: &Serve, passed: &mut PassedSockets) -> Result<Vec<Listener>> {
    let demands_encryption =
        args.tls.tls_certificates.is_some() && args.tls.tls == Encryption::Required;
    if demands_encryption && !args.nvme.is_empty() && !requires_tls(args) {
        bail!(
            "NVMe/TCP would not be encrypted; give the TLS keys of hosts (--nvme-tls-keys FILE), \
             or --tls allowed"
        );
    }
    args.nvme.iter().map(|place| listen_at(place, args, passed)).collect()
}

/// True if hosts have to use TLS, with their key.
fn requires_tls(args: &Serve) -> bool {
    args.nvme_tls_keys.is_some() && args.nvme_tls == Encryption::Required
}

fn listen_at(place: &Place<Address>, args: &Serve, passed: &mut PassedSockets) -> Result<Listener> {
    let listener = match place {
        Place::At(address) => Listener::bind(address)?,
        Place::Passed(index) => passed.clients(*index)?,
    };
    let address = listener.address();
    match (listener.is_reachable_from_outside(), args.nvme_allow_any_host) {
        (false, _) => {}
        (true, true) => warn_of_reach(address),
        (true, false) if requires_tls(args) => {}
        (true, false) if args.nvme_secrets.is_some() => warn!(
            "{address} can be reached from other machines; hosts are authenticated, but data need \
             not be encrypted (--nvme-tls-keys)"
        ),
        (true, false) => bail!(
            "--nvme {address} can be reached from other machines; require TLS (--nvme-tls-keys \
             FILE), give the secrets of hosts (--nvme-secrets FILE), or allow any host \
             (--nvme-allow-any-host)"
        ),
    }
    Ok(listener)
}

/// Returns the listeners with the protocol of each, NBD first. Adds the URI of each namespace to
/// its export.
pub(super) fn with_subsystem(
    (nbd, nvme): (Vec<Listener>, Vec<Listener>),
    served: &ExportedDrive<'_>,
    offered: &mut [status::Export],
) -> Vec<(Listener, Protocol)> {
    let mut listeners: Vec<_> = nbd.into_iter().map(|it| (it, Protocol::Nbd)).collect();
    if nvme.is_empty() {
        return listeners;
    }
    let subsystem = served.subsystem();
    for listener in nvme {
        served.add_uris(offered, |id| uri(listener.address(), subsystem.nqn(), id));
        listeners.push((listener, Protocol::Nvme(Arc::clone(&subsystem))));
    }
    listeners
}

/// The URI of a namespace, as the NVMe boot specification writes it.
fn uri(address: &Address, nqn: &str, namespace: u32) -> String {
    let place = address.to_string();
    let place = place.strip_prefix("tcp:").unwrap_or(&place);
    format!("nvme+tcp://{place}/{nqn}/{namespace}")
}
