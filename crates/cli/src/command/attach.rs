//! `floatgate attach`, `floatgate detach`: a device node on this machine for a served drive.
//!
//! ```text
//!   volume ──► its server: URIs ──► the first way that this machine has to one ──► /dev/...
//! ```
//!
//! A way is a kind of URI with what the kernel needs for it. One more is a file, and a line in
//! [`WAYS`].

mod kernel_nbd;
mod nvme_tcp;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use lab::{Error, Kind};

use crate::args::{Attach, Detach};
use crate::command::maintenance::server;
use crate::{Ending, output};

/// A way to a device node.
struct Way {
    /// Its name for people.
    name: &'static str,
    /// True if URIs like this one lead there.
    takes: fn(&str) -> bool,
    /// Remedy for the first thing that this machine lacks for it; none if it lacks nothing.
    lacks: fn() -> Option<&'static str>,
    /// Makes the device of a URI.
    attach: fn(&str) -> Result<PathBuf>,
    /// True if it made the device of this name.
    made: fn(&str) -> bool,
    /// Takes a device of this name away.
    detach: fn(&str) -> Result<()>,
}

/// The ways, the fastest first.
const WAYS: [Way; 2] = [nvme_tcp::WAY, kernel_nbd::WAY];

/// Gives a served drive a device node, and prints its path.
pub(crate) fn attach(args: &Attach) -> Result<Ending> {
    let uris = uris(args)?;
    let mut lacking = Vec::new();
    for way in &WAYS {
        let Some(uri) = uris.iter().find(|uri| (way.takes)(uri)) else { continue };
        if let Some(remedy) = (way.lacks)() {
            lacking.push(format!("{}: {remedy}", way.name));
            continue;
        }
        let device = (way.attach)(uri).with_context(|| format!("attaching {uri}"))?;
        output::data(&device.display().to_string())?;
        return Ok(Ending::Done);
    }
    if lacking.is_empty() {
        lacking.push("serve it with --nvme tcp:4420 or --nbd unix:PATH".to_owned());
    }
    let text = format!("this machine has no way to a device node of {}", args.of);
    Err(Error::new(Kind::Input, text).hint(lacking.join("; or ")).into())
}

/// URIs of the export.
fn uris(args: &Attach) -> Result<Vec<String>> {
    if args.of.contains("://") {
        return Ok(vec![args.of.clone()]);
    }
    let volume = Path::new(&args.of);
    let shown = volume.display();
    let Some(mut connection) = server(volume)? else {
        let text = format!("{shown} is not served");
        let hint = format!("serve it first: `floatgate serve {shown} --nvme tcp:4420`");
        return Err(Error::new(Kind::Input, text).hint(hint).into());
    };
    let status = connection.status().context("asking the server where it is reached")?;
    let exports = status.server.map(|server| server.exports).unwrap_or_default();
    let found = match &args.export {
        Some(name) => exports.iter().find(|export| export.name == *name),
        None => exports.first(),
    };
    let names: Vec<&str> = exports.iter().map(|export| export.name.as_str()).collect();
    let Some(export) = found else {
        bail!("no export of {shown} has that name; there are {}", names.join(", "));
    };
    Ok(export.uris.clone())
}

/// Takes a device node away.
pub(crate) fn detach(args: &Detach) -> Result<Ending> {
    let shown = args.device.display();
    let name = args.device.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some(way) = WAYS.iter().find(|way| (way.made)(name)) else {
        bail!("{shown} is no device that `floatgate attach` makes");
    };
    (way.detach)(name).with_context(|| format!("detaching {shown}"))?;
    Ok(Ending::Done)
}
