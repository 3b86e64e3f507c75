//! Secrets and keys of NVMe hosts, from files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use export::TlsMode;
use export::nvme::{Secrets, TlsKeys};
use tracing::warn;

use crate::failure::Input;

/// Secrets and TLS keys of hosts; none where no file of them is given.
#[derive(Debug, Default)]
pub(super) struct HostKeys {
    pub(super) secrets: Option<Secrets>,
    /// Keys, and the policy on hosts that do not use TLS.
    pub(super) tls_keys: Option<(TlsKeys, TlsMode)>,
}

impl HostKeys {
    /// Reads the files.
    ///
    /// # Errors
    /// Fails if one cannot be read, or holds anything else.
    pub(super) fn read(
        secrets: Option<&Path>,
        tls_keys: Option<&Path>,
        mode: TlsMode,
    ) -> Result<Self> {
        let secrets = secrets.map(|file| read(file, Secrets::parse)).transpose()?;
        let tls_keys = tls_keys.map(|file| read(file, TlsKeys::parse)).transpose()?;
        Ok(Self { secrets, tls_keys: tls_keys.map(|keys| (keys, mode)) })
    }
}

/// Warns of a file of secrets that other users may read or write.
fn warn_of_readers(file: &Path) {
    let Ok(found) = fs::metadata(file) else { return };
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let shown = file.display();
        warn!(
            "other users may use the secrets in {shown}, which has mode {mode:03o}: `chmod 600 \
             {shown}`"
        );
    }
}

fn read<T, E>(file: &Path, parse: impl Fn(&str) -> Result<T, E>) -> Result<T>
where
    E: std::error::Error + Send + Sync + 'static,
{
    let reading = || Input::reading(file);
    warn_of_readers(file);
    let text = fs::read_to_string(file).with_context(reading)?;
    parse(&text).with_context(reading)
}
