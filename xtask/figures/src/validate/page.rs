//! The page of the validation: in short, the worst, and where every row is.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use lab::ssd::MODEL_VERSION;
use study::validate::{FigureComparison, Row, Share, Tally, Verdict, number_text, worst};

use super::WORST;
use super::discussion::Discussions;

/// The page about `rows`, simulated with `seed`, and about models that are `unvalidated`; the
/// section on the cross-validation stands before all others.
pub(crate) fn page(
    rows: &[Row],
    discussions: &Discussions,
    seed: u64,
    (unvalidated, crossed): &(String, String),
) -> String {
    format!(
        "# Validation\n\n\
         Published figures beside modelled ones, written by `cargo xtask validate`; do not edit.\n\
         Model version {MODEL_VERSION}, seed {seed}, each drive in its time lapse: {}.\n\
         {unvalidated}\n\n\
         A row is compared with the first protocol by name that has its workload, load and phase; \
         protocols that name its document come first.\n\
         Where a range was published, the ratio is to its nearer end. Rates and average latencies \
         of a burst are those of its best interval, since reviews state peaks.\n\
         Makers state no host: their data sheets are compared under one that never sleeps, and \
         bounds no rate unless the flash management runs on it.\n\n\
         {crossed}\n{}\n{}\n{}\n{}\n{}",
        count(rows),
        in_short(rows),
        worst_rows(rows, discussions),
        every_row(rows),
        facts(rows),
        not_expressible(rows),
    )
}

/// Number of rows that were compared, and the page that lists them.
fn every_row(rows: &[Row]) -> String {
    let of = |is_measured: bool| {
        let compared = rows.iter().filter(|row| row.compared().is_some());
        compared.filter(|row| row.is_measured() == is_measured).count()
    };
    format!(
        "## Every row\n\n\
         [Every figure](../gallery/validation.html#figures) lists the {} measured rows and the {} \
         rows of data sheets that were compared.\n\
         `floatgate validate --json` adds the protocol of each, and whether it follows from listed \
         stalls.\n",
        of(true),
        of(false),
    )
}

/// The facts of data sheets, and a table of those that a drive's file states otherwise.
fn facts(rows: &[Row]) -> String {
    let stated = || rows.iter().filter_map(|row| Some((row, row.stated()?)));
    let count = stated().count();
    let mut text = format!(
        "## Data-sheet specifications\n\n\
         {count} rows state a capacity, over-provisioning, endurance or warranty: inputs of a \
         model, which count in no median. Raw capacity is that of the NAND in GiB, which makers \
         print as GB; over-provisioning follows from it, in the convention of its row.\n\n"
    );
    if stated().all(|(_, stated)| stated.agrees) {
        return text + "None differs from what the drive's file states.\n";
    }
    text += "| row | model | of | metric | published | in the file |\n|---|---|---|---|---|---|\n";
    for (row, stated) in stated().filter(|(_, stated)| !stated.agrees) {
        let _ = writeln!(
            text,
            "| {} | {} {} | {} | {} | {} | {} |",
            row.id,
            stated.drive,
            stated.format,
            row.workload,
            row.metric,
            row.published_text(),
            number_text(stated.value),
        );
    }
    text
}

/// Returns the numbers of rows in tolerance, measured and of data sheets, and of those that are not
/// comparable, as text.
pub(crate) fn count(rows: &[Row]) -> String {
    let of = |wanted: fn(&Verdict) -> bool| rows.iter().filter(|row| wanted(&row.verdict)).count();
    let compared = |is_measured: bool| {
        let of_kind = rows.iter().filter(move |row| row.is_measured() == is_measured);
        of_kind.filter(|row| row.compared().is_some())
    };
    let share = |is_measured: bool| {
        let inside = compared(is_measured).filter(|row| matches!(row.verdict, Verdict::In(_)));
        format!("{} of {}", inside.count(), compared(is_measured).count())
    };
    let facts = of(|verdict| matches!(verdict, Verdict::Stated(_)));
    let agreeing = of(|verdict| matches!(verdict, Verdict::Stated(stated) if stated.agrees));
    let others = rows.len() - compared(true).count() - compared(false).count() - facts;
    format!(
        "{} measured rows and {} data-sheet rows in tolerance (rates 15 %, average latencies 20 %, \
         maxima and standard deviations a factor of 2). Data-sheet rows are largely inputs of the \
         models. {agreeing} of {facts} specifications agree with the drives' files; {others} rows \
         are not comparable with a run",
        share(true),
        share(false),
    )
}

