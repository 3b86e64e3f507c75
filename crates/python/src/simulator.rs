//! A drive that Python code drives request by request.
//!
//! Columns of requests and completions are bytes of little-endian numbers, which `NumPy` reads
//! without a copy; the package's Python half converts arrays to them.
//!
//! ```text
//! times, ops, lbas, sectors ──► submit ──► drive ──► advance ──► tags, completed, statuses
//! ```
//!
//! Invariants:
//! - Time never goes back: a request with a time before the latest known one is refused.
//! - Requests are numbered from 0 in the order of submission; completions name them.

use blockio::{Completion, Lba, Nanos, Op, Request, Status};
use lab::ssd::Drive;
use lab::{Error, Kind};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};

use crate::drive::DriveOrder;
use crate::failure::{exception, json, order};

/// Sectors of each write of a fill: 128 KiB.
const FILL_SECTORS: u32 = 256;
/// Writes of a fill that are outstanding at once.
const FILL_DEPTH: usize = 32;
/// Maximum number of host threads.
const THREADS_MAX: u16 = 1024;
/// Maximum number of outstanding requests, so that tags of 32 bits are unique.
const OUTSTANDING_MAX: u64 = 1 << 31;
/// Latest time that a caller may give, so that what follows from it is still a time.
const TIME_MAX: Nanos = Nanos(u64::MAX / 2);
/// Remedy for a later one.
const TIME_HINT: &str = "times are in nanoseconds, up to 2^63 - 1, which is 292 years";

/// A drive in virtual time that takes requests from the caller.
#[pyclass(module = "floatgate._core")]
#[derive(Clone)]
pub(crate) struct Simulator {
    drive: Drive,
    now: Nanos,
    submitted: u64,
    completed: u64,
}

/// Columns of requests.
#[derive(Clone, Copy)]
struct Columns<'a> {
    times: &'a [u8],
    ops: &'a [u8],
    lbas: &'a [u8],
    sectors: &'a [u8],
    thread: u16,
}

/// Columns of requests, as Python passes them.
type PyColumns<'py> =
    (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// Columns of completions.
#[derive(Default)]
struct Completions {
    tags: Vec<u8>,
    times: Vec<u8>,
    statuses: Vec<u8>,
}

impl Columns<'_> {
    fn len(&self) -> usize {
        self.ops.len()
    }

    /// Checks that the columns have equal lengths, and every request can be submitted at `now`.
    fn check(&self, now: Nanos) -> Result<(), Error> {
        let refused = |text: String, hint: &str| Err(Error::new(Kind::Input, text).hint(hint));
        let count = self.len();
        for (name, bytes) in [("times", self.times), ("lbas", self.lbas)] {
            if bytes.len() != count * 8 {
                let text = format!("{name} are {}, ops are {count}", bytes.len() / 8);
                return refused(text, "give columns of one length");
            }
        }
        if self.sectors.len() != count * 4 {
            let text = format!("sectors are {}, ops are {count}", self.sectors.len() / 4);
            return refused(text, "give columns of one length");
        }
        if self.thread >= THREADS_MAX {
            let text = format!("thread is {}, must be below {THREADS_MAX}", self.thread);
            return refused(text, "threads are counted from 0");
        }
        let mut last = now;
        for index in 0..count {
            let (at, request) = self.request(index, 0);
            let Some(request) = request else {
                let text = format!("op of request {index} is {}", self.ops[index]);
                return refused(text, "0 reads, 1 writes, 2 trims, 3 flushes");
            };
            if at > TIME_MAX {
                let text = format!("request {index} is at {} ns", at.0);
                return refused(text, TIME_HINT);
            }
            if at < last {
                let text = format!("request {index} is at {} ns, after {} ns", at.0, last.0);
                return refused(text, "sort requests by time; time never goes back");
            }
            if request.sectors == 0 && request.op != Op::Flush {
                let text = format!("request {index} has 0 sectors");
                return refused(text, "a sector is 512 bytes; only a flush has none");
            }
            last = at;
        }
        Ok(())
    }

    #[inline]
    fn request(&self, index: usize, tag: u32) -> (Nanos, Option<Request>) {
        let op = match self.ops[index] {
            0 => Op::Read,
            1 => Op::Write,
            2 => Op::Trim,
            3 => Op::Flush,
            _ => return (Nanos::ZERO, None),
        };
        let at = Nanos(number64(self.times, index));
        let lba = Lba(number64(self.lbas, index));
        let sectors = number32(self.sectors, index);
        (at, Some(Request { tag, thread: self.thread, op, handle: 0, lba, sectors }))
    }
}

