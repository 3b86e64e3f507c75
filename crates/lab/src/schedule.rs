//! Times at which the requests of an open loop are due, the same for every driver.

use blockio::{Nanos, Rng};

use crate::driver::Load;
use crate::replay::Replay;
use crate::{Gaps, Rate};

/// Due times of requests.
#[derive(Debug)]
pub struct Schedule<'a> {
    times: Times<'a>,
    next: Nanos,
    /// Requests that were due so far.
    taken: u64,
}

/// Origin of the due times.
#[derive(Debug)]
enum Times<'a> {
    /// A rate, whatever is sent at it: requests drawn one by one, or those of a trace.
    Rate { rng: Rng, rate: Rate },
    /// A trace, from this time on.
    Trace { replay: Replay<'a>, from: Nanos },
}

impl<'a> Schedule<'a> {
    /// Due times of `load`, which begins at `from`; absent for a closed loop, where each completion
    /// is answered by the next request.
    pub fn of(load: &Load<'a>, from: Nanos) -> Option<Self> {
        if let Some(rate) = load.rate {
            let times = Times::Rate { rng: Rng::new(load.seed).split("arrival"), rate };
            let mut schedule = Self { times, next: from, taken: 0 };
            schedule.take();
            schedule.taken = 0;
            return Some(schedule);
        }
        let replay = load.replay.filter(|replay| replay.speed.is_some())?;
        Some(Self { times: Times::Trace { replay, from }, next: from, taken: 0 })
    }

    /// Returns the due time of the next request.
    pub fn next(&self) -> Nanos {
        self.next
    }

    /// Returns how many requests were due so far.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns the due time of the next request and advances to the one after it.
    pub fn take(&mut self) -> Nanos {
        let due = self.next;
        self.taken += 1;
        self.next = match &mut self.times {
            Times::Rate { rng, rate } => {
                let mean_s = 1.0 / rate.iops;
                let gap_s = match rate.gaps {
                    Gaps::Constant => mean_s,
                    Gaps::Exponential => rng.exponential(mean_s),
                };
                due + Nanos::from_secs_f64(gap_s).max(Nanos(1))
            }
            Times::Trace { replay, from } => *from + replay.due(self.taken),
        };
        due
    }
}

/// Due times of the first `count` requests of `load`, which has a rate.
///
/// # Panics
/// If the load has no rate.
pub fn due(load: &Load<'_>, count: usize) -> Vec<Nanos> {
    let mut schedule = Schedule::of(load, Nanos::ZERO).expect("the load has a rate");
    (0..count).map(|_| schedule.take()).collect()
}
