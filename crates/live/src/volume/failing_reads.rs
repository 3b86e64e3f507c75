//! Dies that fail every read. A write that fails takes a die out of service at once; a load that
//! only reads has none, so that parity would go on answering for the die, and no hot spare would
//! take its place.

use std::time::{Duration, Instant};

use status::Die;

use crate::Drive;
use crate::format::die_set::DieSet;

/// Reads that a die fails, without one that succeeds, before it is taken out of service: as many as
/// Linux lets a member of a RAID correct in an hour (`max_read_errors` of md).
const FAILURES_MIN: u64 = 20;
/// Time for which it fails all of them: an outage of a link or of a network may end sooner.
const FAILING_FOR: Duration = Duration::from_secs(10);

/// Dies whose reads have failed since some time, by index.
#[derive(Debug, Default)]
pub(crate) struct FailingReads(Vec<Reads>);

/// Counters of a die at its last read that succeeded.
#[derive(Clone, Copy, Debug)]
struct Reads {
    read_bytes: u64,
    failures: u64,
    /// Time of the first look that saw a failure since.
    failing_since: Option<Instant>,
}

impl FailingReads {
    /// Looks at the counters of all dies at `now`; returns a die that has failed every read for
    /// long enough.
    fn look(&mut self, dies: &[Die], now: Instant) -> Option<usize> {
        let reads = |it: &Die| Reads {
            read_bytes: it.read_bytes,
            failures: it.failures,
            failing_since: None,
        };
        if self.0.len() != dies.len() {
            self.0 = dies.iter().map(reads).collect();
        }
        let mut found = None;
        for (index, (seen, die)) in self.0.iter_mut().zip(dies).enumerate() {
            let is_other = die.read_bytes != seen.read_bytes || die.failures < seen.failures;
            if is_other || die.is_lost {
                *seen = reads(die);
                continue;
            }
            let failed = die.failures - seen.failures;
            if failed > 0 {
                let since = *seen.failing_since.get_or_insert(now);
                if failed >= FAILURES_MIN && now.duration_since(since) >= FAILING_FOR {
                    found = found.or(Some(index));
                }
            }
        }
        found
    }

    /// Takes a die out of service that has failed every read for ten seconds, twenty at least, and
    /// does not answer now, if all other dies do and the drive can do without it.
    pub(crate) fn end(&mut self, drive: &Drive) {
        let dies = &drive.store().dies;
        let Some(die) = self.look(&dies.traffic(), Instant::now()) else { return };
        if dies.unresponsive() == [die].into_iter().collect::<DieSet>() {
            // A drive that cannot do without it goes on answering with errors.
            let _ = drive.fail_die(die);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dies(counters: [(u64, u64); 2]) -> Vec<Die> {
        let die = |(read_bytes, failures)| Die { read_bytes, failures, ..Die::default() };
        counters.map(die).to_vec()
    }

    #[test]
    fn a_die_is_found_once_enough_of_its_reads_have_failed_for_long_enough() {
        let (mut failing, start) = (FailingReads::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut look =
            |seconds, failures| failing.look(&dies([(7, 0), (9, failures)]), at(seconds));
        assert_eq!(look(0, 3), None);
        assert_eq!(look(600, 3), None, "no client read from it");
        assert_eq!(look(601, 50), None, "it began to fail just now");
        assert_eq!(look(610, 80), None);
        assert_eq!(look(611, 90), Some(1));
    }

    #[test]
    fn a_die_with_few_failures_or_a_read_that_succeeds_is_not_found() {
        let (mut failing, start) = (FailingReads::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut look = |seconds, counters| failing.look(&dies([counters, (0, 0)]), at(seconds));
        assert_eq!(look(0, (512, 0)), None);
        assert_eq!(look(1, (512, 5)), None);
        assert_eq!(look(60, (512, 19)), None, "too few");
        assert_eq!(look(61, (1024, 25)), None, "one succeeded");
        assert_eq!(look(62, (1024, 60)), None, "the time begins anew");
        assert_eq!(look(72, (1024, 61)), Some(0));
    }
}
