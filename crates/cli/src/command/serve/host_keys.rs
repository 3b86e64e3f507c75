//! Secrets and keys of NVMe hosts, from the files that `floatgate serve` is given.

use std::path::Path;

use anyhow::{Context as _, Result};
use export::nvme::{Secrets, TlsKeys};

use crate::args::Serve;
use crate::failure::Input;

/// Secrets and TLS keys of hosts; none where no file of them is given.
#[derive(Debug)]
pub(super) struct HostKeys {
    pub(super) secrets: Option<Secrets>,
    pub(super) tls_keys: Option<TlsKeys>,
}

impl HostKeys {
    /// Reads the files.
    ///
    /// # Errors
    /// Fails if one cannot be read, or holds anything else.
    pub(super) fn read(args: &Serve) -> Result<Self> {
        let secrets = args.nvme_secrets.as_deref().map(|file| read(file, Secrets::parse));
        let tls_keys = args.nvme_tls_keys.as_deref().map(|file| read(file, TlsKeys::parse));
        Ok(Self { secrets: secrets.transpose()?, tls_keys: tls_keys.transpose()? })
    }
}

fn read<T, E>(file: &Path, parse: impl Fn(&str) -> Result<T, E>) -> Result<T>
where
    E: std::error::Error + Send + Sync + 'static,
{
    let reading = || Input::reading(file);
    let text = std::fs::read_to_string(file).with_context(reading)?;
    parse(&text).with_context(reading)
}
