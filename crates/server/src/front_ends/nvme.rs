//! NVMe/TCP: listeners, what hosts have to prove, and the URIs for them.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::Args;
use export::{Address, Listener, Protocol};
use tracing::warn;

use super::encryption::Encryption;
use super::host_keys::HostKeys;
use super::{ExportedDrive, FrontEnd, Preparation, ReadyFrontEnd, Running};
use crate::activation::Place;
use crate::log;

/// `--nvme`.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct Options {
    /// Address for NVMe/TCP hosts: tcp:PORT (loopback), tcp:HOST:PORT or fd:N; may be repeated.
    /// Exports are namespaces of one subsystem
    #[arg(long, value_name = "ADDRESS", value_parser = tcp)]
    nvme: Vec<Place<Address>>,
    /// Logical block size for NVMe hosts in bytes: 512 or 4096. Namespaces that a host formatted or
    /// created keep theirs
    #[arg(long, default_value_t = 512, value_name = "BYTES", value_parser = block_bytes)]
    nvme_block_bytes: u32,
    /// File with the secrets of NVMe hosts (DH-HMAC-CHAP): a line for each host with its NQN and
    /// its secret (DHHC-1:...)
    #[arg(long, value_name = "FILE", requires = "nvme")]
    nvme_secrets: Option<PathBuf>,
    /// File with the TLS keys of NVMe/TCP hosts: a line for each host with its NQN and its
    /// pre-shared key (NVMeTLSkey-1:...)
    #[arg(long, value_name = "FILE", requires = "nvme")]
    nvme_tls_keys: Option<PathBuf>,
    /// Policy for NVMe/TCP hosts that do not use TLS, where keys are given
    #[arg(long, value_enum, default_value_t = Encryption::Required, value_name = "TLS")]
    nvme_tls: Encryption,
    /// Listen for NVMe hosts beyond the loopback without authentication
    #[arg(long, requires = "nvme", conflicts_with_all = ["nvme_secrets", "nvme_tls_keys"])]
    nvme_allow_any_host: bool,
}

/// Listeners for hosts, and what hosts have to prove.
struct Listeners {
    listeners: Vec<Listener>,
    keys: HostKeys,
}

impl Options {
    /// Bytes of a logical block of hosts.
    pub(super) const fn block_bytes(&self) -> u32 {
        self.nvme_block_bytes
    }

    /// True if hosts have to use TLS, with their key.
    fn requires_tls(&self) -> bool {
        self.nvme_tls_keys.is_some() && self.nvme_tls == Encryption::Required
    }

    /// Fails where other machines can reach an address without authentication, by secrets or by
    /// TLS, and the user did not allow any host.
    fn check_reach(&self, listener: &Listener) -> Result<()> {
        let address = listener.address();
        match (listener.is_reachable_from_outside(), self.nvme_allow_any_host) {
            (false, _) => {}
            (true, true) => log::warn_of_reach(address),
            (true, false) if self.requires_tls() => {}
            (true, false) if self.nvme_secrets.is_some() => warn!(
                "{address} can be reached from other machines; hosts are authenticated, but data \
                 need not be encrypted (--nvme-tls-keys)"
            ),
            (true, false) => bail!(
                "--nvme {address} can be reached from other machines; require TLS (--nvme-tls-keys \
                 FILE), give the secrets of hosts (--nvme-secrets FILE), or allow any host \
                 (--nvme-allow-any-host)"
            ),
        }
        Ok(())
    }
}

impl FrontEnd for Options {
    fn prepare(
        &self,
        preparation: &mut Preparation<'_>,
    ) -> Result<Option<Box<dyn ReadyFrontEnd>>> {
        if self.nvme.is_empty() {
            return Ok(None);
        }
        if preparation.must_encrypt && !self.requires_tls() {
            bail!(
                "NVMe/TCP would not be encrypted; give the TLS keys of hosts (--nvme-tls-keys \
                 FILE), or --tls allowed"
            );
        }
        let mut listeners = Vec::new();
        for place in &self.nvme {
            let listener = preparation.listen(place)?;
            self.check_reach(&listener)?;
            listeners.push(listener);
        }
        let (secrets, tls_keys) = (self.nvme_secrets.as_deref(), self.nvme_tls_keys.as_deref());
        let keys = HostKeys::read(secrets, tls_keys, self.nvme_tls.into())?;
        Ok(Some(Box::new(Listeners { listeners, keys })))
    }
}

impl ReadyFrontEnd for Listeners {
    fn start(self: Box<Self>, drive: &mut ExportedDrive<'_>) -> Result<Box<dyn Running>> {
        let Self { listeners, keys } = *self;
        drive.secure_subsystem(keys);
        let subsystem = drive.subsystem();
        for listener in listeners {
            drive.add_uris(|id| uri(listener.address(), subsystem.nqn(), id));
            drive.sockets.listeners.push((listener, Protocol::Nvme(Arc::clone(&subsystem))));
        }
        Ok(Box::new(()))
    }
}

/// The URI of a namespace, as the NVMe boot specification writes it.
fn uri(address: &Address, nqn: &str, namespace: u32) -> String {
    let place = address.to_string();
    let place = place.strip_prefix("tcp:").unwrap_or(&place);
    format!("nvme+tcp://{place}/{nqn}/{namespace}")
}

/// Reads an address for hosts of NVMe/TCP.
fn tcp(text: &str) -> Result<Place<Address>, String> {
    match text.parse::<Place<Address>>() {
        Ok(Place::At(Address::Unix(_))) => None,
        read => read.ok(),
    }
    .ok_or_else(|| format!("`{text}` is not an address: use tcp:PORT, tcp:HOST:PORT or fd:N"))
}

/// Reads the size of a logical block of NVMe hosts.
fn block_bytes(text: &str) -> Result<u32, &'static str> {
    match text {
        "512" => Ok(512),
        "4096" => Ok(4096),
        _ => Err("must be 512 or 4096"),
    }
}
