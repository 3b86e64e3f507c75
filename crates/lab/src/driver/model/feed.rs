//! The next requests of one thread, drawn ahead of their turn.
//!
//! Drawing ahead changes nothing in what is asked, since each thread draws from a generator of its
//! own; it lets the drive fetch early what a request will touch ([`Drive::prefetch`]).

use blockio::{Lba, Op, Request, Rng};
use ssd::Drive;
use workload::{Demand, Generator, Job, Span};

use crate::driver::Load;
use crate::{Error, Kind};

/// Requests drawn at a time for one thread: enough that their cache misses overlap, and so few that
/// what was fetched is still at hand when it is needed.
const BATCH: usize = 16;

/// What one thread asks.
#[derive(Debug)]
pub(super) struct Feed {
    generator: Generator,
    /// First sector of its device.
    base: u64,
    /// What is being asked, from `next` on.
    batch: [Demand; BATCH],
    next: usize,
    /// What will be asked then.
    drawn: [Demand; BATCH],
    thread: u16,
}

impl Feed {
    /// What each thread asks of `drive`: the threads of `load` for every device of a group, which
    /// they address alone.
    ///
    /// # Errors
    /// When a device is too small for the workload.
    pub(super) fn of_all(load: &Load<'_>, drive: &Drive) -> Result<Vec<Self>, Error> {
        let devices = u16::try_from(drive.devices()).expect("at most 64 devices");
        (0..devices * load.threads).map(|thread| Self::new(load, thread, drive)).collect()
    }

    /// What thread number `thread` of all devices asks.
    fn new(load: &Load<'_>, thread: u16, drive: &Drive) -> Result<Self, Error> {
        let (device, index) = (u64::from(thread / load.threads), thread % load.threads);
        let sectors = drive.user_sectors() / drive.devices() as u64;
        let job = Job { index, count: load.threads };
        let seed = match device {
            0 => load.seed,
            _ => Rng::new(load.seed).split_index(device).next_u64(),
        };
        let mut generator =
            Generator::new(load.workload, Span { sectors }, job, seed).map_err(|error| {
                Error::new(Kind::Input, "generating the load")
                    .source(error)
                    .hint("lower the time lapse, or the number of threads")
            })?;
        let base = device * sectors;
        let batch = std::array::from_fn(|_| demand(&mut generator, base));
        let drawn = std::array::from_fn(|_| demand(&mut generator, base));
        Ok(Self { generator, base, batch, next: 0, drawn, thread })
    }

    /// The thread's next request, named `tag`, for `drive`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a request that is returned is copied through memory")]
    pub(super) fn request(&mut self, tag: u32, drive: &Drive) -> Request {
        if self.next == BATCH {
            self.refill(drive);
        }
        let Demand { op, lba, sectors } = self.batch[self.next];
        self.next += 1;
        Request { tag, thread: self.thread, op, lba, sectors }
    }

    #[inline(never)]
    fn refill(&mut self, drive: &Drive) {
        self.batch = self.drawn;
        self.next = 0;
        for demand in &self.batch {
            if demand.op == Op::Write {
                drive.prefetch_write(demand.lba.0);
            }
        }
        self.drawn.fill_with(|| demand(&mut self.generator, self.base));
        for demand in &self.drawn {
            drive.prefetch(demand.lba.0);
        }
    }
}

/// The generator's next request on the device that begins at `base`.
#[inline]
fn demand(generator: &mut Generator, base: u64) -> Demand {
    let demand = generator.next();
    Demand { lba: Lba(base + demand.lba.0), ..demand }
}
