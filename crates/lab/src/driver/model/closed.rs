//! The closed loop: every completion is answered at once by the next request of its thread.

use blockio::{Completion, Nanos, Status};
use ssd::Drive;

use super::feed::Feed;
use super::meter::Meter;
use super::pressure::{OutstandingRequests, Pressure, STOP_CHECK_COMPLETIONS, failed};
use crate::Error;
use crate::driver::{Load, Watch};

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
