//! Numbers over a span of time: one interval, or one whole step.

use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

use crate::{Bin, HandleWrites, Latencies, LatencySummary, TierWork, heat};

/// Bytes programmed, by cause. Host + relocation + parity + … = all that the NAND wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NandWrites {
    /// Bytes that the host sent (before any compression).
    pub host_sent_bytes: u64,
    /// Programmed for host data.
    pub host_bytes: u64,
    /// Programmed by garbage collection.
    pub relocation_bytes: u64,
    /// Programmed by wear levelling.
    pub wear_bytes: u64,
    /// Parity members of stripes.
    pub parity_bytes: u64,
    /// Padding and metadata.
    pub metadata_bytes: u64,
    /// Superblocks erased.
    pub erase_count: u64,
}

impl NandWrites {
    /// Everything programmed, in bytes.
    pub const fn total_bytes(&self) -> u64 {
        self.host_bytes
            + self.relocation_bytes
            + self.wear_bytes
            + self.parity_bytes
            + self.metadata_bytes
    }

    /// NAND writes ÷ host writes over this span; absent where the host wrote nothing.
    pub fn write_amplification(&self) -> Option<f64> {
        (self.host_sent_bytes > 0).then(|| self.total_bytes() as f64 / self.host_sent_bytes as f64)
    }
}

impl Add for NandWrites {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            host_sent_bytes: self.host_sent_bytes + other.host_sent_bytes,
            host_bytes: self.host_bytes + other.host_bytes,
            relocation_bytes: self.relocation_bytes + other.relocation_bytes,
            wear_bytes: self.wear_bytes + other.wear_bytes,
            parity_bytes: self.parity_bytes + other.parity_bytes,
            metadata_bytes: self.metadata_bytes + other.metadata_bytes,
            erase_count: self.erase_count + other.erase_count,
        }
    }
}

impl Sub for NandWrites {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        Self {
            host_sent_bytes: self.host_sent_bytes - earlier.host_sent_bytes,
            host_bytes: self.host_bytes - earlier.host_bytes,
            relocation_bytes: self.relocation_bytes - earlier.relocation_bytes,
            wear_bytes: self.wear_bytes - earlier.wear_bytes,
            parity_bytes: self.parity_bytes - earlier.parity_bytes,
            metadata_bytes: self.metadata_bytes - earlier.metadata_bytes,
            erase_count: self.erase_count - earlier.erase_count,
        }
    }
}

/// Power and heat of a drive over a span; of each device of a group. Models tell all of it; of a
/// real drive each number is there that a sensor of its own tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Climate {
    /// Power on average, in watts; of real drives the mean of what their own sensor reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
    /// Temperature in degrees Celsius: of a model that at the end of an interval, of a real drive
    /// the highest that was read in it; over several intervals the highest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<f64>,
    /// Share of the span in which the drive throttled its writes because it was too hot, 0 to 1;
    /// `heat_held_share` in earlier results.
    #[serde(default, alias = "heat_held_share", skip_serializing_if = "Option::is_none")]
    pub thermal_throttled_share: Option<f64>,
    /// Share of the span in which it throttled them to stay within its power, 0 to 1;
    /// `power_held_share` in earlier results.
    #[serde(default, alias = "power_held_share", skip_serializing_if = "Option::is_none")]
    pub power_throttled_share: Option<f64>,
}

impl Climate {
    /// Merges two consecutive spans, of `span_s` and `other_s` seconds.
    #[must_use]
    pub fn merged(self, span_s: f64, other: Self, other_s: f64) -> Self {
        let total_s = (span_s + other_s).max(f64::MIN_POSITIVE);
        let mean = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => Some((a * span_s + b * other_s) / total_s),
            (a, b) => a.or(b),
        };
        let hottest = self.temperature_c.into_iter().chain(other.temperature_c);
        Self {
            power_w: mean(self.power_w, other.power_w),
            temperature_c: hottest.reduce(f64::max),
            thermal_throttled_share: mean(
                self.thermal_throttled_share,
                other.thermal_throttled_share,
            ),
            power_throttled_share: mean(self.power_throttled_share, other.power_throttled_share),
        }
    }
}

