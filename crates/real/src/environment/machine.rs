//! The machine: processor, memory, kernel, governor, virtualisation.

use blockio::Bytes;

use lab::target::system::System;

/// Rows about the machine for the test platform of a report.
pub(super) fn rows(system: &System) -> Vec<(&'static str, String)> {
    let cells = [
        ("CPU", processor(system)),
        ("CPU governor", governor(system)),
        ("Memory", memory(system)),
        ("Kernel", system.text("proc/sys/kernel/osrelease")),
        ("Distribution", distribution(system)),
        ("Virtualisation", hypervisor(system)),
    ];
    cells.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Logical processors.
pub(crate) fn processors(system: &System) -> usize {
    let text = system.text("proc/cpuinfo").unwrap_or_default();
    text.lines().filter(|line| line.starts_with("processor")).count()
}

/// The frequency governor of the first processor; nothing where the machine lets none choose.
pub(crate) fn governor(system: &System) -> Option<String> {
    system.text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
}

/// Number of times that processors throttled for heat since the machine started, over all of them.
pub(crate) fn throttle_count(system: &System) -> u64 {
    let count = |cpu: usize| {
        let path = format!("sys/devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count");
        system.text(path)?.parse::<u64>().ok()
    };
    (0..processors(system)).filter_map(count).sum()
}

/// Bytes that the process `id` read from and wrote to devices.
pub(crate) fn bytes_moved_by(system: &System, id: u32) -> Option<u64> {
    let counts = system.text(format!("proc/{id}/io"))?;
    let of =
        |key: &str| counts.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
    let (read, written): (u64, u64) = (of("read_bytes:")?, of("write_bytes:")?);
    Some(read + written)
}

/// Vendor of the virtual machine; absent on a physical one, as far as the processor tells.
pub(crate) fn hypervisor(system: &System) -> Option<String> {
    let cpuinfo = system.text("proc/cpuinfo")?;
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"))?;
    let virtual_ = flags.split_whitespace().any(|flag| flag == "hypervisor");
    let vendor = || system.text("sys/class/dmi/id/sys_vendor");
    virtual_.then(|| vendor().unwrap_or_else(|| "vendor unknown".into()))
}

fn processor(system: &System) -> Option<String> {
    let cpuinfo = system.text("proc/cpuinfo")?;
    let names = ["model name", "Model", "Hardware"];
    let named = names.iter().find_map(|name| {
        let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let count = processors(system);
    Some(format!("{}, {count} logical processors", named.unwrap_or_else(|| "unknown".into())))
}

fn memory(system: &System) -> Option<String> {
    let meminfo = system.text("proc/meminfo")?;
    let line = meminfo.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(Bytes::from_kib(kib).to_string())
}

fn distribution(system: &System) -> Option<String> {
    let release = system.text("etc/os-release")?;
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}
