//! Latency histograms that merge without loss, with exact count, mean, deviation, minimum, maximum.
//!
//! Bins are those of an HDR histogram of two significant digits: latencies below 256 ns have a bin
//! each, above that every power of two has 128 bins of equal width. A percentile is the upper end
//! of its bin, so it is at most 1/128 (0.8 %) too high and never too low.
//!
//! Recording must keep up with a simulation (tens of millions a second), so it adds to a plain
//! array that grows with the largest latency seen, to 36 KiB at an hour. A closed histogram keeps
//! only the bins that counted something; both forms count on and merge alike.

use blockio::Nanos;
use serde::{Deserialize, Serialize};

/// Latency of one kind of request over a span. All in nanoseconds.
///
/// Where `count` is zero nothing was measured: mean, deviation and extremes are then zero here, and
/// absent in files; [`LatencySummary::mean_ns`] and its like tell both apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredSummary", into = "StoredSummary")]
pub struct LatencySummary {
    /// Requests whose latency was measured.
    pub count: u64,
    /// Arithmetic mean.
    pub latency_ns_avg: f64,
    /// Standard deviation (of the population).
    pub latency_ns_stdev: f64,
    /// Smallest.
    pub latency_ns_min: u64,
    /// Largest, exact.
    pub latency_ns_max: u64,
    /// Median, from the histogram; as the percentiles below, absent where it was not measured.
    pub latency_ns_p50: Option<u64>,
    /// 90th percentile.
    pub latency_ns_p90: Option<u64>,
    /// 99th percentile.
    pub latency_ns_p99: Option<u64>,
    /// 99.9th percentile.
    pub latency_ns_p999: Option<u64>,
    /// 99.99th percentile.
    pub latency_ns_p9999: Option<u64>,
}

/// A summary as it is kept in files: what was not measured is absent. Zeroes stand for that in
/// results from earlier versions.
#[derive(Serialize, Deserialize)]
struct StoredSummary {
    count: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latency_ns_avg: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latency_ns_stdev: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latency_ns_min: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latency_ns_max: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latency_ns_p50: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latency_ns_p90: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latency_ns_p99: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latency_ns_p999: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latency_ns_p9999: Option<u64>,
}

impl From<LatencySummary> for StoredSummary {
    fn from(it: LatencySummary) -> Self {
        let is_measured = it.count > 0;
        Self {
            count: it.count,
            latency_ns_avg: is_measured.then_some(it.latency_ns_avg),
            latency_ns_stdev: is_measured.then_some(it.latency_ns_stdev),
            latency_ns_min: is_measured.then_some(it.latency_ns_min),
            latency_ns_max: is_measured.then_some(it.latency_ns_max),
            latency_ns_p50: it.latency_ns_p50,
            latency_ns_p90: it.latency_ns_p90,
            latency_ns_p99: it.latency_ns_p99,
            latency_ns_p999: it.latency_ns_p999,
            latency_ns_p9999: it.latency_ns_p9999,
        }
    }
}

impl From<StoredSummary> for LatencySummary {
    fn from(it: StoredSummary) -> Self {
        let longest = it.latency_ns_max.unwrap_or_default();
        // No percentile of requests that took any time is zero.
        let percentile = |stored: Option<u64>| {
            stored.filter(|latency_ns| it.count > 0 && (*latency_ns > 0 || longest == 0))
        };
        Self {
            count: it.count,
            latency_ns_avg: it.latency_ns_avg.unwrap_or_default(),
            latency_ns_stdev: it.latency_ns_stdev.unwrap_or_default(),
            latency_ns_min: it.latency_ns_min.unwrap_or_default(),
            latency_ns_max: longest,
            latency_ns_p50: percentile(it.latency_ns_p50),
            latency_ns_p90: percentile(it.latency_ns_p90),
            latency_ns_p99: percentile(it.latency_ns_p99),
            latency_ns_p999: percentile(it.latency_ns_p999),
            latency_ns_p9999: percentile(it.latency_ns_p9999),
        }
    }
}

