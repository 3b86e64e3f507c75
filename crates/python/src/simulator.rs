//! A drive that Python code drives request by request.
//!
//! ```text
//! times, ops, lbas, sectors ──► submit ──► drive ──► advance ──► numbers, completed, statuses
//! ```
//!
//! Invariants:
//! - Time never goes back: a request with a time before the latest known one is refused.
//! - Requests are numbered from 0 in the order of submission, over all ways to submit them.
//! - A completion is reported once, and not before its time has come.
//! - One caller at a time: what a callback of a closed loop asks of its own drive is refused.

mod closed_loop;
mod columns;

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, TryLockError};

use blockio::{Lba, Nanos, Op, Request, Status};
use lab::ssd::Drive;
use lab::{Error, Kind};
use pyo3::prelude::*;

use self::closed_loop::{Batches, Callback, ClosedLoop, Cursor, Extent, Feed, Whole};
pub(crate) use self::columns::STATUSES;
use self::columns::{
    Columns, CompletedRequest, PyColumns, PyCompletions, PyRequests, TIME_HINT, TIME_MAX, code,
    completions, failed, into_python,
};
use crate::drive::DriveOrder;
use crate::failure::{exception, json, order, refused};
use crate::work::Pulse;

/// Sectors of each write of a fill: 128 KiB.
const FILL_SECTORS: u32 = 256;
/// Writes of a fill that are outstanding at once.
const FILL_DEPTH: u32 = 32;
/// Maximum number of outstanding requests, so that tags of 32 bits are unique.
const OUTSTANDING_MAX: u64 = 1 << 31;

/// A drive in virtual time that takes requests from the caller.
#[pyclass(frozen, module = "floatgate._core")]
pub(crate) struct Simulator {
    sectors: u64,
    state: Mutex<State>,
}

/// A drive, and the requests that it has not reported.
#[derive(Clone)]
struct State {
    drive: Drive,
    now: Nanos,
    submitted: u64,
    /// Requests whose completion the drive has returned.
    completed: u64,
    /// Completions that were not reported yet, in the order of their times.
    unreported: VecDeque<CompletedRequest>,
}

/// A function for each request, columns of all, or a function for columns of some; one of them.
type PyFeed = (Option<Py<PyAny>>, Option<PyRequests>, Option<Py<PyAny>>);

/// A request that completed.
#[pyclass(frozen, get_all, module = "floatgate._core")]
pub(crate) struct Completion {
    /// Number of the request.
    request: u64,
    /// Thread that submitted it.
    thread: u16,
    /// Time at which it was submitted, in nanoseconds.
    submitted_ns: u64,
    /// Time at which the host sees its completion, in nanoseconds.
    completed_ns: u64,
    /// Status as an index of `STATUSES`.
    status: u8,
}

/// Request, thread, times of submission and completion, and status.
type CompletionParts = (u64, u16, u64, u64, u8);

impl From<&CompletedRequest> for Completion {
    fn from(done: &CompletedRequest) -> Self {
        Self {
            request: done.number,
            thread: done.thread,
            submitted_ns: done.submitted_at.0,
            completed_ns: done.completed_at.0,
            status: code(done.status),
        }
    }
}

#[pymethods]
impl Completion {
    /// A completion of the parts that a pickle has: request, thread, times and status.
    #[staticmethod]
    const fn of_parts(parts: CompletionParts) -> Self {
        let (request, thread, submitted_ns, completed_ns, status) = parts;
        Self { request, thread, submitted_ns, completed_ns, status }
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (CompletionParts,))> {
        let Self { request, thread, submitted_ns, completed_ns, status } = *self;
        let make = py.get_type::<Self>().getattr("of_parts")?;
        Ok((make, ((request, thread, submitted_ns, completed_ns, status),)))
    }

    /// Time from submission to completion, in nanoseconds.
    #[getter]
    const fn latency_ns(&self) -> u64 {
        self.completed_ns - self.submitted_ns
    }

    fn __repr__(&self) -> String {
        let Self { request, completed_ns, .. } = self;
        format!("<Completion of request {request} at {completed_ns} ns>")
    }
}

impl State {
    /// Number of the request with this tag, among those that are outstanding.
    #[inline]
    fn number(&self, tag: u32) -> u64 {
        let back = low(self.submitted).wrapping_sub(tag);
        self.submitted - u64::from(back)
    }

