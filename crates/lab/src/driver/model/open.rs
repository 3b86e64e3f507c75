//! The open loop: requests come at times of their own, whether or not the drive keeps up.
//!
//! At most threads times queue requests are on the drive; one that finds no place waits at the
//! host. Its latency counts from submission, as in every other figure; its response counts from the
//! time at which it was due, so waiting is in it.

use std::collections::VecDeque;

use blockio::{Nanos, Rng, Status};
use results::Latencies;
use ssd::Drive;

use super::feed::Feed;
use super::meter::Meter;
use super::{Pressure, STOP_CHECK_COMPLETIONS, failed};
use crate::Error;
use crate::driver::{Gaps, Load, Rate, Watch};

/// Requests that come at a rate.
#[derive(Debug)]
pub(super) struct Open<'a> {
    drive: &'a mut Drive,
    feeds: Vec<Feed>,
    schedule: Schedule,
    /// Tags that are on no request; used in turn, so that all threads take part.
    free: VecDeque<u32>,
    /// When the request of each tag was due.
    due_at: Vec<Nanos>,
    queue_per_thread: u32,
    responses: Latencies,
}

impl<'a> Open<'a> {
    /// Requests at `rate` from `at` on.
    pub(super) fn start(
        drive: &'a mut Drive,
        feeds: Vec<Feed>,
        load: &Load<'_>,
        rate: Rate,
        at: Nanos,
    ) -> Self {
        let threads = u32::try_from(feeds.len()).expect("threads are 16-bit numbers");
        let tags = threads * u32::from(load.queue_per_thread);
        Self {
            drive,
            feeds,
            schedule: Schedule::new(rate, load.seed, at),
            free: (0..tags).collect(),
            due_at: vec![Nanos::ZERO; tags as usize],
            queue_per_thread: load.queue_per_thread.into(),
            responses: Latencies::default(),
        }
    }

    /// Latencies from the time at which each request was due, of all that was measured.
    pub(super) fn take_responses(&mut self) -> Latencies {
        std::mem::take(&mut self.responses)
    }

    /// Lets something happen: a completion, or an arrival. Returns when, unless it is after
    /// `until`.
    fn step(&mut self, until: Nanos, meter: &mut Meter) -> Result<Option<Nanos>, Error> {
        let arrives_at = self.schedule.next;
        let horizon = if self.free.is_empty() { until } else { until.min(arrives_at) };
        let Some(done) = self.drive.next_completion(horizon) else {
            return Ok((!self.free.is_empty() && arrives_at <= until).then_some(arrives_at));
        };
        self.free.push_back(done.tag);
        if done.status != Status::Ok {
            return Err(failed(&done));
        }
        meter.count(&done);
        self.responses.record((done.completed_at - self.due_at[done.tag as usize]).0);
        Ok(Some(done.completed_at))
    }

    /// Submits what is due at `now`, as far as there is place.
    fn submit_due(&mut self, now: Nanos) {
        while self.schedule.next <= now {
            let Some(tag) = self.free.pop_front() else { return };
            self.due_at[tag as usize] = self.schedule.take();
            let feed = &mut self.feeds[(tag / self.queue_per_thread) as usize];
            let request = feed.request(tag, self.drive);
            self.drive.submit(now, request);
        }
    }
}

impl Pressure for Open<'_> {
    fn drive(&self) -> &Drive {
        self.drive
    }

    fn run(
        &mut self,
        until: Nanos,
        meter: &mut Meter,
        watch: &mut dyn Watch,
    ) -> Result<bool, Error> {
        while !watch.stop() {
            for _ in 0..STOP_CHECK_COMPLETIONS {
                let Some(now) = self.step(until, meter)? else { return Ok(true) };
                self.submit_due(now);
            }
        }
        Ok(false)
    }

    fn forget(&mut self) {
        self.responses = Latencies::default();
    }

    fn drain(self) -> Nanos {
        let outstanding = self.due_at.len() - self.free.len();
        let completions = (0..outstanding).map_while(|_| self.drive.next_completion(Nanos::MAX));
        completions.map(|done| done.completed_at).max().unwrap_or(Nanos::ZERO)
    }
}

/// When requests are due.
#[derive(Debug)]
struct Schedule {
    rng: Rng,
    rate: Rate,
    next: Nanos,
}

impl Schedule {
    fn new(rate: Rate, seed: u64, from: Nanos) -> Self {
        let mut schedule = Self { rng: Rng::new(seed).split("arrival"), rate, next: from };
        schedule.take();
        schedule
    }

    /// When the next request is due; the one after it follows.
    fn take(&mut self) -> Nanos {
        let mean_s = 1.0 / self.rate.iops;
        let gap_s = match self.rate.gaps {
            Gaps::Constant => mean_s,
            Gaps::Exponential => self.rng.exponential(mean_s),
        };
        let due = self.next;
        self.next += Nanos::from_secs_f64(gap_s).max(Nanos(1));
        due
    }
}
