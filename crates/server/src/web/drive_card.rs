//! Card of a drive on a page of many drives.

use std::path::Path;

use serde::Serialize;
use status::{Commands, EventRecord, Health, Led, MaintenanceStatus, State, Status, Supply};

/// Last events of each drive that are told.
const EVENTS_MAX: usize = 8;

/// A drive among others.
#[derive(Clone, Debug, Serialize)]
pub(super) struct DriveCard {
    /// Its folder.
    volume: String,
    /// Name of the drive: the one that it was given, or that of its folder.
    name: String,
    /// True if its locate LED is on; known without a server.
    pub(super) is_locate_led_on: bool,
    /// True if its server answered the last look.
    pub(super) is_served: bool,
    /// Reason for no answer, unless the drive is merely not served.
    pub(super) fault: Option<String>,
    /// Summary of its last answer; none before the first.
    pub(super) drive: Option<Summary>,
}

/// Part of a drive's status for its card. Fields mean the same as there.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Summary {
    pub(super) drive: String,
    health: Health,
    state: State,
    reason: Option<String>,
    led: Led,
    capacity_bytes: u64,
    is_thin: bool,
    stored_bytes: Option<u64>,
    stored_bytes_max: Option<u64>,
    supply: Option<Supply>,
    superblocks: u32,
    superblocks_free: Option<u32>,
    write_amplification: Option<f64>,
    percentage_used: Option<u8>,
    available_spare: Option<u8>,
    critical_warning: u8,
    temperature_c: Option<f64>,
    dies: usize,
    dies_lost: usize,
    hot_spares: u32,
    maintenance: MaintenanceStatus,
    pid: u32,
    uptime_s: f64,
    clients: usize,
    reads: Commands,
    writes: Commands,
    events: Vec<EventRecord>,
}

impl DriveCard {
    /// Returns the card of a drive that has not been asked yet.
    pub(super) fn of_folder(volume: &Path) -> Self {
        let name = live::name_of(volume);
        Self {
            volume: volume.display().to_string(),
            name,
            is_locate_led_on: false,
            is_served: false,
            fault: None,
            drive: None,
        }
    }
}

#[cfg(test)]
impl DriveCard {
    /// The name that it is shown by.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Summary {
    /// Returns the summary of a served drive; none if the status is of a closed one.
    pub(super) fn of(status: Status) -> Option<Self> {
        let server = status.server?;
        let dies_lost = status.dies.iter().filter(|die| die.is_lost).count();
        let mut events = server.events;
        let space = status.space;
        Some(Self {
            drive: status.drive,
            health: status.health,
            state: status.state,
            reason: status.reason,
            led: status.led,
            capacity_bytes: status.format.capacity_bytes,
            is_thin: status.format.physical_bytes < status.format.capacity_bytes,
            stored_bytes: space.as_ref().map(|space| space.stored_bytes),
            stored_bytes_max: space.as_ref().map(|space| space.stored_bytes_max),
            supply: space.as_ref().map(|space| space.supply),
            superblocks: status.format.superblocks,
            superblocks_free: space.as_ref().map(|space| space.superblocks_free),
            write_amplification: status.writes.and_then(|writes| writes.write_amplification),
            percentage_used: status.smart.percentage_used,
            available_spare: status.smart.available_spare,
            critical_warning: status.smart.critical_warning,
            temperature_c: server.model.and_then(|it| Some(it.climate?.temperature_c)),
            dies: status.dies.len(),
            dies_lost,
            hot_spares: status.hot_spares,
            maintenance: status.maintenance,
            pid: server.pid,
            uptime_s: server.uptime_s,
            clients: server.clients.len(),
            reads: server.traffic.reads,
            writes: server.traffic.writes,
            events: events.split_off(events.len().saturating_sub(EVENTS_MAX)),
        })
    }
}