/// Requests that must lie beyond a percentile for it to be told: fewer are chance.
const BEYOND_MIN: f64 = 10.0;

/// True if the percentile at `share`, such as 0.999, of so many requests is more than chance: at
/// least ten requests lie beyond it.
pub fn is_percentile_known(requests: u64, share: f64) -> bool {
    // 1 - 0.999 is a little less than 0.001.
    requests as f64 * (1.0 - share) >= BEYOND_MIN * (1.0 - 1e-9)
}

impl LatencySummary {
    /// Arithmetic mean in nanoseconds; as the two below, absent where no latency was measured.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then_some(self.latency_ns_avg)
    }

    /// Standard deviation in nanoseconds, where any latency was measured.
    pub fn stdev_ns(&self) -> Option<f64> {
        (self.count > 0).then_some(self.latency_ns_stdev)
    }

    /// Largest latency in nanoseconds, where any was measured.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.latency_ns_max)
    }

    /// Median in nanoseconds; as of the percentiles below, absent where fewer than ten requests lie
    /// beyond it, so that it would be chance.
    pub fn p50_ns(&self) -> Option<u64> {
        self.known(0.5, self.latency_ns_p50)
    }

    /// 90th percentile in nanoseconds, where it is known.
    pub fn p90_ns(&self) -> Option<u64> {
        self.known(0.9, self.latency_ns_p90)
    }

    /// 99th percentile in nanoseconds, where it is known.
    pub fn p99_ns(&self) -> Option<u64> {
        self.known(0.99, self.latency_ns_p99)
    }

    /// 99.9th percentile in nanoseconds, where it is known.
    pub fn p999_ns(&self) -> Option<u64> {
        self.known(0.999, self.latency_ns_p999)
    }

    /// 99.99th percentile in nanoseconds, where it is known.
    pub fn p9999_ns(&self) -> Option<u64> {
        self.known(0.9999, self.latency_ns_p9999)
    }

    fn known(&self, share: f64, latency_ns: Option<u64>) -> Option<u64> {
        latency_ns.filter(|_| is_percentile_known(self.count, share))
    }

    /// Note on a mean that is above a percentile, as rare long requests make it: the highest such
    /// percentile and the longest request. Absent where it is above none from the 99th on.
    pub fn mean_note(&self) -> Option<String> {
        let percentiles = [
            ("p99.99", self.latency_ns_p9999),
            ("p99.9", self.latency_ns_p999),
            ("p99", self.latency_ns_p99),
        ];
        let is_below = |(_, latency_ns): &(_, Option<u64>)| {
            latency_ns.is_some_and(|it| it > 0 && self.latency_ns_avg > it as f64)
        };
        let (name, _) = percentiles.into_iter().find(is_below)?;
        let longest = Nanos(self.latency_ns_max);
        Some(format!("mean above {name}: rare requests of up to {longest} raise it"))
    }
}

/// One bin of a latency histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bin {
    /// Highest latency that falls into the bin, in nanoseconds.
    pub latency_ns: u64,
    /// Requests in it.
    pub count: u64,
}

/// Latencies of one kind of request over a span.
#[derive(Clone, Debug)]
pub struct Latencies {
    /// Counts by bin, as far as the largest latency since the last close reached.
    open: Vec<u64>,
    /// Bins and counts from before the last close, ascending.
    closed: Vec<(u16, u64)>,
    count: u64,
    /// Requests that others stand for: `count` less those that were measured.
    extrapolated: u64,
    sum_ns: u128,
    sum_of_squares_ns2: u128,
    latency_ns_min: u64,
    latency_ns_max: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            closed: Vec::new(),
            count: 0,
            extrapolated: 0,
            sum_ns: 0,
            sum_of_squares_ns2: 0,
            latency_ns_min: u64::MAX,
            latency_ns_max: 0,
        }
    }
}

impl Latencies {
    /// Latencies above this, 52 days, count as this.
    pub const LATENCY_NS_LIMIT: u64 = 1 << 52;

