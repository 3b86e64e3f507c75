//! A closed loop of requests, for the tests of this crate.

use blockio::{Lba, Nanos, Op, Request, Rng};
use ftl::Counters;
use ssd::Drive;

/// Random aligned requests of one size, `outstanding` at a time over 16 threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Share of requests that read, 0 to 1.
    pub(crate) read_share: f64,
    /// Size of a request in sectors.
    pub(crate) sectors: u32,
    /// Requests outstanding.
    pub(crate) outstanding: u32,
    /// Seed of the addresses.
    pub(crate) seed: u64,
}

/// Measurements over a span of a load.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Length of the span in seconds.
    pub(crate) span_s: f64,
    /// Latencies in nanoseconds, ascending.
    pub(crate) latencies_ns: Vec<u64>,
    /// Counters of the drive before and after.
    pub(crate) counters: (Counters, Counters),
}

impl Seen {
    /// Requests a second.
    pub(crate) fn iops(&self) -> f64 {
        self.latencies_ns.len() as f64 / self.span_s
    }

    /// Mean latency in nanoseconds.
    pub(crate) fn latency_ns_avg(&self) -> f64 {
        self.latencies_ns.iter().sum::<u64>() as f64 / self.latencies_ns.len() as f64
    }

    /// NAND writes for each host write.
    pub(crate) fn write_amplification(&self) -> f64 {
        let (before, after) = &self.counters;
        let programmed = after.pages_programmed() - before.pages_programmed();
        programmed as f64 * 4096.0 / (after.host_sent_bytes - before.host_sent_bytes) as f64
    }
}

/// A drive under load.
#[derive(Debug)]
pub(crate) struct Loop<'a> {
    drive: &'a mut Drive,
    load: Load,
    rng: Rng,
    now: Nanos,
}

impl<'a> Loop<'a> {
    /// Submits the first requests at `at`.
    pub(crate) fn start(drive: &'a mut Drive, load: Load, at: Nanos) -> Self {
        let mut closed = Self { drive, load, rng: Rng::new(load.seed), now: at };
        for tag in 0..load.outstanding {
            let thread = u16::try_from(tag % 16).expect("below 16");
            let request = closed.request(tag, thread);
            closed.drive.submit(at, request);
        }
        closed
    }

    /// Keeps the load up for a while; records latencies where asked.
    pub(crate) fn run(&mut self, span: Nanos, record: bool) -> Seen {
        let until = self.now + span;
        let mut seen = Seen { span_s: span.as_secs_f64(), ..Seen::default() };
        seen.counters.0 = self.drive.counters();
        while let Some(done) = self.drive.next_completion(until) {
            assert_eq!(done.status, blockio::Status::Ok);
            if record {
                seen.latencies_ns.push(done.latency().0);
            }
            let request = self.request(done.tag, done.thread);
            self.drive.submit(done.completed_at, request);
        }
        seen.counters.1 = self.drive.counters();
        seen.latencies_ns.sort_unstable();
        self.now = until;
        seen
    }

    /// Awaits everything outstanding; returns when the last of it completed.
    pub(crate) fn drain(self) -> Nanos {
        let mut last = self.now;
        while let Some(done) = self.drive.next_completion(Nanos::MAX) {
            last = last.max(done.completed_at);
        }
        self.drive.check_invariants();
        last
    }

    fn request(&mut self, tag: u32, thread: u16) -> Request {
        let read = self.rng.unit_f64() < self.load.read_share;
        let slots = self.drive.user_sectors() / u64::from(self.load.sectors);
        Request {
            tag,
            thread,
            op: if read { Op::Read } else { Op::Write },
            handle: 0,
            lba: Lba(self.rng.below(slots) * u64::from(self.load.sectors)),
            sectors: self.load.sectors,
        }
    }
}
