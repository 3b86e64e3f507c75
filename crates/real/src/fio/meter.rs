//! Recent load on the devices below a target, for progress while fio is silent.

use std::time::Instant;

use lab::progress::Glimpse;
use lab::target::system::{Block, DiskCounts};

/// Reads the counters of devices now and then, and adds them.
#[derive(Debug)]
pub(super) struct DeviceMeter {
    devices: Vec<Block>,
    first: Option<DiskCounts>,
    last: Option<(Instant, DiskCounts)>,
    glimpse: Option<Glimpse>,
}

/// Shortest span over which a rate is shown, in seconds.
const SPAN_S_MIN: f64 = 1.0;

impl DeviceMeter {
    /// Reads `devices`, those that are known.
    pub(super) fn new(devices: Vec<Block>) -> Self {
        let first = counts(&devices);
        let last = first.map(|counts| (Instant::now(), counts));
        Self { devices, first, last, glimpse: None }
    }

    /// Returns the latest figures; absent until the first span is over.
    pub(super) fn look(&mut self) -> Option<Glimpse> {
        let counts = counts(&self.devices);
        if let (Some(counts), Some((at, before))) = (counts, self.last) {
            let span_s = at.elapsed().as_secs_f64();
            if span_s >= SPAN_S_MIN {
                self.glimpse = Some(between(before, counts, span_s));
                self.last = Some((Instant::now(), counts));
            }
        }
        self.glimpse
    }

    /// Bytes written since it was made; nothing where no device is known.
    pub(super) fn written_bytes(&self) -> Option<u64> {
        let (now, first) = counts(&self.devices).zip(self.first)?;
        Some(now.sectors_written.saturating_sub(first.sectors_written) * blockio::SECTOR_BYTES)
    }
}

/// Counters of all `devices` together; absent without any.
fn counts(devices: &[Block]) -> Option<DiskCounts> {
    let add = |a: DiskCounts, b: DiskCounts| DiskCounts {
        reads: a.reads + b.reads,
        writes: a.writes + b.writes,
        sectors_read: a.sectors_read + b.sectors_read,
        sectors_written: a.sectors_written + b.sectors_written,
        spent_ms: a.spent_ms + b.spent_ms,
    };
    devices.iter().filter_map(Block::counts).reduce(add)
}

fn between(before: DiskCounts, after: DiskCounts, span_s: f64) -> Glimpse {
    let requests = after.requests().saturating_sub(before.requests()) as f64;
    let spent_ns = after.spent_ms.saturating_sub(before.spent_ms) as f64 * 1e6;
    Glimpse {
        iops: requests / span_s,
        throughput_mb_s: after.bytes().saturating_sub(before.bytes()) as f64 / span_s / 1e6,
        latency_ns_avg: (requests > 0.0).then(|| spent_ns / requests),
    }
}

/// A rate as one says it, such as `42.6k IOPS`.
pub(super) fn shown(iops: f64) -> String {
    if iops < 1000.0 {
        return format!("{iops:.0} IOPS");
    }
    format!("{:.1}k IOPS", iops / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_shown_in_thousands_from_a_thousand_on() {
        assert_eq!(shown(999.0), "999 IOPS");
        assert_eq!(shown(42_649.0), "42.6k IOPS");
    }

    #[test]
    fn two_looks_at_a_device_tell_its_rate_and_what_a_request_took() {
        let counts = |requests: u64, spent_ms| DiskCounts {
            reads: requests,
            writes: requests,
            sectors_read: requests * 8,
            sectors_written: requests * 8,
            spent_ms,
        };
        let seen = between(counts(100, 50), counts(600, 550), 2.0);
        assert!((seen.iops - 500.0).abs() < 1e-9, "{seen:?}");
        assert!((seen.throughput_mb_s - 2.048).abs() < 1e-9, "{seen:?}");
        assert_eq!(seen.latency_ns_avg, Some(500_000.0));
        let idle = between(counts(100, 50), counts(100, 50), 2.0);
        assert_eq!(idle.latency_ns_avg, None);
    }

    #[test]
    fn without_a_device_nothing_is_shown() {
        let mut meter = DeviceMeter::new(Vec::new());
        assert_eq!(meter.look(), None);
        assert_eq!(meter.written_bytes(), None);
    }
}
