//! NVMe/TCP through the initiator of the kernel.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::KernelClient;

pub(super) const CLIENT: KernelClient = KernelClient {
    name: "NVMe/TCP",
    option: "--nvme tcp:4420",
    accepts: |uri| uri.starts_with(SCHEME),
    missing: || {
        let is_loaded = Path::new(FABRICS).exists();
        (!is_loaded).then_some("`modprobe nvme-tcp`, with a kernel that has CONFIG_NVME_TCP")
    },
    attach,
    owns: |name| name.starts_with("nvme"),
    detach,
};

const SCHEME: &str = "nvme+tcp://";
/// Options that are written here make the kernel connect; it answers with the controller's number.
const FABRICS: &str = "/dev/nvme-fabrics";
const CONTROLLERS: &str = "/sys/class/nvme";
/// Identity of this machine as an NVMe host, where nvme-cli keeps it. Namespaces are attached to a
/// host by its NQN.
const HOST: [(&str, &str); 2] = [("hostnqn", "/etc/nvme/hostnqn"), ("hostid", "/etc/nvme/hostid")];
/// Longest wait for the device of a namespace.
const PATIENCE: Duration = Duration::from_secs(10);

/// Parts of a URI.
#[derive(Debug, PartialEq, Eq)]
struct Parts<'a> {
    host: &'a str,
    port: &'a str,
    /// NQN of the subsystem.
    subsystem: &'a str,
    /// Identifier of the namespace (NSID).
    namespace: &'a str,
}

impl<'a> Parts<'a> {
    fn of(uri: &'a str) -> Option<Self> {
        let mut words = uri.strip_prefix(SCHEME)?.splitn(3, '/');
        let (place, subsystem, namespace) = (words.next()?, words.next()?, words.next()?);
        let (host, port) = place.rsplit_once(':')?;
        Some(Self { host: host.trim_matches(['[', ']']), port, subsystem, namespace })
    }
}

fn attach(uri: &str) -> Result<PathBuf> {
    let parts = Parts::of(uri).context("reading the URI")?;
    let connected = connected(parts.subsystem);
    let controller = match &connected {
        // One controller has all namespaces of a subsystem.
        Some(controller) => controller.clone(),
        None => connect(&parts)?,
    };
    let found = wait_for_device(&controller, parts.namespace);
    if found.is_err() && connected.is_none() {
        disconnect(&controller)?;
    }
    found
}

/// Returns the controller that this machine has of a subsystem over NVMe/TCP.
fn connected(subsystem: &str) -> Option<PathBuf> {
    let is_of_subsystem = |controller: &PathBuf| {
        is_over_tcp(controller) && attribute(controller, "subsysnqn").as_deref() == Some(subsystem)
    };
    fs::read_dir(CONTROLLERS).ok()?.flatten().map(|entry| entry.path()).find(is_of_subsystem)
}

/// Connects to a subsystem. Returns the controller.
fn connect(parts: &Parts<'_>) -> Result<PathBuf> {
    let Parts { host, port, subsystem, .. } = parts;
    let mut options = format!("transport=tcp,traddr={host},trsvcid={port},nqn={subsystem}");
    let own = HOST.map(|(option, file)| Some((option, fs::read_to_string(file).ok()?)));
    // The kernel refuses one without the other.
    if let [Some(name), Some(id)] = own {
        for (option, value) in [name, id] {
            write!(options, ",{option}={}", value.trim())?;
        }
    }
    let fabrics = OpenOptions::new().read(true).write(true).open(FABRICS);
    let mut fabrics = fabrics.with_context(|| format!("opening {FABRICS}"))?;
    let connected = fabrics.write_all(options.as_bytes());
    connected.context("connecting; the log of the kernel may have details")?;
    let mut answer = [0; 4096];
    let length = fabrics.read(&mut answer).context("reading the number of the controller")?;
    let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
    let instance = answer.split(',').find_map(|word| word.trim().strip_prefix("instance="));
    let instance = instance.with_context(|| format!("the kernel answered {answer}"))?;
    Ok(Path::new(CONTROLLERS).join(format!("nvme{instance}")))
}

