//! Charts of the NAND during preconditioning: write amplification by cause, free superblocks.

use results::{NandWrites, Step};

use super::group::table;
use super::metric::RunStep;
use super::preconditioning::{points, time_axis};
use super::steps::{cautions, line, provenance};
use crate::chart::{Axis, Body, Chart, Ends, Look, Unit};
use crate::explain;
use crate::number;
use crate::subject::{Subject, Suite};

/// A cause of NAND writes, and the bytes of it.
type Cause = (&'static str, fn(&NandWrites) -> u64);

const CAUSES: [Cause; 5] = [
    ("host", |nand| nand.host_bytes),
    ("relocation", |nand| nand.relocation_bytes),
    ("wear levelling", |nand| nand.wear_bytes),
    ("parity", |nand| nand.parity_bytes),
    ("metadata", |nand| nand.metadata_bytes),
];

fn modelled<'a>(suite: &Suite<'a>) -> Vec<RunStep<'a>> {
    let has_nand = |step: &Step| step.samples.iter().any(|it| it.summary.nand.is_some());
    suite.preconditions().into_iter().filter(|(_, step)| has_nand(step)).collect()
}

/// Write amplification of each run, and free superblocks of all.
pub(super) fn charts(suite: &Suite<'_>, id: &str) -> Vec<Chart> {
    let modelled = modelled(suite);
    let several = modelled.len() > 1;
    let mut charts: Vec<Chart> =
        modelled.iter().map(|(subject, step)| by_cause(subject, step, id, several)).collect();
    charts.push(free_superblocks(&modelled, id));
    charts
}

fn by_cause(subject: &Subject<'_>, step: &Step, id: &str, several: bool) -> Chart {
    let taken = [(subject, step)];
    let (x, secs) = time_axis(&taken);
    let series = CAUSES
        .iter()
        .enumerate()
        .filter(|(_, (_, bytes))| {
            step.samples.iter().any(|it| it.summary.nand.is_some_and(|nand| bytes(&nand) > 0))
        })
        .map(|(index, (name, bytes))| {
            let share = points(step, secs, |sample| {
                let nand = sample.summary.nand?;
                Some(bytes(&nand) as f64 / (nand.host_sent_bytes as f64).max(1.0))
            });
            line((*name).into(), Look { tone: Look::AREA + index, dash: 0 }, share)
        })
        .collect();
    let title = "Write amplification by cause";
    Chart {
        id: format!("{id}-wa-{}", subject.index),
        title: if several { format!("{title}, {}", subject.label) } else { title.into() },
        explain: explain::AMPLIFICATION,
        provenance: provenance(&taken),
        cautions: cautions(&taken),
        x,
        y: Axis::linear("Write amplification", Unit::Times),
        ends: Ends::Last,
        is_wide: false,
        body: Body::Area(series),
    }
}

fn free_superblocks(taken: &[RunStep<'_>], id: &str) -> Chart {
    let (x, secs) = time_axis(taken);
    let series = taken
        .iter()
        .map(|(subject, step)| {
            let share = points(step, secs, |sample| sample.superblocks_free_share);
            line(subject.label.clone(), Look::of_run(subject.index), share)
        })
        .collect();
    Chart {
        id: format!("{id}-free"),
        title: "Free superblocks".into(),
        explain: explain::FREE,
        provenance: provenance(taken),
        cautions: cautions(taken),
        x,
        y: Axis { switchable: true, ..Axis::linear("Free superblocks", Unit::Share) },
        ends: Ends::Last,
        is_wide: false,
        body: Body::Lines(series, Vec::new()),
    }
}

/// Bytes by cause over each whole preconditioning, those of the whole drive whatever the time
/// lapse; empty for real drives.
pub(super) fn numbers(suite: &Suite<'_>) -> String {
    let taken = modelled(suite);
    if taken.is_empty() {
        return String::new();
    }
    let heads: Vec<String> = ["Run, whole preconditioning", "Host writes, GB"]
        .into_iter()
        .map(String::from)
        .chain(CAUSES.iter().map(|(name, _)| format!("{name}, GB")))
        .chain(["erases".into(), "write amplification".into()])
        .collect();
    let rows = taken.iter().filter_map(|(subject, step)| {
        let nand = step.summary.as_ref()?.nand?;
        let lapse = f64::from(subject.run.target.time_lapse.max(1));
        let gigabytes = |bytes: u64| number::plain(bytes as f64 * lapse / 1e9);
        let mut row = vec![subject.label.clone(), gigabytes(nand.host_sent_bytes)];
        row.extend(CAUSES.iter().map(|(_, bytes)| gigabytes(bytes(&nand))));
        row.push(number::whole(nand.erase_count as f64 * lapse));
        row.push(nand.write_amplification().map_or("–".into(), number::plain));
        Some(row)
    });
    let lapsed = taken.iter().any(|(subject, _)| subject.run.target.time_lapse > 1);
    let note = if lapsed {
        "<p class=\"small\">Bytes and erases are those of the whole drive: what was simulated, \
         times the time lapse.</p>"
    } else {
        ""
    };
    table(&heads, rows) + note
}
