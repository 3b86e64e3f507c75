//! Status of a drive: the one value that text, JSON and metrics are written from.
//!
//! Fields that the NVMe SMART log or the OCP datacenter log has are named as there. What every
//! field means, and since when it counts, is in `docs/reference/status.md`.

use serde::{Deserialize, Serialize};

use crate::{
    BadPlace, BadPlaceState, Compression, Die, DieState, Health, Led, LeftBuffer, Life,
    MaintenanceStatus, Namespace, NotErased, Promise, Refusal, Server, Traffic,
};

/// Version of [`Status`] as JSON; a field that goes or changes its meaning raises it.
pub const SCHEMA: u32 = 2;

/// Spare space in percent below which a drive warns.
pub const SPARE_THRESHOLD_PERCENT: u8 = 10;
/// Most lost sectors that a status names.
pub const LOST_LBAS_MAX: usize = 1000;
/// Bad places that a status lists.
const BAD_PLACES_MAX: usize = 100;
/// Bytes of a data unit of the NVMe SMART log.
const DATA_UNIT_BYTES: u64 = 512_000;

/// Status of a drive: state, health, space, wear and traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Number of the drive, 16 hexadecimal digits.
    pub drive: String,
    /// Name for people: the one that it was given, or that of its folder.
    #[serde(default)]
    pub name: String,
    /// Path of its folder; empty where it has none.
    #[serde(default)]
    pub folder: String,
    /// Health of the drive, derived from all the rest.
    #[serde(default)]
    pub health: Health,
    /// State of the drive: closed, unclosed, open or failed.
    pub state: State,
    /// Failure after which a failed drive takes no more writes.
    pub reason: Option<String>,
    /// Reason why namespaces will refuse all commands when a closed drive is served.
    #[serde(default)]
    pub refusal: Option<Refusal>,
    /// State of its activity LED.
    #[serde(default)]
    pub led: Led,
    /// True if its locate LED is on.
    #[serde(default)]
    pub is_locate_led_on: bool,
    /// Parameters that its format fixed.
    pub format: Format,
    /// Its health, named as in the NVMe SMART and OCP logs.
    pub smart: Smart,
    /// Pages that are known to be lost, until they are written or trimmed; not known after an
    /// unclean shutdown, before the drive has been opened again.
    #[serde(default)]
    pub pages_lost: Option<u64>,
    /// First sectors of them, at most 1000.
    #[serde(default)]
    pub lost_lbas: Vec<u64>,
    /// Promise about every acknowledged write, flushed or not; known of an open drive.
    #[serde(default)]
    pub acknowledged_survives: Option<Promise>,
    /// Reason why writes are acknowledged once they are durable though that was not asked for.
    #[serde(default)]
    pub write_through_reason: Option<String>,
    /// Contents of the write buffer of a volume whose server died, if it has one.
    #[serde(default)]
    pub write_buffer: Option<LeftBuffer>,
    /// By index.
    pub dies: Vec<Die>,
    /// Hot spares that are left, which take the place of dies that fail by themselves.
    #[serde(default)]
    pub hot_spares: u32,
    /// Parts of it that clients see as devices of their own; none: they see the whole.
    #[serde(default)]
    pub namespaces: Vec<Namespace>,
    /// Space that data takes; not known before an unclosed drive has been opened again.
    pub space: Option<Space>,
    /// Erases so far; known together with `space`.
    pub wear: Option<Wear>,
    /// Bytes written since it was opened, by cause; only of an open drive.
    pub writes: Option<Writes>,
    /// Lifetime counters, over all times that it was served.
    #[serde(default)]
    pub life: Life,
    /// Work beside the host, since it was opened.
    #[serde(default)]
    pub maintenance: MaintenanceStatus,
    /// Process that serves it; only of a drive that is served.
    pub server: Option<Server>,
}

/// State of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Closed properly.
    Closed,
    /// Not closed by the process that had it open: opening it recovers it.
    Unclosed,
    /// Open.
    Open,
    /// Open, and after a failure takes no more writes.
    Failed,
}

/// Parameters that a format fixed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Format {
    /// Bytes that clients address.
    pub capacity_bytes: u64,
    /// Bytes of flash for data, parity not counted.
    pub data_bytes: u64,
    /// Bytes of flash, parity counted.
    pub raw_bytes: u64,
    /// Bytes that data may take as it is stored; less than `capacity_bytes` on a thin drive.
    pub physical_bytes: u64,
    /// Spare space as a share of what data may take.
    pub over_provisioning_percent: f64,
    /// Dies.
    pub dies: u32,
    /// True if one unit of each row is parity.
    pub is_protected: bool,
    /// True if pages are stored compressed.
    pub is_compressed: bool,
    /// Compression of pages: `none`, `lz4` or `zstd`.
    pub compression: Compression,
    /// True if pages are stored encrypted.
    #[serde(default)]
    pub is_encrypted: bool,
    /// Superblocks.
    pub superblocks: u32,
    /// Bytes of data that a superblock holds.
    pub superblock_bytes: u64,
    /// Bytes of the journal.
    pub journal_bytes: u64,
    /// Bytes of memory that the map takes while the drive is open, once all of it was written.
    pub mapping_bytes: u64,
}

