//! NBD through the kernel's own client, which `nbd-client` sets up.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use super::Way;
use crate::mount::check_program;

pub(super) const WAY: Way = Way {
    name: "NBD",
    takes: |uri| uri.starts_with("nbd"),
    lacks: || {
        if !Path::new("/sys/block/nbd0").exists() {
            return Some("modprobe nbd, of a kernel that has CONFIG_BLK_DEV_NBD");
        }
        let remedy = "install nbd-client, of the package nbd-client of Debian and Ubuntu";
        check_program(PROGRAM, PROGRAM).is_err().then_some(remedy)
    },
    attach,
    made: |name| name.starts_with("nbd"),
    detach,
};

const PROGRAM: &str = "nbd-client";

fn attach(uri: &str) -> Result<PathBuf> {
    let device =
        free_device().context("every NBD device is in use; raise nbds_max of the module")?;
    let mut command = Command::new(PROGRAM);
    command.args(arguments(uri).context("reading the URI")?).arg(&device).arg("-persist");
    run(&mut command)?;
    Ok(device)
}

/// The arguments of `nbd-client` for a URI: where to connect, and the name of the export.
fn arguments(uri: &str) -> Option<Vec<String>> {
    let name = |name: &str| vec!["-name".to_owned(), name.to_owned()];
    if let Some(rest) = uri.strip_prefix("nbd+unix:///") {
        let (export, socket) = rest.split_once("?socket=")?;
        let mut words = vec!["-unix".to_owned(), socket.to_owned()];
        words.extend(name(export));
        return Some(words);
    }
    let rest = uri.strip_prefix("nbd://")?;
    let (place, export) = rest.split_once('/').unwrap_or((rest, ""));
    let (host, port) = place.rsplit_once(':').unwrap_or((place, "10809"));
    let mut words = vec![host.trim_matches(['[', ']']).to_owned(), port.to_owned()];
    words.extend(name(export));
    Some(words)
}

/// The first device that nobody uses.
fn free_device() -> Option<PathBuf> {
    let entries = fs::read_dir("/sys/block").ok()?.flatten();
    let numbers = entries.filter_map(|entry| {
        let number = entry.file_name().to_str()?.strip_prefix("nbd")?.parse::<u32>().ok()?;
        // A device in use has the process that set it up.
        (!entry.path().join("pid").exists()).then_some(number)
    });
    numbers.min().map(|number| Path::new("/dev").join(format!("nbd{number}")))
}

fn detach(name: &str) -> Result<()> {
    run(Command::new(PROGRAM).arg("-d").arg(Path::new("/dev").join(name)))
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().context("running nbd-client")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("nbd-client: {}", said.lines().last().unwrap_or("it failed and said nothing"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_becomes_the_arguments_of_nbd_client() {
        let words = |uri| arguments(uri).unwrap().join(" ");
        assert_eq!(words("nbd+unix:///data?socket=/run/s"), "-unix /run/s -name data");
        assert_eq!(words("nbd://127.0.0.1:10810/logs"), "127.0.0.1 10810 -name logs");
        assert_eq!(words("nbd://127.0.0.1"), "127.0.0.1 10809 -name ");
        assert_eq!(arguments("nbds://host/x"), None, "the kernel's client does not encrypt");
    }
}