/// Mean size of a request from which on throughput is read in bytes, a little below 64 KiB so that
/// a last request that was cut off does not decide.
const LARGE_TRANSFER_BYTES: f64 = 65_000.0;

/// One step or one window as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Length of the span, in seconds of the drive's own time (not multiplied by the time lapse).
    pub span_s: f64,
    /// Requests completed in each second, reads and writes together.
    pub iops: f64,
    /// Reads completed in each second.
    pub iops_read: f64,
    /// Writes completed in each second.
    pub iops_write: f64,
    /// Decimal MB/s read.
    pub throughput_read_mb_s: f64,
    /// Decimal MB/s written.
    pub throughput_write_mb_s: f64,
    /// Mean of what was outstanding over the span.
    pub outstanding_avg: f64,
    /// Latency over reads and writes together.
    pub latency: LatencySummary,
    /// Latency of reads.
    pub read: LatencySummary,
    /// Latency of writes.
    pub write: LatencySummary,
    /// NAND writes in the span; absent for real drives.
    pub nand: Option<NandWrites>,
    /// Power and heat; absent where nothing is known of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub climate: Option<Climate>,
    /// Pages that reads asked for; absent where nothing was read, and where it is unknown which
    /// were written: on real drives, which are filled first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages_read: Option<PagesRead>,
    /// Processor time of the host for each request, in microseconds: of models that of the driver,
    /// and of flash management where it runs on the host; of real drives that of fio's jobs, in
    /// user space and in the kernel. Absent if not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_processor_us: Option<f64>,
    /// Requests that ended with a media error, or that a drive refused which takes no writes any
    /// more; no other figure counts them. Absent: 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub media_errors: u64,
    /// Writes of each placement handle that anything was programmed for; absent where a drive has
    /// no placement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placement: Vec<HandleWrites>,
    /// Work of the classes; absent where the drive is not made of two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<TierWork>,
}

/// Pages of 4 KiB that reads asked for over a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PagesRead {
    /// Pages that were asked for.
    pub count: u64,
    /// Pages of them that were unwritten since the purge: the drive answers them from its map.
    pub unwritten: u64,
}

impl PagesRead {
    /// Share of them that were unwritten, 0 to 1; 0 where nothing was read.
    pub fn unwritten_share(&self) -> f64 {
        if self.count > 0 { self.unwritten as f64 / self.count as f64 } else { 0.0 }
    }
}

impl Add for PagesRead {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { count: self.count + other.count, unwritten: self.unwritten + other.unwritten }
    }
}

/// One interval of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// End of the interval in protocol time since the step began, in seconds.
    pub at_s: f64,
    /// Totals of the interval.
    pub summary: Summary,
    /// Share of superblocks that are free at its end, 0 to 1; absent for real drives.
    pub superblocks_free_share: Option<f64>,
    /// Latencies of its reads and writes together, twenty bins to a decade, ascending; kept in
    /// `histograms.parquet`. Empty in results from versions without it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bins: Vec<Bin>,
}

impl Summary {
    /// Mean of the deviation of reads and of that of writes in nanoseconds, which the reviews chart
    /// as the deviation of a mixed load; that of all requests together is
    /// [`LatencySummary::stdev_ns`](crate::LatencySummary::stdev_ns). Absent where no latency was
    /// measured.
    pub fn stdev_of_directions_ns(&self) -> Option<f64> {
        match (self.read.stdev_ns(), self.write.stdev_ns()) {
            (Some(read), Some(write)) => Some(f64::midpoint(read, write)),
            (read, write) => read.or(write),
        }
    }

