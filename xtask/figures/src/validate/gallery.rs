//! The page of the gallery: the same validation as a report draws it.

use std::collections::BTreeSet;

use lab::ssd::MODEL_VERSION;
use report::{Discussion, JudgedFigure, Tally, TallyLine, Validation};
use study::validate::{FigureComparison, Row, Share, Verdict, is_typical, worst};

use super::WORST;
use super::discussion::Discussions;
use super::page::{count, tallies};

/// The page about `rows`, simulated with `seed`, and about models that are `unvalidated`.
pub(crate) fn page(
    rows: &[Row],
    discussions: &Discussions,
    seed: u64,
    unvalidated: String,
) -> String {
    let worst = worst(rows, WORST);
    let tallies = tallies(rows).into_iter();
    report::validation(&Validation {
        conditions: vec![
            format!("Written by cargo xtask validate: model version {MODEL_VERSION}, seed {seed},"),
            format!("each drive in its time lapse: {}.", count(rows)),
            unvalidated,
        ],
        tallies: tallies
            .map(|(name, tally)| TallyLine {
                name,
                typical: share(&tally.typical),
                spread: share(&tally.spread),
                from_listed_stalls: share(&tally.from_listed_stalls),
            })
            .collect(),
        figures: rows.iter().filter_map(judged).collect(),
        worst: worst.iter().map(|row| row.id.clone()).collect(),
        discussions: said(&worst, discussions),
    })
}

fn share(of: &Share) -> Tally {
    Tally { figures: of.rows, near: of.near, error_median: of.error_median }
}

fn judged(row: &Row) -> Option<JudgedFigure> {
    let FigureComparison { drive, model, modelled, ratio, from_listed_stalls, .. } =
        row.compared()?.clone();
    let load = [&row.workload, &row.load_text()].map(String::as_str).join(" ");
    Some(JudgedFigure {
        id: row.id.clone(),
        drive,
        model,
        load: format!("{}, {}", load.trim(), row.phase),
        metric: row.metric.clone(),
        published: row.published_text(),
        modelled,
        ratio,
        within: matches!(row.verdict, Verdict::In(_)),
        is_typical: is_typical(&row.metric),
        is_measured: row.is_measured(),
        is_from_listed_stall: from_listed_stalls,
    })
}

/// Returns the discussions of the worst rows, each once, that of the worst row first.
fn said(worst: &[&Row], discussions: &Discussions) -> Vec<Discussion> {
    let mut texts = BTreeSet::new();
    let all = worst.iter().filter_map(|row| Some((row, discussions.of(&row.id)?)));
    let once = all.filter(|(_, text)| texts.insert(*text));
    once.map(|(row, text)| Discussion {
        rows: discussions.together(&row.id).to_vec(),
        text: text.to_owned(),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::page::tests::row;

    #[test]
    fn the_page_has_every_row_and_says_why_the_worst_are_far_off() {
        let text = "[[discussion]]\nrows = [\"A1\", \"A2\"]\ntext = \"Why.\"";
        let rows = [row("A1", 0.5), row("A2", 0.4)];
        let page = page(&rows, &toml::from_str(text).unwrap(), 1, "Unvalidated: x.".into());
        assert_eq!(page.matches("<th scope=\"row\">A1</th>").count(), 2, "worst and all");
        assert_eq!(page.matches("<h3>A1, A2</h3><p>Why.</p>").count(), 1);
        assert!(page.contains("Unvalidated: x."));
    }
}