/// Medians and shares: over all measured rows, for each drive, and over data sheets.
pub(crate) fn tallies(rows: &[Row]) -> Vec<(String, Tally)> {
    let measured = || rows.iter().filter(|row| row.is_measured());
    let drive = |row: &Row| row.compared().map(|compared| compared.drive.clone());
    let mut lines = vec![("all measured".to_owned(), Tally::of(measured()))];
    for name in measured().filter_map(drive).collect::<BTreeSet<_>>() {
        let of_drive = measured().filter(|row| drive(row).as_ref() == Some(&name));
        lines.push((name.clone(), Tally::of(of_drive)));
    }
    lines.push(("data sheets".to_owned(), Tally::of(rows.iter().filter(|row| !row.is_measured()))));
    lines
}

fn in_short(rows: &[Row]) -> String {
    let mut text = String::from(
        "## In short, as fitted\n\n\
         The drives' files were fitted with these figures in view; \
         [cross-validation](#cross-validation) says what predictions are worth.\n\
         The stalls of a host (`[[host.stall]]` in a drive's file) have a period and a span chosen \
         for published maxima and standard deviations. Values that follow from them are counted \
         apart: a maximum that a stall of at least half its length explains, and every standard \
         deviation under a host with stalls.\n\n\
         | rows | rates and averages | median error | in tolerance | standard deviations and \
         maxima, no listed stall | in tolerance | from listed stalls | in tolerance |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for (name, tally) in tallies(rows) {
        text.push_str(&tally_line(&name, &tally));
    }
    text
}

fn tally_line(name: &str, Tally { typical, spread, from_listed_stalls }: &Tally) -> String {
    let near = |share: &Share| {
        share.near_percent().map_or_else(String::new, |percent| {
            format!("{} of {} ({percent:.0} %)", share.near, share.rows)
        })
    };
    let error = typical.error_median.map_or_else(String::new, |it| format!("{:.1} %", it * 100.0));
    format!(
        "| {name} | {} | {error} | {} | {} | {} | {} | {} |\n",
        typical.rows,
        near(typical),
        spread.rows,
        near(spread),
        from_listed_stalls.rows,
        near(from_listed_stalls)
    )
}

/// The worst rows, and what is said of them.
fn worst_rows(rows: &[Row], discussions: &Discussions) -> String {
    let worst = worst(rows, WORST);
    let mut text = compared(&format!("The worst {WORST}"), worst.iter().copied());
    let mut discussed: BTreeSet<&str> = BTreeSet::new();
    for row in &worst {
        let Some(said) = discussions.of(&row.id) else { continue };
        if discussed.insert(said) {
            let _ = write!(text, "\n**{}**: {said}\n", discussions.together(&row.id).join(", "));
        }
    }
    text
}

/// A table of those of `rows` that were compared, under `title`.
fn compared<'a>(title: &str, rows: impl Iterator<Item = &'a Row>) -> String {
    let mut text = format!(
        "## {title}\n\n\
         | row | model | protocol | workload | load | phase | metric | published | modelled \
         | ratio | |\n|---|---|---|---|---|---|---|---|---|---|---|\n"
    );
    for row in rows {
        if let Some(compared) = row.compared() {
            text.push_str(&compared_line(row, compared));
        }
    }
    text
}

