//! Memory of a host that is larger than the recording's: which requests it takes from the drive.

use std::collections::BTreeMap;

use blockio::Op;
use workload::recording::RecordedRequest;

/// Minimum share of reads of one size for it to be the page of a database.
const PAGE_SHARE_MIN: f64 = 0.9;

/// Additional memory of a host, which answers reads, and holds back the writes of pages that a
/// smaller one would have evicted to make room for those reads.
///
/// A database that keeps pages in memory reads one after it has evicted another, and writes that
/// one first if it was modified. So the writes of pages become fewer as the reads do. Writes
/// that are shorter than a page are those of a log, and remain, as do flushes and writes with FUA.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostMemory {
    /// Share of reads and of writes of pages that it answers, 0 to 100 percent.
    percent: f64,
    /// Length of a page; absent if the reads have no common length, so that all writes remain.
    page_sectors: Option<u32>,
    /// Reads so far.
    reads: u64,
    /// Writes of pages so far.
    page_writes: u64,
}

impl HostMemory {
    /// Memory that answers `percent` of the reads among `requests`.
    pub(super) fn new(percent: f64, requests: &[RecordedRequest]) -> Self {
        assert!((0.0..=100.0).contains(&percent), "a share of the reads, and {percent} %");
        let page_sectors = if percent > 0.0 { page_sectors(requests) } else { None };
        Self { percent, page_sectors, reads: 0, page_writes: 0 }
    }

    /// True if it answers `request`, the next one in the order of the replay. What it answers is
    /// spread evenly.
    pub(super) fn answers(&mut self, request: &RecordedRequest) -> bool {
        let is_page = || self.page_sectors.is_some_and(|page| request.sectors >= page);
        let count = match request.op {
            Op::Read => &mut self.reads,
            Op::Write if !request.fua && is_page() => &mut self.page_writes,
            Op::Write | Op::Trim | Op::Flush => return false,
        };
        *count += 1;
        answered_until(*count, self.percent) > answered_until(*count - 1, self.percent)
    }
}

/// Number of the first `count` requests that memory answers.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of requests")]
fn answered_until(count: u64, percent: f64) -> u64 {
    (count as f64 * percent / 100.0) as u64
}

/// Length that nearly all reads have; none if there is no such length.
fn page_sectors(requests: &[RecordedRequest]) -> Option<u32> {
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    for read in requests.iter().filter(|it| it.op == Op::Read) {
        *counts.entry(read.sectors).or_default() += 1;
    }
    let all: u64 = counts.values().sum();
    let (sectors, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    (count as f64 >= all as f64 * PAGE_SHARE_MIN).then_some(sectors)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::reads;
    use super::*;

    const PAGE: u32 = 32;

    fn read(sectors: u32) -> RecordedRequest {
        RecordedRequest { sectors, ..reads(&[(0, 1)])[0] }
    }

    fn write(sectors: u32) -> RecordedRequest {
        RecordedRequest { op: Op::Write, ..read(sectors) }
    }

    #[test]
    fn so_many_reads_and_writes_of_pages_are_answered_as_it_says() {
        for percent in [0.0, 12.5, 50.0, 99.0, 100.0] {
            let mut memory = HostMemory::new(percent, &[read(PAGE)]);
            for request in [read(PAGE), write(PAGE), write(5 * PAGE + 8)] {
                let answered = (0..1000).filter(|_| memory.answers(&request)).count();
                let off = answered as f64 - 10.0 * percent;
                assert!(off.abs() <= 1.0, "{percent} % of {request:?}: {answered}");
            }
        }
    }

    #[test]
    fn logs_flushes_and_durable_writes_go_to_the_drive() {
        let mut memory = HostMemory::new(100.0, &[read(PAGE)]);
        let durable = RecordedRequest { fua: true, ..write(PAGE) };
        let flush = RecordedRequest { op: Op::Flush, ..read(0) };
        let trim = RecordedRequest { op: Op::Trim, ..read(PAGE) };
        for request in [write(PAGE - 1), durable, flush, trim] {
            assert!(!memory.answers(&request), "{request:?}");
        }
        assert!(memory.answers(&write(PAGE)) && memory.answers(&read(8)));
    }

    #[test]
    fn without_a_common_length_of_reads_all_writes_go_to_the_drive() {
        for requests in [vec![read(8), read(PAGE)], vec![write(PAGE)], Vec::new()] {
            let mut memory = HostMemory::new(100.0, &requests);
            assert!(!memory.answers(&write(PAGE)), "{requests:?}");
        }
        let mixed: Vec<RecordedRequest> =
            (0..10).map(|at| read(if at == 0 { 8 } else { PAGE })).collect();
        assert_eq!(page_sectors(&mixed), Some(PAGE), "nine of ten");
    }

    proptest! {
        #[test]
        fn reads_and_writes_become_fewer_alike(
            percent in 0.0_f64..=100.0,
            are_reads in prop::collection::vec(any::<bool>(), 1..400),
        ) {
            let request = |is_read: bool| if is_read { read(PAGE) } else { write(PAGE) };
            let mut memory = HostMemory::new(percent, &[read(PAGE)]);
            let (mut counts, mut answered) = ([0_u32; 2], [0_u32; 2]);
            for is_read in are_reads {
                counts[usize::from(is_read)] += 1;
                answered[usize::from(is_read)] += u32::from(memory.answers(&request(is_read)));
            }
            for (count, answered) in counts.into_iter().zip(answered) {
                let expected = f64::from(count) * percent / 100.0;
                prop_assert!((f64::from(answered) - expected).abs() <= 1.0);
            }
        }
    }
}
