//! The table of predictions beside measurements.

use std::fmt::Write as _;

use anyhow::Result;

use super::{APPLICATIONS, Options, Point, Row};

/// Minimum number of transactions for a comparison of 99th percentiles: of fewer, it is one of the
/// slowest few.
const TRANSACTIONS_MIN: f64 = 200.0;

/// The middle of some figures, and the range that they span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Spread {
    /// Spread of `values`; none where one of them is missing.
    pub(super) fn of(values: impl Iterator<Item = Option<f64>>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect::<Option<_>>()?;
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len().is_multiple_of(2) {
            f64::midpoint(values[middle - 1], values[middle])
        } else {
            values[middle]
        };
        Some(Self { median, low, high })
    }

    /// The median, and in brackets the range where there are several.
    pub(super) fn shown(of: Option<Self>) -> String {
        match of {
            None => "-".to_owned(),
            Some(it) if it.low < it.high => {
                format!("{:.1} ({:.1} to {:.1})", it.median, it.low, it.high)
            }
            Some(it) => format!("{:.1}", it.median),
        }
    }
}

impl Row {
    fn spread(points: &[Point], of: Figure) -> Option<Spread> {
        Spread::of(points.iter().map(of))
    }

    /// Relative error of the median of the predictions against that of the measurements; none where
    /// one is missing.
    fn error(&self, of: Figure) -> Option<f64> {
        let (predicted, measured) =
            (Self::spread(&self.predicted, of)?, Self::spread(&self.measured, of)?);
        Some(predicted.median / measured.median - 1.0)
    }

    /// True if enough transactions were measured for a 99th percentile.
    fn has_tail(&self) -> bool {
        let (tps, seconds) = (Self::spread(&self.measured, |it| it.tps), self.application.seconds);
        tps.is_some_and(|tps| tps.low * f64::from(seconds) >= TRANSACTIONS_MIN)
    }

    /// Error of the 99th percentile; none where it rests on too few transactions.
    fn error_p99(&self) -> Option<f64> {
        self.error(|it| it.latency_ms_p99).filter(|_| self.has_tail())
    }
}

/// The median and the 90th percentile of errors, whatever their sign.
fn quantiles(errors: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let mut errors: Vec<f64> = errors.map(f64::abs).collect();
    errors.sort_by(f64::total_cmp);
    let at = |share: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
        let index = (share * (errors.len() as f64 - 1.0)).round() as usize;
        errors.get(index).copied()
    };
    at(0.5).zip(at(0.9))
}

/// The document up to the end of the table.
pub(super) fn document(rows: &[Row], options: Options<'_>) -> Result<String> {
    let mut text = String::from(HEAD);
    let refused = rows.iter().filter(|row| row.error(|it| it.tps).is_none()).count();
    let predicted = rows.len() - refused;
    writeln!(
        text,
        "Each measurement took {} and was made {} times, the drives in turn{}; figures are \
         medians, with the range in brackets, and errors those of medians.",
        lengths(),
        options.repeats,
        if options.is_realtime {
            ", at real-time priority beside other work of the machine"
        } else {
            ""
        }
    )?;
    if let Some((median, p90)) = quantiles(rows.iter().filter_map(|row| row.error(|it| it.tps))) {
        writeln!(
            text,
            "\nOf {} predictions {predicted} have a rate; {refused} were refused because the host \
             dominates. **Median error {:.1} %, 90th percentile {:.1} %.**",
            rows.len(),
            median * 100.0,
            p90 * 100.0,
        )?;
    }
    let tails = || rows.iter().filter_map(Row::error_p99);
    if let Some((median, p90)) = quantiles(tails()) {
        writeln!(
            text,
            "The 99th percentile of the latency of a transaction is missed by **{:.1} % in the \
             median** and {:.1} % in the 90th percentile of {} predictions. It is compared from \
             {TRANSACTIONS_MIN} measured transactions on (of fewer it is one of the slowest two); \
             `db_bench` logs none.",
            median * 100.0,
            p90 * 100.0,
            tails().count(),
        )?;
    }
    scatter(&mut text, rows)?;
    text += "\n| application | threads | recorded on | predicted drive | measured TPS | predicted \
             TPS | error | measured p99, ms | predicted p99, ms | error | host \
             |\n|---|---|---|---|---|---|---|---|---|---|---|\n";
    for row in rows {
        line(&mut text, row)?;
    }
    text += TAIL;
    Ok(text)
}

/// Reads a figure of a point, if it has it.
type Figure = fn(&Point) -> Option<f64>;

/// Adds the error of repeating a measurement, beside that of single predictions of measurements.
fn scatter(text: &mut String, rows: &[Row]) -> Result<()> {
    let repeated = |of: Figure, rows: &[&Row]| {
        quantiles(rows.iter().flat_map(|row| pairs(&row.measured, &row.measured, of, true)))
    };
    let predicted = |of: Figure, rows: &[&Row]| {
        quantiles(rows.iter().flat_map(|row| pairs(&row.predicted, &row.measured, of, false)))
    };
    let (all, tails): (Vec<&Row>, Vec<&Row>) =
        (rows.iter().collect(), rows.iter().filter(|row| row.error_p99().is_some()).collect());
    let of: [(&str, Figure, &[&Row]); 2] =
        [("rate", |it| it.tps, &all), ("99th percentile", |it| it.latency_ms_p99, &tails)];
    let mut lines = String::new();
    for (what, of, rows) in of {
        let both = repeated(of, rows).zip(predicted(of, rows));
        let Some(((again, again_p90), (error, error_p90))) = both else { return Ok(()) };
        writeln!(
            lines,
            "| {what} | {:.1} % | {:.1} % | {:.1} % | {:.1} % |",
            again * 100.0,
            again_p90 * 100.0,
            error * 100.0,
            error_p90 * 100.0
        )?;
    }
    *text += SCATTER;
    *text += &lines;
    Ok(())
}

