//! Columns of requests and completions: bytes of little-endian numbers, which `NumPy` reads without
//! a copy.

use blockio::{Completion, Lba, Nanos, Op, Request, Status};
use lab::{Error, Kind};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyByteArray, PyBytes};

/// Maximum number of host threads.
pub(super) const THREADS_MAX: u16 = 1024;
/// Latest time that a caller may give, so that what follows from it is still a time.
pub(super) const TIME_MAX: Nanos = Nanos((1 << 59) - 1);
/// Remedy for a later one.
pub(super) const TIME_HINT: &str = "times are in nanoseconds, up to 2^59 - 1, which is 18 years";
/// Names of the statuses, in the order of their codes.
pub(crate) const STATUSES: [&str; 6] =
    ["ok", "out-of-range", "media-error", "read-only", "out-of-space", "powered-off"];

/// Columns of requests, as Python passes them: times, operations, addresses and lengths.
pub(super) type PyColumns<'py> =
    (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// Columns of requests without times, as Python passes them.
pub(super) type PyRequests = (PyBackedBytes, PyBackedBytes, PyBackedBytes);

/// Columns of requests.
#[derive(Clone, Copy)]
pub(super) struct Columns<'a> {
    pub(super) times: &'a [u8],
    pub(super) requests: Requests<'a>,
    pub(super) thread: u16,
}

/// Columns of requests without times.
#[derive(Clone, Copy, Default)]
pub(super) struct Requests<'a> {
    pub(super) ops: &'a [u8],
    pub(super) lbas: &'a [u8],
    pub(super) sectors: &'a [u8],
}

/// A request that completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompletedRequest {
    pub(super) number: u64,
    pub(super) thread: u16,
    pub(super) status: Status,
    pub(super) submitted_at: Nanos,
    pub(super) completed_at: Nanos,
}

impl<'a> Columns<'a> {
    pub(super) fn of(columns: &'a PyColumns<'_>, thread: u16) -> Self {
        let (times, ops, lbas, sectors) = columns;
        let requests =
            Requests { ops: ops.as_bytes(), lbas: lbas.as_bytes(), sectors: sectors.as_bytes() };
        Self { times: times.as_bytes(), requests, thread }
    }

    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Checks that the columns have equal lengths, and every request can be submitted at `now`.
    pub(super) fn check(&self, now: Nanos) -> Result<(), Error> {
        self.requests.check()?;
        let count = self.len();
        if self.times.len() != count * 8 {
            let text = format!("times are {}, ops are {count}", self.times.len() / 8);
            return refused(text, "give columns of one length");
        }
        if self.thread >= THREADS_MAX {
            let text = format!("thread is {}, must be below {THREADS_MAX}", self.thread);
            return refused(text, "threads are counted from 0");
        }
        let mut last = now;
        for index in 0..count {
            let at = self.time(index);
            if at > TIME_MAX {
                let text = format!("request {index} is at {} ns", at.0);
                return refused(text, TIME_HINT);
            }
            if at < last {
                let text = format!("request {index} is at {} ns, after {} ns", at.0, last.0);
                return refused(text, "sort requests by time; time never goes back");
            }
            last = at;
        }
        Ok(())
    }

    #[inline]
    pub(super) fn time(&self, index: usize) -> Nanos {
        Nanos(number64(self.times, index))
    }
}

impl<'a> Requests<'a> {
    pub(super) fn of((ops, lbas, sectors): &'a PyRequests) -> Self {
        Self { ops, lbas, sectors }
    }

    pub(super) fn len(&self) -> usize {
        self.ops.len()
    }