    /// Rebuilds a histogram from its bins; mean and deviation are those of the bins' upper ends.
    pub fn from_bins(bins: &[Bin]) -> Self {
        let mut latencies = Self::default();
        for bin in bins {
            latencies.record_many(bin.latency_ns, bin.count);
        }
        latencies
    }

    /// The latencies, of which so many count as measured, at most all: the others they stand for.
    #[must_use]
    pub fn of_measured(self, measured: u64) -> Self {
        Self { extrapolated: self.count.saturating_sub(measured), ..self }
    }

    /// Counts one request that took `latency_ns`.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        let latency_ns = latency_ns.min(Self::LATENCY_NS_LIMIT);
        let bin = bin_of(latency_ns);
        match self.open.get_mut(bin) {
            Some(count) => *count += 1,
            None => self.add(bin, 1),
        }
        self.count += 1;
        self.sum_ns += u128::from(latency_ns);
        self.sum_of_squares_ns2 += u128::from(latency_ns) * u128::from(latency_ns);
        self.latency_ns_min = self.latency_ns_min.min(latency_ns);
        self.latency_ns_max = self.latency_ns_max.max(latency_ns);
    }

    /// Counts one request that took `latency_ns` at 1/`time_lapse` of the scale, `stalled_ns` of
    /// which was a stall that held it alone.
    ///
    /// Such a stall is 1/k as long in time lapse k as at full scale, so that its share of the time
    /// is the same; and it meets one of 1/k as many requests. So it stands for 1/k of a request
    /// that is held for k times as long: mean, deviation and maximum are those of full scale. A
    /// histogram cannot count 1/k of a request, so the bins hold this one without its stall.
    pub fn record_stalled(&mut self, latency_ns: u64, stalled_ns: u64, time_lapse: u32) {
        assert!(stalled_ns <= latency_ns, "a stall of {stalled_ns} is part of {latency_ns} ns");
        if time_lapse <= 1 {
            return self.record(latency_ns);
        }
        let scale = u64::from(time_lapse);
        let undisturbed_ns = latency_ns - stalled_ns;
        let at_full_scale_ns = stalled_ns.saturating_mul(scale).saturating_add(undisturbed_ns);
        let at_full_scale_ns = at_full_scale_ns.min(Self::LATENCY_NS_LIMIT);
        self.record(undisturbed_ns);
        self.sum_ns += u128::from(latency_ns - undisturbed_ns);
        let square = |ns: u64| u128::from(ns) * u128::from(ns);
        let more = square(at_full_scale_ns) - square(undisturbed_ns.min(at_full_scale_ns));
        self.sum_of_squares_ns2 += more / u128::from(time_lapse);
        self.latency_ns_max = self.latency_ns_max.max(at_full_scale_ns);
    }

    /// Counts `count` requests that took `latency_ns` each.
    pub fn record_many(&mut self, latency_ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        let latency_ns = latency_ns.min(Self::LATENCY_NS_LIMIT);
        self.add(bin_of(latency_ns), count);
        let (latency, many) = (u128::from(latency_ns), u128::from(count));
        self.count = self.count.saturating_add(count);
        self.sum_ns = self.sum_ns.saturating_add(latency * many);
        let squares = (latency * latency).saturating_mul(many);
        self.sum_of_squares_ns2 = self.sum_of_squares_ns2.saturating_add(squares);
        self.latency_ns_min = self.latency_ns_min.min(latency_ns);
        self.latency_ns_max = self.latency_ns_max.max(latency_ns);
    }

    /// Widens the extremes to those that a source knows exactly while it gives bins only.
    pub fn widen(&mut self, latency_ns_min: u64, latency_ns_max: u64) {
        self.latency_ns_min = self.latency_ns_min.min(latency_ns_min);
        self.latency_ns_max = self.latency_ns_max.max(latency_ns_max);
    }

    /// Takes the mean that a source knows exactly while it gives bins only.
    pub fn set_mean(&mut self, latency_ns_avg: f64) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
        let sum_ns = (latency_ns_avg * self.count as f64).round() as u128;
        self.sum_ns = sum_ns;
    }

    /// Adds all that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        for (bin, count) in other.filled() {
            self.add(bin, count);
        }
        self.count = self.count.saturating_add(other.count);
        self.extrapolated = self.extrapolated.saturating_add(other.extrapolated);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.sum_of_squares_ns2 = self.sum_of_squares_ns2.saturating_add(other.sum_of_squares_ns2);
        self.latency_ns_min = self.latency_ns_min.min(other.latency_ns_min);
        self.latency_ns_max = self.latency_ns_max.max(other.latency_ns_max);
    }

    /// Latencies of `count` requests, for which these stand, distributed alike as exactly as whole
    /// requests allow; `measured` of them count as measured. Nothing where nothing was
    /// measured.
    #[must_use]
    pub fn weighted(&self, count: u64, measured: u64) -> Self {
        if self.count == 0 || count == 0 {
            return Self::default();
        }
        let (from, to) = (u128::from(self.count), u128::from(count));
        let scaled = |amount: u128| {
            let whole = amount / from;
            whole.saturating_mul(to).saturating_add((amount - whole * from) * to / from)
        };
        let mut weighted = Self { count, ..Self::default() };
        let (mut passed, mut given) = (0_u128, 0_u128);
        for (bin, bin_count) in self.filled() {
            passed += u128::from(bin_count);
            let until = (passed * to + from / 2) / from;
            let share = u64::try_from(until - given).expect("at most `count`");
            if share > 0 {
                weighted.add(bin, share);
            }
            given = until;
        }
        weighted.extrapolated = count.saturating_sub(measured);
        weighted.sum_ns = scaled(self.sum_ns);
        weighted.sum_of_squares_ns2 = scaled(self.sum_of_squares_ns2);
        weighted.latency_ns_min = self.latency_ns_min;
        weighted.latency_ns_max = self.latency_ns_max;
        weighted.close();
        weighted
    }

    /// Requests that were measured, at most those that are counted.
    pub fn measured(&self) -> u64 {
        self.count - self.extrapolated
    }

    /// Gives back the memory that recording needs; counting on is possible, but costs it again.
    pub fn close(&mut self) {
        self.closed = self
            .filled()
            .map(|(bin, count)| (u16::try_from(bin).expect("there are fewer bins"), count))
            .collect();
        self.open = Vec::new();
    }

    /// Requests counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of all latencies, in nanoseconds.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// The bins that counted something, ascending.
    pub fn bins(&self) -> Vec<Bin> {
        self.filled().map(|(bin, count)| Bin { latency_ns: upper_end(bin), count }).collect()
    }

    /// The figures that are reported.
    pub fn summary(&self) -> LatencySummary {
        if self.count == 0 {
            return LatencySummary::default();
        }
        let shares = [500_000, 900_000, 990_000, 999_000, 999_900];
        let [p50, p90, p99, p999, p9999] = self.percentiles(shares).map(Some);
        // What few measured requests stand for is no better known than they are.
        let known = |share: f64, percentile: Option<u64>| {
            let is_known = self.extrapolated == 0 || is_percentile_known(self.measured(), share);
            percentile.filter(|_| is_known)
        };
        LatencySummary {
            count: self.count,
            latency_ns_avg: self.sum_ns as f64 / self.count as f64,
            latency_ns_stdev: self.variance_ns2().sqrt(),
            latency_ns_min: self.latency_ns_min,
            latency_ns_max: self.latency_ns_max,
            latency_ns_p50: known(0.5, p50),
            latency_ns_p90: known(0.9, p90),
            latency_ns_p99: known(0.99, p99),
            latency_ns_p999: known(0.999, p999),
            latency_ns_p9999: known(0.9999, p9999),
        }
    }

    /// Latency that 99.999 % of the requests do not exceed, in nanoseconds; absent where fewer than
    /// ten requests lie beyond it.
    pub fn five_nines_ns(&self) -> Option<u64> {
        is_percentile_known(self.measured(), 0.99999).then(|| self.percentiles([999_990])[0])
    }

    /// Latencies that two shares of the requests do not exceed, 0 to 1 and ascending, rounded
    /// outwards to a millionth.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1")]
    pub(crate) fn between(&self, low: f64, high: f64) -> [u64; 2] {
        self.percentiles([(low * 1e6).floor() as u64, (high * 1e6).ceil() as u64])
    }

    /// Latencies that the given shares of the requests do not exceed; shares in millionths,
    /// ascending.
    fn percentiles<const N: usize>(&self, shares: [u64; N]) -> [u64; N] {
        let mut found = [self.latency_ns_max; N];
        let (mut passed, mut next) = (0, 0);
        for (bin, count) in self.filled() {
            passed += u128::from(count);
            while next < N {
                let rank = u128::from(self.count) * u128::from(shares[next]);
                if passed * 1_000_000 < rank {
                    break;
                }
                found[next] = upper_end(bin).clamp(self.latency_ns_min, self.latency_ns_max);
                next += 1;
            }
        }
        found
    }

    /// Mean squared distance from the mean. Distances from the mean's whole part are summed in
    /// integers, because the difference of two sums of squares cancels in floating point.
    fn variance_ns2(&self) -> f64 {
        let count = u128::from(self.count);
        let (whole, rest) = (self.sum_ns / count, self.sum_ns % count);
        let twice_cross = (2 * whole).saturating_mul(self.sum_ns);
        let squares = self
            .sum_of_squares_ns2
            .saturating_add(whole.saturating_mul(whole).saturating_mul(count))
            .saturating_sub(twice_cross);
        let offset = rest as f64 / self.count as f64;
        (squares as f64 / self.count as f64 - offset * offset).max(0.0)
    }

    /// Bins that counted something with their counts, ascending.
    fn filled(&self) -> impl Iterator<Item = (usize, u64)> {
        let mut closed =
            self.closed.iter().map(|(bin, count)| (usize::from(*bin), *count)).peekable();
        let mut open =
            self.open.iter().copied().enumerate().filter(|(_, count)| *count > 0).peekable();
        std::iter::from_fn(move || match (closed.peek(), open.peek()) {
            (Some(old), Some(new)) if old.0 == new.0 => {
                let (bin, count) = closed.next()?;
                Some((bin, count.saturating_add(open.next()?.1)))
            }
            (Some(old), Some(new)) if old.0 > new.0 => open.next(),
            (None, _) => open.next(),
            (Some(_), _) => closed.next(),
        })
    }

    #[inline(never)]
    fn add(&mut self, bin: usize, count: u64) {
        if bin >= self.open.len() {
            self.open.resize((bin + 1).next_multiple_of(BINS_PER_OCTAVE), 0);
        }
        self.open[bin] = self.open[bin].saturating_add(count);
    }
}

/// Bins of each power of two: two significant digits need a hundred, a power of two is quick.
const BINS_PER_OCTAVE: usize = 1 << OCTAVE_BITS;
const OCTAVE_BITS: u32 = 7;

/// The bin of a latency: its octave and the seven bits below its leading one.
#[inline]
fn bin_of(latency_ns: u64) -> usize {
    let octave = (latency_ns | (1 << OCTAVE_BITS)).ilog2() - OCTAVE_BITS;
    let within = usize::try_from(latency_ns >> octave).expect("at most eight bits are left");
    ((octave as usize) << OCTAVE_BITS) + within
}

/// The highest latency of a bin, in nanoseconds.
fn upper_end(bin: usize) -> u64 {
    let octave = (bin >> OCTAVE_BITS).saturating_sub(1);
    let within = bin - (octave << OCTAVE_BITS);
    ((within as u64 + 1) << octave) - 1
}

#[cfg(test)]
mod tests;
