//! `floatgate volume attach`, `floatgate volume detach`: a block device on this machine for a
//! served drive.
//!
//! ```text
//!   volume ──► URIs from its server ──► the first kernel client for one of them ──► /dev/...
//! ```
//!
//! A device of ublk is made by the server itself, and is its own URI. One more kernel client is a
//! file, and an entry of [`CLIENTS`].

mod kernel_nbd;
mod nvme_tcp;
mod ublk;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use lab::{Error, Kind};

use crate::args::{Attach, Detach};
use crate::command::maintenance::server;
use crate::{Ending, output};

/// A client in the kernel, which makes block devices of URIs.
struct KernelClient {
    /// Name of its protocol.
    name: &'static str,
    /// Option of `floatgate volume serve` that serves over it.
    option: &'static str,
    /// True if it connects to URIs like this one.
    accepts: fn(&str) -> bool,
    /// The first thing that this machine lacks for it; none if it lacks nothing.
    missing: fn() -> Option<&'static str>,
    /// Makes the device of a URI.
    attach: fn(&str) -> Result<PathBuf>,
    /// True if its devices are named like this one.
    owns: fn(&str) -> bool,
    /// Removes a device of this name.
    detach: fn(&str) -> Result<()>,
}

/// The kernel clients, in the order of preference.
const CLIENTS: [KernelClient; 3] = [ublk::CLIENT, nvme_tcp::CLIENT, kernel_nbd::CLIENT];

/// Makes a block device of a served drive, and prints its path.
pub(crate) fn attach(args: &Attach) -> Result<Ending> {
    let uris = uris(args)?;
    let mut remedies = Vec::new();
    for client in &CLIENTS {
        let uri = uris.iter().find(|uri| (client.accepts)(uri));
        let missing = (client.missing)();
        let Some(uri) = uri.filter(|_| missing.is_none()) else {
            remedies.push(remedy(client, uri.is_some(), missing));
            continue;
        };
        let device = (client.attach)(uri).with_context(|| format!("attaching {uri}"))?;
        output::data(&device.display().to_string())?;
        return Ok(Ending::Done);
    }
    let text = format!("{} cannot be attached on this machine", args.of);
    Err(Error::new(Kind::Input, text).hint(remedies.join("; ")).into())
}

/// Says what a client needs: of the server, unless the drive is offered over its protocol, and of
/// this machine, if that lacks something.
fn remedy(client: &KernelClient, is_offered: bool, missing: Option<&str>) -> String {
    let KernelClient { name, option, .. } = client;
    match missing {
        Some(missing) if is_offered => format!("{name} needs {missing}"),
        Some(missing) => format!("{name} needs the server option {option}, and {missing}"),
        None => format!("{name} needs only the server option {option}"),
    }
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
        let hint = format!("serve it first: `floatgate volume serve {shown} --nvme tcp:4420`");
        return Err(Error::new(Kind::Input, text).hint(hint).into());
    };
    let status = connection.status().context("asking the server for its URIs")?;
    let exports = status.server.map(|server| server.exports).unwrap_or_default();
    let found = match &args.export {
        Some(name) => exports.iter().find(|export| export.name == *name),
        None => exports.first(),
    };
    let Some(export) = found else {
        let names: Vec<&str> = exports.iter().map(|export| export.name.as_str()).collect();
        let name = args.export.as_deref().unwrap_or_default();
        bail!("{shown} has no export named `{name}`; its exports are {}", names.join(", "));
    };
    Ok(export.uris.clone())
}

/// Removes the block device of a served drive.
pub(crate) fn detach(args: &Detach) -> Result<Ending> {
    let shown = args.device.display();
    let name = args.device.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some(client) = CLIENTS.iter().find(|client| (client.owns)(name)) else {
        bail!(
            "{shown} is not a device of `floatgate volume attach`, such as /dev/ublkb0 or \
             /dev/nvme0n1"
        );
    };
    (client.detach)(name).with_context(|| format!("detaching {shown}"))?;
    Ok(Ending::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_to_attach_says_what_it_lacks() {
        let said = |is_offered, missing| remedy(&nvme_tcp::CLIENT, is_offered, missing);
        let module = Some("`modprobe nvme-tcp`");
        assert_eq!(said(true, module), "NVMe/TCP needs `modprobe nvme-tcp`");
        assert_eq!(
            said(false, module),
            "NVMe/TCP needs the server option --nvme tcp:4420, and `modprobe nvme-tcp`"
        );
        assert_eq!(said(false, None), "NVMe/TCP needs only the server option --nvme tcp:4420");
    }
}
