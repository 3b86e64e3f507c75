//! The status of a served drive in the form of `OpenMetrics`.
//!
//! Names and units are what monitoring systems keep for years: `docs/guide/monitor-a-drive.md`
//! lists them, and they change only with the schema of the status.
//!
//! Source: the `OpenMetrics` specification, version 1.0.0.

use std::fmt::{Display, Write as _};
use std::sync::{Mutex, PoisonError};

use status::{
    Climate, CommandCounts, Commands, Die, HealthState, Lateness, MaintenanceStatus,
    NamespaceTraffic, NvmeController, NvmeQueue, ProblemKind, Promise, Scrubs, Server, Space,
    Status, Wear, Writes,
};

/// Content type of [`Metrics::text`].
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Prefix of every metric name.
const PREFIX: &str = "floatgate";
const BYTES: &str = "bytes";
const SECONDS: &str = "seconds";
const CELSIUS: &str = "celsius";
const PURE: &str = "";

/// Bounds of latencies: 1024 ns, and each twice the one before.
const OCTAVES: usize = 23;

/// State kept from one scrape to the next.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    largest: Mutex<Largest>,
}

/// Largest values seen of counters that fall in the status: a counter of a scrape falls only when
/// the server was restarted.
#[derive(Debug, Default)]
struct Largest {
    /// Process of the server.
    pid: u32,
    /// Bytes of metadata. They fall a little while pages wait in memory for their unit to be full.
    metadata_bytes: u64,
    /// Nanoseconds of late replies, added up. The status has their rounded mean, which times their
    /// number may fall.
    late_by_ns: u64,
}

impl Metrics {
    /// The whole of a scrape.
    pub(super) fn text(&self, status: &Status) -> String {
        let mut sheet = Sheet::default();
        let mut largest = self.largest.lock().unwrap_or_else(PoisonError::into_inner);
        let pid = status.server.as_ref().map_or(0, |server| server.pid);
        if largest.pid != pid {
            *largest = Largest { pid, ..Largest::default() };
        }
        sheet.drive(status);
        sheet.health(status);
        sheet.dies(&status.dies);
        sheet.scrubs(&status.maintenance);
        let spares = [(None, status.hot_spares)];
        sheet.gauges(("hot_spares", PURE, "Hot spares, which replace failed dies"), &spares);
        status.space.iter().for_each(|space| sheet.space(space));
        status.wear.iter().for_each(|wear| sheet.wear(wear));
        if let Some(writes) = &status.writes {
            largest.metadata_bytes = largest.metadata_bytes.max(writes.metadata_bytes);
            sheet.writes(&Writes { metadata_bytes: largest.metadata_bytes, ..*writes });
        }
        if let Some(server) = &status.server {
            sheet.commands(server);
            sheet.clients(server);
            sheet.namespaces(&server.namespaces);
            sheet.reservations(&server.namespaces);
            sheet.controllers(&server.controllers);
            if let Some(model) = &server.model {
                model.climate.iter().for_each(|climate| sheet.climate(climate));
                let Lateness { late, late_by_ns_mean, .. } = model.lateness;
                let late_by_ns = late_by_ns_mean.saturating_mul(late);
                largest.late_by_ns = largest.late_by_ns.max(late_by_ns);
                sheet.lateness(&model.lateness, largest.late_by_ns);
            }
            sheet.process(server);
        }
        sheet.0.push_str("# EOF\n");
        sheet.0
    }
}

/// Metrics, one after the other.
#[derive(Debug, Default)]
struct Sheet(String);

#[derive(Clone, Copy, Debug)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
    Info,
}