fn wait_for_device(controller: &Path, namespace: &str) -> Result<PathBuf> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(name) = namespace_device(controller, namespace) {
            let device = Path::new("/dev").join(name);
            if device.exists() {
                return Ok(device);
            }
        }
        if Instant::now() > deadline {
            bail!("namespace {namespace} of the subsystem is not attached to this host");
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// The name of the block device of a namespace.
fn namespace_device(controller: &Path, namespace: &str) -> Option<String> {
    let is_namespace =
        |name: &String| attribute(&controller.join(name), "nsid").as_deref() == Some(namespace);
    entries(controller).filter(is_namespace).find_map(|name| device_of(&name))
}

/// Names of the entries of a folder.
fn entries(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

/// The block device of a controller's entry: `nvme0n1` itself, or `nvme0n1` for `nvme0c1n1`, which
/// is one of several paths to it. The last number is the kernel's own, not the namespace's.
fn device_of(entry: &str) -> Option<String> {
    let (place, number) = entry.strip_prefix("nvme")?.rsplit_once('n')?;
    let subsystem = place.split('c').next()?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    (is_number(subsystem) && is_number(number)).then(|| format!("nvme{subsystem}n{number}"))
}

/// An attribute in sysfs, without the end of its line.
fn attribute(of: &Path, name: &str) -> Option<String> {
    Some(fs::read_to_string(of.join(name)).ok()?.trim_end().to_owned())
}

fn is_over_tcp(controller: &Path) -> bool {
    attribute(controller, "transport").as_deref() == Some("tcp")
}

/// Disconnects every controller over NVMe/TCP that has a device.
fn detach(name: &str) -> Result<()> {
    let controllers = fs::read_dir(CONTROLLERS).context("looking for its controller")?;
    let mut is_found = false;
    for controller in controllers.flatten().map(|entry| entry.path()) {
        let has_device = entries(&controller).any(|it| device_of(&it).as_deref() == Some(name));
        if has_device && is_over_tcp(&controller) {
            disconnect(&controller)?;
            is_found = true;
        }
    }
    if !is_found {
        bail!("no NVMe/TCP controller has this device");
    }
    Ok(())
}

fn disconnect(controller: &Path) -> Result<()> {
    let delete = controller.join("delete_controller");
    fs::write(&delete, "1").with_context(|| format!("writing {}", delete.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_says_where_to_connect() {
        let uri = "nvme+tcp://127.0.0.1:4420/nqn.2014-08.org.nvmexpress:uuid:1/2";
        let expected = Parts {
            host: "127.0.0.1",
            port: "4420",
            subsystem: "nqn.2014-08.org.nvmexpress:uuid:1",
            namespace: "2",
        };
        assert_eq!(Parts::of(uri), Some(expected));
        assert_eq!(Parts::of("nvme+tcp://[::1]:1/n/1").map(|it| it.host), Some("::1"));
        assert_eq!(Parts::of("nbd://127.0.0.1"), None);
    }

    #[test]
    fn a_device_is_found_whether_or_not_there_may_be_several_paths_to_it() {
        assert_eq!(device_of("nvme3n2").as_deref(), Some("nvme3n2"));
        assert_eq!(device_of("nvme1c4n2").as_deref(), Some("nvme1n2"));
        assert_eq!(device_of("nvme1c4n12").as_deref(), Some("nvme1n12"));
        for other in ["hwmon3", "ng3n2", "nvme3", "nvme3n2p1"] {
            assert_eq!(device_of(other), None);
        }
    }

    #[test]
    fn a_device_is_that_of_the_namespace_whatever_number_the_kernel_gave_it() {
        let controller = tempfile::tempdir().unwrap();
        for (entry, namespace) in [("nvme0c3n1", "5\n"), ("nvme0c3n2", "1\n"), ("ng0n2", "1\n")] {
            let entry = controller.path().join(entry);
            fs::create_dir(&entry).unwrap();
            fs::write(entry.join("nsid"), namespace).unwrap();
        }
        fs::create_dir(controller.path().join("hwmon0")).unwrap();
        let device = |namespace| namespace_device(controller.path(), namespace);
        assert_eq!(device("5").as_deref(), Some("nvme0n1"));
        assert_eq!(device("1").as_deref(), Some("nvme0n2"));
        assert_eq!(device("2"), None);
    }
}
