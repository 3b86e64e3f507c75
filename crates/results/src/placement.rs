//! Bytes programmed for the data of each placement handle.

use serde::{Deserialize, Serialize};

use crate::Interval;

/// Bytes programmed for the data of one placement handle, by cause. Parity and padding, which are
/// of no handle, are apart; compressed data counts as many bytes as without compression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandleWrites {
    /// The handle, from 0.
    pub handle: u8,
    /// Programmed for data that the host wrote through it.
    pub host_bytes: u64,
    /// Programmed by garbage collection, of its data.
    pub relocation_bytes: u64,
    /// Programmed by wear levelling, of its data.
    pub wear_bytes: u64,
}

impl HandleWrites {
    /// Bytes programmed for its data ÷ bytes that the host wrote through it; absent where the host
    /// wrote nothing.
    pub fn write_amplification(&self) -> Option<f64> {
        let programmed = self.host_bytes + self.relocation_bytes + self.wear_bytes;
        (self.host_bytes > 0).then(|| programmed as f64 / self.host_bytes as f64)
    }

    /// Bytes programmed from `earlier` to now, handle by handle.
    pub fn since(now: &[Self], earlier: &[Self]) -> Vec<Self> {
        let since = |(now, earlier): (&Self, &Self)| Self {
            handle: now.handle,
            host_bytes: now.host_bytes - earlier.host_bytes,
            relocation_bytes: now.relocation_bytes - earlier.relocation_bytes,
            wear_bytes: now.wear_bytes - earlier.wear_bytes,
        };
        now.iter().zip(earlier).map(since).collect()
    }

    /// Sums of `intervals`, of the handles that anything was programmed for.
    pub(crate) fn sums(intervals: &[Interval]) -> Vec<Self> {
        let mut sums: Vec<Self> = Vec::new();
        for writes in intervals.iter().flat_map(|interval| &interval.placement) {
            let Some(sum) = sums.iter_mut().find(|sum| sum.handle == writes.handle) else {
                sums.push(*writes);
                continue;
            };
            sum.host_bytes += writes.host_bytes;
            sum.relocation_bytes += writes.relocation_bytes;
            sum.wear_bytes += writes.wear_bytes;
        }
        sums.retain(|sum| sum.host_bytes + sum.relocation_bytes + sum.wear_bytes > 0);
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Summary;

    #[test]
    fn a_summary_adds_up_handles_that_were_written_and_has_none_without_placement() {
        let writes = |handle, host_bytes, relocation_bytes| HandleWrites {
            handle,
            host_bytes,
            relocation_bytes,
            wear_bytes: 0,
        };
        let first = vec![writes(0, 10, 0), writes(1, 4, 4), writes(2, 0, 0)];
        let second = vec![writes(0, 30, 0), writes(1, 14, 10), writes(2, 0, 0)];
        let with = |placement| Interval { span_s: 1.0, placement, ..Interval::default() };
        let later = HandleWrites::since(&second, &first);
        let summary = Summary::of(&[with(first), with(later)]);
        assert_eq!(summary.placement, [writes(0, 30, 0), writes(1, 14, 10)]);
        assert_eq!(summary.placement[1].write_amplification(), Some(24.0 / 14.0));
        let without = serde_json::to_string(&Summary::of(&[Interval::default()]));
        assert!(!without.expect("it is JSON").contains("placement"));
    }
}
