//! What happens in one interval.

use blockio::{Completion, Nanos, Op};
use results::{Interval, NandWrites};
use ssd::Drive;

/// Bytes of one page of the drive's counters.
const PAGE_BYTES: u64 = 4096;

/// The interval that is under way.
#[derive(Debug)]
pub(super) struct Meter {
    interval: Interval,
    began: Nanos,
    nand_before: NandWrites,
}

impl Meter {
    /// Nothing counted yet; the first interval begins at `at`.
    pub(super) fn new(drive: &Drive, at: Nanos) -> Self {
        Self { interval: Interval::default(), began: at, nand_before: nand_writes(drive) }
    }

    /// Counts one completion.
    #[inline]
    pub(super) fn count(&mut self, done: &Completion) {
        let bytes = u64::from(done.sectors) * blockio::SECTOR_BYTES;
        let latency_ns = done.latency().0;
        match done.op {
            Op::Read => {
                self.interval.read.record(latency_ns);
                self.interval.read_bytes += bytes;
            }
            Op::Write => {
                self.interval.write.record(latency_ns);
                self.interval.write_bytes += bytes;
            }
            Op::Trim | Op::Flush => {}
        }
    }

    /// Ends the interval at `at`, which is `at_s` in protocol time, and begins the next one.
    pub(super) fn cut(&mut self, drive: &Drive, at: Nanos, at_s: f64) -> Interval {
        let nand = nand_writes(drive);
        let mut interval = Interval {
            at_s,
            span_s: (at - self.began).as_secs_f64(),
            nand: Some(nand - self.nand_before),
            superblocks_free_share: drive.superblocks_free_share(),
            ..std::mem::take(&mut self.interval)
        };
        interval.read.close();
        interval.write.close();
        self.began = at;
        self.nand_before = nand;
        interval
    }
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
