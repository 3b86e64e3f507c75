//! Latency histograms that merge without loss, with exact count, mean, deviation, minimum, maximum.

use hdrhistogram::Histogram;

use crate::LatencySummary;

/// Latencies of one kind of request over a span.
#[derive(Clone, Debug)]
pub struct Latencies {
    histogram: Histogram<u64>,
    sum_ns: u128,
    sum_of_squares_ns2: u128,
    latency_ns_min: u64,
    latency_ns_max: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            histogram: Histogram::new(2).expect("two digits is a legal precision"),
            sum_ns: 0,
            sum_of_squares_ns2: 0,
            latency_ns_min: u64::MAX,
            latency_ns_max: 0,
        }
    }
}

impl Latencies {
    /// Counts one request that took `latency_ns`.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        self.record_many(latency_ns, 1);
    }

    /// Counts `count` requests that took `latency_ns` each.
    #[inline]
    pub fn record_many(&mut self, latency_ns: u64, count: u64) {
        self.histogram.saturating_record_n(latency_ns, count);
        self.sum_ns += u128::from(latency_ns) * u128::from(count);
        self.sum_of_squares_ns2 +=
            u128::from(latency_ns) * u128::from(latency_ns) * u128::from(count);
        self.latency_ns_min = self.latency_ns_min.min(latency_ns);
        self.latency_ns_max = self.latency_ns_max.max(latency_ns);
    }

    /// Adds all that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("same precision and resizable");
        self.sum_ns += other.sum_ns;
        self.sum_of_squares_ns2 += other.sum_of_squares_ns2;
        self.latency_ns_min = self.latency_ns_min.min(other.latency_ns_min);
        self.latency_ns_max = self.latency_ns_max.max(other.latency_ns_max);
    }

    /// Requests counted.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The figures that are reported.
    pub fn summary(&self) -> LatencySummary {
        LatencySummary { count: self.count(), ..LatencySummary::default() }
    }
}