    /// Checks that the columns have equal lengths, and hold requests.
    pub(super) fn check(&self) -> Result<(), Error> {
        let count = self.len();
        for (name, bytes, width) in [("lbas", self.lbas, 8), ("sectors", self.sectors, 4)] {
            if bytes.len() != count * width {
                let text = format!("{name} are {}, ops are {count}", bytes.len() / width);
                return refused(text, "give columns of one length");
            }
        }
        for index in 0..count {
            let Some(op) = op(self.ops[index]) else {
                let text = format!("op of request {index} is {}", self.ops[index]);
                return refused(text, "0 reads, 1 writes, 2 trims, 3 flushes");
            };
            if op != Op::Flush && number32(self.sectors, index) == 0 {
                let text = format!("request {index} has 0 sectors");
                return refused(text, "a sector is 512 bytes; only a flush has none");
            }
        }
        Ok(())
    }

    /// First sector of the request at `index`.
    #[inline]
    pub(super) fn sector(&self, index: usize) -> u64 {
        number64(self.lbas, index)
    }

    /// The request at `index`, which was checked.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a request that is returned is copied through memory")]
    pub(super) fn request(&self, index: usize, tag: u32, thread: u16) -> Request {
        let op = op(self.ops[index]).expect("every op was checked");
        let lba = Lba(number64(self.lbas, index));
        Request { tag, thread, op, handle: 0, lba, sectors: number32(self.sectors, index) }
    }
}

/// The operation with this code.
#[inline]
pub(super) const fn op(code: u8) -> Option<Op> {
    match code {
        0 => Some(Op::Read),
        1 => Some(Op::Write),
        2 => Some(Op::Trim),
        3 => Some(Op::Flush),
        _ => None,
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

fn refused(text: String, hint: &str) -> Result<(), Error> {
    Err(Error::new(Kind::Input, text).hint(hint))
}

/// Code of a status in the column of statuses.
pub(super) const fn code(status: Status) -> u8 {
    match status {
        Status::Ok => 0,
        Status::OutOfRange => 1,
        Status::MediaError => 2,
        Status::ReadOnly => 3,
        Status::OutOfSpace => 4,
        Status::PoweredOff => 5,
    }
}

/// The failure of the request with this number on a drive of so many sectors.
pub(super) fn failed(number: u64, request: &Request, status: Status, sectors: u64) -> Error {
    let kind = match request.op {
        Op::Read => "a read",
        Op::Write => "a write",
        Op::Trim => "a trim",
        Op::Flush => "a flush",
    };
    let end = request.lba.0.saturating_add(u64::from(request.sectors));
    let text = format!(
        "request {number}, {kind} of sectors {} up to {end}, failed: {}; the drive has {sectors} \
         sectors",
        request.lba.0,
        STATUSES[usize::from(code(status))],
    );
    let hint = "errors=\"return\" returns the status of each request instead of raising this";
    Error::new(Kind::Input, text).hint(hint)
}

impl CompletedRequest {
    #[inline]
    pub(super) fn new(number: u64, done: &Completion) -> Self {
        Self {
            number,
            thread: done.thread,
            status: done.status,
            submitted_at: done.submitted_at,
            completed_at: done.completed_at,
        }
    }
}

/// Puts completions in the order of their times. The host sees few of them later than those that
/// the drive completed after them, so each moves a few places at most.
pub(super) fn order_by_time(all: &mut [CompletedRequest]) {
    for index in 1..all.len() {
        let (at, moved) = (all[index].completed_at, all[index]);
        let mut place = index;
        while place > 0 && all[place - 1].completed_at > at {
            all[place] = all[place - 1];
            place -= 1;
        }
        all[place] = moved;
    }
}

/// Columns of completions in the memory that Python gets: one block, so that what a million of
/// them needs is touched once.
pub(super) struct CompletionColumns<'a> {
    numbers: &'a mut [u8],
    completed: &'a mut [u8],
    submitted: &'a mut [u8],
    statuses: &'a mut [u8],
    len: usize,
    /// Completions that are in no column yet: each column is written in stretches, since stores
    /// that wait for memory would hold back the drive.
    recent: Vec<CompletedRequest>,
}

/// Completions that are written to columns at once.
const RECENT_MAX: usize = 512;

/// Bytes of a completion: number, time of completion, time of submission, status.
const COMPLETION_BYTES: usize = 25;

/// Columns of completions as Python gets them, and how many there are: numbers, times of
/// completion, times of submission, statuses, each with room for as many as the block has.
pub(super) type PyCompletions<'py> = (Bound<'py, PyByteArray>, usize);

