//! What the device below a target did lately, for progress while fio is silent.

use std::time::Instant;

use crate::system::{Block, DiskCounts};

/// Reads a device's counters now and then.
#[derive(Debug)]
pub(super) struct Meter {
    device: Option<Block>,
    first: Option<DiskCounts>,
    last: Option<(Instant, DiskCounts)>,
    text: String,
}

/// Shortest span over which a rate is shown, in seconds.
const SPAN_S_MIN: f64 = 1.0;

impl Meter {
    /// Reads `device`, if it is known.
    pub(super) fn new(device: Option<&Block>) -> Self {
        let first = device.and_then(Block::counts);
        let last = first.map(|counts| (Instant::now(), counts));
        Self { device: device.cloned(), first, last, text: String::new() }
    }

    /// The rate seen last, such as `42.6k IOPS`; empty until one is known.
    pub(super) fn rate(&mut self) -> &str {
        let counts = self.device.as_ref().and_then(Block::counts);
        if let (Some(counts), Some((at, before))) = (counts, self.last) {
            let span_s = at.elapsed().as_secs_f64();
            if span_s >= SPAN_S_MIN {
                let requests = counts.requests().saturating_sub(before.requests());
                self.text = shown(requests as f64 / span_s);
                self.last = Some((Instant::now(), counts));
            }
        }
        &self.text
    }

    /// Bytes written since it was made; nothing where no device is known.
    pub(super) fn written_bytes(&self) -> Option<u64> {
        let (now, first) = self.device.as_ref().and_then(Block::counts).zip(self.first)?;
        Some(now.sectors_written.saturating_sub(first.sectors_written) * blockio::SECTOR_BYTES)
    }
}

fn shown(iops: f64) -> String {
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
    fn without_a_device_nothing_is_shown() {
        let mut meter = Meter::new(None);
        assert_eq!(meter.rate(), "");
        assert_eq!(meter.written_bytes(), None);
    }
}
