//! Checks of a server's configuration, before a volume is opened.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use blockio::Bytes;
use lab::{Error, Kind};
use live::Namespaces;
use live::operator::{KeptNamespace, PersistentState};

use crate::config::{Config, Storage};
use crate::failure::Opening;
use crate::front_ends::ReadyFrontEnd;

/// Refuses a volume in memory that does not consist of whole logical blocks.
pub(crate) fn check_memory(config: &Config) -> Result<()> {
    let Storage::Memory(Bytes(size)) = config.storage else { return Ok(()) };
    let block = u64::from(config.front_ends.block_bytes());
    if size.is_multiple_of(block) {
        return Ok(());
    }
    let text = format!("--memory {size}b: must be a multiple of {block} bytes, a logical block");
    let (less, more) = (size / block * block, size.next_multiple_of(block));
    let less = if less == 0 { String::new() } else { format!("{less}b or ") };
    Err(Error::new(Kind::Input, text).hint(format!("use {less}{more}b")).into())
}

/// Refuses to serve without a front end.
pub(crate) fn check_reachable(front_ends: &[Box<dyn ReadyFrontEnd>]) -> Result<()> {
    if front_ends.is_empty() {
        let text = "no front end was given, so no client could connect";
        let hint = "give --nbd ADDRESS, or another front end: see `floatgate volume serve --help`";
        return Err(Error::new(Kind::Input, text).hint(hint).into());
    }
    Ok(())
}

/// Refuses promises of a volume in memory, whose data is gone with its server.
pub(crate) fn check_promise(config: &Config) -> Result<()> {
    if matches!(config.storage, Storage::Memory(_)) && config.promise.is_some() {
        let text = "--durable and --volatile are about volumes in a folder, not about --memory";
        return Err(Error::new(Kind::Input, text).into());
    }
    Ok(())
}

/// Refuses a recording where there is a file already, before the drive is opened.
pub(crate) fn check_recording(file: &Path) -> Result<()> {
    if !file.exists() {
        return Ok(());
    }
    let text = format!("{} already exists", file.display());
    Err(Error::new(Kind::Refused, text).hint("name a new file for the recording").into())
}

/// Refuses a default export that the volume does not have. A volume without exports is served
/// under any name.
pub(crate) fn check_export(config: &Config) -> Result<()> {
    let Storage::Volume(volume) = &config.storage else { return Ok(()) };
    let default = &*config.default_export;
    let namespaces = Namespaces::of(volume).with_context(|| Opening::of(volume))?;
    let names: Vec<&str> = namespaces.iter().map(|it| it.name.as_str()).collect();
    if default.is_empty() || names.is_empty() || names.contains(&default) {
        return Ok(());
    }
    let text = format!("{} has no export named `{default}`", volume.display());
    let hint = format!("its exports are {}", names.join(", "));
    Err(Error::new(Kind::Input, text).hint(hint).into())
}

/// Checks that namespaces consist of whole logical blocks.
pub(crate) fn check_blocks(kept: &PersistentState, capacity: u64) -> Result<()> {
    for KeptNamespace { id, size, block_bytes, .. } in &kept.namespaces {
        let size = size.unwrap_or(capacity);
        if !size.is_multiple_of((*block_bytes).into()) {
            bail!(
                "namespace {id} has {size} bytes, not a multiple of its logical block size of \
                 {block_bytes}; serve it with --nvme-block-bytes 512"
            );
        }
    }
    Ok(())
}
