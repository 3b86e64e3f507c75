//! The next requests of one thread, drawn ahead of their turn.
//!
//! Drawing ahead changes nothing in what is asked, since each thread draws from a generator of its
//! own; it lets the drive fetch early what a request will touch ([`Drive::prefetch`]).

use std::sync::Arc;

use blockio::{Lba, Op, Request, Rng};
use ssd::Drive;
use workload::trace::Placement;
use workload::{GeneratedRequest, Generator, Job, Span};

use crate::driver::Load;
use crate::replay::Replay;
use crate::{Error, Kind};

/// Requests drawn at a time for one thread: enough that their cache misses overlap, and so few that
/// what was fetched is still at hand when it is needed.
pub(super) const BATCH: usize = 16;

/// Request stream of one thread.
#[derive(Debug)]
pub(super) struct Feed {
    source: RequestSource,
    /// First sector of its device.
    base: u64,
    /// Current batch, consumed from `next` on.
    batch: [GeneratedRequest; BATCH],
    next: usize,
    /// Next batch.
    drawn: [GeneratedRequest; BATCH],
    thread: u16,
}

/// Origin of the requests of a thread.
#[derive(Debug)]
enum RequestSource {
    /// Drawn one by one.
    Drawn(Box<Generator>),
    /// Read from a trace.
    Replayed(Cursor),
}

/// A thread's place in a trace that all threads share.
#[derive(Debug)]
struct Cursor {
    requests: Arc<[GeneratedRequest]>,
    next: usize,
    /// Threads that share it: each takes every so-many-th request.
    stride: usize,
}

impl Cursor {
    fn next(&mut self) -> GeneratedRequest {
        let request = self.requests[self.next];
        self.next = (self.next + self.stride) % self.requests.len();
        request
    }
}

/// The requests of the trace that `load` replays, placed on the footprint of its workload on one
/// device of `drive`, of which `part` is modelled.
fn placed(
    load: &Load<'_>,
    replay: &Replay<'_>,
    drive: &Drive,
    part: Span,
) -> Arc<[GeneratedRequest]> {
    let whole = Span { sectors: drive.user_sectors_full_scale() / drive.devices() as u64 };
    let [span, part] = [whole, part].map(|it| it.footprint(load.workload));
    let placement = Placement::new(replay.trace, replay.addresses, span).in_time_lapse(part);
    replay.trace.requests().iter().map(|request| placement.place(request)).collect()
}

impl Feed {
    /// Creates the feeds of a load: the threads of `load` for every device of `drive`, which they
    /// address alone.
    ///
    /// # Errors
    /// Fails if a device is too small for the workload, or there are more threads than numbers.
    pub(super) fn of_all(load: &Load<'_>, drive: &Drive) -> Result<Vec<Self>, Error> {
        let devices = drive.devices();
        let threads = u16::try_from(devices * usize::from(load.threads)).map_err(|_| {
            let (each, limit) = (load.threads, u16::MAX);
            let text =
                format!("{each} threads on each of {devices} devices, at most {limit} in all");
            Error::new(Kind::Input, text).hint("lower the number of threads")
        })?;
        let span = Span { sectors: drive.user_sectors() / drive.devices() as u64 };
        let requests = load.replay.map(|replay| placed(load, &replay, drive, span));
        let new = |thread| {
            let source = match &requests {
                None => Self::drawn(load, thread, span)?,
                Some(requests) => RequestSource::Replayed(Cursor {
                    requests: Arc::clone(requests),
                    next: usize::from(thread % load.threads) % requests.len(),
                    stride: usize::from(load.threads),
                }),
            };
            Ok(Self::new(source, u64::from(thread / load.threads) * span.sectors, thread))
        };
        (0..threads).map(new).collect()
    }

    /// Random source of thread number `thread`, counted over all devices.
    fn drawn(load: &Load<'_>, thread: u16, span: Span) -> Result<RequestSource, Error> {
        let (device, index) = (u64::from(thread / load.threads), thread % load.threads);
        let job = Job { index, count: load.threads };
        let seed = match device {
            0 => load.seed,
            _ => Rng::new(load.seed).split_index(device).next_u64(),
        };
        let generator = Generator::new(load.workload, span, job, seed).map_err(|error| {
            Error::new(Kind::Input, "generating the load")
                .source(error)
                .hint("lower the time lapse, or the number of threads")
        })?;
        Ok(RequestSource::Drawn(Box::new(generator)))
    }

    /// Feed of thread number `thread` from `source`, for the device that begins at sector `base`.
    fn new(mut source: RequestSource, base: u64, thread: u16) -> Self {
        let batch = std::array::from_fn(|_| request(&mut source, base));
        let drawn = std::array::from_fn(|_| request(&mut source, base));
        Self { source, base, batch, next: 0, drawn, thread }
    }

    /// The request numbered `index` of the trace that is replayed, as the thread's own.
    pub(super) fn replayed(&self, index: u64, tag: u32) -> Option<Request> {
        let RequestSource::Replayed(cursor) = &self.source else { return None };
        let index = index % cursor.requests.len() as u64;
        let GeneratedRequest { op, handle, lba, sectors } =
            cursor.requests[usize::try_from(index).ok()?];
        let lba = Lba(self.base + lba.0);
        Some(Request { tag, thread: self.thread, op, handle, lba, sectors })
    }

    /// The thread's next request, named `tag`, for `drive`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a request that is returned is copied through memory")]
    pub(super) fn request(&mut self, tag: u32, drive: &Drive) -> Request {
        if self.next == BATCH {
            self.refill(drive);
        }
        let GeneratedRequest { op, handle, lba, sectors } = self.batch[self.next];
        self.next += 1;
        Request { tag, thread: self.thread, op, handle, lba, sectors }
    }

    #[inline(never)]
    fn refill(&mut self, drive: &Drive) {
        self.batch = self.drawn;
        self.next = 0;
        for request in &self.batch {
            if request.op == Op::Write {
                drive.prefetch_write(request.lba.0);
            }
        }
        for drawn in &mut self.drawn {
            *drawn = request(&mut self.source, self.base);
        }
        for request in &self.drawn {
            drive.prefetch(request.lba.0);
        }
    }
}

/// The first `count` requests that each thread of `load` submits to `drive`.
///
/// # Errors
/// Fails if the drive is too small for the load.
pub fn issued(load: &Load<'_>, drive: &Drive, count: usize) -> Result<Vec<Vec<Request>>, Error> {
    let feeds = Feed::of_all(load, drive)?.into_iter();
    Ok(feeds.map(|mut feed| (0..count).map(|_| feed.request(0, drive)).collect()).collect())
}

/// The next request of `source` on the device that begins at `base`.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a request that is returned is copied through memory")]
fn request(source: &mut RequestSource, base: u64) -> GeneratedRequest {
    let request = match source {
        RequestSource::Drawn(generator) => generator.next(),
        RequestSource::Replayed(cursor) => cursor.next(),
    };
    GeneratedRequest { lba: Lba(base + request.lba.0), ..request }
}
