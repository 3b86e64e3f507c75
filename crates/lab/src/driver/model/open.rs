//! The open loop: requests come at times of their own, whether or not the drive keeps up.
//!
//! At most threads times queue requests are on the drive; one that finds no place waits at the
//! host. Its latency counts from submission, as in every other figure; its response counts from the
//! time at which it was due, so waiting is in it.

use std::collections::VecDeque;

use blockio::{Nanos, Status};
use results::Latencies;
use ssd::Drive;

use super::feed::Feed;
use super::meter::{self, Meter};
use super::pressure::{OutstandingRequests, Pressure, STOP_CHECK_COMPLETIONS, failed};
use crate::Error;
use crate::driver::{Load, Watch};
use crate::schedule::Schedule;

/// Requests that come at a rate, or at the times of a trace.
#[derive(Debug)]
pub(super) struct Open<'a> {
    drive: &'a mut Drive,
    feeds: Vec<Feed>,
    schedule: Schedule<'a>,
    /// Tags that are on no request, used in turn: at first one of each thread, then the next of
    /// each, so that all threads take part alike.
    free: VecDeque<u32>,
    /// Due time of the request that has each tag.
    due_at: Vec<Nanos>,
    queue_per_thread: u32,
    responses: Latencies,
}

impl<'a> Open<'a> {
    /// Requests that are due by `schedule`.
    pub(super) fn start(
        drive: &'a mut Drive,
        feeds: Vec<Feed>,
        load: &Load<'_>,
        schedule: Schedule<'a>,
    ) -> Self {
        let threads = u32::try_from(feeds.len()).expect("threads are 16-bit numbers");
        let queue_per_thread = u32::from(load.queue_per_thread);
        let tags = threads * queue_per_thread;
        let of_each_thread =
            |index: u32| (0..threads).map(move |thread| thread * queue_per_thread + index);
        Self {
            drive,
            feeds,
            schedule,
            free: (0..queue_per_thread).flat_map(of_each_thread).collect(),
            due_at: vec![Nanos::ZERO; tags as usize],
            queue_per_thread,
            responses: Latencies::default(),
        }
    }

    /// Latencies from the time at which each request was due, of all that was measured.
    pub(super) fn take_responses(&mut self) -> Latencies {
        std::mem::take(&mut self.responses)
    }

    /// Processes the next event, a completion or an arrival. Returns its time, unless it is after
    /// `until`.
    fn step(&mut self, until: Nanos, meter: &mut Meter) -> Result<Option<Nanos>, Error> {
        let arrives_at = self.schedule.next();
        let horizon = if self.free.is_empty() { until } else { until.min(arrives_at) };
        let Some(done) = self.drive.next_completion(horizon) else {
            return Ok((!self.free.is_empty() && arrives_at <= until).then_some(arrives_at));
        };
        self.free.push_back(done.tag);
        match done.status {
            Status::Ok => meter.count(&done),
            Status::MediaError | Status::ReadOnly => {
                meter.count_media_error();
                return Ok(Some(done.completed_at));
            }
            _ => return Err(failed(&done, self.drive.time_lapse())),
        }
        let response = done.completed_at - self.due_at[done.tag as usize];
        meter::record(&mut self.responses, response, done.stalled, self.drive.time_lapse());
        Ok(Some(done.completed_at))
    }

    /// Submits what is due at `now`, as far as there is place.
    fn submit_due(&mut self, now: Nanos) {
        while self.schedule.next() <= now {
            let Some(tag) = self.free.pop_front() else { return };
            let index = self.schedule.taken();
            self.due_at[tag as usize] = self.schedule.take();
            let feed = &mut self.feeds[(tag / self.queue_per_thread) as usize];
            // A trace has one order, whichever thread has room for its next request.
            let request = feed.replayed(index, tag);
            let request = request.unwrap_or_else(|| feed.request(tag, self.drive));
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

    fn drain(self, end: Nanos) -> OutstandingRequests {
        let outstanding = self.due_at.len() - self.free.len();
        let completions = (0..outstanding).map_while(|_| self.drive.next_completion(Nanos::MAX));
        OutstandingRequests::of(completions, end)
    }
}
