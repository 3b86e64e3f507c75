//! A closed loop on every device of a group, as a load of the lab has it.

use blockio::{Lba, Nanos, Op, Request, Rng};
use ftl::Counters;
use ssd::{Drive, Setup, catalogue};

/// Requests that every device is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Operation of each request.
    pub(crate) op: Op,
    /// Size of a request in sectors.
    pub(crate) sectors: u32,
    /// Threads of each device.
    pub(crate) threads: u16,
    /// Requests that each thread keeps outstanding.
    pub(crate) queue: u32,
    /// True if each thread goes through a slice of its own in order; else addresses are random.
    pub(crate) sequential: bool,
}

/// Measurements under a load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// Requests a second, of all devices.
    pub(crate) iops: f64,
    /// Mean latency in microseconds.
    pub(crate) latency_us_avg: f64,
}

impl Seen {
    /// Decimal megabytes a second that requests of `sectors` make.
    pub(crate) fn mb_s(&self, sectors: u32) -> f64 {
        self.iops * f64::from(sectors) * 512.0 / 1e6
    }
}

/// A drive and its clock.
#[derive(Debug)]
pub(crate) struct Bench {
    drive: Drive,
    now: Nanos,
}

impl Bench {
    /// The drive of the catalogue at its own time lapse, or at another.
    pub(crate) fn of(name: &str, time_lapse: Option<u32>) -> Self {
        let spec = catalogue::find(name).expect("in the catalogue");
        let setup = Setup {
            format: spec.formats()[0].clone(),
            host: spec.hosts()[0].clone(),
            time_lapse: time_lapse.unwrap_or_else(|| spec.time_lapse_default()),
            seed: 1,
        };
        let drive = Drive::new(&spec, &setup).expect("a drive at that scale");
        Self { drive, now: Nanos::ZERO }
    }

    /// Returns the drive's counters.
    pub(crate) fn counters(&self) -> Counters {
        self.drive.counters()
    }

    /// Bytes that the host sees.
    pub(crate) fn user_bytes(&self) -> u64 {
        self.drive.user_sectors() * 512
    }

    /// Keeps `load` up for `span`, after as much that does not count, on a fifth of every device.
    pub(crate) fn run(&mut self, load: Load, span: Nanos) -> Seen {
        let mut asked = Asked::new(&self.drive, load);
        for thread in 0..asked.threads() {
            for _ in 0..load.queue {
                self.drive.submit(self.now, asked.request(thread));
            }
        }
        self.answer(&mut asked, self.now + span);
        let (count, latency_ns) = self.answer(&mut asked, self.now + span);
        self.drive.check_invariants();
        while let Some(done) = self.drive.next_completion(Nanos::MAX) {
            self.now = self.now.max(done.completed_at);
        }
        Seen {
            iops: count as f64 / span.as_secs_f64(),
            latency_us_avg: latency_ns as f64 / count as f64 / 1e3,
        }
    }

    /// Answers completions with requests; returns how many there were and the sum of latencies.
    fn answer(&mut self, asked: &mut Asked, until: Nanos) -> (u64, u64) {
        let (mut count, mut latency_ns) = (0, 0);
        while let Some(done) = self.drive.next_completion(until) {
            assert_eq!(done.status, blockio::Status::Ok);
            count += 1;
            latency_ns += done.latency().0;
            self.drive.submit(done.completed_at, asked.request(done.thread));
        }
        self.now = until;
        (count, latency_ns)
    }
}

/// The requests of all threads.
#[derive(Debug)]
struct Asked {
    load: Load,
    devices: u16,
    device_sectors: u64,
    slots_per_thread: u64,
    next: Vec<u64>,
    rng: Rng,
}

impl Asked {
    fn new(drive: &Drive, load: Load) -> Self {
        let devices = u16::try_from(drive.devices()).expect("few");
        let device_sectors = drive.user_sectors() / u64::from(devices);
        let slots = device_sectors / 5 / u64::from(load.sectors);
        Self {
            load,
            devices,
            device_sectors,
            slots_per_thread: slots / u64::from(load.threads),
            next: vec![0; usize::from(devices * load.threads)],
            rng: Rng::new(1),
        }
    }

    fn threads(&self) -> u16 {
        self.devices * self.load.threads
    }

    fn request(&mut self, thread: u16) -> Request {
        let Load { op, sectors, threads, sequential, .. } = self.load;
        let slots = self.slots_per_thread;
        let slot = if sequential {
            let next = &mut self.next[usize::from(thread)];
            *next += 1;
            u64::from(thread % threads) * slots + (*next - 1) % slots
        } else {
            self.rng.below(slots * u64::from(threads))
        };
        let device = u64::from(thread / threads) * self.device_sectors;
        Request {
            tag: 0,
            thread,
            op,
            handle: 0,
            lba: Lba(device + slot * u64::from(sectors)),
            sectors,
        }
    }
}
