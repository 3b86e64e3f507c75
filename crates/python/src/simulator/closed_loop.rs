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
    CompletedRequest, CompletionColumns, PyRequests, Requests, THREADS_MAX, failed, into_python,
    op, order_by_time,
};
use crate::failure::exception;
use crate::work::Pulse;

/// Requests whose memory is fetched at a time, so that their cache misses overlap.
const LOT: usize = 16;
/// Requests by which it is fetched ahead of their turn: first what a write needs to know where it
/// goes, then what it leaves behind.
const AHEAD: [usize; 2] = [8 * LOT, 4 * LOT];

/// Source of the requests of a closed loop, which sees their completions.
pub(super) trait Feed {
    /// Returns the next request of `thread`, which follows what was noted last, except for its
    /// first ones; nothing if there is none.
    ///
    /// # Errors
    /// Fails if a callback raises, or returns what is no request.
    fn next(&mut self, thread: u16, drive: &Drive) -> PyResult<Option<(Op, Lba, u32)>>;

    /// Notes a completion.
    fn note(&mut self, done: &CompletedRequest);

    /// Puts the completions in the order of their times; returns the last one.
    fn order_by_time(&mut self) -> Option<Nanos>;
}

/// A function that is called for each request.
pub(super) struct Callback {
    next_request: Py<PyAny>,
    pub(super) done: Vec<CompletedRequest>,
}

/// A function that is called for columns of requests whenever they run out.
pub(super) struct Batches {
    next_requests: Option<Py<PyAny>>,
    cursor: Cursor,
    pub(super) done: Vec<CompletedRequest>,
    /// Completions that the function has seen.
    seen: usize,
}

/// Columns of all requests, and columns for their completions.
pub(super) struct Whole<'a, 'b> {
    cursor: Cursor,
    done: &'a mut CompletionColumns<'b>,
}

/// Columns of requests, and the index of the next one.
#[derive(Default)]
pub(super) struct Cursor {
    columns: Option<PyRequests>,
    index: usize,
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
    slots: Vec<Slot>,
    outstanding: usize,
    failure: Option<PyErr>,
}

/// The outstanding request of a slot.
#[derive(Clone, Copy)]
struct Slot {
    number: u64,
    lba: Lba,
    sectors: u32,
    op: Op,
}

