//! Commands of clients, counted where they enter a device, and their latencies, which the front end
//! that answers them knows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use blockio::Op;
use status::{Commands, LATENCY_BUCKETS, LatencyHistogram, Traffic, latency_bucket};

use device::{Allocation, Device, DeviceError, Durability, ReadPart};

/// A device whose commands are counted.
#[derive(Debug)]
pub struct MeteredDevice {
    device: Arc<dyn Device>,
    meter: Arc<Meter>,
}

/// Counters of clients' commands since the meter was made. Many threads may count and read at once.
#[derive(Debug)]
pub struct Meter {
    born: Instant,
    reads: Counters,
    writes: Counters,
    flushes: Counters,
    trims: Counters,
}

#[derive(Debug)]
struct Counters {
    commands: AtomicU64,
    bytes: AtomicU64,
    failures: AtomicU64,
    latency_ns_sum: AtomicU64,
    /// Completion time of the last command, in nanoseconds since the meter was made; 0 before the
    /// first.
    ended_at: AtomicU64,
    buckets: [AtomicU64; LATENCY_BUCKETS],
}

impl Default for Counters {
    fn default() -> Self {
        let [commands, bytes, failures, latency_ns_sum, ended_at] =
            std::array::from_fn(|_| AtomicU64::new(0));
        let buckets = std::array::from_fn(|_| AtomicU64::new(0));
        Self { commands, bytes, failures, latency_ns_sum, ended_at, buckets }
    }
}

impl MeteredDevice {
    /// `device`, with its commands counted by `meter`.
    pub fn new(device: Arc<dyn Device>, meter: Arc<Meter>) -> Self {
        Self { device, meter }
    }
}

impl Default for Meter {
    fn default() -> Self {
        let [reads, writes, flushes, trims] = std::array::from_fn(|_| Counters::default());
        Self { born: Instant::now(), reads, writes, flushes, trims }
    }
}

impl Meter {
    /// Returns the counters so far.
    pub fn traffic(&self) -> Traffic {
        let age = nanos(self.born.elapsed());
        Traffic {
            reads: self.reads.seen(age),
            writes: self.writes.seen(age),
            flushes: self.flushes.seen(age),
            trims: self.trims.seen(age),
        }
    }

    /// Counts the latency of a command that succeeded, from its receipt to its reply.
    pub fn note_latency(&self, op: Op, latency: Duration) {
        let counters = match op {
            Op::Read => &self.reads,
            Op::Write => &self.writes,
            Op::Flush => &self.flushes,
            Op::Trim => &self.trims,
        };
        let latency_ns = nanos(latency);
        counters.latency_ns_sum.fetch_add(latency_ns, Ordering::Relaxed);
        counters.buckets[latency_bucket(latency_ns)].fetch_add(1, Ordering::Relaxed);
    }
}

impl Counters {
    /// Carries a command out, and counts it.
    fn count<T>(
        &self,
        born: Instant,
        bytes: u64,
        carry_out: impl FnOnce() -> Result<T, DeviceError>,
    ) -> Result<T, DeviceError> {
        let done = carry_out();
        self.count_one(done.as_ref().map_or(None, |_| Some(bytes)));
        self.note_end(born);
        done
    }

    /// As [`Counters::count`], several commands.
    fn count_many<T>(
        &self,
        born: Instant,
        bytes: &[u64],
        carry_out: impl FnOnce() -> Vec<Result<T, DeviceError>>,
    ) -> Vec<Result<T, DeviceError>> {
        let done = carry_out();
        for (done, bytes) in done.iter().zip(bytes) {
            self.count_one(done.as_ref().map_or(None, |_| Some(*bytes)));
        }
        self.note_end(born);
        done
    }

    fn note_end(&self, born: Instant) {
        self.ended_at.store(nanos(born.elapsed()).max(1), Ordering::Relaxed);
    }

    /// Counts a command and the bytes that it moved; none if it failed.
    fn count_one(&self, moved: Option<u64>) {
        self.commands.fetch_add(1, Ordering::Relaxed);
        match moved {
            Some(bytes) => self.bytes.fetch_add(bytes, Ordering::Relaxed),
            None => self.failures.fetch_add(1, Ordering::Relaxed),
        };
    }

