//! Lateness: how often, and by how much, replies left later than the model was done.

use blockio::Nanos;

/// A reply counts as late if it leaves later than its latency in the model divided by this.
const TOLERATED: u64 = 20;

/// Replies at the pace of a model, and those of them that left late: more than a twentieth of their
/// latency in the model after they were due, or the time of a command in the server where that is
/// longer than in the model.
///
/// The time on the way to the client and back is not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Replies that were sent.
    pub replies: u64,
    /// Those of them that were late.
    pub late: u64,
    /// Sum of the latencies that the model had for all of them.
    pub modelled: Nanos,
    /// Sum of the times by which the late ones were late.
    pub late_by: Nanos,
    /// The largest of those.
    pub late_by_max: Nanos,
}

impl Lateness {
    /// Takes note of a reply that left `late_by` after it was due.
    pub(crate) fn note(&mut self, latency: Nanos, late_by: Nanos) {
        self.replies += 1;
        self.modelled += latency;
        if late_by.0 > latency.0 / TOLERATED {
            self.late += 1;
            self.late_by += late_by;
            self.late_by_max = self.late_by_max.max(late_by);
        }
    }

    /// Returns what came after `earlier`; the largest is that of all.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            replies: self.replies - earlier.replies,
            late: self.late - earlier.late,
            modelled: self.modelled - earlier.modelled,
            late_by: self.late_by - earlier.late_by,
            late_by_max: self.late_by_max,
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
    use super::*;

    #[test]
    fn a_twentieth_of_the_latency_is_not_late() {
        let mut lateness = Lateness::default();
        lateness.note(Nanos(1000), Nanos(50));
        assert_eq!((lateness.replies, lateness.late), (1, 0));
        lateness.note(Nanos(1000), Nanos(51));
        lateness.note(Nanos(2000), Nanos(149));
        assert_eq!((lateness.replies, lateness.late), (3, 2));
        assert_eq!((lateness.late_by_mean(), lateness.late_by_max), (Nanos(100), Nanos(149)));
        assert!((lateness.slowdown() - 0.05).abs() < 1e-9);
    }

    #[test]
    fn nothing_is_late_where_nothing_was_asked() {
        let none = Lateness::default();
        assert_eq!(none.late_by_mean(), Nanos::ZERO);
        assert!(none.slowdown().abs() < f64::EPSILON);
    }
}
