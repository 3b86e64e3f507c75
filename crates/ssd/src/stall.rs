//! Stalls of the host: now and then a completion reaches the program late.
//!
//! What a stall holds decides whose clock it keeps in time lapse, see
//! [`crate::spec::StallHolds`]:
//!
//! ```text
//!  thread 0  ────██────────────────██────────────────██──────   its processor is taken away
//!  thread 1  ──────────────██────────────────██──────────────   from it for `span`
//!
//!  request   ───────────────█───────────────────────────█────   one completion is missed and
//!                                                                found `span` later
//! ```
//!
//! Everything is a function of time: no random number is drawn.

use blockio::Nanos;

use crate::spec::{StallHolds, StallSpec};

/// The golden ratio's fraction in 1/65536: threads' stalls are spread evenly, however many.
const PHASE: u64 = 40_503;

/// All stalls of a host.
#[derive(Clone, Debug)]
pub(crate) struct Stalls {
    kinds: Vec<Stall>,
    /// Nothing is held before this, of the threads seen so far.
    none_before: Nanos,
    threads_seen: u32,
}

/// Wait of a completion: for a stall, or for a processor that wakes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    /// Time until which it is held.
    pub(crate) until: Nanos,
    /// Length of the stall, if it holds this completion alone; otherwise zero.
    pub(crate) alone: Nanos,
}

/// One kind of stall.
#[derive(Clone, Debug)]
struct Stall {
    every: Nanos,
    span: Nanos,
    holds: StallHolds,
    /// Start of the next stall, or of the one under way: thread by thread, or one for all.
    begins_at: Vec<Nanos>,
}

impl Stalls {
    /// Stalls of a host at 1/`time_lapse`.
    pub(crate) fn new(specs: &[StallSpec], time_lapse: u32) -> Self {
        let kinds: Vec<_> = specs.iter().map(|spec| Stall::new(spec, time_lapse)).collect();
        let threads_seen = if kinds.is_empty() { u32::MAX } else { 0 };
        Self { kinds, none_before: Nanos::MAX, threads_seen }
    }

    /// Returns the stall that holds a completion which is due for `thread` at `at`, if any.
    #[inline]
    pub(crate) fn wait(&mut self, thread: u16, at: Nanos) -> Option<Wait> {
        if at < self.none_before && u32::from(thread) < self.threads_seen {
            return None;
        }
        self.look_closer(thread, at)
    }

    #[inline(never)]
    fn look_closer(&mut self, thread: u16, at: Nanos) -> Option<Wait> {
        let holds = self.kinds.iter_mut().filter_map(|stall| stall.wait(thread, at));
        let held = holds.max_by_key(|hold| hold.until);
        self.threads_seen = self.threads_seen.max(u32::from(thread) + 1);
        let begins_at = self.kinds.iter().flat_map(|stall| &stall.begins_at);
        self.none_before = begins_at.copied().min().unwrap_or(Nanos::MAX);
        assert!(held.is_none_or(|it| it.until >= at), "a completion is held until later");
        held
    }
}

impl Stall {
    fn new(spec: &StallSpec, time_lapse: u32) -> Self {
        let every = Nanos::from_secs_f64(spec.every_s);
        let span = Nanos::from_micros_f64(spec.span_ms * 1e3);
        let (every, span) = match spec.holds {
            StallHolds::Thread => (every, span),
            StallHolds::Request => (every / u64::from(time_lapse), span / u64::from(time_lapse)),
        };
        Self { every: every.max(Nanos(1)), span, holds: spec.holds, begins_at: Vec::new() }
    }

    #[inline]
    fn wait(&mut self, thread: u16, at: Nanos) -> Option<Wait> {
        let line = match self.holds {
            StallHolds::Thread => usize::from(thread),
            StallHolds::Request => 0,
        };
        self.grow(line);
        let begins_at = &mut self.begins_at[line];
        if at < *begins_at {
            return None;
        }
        // The last one that begins by now; those before hit nothing.
        let begun = *begins_at + self.every * ((at - *begins_at).0 / self.every.0);
        *begins_at = begun + self.every;
        assert!(begun <= at && at < *begins_at, "the last stall that has begun is looked at");
        match self.holds {
            StallHolds::Request => Some(Wait { until: at + self.span, alone: self.span }),
            StallHolds::Thread if at < begun + self.span => {
                *begins_at = begun;
                Some(Wait { until: begun + self.span, alone: Nanos::ZERO })
            }
            StallHolds::Thread => None,
        }
    }

    #[inline]
    fn grow(&mut self, line: usize) {
        while self.begins_at.len() <= line {
            let phase = 0x8000 + PHASE * self.begins_at.len() as u64;
            let begins_at = Nanos(self.every.0 / 0x1_0000 * (phase % 0x1_0000));
            assert!(begins_at < self.every, "the first stall begins within the first interval");
            self.begins_at.push(begins_at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stalls(holds: StallHolds, time_lapse: u32) -> Stalls {
        let source = "estimated: for a test".to_owned();
        Stalls::new(&[StallSpec { every_s: 8.0, span_ms: 100.0, holds, source }], time_lapse)
    }

    /// Completions of two threads every 10 ms that are held: thread, due time, and end of the
    /// stall.
    fn held(stalls: &mut Stalls, seconds: u64) -> Vec<(u16, Nanos, Nanos)> {
        let times = (0..seconds * 100).map(|step| Nanos::from_millis(step * 10));
        let due = times.flat_map(|at| [(0, at), (1, at)]);
        due.filter_map(|(thread, at)| stalls.wait(thread, at).map(|hold| (thread, at, hold.until)))
            .collect()
    }

    #[test]
    fn a_thread_is_held_for_the_rest_of_the_span_and_the_others_are_not() {
        let held = held(&mut stalls(StallHolds::Thread, 32), 16);
        for thread in [0, 1] {
            let mine: Vec<_> = held.iter().filter(|(t, ..)| *t == thread).collect();
            assert!((18..=22).contains(&mine.len()), "{} of thread {thread}", mine.len());
            assert!(mine.iter().all(|(_, at, until)| *until - *at <= Nanos::from_millis(100)));
        }
        let ends = |thread| held.iter().filter(move |(t, ..)| *t == thread).map(|held| held.2);
        assert!(ends(0).all(|end| ends(1).all(|other| end != other)));
    }

    #[test]
    fn one_request_is_held_as_often_an_interval_and_for_the_share_of_it_that_it_is_at_full_scale() {
        for (time_lapse, times, span_ms) in [(1, 1, 100), (4, 4, 25)] {
            let held = held(&mut stalls(StallHolds::Request, time_lapse), 8);
            assert_eq!(held.len(), times);
            assert!(held.iter().all(|(_, at, until)| *until - *at == Nanos::from_millis(span_ms)));
        }
    }

    #[test]
    fn a_stall_of_one_request_tells_its_length_and_one_of_a_thread_does_not() {
        for (holds, alone) in
            [(StallHolds::Request, Nanos::from_millis(25)), (StallHolds::Thread, Nanos::ZERO)]
        {
            let mut stalls = stalls(holds, 4);
            let hold = (0..16_000).find_map(|ms| stalls.wait(0, Nanos::from_millis(ms))).unwrap();
            assert_eq!(hold.alone, alone);
        }
    }

    #[test]
    fn stalls_of_an_idle_time_are_not_made_up_for() {
        let mut stalls = stalls(StallHolds::Request, 1);
        assert!(stalls.wait(0, Nanos::from_secs(3600)).is_some());
        assert!(stalls.wait(0, Nanos::from_secs(3601)).is_none());
    }
}