/// A metric, whatever its labels: its name without prefix and unit, its unit, and what it is.
type Family = (&'static str, &'static str, &'static str);

/// One of the counts of a namespace.
type Count = fn(&CommandCounts) -> u64;

/// A label's name and value; none where the metric has one value.
type Label<'a> = Option<(&'static str, &'a str)>;

impl Sheet {
    /// Says what follows. Returns the name.
    fn begin(&mut self, kind: Kind, (name, unit, help): Family) -> String {
        let joint = if unit.is_empty() { "" } else { "_" };
        let name = format!("{PREFIX}_{name}{joint}{unit}");
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::Info => "info",
        };
        self.line(format_args!("# TYPE {name} {kind}"));
        if !unit.is_empty() {
            self.line(format_args!("# UNIT {name} {unit}"));
        }
        self.line(format_args!("# HELP {name} {help}."));
        name
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{line}").expect("a string takes everything");
    }

    fn sample(&mut self, name: &str, label: Label<'_>, value: impl Display) {
        match label {
            Some(label) => self.labelled(name, &[label], value),
            None => self.line(format_args!("{name} {value}")),
        }
    }

    fn labelled(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let label = |(key, of): &(&str, &str)| format!("{key}=\"{}\"", escaped(of));
        let labels = labels.iter().map(label).collect::<Vec<_>>().join(",");
        self.line(format_args!("{name}{{{labels}}} {value}"));
    }

    fn counters<V: Display>(&mut self, family: Family, values: &[(Label<'_>, V)]) {
        let name = self.begin(Kind::Counter, family) + "_total";
        for (label, value) in values {
            self.sample(&name, *label, value);
        }
    }

    fn gauges<V: Display>(&mut self, family: Family, values: &[(Label<'_>, V)]) {
        let name = self.begin(Kind::Gauge, family);
        for (label, value) in values {
            self.sample(&name, *label, value);
        }
    }

    fn drive(&mut self, status: &Status) {
        let format = &status.format;
        let name = self.begin(Kind::Info, ("drive", PURE, "Volume that is served")) + "_info";
        let labels =
            [("drive", &*status.drive), ("name", &*status.name), ("folder", &*status.folder)];
        self.labelled(&name, &labels, 1);
        let capacity = [
            (Some(("of", "host")), format.capacity_bytes),
            (Some(("of", "data")), format.data_bytes),
            (Some(("of", "raw")), format.raw_bytes),
        ];
        let about = "Capacity for clients, usable flash, and raw flash with parity";
        self.gauges(("capacity", BYTES, about), &capacity);
    }

    fn health(&mut self, status: &Status) {
        let smart = &status.smart;
        let states = [HealthState::Ok, HealthState::Degraded, HealthState::Critical]
            .map(|state| (Some(("state", state.word())), u8::from(status.health.state == state)));
        self.gauges(
            ("health", PURE, "1 for the current state of health, 0 for the others"),
            &states,
        );
        let problems = ProblemKind::ALL.map(|kind| {
            let count = status.health.problems.iter().filter(|it| it.kind == kind).count();
            (Some(("kind", kind.word())), count)
        });
        self.gauges(("problems", PURE, "Problems that determine the health, by kind"), &problems);
        if let Some(promise) = status.acknowledged_survives {
            let kept =
                Promise::ALL.map(|it| (Some(("survives", it.word())), u8::from(it == promise)));
            let about = "1 for what acknowledged writes survive before a flush, 0 for the others";
            self.gauges(("acknowledged_writes", PURE, about), &kept);
        }
        if let Some(lost) = status.pages_lost {
            let about = "Pages that cannot be read back, until they are written or trimmed";
            self.gauges(("lost_pages", PURE, about), &[(None, lost)]);
        }
        let about = "Bits: 1 spare is low, 2 model too warm, 4 redundancy or data lost, \
                     8 read-only, 16 what writes wait in does not survive";
        self.gauges(("critical_warning", PURE, about), &[(None, smart.critical_warning)]);
        if let Some(spare) = smart.available_spare {
            let about = "Available spare: share of the spare superblocks that are not bad";
            self.gauges(
                ("available_spare_ratio", PURE, about),
                &[(None, f64::from(spare) / 100.0)],
            );
        }
        if let Some(used) = smart.percentage_used {
            let about = "Share of the rated erases that are used";
            self.gauges(("life_used_ratio", PURE, about), &[(None, f64::from(used) / 100.0)]);
        }
        let about = "Power cycles: openings of the volume";
        self.counters(("power_cycles", PURE, about), &[(None, smart.power_cycles)]);
        let about = "Unsafe shutdowns: openings after an unclean shutdown";
        self.counters(("unsafe_shutdowns", PURE, about), &[(None, smart.unsafe_shutdowns)]);
        if let Some(errors) = smart.media_errors {
            self.counters(("media_errors", PURE, "Pages found lost"), &[(None, errors)]);
        }
    }

    fn dies(&mut self, dies: &[Die]) {
        let lost = dies.iter().filter(|die| die.is_lost).count();
        self.gauges(("dies_lost", PURE, "Dies that are missing or have failed"), &[(None, lost)]);
        let indices: Vec<String> = (0..dies.len()).map(|index| index.to_string()).collect();
        let name = self.begin(Kind::Info, ("die", PURE, "File or block device of a die")) + "_info";
        for (index, die) in indices.iter().zip(dies) {
            let known = |value: &Option<String>| value.clone().unwrap_or_default();
            let [path, model, serial] = [&die.path, &die.model, &die.serial].map(known);
            let labels =
                [("die", &**index), ("path", &path), ("model", &model), ("serial", &serial)];
            self.labelled(&name, &labels, 1);
        }
        let by_die = |of: fn(&Die) -> u64| -> Vec<(Label<'_>, u64)> {
            let label = indices.iter().map(|index| Some(("die", index.as_str())));
            label.zip(dies.iter().map(of)).collect()
        };
        let read = by_die(|die| die.read_bytes);
        self.counters(("media_read", BYTES, "Read from a die"), &read);
        let written = by_die(|die| die.written_bytes);
        self.counters(("media_written", BYTES, "Written to a die"), &written);
        let failures = by_die(|die| die.failures);
        self.counters(("media_failures", PURE, "Requests that a die failed"), &failures);
        let reconstructed = by_die(|die| die.reconstructed_reads);
        let about = "Reads that parity answered, since a die did not";
        self.counters(("reconstructed_reads", PURE, about), &reconstructed);
        let damaged = by_die(|die| die.damaged_places);
        let about = "Damaged places of a die that reads found";
        self.counters(("damaged_places", PURE, about), &damaged);
        let lately = by_die(|die| die.damaged_places_hour);
        let about = "Those found in the last hour";
        self.gauges(("damaged_places_hour", PURE, about), &lately);
        let limit = by_die(|die| die.damaged_places_limit);
        let about = "Most of them in an hour that are no problem: --die-errors-per-hour";
        self.gauges(("damaged_places_limit", PURE, about), &limit);
        let bad = by_die(|die| die.bad_places);
        self.gauges(("bad_places", PURE, "Places where the medium of a die failed"), &bad);
        let in_use = by_die(|die| die.bad_places_in_use);
        let about = "Those that are used all the same, for want of spare superblocks";
        self.gauges(("bad_places_in_use", PURE, about), &in_use);
        let name = self.begin(
            Kind::Gauge,
            ("die_temperature", "celsius", "Temperature of the disk below a die, by its sensor"),
        );
        for (index, die) in indices.iter().zip(dies) {
            if let Some(celsius) = die.temperature_c {
                self.labelled(&name, &[("die", &**index)], celsius);
            }
        }
    }

    fn scrubs(&mut self, maintenance: &MaintenanceStatus) {
        let Scrubs { ended, completed, units_bad, units_restored, .. } = maintenance.scrubs;
        self.counters(("scrubs_ended", PURE, "Scrubs that ended"), &[(None, ended)]);
        let about = "Scrubs that read everything";
        self.counters(("scrubs_completed", PURE, about), &[(None, completed)]);
        let about = "Corrupt units that scrubs found";
        self.counters(("scrub_bad_units", PURE, about), &[(None, units_bad)]);
        let about = "Corrupt units that scrubs repaired";
        self.counters(("scrub_restored_units", PURE, about), &[(None, units_restored)]);
        let Scrubs { copies_bad, copies_restored, .. } = maintenance.scrubs;
        let about = "Damaged copies of headers, checkpoint and journal that scrubs found";
        self.counters(("scrub_bad_copies", PURE, about), &[(None, copies_bad)]);
        let about = "Damaged copies of headers, checkpoint and journal that scrubs wrote again";
        self.counters(("scrub_restored_copies", PURE, about), &[(None, copies_restored)]);
        let about = "Units written again since a read found damage in them";
        self.counters(("mended_units", PURE, about), &[(None, maintenance.units_mended)]);
        let done = maintenance.scrub.as_ref().filter(|scrub| scrub.is_running);
        let done = done.map_or(0.0, |scrub| scrub.rows_done as f64 / scrub.rows.max(1) as f64);
        let about = "Progress of the running scrub, 0 to 1; 0 if none is running";
        self.gauges(("scrub_progress_ratio", PURE, about), &[(None, done)]);
    }

    fn space(&mut self, space: &Space) {
        self.gauges(("stored", BYTES, "Flash that data occupies"), &[(None, space.stored_bytes)]);
        let most = [(None, space.stored_bytes_max)];
        self.gauges(("stored_max", BYTES, "Flash that data may occupy at most"), &most);
        let states = [("free", 'f'), ("open", 'o'), ("closed", 'c'), ("victim", 'v'), ("bad", 'b')];
        let states = states.map(|(state, letter)| {
            let count = space.superblocks.chars().filter(|it| *it == letter).count();
            (Some(("state", state)), count)
        });
        self.gauges(("superblocks", PURE, "Superblocks by state"), &states);
    }

    fn wear(&mut self, wear: &Wear) {
        let erases = [
            (Some(("of", "min")), f64::from(wear.erase_count_min)),
            (Some(("of", "mean")), wear.erase_count_mean),
            (Some(("of", "max")), f64::from(wear.erase_count_max)),
        ];
        self.gauges(("superblock_erases", PURE, "Erases of a superblock in its life"), &erases);
    }

    fn writes(&mut self, writes: &Writes) {
        let causes = [
            (Some(("cause", "host")), writes.host_bytes),
            (Some(("cause", "relocation")), writes.relocation_bytes),
            (Some(("cause", "wear")), writes.wear_bytes),
            (Some(("cause", "parity")), writes.parity_bytes),
            (Some(("cause", "metadata")), writes.metadata_bytes),
            (Some(("cause", "rebuild")), writes.rebuild_bytes),
        ];
        self.counters(("written", BYTES, "Written to the dies by cause"), &causes);
        let erased = [(None, writes.superblocks_erased)];
        self.counters(("superblocks_erased", PURE, "Superblocks erased"), &erased);
        self.counters(("trimmed", BYTES, "Trimmed by clients"), &[(None, writes.trimmed_bytes)]);
    }

    fn commands(&mut self, server: &Server) {
        let traffic = &server.traffic;
        let kinds = [
            ("read", &traffic.reads),
            ("write", &traffic.writes),
            ("flush", &traffic.flushes),
            ("trim", &traffic.trims),
        ];
        let by_kind = |of: fn(&Commands) -> u64| {
            kinds.map(|(kind, commands)| (Some(("command", kind)), of(commands)))
        };
        let moved = by_kind(|commands| commands.bytes);
        self.counters(("host", BYTES, "Bytes of commands that succeeded"), &moved);
        let failures = by_kind(|commands| commands.failures);
        self.counters(("command_failures", PURE, "Commands that failed"), &failures);
        let help = "Latency of client commands that succeeded, from receipt to reply";
        let family = ("command", SECONDS, help);
        let name = self.begin(Kind::Histogram, family);
        for (kind, commands) in kinds {
            self.histogram(&name, kind, commands);
        }
    }

    fn histogram(&mut self, name: &str, kind: &str, commands: &Commands) {
        let latencies = &commands.latency_histogram;
        let finite = (0..OCTAVES).map(|octave| {
            let end_s = (1024_u64 << octave) as f64 / 1e9;
            (end_s.to_string(), latencies.below_octave(octave))
        });
        for (end, below) in finite.chain([("+Inf".to_owned(), latencies.total())]) {
            let labels = format_args!("command=\"{kind}\",le=\"{end}\"");
            self.line(format_args!("{name}_bucket{{{labels}}} {below}"));
        }
        let label = Some(("command", kind));
        self.sample(&format!("{name}_count"), label, latencies.total());
        self.sample(&format!("{name}_sum"), label, commands.latency_ns_sum as f64 / 1e9);
    }

    fn clients(&mut self, server: &Server) {
        let here = [(None, server.clients.len())];
        self.gauges(("clients", PURE, "Connected clients"), &here);
        self.counters(
            (
                "connections_accepted",
                PURE,
                "Connections of clients accepted since the server started",
            ),
            &[(None, server.connections_accepted)],
        );
        let refused = [(None, server.clients_refused)];
        let about = "Clients that were dropped or rejected";
        self.counters(("clients_refused", PURE, about), &refused);
    }

    fn namespaces(&mut self, namespaces: &[NamespaceTraffic]) {
        let families: [(Family, Count); 3] = [
            (("namespace_commands", PURE, "Commands of clients for a namespace"), |it| it.commands),
            (("namespace_host", BYTES, "Bytes of commands that succeeded"), |it| it.bytes),
            (("namespace_command_failures", PURE, "Commands that failed"), |it| it.failures),
        ];
        for (family, of) in families {
            let name = self.begin(Kind::Counter, family) + "_total";
            for it in namespaces {
                let id = it.id.to_string();
                let reads = [("read", it.reads), ("write", it.writes)];
                for (kind, counts) in
                    reads.into_iter().chain([("flush", it.flushes), ("trim", it.trims)])
                {
                    let labels = [("namespace", &*id), ("export", &*it.name), ("command", kind)];
                    self.labelled(&name, &labels, of(&counts));
                }
            }
        }
        let about = "Bytes that clients address in a namespace";
        let name = self.begin(Kind::Gauge, ("namespace_size", BYTES, about));
        for it in namespaces {
            let id = it.id.to_string();
            self.labelled(&name, &[("namespace", &*id), ("export", &*it.name)], it.size_bytes);
        }
    }

    fn reservations(&mut self, namespaces: &[NamespaceTraffic]) {
        let about = "NVMe hosts that are registered with a namespace";
        let name = self.begin(Kind::Gauge, ("reservation_registrants", PURE, about));
        for it in namespaces {
            let id = it.id.to_string();
            let labels = [("namespace", &*id), ("export", &*it.name)];
            self.labelled(&name, &labels, it.reservations.registrants.len());
        }
        let about = "1 for the type of a namespace's reservation by NVMe hosts, if there is one";
        let name = self.begin(Kind::Gauge, ("reservation_held", PURE, about));
        for it in namespaces {
            let id = it.id.to_string();
            if let Some(kind) = &it.reservations.kind {
                let labels = [("namespace", &*id), ("export", &*it.name), ("type", kind)];
                self.labelled(&name, &labels, 1);
            }
        }
    }

    fn controllers(&mut self, controllers: &[NvmeController]) {
        let about = "Controllers of NVMe hosts";
        self.gauges(("nvme_controllers", PURE, about), &[(None, controllers.len())]);
        let about = "I/O queues of a controller";
        let name = self.begin(Kind::Gauge, ("nvme_controller_queues", PURE, about));
        for it in controllers {
            let id = it.controller.to_string();
            self.labelled(&name, &[("controller", &*id), ("host", &*it.host)], it.queues.len());
        }
        let about = "1 if the connections of a controller are encrypted, else 0";
        let name = self.begin(Kind::Gauge, ("nvme_controller_encrypted", PURE, about));
        for it in controllers {
            let id = it.controller.to_string();
            let labels = [("controller", &*id), ("host", &*it.host)];
            self.labelled(&name, &labels, u8::from(it.is_encrypted));
        }
        let about =
            "Commands of a controller's present I/O queues; failed ones count only as failed";
        let name = self.begin(Kind::Gauge, ("nvme_controller_commands", PURE, about));
        for it in controllers {
            let sum = |of: fn(&NvmeQueue) -> u64| it.queues.iter().map(of).sum::<u64>();
            let kinds = [
                ("read", sum(|queue| queue.read_commands)),
                ("write", sum(|queue| queue.write_commands)),
                ("other", sum(|queue| queue.other_commands)),
                ("failed", sum(|queue| queue.failures)),
            ];
            let id = it.controller.to_string();
            for (kind, count) in kinds {
                let labels = [("controller", &*id), ("host", &*it.host), ("command", kind)];
                self.labelled(&name, &labels, count);
            }
        }
    }

    fn climate(&mut self, climate: &Climate) {
        let about = "Temperature of the modelled drive";
        self.gauges(("model_temperature", CELSIUS, about), &[(None, climate.temperature_c)]);
        let limits = [
            (Some(("limit", "throttle")), climate.throttle_c),
            (Some(("limit", "shutdown")), climate.shutdown_c),
        ];
        let about = "Temperatures at which the model throttles writes, and at which it shuts down";
        self.gauges(("model_temperature_limit", CELSIUS, about), &limits);
        let about = "Energy that the model has used";
        self.counters(("model_energy", "joules", about), &[(None, climate.energy_j)]);
        let about = "Time in which the model throttled writes for temperature or power";
        self.counters(("model_throttled", SECONDS, about), &[(None, climate.throttled_s)]);
    }

    fn lateness(&mut self, lateness: &Lateness, late_by_ns: u64) {
        let about = "Replies with the timing of the model";
        self.counters(("model_replies", PURE, about), &[(None, lateness.replies)]);
        let about = "Replies that were late by more than a twentieth of their latency in the model";
        self.counters(("model_late_replies", PURE, about), &[(None, lateness.late)]);
        let seconds = |ns: u64| ns as f64 / 1e9;
        let about = "Sum of the times by which late replies were late";
        self.counters(("model_late_by", SECONDS, about), &[(None, seconds(late_by_ns))]);
        let about = "Longest time by which a reply was late since the server started";
        self.gauges(
            ("model_late_by_max", SECONDS, about),
            &[(None, seconds(lateness.late_by_ns_max))],
        );
    }

    fn process(&mut self, server: &Server) {
        let memory = [(None, server.memory_bytes)];
        self.gauges(("memory", BYTES, "Resident memory of the server"), &memory);
        self.counters(("cpu", SECONDS, "Processor time of the server"), &[(None, server.cpu_s)]);
        self.gauges(("uptime", SECONDS, "Uptime of the server"), &[(None, server.uptime_s)]);
    }
}

/// The value of a label as `OpenMetrics` has it: paths and names may hold anything.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use status::{Model, Registrant};

    use super::*;
    use crate::drive_service::DriveService;

    /// A status with `late` replies of `late_by_ns_mean` nanoseconds.
    fn late(late: u64, late_by_ns_mean: u64) -> Status {
        let service = DriveService::in_memory(4096, None).unwrap();
        let mut status = service.status();
        let lateness = Lateness { replies: 100, late, late_by_ns_mean, late_by_ns_max: 10 };
        let model = Model { name: "p5800x".to_owned(), climate: None, lateness };
        status.server.as_mut().unwrap().model = Some(model);
        status
    }

    #[test]
    fn the_counter_of_lateness_falls_with_a_restart_and_not_with_the_rounding_of_its_mean() {
        let metrics = Metrics::default();
        let counter = |status: &Status| {
            let text = metrics.text(status);
            let name = "floatgate_model_late_by_seconds_total ";
            let value = text.lines().find_map(|line| line.strip_prefix(name));
            value.unwrap().parse::<f64>().unwrap()
        };
        // Ten replies are late by 100 ns together, then eleven by 101: 9 each, rounded down.
        let before = counter(&late(10, 10));
        assert!(counter(&late(11, 9)) >= before);
        // Another server begins again.
        let mut restarted = late(1, 5);
        restarted.server.as_mut().unwrap().pid += 1;
        assert!(counter(&restarted) < before);
    }

    #[test]
    fn reservations_have_their_type_and_the_number_of_hosts() {
        let service = DriveService::in_memory(4096, None).unwrap();
        let mut namespace = NamespaceTraffic { id: 1, ..NamespaceTraffic::default() };
        let scrape = |namespace: &NamespaceTraffic| {
            let mut status = service.status();
            status.server.as_mut().unwrap().namespaces = vec![namespace.clone()];
            let text = Metrics::default().text(&status);
            let own = text.lines().filter(|line| line.starts_with("floatgate_reservation_"));
            own.map(str::to_owned).collect::<Vec<_>>()
        };
        let registrants = "floatgate_reservation_registrants{namespace=\"1\",export=\"\"}";
        assert_eq!(scrape(&namespace), [format!("{registrants} 0")]);
        let registrant = Registrant {
            host_id: None,
            controller: Some(1),
            key: "0x1".to_owned(),
            is_holder: true,
        };
        namespace.reservations.kind = Some("write-exclusive".to_owned());
        namespace.reservations.registrants = vec![registrant];
        let held = "floatgate_reservation_held{namespace=\"1\",export=\"\",\
                    type=\"write-exclusive\"} 1";
        assert_eq!(scrape(&namespace), [format!("{registrants} 1"), held.to_owned()]);
    }

    #[test]
    fn a_label_may_hold_anything() {
        let mut sheet = Sheet::default();
        sheet.labelled("a", &[("path", "/x \"y\"\\z\n"), ("die", "0")], 1);
        assert_eq!(sheet.0, "a{path=\"/x \\\"y\\\"\\\\z\\n\",die=\"0\"} 1\n");
    }
}
