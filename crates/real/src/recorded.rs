//! Recordings of applications on a real drive: each request is issued once its parent has completed
//! and its think time is over, which fio cannot do.
//!
//! ```text
//! worker: take what is due, or wait for it ──► read, write, flush or trim ──► what waited is due
//! ```
//!
//! Each worker waits for the next request itself and carries it out with a blocking system call
//! that bypasses the page cache: no request passes through a second thread.

use std::fs::{File, OpenOptions};
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use blockio::{Nanos, Op, Rng, SECTOR_BYTES};
use lab::application::{ByOp, Clock, Pending, ReplayHost, ReplayResult};
use lab::{Error, Kind};
use results::{Latencies, LatencySummary};
use rustix::fs::{FallocateFlags, OFlags, fallocate, seek};
use serde::Serialize;
use workload::recording::{RecordedRequest, Recording};

use crate::guard;

/// Maximum number of outstanding requests.
const WORKERS_MAX: u64 = 256;
/// Bytes of a write of the fill, and alignment of memory.
const FILL_BYTES: u64 = 1 << 20;
const ALIGNMENT: usize = 4096;
/// Minimum wait for which a worker sleeps; sleeping and waking takes about this long.
const NEAR: Nanos = Nanos::from_micros(60);

/// A replay on a real drive.
#[derive(Clone, Debug, Serialize)]
pub struct RealReplay {
    /// Figures of the replay.
    #[serde(flatten)]
    pub replayed: ReplayResult,
    /// Lateness: from the time at which each request was due to its issue.
    pub lateness: Option<LatencySummary>,
}

/// Replays the measured part of a recording on the file or block device at `path`. The target is
/// written once in full first, up to the size of the recorded device.
///
/// # Errors
/// Fails if the guard refuses the target, it is smaller than the recorded device, or it fails a
/// request.
pub fn replay_recording(
    recording: &Recording,
    path: &Path,
    destroy: bool,
    host: &ReplayHost,
) -> Result<RealReplay, Error> {
    let requests = recording.measured();
    if requests.is_empty() {
        let text = "the recording has no request from the time at which its benchmark counted";
        return Err(Error::new(Kind::Input, text));
    }
    // Held exclusively until the end.
    let permit = guard::permit(path, destroy)?;
    let file = open(permit.path())?;
    let size = check_size(&file, recording, host, path)?;
    let failed = |what: &str, source: std::io::Error| {
        let text = format!("{what} {}", path.display());
        Error::new(Kind::Io, text).source(source).hint(HINT)
    };
    fill(&file, size).map_err(|source| failed("filling", source))?;
    let tree = host.tree(recording);
    let state = ReplayState {
        pending: Pending::new(&tree, host, Nanos::ZERO),
        completed_at: vec![Nanos::ZERO; tree.requests.len()],
        latencies: ByOp::default(),
        lateness: Latencies::default(),
        is_polled: false,
        failure: None,
    };
    let engine = ReplayEngine {
        file: &file,
        requests: &tree.requests,
        begun: Instant::now(),
        state: Mutex::new(state),
        wake: Condvar::new(),
    };
    let bytes_max = requests.iter().map(|it| u64::from(it.sectors) * SECTOR_BYTES).max();
    thread::scope(|scope| {
        for seed in 0..outstanding_max(requests, host.copies.get().into()) {
            let engine = &engine;
            scope.spawn(move || engine.work(Buffer::new(bytes_max.unwrap_or_default(), seed)));
        }
    });
    let state = engine.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some((index, source)) = state.failure {
        let RecordedRequest { op, lba, sectors, .. } = tree.requests[index as usize];
        return Err(failed(&format!("{op:?} of {sectors} sectors at {lba} on"), source));
    }
    assert!(state.pending.is_over(), "every request was issued and completed");
    let clock = Clock::new(&tree, state.completed_at, state.pending.into_think_times());
    let replayed = ReplayResult::new(recording, &tree, &clock, &state.latencies);
    let lateness = (state.lateness.count() > 0).then(|| state.lateness.summary());
    Ok(RealReplay { replayed, lateness })
}

/// Remedy for requests that a target refuses.
const HINT: &str = "requests bypass the page cache in sectors of 512 bytes, which the device or \
                    the file system below must support";

fn open(path: &Path) -> Result<File, Error> {
    let direct = i32::try_from(OFlags::DIRECT.bits()).expect("a flag of open");
    let file = OpenOptions::new().read(true).write(true).custom_flags(direct).open(path);
    file.map_err(|source| {
        let text = format!("opening {} for direct I/O", path.display());
        Error::new(Kind::Input, text).source(source).hint(HINT)
    })
}

/// Bytes of the target that the replay reaches.
fn check_size(
    file: &File,
    recording: &Recording,
    host: &ReplayHost,
    path: &Path,
) -> Result<u64, Error> {
    let end = seek(file, rustix::fs::SeekFrom::End(0)).map_err(|source| {
        let text = format!("asking for the size of {}", path.display());
        Error::new(Kind::Io, text).source(source)
    })?;
    let (recorded, copies) = (recording.head.size_bytes, host.copies.get());
    let all = recorded.saturating_mul(copies.into());
    if all <= end {
        return Ok(all);
    }
    Err(host.too_large(all, &path.display().to_string(), end))
}

/// Writes the first `size` bytes in order, so that no read meets space that was never written.
fn fill(file: &File, size: u64) -> std::io::Result<()> {
    let block = Buffer::new(FILL_BYTES, 0);
    let mut at = 0;
    while at < size {
        let bytes = FILL_BYTES.min(size - at) / SECTOR_BYTES * SECTOR_BYTES;
        if bytes == 0 {
            break;
        }
        file.write_all_at(block.of(bytes), at)?;
        at += bytes;
    }
    file.sync_all()
}

