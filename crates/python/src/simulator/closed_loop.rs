//! Closed loops: each completion is followed at once by the next request of its thread.
//!
//! ```text
//! feed ──► request ──► drive ──► completion ──► feed ──► ...
//!  a callback for each completion, or columns that a callback provides whenever they run out
//! ```
//!
//! Requests are submitted in the order in which the drive completes earlier ones, as by
//! `floatgate run`.

use blockio::{Lba, Nanos, Op, Request};
use lab::ssd::Drive;
use lab::{Error, Kind};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::Completion;
use super::columns::{
    CompletedRequest, PyRequests, Requests, THREADS_MAX, failed, into_python, op, order_by_time,
};
use crate::failure::exception;
use crate::work::Pulse;

/// Requests by which the processor fetches what a request will need ahead of its turn.
const AHEAD: usize = 16;

/// Source of the requests of a closed loop.
pub(super) trait Feed {
    /// Returns the next request of `thread`, which follows `done`, except for its first ones;
    /// nothing if there is none.
    ///
    /// # Errors
    /// Fails if a callback raises, or returns what is no request.
    fn next(
        &mut self,
        thread: u16,
        done: &[CompletedRequest],
        drive: &Drive,
    ) -> PyResult<Option<(Op, Lba, u32)>>;
}

/// A function that is called for each request.
pub(super) struct Callback {
    pub(super) next_request: Py<PyAny>,
}

/// Columns of requests, and a function that is called for more of them.
pub(super) struct Batches {
    next_requests: Option<Py<PyAny>>,
    /// None where they have run out for good.
    columns: Option<PyRequests>,
    index: usize,
    /// Completions that the function has seen.
    seen: usize,
}

/// Shape and end of a closed loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) threads: u16,
    pub(super) queue_per_thread: u16,
    /// Requests at most.
    pub(super) requests_max: u64,
    /// Time from which on nothing is submitted.
    pub(super) until: Nanos,
    pub(super) is_strict: bool,
}

/// A closed loop under way: a slot for each outstanding request.
pub(super) struct ClosedLoop<'a> {
    pub(super) drive: &'a mut Drive,
    pub(super) extent: Extent,
    /// Number of the first request.
    pub(super) first: u64,
    pub(super) submitted: u64,
    pub(super) done: Vec<CompletedRequest>,
    slots: Vec<(u64, Request)>,
    outstanding: usize,
    failure: Option<PyErr>,
}

impl Extent {
    /// # Errors
    /// Fails if there are no threads, or too many.
    pub(super) fn check(&self) -> Result<(), Error> {
        for (name, value) in [("threads", self.threads), ("queue", self.queue_per_thread)] {
            if value == 0 || value > THREADS_MAX {
                let text = format!("{name} is {value}, must be from 1 to {THREADS_MAX}");
                return Err(Error::new(Kind::Input, text));
            }
        }
        Ok(())
    }
}

impl<'a> ClosedLoop<'a> {
    pub(super) fn new(drive: &'a mut Drive, extent: Extent, first: u64) -> Self {
        Self {
            drive,
            extent,
            first,
            submitted: first,
            done: Vec::new(),
            slots: Vec::new(),
            outstanding: 0,
            failure: None,
        }
    }

    /// Runs from `at` on until the feed ends and everything has completed.
    ///
    /// # Errors
    /// Fails if a request does and that is not asked for, the feed fails, or a signal arrives;
    /// what was submitted has completed then.
    pub(super) fn run(&mut self, feed: &mut impl Feed, at: Nanos) -> PyResult<()> {
        let mut pulse = Pulse::new();
        for thread in 0..self.extent.threads {
            for _ in 0..self.extent.queue_per_thread {
                let slot = self.slots.len();
                let tag = u32::try_from(slot).expect("2^20 slots at most");
                if let Some(request) = self.drawn(feed, thread, tag, at) {
                    self.slots.push((self.submitted, request));
                    self.submit(at, request);
                }
            }
        }
        while let Some(done) = self.drive.next_completion(Nanos::MAX) {
            self.outstanding -= 1;
            let (number, request) = self.slots[done.tag as usize];
            self.done.push(CompletedRequest::new(number, &done));
            if self.extent.is_strict && done.status != blockio::Status::Ok {
                let error = failed(number, &request, done.status, self.drive.user_sectors());
                self.failure.get_or_insert_with(|| exception(&error));
            }
            if let Err(signal) = pulse.beat() {
                self.failure.get_or_insert(signal);
            }
            if let Some(next) = self.drawn(feed, done.thread, done.tag, done.completed_at) {
                self.slots[done.tag as usize] = (self.submitted, next);
                self.submit(done.completed_at, next);
            }
        }
        assert_eq!(self.outstanding, 0, "everything that was submitted completes");
        self.failure.take().map_or(Ok(()), Err)
    }

