//! Surroundings of a real measurement: target, device below it, machine; and the disturbances among
//! them that the figures include.

use std::path::Path;
use std::thread;
use std::time::Duration;

use blockio::Bytes;
use lab::target::hosts::Hosts;
use lab::target::nbd::{Export, Uri};
use lab::target::system::{Block, DeviceNumber, DiskCounts, System, chosen};
use lab::{Error, Kind};
use results::{Environment, Limits, PlatformRow, SheetRow, TargetKind, Warning, WarningKind};

use crate::guard::Permit;
use crate::target::{LocalTarget, Target};
use crate::tools::Tools;

mod health;
pub(crate) mod machine;

pub(crate) use health::Health;

/// Time for which the device is watched before the first load, to see whether others use it.
const IDLE_CHECK: Duration = Duration::from_millis(300);
/// Foreign requests a second from which a device is busy.
const IDLE_IOPS_MAX: f64 = 50.0;

/// A target and all that is known of where it is.
#[derive(Debug)]
pub(crate) struct Site {
    system: System,
    /// Name that was given for the target.
    name: String,
    capacity_bytes: u64,
    target: Target,
    /// Requests a second that others sent to it before the first load.
    foreign_iops: f64,
}

/// Temperature limit, from which on a drive is not loaded further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    /// Limit in degrees Celsius; absent where nothing is known.
    pub(crate) max_c: Option<i64>,
    /// True if the user set it.
    pub(crate) is_asked: bool,
}

/// Readings of a drive's sensors at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SensorReadings {
    /// Temperature in whole degrees Celsius; absent where no sensor tells it.
    pub(crate) temperature_c: Option<i64>,
    /// Power of the drive alone, in watts; absent where it has no sensor of its own.
    pub(crate) power_w: Option<f64>,
}

impl Site {
    /// Looks at the target named `name`, to which `permit` permits writing.
    ///
    /// # Errors
    /// Fails if it cannot be read.
    pub(crate) fn of_local(name: &Path, permit: Permit) -> Result<Self, Error> {
        let metadata = permit.path().metadata().map_err(|source| {
            let text = format!("looking at {}", permit.path().display());
            Error::new(Kind::Io, text).source(source)
        })?;
        let (system, name) = (System::this_machine(), name.display().to_string());
        let mut site = if let Some(number) = DeviceNumber::of_node(&metadata) {
            Self::of_device(system, name, permit, number)
        } else {
            let below = DeviceNumber::below_file(&metadata);
            Self::of_file(system, name, permit, (below, metadata.len()))
        };
        site.watch_others();
        Ok(site)
    }

    /// The block device numbered `number` of the machine `system`.
    pub(super) fn of_device(
        system: System,
        name: String,
        permit: Permit,
        number: DeviceNumber,
    ) -> Self {
        let device = system.block(number);
        let capacity_bytes = device.as_ref().map_or(0, Block::capacity_bytes);
        let target = Target::Local(LocalTarget { permit, mount: None, device });
        Self { system, name, capacity_bytes, target, foreign_iops: 0.0 }
    }

    fn of_file(system: System, name: String, permit: Permit, file: (DeviceNumber, u64)) -> Self {
        let (below, capacity_bytes) = file;
        let mount = system.mount_of(permit.path());
        let source = || system.block_at(&mount.as_ref()?.source);
        let device = system.block(below).or_else(source);
        let target = Target::Local(LocalTarget { permit, mount, device });
        Self { system, name, capacity_bytes, target, foreign_iops: 0.0 }
    }

    /// The export of an NBD server at the address `name`, which is understood as `uri`.
    pub(crate) fn of_export(name: &str, uri: Uri, export: Export) -> Self {
        let capacity_bytes = export.capacity_bytes;
        let target = Target::Export { text: name.to_owned(), uri, export };
        let (system, name) = (System::this_machine(), name.to_owned());
        Self { system, name, capacity_bytes, target, foreign_iops: 0.0 }
    }

    /// The targets at `path` on `hosts`, the smallest of which holds `capacity_bytes`.
    pub(crate) fn of_fleet(path: &Path, hosts: &Hosts, capacity_bytes: u64) -> Self {
        let target = Target::Fleet { hosts: hosts.clone(), path: path.to_owned() };
        let (system, name) = (System::this_machine(), path.to_string_lossy().into_owned());
        Self { system, name, capacity_bytes, target, foreign_iops: 0.0 }
    }

