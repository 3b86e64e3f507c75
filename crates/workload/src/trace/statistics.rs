//! Statistics of the requests of a trace.

use std::collections::BTreeMap;

use blockio::{Op, SECTOR_BYTES};
use serde::Serialize;

use super::Trace;

/// Statistics of the requests of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statistics {
    /// Requests.
    pub requests: u64,
    /// Time from the first to the last, in seconds; 0 where there are no times.
    pub span_s: f64,
    /// Requests a second; absent where there are no times.
    pub iops: Option<f64>,
    /// Squared coefficient of variation of the spans between requests: 1 is a Poisson process, more
    /// comes in bursts. Absent where there are no times.
    pub burstiness: Option<f64>,
    /// Share of requests that read, in percent.
    pub read_percent: f64,
    /// Mean transfer size, in bytes.
    pub mean_bytes: f64,
    /// Transfer sizes, the most frequent first.
    pub sizes: Vec<SizeCount>,
    /// Share of requests that begin where the last one of the same direction ended, in percent.
    pub sequential_percent: f64,
    /// Address space, in bytes.
    pub space_bytes: u64,
    /// Bytes of all [`REGION_BYTES`] regions that are touched at all.
    pub touched_bytes: u64,
    /// Share of requests that go to the hottest tenth of the touched regions, in percent.
    pub hottest_tenth_percent: f64,
}

/// One transfer size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SizeCount {
    /// Transfer size, in bytes.
    pub bytes: u64,
    /// Share of the requests, in percent.
    pub percent: f64,
}

/// Regions by which locality is counted, in bytes.
pub const REGION_BYTES: u64 = 1 << 20;
pub(super) const REGION_SECTORS: u64 = REGION_BYTES / SECTOR_BYTES;

impl Trace {
    /// Computes the statistics of its requests.
    pub fn statistics(&self) -> Statistics {
        let count = self.requests.len() as f64;
        let percent = |part: u64| 100.0 * part as f64 / count;
        let reads = self.requests.iter().filter(|request| request.op == Op::Read).count() as u64;
        let sectors: u64 = self.requests.iter().map(|request| u64::from(request.sectors)).sum();
        let span_s = self.span().as_secs_f64();
        let is_timed = span_s > 0.0;
        let regions = self.regions();
        let tenth = regions.len().div_ceil(10);
        Statistics {
            requests: self.requests.len() as u64,
            span_s,
            iops: is_timed.then(|| (count - 1.0) / span_s),
            burstiness: is_timed.then(|| self.burstiness()),
            read_percent: percent(reads),
            mean_bytes: (sectors * SECTOR_BYTES) as f64 / count,
            sizes: self.sizes(),
            sequential_percent: percent(self.sequential()),
            space_bytes: self.space_sectors * SECTOR_BYTES,
            touched_bytes: regions.len() as u64 * REGION_BYTES,
            hottest_tenth_percent: percent(regions[..tenth].iter().sum()),
        }
    }

    fn burstiness(&self) -> f64 {
        let gaps = || self.requests.windows(2).map(|pair| (pair[1].at - pair[0].at).as_secs_f64());
        let count = gaps().count().max(1) as f64;
        let mean = gaps().sum::<f64>() / count;
        let variance = gaps().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / count;
        if mean > 0.0 { variance / (mean * mean) } else { 0.0 }
    }

    fn sizes(&self) -> Vec<SizeCount> {
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        for request in &self.requests {
            *counts.entry(request.sectors).or_default() += 1;
        }
        let all = self.requests.len() as f64;
        let mut sizes: Vec<SizeCount> = counts
            .into_iter()
            .map(|(sectors, count)| SizeCount {
                bytes: u64::from(sectors) * SECTOR_BYTES,
                percent: 100.0 * count as f64 / all,
            })
            .collect();
        sizes.sort_by(|a, b| b.percent.total_cmp(&a.percent));
        sizes
    }

    fn sequential(&self) -> u64 {
        let mut ends = [None; 2];
        let mut count = 0;
        for request in &self.requests {
            let end = &mut ends[usize::from(request.op == Op::Write)];
            count += u64::from(*end == Some(request.lba));
            *end = Some(request.lba + u64::from(request.sectors));
        }
        count
    }

    /// Requests that begin in each region that is touched, most first.
    fn regions(&self) -> Vec<u64> {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for request in &self.requests {
            *counts.entry(request.lba / REGION_SECTORS).or_default() += 1;
        }
        let mut counts: Vec<u64> = counts.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts
    }
}