    /// Everything that `intervals` measured, taken together.
    ///
    /// Outstanding requests follow from Little's law: the sum of all latencies over the span.
    pub fn of(intervals: &[Interval]) -> Self {
        let (mut read, mut write) = (Latencies::default(), Latencies::default());
        for interval in intervals {
            read.merge(&interval.read);
            write.merge(&interval.write);
        }
        let mut both = read.clone();
        both.merge(&write);
        let span_s: f64 = intervals.iter().map(|interval| interval.span_s).sum();
        let each_second = |amount: f64| if span_s > 0.0 { amount / span_s } else { 0.0 };
        let megabytes = |bytes: fn(&Interval) -> u64| {
            intervals.iter().map(|interval| bytes(interval) as f64 / 1e6).sum::<f64>()
        };
        Self {
            span_s,
            iops: each_second(both.count() as f64),
            iops_read: each_second(read.count() as f64),
            iops_write: each_second(write.count() as f64),
            throughput_read_mb_s: each_second(megabytes(|interval| interval.read_bytes)),
            throughput_write_mb_s: each_second(megabytes(|interval| interval.write_bytes)),
            outstanding_avg: each_second(both.sum_ns() as f64 / 1e9),
            latency: both.summary(),
            read: read.summary(),
            write: write.summary(),
            nand: intervals.iter().filter_map(|interval| interval.nand).reduce(Add::add),
            climate: climate(intervals),
            pages_read: intervals
                .iter()
                .filter_map(|interval| interval.pages_read)
                .reduce(Add::add)
                .filter(|pages| pages.count > 0),
            host_processor_us: host_processor_us(intervals),
            media_errors: intervals.iter().map(|interval| interval.media_errors).sum(),
            placement: HandleWrites::sums(intervals),
            tier: TierWork::sum(intervals),
        }
    }

    /// Processors of the host that the requests kept busy, on average: 1 is all of one. Absent
    /// where the processor time is not known.
    pub fn host_processors(&self) -> Option<f64> {
        Some(self.iops * self.host_processor_us? / 1e6)
    }

    /// Bytes that were written over the span, on the drive's own scale.
    pub fn written_bytes(&self) -> f64 {
        self.throughput_write_mb_s * 1e6 * self.span_s
    }

    /// Decimal MB/s read and written together.
    pub fn throughput_mb_s(&self) -> f64 {
        self.throughput_read_mb_s + self.throughput_write_mb_s
    }

    /// True if a request moves 64 KiB or more on average, so that throughput is read in bytes.
    pub fn has_large_transfers(&self) -> bool {
        self.iops > 0.0 && self.throughput_mb_s() * 1e6 / self.iops >= LARGE_TRANSFER_BYTES
    }

    /// Requests completed in each second for each watt drawn; absent where the power is not known.
    pub fn iops_per_watt(&self) -> Option<f64> {
        let power_w = self.climate?.power_w.filter(|power_w| *power_w > 0.0)?;
        Some(self.iops / power_w)
    }

    /// Deviation of IOPS times average latency from `outstanding` requests, as a share of them: 0
    /// where Little's law holds, negative where requests are missing. Absent where either is 0.
    pub fn littles_law_deviation(&self, outstanding: f64) -> Option<f64> {
        let found = self.iops * self.latency.latency_ns_avg / 1e9;
        (found > 0.0 && outstanding > 0.0).then(|| found / outstanding - 1.0)
    }

