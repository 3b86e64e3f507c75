//! Work of a tier: where requests were served, what moved between the classes, and their wear.

use serde::{Deserialize, Serialize};

use crate::Interval;

/// Work of a tier over a span, on the drive's own scale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TierWork {
    /// Bytes that the host read.
    pub read_bytes: u64,
    /// Bytes of them that the fast class held: hits.
    pub held_bytes: u64,
    /// Bytes of them that were read from the fast class.
    pub read_fast_bytes: u64,
    /// Bytes that the host wrote.
    pub written_bytes: u64,
    /// Bytes of them that were written over data on the fast class, which never left it.
    pub absorbed_bytes: u64,
    /// Bytes that left the fast class for the slow one.
    pub destaged_bytes: u64,
    /// Bytes that garbage collection moved within a log on the slow class.
    pub relocated_bytes: u64,
    /// Bytes that were taken into the read cache.
    pub admitted_bytes: u64,
    /// Share of the fast class's space for written data that is in use at the end, 0 to 1; absent
    /// where writes do not go there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_share: Option<f64>,
    /// The fast class.
    pub fast: ClassWrites,
    /// The slow class.
    pub slow: ClassWrites,
}

/// Writes of one class over a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassWrites {
    /// User capacity at full scale.
    pub capacity_bytes: u64,
    /// Bytes that the tier sent to it.
    pub sent_bytes: u64,
    /// Bytes that its media programmed.
    pub media_bytes: u64,
    /// Superblocks erased.
    pub erase_count: u64,
}

impl TierWork {
    /// Share of the bytes read that the fast class held, 0 to 1; absent where nothing was read.
    pub fn hit_rate(&self) -> Option<f64> {
        (self.read_bytes > 0).then(|| self.held_bytes as f64 / self.read_bytes as f64)
    }

    /// Share of the bytes read that were read from the fast class, 0 to 1; absent where nothing was
    /// read.
    pub fn read_fast_share(&self) -> Option<f64> {
        (self.read_bytes > 0).then(|| self.read_fast_bytes as f64 / self.read_bytes as f64)
    }

    /// Work from `earlier` to now.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        self.combined(earlier, |now, before| now - before)
    }

    /// Sum of `intervals` that are of a tier; absent if none is.
    pub(crate) fn sum(intervals: &[Interval]) -> Option<Self> {
        let works = intervals.iter().filter_map(|interval| interval.tier);
        // What is in use is that at the end of the later one.
        works.reduce(|sum, work| work.combined(&sum, |now, before| now + before))
    }

    fn combined(&self, other: &Self, of: fn(u64, u64) -> u64) -> Self {
        let class = |own: ClassWrites, other: ClassWrites| ClassWrites {
            capacity_bytes: own.capacity_bytes,
            sent_bytes: of(own.sent_bytes, other.sent_bytes),
            media_bytes: of(own.media_bytes, other.media_bytes),
            erase_count: of(own.erase_count, other.erase_count),
        };
        Self {
            read_bytes: of(self.read_bytes, other.read_bytes),
            held_bytes: of(self.held_bytes, other.held_bytes),
            read_fast_bytes: of(self.read_fast_bytes, other.read_fast_bytes),
            written_bytes: of(self.written_bytes, other.written_bytes),
            absorbed_bytes: of(self.absorbed_bytes, other.absorbed_bytes),
            destaged_bytes: of(self.destaged_bytes, other.destaged_bytes),
            relocated_bytes: of(self.relocated_bytes, other.relocated_bytes),
            admitted_bytes: of(self.admitted_bytes, other.admitted_bytes),
            written_share: self.written_share,
            fast: class(self.fast, other.fast),
            slow: class(self.slow, other.slow),
        }
    }
}

impl ClassWrites {
    /// Bytes that its media programmed ÷ bytes that it was sent; absent where it was sent nothing.
    pub fn write_amplification(&self) -> Option<f64> {
        (self.sent_bytes > 0).then(|| self.media_bytes as f64 / self.sent_bytes as f64)
    }

    /// Writes of all of the class in a day, if it is sent as much as in a span of `span_s` seconds;
    /// 0 where nothing was sent.
    pub fn drive_writes_per_day(&self, span_s: f64) -> f64 {
        let days = span_s / 86_400.0;
        let written = self.sent_bytes as f64 / (self.capacity_bytes as f64).max(1.0);
        if days > 0.0 { written / days } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Summary;

    #[test]
    fn a_summary_adds_up_the_work_of_a_tier_and_has_none_of_other_drives() {
        let class = |sent_bytes| ClassWrites {
            capacity_bytes: 1000,
            sent_bytes,
            media_bytes: 2 * sent_bytes,
            erase_count: 1,
        };
        let work = |read_bytes, share| TierWork {
            read_bytes,
            held_bytes: read_bytes / 2,
            written_share: Some(share),
            slow: class(50),
            ..TierWork::default()
        };
        let (first, second) = (work(10, 0.1), work(40, 0.4));
        let with = |tier| Interval { span_s: 43_200.0, tier: Some(tier), ..Interval::default() };
        let summary = Summary::of(&[with(first), with(second)]).tier.expect("a tier");
        assert_eq!((summary.read_bytes, summary.written_share), (50, Some(0.4)));
        assert_eq!((summary.hit_rate(), summary.read_fast_share()), (Some(0.5), Some(0.0)));
        assert_eq!(summary.slow.write_amplification(), Some(2.0));
        assert!((summary.slow.drive_writes_per_day(86_400.0) - 0.1).abs() < 1e-12);
        assert_eq!(second.since(&first).read_bytes, 30);
        assert_eq!(TierWork::default().hit_rate(), None);
        let without = serde_json::to_string(&Summary::of(&[Interval::default()]));
        assert!(!without.expect("it is JSON").contains("tier"));
    }
}