    /// Returns the counters as of an age of the meter in nanoseconds.
    fn seen(&self, age: u64) -> Commands {
        let ended_at = Some(self.ended_at.load(Ordering::Relaxed)).filter(|at| *at > 0);
        Commands {
            idle_ns: ended_at.map(|at| age.saturating_sub(at)),
            commands: self.commands.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            latency_ns_sum: self.latency_ns_sum.load(Ordering::Relaxed),
            latency_histogram: LatencyHistogram::new(
                self.buckets.iter().map(|count| count.load(Ordering::Relaxed)),
            ),
        }
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

impl Device for MeteredDevice {
    fn size(&self) -> u64 {
        self.device.size()
    }

    fn origin(&self) -> u64 {
        self.device.origin()
    }

    fn atomic_bytes(&self) -> u64 {
        self.device.atomic_bytes()
    }

    fn is_write_through(&self) -> bool {
        self.device.is_write_through()
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        self.meter
            .reads
            .count(self.meter.born, buffer.len() as u64, || self.device.read(offset, buffer))
    }

    fn read_many(&self, reads: &mut [ReadPart<'_>]) -> Vec<Result<(), DeviceError>> {
        let bytes: Vec<u64> = reads.iter().map(|read| read.buffer.len() as u64).collect();
        let carry_out = || self.device.read_many(reads);
        self.meter.reads.count_many(self.meter.born, &bytes, carry_out)
    }

    fn write(&self, offset: u64, bytes: &[u8], durability: Durability) -> Result<(), DeviceError> {
        let carry_out = || self.device.write(offset, bytes, durability);
        self.meter.writes.count(self.meter.born, bytes.len() as u64, carry_out)
    }

    /// Counts it as one write, however large, and without bytes: none came from the client.
    fn write_zeroes(
        &self,
        offset: u64,
        length: u64,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<bool, DeviceError> {
        let carry_out = || self.device.write_zeroes(offset, length, goes_on);
        self.meter.writes.count(self.meter.born, 0, carry_out)
    }

    fn is_write_protected(&self) -> bool {
        self.device.is_write_protected()
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.meter.flushes.count(self.meter.born, 0, || self.device.flush())
    }

    fn trim(&self, offset: u64, length: u64, durability: Durability) -> Result<(), DeviceError> {
        self.meter
            .trims
            .count(self.meter.born, length, || self.device.trim(offset, length, durability))
    }

    fn allocations(&self, offset: u64, length: u64) -> Result<Vec<Allocation>, DeviceError> {
        self.device.allocations(offset, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::MemoryDevice;

    #[test]
    fn commands_are_counted_by_kind_with_their_bytes_and_failures() {
        let meter = Arc::new(Meter::default());
        let device = MeteredDevice::new(Arc::new(MemoryDevice::new(8192)), Arc::clone(&meter));
        device.write(0, &[1; 4096], Durability::Volatile).unwrap();
        device.read(0, &mut [0; 512]).unwrap();
        device.read(8000, &mut [0; 512]).unwrap_err();
        device.flush().unwrap();
        let Traffic { reads, writes, flushes, trims } = meter.traffic();
        assert_eq!((reads.commands, reads.bytes, reads.failures), (2, 512, 1));
        assert_eq!((writes.commands, writes.bytes, writes.failures), (1, 4096, 0));
        assert_eq!((flushes.commands, trims.commands), (1, 0));
        assert!(reads.idle_ns.is_some() && trims.idle_ns.is_none());
        assert_eq!(reads.latency_histogram.total(), 0, "the front end knows the latency");
    }

    #[test]
    fn zeroes_without_data_are_one_write_however_many_they_are() {
        let meter = Arc::new(Meter::default());
        let memory: Arc<dyn Device> = Arc::new(MemoryDevice::new(4 << 20));
        let inner = Arc::new(MeteredDevice::new(memory, Arc::clone(&meter)));
        let outer = MeteredDevice::new(inner, Arc::default());
        outer.write(0, &[1; 4096], Durability::Volatile).unwrap();
        assert!(outer.write_zeroes(0, 4 << 20, &|| true).unwrap());
        assert!(!outer.write_zeroes(0, 4096, &|| false).unwrap(), "given up");
        outer.write_zeroes(4 << 20, 512, &|| true).unwrap_err();
        let writes = meter.traffic().writes;
        assert_eq!((writes.commands, writes.bytes, writes.failures), (4, 4096, 1));
        let mut page = [7; 4096];
        outer.read(0, &mut page).unwrap();
        assert_eq!(page, [0; 4096]);
    }

    #[test]
    fn latencies_are_those_of_the_kind_that_was_answered() {
        let meter = Meter::default();
        meter.note_latency(Op::Write, Duration::from_micros(3));
        meter.note_latency(Op::Write, Duration::from_micros(5));
        meter.note_latency(Op::Flush, Duration::from_millis(2));
        let Traffic { reads, writes, flushes, trims } = meter.traffic();
        assert_eq!([reads, trims].map(|it| it.latency_histogram.total()), [0, 0]);
        assert_eq!((writes.latency_ns_sum, writes.latency_histogram.total()), (8_000, 2));
        assert_eq!((flushes.latency_ns_sum, flushes.commands), (2_000_000, 0));
    }
}