/// Relative errors of each of `guesses` against each of `measured`; `is_same` if both are the same
/// measurements, none of which is compared with itself.
fn pairs(guesses: &[Point], measured: &[Point], of: Figure, is_same: bool) -> Vec<f64> {
    let of_guess = |(at, guess): (usize, &Point)| {
        let others = measured.iter().enumerate().filter(move |(other, _)| !is_same || *other != at);
        let guess = of(guess);
        others.filter_map(|(_, it)| Some(guess? / of(it)? - 1.0)).collect::<Vec<_>>()
    };
    guesses.iter().enumerate().flat_map(of_guess).collect()
}

/// Lengths of the measurements, in words.
fn lengths() -> String {
    let each = APPLICATIONS.iter().map(|it| format!("{} s ({})", it.seconds, it.name));
    each.collect::<Vec<_>>().join(", ")
}

fn line(text: &mut String, row: &Row) -> Result<()> {
    let percent =
        |it: Option<f64>| it.map_or_else(|| "-".to_owned(), |it| format!("{:+.1} %", it * 100.0));
    let shown = |points: &[Point], of| Spread::shown(Row::spread(points, of));
    let host = Row::spread(&row.predicted, |it| it.host_share);
    let host = host.map_or_else(|| "-".to_owned(), |it| format!("{:.0} %", it.median * 100.0));
    writeln!(
        text,
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {host} |",
        row.application.name,
        row.threads,
        row.from,
        row.to,
        shown(&row.measured, |it| it.tps),
        shown(&row.predicted, |it| it.tps),
        percent(row.error(|it| it.tps)),
        shown(&row.measured, |it| it.latency_ms_p99),
        shown(&row.predicted, |it| it.latency_ms_p99),
        percent(row.error_p99()),
    )?;
    Ok(())
}

/// The document above its table.
const HEAD: &str = "\
# Predictions of applications

Written by `cargo xtask applications`, which takes most of an hour and needs root, MariaDB, \
PostgreSQL, sysbench, RocksDB's tools, and a machine without other work unless `--realtime` gives \
databases and clients real-time priority.

Two drives in memory read and write in 4 ms and in 16 ms, in place, so without state or stalls. \
Each application is measured on both, and predicted on each from its recording on the other \
(`floatgate app --keep-front-end`). The errors are those of the method: think times that depend on \
the load, requests with a wrong parent, and the time that an emulated drive takes beyond its \
model. The error of a model comes on top ([validation](validation.md)).

`host` is the share of think times in what the last request of the replay waited for. Above 80 % \
no rate is printed.

";

/// Text above the scatter of measurements.
const SCATTER: &str = "
The first columns are the scatter of measurements of one application on one drive; the others \
contain it.

| figure | measurement of another, median | 90th percentile | prediction of a measurement, median \
| 90th percentile |
|---|---|---|---|---|
";

/// Text beneath the table.
const TAIL: &str = "
### Shared flushes

Transactions that commit during a flush share the next one (group commit). A replay has as many \
transactions a flush as the recording: in two recordings on each drive pgbench had 1.72 and 1.73 \
at 4 ms and 1.72 and 1.76 at 16 ms with four clients, 2.65 and 2.70 beside 2.65 with eight. On a \
drive so fast that commits no longer wait for each other, fewer share one; there the host \
dominates, and the rate is marked or withheld.

### The slowest transactions

The 99th percentile of MariaDB from recordings at 16 ms is off because of pauses. With eight \
clients MariaDB pauses for 0.3 to 2.4 s, one to four times in 40 s on either drive; a replay has \
the pauses once for as many transactions as the recording. One pause holds two in a hundred of the \
420 transactions at 16 ms, but one in two hundred of the 1,650 at 4 ms. A recording does not tell \
a pause by a timer from work. With one client three of 86 transactions at 16 ms read three times \
as many pages as the others.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_the_middle_of_its_values() {
        let spread = |values: &[f64]| Spread::of(values.iter().map(|it| Some(*it)));
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[2.0, 1.0, 4.0]).map(|it| it.median), Some(2.0));
        assert_eq!(spread(&[2.0, 1.0]), Some(Spread { median: 1.5, low: 1.0, high: 2.0 }));
        assert_eq!(Spread::of([Some(1.0), None].into_iter()), None);
        assert_eq!(Spread::shown(spread(&[2.0, 1.0])), "1.5 (1.0 to 2.0)");
        assert_eq!(Spread::shown(spread(&[2.0])), "2.0");
    }

    fn points(rates: &[f64]) -> Vec<Point> {
        let point = |tps: &f64| Point {
            threads: 1,
            tps: Some(*tps),
            latency_ms_mean: None,
            latency_ms_p99: None,
            host_share: None,
            slowdown: None,
        };
        rates.iter().map(point).collect()
    }

    #[test]
    fn no_measurement_is_compared_with_itself() {
        let measured = points(&[1.0, 2.0]);
        let rate: Figure = |it| it.tps;
        assert_eq!(pairs(&measured, &measured, rate, true), [-0.5, 1.0]);
        assert_eq!(pairs(&points(&[4.0]), &measured, rate, false), [3.0, 1.0]);
        assert!(pairs(&measured, &measured, |it| it.latency_ms_p99, true).is_empty());
    }
}
