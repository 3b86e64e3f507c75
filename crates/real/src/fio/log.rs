//! fio's logs of one job: a histogram of completion latencies and the largest total latency, row by
//! row.
//!
//! ```text
//! latency_clat_hist.1.log     1001, 0, 4096, 0, 0, 17, …     ms, direction, size, counts
//! latency_lat.1.log           1000, 8016496, 0, 0, 0         ms, ns, direction, size, priority
//! ```
//!
//! A row of the histogram counts what completed since the row before it. fio writes it when the
//! first request after its end completes, that request included, and takes the next row from where
//! this one should have ended: row after row, a job's rows of one direction are its intervals in
//! order, without drift, whatever their time stamps say after a stall. The last partial row is not
//! written. (`add_clat_sample` in `stat.c` of fio 3.13, 3.33 and 3.42.)

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::ops::RangeInclusive;
use std::path::Path;

use lab::{Error, Kind};

use super::job::COARSENESS_MAX;

/// Direction of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataDirection {
    /// Read from the drive.
    Read,
    /// Write to the drive.
    Write,
}

/// One row of a histogram log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HistogramRow {
    /// Time of the entry, in milliseconds since the measurement began.
    pub(super) at_ms: u64,
    /// Direction of its requests.
    pub(super) direction: DataDirection,
    /// Index and count of each group of bins that counted something, ascending.
    pub(super) counts: Vec<(u32, u64)>,
}

/// One row of a log of largest latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Largest {
    /// Time of the entry, in milliseconds since the measurement began.
    pub(super) at_ms: u64,
    /// Direction of its requests.
    pub(super) direction: DataDirection,
    /// The largest latency, in nanoseconds.
    pub(super) latency_ns: u64,
}

impl DataDirection {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "0" => Some(Self::Read),
            "1" => Some(Self::Write),
            _ => None,
        }
    }
}

impl HistogramRow {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(',').map(str::trim);
        let at_ms = words.next()?.parse().ok()?;
        let direction = DataDirection::parse(words.next()?)?;
        words.next()?;
        let (mut counts, mut columns) = (Vec::new(), 0);
        for word in words {
            match word.parse().ok()? {
                0 => {}
                count => counts.push((columns, count)),
            }
            columns += 1;
        }
        // A row that a full disk cut off is none.
        let is_whole = (0..=COARSENESS_MAX).any(|by| columns == BINS >> by);
        is_whole.then_some(Self { at_ms, direction, counts })
    }
}

impl Largest {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(',').map(str::trim);
        let at_ms = words.next()?.parse().ok()?;
        let latency_ns = words.next()?.parse().ok()?;
        Some(Self { at_ms, direction: DataDirection::parse(words.next()?)?, latency_ns })
    }
}

/// The histogram rows of the job numbered `job`, from 1, of `host` in `folder`; the host is empty
/// where fio ran on this machine.
pub(super) fn rows(folder: &Path, host: &str, job: usize) -> Result<Vec<HistogramRow>, Error> {
    read(&folder.join(name("latency_clat_hist", host, job)), HistogramRow::parse)
}

/// The largest total latencies of the job numbered `job`, from 1, of `host` in `folder`.
pub(super) fn largest(folder: &Path, host: &str, job: usize) -> Result<Vec<Largest>, Error> {
    read(&folder.join(name("latency_lat", host, job)), Largest::parse)
}

/// Smallest offset that the first job of `host` logged, in bytes from the start of its target;
/// absent where nothing was logged.
pub(super) fn first_offset(folder: &Path, host: &str) -> Result<Option<u64>, Error> {
    let offset = |line: &str| line.split(',').nth(4)?.trim().parse().ok();
    let offsets: Vec<u64> = read(&folder.join(name("latency_clat", host, 1)), offset)?;
    Ok(offsets.into_iter().min())
}

/// fio's name of a log: a client adds the host that it came from.
fn name(kind: &str, host: &str, job: usize) -> String {
    let from = if host.is_empty() { "" } else { "." };
    format!("{kind}.{job}.log{from}{host}")
}

