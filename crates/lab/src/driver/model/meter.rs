//! Counters of one interval of a modelled load.

use blockio::{ClimateReading, Completion, Nanos, Op};
use results::{
    ClassWrites, Climate, HandleWrites, Interval, Latencies, NandWrites, PagesRead, TierWork,
};
use ssd::Drive;

/// Bytes of one page of the drive's counters.
const PAGE_BYTES: u64 = 4096;

/// The interval that is under way.
#[derive(Debug)]
pub(super) struct Meter {
    interval: Interval,
    began: Nanos,
    time_lapse: u32,
    nand_before: NandWrites,
    climate_before: Option<ClimateReading>,
    pages_before: Option<ssd::PagesRead>,
    host_busy_before: Nanos,
    placement_before: Vec<HandleWrites>,
    tier_before: Option<TierWork>,
}

impl Meter {
    /// Meter without counts, whose first interval begins at `at`.
    pub(super) fn new(drive: &Drive, at: Nanos) -> Self {
        Self {
            interval: Interval::default(),
            began: at,
            time_lapse: drive.time_lapse(),
            nand_before: nand_writes(drive),
            climate_before: drive.climate(at),
            pages_before: drive.pages_read(),
            host_busy_before: drive.host_busy(),
            placement_before: handle_writes(drive),
            tier_before: tier_work(drive),
        }
    }

    /// Has stalls that hold one request count as those of a drive at 1/`scale`: they are as much
    /// shorter while a part of the time is simulated.
    pub(super) const fn set_stall_scale(&mut self, scale: u32) {
        self.time_lapse = scale;
    }

    /// Counts one completion.
    #[inline]
    pub(super) fn count(&mut self, done: &Completion) {
        let bytes = u64::from(done.sectors) * blockio::SECTOR_BYTES;
        let time_lapse = self.time_lapse;
        match done.op {
            Op::Read => {
                record(&mut self.interval.read, done.latency(), done.stalled, time_lapse);
                self.interval.read_bytes += bytes;
            }
            Op::Write => {
                record(&mut self.interval.write, done.latency(), done.stalled, time_lapse);
                self.interval.write_bytes += bytes;
            }
            Op::Trim | Op::Flush => {}
        }
    }

    /// Counts a request that ended with a media error, or that a drive refused which takes no
    /// writes any more: no load that was carried.
    #[cold]
    pub(super) fn count_media_error(&mut self) {
        self.interval.media_errors += 1;
    }

    /// NAND writes of the interval so far.
    pub(super) fn nand_since(&self, drive: &Drive) -> NandWrites {
        nand_writes(drive) - self.nand_before
    }

    /// Ends the interval at `at`, which is `at_s` in protocol time, and begins the next one.
    pub(super) fn cut(&mut self, drive: &Drive, at: Nanos, at_s: f64) -> Interval {
        let (nand, reading) = (nand_writes(drive), drive.climate(at));
        let (pages, host_busy) = (drive.pages_read(), drive.host_busy());
        let pages_read = self.pages_before.zip(pages).map(|(before, after)| PagesRead {
            count: after.all - before.all,
            unwritten: after.unmapped - before.unmapped,
        });
        let placement = handle_writes(drive);
        let tier = tier_work(drive);
        let tier_since = tier.zip(self.tier_before).map(|(now, before)| now.since(&before));
        let span = at - self.began;
        let climate = self.climate_before.zip(reading);
        let mut interval = Interval {
            at_s,
            span_s: span.as_secs_f64(),
            nand: Some(nand - self.nand_before),
            superblocks_free_share: drive.superblocks_free_share(),
            climate: climate.map(|(before, after)| climate_between(&before, &after, span)),
            pages_read,
            host_busy_ns: Some((host_busy - self.host_busy_before).0),
            placement: HandleWrites::since(&placement, &self.placement_before),
            tier: tier_since,
            ..std::mem::take(&mut self.interval)
        };
        interval.read.close();
        interval.write.close();
        self.began = at;
        self.nand_before = nand;
        self.climate_before = reading;
        self.pages_before = pages;
        self.host_busy_before = host_busy;
        self.placement_before = placement;
        self.tier_before = tier;
        interval
    }
}

/// Counts a request of a drive in time lapse k, of whose latency a stall that held it alone is a
/// part: in time lapse such a stall is 1/k as long, as all of the protocol is.
#[inline]
pub(super) fn record(latencies: &mut Latencies, latency: Nanos, stalled: Nanos, time_lapse: u32) {
    if stalled == Nanos::ZERO {
        latencies.record(latency.0);
    } else {
        latencies.record_stalled(latency.0, stalled.0, time_lapse);
    }
}

/// Power and heat from one reading to the next, which is `span` later.
pub(super) fn climate_between(
    before: &ClimateReading,
    after: &ClimateReading,
    span: Nanos,
) -> Climate {
    let span_s = span.as_secs_f64().max(f64::MIN_POSITIVE);
    let share = |before: Nanos, after: Nanos| ((after - before).as_secs_f64() / span_s).min(1.0);
    Climate {
        power_w: Some((after.energy_j - before.energy_j) / span_s),
        temperature_c: Some(after.temperature_c),
        thermal_throttled_share: Some(share(before.thermal_throttled, after.thermal_throttled)),
        power_throttled_share: Some(share(before.power_throttled, after.power_throttled)),
    }
}

fn handle_writes(drive: &Drive) -> Vec<HandleWrites> {
    let counters = (0..).zip(drive.counters_by_handle());
    counters
        .map(|(handle, pages)| HandleWrites {
            handle,
            host_bytes: pages.pages_host * PAGE_BYTES,
            relocation_bytes: pages.pages_relocation * PAGE_BYTES,
            wear_bytes: pages.pages_wear * PAGE_BYTES,
        })
        .collect()
}

/// Work of the classes since a drive was made, if it is made of two.
fn tier_work(drive: &Drive) -> Option<TierWork> {
    let work = drive.tier_work()?;
    let bytes = |blocks: u64| blocks * PAGE_BYTES;
    let class = |class: &ssd::ClassCounters| ClassWrites {
        capacity_bytes: class.capacity.0 * u64::from(drive.time_lapse()),
        sent_bytes: class.media.host_sent_bytes,
        media_bytes: class.media.programmed_bytes(),
        erase_count: class.media.superblocks_erased,
    };
    let [fast, slow] = work.classes.each_ref().map(class);
    Some(TierWork {
        read_bytes: bytes(work.blocks.read),
        held_bytes: bytes(work.blocks.held),
        read_fast_bytes: bytes(work.blocks.read_fast),
        written_bytes: bytes(work.blocks.written),
        absorbed_bytes: bytes(work.blocks.absorbed),
        destaged_bytes: bytes(work.blocks.destaged),
        relocated_bytes: bytes(work.blocks.relocated),
        admitted_bytes: bytes(work.blocks.admitted),
        written_share: work.written_share,
        fast,
        slow,
    })
}

fn nand_writes(drive: &Drive) -> NandWrites {
    let counters = drive.counters();
    NandWrites {
        host_sent_bytes: counters.host_sent_bytes,
        host_bytes: counters.pages_host * PAGE_BYTES - counters.host_saved_bytes,
        relocation_bytes: counters.pages_relocation * PAGE_BYTES - counters.relocation_saved_bytes,
        wear_bytes: counters.pages_wear * PAGE_BYTES - counters.wear_saved_bytes,
        parity_bytes: counters.pages_parity * PAGE_BYTES,
        metadata_bytes: counters.pages_metadata * PAGE_BYTES + counters.padding_bytes,
        erase_count: counters.superblocks_erased,
    }
}