    fn submit_all(&mut self, columns: Columns<'_>) -> PyResult<()> {
        columns.check(self.now).map_err(|error| exception(&error))?;
        let outstanding = self.submitted - self.completed + columns.len() as u64;
        if outstanding > OUTSTANDING_MAX {
            let text = format!("{outstanding} requests would be outstanding");
            return Err(refused(text, "advance in between, so that fewer than 2^31 are"));
        }
        let mut pulse = Pulse::new();
        for index in 0..columns.len() {
            let at = columns.time(index);
            let request = columns.requests.request(index, low(self.submitted), columns.thread);
            self.collect(at, &mut pulse)?;
            self.now = at;
            self.drive.submit(at, request);
            self.submitted += 1;
            pulse.beat()?;
        }
        Ok(())
    }

    /// Completions of requests that are submitted to an idle drive, in the order of the requests.
    fn run_all(
        &mut self,
        columns: Columns<'_>,
        is_strict: bool,
    ) -> PyResult<Vec<CompletedRequest>> {
        let first = self.submitted;
        self.check_idle("running requests")?;
        self.submit_all(columns)?;
        self.collect(Nanos::MAX, &mut Pulse::new())?;
        let mut done = self.report(|_| true);
        self.now = done.last().map_or(self.now, |last| self.now.max(last.completed_at));
        done.sort_unstable_by_key(|done| done.number);
        if let Some(bad) = done.iter().find(|done| is_strict && done.status != Status::Ok) {
            let index = usize::try_from(bad.number - first).expect("it is one of the columns");
            let request = columns.requests.request(index, 0, columns.thread);
            let sectors = self.drive.user_sectors();
            return Err(exception(&failed(bad.number, &request, bad.status, sectors)));
        }
        Ok(done)
    }

    /// Lets time pass to `until`, or to the last completion, and notes what the drive completes.
    #[inline]
    fn collect(&mut self, until: Nanos, pulse: &mut Pulse) -> PyResult<()> {
        while let Some(completion) = self.drive.next_completion(until) {
            self.note(&completion);
            pulse.beat()?;
        }
        Ok(())
    }

    #[inline]
    fn note(&mut self, completion: &blockio::Completion) {
        self.completed += 1;
        assert!(self.completed <= self.submitted, "what completes was submitted");
        let done = CompletedRequest::new(self.number(completion.tag), completion);
        let mut place = self.unreported.len();
        self.unreported.push_back(done);
        // The host may see a completion a little later than the drive is done.
        while place > 0 && self.unreported[place - 1].completed_at > done.completed_at {
            self.unreported.swap(place - 1, place);
            place -= 1;
        }
    }

    /// Returns those noted completions whose time is due, in their order.
    fn report(&mut self, is_due: impl Fn(Nanos) -> bool) -> Vec<CompletedRequest> {
        let due = self.unreported.partition_point(|done| is_due(done.completed_at));
        self.unreported.drain(..due).collect()
    }

    /// The next completion, whenever it is; none if nothing is outstanding.
    ///
    /// # Errors
    /// Fails if a signal arrives.
    fn next(&mut self) -> PyResult<Option<CompletedRequest>> {
        let mut pulse = Pulse::new();
        loop {
            // Another thread may see a later one earlier.
            let earliest = self.unreported.front().map_or(Nanos::MAX, |done| done.completed_at);
            let Some(completion) = self.drive.next_completion(earliest) else { break };
            self.note(&completion);
            pulse.beat()?;
        }
        let done = self.unreported.pop_front();
        self.now = done.map_or(self.now, |done| self.now.max(done.completed_at));
        Ok(done)
    }

    /// Runs a closed loop; `feed` has its completions.
    fn close_loop(&mut self, feed: &mut impl Feed, extent: Extent) -> PyResult<()> {
        let mut closed = ClosedLoop::new(&mut self.drive, extent, self.submitted);
        let ended = closed.run(feed, self.now);
        let submitted = closed.submitted;
        self.completed += submitted - self.submitted;
        self.submitted = submitted;
        self.now = feed.order_by_time().map_or(self.now, |last| self.now.max(last));
        ended
    }

    fn outstanding(&self) -> u64 {
        self.submitted - self.completed + self.unreported.len() as u64
    }

    /// # Errors
    /// Fails if a request is outstanding.
    fn check_idle(&self, attempt: &str) -> PyResult<()> {
        match self.outstanding() {
            0 => Ok(()),
            count => {
                let text = format!("{attempt} while {count} requests are outstanding");
                Err(refused(text, "advance() first"))
            }
        }
    }

