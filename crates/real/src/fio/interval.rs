//! Intervals of a step, from the logs of its jobs.
//!
//! fio keeps a histogram of each interval for one latency only, its `clat`: from the end of the
//! submission to the completion. What counts as latency is its `lat`, from before the submission.
//! So a row is counted at the middle of its bins, which are 1.6 % wide at coarseness 0, plus the
//! mean time of a submission (`slat`) of that job and direction over the whole step, and widened to
//! the exact maximum of `lat` that the other log gives for the same moment. Means over the step are
//! therefore exact; percentiles of an interval are as far off as its submissions were from their
//! mean. Totals of a step do not come from here but from fio's report, which has `lat` itself.
//!
//! fio logs no bytes beside the counts: the bytes of an interval are its requests times the mean
//! transfer size of that job and direction over the whole step, exact where all transfers have one
//! size.

use results::Interval;

use super::job::Logging;
use super::log::{DataDirection, HistogramRow, Largest, latencies_of};
use super::output::{self, rounded};

/// Rows of the two logs are of the same moment when this near, in milliseconds.
const SAME_MOMENT_MS: u64 = 5;

/// Logs of one job.
#[derive(Clone, Debug, Default)]
pub(super) struct JobLog {
    /// Its histogram, row by row.
    pub(super) rows: Vec<HistogramRow>,
    /// Its largest latencies.
    pub(super) largest: Vec<Largest>,
}

/// The intervals that every job finished, at most as many as were wanted.
pub(super) fn merged(
    logging: Logging,
    logs: &[JobLog],
    totals: &[output::JobTotals],
) -> Vec<Interval> {
    let placed: Vec<Vec<(u64, &HistogramRow)>> =
        logs.iter().map(|log| placed(log, logging)).collect();
    let finished = placed.iter().map(|rows| rows.iter().map(|(at, _)| at + 1).max().unwrap_or(0));
    let count = finished.min().unwrap_or(0).min(logging.rows);
    let span_s = logging.interval_ms as f64 / 1e3;
    let mut intervals: Vec<Interval> = (1..=count)
        .map(|end| Interval { at_s: end as f64 * span_s, span_s, ..Interval::default() })
        .collect();
    for ((rows, log), totals) in placed.iter().zip(logs).zip(totals) {
        for (at, row) in rows {
            let interval = usize::try_from(*at).ok().and_then(|at| intervals.get_mut(at));
            if let Some(interval) = interval {
                add(interval, row, largest_of(log, row), logging.coarseness, totals);
            }
        }
    }
    intervals
}

/// Each row of a job with the index of its interval: rows of a direction follow each other, the
/// first one begins with the direction's first request.
fn placed(log: &JobLog, logging: Logging) -> Vec<(u64, &HistogramRow)> {
    let interval_ms = logging.interval_ms;
    let mut placed = Vec::new();
    for direction in [DataDirection::Read, DataDirection::Write] {
        let rows = || (0_u64..).zip(log.rows.iter().filter(|row| row.direction == direction));
        // No row is written before its end: the earliest one tells when the first began.
        let lead_ms = rows().map(|(at, row)| row.at_ms.saturating_sub((at + 1) * interval_ms));
        let lead_ms = lead_ms.min().unwrap_or(0);
        let skipped = (lead_ms + interval_ms / 2) / interval_ms;
        placed.extend(rows().map(|(at, row)| (at + skipped, row)));
    }
    placed
}

/// The exact maximum of `row`, where the log of maxima has it.
fn largest_of(log: &JobLog, row: &HistogramRow) -> Option<u64> {
    let from = log.largest.partition_point(|largest| largest.at_ms + SAME_MOMENT_MS < row.at_ms);
    let near = log.largest[from..]
        .iter()
        .take_while(|largest| largest.at_ms <= row.at_ms + SAME_MOMENT_MS);
    let same = near.into_iter().find(|largest| largest.direction == row.direction)?;
    Some(same.latency_ns)
}

fn add(
    interval: &mut Interval,
    row: &HistogramRow,
    largest_ns: Option<u64>,
    coarseness: u32,
    totals: &output::JobTotals,
) {
    let (latencies, bytes, totals) = match row.direction {
        DataDirection::Read => (&mut interval.read, &mut interval.read_bytes, &totals.read),
        DataDirection::Write => (&mut interval.write, &mut interval.write_bytes, &totals.write),
    };
    // A maximum outside the highest bin is that of a window with other borders.
    let highest = row.counts.last().map(|(index, _)| latencies_of(*index, coarseness));
    let submitting_ns_max = totals.slat_ns.max;
    let is_of = |ns: &u64| {
        highest.as_ref().is_some_and(|bins| {
            (*bins.start()..=bins.end().saturating_add(submitting_ns_max)).contains(ns)
        })
    };
    let largest_ns = largest_ns.filter(is_of);
    let submitting_ns = rounded(totals.slat_ns.mean);
    for (index, count) in &row.counts {
        let bins = latencies_of(*index, coarseness);
        let middle_ns = bins.start().midpoint(*bins.end()) + submitting_ns;
        latencies.record_many(middle_ns.min(largest_ns.unwrap_or(u64::MAX)), *count);
    }
    if let Some(ns) = largest_ns {
        latencies.widen(ns, ns);
    }
    let count: u64 = row.counts.iter().map(|(_, count)| count).sum();
    *bytes += rounded(count as f64 * totals.mean_bytes());
}

#[cfg(test)]
mod tests;
