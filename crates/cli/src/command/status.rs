//! `floatgate volume status`: status of a live drive, served or closed.

mod dies;

use std::io::{self, IsTerminal as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use blockio::Nanos;
use blockio::text::{bytes, counted};
use live::inspect;
use live::{Compression, Life, Namespace, Promise};
use status::{
    Commands, Format, HealthState, Lateness, Led, LeftBuffer, Model, NamespaceTraffic,
    NvmeController, Problem, Registrant, Scrub, Server, Smart, Space, State, Status, Supply, Wear,
    Writes, warning_names,
};

use self::dies::{bad_place_row, bad_place_rows, damage_row, damage_rows, die_rows, stale_rows};
use crate::args::Status as Args;
use crate::command::maintenance::server;
use crate::{Ending, output, table};

/// Superblocks of a line of the map.
const MAP_COLUMNS: usize = 64;

/// Escape sequences that start and stop blinking text.
const BLINK: &str = "\u{1b}[5m";
const STILL: &str = "\u{1b}[0m";

type StatusRow = [String; 2];

/// Shows what the server of a drive says, or its dies; the exit status is the drive's health.
pub(crate) fn status(args: &Args) -> Result<Ending> {
    let status = find(&args.volume)?;
    if args.json {
        output::json(&status)?;
    } else {
        output::data(&text(&status, psid_row(&args.volume), args.all))?;
    }
    Ok(match status.health.state {
        HealthState::Ok => Ending::Done,
        HealthState::Degraded => Ending::Degraded,
        HealthState::Critical => Ending::Critical,
    })
}

/// The status of a drive, whether it is served or not.
fn find(volume: &Path) -> Result<Status> {
    match server(volume)? {
        Some(mut server) => {
            server.status().with_context(|| format!("asking the server of {}", volume.display()))
        }
        None => Ok(inspect(volume)?),
    }
}

/// The PSID of a volume with Opal, for who may read its files.
fn psid_row(volume: &Path) -> Option<StatusRow> {
    live::psid(volume).ok().flatten().map(|psid| row("PSID", psid))
}

fn row(name: &str, text: String) -> StatusRow {
    [name.to_owned(), text]
}

fn text(status: &Status, psid: Option<StatusRow>, all: bool) -> String {
    let mut rows = vec![row("volume", drive(status)), row("health", health(status))];
    rows.extend(status.health.problems.iter().flat_map(problem_rows));
    rows.extend(promise_row(status));
    rows.extend(status.write_buffer.as_ref().map(|left| row("write buffer", write_buffer(left))));
    rows.push(row("LED", led(status.led)));
    rows.extend(format_rows(&status.format));
    rows.extend(status.space.iter().flat_map(|space| space_rows(space, &status.format)));
    rows.extend(smart_rows(status));
    if !all {
        rows.extend(stale_rows(status));
    }
    rows.extend(damage_row(status));
    rows.extend(bad_place_row(status));
    rows.extend(status.wear.iter().map(|wear| row("erases", wear_text(wear))));
    rows.extend(status.writes.iter().flat_map(write_rows));
    rows.extend(life_row(&status.life));
    rows.extend(maintenance_rows(status));
    rows.extend(status.server.iter().flat_map(server_rows));
    if status.server.is_none() {
        rows.extend(status.namespaces.iter().map(namespace_row));
    }
    if all {
        rows.extend(psid);
        rows.extend(status.writes.iter().flat_map(cause_rows));
        rows.extend(status.server.iter().flat_map(command_rows));
        let namespaces = status.server.iter().flat_map(|server| &server.namespaces);
        rows.extend(namespaces.map(traffic_row));
        rows.extend(die_rows(status));
        rows.extend(damage_rows(status));
        rows.extend(bad_place_rows(status));
        rows.extend(lost_rows(status));
        rows.extend(status.space.iter().flat_map(map_rows));
    }
    table::columns(&rows)
}

fn drive(status: &Status) -> String {
    let state = match (status.state, &status.server) {
        (State::Closed, _) => "closed".to_owned(),
        (State::Unclosed, _) => {
            "unclean shutdown; it is recovered when it is next served".to_owned()
        }
        (State::Open, Some(server)) => format!("served by process {}", server.pid),
        (State::Open, None) => "open".to_owned(),
        (State::Failed, _) => "failed: it accepts no more writes".to_owned(),
    };
    format!("{}, {}, {state}", status.name, status.drive)
}

/// Health in a word, and what it is made of.
fn health(status: &Status) -> String {
    let Smart { available_spare, percentage_used, critical_warning, .. } = status.smart;
    let word = status.health.state.word();
    let used = percentage_used.map_or_else(String::new, |used| format!("; {used} % used"));
    let spare = available_spare.map_or_else(|| "unknown".to_owned(), |spare| format!("{spare} %"));
    let lost = match status.pages_lost {
        Some(pages) => format!("{} lost", counted(pages, "page")),
        None => "lost pages unknown".to_owned(),
    };
    let warning = match critical_warning {
        0 => String::new(),
        bits => {
            let names: Vec<&str> = warning_names(bits).collect();
            format!("; critical warning {bits:#04x}: {}", names.join(", "))
        }
    };
    format!("{word}; spare {spare}{used}; {lost}{warning}")
}

/// The promise about acknowledged writes; none of a drive that is not open.
fn promise_row(status: &Status) -> Option<StatusRow> {
    let text = match status.acknowledged_survives? {
        Promise::PowerLoss => "survive a power loss",
        Promise::ServerDeath => "survive the server; once flushed a power loss too",
        Promise::Nothing => "survive nothing until they are flushed",
    };
    Some(row("acknowledged writes", text.to_owned()))
}

/// Contents of the write buffer of a volume whose server died, and whether they count.
pub(super) fn write_buffer(left: &LeftBuffer) -> String {
    let LeftBuffer { pages, trims, is_replayed, reason } = left;
    let outcome = match is_replayed {
        Some(true) => "replayed when the volume is served",
        Some(false) => "ignored when the volume is served",
        None => {
            "replayed when the volume is served, if the dies agree: `floatgate volume check` \
             tells"
        }
    };
    let reason = reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
    format!("{}, {}, {outcome}{reason}", counted(*pages, "page"), counted(*trims, "trim"))
}

/// A problem, and what to do next.
fn problem_rows(problem: &Problem) -> [StatusRow; 2] {
    [row("  problem", problem.text.clone()), row("  next step", problem.remedy.clone())]
}

/// Returns a row for each lost page whose address is known, and one for the number of others.
fn lost_rows(status: &Status) -> Vec<StatusRow> {
    let sectors = |lba: &u64| row("page lost", format!("sectors {lba} to {}", lba + 7));
    let mut rows: Vec<StatusRow> = status.lost_lbas.iter().map(sectors).collect();
    let unnamed = status.pages_lost.unwrap_or(0).saturating_sub(rows.len() as u64);
    if unnamed > 0 {
        rows.push(row("pages lost", format!("{unnamed} more")));
    }
    rows
}

/// The activity LED as text; a locate LED blinks in a terminal.
fn led(led: Led) -> String {
    let is_terminal = io::stdout().is_terminal();
    match led {
        Led::Off => "( ) off".to_owned(),
        Led::Attached => "(o) attached".to_owned(),
        Led::Read => "(r) attached, being read".to_owned(),
        Led::Write => "(w) attached, being written".to_owned(),
        Led::Failed => "(x) failed".to_owned(),
        Led::Locate if is_terminal => format!("{BLINK}(*) LOCATE{STILL}"),
        Led::Locate => "(*) LOCATE".to_owned(),
    }
}

/// Returns the lifetime totals of the drive; none if it was never served.
fn life_row(life: &Life) -> Option<StatusRow> {
    let Life { power_on_s, host_read_bytes, host_written_bytes, media_written_bytes, .. } = *life;
    let text = format!(
        "served {:.1} h; clients read {} and wrote {}; {} written to the dies",
        power_on_s as f64 / 3600.0,
        bytes(host_read_bytes),
        bytes(host_written_bytes),
        bytes(media_written_bytes)
    );
    (*life != Life::default()).then(|| row("lifetime", text))
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

fn format_rows(format: &Format) -> [StatusRow; 2] {
    let (data, parity) = (format.dies - u32::from(format.is_protected), format.is_protected);
    let protection = if parity { format!("{data}+1") } else { "no parity".to_owned() };
    let compression = match format.compression {
        Compression::None => "",
        Compression::Lz4 => ", compressed by LZ4",
        Compression::Zstd => ", compressed by Zstandard",
    };
    let encryption = if format.is_encrypted { ", encrypted" } else { "" };
    let physical = format.physical_bytes;
    let is_thin = physical < format.capacity_bytes;
    let thin = if is_thin { format!(" (thin: {} fit)", bytes(physical)) } else { String::new() };
    let capacity = format!(
        "{} for clients{thin}; {} usable, {} raw; {:.1} % over-provisioning",
        bytes(format.capacity_bytes),
        bytes(format.data_bytes),
        bytes(format.raw_bytes),
        format.over_provisioning_percent
    );
    let layout = format!(
        "{}, {protection}{compression}{encryption}; {} superblocks of {}",
        counted(format.dies.into(), "die"),
        format.superblocks,
        bytes(format.superblock_bytes)
    );
    [row("capacity", capacity), row("format", layout)]
}

fn space_rows(space: &Space, format: &Format) -> [StatusRow; 3] {
    let Space { logical_bytes, stored_bytes, stored_bytes_max, superblocks_free, .. } = *space;
    let share = percent(logical_bytes, format.capacity_bytes);
    let held = format!("{} of {}, {share}", bytes(logical_bytes), bytes(format.capacity_bytes));
    let share = percent(stored_bytes, stored_bytes_max);
    let supply = match space.supply {
        Supply::Ample => "",
        Supply::Low => "; less than 20 % left",
        Supply::Short => "; less than 5 % left: trim or delete data",
        Supply::Gone => "; full: writes fail with ENOSPC until data is trimmed or deleted",
    };
    let most = bytes(stored_bytes_max);
    let compressed = match (format.is_compressed, space.compression_ratio) {
        (true, Some(ratio)) => format!(", compressed {ratio:.2} : 1"),
        _ => String::new(),
    };
    let stored = format!("{} of {most}, {share}{compressed}{supply}", bytes(stored_bytes));
    let free = format!("{superblocks_free} of {} superblocks", format.superblocks);
    [row("data", held), row("stored", stored), row("free", free)]
}

fn smart_rows(status: &Status) -> [StatusRow; 2] {
    let failed = status.dies.iter().filter(|die| die.is_lost).count() as u64;
    let spares = match status.hot_spares {
        0 => String::new(),
        count => format!(", {}", counted(count.into(), "hot spare")),
    };
    let dies = format!("{} of {} failed{spares}", failed, status.dies.len());
    let Smart { power_cycles, unsafe_shutdowns, .. } = status.smart;
    let cycles = format!("{power_cycles}, unsafe shutdowns {unsafe_shutdowns}");
    [row("dies", dies), row("power cycles", cycles)]
}

fn maintenance_rows(status: &Status) -> Vec<StatusRow> {
    let maintenance = &status.maintenance;
    let ending = |is_running, failure: &Option<String>| match (is_running, failure) {
        (true, _) => "running".to_owned(),
        (false, Some(failure)) => failure.clone(),
        (false, None) => "done".to_owned(),
    };
    let mut rows = Vec::new();
    if let Some(rebuild) = &maintenance.rebuild {
        let (die, share) = (rebuild.die, percent(rebuild.rows_done, rebuild.rows));
        let state = match (rebuild.is_running, &rebuild.failure) {
            (true, _) => format!("rebuilding die {die}: {share}"),
            (false, Some(failure)) => format!("rebuild of die {die} failed: {failure}"),
            (false, None) => format!("die {die} rebuilt"),
        };
        let lost = match rebuild.units_lost {
            0 => String::new(),
            lost => format!("; {} cannot be restored", counted(lost, "unit")),
        };
        rows.push(row("rebuild", format!("{state}{lost}")));
    }
    // Once no die has failed, what an earlier attempt came to means nothing any more.
    let is_one_lost = status.dies.iter().any(|die| die.is_lost);
    let redundancy = maintenance.redundancy.as_ref();
    if let Some(redundancy) = redundancy.filter(|it| it.is_running || is_one_lost) {
        let share = percent(redundancy.pages_done, redundancy.pages);
        let ending = ending(redundancy.is_running, &redundancy.failure);
        rows.push(row("redundancy", format!("moving data off the failed dies: {share}; {ending}")));
    }
    if let Some(media) = status.unerased_media() {
        rows.push(row(
            "not erased",
            format!("{media} may hold data: destroy it, or erase it by other means"),
        ));
    }
    if let Some(scrub) = &maintenance.scrub {
        let Scrub { rows_done, units_bad, units_restored, pages_lost, .. } = scrub;
        let (bad, lost) = (counted(*units_bad, "corrupt unit"), counted(*pages_lost, "page"));
        let found = format!("{bad} found, {units_restored} repaired, {lost} lost");
        let share = percent(*rows_done, scrub.rows);
        let ending = ending(scrub.is_running, &scrub.failure);
        let cause = scrub.for_die.map_or_else(String::new, |die| {
            format!("; begun by the volume, because reads found damage on die {die}")
        });
        rows.push(row("scrub", format!("{share}, {found}; {ending}{cause}")));
    }
    rows
}

fn wear_text(wear: &Wear) -> String {
    let Wear { erase_count_min, erase_count_mean, erase_count_max } = wear;
    format!(
        "{erase_count_min} to {erase_count_max} per superblock, {erase_count_mean:.2} on average"
    )
}

fn since_opened(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3} since the volume was opened"))
}

fn write_rows(writes: &Writes) -> [StatusRow; 2] {
    [
        row("write amplification", since_opened(writes.write_amplification)),
        row("compression of writes", since_opened(writes.compression_ratio)),
    ]
}

fn cause_rows(writes: &Writes) -> [StatusRow; 6] {
    let written = |cause: &str, count: u64| row(&format!("written, {cause}"), bytes(count));
    [
        written("host", writes.host_bytes),
        written("relocation", writes.relocation_bytes),
        written("wear", writes.wear_bytes),
        written("parity", writes.parity_bytes),
        written("metadata", writes.metadata_bytes),
        written("rebuild", writes.rebuild_bytes),
    ]
}

fn server_rows(server: &Server) -> Vec<StatusRow> {
    let process = format!(
        "version {}, {:.0} s; {:.1} s of processor time, {} of memory",
        server.version,
        server.uptime_s,
        server.cpu_s,
        bytes(server.memory_bytes)
    );
    let mut rows = vec![row("server", process)];
    for export in &server.exports {
        let read_only = if export.is_read_only { ", read-only" } else { "" };
        let size = bytes(export.size_bytes);
        let clients = counted(server.clients_of(export) as u64, "client");
        let name = format!("`{}`, {size}{read_only}; {clients}", export.name);
        rows.push(row("export", name));
        rows.extend(export.uris.iter().map(|uri| row("", uri.clone())));
    }
    let clients = format!(
        "{} connected; {} connections accepted, {} dropped or rejected",
        server.clients.len(),
        server.connections_accepted,
        server.clients_refused
    );
    rows.push(row("clients", clients));
    rows.extend(server.controllers.iter().map(controller_row));
    rows.extend(server.namespaces.iter().flat_map(reservation_rows));
    rows.extend(model_row(server));
    rows
}

/// The controller of an NVMe host.
fn controller_row(controller: &NvmeController) -> StatusRow {
    let NvmeController { controller: id, host, transport, state, queues, .. } = controller;
    let proof = if controller.is_authenticated { ", authenticated" } else { "" };
    let encryption = if controller.is_encrypted { ", encrypted" } else { "" };
    let queues = counted(queues.len() as u64, "I/O queue");
    let text = format!("{id}, {state}{proof}{encryption}, {transport}, {queues}; host {host}");
    row("NVMe controller", text)
}

/// Reservations of a namespace, with a row for each registered host; none where there are none.
fn reservation_rows(namespace: &NamespaceTraffic) -> Vec<StatusRow> {
    let held = &namespace.reservations;
    if held.is_empty() {
        return Vec::new();
    }
    let kind = held.kind.as_deref().unwrap_or("not reserved");
    let lasts = if held.is_persistent { "persistent" } else { "until the server stops" };
    let text = format!("namespace {}, {kind}, {lasts}", namespace.id);
    let registrant = |it: &Registrant| {
        let role = if it.is_holder { "holder" } else { "registrant" };
        row("", format!("host {}, key {}, {role}", it.host(), it.key))
    };
    let rows = held.registrants.iter().map(registrant);
    std::iter::once(row("reservation", text)).chain(rows).collect()
}

/// A namespace, with the commands of clients for it.
fn traffic_row(namespace: &NamespaceTraffic) -> StatusRow {
    let NamespaceTraffic { id, name, size_bytes, block_bytes, reads, writes, .. } = namespace;
    let name = if name.is_empty() { String::new() } else { format!(" `{name}`") };
    let protection = if namespace.is_write_protected { ", write-protected" } else { "" };
    let text = format!(
        "{id}{name}, {} in blocks of {block_bytes} B{protection}; read {} in {}, written {} in {}",
        bytes(*size_bytes),
        bytes(reads.bytes),
        counted(reads.commands, "command"),
        bytes(writes.bytes),
        counted(writes.commands, "command")
    );
    row("namespace", text)
}

/// An export of a drive that is not served.
fn namespace_row(namespace: &Namespace) -> StatusRow {
    row("export", format!("`{}`, {}", namespace.name, bytes(namespace.size_bytes)))
}

/// The modelled drive that sets the timing of replies.
fn model_row(server: &Server) -> Option<StatusRow> {
    let Model { name, climate, lateness } = server.model.as_ref()?;
    let heat = climate.map_or_else(String::new, |climate| {
        format!(
            ", {:.1} °C (throttles at {}, off at {}); {:.1} W on average; throttled for {:.0} s",
            climate.temperature_c,
            climate.throttle_c,
            climate.shutdown_c,
            climate.energy_j / server.uptime_s.max(f64::MIN_POSITIVE),
            climate.throttled_s
        )
    });
    let late = late_text(lateness);
    Some(row("timing model", format!("{name}{heat}{late}")))
}

/// Late replies, as the end of a row; empty if there were none.
fn late_text(lateness: &Lateness) -> String {
    let Lateness { replies, late, late_by_ns_mean, late_by_ns_max } = *lateness;
    if late == 0 {
        return String::new();
    }
    format!(
        "; {late} of {replies} replies since the start were late ({:.1} %), by {} on average and \
         {} at most",
        100.0 * late as f64 / replies as f64,
        Nanos(late_by_ns_mean),
        Nanos(late_by_ns_max)
    )
}

fn command_rows(server: &Server) -> Vec<StatusRow> {
    let traffic = &server.traffic;
    let kinds = [
        ("reads", &traffic.reads),
        ("writes", &traffic.writes),
        ("flushes", &traffic.flushes),
        ("trims", &traffic.trims),
    ];
    kinds.map(|(name, commands)| row(name, commands_text(commands))).into()
}

fn commands_text(counted: &Commands) -> String {
    let Commands { commands, bytes: moved, failures, .. } = counted;
    let counts = format!("{commands}, {}, {failures} failed", bytes(*moved));
    let percentile = |share| counted.latency_histogram.percentile_ns(share).map(Nanos);
    let Some(p50) = percentile(0.5) else { return counts };
    let p99 = percentile(0.99).map_or_else(|| "-".to_owned(), |p99| p99.to_string());
    format!("{counts}; latency p50 {p50}, p99 {p99}")
}

fn map_rows(space: &Space) -> Vec<StatusRow> {
    let letters: Vec<char> = space.superblocks.chars().collect();
    let line = |(index, line): (usize, &[char])| {
        row(&format!("superblocks {}", index * MAP_COLUMNS), line.iter().collect())
    };
    letters.chunks(MAP_COLUMNS).enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use server::drive_service::DriveService;
    use status::{Die, Redundancy, Reservations};

    use super::*;

    #[test]
    fn redundancy_without_failed_dies_is_shown_while_there_are_some_or_it_is_under_way() {
        let shown = |is_running, is_lost| {
            let mut status = DriveService::in_memory(1 << 20, None).expect("a number").status();
            status.dies = vec![Die { is_lost, ..Die::default() }];
            let redundancy = Redundancy { is_running, ..Redundancy::default() };
            status.maintenance.redundancy = Some(redundancy);
            text(&status, None, false).contains("moving data off the failed dies")
        };
        assert!(shown(true, false) && shown(false, true));
        assert!(!shown(false, false), "the die was rebuilt");
    }

    #[test]
    fn reservations_are_shown_with_their_hosts() {
        let registrant = |host_id: Option<&str>, is_holder| Registrant {
            host_id: host_id.map(str::to_owned),
            controller: host_id.is_none().then_some(3),
            key: "0xa".to_owned(),
            is_holder,
        };
        let mut namespace = NamespaceTraffic { id: 2, ..NamespaceTraffic::default() };
        assert!(reservation_rows(&namespace).is_empty());
        namespace.reservations = Reservations {
            kind: Some("exclusive-access".to_owned()),
            is_persistent: true,
            registrants: vec![registrant(Some("01-02"), true), registrant(None, false)],
        };
        let shown = table::columns(&reservation_rows(&namespace));
        let lines: Vec<&str> = shown.lines().map(str::trim).collect();
        assert!(lines[0].ends_with("namespace 2, exclusive-access, persistent"), "{shown}");
        assert_eq!(
            lines[1..],
            ["host 01-02, key 0xa, holder", "host of controller 3, key 0xa, registrant"]
        );
    }
}