impl<'a> CompletionColumns<'a> {
    fn new(block: &'a mut [u8]) -> Self {
        let capacity = block.len() / COMPLETION_BYTES;
        assert_eq!(block.len(), capacity * COMPLETION_BYTES, "a block of whole completions");
        let (numbers, rest) = block.split_at_mut(capacity * 8);
        let (completed, rest) = rest.split_at_mut(capacity * 8);
        let (submitted, statuses) = rest.split_at_mut(capacity * 8);
        Self { numbers, completed, submitted, statuses, len: 0, recent: Vec::new() }
    }

    /// Adds a completion; those that are added one by one are put in the order of their times.
    #[inline]
    pub(super) fn push(&mut self, done: &CompletedRequest) {
        self.recent.push(*done);
        if self.recent.len() == RECENT_MAX {
            self.write_recent();
        }
    }

    #[inline(never)]
    fn write_recent(&mut self) {
        let (from, mut recent) = (self.len, std::mem::take(&mut self.recent));
        order_by_time(&mut recent);
        self.append(&recent);
        self.merge(from);
        recent.clear();
        self.recent = recent;
    }

    /// Adds completions in their own order.
    fn append(&mut self, all: &[CompletedRequest]) {
        let from = self.len;
        assert!(from + all.len() <= self.statuses.len(), "no more complete than were submitted");
        let wide = |column: &mut [u8], of: fn(&CompletedRequest) -> u64| {
            for (bytes, done) in column[from * 8..].chunks_exact_mut(8).zip(all) {
                bytes.copy_from_slice(&of(done).to_le_bytes());
            }
        };
        wide(self.numbers, |done| done.number);
        wide(self.completed, |done| done.completed_at.0);
        wide(self.submitted, |done| done.submitted_at.0);
        for (status, done) in self.statuses[from..].iter_mut().zip(all) {
            *status = code(done.status);
        }
        self.len += all.len();
    }

    /// Puts those of a stretch that is in order, and was written from `from` on, in the order of
    /// their times among all.
    fn merge(&mut self, from: usize) {
        let time = |columns: &Self, at| number64(columns.completed, at);
        for index in from.max(1)..self.len {
            let mut place = index;
            while place > 0 && time(self, place - 1) > time(self, place) {
                for column in [&mut self.numbers, &mut self.completed, &mut self.submitted] {
                    let (before, at) = column.split_at_mut(place * 8);
                    before[(place - 1) * 8..].swap_with_slice(&mut at[..8]);
                }
                self.statuses.swap(place - 1, place);
                place -= 1;
            }
            if place == index {
                // The last one so far is no later than the next.
                break;
            }
        }
    }

    /// Time of the last completion.
    pub(super) fn last(&mut self) -> Option<Nanos> {
        self.write_recent();
        self.len.checked_sub(1).map(|last| Nanos(number64(self.completed, last)))
    }
}

/// Completions that `complete` adds, `most` of them at most.
///
/// # Errors
/// Fails if `complete` does, or there is no memory for them.
pub(super) fn completions(
    py: Python<'_>,
    most: usize,
    complete: impl FnOnce(&mut CompletionColumns<'_>) -> PyResult<()>,
) -> PyResult<PyCompletions<'_>> {
    let mut len = 0;
    let block = PyByteArray::new_with(py, most * COMPLETION_BYTES, |block| {
        let mut columns = CompletionColumns::new(block);
        complete(&mut columns)?;
        columns.write_recent();
        len = columns.len;
        Ok(())
    })?;
    Ok((block, len))
}

/// Completions as columns, in their own order.
///
/// # Errors
/// Fails if there is no memory for them.
pub(super) fn into_python<'py>(
    py: Python<'py>,
    all: &[CompletedRequest],
) -> PyResult<PyCompletions<'py>> {
    completions(py, all.len(), |columns| {
        columns.append(all);
        Ok(())
    })
}
