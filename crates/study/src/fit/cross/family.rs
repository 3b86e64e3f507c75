//! Families of published rows: what a cross-validation leaves out together.
//!
//! A family is a kind of load, by the columns `workload`, `threads`, `queue_per_thread` and `phase`
//! of a row; both directions of one load belong together, as in a suite of the enterprise protocol.

use results::published::{FigureRow, Loads, Phase};

/// Requests outstanding up to which a row tells of latency more than of rates.
const LOW_LOAD_MAX: u64 = 4;
/// Beginnings of the names of applications, with their families; what goes by them knows no burst
/// or low load of its own.
const APPLICATIONS: [(&str, &str); 6] = [
    ("file-server", "file server"),
    ("web-server", "web server"),
    ("mail-", "mail server"),
    ("sql", "database"),
    ("oracle", "database"),
    ("vdi-", "desktops"),
];
/// Sizes of sequential requests, in KiB, from which on they are large.
const LARGE_KIB: u32 = 64;

/// Family of `row`, such as `4k random, burst`.
pub fn family(row: &FigureRow) -> String {
    let workload = row.workload.strip_prefix("iometer-").unwrap_or(&row.workload);
    let named = APPLICATIONS.iter().find(|(start, _)| workload.starts_with(start));
    let kind = named.map_or_else(|| access(workload), |(_, family)| (*family).to_owned());
    let burst = row.phase == Phase::Burst;
    match outstanding(row) {
        _ if named.is_some_and(|(_, family)| *family == "mail server") => kind,
        Some(outstanding) if outstanding <= LOW_LOAD_MAX => format!("{kind}, low load"),
        _ if burst => format!("{kind}, burst"),
        _ => kind,
    }
}

/// Kind of access by the name of a workload: `4k random` of `4k-rand-read`.
fn access(workload: &str) -> String {
    let words: Vec<&str> = workload.split('-').collect();
    let size = words.first().copied().unwrap_or_default().trim_end_matches('b');
    if words.contains(&"seq") {
        let kib = size.strip_suffix('k').and_then(|kib| kib.parse::<u32>().ok());
        return match kib {
            Some(kib) if kib < LARGE_KIB => format!("{size} sequential"),
            _ => "large sequential".to_owned(),
        };
    }
    if words.contains(&"rand") {
        return format!("{size} random");
    }
    let shares = words.iter().skip(1).all(|word| word.parse::<u8>().is_ok());
    if words.len() == 3 && shares { format!("{size} mixed") } else { workload.to_owned() }
}

/// Requests outstanding that `row` states; absent where it leaves them open.
fn outstanding(row: &FigureRow) -> Option<u64> {
    match row.loads()? {
        Loads::Grid(..) => {
            let threads: u64 = row.threads.parse().ok()?;
            Some(threads * row.queue_per_thread.parse::<u64>().ok()?)
        }
        Loads::Threads(_) => row.threads.parse().ok(),
        Loads::Outstanding(_) => row.queue_per_thread.parse().ok(),
        Loads::Unstated => None,
    }
}

#[cfg(test)]
mod tests {
    use results::published::figures;

    use super::*;

    fn of(workload: &str, (threads, queue): (&str, &str), phase: Phase) -> String {
        let row = figures()[0].clone();
        let (threads, queue_per_thread) = (threads.to_owned(), queue.to_owned());
        family(&FigureRow { workload: workload.into(), threads, queue_per_thread, phase, ..row })
    }

    #[test]
    fn both_directions_of_a_load_are_one_family() {
        for workload in ["4k-rand-read", "4k-rand-write", "iometer-4k-rand-read"] {
            assert_eq!(of(workload, ("16", "16"), Phase::Steady), "4k random");
        }
    }

    #[test]
    fn bursts_and_low_loads_are_families_of_their_own() {
        assert_eq!(of("4k-rand-write", ("16", "16"), Phase::Burst), "4k random, burst");
        assert_eq!(of("4k-rand-write", ("1", "1"), Phase::Primary), "4k random, low load");
        assert_eq!(of("iometer-4k-rand-write", ("4", "1"), Phase::Burst), "4k random, low load");
        assert_eq!(of("8k-70-30", ("2", "2"), Phase::Primary), "8k mixed, low load");
    }

    #[test]
    fn sequential_loads_go_by_size_and_applications_by_name() {
        assert_eq!(of("8k-seq-read", ("", ""), Phase::Primary), "8k sequential");
        for workload in ["64k-seq-read", "128k-seq-write", "iometer-seq-read"] {
            assert_eq!(of(workload, ("", ""), Phase::Primary), "large sequential");
        }
        assert_eq!(of("iometer-2mb-rand-write", ("", ""), Phase::Primary), "2m random");
        assert_eq!(of("sql-80-20", ("", ""), Phase::Primary), "database");
        assert_eq!(of("oracle", ("", ""), Phase::Primary), "database");
        assert_eq!(of("vdi-fc-boot", ("", ""), Phase::Primary), "desktops");
        assert_eq!(of("web-server-precondition-100w", ("16", "16"), Phase::Steady), "web server");
        assert_eq!(of("mail-trace-light", ("", "8"), Phase::Burst), "mail server");
    }
}
