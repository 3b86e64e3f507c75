//! The next requests of one thread, drawn ahead of their turn.
//!
//! Drawing ahead changes nothing in what is asked, since each thread draws from a generator of its
//! own; it lets the drive look up what a whole batch will touch at once ([`Drive::prefetch`]).

use blockio::Request;
use ssd::Drive;
use workload::{Demand, Generator, Job, Span};

use crate::driver::Load;
use crate::{Error, Kind};

/// Requests drawn at a time for one thread.
const BATCH: usize = 32;

/// What one thread asks.
#[derive(Debug)]
pub(super) struct Feed {
    generator: Generator,
    batch: [Demand; BATCH],
    next: usize,
    thread: u16,
}

impl Feed {
    /// What thread number `thread` of `load` asks of a drive with `sectors`.
    ///
    /// # Errors
    /// When the drive is too small for the workload.
    pub(super) fn new(load: &Load<'_>, thread: u16, sectors: u64) -> Result<Self, Error> {
        let job = Job { index: thread, count: load.threads };
        let mut generator = Generator::new(load.workload, Span { sectors }, job, load.seed)
            .map_err(|error| {
                Error::new(Kind::Input, "generating the load")
                    .source(error)
                    .hint("lower the time lapse, or the number of threads")
            })?;
        let batch = std::array::from_fn(|_| generator.next());
        Ok(Self { generator, batch, next: 0, thread })
    }

    /// The thread's next request, named `tag`, for `drive`.
    #[inline]
    pub(super) fn request(&mut self, tag: u32, drive: &Drive) -> Request {
        if self.next == BATCH {
            self.refill(drive);
        }
        let Demand { op, lba, sectors } = self.batch[self.next];
        self.next += 1;
        Request { tag, thread: self.thread, op, lba, sectors }
    }

    fn refill(&mut self, drive: &Drive) {
        self.batch.fill_with(|| self.generator.next());
        self.next = 0;
        drive.prefetch(self.batch.iter().map(|demand| demand.lba.0));
    }
}
