//! Status of a server: the process, exports, clients and their commands.

use serde::{Deserialize, Serialize};

use crate::LatencyHistogram;

/// The process that serves a drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// Id of the process.
    pub pid: u32,
    /// Version of the program.
    pub version: String,
    /// Seconds since it began.
    pub uptime_s: f64,
    /// Seconds of processor time that it took.
    pub cpu_s: f64,
    /// Bytes of memory that it has resident.
    pub memory_bytes: u64,
    /// Exports that clients may use.
    pub exports: Vec<Export>,
    /// Connected clients.
    pub clients: Vec<Client>,
    /// Connections that were accepted since the server started.
    pub connections_accepted: u64,
    /// Clients that were dropped or rejected.
    pub clients_refused: u64,
    /// Commands of all clients, by kind.
    pub traffic: Traffic,
    /// Namespaces of the drive, with the commands of clients for each; one that is not divided is
    /// namespace 1.
    #[serde(default)]
    pub namespaces: Vec<NamespaceTraffic>,
    /// Controllers of NVMe hosts.
    #[serde(default)]
    pub controllers: Vec<NvmeController>,
    /// The modelled drive whose times replies keep to, if they do.
    #[serde(default)]
    pub model: Option<Model>,
    /// Latest events, the last at the end; of earlier servers, too.
    #[serde(default)]
    pub events: Vec<EventRecord>,
}

impl Server {
    /// Number of connected clients that use an export. An NVMe host uses all exports.
    pub fn clients_of(&self, export: &Export) -> usize {
        let uses = |it: &&Client| it.export == export.name || !it.host.is_empty();
        self.clients.iter().filter(uses).count()
    }
}

/// Commands of one kind for a namespace, since the server began or the namespace was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandCounts {
    /// Commands that ended.
    pub commands: u64,
    /// Bytes of those that succeeded.
    pub bytes: u64,
    /// Commands that failed.
    pub failures: u64,
}

/// A namespace, and what clients do with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceTraffic {
    /// Number by which NVMe hosts know it.
    pub id: u32,
    /// Name by which other clients ask for it; empty where the drive is not divided.
    pub name: String,
    /// Bytes that clients address.
    pub size_bytes: u64,
    /// Bytes of the logical blocks that NVMe hosts see.
    pub block_bytes: u32,
    /// True if it takes no writes.
    pub is_write_protected: bool,
    /// Reason why it refuses commands of clients though it is not write-protected; none if it does
    /// not.
    #[serde(default)]
    pub refusal: Option<Refusal>,
    /// Reservations of NVMe hosts.
    #[serde(default)]
    pub reservations: Reservations,
    /// Reads.
    pub reads: CommandCounts,
    /// Writes.
    pub writes: CommandCounts,
    /// Flushes.
    pub flushes: CommandCounts,
    /// Trims.
    pub trims: CommandCounts,
}

/// Reason why a namespace refuses commands; of two the worse is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// An injected fault has its media take no writes.
    WritesFail,
    /// A sanitize has not ended, and a server that is read-only does not go on with it.
    SanitizeUnfinished,
    /// A sanitize failed.
    SanitizeFailed,
}

/// Reservations of a namespace by NVMe hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservations {
    /// Type of the reservation, such as `write-exclusive`; none if there is none.
    pub kind: Option<String>,
    /// True if the reservation and registrations outlast the server.
    pub is_persistent: bool,
    /// Hosts that are registered, in ascending order of their identifiers.
    pub registrants: Vec<Registrant>,
}

impl Reservations {
    /// True if there is nothing to tell.
    pub const fn is_empty(&self) -> bool {
        self.kind.is_none() && self.registrants.is_empty()
    }
}

/// A host that is registered with a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registrant {
    /// Its identifier, as `/etc/nvme/hostid` has it; none of a host that is known by its controller
    /// alone.
    pub host_id: Option<String>,
    /// Identifier of the controller of a host without one.
    pub controller: Option<u16>,
    /// Its reservation key in hexadecimal, beginning with `0x`.
    pub key: String,
    /// True if it holds the reservation, alone or as all registrants do.
    pub is_holder: bool,
}

impl Registrant {
    /// Returns the host in words.
    pub fn host(&self) -> String {
        let of_controller = || format!("of controller {}", self.controller.unwrap_or_default());
        self.host_id.clone().unwrap_or_else(of_controller)
    }
}

/// A controller of an NVMe host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NvmeController {
    /// Identifier of the controller.
    pub controller: u16,
    /// NQN of the host.
    pub host: String,
    /// Transport, as nvme-cli names it.
    pub transport: String,
    /// State of the controller: `enabled`, `disabled`, `shut down` or `failed`.
    pub state: String,
    /// True if the host proved who it is.
    pub is_authenticated: bool,
    /// True if its connections are encrypted.
    #[serde(default)]
    pub is_encrypted: bool,
    /// I/O queues.
    pub queues: Vec<NvmeQueue>,
}

/// An I/O queue of a controller, with its commands since it was connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NvmeQueue {
    /// Number of the queue, from 1.
    pub queue: u16,
    /// Reads, compares and verifies that succeeded.
    pub read_commands: u64,
    /// Bytes of them.
    pub read_bytes: u64,
    /// Writes that succeeded, also of zeroes.
    pub write_commands: u64,
    /// Bytes of them.
    pub written_bytes: u64,
    /// Commands of all other kinds that succeeded.
    pub other_commands: u64,
    /// Commands that failed, which are in none of the other counts.
    pub failures: u64,
}

