//! Checks of the options of `floatgate serve`, before a volume is opened.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use blockio::Bytes;
use lab::{Error, Kind};
use live::Namespaces;
use live::operator::{KeptNamespace, PersistentState};

use crate::args::{HttpArgs, Serve};
use crate::failure::Opening;

/// Refuses a volume in memory that does not consist of whole logical blocks.
pub(super) fn check_memory(args: &Serve) -> Result<()> {
    let Some(Bytes(size)) = args.memory else { return Ok(()) };
    let block = u64::from(args.nvme_block_bytes);
    if size.is_multiple_of(block) {
        return Ok(());
    }
    let text = format!("--memory {size}b: must be a multiple of {block} bytes, a logical block");
    let (less, more) = (size / block * block, size.next_multiple_of(block));
    let less = if less == 0 { String::new() } else { format!("{less}b or ") };
    Err(Error::new(Kind::Input, text).hint(format!("use {less}{more}b")).into())
}

/// Refuses to serve without a front end.
pub(super) fn check_reachable(args: &Serve, has_no_front_end: bool) -> Result<()> {
    if args.nbd.is_empty() && args.nvme.is_empty() && args.fuse.is_none() && has_no_front_end {
        let text = "no front end was given, so no client could connect";
        let hint = "give --nbd ADDRESS, or another front end: see `floatgate serve --help`";
        return Err(Error::new(Kind::Input, text).hint(hint).into());
    }
    Ok(())
}

/// Refuses options of HTTP pages without `--http`: a user might take the pages for encrypted.
pub(super) fn check_pages(args: &Serve) -> Result<()> {
    let HttpArgs { http_host, http_tls_certificates, .. } = &args.pages;
    if args.http.is_none() && (!http_host.is_empty() || http_tls_certificates.is_some()) {
        let text = "--http-host and --http-tls-certificates need --http ADDRESS";
        return Err(Error::new(Kind::Input, text).into());
    }
    Ok(())
}

/// Refuses a recording where there is a file already, before the drive is opened.
pub(super) fn check_recording(file: &Path) -> Result<()> {
    if !file.exists() {
        return Ok(());
    }
    let text = format!("{} already exists", file.display());
    Err(Error::new(Kind::Refused, text).hint("name a new file for the recording").into())
}

/// Refuses a default export that the volume does not have. A volume without exports is served
/// under any name.
pub(super) fn check_export(args: &Serve) -> Result<()> {
    let Some(volume) = &args.volume else { return Ok(()) };
    let namespaces = Namespaces::of(volume).with_context(|| Opening::of(volume))?;
    let names: Vec<&str> = namespaces.iter().map(|it| it.name.as_str()).collect();
    if args.export.is_empty() || names.is_empty() || names.contains(&args.export.as_str()) {
        return Ok(());
    }
    let text = format!("{} has no export named `{}`", volume.display(), args.export);
    let hint = format!("its exports are {}", names.join(", "));
    Err(Error::new(Kind::Input, text).hint(hint).into())
}

/// Checks that namespaces consist of whole logical blocks.
pub(super) fn check_blocks(kept: &PersistentState, capacity: u64) -> Result<()> {
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
