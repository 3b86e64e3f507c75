//! Lateness of a modelled drive that is served: whether its figures are those of the model.

use std::fmt;

use blockio::Nanos;
use serde::{Deserialize, Serialize};

/// Share of late replies above which figures are in part those of the server.
const LATE_SHARE_MAX: f64 = 0.01;
/// Slowdown above which figures are in part those of the server.
pub const SLOWDOWN_MAX: f64 = 0.05;

/// Replies of the server of a modelled drive under a load, its ramp included, and those of them
/// that were late: by more than a twentieth of their latency in the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// Replies that were sent, to other clients of the server too.
    pub replies: u64,
    /// Replies that were late.
    pub late: u64,
    /// Mean latency of all of them in the model, in nanoseconds: what a client measures beyond it
    /// passed in the server and on the way to it.
    pub latency_ns_avg: f64,
    /// Nanoseconds by which the late ones were late, on average; 0 if none was.
    pub late_by_ns_mean: u64,
    /// Nanoseconds by which a reply was late, at most.
    pub late_by_ns_max: u64,
    /// Time by which replies were late, all together, ÷ their time in the model: what a client of
    /// one request at a time loses of its rate.
    pub slowdown: f64,
}

impl Lateness {
    /// Share of the replies that were late, 0 to 1.
    pub fn late_share(&self) -> f64 {
        self.late as f64 / (self.replies as f64).max(1.0)
    }

    /// True if the figures of the load are in part those of the server: more than 1 % of the
    /// replies were late, or all of them together by more than 5 % of the model's time.
    pub fn is_harmful(&self) -> bool {
        self.late_share() > LATE_SHARE_MAX || self.slowdown > SLOWDOWN_MAX
    }
}

impl fmt::Display for Lateness {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (late, replies) = (self.late, self.replies);
        write!(out, "{late} of {replies} ({:.2} %)", self.late_share() * 100.0)?;
        if late > 0 {
            let [mean, most] = [self.late_by_ns_mean, self.late_by_ns_max].map(Nanos);
            write!(out, ", by {mean} on average and {most} at most")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_harmful_beyond_a_hundredth_of_the_replies_or_a_twentieth_of_the_time() {
        let lateness = Lateness { replies: 1000, late: 10, slowdown: 0.05, ..Lateness::default() };
        assert!(!lateness.is_harmful());
        assert!(Lateness { late: 11, ..lateness }.is_harmful());
        assert!(Lateness { slowdown: 0.051, ..lateness }.is_harmful());
        assert!(!Lateness::default().is_harmful(), "nothing was asked for");
    }

    #[test]
    fn times_are_shown_only_where_something_was_late() {
        let none = Lateness { replies: 20, ..Lateness::default() };
        assert_eq!(none.to_string(), "0 of 20 (0.00 %)");
        let one = Lateness { late: 1, late_by_ns_mean: 1500, late_by_ns_max: 1500, ..none };
        let told = "1 of 20 (5.00 %), by 1.50 us on average and 1.50 us at most";
        assert_eq!(one.to_string(), told);
    }
}