    #[inline]
    fn submit(&mut self, at: Nanos, request: Request) {
        self.drive.submit(at, request);
        self.submitted += 1;
        self.outstanding += 1;
    }

    /// The next request of a slot; none once the loop has ended.
    #[inline]
    fn drawn(&mut self, feed: &mut impl Feed, thread: u16, tag: u32, at: Nanos) -> Option<Request> {
        let is_over = self.failure.is_some()
            || at >= self.extent.until
            || self.submitted - self.first >= self.extent.requests_max;
        if is_over {
            return None;
        }
        match feed.next(thread, &self.done, self.drive) {
            Ok(next) => {
                let (op, lba, sectors) = next?;
                Some(Request { tag, thread, op, handle: 0, lba, sectors })
            }
            Err(error) => {
                self.failure = Some(error);
                None
            }
        }
    }
}

impl Feed for Callback {
    fn next(
        &mut self,
        thread: u16,
        done: &[CompletedRequest],
        _: &Drive,
    ) -> PyResult<Option<(Op, Lba, u32)>> {
        Python::attach(|py| {
            // A slot that begins follows no completion: it begins before any.
            let done = done.last().map(Completion::from);
            let next = self.next_request.bind(py).call1((thread, done))?;
            if next.is_none() {
                return Ok(None);
            }
            let no_request = || {
                let text = format!("the callback returned {next} for thread {thread}");
                let hint = "return (op, lba, sectors), whole numbers, or None to end the thread";
                exception(&Error::new(Kind::Input, text).hint(hint))
            };
            let parts = next.cast::<PyTuple>().map_err(|_| no_request())?;
            let (code, lba, sectors): (u8, u64, u32) = parts.extract().map_err(|_| no_request())?;
            let op = op(code).ok_or_else(no_request)?;
            if sectors == 0 && op != Op::Flush {
                return Err(no_request());
            }
            Ok(Some((op, Lba(lba), sectors)))
        })
    }
}

impl Batches {
    /// # Errors
    /// Fails if the columns are no requests.
    pub(super) fn new(
        next_requests: Option<Py<PyAny>>,
        columns: Option<PyRequests>,
    ) -> PyResult<Self> {
        let batches = Self { next_requests, columns, index: 0, seen: 0 };
        batches.requests().check().map_err(|error| exception(&error))?;
        Ok(batches)
    }

    fn requests(&self) -> Requests<'_> {
        self.columns.as_ref().map_or_else(Requests::default, Requests::of)
    }

    /// Asks for more, and passes what completed meanwhile.
    #[cold]
    fn refill(&mut self, done: &[CompletedRequest]) -> PyResult<()> {
        let Some(next_requests) = &self.next_requests else { return Ok(()) };
        let columns: Option<PyRequests> = Python::attach(|py| {
            let mut fresh = done[self.seen..].to_vec();
            order_by_time(&mut fresh);
            let columns = into_python(py, &fresh)?;
            next_requests.bind(py).call1((columns,))?.extract()
        })?;
        self.seen = done.len();
        (self.columns, self.index) = (columns, 0);
        self.requests().check().map_err(|error| exception(&error))?;
        if self.requests().len() == 0 {
            self.next_requests = None;
        }
        Ok(())
    }
}

impl Feed for Batches {
    #[inline]
    fn next(
        &mut self,
        _: u16,
        done: &[CompletedRequest],
        drive: &Drive,
    ) -> PyResult<Option<(Op, Lba, u32)>> {
        if self.index == self.requests().len() {
            self.refill(done)?;
        }
        let (requests, index) = (self.requests(), self.index);
        if index == requests.len() {
            return Ok(None);
        }
        if index + AHEAD < requests.len() {
            let sector = requests.sector(index + AHEAD);
            if sector < drive.user_sectors() {
                drive.prefetch(sector);
            }
        }
        let request = requests.request(index, 0, 0);
        self.index += 1;
        Ok(Some((request.op, request.lba, request.sectors)))
    }
}
