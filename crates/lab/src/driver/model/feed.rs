//! The next requests of one thread, drawn ahead of their turn.
//!
//! Drawing ahead changes nothing in what is asked, since each thread draws from a generator of its
//! own; it gives the drive time to fetch what a request will touch.

use blockio::Request;
use workload::{Demand, Generator, Job, Span};

use crate::driver::Load;
use crate::{Error, Kind};

/// Requests drawn ahead for one thread.
const AHEAD: usize = 8;

/// What one thread asks.
#[derive(Debug)]
pub(super) struct Feed {
    generator: Generator,
    ahead: [Demand; AHEAD],
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
        let ahead = std::array::from_fn(|_| generator.next());
        Ok(Self { generator, ahead, next: 0, thread })
    }

    /// The thread's next request, named `tag`.
    #[inline]
    pub(super) fn request(&mut self, tag: u32) -> Request {
        // The place taken is refilled at once: here the drive may be told what comes.
        let Demand { op, lba, sectors } =
            std::mem::replace(&mut self.ahead[self.next], self.generator.next());
        self.next = (self.next + 1) % AHEAD;
        Request { tag, thread: self.thread, op, lba, sectors }
    }
}
