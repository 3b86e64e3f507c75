//! Histogram of the latencies of commands, and its percentiles.

use serde::{Deserialize, Serialize};

/// Buckets of each octave, a power of two: a bucket is at most an eighth as wide as its latencies
/// are long.
const BUCKETS_PER_OCTAVE: usize = 8;

/// Latency in nanoseconds below which buckets are of one width, as base-2 logarithm.
const LINEAR_BELOW_LOG2: u32 = 10;

/// Latency in nanoseconds, as base-2 logarithm, from which on all are in the last bucket: 8.6 s.
const CAP_LOG2: u32 = 33;

/// Buckets of latencies: eight of 128 ns each, then eight for each doubling up to 8.6 s. The last
/// one has all longer latencies, too.
pub const LATENCY_BUCKETS: usize = BUCKETS_PER_OCTAVE * (CAP_LOG2 - LINEAR_BELOW_LOG2 + 1) as usize;

/// Returns the bucket of a latency in nanoseconds.
#[expect(clippy::cast_possible_truncation, reason = "there are few buckets")]
pub const fn latency_bucket(latency_ns: u64) -> usize {
    let linear_shift = LINEAR_BELOW_LOG2 - BUCKETS_PER_OCTAVE.ilog2();
    if latency_ns >> LINEAR_BELOW_LOG2 == 0 {
        return (latency_ns >> linear_shift) as usize;
    }
    if latency_ns >> CAP_LOG2 != 0 {
        return LATENCY_BUCKETS - 1;
    }
    let octave = latency_ns.ilog2() - LINEAR_BELOW_LOG2;
    // The leading one and the three bits that follow: 8 to 15.
    let leading = (latency_ns >> (octave + linear_shift)) as usize;
    octave as usize * BUCKETS_PER_OCTAVE + leading
}

/// Returns the shortest latency of a bucket, in nanoseconds.
#[expect(clippy::cast_possible_truncation, reason = "there are few octaves")]
pub const fn latency_bucket_start_ns(bucket: usize) -> u64 {
    let linear_shift = LINEAR_BELOW_LOG2 - BUCKETS_PER_OCTAVE.ilog2();
    if bucket < BUCKETS_PER_OCTAVE {
        return (bucket as u64) << linear_shift;
    }
    let octave = bucket / BUCKETS_PER_OCTAVE - 1;
    let leading = BUCKETS_PER_OCTAVE + bucket % BUCKETS_PER_OCTAVE;
    (leading as u64) << (octave as u32 + linear_shift)
}

/// Counts of commands by latency, of as many buckets as the longest latency needs; see
/// [`latency_bucket`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<u64>", into = "Vec<u64>")]
pub struct LatencyHistogram(Vec<u64>);

impl From<Vec<u64>> for LatencyHistogram {
    fn from(counts: Vec<u64>) -> Self {
        Self::new(counts)
    }
}

impl From<LatencyHistogram> for Vec<u64> {
    fn from(histogram: LatencyHistogram) -> Self {
        histogram.0
    }
}

impl LatencyHistogram {
    /// The histogram of these counts, one a bucket; those beyond the last one are left out.
    pub fn new(counts: impl IntoIterator<Item = u64>) -> Self {
        let mut counts: Vec<u64> = counts.into_iter().take(LATENCY_BUCKETS).collect();
        let is_zero = |count: &&u64| **count == 0;
        counts.truncate(counts.len() - counts.iter().rev().take_while(is_zero).count());
        Self(counts)
    }

    /// Returns the counts, of as many buckets as the longest latency needs.
    pub fn counts(&self) -> &[u64] {
        &self.0
    }

    /// Returns the number of commands.
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns the number of commands that took less than `1024 << octave` nanoseconds.
    pub fn below_octave(&self, octave: usize) -> u64 {
        let below = self.0.iter().take((octave + 1) * BUCKETS_PER_OCTAVE);
        below.fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns the commands since `earlier`, which was taken before from the same counters.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let then = earlier.0.iter().copied().chain(std::iter::repeat(0));
        Self::new(self.0.iter().zip(then).map(|(now, then)| now.saturating_sub(then)))
    }