#[inline]
fn number64(column: &[u8], index: usize) -> u64 {
    let bytes = column[index * 8..][..8].try_into().expect("eight bytes are eight");
    u64::from_le_bytes(bytes)
}

#[inline]
fn number32(column: &[u8], index: usize) -> u32 {
    let bytes = column[index * 4..][..4].try_into().expect("four bytes are four");
    u32::from_le_bytes(bytes)
}

/// Code of a status in the column of statuses.
const fn code(status: Status) -> u8 {
    match status {
        Status::Ok => 0,
        Status::OutOfRange => 1,
        Status::MediaError => 2,
        Status::ReadOnly => 3,
        Status::OutOfSpace => 4,
        Status::PoweredOff => 5,
    }
}

impl Completions {
    #[inline]
    fn push(&mut self, number: u64, done: &Completion) {
        self.tags.extend_from_slice(&number.to_le_bytes());
        self.times.extend_from_slice(&done.completed_at.0.to_le_bytes());
        self.statuses.push(code(done.status));
    }

    fn into_python(self, py: Python<'_>) -> [Bound<'_, PyByteArray>; 3] {
        [self.tags, self.times, self.statuses].map(|bytes| PyByteArray::new(py, &bytes))
    }
}

impl Simulator {
    /// Number of the request with this tag, among those that are outstanding.
    #[inline]
    fn number(&self, tag: u32) -> u64 {
        let back = low(self.submitted).wrapping_sub(tag);
        self.submitted - u64::from(back)
    }

    fn submit_all(&mut self, columns: Columns<'_>, done: &mut Completions) -> Result<(), Error> {
        columns.check(self.now)?;
        let outstanding = self.submitted - self.completed + columns.len() as u64;
        if outstanding > OUTSTANDING_MAX {
            let text = format!("{outstanding} requests would be outstanding");
            let hint = "advance in between, so that fewer than 2^31 are";
            return Err(Error::new(Kind::Input, text).hint(hint));
        }
        for index in 0..columns.len() {
            let (at, request) = columns.request(index, low(self.submitted));
            let request = request.expect("every op was checked");
            self.collect(at, done);
            self.now = at;
            self.drive.submit(at, request);
            self.submitted += 1;
        }
        Ok(())
    }

    fn run_all(&mut self, columns: Columns<'_>) -> Result<Vec<u8>, Error> {
        let first = self.submitted;
        if first != self.completed {
            let text = format!("running with {} requests outstanding", first - self.completed);
            return Err(Error::new(Kind::Input, text).hint("advance() first"));
        }
        let mut done = Completions::default();
        self.submit_all(columns, &mut done)?;
        self.collect(Nanos::MAX, &mut done);
        let mut in_order = vec![0; columns.len() * 8];
        for index in 0..columns.len() {
            let place = usize::try_from(number64(&done.tags, index) - first)
                .expect("a request is one of the columns");
            in_order[place * 8..][..8].copy_from_slice(&done.times[index * 8..][..8]);
        }
        Ok(in_order)
    }

    #[inline]
    fn collect(&mut self, until: Nanos, done: &mut Completions) {
        while let Some(completion) = self.drive.next_completion(until) {
            self.completed += 1;
            done.push(self.number(completion.tag), &completion);
            // The host may see the completion a little later than the drive completes.
            if until == Nanos::MAX {
                self.now = self.now.max(completion.completed_at);
            }
        }
        assert!(self.completed <= self.submitted, "what completes was submitted");
    }

    /// Writes every sector once, in order.
    fn write_all(&mut self) {
        let sectors = self.drive.user_sectors();
        let (mut next, mut at) = (0, self.now);
        let mut outstanding = 0;
        while next < sectors || outstanding > 0 {
            while next < sectors && outstanding < FILL_DEPTH {
                let length = FILL_SECTORS.min(u32::try_from(sectors - next).unwrap_or(u32::MAX));
                let (op, lba) = (Op::Write, Lba(next));
                let request = Request { tag: 0, thread: 0, op, handle: 0, lba, sectors: length };
                self.drive.submit(at, request);
                next += u64::from(length);
                outstanding += 1;
            }
            let done = self.drive.next_completion(Nanos::MAX).expect("a write completes");
            outstanding -= 1;
            at = at.max(done.completed_at);
        }
        self.now = at;
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
        Ok(Self { drive, now: Nanos::ZERO, submitted: 0, completed: 0 })
    }

