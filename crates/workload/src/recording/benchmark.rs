//! Results of benchmarks, read from what they print.

use blockio::Nanos;
use serde::{Deserialize, Serialize};

/// Result that a benchmark printed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Benchmark {
    /// Program that printed it: `sysbench`, `pgbench` or `db_bench`.
    pub tool: String,
    /// Number of transactions, or operations of `db_bench`, in the measurement.
    pub transactions: u64,
    /// Transactions per second.
    pub tps: f64,
    /// Mean latency of a transaction in milliseconds; absent if it was not printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms_mean: Option<f64>,
    /// 99th percentile of the latency in milliseconds; absent if it was not printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms_p99: Option<f64>,
}

impl Benchmark {
    /// Parses the last result in the output of sysbench (`--percentile=99` for a p99), pgbench or
    /// `db_bench`; none if the output has no result.
    pub fn parse(output: &str) -> Option<Self> {
        [sysbench, pgbench, db_bench].into_iter().find_map(|parse| parse(output))
    }

    /// Duration of the measurement.
    pub fn span(&self) -> Nanos {
        Nanos::from_secs_f64(self.transactions as f64 / self.tps)
    }
}

/// Rest of the last line that begins with `label`, after leading blanks.
fn after<'a>(output: &'a str, label: &str) -> Option<&'a str> {
    output.lines().rev().find_map(|line| line.trim_start().strip_prefix(label)).map(str::trim)
}

/// Number at the beginning of `text`.
fn leading(text: &str) -> Option<f64> {
    let end = text.find(|it: char| !it.is_ascii_digit() && it != '.').unwrap_or(text.len());
    text[..end].parse().ok().filter(|it: &f64| it.is_finite())
}

/// Whole number at the beginning of `text`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a printed count")]
fn count(text: &str) -> Option<u64> {
    leading(text).map(|it| it as u64)
}

/// sysbench 1.0: `transactions: 1234 (123.4 per sec.)`, then a histogram's `avg:` and
/// `99th percentile:` in milliseconds.
fn sysbench(output: &str) -> Option<Benchmark> {
    let line = after(output, "transactions:")?;
    let tps = leading(line.split('(').nth(1)?)?;
    Some(Benchmark {
        tool: "sysbench".into(),
        transactions: count(line)?,
        tps: positive(tps)?,
        latency_ms_mean: after(output, "avg:").and_then(leading),
        latency_ms_p99: after(output, "99th percentile:").and_then(leading),
    })
}

/// pgbench 15: `number of transactions actually processed: 1234`, `latency average = 1.2 ms`,
/// `tps = 123.4 (without initial connection time)`.
fn pgbench(output: &str) -> Option<Benchmark> {
    let transactions = count(after(output, "number of transactions actually processed:")?)?;
    Some(Benchmark {
        tool: "pgbench".into(),
        transactions,
        tps: positive(leading(after(output, "tps = ")?)?)?,
        latency_ms_mean: after(output, "latency average = ").and_then(leading),
        latency_ms_p99: None,
    })
}

/// `db_bench` of RocksDB: `readrandom : 12.3 micros/op 81000 ops/sec 10.0 seconds 810000
/// operations;`, with `--histogram` also `Percentiles: P50: … P99: …` in microseconds and its
/// buckets, for each kind of operation apart.
fn db_bench(output: &str) -> Option<Benchmark> {
    let is_result = |line: &&str| line.contains(" micros/op ") && line.contains(" ops/sec");
    let line = output.lines().rfind(is_result)?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let before = |unit: &str| {
        let at = words.iter().position(|word| word.trim_end_matches(';') == unit)?;
        leading(words.get(at.checked_sub(1)?)?)
    };
    let tps = positive(before("ops/sec")?)?;
    let operations = before("operations");
    let seconds = before("seconds");
    let histograms: Vec<&str> = output.lines().rev().take_while(|line| !is_result(line)).collect();
    let mut percentiles =
        histograms.iter().filter_map(|line| line.trim_start().strip_prefix("Percentiles:"));
    let p99 = match (percentiles.next(), percentiles.next()) {
        (Some(only), None) => only.split("P99: ").nth(1).and_then(leading),
        // One histogram for reads and one for writes: the latency is that of both.
        _ => percentile(histograms.into_iter().filter_map(bucket).collect(), 0.99),
    };
    Some(Benchmark {
        tool: "db_bench".into(),
        transactions: count(&operations.or(Some(tps * seconds?))?.to_string())?,
        tps,
        latency_ms_mean: before("micros/op").map(|it| it / 1e3),
        latency_ms_p99: p99.map(|it| it / 1e3),
    })
}

/// Operations of a histogram that took more than `low_us` and at most `high_us`.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    low_us: f64,
    high_us: f64,
    operations: f64,
}

/// Parses a bucket as `db_bench` prints it: `(       4,       6 ]       29   1.611%  97.611% #`.
fn bucket(line: &str) -> Option<Bucket> {
    let (bounds, counts) = line.trim_start().strip_prefix(['(', '['])?.split_once(']')?;
    let (low, high) = bounds.split_once(',')?;
    Some(Bucket {
        low_us: leading(low.trim_start())?,
        high_us: leading(high.trim_start())?,
        operations: leading(counts.trim_start())?,
    })
}

