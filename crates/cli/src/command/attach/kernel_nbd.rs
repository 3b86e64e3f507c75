//! NBD through the client of the kernel, which `nbd-client` sets up.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use percent_encoding::percent_decode_str;
use server::mount::check_program;

use super::KernelClient;

pub(super) const CLIENT: KernelClient = KernelClient {
    name: "NBD",
    option: "--nbd unix:PATH (without TLS)",
    // Not nbds: this client is set up without TLS.
    accepts: |uri| uri.starts_with(TCP) || uri.starts_with(UNIX),
    missing: || {
        if !Path::new("/sys/block/nbd0").exists() {
            return Some("`modprobe nbd`, with a kernel that has CONFIG_BLK_DEV_NBD");
        }
        let remedy = "nbd-client, which the package nbd-client of Debian and Ubuntu has";
        check_program(PROGRAM, PROGRAM).is_err().then_some(remedy)
    },
    attach,
    owns: |name| name.starts_with("nbd"),
    detach,
};

const PROGRAM: &str = "nbd-client";
const TCP: &str = "nbd://";
const UNIX: &str = "nbd+unix:///";

fn attach(uri: &str) -> Result<PathBuf> {
    let device =
        free_device().context("every NBD device is in use; raise nbds_max of the module nbd")?;
    let mut command = Command::new(PROGRAM);
    command.args(arguments(uri).context("reading the URI")?).arg(&device).arg("-persist");
    run(&mut command)?;
    Ok(device)
}

/// The arguments of `nbd-client` for a URI: where to connect, and the name of the export.
fn arguments(uri: &str) -> Option<Vec<String>> {
    let decoded = |text: &str| Some(percent_decode_str(text).decode_utf8().ok()?.into_owned());
    let (mut words, export) = if let Some(rest) = uri.strip_prefix(UNIX) {
        let (export, socket) = rest.split_once("?socket=")?;
        (vec!["-unix".to_owned(), decoded(socket)?], export)
    } else {
        let rest = uri.strip_prefix(TCP)?;
        let (place, export) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port),
            _ => (place, "10809"),
        };
        (vec![host.trim_matches(['[', ']']).to_owned(), port.to_owned()], export)
    };
    words.extend(["-name".to_owned(), decoded(export)?]);
    Some(words)
}

/// The first device that is not in use.
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
        bail!("nbd-client: {}", said.lines().last().unwrap_or("it failed without a message"));
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
        assert_eq!(arguments("nbds://host/x"), None, "this client is set up without TLS");
    }

    #[test]
    fn what_a_uri_escapes_is_what_nbd_client_gets() {
        let words = |uri| arguments(uri).unwrap().join("|");
        let unix = "nbd+unix:///x%3F?socket=/run/a%20b%26c.sock";
        assert_eq!(words(unix), "-unix|/run/a b&c.sock|-name|x?");
        assert_eq!(words("nbd://[::1]/v"), "::1|10809|-name|v", "it has no port");
        assert_eq!(words("nbd://[::1]:99/v"), "::1|99|-name|v");
    }
}
