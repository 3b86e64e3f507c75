//! The closed loop: every completion is answered at once by the next request of its thread.

use blockio::{Completion, Nanos, Status};
use ssd::{Drive, WarmedRequests};

use super::feed::Feed;
use super::meter::Meter;
use super::pressure::{OutstandingRequests, Pressure, STOP_CHECK_COMPLETIONS, failed};
use super::space::exhausted_by_fill;
use crate::Error;
use crate::driver::{Load, Watch};

/// Requests that a thread has in turn where only their addresses count: what is drawn at a time.
const TURN: u64 = super::feed::BATCH as u64;

/// Threads that keep a constant number of requests outstanding on a drive.
#[derive(Debug)]
pub(super) struct ClosedLoop<'a> {
    drive: &'a mut Drive,
    feeds: Vec<Feed>,
    outstanding: u32,
}

impl<'a> ClosedLoop<'a> {
    /// Submits the first requests at `at`: thread by thread, all of a thread's queue at once.
    pub(super) fn start(
        drive: &'a mut Drive,
        mut feeds: Vec<Feed>,
        load: &Load<'_>,
        at: Nanos,
    ) -> Self {
        let mut outstanding = 0;
        for feed in &mut feeds {
            for _ in 0..load.queue_per_thread {
                let request = feed.request(outstanding, drive);
                drive.submit(at, request);
                outstanding += 1;
            }
        }
        Self { drive, feeds, outstanding }
    }

    /// Threads that have not begun.
    pub(super) fn idle(drive: &'a mut Drive, feeds: Vec<Feed>) -> Self {
        Self { drive, feeds, outstanding: 0 }
    }

    /// Counts the next `count` completions, whenever they are, and answers them. Returns the time
    /// of the last of them.
    ///
    /// # Errors
    /// Fails if a request failed.
    pub(super) fn answer_next(&mut self, count: u64, meter: &mut Meter) -> Result<Nanos, Error> {
        let mut last = Nanos::ZERO;
        for _ in 0..count {
            let Some(done) = &self.drive.next_completion(Nanos::MAX) else { break };
            last = last.max(done.completed_at);
            let answered = answer(self.drive, &mut self.feeds, done, meter);
            answered.inspect_err(|_| self.outstanding -= 1)?;
        }
        Ok(last)
    }

    /// Does what the next `count` requests do to the state of the drive, in no time: threads take
    /// turns. Those that are outstanding stay so.
    ///
    /// # Errors
    /// Fails if the drive has no flash for a write.
    pub(super) fn warm(&mut self, count: u64, idle_pages: f64) -> Result<WarmedRequests, Error> {
        let mut warmed = WarmedRequests::default();
        let mut left = count;
        while left > 0 {
            for feed in &mut self.feeds {
                let turn = left.min(TURN);
                for _ in 0..turn {
                    let request = feed.request(0, self.drive);
                    if !self.drive.warm(&request, idle_pages, &mut warmed) {
                        return Err(exhausted_by_fill());
                    }
                }
                left -= turn;
            }
        }
        Ok(warmed)
    }

    /// Lets time pass beside the drive's clock, see [`Drive::pass`].
    pub(super) fn pass(&mut self, span: Nanos, share: f64, warmed: &WarmedRequests) {
        self.drive.pass(span, share, warmed);
    }

    /// Counts the next completion, whenever it is, and answers it.
    ///
    /// # Errors
    /// Fails if the request failed.
    pub(super) fn answer_one(&mut self, meter: &mut Meter) -> Result<Option<Completion>, Error> {
        let Some(done) = self.drive.next_completion(Nanos::MAX) else { return Ok(None) };
        answer(self.drive, &mut self.feeds, &done, meter)?;
        Ok(Some(done))
    }
}

impl Pressure for ClosedLoop<'_> {
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
            let answered = answer_many(self.drive, &mut self.feeds, until, meter);
            if answered.inspect_err(|_| self.outstanding -= 1)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn drain(self, end: Nanos) -> OutstandingRequests {
        let completions =
            (0..self.outstanding).map_while(|_| self.drive.next_completion(Nanos::MAX));
        OutstandingRequests::of(completions, end)
    }
}

/// The hot loop. Returns whether `until` was reached.
fn answer_many(
    drive: &mut Drive,
    feeds: &mut [Feed],
    until: Nanos,
    meter: &mut Meter,
) -> Result<bool, Error> {
    for _ in 0..STOP_CHECK_COMPLETIONS {
        // By reference: a copy would wait for what was just stored piece by piece.
        match &drive.next_completion(until) {
            Some(done) => answer(drive, feeds, done, meter)?,
            None => return Ok(true),
        }
    }
    Ok(false)
}

/// Counts a completion and submits the next request of its thread.
#[inline]
fn answer(
    drive: &mut Drive,
    feeds: &mut [Feed],
    done: &Completion,
    meter: &mut Meter,
) -> Result<(), Error> {
    match done.status {
        Status::Ok => meter.count(done),
        Status::MediaError | Status::ReadOnly => meter.count_media_error(),
        _ => return Err(failed(done, drive.time_lapse())),
    }
    let request = feeds[usize::from(done.thread)].request(done.tag, drive);
    drive.submit(done.completed_at, request);
    Ok(())
}
