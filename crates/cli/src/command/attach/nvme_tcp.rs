//! NVMe/TCP through the kernel's own initiator.

use std::fs::{self, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::Way;

pub(super) const WAY: Way = Way {
    name: "NVMe/TCP",
    takes: |uri| uri.starts_with(SCHEME),
    lacks: || {
        let is_there = Path::new(FABRICS).exists();
        (!is_there).then_some("modprobe nvme-tcp, of a kernel that has CONFIG_NVME_TCP")
    },
    attach,
    made: |name| name.starts_with("nvme"),
    detach,
};

const SCHEME: &str = "nvme+tcp://";
/// The kernel connects as what is written here says, and answers the number of the controller.
const FABRICS: &str = "/dev/nvme-fabrics";
const CONTROLLERS: &str = "/sys/class/nvme";
/// Longest wait for the device of a namespace.
const PATIENCE: Duration = Duration::from_secs(10);

/// Host, port, subsystem and namespace of a URI.
fn parts(uri: &str) -> Option<(&str, &str, &str, &str)> {
    let mut words = uri.strip_prefix(SCHEME)?.splitn(3, '/');
    let (place, subsystem, namespace) = (words.next()?, words.next()?, words.next()?);
    let (host, port) = place.rsplit_once(':')?;
    Some((host.trim_matches(['[', ']']), port, subsystem, namespace))
}

fn attach(uri: &str) -> Result<PathBuf> {
    let (host, port, subsystem, namespace) = parts(uri).context("reading the URI")?;
    let words = format!("transport=tcp,traddr={host},trsvcid={port},nqn={subsystem}");
    let mut fabrics = OpenOptions::new().read(true).write(true).open(FABRICS)?;
    fabrics.write_all(words.as_bytes()).context("connecting")?;
    let mut answer = [0; 4096];
    let length = fabrics.read(&mut answer).context("connecting")?;
    let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
    let instance = answer.split(',').find_map(|word| word.trim().strip_prefix("instance="));
    let instance = instance.with_context(|| format!("the kernel answered {answer}"))?;
    let controller = Path::new(CONTROLLERS).join(format!("nvme{instance}"));
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(name) = namespace_device(&controller, namespace) {
            let device = Path::new("/dev").join(name);
            if device.exists() {
                return Ok(device);
            }
        }
        if Instant::now() > deadline {
            bail!("the controller nvme{instance} shows no namespace {namespace}");
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// The name of the block device of a namespace: that of all ways to it, where there may be several.
fn namespace_device(controller: &Path, namespace: &str) -> Option<String> {
    let entries = fs::read_dir(controller).ok()?.flatten();
    let mut names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.find_map(|name| device_of(&name, namespace))
}

/// The block device that an entry of a controller stands for, if it is of the namespace:
/// `nvme0n1`, or `nvme0c1n1` for one way of several to `nvme0n1`.
fn device_of(entry: &str, namespace: &str) -> Option<String> {
    let rest = entry.strip_prefix("nvme")?;
    let (place, number) = rest.rsplit_once('n')?;
    let subsystem = place.split('c').next()?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    (number == namespace && is_number(subsystem)).then(|| format!("nvme{subsystem}n{number}"))
}

/// Ends every controller that leads to a device.
fn detach(name: &str) -> Result<()> {
    let namespace = name.rsplit_once('n').map_or("", |(_, number)| number);
    let mut ended = 0;
    for entry in fs::read_dir(CONTROLLERS).context("looking for its controller")?.flatten() {
        let controller = entry.path();
        let leads = namespace_device(&controller, namespace).is_some_and(|it| it == name);
        let is_fabrics = fs::read_to_string(controller.join("transport"))
            .is_ok_and(|transport| transport.trim() == "tcp");
        if leads && is_fabrics {
            fs::write(controller.join("delete_controller"), "1")?;
            ended += 1;
        }
    }
    if ended == 0 {
        bail!("no controller over NVMe/TCP leads to it");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_says_where_to_connect() {
        let uri = "nvme+tcp://127.0.0.1:4420/nqn.2014-08.org.nvmexpress:uuid:1/2";
        let expected = ("127.0.0.1", "4420", "nqn.2014-08.org.nvmexpress:uuid:1", "2");
        assert_eq!(parts(uri), Some(expected));
        assert_eq!(parts("nvme+tcp://[::1]:1/n/1").map(|it| it.0), Some("::1"));
        assert_eq!(parts("nbd://127.0.0.1"), None);
    }

    #[test]
    fn a_device_is_found_whether_or_not_there_may_be_several_ways_to_it() {
        assert_eq!(device_of("nvme3n2", "2").as_deref(), Some("nvme3n2"));
        assert_eq!(device_of("nvme1c4n2", "2").as_deref(), Some("nvme1n2"));
        assert_eq!(device_of("nvme1c4n12", "2"), None);
        assert_eq!(device_of("hwmon3", "2"), None);
        assert_eq!(device_of("ng3n2", "2"), None);
    }
}
