//! Warnings of replies that were later than those of the model that sets their timing.

use std::sync::Arc;

use blockio::Nanos;
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
        let now = pace.lateness();
        let since = between(&self.then, &now);
        self.then = now;
        if let Some(text) = text(&since) {
            warn!(late = since.late, replies = since.replies, "{text}");
        }
    }
}

/// Returns the replies after `then` and up to `now`. Their largest delay is known only if it is the
/// largest of all; otherwise it is zero.
fn between(then: &Lateness, now: &Lateness) -> Lateness {
    let is_known = now.late_by_max > then.late_by_max;
    let late_by_max = if is_known { now.late_by_max } else { Nanos::ZERO };
    Lateness { late_by_max, ..now.since(then) }
}

/// A sentence on replies of which many were late; none if few were.
pub(crate) fn text(lateness: &Lateness) -> Option<String> {
    let Lateness { replies, late, late_by_max, .. } = *lateness;
    let most = match late_by_max {
        Nanos::ZERO => String::new(),
        most => format!(" and {most} at most"),
    };
    let percent = 100.0 * late as f64 / (replies as f64).max(1.0);
    (percent >= WARNING_PERCENT).then(|| {
        format!(
            "{late} of {replies} replies ({percent:.1} %) were late for the model, by {} on \
             average{most}: this machine was too busy or too slow for the model, so figures that \
             clients measured are in part those of the machine",
            lateness.late_by_mean()
        )
    })
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn the_largest_delay_of_an_earlier_minute_is_not_that_of_this_one() {
        let us = Nanos::from_micros;
        let lateness = |late, late_by, late_by_max| Lateness {
            replies: late,
            late,
            late_by,
            late_by_max,
            ..Lateness::default()
        };
        let (first, second) = (lateness(1, us(900), us(900)), lateness(2, us(910), us(900)));
        let begins = "1 of 1 replies (100.0 %) were late for the model, by 10.0 us on average: ";
        assert!(text(&between(&first, &second)).unwrap().starts_with(begins));
        let third = lateness(3, us(1910), us(1000));
        let told = text(&between(&second, &third)).unwrap();
        assert!(told.contains("by 1.00 ms on average and 1.00 ms at most"), "{told}");
    }
}