fn read<T>(path: &Path, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, Error> {
    let failed = |line: usize| {
        Error::new(Kind::Program, format!("{}:{line}: not a line of a fio log", path.display()))
            .hint("fio did not finish its log: is the disk full?")
    };
    let unreadable = |source| {
        Error::new(Kind::Io, format!("reading fio's log {}", path.display())).source(source)
    };
    let lines = BufReader::new(File::open(path).map_err(unreadable)?).lines();
    let parsed = lines.enumerate().map(|(index, line)| {
        let line = line.map_err(unreadable)?;
        parse(&line).ok_or_else(|| failed(index + 1))
    });
    parsed.collect()
}

/// Bins of a histogram: `FIO_IO_U_PLAT_NR` of fio's `stat.h`.
const BINS: u32 = 1856;
/// Bins of one power of two: `1 << FIO_IO_U_PLAT_BITS` of fio's `stat.h`.
const BINS_PER_GROUP: u32 = 64;

/// The latencies in nanoseconds that fall into the `index`-th group of `2^coarseness` bins.
///
/// fio's `plat_idx_to_val` (`stat.c`): bins below 128 hold one value each; above, a bin's group
/// gives the number of low bits that are dropped, `e = idx / 64 - 1`, and it begins at
/// `2^(e + 6) + (idx % 64) 2^e`. (fio reports a bin by its middle.)
pub(super) fn latencies_of(index: u32, coarseness: u32) -> RangeInclusive<u64> {
    let first = index << coarseness;
    let last = first + (1 << coarseness) - 1;
    lower_end(first)..=lower_end(last + 1) - 1
}

fn lower_end(bin: u32) -> u64 {
    if bin < 2 * BINS_PER_GROUP {
        return u64::from(bin);
    }
    let dropped_bits = bin / BINS_PER_GROUP - 1;
    (u64::from(BINS_PER_GROUP) + u64::from(bin % BINS_PER_GROUP)) << dropped_bits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// fio's own function, the other way: `plat_val_to_idx`.
    fn bin_of(latency_ns: u64) -> u32 {
        let msb = 63_u32.saturating_sub(latency_ns.leading_zeros());
        if msb <= 6 {
            return u32::try_from(latency_ns).unwrap();
        }
        let dropped_bits = msb - 6;
        let base = (dropped_bits + 1) << 6;
        base + u32::try_from((latency_ns >> dropped_bits) & 63).unwrap()
    }

    proptest! {
        #[test]
        fn a_latency_lies_in_the_bin_that_fio_counts_it_in(latency_ns in 0_u64..1 << 34) {
            prop_assert!(latencies_of(bin_of(latency_ns), 0).contains(&latency_ns));
        }

        #[test]
        fn merged_bins_cover_what_their_parts_cover(index in 0_u32..464, coarseness in 0_u32..=2) {
            let merged = latencies_of(index, coarseness);
            let (first, last) = (index << coarseness, ((index + 1) << coarseness) - 1);
            prop_assert_eq!(*merged.start(), *latencies_of(first, 0).start());
            prop_assert_eq!(*merged.end(), *latencies_of(last, 0).end());
        }
    }

    #[test]
    fn bins_are_those_of_fio() {
        assert_eq!(latencies_of(127, 0), 127..=127);
        assert_eq!(latencies_of(128, 0), 128..=129, "fio: 129, the middle");
        assert_eq!(latencies_of(500, 0), 7424..=7487, "fio prints 7456");
        assert_eq!(latencies_of(1855, 0), 17_045_651_456..=17_179_869_183);
    }

    #[test]
    fn a_row_keeps_what_was_counted_and_where() {
        let rest = |columns: usize| ", 0".repeat(columns);
        let line = format!("2001, 1, 4096, 0, 0, 3, 0, 9{}", rest(464 - 5));
        let counts = vec![(2, 3), (4, 9)];
        let row = HistogramRow { at_ms: 2001, direction: DataDirection::Write, counts };
        assert_eq!(HistogramRow::parse(&line), Some(row));
        assert_eq!(HistogramRow::parse(&line.replace('3', "x")), None);
        assert_eq!(
            HistogramRow::parse(&line.replace(", 1,", ", 2,")),
            None,
            "trims are none of ours"
        );
        assert_eq!(HistogramRow::parse(&line[..line.len() - 3]), None, "a full disk cut it off");
    }

    #[test]
    fn a_broken_log_names_file_and_line() {
        let folder = tempfile::TempDir::new().unwrap();
        std::fs::write(folder.path().join("latency_lat.2.log"), "1000, 5, 0, 0, 0\n1000, ")
            .unwrap();
        let error = largest(folder.path(), "", 2).unwrap_err().to_string();
        assert!(error.ends_with("latency_lat.2.log:2: not a line of a fio log"), "{error}");
    }
}