    /// Part of [`Summary::littles_law_deviation`] that the edges of the span explain: requests that
    /// began before it count whole, those that end after it not at all. At most the largest latency
    /// ÷ span.
    pub fn littles_law_edge(&self) -> f64 {
        if self.span_s > 0.0 { self.latency.latency_ns_max as f64 / 1e9 / self.span_s } else { 0.0 }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Power and heat over all of `intervals` that know them.
fn climate(intervals: &[Interval]) -> Option<Climate> {
    let known = intervals.iter().filter_map(|interval| Some((interval.span_s, interval.climate?)));
    let all = known.reduce(|(span_s, climate), (next_s, next)| {
        (span_s + next_s, climate.merged(span_s, next, next_s))
    });
    all.map(|(_, climate)| climate)
}

/// Processor time for each request over all of `intervals` that know it; absent without a request.
fn host_processor_us(intervals: &[Interval]) -> Option<f64> {
    let known = intervals.iter().filter_map(|interval| {
        Some((interval.host_busy_ns?, interval.read.count() + interval.write.count()))
    });
    let (busy_ns, requests) = known.reduce(|(a, b), (c, d)| (a + c, b + d))?;
    (requests > 0).then(|| busy_ns as f64 / requests as f64 / 1e3)
}

impl Sample {
    /// Summarises `interval`.
    pub fn of(interval: &Interval) -> Self {
        Self {
            at_s: interval.at_s,
            summary: Summary::of(std::slice::from_ref(interval)),
            superblocks_free_share: interval.superblocks_free_share,
            bins: heat::decades(interval),
        }
    }
}

/// Raw measurements of a driver in one interval, from which samples and totals are computed.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// End of the interval in protocol time since the step began, in seconds.
    pub at_s: f64,
    /// Length of the interval in the drive's own time (not multiplied by the time lapse), in
    /// seconds.
    pub span_s: f64,
    /// Latencies of the reads that completed in it.
    pub read: Latencies,
    /// Latencies of the writes that completed in it.
    pub write: Latencies,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// NAND writes in it; absent for real drives.
    pub nand: Option<NandWrites>,
    /// Share of superblocks that are free at its end, 0 to 1; absent for real drives.
    pub superblocks_free_share: Option<f64>,
    /// Power and heat in it; absent where nothing is known of them.
    pub climate: Option<Climate>,
    /// Pages that reads asked for in it; absent where it is unknown which were written.
    pub pages_read: Option<PagesRead>,
    /// Processor time of the host that its requests took, in nanoseconds; absent if not reported.
    pub host_busy_ns: Option<u64>,
    /// Requests that ended with a media error, or that a drive refused which takes no writes any
    /// more.
    pub media_errors: u64,
    /// Writes of each placement handle; empty where a drive has no placement.
    pub placement: Vec<HandleWrites>,
    /// Work of the classes of a drive that is made of two.
    pub tier: Option<TierWork>,
}

impl Interval {
    /// Gives back the memory that recording needs: for an interval that is over.
    pub fn close(&mut self) {
        self.read.close();
        self.write.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One second with `reads` and `writes` of the given latency each, 4 KiB apiece.
    fn second(reads: u64, writes: u64, latency_ns: u64) -> Interval {
        let mut interval = Interval { span_s: 1.0, ..Interval::default() };
        interval.read.record_many(latency_ns, reads);
        interval.write.record_many(latency_ns, writes);
        interval.read_bytes = reads * 4096;
        interval.write_bytes = writes * 4096;
        interval
    }

    fn close_to(found: f64, expected: f64) -> bool {
        (found - expected).abs() <= expected.abs() * 1e-12
    }

    #[test]
    fn a_summary_adds_intervals_up() {
        let summary = Summary::of(&[second(700, 300, 1_000_000), second(1400, 600, 4_000_000)]);
        assert!(close_to(summary.span_s, 2.0));
        assert!(close_to(summary.iops, 1500.0));
        assert!(close_to(summary.iops_read, 1050.0));
        assert!(close_to(summary.throughput_write_mb_s, 450.0 * 4096.0 / 1e6));
        assert!(close_to(summary.throughput_mb_s(), 1500.0 * 4096.0 / 1e6));
        assert!(close_to(summary.latency.latency_ns_avg, 3_000_000.0));
        assert_eq!((summary.read.count, summary.write.count), (2100, 900));
    }

    #[test]
    fn outstanding_is_what_littles_law_says() {
        let summary = Summary::of(&[second(0, 42_667, 6_000_000)]);
        assert!(close_to(summary.outstanding_avg, 256.002));
        let deviation = summary.littles_law_deviation(256.0).unwrap();
        assert!((deviation - 0.002 / 256.0).abs() < 1e-9, "{deviation}");
        assert!(summary.littles_law_deviation(320.0).unwrap() < -0.19);
    }

    #[test]
    fn a_long_request_at_the_edge_of_a_short_span_is_allowed_for() {
        let summary = Summary::of(&[second(0, 1000, 100_000_000)]);
        assert!((summary.littles_law_edge() - 0.1).abs() < 0.001);
    }

    #[test]
    fn nothing_measured_is_finite() {
        for summary in [Summary::of(&[]), Summary::of(&[Interval::default()])] {
            assert_eq!(summary, Summary::default());
            assert_eq!(summary.littles_law_deviation(256.0), None);
            assert!(summary.littles_law_edge().abs() < f64::EPSILON);
        }
    }

    #[test]
    fn nand_writes_are_summed_where_there_are_any() {
        let nand = NandWrites { host_sent_bytes: 10, host_bytes: 10, ..NandWrites::default() };
        let with = Interval { nand: Some(nand), ..second(0, 1, 1) };
        let summary = Summary::of(&[with.clone(), with]);
        assert_eq!(summary.nand.unwrap().host_bytes, 20);
        assert_eq!(Summary::of(&[second(0, 1, 1)]).nand, None);
    }

    #[test]
    fn power_is_averaged_over_time_and_of_temperatures_the_highest_counts() {
        let at = |span_s, power_w, temperature_c, power_throttled_share| Interval {
            span_s,
            climate: Some(Climate {
                power_w: Some(power_w),
                temperature_c: Some(temperature_c),
                power_throttled_share: Some(power_throttled_share),
                ..Climate::default()
            }),
            ..second(0, 1, 1)
        };
        let climate = Summary::of(&[at(1.0, 10.0, 60.0, 0.0), at(3.0, 20.0, 50.0, 1.0)]).climate;
        let climate = climate.expect("both know it");
        assert!(close_to(climate.power_w.unwrap(), 17.5), "{climate:?}");
        assert!(close_to(climate.temperature_c.unwrap(), 60.0), "{climate:?}");
        assert!(close_to(climate.power_throttled_share.unwrap(), 0.75), "{climate:?}");
        assert_eq!(climate.thermal_throttled_share, None, "it was not reported");
        assert_eq!(Summary::of(&[second(0, 1, 1)]).climate, None);
    }

    #[test]
    fn processor_time_is_divided_by_the_requests_of_intervals_that_know_it() {
        let of = |busy_us: u64, requests| Interval {
            host_busy_ns: Some(busy_us * 1000),
            ..second(0, requests, 1)
        };
        let summary = Summary::of(&[of(10_000, 1000), of(50_000, 3000), second(0, 500, 1)]);
        assert_eq!(summary.host_processor_us, Some(15.0));
        assert!(close_to(summary.host_processors().unwrap(), 4500.0 / 3.0 * 15.0 / 1e6));
        assert_eq!(Summary::of(&[of(10, 0)]).host_processor_us, None, "without a request");
        assert_eq!(Summary::of(&[second(0, 1, 1)]).host_processors(), None);
    }

    #[test]
    fn a_sample_carries_its_end_and_free_superblocks() {
        let interval =
            Interval { at_s: 60.0, superblocks_free_share: Some(0.07), ..second(10, 0, 1000) };
        let sample = Sample::of(&interval);
        assert!(close_to(sample.at_s, 60.0));
        assert_eq!(sample.superblocks_free_share, Some(0.07));
        assert_eq!(sample.summary, Summary::of(&[interval]));
    }
}