/// Health, named as in the NVMe SMART log and, for what moved to and from the media, the OCP log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Smart {
    /// Bit 0: spare below the threshold; 1: the model is too warm; 2: redundancy or data is lost;
    /// 3: takes no writes; 4: what acknowledged writes wait in does not survive.
    pub critical_warning: u8,
    /// Spare space that is left, in percent of what the format set aside; not known after an
    /// unclean shutdown, before the drive has been opened again.
    pub available_spare: Option<u8>,
    /// Percent of it below which bit 0 of the warning is set.
    pub available_spare_threshold: u8,
    /// Openings.
    pub power_cycles: u64,
    /// Openings that found the drive not closed.
    pub unsafe_shutdowns: u64,
    /// Pages found lost since the drive was opened.
    pub media_errors: Option<u64>,
    /// Reads that parity answered since the drive was opened, as the OCP log has them.
    #[serde(default)]
    pub xor_recovery_count: Option<u64>,
    /// Bytes read from the dies, since the drive was opened.
    pub physical_media_units_read: Option<u64>,
    /// Bytes written to the dies, for whatever cause, since the drive was opened.
    pub physical_media_units_written: Option<u64>,
    /// Thousands of 512 bytes that clients read, since the server began, rounded up.
    pub data_units_read: Option<u64>,
    /// Thousands of 512 bytes that clients wrote, likewise.
    pub data_units_written: Option<u64>,
    /// Reads of clients, since the server began.
    pub host_read_commands: Option<u64>,
    /// Writes of clients, since the server began.
    pub host_write_commands: Option<u64>,
    /// Percent of the erases that superblocks are rated for that were done on average, 255 at most;
    /// none where the rating is unknown.
    #[serde(default)]
    pub percentage_used: Option<u8>,
    /// Temperature in kelvin of the modelled drive whose times replies keep to.
    #[serde(default)]
    pub composite_temperature: Option<u16>,
}

/// Space of a drive, and the data in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Space {
    /// Bytes of what clients stored, in whole pages.
    pub logical_bytes: u64,
    /// Bytes of flash that it takes.
    pub stored_bytes: u64,
    /// Bytes of flash that data may take.
    pub stored_bytes_max: u64,
    /// `logical_bytes` by `stored_bytes`; none while nothing is stored.
    pub compression_ratio: Option<f64>,
    /// Level of free space that data may still take.
    pub supply: Supply,
    /// Superblocks that can be written at once.
    pub superblocks_free: u32,
    /// The state of each superblock, a letter each: `f`ree, `o`pen, `c`losed, `v`ictim of
    /// relocation, `b`ad.
    pub superblocks: String,
    /// Free space of the host that is too little, for which writes are refused; none where there is
    /// enough.
    #[serde(default)]
    pub host_shortage: Option<HostShortage>,
}

/// Free space of a host that is too little for writes to sparse dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostShortage {
    /// Bytes that must be free.
    pub needed_bytes: u64,
    /// Bytes that are free.
    pub free_bytes: u64,
}

/// Level of free physical space on a thin drive, as a share of what data may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Supply {
    /// More than a fifth; so has every drive that promised no more than it has.
    Ample,
    /// Less than a fifth.
    Low,
    /// Less than a twentieth.
    Short,
    /// Less than a page: writes are refused that would store more than they replace.
    Gone,
}

/// Erases of superblocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wear {
    /// Erases of the superblock erased least.
    pub erase_count_min: u32,
    /// Mean over all superblocks.
    pub erase_count_mean: f64,
    /// Erases of the superblock erased most.
    pub erase_count_max: u32,
}

impl Wear {
    /// Percent of the erases that superblocks are rated for, 255 at most.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
    fn percentage_used(&self, cycles: u32) -> u8 {
        (100.0 * self.erase_count_mean / f64::from(cycles.max(1))) as u8
    }
}