    fn watch_others(&mut self) {
        let counts = || self.target.device().and_then(Block::counts);
        let before = counts();
        if before.is_some() {
            thread::sleep(IDLE_CHECK);
        }
        self.foreign_iops = foreign_iops(before, counts());
    }

    /// Name that was given for the target.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Capacity in bytes.
    pub(crate) const fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// The target.
    pub(crate) const fn target(&self) -> &Target {
        &self.target
    }

    /// The machine.
    pub(crate) const fn system(&self) -> &System {
        &self.system
    }

    /// Reads the SMART data of the drive; absent where it tells none.
    pub(crate) fn health(&self, tools: &Tools) -> Option<Health> {
        Health::read(tools, self.target.device()?)
    }

    /// From which temperature on no load goes on: from `asked`, else from what the drive calls
    /// critical.
    ///
    /// # Errors
    /// Fails if one was asked for, and no sensor tells how hot the drive is.
    pub(crate) fn temperature_limit(&self, asked: Option<i64>) -> Result<Limit, Error> {
        let critical = || self.target.device().and_then(Block::temperature_critical_c);
        let limit = Limit { max_c: asked.or_else(critical), is_asked: asked.is_some() };
        if limit.is_asked && self.temperature_under_load_c(limit).is_none() {
            let text = format!("no sensor reports the temperature of {}", self.name);
            let hint = "leave out --temperature-max; `modprobe drivetemp` helps SATA drives";
            return Err(Error::new(Kind::Input, text).hint(hint));
        }
        Ok(limit)
    }

    /// Temperature of the drive in degrees Celsius: from the kernel's sensor, and where it has none
    /// from the drive's health, but only where a limit was asked for, since that takes longer.
    pub(crate) fn temperature_under_load_c(&self, limit: Limit) -> Option<i64> {
        let of_sensor = self.target.device().and_then(Block::temperature_c);
        let of_health = || self.health(&Tools::default())?.temperature_c;
        of_sensor.or_else(|| limit.is_asked.then(of_health).flatten())
    }

    /// Temperature and power of the drive. The processor's meters (RAPL) are not asked: what they
    /// tell is not the drive's.
    pub(crate) fn sensed_under_load(&self, limit: Limit) -> SensorReadings {
        SensorReadings {
            temperature_c: self.temperature_under_load_c(limit),
            power_w: self.target.device().and_then(Block::power_w),
        }
    }

    /// Limits of heat that the drive tells the kernel; absent where it tells none.
    fn limits(&self) -> Option<Limits> {
        let device = self.target.device()?;
        let limits = Limits {
            warning_c: device.temperature_warning_c().map(|celsius| celsius as f64),
            critical_c: device.temperature_critical_c().map(|celsius| celsius as f64),
            ..Limits::default()
        };
        (limits != Limits::default()).then_some(limits)
    }

    fn disk(&self) -> Option<Block> {
        self.target.device().map(Block::disk)
    }

    /// The target as the result names it.
    pub(crate) fn described(&self) -> results::Target {
        let model = || self.disk()?.attribute("device/model");
        let title = match (self.target.kind(), self.target.mount()) {
            (_, Some(mount)) => format!("{} on {}", self.name, mount.file_system),
            (TargetKind::BlockDevice, None) => model().unwrap_or_else(|| self.name.clone()),
            (_, None) => self.name.clone(),
        };
        let hosts = self.target.hosts();
        results::Target {
            name: self.name.clone(),
            title,
            host: hosts.map_or_else(|| "linux".to_owned(), Hosts::to_string),
            user_capacity_bytes: self.capacity_bytes,
            devices: hosts.map_or(1, Hosts::count),
            limits: self.limits(),
            sheet: self.sheet(),
            ..results::Target::of_kind(self.target.kind())
        }
    }

