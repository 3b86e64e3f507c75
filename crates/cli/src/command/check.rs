//! `floatgate volume check`: errors on the dies of a closed volume, and their repair.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use blockio::text::counted;
use live::check::{Finding, Kind, Remedy, Report, check as examine, repair};
use serde::Serialize;
use status::State;

use crate::args::Check;
use crate::command::status::write_buffer;
use crate::failure::Opening;
use crate::progress::Rows;
use crate::{Ending, output, table};

/// Most findings that are listed.
const LISTED_MAX: usize = 40;

/// Result of a check as JSON.
#[derive(Serialize)]
struct CheckResult<'a> {
    #[serde(flatten)]
    report: &'a Report,
    /// Findings that repairing did away with.
    repaired: usize,
}

/// Prints the result of a check, repairs damage on request, and fails if damage is left.
pub(crate) fn check(args: &Check) -> Result<Ending> {
    let shown = args.volume.display();
    let mut report = checked(&args.volume, "checking")?;
    let mut repaired = 0;
    if args.repair && (report.repairable() > 0 || report.state == State::Unclosed) {
        let found = report.repairable();
        let rows = Rows::new("repairing");
        repair(&args.volume, args.key.key()?, |done, all| rows.moved(done, all))
            .with_context(|| format!("repairing {shown}"))?;
        rows.clear();
        report = checked(&args.volume, "checking again")?;
        repaired = found.saturating_sub(report.repairable());
    }
    if args.json {
        output::json(&CheckResult { report: &report, repaired })?;
    } else {
        output::data(&text(&report, repaired))?;
    }
    let left = report.findings.iter().filter(|finding| finding.remedy != Remedy::Open).count();
    match (left, report.repairable()) {
        (0, _) => Ok(Ending::Done),
        (_, some) => {
            let left = counted(left as u64, "finding");
            let help = match some {
                0 => "; --repair can repair none of them".to_owned(),
                some => format!("; --repair can repair {some} of them"),
            };
            bail!("{shown} has errors: {left}{help}")
        }
    }
}

fn checked(volume: &Path, name: &str) -> Result<Report> {
    let rows = Rows::new(name);
    let report = examine(volume, |done, all| rows.moved(done, all));
    rows.clear();
    report.with_context(|| Opening::for_check(volume))
}

fn text(report: &Report, repaired: usize) -> String {
    let state = match report.state {
        State::Unclosed => "unclean shutdown",
        _ => "closed",
    };
    let Report { drive, rows, units, pages, findings, .. } = report;
    let mut lines = vec![format!(
        "volume {drive}, {state}: {} in {}, {} read",
        counted(*pages, "page"),
        counted(*rows, "row"),
        counted(*units, "unit")
    )];
    lines.extend(
        report
            .write_buffer
            .as_ref()
            .map(|left| format!("write buffer of the server that died: {}", write_buffer(left))),
    );
    if !report.dies_without_end_header.is_empty() {
        let dies: Vec<_> = report.dies_without_end_header.iter().map(u32::to_string).collect();
        let noun = if dies.len() == 1 { "die" } else { "dies" };
        lines.push(format!(
            "{noun} {}: no room for a copy of the header at the end",
            dies.join(", ")
        ));
    }
    if repaired > 0 {
        lines.push(format!("repaired: {}", counted(repaired as u64, "finding")));
    }
    if findings.is_empty() {
        lines.push("clean: no errors found".to_owned());
        return lines.join("\n");
    }
    lines.push(counts(findings));
    let row = |finding: &Finding| [word(finding.remedy).to_owned(), finding.text.clone()];
    let listed: Vec<_> = findings.iter().take(LISTED_MAX).map(row).collect();
    lines.push(table::columns(&listed));
    if findings.len() > LISTED_MAX {
        lines.push(format!("and {} more; --json lists all", findings.len() - LISTED_MAX));
    }
    lines.join("\n")
}

/// Returns the number of findings of each kind as text.
fn counts(findings: &[Finding]) -> String {
    let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
    for finding in findings {
        *counts.entry(finding.kind).or_default() += 1;
    }
    let counted = counts.into_iter().map(|(kind, count)| {
        let name = match kind {
            Kind::LostPage => "pages lost",
            Kind::Die => "dies missing",
            Kind::Header => "headers",
            Kind::Checkpoint => "checkpoints",
            Kind::Journal => "journals",
            Kind::Unit => "data units",
            Kind::Parity => "parity units",
            Kind::Purge => "unfinished purges",
        };
        format!("{name}: {count}")
    });
    counted.collect::<Vec<_>>().join(", ")
}

const fn word(remedy: Remedy) -> &'static str {
    match remedy {
        Remedy::None => "lost",
        Remedy::Replace => "replace",
        Remedy::Repair => "repairable",
        Remedy::Purge => "repeat the purge",
        Remedy::Open => "left by a crash, repaired at opening",
    }
}