/// Latency in microseconds that `share` of the operations in `buckets` do not exceed, by linear
/// interpolation within a bucket as RocksDB does; absent without operations.
fn percentile(mut buckets: Vec<Bucket>, share: f64) -> Option<f64> {
    buckets.sort_by(|a, b| a.high_us.total_cmp(&b.high_us));
    let mut left = buckets.iter().map(|it| it.operations).sum::<f64>() * share;
    for Bucket { low_us, high_us, operations } in
        buckets.into_iter().filter(|it| it.operations > 0.0)
    {
        if operations >= left {
            return Some(low_us + (high_us - low_us) * left / operations);
        }
        left -= operations;
    }
    None
}

fn positive(tps: f64) -> Option<f64> {
    (tps > 0.0).then_some(tps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_of_sysbench_is_read() {
        let output = "\
SQL statistics:
    queries performed:
        read:                            14070
    transactions:                        1005   (100.33 per sec.)
    queries:                             20100  (2006.65 per sec.)
General statistics:
    total time:                          10.0153s
Latency (ms):
         min:                                    6.28
         avg:                                   79.67
         max:                                  250.91
         99th percentile:                      155.80
";
        let found = Benchmark::parse(output).unwrap();
        assert_eq!(
            (found.tool.as_str(), found.transactions, found.tps),
            ("sysbench", 1005, 100.33)
        );
        assert_eq!((found.latency_ms_mean, found.latency_ms_p99), (Some(79.67), Some(155.8)));
        assert_eq!(found.span(), Nanos::from_secs_f64(1005.0 / 100.33));
    }

    #[test]
    fn the_result_of_pgbench_is_read() {
        let output = "\
transaction type: <builtin: TPC-B (sort of)>
number of clients: 4
number of transactions actually processed: 9121
number of failed transactions: 0 (0.000%)
latency average = 4.384 ms
initial connection time = 11.113 ms
tps = 912.345678 (without initial connection time)
";
        let found = Benchmark::parse(output).unwrap();
        assert_eq!((found.tool.as_str(), found.transactions), ("pgbench", 9121));
        assert_eq!((found.tps, found.latency_ms_mean), (912.345_678, Some(4.384)));
        assert_eq!(found.latency_ms_p99, None);
    }

    #[test]
    fn the_last_result_of_db_bench_is_read() {
        let output = "\
fillseq      :       3.862 micros/op 258000 ops/sec 3.862 seconds 1000000 operations;   28.6 MB/s
readrandom   :      61.500 micros/op 65000 ops/sec 10.001 seconds 650070 operations;    7.2 MB/s
Microseconds per read:
Count: 650070 Average: 61.4  StdDev: 30.0
Percentiles: P50: 55.00 P75: 70.10 P99: 170.25 P99.9: 250.00 P99.99: 400.00
";
        let found = Benchmark::parse(output).unwrap();
        assert_eq!((found.transactions, found.tps), (650_070, 65_000.0));
        assert_eq!(found.latency_ms_mean, Some(0.0615));
        assert_eq!(found.latency_ms_p99, Some(0.17025));
    }

    #[test]
    fn the_percentile_of_reads_and_updates_is_that_of_both() {
        let histogram = |kind: &str, buckets: &str| {
            format!("Microseconds per {kind}:\nPercentiles: P50: 1.00 P99: 2.00\n{buckets}\n")
        };
        let reads = histogram("read", "[       0,       1 ]      900  90.0%  90.0% ###");
        let updates =
            "(       1,       2 ]       50  50.0%  50.0% #\n(   10000,   20000 ]       50  50.0%";
        let updates = histogram("write", updates);
        let line = "readrandomwriterandom :  8.748 micros/op 110938 ops/sec 0.018 seconds 1000 \
                    operations; ( reads:900 writes:100 total:1000 found:900)";
        let p99 = |output: &str| Benchmark::parse(output).unwrap().latency_ms_p99;
        // 950 within 2 us, so that 990 are within four fifths of the last bucket.
        let both = p99(&format!("{line}\n{reads}{updates}")).unwrap();
        assert!((both - 18.0).abs() < 1e-9, "{both}");
        assert_eq!(p99(&format!("{line}\n{updates}{reads}")), Some(both), "in any order");
        let earlier = format!("{}{line}\n", histogram("write", ""));
        assert_eq!(p99(&earlier), None, "that of an earlier benchmark");
        let bare = format!("{line}\n{}{}", histogram("read", ""), histogram("write", ""));
        assert_eq!(p99(&bare), None, "without buckets it is not known");
    }

    #[test]
    fn other_output_has_no_result() {
        for output in ["", "tps = 5", "transactions: none", "transactions: 0 (0.00 per sec.)"] {
            assert_eq!(Benchmark::parse(output), None, "{output}");
        }
    }
}