/// A modelled drive whose times replies keep to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// Its power and heat; none where nothing is known of them.
    pub climate: Option<Climate>,
    /// Replies that left later than the model was done.
    #[serde(default)]
    pub lateness: Lateness,
}

/// Replies with the timing of a model since the server began, and those of them that were late: by
/// more than a twentieth of the command's latency in the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// Replies that were sent.
    pub replies: u64,
    /// Replies that were late.
    pub late: u64,
    /// Nanoseconds by which the late ones were late, on average; 0 if none was.
    pub late_by_ns_mean: u64,
    /// Nanoseconds by which a reply was late, at most.
    pub late_by_ns_max: u64,
}

/// Power and heat of a modelled drive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Climate {
    /// Temperature in degrees Celsius.
    pub temperature_c: f64,
    /// Temperature from which on it throttles writes.
    pub throttle_c: f64,
    /// Temperature at which it would switch itself off.
    pub shutdown_c: f64,
    /// Joules that it has taken since the server began.
    pub energy_j: f64,
    /// Power limit in watts; none where there is no limit.
    pub power_limit_w: Option<f64>,
    /// Seconds in which it throttled writes for one or the other.
    pub throttled_s: f64,
}

impl Climate {
    /// Its temperature in whole kelvin, as the NVMe SMART log has it.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
    pub const fn composite_temperature(&self) -> u16 {
        (self.temperature_c + 273.15).round() as u16
    }

    /// Watts on average since an earlier look, `seconds` before.
    pub fn power_w_since(&self, then: &Self, seconds: f64) -> f64 {
        ((self.energy_j - then.energy_j) / seconds.max(f64::MIN_POSITIVE)).max(0.0)
    }
}

/// Event in the history of a drive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRecord {
    /// Milliseconds since the beginning of 1970, UTC.
    pub at_unix_ms: u64,
    /// Description of the event.
    pub what: String,
    /// Kind of the event, such as `namespace` or `sanitize-ended`; empty for any other.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
}

/// An export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    /// Name by which clients ask for it; may be empty.
    pub name: String,
    /// Bytes that clients address.
    pub size_bytes: u64,
    /// True if commands that change data are refused.
    pub is_read_only: bool,
    /// URIs at which clients reach it.
    pub uris: Vec<String>,
}

/// A client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// Its number, from 1 in order of arrival.
    pub client: u64,
    /// Name of the export that it uses; empty for an NVMe host, which uses them all.
    pub export: String,
    /// NQN of an NVMe host; empty for others.
    #[serde(default)]
    pub host: String,
}

/// Commands of clients since the server began, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Reads.
    pub reads: Commands,
    /// Writes.
    pub writes: Commands,
    /// Flushes, those that writes ask for not counted.
    pub flushes: Commands,
    /// Trims, and writes of zeroes that may be trims.
    pub trims: Commands,
}

/// Commands of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commands {
    /// Commands that ended.
    pub commands: u64,
    /// Bytes of those that succeeded.
    pub bytes: u64,
    /// Commands that failed.
    pub failures: u64,
    /// Nanoseconds since the last one ended; none before the first.
    #[serde(default)]
    pub idle_ns: Option<u64>,
    /// Latencies of those that succeeded, added up, in nanoseconds: from receipt to reply.
    pub latency_ns_sum: u64,
    /// Histogram of these latencies; empty from a server of schema 1.
    #[serde(default)]
    pub latency_histogram: LatencyHistogram,
}

/// Ticks in which Linux tells processor time.
const TICKS_PER_S: f64 = 100.0;

/// Resources that a process uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Process {
    /// Seconds of processor time so far.
    pub cpu_s: f64,
    /// Bytes of memory that it has resident.
    pub memory_bytes: u64,
}

impl Process {
    /// This process.
    pub fn own() -> Self {
        let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        // What follows the name, which may hold anything, begins with the third field.
        let fields = text.rsplit_once(") ").map_or("", |(_, fields)| fields).split(' ').skip(11);
        let ticks: f64 = fields.take(2).filter_map(|it| it.parse::<f64>().ok()).sum();
        let cpu_s = ticks / TICKS_PER_S;
        let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let resident = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = resident.and_then(|it| it.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        Self { cpu_s, memory_bytes: kib.unwrap_or_default() << 10 }
    }
}

impl Commands {
    /// Returns the commands since `earlier`, which was taken before from the same counters.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            commands: self.commands.saturating_sub(earlier.commands),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            failures: self.failures.saturating_sub(earlier.failures),
            idle_ns: self.idle_ns,
            latency_ns_sum: self.latency_ns_sum.saturating_sub(earlier.latency_ns_sum),
            latency_histogram: self.latency_histogram.since(&earlier.latency_histogram),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::health::tests::served;
    use super::*;

    #[test]
    fn an_nvme_host_is_a_client_of_every_export() {
        let mut server = served().server.unwrap();
        let client = |export: &str, host: &str| Client {
            client: 1,
            export: export.to_owned(),
            host: host.to_owned(),
        };
        server.clients = vec![client("a", ""), client("", "nqn.2014-08.org.nvmexpress:uuid:1")];
        let count = |name: &str| {
            let name = name.to_owned();
            server.clients_of(&Export { name, ..server.exports[0].clone() })
        };
        assert_eq!((count("a"), count("b"), count("")), (2, 1, 1));
    }
}
