//! Status of a drive: the one value that text, JSON and metrics are written from.
//!
//! Fields that the NVMe SMART log or the OCP datacenter log has are named as there. What every
//! field means, and since when it counts, is in `docs/reference/status.md`.

mod die;
mod health;
mod history;
mod latency_histogram;
mod led;
mod life;
mod maintenance;
mod namespace;
mod promise;
mod server;

use ftl::{Ftl, SuperblockId, SuperblockState};
use serde::{Deserialize, Serialize};

pub use self::die::{Die, DieState, Member};
pub use self::health::{Health, HealthState, Problem, ProblemKind, warning_names};
pub use self::history::{History, HistorySpan, Step, StepCommands};
pub use self::latency_histogram::{
    LATENCY_BUCKETS, LatencyHistogram, latency_bucket, latency_bucket_start_ns,
};
pub use self::led::Led;
pub use self::life::Life;
pub use self::maintenance::{
    AbsenceCause, AbsentDie, Damage, DamageOutcome, FoundBy, MaintenanceStatus, NotErased, Purge,
    Rebuild, Redundancy, Scrub, Scrubs, SpareFailure, StaleStart,
};
pub use self::namespace::Namespace;
pub use self::promise::{LeftBuffer, Promise};
pub use self::server::{
    Client, Climate, CommandCounts, Commands, EventRecord, Export, Lateness, Model,
    NamespaceTraffic, NvmeController, NvmeQueue, Process, Refusal, Server, Traffic,
};
use crate::format::header::Header;
use crate::format::layout::PAGE_BYTES;
use crate::format::row::Rows;
use crate::{Compression, Shape};

/// Version of [`Status`] as JSON; a field that goes or changes its meaning raises it.
pub const SCHEMA: u32 = 2;

/// Spare space in percent below which a drive warns.
const SPARE_THRESHOLD: u8 = 10;
/// Most lost sectors that a status names.
pub(crate) const LBAS_MAX: usize = 1000;
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

