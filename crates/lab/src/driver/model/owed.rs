//! Work that a drive owed when a load began: what earlier writes left in caches, and superblocks to
//! be relocated. It does not shrink in time lapse, so it takes more of a short step.

use blockio::Bytes;
use results::{Interval, Warning, WarningKind};
use ssd::Drive;
use workload::Workload;

/// Bytes programmed during reads, as a share of the bytes read, from which a warning tells of them.
const OWED_MIN: f64 = 0.05;

/// Warning where `drive` programmed much in the `intervals` of the step named `step`, which only
/// read: then the figures are not those of reads alone.
pub(super) fn warning(
    drive: &Drive,
    step: &str,
    workload: &Workload,
    intervals: &[Interval],
) -> Option<Warning> {
    // What a rebuild programs has a warning of its own.
    if !workload.only_reads() || !drive.failed_dies().is_empty() {
        return None;
    }
    of(step, intervals)
}

fn of(step: &str, intervals: &[Interval]) -> Option<Warning> {
    let nand = || intervals.iter().filter_map(|interval| interval.nand);
    let moved: u64 = nand().map(|nand| nand.relocation_bytes + nand.wear_bytes).sum();
    let cached: u64 = nand().map(|nand| nand.host_bytes).sum();
    let read: u64 = intervals.iter().map(|interval| interval.read_bytes).sum();
    let is_much = |bytes: u64| bytes > 0 && bytes as f64 >= read as f64 * OWED_MIN;
    if !is_much(moved + cached) {
        return None;
    }
    let of = |bytes: u64, what: &str| (bytes > 0).then(|| format!("{} {what}", Bytes(bytes)));
    let work: Vec<String> = of(moved, "were relocated")
        .into_iter()
        .chain(of(cached, "were written from cache"))
        .collect();
    Some(Warning {
        kind: WarningKind::Scale,
        step: step.into(),
        text: format!(
            "reads of {} while {} for earlier writes: the rate is lower than that of reads alone",
            Bytes(read),
            work.join(" and ")
        ),
        remedy: "use a longer step or a smaller --time-lapse: the work that a drive owes after \
                 writes does not shrink with it"
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use results::NandWrites;

    use super::*;

    #[test]
    fn what_was_programmed_while_a_load_only_read_is_told_from_a_twentieth_on() {
        let told = |relocation_bytes, host_bytes| {
            let nand = NandWrites { relocation_bytes, host_bytes, ..NandWrites::default() };
            let read_bytes = 100_000_000;
            of("s", &[Interval { read_bytes, nand: Some(nand), ..Interval::default() }])
        };
        assert_eq!(told(0, 0), None);
        assert_eq!(told(4_000_000, 900_000), None);
        let text = told(162_000_000, 0).expect("it is much").text;
        assert!(
            text.starts_with("reads of 100 MB while 162 MB were relocated for earlier"),
            "{text}"
        );
        let text = told(6_000_000, 4_000_000).expect("it is much").text;
        let both = "while 6 MB were relocated and 4 MB were written from cache for earlier writes";
        assert!(text.contains(both), "{text}");
    }
}
