//! The section on the order that reviews state, and that of the models.

use std::path::Path;

use anyhow::{Result, ensure};
use lab::progress::SilentProgress;
use lab::ssd::DriveSpec;
use study::rankings::{JudgedStatement, RankingTally, RankingVerdict, judge, statements};

/// Judges the statements of the project's own table, or takes them from what `floatgate validate
/// --rankings --json` printed into the file `from`.
///
/// # Errors
/// Fails if a simulation failed, or the file has other statements.
pub(super) fn judged(
    drives: &[DriveSpec],
    threads: usize,
    from: Option<&Path>,
) -> Result<Vec<JudgedStatement>> {
    let statements = statements();
    let Some(file) = from else {
        return Ok(judge(&statements, drives, threads, &SilentProgress)?);
    };
    let judged: Vec<JudgedStatement> = super::of_json(file)?;
    let ids = judged.iter().map(|it| &it.id);
    ensure!(ids.eq(statements.iter().map(|it| &it.id)), "{} has other statements", file.display());
    Ok(judged)
}

/// The section: what holds, by review, and what fails.
pub(super) fn section(judged: &[JudgedStatement]) -> String {
    let mut reviews: Vec<&str> = judged.iter().map(|it| it.review.as_str()).collect();
    reviews.dedup();
    let row = |name: &str, tally: RankingTally| {
        let percent = tally.percent().map_or_else(String::new, |it| format!("{it:.0} %"));
        let RankingTally { holds, ties, ties_narrow, fails, .. } = tally;
        format!("| {name} | {holds} | {ties} | {ties_narrow} | {fails} | {percent} |\n")
    };
    let of = |review: &str| RankingTally::of(judged.iter().filter(|it| it.review == review));
    let rows: String = reviews.iter().map(|review| row(review, of(review))).collect();
    let failing = judged.iter().filter(|it| it.verdict == RankingVerdict::Fails);
    let failing: Vec<&str> = failing.map(|it| it.id.as_str()).collect();
    format!(
        "## Order\n\n\
         Statements of the reviews on the order of drives and on ratios between them \
         ([`published/rankings.csv`](../../published/rankings.csv)), run like figures. A tie is a \
         difference below 2 %; it is narrow where the intervals of all figures are narrower than \
         10 %. `floatgate validate --rankings` prints each with its figures.\n\n\
         | review | hold | tie | of these narrow | fail | hold or tie |\n|---|---|---|---|---|---|\n\
         {}{rows}\n\
         Failing: {}.\n",
        row("**all**", RankingTally::of(judged)),
        failing.join(", "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_review_has_a_row_and_what_fails_is_named() {
        let statement = |id: &str, review: &str, verdict| JudgedStatement {
            id: id.into(),
            review: review.into(),
            text: String::new(),
            verdict,
            figures: Vec::new(),
            margin: None,
        };
        let section = section(&[
            statement("A1", "duo", RankingVerdict::Holds),
            statement("A2", "duo", RankingVerdict::Tie { is_narrow: true }),
            statement("A3", "duo", RankingVerdict::Fails),
            statement("B1", "px", RankingVerdict::Fails),
        ]);
        for line in [
            "| **all** | 1 | 1 | 1 | 2 | 50 % |\n",
            "| duo | 1 | 1 | 1 | 1 | 67 % |\n",
            "| px | 0 | 0 | 0 | 1 | 0 % |\n",
            "\nFailing: A3, B1.\n",
        ] {
            assert!(section.contains(line), "{section}\nlacks {line}");
        }
    }
}
