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
//! A stall of a state of the drive that is due in another state waits for it, see
//! [`crate::spec::StallDuring`]. No random number is drawn.

use blockio::Nanos;

use crate::spec::{StallDuring, StallHolds, StallSpec};

/// The golden ratio's fraction in 1/65536: threads' stalls are spread evenly, however many.
const PHASE: u64 = 40_503;
/// Share of the time between two stalls after which one that waits for its state is due again.
const LOOKS: u64 = 64;

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
    /// Length of the next ones: shorter than `span` while only a part of the time is simulated.
    span_next: Nanos,
    holds: StallHolds,
    during: StallDuring,
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

    /// Lets `span` pass in which no request completes. Stalls that hold one request come as often
    /// as if it had been simulated, each for `share` of its length, so that they take the same
    /// share of the time.
    pub(crate) fn pass(&mut self, span: Nanos, share: f64) {
        debug_assert!((0.0..=1.0).contains(&share), "a part is simulated");
        for stall in self.kinds.iter_mut().filter(|it| it.holds == StallHolds::Request) {
            stall.span_next = Nanos::from_secs_f64(stall.span.as_secs_f64() * share);
            for begins_at in &mut stall.begins_at {
                *begins_at = begins_at.saturating_sub(span);
            }
        }
        self.note_next();
    }

    /// Longest time between two stalls that hold a thread; absent where none does.
    pub(crate) fn thread_every_max(&self) -> Option<Nanos> {
        let of_threads = self.kinds.iter().filter(|it| it.holds == StallHolds::Thread);
        of_threads.map(|it| it.every).max()
    }

    fn note_next(&mut self) {
        let begins_at = self.kinds.iter().flat_map(|stall| &stall.begins_at);
        self.none_before = begins_at.copied().min().unwrap_or(Nanos::MAX);
    }

    /// Returns the stall that holds a completion which is due for `thread` at `at`, if any;
    /// `is_during` tells the state of the drive.
    #[inline]
    pub(crate) fn wait(
        &mut self,
        thread: u16,
        at: Nanos,
        is_during: impl Fn(StallDuring) -> bool,
    ) -> Option<Wait> {
        if at < self.none_before && u32::from(thread) < self.threads_seen {
            return None;
        }
        self.look_closer(thread, at, &is_during)
    }

    #[inline(never)]
    fn look_closer(
        &mut self,
        thread: u16,
        at: Nanos,
        is_during: &impl Fn(StallDuring) -> bool,
    ) -> Option<Wait> {
        let wait = |stall: &mut Stall| stall.wait(thread, at, is_during(stall.during));
        let holds = self.kinds.iter_mut().filter_map(wait);
        let held = holds.max_by_key(|hold| hold.until);
        self.threads_seen = self.threads_seen.max(u32::from(thread) + 1);
        self.note_next();
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
        let (holds, during) = (spec.holds, spec.during);
        let every = every.max(Nanos(1));
        Self { every, span, span_next: span, holds, during, begins_at: Vec::new() }
    }

    /// The stall that holds a completion of `thread` at `at`, if the drive `is_during` its state.
    #[inline]
    fn wait(&mut self, thread: u16, at: Nanos, is_during: bool) -> Option<Wait> {
        let line = match self.holds {
            StallHolds::Thread => usize::from(thread),
            StallHolds::Request => 0,
        };
        self.grow(line);
        let begins_at = &mut self.begins_at[line];
        if at < *begins_at {
            return None;
        }
        if !is_during {
            *begins_at = at + (self.every / LOOKS).max(Nanos(1));
            return None;
        }
        // The last one that begins by now; those before hit nothing.
        let begun = *begins_at + self.every * ((at - *begins_at).0 / self.every.0);
        *begins_at = begun + self.every;
        assert!(begun <= at && at < *begins_at, "the last stall that has begun is looked at");
        match self.holds {
            StallHolds::Request => {
                let span = self.span_next;
                Some(Wait { until: at + span, alone: span })
            }
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
        let during = StallDuring::DearRelocation;
        let spec = StallSpec { every_s: 8.0, span_ms: 100.0, holds, during, source };
        Stalls::new(&[spec], time_lapse)
    }

    /// Completions of two threads every 10 ms that are held: thread, due time, and end of the
    /// stall.
    fn held(stalls: &mut Stalls, seconds: u64) -> Vec<(u16, Nanos, Nanos)> {
        let times = (0..seconds * 100).map(|step| Nanos::from_millis(step * 10));
        let due = times.flat_map(|at| [(0, at), (1, at)]);
        due.filter_map(|(thread, at)| {
            stalls.wait(thread, at, |_| true).map(|hold| (thread, at, hold.until))
        })
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
            let hold = (0..16_000)
                .find_map(|ms| stalls.wait(0, Nanos::from_millis(ms), |_| true))
                .unwrap();
            assert_eq!(hold.alone, alone);
        }
    }

    #[test]
    fn stalls_of_an_idle_time_are_not_made_up_for() {
        let mut stalls = stalls(StallHolds::Request, 1);
        assert!(stalls.wait(0, Nanos::from_secs(3600), |_| true).is_some());
        assert!(stalls.wait(0, Nanos::from_secs(3601), |_| true).is_none());
    }

    #[test]
    fn a_stall_of_a_state_waits_for_it_and_comes_soon_after() {
        let mut stalls = stalls(StallHolds::Request, 1);
        let due = (0..3600).filter(|s| stalls.wait(0, Nanos::from_secs(*s), |_| false).is_some());
        assert_eq!(due.count(), 0);
        let ms = (0..4_000).map(|ms| Nanos::from_secs(3600) + Nanos::from_millis(ms));
        let found =
            ms.filter(|at| stalls.wait(0, *at, |it| it == StallDuring::DearRelocation).is_some());
        let found: Vec<_> = found.collect();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0] <= Nanos::from_secs(3600) + Nanos::from_millis(125), "{found:?}");
    }
}
