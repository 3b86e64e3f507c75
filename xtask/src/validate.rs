//! `cargo xtask validate`: published figures beside modelled ones, into the documents.

use std::fmt::Write as _;
use std::fs;
use std::thread;

use anyhow::{Context, Result};
use lab::plan::Plan;
use lab::progress::Unwatched;
use lab::results::published;
use lab::ssd::{MODEL_VERSION, catalogue};
use lab::validate::{Bench, Compared, Row, Verdict, number_text, validate};

use crate::root;

const PAGE: &str = "docs/internals/validation.md";
/// Protocol whose steps stand for the published tests.
const PROTOCOL: &str = "enterprise";
/// Seed of every validation: the table must come out the same.
const SEED: u64 = 1;

/// Simulates what rows of the project's own figures need and writes the page.
///
/// # Errors
/// When a simulation failed, or the page cannot be written.
pub(crate) fn run() -> Result<()> {
    let drives = catalogue::drives();
    let rows: Vec<_> = published::figures().iter().collect();
    let workloads = lab::workload::catalogue::workloads();
    let protocol = lab::workload::catalogue::find_protocol(PROTOCOL)
        .with_context(|| format!("finding the protocol {PROTOCOL}"))?;
    let plan = Plan::new(&protocol, &workloads, SEED)?;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let bench = Bench { drives: &drives, plan: &plan, threads };
    let compared = validate(&rows, bench, &Unwatched)?;
    let path = root().join(PAGE);
    fs::write(&path, page(&compared)).with_context(|| format!("writing {PAGE}"))?;
    println!("{PAGE}: {}", count(&compared));
    Ok(())
}

/// The page: what is in and out of tolerance, then what cannot be compared yet, by reason.
fn page(rows: &[Row]) -> String {
    let mut page = format!(
        "# Validation\n\n\
         Published figures beside modelled ones, written by `cargo xtask validate`; do not edit.\n\
         Model version {MODEL_VERSION}, protocol `{PROTOCOL}`, seed {SEED}, in the time lapse of \
         each drive: {}.\n\n\
         A rate is in tolerance within 15 %, an average latency within 20 %, a deviation or a \
         maximum within a factor of two.\n\
         Where a range was published, the ratio is to its nearer end.\n\n\
         ## Compared\n\n\
         | row | model | workload | load | phase | metric | published | modelled | ratio | |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
        count(rows)
    );
    for row in rows {
        let (compared, verdict) = match &row.verdict {
            Verdict::In(compared) => (compared, "in"),
            Verdict::Out(compared) => (compared, "**out**"),
            Verdict::NotExpressible { .. } => continue,
        };
        page.push_str(&compared_line(row, compared, verdict));
    }
    page.push_str("\n## Not expressible yet\n\n| reason | rows |\n|---|---|\n");
    for (reason, ids) in by_reason(rows) {
        writeln!(page, "| {reason} | {} |", ids.join(", ")).expect("a text takes everything");
    }
    page
}

fn compared_line(row: &Row, compared: &Compared, verdict: &str) -> String {
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {:.2} | {verdict} |\n",
        row.id,
        compared.model,
        row.workload,
        load(row),
        row.phase,
        row.metric,
        row.published_text(),
        number_text(compared.modelled),
        compared.ratio,
    )
}

fn load(row: &Row) -> String {
    match (row.threads.as_str(), row.queue_per_thread.as_str()) {
        ("", _) | (_, "") => String::new(),
        (threads, queue) => format!("T{threads}Q{queue}"),
    }
}

/// Rows that cannot be compared, by reason, in the order of their first row.
fn by_reason(rows: &[Row]) -> Vec<(&str, Vec<&str>)> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in rows {
        let Verdict::NotExpressible { reason } = &row.verdict else { continue };
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, ids)) => ids.push(&row.id),
            None => reasons.push((reason, vec![&row.id])),
        }
    }
    reasons
}

fn count(rows: &[Row]) -> String {
    let of = |wanted: fn(&Verdict) -> bool| rows.iter().filter(|row| wanted(&row.verdict)).count();
    let inside = of(|verdict| matches!(verdict, Verdict::In(_)));
    let outside = of(|verdict| matches!(verdict, Verdict::Out(_)));
    let others = rows.len() - inside - outside;
    format!("{inside} rows in tolerance, {outside} out, {others} not expressible yet")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, verdict: Verdict) -> Row {
        Row {
            id: id.into(),
            device: "a drive".into(),
            mode: "stock".into(),
            host: "any".into(),
            workload: "4k-rand-write".into(),
            threads: "16".into(),
            queue_per_thread: "16".into(),
            phase: "steady".into(),
            metric: "iops".into(),
            value_low: Some(42_600.0),
            value_high: Some(42_600.0),
            verdict,
        }
    }

    #[test]
    fn every_row_is_on_the_page() {
        let compared = Compared { model: "a model".into(), modelled: 42_100.4, ratio: 0.988 };
        let reason = "the drive is not modelled".to_owned();
        let rows = [
            row("A1", Verdict::In(compared.clone())),
            row("A2", Verdict::Out(compared)),
            row("A3", Verdict::NotExpressible { reason: reason.clone() }),
            row("A4", Verdict::NotExpressible { reason }),
        ];
        let page = page(&rows);
        let line =
            "| A1 | a model | 4k-rand-write | T16Q16 | steady | iops | 42600 | 42100 | 0.99 ";
        assert!(page.contains(line), "{page}");
        assert!(page.contains("| the drive is not modelled | A3, A4 |"), "{page}");
        assert!(page.contains("1 rows in tolerance, 1 out, 2 not expressible yet"), "{page}");
    }
}
