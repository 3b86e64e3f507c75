//! Lateness: how often, and by how much, replies left later than the model was done.

use blockio::Nanos;

/// A reply counts as late if it leaves later than its latency in the model divided by this.
const TOLERATED: u64 = 20;
/// Most peaks that are kept.
pub(crate) const PEAKS_MAX: usize = 27;

/// Replies at the pace of a model, and those of them that left late: more than a twentieth of their
/// latency in the model after they were due, or the time of a command in the server where that is
/// longer than in the model.
///
/// The time on the way to the client and back is not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Replies that were sent.
    pub replies: u64,
    /// Replies that were late.
    pub late: u64,
    /// Sum of the latencies that the model had for all of them.
    pub modelled: Nanos,
    /// Sum of the times by which the late ones were late.
    pub late_by: Nanos,
    /// The largest of those.
    pub late_by_max: Nanos,
}

/// Delay of a late reply that is longer than those of all replies after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// Number of the reply, from 1.
    pub reply: u64,
    /// Time by which it was late.
    pub late_by: Nanos,
}

/// Peaks: the largest delay after each reply, for readers who look at times of their own.
///
/// ```text
///   delays   3  9  2  5  1          peaks   9  5  1
///            └──────┘ read here ─► the largest since then is 5
/// ```
///
/// **Invariants**
/// - Numbers of replies ascend, delays descend, and there are at most [`PEAKS_MAX`].
/// - No delay since a reply is larger than [`Peaks::since`] says. It says a larger one only where
///   peaks were dropped, next to one that is nearly as large.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peaks(Vec<Peak>);

impl Peaks {
    /// Takes note of a late reply.
    fn note(&mut self, peak: Peak) {
        while self.0.pop_if(|last| last.late_by <= peak.late_by).is_some() {}
        self.0.push(peak);
        if self.0.len() > PEAKS_MAX {
            self.drop_one();
        }
    }

    /// Replaces the two neighbours that differ least by the larger delay at the later reply.
    fn drop_one(&mut self) {
        let ratio = |pair: &[Peak]| pair[0].late_by.0 as f64 / (pair[1].late_by.0 as f64).max(1.0);
        let pairs = self.0.windows(2).map(ratio).enumerate();
        let nearest = pairs.min_by(|(_, a), (_, b)| a.total_cmp(b));
        if let Some((index, _)) = nearest {
            self.0[index + 1].late_by = self.0[index].late_by;
            self.0.remove(index);
        }
    }

    /// Returns the largest delay after the first `replies` replies; zero if none was late.
    pub fn since(&self, replies: u64) -> Nanos {
        let later = self.0.iter().find(|peak| peak.reply > replies);
        later.map_or(Nanos::ZERO, |peak| peak.late_by)
    }

    /// Returns the peaks in the order of their replies.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Peak> {
        self.0.iter()
    }
}

impl Lateness {
    /// Takes note of a reply that left `late_by` after it was due.
    pub(crate) fn note(&mut self, latency: Nanos, late_by: Nanos, peaks: &mut Peaks) {
        self.replies += 1;
        self.modelled += latency;
        if late_by.0 > latency.0 / TOLERATED {
            self.late += 1;
            self.late_by += late_by;
            self.late_by_max = self.late_by_max.max(late_by);
            peaks.note(Peak { reply: self.replies, late_by });
        }
    }

    /// Returns what came after `earlier`, with the `peaks` up to now.
    #[must_use]
    pub fn since(&self, earlier: &Self, peaks: &Peaks) -> Self {
        Self {
            replies: self.replies - earlier.replies,
            late: self.late - earlier.late,
            modelled: self.modelled - earlier.modelled,
            late_by: self.late_by - earlier.late_by,
            late_by_max: peaks.since(earlier.replies),
        }
    }

    /// Mean time by which the late ones were late; zero if none was.
    pub fn late_by_mean(&self) -> Nanos {
        Nanos(self.late_by.0.checked_div(self.late).unwrap_or(0))
    }

    /// Share of the modelled time by which replies were late, all together: what a client of one
    /// command at a time loses of its rate. 0 if nothing was asked.
    pub fn slowdown(&self) -> f64 {
        self.late_by.0 as f64 / (self.modelled.0 as f64).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_twentieth_of_the_latency_is_not_late() {
        let (mut lateness, mut peaks) = (Lateness::default(), Peaks::default());
        lateness.note(Nanos(1000), Nanos(50), &mut peaks);
        assert_eq!((lateness.replies, lateness.late), (1, 0));
        lateness.note(Nanos(1000), Nanos(51), &mut peaks);
        lateness.note(Nanos(2000), Nanos(149), &mut peaks);
        assert_eq!((lateness.replies, lateness.late), (3, 2));
        assert_eq!((lateness.late_by_mean(), lateness.late_by_max), (Nanos(100), Nanos(149)));
        assert!((lateness.slowdown() - 0.05).abs() < 1e-9);
    }

    /// Takes note of replies with these delays, each of which is late. Returns the counts after
    /// each of them, and the peaks.
    fn noted(delays: &[u64]) -> (Vec<Lateness>, Peaks) {
        let (mut lateness, mut peaks) = (Lateness::default(), Peaks::default());
        let mut all = vec![lateness];
        for delay in delays {
            lateness.note(Nanos(1), Nanos(*delay), &mut peaks);
            all.push(lateness);
        }
        (all, peaks)
    }

    proptest! {
        #[test]
        fn the_largest_delay_is_that_of_the_time_between_two_looks(
            delays in proptest::collection::vec(1_u64..1000, 1..60),
        ) {
            let (counts, peaks) = noted(&delays);
            prop_assert!(peaks.iter().len() <= PEAKS_MAX);
            let now = counts[delays.len()];
            for (earlier, since) in counts.iter().zip(0..) {
                let largest = delays[since..].iter().copied().max().unwrap_or(0);
                prop_assert_eq!(now.since(earlier, &peaks).late_by_max, Nanos(largest));
            }
        }
    }

    #[test]
    fn delays_that_only_shrink_are_told_too_large_rather_than_too_small() {
        let delays: Vec<u64> = (0..400).map(|at| 1_000_000_000 - at * 2_500_000 + 1).collect();
        let (counts, peaks) = noted(&delays);
        assert_eq!(peaks.iter().len(), PEAKS_MAX);
        let now = counts[delays.len()];
        for (at, earlier) in counts.iter().enumerate().take(delays.len()) {
            let told = now.since(earlier, &peaks).late_by_max.0;
            assert!(told >= delays[at] && told <= 2 * delays[at], "{told} for {}", delays[at]);
        }
    }

    #[test]
    fn nothing_is_late_where_nothing_was_asked() {
        let none = Lateness::default();
        assert_eq!(none.late_by_mean(), Nanos::ZERO);
        assert!(none.slowdown().abs() < f64::EPSILON);
    }
}