    /// Writes every sector once, in order.
    fn write_all(&mut self) -> PyResult<()> {
        let sectors = self.drive.user_sectors();
        let (mut next, mut at, mut pulse) = (0, self.now, Pulse::new());
        let mut failure = None;
        let write = |tag, first| {
            let length = FILL_SECTORS.min(u32::try_from(sectors - first).unwrap_or(u32::MAX));
            let (op, lba) = (Op::Write, Lba(first));
            Request { tag, thread: 0, op, handle: 0, lba, sectors: length }
        };
        let mut under_way = Vec::new();
        while next < sectors && under_way.len() < FILL_DEPTH as usize {
            let tag = u32::try_from(under_way.len()).expect("a fill has few outstanding");
            let request = write(tag, next);
            self.drive.submit(at, request);
            next += u64::from(request.sectors);
            under_way.push(request);
        }
        while let Some(done) = self.drive.next_completion(Nanos::MAX) {
            at = at.max(done.completed_at);
            let place = &mut under_way[done.tag as usize];
            if done.status != Status::Ok && failure.is_none() {
                let error = failed(u64::from(done.tag), place, done.status, sectors);
                let filling = Error::new(Kind::Input, "filling the drive").source(error);
                failure = Some(exception(&filling));
            }
            if let Err(signal) = pulse.beat() {
                failure.get_or_insert(signal);
            }
            if next < sectors && failure.is_none() {
                *place = write(done.tag, next);
                self.drive.submit(at, *place);
                next += u64::from(place.sectors);
            }
        }
        self.now = at;
        failure.map_or(Ok(()), Err)
    }
}

impl Simulator {
    fn of(state: State) -> Self {
        Self { sectors: state.drive.user_sectors(), state: Mutex::new(state) }
    }

    /// # Errors
    /// Fails if the drive is at work: for another thread, or a closed loop that calls this one.
    fn state(&self) -> PyResult<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(_)) => Err(refused(
                "the simulator failed before",
                "its state is unknown: create another one, and report the failure",
            )),
            Err(TryLockError::WouldBlock) => Err(refused(
                "the simulator is at work",
                "a callback knows the time from the completion that it is called with; threads \
                 that work at once need a copy() each",
            )),
        }
    }
}

/// The lower half of a count.
#[expect(clippy::cast_possible_truncation, reason = "the lower half is what is asked for")]
const fn low(count: u64) -> u32 {
    count as u32
}

#[pymethods]
impl Simulator {
    /// A purged drive.
    #[new]
    fn new(order_json: &str) -> PyResult<Self> {
        let asked: DriveOrder = order(order_json)?;
        let made = || -> Result<Drive, Error> {
            let setup = asked.model_setup()?.with_seed(asked.seed);
            Drive::new(&asked.spec()?, &setup)
                .map_err(|source| Error::new(Kind::Input, "setting up the drive").source(source))
        };
        let drive = made().map_err(|error| exception(&error))?;
        let unreported = VecDeque::new();
        Ok(Self::of(State { drive, now: Nanos::ZERO, submitted: 0, completed: 0, unreported }))
    }

    /// Sectors of 512 bytes that the host sees, after time lapse.
    #[getter]
    const fn sectors(&self) -> u64 {
        self.sectors
    }

    /// The current virtual time in nanoseconds.
    #[getter]
    fn now_ns(&self) -> PyResult<u64> {
        Ok(self.state()?.now.0)
    }

    /// Number of requests that were submitted, which is the number of the next one.
    #[getter]
    fn submitted(&self) -> PyResult<u64> {
        Ok(self.state()?.submitted)
    }

    /// Number of outstanding requests.
    #[getter]
    fn outstanding(&self) -> PyResult<u64> {
        Ok(self.state()?.outstanding())
    }

