//! Processors of a host, which the think times of an application share.
//!
//! Up to as many think times as there are processors pass as the clock does. Beyond that they share
//! the processors equally, so that n of them on p processors pass at the fraction p / n of the
//! clock's speed: egalitarian processor sharing [kleinrock-1967]. Think times are taken as work,
//! but for those of timers ([`Parent::is_timer`]).

use std::num::NonZeroU32;

use blockio::Nanos;
use workload::recording::{Parent, RecordedRequest};

/// Processors, and the processor time that each think time under way has had.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedProcessors {
    /// Number of processors; absent: one for each think time.
    count: Option<NonZeroU32>,
    /// Think times under way.
    busy: u64,
    now: Nanos,
    /// Processor time, until `now`, of a think time that was under way from the beginning.
    worked: Nanos,
}

impl SharedProcessors {
    /// Idle processors at `start`.
    pub(crate) const fn new(count: Option<NonZeroU32>, start: Nanos) -> Self {
        Self { count, busy: 0, now: start, worked: Nanos::ZERO }
    }

    /// Begins a think time that needs `work` of processor time, at `at`. Returns the mark at which
    /// it is over, for [`Self::reaches`].
    pub(crate) fn begin(&mut self, at: Nanos, work: Nanos) -> Nanos {
        self.advance(at);
        self.busy += 1;
        // Completions of a real drive may be told in another order than they came in.
        (self.worked + work).saturating_sub(self.now - at.min(self.now))
    }

    /// Ends a think time at `at`.
    pub(crate) fn end(&mut self, at: Nanos) {
        assert!(self.busy > 0, "a think time is under way");
        self.advance(at);
        self.busy -= 1;
    }

    /// Time at which think times with the mark `mark` are over, if none begins or ends before.
    pub(crate) fn reaches(&self, mark: Nanos) -> Nanos {
        match mark.0.checked_sub(self.worked.0) {
            Some(left) => self.now + self.stretched(Nanos(left)),
            None => self.now.saturating_sub(self.worked - mark),
        }
    }

    fn advance(&mut self, to: Nanos) {
        let elapsed = to.saturating_sub(self.now);
        self.now += elapsed;
        self.worked += match self.crowd() {
            Some((busy, count)) => Nanos(scaled(elapsed.0, count, busy)),
            None => elapsed,
        };
    }

    /// Time in which each think time under way has `work` of processor time; rounded up, so that it
    /// is over by then.
    fn stretched(&self, work: Nanos) -> Nanos {
        match self.crowd() {
            Some((busy, count)) => Nanos(scaled(work.0, busy, count) + 1),
            None => work,
        }
    }

    /// Think times under way, and processors, if the former are more.
    fn crowd(&self) -> Option<(u64, u64)> {
        let count = u64::from(self.count?.get());
        (self.busy > count).then_some((self.busy, count))
    }
}

fn scaled(value: u64, by: u64, over: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(by) / u128::from(over);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// Processor time of each think time of `requests`, whose `parents` are those of
/// [`workload::recording::parents`] with think times no longer than theirs, if they were recorded
/// on `count` processors: what is left of it without the time in which others had the processors.
/// Without a parent, or with a timer, it is as it is given.
pub(crate) fn work(
    requests: &[RecordedRequest],
    parents: &[Parent],
    count: NonZeroU32,
) -> Vec<Nanos> {
    assert_eq!(requests.len(), parents.len(), "every request has its parent or none");
    let takes_processors = |it: &Parent| it.index.is_some() && !it.is_timer;
    // Think times end when requests are issued.
    let thinking = |(index, parent): (usize, &Parent)| {
        takes_processors(parent).then(|| (index, requests[index].issued_at - parent.think_time))
    };
    let mut begins: Vec<(usize, Nanos)> = parents.iter().enumerate().filter_map(thinking).collect();
    begins.sort_by_key(|(_, at)| *at);
    let mut processors = SharedProcessors::new(Some(count), Nanos::ZERO);
    let mut work: Vec<Nanos> = parents.iter().map(|it| it.think_time).collect();
    let mut begins = begins.into_iter().peekable();
    // Requests are in order of issue, which is when think times end.
    for (index, parent) in parents.iter().enumerate().filter(|(_, it)| takes_processors(it)) {
        let issued_at = requests[index].issued_at;
        while let Some((begun, at)) = begins.next_if(|(_, at)| *at <= issued_at) {
            // The mark for now; the difference to that at its end is its processor time.
            work[begun] = processors.begin(at, Nanos::ZERO);
        }
        processors.end(issued_at);
        work[index] = processors.worked - work[index];
        assert!(work[index] <= parent.think_time, "work takes no longer than its think time");
    }
    work
}

#[cfg(test)]
mod tests;
