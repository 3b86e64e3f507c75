//! Transactions of an application: when each began and when it was committed, as the benchmark
//! logged it.

use blockio::Nanos;

/// A transaction of an application, on the clock of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Time at which a client began it.
    pub from: Nanos,
    /// Time at which it was committed, not before it began.
    pub to: Nanos,
}

impl Transaction {
    /// Latency, from begin to commit.
    pub fn latency(&self) -> Nanos {
        self.to - self.from
    }

    /// Parses the log of a benchmark, one transaction per line: the time of its commit in
    /// microseconds since 1970, a blank, and its latency in microseconds. `began_unix_ns` is the
    /// start of the recording; transactions that began before it are left out.
    ///
    /// # Errors
    /// Fails if a line is malformed, and names it.
    pub fn parse_log(log: &str, began_unix_ns: u64) -> Result<Vec<Self>, String> {
        let mut transactions = Vec::new();
        for (index, line) in log.lines().enumerate() {
            let mut numbers = line.split_ascii_whitespace().map(str::parse::<u64>);
            let (Some(Ok(end_us)), Some(Ok(latency_us)), None) =
                (numbers.next(), numbers.next(), numbers.next())
            else {
                return Err(format!(
                    "line {} of the transaction log is `{line}`, not the time of a commit in \
                     microseconds since 1970 and a latency in microseconds",
                    index + 1
                ));
            };
            let end_ns = end_us.saturating_mul(1000).checked_sub(began_unix_ns);
            let from_ns = end_ns.and_then(|it| it.checked_sub(latency_us.saturating_mul(1000)));
            if let (Some(from), Some(to)) = (from_ns, end_ns) {
                transactions.push(Self { from: Nanos(from), to: Nanos(to) });
            }
        }
        transactions.sort_by_key(|it| (it.to, it.from));
        Ok(transactions)
    }
}

/// Percentile of the latencies of `transactions`, `percent` from 0 to 100: the smallest latency
/// that at least this share does not exceed. None without transactions.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank among them, no more than there are"
)]
pub fn latency_percentile(latencies: &mut [Nanos], percent: f64) -> Option<Nanos> {
    assert!((0.0..=100.0).contains(&percent), "a percentile from 0 to 100, and {percent}");
    let rank = (latencies.len() as f64 * percent / 100.0).ceil() as usize;
    let index = rank.max(1) - 1;
    (index < latencies.len()).then(|| *latencies.select_nth_unstable(index).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_onto_the_clock_of_the_recording() {
        // The recording began at 1 000 us; what began before is not in it.
        let read = Transaction::parse_log("1500 100\n1400 250\n1100 200\n", 1_000_000).unwrap();
        let us = Nanos::from_micros;
        let expected =
            [(us(150), us(400)), (us(400), us(500))].map(|(from, to)| Transaction { from, to });
        assert_eq!(read, expected);
        assert_eq!(read[0].latency(), us(250));
    }

    #[test]
    fn a_line_of_another_form_is_named() {
        for wrong in ["12", "12 x", "12 3 4", "1.5 3", ""] {
            let log = format!("12 3\n{wrong}\n");
            let error = Transaction::parse_log(&log, 0).unwrap_err();
            assert!(error.starts_with(&format!("line 2 of the transaction log is `{wrong}`")));
        }
    }

    #[test]
    fn a_percentile_is_one_of_the_latencies() {
        let percentile = |count: u64, percent| {
            let mut latencies: Vec<Nanos> = (1..=count).rev().map(Nanos).collect();
            latency_percentile(&mut latencies, percent)
        };
        assert_eq!(percentile(0, 99.0), None);
        assert_eq!(percentile(1, 99.0), Some(Nanos(1)));
        assert_eq!(percentile(100, 99.0), Some(Nanos(99)));
        assert_eq!(percentile(101, 99.0), Some(Nanos(100)));
        assert_eq!(percentile(100, 0.0), Some(Nanos(1)));
        assert_eq!(percentile(100, 100.0), Some(Nanos(100)));
    }
}