    /// Submits requests at their times. Returns the requests that completed before the last one.
    #[pyo3(signature = (columns, thread=0))]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 extracts values, not references")]
    fn submit<'py>(
        &self,
        py: Python<'py>,
        columns: PyColumns<'py>,
        thread: u16,
    ) -> PyResult<PyCompletions<'py>> {
        let columns = Columns::of(&columns, thread);
        let state = &mut *self.state()?;
        let done = py.detach(|| {
            state.submit_all(columns)?;
            // What completes at the same time is left: the caller may be about to wait for it.
            let now = state.now;
            PyResult::Ok(state.report(|at| at < now))
        })?;
        into_python(py, &done)
    }

    /// Submits requests to an idle drive and waits for all of them. Returns their completions in
    /// the order of the requests. A failure of one of them is raised if `is_strict`.
    #[pyo3(signature = (columns, thread=0, is_strict=true))]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 extracts values, not references")]
    fn run<'py>(
        &self,
        py: Python<'py>,
        columns: PyColumns<'py>,
        thread: u16,
        is_strict: bool,
    ) -> PyResult<PyCompletions<'py>> {
        let columns = Columns::of(&columns, thread);
        let state = &mut *self.state()?;
        let done = py.detach(|| state.run_all(columns, is_strict))?;
        into_python(py, &done)
    }

    /// Advances time to `until_ns`, or until no request is outstanding. Returns the requests that
    /// completed by then.
    #[pyo3(signature = (until_ns=None))]
    fn advance<'py>(&self, py: Python<'py>, until_ns: Option<u64>) -> PyResult<PyCompletions<'py>> {
        let until = until_ns.map_or(Nanos::MAX, Nanos);
        let state = &mut *self.state()?;
        if until < state.now {
            let text = format!("advancing to {} ns, after {} ns", until.0, state.now.0);
            return Err(refused(text, "time never goes back"));
        }
        if until_ns.is_some_and(|it| it > TIME_MAX.0) {
            return Err(refused(format!("advancing to {} ns", until.0), TIME_HINT));
        }
        let done = py.detach(|| {
            state.collect(until, &mut Pulse::new())?;
            PyResult::Ok(state.report(|at| at <= until))
        })?;
        let last = done.last().map_or(state.now, |last| state.now.max(last.completed_at));
        state.now = if until == Nanos::MAX { last } else { until };
        into_python(py, &done)
    }

    /// Advances time to the next completion, and returns it; `None` if no request is outstanding.
    fn next_completion(&self) -> PyResult<Option<Completion>> {
        Ok(self.state()?.next()?.as_ref().map(Completion::from))
    }

    /// Keeps `queue` requests of each of `threads` outstanding on an idle drive: `shape` has both,
    /// the most requests, and the time from which on none is submitted. `feed` is a function that
    /// is called for each request, columns of all requests, or a function that is called for
    /// columns whenever they run out. Returns the completions.
    fn closed_loop<'py>(
        &self,
        py: Python<'py>,
        shape: (u16, u16, Option<u64>, Option<u64>),
        is_strict: bool,
        feed: PyFeed,
    ) -> PyResult<PyCompletions<'py>> {
        let (threads, queue_per_thread, requests, until_ns) = shape;
        let (next_request, columns, next_requests) = feed;
        let requests_max = requests.unwrap_or(u64::MAX);
        let until = until_ns.map_or(TIME_MAX, Nanos);
        let extent = Extent { threads, queue_per_thread, requests_max, until, is_strict };
        extent.check().map_err(|error| exception(&error))?;
        let state = &mut *self.state()?;
        state.check_idle("starting a closed loop")?;
        if until < state.now {
            let text = format!("a closed loop until {} ns, after {} ns", until.0, state.now.0);
            return Err(refused(text, "times count from the creation of the simulator"));
        }
        if let Some(next_request) = next_request {
            // Each request calls Python: the lock stays with this thread.
            let mut feed = Callback::new(next_request);
            state.close_loop(&mut feed, extent)?;
            return into_python(py, &feed.done);
        }
        if let Some(next_requests) = next_requests {
            let mut feed = Batches::new(next_requests);
            py.detach(|| state.close_loop(&mut feed, extent))?;
            return into_python(py, &feed.done);
        }
        let cursor = Cursor::new(columns)?;
        let most = cursor.len().min(usize::try_from(requests_max).unwrap_or(usize::MAX));
        completions(py, most, |done| {
            py.detach(|| state.close_loop(&mut Whole::new(cursor, done), extent))
        })
    }

    /// Writes every sector once, in order. No request may be outstanding.
    fn fill(&self, py: Python<'_>) -> PyResult<()> {
        let state = &mut *self.state()?;
        state.check_idle("filling a drive")?;
        py.detach(|| state.write_all())
    }

    /// Sets the compressibility of the data of writes from now on, in percent.
    fn set_compressible(&self, percent: f64) -> PyResult<()> {
        if !(0.0..=100.0).contains(&percent) {
            let text = format!("compressible is {percent}, must be from 0 to 100 percent");
            return Err(exception(&Error::new(Kind::Input, text)));
        }
        self.state()?.drive.set_compressible(percent);
        Ok(())
    }

    /// Counters of the media since the drive was created, as JSON.
    fn counters(&self) -> PyResult<String> {
        json(&counters(&self.state()?.drive))
    }

    /// An independent drive in the same state.
    fn copy(&self) -> PyResult<Self> {
        Ok(Self::of(self.state()?.clone()))
    }
}

/// Counters of a drive, for Python.
fn counters(drive: &Drive) -> serde_json::Value {
    let counters = drive.counters();
    serde_json::json!({
        "host_sent_bytes": counters.host_sent_bytes,
        "host_read_bytes": counters.host_read_bytes,
        "pages_host": counters.pages_host,
        "pages_relocation": counters.pages_relocation,
        "pages_wear": counters.pages_wear,
        "pages_parity": counters.pages_parity,
        "pages_metadata": counters.pages_metadata,
        "pages_trimmed": counters.pages_trimmed,
        "superblocks_erased": counters.superblocks_erased,
        "programmed_bytes": counters.programmed_bytes(),
    })
}
