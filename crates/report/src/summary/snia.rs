//! The headlines of the SNIA tests: IOPS, throughput, latency and write saturation.
//!
//! Of a suite of rounds the averages over the window that was judged; which test it is, what it
//! tracks and how it addresses say.

use std::fmt::Write as _;

use results::rounds::{WindowCell, window_cells};
use results::{Steady, SteadyEvidence, TrackedMetric};

use crate::chart::Look;
use crate::number::{self, millis};
use crate::subject::{Part, Suite};
use crate::text::Text;

/// Size of the requests of the headlines of IOPS and latency, in bytes.
const HEADLINE_BYTES: u32 = 4096;
/// Share of reads of the mix that is a headline besides pure reads and writes, in percent.
const MIX_PERCENT: f64 = 65.0;

/// The table; empty where no suite has rounds.
pub(super) fn section(suites: &[Suite<'_>]) -> String {
    if suites.iter().flat_map(|suite| &suite.parts).all(|part| part.rounds.is_empty()) {
        return String::new();
    }
    let mut html = String::from(
        "<h3>SNIA tests</h3><div class=\"scroll\"><table class=\"snia\"><thead><tr>\
         <th scope=\"col\">Test</th><th scope=\"col\">Run</th><th scope=\"col\">Headline</th>\
         <th scope=\"col\">Steady state</th></tr></thead><tbody>",
    );
    for suite in suites {
        for part in &suite.parts {
            let Some((headline, verdict)) = of_rounds(part).or_else(|| saturation(part)) else {
                continue;
            };
            let _ = write!(
                html,
                "<tr><th scope=\"row\">{}</th><td class=\"prose t{}\"><i class=\"key\"></i>{}</td>\
                 <td class=\"prose\">{}</td>{verdict}</tr>",
                Text(&suite.title),
                Look::of_run(part.subject.index).tone,
                Text(&part.subject.label),
                Text(&headline),
            );
        }
    }
    html + "</tbody></table></div><p class=\"small\">Averages over the five rounds that \
            were judged, in steady state or not; mixes are reads/writes in percent. Latencies are \
            average, p99.999 and maximum.</p>"
}

/// Headline and verdict of rounds; absent without any.
fn of_rounds(part: &Part<'_>) -> Option<(String, String)> {
    let steady = Steady::of_rounds(part.rounds.iter().copied(), &part.subject.run.target)?;
    let cells = window_cells(&part.rounds, &steady);
    let tracks_latency =
        part.rounds.iter().any(|step| step.tracked == Some(TrackedMetric::LatencyNsAvg));
    let is_sequential = part.rounds.iter().all(|step| step.workload.contains("-seq-"));
    let said: Vec<String> = if tracks_latency {
        chosen(&cells).iter().map(|cell| latency(cell)).collect()
    } else if is_sequential {
        cells.iter().map(throughput).collect()
    } else {
        chosen(&cells).iter().map(|cell| iops(cell)).collect()
    };
    let verdict = if steady.achieved {
        format!("<td class=\"good\">after {} rounds</td>", steady.rounds)
    } else if steady.evidence == Some(SteadyEvidence::TooLittleWritten) {
        "<td class=\"bad\">no: too little written</td>".to_owned()
    } else {
        format!("<td class=\"bad\">not in {} rounds</td>", steady.rounds)
    };
    (!said.is_empty()).then(|| (said.join("; "), verdict))
}

/// Cells of 4 KiB: pure reads, the mix, pure writes.
fn chosen(cells: &[WindowCell]) -> Vec<&WindowCell> {
    let is_headline = |cell: &&WindowCell| {
        let percent = cell.cell.read_percent;
        let is_mix = [0.0, MIX_PERCENT, 100.0].iter().any(|it| (it - percent).abs() < 0.5);
        cell.cell.bytes == HEADLINE_BYTES && is_mix
    };
    cells.iter().filter(is_headline).collect()
}

fn mix(cell: &WindowCell) -> String {
    let (kib, reads) = (f64::from(cell.cell.bytes) / 1024.0, cell.cell.read_percent);
    format!("{} KiB {}/{}", number::trimmed(kib), reads, 100.0 - reads)
}

fn iops(cell: &WindowCell) -> String {
    format!("{} {} IOPS", mix(cell), number::whole(cell.iops))
}

fn throughput(cell: &WindowCell) -> String {
    format!("{} {} MB/s", mix(cell), number::whole(cell.throughput_mb_s))
}

fn latency(cell: &WindowCell) -> String {
    let shown = |latency_ns: u64| number::trimmed(millis(latency_ns as f64));
    format!(
        "{} {}, {} and {} ms",
        mix(cell),
        number::trimmed(millis(cell.latency_ns_avg)),
        cell.latency_ns_p99999.map_or_else(|| "–".into(), shown),
        cell.latency_ns_max.map_or_else(|| "–".into(), shown),
    )
}

/// Headline and verdict of write saturation: from the first samples to the last window.
fn saturation(part: &Part<'_>) -> Option<(String, String)> {
    let step = part.precondition?;
    let last = step.settled.as_ref()?;
    let first = step.samples.first()?.summary.iops;
    let headline = format!(
        "{}: {} IOPS at first, {} in the last window ({}), average {} ms",
        step.workload,
        number::whole(first),
        number::whole(last.iops),
        number::percent(last.iops / first.max(f64::MIN_POSITIVE)),
        number::trimmed(millis(last.latency.latency_ns_avg)),
    );
    let verdict = match &step.steady {
        Some(steady) if steady.achieved => {
            format!("<td class=\"good\">after {}</td>", number::span(steady.at_s))
        }
        Some(_) => "<td class=\"bad\">not reached</td>".into(),
        None => "<td>not judged</td>".into(),
    };
    Some((headline, verdict))
}