impl Slot {
    const fn new(number: u64, request: &Request) -> Self {
        Self { number, lba: request.lba, sectors: request.sectors, op: request.op }
    }
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
                    self.slots.push(Slot::new(self.submitted, &request));
                    self.submit(at, request);
                }
            }
        }
        // By reference: a copy would wait for what was just stored piece by piece.
        while let Some(done) = &self.drive.next_completion(Nanos::MAX) {
            self.outstanding -= 1;
            let Slot { number, lba, sectors, op } = self.slots[done.tag as usize];
            feed.note(&CompletedRequest::new(number, done));
            if self.extent.is_strict && done.status != blockio::Status::Ok {
                let (tag, thread) = (done.tag, done.thread);
                let request = Request { tag, thread, op, handle: 0, lba, sectors };
                let error = failed(number, &request, done.status, self.drive.user_sectors());
                self.failure.get_or_insert_with(|| exception(&error));
            }
            if let Err(signal) = pulse.beat() {
                self.failure.get_or_insert(signal);
            }
            if let Some(next) = self.drawn(feed, done.thread, done.tag, done.completed_at) {
                self.slots[done.tag as usize] = Slot::new(self.submitted, &next);
                self.submit(done.completed_at, next);
            }
        }
        assert_eq!(self.outstanding, 0, "everything that was submitted completes");
        self.failure.take().map_or(Ok(()), Err)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a request that is returned is copied through memory")]
    fn submit(&mut self, at: Nanos, request: Request) {
        self.drive.submit(at, request);
        self.submitted += 1;
        self.outstanding += 1;
    }

    /// The next request of a slot; none once the loop has ended.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a request that is returned is copied through memory")]
    fn drawn(&mut self, feed: &mut impl Feed, thread: u16, tag: u32, at: Nanos) -> Option<Request> {
        let is_over = self.failure.is_some()
            || at >= self.extent.until
            || self.submitted - self.first >= self.extent.requests_max;
        if is_over {
            return None;
        }
        match feed.next(thread, self.drive) {
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

impl Callback {
    pub(super) const fn new(next_request: Py<PyAny>) -> Self {
        Self { next_request, done: Vec::new() }
    }
}

impl Feed for Callback {
    fn next(&mut self, thread: u16, _: &Drive) -> PyResult<Option<(Op, Lba, u32)>> {
        Python::attach(|py| {
            // A slot that begins follows no completion: it begins before any.
            let done = self.done.last().map(Completion::from);
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

    fn note(&mut self, done: &CompletedRequest) {
        self.done.push(*done);
    }

    fn order_by_time(&mut self) -> Option<Nanos> {
        order_by_time(&mut self.done);
        self.done.last().map(|last| last.completed_at)
    }
}

impl Batches {
    pub(super) fn new(next_requests: Py<PyAny>) -> Self {
        let next_requests = Some(next_requests);
        Self { next_requests, cursor: Cursor::default(), done: Vec::new(), seen: 0 }
    }

    /// Asks for more, and passes what completed meanwhile.
    #[cold]
    fn refill(&mut self) -> PyResult<()> {
        let Some(next_requests) = &self.next_requests else { return Ok(()) };
        let columns: Option<PyRequests> = Python::attach(|py| {
            let mut fresh = self.done[self.seen..].to_vec();
            order_by_time(&mut fresh);
            let columns = into_python(py, &fresh)?;
            next_requests.bind(py).call1((columns,))?.extract()
        })?;
        self.seen = self.done.len();
        self.cursor = Cursor::new(columns)?;
        if self.cursor.len() == 0 {
            self.next_requests = None;
        }
        Ok(())
    }
}

impl Feed for Batches {
    #[inline]
    fn next(&mut self, _: u16, drive: &Drive) -> PyResult<Option<(Op, Lba, u32)>> {
        if self.cursor.index == self.cursor.len() {
            self.refill()?;
        }
        Ok(self.cursor.next(drive))
    }

    fn note(&mut self, done: &CompletedRequest) {
        self.done.push(*done);
    }

    fn order_by_time(&mut self) -> Option<Nanos> {
        order_by_time(&mut self.done);
        self.done.last().map(|last| last.completed_at)
    }
}

impl<'a, 'b> Whole<'a, 'b> {
    pub(super) const fn new(cursor: Cursor, done: &'a mut CompletionColumns<'b>) -> Self {
        Self { cursor, done }
    }
}

impl Feed for Whole<'_, '_> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a request that is returned is copied through memory")]
    fn next(&mut self, _: u16, drive: &Drive) -> PyResult<Option<(Op, Lba, u32)>> {
        Ok(self.cursor.next(drive))
    }

    #[inline]
    fn note(&mut self, done: &CompletedRequest) {
        self.done.push(done);
    }

    fn order_by_time(&mut self) -> Option<Nanos> {
        self.done.last()
    }
}

impl Cursor {
    /// # Errors
    /// Fails if the columns are no requests.
    pub(super) fn new(columns: Option<PyRequests>) -> PyResult<Self> {
        let cursor = Self { columns, index: 0 };
        cursor.requests().check().map_err(|error| exception(&error))?;
        Ok(cursor)
    }

    pub(super) fn len(&self) -> usize {
        self.requests().len()
    }

    fn requests(&self) -> Requests<'_> {
        self.columns.as_ref().map_or_else(Requests::default, Requests::of)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a request that is returned is copied through memory")]
    fn next(&mut self, drive: &Drive) -> Option<(Op, Lba, u32)> {
        let requests = self.requests();
        if self.index == requests.len() {
            return None;
        }
        if self.index.is_multiple_of(LOT) {
            fetch(requests, self.index, drive);
        }
        let request = requests.request(self.index, 0, 0);
        self.index += 1;
        Some((request.op, request.lba, request.sectors))
    }
}

/// Fetches memory for the lots of requests that follow `index` by [`AHEAD`].
#[inline(never)]
fn fetch(requests: Requests<'_>, index: usize, drive: &Drive) {
    let lot = |ahead: usize| {
        let end = requests.len();
        let indexes = (index + ahead).min(end)..(index + ahead + LOT).min(end);
        let sectors =
            indexes.map(move |index| (requests.request(index, 0, 0).op, requests.sector(index)));
        sectors.filter(|(_, sector)| *sector < drive.user_sectors())
    };
    lot(AHEAD[0]).for_each(|(_, sector)| drive.prefetch(sector));
    let written = lot(AHEAD[1]).filter(|(op, _)| *op == Op::Write);
    written.for_each(|(_, sector)| drive.prefetch_write(sector));
}