fn compared_line(row: &Row, compared: &FigureComparison) -> String {
    let verdict = if matches!(row.verdict, Verdict::In(_)) { "in" } else { "**out**" };
    let made = if compared.from_listed_stalls { ", from listed stalls" } else { "" };
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.2} | {verdict}{made} |\n",
        row.id,
        compared.model,
        compared.protocol,
        row.workload,
        row.load_text(),
        row.phase,
        row.metric,
        row.published_text(),
        number_text(compared.modelled),
        compared.ratio,
    )
}

/// Rows that cannot be compared, by reason, in the order of their first row.
fn not_expressible(rows: &[Row]) -> String {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in rows {
        let Verdict::NotExpressible { reason } = &row.verdict else { continue };
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, ids)) => ids.push(&row.id),
            None => reasons.push((reason, vec![&row.id])),
        }
    }
    let lines = reasons.iter().map(|(reason, ids)| format!("| {reason} | {} |\n", ids.join(", ")));
    format!(
        "## Not comparable with a run\n\n| reason | rows |\n|---|---|\n{}",
        lines.collect::<String>()
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A measured row that is `ratio` of what was published.
    pub(crate) fn row(id: &str, ratio: f64) -> Row {
        let compared = FigureComparison {
            drive: "duo".into(),
            model: "duo stock linux".into(),
            protocol: "enterprise".into(),
            modelled: 42_600.0 * ratio,
            ratio,
            from_listed_stalls: false,
            model_version: MODEL_VERSION,
        };
        let inside = (0.85..=1.15).contains(&ratio);
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
            verdict: if inside { Verdict::In(compared) } else { Verdict::Out(compared) },
        }
    }

    #[test]
    fn every_row_is_counted_and_the_worst_are_on_the_page() {
        let reason = "the drive is not modelled".to_owned();
        let verdict = Verdict::NotExpressible { reason };
        let of_sheet = Row { phase: "datasheet".into(), ..row("A3", 2.0) };
        let missing = Row { verdict, ..row("A4", 1.0) };
        let rows = [row("A1", 0.99), row("A2", 0.5), of_sheet, missing.clone(), missing];
        let discussions = toml::from_str("").unwrap();
        let page = page(&rows, &discussions, 1, &("Unvalidated: x.".into(), String::new()));
        for line in [
            "1 of 2 measured rows and 0 of 1 data-sheet rows in tolerance (rates 15 %",
            "0 of 0 specifications agree with the drives' files; 2 rows are not comparable with a \
             run.",
            "| all measured | 2 | 25.5 % | 1 of 2 (50 %) | 0 |  | 0 |  |",
            "| duo | 2 | 25.5 % | 1 of 2 (50 %) | 0 |  | 0 |  |",
            "| data sheets | 1 | 100.0 % | 0 of 1 (0 %) | 0 |  | 0 |  |",
            "| A1 | duo stock linux | enterprise | 4k-rand-write | T16Q16 | steady | iops | 42600 \
             | 42174 | 0.99 | in |",
            "lists the 2 measured rows and the 1 rows of data sheets that were compared",
            "\n0 rows state a capacity",
            "\nNone differs from what the drive's file states.\n",
            "| the drive is not modelled | A4, A4 |",
            "\nUnvalidated: x.\n",
        ] {
            assert!(page.contains(line), "{page}\nlacks {line}");
        }
        assert!(!page.contains("| A3 |"), "the gallery lists it");
    }

    #[test]
    fn a_discussion_stands_once_below_the_worst_rows() {
        let text = "[[discussion]]\nrows = [\"A1\", \"A2\"]\ntext = \"Why.\"";
        let rows = [row("A1", 0.5), row("A2", 0.4)];
        let page = page(&rows, &toml::from_str(text).unwrap(), 1, &<_>::default());
        assert_eq!(page.matches("**A1, A2**: Why.").count(), 1, "{page}");
    }
}
