//! Warnings of replies that were later than those of the model that sets their timing.

use std::sync::Arc;

use export::{Lateness, Pace};
use tracing::warn;

/// Share of late replies from which on there is a warning, in percent.
const WARNING_PERCENT: f64 = 1.0;

/// Periodic warnings of late replies.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pace: Option<Arc<Pace>>,
    /// Counts at the last call.
    then: Lateness,
}

impl Watch {
    /// Watches a model, if there is one.
    pub(crate) fn new(pace: Option<&Arc<Pace>>) -> Self {
        Self { pace: pace.cloned(), then: Lateness::default() }
    }

    /// Warns if many replies since the last call were late.
    pub(crate) fn look(&mut self) {
        let Some(pace) = &self.pace else { return };
        let (now, peaks) = pace.lateness_and_peaks();
        let since = now.since(&self.then, &peaks);
        self.then = now;
        if let Some(text) = text(&since) {
            warn!(late = since.late, replies = since.replies, "{text}");
        }
    }
}

/// A sentence on replies of which many were late; none if few were.
pub fn text(lateness: &Lateness) -> Option<String> {
    let Lateness { replies, late, late_by_max, .. } = *lateness;
    let percent = 100.0 * late as f64 / (replies as f64).max(1.0);
    (percent >= WARNING_PERCENT).then(|| {
        format!(
            "{late} of {replies} replies ({percent:.1} %) were late for the model, by {} on \
             average and {late_by_max} at most: this machine was too busy or too slow for the \
             model, so figures that clients measured are in part those of the machine",
            lateness.late_by_mean()
        )
    })
}

#[cfg(test)]
mod tests {
    use blockio::Nanos;

    use super::*;

    #[test]
    fn a_reply_in_a_hundred_is_told_of_and_one_in_a_thousand_is_not() {
        let late_by = Nanos::from_micros(500);
        let lateness = Lateness { replies: 1000, late: 1, late_by, ..Lateness::default() };
        assert_eq!(text(&lateness), None);
        assert_eq!(text(&Lateness::default()), None, "nothing was asked");
        let told = text(&Lateness { late: 10, late_by_max: late_by, ..lateness }).unwrap();
        let begins = "10 of 1000 replies (1.0 %) were late for the model, by 50.0 us on average \
                      and 500 us at most";
        assert!(told.starts_with(begins), "{told}");
    }
}