/// Twice the maximum number of outstanding requests in the recording, for each of `copies`: a
/// slower drive has more.
fn outstanding_max(requests: &[RecordedRequest], copies: u64) -> u64 {
    let mut ends: Vec<Nanos> = requests.iter().map(|it| it.completed_at).collect();
    ends.sort_unstable();
    let (mut done, mut most) = (0, 1);
    for (index, request) in requests.iter().enumerate() {
        while ends.get(done).is_some_and(|end| *end <= request.issued_at) {
            done += 1;
        }
        most = most.max((index + 1).saturating_sub(done));
    }
    (most as u64).saturating_mul(2).saturating_mul(copies).min(WORKERS_MAX)
}

/// Memory of a worker: incompressible bytes, aligned for direct I/O.
struct Buffer {
    memory: Vec<u8>,
    start: usize,
}

impl Buffer {
    fn new(bytes: u64, seed: u64) -> Self {
        let bytes = usize::try_from(bytes).expect("a request fits into memory");
        let mut memory = vec![0; bytes + ALIGNMENT];
        let mut rng = Rng::new(seed);
        for word in memory.chunks_mut(8) {
            let random = rng.next_u64().to_le_bytes();
            word.copy_from_slice(&random[..word.len()]);
        }
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        assert!(start < ALIGNMENT, "an address is aligned within a page");
        Self { memory, start }
    }

    fn of(&self, bytes: u64) -> &[u8] {
        let bytes = usize::try_from(bytes).expect("no more than it holds");
        &self.memory[self.start..self.start + bytes]
    }

    fn of_mut(&mut self, bytes: u64) -> &mut [u8] {
        let bytes = usize::try_from(bytes).expect("no more than it holds");
        &mut self.memory[self.start..self.start + bytes]
    }
}

struct ReplayState<'a> {
    pending: Pending<'a>,
    completed_at: Vec<Nanos>,
    latencies: ByOp,
    lateness: Latencies,
    /// True while a worker polls the clock for the next request: one worker is enough.
    is_polled: bool,
    /// The first request that failed, which ends all workers.
    failure: Option<(u32, std::io::Error)>,
}

impl ReplayState<'_> {
    fn is_over(&self) -> bool {
        self.pending.is_over() || self.failure.is_some()
    }
}

/// State that the workers share.
struct ReplayEngine<'a> {
    file: &'a File,
    requests: &'a [RecordedRequest],
    begun: Instant,
    state: Mutex<ReplayState<'a>>,
    /// Signalled when a request becomes due earlier than all others, and at the end.
    wake: Condvar,
}

impl<'a> ReplayEngine<'a> {
    fn lock(&self) -> MutexGuard<'_, ReplayState<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Carries out due requests until all have completed.
    fn work(&self, mut block: Buffer) {
        // Otherwise the kernel adds some 50 us to each sleep. If it refuses, sleeps stay that long.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut state = self.lock();
        while !state.is_over() {
            let now = self.now();
            match state.pending.next_at() {
                Some(at) if at <= now => state = self.issue(state, &mut block),
                Some(at) if at - now > NEAR || state.is_polled => {
                    let left = Duration::from_nanos((at - now).0.max(2 * NEAR.0) - NEAR.0);
                    let waited = self.wake.wait_timeout(state, left);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                Some(_) => {
                    state.is_polled = true;
                    drop(state);
                    thread::yield_now();
                    state = self.lock();
                    state.is_polled = false;
                }
                None => state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
        drop(state);
        self.wake.notify_all();
    }

    /// Carries out the request that is due, without the lock.
    fn issue<'b>(
        &'b self,
        mut state: MutexGuard<'b, ReplayState<'a>>,
        block: &mut Buffer,
    ) -> MutexGuard<'b, ReplayState<'a>> {
        let (due_at, index, is_buffered) = state.pending.take().expect("one is due");
        if is_buffered {
            self.answer(&mut state, index, due_at);
            return state;
        }
        drop(state);
        // Other requests may have become due meanwhile.
        self.wake.notify_one();
        let issued_at = self.now();
        let done = self.carry_out(self.requests[index as usize], block);
        let completed_at = self.now();
        let mut state = self.lock();
        match done {
            Ok(()) => {
                let latency_ns = (completed_at - issued_at).0;
                match self.requests[index as usize].op {
                    Op::Read => state.latencies.read.record(latency_ns),
                    Op::Write => state.latencies.write.record(latency_ns),
                    Op::Flush => state.latencies.flush.record(latency_ns),
                    Op::Trim => {}
                }
                state.lateness.record(issued_at.saturating_sub(due_at).0);
                self.answer(&mut state, index, completed_at);
            }
            Err(error) => state.failure = state.failure.take().or(Some((index, error))),
        }
        state
    }

    fn answer(&self, state: &mut ReplayState<'_>, index: u32, at: Nanos) {
        state.completed_at[index as usize] = at;
        state.pending.answer(index, at);
        self.wake.notify_one();
    }

    fn carry_out(&self, request: RecordedRequest, block: &mut Buffer) -> std::io::Result<()> {
        let offset = request.lba * SECTOR_BYTES;
        let bytes = u64::from(request.sectors) * SECTOR_BYTES;
        match request.op {
            Op::Read => self.file.read_exact_at(block.of_mut(bytes), offset),
            Op::Write => {
                self.file.write_all_at(block.of(bytes), offset)?;
                if request.fua { self.file.sync_data() } else { Ok(()) }
            }
            Op::Flush => self.file.sync_data(),
            Op::Trim => {
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                fallocate(self.file, flags, offset, bytes).map_err(Into::into)
            }
        }
    }
}

#[cfg(test)]
mod tests;