    /// Sectors of 512 bytes that the host sees, after time lapse.
    #[getter]
    fn sectors(&self) -> u64 {
        self.drive.user_sectors()
    }

    /// The current virtual time in nanoseconds.
    #[getter]
    const fn now_ns(&self) -> u64 {
        self.now.0
    }

    /// Number of outstanding requests.
    #[getter]
    const fn outstanding(&self) -> u64 {
        self.submitted - self.completed
    }

    /// Submits requests at their times. Returns the requests that completed meanwhile.
    #[pyo3(signature = (columns, thread=0))]
    fn submit<'py>(
        &mut self,
        py: Python<'py>,
        columns: PyColumns<'py>,
        thread: u16,
    ) -> PyResult<[Bound<'py, PyByteArray>; 3]> {
        let (times, ops, lbas, sectors) = columns;
        let (times, ops) = (times.as_bytes(), ops.as_bytes());
        let (lbas, sectors) = (lbas.as_bytes(), sectors.as_bytes());
        let mut done = Completions::default();
        let columns = Columns { times, ops, lbas, sectors, thread };
        py.detach(|| self.submit_all(columns, &mut done)).map_err(|error| exception(&error))?;
        Ok(done.into_python(py))
    }

    /// Submits requests to an idle drive and waits for all of them. Returns the time of each
    /// completion, in the order of the requests.
    #[pyo3(signature = (columns, thread=0))]
    fn run<'py>(
        &mut self,
        py: Python<'py>,
        columns: PyColumns<'py>,
        thread: u16,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let (times, ops, lbas, sectors) = columns;
        let (times, ops) = (times.as_bytes(), ops.as_bytes());
        let (lbas, sectors) = (lbas.as_bytes(), sectors.as_bytes());
        let columns = Columns { times, ops, lbas, sectors, thread };
        let done = py.detach(|| self.run_all(columns)).map_err(|error| exception(&error))?;
        Ok(PyByteArray::new(py, &done))
    }

    /// Advances time to `until_ns`, or until no request is outstanding. Returns the requests that
    /// completed.
    #[pyo3(signature = (until_ns=None))]
    fn advance<'py>(
        &mut self,
        py: Python<'py>,
        until_ns: Option<u64>,
    ) -> PyResult<[Bound<'py, PyByteArray>; 3]> {
        let until = until_ns.map_or(Nanos::MAX, Nanos);
        if until < self.now {
            let text = format!("advancing to {} ns, after {} ns", until.0, self.now.0);
            let error = Error::new(Kind::Input, text).hint("time never goes back");
            return Err(exception(&error));
        }
        if until_ns.is_some_and(|it| it > TIME_MAX.0) {
            let error = Error::new(Kind::Input, format!("advancing to {} ns", until.0));
            return Err(exception(&error.hint(TIME_HINT)));
        }
        let mut done = Completions::default();
        py.detach(|| self.collect(until, &mut done));
        if until != Nanos::MAX {
            self.now = until;
        }
        Ok(done.into_python(py))
    }

    /// Writes every sector once, in order. No request may be outstanding.
    fn fill(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.submitted != self.completed {
            let text = format!("filling a drive with {} requests outstanding", self.outstanding());
            return Err(exception(&Error::new(Kind::Input, text).hint("advance() first")));
        }
        py.detach(|| self.write_all());
        Ok(())
    }

    /// Sets the compressibility of the data of writes from now on, in percent.
    fn set_compressible(&mut self, percent: f64) -> PyResult<()> {
        if !(0.0..=100.0).contains(&percent) {
            let text = format!("compressible is {percent}, must be from 0 to 100 percent");
            return Err(exception(&Error::new(Kind::Input, text)));
        }
        self.drive.set_compressible(percent);
        Ok(())
    }

    /// Counters of the media since the drive was created, as JSON.
    fn counters(&self) -> PyResult<String> {
        json(&counters(&self.drive))
    }

    /// An independent drive in the same state.
    fn copy(&self) -> Self {
        self.clone()
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