    /// Returns the latency in nanoseconds that `share` of the commands, 0 to less than 1, do not
    /// exceed: the percentile, interpolated within its bucket, so that it is off by an eighth at
    /// most; none of so few commands that it would be their longest latency, such as a 99th
    /// percentile of fewer than 100. Where it is in the last bucket, its start: the latency is that
    /// or longer.
    pub fn percentile_ns(&self, share: f64) -> Option<u64> {
        assert!((0.0..1.0).contains(&share), "a share is 0 to less than 1");
        // 1 - 0.99 is a little more than 0.01, and 1 - 0.999 a little less than 0.001.
        if (self.total() as f64) * (1.0 - share) < 1.0 - 1e-9 {
            return None;
        }
        let wanted = share * self.total() as f64;
        let mut below: u64 = 0;
        for (bucket, count) in self.0.iter().enumerate().filter(|(_, count)| **count > 0) {
            if below.saturating_add(*count) as f64 >= wanted {
                let start_ns = latency_bucket_start_ns(bucket);
                if bucket + 1 == LATENCY_BUCKETS {
                    return Some(start_ns);
                }
                let width_ns = latency_bucket_start_ns(bucket + 1) - start_ns;
                let part = ((wanted - below as f64) / *count as f64).max(0.0);
                return Some(start_ns + whole(part * width_ns as f64));
            }
            below = below.saturating_add(*count);
        }
        None
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(latencies_ns: &[(u64, u64)]) -> LatencyHistogram {
        let mut counts = vec![0; LATENCY_BUCKETS];
        for (latency_ns, count) in latencies_ns {
            counts[latency_bucket(*latency_ns)] += count;
        }
        LatencyHistogram::new(counts)
    }

    #[test]
    fn each_latency_lies_in_a_bucket_at_most_an_eighth_as_wide() {
        for bucket in 0..LATENCY_BUCKETS - 1 {
            let (start, end) =
                (latency_bucket_start_ns(bucket), latency_bucket_start_ns(bucket + 1));
            assert_eq!([latency_bucket(start), latency_bucket(end - 1)], [bucket; 2]);
            assert!(end - start <= (start / 8).max(128), "{bucket}: {start} to {end}");
        }
        assert_eq!(latency_bucket_start_ns(8), 1024);
        assert_eq!(latency_bucket(u64::MAX), LATENCY_BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_off_by_an_eighth_at_most() {
        for latency_ns in [1_500_u64, 90_000, 2_100_000, 1_000_000_000] {
            let told = histogram(&[(latency_ns, 1000)]).percentile_ns(0.99).unwrap();
            assert!(told.abs_diff(latency_ns) <= latency_ns / 8, "{latency_ns}: {told}");
        }
        // Evenly over one bucket, of 2,048 to 2,304 ns.
        assert_eq!(histogram(&[(2100, 4)]).percentile_ns(0.5), Some(2048 + 128));
        let mixed = histogram(&[(100, 90), (9000, 9), (1_000_000, 1)]);
        assert!(mixed.percentile_ns(0.5).unwrap() < 128);
        assert!((8192..=9216).contains(&mixed.percentile_ns(0.99).unwrap()));
        assert_eq!(LatencyHistogram::default().percentile_ns(0.5), None);
        assert_eq!(histogram(&[(u64::MAX, 2)]).percentile_ns(0.5), Some(15 << 29));
        let few = |count| histogram(&[(2100, count)]).percentile_ns(0.99);
        assert!(few(99).is_none() && few(100).is_some(), "the longest of a few is no percentile");
    }

    #[test]
    fn what_came_since_is_the_difference() {
        let since = histogram(&[(100, 5), (5000, 7)]).since(&histogram(&[(100, 5), (5000, 3)]));
        assert_eq!((since.total(), since), (4, histogram(&[(5000, 4)])));
        assert_eq!(histogram(&[]).since(&histogram(&[])).counts(), [0; 0]);
    }

    #[test]
    fn counts_from_elsewhere_never_panic() {
        let told = format!("[{}0]", "18446744073709551615,".repeat(2 * LATENCY_BUCKETS));
        let read: LatencyHistogram = serde_json::from_str(&told).unwrap();
        assert_eq!((read.counts().len(), read.total()), (LATENCY_BUCKETS, u64::MAX));
        assert!(read.percentile_ns(0.99).is_some() && read.since(&read).total() == 0);
        let read: LatencyHistogram = serde_json::from_str("[0,3,0,0]").unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), "[0,3]");
    }

    #[test]
    fn octaves_count_what_is_below_their_end() {
        let counted = histogram(&[(1023, 1), (1024, 2), (2047, 3), (2048, 4)]);
        assert_eq!([0, 1, 2].map(|octave| counted.below_octave(octave)), [1, 6, 10]);
    }
}