/// Bytes written to the dies since the drive was opened, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Writes {
    /// Pages of clients.
    pub host_bytes: u64,
    /// Pages that were moved to free the space around them.
    pub relocation_bytes: u64,
    /// Pages that were moved to even out wear.
    pub wear_bytes: u64,
    /// Parity.
    pub parity_bytes: u64,
    /// Journal, checkpoints, and headers of pages.
    pub metadata_bytes: u64,
    /// Units that a rebuild or a scrub restored.
    #[serde(default)]
    pub rebuild_bytes: u64,
    /// Bytes that clients wrote. Of a write of part of a page, the page is in `host_bytes`.
    #[serde(default)]
    pub host_sent_bytes: u64,
    /// All of it but `rebuild_bytes` by `host_sent_bytes`; none before the first write of a client.
    pub write_amplification: Option<f64>,
    /// Pages that clients wrote, whole or in part, by the bytes stored of them; none before their
    /// first.
    pub compression_ratio: Option<f64>,
    /// Superblocks erased.
    pub superblocks_erased: u64,
    /// Bytes that clients trimmed.
    pub trimmed_bytes: u64,
}

/// The number of a drive, as it is shown.
pub fn drive_id(drive: u64) -> String {
    format!("{drive:016x}")
}

impl Status {
    /// Adds the bad places of the dies.
    #[must_use]
    pub fn with_bad_places(mut self, mut places: Vec<BadPlace>) -> Self {
        for place in &places {
            if let Some(die) = self.dies.get_mut(place.die as usize) {
                die.bad_places += 1;
                die.bad_places_in_use += u64::from(place.state == Some(BadPlaceState::InUse));
            }
        }
        places.truncate(BAD_PLACES_MAX);
        self.maintenance.bad_places = places;
        self
    }

    /// Adds what serving it tells.
    #[must_use]
    pub fn served(mut self, server: Server) -> Self {
        let units = |bytes: u64| Some(bytes.div_ceil(DATA_UNIT_BYTES));
        let Traffic { reads, writes, .. } = &server.traffic;
        self.smart.data_units_read = units(reads.bytes);
        self.smart.data_units_written = units(writes.bytes);
        self.smart.host_read_commands = Some(reads.commands);
        self.smart.host_write_commands = Some(writes.commands);
        let climate = server.model.as_ref().and_then(|model| model.climate);
        self.smart.composite_temperature = climate.map(|it| it.composite_temperature());
        self.server = Some(server);
        self
    }
}

impl Status {
    /// Adds what wear comes to where superblocks are rated for so many erases.
    #[must_use]
    pub fn rated(mut self, cycles: Option<u32>) -> Self {
        let known = self.wear.as_ref().zip(cycles);
        self.smart.percentage_used = known.map(|(wear, cycles)| wear.percentage_used(cycles));
        self
    }

    /// With health, critical warning and light as all the rest has it.
    #[must_use]
    pub fn judged(mut self) -> Self {
        let rebuild = self.maintenance.rebuild.as_ref().filter(|it| it.is_running);
        let filled = rebuild.map(|it| it.die as usize);
        // Servers of earlier versions say no more than that it is lost. Until the medium that takes
        // its place is erased, a die is lost, too.
        for (index, die) in self.dies.iter_mut().enumerate().filter(|(_, die)| die.is_lost) {
            let is_filled = filled == Some(index);
            die.state = if is_filled { DieState::Rebuilding } else { DieState::Failed };
        }
        self.health = Health::of(&self);
        self.smart.critical_warning = self.health.critical_warning(&self);
        self.led = Led::of(&self);
        self
    }
}