    fn sheet(&self) -> Vec<SheetRow> {
        let row = |group: &str, (name, value): (&str, String)| SheetRow {
            group: group.into(),
            name: name.into(),
            value,
            source: "derived: read from the kernel".into(),
        };
        let mut rows = Vec::new();
        if let Some(mount) = self.target.mount() {
            rows.push(row("File", ("Path", self.name.clone())));
            rows.push(row("File", ("Size", Bytes(self.capacity_bytes).to_string())));
            rows.push(row("File", ("File system", mount.file_system.clone())));
            rows.push(row("File", ("Mounted from", mount.source.display().to_string())));
        }
        if let Some(export) = self.target.export() {
            let told = |(name, value)| SheetRow {
                source: "derived: reported by the server".into(),
                ..row("NBD server", (name, value))
            };
            rows.push(told(("Address", self.name.clone())));
            rows.extend(export.rows().into_iter().map(told));
        }
        let Some(device) = self.target.device() else { return rows };
        rows.push(row("Device", ("Node", device.node())));
        rows.extend(device_rows(&device.disk()).into_iter().map(|cells| row("Device", cells)));
        rows
    }

    /// The machine as the result describes it; `fio` is its version and engine.
    pub(crate) fn environment(&self, fio: &str) -> Environment {
        // What this machine is made of decides nothing where others do the work.
        let mut rows = match self.target.hosts() {
            Some(hosts) => vec![("Hosts", hosts.to_string())],
            None => machine::rows(&self.system),
        };
        rows.push(("fio", fio.to_owned()));
        let row = |(name, value): (&str, String)| PlatformRow { name: name.into(), value };
        Environment { sheet: rows.into_iter().map(row).collect(), imported_from: None }
    }

    /// Warnings for the whole run: disturbances between the figures and the drive.
    pub(crate) fn warnings(&self, direct: bool) -> Vec<Warning> {
        if let Some(hosts) = self.target.hosts() {
            return vec![unseen(hosts)];
        }
        let mut found = Vec::new();
        found.extend(self.cached(direct));
        found.extend(self.elsewhere());
        found.extend(machine::hypervisor(&self.system).map(|vendor| {
            (
                WarningKind::Environment,
                format!("the machine is virtual ({vendor}): its disk and its cores are shared"),
                "measure on the machine itself",
            )
        }));
        found.extend(self.virtual_disk().map(|what| {
            (
                WarningKind::Environment,
                format!("the disk is virtual ({what}): its figures depend on the hypervisor"),
                "measure on the machine that has the drive",
            )
        }));
        found.extend(self.disk().filter(Block::is_nvme).and_then(|disk| narrow_link(&disk)).map(
            |text| {
                let remedy =
                    "use a slot of its generation with all its lanes; `lspci -vv` shows both";
                (WarningKind::Environment, text, remedy)
            },
        ));
        found.extend(machine::governor(&self.system).filter(|name| name != "performance").map(
            |name| {
                (
                    WarningKind::Environment,
                    format!("the CPU frequency governor is {name}: latencies vary with the clock"),
                    "add --tune, or cpupower frequency-set --governor performance",
                )
            },
        ));
        if self.foreign_iops > IDLE_IOPS_MAX {
            let text = format!(
                "other programs sent {:.0} requests a second to the device before the first load",
                self.foreign_iops
            );
            let remedy = "stop the programs that use it (find them with iostat or iotop)";
            found.push((WarningKind::Environment, text, remedy));
        }
        let warning = |(kind, text, remedy): (_, _, &str)| Warning {
            kind,
            step: String::new(),
            text,
            remedy: remedy.into(),
        };
        found.into_iter().map(warning).collect()
    }

    fn cached(&self, direct: bool) -> Option<(WarningKind, String, &'static str)> {
        let memory = ["tmpfs", "ramfs"];
        let in_memory = self.target.mount().is_some_and(|at| memory.contains(&&*at.file_system))
            || self.target.device().is_some_and(|device| {
                device.name().starts_with("zram") || device.name().starts_with("ram")
            });
        let looped = self.target.device().and_then(|device| device.number("loop/dio")) == Some(0);
        let (text, remedy) = if in_memory {
            ("the target is in memory: no drive is measured", "name a file on a drive")
        } else if !direct {
            (
                "direct I/O was refused: the page cache is measured with the drive",
                "use a file system with O_DIRECT (ext4, xfs), or the block device itself",
            )
        } else if looped {
            (
                "the loop device goes through the page cache",
                "losetup --direct-io=on, or name the backing file itself",
            )
        } else {
            return None;
        };
        Some((WarningKind::PageCache, text.into(), remedy))
    }