impl Supply {
    fn of(ftl: &Ftl) -> Self {
        let (stored, most) = (ftl.stored().0, ftl.stored_max().0);
        let left = most.saturating_sub(stored);
        match left {
            _ if most == ftl.user_capacity().0 => Self::Ample,
            0..4096 => Self::Gone,
            _ if left < most / 20 => Self::Short,
            _ if left < most / 5 => Self::Low,
            _ => Self::Ample,
        }
    }
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
pub(crate) fn named(drive: u64) -> String {
    format!("{drive:016x}")
}

impl Status {
    /// Adds what only an open drive knows.
    pub(crate) fn opened(
        mut self,
        ftl: &Ftl,
        (lost_ever, rebuild_bytes, sent_bytes): (u64, u64, u64),
        reason: Option<String>,
    ) -> Self {
        let sum = |of: fn(&Die) -> u64| self.dies.iter().map(of).sum();
        let written = sum(|die| die.written_bytes);
        self.state = if reason.is_some() { State::Failed } else { State::Open };
        self.smart.media_errors = Some(lost_ever);
        self.smart.xor_recovery_count = Some(sum(|die| die.reconstructed_reads));
        self.smart.physical_media_units_read = Some(sum(|die| die.read_bytes));
        self.smart.physical_media_units_written = Some(written);
        self.writes = Some(Writes::of(&ftl.counters(), (written, rebuild_bytes), sent_bytes));
        self.reason = reason;
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

impl Format {
    pub(crate) fn of(shape: &Shape) -> Self {
        let page_bytes = PAGE_BYTES as u64;
        let geometry = shape.geometry();
        let capacity_bytes = u64::from(shape.pages_logical) * page_bytes;
        let data_bytes = geometry.pages() * page_bytes;
        let physical_bytes = u64::from(shape.pages_stored_max) * page_bytes;
        Self {
            capacity_bytes,
            data_bytes,
            raw_bytes: geometry.raw_capacity().0,
            physical_bytes,
            over_provisioning_percent: over_provisioning(data_bytes, physical_bytes),
            dies: shape.dies,
            is_protected: shape.is_protected,
            is_compressed: shape.compression != Compression::None,
            compression: shape.compression,
            superblocks: shape.superblocks,
            superblock_bytes: u64::from(shape.superblock_pages()) * page_bytes,
            journal_bytes: shape.journal_bytes,
            mapping_bytes: mapping_bytes(shape),
        }
    }
}

/// Four bytes for each page, and the size of its extent; a bit for each place, and the life of each
/// row. What lies where is left to the media.
fn mapping_bytes(shape: &Shape) -> u64 {
    let places = shape.geometry().pages() * u64::from(shape.extents_per_page);
    let sizes = u64::from(shape.extents_per_page > 1);
    u64::from(shape.pages_logical) * (4 + sizes)
        + places.div_ceil(8)
        + u64::from(shape.rows_total()) * Rows::BYTES
}

impl Format {
    /// The format of a drive whose rows leave out dies that failed: `left` of `all` data units of a
    /// row remain.
    pub(crate) fn leaving_out(mut self, (left, all): (u32, u32)) -> Self {
        assert!(left <= all, "rows have no more data units than they were created with");
        self.data_bytes = self.data_bytes / u64::from(all) * u64::from(left);
        self.over_provisioning_percent = over_provisioning(self.data_bytes, self.physical_bytes);
        self
    }
}

/// Space for data beyond `physical_bytes`, which data may take at most, in percent of it; negative
/// where there is less.
fn over_provisioning(data_bytes: u64, physical_bytes: u64) -> f64 {
    100.0 * (data_bytes as f64 / physical_bytes as f64 - 1.0)
}

impl Smart {
    pub(crate) fn of(header: &Header, ftl: Option<&Ftl>) -> Self {
        Self {
            available_spare: ftl.map(|ftl| spare_left(&header.shape, ftl)),
            available_spare_threshold: SPARE_THRESHOLD,
            power_cycles: header.session - 1,
            unsafe_shutdowns: header.unsafe_shutdowns,
            ..Self::default()
        }
    }
}

/// Percent of the superblocks beyond those that the capacity fills that are not bad.
fn spare_left(shape: &Shape, ftl: &Ftl) -> u8 {
    let filled = shape.pages_stored_max.div_ceil(shape.superblock_pages());
    let spare = shape.superblocks.saturating_sub(filled).max(1);
    let is_bad = |id: &SuperblockId| ftl.superblock_state(*id) == SuperblockState::Bad;
    let bad = (0..shape.superblocks).map(SuperblockId).filter(is_bad).count() as u64;
    let left = u64::from(spare).saturating_sub(bad) * 100 / u64::from(spare);
    u8::try_from(left).expect("a percentage")
}

impl Space {
    pub(crate) fn of(ftl: &Ftl) -> Self {
        let letter = |id| match ftl.superblock_state(SuperblockId(id)) {
            SuperblockState::Free => 'f',
            SuperblockState::Open => 'o',
            SuperblockState::Closed => 'c',
            SuperblockState::Victim => 'v',
            SuperblockState::Bad => 'b',
        };
        let (logical, stored) = (ftl.pages_stored() * PAGE_BYTES as u64, ftl.stored().0);
        Self {
            logical_bytes: logical,
            stored_bytes: stored,
            stored_bytes_max: ftl.stored_max().0,
            compression_ratio: (stored > 0).then(|| logical as f64 / stored as f64),
            supply: Supply::of(ftl),
            superblocks_free: ftl.superblocks_free(),
            superblocks: (0..ftl.superblocks()).map(letter).collect(),
            host_shortage: None,
        }
    }
}

impl Wear {
    pub(crate) fn of(ftl: &Ftl) -> Self {
        let count = |id| ftl.erase_count(SuperblockId(id));
        let counts = || (0..ftl.superblocks()).map(count);
        let sum: u64 = counts().map(u64::from).sum();
        Self {
            erase_count_min: counts().min().unwrap_or_default(),
            erase_count_mean: sum as f64 / f64::from(ftl.superblocks()),
            erase_count_max: counts().max().unwrap_or_default(),
        }
    }
}

impl Writes {
    fn of(
        counters: &ftl::Counters,
        (written_bytes, rebuild_bytes): (u64, u64),
        host_sent_bytes: u64,
    ) -> Self {
        let page_bytes = PAGE_BYTES as u64;
        let pages_sent = counters.pages_host * page_bytes;
        let [host_bytes, relocation_bytes, wear_bytes, parity_bytes] = [
            pages_sent - counters.host_saved_bytes,
            counters.pages_relocation * page_bytes - counters.relocation_saved_bytes,
            counters.pages_wear * page_bytes - counters.wear_saved_bytes,
            counters.pages_parity * page_bytes,
        ];
        let pages_bytes = host_bytes + relocation_bytes + wear_bytes + parity_bytes;
        // Pages that still wait in memory for their unit to be full were not written yet.
        let metadata_bytes = written_bytes.saturating_sub(pages_bytes + rebuild_bytes);
        let ratio = |above: u64, below: u64| (below > 0).then(|| above as f64 / below as f64);
        Self {
            host_bytes,
            relocation_bytes,
            wear_bytes,
            parity_bytes,
            metadata_bytes,
            rebuild_bytes,
            host_sent_bytes,
            write_amplification: ratio(pages_bytes + metadata_bytes, host_sent_bytes),
            compression_ratio: ratio(pages_sent, host_bytes),
            superblocks_erased: counters.superblocks_erased,
            trimmed_bytes: counters.pages_trimmed * page_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wear_is_held_against_what_superblocks_are_rated_for() {
        let worn =
            |erase_count_mean| Wear { erase_count_mean, erase_count_min: 0, erase_count_max: 9 };
        assert_eq!(worn(0.0).percentage_used(3000), 0);
        assert_eq!(worn(1500.0).percentage_used(3000), 50);
        assert_eq!(worn(90_000.0).percentage_used(3000), 255);
    }
}
