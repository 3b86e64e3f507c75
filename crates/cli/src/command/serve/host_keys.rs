//! Files of `floatgate serve` with the secrets and keys of NVMe hosts.

use std::fs;

use anyhow::{Context as _, Result};
use export::nvme::{Secrets, TlsKeys};

use crate::args::Serve;
use crate::failure::Input;

/// The secrets of hosts; none without `--nvme-secrets`.
///
/// # Errors
/// Fails if the file cannot be read, or holds anything else.
pub(super) fn secrets(args: &Serve) -> Result<Option<Secrets>> {
    let Some(file) = &args.nvme_secrets else { return Ok(None) };
    let reading = || Input(format!("reading {}", file.display()));
    let text = fs::read_to_string(file).with_context(reading)?;
    Secrets::parse(&text).map(Some).with_context(reading)
}

/// The TLS keys of hosts; none without `--nvme-tls-keys`.
///
/// # Errors
/// Fails if the file cannot be read, or holds anything else.
pub(super) fn tls_keys(args: &Serve) -> Result<Option<TlsKeys>> {
    let Some(file) = &args.nvme_tls_keys else { return Ok(None) };
    let reading = || Input(format!("reading {}", file.display()));
    let text = fs::read_to_string(file).with_context(reading)?;
    TlsKeys::parse(&text).map(Some).with_context(reading)
}