    /// Model or name that shows the disk to be a virtual one; absent for a physical disk.
    fn virtual_disk(&self) -> Option<String> {
        let disk = self.disk()?;
        let model = disk.attribute("device/model").unwrap_or_default();
        let named = ["QEMU", "VBOX", "Virtual", "VMware", "Amazon Elastic Block Store"];
        let by_name = ["vd", "xvd", "nbd"].iter().any(|driver| disk.name().starts_with(driver));
        if named.iter().any(|name| model.contains(name)) {
            return Some(model);
        }
        by_name.then(|| disk.name().to_owned())
    }

    fn elsewhere(&self) -> Option<(WarningKind, String, &'static str)> {
        if self.target.export().is_some() {
            let text = "the target is an NBD server: latencies include the connection and the \
                        server";
            let remedy = "compare with runs through the same server and connection only";
            return Some((WarningKind::Environment, text.into(), remedy));
        }
        let kind = &self.target.mount()?.file_system;
        let remote = ["nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph"];
        let is_remote = remote.contains(&&**kind) || kind.starts_with("fuse");
        is_remote.then(|| {
            let text = format!("{kind}: the drive is on another machine or behind a program");
            (WarningKind::Environment, text, "measure where the drive is")
        })
    }
}

/// Warning that nothing is known of the drives of other `hosts`.
fn unseen(hosts: &Hosts) -> Warning {
    Warning {
        kind: WarningKind::Environment,
        step: String::new(),
        text: format!(
            "only fio runs on {hosts}: the properties and the state of their drives, and the path \
             to them, are not known"
        ),
        remedy: "measure a drive on its own host to learn them; `floatgate doctor` checks a host"
            .into(),
    }
}

fn foreign_iops(before: Option<DiskCounts>, after: Option<DiskCounts>) -> f64 {
    let Some((before, after)) = before.zip(after) else { return 0.0 };
    after.requests().saturating_sub(before.requests()) as f64 / IDLE_CHECK.as_secs_f64()
}

/// Attributes of a disk in sysfs, as rows of the test platform.
fn device_rows(disk: &Block) -> Vec<(&'static str, String)> {
    let bytes = |name: &str| disk.number(name).map(|bytes| format!("{bytes} B"));
    let firmware =
        || disk.attribute("device/firmware_rev").or_else(|| disk.attribute("device/rev"));
    let serial = || disk.attribute("device/serial").or_else(|| disk.attribute("serial"));
    let medium = disk.number("queue/rotational").map(|rotates| {
        if rotates == 1 { "rotating, or unknown to the kernel" } else { "solid state" }.to_owned()
    });
    let link = link(disk, "current").map(|(speed, lanes)| format!("{speed}, x{lanes}"));
    let cells = [
        ("Model", disk.attribute("device/model")),
        ("Serial number", serial()),
        ("Firmware", firmware()),
        ("Capacity", Some(Bytes(disk.capacity_bytes()).to_string())),
        ("Logical sector", bytes("queue/logical_block_size")),
        ("Physical sector", bytes("queue/physical_block_size")),
        ("Medium", medium),
        ("Write cache", disk.attribute("queue/write_cache")),
        ("Scheduler", disk.attribute("queue/scheduler").map(|names| chosen(&names).to_owned())),
        ("PCIe link", link),
        ("Backing file", disk.backing_file().map(|path| path.display().to_string())),
    ];
    cells.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Speed and lanes of the `PCIe` link, the `current` ones or the `max` that the drive has.
fn link(disk: &Block, which: &str) -> Option<(String, String)> {
    let of = |what: &str| disk.inherited(&format!("{which}_link_{what}"));
    of("speed").zip(of("width"))
}

/// Warning text for a `PCIe` link that carries less than its drive could.
fn narrow_link(disk: &Block) -> Option<String> {
    let (is, can) = link(disk, "current").zip(link(disk, "max"))?;
    // `16.0 GT/s PCIe`, or `Unknown`.
    let capacity = |(speed, lanes): &(String, String)| {
        let gt_s: f64 = speed.split_whitespace().next()?.parse().ok()?;
        Some(gt_s * lanes.parse::<f64>().ok()?)
    };
    let less = capacity(&is)? < capacity(&can)?;
    less.then(|| {
        format!(
            "the PCIe link runs at {}, x{}: the drive could use {}, x{}",
            is.0, is.1, can.0, can.1
        )
    })
}

#[cfg(test)]
mod tests;