impl Status {
    /// Lifetime counters: those before the drive was opened, and what happened since.
    #[must_use]
    pub fn life_after(&self, mut life: Life) -> Life {
        let smart = &self.smart;
        life.media_read_bytes += smart.physical_media_units_read.unwrap_or_default();
        life.media_written_bytes += smart.physical_media_units_written.unwrap_or_default();
        life.media_errors += smart.media_errors.unwrap_or_default();
        life.xor_recoveries += smart.xor_recovery_count.unwrap_or_default();
        // Those that a crash kept from being counted are known to the drive itself.
        life.media_errors = life.media_errors.max(self.pages_lost.unwrap_or_default());
        if let Some(server) = &self.server {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "seconds since the server began"
            )]
            let uptime_s = server.uptime_s as u64;
            life.power_on_s += uptime_s;
            life.host_read_bytes += server.traffic.reads.bytes;
            life.host_written_bytes += server.traffic.writes.bytes;
            life.host_read_commands += server.traffic.reads.commands;
            life.host_write_commands += server.traffic.writes.commands;
        }
        life
    }

    /// The media that may hold data which no purge has reached, as a list in words; none if there
    /// are none.
    pub fn unerased_media(&self) -> Option<String> {
        let media: Vec<String> = (self.maintenance.unerased_media.iter())
            .map(|NotErased { die, path, .. }| match die {
                Some(die) => format!("{path} (die {die})"),
                None => format!("{path} (hot spare)"),
            })
            .collect();
        (!media.is_empty()).then(|| media.join(", "))
    }

    /// Sentence about the dies that an erasure of the drive does not reach, since they have failed,
    /// and about media that failed before the last purge ended and have been replaced since; none
    /// if it reaches all of them.
    pub fn not_erased(&self) -> Option<String> {
        let purge = self.maintenance.purge.as_ref();
        let unreached: &[NotErased] = purge.map_or(&[], |purge| &purge.not_erased);
        // The last medium of a die that has failed is the one that is there now.
        let is_former = |(at, it): &(usize, &NotErased)| {
            let is_last = unreached[at + 1..].iter().all(|later| later.die != it.die);
            let die = it.die.and_then(|die| self.dies.get(die as usize));
            !(is_last && die.is_some_and(Die::has_failed))
        };
        let former = unreached.iter().enumerate().filter(is_former);
        let replaced = former.map(|(_, NotErased { die, path, reason })| {
            let Some(die) = die else {
                let why = reason.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
                return format!("The hot spare {path}{why} was not erased");
            };
            let place = if path.is_empty() { String::new() } else { format!(" ({path})") };
            if let Some(reason) = reason {
                return format!("A part of die {die}{place} was not erased: {reason}");
            }
            format!(
                "The former medium of die {die}{place}, which was replaced during the erasure, \
                 failed and was not erased"
            )
        });
        let failed = self.dies.iter().enumerate().filter(|(_, die)| die.has_failed());
        let named = failed.map(|(index, die)| {
            let why = if die.is_missing { "is missing" } else { "has failed" };
            let of_die = |it: &&NotErased| it.die.is_some_and(|it| it as usize == index);
            let last = unreached.iter().rev().find(of_die).and_then(|it| it.reason.as_ref());
            let reason = last.map_or_else(String::new, |reason| format!(" ({reason})"));
            format!("{} {why} and was not erased{reason}", die.named(index))
        });
        let named: Vec<String> = named.chain(replaced).collect();
        let rest = "destroy it, or erase it by other means";
        (!named.is_empty()).then(|| format!("{}: {rest}", named.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Purge;

    #[test]
    fn wear_is_held_against_what_superblocks_are_rated_for() {
        let worn =
            |erase_count_mean| Wear { erase_count_mean, erase_count_min: 0, erase_count_max: 9 };
        assert_eq!(worn(0.0).percentage_used(3000), 0);
        assert_eq!(worn(1500.0).percentage_used(3000), 50);
        assert_eq!(worn(90_000.0).percentage_used(3000), 255);
    }

    #[test]
    fn dies_that_an_erasure_does_not_reach_are_named() {
        let mut status = crate::health::tests::status();
        assert_eq!(status.not_erased(), None);
        status.dies[1].is_lost = true;
        let rest = "destroy it, or erase it by other means";
        let one = format!("Die 1 (/dev/d1) has failed and was not erased: {rest}");
        assert_eq!(status.not_erased().unwrap(), one);
        (status.dies[3].is_lost, status.dies[3].is_missing) = (true, true);
        let both = status.not_erased().unwrap();
        assert!(both.contains("; Die 3 (/dev/d3) is missing and was not erased: "), "{both}");
        let reason = Some("a key is left".into());
        let not_erased = vec![NotErased { reason, ..NotErased::die(1, "/dev/d1".into()) }];
        status.maintenance.purge = Some(Purge { not_erased, ..Purge::default() });
        let why = status.not_erased().unwrap();
        assert!(why.starts_with("Die 1 (/dev/d1) has failed and was not erased (a key"), "{why}");
    }

    #[test]
    fn a_medium_that_failed_and_was_replaced_during_an_erasure_is_named() {
        let mut status = crate::health::tests::status();
        let lost = |die: u32, path: &str| NotErased::die(die, path.into());
        let not_erased = vec![lost(1, "/dev/d1"), lost(2, ""), lost(3, ""), lost(3, "/dev/d3")];
        let spare = NotErased { path: "/dev/s".into(), ..NotErased::default() };
        let not_erased = [not_erased, vec![spare]].concat();
        status.maintenance.purge = Some(Purge { not_erased, ..Purge::default() });
        status.dies[1].path = Some("/dev/spare".into());
        status.dies[3].is_lost = true;
        let said = status.not_erased().unwrap();
        assert!(said.starts_with("Die 3 (/dev/d3) has failed and was not erased; "), "{said}");
        assert!(said.contains("The former medium of die 3, which"), "the one before it: {said}");
        assert!(said.contains("The former medium of die 1 (/dev/d1), which"), "{said}");
        assert!(said.contains("The former medium of die 2, which"), "{said}");
        assert!(said.contains("The hot spare /dev/s was not erased"), "{said}");
    }
}
